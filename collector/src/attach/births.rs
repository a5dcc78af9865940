//! Threads that turn up while a process is being attached to, and whether they are counted already.
//!
//! Threads are found by reading `/proc/PID/task` again until nothing new appears. A thread that is
//! new there was born before its parent's events were open, and is not counted, or after, and has
//! inherited them; opening events on it would then count it twice. The kernel cannot be asked
//! which. But it tells of births (FORK) from the moment on at which the parent's own side-band
//! event is open, and that is opened after the events that are sampled.

use dataspace_proto::record::Fork;
use std::collections::{HashMap, HashSet};

/// A FORK is written at the end of `copy_process()`, the events are inherited in the middle of it.
/// A birth that is told of later than this after its parent was opened did inherit, unless
/// `copy_process()` itself was held up so long; then the thread would not be seen.
const BIRTH_NS: u64 = 10_000_000;

/// Known threads of the targets.
#[derive(Debug, Default)]
pub(crate) struct Births {
    opened_at: HashMap<i32, u64>,
    heirs: HashSet<i32>,
    forks: Vec<Fork>,
}

impl Births {
    /// Events were opened on thread `tid`, and all were open at `time_ns`.
    pub(crate) fn opened(&mut self, tid: i32, time_ns: u64) {
        self.opened_at.insert(tid, time_ns);
    }

    /// The kernel told of a birth.
    pub(crate) fn born(&mut self, fork: Fork) {
        self.forks.push(fork);
    }

    /// Makes up its mind about all births told of since the last time.
    pub(crate) fn settle(&mut self) {
        // Rings are in order each, not together; an heir's heirs come after it in time.
        self.forks.sort_unstable_by_key(|fork| fork.time_ns);
        for fork in self.forks.drain(..) {
            let opened_at = self.opened_at.get(&fork.parent_tid);
            let is_sure = opened_at.is_some_and(|opened_at| opened_at + BIRTH_NS < fork.time_ns);
            if is_sure || self.heirs.contains(&fork.parent_tid) {
                self.heirs.insert(fork.tid);
            }
        }
    }

    /// Tells whether the events of `tid` are open, by us or by inheritance.
    pub(crate) fn is_counted(&self, tid: i32) -> bool {
        self.opened_at.contains_key(&tid) || self.heirs.contains(&tid)
    }

    /// Number of threads that we opened events on.
    pub(crate) fn n_opened(&self) -> usize {
        self.opened_at.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fork(time_ns: u64, parent_tid: i32, tid: i32) -> Fork {
        Fork { time_ns, pid: 1, tid, parent_pid: 1, parent_tid }
    }

    #[test]
    fn only_births_well_after_the_parent_was_opened_are_sure_to_have_inherited() {
        let mut births = Births::default();
        births.opened(1, 1_000);
        births.born(fork(3 * BIRTH_NS, 3, 4));
        births.born(fork(2 * BIRTH_NS, 1, 3));
        births.born(fork(1_500, 1, 2));
        births.born(fork(4 * BIRTH_NS, 9, 5));
        births.settle();
        let counted: Vec<bool> = (1..=5).map(|tid| births.is_counted(tid)).collect();
        assert_eq!(counted, [true, false, true, true, false]);
        assert_eq!(births.n_opened(), 1);
    }
}
