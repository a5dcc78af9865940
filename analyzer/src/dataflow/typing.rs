//! From how values come about to what they are: every value of a function, until nothing changes.

use super::content::{Address, Better, Content, Offset, Origin, PointerName, either};
use super::graph::ValueGraph;
use super::settling::Users;
use super::value::{Call, Definition, Slot, Sum, ValueIdx};
use crate::code_image::CodeImage;
use crate::data_symbol::DataPlace;
use crate::descent::ValueKind;
use crate::dwarf::frame::FrameRule;
use crate::dwarf::function::FunctionScope;
use crate::dwarf::location::{Base, Place};
use crate::dwarf::{DebugInfo, DieRef, element};
use crate::layout::{Layout, ScalarKind, Shape};
use crate::x86_64::function::{FunctionCode, ImageBytes as _};
use dataspace_proto::address::Svma;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// What the debug information says of one value.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub(crate) content: Content,
    /// Where it says so.
    pub(crate) code: Range<u64>,
    /// How many scopes are around the variable.
    pub(crate) depth: usize,
    /// The variable is not the value, but so far away from it.
    pub(crate) is_aside: bool,
}

/// A variable that is said to be in memory at an address that a value tells.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// How far from the value.
    pub(crate) offset: i64,
    pub(crate) layout: Arc<Layout>,
    /// Where it is said.
    pub(crate) code: Range<u64>,
    /// The variable is a scalar of which this is where its value was got from: all that tells of a
    /// place that nothing else tells of.
    pub(crate) is_copy: bool,
}

impl Part {
    /// How far into the variable the bytes are that are `at` bytes from the value.
    pub(crate) fn into(&self, at: i64) -> Option<u64> {
        let into = u64::try_from(at.checked_sub(self.offset)?).ok()?;
        (into < self.layout.size).then_some(into)
    }
}

/// A variable in the frame.
#[derive(Clone, Debug)]
pub(crate) struct FrameVariable {
    pub(crate) slot: Slot,
    pub(crate) code: Range<u64>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) name: Arc<str>,
    pub(crate) depth: usize,
}

/// What is asked while values are typed.
pub(crate) struct Surroundings<'a> {
    pub(crate) debug: &'a mut DebugInfo,
    pub(crate) image: &'a CodeImage,
    pub(crate) function: &'a FunctionCode,
    pub(crate) scope: &'a FunctionScope,
}

/// The contents of a function's values.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    of: Vec<Content>,
    pub(crate) facts: FxHashMap<ValueIdx, Vec<Fact>>,
    /// What is known of a value only from what is done with it later.
    pub(crate) hints: FxHashMap<ValueIdx, Content>,
    pub(crate) frame: Vec<FrameVariable>,
    pub(crate) parts: FxHashMap<ValueIdx, Vec<Part>>,
    returned: FxHashMap<u32, Content>,
}

/// What is in the eight bytes at an offset of a type, by the entry that describes it.
type Members = FxHashMap<(DieRef, u64), Content>;

impl Contents {
    /// Forgets what `n` values are.
    pub(super) fn begin(&mut self, n: usize) {
        self.of.clear();
        self.of.resize(n, Content::Unseen);
    }

    pub(super) fn set(&mut self, value: ValueIdx, content: Content) {
        if let Some(known) = self.of.get_mut(value.0 as usize) {
            *known = content;
        }
    }

    pub(crate) fn get(&self, value: ValueIdx) -> &Content {
        self.of.get(value.0 as usize).unwrap_or(&Content::Unknown)
    }

    /// The variable in the frame at `slot`, in the innermost scope, and how far into it the slot is.
    pub(crate) fn frame_variable(&self, svma: u64, slot: Slot) -> Option<(&FrameVariable, u64)> {
        let here = self.frame.iter().filter_map(|variable| {
            let is_visible = variable.code.contains(&svma) && variable.slot.frame == slot.frame;
            let into = slot.offset.checked_sub(variable.slot.offset).filter(|_| is_visible)?;
            let into = u64::try_from(into).ok()?;
            (into < variable.layout.size).then_some((variable, into))
        });
        here.max_by_key(|(variable, _)| variable.depth)
    }
}

