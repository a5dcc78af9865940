//! The history itself: chunks of samples, the tables that their columns number, and what is gone already.

use crate::attribution::claim::Placing;
use crate::attribution::code_place::user_ip;
use crate::attribution::site_table::{SiteIdx, TriggerDistance};
use crate::attribution::verdict::Attribution;
use crate::attribution::world::World;
use crate::bytes::file::{LoadObjectIdx, LoadObjectKey};
use crate::history::chunk::{CHUNK_ROWS, Chunk, NONE, Row};
use crate::history::data_name::{DataName, DataNames};
use crate::history::growing::Frozen;
use crate::history::place::{self, PlaceTable, SampledPlace, TriggerPlace};
use crate::history::task::{Task, Tasks};
use crate::history::telling::{Found, PackedTold};
use crate::history::touched_data::TouchedData;
use crate::limit;
use crate::process::cgroup_table::CgroupTable;
use crate::process::made_code::named_code;
use crate::process::table::Backing;
use crate::x86_64::moved_value::ValueChange;
use dataspace_proto::address::Svma;
use dataspace_proto::record::Sample;
use dataspace_proto::sample_line::Evidence;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

const SECOND_NS: u64 = 1_000_000_000;

/// Bytes of the values that chunks share.
const SHARED_BYTES: usize = Chunk::BYTES;

/// Room that is kept where memory is short.
const LEAST_BYTES: u64 = 3 * Chunk::BYTES as u64;

/// Full chunks, oldest first.
#[derive(Debug, Default)]
struct FullChunks {
    chunks: VecDeque<Arc<Chunk>>,
    /// Bytes of all of them.
    n_bytes: u64,
}

impl FullChunks {
    fn push(&mut self, chunk: Arc<Chunk>) {
        self.n_bytes += chunk.bytes() as u64;
        self.chunks.push_back(chunk);
    }

    fn pop_oldest(&mut self) -> Option<Arc<Chunk>> {
        let oldest = self.chunks.pop_front()?;
        self.n_bytes -= oldest.bytes() as u64;
        Some(oldest)
    }
}

/// Decided samples, the newest as many as there is room for.
#[derive(Debug, Default)]
pub(crate) struct History {
    max_bytes: u64,
    full: FullChunks,
    /// The newest one: once it is full, the next sample begins another.
    open: Option<Chunk>,
    pub(crate) names: DataNames,
    pub(crate) places: PlaceTable,
    pub(crate) tasks: Tasks,
    /// Samples that are gone, by second, in order of time.
    gone: VecDeque<(u64, u64)>,
}

