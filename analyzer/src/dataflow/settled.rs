//! A function's values as they are kept when they have settled: what each register holds at each
//! instruction. How the values came about takes ten times as much, and nobody asks for it again.

use super::content::{Address, Content, Origin};
use super::doubt::{Doubt, Standing};
use super::fact::{Fact, Part, SumFact, all, refined};
use super::frame_variable::{FrameVariable, FrameVariables};
use super::graph::ValueGraph;
use super::points_to::Carried;
use super::typing::Contents;
use super::value::{BytesBefore, Definition, Place, Slot, Sum, ValueIdx};
use crate::limit;
use crate::types::layout::{Layout, ScalarKind, Shape};
use crate::x86_64::abi::ARGUMENTS;
use crate::x86_64::function::FunctionCode;
use dataspace_proto::address::Svma;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;

/// A function's values, as far as they are known.
#[derive(Debug, Default)]
pub(crate) struct Dataflow {
    /// The first instruction, and how far behind it each one begins.
    start: u64,
    instructions: Box<[u32]>,
    /// The first instruction of each run.
    runs: Box<[u32]>,
    frames: Box<[FrameRun]>,
    held: Box<[Held]>,
    kept: Box<[Kept]>,
    facts: Box<[Fact]>,
    parts: Box<[Part]>,
    before: Box<[BytesBefore]>,
    /// Each with the values of its registers.
    sums: Box<[(SumFact, [KeptIdx; 2])]>,
    frame: FrameVariables,
    open_parameters: Box<[u8]>,
    /// True if what the function's callers pass went into it.
    pub(crate) is_given: bool,
}

/// Index of a value that is kept; 0 is one that nothing is known of.
type KeptIdx = u32;

/// A register of a run holds a value from one instruction on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    run: u32,
    register: u8,
    from: u32,
    value: KeptIdx,
}

/// From one instruction on the CFA is computed from this register.
#[derive(Clone, Copy, Debug)]
struct FrameRun {
    from: u32,
    register: Option<u8>,
    value: KeptIdx,
}

/// A value, as far as it is known.
#[derive(Debug)]
pub(crate) struct Kept {
    content: Content,
    /// The facts that the debug information tells of it.
    facts: Range<u32>,
    parts: Range<u32>,
    accesses: Accesses,
    /// Accesses before where it points, where it points to bytes.
    before: Range<u32>,
    given: Option<Given>,
    carried: Option<Carried>,
}

/// The function was entered with this value in a register, or with one that is so far from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) register: u8,
    pub(crate) distance: i64,
}

/// Accesses through a value at no distance from where it points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accesses {
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

impl Dataflow {
    /// Keeps what is asked for later.
    pub(super) fn keep(
        function: &FunctionCode,
        graph: &ValueGraph,
        contents: Contents,
        open_parameters: Vec<u8>,
    ) -> Self {
        let ips = (0..function.n_instructions()).map(|at| function.svma(at).map_or(0, |at| at.0));
        let start = function.svma(0).map_or(0, |first| first.0);
        // An instruction that is further away is not found.
        let into = |ip: u64| u32::try_from(ip.wrapping_sub(start)).unwrap_or(u32::MAX);
        let mut keeper = Keeper::new(graph, contents);
        let (held, frames, sums) = (keeper.held(), keeper.frames(), keeper.sums());
        let Keeper { contents, kept, facts, parts, before, .. } = keeper;
        Self {
            start,
            instructions: ips.map(into).collect(),
            runs: graph.run_starts().collect(),
            frames: frames.into(),
            held: held.into(),
            kept: kept.into(),
            facts: facts.into(),
            parts: parts.into(),
            before: before.into(),
            frame: contents.frame,
            sums: sums.into(),
            open_parameters: open_parameters.into(),
            is_given: false,
        }
    }

    /// The registers whose content at the function's entry is used and not known.
    pub(crate) fn open_parameters(&self) -> &[u8] {
        &self.open_parameters
    }

