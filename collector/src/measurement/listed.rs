//! Events of a measurement as they are listed for a processor.

/// The events of a measurement.
#[derive(Clone, Debug, Default)]
pub(super) struct Listed {
    pub(super) sampled: Sampled,
    /// Groups of events that are counted in the same time: the name in reports, and the event in perf's spelling.
    pub(super) groups: Vec<Vec<(&'static str, String)>>,
    pub(super) notes: Vec<String>,
}

/// The events that are sampled.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampled {
    pub(super) events: Vec<String>,
    /// Events from one sample to the next.
    pub(super) period: u64,
    /// They can be bounded by latency.
    pub(super) has_threshold: bool,
}

/// An event that reports call as perf does.
pub(super) fn same(event: &'static str) -> (&'static str, String) {
    (event, event.to_owned())
}
