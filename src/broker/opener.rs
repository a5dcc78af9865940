//! Processes that open load objects for a broker. One of them may never come back: a request that the kernel has sent to
//! a file system's server cannot be taken back, and holds who made it until the server answers.

use super::wire::Connection;
use crate::file_source::{FilePolicy, open_load_object};
use crate::lock::lock;
use anyhow::{Context as _, bail};
use dataspace_collector::system::procfs::Procfs;
use dataspace_proto::broker::{Answer, FilePlace};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{self, stdin};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Time to open a file: less than a worker waits for it, so that none of its threads is held.
const DEADLINE: Duration = Duration::from_secs(4);

/// Time without anything to open after which a process ends: sessions open files as they begin, and seldom later.
const IDLE: Duration = Duration::from_secs(10);

/// Most of them for one worker. Those that wait for a file that does not answer are counted until it does.
const MAX_OPENERS: usize = 8;

/// The openers of one worker's broker.
#[derive(Debug)]
pub(super) struct Openers {
    policy: FilePolicy,
    idle: Arc<Mutex<Vec<Opener>>>,
    /// As many more of it as there are processes.
    living: Arc<()>,
}

/// One of them, at work or not.
#[derive(Debug)]
struct Opener {
    process: Arc<OwnedFd>,
    connection: Connection,
}

impl Openers {
    /// None yet; files will be opened by `policy`.
    pub(super) fn new(policy: FilePolicy) -> Self {
        Self { policy, idle: Arc::default(), living: Arc::default() }
    }

    /// Has what is at `place` opened.
    ///
    /// # Errors
    /// What the kernel or the policy said; `ETIMEDOUT` where the file does not answer, `EAGAIN` where too many do not.
    pub(super) fn open(&self, place: &FilePlace) -> io::Result<OwnedFd> {
        loop {
            let idle = lock(&self.idle).pop();
            let is_new = idle.is_none();
            let opener = idle.map_or_else(|| self.begin(), Ok)?;
            match opener.ask(place) {
                // It had nothing to do for long, and has just ended.
                Err(Errno::PIPE | Errno::CONNRESET) if !is_new => {}
                Err(errno) => {
                    opener.end();
                    return Err(errno.into());
                }
                Ok(answered) => {
                    lock(&self.idle).push(opener);
                    return answered.map_err(Into::into);
                }
            }
        }
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
        let (idle, living, own) =
            (Arc::clone(&self.idle), Arc::clone(&self.living), Arc::downgrade(&process));
        std::thread::Builder::new().name("opener's end".to_owned()).spawn(move || {
            let _ = child.wait();
            lock(&idle).retain(|opener| !std::ptr::eq(Arc::as_ptr(&opener.process), own.as_ptr()));
            drop(living);
        })?;
        connection.send(&self.policy, &[])?;
        Ok(Opener { process, connection })
    }
}

/// Ends a child that cannot be used.
fn end(child: &mut Child, errno: Errno) -> io::Error {
    let _ = child.kill();
    let _ = child.wait();
    errno.into()
}

impl Opener {
    /// Its answer: what it opened, or why it did not. Errors are those of asking.
    fn ask(&self, place: &FilePlace) -> Result<Result<OwnedFd, Errno>, Errno> {
        self.connection.send(place, &[])?;
        if !self.connection.is_ready_within(DEADLINE)? {
            return Err(Errno::TIMEDOUT);
        }
        match self.connection.receive()?.ok_or(Errno::PIPE)? {
            (Answer::Opened, mut files) => Ok(files.pop().ok_or(Errno::PROTO)),
            (Answer::Failed(errno), _) => Ok(Err(Errno::from_raw_os_error(errno))),
            _ => Err(Errno::PROTO),
        }
    }

    /// Ends it, as soon as the kernel lets it.
    fn end(&self) {
        let _ = pidfd_send_signal(self.process.as_fd(), Signal::KILL);
    }
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
        let Some((place, _)) = broker.receive::<FilePlace>()? else { break };
        let sent = match open_load_object(&place, &policy) {
            Ok(file) => broker.hand_over(&Answer::Opened, &[file.into()]),
            // Whether it is there is not for a user to know who might not look himself.
            Err(_) if policy.viewer.is_some() => {
                broker.send(&Answer::Failed(Errno::ACCESS.raw_os_error()), &[])
            }
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::ACCESS);
                broker.send(&Answer::Failed(errno.raw_os_error()), &[])
            }
        };
        sent?;
    }
    Ok(())
}
