//! Data flow over one function: what each register holds at each instruction, from what the debug
//! information says somewhere in it.
//!
//! The function's values are put in single assignment form ([`graph`], filled by [`transfer`]). What
//! the debug information says of a variable at some instruction holds for the value that is in its
//! place there, wherever that value is. From there [`typing`] goes forwards (members that are loaded,
//! addresses that are computed, what calls return) and [`hint`] backwards (what a value is stored
//! in, passed as or named later).

mod arithmetic;
mod call;
mod content;
mod extent;
mod fact;
mod factor;
mod frame;
mod graph;
mod hint;
mod liveness;
mod load;
mod number;
mod offset;
mod settling;
mod shape;
mod signature;
mod sum;
mod transfer;
mod typing;
mod value;
mod vector;

pub(crate) use content::{Address, Content, Origin, PointerName};
pub(crate) use number::Number;
pub(crate) use offset::Offset;
pub(crate) use typing::{FrameVariable, Surroundings};
pub(crate) use value::{ARGUMENTS, Slot};

use crate::data_symbol::DataPlace;
use crate::dwarf::DebugInfo;
use crate::dwarf::frame::{FrameRow, FrameRule, FrameTable};
use crate::dwarf::location::{Base, Place as VariablePlace};
use crate::layout::Layout;
use crate::limit;
use crate::x86_64::access;
use crate::x86_64::function::FunctionCode;
use dataspace_proto::address::Svma;
use fact::{Fact, Part, all, refined};
use graph::ValueGraph;
use iced_x86::Instruction;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use typing::{Contents, Typing};
use value::{Definition, Place, Sum, ValueIdx};

/// What all known callers pass in a register.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) register: u8,
    pub(crate) content: Content,
}

/// What is known of a function's values.
#[derive(Debug)]
pub(crate) struct Dataflow {
    function: Arc<FunctionCode>,
    graph: ValueGraph,
    contents: Contents,
}

impl Dataflow {
    /// Follows the values of a function, which gets `given` from its callers; `None` where there are
    /// too many.
    pub(crate) fn of(
        function: &Arc<FunctionCode>,
        frames: &FrameTable,
        around: &mut Surroundings<'_>,
        given: &[Argument],
    ) -> Option<Self> {
        let mut graph = ValueGraph::of(function, frame_rules(function, frames))?;
        let said = find_facts(&mut graph, around);
        let given: Vec<(ValueIdx, &Argument)> =
            given.iter().map(|argument| (graph.parameter(argument.register), argument)).collect();
        graph.connect()?;
        let mut typing = Typing::new(&graph, around);
        typing.read_frame();
        typing.read_facts(said);
        for (value, argument) in given {
            typing.contents.hints.insert(value, argument.content.clone());
        }
        typing.read_calls();
        typing.settle();
        for _ in 0..limit::MAX_LOOKS_BACK {
            if !typing.look_back() {
                break;
            }
            typing.settle();
        }
        let contents = typing.contents;
        Some(Self { function: Arc::clone(function), graph, contents })
    }

    /// The registers whose content at the function's entry is used and not known.
    pub(crate) fn open_parameters(&self) -> Vec<u8> {
        let definitions = self.graph.definitions.iter().enumerate();
        let parameters = definitions.filter_map(|(value, definition)| match definition {
            Definition::Parameter { register } if ARGUMENTS.contains(register) => {
                Some((ValueIdx(value as u32), *register))
            }
            _ => None,
        });
        let is_open = |value: ValueIdx| self.contents.get(self.graph.canonical(value)).is_open();
        parameters.filter(|(value, _)| is_open(*value)).map(|(_, register)| register).collect()
    }

