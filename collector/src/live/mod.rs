//! A live session: events on running tasks, and the thread that reads their rings.

mod announce;
mod counts;
mod cpu_watch;
mod drain;
mod governing;
mod group_watch;
mod notices;
mod parts;
mod reader;
mod reattach;
mod record;
mod removal;
#[cfg(feature = "synthetic")]
pub mod synthetic;
mod tally;
mod variation;

pub use crate::attach::mark::Marks;
pub use crate::attach::rings::n_sessions_that_fit;
pub use crate::sys::clock::thread_cpu_ns;
pub use parts::{Heard, Outcome};

use crate::access::command::Command;
use crate::attach::feature::kernel_features;
use crate::attach::rings::Rings;
use crate::attach::{Attached, Attacher, OpenEvent};
use crate::attach::{coverage, refusal};
use crate::channel::batch::BatchSender;
use crate::cost::calibration::Calibration;
use crate::error::Error;
use crate::event::attr::Binding;
use crate::event::counted::CountPlan;
use crate::event::{self, CountedGroup, EventPlan, EventSelector};
use crate::live::announce::Pace;
use crate::live::cpu_watch::CpuWatch;
use crate::live::group_watch::GroupWatch;
use crate::live::parts::{Parts, Shared};
use crate::lookup::before::Before;
use crate::lookup::gate::Gate;
use crate::perf_data::write::{Recorder, Writer};
use crate::sys::spawn::HeldChild;
use crate::system::machine::Machine;
use crate::system::procfs::Procfs;
use crate::system::tracefs::Tracefs;
use crate::target::membership::CommFilter;
use crate::target::{Coverage, Target, TargetSpec, Watched};
use dataspace_proto::broker::CommandOutput;
use dataspace_proto::event::{Event, Sampling};
use dataspace_proto::measure::Variation;
use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// Target and settings of a session.
#[derive(Clone, Debug)]
pub struct LiveConfig {
    /// The target.
    pub target: TargetSpec,
    /// The events; empty: the best that is there.
    pub events: Vec<EventSelector>,
    /// The rate; `None`: as is sane for each event.
    pub sampling: Option<Sampling>,
    /// Sentences for a person, said once.
    pub notes: Vec<String>,
    /// Amount by which periods vary while the session runs, where the weights of samples stay known.
    pub variation: Option<Variation>,
    /// Groups of events that are counted beside the samples, exactly: they are in [`Collected::counts`].
    ///
    /// [`Collected::counts`]: dataspace_proto::accounting::Collected::counts
    pub counted: Vec<CountedGroup>,
    /// Pages of each sample ring, rounded up to a power of two; `None`: 512 KiB a CPU, or what is
    /// allowed.
    pub ring_pages: Option<usize>,
    /// Destination of a command's output.
    pub command_output: CommandOutput,
    /// Processes of which names belong to the target.
    pub comms: CommFilter,
    /// Most that sampling may cost, as a share of the target's CPU time or of one CPU (0.01):
    /// beyond it periods are raised. `None`: they stay as they are.
    pub max_overhead: Option<f64>,
    /// With a period that was asked for, every Nth fault, breakpoint and tracepoint stays a sample,
    /// whatever that costs.
    pub keeps_counts: bool,
    /// CPU time that whoever takes the records has used for them, in nanoseconds: part of what
    /// sampling costs. Its thread keeps it up to date, by [`thread_cpu_ns`].
    pub consumer_cpu_ns: Arc<AtomicU64>,
    /// The other way: CPU time that the collector's own thread has used, told four times a second.
    pub reader_cpu_ns: Arc<AtomicU64>,
    /// The session is for somebody who may see less than we, and whom our broker lets have events on his own tasks
    /// only: where a task gets other privileges by exec the kernel takes such events away; on whole CPUs it would stay
    /// part of the target. They sample user code only.
    pub is_confined: bool,
}

impl LiveConfig {
    /// The best available event on `target`.
    #[must_use]
    pub fn new(target: TargetSpec) -> Self {
        Self {
            target,
            events: Vec::new(),
            sampling: None,
            notes: Vec::new(),
            variation: None,
            counted: Vec::new(),
            ring_pages: None,
            command_output: CommandOutput::Inherit,
            comms: CommFilter::default(),
            max_overhead: None,
            keeps_counts: false,
            consumer_cpu_ns: Arc::default(),
            reader_cpu_ns: Arc::default(),
            is_confined: false,
        }
    }
}

/// An open session. It counts already, into its rings, except for a command, which waits. Dropped,
/// it leaves the targets as they were.
#[derive(Debug)]
pub struct Live {
    parts: Parts,
    held: Option<HeldChild>,
    command: Option<OsString>,
    description: String,
    pids: Vec<i32>,
    events: Vec<Event>,
}

