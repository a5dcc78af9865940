//! The analyzer: records in, questions to workers out, attributions charged to totals.

use crate::attribution::verdict::{Attribution, Verdict, Wait};
use crate::attribution::world::{Meaning, Paths, World};
use crate::bytes::file::LoadObjectIdx;
use crate::history::store::History;
use crate::history::touched_data::TouchedData;
use crate::index::code_names::Names;
use crate::index::question::{Answer, Needs, Question, Request, Response};
use crate::limit;
use crate::process::cgroup_table::CgroupTable;
use crate::process::table::ObjectState;
use crate::session::charge_table::{Account, ChargeTable};
use crate::session::parking::Parking;
use crate::session::undescribed::UndescribedObjects;
use crate::totals::measured::Measured;
use crate::totals::rolling::Totals;
use crate::totals::sums::Charge;
use dataspace_proto::accounting::Collected;
use dataspace_proto::event::{Event, EventKind, Machine, SkidModel};
use dataspace_proto::reason::{N_REASONS, Reason};
use dataspace_proto::record::{Record, Sample};
use dataspace_proto::sample_line::Evidence;
use dataspace_proto::window::WindowLengths;
use std::collections::VecDeque;
use std::sync::Arc;

/// Time that a sample waits for others that tell which of its possible triggers is likely.
const WEIGHING_TIME_NS: u64 = 1_000_000_000;

/// Settings of the analysis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// A skid model for all events, instead of each one's own.
    pub skid: Option<SkidModel>,
    /// The paths that may answer.
    pub paths: Paths,
    /// The windows that metrics are summed over.
    pub windows: WindowLengths,
    /// Most bytes of the history; 0 for none.
    pub history_bytes: u64,
    /// The history has source lines.
    pub has_lines: bool,
}

/// Counts of samples by where they went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) received: u64,
    pub(crate) attributed: u64,
    pub(crate) not_memory: u64,
    pub(crate) conflicts: u64,
    pub(crate) voted: u64,
    pub(crate) by_frequency: u64,
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
    pub(super) config: Config,
    machine: Machine,
    /// NUMA nodes by CPU.
    pub(crate) nodes: Arc<[u16]>,
    events: Vec<Event>,
    /// The meanings of their samples.
    meanings: Vec<Meaning>,
    /// The meaning of samples of an event that nothing was said of.
    undeclared: Meaning,
    /// Some of them are breakpoints.
    pub(super) is_watching: bool,
    samples_by_event: Vec<u64>,
    pub(crate) world: World,
    /// The objects that the samples of each name are charged to.
    charges: ChargeTable,
    pub(crate) cgroups: CgroupTable,
    pub(crate) parked: Parking,
    /// Samples that wait for others to tell which of their possible triggers is likely, in order of time.
    pub(crate) unweighed: VecDeque<Sample>,
    /// No sample waits for others any more.
    is_settled: bool,
    /// Nothing is asked of workers.
    pub(crate) is_short_of_memory: bool,
    pub(crate) totals: Totals,
    /// Figures that its samples have at all.
    pub(crate) measured: Measured,
    pub(crate) history: History,
    pub(crate) counts: Counts,
    pub(crate) collected: Collected,
    /// Samples received when `collected` came: later ones are newer than it.
    pub(crate) received_at_collected: u64,
    pub(crate) undescribed: UndescribedObjects,
    pub(crate) warnings: Vec<String>,
    pub(crate) first_time_ns: Option<u64>,
    pub(crate) last_time_ns: u64,
}

/// The meaning of samples of an event.
const fn meaning(config: &Config, kind: EventKind, own: SkidModel) -> Meaning {
    let skid = match config.skid {
        Some(chosen) => chosen,
        None => own,
    };
    Meaning { kind, skid, is_forced: config.skid.is_some() }
}