    /// What the call or jump at `svma` passes in a register: an object by its type, wherever it is.
    pub(crate) fn passed(
        &mut self,
        svma: Svma,
        register: u8,
        debug: &mut DebugInfo,
    ) -> Option<Content> {
        let Content::Address(address) = self.register(svma, u16::from(register)) else {
            return None;
        };
        let start = address.offset.only()?;
        let object = match &address.origin {
            Origin::Object(_) => Address { name: None, is_perhaps_variable: false, ..address },
            Origin::Static => {
                variable_address(DataPlace::fixed(Svma(start.cast_unsigned())), debug)?
            }
            Origin::Thread => {
                let offset = debug.thread_block()?.offset_of(start)?;
                variable_address(DataPlace::thread(offset), debug)?
            }
            Origin::Frame(frame) => {
                let slot = Slot { frame: *frame, offset: start };
                let (variable, into) = self.frame_variable(svma, slot)?;
                Address::object(Arc::clone(&variable.layout), into.cast_signed(), None)
            }
        };
        (!object.is_erased()).then_some(Content::Address(object))
    }

    /// The register that a function was entered with what it passes on in another, and how far from
    /// that it passes.
    pub(crate) fn passed_on(&mut self, svma: Svma, register: u8) -> Option<(u8, i64)> {
        let at = self.function.index_of(svma)?;
        let mut value = self.graph.before(at as u32, Place::Register(register));
        let mut distance: i64 = 0;
        for _ in 0..limit::MAX_FACTORS {
            value = self.graph.canonical(value);
            match self.graph.definitions.get(value.0 as usize)? {
                Definition::Parameter { register } => return Some((*register, distance)),
                Definition::Sum(Sum { base: Some(base), index: None, displacement, .. }) => {
                    distance = distance.wrapping_add(*displacement);
                    value = *base;
                }
                _ => return None,
            }
        }
        None
    }

    /// How many values it holds.
    pub(crate) fn n_values(&self) -> usize {
        self.graph.definitions.len()
    }

    /// What a register, by its DWARF number, holds before the instruction at `svma`.
    pub(crate) fn register(&mut self, svma: Svma, number: u16) -> Content {
        let (Some(at), Ok(number)) = (self.function.index_of(svma), u8::try_from(number)) else {
            return Content::Unknown;
        };
        let n_known = self.graph.definitions.len();
        let value = self.graph.before(at as u32, Place::Register(number));
        if value.0 as usize >= n_known {
            // Nothing in the function reads it.
            return Content::Unknown;
        }
        let value = self.graph.canonical(value);
        let known = self.contents.get(value).clone();
        let facts = self.contents.facts.get(&value).filter(|_| !self.graph.is_count(value));
        let Some(facts) = facts else { return known };
        let here = || facts.iter().filter(|fact| fact.code.contains(&svma.0) && !fact.is_aside);
        let said = match all(here()) {
            // Of views that contradict each other that of the innermost scope.
            Some(Content::Mixed) => {
                let depth = here().map(|fact| fact.depth).max();
                all(here().filter(|fact| Some(fact.depth) == depth))
            }
            said => said,
        };
        let is_perhaps_part = is_perhaps_part(&known, svma, facts);
        let content = match said {
            Some(said) => refined(known, said),
            None => known,
        };
        match content {
            Content::Address(address) if is_perhaps_part => {
                Content::Address(Address { is_perhaps_part, ..address })
            }
            content => content,
        }
    }

    /// The variable that the debug information says is so far from where a register points, and how
    /// far into it that is.
    pub(crate) fn part(&mut self, svma: Svma, number: u16, at: i64) -> Option<(Arc<Layout>, u64)> {
        let index = self.function.index_of(svma)?;
        let value = self.graph.before(index as u32, Place::Register(u8::try_from(number).ok()?));
        let parts = self.contents.parts.get(&self.graph.canonical(value))?;
        let here = parts.iter().filter(|part| part.code.contains(&svma.0) && !part.is_copy);
        here.filter_map(|part| Some((Arc::clone(&part.layout), part.into(at)?))).next_back()
    }

