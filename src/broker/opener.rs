//! Processes that open load objects for a broker. One of them may never come back: a request that the kernel has sent to
//! a file system's server cannot be taken back, and holds who made it until the server answers.

use super::wire::Connection;
use crate::file_source::{FilePolicy, open_load_object};
use crate::lock::lock;
use anyhow::{Context as _, bail};
use dataspace_collector::system::procfs::Procfs;
use dataspace_proto::broker::{Answer, FilePlace, FileRoot};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::HashMap;
use std::io::{self, stdin};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time to open a file: less than a worker waits for it, so that none of its threads is held.
const DEADLINE: Duration = Duration::from_secs(4);

/// Time without anything to open after which a process ends: sessions open files as they begin, and seldom later.
const IDLE: Duration = Duration::from_secs(10);

/// Most of them for one worker. Those that a file holds are counted until it lets them go.
const MAX_OPENERS: usize = 32;

/// Those of them that files of one user's processes may hold. No other user's files are not opened for it.
const MAX_HELD: usize = 2;

/// Time that files of one user's processes may be late by together, and what of it is paid off in a second.
const MAX_LATE: Duration = Duration::from_secs(20);
const PAID_OFF: f64 = 0.1;

/// Time to open a file that is not late.
const PROMPT: Duration = Duration::from_millis(100);

/// Reason for which nothing was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unopened {
    /// The kernel or the policy refused it, or too much is late.
    Refused(Errno),
    /// It is late. Whether the worker gets it nobody knows.
    Late,
}

impl From<Errno> for Unopened {
    fn from(errno: Errno) -> Self {
        Self::Refused(errno)
    }
}

impl From<io::Error> for Unopened {
    fn from(error: io::Error) -> Self {
        Self::Refused(Errno::from_io_error(&error).unwrap_or(Errno::ACCESS))
    }
}

/// User whose process names a file; none of a recording's.
type Owner = Option<u32>;

/// The openers of one worker's broker.
#[derive(Debug)]
pub(super) struct Openers {
    policy: FilePolicy,
    idle: Arc<Mutex<Vec<Opener>>>,
    /// As many more of it as there are processes.
    living: Arc<()>,
    late: Arc<Mutex<HashMap<Owner, Lateness>>>,
}

/// All that files of one user's processes are late by.
#[derive(Clone, Copy, Debug)]
struct Lateness {
    time: Duration,
    since: Instant,
    n_held: usize,
}

impl Lateness {
    /// None so far.
    fn none(now: Instant) -> Self {
        Self { time: Duration::ZERO, since: now, n_held: 0 }
    }

    /// Adds `time`, after what was paid off by `now`.
    fn add(&mut self, time: Duration, now: Instant) {
        let paid_off = now.saturating_duration_since(self.since).mul_f64(PAID_OFF);
        (self.time, self.since) = (self.time.saturating_sub(paid_off) + time, now);
    }

    const fn is_too_much(&self) -> bool {
        self.n_held >= MAX_HELD || self.time.as_nanos() >= MAX_LATE.as_nanos()
    }
}

/// One of them, at work or not.
#[derive(Debug)]
struct Opener {
    process: Arc<OwnedFd>,
    connection: Connection,
    /// The user whose file it was asked for last.
    owner: Owner,
    /// The user whose file holds it, once it was given up.
    held_by: Arc<Mutex<Option<Owner>>>,
}

impl Openers {
    /// None yet; files will be opened by `policy`.
    pub(super) fn new(policy: FilePolicy) -> Self {
        Self { policy, idle: Arc::default(), living: Arc::default(), late: Arc::default() }
    }

    /// Has what is at `place` opened, and handed to the worker at the other end of `worker`: closing a file can take as
    /// long as opening it, so that this process never has it.
    ///
    /// # Errors
    /// What the kernel or the policy said; `ETIMEDOUT` where the user's files are late too often.
    pub(super) fn open(&self, place: &FilePlace, worker: &Connection) -> Result<(), Unopened> {
        let owner = owner(place);
        if self.is_too_late(owner) {
            return Err(Unopened::Refused(Errno::TIMEDOUT));
        }
        loop {
            let idle = lock(&self.idle).pop();
            let is_new = idle.is_none();
            let mut opener = idle.map_or_else(|| self.begin(), Ok)?;
            match if is_new { Ok(true) } else { opener.is_back() } {
                Ok(true) => {}
                // It is held by the last file.
                Ok(false) => {
                    self.give_up(&opener, Duration::ZERO);
                    continue;
                }
                Err(_) => continue,
            }
            opener.owner = owner;
            let began = Instant::now();
            match opener.ask(place, worker) {
                // It had nothing to do for long, and has just ended.
                Err(Errno::PIPE | Errno::CONNRESET) if !is_new => {}
                Err(_) => {
                    self.give_up(&opener, began.elapsed());
                    return Err(Unopened::Late);
                }
                Ok(answered) => {
                    let time = began.elapsed();
                    if time > PROMPT {
                        self.count_late(owner, time, 0);
                    }
                    lock(&self.idle).push(opener);
                    return answered.map_err(Into::into);
                }
            }
        }
    }

    fn is_too_late(&self, owner: Owner) -> bool {
        let now = Instant::now();
        let mut late = lock(&self.late);
        late.get_mut(&owner).is_some_and(|late| {
            late.add(Duration::ZERO, now);
            late.is_too_much()
        })
    }

    fn count_late(&self, owner: Owner, time: Duration, n_held: usize) {
        let now = Instant::now();
        let mut late = lock(&self.late);
        let late = late.entry(owner).or_insert_with(|| Lateness::none(now));
        let was_too_much = late.is_too_much();
        late.add(time, now);
        late.n_held += n_held;
        if late.is_too_much() && !was_too_much {
            tracing::warn!(
                uid = owner,
                "files that processes of this user name are late: no more of them are opened until some answer"
            );
        }
    }