impl History {
    /// A history of so many bytes at most; of none where that is 0.
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self { max_bytes, ..Self::default() }
    }

    /// Tells whether samples are kept at all.
    pub(crate) const fn is_kept(&self) -> bool {
        self.max_bytes != 0
    }

    /// Keeps a decided sample, what it touched, and the evidence for that.
    #[inline]
    pub(crate) fn append(
        &mut self,
        sample: &Sample,
        attribution: &Attribution,
        (touched, evidence): (&TouchedData, Option<Evidence>),
        world: &mut World,
        cgroups: &CgroupTable,
    ) {
        if self.open.as_ref().is_none_or(Chunk::is_full) {
            self.begin_chunk();
        }
        // In this order: what is only copied waits in no register for what has to be looked up.
        let place = self.place(sample, attribution, world);
        let caller = match sample.stack.is_empty() {
            true => NONE,
            false => self.caller(sample, attribution, world),
        };
        let task = self.tasks.number(sample, |id| cgroups.path(id));
        let (claim, addr) = (attribution.claim(), attribution.addr);
        let segment = match (addr, attribution.segment) {
            (Some((addr, _)), None) => world.processes.segment(sample, addr),
            (_, known) => known,
        };
        let (offset, index) = match claim.map(|claim| claim.placing) {
            Some(Placing::Somewhere) => (NONE, NONE),
            _ => touched.position(sample, attribution, world),
        };
        let row = Row {
            time_ns: sample.time_ns,
            period: sample.period,
            addr: addr.map_or(0, |(addr, _)| addr.0),
            name: touched.name,
            offset,
            index,
            place,
            caller,
            task,
            cpu: sample.cpu.unwrap_or(NONE),
            latency: sample.latency,
            event: sample.event.0,
            size: attribution.size_bytes().try_into().unwrap_or(0),
            told: PackedTold::of(sample),
            found: Found {
                access: attribution.access,
                evidence,
                address_source: addr.map(|(_, source)| source),
                is_by_frequency: claim.is_some_and(|claim| claim.grounds.is_by_frequency),
                segment,
            }
            .pack(),
        };
        if let Some(open) = &mut self.open {
            open.push(row);
        }
    }

    /// Keeps the values before and after the access of the sample that was kept last.
    pub(crate) fn append_change(&mut self, change: ValueChange) {
        if change != ValueChange::UNKNOWN
            && let Some(open) = &mut self.open
        {
            open.push_change(change);
        }
    }

    /// The number of the place of a sample's code.
    fn place(&mut self, sample: &Sample, attribution: &Attribution, world: &mut World) -> u32 {
        let Some(site) = attribution.site else { return self.unresolved_place(sample, world) };
        let distance = TriggerDistance::new(user_ip(sample), attribution.trigger);
        if let Some(known) = world.sites.place(site, distance) {
            return known;
        }
        let place = self.resolved_place(sample, attribution, site, world);
        let (object, _) = world.sites.code(site);
        if !self.places.is_beyond(place, object) {
            world.sites.set_place(site, distance, place);
        }
        place
    }

    /// The same, by the tables.
    #[cold]
    fn resolved_place(
        &mut self,
        sample: &Sample,
        attribution: &Attribution,
        site: SiteIdx,
        world: &World,
    ) -> u32 {
        let (object, ip) = world.sites.code(site);
        let scope = world.sites.scope(site);
        let trigger = world.trigger_place(sample, attribution);
        let key = place::key(Some(object), scope, Some(ip), trigger);
        if let Some(known) = self.places.find(key) {
            return known;
        }
        let key = match self.places.is_full() {
            true => place::key(Some(object), scope, None, None),
            false => key,
        };
        if let Some(known) = self.places.find(key) {
            return known;
        }
        if self.places.is_overfull() {
            return NONE;
        }
        let place = trigger.filter(|_| !self.places.is_full());
        let trigger = place.and_then(|(of, at)| {
            let module = match of == object {
                true => Arc::clone(&scope.object),
                false => {
                    let known = world.processes.object(of)?;
                    Arc::clone(&self.places.module(of, &known.key.path).object)
                }
            };
            Some(TriggerPlace { object: of, module, at })
        });
        let reported = (!self.places.is_full()).then_some((object, ip));
        for of in [Some(object), trigger.as_ref().map(|it| it.object)].into_iter().flatten() {
            if let Some(known) = world.processes.object(of) {
                self.places.know(of, &known.key);
            }
        }
        let scope = Arc::clone(scope);
        self.places.add(key, SampledPlace { scope, reported, trigger, lines: None })
    }

    /// The number of the place of the call that led to a sample's function.
    #[inline(never)]
    fn caller(&mut self, sample: &Sample, attribution: &Attribution, world: &World) -> u32 {
        let returned = attribution.site.and_then(|site| world.returns_to(sample, site));
        let Some(back) = returned else { return NONE };
        let (call, n_changes) = ((sample.pid, back), world.processes.n_changes());
        if let Some(known) = self.places.recent_calls.find(back.0, call, n_changes) {
            return known;
        }
        let (object, behind) = match world.return_place(sample.pid, back) {
            Ok(Some(place)) => place,
            Ok(None) => return NONE,
            Err(needs) => {
                self.places.unopened = Some(needs.object);
                return NONE;
            }
        };
        let place = self.call(object, Svma(behind.0.wrapping_sub(1)), world);
        self.places.recent_calls.keep(back.0, call, n_changes, place);
        place
    }

    /// The number of the place of the call whose last byte is at an address.
    #[cold]
    fn call(&mut self, object: LoadObjectIdx, at: Svma, world: &World) -> u32 {
        let Some(known) = world.processes.object(object) else { return NONE };
        let scope = self.places.module(object, &known.key.path);
        let key = place::key(Some(object), &scope, None, Some((object, at)));
        if let Some(known) = self.places.find(key) {
            return known;
        }
        if self.places.is_full() {
            return NONE;
        }
        let module = Arc::clone(&scope.object);
        let call = TriggerPlace { object, module, at };
        self.places.add(key, SampledPlace::of_call(scope, call))
    }

    /// The number of the place of code that no debug information tells of.
    #[cold]
    fn unresolved_place(&mut self, sample: &Sample, world: &World) -> u32 {
        let named = named_code(&world.kernel_code, &world.made_code, sample);
        let (object, scope) = match named {
            Some(scope) => (None, Arc::clone(scope)),
            None => {
                let mapping = world.processes.mapping(sample.pid, user_ip(sample));
                let Some(Backing::File(object)) = mapping.map(|mapping| mapping.backing) else {
                    return NONE;
                };
                let Some(known) = world.processes.object(object) else { return NONE };
                (Some(object), self.places.module(object, &known.key.path))
            }
        };
        let key = place::key(object, &scope, None, None);
        match self.places.find(key) {
            Some(known) => known,
            None if self.places.is_full() => NONE,
            None => {
                let place = SampledPlace { scope, reported: None, trigger: None, lines: None };
                self.places.add(key, place)
            }
        }
    }

    /// Room for further samples: that of the oldest, where there is no more.
    #[cold]
    fn begin_chunk(&mut self) {
        let Some(full) = self.open.take() else {
            self.open = Some(Chunk::default());
            return;
        };
        let mut oldest = None;
        while self.full.n_bytes + (full.bytes() + Chunk::BYTES + SHARED_BYTES) as u64
            > self.max_bytes
            && let Some(chunk) = self.full.pop_oldest()
        {
            self.note_gone(&chunk);
            oldest = Some(chunk);
        }
        if let Some(mut chunk) = oldest
            && let Some(spare) = Arc::get_mut(&mut chunk)
        {
            // Nobody reads it any more: nothing is allocated.
            let mut open = std::mem::replace(spare, full);
            open.renew(spare);
            self.open = Some(open);
            self.full.push(chunk);
        } else {
            self.open = Some(Chunk::after(&full));
            self.full.push(Arc::new(full));
        }
    }

    /// Bytes of all samples.
    #[cfg(test)]
    fn bytes(&self) -> u64 {
        let open = self.open.as_ref().map_or(0, Chunk::bytes);
        self.full.n_bytes + (open + SHARED_BYTES) as u64
    }

    /// Counts samples that go, by their seconds.
    fn note_gone(&mut self, chunk: &Chunk) {
        if self.gone.capacity() == 0 {
            self.gone.reserve_exact(limit::MAX_GONE_SECONDS + 1);
        }
        let mut times_ns = chunk.times_ns();
        while let Some(first_ns) = times_ns.first() {
            let second = first_ns / SECOND_NS;
            let into_ns = |ns: &u64| ns.wrapping_sub(second * SECOND_NS);
            // Several are looked at at once: none is further into the second than all their bits.
            let is_same =
                |times: &&[u64]| times.iter().fold(0, |bits, ns| bits | into_ns(ns)) < SECOND_NS;
            let n_surely = 64 * times_ns.chunks_exact(64).take_while(is_same).count();
            let rest = &times_ns[n_surely..];
            let is_other = |ns: &u64| into_ns(ns) >= SECOND_NS;
            let n_same = n_surely + rest.iter().position(is_other).unwrap_or(rest.len());
            let more = n_same as u64;
            times_ns = &times_ns[n_same..];
            let at = self.gone.partition_point(|(known, _)| *known < second);
            match self.gone.get_mut(at) {
                Some((known, count)) if *known == second => *count += more,
                _ => self.gone.insert(at, (second, more)),
            }
            if self.gone.len() > limit::MAX_GONE_SECONDS
                && let Some((_, count)) = self.gone.pop_front()
                && let Some((_, next)) = self.gone.front_mut()
            {
                *next += count;
            }
        }
    }

    /// Gives half of what it has up, for good, but for its last samples.
    pub(crate) fn shrink(&mut self) {
        if !self.is_kept() {
            return;
        }
        self.max_bytes = self.max_bytes.min((self.full.n_bytes / 2).max(LEAST_BYTES));
        while self.full.n_bytes > self.max_bytes
            && let Some(oldest) = self.full.pop_oldest()
        {
            self.note_gone(&oldest);
        }
    }

    /// Samples that are in the chunks.
    pub(crate) fn n_held(&self) -> usize {
        let n_open = self.open.as_ref().map_or(0, Chunk::len);
        self.full.chunks.len() * CHUNK_ROWS + n_open
    }

    /// All that is kept, which is kept here no longer, nor counted as gone.
    pub(crate) fn take(&mut self) -> KeptRows {
        let taken = self.freeze();
        self.full = FullChunks::default();
        self.open = None;
        taken
    }

    /// All that is kept, as it is now.
    pub(crate) fn freeze(&self) -> KeptRows {
        let open = self.open.as_ref().filter(|open| open.len() != 0);
        let open = open.map(|open| Arc::new(open.clone()));
        KeptRows {
            chunks: self.full.chunks.iter().cloned().chain(open).collect(),
            names: self.names.freeze(),
            places: self.places.freeze(),
            tasks: self.tasks.freeze(),
            objects: Arc::clone(self.places.objects()),
            gone: self.gone.iter().copied().collect(),
        }
    }
}

