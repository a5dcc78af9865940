//! Samples of one function, by instruction: those that waited at it, and those that were reported there.

use crate::bytes::file::LoadObjectIdx;
use crate::history::store::HistoryView;
use crate::limit;
use crate::query::field::At;
use crate::query::selection::{SampleFilter, SelectedRows};
use dataspace_proto::address::Svma;
use dataspace_proto::memory::Access;
use dataspace_proto::reason::Reason;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Sums over the samples that one instruction caused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstructionSums {
    /// Samples whose trigger it is.
    pub samples: u64,
    /// Events that they stand for, by the events' numbers.
    pub periods: Vec<u64>,
    /// Those that load.
    pub loads: u64,
    /// Those that store.
    pub stores: u64,
    /// Those that touch no memory.
    pub not_memory: u64,
    /// Those in which several instructions may have been the trigger, and it is the one that runs most often.
    pub by_frequency: u64,
    /// Sum of the latencies that are told, in core cycles.
    pub latency: u64,
    /// Data objects, or reasons that there is none (`<Unknown>.(…)`), most samples first.
    pub objects: Vec<(Arc<str>, u64)>,
    /// Samples of further objects than are told apart.
    pub other_objects: u64,
    /// Instructions that the kernel reported in its place, most samples first.
    pub reported_at: Vec<(Svma, u64)>,
}

/// Sums over the samples of a function. A sample *waited* where its trigger is and was *reported* where the kernel said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeSums {
    /// By trigger.
    pub waited: BTreeMap<Svma, InstructionSums>,
    /// Samples by reported instruction.
    pub reported: BTreeMap<Svma, u64>,
    /// Samples whose trigger is in the function.
    pub n_waited: u64,
    /// Those of them that were reported elsewhere.
    pub n_waited_reported_elsewhere: u64,
    /// Samples reported in the function whose trigger is elsewhere: a call that led there, or a return from there.
    pub n_reported_waited_elsewhere: u64,
    /// Samples reported in the function that have no trigger, by the reason.
    pub without_trigger: BTreeMap<Reason, u64>,
    /// Samples reported in the function that one of several instructions caused, which all touch the same object, or none
    /// of which touches memory: there is no reason why they should not count, and no single trigger.
    pub n_of_several: u64,
    /// Samples of all functions that count.
    pub n_of_session: u64,
    /// Samples that are held, whether they count or not.
    pub n_held: u64,
    /// Samples of the session that are gone, or not decided yet.
    pub n_not_held: u64,
}

impl CodeSums {
    /// Samples of the function: those that waited in it, and those that were reported in it and have no trigger.
    #[must_use]
    pub fn n_samples(&self) -> u64 {
        self.n_waited + self.n_without_trigger()
    }

    /// Samples that were reported in it and have no trigger.
    #[must_use]
    pub fn n_without_trigger(&self) -> u64 {
        self.n_of_several + self.without_trigger.values().sum::<u64>()
    }

    /// Samples that were reported in it.
    #[must_use]
    pub fn n_reported(&self) -> u64 {
        self.reported.values().sum()
    }
}

/// Place of a sample, seen from the function.
#[derive(Clone, Copy, Debug, Default)]
struct SeenFrom {
    waited: Option<Svma>,
    reported: Option<Svma>,
    /// The address where it was reported, in the function or not.
    reported_at: Option<Svma>,
    has_trigger: bool,
}

impl SeenFrom {
    const fn is_elsewhere(&self) -> bool {
        self.waited.is_none() && self.reported.is_none()
    }
}

/// Sums of a function while samples are added.
#[derive(Debug)]
pub struct CodeReckoning<'a> {
    object: LoadObjectIdx,
    parts: Vec<Range<u64>>,
    selected: SelectedRows<'a>,
    places: FxHashMap<u32, SeenFrom>,
    sums: CodeSums,
    objects: FxHashMap<Svma, FxHashMap<u32, u64>>,
    reported_at: FxHashMap<Svma, FxHashMap<Svma, u64>>,
}

impl<'a> CodeReckoning<'a> {
    /// Sums over the code of a load object at these addresses, of samples that pass the filter.
    #[must_use]
    pub fn new(
        object: LoadObjectIdx,
        parts: &[Range<u64>],
        filter: Option<&'a SampleFilter>,
    ) -> Self {
        Self {
            object,
            parts: parts.to_vec(),
            selected: SelectedRows::of_filter(filter),
            places: FxHashMap::default(),
            sums: CodeSums::default(),
            objects: FxHashMap::default(),
            reported_at: FxHashMap::default(),
        }
    }