/// The work of typing one function's values.
pub(super) struct Typing<'a, 'b> {
    pub(super) graph: &'a ValueGraph,
    pub(super) around: &'a mut Surroundings<'b>,
    pub(super) contents: Contents,
    pub(super) users: Users,
    members: Members,
    /// What the variables in the frame are that values are read from.
    declared: FxHashMap<(Slot, u32), Option<Content>>,
}

impl<'a, 'b> Typing<'a, 'b> {
    pub(super) fn new(graph: &'a ValueGraph, around: &'a mut Surroundings<'b>) -> Self {
        Self {
            graph,
            around,
            contents: Contents::default(),
            users: Users::of(graph),
            members: Members::default(),
            declared: FxHashMap::default(),
        }
    }

    pub(super) fn of(&self, value: ValueIdx) -> &Content {
        self.contents.get(self.graph.canonical(value))
    }

    /// What the value is: by how it comes about, what the debug information says, and, where both
    /// say nothing, what is done with it later.
    pub(super) fn evaluate(&mut self, value: ValueIdx) -> Content {
        let made = self.made(value);
        // In a loop, what is said would otherwise come before what comes in.
        if self.graph.is_count(value) || made == Content::Unseen {
            return made;
        }
        let known = match self.contents.facts.get(&value) {
            Some(facts) => informed(made, facts.iter()),
            None => made,
        };
        match self.contents.hints.get(&value) {
            Some(hint) => hinted(known, hint),
            None => known,
        }
    }

    fn made(&mut self, value: ValueIdx) -> Content {
        let Some(definition) = self.graph.definitions.get(value.0 as usize).copied() else {
            return Content::Unknown;
        };
        match definition {
            Definition::Entry { .. } => {
                let inputs = self.graph.inputs(value);
                if inputs.is_empty() {
                    return Content::Unknown;
                }
                inputs.iter().fold(Content::Unseen, |sum, input| sum.join(self.of(*input).clone()))
            }
            Definition::Constant(number) => Content::Constant(number),
            Definition::StaticAddress(svma) => static_address(svma),
            Definition::FrameAddress(slot) => {
                let origin = Origin::Frame(slot.frame);
                Content::Address(Address::of(origin, Offset::exact(slot.offset)))
            }
            Definition::ThreadPointer => {
                Content::Address(Address::of(Origin::Thread, Offset::exact(0)))
            }
            Definition::Sum(sum) => self.sum(&sum),
            Definition::Product { of, by } => match self.of(of) {
                Content::Unseen => Content::Unseen,
                Content::Constant(number) => {
                    Content::Constant(number.wrapping_mul(by.cast_signed()))
                }
                other => Content::Number { multiple: other.multiple().saturating_mul(by).max(1) },
            },
            Definition::Difference { left, right } => self.difference(left, right),
            Definition::Masked { of, mask } => masked(self.of(of), mask),
            Definition::Narrowed { of } => match self.of(of) {
                Content::Unseen => Content::Unseen,
                number @ (Content::Number { .. } | Content::Constant(_)) => number.clone(),
                _ => Content::NUMBER,
            },
            Definition::Loaded { address: sum, n_bytes } => {
                let address = self.sum(&sum);
                match self.loaded(&address, n_bytes) {
                    Content::Unknown => self.loaded_part(&sum),
                    content => content,
                }
            }
            Definition::Reloaded { slot, kept, at } => self.reloaded(slot, kept, at),
            Definition::Chosen { first, second } => {
                let second = self.of(second).clone();
                self.of(first).clone().join(second)
            }
            Definition::Returned { at } => {
                self.contents.returned.get(&at).cloned().unwrap_or(Content::Unknown)
            }
            Definition::Number => Content::NUMBER,
            Definition::Parameter { .. } | Definition::Opaque => Content::Unknown,
        }
    }

