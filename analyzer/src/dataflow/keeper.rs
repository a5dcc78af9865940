//! Sorting out what is kept of a function's values: one of each that a register holds, with what is known of it.

use super::content::Content;
use super::content_table::{ContentIdx, ContentTable};
use super::doubt::Standing;
use super::fact::{Fact, Part, SumFact};
use super::graph::ValueGraph;
use super::points_to::Carried;
use super::typing::Contents;
use super::value::{BytesBefore, Definition, Place, Sum, ValueIdx};
use crate::limit;
use crate::x86_64::abi::ARGUMENTS;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Index of a value that is kept; 0 is one that nothing is known of.
pub(super) type KeptIdx = u32;

/// A register of a run holds a value from one instruction on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Held {
    pub(super) run: u32,
    pub(super) register: u8,
    pub(super) from: u32,
    pub(super) value: KeptIdx,
}

/// From one instruction on the CFA is computed from this register.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameRun {
    pub(super) from: u32,
    pub(super) register: Option<u8>,
    pub(super) value: KeptIdx,
}

/// A value, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kept {
    pub(super) content: ContentIdx,
    /// Index of its detail; 0 is that of most values, of which there is nothing more to tell.
    pub(super) detail: u32,
}

/// All that is known of a value besides its content.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Detail {
    /// The facts that the debug information tells of it.
    pub(super) facts: Range<u32>,
    pub(super) parts: Range<u32>,
    pub(super) accesses: Accesses,
    /// Accesses before where it points, where it points to bytes.
    pub(super) before: Range<u32>,
    pub(super) given: Option<Given>,
    pub(super) carried: Option<Carried>,
}

/// The function was entered with this value in a register, or with one that is so far from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) register: u8,
    pub(crate) distance: i64,
}

/// Accesses through a value at no distance from where it points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Accesses {
    #[default]
    None,
    /// So many bytes, and nothing else anywhere.
    Only(u8),
    Several,
}

impl Accesses {
    fn with(self, displacement: i64, n_bytes: u8) -> Self {
        match self {
            Self::None if displacement == 0 => Self::Only(n_bytes),
            Self::Only(known) if displacement == 0 && known == n_bytes => self,
            _ => Self::Several,
        }
    }
}

/// Sorts out what is kept.
pub(super) struct Keeper<'a> {
    graph: &'a ValueGraph,
    pub(super) contents: Contents,
    accesses: FxHashMap<ValueIdx, Accesses>,
    accesses_before: FxHashMap<ValueIdx, Vec<BytesBefore>>,
    known: FxHashMap<ValueIdx, KeptIdx>,
    pub(super) kept: Vec<Kept>,
    pub(super) table: ContentTable,
    pub(super) details: Vec<Detail>,
    pub(super) facts: Vec<Fact>,
    pub(super) parts: Vec<Part>,
    pub(super) before: Vec<BytesBefore>,
}

impl<'a> Keeper<'a> {
    pub(super) fn new(graph: &'a ValueGraph, contents: Contents) -> Self {
        let mut accesses: FxHashMap<ValueIdx, Accesses> = FxHashMap::default();
        let mut accesses_before: FxHashMap<ValueIdx, Vec<BytesBefore>> = FxHashMap::default();
        let tested = graph.kind_tested.iter().map(|value| graph.canonical(*value));
        let tested: FxHashSet<ValueIdx> = tested.collect();
        for (base, touched) in &graph.accesses {
            let base = graph.canonical(*base);
            if let Some(before) = BytesBefore::of(touched).filter(|_| tested.contains(&base)) {
                let known = accesses_before.entry(base).or_default();
                if known.len() < limit::MAX_SHAPE_ACCESSES && !known.contains(&before) {
                    known.push(before);
                }
            }
            if contents.parts.contains_key(&base) {
                let known = accesses.entry(base).or_default();
                *known = known.with(touched.displacement, touched.n_bytes);
            }
        }
        Self {
            graph,
            contents,
            accesses,
            accesses_before,
            known: FxHashMap::default(),
            kept: vec![Kept::default()],
            table: ContentTable::new(),
            details: vec![Detail::default()],
            facts: Vec::new(),
            parts: Vec::new(),
            before: Vec::new(),
        }
    }

    /// Keeps what is known of a value.
    fn keep(&mut self, value: ValueIdx) -> KeptIdx {
        let value = self.graph.canonical(value);
        if let Some(known) = self.known.get(&value) {
            return *known;
        }
        let (first_fact, first_part) = (self.facts.len(), self.parts.len());
        if !self.graph.is_count(value) {
            let facts = self.contents.facts.remove(&value).unwrap_or_default();
            self.facts.extend(facts.into_iter().filter(|fact| fact.standing == Standing::Own));
        }
        self.parts.extend(self.contents.parts.remove(&value).unwrap_or_default());
        let content = self.contents.take(value);
        let detail = Detail {
            facts: from(&self.facts, first_fact),
            parts: from(&self.parts, first_part),
            accesses: self.accesses.get(&value).copied().unwrap_or_default(),
            before: self.keep_before(value, &content),
            given: self.given(value),
            carried: self.contents.carried.get(&value).copied(),
        };
        let is_plain = detail == Detail::default();
        let kept = if is_plain && content == Content::Unknown {
            0
        } else {
            let content = self.table.add(content);
            let detail = if is_plain { 0 } else { push(&mut self.details, detail) };
            push(&mut self.kept, Kept { content, detail })
        };
        self.known.insert(value, kept);
        kept
    }

