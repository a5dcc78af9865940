//! Cost of profiling: the profiler's own CPU time and memory, and what sampling takes from the
//! target.

use dataspace_collector::system::memory;
use dataspace_proto::snapshot::Cost;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// CPU time that one session takes for itself.
#[derive(Clone, Debug)]
pub(super) struct OwnCpu {
    /// CPU time that this process had used before, where all of it is the session's from then on.
    before_ns: Option<u64>,
    /// Of the threads of the session, each of which keeps its own up to date. Readers of slow files are
    /// left out.
    pub(super) reader_ns: Arc<AtomicU64>,
    pub(super) analyzer_ns: Arc<AtomicU64>,
    pub(super) index_ns: Arc<AtomicU64>,
}

impl OwnCpu {
    /// Of a session that begins now.
    pub(super) fn begin(is_one_of_many: bool) -> Self {
        let before_ns = (!is_one_of_many).then(own_cpu_ns);
        let (reader_ns, analyzer_ns, index_ns) = Default::default();
        Self { before_ns, reader_ns, analyzer_ns, index_ns }
    }

    /// CPU time that it has used so far, in nanoseconds.
    pub(super) fn ns(&self) -> u64 {
        let of_threads = [&self.reader_ns, &self.analyzer_ns, &self.index_ns];
        match self.before_ns {
            Some(before_ns) => own_cpu_ns().saturating_sub(before_ns),
            None => of_threads.iter().map(|ns| ns.load(Ordering::Relaxed)).sum(),
        }
    }
}

/// Cost of this process so far, the target's part being `target_ns`.
pub(crate) fn so_far(target_ns: u64) -> Cost {
    Cost { own_cpu_ns: own_cpu_ns(), own_rss_bytes: memory::resident_bytes(), target_ns }
}

/// CPU time of this process.
fn own_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
