//! A function's values as they are kept when they have settled: what each register holds at each
//! instruction. How the values came about takes ten times as much, and nobody asks for it again.

use super::address::{Address, Origin};
use super::content::Content;
use super::doubt::Doubt;
use super::fact::{Fact, Part, SumFact, all, refined};
use super::frame_variable::{FrameVariable, FrameVariables};
use super::graph::ValueGraph;
use super::keeper::{Accesses, Detail, FrameRun, Given, Held, Keeper, Kept, KeptIdx};
use super::points_to::Carried;
use super::typing::Contents;
use super::value::{BytesBefore, Slot};
use crate::types::layout::{Layout, ScalarKind, Shape};
use crate::x86_64::function::FunctionCode;
use dataspace_proto::address::Svma;
use rustc_hash::FxHashSet;
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
    contents: Box<[Content]>,
    details: Box<[Detail]>,
    facts: Box<[Fact]>,
    parts: Box<[Part]>,
    before: Box<[BytesBefore]>,
    /// Each with the values of its registers.
    sums: Box<[(SumFact, [KeptIdx; 2])]>,
    frame: FrameVariables,
    open_parameters: Box<[u8]>,
    /// About how much memory it takes.
    n_bytes: usize,
    /// True if what the function's callers pass went into it.
    pub(crate) is_given: bool,
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
        let Keeper { contents, kept, table, details, facts, parts, before, .. } = keeper;
        let mut kept = Self {
            start,
            instructions: ips.map(into).collect(),
            runs: graph.run_starts().collect(),
            frames: frames.into(),
            held: held.into(),
            kept: kept.into(),
            contents: table.into_contents(),
            details: details.into(),
            facts: facts.into(),
            parts: parts.into(),
            before: before.into(),
            frame: contents.frame,
            sums: sums.into(),
            open_parameters: open_parameters.into(),
            n_bytes: 0,
            is_given: false,
        };
        kept.n_bytes = kept.count_bytes();
        kept
    }

    /// The registers whose content at the function's entry is used and not known.
    pub(crate) fn open_parameters(&self) -> &[u8] {
        &self.open_parameters
    }

    /// About how much memory it takes.
    pub(crate) const fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    fn count_bytes(&self) -> usize {
        let said: FxHashSet<_> = self.facts.iter().map(|fact| Arc::as_ptr(&fact.content)).collect();
        size_of::<Self>()
            + said.len() * size_of::<Content>()
            + size_of_val(&*self.instructions)
            + size_of_val(&*self.runs)
            + size_of_val(&*self.frames)
            + size_of_val(&*self.held)
            + size_of_val(&*self.kept)
            + size_of_val(&*self.contents)
            + size_of_val(&*self.details)
            + size_of_val(&*self.facts)
            + size_of_val(&*self.parts)
            + size_of_val(&*self.before)
            + size_of_val(&*self.sums)
            + self.frame.n_bytes()
    }

    /// Finds what is known of the value in a register before the instruction at `svma`.
    fn value(&self, svma: Svma, number: u16) -> Option<Kept> {
        self.kept.get(self.kept_at(svma, number)? as usize).copied()
    }

    /// Finds what is known of that value besides its content.
    fn detail(&self, svma: Svma, number: u16) -> Option<&Detail> {
        self.details.get(self.value(svma, number)?.detail as usize)
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
        let range = self.detail(svma, number).map_or(0..0, |detail| detail.before.clone());
        self.before.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    fn parts_of(&self, detail: &Detail) -> &[Part] {
        self.parts.get(detail.parts.start as usize..detail.parts.end as usize).unwrap_or_default()
    }

    /// Finds the content of a register, by its DWARF number, before the instruction at `svma`.
    pub(crate) fn register(&self, svma: Svma, number: u16) -> Content {
        let Some(value) = self.value(svma, number) else { return Content::Unknown };
        let known = self.contents.get(value.content as usize).cloned().unwrap_or(Content::Unknown);
        let range = self.details.get(value.detail as usize).map_or(0..0, |it| it.facts.clone());
        let facts = self.facts.get(range.start as usize..range.end as usize);
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
        self.detail(svma, number)?.carried
    }

    /// Finds the argument given to the function that a register holds before the instruction at `svma`.
    pub(crate) fn given(&self, svma: Svma, number: u8) -> Option<Given> {
        self.detail(svma, u16::from(number))?.given
    }

    /// The variable that the debug information says is so far from where a register points, and how
    /// far into it that is: there, or else wherever the value is the same.
    pub(crate) fn part(&self, svma: Svma, number: u16, at: i64) -> Option<(Arc<Layout>, u64)> {
        let parts = self.parts_of(self.detail(svma, number)?);
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
        let detail = self.detail(svma, number)?;
        let mut copies =
            self.parts_of(detail).iter().filter(|part| part.is_copy && part.offset == 0);
        let layout = Arc::clone(&copies.next().filter(|part| part.layout.size == size)?.layout);
        let is_same = |part: &Part| part.layout.fingerprint == layout.fingerprint;
        let is_alone = match detail.accesses {
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
        let parts = self.parts_of(self.detail(svma, number)?).iter();
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
    let is_whole = |fact: &Fact| matches!(&*fact.content, Content::Address(said) if said.origin == known.origin);
    let is_part = |fact: &Fact| {
        matches!(&*fact.content, Content::Address(said)
            if said.origin != known.origin && said.offset == known.offset && known.contains(said))
    };
    let mut wholes = facts.iter().filter(|fact| is_whole(fact)).peekable();
    wholes.peek().is_some()
        && !wholes.any(|fact| fact.code.contains(&svma.0))
        && facts.iter().any(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::doubt::Standing;
    use crate::types::sample::{number, structure};
    use std::ops::Range;

    /// Makes a flow that knows what register 0 holds at 0x1000 to 0x1003.
    fn flow(content: Content, facts: Vec<Fact>, parts: Vec<Part>) -> Dataflow {
        let n = |len: usize| 0..len as u32;
        let (of_facts, of_parts) = (n(facts.len()), n(parts.len()));
        let detail = Detail { facts: of_facts, parts: of_parts, ..Detail::default() };
        Dataflow {
            start: 0x1000,
            instructions: Box::new([0, 1, 2, 3]),
            runs: Box::new([0]),
            frames: Box::new([FrameRun { from: 0, register: None, value: 0 }]),
            held: Box::new([Held { run: 0, register: 0, from: 0, value: 0 }]),
            kept: Box::new([Kept { content: 0, detail: 1 }]),
            contents: Box::new([content]),
            details: Box::new([Detail::default(), detail]),
            facts: facts.into(),
            parts: parts.into(),
            ..Dataflow::default()
        }
    }

    #[test]
    fn all_that_is_kept_takes_its_bytes() {
        let part = |at| Part { offset: at, layout: number("int", 4), code: 0..1, is_copy: false };
        let fact = |content: &Arc<Content>| Fact {
            content: Arc::clone(content),
            code: 0..1,
            depth: 0,
            standing: Standing::Own,
        };
        let n_bytes = |facts: Vec<Fact>, n_parts: i64| {
            let parts = (0..n_parts).map(part).collect();
            flow(Content::Unknown, facts, parts).count_bytes()
        };
        let nothing = n_bytes(Vec::new(), 0);
        assert_eq!(n_bytes(Vec::new(), 3) - nothing, 3 * size_of::<Part>());
        let (one, other) = (Arc::new(Content::Top), Arc::new(Content::Top));
        let facts = vec![fact(&one), fact(&other), fact(&one)];
        let of_facts = 3 * size_of::<Fact>() + 2 * size_of::<Content>();
        assert_eq!(n_bytes(facts, 0) - nothing, of_facts, "one content is said twice");
    }

    #[test]
    fn what_is_said_elsewhere_to_be_a_whole_object_is_perhaps_its_first_part_here() {
        let link = structure("link", 8, &[("next", 0, &number("long int", 8))]);
        let node = structure("node", 24, &[("link", 0, &link), ("key", 8, &number("long int", 8))]);
        let address =
            |layout: &Arc<Layout>| Content::Address(Address::object(Arc::clone(layout), 0, None));
        let fact = |layout, code: Range<u64>| Fact {
            content: Arc::new(address(layout)),
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
