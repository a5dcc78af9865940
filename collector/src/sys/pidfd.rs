//! Process file descriptors: the end of a task, told without a race on its number.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// `PIDFD_THREAD` (Linux 6.9): the descriptor names one thread, not its process.
const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL as u32);

/// A descriptor of process `pid`.
pub(crate) fn open_process(pid: i32) -> Result<OwnedFd, Errno> {
    pidfd_open(Pid::from_raw(pid).ok_or(Errno::SRCH)?, PidfdFlags::empty())
}

/// A descriptor of thread `tid`; of its process `pid` where the kernel knows none of threads.
pub(crate) fn open_thread(tid: i32, pid: i32) -> Result<OwnedFd, Errno> {
    match pidfd_open(Pid::from_raw(tid).ok_or(Errno::SRCH)?, PIDFD_THREAD) {
        Err(Errno::INVAL) => open_process(pid),
        other => other,
    }
}

/// Tells whether the task of `pidfd` has ended (a zombie has).
#[must_use]
pub fn has_ended(pidfd: impl AsFd) -> bool {
    is_ready(pidfd, PollFlags::IN)
}

/// Tells whether the event of `fd` counts for no task any more: its own has left it, and so has every
/// one that inherited it.
pub(crate) fn is_hung_up(fd: impl AsFd) -> bool {
    is_ready(fd, PollFlags::HUP)
}

fn is_ready(fd: impl AsFd, flag: PollFlags) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().intersects(flag)
}
