//! The values of one function and how they are made of each other: static single assignment, with
//! what meets at a merge worked out where it is asked for.

use super::aligned_stack::AlignedStack;
use super::by_place::ByPlace;
use super::call_effect::CallEffects;
use super::transfer::Transfer;
use super::value::{Call, Definition, Depth, Frame, Place, Slot, Store, Sum, Touched, ValueIdx};
use super::write::Writes;
use crate::dwarf::code::frame::FrameRule;
use crate::dwarf::variable::location::Base;
use crate::limit;
use crate::x86_64::abi::STACK_POINTER;
use crate::x86_64::exit::Exit;
use crate::x86_64::function::FunctionCode;
use dataspace_proto::address::Svma;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Way into a run of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunEntry {
    /// From the instruction with this index.
    From(u32),
    /// From the function's caller.
    Caller,
    /// From where nothing is known.
    Unknown,
}

/// A function's values.
#[derive(Debug, Default)]
pub(crate) struct ValueGraph {
    /// The run of each instruction: those that only the one before leads to share one.
    runs: Vec<u32>,
    ways: Vec<Vec<RunEntry>>,
    /// Rule for the CFA at each instruction.
    pub(crate) frames: Vec<FrameRule>,
    pub(super) aligned_stack: AlignedStack,
    pub(crate) definitions: Vec<Definition>,
    /// All that places are set to in runs; `written` tells which of these is whose.
    writes: Vec<Writes>,
    written: ByPlace,
    /// The values of entries.
    entries: ByPlace,
    shared: FxHashMap<SharedKey, ValueIdx>,
    inputs: Inputs,
    /// True for each value that is a count, by index.
    is_count: Vec<bool>,
    /// The value that another one turned out to be.
    same: Vec<ValueIdx>,
    pub(crate) stores: Vec<Store>,
    /// Copies by instructions for strings: where to, and where from.
    pub(super) copies: Vec<(ValueIdx, ValueIdx)>,
    /// Values that are put into the frame.
    pub(super) frame_stores: Vec<(Slot, ValueIdx)>,
    /// Accesses to memory through one register: the register's value, and what is accessed from there.
    pub(crate) accesses: Vec<(ValueIdx, Touched)>,
    /// Values before which the last byte is tested for a kind.
    pub(super) kind_tested: FxHashSet<ValueIdx>,
    /// Accesses to elements that a register counts from there, which it is multiplied by the size of.
    pub(crate) counted: Vec<(ValueIdx, Touched)>,
    pub(crate) calls: Vec<Call>,
    /// Pairs that are compared or subtracted.
    pub(crate) compared: Vec<(ValueIdx, ValueIdx)>,
    /// Values that the function returns.
    pub(crate) returned: Vec<ValueIdx>,
    opaque: ValueIdx,
    is_over_budget: bool,
}

/// Values that are made once however often they occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SharedKey {
    Parameter(u8),
    Frame(Slot),
}

impl ValueGraph {
    /// The values of `function`, with the rule for the CFA at each of its instructions and what its calls
    /// change. `None` where there are more than [`limit::MAX_VALUES`].
    pub(crate) fn of(
        function: &FunctionCode,
        frames: Vec<FrameRule>,
        effects: &CallEffects,
        depth: Depth,
    ) -> Option<Self> {
        let (runs, ways) = runs(function);
        let n_runs = ways.len();
        let mut graph = Self {
            runs,
            ways,
            frames,
            definitions: vec![Definition::Opaque],
            written: ByPlace::new(n_runs),
            entries: ByPlace::new(n_runs),
            ..Self::default()
        };
        Transfer::new(&mut graph, function, effects, depth).run();
        (!graph.is_over_budget).then_some(graph)
    }

    /// Returns the value of all that is not followed: one for all of it, so that nothing may be said of it.
    pub(crate) const fn opaque(&self) -> ValueIdx {
        self.opaque
    }