    /// The type of a variable that has the value of what a register points at, if that is all that is
    /// ever accessed through it.
    pub(crate) fn copied(&mut self, svma: Svma, number: u16, size: u64) -> Option<Arc<Layout>> {
        let index = self.function.index_of(svma)?;
        let value = self.graph.before(index as u32, Place::Register(u8::try_from(number).ok()?));
        let value = self.graph.canonical(value);
        let parts = self.contents.parts.get(&value)?.iter();
        let mut copies = parts.filter(|part| part.is_copy && part.offset == 0);
        let layout = Arc::clone(&copies.next().filter(|part| part.layout.size == size)?.layout);
        let is_same = |part: &Part| part.layout.fingerprint == layout.fingerprint;
        let mut accesses = self.graph.accesses.iter();
        let is_alone = accesses.all(|(base, displacement, n_bytes)| {
            self.graph.canonical(*base) != value
                || (*displacement, u64::from(*n_bytes)) == (0, size)
        });
        (copies.all(is_same) && is_alone).then_some(layout)
    }

    /// The variable in the frame at `slot`, and how far into it that is.
    pub(crate) fn frame_variable(&self, svma: Svma, slot: Slot) -> Option<(&FrameVariable, u64)> {
        self.contents.frame_variable(svma.0, slot)
    }
}

/// Whether it is said elsewhere what an address is of, and nothing but its first part for certain.
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

/// A place in a variable, as an address in an object of its type.
fn variable_address(place: DataPlace, debug: &mut DebugInfo) -> Option<Address> {
    let variable = debug.variable_in(place).variable?;
    let into = place.at.offset_from(variable.start)?.cast_signed();
    Some(Address::object(Arc::clone(&variable.layout), into, None))
}

/// The frame's rule at each instruction.
fn frame_rules(function: &FunctionCode, frames: &FrameTable) -> Vec<FrameRule> {
    let mut rules = Vec::with_capacity(function.n_instructions());
    let mut rows: Vec<FrameRow> = Vec::new();
    let mut row = 0;
    for at in 0..function.n_instructions() {
        let Some(svma) = function.instruction(at).map(Instruction::ip) else {
            rules.push(FrameRule::Unknown);
            continue;
        };
        let is_around = |rows: &[FrameRow]| {
            let (first, last) = (rows.first(), rows.last());
            first.zip(last).is_some_and(|(first, last)| (first.0.start..last.0.end).contains(&svma))
        };
        if !is_around(&rows) {
            rows = frames.rows_around(Svma(svma));
            row = 0;
        }
        while rows.get(row).is_some_and(|(range, _)| range.end <= svma) {
            row += 1;
        }
        let rule = rows.get(row).filter(|(range, _)| range.contains(&svma));
        rules.push(rule.map_or(FrameRule::Unknown, |(_, rule)| *rule));
    }
    rules
}

/// The first instruction in a range of code.
fn first_in(function: &FunctionCode, code: &Range<u64>) -> Option<usize> {
    let at = function.first_from(Svma(code.start));
    let instruction = function.instruction(at)?;
    code.contains(&instruction.ip()).then_some(at)
}

/// A variable's part that a value is: which variable, which of its places.
#[derive(Clone, Copy, Debug)]
struct Said {
    value: ValueIdx,
    variable: usize,
    place: usize,
}

/// The values that the debug information speaks of.
fn find_facts(graph: &mut ValueGraph, around: &Surroundings<'_>) -> Vec<Said> {
    let mut found = Vec::new();
    for (variable, known) in around.scope.variables.iter().enumerate() {
        for (place, (code, part)) in known.places.iter().enumerate() {
            let register = match part.place {
                VariablePlace::Register(register)
                | VariablePlace::Value { base: Base::Register(register), .. }
                | VariablePlace::Memory { base: Base::Register(register), .. } => register,
                VariablePlace::Entry(register) => {
                    if let Ok(register) = u8::try_from(register) {
                        let value = graph.parameter(register);
                        found.push(Said { value, variable, place });
                    }
                    continue;
                }
                _ => continue,
            };
            let Ok(register) = u8::try_from(register) else { continue };
            if access::register_of_dwarf(u16::from(register)).is_none() {
                continue;
            }
            for value in graph.held(around.function, code, Place::Register(register)) {
                found.push(Said { value, variable, place });
            }
        }
    }
    found
}

