//! Reasons why a live session cannot be opened, with the values that decided and what would help.

mod recorder;
mod selector;

pub use recorder::RecorderError;
pub use selector::EventParseError;

use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why a live session cannot be opened.
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
        /// The name that was asked for.
        name: String,
        /// The reason.
        why: String,
        /// The place to look.
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
        /// The event that was asked for.
        tid: i32,
        /// Its process.
        process: i32,
    },
    /// `perf_event_paranoid` forbids it.
    #[error(
        "{event} on {} is refused: perf_event_paranoid is {level}, which forbids {what} without \
         CAP_PERFMON; sudo setcap cap_perfmon+ep \"$(command -v dataspace)\", or: sudo sysctl \
         kernel.perf_event_paranoid={wanted}", whom(*pid)
    )]
    Paranoid {
        /// The event.
        event: String,
        /// The process; −1 where it is all of them.
        pid: i32,
        /// The thing that the level forbids.
        what: String,
        /// The sysctl's value.
        level: i64,
        /// The strictest value that allows it.
        wanted: i64,
    },
    /// The process belongs to another user, or hides from its own.
    #[error(
        "process {pid} {why}; run as root, or give this program CAP_PERFMON and CAP_SYS_PTRACE"
    )]
    ForeignProcess {
        /// The process.
        pid: i32,
        /// Its owner, in words.
        why: String,
    },
    /// The kernel forbids it for no reason that we can tell.
    #[error("the kernel refused {event} on {} ({errno}): {why}", whom(*pid))]
    Refused {
        /// The event.
        event: String,
        /// The process; −1 where it is all of them.
        pid: i32,
        /// `EACCES` or `EPERM`.
        errno: Errno,
        /// The likely cause, and what helps.
        why: String,
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
    #[error("{event} cannot be had: {why} ({errno}){remedy}")]
    NoSuchEvent {
        /// The event.
        event: String,
        /// `ENOENT`, `ENODEV`, `EOPNOTSUPP` or `ENOSYS`.
        errno: Errno,
        /// The thing that lacks it.
        why: String,
        /// The way to help, if there is one.
        remedy: &'static str,
    },
    /// The machine does not measure that.
    #[error("{measure} cannot be measured here: {why} ({errno}); nearest: {nearest}")]
    NoSuchMeasurement {
        /// The measurement.
        measure: &'static str,
        /// The thing that lacks it.
        why: String,
        /// `ENOENT`.
        errno: Errno,
        /// The measurement that tells the most of it.
        nearest: &'static str,
    },
    /// The machine has no such PMU.
    #[error("{event}: this machine has no PMU {pmu}; it has {pmus}")]
    NoPmu {
        /// The event.
        event: String,
        /// The PMU.
        pmu: String,
        /// Those it has.
        pmus: String,
    },
    /// The PMU counts for many CPUs at once.
    #[error(
        "{event}: {pmu} counts for many CPUs at once and takes no samples; count it with: \
         perf stat -a -e {event}"
    )]
    SharedPmu {
        /// The event.
        event: String,
        /// The PMU.
        pmu: String,
    },
    /// The PMU is the kernel's own, and its events have other names.
    #[error("{event}: {pmu} is no PMU of the hardware; its events are called {instead}")]
    SoftwarePmu {
        /// The event.
        event: String,
        /// The PMU.
        pmu: &'static str,
        /// The names.
        instead: &'static str,
    },
    /// The PMU takes no samples.
    #[error(
        "{event} can be counted and not sampled ({errno}): its PMU has no interrupt; count it with: \
         perf stat -e {event}, or sample another event, as cpu-clock"
    )]
    OnlyCounts {
        /// The event.
        event: String,
        /// `EINVAL` or `EOPNOTSUPP`.
        errno: Errno,
    },
    /// The PMU writes a trace.
    #[error(
        "{event}: {pmu} writes a trace instead of samples, which is not decoded; without a PMU for \
         memory accesses, -e cpu-clock samples where time goes"
    )]
    TracePmu {
        /// The event.
        event: String,
        /// The PMU.
        pmu: String,
    },
    /// The PMU cannot filter by this latency.
    #[error("{event}: ldlat={latency} is no latency that IBS filters by: {min} to {max} cycles")]
    LatencyOutOfRange {
        /// The event.
        event: String,
        /// The latency that was asked for, in cycles.
        latency: u64,
        /// The least, in cycles.
        min: u64,
        /// The most, in cycles.
        max: u64,
    },
    /// A file of sysfs makes no sense.
    #[error("{} makes no sense: {why}", file.display())]
    Sysfs {
        /// The file.
        file: PathBuf,
        /// The reason.
        why: String,
    },
    /// The files that describe tracepoints are not there or may not be read.
    #[error("tracepoint {event} cannot be looked up: {why}; {remedy}")]
    Tracepoint {
        /// The event.
        event: String,
        /// The thing that is missing.
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
        /// The event that was asked for.
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
        /// Number of threads of the targets.
        n_threads: usize,
        /// Number of CPUs on line.
        n_cpus: usize,
        /// `RLIMIT_NOFILE`.
        limit: u64,
    },
    /// The command cannot be executed.
    #[error("{} cannot be executed: {errno}", name.display())]
    Command {
        /// The command's name.
        name: OsString,
        /// The errno of `execvp`; `ENOENT` where it was not found.
        errno: Errno,
    },
    /// The kernel does not open the event, or map its ring.
    #[error("{event} cannot be opened ({errno}): {why}")]
    NotOpened {
        /// The event.
        event: String,
        /// The errno of the kernel.
        errno: Errno,
        /// The meaning of that here, and what helps.
        why: String,
        /// The kind of thing that the caller can do about it.
        kind: ErrorKind,
    },
    /// Any other system call failed.
    #[error("{call} failed: {errno}")]
    System {
        /// The call that failed.
        call: &'static str,
        /// The reason.
        errno: Errno,
    },
    /// The recording cannot be written.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The reader thread cannot be started.
    #[error("the reader thread cannot be started: {0}")]
    Thread(#[source] io::Error),
}

/// Kind of thing that the caller can do about an [`enum@Error`]: exit codes follow from it.
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
    /// The kind of thing that the caller can do about it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::EventParse(_)
            | Self::NoTarget
            | Self::ThreadNotProcess { .. }
            | Self::ZeroSampling
            | Self::SoftwarePmu { .. }
            | Self::LatencyOutOfRange { .. }
            | Self::FrequencyTooHigh { .. } => ErrorKind::Usage,
            Self::Paranoid { .. }
            | Self::ForeignProcess { .. }
            | Self::Refused { .. }
            | Self::RingMemory { .. }
            | Self::Tracepoint { .. } => ErrorKind::NotPermitted,
            Self::NoSuchEvent { .. }
            | Self::NoSuchMeasurement { .. }
            | Self::NoBreakpointLeft { .. }
            | Self::NoPmu { .. }
            | Self::SharedPmu { .. }
            | Self::OnlyCounts { .. }
            | Self::TracePmu { .. }
            | Self::Sysfs { .. } => ErrorKind::MachineCannot,
            Self::NotOpened { kind, .. } => *kind,
            Self::Unacceptable { .. }
            | Self::NoSuchProcess { .. }
            | Self::Cgroup { .. }
            | Self::TooManyFiles { .. }
            | Self::Command { .. }
            | Self::System { .. }
            | Self::Recorder(_)
            | Self::Thread(_) => ErrorKind::Failed,
        }
    }
}

/// A process, or all of them.
fn whom(pid: i32) -> String {
    if pid > 0 { format!("process {pid}") } else { "whole CPUs".to_owned() }
}
