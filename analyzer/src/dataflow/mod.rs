//! Data flow over one function: what each register holds at each instruction, from what the debug
//! information says somewhere in it.
//!
//! The function's values are put in single assignment form ([`graph`], filled by [`transfer`] from the
//! actions that `x86_64` makes of instructions). What the debug information says of a variable at some
//! instruction holds for the value that is in its place there, wherever that value is. From there
//! [`typing`] goes forwards (members that are loaded, addresses that are computed, what calls return) and
//! [`hint`] backwards (what a value is stored in, passed as or named later).
//!
//! What is known of a value is its [`content`], an element of a lattice: bottom is a value of which nothing
//! has been worked out, top one that contradicts itself. Where ways meet, contents are joined. A
//! [`worklist`] holds the values that one they are made of changed for, until it is empty: the fixed point.

mod address;
mod after_header;
mod aligned_stack;
mod argument_sum;
mod arithmetic;
mod arm;
mod by_place;
mod call;
mod call_effect;
mod congruence;
mod content;
mod content_table;
mod doubt;
mod extent;
mod fact;
mod factor;
mod frame;
mod frame_variable;
mod graph;
mod hint;
mod included;
mod inclusion;
mod keeper;
mod liveness;
mod load;
mod offset;
mod pointer_cell;
mod points_to;
mod settled;
mod shape;
mod signature;
mod sum;
mod transfer;
mod typing;
mod value;
mod vector;
mod worklist;
mod write;

pub(crate) use address::{Address, Origin, PointerName};
pub(crate) use argument_sum::{ArgumentSum, ArgumentSums, Derived};
pub(crate) use arm::{Arms, Use};
pub(crate) use call_effect::CallEffects;
pub(crate) use congruence::Congruence;
pub(crate) use content::Content;
pub(crate) use doubt::{Doubt, Standing};
pub(crate) use extent::{into_array_at_end, is_never_in_array, place_at_end};
pub(crate) use keeper::Given;
pub(crate) use offset::{Offset, gcd};
pub(crate) use points_to::{Carried, Included, Inclusions, PointerCell, PointsTo};
pub(crate) use settled::Dataflow;
pub(crate) use typing::Surroundings;
pub(crate) use value::{BytesBefore, Depth, Slot};

use crate::dwarf::code::frame::{FrameRow, FrameRule, FrameTable};
use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::variable::location::{Base, VariablePlace};
use crate::limit;
use crate::types::layout::{Layout, Shape};
use crate::x86_64::abi::ARGUMENTS;
use crate::x86_64::access;
use crate::x86_64::function::FunctionCode;
use dataspace_proto::address::Svma;
use fact::{Fact, Part, SumFact};
use graph::ValueGraph;
use inclusion::Collector;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use typing::{Typed, Typing};
use value::{Definition, Place, Sum, ValueIdx};

/// Content that all known callers pass in a register.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) register: u8,
    pub(crate) content: Content,
}

/// A function's values and how they come about.
#[derive(Debug)]
pub(crate) struct Following {
    function: Arc<FunctionCode>,
    graph: ValueGraph,
    typed: Typed,
    /// Parameters, each with the content that is passed whoever calls the function.
    given: Vec<(ValueIdx, Content)>,
}

impl Following {
    /// Follows the values of a function, which gets `given` whoever calls it and whose calls have these
    /// effects; `None` where there are too many values.
    pub(crate) fn of(
        function: &Arc<FunctionCode>,
        frames: &FrameTable,
        effects: &CallEffects,
        around: &mut Surroundings<'_>,
        given: &[Argument],
        depth: Depth,
    ) -> Option<Self> {
        let mut graph = ValueGraph::of(function, frame_rules(function, frames), effects, depth)?;
        let (said, summed) = find_facts(&mut graph, around);
        let given: Vec<(ValueIdx, Content)> = given
            .iter()
            .map(|argument| (graph.parameter(argument.register), argument.content.clone()))
            .collect();
        graph.connect()?;
        let mut typing = Typing::new(&graph, around);
        typing.read_frame();
        typing.read_facts(said);
        typing.read_sums(&summed);
        typing.read_calls();
        typing.type_all(&given);
        let typed = typing.end();
        Some(Self { function: Arc::clone(function), graph, typed, given })
    }

