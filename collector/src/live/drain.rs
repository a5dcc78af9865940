//! Reads every ring once: samples are decoded and weighted, everything is put in order.

use crate::attach::rings::Ring;
use crate::attach::{NO_TASK, OpenEvent};
use crate::channel::merge::Merge;
use crate::cost::lives::Lives;
use crate::event::attr::{self, Binding, KernelFeatures};
use crate::event::period::PeriodLog;
use crate::event::{EventPlan, meaning};
use crate::live::tally::{Tally, n_together};
use crate::perf_data::write::Writer;
use crate::record::decode::{self, SampleLayout, Undecodable};
use crate::record::ring::{Joint, RawRecord, RingReader};
use crate::record::side_band::{self, SideBand};
use crate::record::undecoded::Undecoded;
use dataspace_proto::event::{EventIdx, EventKind, Sampling};
use dataspace_proto::memory::Access;
use dataspace_proto::record::{Record, Sample};
use perf_event_open_sys::bindings as abi;
use std::collections::HashSet;

/// The source, in the merge, of records that are no samples.
pub(crate) const SIDE_BAND: u32 = u32::MAX;

/// Records that wait in order, at first: two rounds at 10,000 samples a second.
const N_WAITING: usize = 2_048;

/// Room is given back after so many bytes, some hundred samples: often enough that the writer of a full ring
/// loses little, and seldom enough that its CPU is not kept busy fetching the line of our position.
const RELEASE_BYTES: usize = 64 << 10;

/// Beyond so many bytes of one ring the others have their turn, and what was read before is handed on: some
/// six hundred samples. Their slots stay in the cache of the CPU until the analyzer has them, and where the
/// two threads share a CPU, to wake the analyzer, which is to switch to it and back, costs each of them little.
const ROUND_BYTES: usize = 128 << 10;

/// Takes the records of all rings.
#[derive(Debug)]
pub(crate) struct Drain {
    pub(crate) merge: Merge,
    pub(crate) tally: Tally,
    pub(crate) periods: PeriodLog,
    /// By event.
    pub(crate) layouts: Vec<SampleLayout>,
    pub(crate) kinds: Vec<EventKind>,
    pub(crate) drops: Vec<Drops>,
    pub(crate) side_band_layout: SampleLayout,
    /// Ids as in samples, with the index of the open event; sorted.
    pub(crate) ids: Vec<(u64, u32)>,
    /// Threads whose events may double inherited ones.
    pub(crate) suspects: HashSet<i32>,
    /// Of those, the ones that do.
    pub(crate) doubled: Vec<i32>,
    /// The first thread of a process has left its events: perhaps by exec of a set-uid program.
    pub(crate) saw_leader_exit: bool,
    pub(crate) saw_loss: bool,
    /// Cost of births and ends; `None` where tasks have no events.
    pub(crate) lives: Option<Lives>,
    /// Time when the first task was born since events were opened, which has inherited them.
    pub(crate) first_birth_ns: Option<u64>,
    pub(crate) n_side_band_lost: u64,
    pub(crate) n_corrupt_rings: u64,
    pub(crate) undecoded: Undecoded,
    /// The inode number of the mount namespace that this program is in.
    pub(crate) own_mount: Option<u64>,
    pub(crate) joint: Joint,
    /// Gets every record as it stands in its ring.
    pub(crate) recorder: Option<Writer>,
    /// The ring that is read: each has its own queue in the merge.
    ring: u32,
    /// The time of the first record that this round took from it.
    first_ns: Option<u64>,
    /// Up to when the records of rings that this round left half read are surely out of them.
    pub(crate) read_to_ns: Option<u64>,
    /// The id of the sample before and its place in `ids`: the next one is of the same event, nearly always.
    recent_id: (u64, usize),
}

impl Drain {
    /// A drain of the events of `plans` that has read nothing and knows no ids yet.
    pub(crate) fn new(plans: &[EventPlan], features: KernelFeatures, n_cpus: usize) -> Self {
        Self {
            merge: Merge::with_capacity(N_WAITING),
            tally: Tally::new(n_together(plans, n_cpus), features.lost),
            periods: periods(plans),
            layouts: layouts(plans, features),
            kinds: plans.iter().map(|plan| plan.event.kind).collect(),
            drops: plans.iter().map(Drops::of).collect(),
            side_band_layout: attr::layout(&attr::side_band(features, true)),
            ids: Vec::new(),
            suspects: HashSet::new(),
            doubled: Vec::new(),
            saw_leader_exit: false,
            saw_loss: false,
            lives: None,
            first_birth_ns: None,
            n_side_band_lost: 0,
            n_corrupt_rings: 0,
            undecoded: Undecoded::default(),
            own_mount: None,
            joint: Joint::default(),
            recorder: None,
            ring: 0,
            first_ns: None,
            read_to_ns: None,
            recent_id: (0, usize::MAX),
        }
    }

    /// Begins a round over all rings.
    pub(crate) const fn begin_round(&mut self) {
        self.read_to_ns = None;
    }