    /// Ends an opener that a file has held for `time`, as soon as the kernel lets it end.
    fn give_up(&self, opener: &Opener, time: Duration) {
        *lock(&opener.held_by) = Some(opener.owner);
        self.count_late(opener.owner, time, 1);
        let _ = pidfd_send_signal(opener.process.as_fd(), Signal::KILL);
    }

    fn begin(&self) -> io::Result<Opener> {
        if Arc::strong_count(&self.living) > MAX_OPENERS {
            return Err(Errno::AGAIN.into());
        }
        let (connection, theirs) = Connection::pair()?;
        let mut command = Command::new(Procfs::default().own_program_link());
        // What is held by a file holds no terminal and no pipe of ours with it.
        command.arg("opener").stdin(OwnedFd::from(theirs));
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn()?;
        let process = match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(process) => Arc::new(process),
            Err(errno) => return Err(end(&mut child, errno)),
        };
        let opener = Opener { process, connection, owner: None, held_by: Arc::default() };
        let (idle, living, late) =
            (Arc::clone(&self.idle), Arc::clone(&self.living), Arc::clone(&self.late));
        let (own, held_by) = (Arc::downgrade(&opener.process), Arc::clone(&opener.held_by));
        std::thread::Builder::new().name("opener's end".to_owned()).spawn(move || {
            let _ = child.wait();
            lock(&idle).retain(|opener| !std::ptr::eq(Arc::as_ptr(&opener.process), own.as_ptr()));
            if let Some(owner) = lock(&held_by).take()
                && let Some(late) = lock(&late).get_mut(&owner)
            {
                late.n_held -= 1;
            }
            drop(living);
        })?;
        opener.connection.send(&self.policy, &[])?;
        Ok(opener)
    }
}

/// Ends a child that cannot be used.
fn end(child: &mut Child, errno: Errno) -> io::Error {
    let _ = child.kill();
    let _ = child.wait();
    errno.into()
}

impl Opener {
    /// Has it give what is at `place` to the worker; the inner error is why it did not. Errors are those of asking.
    fn ask(&self, place: &FilePlace, worker: &Connection) -> Result<Result<(), Errno>, Errno> {
        self.connection.send(place, &[worker.as_fd()])?;
        if !self.connection.is_ready_within(DEADLINE)? {
            return Err(Errno::TIMEDOUT);
        }
        match self.connection.receive_alone()?.ok_or(Errno::PIPE)? {
            Answer::Opened => Ok(Ok(())),
            Answer::Failed(errno) => Ok(Err(Errno::from_raw_os_error(errno))),
            _ => Err(Errno::PROTO),
        }
    }

    /// Tells whether it has closed the file that it handed over last. An error: it has ended.
    fn is_back(&self) -> Result<bool, Errno> {
        if !self.connection.is_ready_within(PROMPT)? {
            return Ok(false);
        }
        self.connection.receive_alone::<Answer>()?.map(|_| true).ok_or(Errno::PIPE)
    }
}

/// The user whose process names what is at `place`.
fn owner(place: &FilePlace) -> Owner {
    let task = match *place {
        FilePlace::Mapped { task, .. } | FilePlace::Program { task, .. } => task,
        FilePlace::Below { named_by: Some(task), .. }
        | FilePlace::Below { root: FileRoot::Task(task), .. } => task,
        FilePlace::Below { .. } => return None,
    };
    Procfs::default().status(task).ok()?.users.map(|users| users.real)
}

/// The process: opens what the broker at the other end of its standard input asks for, until that is gone or has not
/// asked for long.
///
/// # Errors
/// Where there is no broker.
pub(crate) fn run() -> anyhow::Result<()> {
    // It was executed as "exe". A thread's name has fifteen bytes.
    let _ = rustix::thread::set_name(c"dataspace-open");
    let broker = Connection::from(stdin().as_fd().try_clone_to_owned()?);
    let Some((policy, _)) = broker.receive::<FilePolicy>().context("standard input")? else {
        bail!("an opener is started by a broker only");
    };
    while broker.is_ready_within(IDLE)? {
        let Some((place, mut beside)) = broker.receive::<FilePlace>()? else { break };
        let worker = Connection::from(beside.pop().context("the worker's end")?);
        let answer = match open_load_object(&place, &policy) {
            Ok(file) => {
                // One that is gone needs none.
                let _ = worker.send(&Answer::Opened, &[file.as_fd()]);
                broker.send(&Answer::Opened, &[])?;
                // It may be held by the file from here on.
                drop(worker);
                drop(file);
                Answer::Opened
            }
            // Whether it is there is not for a user to know who might not look himself.
            Err(_) if policy.viewer.is_some() => Answer::Failed(Errno::ACCESS.raw_os_error()),
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::ACCESS);
                Answer::Failed(errno.raw_os_error())
            }
        };
        if answer != Answer::Opened {
            broker.send(&answer, &[])?;
        }
        // It has closed all that it had.
        broker.send(&Answer::Ended(None), &[])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_late_is_paid_off_in_ten_times_the_time() {
        let began = Instant::now();
        let mut late = Lateness::none(began);
        late.add(MAX_LATE - Duration::from_secs(1), began);
        assert!(!late.is_too_much());
        late.add(Duration::from_secs(2), began);
        assert!(late.is_too_much());
        late.add(Duration::ZERO, began + Duration::from_secs(20));
        assert!(!late.is_too_much());
        late.n_held = MAX_HELD;
        assert!(late.is_too_much());
    }
}
