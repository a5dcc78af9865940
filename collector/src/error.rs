//! Why a live session cannot be opened, with the values that decided and what would help.

use crate::event::EventParseError;
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use thiserror::Error;

/// Why a live session cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// An event selector cannot be read.
    #[error(transparent)]
    EventParse(#[from] EventParseError),
    /// The target names nothing.
    #[error("no process, thread or command to profile was given")]
    NoTarget,
    /// A control group, or the unit that has one, is not there.
    #[error("control group {name}: {why}; {remedy}")]
    Cgroup {
        /// What was asked for.
        name: String,
        /// What is the matter.
        why: String,
        /// Where to look.
        remedy: &'static str,
    },
    /// None of the target's processes or threads is there.
    #[error("there is no process or thread {id}")]
    NoSuchProcess {
        /// The first one that was asked for.
        id: i32,
    },
    /// The number is that of a thread that is not its process's first.
    #[error("{tid} is a thread of process {process}: use -t {tid} for it alone, or -p {process}")]
    ThreadNotProcess {
        /// What was asked for.
        tid: i32,
        /// Its process.
        process: i32,
    },
    /// `perf_event_paranoid` forbids it.
    #[error(
        "perf_event_paranoid is {level}, which forbids {event} on process {pid}; run as root, give \
         this program CAP_PERFMON, or: sudo sysctl kernel.perf_event_paranoid=1"
    )]
    Paranoid {
        /// The event.
        event: String,
        /// The process.
        pid: i32,
        /// The sysctl's value.
        level: i64,
    },
    /// The process belongs to another user, or hides from its own.
    #[error(
        "process {pid} {why}; run as root, or give this program CAP_PERFMON and CAP_SYS_PTRACE"
    )]
    ForeignProcess {
        /// The process.
        pid: i32,
        /// Whose it is.
        why: String,
    },
    /// The kernel forbids it for no reason that we can tell.
    #[error("the kernel refused {event} on process {pid} ({errno}); run as root")]
    Refused {
        /// The event.
        event: String,
        /// The process.
        pid: i32,
        /// `EACCES` or `EPERM`.
        errno: Errno,
    },
    /// The rings do not fit what this user may lock.
    #[error(
        "the kernel does not let this user map rings of {n_pages} pages ({errno}): \
         perf_event_mlock_kb is {mlock_kb}, RLIMIT_MEMLOCK is {memlock}; run as root, give this \
         program CAP_IPC_LOCK, or: sudo sysctl kernel.perf_event_mlock_kb={wanted_kb}"
    )]
    RingMemory {
        /// The last size that was tried.
        n_pages: usize,
        /// `EPERM` or `ENOMEM`.
        errno: Errno,
        /// The sysctl's value, in KiB a CPU.
        mlock_kb: i64,
        /// The limit, in bytes or "unlimited".
        memlock: String,
        /// A value of the sysctl that is enough.
        wanted_kb: i64,
    },
    /// There is no such event on this machine.
    #[error("this machine has no event {event} ({errno}){remedy}")]
    NoSuchEvent {
        /// The event.
        event: String,
        /// `ENOENT`, `ENODEV` or `EOPNOTSUPP`.
        errno: Errno,
        /// What would help, if anything.
        remedy: &'static str,
    },
    /// The files that describe tracepoints are not there or may not be read.
    #[error("tracepoint {event} cannot be looked up: {why}; {remedy}")]
    Tracepoint {
        /// The event.
        event: String,
        /// What is missing.
        why: String,
        /// The command that helps.
        remedy: &'static str,
    },
    /// The debug registers of a thread are all in use.
    #[error(
        "no debug register is free for {event} on thread {tid}: a thread has 4, and a debugger or \
         another profiler may hold some; ask for fewer mem: events"
    )]
    NoBreakpointLeft {
        /// The event.
        event: String,
        /// The thread.
        tid: i32,
    },
    /// The kernel does not accept the event as asked for.
    #[error("the kernel does not accept {event} with {sampling} ({errno})")]
    Unacceptable {
        /// The event.
        event: String,
        /// Its period or frequency.
        sampling: String,
        /// `EINVAL`, most often.
        errno: Errno,
    },
    /// The frequency is above what the kernel allows.
    #[error(
        "{event} at {hz} samples a second is more than the {max_hz} of \
         kernel.perf_event_max_sample_rate; ask for fewer with -F"
    )]
    FrequencyTooHigh {
        /// The event.
        event: String,
        /// What was asked for.
        hz: u64,
        /// The sysctl's value.
        max_hz: u64,
    },
    /// A period or frequency of 0.
    #[error("a period or frequency of 0 samples nothing")]
    ZeroSampling,
    /// Not enough file descriptors.
    #[error(
        "{n_threads} threads on {n_cpus} CPUs need more than the {limit} files this program may \
         open; raise it with: ulimit -n, or LimitNOFILE= in the unit"
    )]
    TooManyFiles {
        /// How many threads the targets have.
        n_threads: usize,
        /// How many CPUs are on line.
        n_cpus: usize,
        /// `RLIMIT_NOFILE`.
        limit: u64,
    },
    /// The command cannot be executed.
    #[error("{} cannot be executed: {errno}", name.display())]
    Command {
        /// The command's name.
        name: OsString,
        /// What `execvp` said; `ENOENT` where it was not found.
        errno: Errno,
    },
    /// Any other system call failed.
    #[error("{call} failed: {errno}")]
    System {
        /// What we were doing.
        call: &'static str,
        /// Why not.
        errno: Errno,
    },
    /// The reader thread cannot be started.
    #[error("the reader thread cannot be started: {0}")]
    Thread(#[source] io::Error),
}

/// What the caller can do about an [`enum@Error`]: exit codes follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// More privilege would help.
    NotPermitted,
    /// This machine or kernel has no such thing.
    MachineCannot,
    /// The request is wrong.
    Usage,
    /// Anything else.
    Failed,
}

impl Error {
    /// What the caller can do about it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::EventParse(_)
            | Self::NoTarget
            | Self::ThreadNotProcess { .. }
            | Self::ZeroSampling
            | Self::FrequencyTooHigh { .. } => ErrorKind::Usage,
            Self::Paranoid { .. }
            | Self::ForeignProcess { .. }
            | Self::Refused { .. }
            | Self::RingMemory { .. }
            | Self::Tracepoint { .. } => ErrorKind::NotPermitted,
            Self::NoSuchEvent { .. } | Self::NoBreakpointLeft { .. } => ErrorKind::MachineCannot,
            Self::Unacceptable { .. }
            | Self::NoSuchProcess { .. }
            | Self::Cgroup { .. }
            | Self::TooManyFiles { .. }
            | Self::Command { .. }
            | Self::System { .. }
            | Self::Thread(_) => ErrorKind::Failed,
        }
    }
}
