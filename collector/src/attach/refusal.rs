//! Meaning of an errno of `perf_event_open` or of a ring's mapping: who refused, on which value,
//! what is the least that would help.

use crate::access::{self, EventPlace};
use crate::attach::feature::kernel_features;
use crate::attach::opening::open_planned;
use crate::error::{Error, ErrorKind};
use crate::event::EventPlan;
use crate::event::attr::{self, Binding, Counter, EventSource, Levels, Source};
use crate::system::machine::{KernelRelease, Processor};
use crate::system::procfs::Procfs;
use dataspace_proto::event::Sampling;
use rustix::io::Errno;
use rustix::process::{Resource, geteuid, getrlimit};

/// From this level on an unprivileged user may open no event at all (Debian's and Android's patch).
const PARANOID_ALL: i64 = 3;
/// From this level on, none of the kernel's own.
const PARANOID_KERNEL: i64 = 2;
/// From this level on, none of whole CPUs.
const PARANOID_CPU: i64 = 1;

/// A period that any PMU which takes samples keeps, and that is not reached while we look.
const BARE_PERIOD: u64 = 1 << 40;

/// Request to the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) event: &'a str,
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    pub(crate) sampling: Option<Sampling>,
    pub(crate) procfs: &'a Procfs,
    pub(crate) source: Option<EventSource>,
    pub(crate) scope: Scope,
}

/// Tasks that an event was to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// One thread.
    Task,
    /// All that runs on a CPU.
    Cpu,
    /// A control group.
    Cgroup,
}

impl Scope {
    /// The scope of an event there.
    pub(crate) const fn of(place: EventPlace<'_>) -> Self {
        match place {
            EventPlace::Task { .. } => Self::Task,
            EventPlace::Cpu(_) => Self::Cpu,
            EventPlace::Cgroup { .. } => Self::Cgroup,
        }
    }
}

impl<'a> Request<'a> {
    /// Something that is no event of a user's on thread `tid` of process `pid`.
    pub(crate) const fn new(event: &'a str, pid: i32, tid: i32, procfs: &'a Procfs) -> Self {
        let scope = Scope::Task;
        Self { event, pid, tid, sampling: None, procfs, source: None, scope }
    }

    /// A planned event there.
    pub(crate) fn planned(plan: &'a EventPlan, pid: i32, tid: i32, procfs: &'a Procfs) -> Self {
        let source = Some(plan.source);
        let sampling = Some(plan.event.sampling);
        Self { sampling, source, ..Self::new(&plan.event.name, pid, tid, procfs) }
    }