    /// A new value.
    pub(crate) fn define(&mut self, definition: Definition) -> ValueIdx {
        if self.definitions.len() >= limit::MAX_VALUES {
            self.is_over_budget = true;
            return self.opaque;
        }
        self.definitions.push(definition);
        ValueIdx(self.definitions.len() as u32 - 1)
    }

    fn shared(&mut self, key: SharedKey, definition: Definition) -> ValueIdx {
        if let Some(known) = self.shared.get(&key) {
            return *known;
        }
        let value = self.define(definition);
        self.shared.insert(key, value);
        value
    }

    /// The place in the frame that is so far from where a register, by its DWARF number, points before the instruction at
    /// `at`.
    pub(super) fn slot(&self, at: u32, register: u16, displacement: i64) -> Option<Slot> {
        let rule = *self.frames.get(at as usize)?;
        let by_rule = Slot::of(rule, Base::Register(register), displacement);
        let is_stack = register == STACK_POINTER;
        by_rule.or_else(|| self.aligned_stack.slot(at, displacement).filter(|_| is_stack))
    }

    /// An address in the frame.
    pub(crate) fn frame_address(&mut self, slot: Slot) -> ValueIdx {
        self.shared(SharedKey::Frame(slot), Definition::FrameAddress(slot))
    }

    /// Returns the value that `register` holds when the function is entered.
    pub(crate) fn parameter(&mut self, register: u8) -> ValueIdx {
        self.shared(SharedKey::Parameter(register), Definition::Parameter { register })
    }

    /// The same, if anything is made of it.
    pub(crate) fn known_parameter(&self, register: u8) -> Option<ValueIdx> {
        self.shared.get(&SharedKey::Parameter(register)).copied()
    }

    /// Notes that the instruction at `at` puts `value` in `place`.
    pub(crate) fn write(&mut self, at: u32, place: Place, value: ValueIdx) {
        let Some(run) = self.runs.get(at as usize).copied() else { return };
        // What is said of a register is said of its value alone.
        let value = match place {
            Place::Register(_) if value == self.opaque => self.define(Definition::Opaque),
            _ => value,
        };
        let writes = self.written.get(run, place).and_then(|of| self.writes.get_mut(of as usize));
        match writes {
            Some(writes) => writes.add(at, value),
            None => {
                self.written.insert(run, place, self.writes.len() as u32);
                self.writes.push(Writes::One((at, value)));
            }
        }
    }

    /// Returns the values that `place` is set to in a run, in the order of the instructions.
    fn writes_of(&self, run: u32, place: Place) -> &[(u32, ValueIdx)] {
        let writes = self.written.get(run, place).and_then(|of| self.writes.get(of as usize));
        writes.map_or(&[], Writes::as_slice)
    }

    /// Returns the value that `place` holds before the instruction at `at`.
    pub(crate) fn before(&mut self, at: u32, place: Place) -> ValueIdx {
        if let Some(address) = self.frame_register(at, place) {
            return address;
        }
        let Some(run) = self.runs.get(at as usize).copied() else { return self.opaque };
        self.written_before(at, run, place)
    }

    /// Finds the value that the writes of a run before the instruction at `at` leave in `place`.
    fn written_before(&mut self, at: u32, run: u32, place: Place) -> ValueIdx {
        let writes = self.writes_of(run, place);
        let n = writes.partition_point(|(by, _)| *by < at);
        match writes[..n].last() {
            Some((_, value)) => *value,
            None => self.entry(run, place),
        }
    }

    /// The values that `place` holds before the instructions in a range of code.
    pub(crate) fn held(
        &mut self,
        function: &FunctionCode,
        code: &Range<u64>,
        place: Place,
    ) -> Vec<ValueIdx> {
        let first = function.first_from(Svma(code.start)) as u32;
        let end = function.first_from(Svma(code.end)) as u32;
        let (mut held, mut seen) = (Vec::new(), FxHashSet::default());
        let mut at = first;
        while at < end {
            let value = self.before(at, place);
            if seen.insert(value) {
                held.push(value);
            }
            at = self.next_change(at, place);
        }
        held
    }

