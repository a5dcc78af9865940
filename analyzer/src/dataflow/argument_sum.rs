//! Of which of its arguments a function makes its values, without debug information: sums, so that
//! `source - target + target` is the source again.

use super::call_effect::CallEffects;
use super::graph::ValueGraph;
use super::value::{Definition, Depth, Place, Sum, ValueIdx};
use crate::dwarf::code::frame::FrameTable;
use crate::limit;
use crate::x86_64::abi::{ARGUMENTS, N_ARGUMENTS, POINTER_BYTES};
use crate::x86_64::access::{AddressOperand, AddressRegister, SegmentBase};
use crate::x86_64::exit::Destination;
use crate::x86_64::function::FunctionCode;
use dataspace_proto::address::Svma;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A sum of arguments and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArgumentSum {
    /// Factor of each argument, by the order in which they are passed (psABI, 3.2.3).
    factors: [i8; N_ARGUMENTS],
    /// Arguments that may be in it or not, a bit each.
    open: u8,
    /// The number; `None` for any.
    offset: Option<i64>,
}

/// Parts of a value, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Derived {
    /// Nothing has been worked out yet.
    Bottom,
    /// It is this sum.
    Sum(ArgumentSum),
    /// Something else is in it.
    #[default]
    Top,
}

impl ArgumentSum {
    const ANY_NUMBER: Self = Self { factors: [0; N_ARGUMENTS], open: 0, offset: None };

    /// A number that is known, or any.
    pub(crate) fn number(number: Option<i64>) -> Self {
        Self { offset: number, ..Self::ANY_NUMBER }
    }

    /// One argument, by its place.
    pub(crate) fn argument(place: usize) -> Self {
        let mut sum = Self::number(Some(0));
        if let Some(factor) = sum.factors.get_mut(place) {
            *factor = 1;
        }
        sum
    }

    /// Tells whether no argument is in it.
    pub(crate) fn is_number(&self) -> bool {
        self.open == 0 && self.factors == [0; N_ARGUMENTS]
    }

    /// Returns what is added to the arguments, if that is one number.
    pub(crate) const fn offset(&self) -> Option<i64> {
        self.offset
    }

    /// Returns the factor of the argument at `place`; `None` where that is not known.
    pub(crate) fn factor(&self, place: usize) -> Option<i8> {
        let is_open = self.open >> place & 1 != 0;
        self.factors.get(place).copied().filter(|_| !is_open)
    }

    /// The same with any number added.
    pub(crate) const fn anywhere(self) -> Self {
        Self { offset: None, ..self }
    }

    fn shifted(self, by: i64) -> Self {
        Self { offset: self.offset.and_then(|offset| offset.checked_add(by)), ..self }
    }

    /// `other` added `times` times; `None` where that gets out of hand.
    fn plus(mut self, other: &Self, times: i8) -> Option<Self> {
        for (mine, its) in self.factors.iter_mut().zip(other.factors) {
            *mine = mine.checked_add(its.checked_mul(times)?)?;
        }
        let moved = other.offset.and_then(|offset| offset.checked_mul(i64::from(times)));
        self.offset = self.offset.zip(moved).and_then(|(mine, moved)| mine.checked_add(moved));
        self.open |= other.open;
        Some(self.normal())
    }

    /// The join: what is certain of a value that is one of two.
    fn join(mut self, other: Self) -> Self {
        for (place, (mine, its)) in self.factors.iter().zip(other.factors).enumerate() {
            if *mine != its {
                self.open |= 1 << place;
            }
        }
        self.open |= other.open;
        self.offset = self.offset.filter(|_| self.offset == other.offset);
        self.normal()
    }

    fn normal(mut self) -> Self {
        for (place, factor) in self.factors.iter_mut().enumerate() {
            if self.open >> place & 1 != 0 {
                *factor = 0;
            }
        }
        self
    }

