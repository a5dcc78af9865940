//! A command that waits until its events are open: our own child, or our broker's, who alone can start one.

use super::BROKER;
use crate::sys::spawn::{self, Child, HeldChild};
use dataspace_proto::broker::{Answer, CommandOutput, Request};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use std::ffi::OsString;

/// Forks a command that waits. A broker knows itself what the user typed: he is not told `argv`.
pub(crate) fn hold(argv: &[OsString], output: CommandOutput) -> Result<HeldChild, Errno> {
    let Some(broker) = BROKER.get() else { return spawn::hold(argv, output) };
    let (answer, mut pipes) = broker.ask(&Request::Command { output })?;
    match (answer, pipes.pop(), pipes.pop()) {
        (Answer::Held(pid), Some(exec_errno), Some(release)) => {
            Ok(HeldChild::of_another(pid, release, exec_errno))
        }
        _ => Err(Errno::PROTO),
    }
}

/// A command that was released.
#[derive(Debug)]
pub(crate) enum Command {
    Own(Child),
    OfBroker,
}

impl Command {
    /// Lets `held` execute its command, and waits until it has.
    ///
    /// # Errors
    /// What `execvp` said; the child is gone then.
    pub(crate) fn release(held: HeldChild) -> Result<Self, Errno> {
        Ok(held.release()?.map_or(Self::OfBroker, Self::Own))
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        match self {
            Self::Own(child) => child.terminate(),
            Self::OfBroker => drop(end_by_broker(true)),
        }
    }

    /// Its status as `wait(2)` gives it, if it has ended.
    pub(crate) fn try_reap(&self) -> Option<i32> {
        match self {
            Self::Own(child) => Some(child.try_reap()?.as_raw()),
            Self::OfBroker => end_by_broker(false),
        }
    }
}

fn end_by_broker(is_asked: bool) -> Option<i32> {
    match BROKER.get()?.ask(&Request::CommandEnd { is_asked }).ok()?.0 {
        Answer::Ended(status) => status,
        _ => None,
    }
}

/// The one command that a broker starts for its worker.
#[derive(Debug)]
pub struct CommandOfWorker {
    argv: Vec<OsString>,
    held: Option<HeldChild>,
    was_started: bool,
}

impl CommandOfWorker {
    /// The command that the user typed; it is not started yet.
    #[must_use]
    pub const fn new(argv: Vec<OsString>) -> Self {
        Self { argv, held: None, was_started: false }
    }

    /// Starts it, once: the answer, and the pipes beside it.
    ///
    /// # Errors
    /// What the kernel said; `EBUSY` where it was started before.
    pub fn hold(&mut self, output: CommandOutput) -> Result<(Answer, [OwnedFd; 2]), Errno> {
        if self.was_started {
            return Err(Errno::BUSY);
        }
        let held = spawn::hold(&self.argv, output)?;
        self.was_started = true;
        let [release, exec_errno] = held.pipes().ok_or(Errno::PIPE)?;
        let copy = |fd: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(fd.as_fd(), 0);
        let pipes = [copy(release)?, copy(exec_errno)?];
        let pid = held.pid();
        self.held = Some(held);
        Ok((Answer::Held(pid), pipes))
    }

    /// Its status, if it has ended; asks it to first where that `is_asked` for.
    pub fn end(&mut self, is_asked: bool) -> Option<i32> {
        let child = self.held.as_ref()?.child()?;
        if is_asked {
            child.terminate();
        }
        let status = child.try_reap()?.as_raw();
        // Its number may be another's from now on.
        self.held = None;
        Some(status)
    }
}

impl Drop for CommandOfWorker {
    /// Ends it where its worker did not: nobody is left who would.
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        if let Some(child) = held.child() {
            child.terminate();
        }
        // It ends in its own time.
        let reaper = std::thread::Builder::new().name("reaper".to_owned());
        let _ = reaper.spawn(move || drop(held));
    }
}
