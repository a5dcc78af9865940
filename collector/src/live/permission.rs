//! Processes that a session may have events on, where that is not decided by our own privileges.

use crate::access::{self, EventPlace};
use crate::error::Error;
use crate::event::attr;
use crate::live::attach::{OpenEvent, OpenSideBand};
use crate::live::rings::Rings;
use crate::sys::open;
use crate::sys::pidfd;
use crate::system::machine::Machine;
use crate::system::procfs::Procfs;
use rustix::fd::{AsFd as _, OwnedFd};
use std::collections::HashMap;
use std::fmt::Debug;
use std::path::Path;

/// Descriptors of events that such a session may have open: its target makes threads, and the
/// process has no more than so many for all its sessions.
const MAX_EVENTS: usize = 4_096;

/// For whom a session is, if that is somebody with fewer privileges than ours.
///
/// Events are on the target's own threads then, however many it has. There the kernel takes them
/// away when a task gets other privileges by exec; on whole CPUs such a task would stay part of the
/// target. They sample user code only.
pub trait Permission: Debug + Send + Sync {
    /// Their user.
    fn uid(&self) -> u32;

    /// Tells whether events on process `pid`, as it is now, are for them to have.
    fn may_see(&self, pid: i32) -> bool;
}

/// Number of events that a session for `permission` may open; `None` where nothing bounds it.
pub(super) fn max_events(permission: Option<&dyn Permission>) -> Option<usize> {
    permission.map(|_| MAX_EVENTS)
}

/// Marks on processes, by which to see that none of them had other privileges since: events that count nothing, and that
/// the kernel takes away when a process gets other privileges by exec.
#[derive(Debug)]
pub struct Marks(Rings);

impl Marks {
    /// A place for the marks' records, of which there are none.
    ///
    /// # Errors
    /// Where there is no event or memory for it.
    pub fn new() -> Result<Self, Error> {
        let cpus = Machine::read(Path::new("/")).online_cpus;
        let first = cpus.get(..1).unwrap_or(&[0]);
        Rings::new(first, Some(1), &Procfs::default()).map(Self)
    }

    /// A mark on process `pid`; `None` where there can be none.
    #[must_use]
    pub fn mark(&self, pid: i32) -> Option<OwnedFd> {
        mark(&self.0, pid)
    }

    /// Tells whether the process of `mark` is still there, and as it was.
    #[must_use]
    pub fn is_whole(mark: &OwnedFd) -> bool {
        !pidfd::is_hung_up(mark)
    }
}

fn mark(rings: &Rings, pid: i32) -> Option<OwnedFd> {
    // Of one that writes to no ring the kernel does not tell (`perf_poll()` in Linux
    // `kernel/events/core.c`).
    let output = rings.outputs.first()?;
    let place = EventPlace::Task { tid: pid, cpu: output.cpu };
    let mark = access::event(&attr::mark(), place, None).ok()?;
    open::set_output(mark.as_fd(), output.side_band.as_fd()).ok()?;
    Some(mark)
}

/// Processes that were to be seen before events are opened on them.
///
/// That they are so after it too does not say that they were all the time: one that executes a
/// set-uid program which gives its privileges up again, and another, is the user's before and after,
/// and events opened in between are there to stay. So each has an event of ours from before: the
/// kernel takes that away with such an exec.
#[derive(Debug)]
pub(super) struct Seen {
    marks: HashMap<i32, OwnedFd>,
}

impl Seen {
    /// Those of `pids` that may be seen.
    pub(super) fn of(
        permission: &dyn Permission,
        pids: impl IntoIterator<Item = i32>,
        rings: &Rings,
    ) -> Self {
        let mark = |pid: i32| {
            let mark = mark(rings, pid)?;
            permission.may_see(pid).then_some((pid, mark))
        };
        Self { marks: pids.into_iter().filter_map(mark).collect() }
    }

    /// The processes.
    pub(super) fn pids(&self) -> Vec<i32> {
        self.marks.keys().copied().collect()
    }

    /// Tells whether process `pid` is to be seen now, and was all the time.
    fn is_still(&self, permission: &dyn Permission, pid: i32) -> bool {
        let mark = self.marks.get(&pid);
        // The question first: an exec after it takes the events away itself.
        permission.may_see(pid) && mark.is_some_and(Marks::is_whole)
    }

    /// Closes the events on processes that are not to be seen, and what tells of their mappings and
    /// names. What they sampled is as if it had never been.
    pub(super) fn close_others(
        &self,
        permission: &dyn Permission,
        events: &mut [OpenEvent],
        side_band: &mut Vec<OpenSideBand>,
    ) {
        let mut answers = HashMap::new();
        let mut is_seen =
            |pid: i32| *answers.entry(pid).or_insert_with(|| self.is_still(permission, pid));
        for open in events {
            if !is_seen(open.pid) {
                (open.fd, open.leader) = (None, None);
            }
        }
        side_band.retain(|open| is_seen(open.pid));
    }

    /// Tells whether all of `pids` are to be seen now, and were all the time.
    ///
    /// # Errors
    /// [`Error::ForeignProcess`] for the first that is not.
    pub(super) fn check(
        &self,
        permission: &dyn Permission,
        pids: impl IntoIterator<Item = i32>,
    ) -> Result<(), Error> {
        match pids.into_iter().find(|&pid| !self.is_still(permission, pid)) {
            None => Ok(()),
            Some(pid) => Err(Error::ForeignProcess {
                pid,
                why: "is not, or was not all the time, one of this user's own".to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::spawn;
    use crate::system::procfs::Procfs;

    #[derive(Debug)]
    struct Everybody;

    impl Permission for Everybody {
        fn uid(&self) -> u32 {
            0
        }

        fn may_see(&self, _: i32) -> bool {
            true
        }
    }

    #[test]
    fn a_process_whose_mark_was_taken_away_was_not_seen_all_the_time() {
        let child = spawn::idle().unwrap();
        let pid = child.pid();
        let procfs = Procfs::default();
        let rings = match Rings::new(&[0], Some(1), &procfs) {
            Ok(rings) => rings,
            Err(error) => return eprintln!("not run: {error}"),
        };
        let seen = Seen::of(&Everybody, [pid], &rings);
        assert_eq!(seen.pids(), [pid]);
        assert!(seen.is_still(&Everybody, pid));
        assert!(seen.check(&Everybody, [pid]).is_ok());
        assert!(seen.check(&Everybody, [pid + 1]).is_err(), "nothing was known of it before");
        let fd = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        let mut side_band = vec![OpenSideBand { fd, pid, cpu: 0 }];
        seen.close_others(&Everybody, &mut [], &mut side_band);
        assert_eq!(side_band.len(), 1);
        // Its end takes the events of a task away as a set-uid program does.
        drop(child);
        assert!(seen.check(&Everybody, [pid]).is_err());
        seen.close_others(&Everybody, &mut [], &mut side_band);
        assert!(side_band.is_empty(), "nor is it told of its mappings");
    }
}