    /// The sum with each argument replaced by what a caller passes in it.
    pub(crate) fn with_arguments(&self, passed: &[Derived; N_ARGUMENTS]) -> Derived {
        let mut total = Self::number(self.offset);
        for (place, passed) in passed.iter().enumerate() {
            let factor = self.factor(place);
            let replaced = match (factor, passed) {
                (Some(0), _) => continue,
                (Some(factor), Derived::Sum(passed)) => total.plus(passed, factor),
                (None, Derived::Sum(passed)) => {
                    total.plus(passed, 1).map(|more| total.anywhere().join(more))
                }
                _ => None,
            };
            match replaced {
                Some(replaced) => total = replaced,
                None => return Derived::Top,
            }
        }
        Derived::Sum(total)
    }
}

impl Derived {
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Bottom, known) | (known, Self::Bottom) => known,
            (Self::Sum(first), Self::Sum(second)) => Self::Sum(first.join(second)),
            _ => Self::Top,
        }
    }

    fn map(self, change: impl Fn(ArgumentSum) -> Option<ArgumentSum>) -> Self {
        match self {
            Self::Sum(sum) => change(sum).map_or(Self::Top, Self::Sum),
            other => other,
        }
    }

    fn plus(self, other: Self, times: i8) -> Self {
        match (self, other) {
            (Self::Bottom, _) | (_, Self::Bottom) => Self::Bottom,
            (Self::Sum(first), Self::Sum(second)) => {
                first.plus(&second, times).map_or(Self::Top, Self::Sum)
            }
            _ => Self::Top,
        }
    }
}

/// The sums of a function, each worked out with all that it is made of when it is asked for: of large functions few are.
#[derive(Debug)]
pub(crate) struct ArgumentSums {
    function: Arc<FunctionCode>,
    graph: ValueGraph,
    /// Values that come into each entry that was followed.
    inputs: FxHashMap<ValueIdx, Vec<ValueIdx>>,
    of: FxHashMap<ValueIdx, Derived>,
}

/// Drops what is done with the values: here only how they come about is asked.
fn forget_uses(graph: &mut ValueGraph) {
    graph.stores = Vec::new();
    graph.accesses = Vec::new();
    graph.counted = Vec::new();
    graph.compared = Vec::new();
    graph.returned = Vec::new();
}

impl ArgumentSums {
    /// The values of a function; `None` where they are too many.
    pub(crate) fn of(
        function: &Arc<FunctionCode>,
        frames: &FrameTable,
        effects: &CallEffects,
    ) -> Option<Self> {
        let rules = super::frame_rules(function, frames);
        let mut graph = ValueGraph::of(function, rules, effects, Depth::Named)?;
        forget_uses(&mut graph);
        let (inputs, of) = (FxHashMap::default(), FxHashMap::default());
        Some(Self { function: Arc::clone(function), graph, inputs, of })
    }

    /// Returns the number of values that it holds.
    pub(crate) const fn n_values(&self) -> usize {
        self.graph.definitions.len()
    }

    /// The address of an operand of the instruction at `svma`.
    pub(crate) fn address(&mut self, svma: Svma, address: &AddressOperand) -> Derived {
        if address.segment != SegmentBase::Flat || address.is_ip_relative || address.is_32_bit() {
            return Derived::Top;
        }
        let mut part = |register: Option<AddressRegister>| match register {
            None => Derived::Sum(ArgumentSum::number(Some(0))),
            Some(AddressRegister { dwarf: Some(number), .. }) => self.register(svma, number),
            Some(_) => Derived::Top,
        };
        let (base, index) = (part(address.base), part(address.index));
        base.plus(scaled(index, address.scale), 1)
            .map(|sum| Some(sum.shifted(address.displacement)))
    }

    /// Derives what a register, by its DWARF number, holds before the instruction at `svma`.
    pub(crate) fn register(&mut self, svma: Svma, number: u16) -> Derived {
        self.held(svma, number).map_or(Derived::Top, |value| self.derived(value))
    }

    fn held(&mut self, svma: Svma, number: u16) -> Option<ValueIdx> {
        let at = self.function.index_of(svma)?;
        Some(self.graph.before(at as u32, Place::Register(u8::try_from(number).ok()?)))
    }