impl Live {
    /// Opens the events of a session on all its targets.
    ///
    /// A command is forked, and waits.
    ///
    /// # Errors
    /// [`Error`], which says what would help.
    pub fn open(config: LiveConfig) -> Result<Self, Error> {
        let (procfs, machine) = (Procfs::default(), Machine::read(Path::new("/")));
        let mut plans = plans(&config, &machine, &procfs)?;
        plans.iter_mut().for_each(|plan| plan.source.varies = config.variation.is_some());
        let tracefs = Tracefs::new(Path::new("/"));
        let mut counted = CountPlan::all(&config.counted, &machine, &tracefs);
        let mut target = Target::find(&config.target, config.command_output, &procfs)?;
        // After the fork: a command keeps the limit that its user gave it.
        raise_file_limit();
        let cpus = &machine.online_cpus;
        // Many threads are seen on whole CPUs; of who may not see all, the user's side alone.
        if config.is_confined {
            plans.iter_mut().for_each(EventPlan::confine);
            for plan in &mut counted {
                plan.leave_kernel_out();
            }
        } else {
            coverage::widen(&mut target, cpus.len(), plans.len(), &procfs);
        }
        let binding = binding(&config.target, &target);
        let mut rings = Rings::new(cpus, config.ring_pages, &procfs)?;
        let features = kernel_features();
        let group = GroupWatch::of(&target.coverage)?;
        let attacher = Attacher::new(&procfs, &mut plans, &mut rings, binding, features);
        let attacher = attacher.confined(config.is_confined).counting(&mut counted);
        let mut attached = attach(attacher, &target, group.as_ref())?;
        let is_whole = target.coverage == Coverage::Cpus && target.watched.is_empty();
        let is_named = !config.comms.is_empty();
        counted.iter_mut().for_each(|plan| plan.tell_scope(is_whole, is_named));
        attached.warnings.extend(rings.warning.take());
        attached.warnings.extend(config.notes);
        let cpu_watch = cpu_watch(&attached, machine.online_cpus);
        // After the rings, for its own takes of the memory that a user may lock, and after threads
        // that come and go were found, which needs every CPU.
        let calibration = Calibration::begin(&plans, &rings, features, !binding.is_cpu_wide);
        target.drop_ended()?;
        check_is_open(&target, &attached, &procfs)?;
        let description = config.comms.describe(target.description.as_deref());
        let is_named_singly = matches!(config.target, TargetSpec::Pids(_) | TargetSpec::Tids(_));
        let told_names = is_named_singly.then(|| config.comms.clone());
        let is_open = !binding.is_cpu_wide && config.comms.is_empty();
        let membership = target.membership(config.comms, &procfs);
        let gate = Gate::new(membership, procfs.clone(), is_open)?;
        // What a forked command has mapped now is our own, and goes with exec.
        let known = if binding.enable_on_exec { Vec::new() } else { gate.members() };
        let before = Some(Before::of(known, &procfs));
        let Target { watched, held, .. } = target;
        let parts = Parts {
            rings,
            attached,
            plans,
            counted,
            features,
            binding,
            watched,
            told_names,
            group,
            cpu_watch,
            gate,
            procfs,
            before,
            calibration,
            max_overhead: config.max_overhead,
            variation: config.variation,
            keeps_counts: config.keeps_counts
                && matches!(config.sampling, Some(Sampling::Period(_))),
            consumer_cpu_ns: config.consumer_cpu_ns,
            reader_cpu_ns: config.reader_cpu_ns,
            is_confined: config.is_confined,
        };
        Ok(Self::new(parts, held, command_name(config.target), description))
    }

    fn new(
        parts: Parts,
        held: Option<HeldChild>,
        command: Option<OsString>,
        description: String,
    ) -> Self {
        let pids = parts.gate.members();
        let events = parts.plans.iter().map(|plan| plan.event.clone()).collect();
        Self { parts, held, command, description, pids, events }
    }

    /// The events, as they were opened.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The target, for a person.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The processes attached to.
    #[must_use]
    pub fn pids(&self) -> &[i32] {
        &self.pids
    }

    /// Tells `sender` the events, and what was mapped before, as fast as that is received: someone is to
    /// be at it. Else [`Self::start`] tells it, and keeps what the channel does not take. Processes that do
    /// not show their mappings are waited for, for some seconds, unless it `is_over`.
    pub fn announce(&mut self, sender: &mut BatchSender, is_over: &dyn Fn() -> bool) {
        announce::tell(&mut self.parts, Heard::Everything, sender, Pace::OfAnalyzer, is_over);
    }

    /// Lets a command execute, and reads the rings until the targets have ended or
    /// [`Running::stop`] is called.
    ///
    /// # Errors
    /// [`Error::Command`] if the command cannot be executed; [`Error::System`] or
    /// [`Error::Thread`] if there is no descriptor or thread left.
    pub fn start(self, sender: BatchSender) -> Result<Running, Error> {
        self.begin(sender, None)
    }

