//! The transfer function: from how a value comes about to what it is, by what the values are that it is made of.

use super::address::{Address, Origin, PointerName};
use super::arithmetic::{added, indexed, masked, multiplied};
use super::congruence::Congruence;
use super::content::{Content, static_address};
use super::doubt::{Doubt, Standing};
use super::fact::{Fact, Part, SumFact, all, hinted, informed, refined};
use super::frame_variable::FrameVariables;
use super::graph::ValueGraph;
use super::liveness::Used;
use super::offset::Offset;
use super::points_to::{Carried, PointsTo};
use super::signature::Parameters;
use super::value::{Call, Definition, Slot, Sum, ValueIdx};
use super::worklist::Users;
use crate::code::image::CodeImage;
use crate::dwarf::code::kept::FunctionScope;
use crate::dwarf::debug_info::DebugInfo;
use crate::types::die::DieRef;
use crate::x86_64::abi::POINTER_BYTES;
use crate::x86_64::function::FunctionCode;
use crate::x86_64::image_bytes::ImageBytes as _;
use dataspace_proto::address::Svma;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Sources that are asked while values are typed.
pub(crate) struct Surroundings<'a> {
    pub(crate) debug: &'a mut DebugInfo,
    pub(crate) image: &'a CodeImage,
    pub(crate) function: &'a FunctionCode,
    pub(crate) scope: &'a FunctionScope,
    /// Contents of places for pointers to nothing known.
    pub(crate) points_to: &'a PointsTo,
}

/// The contents of a function's values.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    of: Vec<Content>,
    pub(crate) facts: FxHashMap<ValueIdx, Vec<Fact>>,
    /// Contents of values that are known only from what is done with them later.
    pub(crate) hints: FxHashMap<ValueIdx, Content>,
    pub(super) frame: FrameVariables,
    pub(crate) parts: FxHashMap<ValueIdx, Vec<Part>>,
    /// Each with the values of its registers where it is said first: it holds of them wherever they are.
    pub(crate) sums: Vec<(SumFact, Option<[ValueIdx; 2]>)>,
    returned: FxHashMap<u32, Content>,
    /// Pointers to nothing known that come out of cells, once that was asked.
    pub(super) carried: FxHashMap<ValueIdx, Carried>,
}

/// Contents of the eight bytes at an offset of a type, by the entry that describes it.
pub(super) type Members = FxHashMap<(DieRef, u64), Content>;

impl Contents {
    /// Forgets what `n` values are.
    pub(super) fn begin(&mut self, n: usize) {
        self.of.clear();
        self.of.resize(n, Content::Bottom);
    }

    pub(super) fn set(&mut self, value: ValueIdx, content: Content) {
        if let Some(known) = self.of.get_mut(value.0 as usize) {
            *known = content;
        }
    }

    pub(crate) fn get(&self, value: ValueIdx) -> &Content {
        self.of.get(value.0 as usize).unwrap_or(&Content::Unknown)
    }

    /// Takes out the content of a value.
    pub(super) fn take(&mut self, value: ValueIdx) -> Content {
        let known = self.of.get_mut(value.0 as usize);
        known.map_or(Content::Unknown, |known| std::mem::replace(known, Content::Unknown))
    }
}

/// The work of typing one function's values, up to the fixed point.
pub(super) struct Typing<'a, 'b> {
    pub(super) graph: &'a ValueGraph,
    pub(super) around: &'a mut Surroundings<'b>,
    pub(super) contents: Contents,
    pub(super) users: Users,
    pub(super) members: Members,
    /// The values that are used, once that was asked.
    pub(super) used: Option<Used>,
    /// Contents of the variables in the frame that values are read from.
    declared: Declared,
    /// Arguments that calls take, by the call and its callee.
    pub(super) parameters: FxHashMap<(u32, DieRef), Parameters>,
}

type Declared = FxHashMap<(Slot, u32), Option<Content>>;

/// State that is kept between two times that values are typed.
#[derive(Debug, Default)]
pub(super) struct Typed {
    pub(super) contents: Contents,
    users: Users,
    members: Members,
    declared: Declared,
}