    /// Derives what the call at `svma` passes in each register of arguments.
    pub(crate) fn passed(&mut self, svma: Svma) -> [Derived; N_ARGUMENTS] {
        ARGUMENTS.map(|register| self.register(svma, u16::from(register)))
    }

    /// Finds the function that the call or jump at `svma` calls.
    pub(crate) fn callee(&mut self, svma: Svma) -> Option<Destination> {
        let at = self.function.index_of(svma)?;
        self.function.destination(at).or_else(|| {
            let callee = self.graph.call_at(at as u32)?.callee?;
            self.pointed(callee)
        })
    }

    /// Finds the function whose address a register, by its DWARF number, holds before the instruction at `svma`.
    pub(crate) fn function_in(&mut self, svma: Svma, number: u16) -> Option<Destination> {
        let value = self.held(svma, number)?;
        self.pointed(value)
    }

    fn pointed(&mut self, value: ValueIdx) -> Option<Destination> {
        match self.made_once(value)? {
            Definition::Loaded {
                address: Sum { index: None, is_static: true, displacement, .. },
                n_bytes: POINTER_BYTES,
            } => Some(Destination::Slot(Svma(displacement.cast_unsigned()))),
            Definition::StaticAddress(svma) => Some(Destination::Code(svma)),
            _ => None,
        }
    }

    /// The one definition that leads to a value on all ways.
    fn made_once(&mut self, value: ValueIdx) -> Option<Definition> {
        let (mut open, mut seen, mut only) = (vec![value], FxHashSet::default(), None);
        while let Some(value) = open.pop() {
            if seen.len() >= limit::MAX_VALUES_BEHIND_A_CALL {
                return None;
            }
            if !seen.insert(value) {
                continue;
            }
            match self.graph.definitions.get(value.0 as usize)? {
                Definition::Entry { .. } => open.extend_from_slice(self.inputs(value)),
                _ if *only.get_or_insert(value) == value => {}
                _ => return None,
            }
        }
        self.graph.definitions.get(only?.0 as usize).copied()
    }

    /// Returns what comes into the value of an entry.
    fn inputs(&mut self, value: ValueIdx) -> &[ValueIdx] {
        self.inputs.entry(value).or_insert_with(|| self.graph.inputs_into(value))
    }

    /// Derives a value, with all that it is made of.
    fn derived(&mut self, value: ValueIdx) -> Derived {
        if let Some(known) = self.of.get(&value) {
            return *known;
        }
        let reached = self.reached_from(value);
        for _ in 0..limit::MAX_TYPING_PASSES {
            let mut has_changed = false;
            for value in reached.iter().rev() {
                let known = self.of.get(value).copied().unwrap_or(Derived::Bottom);
                // What was found before stays in it, so that it only goes up the lattice, and that ends.
                let made = known.join(self.made(*value));
                has_changed |= made != known;
                self.of.insert(*value, made);
            }
            if !has_changed {
                return self.of.get(&value).copied().unwrap_or_default();
            }
        }
        // It takes too long: nothing is said of any of them.
        self.of.extend(reached.iter().map(|value| (*value, Derived::Top)));
        Derived::Top
    }

    /// The values that one is made of and that nothing is known of yet, with itself, users mostly first.
    fn reached_from(&mut self, value: ValueIdx) -> Vec<ValueIdx> {
        let (mut reached, mut seen) = (vec![value], FxHashSet::from_iter([value]));
        let mut next = 0;
        while let Some(value) = reached.get(next).copied() {
            next += 1;
            let mut operands = Vec::new();
            match self.graph.definitions.get(value.0 as usize) {
                Some(Definition::Entry { .. }) => operands.extend_from_slice(self.inputs(value)),
                // What is read from memory is of no argument, wherever it is read.
                Some(Definition::Loaded { .. }) | None => {}
                Some(definition) => definition.for_each_operand(|it| operands.push(it)),
            }
            operands.retain(|operand| !self.of.contains_key(operand) && seen.insert(*operand));
            reached.extend(operands);
        }
        reached
    }

