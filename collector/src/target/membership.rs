//! Membership in a session's target, of the processes that the kernel shows.
//!
//! Events on whole CPUs and control groups show more than was asked for: other processes, other
//! names. What does not belong is dropped in the order of time, so that a process belongs from its
//! birth to its end, and counted.

use dataspace_proto::record::{Comm, Exit, Fork, Record};
use std::collections::HashMap;

/// Processes known at once. The kernel has at most 4,194,304 numbers (`PID_MAX_LIMIT`); beyond
/// these the oldest knowledge is dropped, and such a process is a stranger again.
const MAX_PROCESSES: usize = 262_144;

/// Processes or names that the description of a target lists.
const MAX_LISTED: usize = 4;

/// The first of `names`, and how many more there are.
pub(crate) fn listed(names: &[impl AsRef<str>]) -> String {
    let first: Vec<&str> = names.iter().take(MAX_LISTED).map(AsRef::as_ref).collect();
    let first = first.join(", ");
    match names.len().saturating_sub(MAX_LISTED) {
        0 => first,
        n_more => format!("{first} and {n_more} more"),
    }
}

/// Process names that are wanted or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommFilter {
    /// Only processes of these names; empty: of any.
    pub include: Vec<Box<[u8]>>,
    /// No processes of these names.
    pub exclude: Vec<Box<[u8]>>,
}

impl CommFilter {
    /// Tells whether every name passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    /// The rest of `target` under this filter, for a person; `None`: of the whole system.
    #[must_use]
    pub fn describe(&self, target: Option<&str>) -> String {
        let called = |names: &[Box<[u8]>]| {
            let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
            format!("called {}", listed(&names))
        };
        let mut text = match (target, self.include.is_empty()) {
            (None, true) => "the whole system".to_owned(),
            (None, false) => format!("processes {}", called(&self.include)),
            (Some(target), true) => target.to_owned(),
            (Some(target), false) => format!("{target}, processes {}", called(&self.include)),
        };
        if !self.exclude.is_empty() {
            text = format!("{text} without those {}", called(&self.exclude));
        }
        text
    }

    fn passes(&self, name: &[u8]) -> bool {
        let is_one_of = |names: &[Box<[u8]>]| names.iter().any(|one| **one == *name);
        (self.include.is_empty() || is_one_of(&self.include)) && !is_one_of(&self.exclude)
    }
}

/// Relation of a sample's process to the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Part of the target.
    Member,
    /// Another one.
    Outsider,
    /// Nothing is known of it: its name and its mappings have to be looked up.
    Stranger,
}

#[derive(Clone, Copy, Debug)]
struct Process {
    /// One of the target's processes, or born of one.
    is_ours: bool,
    /// Its name passes the filter.
    is_named: bool,
    /// Its mappings have been told, or will be by records.
    is_told: bool,
    /// As far as they are told of: what is read of threads may stop short.
    n_threads: u32,
    /// Its first thread has not ended.
    has_leader: bool,
}

/// The processes of a session.
#[derive(Debug, Default)]
pub(crate) struct Membership {
    /// Whatever the kernel shows is part of the target, except `own_pid`.
    takes_all: bool,
    own_pid: i32,
    comms: CommFilter,
    processes: HashMap<i32, Process>,
}

impl Membership {
    /// Everything that the kernel shows belongs, where `takes_all`; else only processes that are
    /// [added](Self::add), and their children. `own_pid` never does.
    pub(crate) fn new(takes_all: bool, own_pid: i32, comms: CommFilter) -> Self {
        Self { takes_all, own_pid, comms, processes: HashMap::new() }
    }

    /// Process `pid` belongs, whose name is `name`. Whether it passes the filter of names.
    pub(crate) fn add(&mut self, pid: i32, name: &[u8], n_threads: usize, is_told: bool) -> bool {
        let is_named = self.comms.passes(name);
        let n_threads = u32::try_from(n_threads).unwrap_or(u32::MAX).max(1);
        // Mappings of what does not belong are not passed on: another name makes it a stranger.
        let is_told = is_told && is_named;
        self.insert(pid, Process { is_ours: true, is_named, is_told, n_threads, has_leader: true });
        is_named
    }

    fn insert(&mut self, pid: i32, process: Process) {
        if self.processes.len() >= MAX_PROCESSES {
            self.processes.retain(|_, process| process.is_ours && process.is_named);
            if self.processes.len() >= MAX_PROCESSES {
                self.processes.clear();
            }
        }
        self.processes.insert(pid, process);
    }

