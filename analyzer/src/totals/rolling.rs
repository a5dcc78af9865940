//! Rolling totals by data object: since attach and over the session's windows, all exact.
//!
//! A sample is counted at the one object that it is charged to. What is around that object gets its
//! share when a second closes or totals are looked at: once for many samples.

use crate::limit;
use crate::totals::function_table::{FunctionLine, FunctionTable};
use crate::totals::sums::{Charge, Sums, place};
use crate::types::data_object::{Artificial, Candidate, DataObject, ObjectLevel, ObjectStep};
use crate::types::layout::Layout;
use crate::types::source_name::{self, NamePart};
use crate::types::type_layout::{self, TypeLayout};
use dataspace_proto::event::EventIdx;
use dataspace_proto::reason::{N_REASONS, Reason};
use dataspace_proto::record::Sample;
use dataspace_proto::sample_line::Scope;
use dataspace_proto::window::{Window, WindowLengths};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::sync::Arc;

/// Index of a data object of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectIdx(pub(crate) u32);

/// `<Total>`: the parent of all.
pub(crate) const TOTAL: ObjectIdx = ObjectIdx(0);
const SCALARS: ObjectIdx = ObjectIdx(1);
/// `<Stack>` is between them.
const UNKNOWN: ObjectIdx = ObjectIdx(3);
const OTHER: ObjectIdx = ObjectIdx(4);
const FIRST_REASON: u32 = 5;

const SECOND_NS: u64 = 1_000_000_000;

/// Number of closed seconds that a window of `seconds` sums. The open second is in it besides; but a window of
/// one second is the last whole one, so that its rate means something.
fn n_closed(seconds: u16) -> usize {
    usize::from(seconds).saturating_sub(1).max(1)
}

/// The sums that one event added to one object in one second.
#[derive(Clone, Debug)]
struct Delta {
    object: ObjectIdx,
    event: EventIdx,
    period: u64,
    sums: Sums,
}

/// The sums that one event's samples in one function added to one object since the last sharing out.
#[derive(Debug)]
struct Charged {
    delta: Delta,
    scope: Option<Arc<Scope>>,
}

impl Charged {
    fn is_of(&self, object: ObjectIdx, charge: &Charge<'_>) -> bool {
        (self.delta.object, self.delta.event) == (object, charge.sample.event)
            && self.scope.as_ref().map(Arc::as_ptr) == charge.scope.map(Arc::as_ptr)
    }

    fn count(&mut self, charge: &Charge<'_>) {
        self.delta.period = self.delta.period.wrapping_add(charge.sample.period);
        self.delta.sums.count(charge);
    }
}

/// Key of [`Charged`]: object, event, and where the scope lies, which is kept by it.
type ChargedKey = (ObjectIdx, EventIdx, usize);

/// Sums of one object over one span, with the sum of periods by event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpanSums {
    pub(crate) sums: Sums,
    pub(crate) events: Vec<u64>,
}

impl SpanSums {
    fn event(&mut self, event: EventIdx) -> &mut u64 {
        place(&mut self.events, usize::from(event.0), 0)
    }
}

/// One data object and its totals.
#[derive(Clone, Debug)]
pub(crate) struct ObjectTotals {
    pub(crate) parent: Option<ObjectIdx>,
    pub(crate) level: ObjectLevel,
    descriptor: OnceCell<Arc<str>>,
    source_name: OnceCell<(Arc<str>, NamePart)>,
    pub(crate) scopes: Vec<Arc<Scope>>,
    /// Meanings of accesses that stay at this object; at most [`limit::MAX_CANDIDATES`].
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) threads: FxHashSet<i32>,
    /// The thread that was noted last.
    last_tid: Option<i32>,
    pub(crate) all: SpanSums,
    /// Index of this object's delta of an event in the open second.
    open: Vec<(u64, u32)>,
    /// Index, by event, of the last sample in what was charged and not shared out yet, now or before.
    charged: Vec<u32>,
    /// Layout of an outermost aggregate.
    pub(crate) layout: Option<Arc<TypeLayout>>,
}