    /// The next instruction behind `at` before which `place` may hold something else.
    fn next_change(&self, at: u32, place: Place) -> u32 {
        let Some(run) = self.runs.get(at as usize).copied() else { return u32::MAX };
        let behind = self.runs.partition_point(|other| *other <= run) as u32;
        let writes = self.writes_of(run, place);
        let next = writes.get(writes.partition_point(|(by, _)| *by < at)).map(|(by, _)| by + 1);
        let is_frame = matches!(
            (self.frames.get(at as usize), place),
            (Some(FrameRule::Known(rule)), Place::Register(register))
                if rule.register == u16::from(register)
        );
        // The rule for the frame changes without a write that is followed.
        if is_frame {
            return at + 1;
        }
        next.map_or(behind, |next| next.min(behind))
    }

    /// The address that the register holds which the CFA is computed from.
    fn frame_register(&mut self, at: u32, place: Place) -> Option<ValueIdx> {
        let Place::Register(register) = place else { return None };
        let (number, slot) = frame_slot(*self.frames.get(at as usize)?)?;
        (register == number).then(|| self.frame_address(slot))
    }

    /// The register that the CFA is computed from, and the value that it has by that, if it is used.
    pub(crate) fn frame_of(&self, rule: FrameRule) -> Option<(u8, Option<ValueIdx>)> {
        let (register, slot) = frame_slot(rule)?;
        Some((register, self.shared.get(&SharedKey::Frame(slot)).copied()))
    }

    /// The first instruction of each run.
    pub(crate) fn run_starts(&self) -> impl Iterator<Item = u32> {
        let mut next = 0;
        self.runs.iter().enumerate().filter_map(move |(at, run)| {
            let is_first = *run == next;
            next += u32::from(is_first);
            is_first.then_some(at as u32)
        })
    }

    /// Lists the values that places hold at the beginning of runs, as far as they are used.
    pub(crate) fn entries(&self) -> impl Iterator<Item = ((u32, Place), ValueIdx)> {
        self.entries.iter().map(|(place, value)| (place, ValueIdx(value)))
    }

    /// Lists what places are set to in each run: the instructions and the values.
    pub(crate) fn writes(&self) -> impl Iterator<Item = ((u32, Place), &[(u32, ValueIdx)])> {
        let writes = |of: u32| self.writes.get(of as usize).map_or(&[][..], Writes::as_slice);
        self.written.iter().map(move |(place, of)| (place, writes(of)))
    }

    /// Returns the value that `place` holds after the instruction at `at`.
    fn after(&mut self, at: u32, place: Place) -> ValueIdx {
        let Some(run) = self.runs.get(at as usize).copied() else { return self.opaque };
        self.written_before(at + 1, run, place)
    }

    fn entry(&mut self, run: u32, place: Place) -> ValueIdx {
        if let Some(known) = self.entries.get(run, place) {
            return ValueIdx(known);
        }
        let value = self.define(Definition::Entry { run, place });
        self.entries.insert(run, place, value.0);
        value
    }

    /// Works out what comes into every entry, and which values are one.
    pub(crate) fn connect(&mut self) -> Option<()> {
        let mut next = 0;
        while next < self.definitions.len() {
            self.inputs.begin();
            self.for_each_way(ValueIdx(next as u32), |graph, value| graph.inputs.add(value));
            next += 1;
        }
        self.same = (0..self.definitions.len() as u32).map(ValueIdx).collect();
        self.simplify();
        self.is_count = (0..next as u32).map(|value| self.counts(ValueIdx(value))).collect();
        (!self.is_over_budget).then_some(())
    }

    /// Works out what comes into the value of one entry, without [`Self::connect`].
    pub(crate) fn inputs_into(&mut self, entry: ValueIdx) -> Vec<ValueIdx> {
        let mut inputs = Vec::new();
        self.for_each_way(entry, |_, value| {
            if !inputs.contains(&value) {
                inputs.push(value);
            }
        });
        inputs
    }