    /// The same on more than a thread.
    pub(crate) const fn on(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// The error that `errno` of `perf_event_open` is.
    pub(crate) fn error(&self, errno: Errno) -> Error {
        let event = self.event.to_owned();
        match errno {
            Errno::INVAL | Errno::OPNOTSUPP if self.only_counts() => {
                Error::OnlyCounts { event, errno }
            }
            Errno::ACCESS | Errno::PERM => self.not_permitted(errno),
            Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP | Errno::NOSYS => {
                let (why, remedy) = self.not_there(errno);
                Error::NoSuchEvent { event, errno, why, remedy }
            }
            Errno::NOSPC if self.is_breakpoint() => {
                Error::NoBreakpointLeft { event, tid: self.tid }
            }
            Errno::SRCH => Error::NoSuchProcess { id: self.tid },
            Errno::MFILE => Error::TooManyFiles {
                n_threads: self.procfs.tasks(self.pid).map_or(0, |tasks| tasks.len()),
                n_cpus: std::thread::available_parallelism().map_or(1, Into::into),
                limit: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
            },
            Errno::INVAL => self.unacceptable(errno),
            _ => {
                let (why, kind) = self.failed(errno);
                Error::NotOpened { event, errno, why, kind }
            }
        }
    }

    const fn counter(&self) -> Option<Counter> {
        match self.source {
            Some(EventSource { source: Source::Counter(counter), .. }) => Some(counter),
            _ => None,
        }
    }

    const fn is_breakpoint(&self) -> bool {
        matches!(self.source, Some(EventSource { source: Source::Breakpoint { .. }, .. }))
    }

    /// Tells whether the kernel opens a counter on ourselves only if it is to take no samples, as with PMUs
    /// that have no interrupt: `msr_event_init()` refuses a period with `EINVAL`, and
    /// `perf_event_open()` one of a PMU with `PERF_PMU_CAP_NO_INTERRUPT` with `EOPNOTSUPP`.
    fn only_counts(&self) -> bool {
        let Some(source) = self.source.filter(|_| self.counter().is_some()) else { return false };
        let opens = |place, period| access::event(&attr::bare(&source, period), place).is_ok();
        // A user who may not see the kernel opens nothing of a PMU that cannot leave it out. But its own
        // check, which refuses the period, comes first.
        let passes = |place, period| {
            let opened = access::event(&attr::bare_of_user(&source, period), place);
            matches!(opened, Ok(_) | Err(Errno::OPNOTSUPP))
        };
        // Some count on whole CPUs only.
        [EventPlace::own_thread(-1), EventPlace::Cpu(0)].into_iter().any(|place| {
            opens(place, 0) && !opens(place, BARE_PERIOD)
                || passes(place, 0) && !passes(place, BARE_PERIOD)
        })
    }

    fn kernel(&self) -> KernelRelease {
        KernelRelease::read(self.procfs)
    }

    fn number(&self, sysctl: &str) -> String {
        let value = self.procfs.sysctl(sysctl);
        value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
    }

    fn not_permitted(&self, errno: Errno) -> Error {
        let (event, pid) = (self.event.to_owned(), self.pid);
        let level = self.procfs.paranoid();
        if self.procfs.is_privileged() {
            let why = guard(self.procfs);
            return Error::Refused { event, pid, errno, why };
        }
        let paranoid = |what: &str, wanted| {
            let (event, what) = (event.clone(), what.to_owned());
            Error::Paranoid { event, pid, what, level, wanted }
        };
        if level >= PARANOID_ALL {
            return paranoid("all events of users", self.wanted_level());
        }
        match self.scope {
            Scope::Cpu if level >= PARANOID_CPU => return paranoid("events of whole CPUs", 0),
            Scope::Cgroup if level >= PARANOID_CPU => {
                return paranoid("events of control groups", 0);
            }
            _ => {}
        }
        let uid =
            self.procfs.status(self.pid).ok().and_then(|status| Some(status.users?.effective));
        match uid {
            Some(uid) if uid != geteuid().as_raw() && self.scope == Scope::Task => {
                let why = format!("belongs to user {uid}");
                Error::ForeignProcess { pid, why }
            }
            // A tracepoint or the kernel's own time: the level decides.
            _ if level >= PARANOID_KERNEL - 1 && self.wants_kernel() => {
                // At 1 it is what tracepoints hold of other users' data.
                paranoid("samples of the kernel", if level >= PARANOID_KERNEL { 1 } else { -1 })
            }
            _ if is_filtered(self.procfs) => {
                let why = guard(self.procfs);
                Error::Refused { event, pid, errno, why }
            }
            _ => {
                let why = "does not let itself be looked into (set-uid, or not dumpable)".into();
                Error::ForeignProcess { pid, why }
            }
        }
    }

    /// The least strict level that would do.
    fn wanted_level(&self) -> i64 {
        match self.scope {
            Scope::Cpu | Scope::Cgroup => 0,
            Scope::Task if self.wants_kernel() => 1,
            Scope::Task => 2,
        }
    }

    /// Tells whether only the kernel's side would do: user code was left out, the event fires in the
    /// kernel, or the PMU cannot leave the kernel out.
    fn wants_kernel(&self) -> bool {
        self.source.is_some_and(|event| {
            event.exclude_user
                || match event.source {
                    Source::Tracepoint(_) => !event.exclude_kernel,
                    Source::Counter(counter) => counter.levels == Levels::FilteredByReader,
                    _ => false,
                }
        })
    }

    /// Reason why there is no such event, and what would help.
    fn not_there(&self, errno: Errno) -> (String, &'static str) {
        if errno == Errno::NOSYS {
            return (
                "this kernel is built without perf events, or a filter of system calls hides them"
                    .to_owned(),
                "",
            );
        }
        let Some(counter) = self.counter() else {
            return ("this machine has no such event".to_owned(), "");
        };
        if Processor::read(self.procfs).is_virtual {
            let what = match counter.precise_ip {
                0 => "is given no PMU that counts it",
                _ => "is given no PMU that samples it precisely",
            };
            return (format!("this virtual machine {what}"), "; try -e cpu-clock");
        }
        match (errno, counter.precise_ip) {
            (Errno::OPNOTSUPP, 0) => {
                ("the PMU counts it, but takes no samples".to_owned(), "; try -e cpu-clock")
            }
            (Errno::OPNOTSUPP, level) => (
                format!("the PMU has no samples of it as precise as {level}"),
                "; ask for P, which takes what there is",
            ),
            _ => ("this processor's PMU has no such event".to_owned(), ""),
        }
    }

    /// `EINVAL` in the words of what was asked.
    fn unacceptable(&self, errno: Errno) -> Error {
        let event = self.event.to_owned();
        let max = self.procfs.sysctl("kernel/perf_event_max_sample_rate");
        let max_hz = max.and_then(|max| u64::try_from(max).ok()).unwrap_or(u64::MAX);
        if let Some(Sampling::FrequencyHz(hz)) = self.sampling
            && hz > max_hz
        {
            return Error::FrequencyTooHigh { event, hz, max_hz };
        }
        if let Some(why) = self.counter().and_then(|counter| self.unacceptable_counter(&counter)) {
            let kind = ErrorKind::MachineCannot;
            return Error::NotOpened { event, errno, why, kind };
        }
        let sampling = match self.sampling {
            Some(Sampling::FrequencyHz(hz)) => format!("{hz} samples a second"),
            Some(Sampling::Period(period)) => format!("a period of {period}"),
            None => "a ring of its own".into(),
        };
        Error::Unacceptable { event, sampling, errno }
    }

    fn unacceptable_counter(&self, counter: &Counter) -> Option<String> {
        let kernel = self.kernel();
        let is_ibs = self.event.starts_with("ibs_");
        if is_ibs && self.scope == Scope::Task && kernel.is_before(6, 2) {
            return Some(format!(
                "AMD IBS samples single processes from Linux 6.2 on, and this is {kernel}; sample \
                 whole CPUs (-a) or -e cpu-clock"
            ));
        }
        if is_ibs && counter.levels == Levels::Bits {
            return Some("AMD IBS cannot leave out the kernel or user code by itself".to_owned());
        }
        (counter.precise_ip > 0).then(|| {
            format!(
                "the kernel does not take its config {:#x} with precise_ip {}; ask for P, which \
                 takes what there is",
                counter.config[0], counter.precise_ip
            )
        })
    }

    /// Everything else, and what the caller can do about it.
    fn failed(&self, errno: Errno) -> (String, ErrorKind) {
        let kind = match errno {
            Errno::NODATA | Errno::NOSPC | Errno::BUSY | Errno::TOOBIG => ErrorKind::MachineCannot,
            _ => ErrorKind::Failed,
        };
        let value = |sysctl| self.number(sysctl);
        let why = match errno {
            Errno::NODATA => {
                "this processor tells where loads hit only in a group behind mem-loads-aux; name \
                 the event as cpu/mem-loads/P"
            }
            Errno::NOSPC => "no counter of the PMU is free for it; ask for fewer events",
            Errno::BUSY => &format!(
                "another profiler or the NMI watchdog (kernel.nmi_watchdog is {}) holds the PMU; \
                 end it, or: sudo sysctl kernel.nmi_watchdog=0",
                value("kernel/nmi_watchdog")
            ),
            Errno::NFILE => &format!(
                "the whole system has its {} files open (fs.file-max); raise it with: sudo sysctl \
                 fs.file-max=NUMBER",
                value("fs/file-max")
            ),
            Errno::TOOBIG => {
                &format!("Linux {} does not know all of the fields that it needs", self.kernel())
            }
            Errno::NOMEM => "the kernel has no memory left for it",
            Errno::OVERFLOW => &format!(
                "the stack that samples carry is deeper than kernel.perf_event_max_stack ({})",
                value("kernel/perf_event_max_stack")
            ),
            Errno::BADF => "the control group or the event that leads its group is gone",
            Errno::INTR => "a signal came in between; try again",
            Errno::FAULT => "the kernel could not read what we asked: a fault of ours",
            _ => "the kernel gives no reason",
        };
        (why.to_owned(), kind)
    }
}

/// The error that `errno` of mapping a ring of `n_pages` is, where less would not do either.
pub(crate) fn mapping(errno: Errno, n_pages: usize, wanted_kb: i64, procfs: &Procfs) -> Error {
    match errno {
        Errno::PERM | Errno::NOMEM => Error::RingMemory {
            n_pages,
            errno,
            mlock_kb: procfs.sysctl("kernel/perf_event_mlock_kb").unwrap_or(0),
            memlock: memlock(),
            wanted_kb,
        },
        errno => {
            let why = match errno {
                Errno::INVAL => {
                    "its size is no power of two, or the event is inherited on all CPUs"
                }
                Errno::ACCESS => "a security module forbids it",
                Errno::AGAIN => "too much memory is locked already",
                Errno::NODEV => "the event's CPU is off line",
                _ => "the kernel refuses it",
            };
            let (event, why) = (format!("a ring of {n_pages} pages"), why.to_owned());
            Error::NotOpened { event, errno, why, kind: ErrorKind::Failed }
        }
    }
}

/// The values that limit the rings of a user, for a person.
pub(crate) fn may_lock(procfs: &Procfs) -> String {
    let mlock_kb = procfs.sysctl("kernel/perf_event_mlock_kb");
    let mlock_kb = mlock_kb.map_or_else(|| "unknown".to_owned(), |kb| kb.to_string());
    let memlock = memlock();
    format!("perf_event_mlock_kb is {mlock_kb}, RLIMIT_MEMLOCK is {memlock}")
}

fn memlock() -> String {
    let limit = getrlimit(Resource::Memlock).current;
    limit.map_or_else(|| "unlimited".to_owned(), |bytes| format!("{bytes} bytes"))
}

/// Tells whether `plan` can be opened on ourselves, as the kernel and our privileges are.
///
/// # Errors
/// Why not.
pub(crate) fn opens_on_ourselves(plan: &mut EventPlan, procfs: &Procfs) -> Result<(), Error> {
    let binding = Binding { enable_on_exec: true, ..Binding::default() };
    match open_planned(plan, binding, kernel_features(), EventPlace::own_thread(-1)) {
        Ok(_) => Ok(()),
        Err(errno) => {
            let pid = rustix::process::getpid().as_raw_nonzero().get();
            Err(Request::planned(plan, pid, pid, procfs).error(errno))
        }
    }
}

/// Tells whether a filter of system calls is in force for whoever opens events: a worker's own one is ours, and its
/// broker is another process.
fn is_filtered(procfs: &Procfs) -> bool {
    !access::has_broker() && procfs.status("self").is_ok_and(|own| own.is_filtered)
}

/// Likely guard that refused where level and capabilities do not explain it.
fn guard(procfs: &Procfs) -> String {
    if is_filtered(procfs) {
        return "a filter of system calls is in force (Seccomp is 2 in /proc/self/status): allow \
                perf_event_open in the container's profile"
            .to_owned();
    }
    if !procfs.is_first_user_namespace() {
        return "our capabilities hold in this user namespace only: run outside of it".to_owned();
    }
    "a security module (SELinux, AppArmor, lockdown) forbids it: its log says which rule".to_owned()
}

#[cfg(test)]
#[path = "refusal/tests.rs"]
mod tests;
