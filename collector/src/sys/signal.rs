//! Signals that are waited for, one after the other, in place of handlers.

use super::check;
use rustix::io::Errno;
use std::mem::{MaybeUninit, zeroed};

/// A signal that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) signal: i32,
    /// A process sent it; else the kernel did, as the terminal's for Ctrl-C, which goes to all in the foreground.
    pub(crate) is_of_process: bool,
}

/// Signals that this thread, and threads that it begins, get only by [`Blocked::wait`].
pub(crate) struct Blocked(libc::sigset_t);

impl std::fmt::Debug for Blocked {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Blocked")
    }
}

impl Blocked {
    /// Blocks `signals`.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn new(signals: &[i32]) -> Result<Self, Errno> {
        // SAFETY: a sigset_t is made of integers; sigemptyset sets it anew.
        let mut set = unsafe { zeroed::<libc::sigset_t>() };
        // SAFETY: the set lives through the calls, which write to it only.
        unsafe {
            libc::sigemptyset(&raw mut set);
            for &signal in signals {
                check(libc::sigaddset(&raw mut set, signal))?;
            }
        }
        let blocked = Self(set);
        blocked.mask(libc::SIG_BLOCK)?;
        Ok(blocked)
    }

    /// Lets them come as before.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn lift(&self) -> Result<(), Errno> {
        self.mask(libc::SIG_UNBLOCK)
    }

    fn mask(&self, how: libc::c_int) -> Result<(), Errno> {
        // SAFETY: the set is read; no old one is asked for.
        let error = unsafe { libc::pthread_sigmask(how, &raw const self.0, std::ptr::null_mut()) };
        if error == 0 { Ok(()) } else { Err(Errno::from_raw_os_error(error)) }
    }

    /// Waits for one of them.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn wait(&self) -> Result<Arrival, Errno> {
        let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
        // SAFETY: the set is read, and the kernel fills `info` where it gives a signal.
        let signal = unsafe { libc::sigwaitinfo(&raw const self.0, info.as_mut_ptr()) };
        check(signal)?;
        // SAFETY: it has given one.
        let info = unsafe { info.assume_init() };
        // SI_USER, SI_QUEUE and SI_TKILL are not positive, the kernel's own are (sigaction(2)).
        Ok(Arrival { signal, is_of_process: info.si_code <= 0 })
    }
}