    /// Goes through what comes into a value on each way, if it is an entry's.
    fn for_each_way(&mut self, value: ValueIdx, mut visit: impl FnMut(&mut Self, ValueIdx)) {
        let Some(Definition::Entry { run, place }) =
            self.definitions.get(value.0 as usize).copied()
        else {
            return;
        };
        let mut next = 0;
        while let Some(way) = self.ways.get(run as usize).and_then(|ways| ways.get(next)).copied() {
            let value = match (way, place) {
                (RunEntry::From(at), _) => self.after(at, place),
                (RunEntry::Caller, Place::Register(register)) => self.parameter(register),
                _ => self.opaque,
            };
            visit(self, value);
            next += 1;
        }
    }

    /// Finds entries into which one value comes in on every way: phi functions that are none.
    fn simplify(&mut self) {
        let is_entry = |value: &ValueIdx| !self.inputs.of(*value).is_empty();
        let all = (0..self.definitions.len() as u32).map(ValueIdx);
        let entries: Vec<ValueIdx> = all.filter(is_entry).collect();
        for _ in 0..limit::MAX_SIMPLIFICATIONS {
            let mut has_changed = false;
            for value in entries.iter().copied() {
                if self.same[value.0 as usize] != value {
                    continue;
                }
                let inputs = self.inputs.of(value);
                let mut only = None;
                let is_one = inputs
                    .iter()
                    .map(|input| self.canonical(*input))
                    .all(|input| input == value || *only.get_or_insert(input) == input);
                if let Some(only) = only.filter(|_| is_one) {
                    self.same[value.0 as usize] = only;
                    has_changed = true;
                }
            }
            if !has_changed {
                break;
            }
        }
        for value in 0..self.same.len() {
            self.same[value] = self.canonical(ValueIdx(value as u32));
        }
    }

    /// The value that `value` turned out to be.
    pub(crate) fn canonical(&self, value: ValueIdx) -> ValueIdx {
        let Some(next) = self.same.get(value.0 as usize).filter(|next| **next != value) else {
            return value;
        };
        let mut value = *next;
        // Values point at others that were made no later way round; a chain ends at one that is
        // itself.
        for _ in 0..self.same.len() {
            match self.same.get(value.0 as usize) {
                Some(next) if *next != value => value = *next,
                _ => break,
            }
        }
        value
    }

    /// Returns the definition of a value, or of the one that it is the same as.
    pub(crate) fn definition(&self, value: ValueIdx) -> Option<&Definition> {
        self.definitions.get(self.canonical(value).0 as usize)
    }

    /// Tells whether a value begins as a number and goes on by a constant: a count, whatever variable
    /// a compiler says it is.
    pub(crate) fn is_count(&self, value: ValueIdx) -> bool {
        self.is_count.get(value.0 as usize) == Some(&true)
    }

    fn counts(&self, value: ValueIdx) -> bool {
        let (mut begins, mut goes_on) = (false, false);
        for input in self.inputs(value) {
            match self.definition(*input) {
                Some(Definition::Constant(_)) => begins = true,
                Some(Definition::Sum(Sum {
                    base: Some(base),
                    index: None,
                    is_static: false,
                    ..
                })) => {
                    goes_on |= self.canonical(*base) == value;
                }
                _ => {}
            }
        }
        begins && goes_on
    }

    /// The call at an instruction.
    pub(crate) fn call_at(&self, at: u32) -> Option<&Call> {
        let idx = self.calls.binary_search_by_key(&at, |call| call.at).ok()?;
        self.calls.get(idx)
    }

    /// Returns the values that come into an entry.
    pub(crate) fn inputs(&self, value: ValueIdx) -> &[ValueIdx] {
        self.inputs.of(value)
    }
}

/// Operands of phi functions: what comes into each value that is the content of a place at the beginning of a run.
#[derive(Debug, Default)]
struct Inputs {
    /// Start of each value's operands in `values`.
    starts: Vec<u32>,
    values: Vec<ValueIdx>,
}