    /// The processes that belong and have not ended.
    pub(crate) fn members(&self) -> Vec<i32> {
        let belongs = |process: &Process| process.is_ours && process.is_named;
        let members = self.processes.iter().filter(|(_, process)| belongs(process));
        members.map(|(&pid, _)| pid).collect()
    }

    /// Relation of process `pid`'s samples to the session.
    pub(crate) fn standing(&self, pid: i32) -> Standing {
        // 0 is the idle task; −1 is a task that has ended.
        if pid == self.own_pid || pid <= 0 {
            return Standing::Outsider;
        }
        match self.processes.get(&pid) {
            Some(process) if !(process.is_ours && process.is_named) => Standing::Outsider,
            Some(process) if process.is_told => Standing::Member,
            None if !self.takes_all => Standing::Outsider,
            _ => Standing::Stranger,
        }
    }

    /// Tells whether a process of this name may belong.
    pub(crate) fn passes(&self, name: &[u8]) -> bool {
        self.comms.passes(name)
    }

    /// Tells whether a stranger belongs, as far as is known of it: it has no name that could keep it out.
    pub(crate) fn may_belong(&self, pid: i32) -> bool {
        match self.processes.get(&pid) {
            Some(process) => process.is_ours && process.is_named,
            None => self.takes_all && self.comms.passes(b""),
        }
    }

    /// Learns from a record that is no sample. Whether it is of the target.
    pub(crate) fn learn(&mut self, record: &Record) -> bool {
        match record {
            Record::Fork(fork) => self.fork(fork),
            Record::Exit(exit) => self.exit(exit),
            Record::Comm(comm) => self.comm(comm),
            // The kernel's own mappings have no process.
            Record::Mmap(mmap) => mmap.pid < 0 || self.is_member(mmap.pid),
            Record::Namespace(namespace) => self.is_member(namespace.pid),
            _ => true,
        }
    }

    fn is_member(&self, pid: i32) -> bool {
        self.standing(pid) == Standing::Member
    }

    fn fork(&mut self, fork: &Fork) -> bool {
        if fork.pid == fork.parent_pid {
            if let Some(process) = self.processes.get_mut(&fork.pid) {
                process.n_threads = process.n_threads.saturating_add(1);
            }
        } else if let Some(&parent) = self.processes.get(&fork.parent_pid) {
            // What was said of the parent's mappings holds for the child's.
            self.insert(fork.pid, Process { n_threads: 1, has_leader: true, ..parent });
        } else {
            // Its number may have been another's.
            self.processes.remove(&fork.pid);
        }
        self.is_member(fork.pid)
    }

    fn exit(&mut self, exit: &Exit) -> bool {
        let is_member = self.is_member(exit.pid);
        if let Some(process) = self.processes.get_mut(&exit.pid) {
            process.n_threads = process.n_threads.saturating_sub(1);
            process.has_leader &= exit.tid != exit.pid;
            if process.n_threads == 0 && !process.has_leader {
                self.processes.remove(&exit.pid);
            }
        }
        is_member
    }