impl<'a, 'b> Typing<'a, 'b> {
    pub(super) fn new(graph: &'a ValueGraph, around: &'a mut Surroundings<'b>) -> Self {
        Self::resume(graph, around, Typed { users: Users::of(graph), ..Typed::default() })
    }

    /// Goes on with what is known of the same values.
    pub(super) fn resume(
        graph: &'a ValueGraph,
        around: &'a mut Surroundings<'b>,
        typed: Typed,
    ) -> Self {
        let Typed { contents, users, members, declared } = typed;
        // What is known now may tell of more calls what they take.
        let parameters = FxHashMap::default();
        Self { graph, around, contents, users, members, used: None, declared, parameters }
    }

    /// Ends the work, and returns what is known.
    pub(super) fn end(self) -> Typed {
        let Self { contents, users, members, declared, .. } = self;
        Typed { contents, users, members, declared }
    }

    pub(super) fn of(&self, value: ValueIdx) -> &Content {
        self.contents.get(self.graph.canonical(value))
    }

    /// Works out what the value is: by how it comes about, what the debug information says, and, where both
    /// say nothing, what is done with it later.
    pub(super) fn evaluate(&mut self, value: ValueIdx) -> Content {
        let made = self.made(value);
        // A count is a number whatever it is called: a compiler that counts down in `%rdi` may leave the name
        // of the pointer with it. And in a loop, what is said would otherwise come before what comes in.
        if self.graph.is_count(value) || made == Content::Bottom {
            return made;
        }
        let definition = self.graph.definitions.get(value.0 as usize);
        if made.is_one_of_several() && matches!(definition, Some(Definition::Loaded { .. })) {
            return self.converted(value).filter(|to| made.is_converted_by(to)).unwrap_or(made);
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

    /// Finds what all that is said of a value takes it for. Where it is one of several things, that counts
    /// only where it is said, unless it is none of them: then what was read is converted.
    fn converted(&self, value: ValueIdx) -> Option<Content> {
        let facts = self.contents.facts.get(&value);
        let said =
            facts.and_then(|facts| all(facts.iter().filter(|fact| fact.standing == Standing::Own)));
        said.or_else(|| self.contents.hints.get(&value).cloned())
    }

    /// Works out what the value is by how it comes about.
    pub(super) fn made(&mut self, value: ValueIdx) -> Content {
        let Some(definition) = self.graph.definitions.get(value.0 as usize).copied() else {
            return Content::Unknown;
        };
        match definition {
            Definition::Entry { .. } => self.joined(value),
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
                Content::Bottom => Content::Bottom,
                other => Content::counted(other.number().times(by.cast_signed())),
            },
            Definition::Difference { left, right } => self.difference(left, right),
            Definition::Masked { of, mask } => masked(self.of(of), mask),
            Definition::Narrowed { of } => match self.of(of) {
                Content::Bottom => Content::Bottom,
                number @ (Content::Number(_) | Content::Constant(_)) => number.clone(),
                _ => Content::NUMBER,
            },
            Definition::Loaded { address: sum, n_bytes } => {
                if n_bytes == POINTER_BYTES
                    && let Some(place) = self.thread_place(&sum)
                {
                    return self.loaded_variable(place);
                }
                let address = self.operand_address(&sum);
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
            Definition::Returned { at } => self.result(at),
            Definition::Number => Content::NUMBER,
            Definition::Parameter { .. } | Definition::Opaque => Content::Unknown,
        }
    }

    /// The join of what comes in from several places.
    fn joined(&self, value: ValueIdx) -> Content {
        let inputs = self.graph.inputs(value);
        if inputs.is_empty() {
            return Content::Unknown;
        }
        let mut sum = Content::Bottom;
        for input in inputs {
            match (&sum, self.of(*input)) {
                // What these are together needs no copy.
                (Content::Top, _) => break,
                (_, Content::Bottom) | (Content::Unknown, Content::Unknown) => {}
                (_, content) => sum = sum.join(content.clone()),
            }
        }
        sum
    }

    /// Works out where an operand is. What lies a whole object further on need not be in another object: a class that is
    /// derived from its type goes on there. So `p[1].next` says nothing, where nothing else tells that there are several.
    pub(super) fn operand_address(&self, sum: &Sum) -> Content {
        match (sum.base.map(|base| self.of(base)), sum.index) {
            (Some(Content::Address(address)), None) if !sum.is_static => {
                Content::Address(address.clone().displaced(sum.displacement))
            }
            _ => self.sum(sum),
        }
    }

    /// Works out what a sum of values is.
    pub(super) fn sum(&self, sum: &Sum) -> Content {
        let base = sum.base.map(|base| self.of(base));
        let index = sum.index.map(|index| self.of(index));
        if [base, index].contains(&Some(&Content::Bottom)) {
            return Content::Bottom;
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
                let counted = index.number().times(scale.cast_signed());
                self.in_table(number, counted, sum.displacement)
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
                    (Content::Top, _) | (_, Content::Top) => Content::Top,
                    (Content::Distance, _) | (_, Content::Distance) => Content::Distance,
                    (first, second) => {
                        if let Some(product) = self.product(sum) {
                            return product;
                        }
                        let second = multiplied(second, scale, sum.displacement);
                        Content::counted(first.number().plus(second.number()))
                    }
                }
            }
        }
    }

