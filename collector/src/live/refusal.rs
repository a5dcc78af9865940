//! What an errno of `perf_event_open` means here: who refused, on which value, what would help.

use crate::capability::{CAP_PERFMON, CAP_SYS_ADMIN};
use crate::error::Error;
use crate::procfs::Procfs;
use dataspace_proto::event::Sampling;
use rustix::io::Errno;
use rustix::process::{Resource, geteuid, getrlimit};

/// From this level on an unprivileged user may open no event at all (Debian's and Android's patch).
const PARANOID_ALL: i64 = 3;
/// From this level on, none of the kernel's own.
const PARANOID_KERNEL: i64 = 2;

/// What was asked of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) event: &'a str,
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    pub(crate) sampling: Option<Sampling>,
    pub(crate) procfs: &'a Procfs,
}

impl Request<'_> {
    /// The error that `errno` is.
    pub(crate) fn error(&self, errno: Errno) -> Error {
        let event = self.event.to_owned();
        match errno {
            Errno::ACCESS | Errno::PERM => self.not_permitted(errno),
            Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP | Errno::NOSYS => {
                Error::NoSuchEvent { event, errno, remedy: "" }
            }
            Errno::NOSPC => Error::NoBreakpointLeft { event, tid: self.tid },
            Errno::SRCH => Error::NoSuchProcess { id: self.tid },
            Errno::MFILE => Error::TooManyFiles {
                n_threads: self.procfs.tasks(self.pid).map_or(0, |tasks| tasks.len()),
                n_cpus: std::thread::available_parallelism().map_or(1, Into::into),
                limit: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
            },
            Errno::INVAL => self.unacceptable(errno),
            _ => Error::System { call: "perf_event_open", errno },
        }
    }

    fn not_permitted(&self, errno: Errno) -> Error {
        let (event, pid) = (self.event.to_owned(), self.pid);
        let level = self.procfs.number("sys/kernel/perf_event_paranoid").unwrap_or(PARANOID_KERNEL);
        if is_privileged(self.procfs) {
            return Error::Refused { event, pid, errno };
        }
        if level >= PARANOID_ALL {
            return Error::Paranoid { event, pid, level };
        }
        let uid = self.procfs.status(self.pid).ok().and_then(|status| status.effective_uid);
        match uid {
            Some(uid) if uid != geteuid().as_raw() => {
                let why = format!("belongs to user {uid}");
                Error::ForeignProcess { pid, why }
            }
            // A tracepoint or the kernel's own time: the level decides.
            _ if level >= PARANOID_KERNEL - 1 && self.wants_kernel() => {
                Error::Paranoid { event, pid, level }
            }
            _ => {
                let why = "does not let itself be looked into (set-uid, or not dumpable)".into();
                Error::ForeignProcess { pid, why }
            }
        }
    }

    /// Whether the event's name says that only the kernel's side would do.
    fn wants_kernel(&self) -> bool {
        self.event.ends_with(":k")
            || (self.event.contains(':')
                && !self.event.starts_with("mem:")
                && !self.event.ends_with(":u"))
    }

    fn unacceptable(&self, errno: Errno) -> Error {
        let event = self.event.to_owned();
        let max = self.procfs.number("sys/kernel/perf_event_max_sample_rate");
        let max_hz = max.and_then(|max| u64::try_from(max).ok()).unwrap_or(u64::MAX);
        match self.sampling {
            Some(Sampling::FrequencyHz(hz)) if hz > max_hz => {
                Error::FrequencyTooHigh { event, hz, max_hz }
            }
            Some(Sampling::FrequencyHz(hz)) => {
                Error::Unacceptable { event, sampling: format!("{hz} samples a second"), errno }
            }
            Some(Sampling::Period(period)) => {
                Error::Unacceptable { event, sampling: format!("a period of {period}"), errno }
            }
            None => Error::Unacceptable { event, sampling: "a ring of its own".into(), errno },
        }
    }
}

/// Whether `perf_event_paranoid` does not apply to us.
pub(crate) fn is_privileged(procfs: &Procfs) -> bool {
    let capabilities = procfs.status("self").ok().and_then(|status| status.effective_capabilities);
    capabilities.is_some_and(|bits| bits & (1 << CAP_PERFMON | 1 << CAP_SYS_ADMIN) != 0)
}
