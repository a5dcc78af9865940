//! The broker's side: answers a worker's requests where the rules allow them, each connection on a thread of its own.
//!
//! All that a worker says is hostile: who found a way into it says it.

use super::Terms;
use super::opener::{Openers, Unopened};
use super::rule::Rules;
use super::wire::Connection;
use crate::lock::lock;
use dataspace_collector::access::{Answered, CommandOfWorker};
use dataspace_collector::perf_data::write::RecordingName;
use dataspace_proto::broker::{Answer, Request, VERSION};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Connections of one worker: a thread of each session waits at one at a time, and those for files that do not answer.
const MAX_CONNECTIONS: usize = 128;

/// Messages of one worker that are not understood, of which the log tells.
const MAX_TOLD: usize = 3;

/// Time that a worker has between its last word and its end.
const PARTING: Duration = Duration::from_secs(2);

/// Rights of a worker, and all that stands open for it.
#[derive(Debug)]
pub(super) struct Desk {
    rules: Rules,
    worker_pid: i32,
    /// The process that has that number, and no later one that gets it.
    worker: OwnedFd,
    /// Can be read from when the desk is closed.
    closing: OwnedFd,
    n_misunderstood: AtomicUsize,
    /// This process ends as its worker does.
    ends_with_worker: bool,
    openers: Openers,
    command: Option<Mutex<CommandOfWorker>>,
    recording: Option<RecordingName>,
    n_connections: AtomicUsize,
}

impl Desk {
    /// The rights of the process `worker`, whose number is `worker_pid`, by `terms`.
    ///
    /// # Errors
    /// Where no descriptor is left.
    pub(super) fn new(
        terms: Terms,
        worker_pid: i32,
        worker: OwnedFd,
        ends_with_worker: bool,
    ) -> io::Result<Self> {
        Ok(Self {
            rules: Rules::new(worker_pid, terms.policy.viewer.clone()),
            worker_pid,
            worker,
            closing: eventfd(0, EventfdFlags::CLOEXEC)?,
            n_misunderstood: AtomicUsize::new(0),
            ends_with_worker,
            openers: Openers::new(terms.policy),
            command: terms.command.map(|argv| Mutex::new(CommandOfWorker::new(argv))),
            recording: terms.recording,
            n_connections: AtomicUsize::new(0),
        })
    }

    /// Answers nobody from now on.
    pub(super) fn close(&self) {
        let _ = rustix::io::write(&self.closing, &1_u64.to_ne_bytes());
    }

    /// Waits for a message at `connection`; false where it is to be answered no more, for the desk is closed or the
    /// worker has ended. What it was given may be in other hands, and its number another's.
    fn waits_for(&self, connection: &Connection) -> bool {
        let interest = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = [&self.worker, &self.closing].map(|fd| interest(fd.as_fd())).to_vec();
        fds.push(interest(connection.as_fd()));
        loop {
            match poll(&mut fds, None) {
                Err(Errno::INTR) => {}
                ready => return ready.is_ok() && fds[..2].iter().all(|fd| fd.revents().is_empty()),
            }
        }
    }

    /// Answers `request`, if the worker was there all the while.
    fn answer(self: &Arc<Self>, request: Request) -> Result<Answered, Errno> {
        let answered = self.answer_anybody(request)?;
        if ends_within(&self.worker, Duration::ZERO) { Err(Errno::SRCH) } else { Ok(answered) }
    }

    fn answer_anybody(self: &Arc<Self>, request: Request) -> Result<Answered, Errno> {
        let io = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::ACCESS);
        match request {
            Request::Connection { version: VERSION } => {
                let (ours, theirs) = Connection::pair()?;
                ours.expect_hello()?;
                serve_apart(Arc::clone(self), ours).map_err(io)?;
                Ok((Answer::Opened, vec![theirs.into()]))
            }
            Request::Connection { .. } => Err(Errno::PROTO),
            Request::Command { output } => {
                let command = self.command.as_ref().ok_or(Errno::PERM)?;
                let (answer, pipes) = lock(command).hold(output)?;
                Ok((answer, pipes.into()))
            }
            Request::CommandEnd { is_asked } => {
                let command = self.command.as_ref().ok_or(Errno::PERM)?;
                Ok((Answer::Ended(lock(command).end(is_asked)), Vec::new()))
            }
            Request::RecordingEnd { is_whole } => {
                let recording = self.recording.as_ref().ok_or(Errno::PERM)?;
                Ok((recording.end(is_whole), Vec::new()))
            }
            Request::Ending { code } if self.ends_with_worker => {
                let process = self.worker.try_clone().map_err(io)?;
                let parting = std::thread::Builder::new().name("parting".to_owned());
                parting.spawn(move || end_without(&process, code)).map_err(io)?;
                Ok((Answer::Ended(None), Vec::new()))
            }
            request => self.rules.perform(request),
        }
    }
}

/// Ends this process with the worker's `code` where the worker does not: a file that never answers holds it, and it has
/// done all that it had to.
fn end_without(worker: &OwnedFd, code: u8) {
    if !ends_within(worker, PARTING) {
        let _ = pidfd_send_signal(worker.as_fd(), Signal::KILL);
        std::process::exit(i32::from(code));
    }
}

/// Waits for the end of `process` for `time`; tells whether it has come.
fn ends_within(process: &OwnedFd, time: Duration) -> bool {
    let until = Instant::now() + time;
    loop {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut [PollFd::new(process, PollFlags::IN)], left.as_ref()) {
            Err(Errno::INTR) => {}
            ended => return ended.is_ok_and(|n| n != 0),
        }
    }
}

/// A connection's place among those of its worker, until it is dropped.
struct Place(Arc<Desk>);

impl Place {
    /// A place, if there is one.
    fn take(desk: Arc<Desk>) -> Option<Self> {
        let n_before = desk.n_connections.fetch_add(1, Ordering::AcqRel);
        let place = Self(desk);
        (n_before < MAX_CONNECTIONS).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.n_connections.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Serves a connection until it ends, on a thread.
///
/// # Errors
/// Where there is none, or the worker has as many as it may.
pub(super) fn serve_apart(desk: Arc<Desk>, connection: Connection) -> io::Result<()> {
    let place = Place::take(desk).ok_or(Errno::AGAIN)?;
    let thread = std::thread::Builder::new().name("broker".to_owned());
    thread.spawn(move || serve(&place.0, &connection)).map(drop)
}

/// Nonsense ends the connection.
fn serve(desk: &Arc<Desk>, connection: &Connection) {
    while desk.waits_for(connection) {
        let request = match connection.receive_of::<Request>(desk.worker_pid) {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(errno) => {
                if desk.n_misunderstood.fetch_add(1, Ordering::Relaxed) < MAX_TOLD {
                    tracing::warn!(%errno, "the worker's message is not understood");
                }
                return;
            }
        };
        tracing::trace!(?request, "asked");
        let answered = if let Request::Object(place) = &request {
            match desk.openers.open(place, connection) {
                Ok(()) => continue,
                // It may have been handed over, and may yet be, by who has our end too.
                Err(Unopened::Late) => return connection.hang_up(),
                Err(Unopened::Refused(errno)) => Err(errno),
            }
        } else {
            desk.answer(request)
        };
        let sent = match answered {
            Ok((answer, fds)) => connection.hand_over(&answer, &fds),
            Err(errno) => connection.hand_over(&Answer::Failed(errno.raw_os_error()), &[]),
        };
        if sent.is_err() {
            return;
        }
    }
}
