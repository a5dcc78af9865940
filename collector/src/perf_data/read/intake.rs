//! Meaning of each raw record: samples and side band go to the queue, the rest changes how later
//! ones are read.

use super::attr::Attr;
use super::build_id::KnownBuildIds;
use super::event_table::EventTable;
use super::feature;
use super::group_count::{self, GroupCounts};
use super::home::Home;
use super::order::Order;
use super::side_band;
use super::tally::RecordingTally;
use super::tracing_data;
use crate::event::meaning;
use crate::perf_data::format::bytes::until_nul;
use crate::perf_data::format::feature as table;
use crate::perf_data::format::user_record as user;
use crate::record::decode::{self, Cursor, Endian};
use crate::record::ring::RawRecord;
use crate::record::side_band::{is_known, task_record};
use crate::record::undecoded::Undecoded;
use dataspace_proto::accounting::Collected;
use dataspace_proto::event::Machine;
use dataspace_proto::record::{Record, Sample};
use perf_event_open_sys::bindings as abi;
use std::collections::VecDeque;

/// `PERF_RECORD_MISC_LOST_SAMPLES_BPF`: a filter dropped them on purpose.
const MISC_LOST_SAMPLES_BPF: u16 = 1 << 15;
/// So often the counts go out.
const SAMPLES_PER_COLLECTED: u64 = 1 << 14;

/// Everything that was learned from the recording so far.
pub(super) struct Intake {
    endian: Endian,
    events: EventTable,
    build_ids: KnownBuildIds,
    order: Order,
    tally: RecordingTally,
    /// Records that go out before anything in the queue.
    notices: VecDeque<Record>,
    machine: Machine,
    is_machine_announced: bool,
    /// The time of the last record that had one.
    last_time_ns: u64,
    undecoded: Undecoded,
    group_counts: GroupCounts,
    home: Home,
    /// The machine's nodes were told: they are told once.
    has_nodes: bool,
    has_warned_of_attr: bool,
    is_finished: bool,
}

impl Intake {
    pub(super) fn new(endian: Endian) -> Self {
        Self {
            endian,
            events: EventTable::new(endian),
            build_ids: KnownBuildIds::default(),
            order: Order::new(),
            tally: RecordingTally::default(),
            notices: VecDeque::new(),
            machine: Machine::X86_64,
            is_machine_announced: false,
            last_time_ns: 0,
            undecoded: Undecoded::default(),
            group_counts: GroupCounts::default(),
            home: Home::default(),
            has_warned_of_attr: false,
            has_nodes: false,
            is_finished: false,
        }
    }

    pub(super) const fn events_mut(&mut self) -> &mut EventTable {
        &mut self.events
    }

    pub(super) fn warn(&mut self, text: String) {
        self.notices.push_back(Record::Warning(text.into()));
    }

    /// Takes in one feature section.
    pub(super) fn feature(&mut self, id: u32, section: &[u8]) {
        match id {
            table::BUILD_ID => self.build_ids.add_section(section, self.endian),
            table::ARCH => {
                if let Some(machine) = feature::machine(section, self.endian) {
                    self.set_machine(machine);
                }
            }
            table::EVENT_DESC => {
                self.events.set_descriptions(feature::event_descriptions(section, self.endian));
            }
            table::NUMA_TOPOLOGY if !self.has_nodes => {
                self.has_nodes = true;
                self.notices.push_back(Record::Nodes(feature::nodes(section, self.endian)));
            }
            table::PMU_MAPPINGS => {
                self.events.set_pmu_names(feature::pmu_names(section, self.endian));
            }
            _ => {}
        }
    }

    fn set_machine(&mut self, machine: Machine) {
        self.is_machine_announced &= machine == self.machine;
        self.machine = machine;
        self.events.set_machine(machine);
    }