impl Analyzer {
    /// An analyzer that has seen nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            machine: Machine::X86_64,
            nodes: Arc::default(),
            events: Vec::new(),
            meanings: Vec::new(),
            undeclared: meaning(&config, EventKind::Other, SkidModel::AfterOne),
            is_watching: false,
            samples_by_event: Vec::new(),
            world: World::new(config.paths),
            charges: ChargeTable::default(),
            cgroups: CgroupTable::default(),
            parked: Parking::default(),
            unweighed: VecDeque::new(),
            is_settled: false,
            is_short_of_memory: false,
            totals: Totals::new(config.windows),
            measured: Measured::default(),
            history: History::new(config.history_bytes),
            counts: Counts::default(),
            collected: Collected::default(),
            received_at_collected: 0,
            undescribed: UndescribedObjects::default(),
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
            self.weigh(observer);
        }
        match record {
            Record::Machine(machine) => self.machine = *machine,
            Record::Nodes(nodes) => self.nodes = Arc::from(&**nodes),
            Record::Event(event) => {
                self.is_watching |= matches!(event.kind, EventKind::Breakpoint { .. });
                self.meanings.push(meaning(&self.config, event.kind, event.skid));
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
            Record::Mmap(mmap) => self.world.mmap(mmap),
            Record::Comm(comm) => {
                self.world.comm(comm);
                self.history.tasks.comm(comm);
            }
            Record::Fork(fork) => {
                self.world.fork(fork);
                self.history.tasks.fork(fork);
            }
            Record::Exit(exit) => self.world.exit(exit),
            Record::Namespace(namespace) => self.world.processes.namespace(namespace),
            Record::Cgroup(cgroup) => self.cgroups.add(cgroup),
            Record::KernelSymbol(symbol) => self.world.kernel_code.add(symbol),
            Record::Collected(collected) => {
                self.collected.clone_from(collected);
                self.received_at_collected = self.counts.received;
            }
            Record::Warning(text) => self.warn(text.to_string()),
            // The session describes its target itself.
            Record::Target(_) => {}
            Record::Tick { time_ns } => self.totals.advance(*time_ns),
        }
    }

    /// Number of questions about samples that no worker has been asked yet.
    #[must_use]
    pub fn n_requests(&self) -> usize {
        self.parked.n_requests()
    }

    /// The next question for a worker, if there is one.
    pub fn next_request(&mut self) -> Option<Request> {
        if let Some(request) = self.parked.next_request() {
            return Some(request);
        }
        while self.config.has_lines {
            let (object, at) = self.history.places.next_without_line()?;
            let question = Question::Source(at);
            match self.world.processes.object(object) {
                Some(known) => {
                    let key = Arc::clone(&known.key);
                    return Some(Request { object, key, question });
                }
                None => {
                    let gone = Answer::Failed(Reason::MappingGone);
                    self.history.places.answer((object, at), gone);
                }
            }
        }
        None
    }

    /// Has the lines of all places found out, of those that are in the history and those to come.
    pub const fn want_lines(&mut self) {
        self.config.has_lines = true;
    }

    /// Tells whether lines are found out.
    pub(crate) const fn has_lines(&self) -> bool {
        self.config.has_lines
    }

    /// Places in code whose lines are being found out.
    #[must_use]
    pub fn n_lines_open(&self) -> usize {
        if self.config.has_lines { self.history.places.n_without_line() } else { 0 }
    }

    /// Takes a worker's answer in and decides the samples that waited for it.
    pub fn answer(&mut self, response: Response, observer: &mut dyn Observer) {
        let Response { object, question, answer } = response;
        if let Question::Source(at) = question {
            // No sample waits for it.
            return self.history.places.answer((object, at), answer);
        }
        match (answer, question) {
            (Answer::Open(facts), _) => self.set_state(object, ObjectState::Open(facts)),
            (Answer::Failed(reason), _) => self.set_state(object, ObjectState::Failed(reason)),
            (Answer::Site(site), Question::Site(query)) => {
                if site.is_over_budget() {
                    self.warn_of_large_code(object, site.scope.function.as_deref());
                }
                self.world.add_site(object, query, *site);
            }
            (Answer::Data(range), Question::Data(place)) => {
                self.world.data.insert(object, place, range);
            }
            (Answer::Call(call), Question::Call(return_address)) => {
                self.world.add_call(object, return_address, call);
            }
            (Answer::CallForm(form), Question::CallForm(return_address)) => {
                self.world.call_forms.insert(object, return_address, form);
            }
            (Answer::WaysIn(ways), Question::WaysIn(start)) => {
                self.world.ways_in.insert(object, start, ways);
            }
            // An answer to another question than was asked.
            (
                Answer::Site(_)
                | Answer::Data(_)
                | Answer::Call(_)
                | Answer::CallForm(_)
                | Answer::WaysIn(_)
                | Answer::Source(_),
                _,
            ) => {}
            (Answer::CodeNames(names), _) => self.add_code_names(object, names),
            (Answer::Unfinished, _) => {
                return self.parked.ask_again(&self.world.processes, (object, question));
            }
            (Answer::NotNow(delay), _) => {
                return self.give_up_waiting((object, question), delay, observer);
            }
        }
        for sample in &self.parked.take((object, question)) {
            self.attempt(sample, observer);
        }
    }

    /// Samples that wait for a worker, or for other samples.
    #[must_use]
    pub fn n_pending(&self) -> usize {
        self.parked.n_samples() + self.unweighed.len()
    }

    /// Tells whether the next sample that waits would be one too many.
    fn is_full(&self) -> bool {
        self.n_pending() >= limit::MAX_PENDING_SAMPLES
    }

    /// Time of the oldest sample that waits for others.
    #[must_use]
    pub fn oldest_unweighed_ns(&self) -> Option<u64> {
        self.unweighed.front().map(|sample| sample.time_ns)
    }

    /// No more samples come: those that wait for others are decided, unless a worker has to be asked first.
    pub fn settle(&mut self, observer: &mut dyn Observer) {
        self.is_settled = true;
        self.weigh(observer);
        self.parked.hurry();
    }

    /// Decides the samples that have waited long enough for others.
    fn weigh(&mut self, observer: &mut dyn Observer) {
        while let Some(sample) = self.unweighed.front().filter(|sample| self.is_last(sample)) {
            let sample = *sample;
            self.unweighed.pop_front();
            self.attempt(&sample, observer);
        }
    }

    /// Tells whether a sample waits for no others any more.
    fn is_last(&self, sample: &Sample) -> bool {
        let waited_ns = self.last_time_ns.saturating_sub(sample.time_ns);
        self.is_settled || waited_ns >= WEIGHING_TIME_NS
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

    fn attempt(&mut self, sample: &Sample, observer: &mut dyn Observer) {
        if self.world.names.is_full() {
            self.world.forget_names();
        }
        if self.machine != Machine::X86_64 {
            let unsupported = Attribution::unknown(Reason::UnsupportedMachine);
            return self.decide(sample, &unsupported, observer);
        }
        let is_last = self.is_short_of_memory || self.is_full() || self.is_last(sample);
        let meaning = self.meanings.get(usize::from(sample.event.0)).unwrap_or(&self.undeclared);
        let mut answer = Attribution::unknown(Reason::Unspecified);
        match self.world.attribute(sample, meaning, is_last, &mut answer) {
            Ok(()) => {
                if let Some(site) = answer.site.filter(|_| !self.is_last(sample)) {
                    self.world.sites.count(site);
                }
                self.decide(sample, &answer, observer);
            }
            Err(Wait::Answer(needs)) => self.park(sample, needs, observer),
            Err(Wait::Samples(site)) => {
                self.world.sites.count(site);
                self.unweighed.push_back(*sample);
            }
        }
    }

    fn park(&mut self, sample: &Sample, needs: Needs, observer: &mut dyn Observer) {
        if self.is_short_of_memory || self.is_full() {
            self.decide(sample, &Attribution::unknown(Reason::OverBudget), observer);
            return;
        }
        self.parked.park(&mut self.world.processes, sample, needs);
    }

    pub(crate) fn decide(
        &mut self,
        sample: &Sample,
        attribution: &Attribution,
        observer: &mut dyn Observer,
    ) {
        let charged = match attribution.verdict {
            Verdict::NotMemory => {
                self.counts.not_memory += 1;
                None
            }
            Verdict::Unknown(reason) => {
                self.counts.unknown[reason as usize] += 1;
                if reason != Reason::Kernel {
                    self.undescribed.count(sample, attribution, &self.world);
                }
                Some((self.charges.account_of(reason, &self.totals, &mut self.history), None))
            }
            Verdict::Attributed(claim) => {
                let evidence = claim.grounds.evidence();
                self.counts.attributed += 1;
                self.counts.conflicts += u64::from(evidence == Evidence::Conflict);
                self.counts.voted += u64::from(claim.grounds.votes != 0);
                self.counts.by_frequency += u64::from(claim.grounds.is_by_frequency);
                let (names, totals) = (&self.world.names, &mut self.totals);
                let account = self.charges.account(claim.named, names, totals, &mut self.history);
                Some((account, Some(evidence)))
            }
        };
        let touched = match charged {
            Some((Account { object, touched }, evidence)) => {
                let scope = self.world.scope(sample, attribution);
                let charge = Charge { sample, access: attribution.access, evidence, scope };
                self.totals.charge(*object, &charge);
                self.measured.note(sample);
                (touched, evidence)
            }
            None => {
                self.totals.advance(sample.time_ns);
                (&TouchedData::NOTHING, None)
            }
        };
        if self.history.is_kept() {
            let (world, cgroups) = (&mut self.world, &self.cgroups);
            self.history.append(sample, attribution, touched, world, cgroups);
            self.complete(sample, attribution);
        }
        observer.decided(self, Decided { sample, attribution });
    }

    fn add_code_names(&mut self, object: LoadObjectIdx, names: Option<Names>) {
        let Some(key) = self.world.processes.object(object).map(|known| Arc::clone(&known.key))
        else {
            return;
        };
        let Some(names) = names else { return };
        if names.is_cut {
            self.warn(format!(
                "process {} names more code than is kept: some of it has no function",
                key.pid
            ));
        }
        self.world.made_code.answer(key.pid, object, names);
    }

    fn set_state(&mut self, object: LoadObjectIdx, state: ObjectState) {
        if let ObjectState::Failed(reason @ (Reason::ObjectChanged | Reason::ObjectMissing)) = state
            && let Some(known) = self.world.processes.object(object)
            // Another kernel's vdso is never at hand, and nobody can do anything about it.
            && &*known.key.path != b"[vdso]"
        {
            let path = known.key.path_text().into_owned();
            self.warn(format!("{path}: {}", reason.sentence()));
        }
        if let Some(known) = self.world.processes.object_mut(object) {
            known.state = state;
        }
    }
}