impl Inputs {
    /// Goes on to the next value.
    fn begin(&mut self) {
        self.starts.push(self.values.len() as u32);
    }

    /// Adds what comes into it, once.
    fn add(&mut self, value: ValueIdx) {
        let first = self.starts.last().copied().unwrap_or(0);
        if !self.values[first as usize..].contains(&value) {
            self.values.push(value);
        }
    }

    fn of(&self, value: ValueIdx) -> &[ValueIdx] {
        let at = value.0 as usize;
        let Some(first) = self.starts.get(at).copied() else { return &[] };
        let end = self.starts.get(at + 1).map_or(self.values.len(), |end| *end as usize);
        self.values.get(first as usize..end).unwrap_or_default()
    }
}

/// The register that a rule computes the CFA from, and where in the frame it points.
fn frame_slot(rule: FrameRule) -> Option<(u8, Slot)> {
    let rule = rule.cfa()?;
    let slot = Slot { frame: Frame::Cfa, offset: rule.offset.checked_neg()? };
    Some((u8::try_from(rule.register).ok()?, slot))
}

/// The run of each instruction, and the ways into each run.
fn runs(function: &FunctionCode) -> (Vec<u32>, Vec<Vec<RunEntry>>) {
    let (mut runs, mut ways) = (Vec::new(), Vec::new());
    for at in 0..function.n_instructions() {
        if !is_straight(function, at) {
            ways.push(ways_into(function, at));
        }
        runs.push(ways.len() as u32 - 1);
    }
    (runs, ways)
}

/// Tells whether only the instruction before leads to one, which may be a call that returns.
fn is_straight(function: &FunctionCode, at: usize) -> bool {
    let entrances = function.entrances(at);
    if !entrances.is_return {
        return function.is_after_one(at);
    }
    let is_other = entrances.is_entry || entrances.is_landing_pad || entrances.is_unknown;
    !is_other && function.predecessors(at).is_empty() && is_behind_call(function, at)
}

fn is_behind_call(function: &FunctionCode, at: usize) -> bool {
    at.checked_sub(1).is_some_and(|call| matches!(function.exit(call), Exit::Call(_)))
}

fn ways_into(function: &FunctionCode, at: usize) -> Vec<RunEntry> {
    let from = function.predecessors(at).iter().map(|before| RunEntry::From(before.from));
    let mut ways: Vec<RunEntry> = from.collect();
    let entrances = function.entrances(at);
    if entrances.is_return {
        let is_call = is_behind_call(function, at);
        ways.push(if is_call { RunEntry::From(at as u32 - 1) } else { RunEntry::Unknown });
    }
    if entrances.is_entry {
        ways.push(RunEntry::Caller);
    }
    if entrances.is_landing_pad || entrances.is_unknown {
        ways.push(RunEntry::Unknown);
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86_64::image_bytes::NoBytes;

    #[test]
    fn a_place_holds_something_else_behind_a_write_and_where_ways_meet() {
        // 1000: mov %rdi,%rax  1003: nop  1004: mov %rsi,%rax  1007: dec %rsi  100a: jne 1004  100c: ret
        let code = [0x48, 0x89, 0xf8, 0x90, 0x48, 0x89, 0xf0, 0x48, 0xff, 0xce, 0x75, 0xf8, 0xc3];
        let function = FunctionCode::decode(Svma(0x1000), &code, &NoBytes);
        let rules = vec![FrameRule::Unknown; 6];
        let graph =
            ValueGraph::of(&function, rules, &CallEffects::default(), Depth::Named).unwrap();
        let next = |place| [0, 1, 2, 3, 4, 5].map(|at| graph.next_change(at, place));
        assert_eq!(next(Place::Register(0)), [1, 2, 3, 6, 6, 6], "rax");
        assert_eq!(next(Place::Register(5)), [2, 2, 6, 6, 6, 6], "rdi");
    }
}