impl ObjectTotals {
    /// Tells whether a sample tells nothing new of who touches this object, and so of what is around it.
    fn has_noted(&self, tid: i32, scope: Option<&Arc<Scope>>) -> bool {
        self.last_tid == Some(tid)
            && scope.is_none_or(|scope| {
                self.scopes.len() >= limit::MAX_SCOPES_AN_OBJECT
                    || self.scopes.iter().any(|known| Arc::ptr_eq(known, scope))
            })
    }

    fn note(&mut self, tid: i32, scope: Option<&Arc<Scope>>) {
        self.last_tid = Some(tid);
        if self.threads.len() < limit::MAX_THREADS_AN_OBJECT {
            self.threads.insert(tid);
        }
        if let Some(scope) = scope
            && self.scopes.len() < limit::MAX_SCOPES_AN_OBJECT
            && !self.scopes.contains(scope)
        {
            self.scopes.push(Arc::clone(scope));
        }
    }

    fn note_candidates(&mut self, candidates: &[Candidate]) {
        for candidate in candidates {
            let is_full = self.candidates.len() >= limit::MAX_CANDIDATES;
            if !is_full && !self.candidates.contains(candidate) {
                self.candidates.push(candidate.clone());
            }
        }
    }
}

/// All data objects of a session.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    objects: Vec<ObjectTotals>,
    lengths: WindowLengths,
    /// The closed seconds of each window of the first object, in the order of `lengths`, then of the next.
    windows: Vec<SpanSums>,
    /// Each object by what is around it and the step from there.
    inside: FxHashMap<(ObjectIdx, ObjectStep), ObjectIdx>,
    /// Closed seconds, newest last; as many as the longest window sums.
    ring: VecDeque<Vec<Delta>>,
    open: Vec<Delta>,
    open_second: Option<u64>,
    /// End of the open second: what is before moves no window.
    open_until_ns: u64,
    /// Sums that were charged in the open second and are not shared out yet: of each object only its own.
    charged: Vec<Charged>,
    charged_at: FxHashMap<ChargedKey, u32>,
    /// Buffers of expired seconds.
    spare: Vec<Vec<Delta>>,
    functions: FunctionTable,
    /// Members of all layouts that are kept.
    n_members: usize,
    /// No object is made.
    is_closed: bool,
}

impl Totals {
    pub(crate) fn new(lengths: WindowLengths) -> Self {
        let mut totals = Self { lengths, ..Self::default() };
        totals.push(None, artificial(Artificial::Total));
        for own in [Artificial::Scalars, Artificial::Stack, Artificial::Unknown, Artificial::Other]
        {
            totals.push(Some(TOTAL), artificial(own));
        }
        for reason in Reason::ALL {
            totals.push(Some(UNKNOWN), artificial(Artificial::Reason(reason)));
        }
        debug_assert_eq!(totals.objects.len(), FIRST_REASON as usize + N_REASONS);
        totals
    }

    /// The object that a named object's samples are charged to: made now if it is new, `<Other>`
    /// if there are too many.
    pub(crate) fn intern(&mut self, object: &DataObject) -> ObjectIdx {
        let mut parent = if object.is_scalar() { SCALARS } else { TOTAL };
        for level in &object.levels {
            parent = match self.inside.get(&(parent, level.step.clone())) {
                Some(known) => *known,
                None if self.is_closed || self.objects.len() >= limit::MAX_OBJECTS => return OTHER,
                None => {
                    let idx = self.push(Some(parent), level.clone());
                    if let ObjectStep::Aggregate(layout) = &level.step {
                        self.keep_layout(idx, layout);
                    }
                    idx
                }
            };
        }
        if let Some(totals) = self.objects.get_mut(parent.0 as usize) {
            totals.note_candidates(&object.candidates);
        }
        parent
    }

    /// Keeps what an outermost aggregate looks like, as long as there is room.
    fn keep_layout(&mut self, idx: ObjectIdx, layout: &Layout) {
        let room = limit::MAX_LISTED_MEMBERS.min(limit::MAX_KEPT_MEMBERS - self.n_members);
        let described = (room > 0).then(|| type_layout::describe(layout, room));
        let Some(layout) = described.flatten() else { return };
        self.n_members += layout.members.len();
        self.objects[idx.0 as usize].layout = Some(Arc::new(layout));
    }