    /// Takes a number for an address, where numbers in the code can be addresses: a table at a fixed address, and
    /// what counts in it.
    fn in_table(&self, number: Content, counted: Congruence, displacement: i64) -> Content {
        let svma = Svma(displacement.cast_unsigned());
        if !self.is_static(svma) {
            return number;
        }
        let Content::Address(address) = static_address(svma) else { return number };
        Content::Address(address.shifted(counted.rest()).stepped(counted.step()))
    }

    fn is_static(&self, svma: Svma) -> bool {
        self.around.image.is_at_fixed_addresses()
            && self.around.image.image.segments.iter().any(|segment| segment.holds(svma))
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

    /// A sum of multiples of one number.
    fn product(&self, sum: &Sum) -> Option<Content> {
        let ((root, times), (other, more)) =
            (self.graph.factor(sum.index?), self.graph.factor(sum.base?));
        let times = times.checked_mul(i64::from(sum.scale))?.checked_add(more)?;
        let product = self.of(root).number().times(times);
        (root == other).then(|| Content::counted(product.plus(Congruence::exact(sum.displacement))))
    }

    fn difference(&self, left: ValueIdx, right: ValueIdx) -> Content {
        let (first, second) = (self.of(left), self.of(right));
        match (first, second) {
            (Content::Bottom, _) | (_, Content::Bottom) => Content::Bottom,
            (Content::Address(address), Content::Number(_) | Content::Constant(_)) => {
                match second {
                    Content::Constant(by) => {
                        Content::Address(address.clone().shifted(by.wrapping_neg()))
                    }
                    _ => {
                        let mut address = address.clone();
                        // What is counted down from there lies before it.
                        address.doubts = address.doubts.without(Doubt::Beyond);
                        let counted = second.number();
                        let by = counted.rest().wrapping_neg();
                        Content::Address(address.shifted(by).stepped(counted.step()))
                    }
                }
            }
            (Content::Number(_) | Content::Constant(_), Content::Number(_))
            | (Content::Number(_), Content::Constant(_)) => {
                let ((root, times), (other, less)) =
                    (self.graph.factor(left), self.graph.factor(right));
                Content::counted(if root == other {
                    self.of(root).number().times(times.wrapping_sub(less))
                } else {
                    first.number().minus(second.number())
                })
            }
            (Content::Constant(_), _) => Content::NUMBER,
            (Content::Number(_), Content::Unknown) if self.is_computed(left) => Content::NUMBER,
            (Content::Unknown, Content::Constant(_) | Content::Number(_)) => Content::Unknown,
            _ => Content::Distance,
        }
    }

    /// Tells whether a number is a multiple of something, or a constant, on all ways: one that was read may be an address
    /// that is kept as a number.
    fn is_computed(&self, value: ValueIdx) -> bool {
        let is_multiple = |value: &ValueIdx| {
            let definition = self.graph.definition(*value);
            matches!(definition, Some(Definition::Product { .. } | Definition::Constant(_)))
        };
        let inputs = self.graph.inputs(self.graph.canonical(value));
        is_multiple(&value) || !inputs.is_empty() && inputs.iter().all(is_multiple)
    }

    fn reloaded(&mut self, slot: Slot, kept: ValueIdx, at: u32) -> Content {
        let kept = self.of(kept).clone();
        // As in `evaluate`: in a loop, what is said would come before what comes in.
        if kept == Content::Bottom {
            return kept;
        }
        match self.declared(slot, at) {
            Some(said) => refined(kept, said),
            None => kept,
        }
    }

    /// Finds what the variable in the frame at `slot` is made to hold by its type, once.
    pub(super) fn declared(&mut self, slot: Slot, at: u32) -> Option<Content> {
        if let Some(known) = self.declared.get(&(slot, at)) {
            return known.clone();
        }
        let said = self.declared_at(slot, at);
        self.declared.insert((slot, at), said.clone());
        said
    }

    fn declared_at(&mut self, slot: Slot, at: u32) -> Option<Content> {
        let svma = self.around.function.code(at as usize).map_or(0, |code| code.start);
        let (variable, into) = self.contents.frame.innermost(svma, slot)?;
        let (layout, name) = (Arc::clone(&variable.layout), Arc::clone(&variable.name));
        Some(if into == 0 && !layout.is_aggregate() {
            self.content_of(&layout, Some(PointerName::Variable(name)))
        } else {
            self.member(&layout, into)
        })
    }

    /// Notes what calls return, and, by `found`, what their parameters are.
    pub(super) fn read_calls(&mut self) {
        let calls: Vec<Call> = self.graph.calls.clone();
        for call in calls {
            let content = self.returned(&call);
            self.contents.returned.insert(call.at, content);
        }
    }

    /// Finds what the call at an instruction returns; of a pointer to a function, what that is declared to.
    fn result(&mut self, at: u32) -> Content {
        match self.contents.returned.get(&at) {
            None | Some(Content::Unknown) => {}
            Some(known) => return known.clone(),
        }
        let call = self.graph.call_at(at).copied().filter(|call| call.callee.is_some());
        call.map_or(Content::Unknown, |call| self.returned(&call))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::frame_variable::FrameVariable;
    use crate::dataflow::tests::typed;
    use crate::dataflow::value::Frame;
    use crate::dwarf::sample;
    use crate::types::layout::Layout;
    use crate::types::sample::structure;

    #[test]
    fn a_variable_that_is_a_pointer_names_what_it_leads_to() {
        let look = |_: &mut ValueGraph| ();
        typed(&[0xc3], look, |typing, ()| {
            let dies = sample::entries(typing.around.debug, &[gimli::DW_TAG_pointer_type]);
            let to_long = dies.into_iter().find_map(|die| {
                let pointer = typing.around.debug.layout(die);
                let to = typing.around.debug.layout(pointer.pointee?);
                (&*to.name == "long int").then_some(pointer)
            });
            let pointer = to_long.unwrap();
            let holder = structure("holder", 8, &[("first", 0, &pointer)]);
            let mut declared = |layout: &Arc<Layout>, offset| {
                let slot = |offset| Slot { frame: Frame::Cfa, offset };
                typing.contents.frame = FrameVariables::new(vec![FrameVariable {
                    slot: slot(-16),
                    bytes: 0..8,
                    code: 0x1000..0x1001,
                    layout: Arc::clone(layout),
                    name: "it".into(),
                    depth: 0,
                    is_reference: false,
                }]);
                match typing.declared_at(slot(offset), 0)? {
                    Content::Address(Address { origin: Origin::Object(to), name, .. }) => {
                        let is_variable = matches!(name, Some(PointerName::Variable(_)));
                        Some((to.name.to_string(), is_variable))
                    }
                    _ => Some(("nothing known".to_owned(), false)),
                }
            };
            let to_long = |is_variable| Some(("long int".to_owned(), is_variable));
            assert_eq!(declared(&pointer, -16), to_long(true));
            assert_eq!(declared(&holder, -16), to_long(false), "its first member leads there");
            assert_eq!(declared(&pointer, -12), Some(("nothing known".to_owned(), false)));
            assert_eq!(declared(&pointer, -8), None, "behind it");
        });
    }
}