/// Samples of a history as they were at one moment, with the tables that their columns number.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptRows {
    pub(crate) chunks: Vec<Arc<Chunk>>,
    pub(crate) names: Frozen<DataName>,
    pub(crate) places: Frozen<SampledPlace>,
    pub(crate) tasks: Frozen<Task>,
    /// The load objects that places are in.
    pub(crate) objects: Arc<FxHashMap<LoadObjectIdx, Arc<LoadObjectKey>>>,
    /// Samples that are gone, by second.
    pub(crate) gone: Vec<(u64, u64)>,
}

/// A session's history as it was at one moment. It shares full chunks with the session.
#[derive(Clone, Debug, Default)]
pub struct HistoryView {
    pub(crate) kept: KeptRows,
    /// Names of the events.
    pub(crate) events: Vec<String>,
    /// Events, by number, whose periods are nanoseconds on a CPU.
    pub(crate) clocks: Vec<bool>,
    /// NUMA nodes by CPU.
    pub(crate) nodes: Arc<[u16]>,
    /// Time of the session's first record.
    pub(crate) first_ns: u64,
    /// Time of its newest.
    pub(crate) last_ns: u64,
    /// Samples that are not decided yet.
    pub(crate) n_pending: u64,
    /// Lines are found out.
    pub has_lines: bool,
    /// Places in code whose lines are being found out.
    pub n_lines_open: u64,
    /// Places whose lines could not be found out when they were asked for.
    pub(crate) n_lines_given_up: u64,
}

