//! Meaning of an event's samples, the same for a live session and for a recording: how far they skid, whether
//! they have an address, how many events each stands for.

use dataspace_proto::event::{EventKind, SkidModel};
use perf_event_open_sys::bindings as abi;

/// Instructions that the trigger of an imprecise counter may be away: interrupts of `cycles` without PEBS
/// were seen up to this far after it on the machines of ten years.
const IMPRECISE_RANGE: u32 = 8;

/// The kind of the software event with this `config`.
pub(crate) fn software_kind(config: u64) -> EventKind {
    match u32::try_from(config) {
        Ok(abi::PERF_COUNT_SW_CPU_CLOCK | abi::PERF_COUNT_SW_TASK_CLOCK) => EventKind::Clock,
        Ok(
            abi::PERF_COUNT_SW_PAGE_FAULTS
            | abi::PERF_COUNT_SW_PAGE_FAULTS_MIN
            | abi::PERF_COUNT_SW_PAGE_FAULTS_MAJ,
        ) => EventKind::PageFault,
        _ => EventKind::Other,
    }
}

/// The skid of an event that the kernel itself makes, or a debug register.
///
/// A page fault is told with the instruction that faulted, and the sampled place of a tracepoint is that of the
/// call. A clock interrupts after its trigger, and a debug register traps after its access.
pub(crate) const fn kernel_skid(kind: EventKind) -> SkidModel {
    match kind {
        EventKind::PageFault | EventKind::Tracepoint => SkidModel::Exact,
        EventKind::Clock | EventKind::Breakpoint { .. } => SkidModel::AfterOne,
        EventKind::Memory | EventKind::Fetch | EventKind::Other => {
            SkidModel::Unknown(IMPRECISE_RANGE)
        }
    }
}

/// The skid of a PMU's event with this precision. One that `tags` operations (AMD IBS, Arm SPE) reports the
/// operation's own address, whatever its precision.
///
/// Where it is exact, each sample still says for itself whether the hardware vouches for its IP.
pub(crate) const fn counter_skid(precise_ip: u64, tags: bool) -> SkidModel {
    match precise_ip {
        _ if tags => SkidModel::Exact,
        0 => SkidModel::Unknown(IMPRECISE_RANGE),
        1 => SkidModel::AfterOne,
        _ => SkidModel::Exact,
    }
}

/// Tells whether samples have a data address. The kernel fills `ADDR` of every event, but a clock and a tracepoint
/// have none to tell.
pub(crate) const fn has_address(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Clock | EventKind::Tracepoint | EventKind::Fetch)
}

/// Events that a sample stands for: as many as it says, or the period that was `asked` for where it says none.
///
/// Software events and breakpoints that sample `PERIOD` without freq fire on every event and say 1
/// (`perf_swevent_event()` in Linux `kernel/events/core.c`).
pub(crate) fn weight(said: Option<u64>, asked: impl FnOnce() -> u64) -> u64 {
    said.filter(|&period| period != 0).unwrap_or_else(asked)
}

/// Event select of Intel's retired instructions whose fetch waited (`FRONTEND_RETIRED`), and its unit masks: 3 from Redwood
/// Cove on.
const FRONTEND_RETIRED: [u64; 2] = [0x1c6, 0x3c6];

/// Tells whether an event of one of Intel's cores, of this config and `config1`, is one of fetches.
pub(crate) fn is_fetch(config: u64, config1: u64) -> bool {
    FRONTEND_RETIRED.contains(&(config & 0xffff)) && config1 != 0
}

/// The name of the PMU by which AMD samples fetches.
pub(crate) const IBS_FETCH: &str = "ibs_fetch";

/// Tells whether the samples are the events, of which a person may want each.
pub(crate) const fn counts_each(kind: EventKind) -> bool {
    matches!(kind, EventKind::PageFault | EventKind::Breakpoint { .. } | EventKind::Tracepoint)
}