    fn made(&self, value: ValueIdx) -> Derived {
        let Some(definition) = self.graph.definitions.get(value.0 as usize) else {
            return Derived::Top;
        };
        let get = |value: ValueIdx| self.of.get(&value).copied().unwrap_or(Derived::Bottom);
        match *definition {
            Definition::Entry { .. } => match self.inputs.get(&value).map(Vec::as_slice) {
                None | Some([]) => Derived::Top,
                Some(inputs) => {
                    inputs.iter().fold(Derived::Bottom, |joined, input| joined.join(get(*input)))
                }
            },
            definition => made_of(&definition, get),
        }
    }
}

/// Makes a value of those that its definition names.
fn made_of(definition: &Definition, get: impl Fn(ValueIdx) -> Derived) -> Derived {
    let any = Derived::Sum(ArgumentSum::ANY_NUMBER);
    match *definition {
        Definition::Parameter { register } => {
            let place = ARGUMENTS.iter().position(|argument| *argument == register);
            place.map_or(Derived::Top, |place| Derived::Sum(ArgumentSum::argument(place)))
        }
        Definition::Constant(number) => Derived::Sum(ArgumentSum::number(Some(number))),
        Definition::Sum(sum) => of_sum(&sum, get),
        Definition::Difference { left, right } => get(left).plus(get(right), -1),
        Definition::Masked { of, mask } => get(of).map(|sum| masked(sum, mask)),
        Definition::Product { of, .. } => get(of).map(|_| Some(ArgumentSum::ANY_NUMBER)),
        Definition::Narrowed { of } => match get(of) {
            Derived::Bottom => Derived::Bottom,
            Derived::Sum(sum) if sum.is_number() && is_half(sum.offset) => Derived::Sum(sum),
            _ => any,
        },
        Definition::Reloaded { kept, .. } => get(kept),
        Definition::Chosen { first, second } => get(first).join(get(second)),
        Definition::Loaded { n_bytes: ..POINTER_BYTES, .. } | Definition::Number => any,
        Definition::Loaded { .. }
        | Definition::StaticAddress(_)
        | Definition::FrameAddress(_)
        | Definition::ThreadPointer
        | Definition::Returned { .. }
        | Definition::Entry { .. }
        | Definition::Opaque => Derived::Top,
    }
}

fn of_sum(sum: &Sum, get: impl Fn(ValueIdx) -> Derived) -> Derived {
    if sum.is_static {
        return Derived::Top;
    }
    let nothing = Derived::Sum(ArgumentSum::number(Some(0)));
    let base = sum.base.map_or(nothing, &get);
    let index = sum.index.map_or(nothing, &get);
    base.plus(scaled(index, sum.scale), 1).map(|total| Some(total.shifted(sum.displacement)))
}

/// A multiple of a value: no address any more.
fn scaled(value: Derived, scale: u8) -> Derived {
    match value {
        Derived::Sum(sum) if scale > 1 => {
            let number = sum.offset.filter(|_| sum.is_number());
            let number = number.and_then(|number| number.checked_mul(i64::from(scale)));
            Derived::Sum(ArgumentSum::number(number))
        }
        // Something that is counted: what is no sum of arguments may be a number as well, as the `i` that was
        // loaded for `a[i]`.
        Derived::Top if scale > 1 => Derived::Sum(ArgumentSum::ANY_NUMBER),
        value => value,
    }
}

/// An address that is rounded down stays one, as in `memcpy`'s loops over vectors; low bits are a number.
fn masked(sum: ArgumentSum, mask: u64) -> Option<ArgumentSum> {
    /// Code rounds to vectors, cache lines and pages.
    const MAX_ROUNDING: u64 = 4096;
    if mask.wrapping_neg() <= MAX_ROUNDING {
        return Some(sum.anywhere());
    }
    (mask < MAX_ROUNDING).then_some(ArgumentSum::ANY_NUMBER)
}