    /// Tells whether objects that are not known yet are `<Other>` from now on.
    pub(crate) const fn set_closed(&mut self, is_closed: bool) {
        self.is_closed = is_closed;
    }

    /// The object of a reason.
    pub(crate) const fn reason(reason: Reason) -> ObjectIdx {
        ObjectIdx(FIRST_REASON + reason as u32)
    }

    /// Charges a sample to an object and everything around it.
    pub(crate) fn charge(&mut self, object: ObjectIdx, charge: &Charge<'_>) {
        let sample = charge.sample;
        self.advance(sample.time_ns);
        let Some(totals) = self.objects.get_mut(object.0 as usize) else { return };
        let slot = totals.charged.get(usize::from(sample.event.0)).copied().unwrap_or(u32::MAX);
        match self.charged.get_mut(slot as usize) {
            Some(charged) if charged.is_of(object, charge) => charged.count(charge),
            _ => {
                let slot = add_charged(&mut self.charged, &mut self.charged_at, object, charge);
                *place(&mut totals.charged, usize::from(sample.event.0), u32::MAX) = slot;
            }
        }
        if !totals.has_noted(sample.tid, charge.scope) {
            let mut next = Some(object);
            while let Some(totals) = next.and_then(|idx| self.objects.get_mut(idx.0 as usize)) {
                totals.note(sample.tid, charge.scope);
                next = totals.parent;
            }
        }
        if self.charged.len() >= limit::MAX_CHARGED {
            self.share_out();
        }
    }

    /// The lines of functions that access objects; as of the last [`Self::share_out`].
    pub(crate) fn function_lines(&self) -> Arc<[FunctionLine]> {
        self.functions.lines()
    }

    /// Gives what is around each object its share of what was charged. Before that [`Self::objects`]
    /// and [`Self::window`] are out of date.
    pub(crate) fn share_out(&mut self) {
        let second = self.open_second.unwrap_or(0);
        self.charged_at.clear();
        for Charged { delta, scope } in self.charged.drain(..) {
            let Delta { object, event, period, ref sums } = delta;
            self.functions.add(object, scope.as_ref(), (event, period), sums);
            let mut next = Some(object);
            while let Some(idx) = next {
                let Some(totals) = self.objects.get_mut(idx.0 as usize) else { break };
                next = totals.parent;
                totals.all.sums.add(sums);
                let sum = totals.all.event(event);
                *sum = sum.wrapping_add(period);
                add_delta(totals, &mut self.open, second, idx, &delta);
            }
        }
    }

    /// Moves the windows on to `time_ns`. A time before the open second changes nothing: what is
    /// late counts in the open second.
    pub(crate) fn advance(&mut self, time_ns: u64) {
        if time_ns >= self.open_until_ns {
            self.advance_second(time_ns);
        }
    }

    fn advance_second(&mut self, time_ns: u64) {
        let second = time_ns / SECOND_NS;
        let Some(open) = self.open_second else {
            self.open(second);
            return;
        };
        // After a gap longer than the ring all seconds in between are empty.
        let n_steps = second.saturating_sub(open).min(self.n_ring_seconds() as u64 + 1);
        for _ in 0..n_steps {
            self.close_second();
        }
        self.open(open.max(second));
    }

    fn n_ring_seconds(&self) -> usize {
        self.lengths.seconds().first().map_or(0, |longest| n_closed(*longest))
    }

    const fn open(&mut self, second: u64) {
        self.open_second = Some(second);
        self.open_until_ns = second.saturating_add(1).saturating_mul(SECOND_NS);
    }

    pub(crate) fn objects(&self) -> &[ObjectTotals] {
        &self.objects
    }

    /// The object's descriptor, which is made when it is first asked for.
    pub(crate) fn descriptor(&self, idx: ObjectIdx) -> Arc<str> {
        let Some(totals) = self.objects.get(idx.0 as usize) else { return Arc::default() };
        let spell = || match (&totals.level.step, totals.parent) {
            (step @ ObjectStep::Member { .. }, Some(around)) => {
                format!("{}{step}", self.descriptor(around)).into()
            }
            (step, _) => step.to_string().into(),
        };
        Arc::clone(totals.descriptor.get_or_init(spell))
    }