    /// Types the values again, with what all callers pass as well.
    pub(crate) fn type_with(&mut self, around: &mut Surroundings<'_>, given: &[Argument]) {
        let passed = given.iter().filter_map(|argument| {
            let value = self.graph.known_parameter(argument.register)?;
            let known = self.typed.contents.get(self.graph.canonical(value));
            let is_welcome = known.is_open() || argument.content.is_at_one_place();
            is_welcome.then(|| (value, argument.content.clone()))
        });
        let passed: Vec<(ValueIdx, Content)> = passed.collect();
        self.given.splice(0..0, passed);
        let typed = std::mem::take(&mut self.typed);
        let mut typing = Typing::resume(&self.graph, around, typed);
        typing.type_all(&self.given);
        self.typed = typing.end();
    }

    /// The registers whose content at the function's entry is used and not known, or only as a
    /// pointer to numbers, which may be a part of something.
    pub(crate) fn open_parameters(&self) -> Vec<u8> {
        let definitions = self.graph.definitions.iter().enumerate();
        let parameters = definitions.filter_map(|(value, definition)| match definition {
            Definition::Parameter { register } if ARGUMENTS.contains(register) => {
                Some((ValueIdx(value as u32), *register))
            }
            _ => None,
        });
        let contents = &self.typed.contents;
        let is_open = |value: ValueIdx| {
            let content = contents.get(self.graph.canonical(value));
            content.is_open() || content.is_bare_number()
        };
        parameters.filter(|(value, _)| is_open(*value)).map(|(_, register)| register).collect()
    }

    /// Collects what the function puts where, which is entered at `entry`.
    pub(crate) fn collect_inclusions(
        self,
        around: &mut Surroundings<'_>,
        entry: Svma,
        found: &mut Inclusions,
    ) {
        let mut typing = Typing::resume(&self.graph, around, self.typed);
        Collector::new(&mut typing, entry, found).collect();
    }

    /// Keeps what is asked for later.
    pub(crate) fn settled(mut self, around: &mut Surroundings<'_>) -> Dataflow {
        let open_parameters = self.open_parameters();
        let typed = std::mem::take(&mut self.typed);
        let mut typing = Typing::resume(&self.graph, around, typed);
        typing.contents.carried = typing.carried();
        Dataflow::keep(&self.function, &self.graph, typing.end().contents, open_parameters)
    }
}

impl Dataflow {
    /// Finds what the call or jump at `svma` passes in a register: an object by its type, wherever it is.
    pub(crate) fn passed(
        &self,
        svma: Svma,
        register: u8,
        debug: &mut DebugInfo,
    ) -> Option<Content> {
        let Content::Address(address) = self.register(svma, u16::from(register)) else {
            return None;
        };
        let start = address.offset.only()?;
        let object = match &address.origin {
            Origin::Object(_) => {
                let doubts = address.doubts.without(Doubt::Variable);
                Address { name: None, doubts, ..address }
            }
            Origin::Arms(_) => return None,
            Origin::Static | Origin::Thread => {
                let place = address.data_place(debug)?;
                let variable = debug.variable_in(place).variable?;
                let into = place.at.offset_from(variable.start)?.cast_signed();
                Address::object(Arc::clone(&variable.layout), into, None)
            }
            Origin::Frame(frame) => {
                let slot = Slot { frame: *frame, offset: start };
                let (variable, into) = self.frame_variable(svma, slot)?;
                Address::object(Arc::clone(&variable.layout), into.cast_signed(), None)
            }
        };
        (!object.is_erased()).then_some(Content::Address(object))
    }
}

