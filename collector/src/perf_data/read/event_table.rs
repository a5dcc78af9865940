//! The events of a recording: whose a record is, how it is laid out, which are announced.

use super::attr::Attr;
use super::event;
use super::feature::{self, EventDescription};
use crate::event::meaning;
use crate::record::decode::{self, Cursor, Endian, SampleLayout};
use dataspace_proto::event::{Event, EventIdx, Machine};
use perf_event_open_sys::bindings as abi;
use std::collections::HashMap;

/// An [`EventIdx`] has 16 bits.
const MAX_EVENTS: usize = 1 << 16;
/// Ids are one for each event and CPU or thread: 8,192 CPUs with 512 events each.
const MAX_IDS: usize = 1 << 22;
/// Tracepoint names of recorders before Linux 3.3; a kernel has some thousands.
const MAX_TRACEPOINT_NAMES: usize = 1 << 16;

/// One event.
#[derive(Debug)]
struct RecordedEvent {
    attr: Attr,
    name: Option<Box<str>>,
    /// Its announcement.
    idx: Option<EventIdx>,
}

/// Every event, and which of them an id belongs to.
#[derive(Debug)]
pub(super) struct EventTable {
    endian: Endian,
    machine: Machine,
    entries: Vec<RecordedEvent>,
    entry_by_id: HashMap<u64, usize>,
    /// Place of a sample's id, in every layout that has one.
    id_offset: Option<usize>,
    n_sampling: usize,
    last_sampling: usize,
    counts_lost_samples: bool,
    tracepoint_names: HashMap<u64, Box<str>>,
    pmu_names: HashMap<u32, Box<str>>,
    /// The number of the PMU by which AMD samples fetches.
    fetch_pmu: Option<u32>,
    /// Entries in the order of their [`EventIdx`].
    indexed: Vec<usize>,
    n_announced: usize,
}

