//! Two processes of one command: the broker keeps the privileges and opens what the rules allow; its worker, which has
//! none, reads all that a target controls.

mod client;
pub(crate) mod opener;
mod rule;
mod sandbox;
mod server;
pub(crate) mod wire;

use crate::config::{LiveOptions, Sandbox};
use crate::exit::{FAILED, Failure, INTERRUPTED, Kind, Told};
use crate::file_source::FilePolicy;
use crate::ownership;
use crate::session;
use anyhow::Context as _;
use client::Client;
use dataspace_collector::access;
use dataspace_collector::access::worker::{self, Side, Worker};
use dataspace_collector::perf_data::write::RecordingName;
use dataspace_collector::system::memory;
use dataspace_collector::system::procfs::Procfs;
use dataspace_collector::target::TargetSpec;
use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Pid, PidfdFlags, Signal, WaitStatus, getegid, geteuid, pidfd_open};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use server::Desk;
use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _, stderr, stdin, stdout};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use wire::Connection;

/// All that a broker does for its worker.
#[derive(Debug)]
pub(crate) struct Terms {
    /// The files that it opens.
    pub(crate) policy: FilePolicy,
    /// The command that it starts, if any.
    pub(crate) command: Option<Vec<OsString>>,
    /// The recording that the worker writes, if any.
    pub(crate) recording: Option<RecordingName>,
}

impl Terms {
    /// All that a session with `options` takes.
    pub(crate) fn of_session(options: &LiveOptions) -> Self {
        let command = match &options.target {
            TargetSpec::Command(argv) => Some(argv.clone()),
            _ => None,
        };
        Self { command, ..Self::of_files(session::files_of(options)) }
    }

    /// Files by `policy`, and nothing more.
    pub(crate) const fn of_files(policy: FilePolicy) -> Self {
        Self { policy, command: None, recording: None }
    }
}

/// Does `work` in a worker without privileges, for which this process opens what `terms` allow; in this process where
/// `sandbox` is off. This process ends as its worker does.
///
/// # Errors
/// Those of `work`, which the worker has told; where there is no second process, or it cannot give its privileges up.
pub(crate) fn split(
    sandbox: Sandbox,
    terms: Terms,
    work: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if sandbox == Sandbox::Off {
        return work();
    }
    let _ = ownership::user();
    let n_threads = Procfs::default().status("self").ok().and_then(|own| own.n_threads);
    let (ours, theirs) = Connection::pair().context("a socket to the worker")?;
    // Before there is anybody to send something.
    ours.expect_hello()?;
    // Rings are memory that the worker locks.
    worker::raise_lock_limit();
    let terminal = stdin().is_terminal().then(|| tcgetattr(stdin()).ok()).flatten();
    match worker::split(n_threads.unwrap_or(0)).context("a process for the worker")? {
        Side::Broker(worker, signals) => {
            drop(theirs);
            // It is the worker's to end what it was given: a recording that is dropped is removed.
            std::mem::forget(work);
            let process = Pid::from_raw(worker.pid()).context("the worker's number")?;
            let process = pidfd_open(process, PidfdFlags::empty())?;
            server::serve_apart(Arc::new(Desk::new(terms, worker.pid(), process, true)?), ours)?;
            let status = worker.wait(&signals).context("waiting for the worker")?;
            match end_as(status, &worker, terminal) {
                0 => Ok(()),
                code => Err(Told(code).into()),
            }
        }
        Side::Worker => {
            drop(ours);
            enter(theirs, true)?;
            work()
        }
    }
}

/// A worker that is served until this is dropped.
#[derive(Debug)]
pub(crate) struct Service(Arc<Desk>);

impl Drop for Service {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Answers what the process `worker`, whose number is `pid`, asks, as `terms` allow; gives its end of a connection.
///
/// # Errors
/// Where there is no socket or thread.
pub(crate) fn serve_worker(
    terms: Terms,
    pid: i32,
    worker: OwnedFd,
) -> std::io::Result<(Service, OwnedFd)> {
    let _ = ownership::user();
    let (ours, theirs) = Connection::pair()?;
    ours.expect_hello()?;
    let desk = Arc::new(Desk::new(terms, pid, worker, false)?);
    server::serve_apart(Arc::clone(&desk), ours)?;
    Ok((Service(desk), theirs.into()))
}

/// Makes a worker of this process, which has one thread: what it may have, it asks for at `access`.
///
/// # Errors
/// Where it cannot give its privileges up.
pub(crate) fn enter(access: Connection, ends_with_broker: bool) -> anyhow::Result<()> {
    // They are in our own memory, and found through files that cannot be opened later.
    let _ = (memory::vdso(), rustix::param::page_size(), rustix::param::clock_ticks_per_second());
    access::go_through(Box::new(Client::new(access)));
    sandbox::enter(getegid(), geteuid(), ends_with_broker).map_err(|error| {
        let what = format!("the worker cannot give its privileges up: {error}");
        let failure = Failure::new(Kind::Unsupported, what);
        let remedy = "--sandbox off   does all in one process, with the privileges that it has";
        if ends_with_broker { failure.with_remedy(remedy) } else { failure }.into()
    })
}

/// Ends what this process does for others before it ends with `code`, where it is a worker: a thread of it that a file
/// holds would hold what reads its output, too.
pub(crate) fn take_leave(code: u8) {
    if access::has_broker() {
        let_go();
        access::take_leave(code);
    }
}

/// Ends what a worker does for whoever reads its output.
pub(crate) fn let_go() {
    // Nothing else can be opened here.
    if let Ok(nothing) = eventfd(0, EventfdFlags::CLOEXEC) {
        let _ = dup2_stdin(&nothing);
        let _ = dup2_stdout(&nothing);
        let _ = dup2_stderr(&nothing);
    }
}

/// The worker's exit code. One that was killed could not say so, nor leave the terminal as it was.
fn end_as(status: WaitStatus, worker: &Worker, terminal: Option<Termios>) -> u8 {
    if let Some(code) = status.exit_status() {
        return u8::try_from(code).unwrap_or(FAILED);
    }
    let signal = status.terminating_signal().unwrap_or_default();
    if let Some(terminal) = terminal {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &terminal);
        if stdout().is_terminal() {
            // The screen that programs leave, and the cursor (xterm's control sequences).
            let _ = stdout().write_all(b"\x1b[?1049l\x1b[?25h");
        }
    }
    if [Signal::INT, Signal::TERM, Signal::HUP].iter().any(|one| one.as_raw() == signal) {
        return INTERRUPTED;
    }
    let pid = worker.pid();
    let _ = writeln!(
        stderr(),
        "error: the worker (process {pid}), which reads debug information, was ended by signal {signal}\n  \
         where that is 9, memory may have run out: --memory-max SIZE keeps it below a bound"
    );
    FAILED
}