    /// The object's name as a programmer writes it, which is made when it is first asked for, and the part of it that is
    /// its own.
    pub(crate) fn source_name(&self, idx: ObjectIdx) -> Option<&(Arc<str>, NamePart)> {
        let totals = self.objects.get(idx.0 as usize)?;
        Some(totals.source_name.get_or_init(|| {
            let mut steps = vec![&totals.level.step];
            let mut next = totals.parent;
            while let Some(
                ObjectStep::Member { .. } | ObjectStep::Artificial(Artificial::Reason(_)),
            ) = steps.last()
                && let Some(around) = next.and_then(|idx| self.objects.get(idx.0 as usize))
            {
                steps.push(&around.level.step);
                next = around.parent;
            }
            steps.reverse();
            (source_name::name(&steps).into(), source_name::part(&steps))
        }))
    }

    /// The descriptor of the outermost object around one: below it are only `<Total>` and `<Scalars>`.
    pub(crate) fn outermost(&self, idx: ObjectIdx) -> Arc<str> {
        let mut outermost = idx;
        while let Some(around) = self.objects.get(outermost.0 as usize).and_then(|it| it.parent)
            && around != TOTAL
            && around != SCALARS
        {
            outermost = around;
        }
        self.descriptor(outermost)
    }

    /// The lengths of the windows.
    pub(crate) const fn lengths(&self) -> WindowLengths {
        self.lengths
    }

    /// The sums of one of [`Self::lengths`], or of all, over the object at `idx`.
    pub(crate) fn window(&self, idx: ObjectIdx, window: Window) -> SpanSums {
        let idx = idx.0 as usize;
        let Some(totals) = self.objects.get(idx) else { return SpanSums::default() };
        let Window::Last(seconds) = window else { return totals.all.clone() };
        let lengths = self.lengths.seconds();
        let slot = lengths.iter().position(|length| *length == seconds);
        let closed = slot.and_then(|slot| self.windows.get(idx * lengths.len() + slot));
        let mut span = closed.cloned().unwrap_or_default();
        if seconds > 1 {
            let second = self.open_second.unwrap_or(0);
            let slots = totals.open.iter().filter(|(stamp, _)| *stamp == second);
            for delta in slots.filter_map(|(_, slot)| self.open.get(*slot as usize)) {
                span.sums.add(&delta.sums);
                let event = span.event(delta.event);
                *event = event.wrapping_add(delta.period);
            }
        }
        span
    }

    fn close_second(&mut self) {
        self.share_out();
        let spare = self.spare.pop().unwrap_or_default();
        let closed = std::mem::replace(&mut self.open, spare);
        self.ring.push_back(closed);
        let lengths = self.lengths.seconds();
        for (slot, seconds) in lengths.iter().enumerate() {
            let place = (slot, lengths.len());
            let newest = self.ring.back().map_or(&[][..], Vec::as_slice);
            apply(&mut self.windows, place, newest, Sums::add, u64::wrapping_add);
            // The second that falls out of a window of n is the one n before the newest.
            if let Some(expired) = self.ring.len().checked_sub(n_closed(*seconds) + 1) {
                let deltas = self.ring.get(expired).map_or(&[][..], Vec::as_slice);
                apply(&mut self.windows, place, deltas, Sums::subtract, u64::wrapping_sub);
            }
        }
        if self.ring.len() > self.n_ring_seconds()
            && let Some(mut expired) = self.ring.pop_front()
        {
            expired.clear();
            self.spare.push(expired);
        }
    }

    fn push(&mut self, parent: Option<ObjectIdx>, level: ObjectLevel) -> ObjectIdx {
        let idx = ObjectIdx(self.objects.len() as u32);
        if let Some(parent) = parent {
            self.inside.insert((parent, level.step.clone()), idx);
        }
        self.objects.push(ObjectTotals {
            parent,
            level,
            descriptor: OnceCell::new(),
            source_name: OnceCell::new(),
            scopes: Vec::new(),
            candidates: Vec::new(),
            threads: FxHashSet::default(),
            last_tid: None,
            all: SpanSums::default(),
            open: Vec::new(),
            charged: Vec::new(),
            layout: None,
        });
        let n_windows = self.objects.len() * self.lengths.seconds().len();
        self.windows.resize(n_windows, SpanSums::default());
        idx
    }
}

