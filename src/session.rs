//! The session: what joins collector and analyzer, as the commands and views see it.

use crate::commands::doctor::Finding;
use crate::config::{LiveOptions, RecordingOptions};
use crate::exit::{Failure, Kind};
use dataspace_proto::sample_line::SampleLine;
use dataspace_proto::snapshot::Snapshot;
use std::sync::Arc;

/// What a view needs of a running session.
pub(crate) trait Source {
    /// The totals as they stand; cheap.
    fn snapshot(&self) -> Arc<Snapshot>;

    /// Whether the target or the recording has ended and the totals are final.
    fn is_finished(&self) -> bool;

    /// Ends the session in order. When it returns, [`Self::snapshot`] gives the final totals.
    /// A second call does nothing.
    fn stop(&self);
}

// STUB: the session replaces the four functions below; see `Failure` for errors with exit codes.

/// Attaches to a target and begins to sample.
///
/// # Errors
/// When nothing can be sampled, with the remedy.
pub(crate) fn start_live(options: &LiveOptions) -> anyhow::Result<Box<dyn Source>> {
    Err(stub(format!("live sampling of {:?}", options.target)))
}

/// Begins to read a recording; the totals are final when the source is finished.
///
/// # Errors
/// When it cannot be opened or is no recording. Damage further on is a warning in the snapshot.
pub(crate) fn read_recording(options: &RecordingOptions) -> anyhow::Result<Box<dyn Source>> {
    Err(stub(format!("reading {:?}", options.input)))
}

/// Gives the answer for each sample of a recording, in time order, and at the end what a person
/// should know: damage, missing load objects.
///
/// # Errors
/// As [`read_recording`], and whatever `line` gives: that ends the reading.
pub(crate) fn script(
    options: &RecordingOptions,
    line: &mut dyn FnMut(&SampleLine) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<String>> {
    let _ = line;
    Err(stub(format!("reading {:?}", options.input)))
}

/// Looks at what this machine and these privileges allow.
///
/// # Errors
/// When not even that can be found out.
pub(crate) fn examine() -> anyhow::Result<Vec<Finding>> {
    Err(stub("looking at this machine".into()))
}

fn stub(what: String) -> anyhow::Error {
    Failure::new(Kind::Unsupported, format!("{what}: the session is not built in yet")).into()
}
