//! What profiling costs: the profiler's own CPU time and memory, and what sampling takes from the
//! target.

use dataspace_proto::snapshot::Cost;
use rustix::time::{ClockId, clock_gettime};

/// What the session has cost so far, the target's part being `target_ns`.
pub(crate) fn so_far(target_ns: u64) -> Cost {
    Cost { own_cpu_ns: own_cpu_ns(), own_rss_bytes: resident_bytes(), target_ns }
}

/// Resident memory of this process, as the kernel counts it; 0 where it does not tell.
pub(crate) fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 =
        statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
    pages * rustix::param::page_size() as u64
}

/// CPU time of this process.
pub(super) fn own_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