    fn comm(&mut self, comm: &Comm) -> bool {
        if comm.pid == comm.tid {
            let is_named = self.comms.passes(&comm.name);
            let is_new_image = comm.is_exec;
            match self.processes.get_mut(&comm.pid) {
                Some(process) => {
                    process.is_named = is_named;
                    // Exec begins a new address space, whose mappings are all told.
                    if is_new_image {
                        (process.is_told, process.n_threads) = (true, 1);
                    }
                    process.is_told &= is_named;
                }
                None if self.takes_all && is_new_image => {
                    let (is_told, has_leader) = (is_named, true);
                    let process =
                        Process { is_ours: true, is_named, is_told, n_threads: 1, has_leader };
                    self.insert(comm.pid, process);
                }
                None => {}
            }
        }
        self.is_member(comm.pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::record::Mmap;

    fn fork(pid: i32, parent_pid: i32) -> Record {
        Record::Fork(Fork { pid, tid: pid, parent_pid, parent_tid: parent_pid, time_ns: 1 })
    }

    fn exit(pid: i32) -> Record {
        Record::Exit(Exit { pid, tid: pid, time_ns: 1 })
    }

    fn exec(pid: i32, name: &[u8]) -> Record {
        let name = name.into();
        Record::Comm(Box::new(Comm { pid, tid: pid, is_exec: true, name, time_ns: 1 }))
    }

    fn mmap(pid: i32) -> Record {
        Record::Mmap(Box::new(Mmap { pid, ..Mmap::default() }))
    }

    fn only(name: &[u8]) -> CommFilter {
        CommFilter { include: vec![name.into()], exclude: Vec::new() }
    }

    #[test]
    fn a_description_names_the_filter() {
        let filter = |include: &[&str], exclude: &[&str]| {
            let names = |names: &[&str]| names.iter().map(|name| name.as_bytes().into()).collect();
            CommFilter { include: names(include), exclude: names(exclude) }
        };
        let check = |comms: CommFilter, target: Option<&str>, expect: &str| {
            assert_eq!(comms.describe(target), expect);
        };
        let unit = Some("unit y.service");
        check(filter(&[], &[]), None, "the whole system");
        check(filter(&[], &[]), unit, "unit y.service");
        check(filter(&["a", "b"], &[]), None, "processes called a, b");
        check(filter(&["a"], &[]), unit, "unit y.service, processes called a");
        check(filter(&[], &["x"]), None, "the whole system without those called x");
        check(filter(&[], &["x"]), unit, "unit y.service without those called x");
        check(
            filter(&["a", "b", "c", "d", "e", "f"], &["x", "b"]),
            None,
            "processes called a, b, c, d and 2 more without those called x, b",
        );
    }

    #[test]
    fn children_belong_and_numbers_are_used_again() {
        let mut membership = Membership::new(false, 1, CommFilter::default());
        assert!(membership.add(10, b"server", 1, true));
        assert!(membership.learn(&fork(11, 10)) && membership.learn(&mmap(11)));
        assert!(!membership.learn(&fork(20, 19)) && !membership.learn(&mmap(20)));
        assert_eq!(membership.standing(11), Standing::Member);
        assert_eq!(membership.standing(20), Standing::Outsider);
        assert!(membership.learn(&exit(11)), "its end is told");
        assert!(!membership.learn(&fork(11, 19)), "another process has its number");
        assert_eq!(membership.standing(11), Standing::Outsider);
        assert_eq!(membership.members(), [10]);
    }

    #[test]
    fn a_process_ends_with_its_last_thread() {
        let mut membership = Membership::new(false, 1, CommFilter::default());
        membership.add(10, b"server", 2, true);
        membership.learn(&exit(10));
        assert_eq!(membership.standing(10), Standing::Member);
        membership.learn(&Record::Exit(Exit { pid: 10, tid: 12, time_ns: 1 }));
        assert_eq!(membership.standing(10), Standing::Outsider);
    }

    #[test]
    fn a_name_belongs_from_the_exec_that_gives_it_to_the_one_that_takes_it() {
        let mut membership = Membership::new(true, 1, only(b"redis"));
        assert_eq!(membership.standing(10), Standing::Stranger);
        assert!(!membership.add(10, b"bash", 1, true));
        assert!(!membership.learn(&fork(11, 10)) && !membership.learn(&mmap(11)));
        assert!(membership.learn(&exec(11, b"redis")) && membership.learn(&mmap(11)));
        assert!(membership.learn(&exec(30, b"redis")), "one that nothing was known of");
        assert!(!membership.learn(&exec(11, b"bash")));
        assert_eq!(membership.standing(11), Standing::Outsider);
        assert_eq!(membership.standing(30), Standing::Member);
    }

    #[test]
    fn a_process_that_takes_the_name_later_has_to_be_looked_up() {
        let mut membership = Membership::new(true, 1, only(b"redis"));
        membership.learn(&exec(10, b"bash"));
        assert_eq!(membership.standing(10), Standing::Outsider);
        let name = b"redis".as_slice().into();
        let renamed = Comm { pid: 10, tid: 10, is_exec: false, name, time_ns: 2 };
        membership.learn(&Record::Comm(Box::new(renamed)));
        assert_eq!(membership.standing(10), Standing::Stranger, "its mappings were not told");
        assert!(membership.add(10, b"redis", 1, true));
        assert_eq!(membership.standing(10), Standing::Member);
    }

    #[test]
    fn we_and_the_idle_task_are_no_part_of_the_whole_system() {
        let membership = Membership::new(true, 77, CommFilter::default());
        assert_eq!(membership.standing(77), Standing::Outsider);
        assert_eq!(membership.standing(0), Standing::Outsider);
    }

    #[test]
    fn what_is_known_is_bounded() {
        let mut membership = Membership::new(true, 1, CommFilter::default());
        for pid in 2..=(MAX_PROCESSES as i32 + 100) {
            membership.learn(&exec(pid, b"x"));
        }
        assert!(membership.processes.len() <= MAX_PROCESSES);
    }
}