    /// Keeps the accesses before where a value points, if that is bytes, the last byte before is tested for a kind, and there
    /// are several, all of which are known.
    fn keep_before(&mut self, value: ValueIdx, content: &Content) -> Range<u32> {
        let first = self.before.len();
        let is_of_bytes = matches!(content, Content::Address(address) if address.is_erased());
        let accesses = self.accesses_before.get(&value).filter(|_| is_of_bytes);
        let accesses = accesses.filter(|it| (3..limit::MAX_SHAPE_ACCESSES).contains(&it.len()));
        self.before.extend(accesses.into_iter().flatten());
        from(&self.before, first)
    }

    /// Finds the function's argument that a value is, if it is one.
    fn given(&self, mut value: ValueIdx) -> Option<Given> {
        let mut distance: i64 = 0;
        for _ in 0..limit::MAX_PASSED_ON {
            match self.graph.definition(value)? {
                Definition::Parameter { register } => {
                    let register = *register;
                    return ARGUMENTS.contains(&register).then_some(Given { register, distance });
                }
                Definition::Sum(Sum { base: Some(base), index: None, displacement, .. }) => {
                    distance = distance.wrapping_add(*displacement);
                    value = *base;
                }
                _ => return None,
            }
        }
        None
    }

    /// Lists what registers hold in each run; not those of which nothing is known anywhere in it.
    pub(super) fn held(&mut self) -> Vec<Held> {
        let graph = self.graph;
        let mut held: Vec<Held> = Vec::new();
        let mut hold = |(run, place): (u32, Place), from, value| {
            if let Place::Register(register) = place {
                held.push(Held { run, register, from, value: self.keep(value) });
            }
        };
        for (place, value) in graph.entries() {
            hold(place, 0, value);
        }
        for (place, writes) in graph.writes() {
            for (at, value) in writes {
                hold(place, at + 1, *value);
            }
        }
        told(held)
    }

    /// Keeps what is said of sums, with the values that they are of.
    pub(super) fn sums(&mut self) -> Vec<(SumFact, [KeptIdx; 2])> {
        let facts = std::mem::take(&mut self.contents.sums).into_iter();
        facts
            .map(|(fact, values)| {
                let values = values.map(|values| values.map(|value| self.keep(value)));
                (fact, values.unwrap_or_default())
            })
            .collect()
    }

    pub(super) fn frames(&mut self) -> Vec<FrameRun> {
        let graph = self.graph;
        let mut runs = Vec::new();
        let mut last = None;
        for (at, rule) in graph.frames.iter().enumerate() {
            if last.replace(rule) == Some(rule) {
                continue;
            }
            let found = graph.frame_of(*rule);
            let value = found.and_then(|(_, value)| value).map_or(0, |value| self.keep(value));
            let register = found.map(|(register, _)| register);
            runs.push(FrameRun { from: at as u32, register, value });
        }
        runs
    }
}

/// The values of registers that are known anywhere in their run, in order, each once while it stays.
fn told(mut held: Vec<Held>) -> Vec<Held> {
    held.sort_unstable();
    let groups = held.chunk_by(|a, b| (a.run, a.register) == (b.run, b.register));
    let known = groups.filter(|group| group.iter().any(|held| held.value != 0));
    let mut told: Vec<Held> = known.flatten().copied().collect();
    told.dedup_by_key(|held| (held.run, held.register, held.value));
    told
}

/// The part of a list that begins at `first`; where it is empty, that at the list's beginning.
fn from<T>(list: &[T], first: usize) -> Range<u32> {
    if first < list.len() { first as u32..list.len() as u32 } else { 0..0 }
}

/// Appends to a list, and says where.
fn push<T>(list: &mut Vec<T>, item: T) -> u32 {
    list.push(item);
    list.len() as u32 - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_told_of_where_its_value_changes() {
        let held = |(run, register, from, value)| Held { run, register, from, value };
        let all = [
            (1, 0, 0, 5),
            (0, 2, 0, 5),
            (0, 1, 0, 5),
            (0, 1, 3, 5),
            (0, 1, 7, 0),
            (0, 1, 9, 5),
            // Of this one nothing is known in the first run.
            (0, 3, 0, 0),
            (0, 3, 4, 0),
            (1, 3, 0, 6),
        ];
        let expected =
            [(0, 1, 0, 5), (0, 1, 7, 0), (0, 1, 9, 5), (0, 2, 0, 5), (1, 0, 0, 5), (1, 3, 0, 6)];
        assert_eq!(told(all.map(held).into()), expected.map(held));
    }
}