    /// What a sum of values is.
    pub(super) fn sum(&self, sum: &Sum) -> Content {
        let base = sum.base.map(|base| self.of(base));
        let index = sum.index.map(|index| self.of(index));
        if [base, index].contains(&Some(&Content::Unseen)) {
            return Content::Unseen;
        }
        if sum.is_static {
            return static_address(Svma(sum.displacement.cast_unsigned()));
        }
        let is_twice = sum.base.is_some()
            && sum.base.map(|base| self.graph.canonical(base))
                == sum.index.map(|index| self.graph.canonical(index));
        let scale = u64::from(sum.scale);
        if is_twice {
            let number = base.unwrap_or(&Content::NUMBER);
            return multiplied(number, scale + 1, sum.displacement);
        }
        match (base, index) {
            (None, None) => Content::Constant(sum.displacement),
            (Some(base), None) => added(base, sum.displacement),
            (None, Some(index)) => {
                let number = multiplied(index, scale, sum.displacement);
                self.in_table(number, sum.displacement)
            }
            (Some(base), Some(index)) => {
                let base = self.static_constant(base);
                let index_address = self.static_constant(index);
                match (&base, &index_address) {
                    (Content::Address(_), Content::Address(_)) => Content::Distance,
                    (Content::Address(address), _) => {
                        indexed(address, index, scale, sum.displacement)
                    }
                    (_, Content::Address(address)) if scale == 1 => {
                        indexed(address, &base, 1, sum.displacement)
                    }
                    (Content::Unknown, _) | (_, Content::Unknown) if scale == 1 => Content::Unknown,
                    (Content::Unknown, _) => Content::Unknown,
                    (Content::Mixed, _) | (_, Content::Mixed) => Content::Mixed,
                    (Content::Distance, _) | (_, Content::Distance) => Content::Distance,
                    (first, second) => {
                        let second = multiplied(second, scale, sum.displacement);
                        Content::Number {
                            multiple: super::content::gcd(first.multiple(), second.multiple())
                                .max(1),
                        }
                    }
                }
            }
        }
    }

    /// Where numbers in the code can be addresses: a table at a fixed address, and what counts in it.
    fn in_table(&self, number: Content, displacement: i64) -> Content {
        let svma = Svma(displacement.cast_unsigned());
        if !self.is_static(svma) {
            return number;
        }
        let Content::Address(address) = static_address(svma) else { return number };
        Content::Address(address.stepped(number.multiple()))
    }

    fn is_static(&self, svma: Svma) -> bool {
        self.around.image.is_at_fixed_addresses()
            && self.around.image.image.segments.iter().any(|segment| {
                svma.0.checked_sub(segment.start.0).is_some_and(|into| into < segment.memory_bytes)
            })
    }

    /// A number that is an address.
    pub(super) fn static_constant(&self, content: &Content) -> Content {
        match content {
            Content::Constant(number) if self.is_static(Svma(number.cast_unsigned())) => {
                static_address(Svma(number.cast_unsigned()))
            }
            other => other.clone(),
        }
    }

    fn difference(&self, left: ValueIdx, right: ValueIdx) -> Content {
        let (first, second) = (self.of(left), self.of(right));
        match (first, second) {
            (Content::Unseen, _) | (_, Content::Unseen) => Content::Unseen,
            (Content::Address(address), Content::Number { .. } | Content::Constant(_)) => {
                match second {
                    Content::Constant(by) => {
                        Content::Address(address.clone().shifted(by.wrapping_neg()))
                    }
                    _ => {
                        let mut address = address.clone();
                        // What is counted down from there lies before it.
                        address.is_behind = false;
                        Content::Address(address.stepped(second.multiple()))
                    }
                }
            }
            (Content::Number { .. } | Content::Constant(_), Content::Number { .. })
            | (Content::Number { .. }, Content::Constant(_)) => Content::Number {
                multiple: super::content::gcd(first.multiple(), second.multiple()).max(1),
            },
            (Content::Constant(_), _) => Content::NUMBER,
            _ => Content::Distance,
        }
    }