impl Typing<'_, '_> {
    /// Notes what the debug information says of values.
    fn read_facts(&mut self, said: Vec<Said>) {
        let scope = self.around.scope;
        let mut contents: FxHashMap<(usize, u64), Content> = FxHashMap::default();
        for Said { value, variable, place } in said {
            let Some(known) = scope.variables.get(variable) else { continue };
            let Some((code, part)) = known.places.get(place) else { continue };
            let mut is_aside = false;
            let content = match part.place {
                VariablePlace::Memory { offset, .. } => {
                    let layout = self.around.debug.layout(known.type_die);
                    if !self.is_frame_address(value) {
                        let is_copy = !layout.is_aggregate();
                        self.add_part(value, Part { offset, layout, code: code.clone(), is_copy });
                    }
                    continue;
                }
                _ => {
                    let content = contents.entry((variable, part.offset)).or_insert_with(|| {
                        let layout = self.around.debug.layout(known.type_die);
                        let name = PointerName::Variable(Arc::clone(&known.name));
                        match layout.shape {
                            crate::layout::Shape::Scalar(_) => self.content_of(&layout, Some(name)),
                            _ => self.member(&layout, part.offset),
                        }
                    });
                    match (&*content, part.place) {
                        (Content::Address(address), VariablePlace::Value { offset, .. })
                            if offset != 0 =>
                        {
                            let address = address.clone();
                            self.note_part(value, &address, offset, code);
                            is_aside = true;
                            // The value is so far before the variable's, in whatever is around.
                            let offset = address.offset.shifted(offset.wrapping_neg());
                            Content::Address(Address { offset, ..address })
                        }
                        (other, _) => other.clone(),
                    }
                }
            };
            let layout = self.around.debug.layout(known.type_die);
            if !is_aside && part.offset == 0 && !layout.is_aggregate() {
                self.note_copy(value, layout);
            }
            if matches!(content, Content::Unknown) {
                continue;
            }
            let value = self.graph.canonical(value);
            let facts = self.contents.facts.entry(value).or_default();
            if facts.len() < limit::MAX_FACTS_A_VALUE {
                facts.push(Fact { content, code: code.clone(), depth: known.depth, is_aside });
            }
        }
    }

    /// Notes that a variable points at what lies `offset` bytes from a value.
    fn note_part(&mut self, value: ValueIdx, address: &Address, offset: i64, code: &Range<u64>) {
        if let (Origin::Object(layout), Some(into), false) =
            (&address.origin, address.offset.only(), address.is_erased())
        {
            let layout = layout.innermost_element();
            let offset = offset.wrapping_sub(into);
            let is_copy = false;
            self.add_part(value, Part { offset, layout, code: code.clone(), is_copy });
        }
    }

    /// Notes that a variable's value is what was read from somewhere.
    fn note_copy(&mut self, value: ValueIdx, layout: Arc<Layout>) {
        let definition = self.graph.definitions.get(self.graph.canonical(value).0 as usize);
        if let Some(Definition::Loaded {
            address: Sum { base: Some(base), index: None, displacement, .. },
            n_bytes,
        }) = definition.copied()
            && u64::from(n_bytes) == layout.size
        {
            let code = 0..u64::MAX;
            self.add_part(base, Part { offset: displacement, layout, code, is_copy: true });
        }
    }

    fn add_part(&mut self, value: ValueIdx, part: Part) {
        let parts = self.contents.parts.entry(self.graph.canonical(value)).or_default();
        if parts.len() < limit::MAX_FACTS_A_VALUE {
            parts.push(part);
        }
    }

    fn is_frame_address(&self, value: ValueIdx) -> bool {
        let value = self.graph.canonical(value);
        let definition = self.graph.definitions.get(value.0 as usize);
        matches!(definition, Some(Definition::FrameAddress(_)))
    }
}
