//! The figures that the samples of a session have at all.

use dataspace_proto::memory::Snoop;
use dataspace_proto::record::Sample;

/// True for each figure that some sample told: a sum of 0 means something only then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measured {
    pub(crate) latency: bool,
    pub(crate) tlb: bool,
    pub(crate) locked: bool,
    pub(crate) snoop: bool,
    pub(crate) level: bool,
}

impl Measured {
    /// Notes all that a sample tells.
    pub(crate) fn note(&mut self, sample: &Sample) {
        self.latency |= sample.latency != 0;
        if let Some(source) = sample.data_source {
            self.tlb |= source.tlb != Default::default();
            self.locked |= source.locked.is_some();
            self.snoop |= source.snoop != Snoop::default();
            self.level |= source.level.is_some();
        }
    }
}