    /// About how much memory it takes.
    pub(crate) fn n_bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.instructions)
            + size_of_val(&*self.runs)
            + size_of_val(&*self.frames)
            + size_of_val(&*self.held)
            + size_of_val(&*self.kept)
            + size_of_val(&*self.facts)
            + size_of_val(&*self.parts)
            + size_of_val(&*self.before)
            + size_of_val(&*self.sums)
            + self.frame.n_bytes()
    }

    /// Finds what is known of the value in a register before the instruction at `svma`.
    pub(crate) fn value(&self, svma: Svma, number: u16) -> Option<&Kept> {
        self.kept.get(self.kept_at(svma, number)? as usize)
    }

    /// The place of that value among those that are kept.
    fn kept_at(&self, svma: Svma, number: u16) -> Option<KeptIdx> {
        let into = u32::try_from(svma.0.wrapping_sub(self.start)).ok()?;
        let at = self.instructions.binary_search(&into).ok()? as u32;
        let number = u8::try_from(number).ok()?;
        let frame = self.frames.partition_point(|run| run.from <= at).checked_sub(1)?;
        let frame = self.frames.get(frame)?;
        if frame.register == Some(number) {
            return Some(frame.value);
        }
        let run = self.runs.partition_point(|first| *first <= at).checked_sub(1)? as u32;
        let behind = self
            .held
            .partition_point(|held| (held.run, held.register, held.from) <= (run, number, at));
        let held = self.held.get(behind.checked_sub(1)?)?;
        ((held.run, held.register) == (run, number)).then_some(held.value)
    }

    /// Lists the accesses before where a register points at the instruction at `svma`, of a pointer to bytes of which there
    /// are several.
    pub(crate) fn before(&self, svma: Svma, number: u16) -> &[BytesBefore] {
        let range = self.value(svma, number).map_or(0..0, |value| value.before.clone());
        self.before.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    fn parts_of(&self, value: &Kept) -> &[Part] {
        self.parts.get(value.parts.start as usize..value.parts.end as usize).unwrap_or_default()
    }

    /// Finds the content of a register, by its DWARF number, before the instruction at `svma`.
    pub(crate) fn register(&self, svma: Svma, number: u16) -> Content {
        let Some(value) = self.value(svma, number) else { return Content::Unknown };
        let known = value.content.clone();
        let facts = self.facts.get(value.facts.start as usize..value.facts.end as usize);
        let here = || facts.unwrap_or_default().iter().filter(|it| it.code.contains(&svma.0));
        let said = match all(here()) {
            // Of views that contradict each other that of the innermost scope.
            Some(Content::Top) => {
                let depth = here().map(|fact| fact.depth).max();
                all(here().filter(|fact| Some(fact.depth) == depth))
            }
            said => said,
        };
        let is_perhaps_part = is_perhaps_part(&known, svma, facts.unwrap_or_default());
        let content = match said {
            Some(said) if is_erased(&said) && is_copied_word(&known) => said,
            Some(said) => refined(known, said),
            None => known,
        };
        match content {
            Content::Address(address) if is_perhaps_part => {
                Content::Address(address.doubted(Doubt::Whole))
            }
            content => content,
        }
    }

    /// Finds where a pointer to nothing known comes from that a register holds, if that may tell what it leads to.
    pub(crate) fn carried(&self, svma: Svma, number: u16) -> Option<Carried> {
        self.value(svma, number)?.carried
    }

    /// Finds the argument given to the function that a register holds before the instruction at `svma`.
    pub(crate) fn given(&self, svma: Svma, number: u8) -> Option<Given> {
        self.value(svma, u16::from(number))?.given
    }

    /// The variable that the debug information says is so far from where a register points, and how
    /// far into it that is: there, or else wherever the value is the same.
    pub(crate) fn part(&self, svma: Svma, number: u16, at: i64) -> Option<(Arc<Layout>, u64)> {
        let parts = self.parts_of(self.value(svma, number)?);
        let around = || {
            let parts = parts.iter().filter(|part| !part.is_copy);
            parts.filter_map(|part| Some((part, part.into(at)?)))
        };
        let here = around().rfind(|(part, _)| part.code.contains(&svma.0));
        let anywhere = || {
            let (last, into) = around().next_back()?;
            let is_same = |(part, other): (&Part, u64)| {
                part.layout.fingerprint == last.layout.fingerprint && other == into
            };
            around().all(is_same).then_some((last, into))
        };
        let (part, into) = here.or_else(anywhere)?;
        Some((Arc::clone(&part.layout), into))
    }

    /// The type of a variable that has the value of what a register points at, if that is all that is
    /// ever accessed through it.
    pub(crate) fn copied(&self, svma: Svma, number: u16, size: u64) -> Option<Arc<Layout>> {
        let value = self.value(svma, number)?;
        let mut copies =
            self.parts_of(value).iter().filter(|part| part.is_copy && part.offset == 0);
        let layout = Arc::clone(&copies.next().filter(|part| part.layout.size == size)?.layout);
        let is_same = |part: &Part| part.layout.fingerprint == layout.fingerprint;
        let is_alone = match value.accesses {
            Accesses::None => true,
            Accesses::Only(n_bytes) => u64::from(n_bytes) == size,
            Accesses::Several => false,
        };
        (copies.all(is_same) && is_alone).then_some(layout)
    }

    /// The type of a variable that has the value of what lies so far from where a register points, if nothing else is said
    /// of that place.
    pub(crate) fn copied_at(
        &self,
        svma: Svma,
        number: u16,
        (at, size): (i64, u64),
    ) -> Option<Arc<Layout>> {
        let parts = self.parts_of(self.value(svma, number)?).iter();
        let mut here = parts.filter(|part| part.offset == at && part.code.contains(&svma.0));
        let layout = Arc::clone(&here.next().filter(|part| part.layout.size == size)?.layout);
        here.all(|part| part.layout.fingerprint == layout.fingerprint).then_some(layout)
    }

    /// Finds the object that the debug information says is at the sum of two registers, which no other value is.
    pub(crate) fn summed(&self, svma: Svma, sum: (u16, u16, u8)) -> Option<&Address> {
        let (base, index, scale) = (sum.0, sum.1, i64::from(sum.2));
        let held = [base, index].map(|number| self.kept_at(svma, number).unwrap_or(0));
        let is_it = |(known, values): &&(SumFact, [KeptIdx; 2])| {
            let turned = |is_so: bool| scale == 1 && known.sum.2 == 1 && is_so;
            let is_here = known.code.contains(&svma.0)
                && (known.sum == (base, index, scale) || turned(known.sum == (index, base, 1)));
            // What is said of two values is true of them elsewhere, too.
            let is_known = !values.contains(&0) && known.sum.2 == scale;
            let [first, second] = held;
            is_here || is_known && (*values == held || turned(*values == [second, first]))
        };
        let mut here = self.sums.iter().filter(is_it);
        let address = &here.next()?.0.address;
        here.all(|(other, _)| other.address == *address).then_some(address)
    }

    /// The variable in the frame at `slot`, and how far into it that is.
    pub(crate) fn frame_variable(&self, svma: Svma, slot: Slot) -> Option<(&FrameVariable, u64)> {
        self.frame.innermost(svma.0, slot).filter(|(variable, _)| !variable.is_reference)
    }
}