    /// Adds all samples that a history holds. Where several are added, they are of one session.
    pub fn add(&mut self, view: &HistoryView) {
        for (number, chunk) in view.kept.chunks.iter().enumerate() {
            self.sums.n_held += chunk.len() as u64;
            self.selected.select(view, number);
            self.sums.n_of_session += self.selected.rows.len() as u64;
            let rows = std::mem::take(&mut self.selected.rows);
            let of = At { view, chunk, row: 0 };
            rows.iter().for_each(|row| self.count(of.row(*row)));
            self.selected.rows = rows;
        }
    }

    fn count(&mut self, at: At<'_>) {
        let place = at.chunk.place[at.row];
        let seen = match self.places.get(&place) {
            Some(known) => *known,
            None => {
                let seen = self.seen(at.view, place);
                *self.places.entry(place).or_insert(seen)
            }
        };
        if seen.is_elsewhere() {
            return;
        }
        if let Some(reported) = seen.reported {
            *self.sums.reported.entry(reported).or_default() += 1;
        }
        match (seen.waited, seen.has_trigger) {
            (Some(waited), _) => {
                self.sums.n_waited += 1;
                self.sums.n_waited_reported_elsewhere += u64::from(seen.reported.is_none());
                self.count_waited(waited, seen.reported_at, at);
            }
            (None, true) => self.sums.n_reported_waited_elsewhere += 1,
            (None, false) => match at.name().and_then(|name| name.reason) {
                Some(reason) => *self.sums.without_trigger.entry(reason).or_default() += 1,
                None => self.sums.n_of_several += 1,
            },
        }
    }

    fn seen(&self, view: &HistoryView, place: u32) -> SeenFrom {
        let Some(place) = view.kept.places.get(place) else { return SeenFrom::default() };
        let inside = |of: LoadObjectIdx, at: Svma| {
            let holds = |part: &Range<u64>| part.contains(&at.0);
            (of == self.object && self.parts.iter().any(holds)).then_some(at)
        };
        SeenFrom {
            waited: place.trigger.as_ref().and_then(|it| inside(it.object, it.at)),
            reported: place.reported.and_then(|(of, at)| inside(of, at)),
            reported_at: place.reported.filter(|(of, _)| *of == self.object).map(|(_, at)| at),
            has_trigger: place.trigger.is_some(),
        }
    }

    fn count_waited(&mut self, waited: Svma, reported_at: Option<Svma>, at: At<'_>) {
        let sums = self.sums.waited.entry(waited).or_default();
        sums.samples += 1;
        let event = usize::from(at.chunk.event[at.row]);
        if let Some(missing) = (event + 1).checked_sub(sums.periods.len()) {
            // The number is that of one of the session's events.
            sums.periods.extend(std::iter::repeat_n(0, missing));
        }
        sums.periods[event] = sums.periods[event].saturating_add(at.chunk.period[at.row]);
        let access = at.access();
        sums.loads += u64::from(matches!(access, Some(Access::Load | Access::LoadStore)));
        sums.stores += u64::from(matches!(access, Some(Access::Store | Access::LoadStore)));
        sums.by_frequency += u64::from(at.chunk.found[at.row].get().is_by_frequency);
        sums.latency = sums.latency.saturating_add(at.chunk.latency[at.row].into());
        if at.is_memory() {
            let objects = self.objects.entry(waited).or_default();
            let name = at.chunk.name[at.row];
            if objects.len() < limit::MAX_OBJECTS_OF_INSTRUCTION || objects.contains_key(&name) {
                *objects.entry(name).or_default() += 1;
            } else {
                sums.other_objects += 1;
            }
        } else {
            sums.not_memory += 1;
        }
        if let Some(reported_at) = reported_at {
            let places = self.reported_at.entry(waited).or_default();
            if places.len() < limit::MAX_REPORTED_PLACES || places.contains_key(&reported_at) {
                *places.entry(reported_at).or_default() += 1;
            }
        }
    }

    /// The sums as far as samples were added; `view` is the newest of what was, and has all names.
    #[must_use]
    pub fn finish(self, view: &HistoryView) -> CodeSums {
        let Self { mut sums, objects, reported_at, .. } = self;
        for (waited, counts) in objects {
            let Some(of_instruction) = sums.waited.get_mut(&waited) else { continue };
            let mut by_name: BTreeMap<Arc<str>, u64> = BTreeMap::new();
            for (number, samples) in counts {
                match view.kept.names.get(number) {
                    Some(name) => *by_name.entry(Arc::clone(&name.object)).or_default() += samples,
                    None => of_instruction.other_objects += samples,
                }
            }
            of_instruction.objects = most_first(by_name);
        }
        for (waited, places) in reported_at {
            if let Some(of_instruction) = sums.waited.get_mut(&waited) {
                of_instruction.reported_at = most_first(places.into_iter().collect());
            }
        }
        let n_gone: u64 = view.kept.gone.iter().map(|(_, count)| count).sum();
        sums.n_not_held = n_gone + view.n_pending;
        sums
    }
}