/// Tells whether a number is the same in half a register.
fn is_half(number: Option<i64>) -> bool {
    number.is_some_and(|number| u32::try_from(number).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86_64::image_bytes::NoBytes;

    /// The sums of straight code at 0x1000, and its function.
    fn sums(code: &[u8]) -> ArgumentSums {
        let function = Arc::new(FunctionCode::decode(Svma(0x1000), code, &NoBytes));
        ArgumentSums::of(&function, &FrameTable::default(), &CallEffects::default()).unwrap()
    }

    fn operand(sums: &mut ArgumentSums, svma: u64) -> Derived {
        let at = sums.function.index_of(Svma(svma)).unwrap();
        let operand = sums.function.reading(at).unwrap().operand.unwrap();
        sums.address(Svma(svma), &operand.address)
    }

    #[test]
    fn a_difference_of_arguments_added_to_one_is_the_other() {
        // sub %rdi,%rsi; mov 8(%rdi,%rsi),%rax; ret
        let mut sums = sums(&[0x48, 0x29, 0xfe, 0x48, 0x8b, 0x44, 0x37, 0x08, 0xc3]);
        let source = ArgumentSum::argument(1).shifted(8);
        assert_eq!(operand(&mut sums, 0x1003), Derived::Sum(source));
    }

    #[test]
    fn a_loop_makes_the_offset_unknown_and_keeps_the_argument() {
        // 1000: add $32,%rdi; 1004: cmp %al,(%rdi); 1006: jne 1000; ret
        let mut sums = sums(&[0x48, 0x83, 0xc7, 0x20, 0x38, 0x07, 0x75, 0xf8, 0xc3]);
        let string = ArgumentSum::argument(0).anywhere();
        assert_eq!(operand(&mut sums, 0x1004), Derived::Sum(string));
    }

    #[test]
    fn a_pointer_from_memory_is_of_no_argument() {
        // mov (%rdi),%rdi; mov (%rdi),%eax; ret
        let mut sums = sums(&[0x48, 0x8b, 0x3f, 0x8b, 0x07, 0xc3]);
        assert_eq!(operand(&mut sums, 0x1003), Derived::Top);
    }

    #[test]
    fn what_a_caller_passes_on_replaces_an_argument() {
        let end = ArgumentSum::argument(0).plus(&ArgumentSum::argument(2), 1).unwrap().shifted(-8);
        let mut passed = [Derived::Top; N_ARGUMENTS];
        passed[0] = Derived::Sum(ArgumentSum::argument(3).shifted(16));
        assert_eq!(end.with_arguments(&passed), Derived::Top);
        passed[2] = Derived::Sum(ArgumentSum::number(Some(24)));
        let expected = ArgumentSum::argument(3).shifted(32);
        assert_eq!(end.with_arguments(&passed), Derived::Sum(expected));
        passed[2] = Derived::Sum(ArgumentSum::number(None));
        assert_eq!(end.with_arguments(&passed), Derived::Sum(expected.anywhere()));
    }

    #[test]
    fn only_what_is_scaled_is_counted() {
        // mov (%rdi,%rsi,disp),%rax and mov (%rdi,%rsi,4,disp),%rax
        let mut plain = sums(&[0x48, 0x8b, 0x04, 0x37, 0xc3]);
        let sum = ArgumentSum::argument(0).plus(&ArgumentSum::argument(1), 1).unwrap();
        assert_eq!(operand(&mut plain, 0x1000), Derived::Sum(sum));
        let mut scaled = sums(&[0x48, 0x8b, 0x04, 0xb7, 0xc3]);
        let element = ArgumentSum::argument(0).anywhere();
        assert_eq!(operand(&mut scaled, 0x1000), Derived::Sum(element));
        // mov $3,%esi; mov (%rdi,%rsi,4),%rax
        let mut third = sums(&[0xbe, 3, 0, 0, 0, 0x48, 0x8b, 0x04, 0xb7, 0xc3]);
        let element = ArgumentSum::argument(0).shifted(12);
        assert_eq!(operand(&mut third, 0x1005), Derived::Sum(element));
    }
}