fn is_erased(content: &Content) -> bool {
    matches!(content, Content::Address(address) if address.is_erased())
}

/// Tells whether nothing but what is done with an address tells that it is of whole numbers or of pointers
/// to nothing, as which anything is copied. What is declared has a name.
fn is_copied_word(content: &Content) -> bool {
    let Content::Address(Address { origin: Origin::Object(layout), name: None, .. }) = content
    else {
        return false;
    };
    let layout = layout.innermost();
    match layout.shape {
        Shape::Scalar(ScalarKind::Number) => true,
        Shape::Scalar(ScalarKind::Pointer) => layout.expression.leads_to_nothing(),
        _ => false,
    }
}

/// Tells whether it is said for other code only what an address is of, and nothing but its first part is certain.
fn is_perhaps_part(known: &Content, svma: Svma, facts: &[Fact]) -> bool {
    let Content::Address(known) = known else { return false };
    let is_whole = |fact: &Fact| matches!(&fact.content, Content::Address(said) if said.origin == known.origin);
    let is_part = |fact: &Fact| {
        matches!(&fact.content, Content::Address(said)
            if said.origin != known.origin && said.offset == known.offset && known.contains(said))
    };
    let mut wholes = facts.iter().filter(|fact| is_whole(fact)).peekable();
    wholes.peek().is_some()
        && !wholes.any(|fact| fact.code.contains(&svma.0))
        && facts.iter().any(is_part)
}

/// Sorts out what is kept.
struct Keeper<'a> {
    graph: &'a ValueGraph,
    contents: Contents,
    accesses: FxHashMap<ValueIdx, Accesses>,
    accesses_before: FxHashMap<ValueIdx, Vec<BytesBefore>>,
    known: FxHashMap<ValueIdx, KeptIdx>,
    kept: Vec<Kept>,
    facts: Vec<Fact>,
    parts: Vec<Part>,
    before: Vec<BytesBefore>,
}