    /// What is at an address.
    fn loaded(&mut self, address: &Content, n_bytes: u8) -> Content {
        let address = self.static_constant(address);
        let address = match address {
            Content::Address(address) => address,
            Content::Unseen => return Content::Unseen,
            _ if n_bytes < 8 => return Content::NUMBER,
            _ => return Content::Unknown,
        };
        if n_bytes < 8 {
            return Content::NUMBER;
        }
        match &address.origin {
            Origin::Object(layout) => self.loaded_from(layout, &address),
            Origin::Static => self.loaded_static(&address),
            Origin::Thread => self.loaded_thread(&address),
            Origin::Frame(frame) => {
                let slot = address.offset.starts().first().copied();
                let Some(offset) = slot else { return Content::Unknown };
                // The frame's variables keep their places but for a few that never have two.
                let slot = Slot { frame: *frame, offset };
                let here = self.contents.frame.iter().find(|variable| {
                    let into = slot.offset.checked_sub(variable.slot.offset);
                    variable.slot.frame == slot.frame
                        && into
                            .and_then(|into| u64::try_from(into).ok())
                            .is_some_and(|into| into < variable.layout.size)
                });
                let Some(variable) = here else { return Content::Unknown };
                let (layout, start) = (Arc::clone(&variable.layout), variable.slot.offset);
                self.member(&layout, offset.wrapping_sub(start).unsigned_abs())
            }
        }
    }

    /// What is in a variable that is said to be at an address.
    fn loaded_part(&mut self, sum: &Sum) -> Content {
        let (Some(base), None) = (sum.base, sum.index) else { return Content::Unknown };
        let parts = self.contents.parts.get(&self.graph.canonical(base));
        let found = parts.and_then(|parts| {
            let part = parts.iter().find_map(|part| Some((part, part.into(sum.displacement)?)));
            part.map(|(part, into)| (Arc::clone(&part.layout), into))
        });
        match found {
            Some((layout, into)) => self.member(&layout, into),
            None => Content::Unknown,
        }
    }

    fn loaded_from(&mut self, layout: &Arc<Layout>, address: &Address) -> Content {
        let Some(places) = address.places(8) else { return Content::Unknown };
        let element = layout.innermost_element();
        let mut sum = Content::Unseen;
        for place in places {
            let member = if element.is_aggregate() {
                self.member(&element, place)
            } else {
                self.content_of(&element, address.name.clone())
            };
            sum = sum.join(member);
        }
        sum
    }

    fn loaded_static(&mut self, address: &Address) -> Content {
        let Some(start) = address.offset.starts().first() else { return Content::Unknown };
        let svma = Svma(start.cast_unsigned());
        if address.offset.step == 0
            && let Some(target) = self.around.image.relocated(svma)
            && self.around.debug.variable_at(svma).variable.is_none()
        {
            // The table of addresses that the loader fills.
            return static_address(target);
        }
        self.loaded_variable(DataPlace::fixed(svma))
    }

    /// What is in a variable of the thread's own.
    fn loaded_thread(&mut self, address: &Address) -> Content {
        let start = address.offset.starts().first();
        let block = self.around.debug.thread_block();
        let offset = start.zip(block).and_then(|(start, block)| block.offset_of(*start));
        offset.map_or(Content::Unknown, |offset| self.loaded_variable(DataPlace::thread(offset)))
    }

    fn loaded_variable(&mut self, place: DataPlace) -> Content {
        let Some(variable) = self.around.debug.variable_in(place).variable else {
            return Content::Unknown;
        };
        let Some(into) = place.at.offset_from(variable.start) else { return Content::Unknown };
        let layout = Arc::clone(&variable.layout);
        if layout.is_aggregate() || matches!(layout.shape, Shape::Array { .. }) {
            return self.member(&layout, into);
        }
        self.content_of(&layout, Some(PointerName::Variable(Arc::clone(&variable.name))))
    }