    /// Takes in one record.
    pub(super) fn record(&mut self, record: &RawRecord<'_>) {
        match record.kind {
            abi::PERF_RECORD_SAMPLE => self.sample(record),
            abi::PERF_RECORD_MMAP
            | abi::PERF_RECORD_MMAP2
            | abi::PERF_RECORD_COMM
            | abi::PERF_RECORD_FORK
            | abi::PERF_RECORD_EXIT
            | abi::PERF_RECORD_NAMESPACES
            | abi::PERF_RECORD_CGROUP
            | abi::PERF_RECORD_KSYMBOL => self.side_band(record),
            abi::PERF_RECORD_LOST => {
                let mut cursor = Cursor::new(record.payload, self.endian);
                let n = cursor.u64().and_then(|_id| cursor.u64()).unwrap_or(0);
                self.tally.lose_records(n);
            }
            abi::PERF_RECORD_LOST_SAMPLES if record.misc & MISC_LOST_SAMPLES_BPF == 0 => {
                let n = Cursor::new(record.payload, self.endian).u64().unwrap_or(0);
                self.tally.lose_samples(n);
            }
            abi::PERF_RECORD_THROTTLE | abi::PERF_RECORD_UNTHROTTLE => self.throttling(record),
            abi::PERF_RECORD_AUX => self.undecoded.aux(record, self.endian),
            kind if kind < user::FIRST => self.other(kind),
            _ => self.user_record(record),
        }
    }

    fn user_record(&mut self, record: &RawRecord<'_>) {
        let mut cursor = Cursor::new(record.payload, self.endian);
        match record.kind {
            user::HEADER_ATTR => self.attr(record.payload),
            user::HEADER_EVENT_TYPE => {
                if let Some(id) = cursor.u64() {
                    self.events.add_tracepoint_name(id, until_nul(cursor.rest()));
                }
            }
            user::HEADER_BUILD_ID => {
                self.build_ids.add_record(record.misc, record.payload, self.endian);
            }
            user::FINISHED_ROUND => self.order.finish_round(),
            user::AUXTRACE_INFO => self.undecoded.auxtrace_info(record, self.endian),
            user::HEADER_TRACING_DATA => {
                let data = record.payload.get(size_of::<u32>()..).unwrap_or_default();
                let events = &mut self.events;
                let _ =
                    tracing_data::names(data, &mut |id, name| events.add_tracepoint_name(id, name));
            }
            user::STAT => self.tally.n_counts += 1,
            user::AUXTRACE => self.undecoded.auxtrace(record, self.endian),
            user::EVENT_UPDATE => {
                if let (Some(user::UPDATE_NAME), Some(id)) = (cursor.u64(), cursor.u64()) {
                    self.events.set_name(id, until_nul(cursor.rest()));
                }
            }
            user::HEADER_FEATURE => {
                if let Some(id) = cursor.u64().and_then(|id| u32::try_from(id).ok()) {
                    self.feature(id, cursor.rest());
                }
            }
            user::COMPRESSED | user::COMPRESSED2 => {} // of nothing: they come as what they contain
            kind if user::NOT_NEEDED.contains(&kind) => self.tally.n_ignored += 1,
            kind => self.undecoded.unknown(kind),
        }
    }

    /// A record of the kernel's that is of no use here, or that is not known.
    fn other(&mut self, kind: u32) {
        if is_known(kind) {
            self.tally.n_ignored += 1;
        } else {
            self.undecoded.unknown(kind);
        }
    }

    /// `PERF_RECORD_HEADER_ATTR`: the attributes, then ids to the end.
    fn attr(&mut self, payload: &[u8]) {
        let Some((attr, len)) = Attr::parse(payload, self.endian) else {
            if !self.has_warned_of_attr {
                self.has_warned_of_attr = true;
                self.warn("an event's attributes are damaged: its samples are missing".to_owned());
            }
            return;
        };
        let mut ids = Cursor::new(payload.get(len..).unwrap_or_default(), self.endian);
        self.events.add(attr, std::iter::from_fn(move || ids.u64()));
    }

    fn sample(&mut self, record: &RawRecord<'_>) {
        match self.decode_sample(record) {
            Some(n_samples) => self.tally.n_seen += n_samples,
            None => {
                self.tally.n_seen += 1;
                self.tally.n_undecodable += 1;
            }
        }
    }

