//! State of a session: what the reader thread takes over, how it is reached, what it leaves.

use crate::attach::Attached;
use crate::attach::rings::Rings;
use crate::cost::calibration::Calibration;
use crate::event::EventPlan;
use crate::event::attr::{Binding, KernelFeatures};
use crate::event::counted::CountPlan;
use crate::live::cpu_watch::CpuWatch;
use crate::live::group_watch::GroupWatch;
use crate::lookup::before::Before;
use crate::lookup::gate::Gate;
use crate::system::procfs::Procfs;
use crate::target::Watched;
use crate::target::membership::CommFilter;
use dataspace_proto::accounting::Collected;
use dataspace_proto::measure::Variation;
use dataspace_proto::record::Record;
use rustix::fd::OwnedFd;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;

/// So many batches on their way to the analyzer are work enough for it: with one the two would take turns
/// where each has a CPU.
pub(crate) const MAX_BATCHES_BEHIND: usize = 2;

/// State that the reader thread takes over.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) rings: Rings,
    pub(crate) attached: Attached,
    pub(crate) plans: Vec<EventPlan>,
    pub(crate) counted: Vec<CountPlan>,
    pub(crate) features: KernelFeatures,
    pub(crate) binding: Binding,
    pub(crate) watched: Vec<Watched>,
    /// The filter of names that is told beside them, where they were named one by one.
    pub(crate) told_names: Option<CommFilter>,
    /// The group, where events are on whole CPUs for a control group.
    pub(crate) group: Option<GroupWatch>,
    pub(crate) cpu_watch: CpuWatch,
    pub(crate) gate: Gate,
    pub(crate) procfs: Procfs,
    /// Mappings and names from before; `None` when they were told.
    pub(crate) before: Option<Before>,
    pub(crate) calibration: Option<JoinHandle<Calibration>>,
    pub(crate) max_overhead: Option<f64>,
    pub(crate) variation: Option<Variation>,
    pub(crate) keeps_counts: bool,
    pub(crate) consumer_cpu_ns: Arc<AtomicU64>,
    pub(crate) reader_cpu_ns: Arc<AtomicU64>,
    pub(crate) is_confined: bool,
}

/// Ways to reach the reader thread.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) stop: AtomicBool,
    /// Written once, to end the reader's wait.
    pub(crate) wake: OwnedFd,
}

/// End of a session.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The final counts.
    pub collected: Collected,
    /// The command's exit status, if there was one and it has ended.
    pub exit_status: Option<ExitStatus>,
}

/// The way to the channel of a session that is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heard {
    /// All that goes there without a recording.
    #[default]
    Everything,
    /// Events, warnings, counts and the time: enough to show how it goes.
    Notices,
}

impl Heard {
    pub(crate) const fn includes(self, record: &Record) -> bool {
        match (self, record) {
            (Self::Everything, _) => true,
            (
                Self::Notices,
                Record::Sample(_)
                | Record::Mmap(_)
                | Record::Comm(_)
                | Record::Fork(_)
                | Record::Exit(_),
            ) => false,
            (Self::Notices, _) => true,
        }
    }
}