    /// What the eight bytes at an address are made to hold by their type.
    pub(super) fn kept_at(&mut self, address: &Address) -> Content {
        match &address.origin {
            Origin::Object(layout) => self.loaded_from(layout, address),
            Origin::Static => self.loaded_static(address),
            Origin::Thread => self.loaded_thread(address),
            Origin::Frame(_) => Content::Unknown,
        }
    }

    /// The value of the eight bytes at `offset` of an object.
    pub(super) fn member(&mut self, layout: &Arc<Layout>, offset: u64) -> Content {
        let element = layout.innermost_element();
        let Some(offset) =
            (if element.holds(offset) { Some(offset) } else { offset.checked_rem(element.size) })
        else {
            return Content::Unknown;
        };
        let key = element.die.map(|die| (die, offset));
        if let Some(known) = key.and_then(|key| self.members.get(&key)) {
            return known.clone();
        }
        let content = self.read_member(&element, offset);
        if let Some(key) = key {
            self.members.insert(key, content.clone());
        }
        content
    }

    fn read_member(&mut self, element: &Arc<Layout>, offset: u64) -> Content {
        let Some(path) = element.descend_as(offset, 8, ValueKind::Pointer) else {
            return Content::Unknown;
        };
        let leaf = match (&path.leaf.shape, path.into) {
            (Shape::Scalar(_), 0) => path.leaf,
            _ => return Content::Unknown,
        };
        let name = PointerName::Member(Arc::clone(element), offset);
        if let Some(contents) = self.around.debug.contents(element, &path.steps) {
            return self.held(contents, name);
        }
        let (kind, pointee) = (leaf.shape == Shape::Scalar(ScalarKind::Number), leaf.pointee);
        self.pointing_at(kind, pointee, Some(name))
    }

    /// What a pointer leads to by the container that it is a part of.
    fn held(&mut self, contents: element::Contents, name: PointerName) -> Content {
        let (die, is_behind) = match contents {
            element::Contents::Elements(die) | element::Contents::Node(die) => (die, false),
            element::Contents::Buckets(die) => (die, true),
        };
        let layout = self.around.debug.layout(die);
        Content::Address(Address { is_behind, ..Address::object(layout, 0, Some(name)) })
    }

    /// The value of a variable of this type.
    pub(super) fn content_of(
        &mut self,
        layout: &Arc<Layout>,
        name: Option<PointerName>,
    ) -> Content {
        match layout.shape {
            Shape::Scalar(kind) => {
                self.pointing_at(kind == ScalarKind::Number, layout.pointee, name)
            }
            _ => self.member(layout, 0),
        }
    }

    fn pointing_at(
        &mut self,
        is_number: bool,
        pointee: Option<crate::dwarf::DieRef>,
        name: Option<PointerName>,
    ) -> Content {
        match pointee {
            Some(pointee) => {
                let layout = self.around.debug.layout(pointee);
                Content::Address(Address::object(layout, 0, name))
            }
            None if is_number => Content::NUMBER,
            None => Content::Unknown,
        }
    }

    fn reloaded(&mut self, slot: Slot, kept: ValueIdx, at: u32) -> Content {
        let kept = self.of(kept).clone();
        let said = match self.declared.get(&(slot, at)) {
            Some(known) => known.clone(),
            None => {
                let said = self.declared_at(slot, at);
                self.declared.insert((slot, at), said.clone());
                said
            }
        };
        match said {
            Some(said) => refined(kept, said),
            None => kept,
        }
    }

    /// What the variable in the frame at `slot` is made to hold by its type.
    fn declared_at(&mut self, slot: Slot, at: u32) -> Option<Content> {
        let svma = self.svma(at);
        let said = self.contents.frame_variable(svma, slot).map(|(variable, into)| {
            (Arc::clone(&variable.layout), Arc::clone(&variable.name), into)
        });
        let (layout, name, into) = said?;
        Some(if into == 0 && !layout.is_aggregate() {
            self.content_of(&layout, Some(PointerName::Variable(name)))
        } else {
            self.member(&layout, into)
        })
    }

