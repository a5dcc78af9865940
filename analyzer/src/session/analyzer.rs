//! The analyzer: records in, questions to workers out, attributions charged to totals.

use crate::attribution::access::{Attribution, Located, Verdict};
use crate::attribution::code_place::NotLocated;
use crate::attribution::name_table::NameTable;
use crate::attribution::recent_site::{CodePlace, KnownCode, RecentSites};
use crate::attribution::resumption;
use crate::attribution::search::Search;
use crate::attribution::site_table::{CallSiteTable, DataTable, SiteTable};
use crate::attribution::vote::Votes;
use crate::bytes::file::LoadObjectIdx;
use crate::index::call_site::CallSite;
use crate::index::code_names::Names;
use crate::index::named_code::KernelCode;
use crate::index::question::Needs;
use crate::index::question::{Answer, Question, Request, Response};
use crate::index::site::{Site, SiteQuery};
use crate::limit;
use crate::process::cgroup_table::CgroupTable;
use crate::process::made_code::{MadeCode, named_code};
use crate::process::table::{ObjectState, ProcessTable};
use crate::process::thread_storage::ThreadStorage;
use crate::totals::rolling::Totals;
use crate::totals::sums::Charge;
use crate::x86_64::backtrack::Skid;
use dataspace_proto::accounting::Collected;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::event::{Event, EventKind, Machine, SkidModel};
use dataspace_proto::reason::{N_REASONS, Reason};
use dataspace_proto::record::{Record, Sample};
use dataspace_proto::register::{Register, RegisterAbi};
use dataspace_proto::sample_line::Scope;
use dataspace_proto::window::WindowLengths;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Which of the two paths may answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paths {
    /// Both, joined.
    #[default]
    Both,
    /// Instruction and debug information only.
    Type,
    /// The data address only.
    Address,
}

/// How to analyze.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// A skid model for all events, instead of each one's own.
    pub skid: Option<SkidModel>,
    /// Which paths may answer.
    pub paths: Paths,
    /// What metrics are summed over.
    pub windows: WindowLengths,
}

/// Counts of samples by where they went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) received: u64,
    pub(crate) attributed: u64,
    pub(crate) not_memory: u64,
    pub(crate) conflicts: u64,
    pub(crate) voted: u64,
    pub(crate) unknown: [u64; N_REASONS],
}

/// Called with each sample and its answer, in the order in which they are decided.
pub trait Observer {
    /// One sample is decided.
    fn decided(&mut self, analyzer: &Analyzer, decided: Decided<'_>);
}

/// A decided sample.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    /// The sample.
    pub sample: &'a Sample,
    pub(crate) attribution: &'a Attribution,
}

/// An observer that looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn decided(&mut self, _: &Analyzer, _: Decided<'_>) {}
}

/// The state of one session's analysis. Pure: it reads no file and no clock, and has no thread.
#[derive(Debug)]
pub struct Analyzer {
    config: Config,
    machine: Machine,
    events: Vec<Event>,
    samples_by_event: Vec<u64>,
    pub(crate) processes: ProcessTable,
    pub(crate) sites: SiteTable,
    pub(crate) recent_sites: RecentSites,
    pub(crate) data: DataTable,
    pub(crate) calls: CallSiteTable,
    pub(crate) names: NameTable,
    pub(crate) votes: Votes,
    /// The threads' own storage, as far as it was learned.
    pub(crate) thread_storage: ThreadStorage,
    kernel_code: KernelCode,
    made_code: MadeCode,
    pub(crate) cgroups: CgroupTable,
    /// Taken while a sample is weighed.
    pub(crate) search: Option<Box<Search>>,
    pub(crate) pending: FxHashMap<(LoadObjectIdx, Question), Vec<Sample>>,
    pub(crate) n_pending: usize,
    /// Nothing is asked of workers.
    pub(crate) is_short_of_memory: bool,
    pub(crate) requests: VecDeque<Request>,
    pub(crate) totals: Totals,
    pub(crate) counts: Counts,
    pub(crate) collected: Collected,
    /// Samples received when `collected` came: later ones are newer than it.
    pub(crate) received_at_collected: u64,
    pub(crate) warnings: Vec<String>,
    pub(crate) first_time_ns: Option<u64>,
    pub(crate) last_time_ns: u64,
}

