//! Marks on processes, by which to see whether one got other privileges.

use crate::access::{self, EventPlace};
use crate::attach::rings::Rings;
use crate::error::Error;
use crate::event::attr;
use crate::sys::open;
use crate::sys::pidfd;
use crate::system::machine::Machine;
use crate::system::procfs::Procfs;
use rustix::fd::{AsFd as _, OwnedFd};
use std::path::Path;

/// Events that count nothing, and that the kernel takes away when a process gets other privileges by exec.
///
/// That a process is a user's before and after something is opened on it does not say that it was so all the time: one
/// that executes a set-uid program which gives its privileges up again, and another, is his both times.
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
        // Of one that writes to no ring the kernel does not tell (`perf_poll()` in Linux
        // `kernel/events/core.c`).
        let output = self.0.outputs.first()?;
        let place = EventPlace::Task { tid: pid, cpu: output.cpu };
        let mark = access::event(&attr::mark(), place).ok()?;
        open::set_output(mark.as_fd(), output.side_band.as_fd()).ok()?;
        Some(mark)
    }

    /// Tells whether the process of `mark` is still there, and as it was.
    #[must_use]
    pub fn is_whole(mark: &OwnedFd) -> bool {
        !pidfd::is_hung_up(mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::spawn;

    #[test]
    fn a_process_whose_mark_was_taken_away_is_not_as_it_was() {
        let child = spawn::idle().unwrap();
        let marks = match Marks::new() {
            Ok(marks) => marks,
            Err(error) => return eprintln!("not run: {error}"),
        };
        let Some(mark) = marks.mark(child.pid()) else {
            return eprintln!("not run: no event on a child");
        };
        assert!(Marks::is_whole(&mark));
        // Its end takes the events of a task away as a set-uid program does.
        drop(child);
        assert!(!Marks::is_whole(&mark));
    }
}
