//! Two processes of one: the broker, which keeps the privileges, and its worker, which does the work.

use crate::sys::signal::Blocked;
use crate::sys::spawn::{self, Fork};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, getrlimit, kill_process,
    setrlimit, waitpid,
};

/// This process, of the two.
#[derive(Debug)]
pub enum Side {
    /// The one that was there before.
    Broker(Worker, Signals),
    /// The new one, which goes on.
    Worker,
}

/// The worker, as its broker knows it.
#[derive(Debug)]
pub struct Worker(Pid);

/// Makes a worker of this process's copy.
///
/// # Errors
/// What the kernel said; `EBUSY` where this process, which has `n_threads`, has more than one.
pub fn split(n_threads: u64) -> Result<Side, Errno> {
    // Before there are two, so that none comes unseen.
    let signals = Signals::block()?;
    match spawn::fork_worker(n_threads) {
        Ok(Fork::Parent(pid)) => Ok(Side::Broker(Worker(pid), signals)),
        Ok(Fork::Child) => signals.0.lift().map(|()| Side::Worker),
        Err(errno) => signals.0.lift().and(Err(errno)),
    }
}

/// Lets this process, and those that it makes, lock as much memory as they may: a ring is locked memory of whoever maps
/// it.
pub fn raise_lock_limit() {
    let limit = getrlimit(Resource::Memlock);
    let no_limit = Rlimit { current: None, maximum: None };
    if setrlimit(Resource::Memlock, no_limit).is_err() {
        let _ = setrlimit(Resource::Memlock, Rlimit { current: limit.maximum, ..limit });
    }
}

/// Signals that end a program; what is sent to the broker is for its worker.
const ENDING: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// Ending signals, which are passed on, and the news of a child's end.
#[derive(Debug)]
pub struct Signals(Blocked);

impl Signals {
    /// Blocks them, for this thread and all that it begins.
    fn block() -> Result<Self, Errno> {
        let mut signals = ENDING.map(Signal::as_raw).to_vec();
        signals.push(Signal::CHILD.as_raw());
        Blocked::new(&signals).map(Self)
    }
}

impl Worker {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.0.as_raw_nonzero().get()
    }

    /// Waits for its end, and passes signals on to it until then: those that a process sent. The terminal sends its
    /// own to both.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn wait(&self, signals: &Signals) -> Result<WaitStatus, Errno> {
        loop {
            if let Some((_, status)) =
                waitpid(Some(self.0), WaitOptions::NOHANG | WaitOptions::UNTRACED)?
            {
                if !status.stopped() {
                    return Ok(status);
                }
                // It gave the terminal back to the shell, which waits for us; when that lets us go on, it goes on.
                let _ = kill_process(getpid(), Signal::STOP);
                let _ = kill_process(self.0, Signal::CONT);
                continue;
            }
            let arrival = match signals.0.wait() {
                Err(Errno::INTR) => continue,
                arrival => arrival?,
            };
            let ending = ENDING.into_iter().find(|signal| signal.as_raw() == arrival.signal);
            if let Some(signal) = ending.filter(|_| arrival.is_of_process) {
                // It may just have ended.
                let _ = kill_process(self.0, signal);
            }
        }
    }
}
