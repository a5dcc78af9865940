//! Events that are opened for a selector.

use crate::event::attr::{Counter, EventSource, Levels, Source};
use dataspace_proto::event::{Event, Sampling};
use dataspace_proto::memory::Access;

/// The shortest period of IBS (`perf_ibs_op.min_period` in Linux `arch/x86/events/amd/ibs.c`), and
/// the bits of a period that its hardware has: newer kernels refuse others.
const MIN_IBS_PERIOD: u64 = 0x90;
const IBS_PERIOD_BITS: u64 = !0xf;

/// Event that is opened for a selector; one of several on a machine with several kinds of core.
#[derive(Clone, Debug)]
pub(crate) struct EventPlan {
    /// As the analyzer is told.
    pub(crate) event: Event,
    /// As the kernel is told.
    pub(crate) source: EventSource,
    /// The CPUs that have it; `None` where all have.
    pub(crate) cpus: Option<Vec<i32>>,
    /// True if samples of operations that access no memory come too, to be dropped and counted.
    pub(crate) drops_non_memory: bool,
    /// The only kind of access that was asked for, of an event that samples the others too.
    pub(crate) only: Option<Access>,
    /// AMD's IBS counts for it, or may.
    pub(crate) is_ibs: bool,
    /// True if samples of user code come though they were not asked for.
    pub(crate) drops_user: bool,
    /// True if samples of the kernel come though they were not asked for.
    pub(crate) drops_kernel: bool,
    /// The lowest precision of its samples where the kernel refuses better ones.
    pub(crate) lowest_precise_ip: u8,
    /// True if it was opened once, and what the kernel accepts is known.
    pub(crate) is_settled: bool,
    /// Notes for a person.
    pub(crate) warnings: Vec<String>,
}

impl EventPlan {
    /// A plan that is not opened yet.
    pub(crate) fn new(event: Event, source: EventSource) -> Self {
        let mut plan = Self {
            event,
            source,
            cpus: None,
            drops_non_memory: false,
            only: None,
            is_ibs: false,
            drops_user: false,
            drops_kernel: false,
            lowest_precise_ip: 0,
            is_settled: false,
            warnings: Vec::new(),
        };
        plan.follow_source();
        plan
    }

    /// Tells whether it is to be opened on `cpu`.
    pub(crate) fn is_on(&self, cpu: i32) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu))
    }

    /// Leaves out what takes privileges to sample: the kernel's side, and physical addresses.
    pub(crate) fn confine(&mut self) {
        self.source.exclude_kernel = true;
        if let Source::Counter(counter) = &mut self.source.source {
            // What IBS tells of a fetch has its physical address.
            counter.has_fetch = false;
            if let Some(access) = &mut counter.access {
                access.has_physical = false;
            }
        }
        self.follow_source();
    }

    /// Sampling that the event's hardware makes of `sampling`, so that weights are what was counted.
    pub(crate) fn rounded(&self, sampling: Sampling) -> Sampling {
        match sampling {
            Sampling::Period(period) if self.is_ibs => {
                Sampling::Period((period & IBS_PERIOD_BITS).max(MIN_IBS_PERIOD))
            }
            sampling => sampling,
        }
    }

    /// The same plan for an event that AMD's IBS counts, or may.
    pub(crate) fn by_ibs(mut self) -> Self {
        self.is_ibs = true;
        self.source.sampling = self.rounded(self.source.sampling);
        self.event.sampling = self.source.sampling;
        self
    }

    /// Brings what follows from the source in line with it.
    pub(crate) fn follow_source(&mut self) {
        let EventSource { source, exclude_user, exclude_kernel, .. } = self.source;
        self.event.includes_kernel = !exclude_kernel;
        if let Source::Counter(Counter { levels, .. }) = source {
            let by_reader = levels == Levels::FilteredByReader;
            self.drops_user = by_reader && exclude_user;
            self.drops_kernel = by_reader && exclude_kernel;
        }
    }
}