    pub(super) fn svma(&self, at: u32) -> u64 {
        self.around.function.instruction(at as usize).map_or(0, iced_x86::Instruction::ip)
    }

    /// Notes what calls return, and, by `found`, what their parameters are.
    pub(super) fn read_calls(&mut self) {
        let calls: Vec<Call> = self.graph.calls.clone();
        for call in calls {
            let content = self.returned(&call);
            self.contents.returned.insert(call.at, content);
        }
    }

    /// Notes what the debug information says of the frame's variables.
    pub(super) fn read_frame(&mut self) {
        let scope = self.around.scope;
        for variable in &scope.variables {
            let mut layout = None;
            for (code, part) in &variable.places {
                let Place::Memory { base, offset } = part.place else { continue };
                let Some(at) = self.first_in(code) else { continue };
                let rule = self.graph.frames.get(at).copied().unwrap_or_default();
                let Some(slot) = frame_slot(rule, base, offset) else { continue };
                if part.offset != 0 {
                    continue;
                }
                let layout =
                    layout.get_or_insert_with(|| self.around.debug.layout(variable.type_die));
                self.contents.frame.push(FrameVariable {
                    slot,
                    code: code.clone(),
                    layout: Arc::clone(layout),
                    name: Arc::clone(&variable.name),
                    depth: variable.depth,
                });
            }
        }
    }

    /// The first instruction in a range of code.
    fn first_in(&self, code: &Range<u64>) -> Option<usize> {
        super::first_in(self.around.function, code)
    }
}

/// The place in the frame that a location is; `None` outside the frame.
pub(crate) fn frame_slot(rule: FrameRule, base: Base, offset: i64) -> Option<Slot> {
    use super::value::Frame;
    let offset = match (base, rule) {
        (Base::Cfa, _) => offset,
        (Base::Register(register), FrameRule::Known(rule)) if register == rule.register => {
            offset.checked_sub(rule.offset)?
        }
        (Base::Register(6), FrameRule::Expression) => {
            return Some(Slot { frame: Frame::Register(6), offset });
        }
        _ => return None,
    };
    Some(Slot { frame: Frame::Cfa, offset })
}

pub(super) fn static_address(svma: Svma) -> Content {
    let offset = Offset::exact(svma.0.cast_signed());
    Content::Address(Address::of(Origin::Static, offset))
}

/// What facts about one value say together: what variables hold it, or what lies so far away from it.
pub(crate) fn all<'f>(facts: impl Iterator<Item = &'f Fact>) -> Option<Content> {
    let mut found: Option<(Content, usize)> = None;
    for fact in facts {
        let Some((known, depth)) = found else {
            found = Some((fact.content.clone(), fact.depth));
            continue;
        };
        let takes_new = match (&known, &fact.content) {
            (Content::Address(first), Content::Address(second)) => match either(first, second) {
                Some(better) => Some(better == Better::Second),
                // Several things around a value say nothing of what all of them are in.
                None if fact.is_aside => None,
                // An inlined function may take an object for another one: how the outer one declares
                // it goes before that.
                None => match depth.cmp(&fact.depth) {
                    std::cmp::Ordering::Less => Some(false),
                    std::cmp::Ordering::Greater => Some(true),
                    std::cmp::Ordering::Equal => None,
                },
            },
            (Content::Address(_) | Content::Mixed, _) => Some(false),
            (_, other) => Some(matches!(other, Content::Address(_))),
        };
        found = Some(match takes_new {
            Some(true) => (fact.content.clone(), fact.depth),
            Some(false) => (known, depth),
            None => (Content::Mixed, depth),
        });
    }
    found.map(|(content, _)| content)
}

/// A value with what the debug information says of it: first of the value itself, then, if it is still
/// open, of what lies around it.
pub(crate) fn informed<'f>(
    made: Content,
    facts: impl Iterator<Item = &'f Fact> + Clone,
) -> Content {
    let known = match all(facts.clone().filter(|fact| !fact.is_aside)) {
        Some(said) => refined(made, said),
        None => made,
    };
    if !known.is_open() {
        return known;
    }
    match all(facts.filter(|fact| fact.is_aside)) {
        Some(Content::Address(said)) => Content::Address(Address { is_aside: true, ..said }),
        _ => known,
    }
}