/// The frame's rule at each instruction.
fn frame_rules(function: &FunctionCode, frames: &FrameTable) -> Vec<FrameRule> {
    let mut rules = Vec::with_capacity(function.n_instructions());
    let mut rows: Vec<FrameRow> = Vec::new();
    let mut row = 0;
    for at in 0..function.n_instructions() {
        let Some(Range { start: svma, .. }) = function.code(at) else {
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
    code.contains(&function.code(at)?.start).then_some(at)
}

/// A variable's part that a value is: which variable, which of its places.
#[derive(Clone, Copy, Debug)]
struct Said {
    value: ValueIdx,
    variable: usize,
    place: usize,
}

/// The values that a variable's place is the sum of, by the variable and the place: with a factor for the second.
type SummedValues = FxHashMap<(usize, usize), [ValueIdx; 2]>;

/// The values that the debug information speaks of.
fn find_facts(graph: &mut ValueGraph, around: &Surroundings<'_>) -> (Vec<Said>, SummedValues) {
    let (mut found, mut summed) = (Vec::new(), SummedValues::default());
    let mut sums = None;
    for (variable, known) in around.scope.variables.iter().enumerate() {
        for (place, (code, part)) in known.places.iter().enumerate() {
            let register = match part.place {
                VariablePlace::Register(register)
                | VariablePlace::Value { base: Base::Register(register), .. }
                | VariablePlace::Memory { base: Base::Register(register), .. } => register,
                VariablePlace::Entry(register) | VariablePlace::AtEntry(register) => {
                    if let Ok(register) = u8::try_from(register) {
                        let value = graph.parameter(register);
                        found.push(Said { value, variable, place });
                    }
                    continue;
                }
                VariablePlace::Sum { base, index, scale, offset, .. } => {
                    let sums = sums.get_or_insert_with(|| sums_of(graph));
                    let values = registers_before(graph, around.function, code, [base, index]);
                    let Some([base, index]) = values else { continue };
                    summed.insert((variable, place), [base, index]);
                    let (index, times) = graph.factor(index);
                    let key = (base, (index, times.wrapping_mul(scale)), offset);
                    let value = sums.get(&key).copied();
                    found.extend(value.map(|value| Said { value, variable, place }));
                    continue;
                }
                _ => continue,
            };
            let Some(register) = general_register(register) else { continue };
            for value in graph.held(around.function, code, register) {
                found.push(Said { value, variable, place });
            }
        }
    }
    (found, summed)
}

/// The values that are sums of one value, a multiple of another and a number, by these; where both count once, in either
/// order.
type KnownSums = FxHashMap<(ValueIdx, (ValueIdx, i64), i64), ValueIdx>;

fn sums_of(graph: &ValueGraph) -> KnownSums {
    let mut sums = FxHashMap::default();
    for (value, definition) in graph.definitions.iter().enumerate() {
        let Definition::Sum(Sum {
            base: Some(base), index: Some(index), scale, displacement, ..
        }) = *definition
        else {
            continue;
        };
        let value = ValueIdx(value as u32);
        let mut note = |base, index, scale: u8| {
            let (root, times) = graph.factor(index);
            let times = times.wrapping_mul(scale.into());
            sums.insert((base, (root, times), displacement), value);
        };
        note(base, index, scale);
        if scale == 1 {
            note(index, base, 1);
        }
    }
    sums
}

/// The general register with this DWARF number.
fn general_register(number: u16) -> Option<Place> {
    access::register_of_dwarf(number)?;
    u8::try_from(number).ok().map(Place::Register)
}

/// Returns the values that registers, by their DWARF numbers, hold before the first instruction in a range of code.
fn registers_before(
    graph: &mut ValueGraph,
    function: &FunctionCode,
    code: &Range<u64>,
    registers: [u16; 2],
) -> Option<[ValueIdx; 2]> {
    let at = u32::try_from(first_in(function, code)?).ok()?;
    let mut values = [ValueIdx(0); 2];
    for (value, register) in values.iter_mut().zip(registers) {
        *value = graph.before(at, general_register(register)?);
    }
    Some(values)
}

impl Typing<'_, '_> {
    /// Works out what all values are, from what is passed to the function and what was noted.
    fn type_all(&mut self, given: &[(ValueIdx, Content)]) {
        self.contents.hints.clear();
        self.contents.hints.extend(given.iter().cloned());
        self.settle();
        for _ in 0..limit::MAX_LOOKS_BACK {
            if !self.look_back() {
                break;
            }
            self.settle();
        }
    }

    /// Notes what the debug information says of values.
    fn read_facts(&mut self, said: Vec<Said>) {
        let scope = self.around.scope;
        let mut contents: FxHashMap<(usize, u64), Arc<Content>> = FxHashMap::default();
        for Said { value, variable, place } in said {
            let Some(known) = scope.variables.get(variable) else { continue };
            let Some((code, part)) = known.places.get(place) else { continue };
            if self.graph.canonical(value) == self.graph.opaque() {
                continue;
            }
            let layout = self.around.debug.layout(known.type_die);
            // Go's compiler writes more pieces than a variable has.
            if part.offset != 0 && part.offset >= layout.size {
                continue;
            }
            let memory = match part.place {
                VariablePlace::Memory { offset, .. } => Some(offset),
                VariablePlace::Sum { is_place: true, .. } | VariablePlace::AtEntry(_) => Some(0),
                _ => None,
            };
            if let Some(offset) = memory {
                let is_whole = part.bytes(layout.size) == (0..layout.size);
                if is_whole && !self.is_frame_address(value) {
                    let is_copy = !layout.is_aggregate();
                    self.add_part(value, Part { offset, layout, code: code.clone(), is_copy });
                }
                continue;
            }
            let content = contents.entry((variable, part.offset)).or_insert_with(|| {
                let name = PointerName::Variable(Arc::clone(&known.name));
                Arc::new(match layout.shape {
                    Shape::Scalar(_) => self.content_of(&layout, Some(name)),
                    _ => self.member(&layout, part.offset),
                })
            });
            let mut standing = Standing::Own;
            let content = match (&**content, part.place) {
                (Content::Address(address), VariablePlace::Value { offset, .. }) if offset != 0 => {
                    let address = address.clone();
                    self.note_part(value, &address, offset, code);
                    standing = Standing::Aside;
                    // The value is so far before the variable's, in whatever is around.
                    let offset = address.offset.shifted(offset.wrapping_neg());
                    Arc::new(Content::Address(Address { offset, ..address }))
                }
                _ => Arc::clone(content),
            };
            if standing == Standing::Own && part.offset == 0 && !layout.is_aggregate() {
                self.note_copy(value, layout);
            }
            if *content == Content::Unknown {
                continue;
            }
            let value = self.graph.canonical(value);
            let facts = self.contents.facts.entry(value).or_default();
            if facts.len() < limit::MAX_FACTS_A_VALUE {
                facts.push(Fact { content, code: code.clone(), depth: known.depth, standing });
            }
        }
    }

    /// Notes which objects the debug information says are at sums of registers that an operand may compute.
    fn read_sums(&mut self, summed: &SummedValues) {
        let scope = self.around.scope;
        for (variable, known) in scope.variables.iter().enumerate() {
            for (place, (code, part)) in known.places.iter().enumerate() {
                let VariablePlace::Sum { base, index, scale, offset, is_place } = part.place else {
                    continue;
                };
                if part.offset != 0 || !matches!(scale, 1 | 2 | 4 | 8) {
                    continue;
                }
                let layout = self.around.debug.layout(known.type_die);
                let name = PointerName::Variable(Arc::clone(&known.name));
                let content = match is_place {
                    true if layout.is_aggregate() => {
                        Content::Address(Address::object(layout, 0, None))
                    }
                    true => continue,
                    false => self.content_of(&layout, Some(name)),
                };
                if let Content::Address(address) = content
                    && self.contents.sums.len() < limit::MAX_SUM_FACTS
                {
                    let address = address.shifted(offset.wrapping_neg());
                    let (code, sum) = (code.clone(), (base, index, scale));
                    let values = summed.get(&(variable, place)).copied();
                    self.contents.sums.push((SumFact { code, sum, address }, values));
                }
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
        if let Some(Definition::Loaded {
            address: Sum { base: Some(base), index: None, displacement, .. },
            n_bytes,
        }) = self.graph.definition(value).copied()
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
        matches!(self.graph.definition(value), Some(Definition::FrameAddress(_)))
    }
}

#[cfg(test)]
mod tests;
