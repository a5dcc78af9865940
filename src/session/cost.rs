//! What profiling costs: the profiler's own CPU time and memory, and what sampling takes from the
//! target.

use dataspace_proto::snapshot::Cost;
use rustix::time::{ClockId, clock_gettime};

/// What one sample costs the target, as measured on a VM (13 to 16 µs; design section 4): an
/// estimate, and shown as one.
const TARGET_COST_NS: u64 = 15_000;

/// What the session has cost so far, of which the kernel took `kernel_samples`.
pub(super) fn so_far(kernel_samples: u64) -> Cost {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 =
        statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
    Cost {
        own_cpu_ns: cpu.tv_sec.unsigned_abs() * 1_000_000_000 + cpu.tv_nsec.unsigned_abs(),
        own_rss_bytes: pages * rustix::param::page_size() as u64,
        target_ns: kernel_samples * TARGET_COST_NS,
    }
}