    /// Reads what `ring`, number `ring_idx` of the session's, holds now, but no more than is good for one round.
    ///
    /// Room is given back piece by piece: a flood goes on while its records are read.
    pub(crate) fn ring(&mut self, ring_idx: u32, ring: &mut Ring, events: &[OpenEvent]) {
        (self.ring, self.first_ns) = (ring_idx, None);
        let mut joint = std::mem::take(&mut self.joint);
        // What comes meanwhile is for the next round.
        let mut n_wanted = None;
        let mut n_behind = 0;
        while n_wanted != Some(0) {
            let Some((front, back, tail)) = ring.mapped.unread() else {
                ring.mapped.skip();
                self.corrupt(ring.carries_samples);
                break;
            };
            let n_unread = front.len() + back.len();
            let n_now = *n_wanted.get_or_insert_with(|| {
                n_behind = n_unread.saturating_sub(ROUND_BYTES);
                n_unread.min(ROUND_BYTES)
            });
            let mut reader = RingReader::new(front, back, &mut joint);
            let n_until = n_unread - n_now.min(n_unread).min(RELEASE_BYTES);
            self.records(&mut reader, n_until, ring.carries_samples, events);
            let n_read = n_unread - reader.n_left();
            if n_read != 0 {
                ring.mapped.release(tail + n_read as u64);
            }
            n_wanted = Some(n_now.saturating_sub(n_read));
        }
        self.joint = joint;
        if n_behind != 0 {
            // What is left came after so much that it cannot be older than the first of it.
            let until_ns = self.first_ns.map_or(0, |first_ns| first_ns.saturating_sub(1));
            self.read_to_ns = Some(self.read_to_ns.map_or(until_ns, |known| known.min(until_ns)));
        }
    }

    /// Reads records until no more than `n_until` bytes are left.
    fn records(
        &mut self,
        reader: &mut RingReader<'_>,
        n_until: usize,
        carries_samples: bool,
        events: &[OpenEvent],
    ) {
        while reader.n_left() > n_until {
            match reader.next() {
                Ok(Some(raw)) if raw.kind == abi::PERF_RECORD_SAMPLE => self.sample(&raw, events),
                Ok(Some(raw)) => self.other(&raw, carries_samples),
                Ok(None) => break,
                Err(corrupt) => {
                    tracing::error!(%corrupt, "a ring is skipped");
                    self.corrupt(carries_samples);
                    break;
                }
            }
        }
    }

    /// Number of samples after the damage, which nobody knows: at least one.
    fn corrupt(&mut self, carries_samples: bool) {
        self.n_corrupt_rings += 1;
        self.tally.n_undecodable += u64::from(carries_samples);
    }

    fn sample(&mut self, raw: &RawRecord<'_>, events: &[OpenEvent]) {
        let Some((source, open)) = self.open_event(raw, events) else {
            self.tally.n_undecodable += 1;
            return;
        };
        let mut slot = self.merge.slot();
        if !matches!(*slot, Record::Sample(_)) {
            *slot = Record::Sample(Sample::default());
        }
        if let Record::Sample(sample) = &mut *slot
            && self.decode(raw, open, sample).is_ok()
        {
            if self.leaves_out(open, sample) {
                self.first_ns.get_or_insert(sample.time_ns);
                self.tally.left_out(open);
                return self.merge.slots().push(slot);
            }
            if let Some(recorder) = &mut self.recorder {
                recorder.add_sample(raw, sample, source);
            }
            let time_ns = sample.time_ns;
            self.add(time_ns, source, slot);
        } else {
            self.tally.n_undecodable += 1;
            self.merge.slots().push(slot);
        }
    }

    /// Tells whether the event took what was not asked for, and this is of it.
    fn leaves_out(&self, open: &OpenEvent, sample: &Sample) -> bool {
        let drops = self.drops[usize::from(open.event.0)];
        drops.user && sample.is_user()
            || drops.kernel && !sample.is_user()
            || drops.is_other_access(sample)
    }

    fn add(&mut self, time_ns: u64, source: u32, slot: Box<Record>) {
        self.first_ns.get_or_insert(time_ns);
        self.merge.add(self.ring, time_ns, source, slot);
    }

    fn decode(
        &mut self,
        raw: &RawRecord<'_>,
        open: &OpenEvent,
        sample: &mut Sample,
    ) -> Result<(), Undecodable> {
        let event = open.event;
        let event_idx = usize::from(event.0);
        let layout = &self.layouts[event_idx];
        let period = decode::sample_into(layout, raw.misc, raw.payload, sample)?;
        self.tally.n_taken[event_idx] += 1;
        sample.event = event;
        if !meaning::has_address(self.kinds[event_idx]) {
            sample.addr = None;
        }
        sample.period = meaning::weight(period, || self.periods.at(event, sample.time_ns));
        self.tally.taken_weights[event_idx] += sample.period;
        if open.tid != NO_TASK
            && sample.tid != open.tid
            && self.suspects.contains(&sample.tid)
            && !self.doubled.contains(&sample.tid)
        {
            self.doubled.push(sample.tid);
        }
        Ok(())
    }