/// How a value comes about, with what the debug information says of it.
pub(crate) fn refined(made: Content, said: Content) -> Content {
    match (&made, &said) {
        (_, Content::Unknown | Content::Unseen) => made,
        (Content::Address(first), Content::Address(second)) => {
            let is_located = !matches!(first.origin, Origin::Object(_));
            if is_located || second.is_erased() && !first.is_erased() {
                return made;
            }
            // A member's address keeps the object around it.
            if first.origin != second.origin {
                return if first.contains(second) { made } else { said };
            }
            let is_many = first.is_many || second.is_many;
            let is_perhaps_variable = first.is_perhaps_variable || second.is_perhaps_variable;
            Content::Address(Address { is_many, is_perhaps_variable, ..second.clone() })
        }
        (Content::Mixed, Content::Address(address)) => {
            // A pointer to a member of this or that keeps neither.
            let is_scalar =
                matches!(&address.origin, Origin::Object(it) if !it.innermost().is_aggregate());
            Content::Address(Address { is_inside: is_scalar, ..address.clone() })
        }
        // Who declares a number for how far two addresses are apart counts with it.
        (Content::Distance, Content::Number { .. }) => said,
        (Content::Unknown | Content::Unseen | Content::Mixed, _) => said,
        (_, Content::Address(address)) if !address.is_erased() => said,
        _ => made,
    }
}

fn hinted(known: Content, hint: &Content) -> Content {
    match (&known, hint) {
        (Content::Unseen, _) => known,
        _ if known.is_open() => hint.clone(),
        (Content::Address(first), Content::Address(second))
            if second.contains(first) && first.origin != second.origin =>
        {
            hint.clone()
        }
        _ => known,
    }
}

fn added(base: &Content, by: i64) -> Content {
    match base {
        Content::Address(address) => Content::Address(address.clone().shifted(by)),
        Content::Constant(number) => Content::Constant(number.wrapping_add(by)),
        Content::Number { multiple } => {
            Content::Number { multiple: super::content::gcd(*multiple, by.unsigned_abs()).max(1) }
        }
        other => other.clone(),
    }
}

fn multiplied(number: &Content, by: u64, displacement: i64) -> Content {
    match number {
        Content::Constant(number) => {
            Content::Constant(number.wrapping_mul(by.cast_signed()).wrapping_add(displacement))
        }
        Content::Distance => Content::Distance,
        other => {
            let multiple = other.multiple().saturating_mul(by);
            Content::Number {
                multiple: super::content::gcd(multiple, displacement.unsigned_abs()).max(1),
            }
        }
    }
}

/// An address in which something counts.
fn indexed(address: &Address, index: &Content, scale: u64, displacement: i64) -> Content {
    let address = address.clone();
    Content::Address(match index {
        Content::Constant(number) => {
            let by = number.wrapping_mul(scale.cast_signed()).wrapping_add(displacement);
            address.shifted(by)
        }
        Content::Distance | Content::Mixed | Content::Address(_) => return Content::Distance,
        other => {
            let step = other.multiple().saturating_mul(scale);
            address.shifted(displacement).stepped(step)
        }
    })
}

fn masked(content: &Content, mask: u64) -> Content {
    match content {
        Content::Unseen => Content::Unseen,
        // Tags in the low bits are taken off.
        Content::Address(address) if mask.leading_ones() >= 48 => {
            let clear = (!mask).cast_signed();
            let mut address = address.clone();
            if matches!(address.origin, Origin::Object(_)) {
                address.offset = address.offset.map(|offset| offset & !clear);
            }
            Content::Address(address)
        }
        Content::Unknown if mask.leading_ones() >= 48 => Content::Unknown,
        _ => Content::Number { multiple: 1u64.checked_shl(mask.trailing_zeros()).unwrap_or(1) },
    }
}