/// Counts a sample of another function or event than the one before; gives where.
fn add_charged(
    charged: &mut Vec<Charged>,
    charged_at: &mut FxHashMap<ChargedKey, u32>,
    object: ObjectIdx,
    charge: &Charge<'_>,
) -> u32 {
    let Sample { event, period, .. } = *charge.sample;
    let key = (object, event, charge.scope.map_or(0, |scope| Arc::as_ptr(scope) as usize));
    let slot = *charged_at.entry(key).or_insert(charged.len() as u32);
    if let Some(known) = charged.get_mut(slot as usize) {
        known.count(charge);
        return slot;
    }
    let mut sums = Sums::default();
    sums.count(charge);
    let delta = Delta { object, event, period, sums };
    charged.push(Charged { delta, scope: charge.scope.cloned() });
    slot
}

fn add_delta(
    totals: &mut ObjectTotals,
    open: &mut Vec<Delta>,
    second: u64,
    object: ObjectIdx,
    charged: &Delta,
) {
    let known = place(&mut totals.open, usize::from(charged.event.0), (u64::MAX, 0));
    let (stamp, slot) = *known;
    if stamp == second
        && let Some(delta) = open.get_mut(slot as usize)
        && delta.object == object
    {
        delta.period = delta.period.wrapping_add(charged.period);
        delta.sums.add(&charged.sums);
        return;
    }
    *known = (second, open.len() as u32);
    open.push(Delta { object, ..charged.clone() });
}

/// Adds deltas to the window at `slot` of the `n_windows` that each object has, or takes them away.
fn apply(
    windows: &mut [SpanSums],
    (slot, n_windows): (usize, usize),
    deltas: &[Delta],
    sums: fn(&mut Sums, &Sums),
    periods: fn(u64, u64) -> u64,
) {
    for delta in deltas {
        let idx = delta.object.0 as usize * n_windows + slot;
        let Some(window) = windows.get_mut(idx) else { continue };
        sums(&mut window.sums, &delta.sums);
        let event = window.event(delta.event);
        *event = periods(*event, delta.period);
    }
}

