//! Choice between events on single threads and on whole CPUs: by cost.

use crate::system::cgroup::{Cgroup, Hierarchies};
use crate::system::procfs::Procfs;
use crate::target::{Coverage, Target, Watched};
use std::path::Path;

/// Events on single threads that a session opens at most where it may choose. Each one takes a
/// descriptor, and makes the target's exit 0.03 to 0.05 ms longer (measured; 0.15 ms each at 8,000,
/// for the kernel walks a list of them for each that ends): 50 ms at most.
const MAX_TASK_EVENTS: usize = 1_024;

/// Covers a target of many threads by events on whole CPUs, where that is permitted: counted by
/// the kernel for its control group if nobody else is in that, else for all, and told apart here.
pub(crate) fn widen(target: &mut Target, n_cpus: usize, n_plans: usize, procfs: &Procfs) {
    let is_fixed = target.coverage != Coverage::Tasks || target.held.is_some();
    if is_fixed || target.watched.iter().any(|watched| watched.tid.is_some()) {
        return;
    }
    if n_threads(&target.watched, procfs) * n_cpus * (n_plans + 1) <= MAX_TASK_EVENTS
        || !may_watch_cpus(procfs)
    {
        return;
    }
    target.coverage = match common_group(target, procfs) {
        Some(group) => Coverage::Cgroup(group),
        None => Coverage::Cpus,
    };
}

/// Number of the threads of these processes now.
pub(crate) fn n_threads(watched: &[Watched], procfs: &Procfs) -> usize {
    watched.iter().map(|watched| procfs.tasks(watched.pid).map_or(1, |tids| tids.len())).sum()
}

/// Tells whether events on whole CPUs are permitted (`perf_allow_cpu()` in Linux
/// `include/linux/perf_event.h`).
fn may_watch_cpus(procfs: &Procfs) -> bool {
    procfs.paranoid() <= 0 || procfs.is_privileged()
}

/// The control group of all the target's processes, if nobody else is in it.
fn common_group(target: &Target, procfs: &Procfs) -> Option<Cgroup> {
    let pids = target.processes();
    let path = procfs.control_group(*pids.first()?)?;
    let is_same = |pid: &i32| procfs.control_group(*pid).as_deref() == Some(&*path);
    if path == "/" || !pids.iter().all(is_same) {
        return None;
    }
    let group = Hierarchies::read(procfs).group(Path::new(&path)).ok()?;
    let is_ours = |pid: &i32| pids.binary_search(pid).is_ok();
    (group.counts_events() && group.processes().ok()?.iter().all(is_ours)).then_some(group)
}
