//! Tasks that samples of the history are of: threads under the names that they had.

use crate::history::chunk::NONE;
use crate::history::growing::{Frozen, Growing};
use crate::limit;
use dataspace_proto::record::{Comm, Fork, Sample};
use rustc_hash::FxHashMap;
use std::num::NonZeroU64;
use std::sync::Arc;

/// A thread, by one of its names and in one of its control groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    pub(crate) comm: Option<Arc<str>>,
    pub(crate) cgroup: Option<Arc<str>>,
}

/// All tasks of a session.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    list: Growing<Task>,
    /// The newest entry of each thread, and the control group that it is for.
    newest: FxHashMap<(i32, i32), (Option<NonZeroU64>, u32)>,
    /// Names by thread. Those of threads that ended stay: samples of them may still wait.
    comms: FxHashMap<i32, Arc<str>>,
    last: LastTask,
}

/// The task that was asked for last.
#[derive(Debug)]
struct LastTask {
    pid: i32,
    tid: i32,
    cgroup: Option<NonZeroU64>,
    number: u32,
}

impl Default for LastTask {
    /// A thread that no kernel has: a sample that says it is of that one is of no task.
    fn default() -> Self {
        Self { pid: i32::MIN, tid: i32::MIN, cgroup: None, number: NONE }
    }
}

impl LastTask {
    fn is_of(&self, sample: &Sample) -> bool {
        // A number that is never 0 is compared like any other.
        let id = |cgroup: Option<NonZeroU64>| cgroup.map_or(0, NonZeroU64::get);
        let is_thread = self.pid == sample.pid && self.tid == sample.tid;
        is_thread && id(self.cgroup) == id(sample.cgroup)
    }
}

impl Tasks {
    /// The number of a sample's task; `cgroup` tells the path of its control group.
    #[inline]
    pub(crate) fn number(
        &mut self,
        sample: &Sample,
        cgroup: impl FnOnce(u64) -> Option<Arc<str>>,
    ) -> u32 {
        match self.last.is_of(sample) {
            true => self.last.number,
            false => self.find(sample, cgroup),
        }
    }

    #[inline(never)]
    fn find(&mut self, sample: &Sample, cgroup: impl FnOnce(u64) -> Option<Arc<str>>) -> u32 {
        let thread = (sample.pid, sample.tid);
        let number = match self.newest.get(&thread) {
            Some((group, number)) if *group == sample.cgroup => *number,
            _ => self.add(thread, sample.cgroup, cgroup),
        };
        self.last = LastTask { pid: sample.pid, tid: sample.tid, cgroup: sample.cgroup, number };
        number
    }

    /// Name of a thread, or else of its process.
    pub(crate) fn name(&self, pid: i32, tid: i32) -> Option<&Arc<str>> {
        self.comms.get(&tid).or_else(|| self.comms.get(&pid))
    }

    #[cold]
    fn add(
        &mut self,
        (pid, tid): (i32, i32),
        group: Option<NonZeroU64>,
        cgroup: impl FnOnce(u64) -> Option<Arc<str>>,
    ) -> u32 {
        let comm = self.name(pid, tid).cloned();
        let cgroup = group.and_then(|group| cgroup(group.get()));
        if self.list.len() >= limit::MAX_HISTORY_TASKS {
            return self.newest.get(&(pid, tid)).map_or(NONE, |(_, number)| *number);
        }
        let number = self.list.push(Task { pid, tid, comm, cgroup });
        self.newest.insert((pid, tid), (group, number));
        number
    }

    /// A thread has another name from now on.
    pub(crate) fn comm(&mut self, comm: &Comm) {
        self.call(comm.tid, String::from_utf8_lossy(&comm.name).into());
        self.forget(comm.pid, comm.tid);
    }

    /// A thread has its parent's name.
    pub(crate) fn fork(&mut self, fork: &Fork) {
        if let Some(name) = self.comms.get(&fork.parent_tid).cloned() {
            self.call(fork.tid, name);
        }
        self.forget(fork.pid, fork.tid);
    }

    fn call(&mut self, tid: i32, name: Arc<str>) {
        if self.comms.len() >= limit::MAX_HISTORY_TASKS {
            self.comms.clear();
        }
        self.comms.insert(tid, name);
    }

    fn forget(&mut self, pid: i32, tid: i32) {
        self.newest.remove(&(pid, tid));
        self.last = LastTask::default();
    }

    pub(crate) fn freeze(&self) -> Frozen<Task> {
        self.list.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_name_that_it_had_then() {
        let mut tasks = Tasks::default();
        let sample = Sample { pid: 1, tid: 2, ..Sample::default() };
        let comm = |name: &[u8]| Comm { pid: 1, tid: 2, name: name.into(), ..Comm::default() };
        tasks.comm(&comm(b"before"));
        let before = tasks.number(&sample, |_| None);
        assert_eq!(tasks.number(&sample, |_| None), before);
        tasks.comm(&comm(b"after"));
        let after = tasks.number(&sample, |_| None);
        tasks.fork(&Fork { pid: 3, tid: 3, parent_pid: 1, parent_tid: 2, time_ns: 0 });
        let child = tasks.number(&Sample { pid: 3, tid: 3, ..Sample::default() }, |_| None);
        let list = tasks.freeze();
        let name = |number| list.get(number).unwrap().comm.clone().unwrap();
        assert_eq!((&*name(before), &*name(after), &*name(child)), ("before", "after", "after"));
    }
}
