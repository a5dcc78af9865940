//! Whether a target is covered thread by thread or by events on whole CPUs: by cost.

use crate::system::cgroup::{Cgroup, Hierarchies};
use crate::system::procfs::Procfs;
use crate::target::{Coverage, Target};
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
    let n_threads: usize = target
        .watched
        .iter()
        .map(|watched| procfs.tasks(watched.pid).map_or(1, |tids| tids.len()))
        .sum();
    if n_threads * n_cpus * (n_plans + 1) <= MAX_TASK_EVENTS || !may_watch_cpus(procfs) {
        return;
    }
    target.coverage = match common_group(target, procfs) {
        Some(group) => Coverage::Cgroup(group),
        None => Coverage::Cpus,
    };
}

/// Whether events on whole CPUs are permitted (`perf_allow_cpu()` in Linux
/// `include/linux/perf_event.h`).
fn may_watch_cpus(procfs: &Procfs) -> bool {
    let paranoid = procfs.number("sys/kernel/perf_event_paranoid").unwrap_or(2);
    paranoid <= 0 || procfs.is_privileged()
}

/// The control group of all the target's processes, if nobody else is in it.
fn common_group(target: &Target, procfs: &Procfs) -> Option<Cgroup> {
    let pids = target.processes();
    let path = group_path(&procfs.text(&format!("{}/cgroup", pids.first()?))?)?;
    let is_same = |pid: &i32| {
        let text = procfs.text(&format!("{pid}/cgroup"));
        text.and_then(|text| group_path(&text)).as_deref() == Some(&*path)
    };
    if path == "/" || !pids.iter().all(is_same) {
        return None;
    }
    let hierarchies = Hierarchies::new(&procfs.text("self/mounts")?);
    let group = hierarchies.group(Path::new(&path)).ok()?;
    let is_ours = |pid: &i32| pids.binary_search(pid).is_ok();
    (group.counts_events() && group.processes().ok()?.iter().all(is_ours)).then_some(group)
}

/// The path in the hierarchy whose events the kernel counts: `0::/system.slice/redis.service`.
fn group_path(text: &str) -> Option<String> {
    let line = |wanted: &str| {
        text.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            controllers.split(',').any(|one| one == wanted).then(|| path.to_owned())
        })
    };
    line("perf_event").or_else(|| line(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_that_of_the_hierarchy_that_counts() {
        let unified = "9:name=systemd:/a\n1:cpu,cpuacct:/b\n0::/system.slice/x:y.service\n";
        assert_eq!(group_path(unified).as_deref(), Some("/system.slice/x:y.service"));
        let older = "9:name=systemd:/a\n5:perf_event:/c\n0::/\n";
        assert_eq!(group_path(older).as_deref(), Some("/c"));
        assert_eq!(group_path("broken"), None);
    }
}