impl Analyzer {
    /// An analyzer that has seen nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            machine: Machine::X86_64,
            events: Vec::new(),
            samples_by_event: Vec::new(),
            processes: ProcessTable::default(),
            sites: SiteTable::default(),
            recent_sites: RecentSites::default(),
            data: DataTable::default(),
            calls: CallSiteTable::default(),
            names: NameTable::default(),
            votes: Votes::default(),
            thread_storage: ThreadStorage::default(),
            kernel_code: KernelCode::default(),
            made_code: MadeCode::default(),
            cgroups: CgroupTable::default(),
            search: None,
            pending: FxHashMap::default(),
            n_pending: 0,
            is_short_of_memory: false,
            requests: VecDeque::new(),
            totals: Totals::new(config.windows),
            counts: Counts::default(),
            collected: Collected::default(),
            received_at_collected: 0,
            warnings: Vec::new(),
            first_time_ns: None,
            last_time_ns: 0,
        }
    }

    /// Takes one record in. Samples that cannot be decided yet are parked.
    pub fn apply(&mut self, record: &Record, observer: &mut dyn Observer) {
        if let Some(time_ns) = record.time_ns().filter(|time_ns| *time_ns != 0) {
            self.first_time_ns.get_or_insert(time_ns);
            self.last_time_ns = self.last_time_ns.max(time_ns);
        }
        match record {
            Record::Machine(machine) => self.machine = *machine,
            Record::Event(event) => {
                self.events.push((**event).clone());
                self.samples_by_event.push(0);
            }
            Record::Sample(sample) => {
                self.counts.received += 1;
                if let Some(count) = self.samples_by_event.get_mut(usize::from(sample.event.0)) {
                    *count += 1;
                }
                self.attempt(sample, observer);
            }
            Record::Mmap(mmap) => {
                let (start, end) = self.processes.newly_mapped(mmap);
                self.votes.forget_range(mmap.pid, start.0, end.0);
                self.processes.mmap(mmap);
                self.made_code.mmap(mmap, &self.processes);
            }
            Record::Comm(comm) => {
                if comm.is_exec {
                    self.thread_storage.forget_process(comm.pid);
                    self.made_code.forget(comm.pid);
                    self.votes.forget_process(comm.pid);
                }
                self.processes.comm(comm);
            }
            Record::Fork(fork) => {
                self.thread_storage.forget_thread(fork.pid, fork.tid);
                if fork.pid != fork.parent_pid {
                    self.votes.forget_process(fork.pid);
                }
                self.processes.fork(fork);
                self.made_code.fork(fork);
            }
            Record::Exit(exit) => {
                self.thread_storage.forget_thread(exit.pid, exit.tid);
                if exit.pid == exit.tid {
                    self.votes.forget_process(exit.pid);
                }
                self.processes.exit(exit);
            }
            Record::Namespace(namespace) => self.processes.namespace(namespace),
            Record::Cgroup(cgroup) => self.cgroups.add(cgroup),
            Record::KernelSymbol(symbol) => self.kernel_code.add(symbol),
            Record::Collected(collected) => {
                self.collected.clone_from(collected);
                self.received_at_collected = self.counts.received;
            }
            Record::Warning(text) => self.warn(text.to_string()),
            Record::Tick { time_ns } => self.totals.advance(*time_ns),
        }
    }

    /// The next question for a worker, if there is one.
    pub fn next_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Takes a worker's answer in and decides the samples that waited for it.
    pub fn answer(&mut self, response: Response, observer: &mut dyn Observer) {
        let Response { object, question, answer } = response;
        match answer {
            Answer::Open(facts) => self.set_state(object, ObjectState::Open(facts)),
            Answer::Failed(reason) => self.set_state(object, ObjectState::Failed(reason)),
            Answer::Site(site) => {
                if let Question::Site(query) = question {
                    self.add_site(object, query, *site);
                }
            }
            Answer::Data(range) => {
                if let Question::Data(place) = question {
                    self.data.insert(object, place, range);
                }
            }
            Answer::Call(call) => {
                if let Question::Call(behind) = question {
                    self.add_call(object, behind, call);
                }
            }
            Answer::CodeNames(names) => self.add_code_names(object, names),
            Answer::Unfinished => return self.ask_again(object, question),
            Answer::NotNow(delay) => {
                return self.give_up_waiting((object, question), delay, observer);
            }
        }
        for sample in &self.take_waiting((object, question)) {
            self.attempt(sample, observer);
        }
    }

    /// The samples that wait for an answer; from now on none does.
    pub(crate) fn take_waiting(&mut self, asked: (LoadObjectIdx, Question)) -> Vec<Sample> {
        let waiting = self.pending.remove(&asked).unwrap_or_default();
        self.n_pending -= waiting.len();
        waiting
    }

    /// Puts a question behind the others; the samples that wait for it go on waiting. They may have been
    /// given up.
    fn ask_again(&mut self, object: LoadObjectIdx, question: Question) {
        let is_waited_for = self.pending.contains_key(&(object, question));
        if let Some(known) = self.processes.object(object).filter(|_| is_waited_for) {
            let key = Arc::clone(&known.key);
            self.requests.push_back(Request { object, key, question });
        }
    }

    /// Samples that wait for a worker.
    #[must_use]
    pub const fn n_pending(&self) -> usize {
        self.n_pending
    }

    /// The session's events so far.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Samples received so far, by event.
    pub fn samples_by_event(&self) -> impl Iterator<Item = (&Event, u64)> {
        self.events.iter().zip(self.samples_by_event.iter().copied())
    }

    /// Adds a warning to what snapshots show.
    pub fn warn(&mut self, text: String) {
        if self.warnings.len() < limit::MAX_WARNINGS && !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    pub(crate) const fn config(&self) -> Config {
        self.config
    }

    pub(crate) const fn processes(&self) -> &ProcessTable {
        &self.processes
    }

    fn attempt(&mut self, sample: &Sample, observer: &mut dyn Observer) {
        if self.names.is_full() {
            self.forget_names();
        }
        match self.attribute(sample) {
            // Not moved: reading what was just written in other widths holds a processor up.
            Ok(ref attribution) => self.decide(sample, attribution, observer),
            Err(needs) => self.park(sample, needs, observer),
        }
    }

    fn attribute(&mut self, sample: &Sample) -> Result<Attribution, Needs> {
        if self.machine != Machine::X86_64 {
            return Ok(Attribution::unknown(Reason::UnsupportedMachine));
        }
        let kind = self.kind_of(sample);
        let event = self.events.get(usize::from(sample.event.0));
        let model = event.map_or(SkidModel::AfterOne, |event| event.skid);
        let is_kernel = !sample.is_user();
        let (ip, registers) = if is_kernel {
            match sample.user_registers.get(Register::Rip) {
                Some(ip) => (Avma(ip), &sample.user_registers),
                None => {
                    return self.by_sampled_address(sample, Attribution::unknown(Reason::Kernel));
                }
            }
        } else {
            (sample.ip, &sample.registers)
        };
        if registers.abi == RegisterAbi::Bits32 {
            return Ok(Attribution::unknown(Reason::UnsupportedMachine));
        }
        // A fault on the instruction's own address is a fetch of code, not an access of its operand.
        if kind == EventKind::PageFault && sample.addr == Some(ip) {
            let verdict = Verdict::NotMemory;
            return Ok(Attribution { verdict, ..Attribution::unknown(Reason::Unspecified) });
        }
        let skid = if is_kernel {
            match resumption::is_resumed(registers) {
                // An interrupt or a system call: the kernel's own time.
                Some(false) => {
                    return self.by_sampled_address(sample, Attribution::unknown(Reason::Kernel));
                }
                Some(true) => Skid::Exact,
                None => Skid::KernelEntry,
            }
        } else {
            let model = self.config.skid.unwrap_or(model);
            resumption::skid(model, sample, registers, self.config.skid.is_some(), kind)
        };
        let KnownCode { object, bias, site } =
            match self.site(CodePlace { pid: sample.pid, ip, skid }) {
                Ok(known) => known,
                Err(NotLocated::Needs(needs)) => return Err(needs),
                Err(NotLocated::Unknown(reason)) => {
                    if reason == Reason::JitCode
                        && let Some(needs) = self.made_code.needs(sample, ip, &mut self.processes)
                    {
                        return Err(needs);
                    }
                    // The kernel at work on an address space that is not set up yet, as in exec.
                    let reason = if is_kernel { Reason::Kernel } else { reason };
                    return self.by_sampled_address(sample, Attribution::unknown(reason));
                }
            };
        self.attribute_at(Located { sample, registers, object, bias, site })
    }

    /// What the event of a sample counts.
    pub(crate) fn kind_of(&self, sample: &Sample) -> EventKind {
        self.events.get(usize::from(sample.event.0)).map_or(EventKind::Other, |event| event.kind)
    }

    fn park(&mut self, sample: &Sample, needs: Needs, observer: &mut dyn Observer) {
        if self.is_short_of_memory || self.n_pending >= limit::MAX_PENDING_SAMPLES {
            self.decide(sample, &Attribution::unknown(Reason::OverBudget), observer);
            return;
        }
        let Needs { object, question } = needs;
        self.n_pending += 1;
        let waiting = self.pending.entry((object, question)).or_default();
        waiting.push(*sample);
        if waiting.len() == 1
            && let Some(known) = self.processes.object_mut(object)
        {
            if matches!(known.state, ObjectState::Unopened) {
                known.state = ObjectState::Opening;
            }
            let key = Arc::clone(&known.key);
            self.requests.push_back(Request { object, key, question });
        }
    }

    pub(crate) fn decide(
        &mut self,
        sample: &Sample,
        attribution: &Attribution,
        observer: &mut dyn Observer,
    ) {
        let (object, evidence) = match attribution.verdict {
            Verdict::NotMemory => {
                self.counts.not_memory += 1;
                self.totals.advance(sample.time_ns);
                observer.decided(self, Decided { sample, attribution });
                return;
            }
            Verdict::Unknown(reason) => {
                self.counts.unknown[reason as usize] += 1;
                (Totals::reason(reason), None)
            }
            Verdict::Attributed { named, evidence, .. } => {
                self.counts.attributed += 1;
                self.counts.conflicts +=
                    u64::from(evidence == dataspace_proto::sample_line::Evidence::Conflict);
                self.counts.voted += u64::from(attribution.votes != 0);
                (self.names.get(named).charged_to, Some(evidence))
            }
        };
        let scope = match attribution.site {
            Some(site) => Some(&self.sites.get(site).scope),
            None => named_code(&self.kernel_code, &self.made_code, sample),
        };
        let charge = Charge { sample, access: attribution.access, evidence, scope };
        self.totals.charge(object, &charge);
        observer.decided(self, Decided { sample, attribution });
    }

    /// Where a sample's code is.
    pub(crate) fn scope(&self, sample: &Sample, attribution: &Attribution) -> Option<&Arc<Scope>> {
        match attribution.site {
            Some(site) => Some(&self.sites.get(site).scope),
            None => named_code(&self.kernel_code, &self.made_code, sample),
        }
    }

    fn add_code_names(&mut self, object: LoadObjectIdx, names: Option<Names>) {
        let Some(key) = self.processes.object(object).map(|known| Arc::clone(&known.key)) else {
            return;
        };
        let Some(names) = names else { return };
        if names.is_cut {
            self.warn(format!(
                "process {} names more code than is kept: some of it has no function",
                key.pid
            ));
        }
        self.made_code.answer(key.pid, object, names);
    }

    fn set_state(&mut self, object: LoadObjectIdx, state: ObjectState) {
        if let ObjectState::Failed(reason @ (Reason::ObjectChanged | Reason::ObjectMissing)) = state
            && let Some(known) = self.processes.object(object)
            // Another kernel's vdso is never at hand, and nobody can do anything about it.
            && &*known.key.path != b"[vdso]"
        {
            let path = String::from_utf8_lossy(&known.key.path).into_owned();
            self.warn(format!("{path}: {}", reason.sentence()));
        }
        if let Some(known) = self.processes.object_mut(object) {
            known.state = state;
        }
    }

    fn add_site(&mut self, object: LoadObjectIdx, query: SiteQuery, site: Site) {
        if self.sites.is_full() {
            self.sites.forget();
            self.recent_sites.forget();
            self.forget_names();
        }
        self.sites.insert(object, query, site);
    }

    fn add_call(&mut self, object: LoadObjectIdx, behind: Svma, call: Arc<CallSite>) {
        if self.calls.is_full() {
            self.calls.forget();
            self.forget_names();
        }
        self.calls.insert(object, behind, call);
    }

    /// Starts anew: names are made again as samples come. Not to be called while an index is held.
    pub(crate) fn forget_names(&mut self) {
        self.names.forget();
        self.sites.forget_names();
    }
}
