//! The rest of a sample that was kept: values at a breakpoint, and a load object that has to be opened.

use crate::attribution::verdict::Attribution;
use crate::session::analyzer::Analyzer;
use dataspace_proto::event::EventKind;
use dataspace_proto::record::Sample;

impl Analyzer {
    /// Adds to the sample that was kept last what a breakpoint tells, and has the load object opened that it lacks.
    pub(super) fn complete(&mut self, sample: &Sample, attribution: &Attribution) {
        if self.is_watching
            && let Some(len_bytes) = self.watched_bytes(sample)
        {
            self.history.append_change(self.world.value_change(sample, attribution, len_bytes));
        }
        if let Some(object) = self.history.places.unopened.take()
            && self.config.has_lines
            && !self.is_short_of_memory
        {
            self.parked.open(&self.world.processes, object);
        }
    }

    /// Bytes that the breakpoint watches which a sample is of.
    pub(super) fn watched_bytes(&self, sample: &Sample) -> Option<u8> {
        match self.events().get(usize::from(sample.event.0)).map(|event| event.kind) {
            Some(EventKind::Breakpoint { len_bytes, .. }) => Some(len_bytes),
            _ => None,
        }
    }
}
