//! The broker's side: answers a worker's requests where the rules allow them, each connection on a thread of its own.
//!
//! All that a worker says is hostile: who found a way into it says it.

use super::Terms;
use super::rule::Rules;
use super::wire::Connection;
use crate::file_source::{self, FilePolicy};
use crate::lock::lock;
use dataspace_collector::access::{Answered, CommandOfWorker};
use dataspace_collector::perf_data::write::RecordingName;
use dataspace_proto::broker::{Answer, FilePlace, Request, VERSION};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Connections of one worker: a thread of each session waits at one at a time, and those for files that do not answer.
const MAX_CONNECTIONS: usize = 128;

/// The beginning of every ELF file (ELF specification, `e_ident`).
const ELF: [u8; 4] = *b"\x7fELF";

/// What a worker may have.
#[derive(Debug)]
pub(super) struct Desk {
    rules: Rules,
    policy: FilePolicy,
    command: Option<Mutex<CommandOfWorker>>,
    recording: Option<RecordingName>,
    n_connections: AtomicUsize,
}

impl Desk {
    /// What `worker_pid` may have by `terms`.
    pub(super) fn new(terms: Terms, worker_pid: i32) -> Self {
        Self {
            rules: Rules::new(worker_pid, terms.policy.reader.clone()),
            policy: terms.policy,
            command: terms.command.map(|argv| Mutex::new(CommandOfWorker::new(argv))),
            recording: terms.recording,
            n_connections: AtomicUsize::new(0),
        }
    }

    fn answer(self: &Arc<Self>, request: Request, beside: &[OwnedFd]) -> Result<Answered, Errno> {
        let io = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::ACCESS);
        match request {
            Request::Connection { version: VERSION } => {
                let (ours, theirs) = Connection::pair()?;
                serve_apart(Arc::clone(self), ours).map_err(io)?;
                Ok((Answer::Opened, vec![theirs.into()]))
            }
            Request::Connection { .. } => Err(Errno::PROTO),
            Request::Object(place) => {
                let file = self.object(&place).map_err(io)?;
                Ok((Answer::Opened, vec![file]))
            }
            Request::Permission { pid } => {
                Ok((Answer::Permission(self.rules.may_see(pid)), Vec::new()))
            }
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
            request => {
                let beside: Vec<_> = beside.iter().map(AsFd::as_fd).collect();
                self.rules.perform(request, &beside)
            }
        }
    }

    /// Opens a load object, or a file that belongs to one: ELF files, and those in which runtimes name code.
    fn object(&self, place: &FilePlace) -> io::Result<OwnedFd> {
        let file = file_source::open_here(place, &self.policy)?;
        if !matches!(place, FilePlace::Below { has_names: true, .. }) {
            let mut magic = [0; ELF.len()];
            file.read_exact_at(&mut magic, 0)?;
            if magic != ELF {
                return Err(Errno::NOEXEC.into());
            }
        }
        Ok(file.into())
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

/// What makes no sense ends the connection.
fn serve(desk: &Arc<Desk>, connection: &Connection) {
    loop {
        let (request, beside) = match connection.receive::<Request>() {
            Ok(Some(message)) => message,
            Ok(None) => return,
            Err(errno) => return tracing::warn!(%errno, "the worker's message is not understood"),
        };
        tracing::trace!(?request, "asked");
        let sent = match desk.answer(request, &beside) {
            Ok((answer, fds)) => connection.hand_over(&answer, &fds),
            Err(errno) => connection.hand_over(&Answer::Failed(errno.raw_os_error()), &[]),
        };
        if sent.is_err() {
            return;
        }
    }
}