    /// Event of a sample. Inherited events have the id of the one that was opened.
    fn open_event<'a>(
        &mut self,
        raw: &RawRecord<'_>,
        events: &'a [OpenEvent],
    ) -> Option<(u32, &'a OpenEvent)> {
        // IDENTIFIER comes first.
        let id = raw.payload.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))?;
        let (recent_id, place) = self.recent_id;
        let source = match self.ids.get(place) {
            Some(&(known_id, source)) if recent_id == id && known_id == id => source,
            _ => {
                let found = self.ids.binary_search_by_key(&id, |&(id, _)| id).ok()?;
                self.recent_id = (id, found);
                self.ids[found].1
            }
        };
        Some((source, events.get(source as usize)?))
    }

    fn other(&mut self, raw: &RawRecord<'_>, carries_samples: bool) {
        let decoded = side_band::decode(&self.side_band_layout, raw);
        self.record_other(raw, decoded.as_ref());
        match decoded {
            Some(SideBand::Record(record)) => self.side_band(record),
            Some(SideBand::Lost(n)) if carries_samples => {
                self.tally.n_lost_told += n;
                self.saw_loss = true;
            }
            Some(SideBand::Lost(n)) => self.n_side_band_lost += n,
            Some(SideBand::Throttled { time_ns, stream_id, begins }) => {
                self.tally.throttled(time_ns, stream_id, begins);
            }
            Some(SideBand::Unknown(kind)) => self.undecoded.unknown(kind),
            None => {}
        }
    }

    /// Takes a record that is no sample.
    pub(crate) fn side_band(&mut self, mut record: Record) {
        match &mut record {
            Record::Exit(exit) => {
                self.saw_leader_exit |= exit.pid == exit.tid;
                self.lives.as_mut().map(Lives::ended);
            }
            Record::Fork(fork) => {
                let first_ns = self.first_birth_ns.unwrap_or(u64::MAX);
                self.first_birth_ns = Some(first_ns.min(fork.time_ns));
                self.lives.as_mut().map(Lives::born);
            }
            Record::Namespace(namespace) if Some(namespace.mount) == self.own_mount => {
                namespace.mount = 0;
            }
            _ => {}
        }
        let mut slot = self.merge.slot();
        let time_ns = record.time_ns().unwrap_or(0);
        *slot = record;
        self.add(time_ns, SIDE_BAND, slot);
    }
}

/// Samples that an event cannot be told to leave out, as with AMD's IBS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drops {
    non_memory: bool,
    /// All accesses but those of this kind.
    but: Option<Access>,
    user: bool,
    kernel: bool,
}

impl Drops {
    /// Tells whether `record` is a sample that accesses no memory, of an event that takes such too.
    pub(crate) fn is_no_access(self, record: &Record) -> bool {
        let is_access =
            |sample: &Sample| sample.data_source.is_some_and(|one| one.access.is_some());
        self.non_memory && matches!(record, Record::Sample(sample) if !is_access(sample))
    }

    /// Tells whether `sample` is of the other kind of access. One that is of both is of either.
    fn is_other_access(self, sample: &Sample) -> bool {
        let Some(wanted) = self.but else { return false };
        let access = sample.data_source.and_then(|source| source.access);
        access.is_some_and(|access| access != wanted && access != Access::LoadStore)
    }

    const fn of(plan: &EventPlan) -> Self {
        Self {
            non_memory: plan.drops_non_memory,
            but: plan.only,
            user: plan.drops_user,
            kernel: plan.drops_kernel,
        }
    }
}

fn periods(plans: &[EventPlan]) -> PeriodLog {
    let mut periods = PeriodLog::default();
    for (event_idx, plan) in plans.iter().enumerate() {
        // With a frequency every sample carries its own.
        if let Sampling::Period(period) = plan.event.sampling {
            periods.set(EventIdx(event_idx as u16), 0, period);
        }
    }
    periods
}

fn layouts(plans: &[EventPlan], features: KernelFeatures) -> Vec<SampleLayout> {
    let binding = Binding::default();
    plans.iter().map(|plan| attr::layout(&attr::sampled(&plan.source, binding, features))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::memory::DataSource;

    #[test]
    fn an_event_that_samples_all_accesses_shows_those_that_were_asked_for() {
        let accesses = [Access::Load, Access::Store, Access::LoadStore, Access::Prefetch].map(Some);
        for (wanted, shown) in [
            (None, [true, true, true, true]),
            (Some(Access::Load), [true, false, true, false]),
            (Some(Access::Store), [false, true, true, false]),
        ] {
            let drops = Drops { non_memory: true, but: wanted, user: false, kernel: false };
            let sample = |access| {
                let data_source = Some(DataSource { access, ..DataSource::default() });
                Sample { data_source, ..Sample::default() }
            };
            let is_shown = accesses.map(|access| !drops.is_other_access(&sample(access)));
            assert_eq!(is_shown, shown, "{wanted:?}");
            assert!(!drops.is_other_access(&sample(None)), "that is no access at all");
        }
    }
}