    /// The number of samples that it is.
    fn decode_sample(&mut self, record: &RawRecord<'_>) -> Option<u64> {
        let number = self.events.entry_of_sample(record.payload)?;
        let event = self.events.index(number)?;
        let attr = self.events.attr(number)?;
        let (layout, inherits) = (self.events.layout(attr), attr.inherits());
        let decoded = decode::sample(&layout, record.misc, record.payload).ok()?;
        let mut sample = decoded.sample;
        sample.event = event;
        let asked = || if attr.is_freq() { 1 } else { attr.sample_period };
        sample.period = meaning::weight(decoded.period, asked);
        if attr.kind_of_type().is_some_and(|kind| !meaning::has_address(kind)) {
            sample.addr = None;
        }
        let time = attr.samples(abi::PERF_SAMPLE_TIME).then_some(sample.time_ns);
        let key = self.time_key(time);
        sample.time_ns = if time.is_some() { sample.time_ns } else { self.last_time_ns };
        let Some(values) = group_count::values(&layout, record.payload) else {
            self.order.push(key, Record::Sample(sample));
            return Some(1);
        };
        // Where threads inherit the event each has counts of its own under one id.
        let tid = inherits.then_some(sample.tid);
        let mut n_samples = 0;
        for (id, value) in values {
            let period = self.group_counts.growth(id, tid, value);
            let member = self.events.entry_with_id(id).and_then(|entry| self.events.index(entry));
            if let Some(event) = member.filter(|_| period > 0) {
                self.order.push(key, Record::Sample(Sample { event, period, ..sample }));
                n_samples += 1;
            }
        }
        Some(n_samples)
    }

    /// Place of a record of this time; one without stays where it is in the file.
    fn time_key(&mut self, time_ns: Option<u64>) -> u64 {
        match time_ns {
            None | Some(u64::MAX) => self.last_time_ns,
            Some(0) => 0,
            Some(time_ns) => {
                self.last_time_ns = time_ns;
                time_ns
            }
        }
    }

    fn record_time_ns(&self, record: &RawRecord<'_>) -> Option<u64> {
        self.events
            .side_band_layout(record.payload)
            .and_then(|layout| decode::sample_id_time_ns(&layout, record.payload))
            .or_else(|| crate::record::side_band::own_time_ns(record, self.endian))
    }

    fn side_band(&mut self, record: &RawRecord<'_>) {
        let time = self.record_time_ns(record);
        let key = self.time_key(time);
        match task_record(record, self.endian, key) {
            Some(record) => self.order.push(key, record),
            None => self.tally.n_ignored += 1,
        }
    }

    fn throttling(&mut self, record: &RawRecord<'_>) {
        let mut cursor = Cursor::new(record.payload, self.endian);
        let (Some(time_ns), Some(id)) = (cursor.u64(), cursor.u64()) else {
            return;
        };
        if record.kind == abi::PERF_RECORD_THROTTLE {
            self.tally.throttle(id, time_ns);
        } else {
            self.tally.unthrottle(id, time_ns);
        }
    }

    /// Nothing more comes.
    pub(super) fn finish(&mut self) {
        self.is_finished = true;
        self.order.finish();
        if self.tally.is_lost_approximate(self.events.counts_lost_samples()) {
            self.warn(format!(
                "{} records were lost; the recording does not tell how many of them were samples, \
                 and all are counted as such",
                self.n_lost()
            ));
        }
        if self.tally.n_counts > 0 {
            let n_counts = self.tally.n_counts;
            self.warn(format!(
                "the recording is one of 'perf stat record': it holds counts ({n_counts}), which are not shown; \
                 samples are what 'perf record' makes"
            ));
        }
        for warning in self.undecoded.warnings() {
            self.warn(warning);
        }
        if self.tally.n_undecodable > 0 {
            self.warn(format!(
                "{} samples could not be decoded: they fit no event of the recording",
                self.tally.n_undecodable
            ));
        }
        tracing::debug!(n_ignored = self.tally.n_ignored, "end of the recording");
    }

    /// The next record that can go out.
    pub(super) fn pop(&mut self) -> Option<Record> {
        if let Some(notice) = self.notices.pop_front() {
            return Some(notice);
        }
        if !self.order.is_ready() && !self.is_finished {
            return None;
        }
        if !self.is_machine_announced {
            self.is_machine_announced = true;
            return Some(Record::Machine(self.machine));
        }
        if let Some(event) = self.events.announce() {
            return Some(Record::Event(Box::new(event)));
        }
        let mut record = self.order.pop()?;
        side_band::complete(&mut record, &mut self.home, &self.build_ids);
        if let Record::Sample(_) = record {
            self.tally.n_delivered += 1;
            if self.tally.n_delivered.is_multiple_of(SAMPLES_PER_COLLECTED) {
                let collected = Box::new(self.collected());
                self.notices.push_back(Record::Collected(collected));
            }
        }
        Some(record)
    }

    fn n_lost(&self) -> u64 {
        self.tally.n_lost(self.events.counts_lost_samples())
    }

    pub(super) fn collected(&self) -> Collected {
        self.tally.collected(self.n_lost(), self.order.n_samples(), self.order.n_late())
    }
}
