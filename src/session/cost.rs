//! What profiling costs: the profiler's own CPU time and memory, and what sampling takes from the
//! target.

use dataspace_analyzer::analyzer::Analyzer;
use dataspace_proto::event::EventKind;
use dataspace_proto::snapshot::Cost;
use rustix::time::{ClockId, clock_gettime};

/// What one sample of an event costs the target in nanoseconds, as measured on a VM: an estimate,
/// and shown as one. A clock or a breakpoint interrupts (13 to 16 µs and 10 to 20 µs; design
/// section 4); faults and tracepoints are in the kernel already and only write the sample.
const fn cost_ns(kind: EventKind) -> u64 {
    match kind {
        EventKind::PageFault | EventKind::Tracepoint => 3_000,
        _ => 15_000,
    }
}

/// What the session has cost so far.
pub(super) fn so_far(analyzer: &Analyzer) -> Cost {
    let target_ns = analyzer
        .samples_by_event()
        .map(|(event, n_samples)| n_samples.saturating_mul(cost_ns(event.kind)))
        .sum();
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 =
        statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
    Cost {
        own_cpu_ns: cpu.tv_sec.unsigned_abs() * 1_000_000_000 + cpu.tv_nsec.unsigned_abs(),
        own_rss_bytes: pages * rustix::param::page_size() as u64,
        target_ns,
    }
}