impl<'a> Keeper<'a> {
    fn new(graph: &'a ValueGraph, contents: Contents) -> Self {
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
                let known = accesses.entry(base).or_insert(Accesses::None);
                *known = known.with(touched.displacement, touched.n_bytes);
            }
        }
        let content = Content::Unknown;
        let none = Accesses::None;
        let unknown = Kept {
            content,
            facts: 0..0,
            parts: 0..0,
            accesses: none,
            before: 0..0,
            given: None,
            carried: None,
        };
        Self {
            graph,
            contents,
            accesses,
            accesses_before,
            known: FxHashMap::default(),
            kept: vec![unknown],
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
        let (first_fact, first_part) = (self.facts.len() as u32, self.parts.len() as u32);
        if !self.graph.is_count(value) {
            let facts = self.contents.facts.remove(&value).unwrap_or_default();
            self.facts.extend(facts.into_iter().filter(|fact| fact.standing == Standing::Own));
        }
        self.parts.extend(self.contents.parts.remove(&value).unwrap_or_default());
        let content = self.contents.take(value);
        let (facts, parts) =
            (first_fact..self.facts.len() as u32, first_part..self.parts.len() as u32);
        let given = self.given(value);
        let carried = self.contents.carried.get(&value).copied();
        let is_unknown = content == Content::Unknown && given.is_none() && carried.is_none();
        let kept = if is_unknown && facts.is_empty() && parts.is_empty() {
            0
        } else {
            let accesses = self.accesses.get(&value).copied().unwrap_or(Accesses::None);
            let before = self.keep_before(value, &content);
            self.kept.push(Kept { content, facts, parts, accesses, before, given, carried });
            self.kept.len() as u32 - 1
        };
        self.known.insert(value, kept);
        kept
    }

    /// Keeps the accesses before where a value points, if that is bytes, the last byte before is tested for a kind, and there
    /// are several, all of which are known.
    fn keep_before(&mut self, value: ValueIdx, content: &Content) -> Range<u32> {
        let first = self.before.len() as u32;
        let is_of_bytes = matches!(content, Content::Address(address) if address.is_erased());
        let accesses = self.accesses_before.get(&value).filter(|_| is_of_bytes);
        let accesses = accesses.filter(|it| (3..limit::MAX_SHAPE_ACCESSES).contains(&it.len()));
        self.before.extend(accesses.into_iter().flatten());
        first..self.before.len() as u32
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
    fn held(&mut self) -> Vec<Held> {
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
        held.sort_unstable();
        let groups = held.chunk_by(|a, b| (a.run, a.register) == (b.run, b.register));
        groups.filter(|group| group.iter().any(|held| held.value != 0)).flatten().copied().collect()
    }

    /// Keeps what is said of sums, with the values that they are of.
    fn sums(&mut self) -> Vec<(SumFact, [KeptIdx; 2])> {
        let facts = std::mem::take(&mut self.contents.sums).into_iter();
        facts
            .map(|(fact, values)| {
                let values = values.map(|values| values.map(|value| self.keep(value)));
                (fact, values.unwrap_or_default())
            })
            .collect()
    }

    fn frames(&mut self) -> Vec<FrameRun> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::sample::{number, structure};

    /// Makes a flow that knows what register 0 holds at 0x1000 to 0x1003.
    fn flow(content: Content, facts: Vec<Fact>, parts: Vec<Part>) -> Dataflow {
        let n = |len: usize| 0..len as u32;
        let (of_facts, of_parts) = (n(facts.len()), n(parts.len()));
        let accesses = Accesses::None;
        let (before, given) = (0..0, None);
        let kept = Kept {
            content,
            facts: of_facts,
            parts: of_parts,
            accesses,
            before,
            given,
            carried: None,
        };
        Dataflow {
            start: 0x1000,
            instructions: Box::new([0, 1, 2, 3]),
            runs: Box::new([0]),
            frames: Box::new([FrameRun { from: 0, register: None, value: 0 }]),
            held: Box::new([Held { run: 0, register: 0, from: 0, value: 0 }]),
            kept: Box::new([kept]),
            facts: facts.into(),
            parts: parts.into(),
            ..Dataflow::default()
        }
    }

    #[test]
    fn all_that_is_kept_takes_its_bytes() {
        let part = |at| Part { offset: at, layout: number("int", 4), code: 0..1, is_copy: false };
        let n_bytes = |n_parts| {
            flow(Content::Unknown, Vec::new(), (0..n_parts).map(part).collect()).n_bytes()
        };
        assert_eq!(n_bytes(3) - n_bytes(0), 3 * size_of::<Part>());
    }

    #[test]
    fn what_is_said_elsewhere_to_be_a_whole_object_is_perhaps_its_first_part_here() {
        let link = structure("link", 8, &[("next", 0, &number("long int", 8))]);
        let node = structure("node", 24, &[("link", 0, &link), ("key", 8, &number("long int", 8))]);
        let address =
            |layout: &Arc<Layout>| Content::Address(Address::object(Arc::clone(layout), 0, None));
        let fact = |layout, code: Range<u64>| Fact {
            content: address(layout),
            code,
            depth: 0,
            standing: Standing::Own,
        };
        let facts = vec![fact(&node, 0x1000..0x1001), fact(&link, 0x1001..0x1002)];
        let flow = flow(address(&node), facts, Vec::new());
        let is_doubted = |svma| match flow.register(Svma(svma), 0) {
            Content::Address(address) => Some(address.has(Doubt::Whole)),
            _ => None,
        };
        assert_eq!(is_doubted(0x1000), Some(false), "it is said here");
        assert_eq!(is_doubted(0x1003), Some(true));
        assert_eq!(flow.register(Svma(0x1004), 0), Content::Unknown, "no instruction is there");
    }
}
