//! Decided samples, on their way into the history.

use crate::attribution::claim::Placing;
use crate::attribution::name_table::StaticArray;
use crate::attribution::verdict::Attribution;
use crate::history::chunk::NONE;
use crate::history::store::TouchedData;
use crate::process::table::DataObjectAt;
use crate::session::analyzer::Analyzer;
use dataspace_proto::event::EventKind;
use dataspace_proto::record::Sample;

impl Analyzer {
    /// Keeps a decided sample. The object that it touched may be in a static `array`.
    pub(super) fn keep(
        &mut self,
        sample: &Sample,
        attribution: &Attribution,
        mut touched: TouchedData,
        array: Option<StaticArray>,
    ) {
        let is_somewhere = attribution.claim().is_some_and(|claim| {
            touched.is_by_frequency = claim.grounds.is_by_frequency;
            claim.placing == Placing::Somewhere
        });
        if is_somewhere {
            (touched.offset, touched.index) = (NONE, NONE);
        } else if let Some(array) = array.filter(|_| touched.index == NONE)
            && let Some((addr, _)) = attribution.addr
            && let DataObjectAt::Open { bias, .. } =
                self.world.processes.data_object(sample.pid, addr)
        {
            let into = addr.0.wrapping_sub(bias).wrapping_sub(array.start.0);
            touched.index = u32::try_from(into / array.element_bytes).unwrap_or(NONE);
        }
        touched.segment =
            attribution.addr.and_then(|(addr, _)| self.world.processes.segment(sample, addr));
        self.history.append(sample, attribution, touched, &self.world, &self.cgroups);
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