const fn artificial(own: Artificial) -> ObjectLevel {
    ObjectLevel { step: ObjectStep::Artificial(own), offset: 0, size: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::window::{MAX_WINDOW_S, MAX_WINDOWS};
    use proptest::prelude::*;

    const STACK: ObjectIdx = ObjectIdx(2);

    fn sample(time_ns: u64) -> Sample {
        Sample { time_ns, period: 3, ..Sample::default() }
    }

    fn charge<'a>(sample: &'a Sample) -> Charge<'a> {
        Charge { sample, access: None, evidence: None, scope: None }
    }

    #[test]
    fn a_reason_is_charged_to_unknown_and_total_once() {
        let mut totals = Totals::new(WindowLengths::default());
        totals.charge(Totals::reason(Reason::Kernel), &charge(&sample(5)));
        totals.share_out();
        let samples = |idx: ObjectIdx| totals.objects()[idx.0 as usize].all.sums.samples;
        assert_eq!((samples(TOTAL), samples(UNKNOWN), samples(SCALARS)), (1, 1, 0));
        assert_eq!(&*totals.descriptor(Totals::reason(Reason::Kernel)), "<Unknown>.(kernel)");
    }

    #[test]
    fn what_is_around_has_the_threads_and_functions_of_all_that_is_in_it() {
        let mut totals = Totals::new(WindowLengths::default());
        let function =
            |name: &str| Arc::new(Scope { function: Some(name.into()), ..Scope::default() });
        let scopes = [function("main"), function("main"), function("walk")];
        let touches =
            [(STACK, 1, 0), (STACK, 1, 1), (SCALARS, 2, 0), (STACK, 1, 2), (SCALARS, 1, 0)];
        for (object, tid, scope) in touches {
            let sample = Sample { tid, ..sample(5) };
            totals.charge(object, &Charge { scope: Some(&scopes[scope]), ..charge(&sample) });
        }
        let noted = |idx: ObjectIdx| {
            let totals = &totals.objects()[idx.0 as usize];
            let functions = totals.scopes.iter().filter_map(|scope| scope.function.as_deref());
            (totals.threads.len(), functions.collect::<Vec<_>>().join(" "))
        };
        assert_eq!(noted(STACK), (1, "main walk".to_owned()));
        assert_eq!(noted(SCALARS), (2, "main".to_owned()));
        assert_eq!(noted(TOTAL), (2, "main walk".to_owned()));
    }

    #[test]
    fn functions_are_told_apart_however_they_alternate() {
        let mut totals = Totals::new(WindowLengths::default());
        let function =
            |name: &str| Arc::new(Scope { function: Some(name.into()), ..Scope::default() });
        // Two of one name: one function, known by two scopes.
        let scopes = [function("main"), function("walk"), function("main")];
        for idx in 0..300 {
            let sample = Sample { event: EventIdx(idx % 2), ..sample(u64::from(idx) * 20_000_000) };
            let scope = Some(&scopes[usize::from(idx % 3)]);
            totals.charge(STACK, &Charge { scope, ..charge(&sample) });
        }
        totals.share_out();
        let lines = totals.function_lines();
        let found: Vec<_> = lines
            .iter()
            .map(|line| (line.scope.as_ref().unwrap().function.as_deref().unwrap(), line.samples))
            .collect();
        assert_eq!(found, [("main", 200), ("walk", 100)]);
        assert_eq!(&*lines[0].events, [300, 300]);
        assert_eq!(totals.objects()[TOTAL.0 as usize].all.sums.samples, 300);
    }

    /// Lengths of windows that a session may choose.
    fn lengths() -> impl Strategy<Value = WindowLengths> {
        let chosen = proptest::collection::vec(1..=u64::from(MAX_WINDOW_S), 1..=MAX_WINDOWS);
        // Short ones and neighbours are where a second more or less would tell.
        let short = proptest::sample::subsequence(vec![1, 2, 3, 4, 10, 59, 60], 1..=MAX_WINDOWS);
        prop_oneof![chosen, short, Just(vec![60, 10, 1])]
            .prop_filter_map("twice", |seconds| WindowLengths::try_from(seconds).ok())
    }

    proptest! {
        /// Every window is the sum over the samples of its seconds, whatever its length and the times: a
        /// window of two seconds or more has the open one.
        #[test]
        fn windows_are_exact(
            lengths in lengths(),
            samples in proptest::collection::vec((0u64..700, any::<bool>(), any::<bool>()), 1..200),
        ) {
            let mut samples = samples;
            samples.sort_unstable();
            let mut totals = Totals::new(lengths);
            for (second, is_on_stack, is_looked_at) in &samples {
                let object = if *is_on_stack { STACK } else { SCALARS };
                totals.charge(object, &charge(&sample(second * SECOND_NS)));
                if *is_looked_at {
                    totals.share_out();
                }
            }
            totals.share_out();
            let last = samples.last().unwrap().0;
            for window in lengths.windows() {
                let seconds = match window {
                    Window::All => 0..=last,
                    Window::Last(1) => last.saturating_sub(1)..=last.saturating_sub(1),
                    Window::Last(seconds) => (last + 1).saturating_sub(seconds.into())..=last,
                };
                // Before the first second there is no whole one.
                let is_none = window == Window::Last(1) && last == 0;
                let count = |is_counted: &dyn Fn(bool) -> bool| -> u64 {
                    let inside = samples.iter().filter(|(second, is_on_stack, _)| {
                        !is_none && seconds.contains(second) && is_counted(*is_on_stack)
                    });
                    inside.count() as u64
                };
                let expected = [
                    (STACK, count(&|is_on_stack| is_on_stack)),
                    (SCALARS, count(&|is_on_stack| !is_on_stack)),
                    (TOTAL, count(&|_| true)),
                ];
                for (object, expected) in expected {
                    let span = totals.window(object, window);
                    prop_assert_eq!(span.sums.samples, expected, "{} {:?}", window, object);
                    prop_assert_eq!(span.events.first().copied().unwrap_or(0), expected * 3);
                }
            }
            let n_kept = totals.ring.len() as u64;
            prop_assert!(n_kept < u64::from(lengths.seconds()[0]).max(2), "{}", n_kept);
        }
    }
}