fn most_first<T: Ord>(counts: BTreeMap<T, u64>) -> Vec<(T, u64)> {
    let mut list: Vec<(T, u64)> = counts.into_iter().collect();
    // A stable sort: those with as many samples stay in their own order.
    list.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    list
}

/// A function in which samples were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledFunction {
    /// The load object.
    pub object: LoadObjectIdx,
    /// Its path.
    pub module: Arc<str>,
    /// The compilation unit.
    pub unit: Option<Arc<str>>,
    /// Its name, where it has one.
    pub name: Option<Arc<str>>,
    /// Samples that were reported in it.
    pub samples: u64,
    /// Addresses in it where samples were reported, most samples first.
    pub addresses: Vec<(Svma, u64)>,
}

/// A source line at which samples waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledLine {
    /// The load object of the instruction.
    pub object: LoadObjectIdx,
    /// The instruction.
    pub at: Svma,
    /// The file, as the compiler recorded it.
    pub path: Arc<str>,
    /// The line in it, of the instruction itself or of a call around it that was put in line.
    pub line: u32,
    /// Its samples.
    pub samples: u64,
}

/// Samples by the number of their place.
fn by_place(view: &HistoryView, filter: Option<&SampleFilter>) -> BTreeMap<u32, u64> {
    let mut found: FxHashMap<u32, u64> = FxHashMap::default();
    let mut selected = SelectedRows::of_filter(filter);
    for (number, chunk) in view.kept.chunks.iter().enumerate() {
        selected.select(view, number);
        for row in &selected.rows {
            *found.entry(chunk.place[usize::from(*row)]).or_default() += 1;
        }
    }
    found.into_iter().collect()
}

/// The functions in which samples were that pass the filter, most samples first.
#[must_use]
pub fn sampled_functions(
    view: &HistoryView,
    filter: Option<&SampleFilter>,
) -> Vec<SampledFunction> {
    type Key = (LoadObjectIdx, Option<Arc<str>>, Option<Arc<str>>);
    let mut found: BTreeMap<Key, (Arc<str>, BTreeMap<Svma, u64>)> = BTreeMap::new();
    for (place, samples) in by_place(view, filter) {
        let Some(place) = view.kept.places.get(place) else { continue };
        let Some((object, at)) = place.reported else { continue };
        let key = (object, place.scope.unit.clone(), place.scope.function.clone());
        let (_, addresses) =
            found.entry(key).or_insert_with(|| (Arc::clone(&place.scope.object), BTreeMap::new()));
        *addresses.entry(at).or_default() += samples;
    }
    let mut functions: Vec<SampledFunction> = found
        .into_iter()
        .map(|((object, unit, name), (module, addresses))| {
            let samples = addresses.values().sum();
            let mut addresses = most_first(addresses);
            addresses.truncate(limit::MAX_ADDRESSES_OF_FUNCTION);
            SampledFunction { object, module, unit, name, samples, addresses }
        })
        .collect();
    functions.sort_by_key(|function| std::cmp::Reverse(function.samples));
    functions
}

/// The source lines at which samples waited that pass the filter, most samples first; those of calls around an
/// instruction are lines of it, too. Lines that were not found out yet are left out.
#[must_use]
pub fn sampled_lines(view: &HistoryView, filter: Option<&SampleFilter>) -> Vec<SampledLine> {
    let mut found: BTreeMap<(LoadObjectIdx, Svma, Arc<str>, u32), u64> = BTreeMap::new();
    for (place, samples) in by_place(view, filter) {
        let Some(place) = view.kept.places.get(place) else { continue };
        let (Some(trigger), Some(lines)) = (&place.trigger, &place.lines) else { continue };
        for line in lines.iter() {
            let Some(path) = &line.path else { continue };
            let key = (trigger.object, trigger.at, Arc::clone(path), line.line);
            *found.entry(key).or_default() += samples;
        }
    }
    let line =
        |((object, at, path, line), samples)| SampledLine { object, at, path, line, samples };
    let mut lines: Vec<SampledLine> = found.into_iter().map(line).collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.samples));
    lines
}