    /// As [`Self::start`], and writes what comes to `recorder`, whose
    /// [`Progress`](crate::perf_data::write::Progress) tells how that went. `heard` goes to the channel. What was
    /// mapped before is waited for as in [`Self::announce`].
    ///
    /// # Errors
    /// As [`Self::start`], and [`Error::Recorder`] if nothing can be written. A command is not
    /// executed then.
    pub fn record(
        mut self,
        recorder: Recorder,
        sender: BatchSender,
        heard: Heard,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Running, Error> {
        let writer = record::begin(recorder, &mut self.parts, heard, is_over)?;
        self.begin(sender, Some((writer, heard)))
    }

    fn begin(
        mut self,
        mut sender: BatchSender,
        recorded: Option<(Writer, Heard)>,
    ) -> Result<Running, Error> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| Error::System { call: "eventfd", errno })?;
        let shared = Arc::new(Shared { stop: AtomicBool::new(false), wake });
        let name = self.command.unwrap_or_default();
        let child = match self.held.map(Command::release).transpose() {
            Ok(child) => child,
            Err(errno) => {
                if let Some((writer, _)) = recorded {
                    writer.discard();
                }
                return Err(Error::Command { name, errno });
            }
        };
        let for_reader = Arc::clone(&shared);
        let heard = recorded.as_ref().map_or(Heard::Everything, |(_, heard)| *heard);
        announce::tell(&mut self.parts, heard, &mut sender, Pace::Own, &|| false);
        let parts = self.parts;
        let thread = thread::Builder::new()
            .name("collector".to_owned())
            .spawn(move || reader::run(parts, sender, &for_reader, child, recorded))
            .map_err(Error::Thread)?;
        Ok(Running { shared, thread })
    }
}

/// A session that counts.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    thread: JoinHandle<Outcome>,
}

impl Running {
    /// Asks the session to detach. It does so in its own time: see [`Self::join`].
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        // It cannot block: the counter is far from full.
        let _ = rustix::io::write(&self.shared.wake, &1u64.to_ne_bytes());
    }

    /// Tells whether the session has ended, its last record sent.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the session's end, which comes with that of its targets or with [`Self::stop`].
    ///
    /// # Panics
    /// If the reader thread did.
    #[must_use]
    pub fn join(self) -> Outcome {
        match self.thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Without a thread in `/proc` nothing was opened, and the session would wait in silence.
fn check_is_open(target: &Target, attached: &Attached, procfs: &Procfs) -> Result<(), Error> {
    if target.coverage != Coverage::Tasks {
        return Ok(());
    }
    for &Watched { pid, tid, .. } in &target.watched {
        let is_ours = |open: &OpenEvent| open.pid == pid && tid.is_none_or(|tid| open.tid == tid);
        if attached.events.iter().any(is_ours) {
            continue;
        }
        return match procfs.tasks(pid) {
            // It is on its way out: nothing can be opened on it any more.
            Ok(_) => Err(Error::NoSuchProcess { id: tid.unwrap_or(pid) }),
            Err(error) => Err(Error::ForeignProcess {
                pid,
                why: format!("does not show its threads in /proc ({error}; hidepid, perhaps)"),
            }),
        };
    }
    Ok(())
}

fn plans(config: &LiveConfig, machine: &Machine, procfs: &Procfs) -> Result<Vec<EventPlan>, Error> {
    let tracefs = Tracefs::new(Path::new("/"));
    if config.events.is_empty() {
        return event::best(config.sampling, machine, &tracefs, |plan| {
            refusal::opens_on_ourselves(plan, procfs)
        });
    }
    let mut plans = Vec::new();
    for selector in &config.events {
        plans.extend(selector.plan(config.sampling, machine, &tracefs)?);
    }
    Ok(plans)
}

/// Binding of the events of a session on `target` to its tasks.
fn binding(asked: &TargetSpec, target: &Target) -> Binding {
    let is_cpu_wide = target.coverage != Coverage::Tasks;
    Binding {
        inherit: !is_cpu_wide && !matches!(asked, TargetSpec::Tids(_)),
        enable_on_exec: target.held.is_some(),
        is_cpu_wide,
    }
}

/// Name of a command.
fn command_name(target: TargetSpec) -> Option<OsString> {
    match target {
        TargetSpec::Command(argv) => argv.into_iter().next(),
        _ => None,
    }
}

/// Looks after CPUs from when events were opened.
fn cpu_watch(attached: &Attached, online_cpus: Vec<i32>) -> CpuWatch {
    let mut cpu_watch = CpuWatch::new(Path::new("/"), online_cpus);
    attached.offline.iter().for_each(|&cpu| cpu_watch.is_off(cpu));
    cpu_watch
}

/// Opens the events of `target`, which is `group` if that is one.
fn attach(
    mut attacher: Attacher<'_>,
    target: &Target,
    group: Option<&GroupWatch>,
) -> Result<Attached, Error> {
    match &target.coverage {
        Coverage::Tasks => attacher.tasks(&target.watched)?,
        Coverage::Cgroup(_) => {
            attacher.cpus(group.map(GroupWatch::directory))?;
            attacher.count_cpus(group.map(GroupWatch::directory));
        }
        Coverage::Cpus => {
            attacher.cpus(None)?;
            match target.watched.is_empty() {
                true => attacher.count_cpus(None),
                false => attacher.count_tasks(&target.watched)?,
            }
        }
    }
    Ok(attacher.finish())
}

/// A thread takes a descriptor for each event and CPU: as many as we may have.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(errno) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%errno, "the file limit stays as it is");
    }
}
