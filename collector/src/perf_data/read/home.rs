//! Mount namespace of a recording's recorder, and the processes that are in another one.

use crate::system::procfs::Procfs;
use dataspace_proto::record::{Fork, Namespace};
use std::collections::HashSet;

/// The first mount namespace of a machine: the fixed number that it has since Linux 6.18
/// (`MNT_NS_INIT_INO`), and the first ones that were given out before.
const INITIAL: [u64; 3] = [0xefff_fff8, 0xf000_0000, 0xf000_0001];

/// The first process of a machine, which a recording of all processes tells of.
const INIT_PID: i32 = 1;

/// The namespace as far as it is known.
#[derive(Debug)]
pub(super) struct Home {
    of_init: Option<u64>,
    /// This program's own, if the recording is of this machine and day: numbers of other machines
    /// may be the same by chance, but then the files are compared by inode or build-id.
    own: Option<u64>,
    /// Processes that are somewhere else.
    elsewhere: HashSet<i32>,
    /// There were more of them than are remembered: nobody is taken to be at home any more.
    is_full: bool,
}

/// More processes than a machine has at one time by default (`kernel.pid_max` of small ones).
const MAX_ELSEWHERE: usize = 1 << 15;

impl Default for Home {
    fn default() -> Self {
        let own = Procfs::default().mount_namespace("self");
        Self { of_init: None, own, elsewhere: HashSet::new(), is_full: false }
    }
}

impl Home {
    /// A process is in this namespace; from here on it is 0 if it is the recorder's.
    pub(super) fn seen(&mut self, namespace: &mut Namespace) {
        if namespace.pid == INIT_PID {
            self.of_init = Some(namespace.mount);
        }
        let is_home = match self.of_init {
            Some(home) => namespace.mount == home,
            None => INITIAL.contains(&namespace.mount) || Some(namespace.mount) == self.own,
        };
        if is_home {
            namespace.mount = 0;
        }
        self.put(namespace.pid, is_home);
    }

    /// A process is where its parent is.
    pub(super) fn born(&mut self, fork: &Fork) {
        if fork.pid != fork.parent_pid {
            self.put(fork.pid, !self.is_elsewhere(fork.parent_pid));
        }
    }

    pub(super) fn is_elsewhere(&self, pid: i32) -> bool {
        self.is_full || self.elsewhere.contains(&pid)
    }

    fn put(&mut self, pid: i32, is_home: bool) {
        if is_home {
            self.elsewhere.remove(&pid);
        } else {
            self.is_full |= self.elsewhere.len() >= MAX_ELSEWHERE;
            if !self.is_full {
                self.elsewhere.insert(pid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_cannot_be_remembered_is_not_taken_to_be_at_home() {
        let mut home = Home { own: None, ..Home::default() };
        for pid in 2..2 + MAX_ELSEWHERE as i32 {
            home.seen(&mut Namespace { time_ns: 1, pid, mount: 0xf000_0999 });
        }
        assert!(home.is_elsewhere(3) && !home.is_elsewhere(1));
        for pid in [40_000, 40_001] {
            home.seen(&mut Namespace { time_ns: 3, pid, mount: 0xf000_0999 });
        }
        assert!(home.is_elsewhere(40_001) && home.is_elsewhere(1));
    }

    #[test]
    fn the_first_process_is_at_home_and_else_who_has_the_first_number() {
        let own = Some(0xf000_0123);
        let mut home = Home { own, ..Home::default() };
        let mut mount = |pid, mount| {
            let mut namespace = Namespace { time_ns: 1, pid, mount };
            home.seen(&mut namespace);
            namespace.mount
        };
        assert_eq!(mount(7, 0xf000_0000), 0);
        assert_eq!(mount(7, 0xefff_fff8), 0);
        assert_eq!(mount(7, 0xf000_0123), 0, "ours");
        assert_eq!(mount(7, 0xf000_0999), 0xf000_0999);
        assert_eq!(mount(1, 0xf000_0999), 0);
        assert_eq!(mount(8, 0xf000_0999), 0);
        assert_eq!(mount(8, 0xf000_0000), 0xf000_0000, "the machine is told, and it is not that");
    }
}