impl HistoryView {
    /// Names of the session's events, by their numbers.
    #[must_use]
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// The key of a load object in which samples were.
    #[must_use]
    pub fn load_object(&self, object: LoadObjectIdx) -> Option<&Arc<LoadObjectKey>> {
        self.kept.objects.get(&object)
    }

    /// All load objects in which samples were, in the order of their numbers.
    #[must_use]
    pub fn load_objects(&self) -> Vec<(LoadObjectIdx, Arc<LoadObjectKey>)> {
        let objects = self.kept.objects.iter();
        let mut objects: Vec<_> = objects.map(|(idx, key)| (*idx, Arc::clone(key))).collect();
        objects.sort_unstable_by_key(|(idx, _)| *idx);
        objects
    }

    /// The same without samples: where the session begins and ends, and its events.
    #[must_use]
    pub fn outline(&self) -> Self {
        Self { kept: KeptRows::default(), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::world::World;
    use dataspace_proto::reason::Reason;

    /// A history after so many samples, a thousand a second, of which `look` may look at each.
    fn history(max_bytes: u64, n_samples: u64, mut look: impl FnMut(&History)) -> History {
        let (mut world, cgroups) = (World::default(), CgroupTable::default());
        let mut history = History::new(max_bytes);
        let unknown = Attribution::unknown(Reason::Kernel);
        for ms in 0..n_samples {
            let sample = Sample { time_ns: ms * 1_000_000, period: ms, ..Sample::default() };
            history.append(&sample, &unknown, (&TouchedData::NOTHING, None), &mut world, &cgroups);
            look(&history);
        }
        history
    }

    #[test]
    fn the_oldest_go_and_are_counted_by_their_seconds() {
        let max_bytes = 4 * Chunk::BYTES as u64;
        let n_samples = 40 * CHUNK_ROWS as u64 + 7;
        let mut most_bytes = 0;
        let history = history(max_bytes, n_samples, |history| {
            most_bytes = most_bytes.max(history.bytes());
            let full = history.full.chunks.iter().map(|chunk| chunk.bytes() as u64);
            assert_eq!(history.full.n_bytes, full.sum::<u64>());
        });
        assert!(most_bytes <= max_bytes, "{most_bytes} bytes at once");
        // A fourth is what chunks share, and another one for what the next chunk may need.
        assert!(most_bytes > max_bytes / 2 + max_bytes / 8, "{most_bytes} bytes at once");
        let kept = history.freeze();
        let held: Vec<u64> = kept
            .chunks
            .iter()
            .flat_map(|chunk| chunk.period[..chunk.len()].iter().copied())
            .collect();
        let first = n_samples - held.len() as u64;
        assert!(held.iter().copied().eq(first..n_samples), "the newest, in order");
        assert!(held.len() >= 3 * CHUNK_ROWS);
        let gone: Vec<(u64, u64)> = (0..=first / 1000)
            .map(|second| (second, 1000.min(first - second * 1000)))
            .filter(|(_, count)| *count != 0)
            .collect();
        assert_eq!(kept.gone, gone);
    }

    #[test]
    fn who_reads_keeps_what_it_reads() {
        let mut views = Vec::new();
        let max_bytes = 3 * Chunk::BYTES as u64;
        history(max_bytes, 5 * CHUNK_ROWS as u64, |history| {
            if views.len() < 40 {
                views.push(history.freeze());
            }
        });
        for (idx, view) in views.iter().enumerate() {
            let periods =
                view.chunks.iter().flat_map(|chunk| chunk.period[..chunk.len()].iter().copied());
            assert!(periods.eq(0..=idx as u64));
        }
    }

    #[test]
    fn what_is_taken_is_each_sample_once() {
        let mut history = history(8 * Chunk::BYTES as u64, 0, |_| ());
        let (mut world, cgroups) = (World::default(), CgroupTable::default());
        let unknown = Attribution::unknown(Reason::Kernel);
        let mut taken = Vec::new();
        let n_samples = 5 * CHUNK_ROWS as u64 + 9;
        for period in 0..n_samples {
            let sample = Sample { period, ..Sample::default() };
            history.append(&sample, &unknown, (&TouchedData::NOTHING, None), &mut world, &cgroups);
            // In the middle of a chunk, at its end, and after several.
            if [3, 64, 700, 700 + CHUNK_ROWS as u64, 15_000].contains(&(period + 1)) {
                assert!(history.n_held() as u64 <= period + 1);
                taken.push(history.take());
                assert_eq!(history.n_held(), 0);
            }
        }
        taken.push(history.take());
        let chunks = taken.iter().flat_map(|kept| &kept.chunks);
        let periods = chunks.flat_map(|chunk| chunk.period[..chunk.len()].iter().copied());
        assert!(periods.eq(0..n_samples));
        assert!(taken.iter().all(|kept| kept.gone.is_empty()));
    }

    #[test]
    fn half_of_the_room_can_be_given_up() {
        let mut history = history(16 * Chunk::BYTES as u64, 40 * CHUNK_ROWS as u64, |_| ());
        let (before, bytes) = (history.full.chunks.len(), history.full.n_bytes);
        history.shrink();
        assert!(history.full.n_bytes <= bytes / 2 && !history.full.chunks.is_empty());
        let gone: u64 = history.gone.iter().map(|(_, count)| count).sum();
        assert_eq!(gone as usize, (before - history.full.chunks.len()) * CHUNK_ROWS);
    }
}