impl EventTable {
    pub(super) fn new(endian: Endian) -> Self {
        Self {
            endian,
            machine: Machine::X86_64,
            entries: Vec::new(),
            entry_by_id: HashMap::new(),
            id_offset: None,
            n_sampling: 0,
            last_sampling: 0,
            counts_lost_samples: false,
            tracepoint_names: HashMap::new(),
            pmu_names: HashMap::new(),
            fetch_pmu: None,
            indexed: Vec::new(),
            n_announced: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an event with its ids; one that is there already is not added again, as when a pipe
    /// was made into a file and its attributes stand in both places.
    pub(super) fn add(&mut self, attr: Attr, ids: impl Iterator<Item = u64>) {
        let mut ids = ids.peekable();
        let known = ids.peek().and_then(|id| self.entry_by_id.get(id).copied());
        if let Some(entry) = known.filter(|&entry| self.attr(entry) == Some(&attr)) {
            return self.add_ids(entry, ids);
        }
        if self.entries.len() >= MAX_EVENTS {
            return;
        }
        let entry = self.entries.len();
        self.id_offset = self.id_offset.or_else(|| decode::sample_id_offset(attr.sample_type));
        self.counts_lost_samples |= attr.counts_lost_samples();
        if attr.is_sampling() {
            self.n_sampling += 1;
            self.last_sampling = entry;
        }
        self.entries.push(RecordedEvent { attr, name: None, idx: None });
        self.add_ids(entry, ids);
    }

    fn add_ids(&mut self, entry: usize, ids: impl Iterator<Item = u64>) {
        let room = MAX_IDS.saturating_sub(self.entry_by_id.len());
        for id in ids.take(room) {
            self.entry_by_id.insert(id, entry);
        }
    }

    /// The instruction set decides which registers samples have.
    pub(super) const fn set_machine(&mut self, machine: Machine) {
        self.machine = machine;
    }

    pub(super) fn set_pmu_names(&mut self, names: HashMap<u32, Box<str>>) {
        let fetch_pmu = names.iter().find(|(_, name)| &***name == meaning::IBS_FETCH);
        self.fetch_pmu = fetch_pmu.map(|(kind, _)| *kind).or(self.fetch_pmu);
        self.pmu_names = names;
    }

    /// `HEADER_EVENT_TYPE`, which only tells the names of tracepoints.
    pub(super) fn add_tracepoint_name(&mut self, id: u64, name: &[u8]) {
        if self.tracepoint_names.len() < MAX_TRACEPOINT_NAMES && !name.is_empty() {
            self.tracepoint_names.insert(id, feature::name(name));
        }
    }

    /// `PERF_EVENT_UPDATE__NAME`.
    pub(super) fn set_name(&mut self, id: u64, name: &[u8]) {
        let entry = self.entry_by_id.get(&id).copied();
        let entry = entry.or_else(|| (self.entries.len() == 1).then_some(0));
        if let Some(entry) = entry.and_then(|entry| self.entries.get_mut(entry)) {
            entry.name = Some(feature::name(name));
        }
    }

    /// `HEADER_EVENT_DESC`: its order is that of the events, unless its ids say otherwise.
    pub(super) fn set_descriptions(&mut self, descriptions: Vec<EventDescription>) {
        for (position, description) in descriptions.into_iter().enumerate() {
            let by_id = description.ids.iter().find_map(|id| self.entry_by_id.get(id));
            let entry = by_id.copied().unwrap_or(position);
            if let Some(place) = self.entries.get_mut(entry) {
                place.name = Some(description.name);
                self.add_ids(entry, description.ids.into_iter());
            }
        }
    }

    /// Tells whether the kernel counts lost samples apart from other lost records.
    pub(super) const fn counts_lost_samples(&self) -> bool {
        self.counts_lost_samples
    }

    /// The event of a sample, if it can be told.
    pub(super) fn entry_of_sample(&self, payload: &[u8]) -> Option<usize> {
        if self.entries.len() == 1 {
            return Some(0);
        }
        let id = self
            .id_offset
            .and_then(|offset| Cursor::new(payload.get(offset..)?, self.endian).u64());
        id.and_then(|id| self.entry_by_id.get(&id).copied()).or_else(|| self.only_sampling_entry())
    }

    /// The event with this id.
    pub(super) fn entry_with_id(&self, id: u64) -> Option<usize> {
        self.entry_by_id.get(&id).copied()
    }

    /// Without ids there is no doubt only if a single event samples.
    fn only_sampling_entry(&self) -> Option<usize> {
        (self.n_sampling == 1).then_some(self.last_sampling)
    }

    pub(super) fn attr(&self, entry: usize) -> Option<&Attr> {
        self.entries.get(entry).map(|entry| &entry.attr)
    }

    /// Layout of records of an event with these attributes.
    pub(super) fn layout(&self, attr: &Attr) -> SampleLayout {
        let has_fetch = self.fetch_pmu == Some(attr.kind);
        SampleLayout { has_fetch, ..attr.layout(self.endian, self.machine) }
    }

    /// The layout of a side-band record's trailing ids. Where events differ in it they have
    /// `PERF_SAMPLE_IDENTIFIER`, which is then the last word of every record.
    pub(super) fn side_band_layout(&self, payload: &[u8]) -> Option<SampleLayout> {
        let first = self.entries.first()?;
        if self.entries.len() > 1 && first.attr.samples(abi::PERF_SAMPLE_IDENTIFIER) {
            let at = payload.len().checked_sub(8)?;
            let id = Cursor::new(payload.get(at..)?, self.endian).u64()?;
            let entry = self.entry_by_id.get(&id).and_then(|&entry| self.entries.get(entry));
            return Some(self.layout(&entry.unwrap_or(first).attr));
        }
        Some(self.layout(&first.attr))
    }

    /// Index under which samples of `entry` are announced; every event that samples gets its index before
    /// the first of them is used. A dummy has none.
    pub(super) fn index(&mut self, entry: usize) -> Option<EventIdx> {
        if self.indexed.is_empty() {
            self.index_sampling_entries();
        }
        let place = self.entries.get_mut(entry)?;
        if place.idx.is_none() && !place.attr.is_dummy() {
            place.idx = Some(EventIdx(u16::try_from(self.indexed.len()).ok()?));
            self.indexed.push(entry);
        }
        place.idx
    }

    fn index_sampling_entries(&mut self) {
        for (number, entry) in self.entries.iter_mut().enumerate() {
            let samples = entry.attr.is_sampling();
            let Some(idx) = u16::try_from(self.indexed.len()).ok().filter(|_| samples) else {
                continue;
            };
            entry.idx = Some(EventIdx(idx));
            self.indexed.push(number);
        }
    }

    /// The next event to announce.
    pub(super) fn announce(&mut self) -> Option<Event> {
        if self.indexed.is_empty() {
            self.index_sampling_entries();
        }
        let entry = self.entries.get(*self.indexed.get(self.n_announced)?)?;
        self.n_announced += 1;
        let is_tracepoint = entry.attr.kind == abi::PERF_TYPE_TRACEPOINT;
        let by_type = self.tracepoint_names.get(&entry.attr.config).filter(|_| is_tracepoint);
        let name = entry.name.as_ref().or(by_type);
        let pmu = self.pmu_names.get(&entry.attr.kind);
        let (name, pmu) = (name.map(AsRef::as_ref), pmu.map(AsRef::as_ref));
        Some(event::describe(&entry.attr, name, pmu, self.machine))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr(kind: u32, config: u64, sample_type: u32) -> Attr {
        let mut attr = Attr::default();
        (attr.kind, attr.config) = (kind, config);
        (attr.sample_period, attr.sample_type) = (1, u64::from(sample_type));
        attr
    }

    fn table(attrs: &[(Attr, u64)]) -> EventTable {
        let mut table = EventTable::new(Endian::Little);
        for (attr, id) in attrs {
            table.add(*attr, [*id].into_iter());
        }
        table
    }

    #[test]
    fn the_id_tells_whose_a_sample_is_and_dummies_are_not_announced() {
        let fields = abi::PERF_SAMPLE_IDENTIFIER | abi::PERF_SAMPLE_IP;
        let mut table = table(&[
            (attr(abi::PERF_TYPE_SOFTWARE, 9, fields), 5),
            (attr(abi::PERF_TYPE_SOFTWARE, 0, fields), 6),
            (attr(abi::PERF_TYPE_SOFTWARE, 2, fields), 7),
        ]);
        let payload = [7u64.to_le_bytes(), 0x1000u64.to_le_bytes()].concat();
        assert_eq!(table.entry_of_sample(&payload), Some(2));
        assert_eq!(table.entry_of_sample(&99u64.to_le_bytes()), None);
        assert_eq!(table.index(2), Some(EventIdx(1)));
        assert_eq!(table.index(0), None);
        assert_eq!(table.announce().unwrap().name, "cpu-clock");
        assert_eq!(table.announce().unwrap().name, "page-faults");
        assert!(table.announce().is_none());
    }

    #[test]
    fn an_event_told_twice_is_one() {
        let cycles = attr(abi::PERF_TYPE_HARDWARE, 0, abi::PERF_SAMPLE_ID);
        let table = table(&[(cycles, 5), (cycles, 6), (cycles, 5)]);
        assert_eq!(table.entries.len(), 2);
    }

    #[test]
    fn without_ids_the_only_event_that_samples_is_meant() {
        let mut table = table(&[
            (attr(abi::PERF_TYPE_SOFTWARE, 9, abi::PERF_SAMPLE_IP), 0),
            (attr(abi::PERF_TYPE_SOFTWARE, 0, abi::PERF_SAMPLE_IP), 0),
        ]);
        assert_eq!(table.entry_of_sample(&[0; 8]), Some(1));
        table.add(attr(abi::PERF_TYPE_SOFTWARE, 2, abi::PERF_SAMPLE_IP), [].into_iter());
        assert_eq!(table.entry_of_sample(&[0; 8]), None);
    }

    #[test]
    fn descriptions_name_events_by_id_before_position() {
        let mut table = table(&[
            (attr(abi::PERF_TYPE_HARDWARE, 0, abi::PERF_SAMPLE_ID), 5),
            (attr(abi::PERF_TYPE_HARDWARE, 1, abi::PERF_SAMPLE_ID), 6),
        ]);
        let description =
            |name: &str, ids: &[u64]| EventDescription { name: name.into(), ids: ids.to_vec() };
        table.set_descriptions(vec![description("second", &[6]), description("first", &[5])]);
        assert_eq!(table.announce().unwrap().name, "first");
        assert_eq!(table.announce().unwrap().name, "second");
    }
}
