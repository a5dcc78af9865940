//! Transfer functions: what each instruction of a function makes of the values before it.

use super::aligned_stack::AlignedStack;
use super::call_effect::CallEffects;
use super::graph::ValueGraph;
use super::sum::number;
use super::value::{Definition, Depth, Place, Slot, Store, Sum, Touched, ValueIdx};
use crate::x86_64::abi::{POINTER_BYTES, RETURNED, STACK_POINTER};
use crate::x86_64::access::{AddressOperand, SegmentBase};
use crate::x86_64::action::{Action, Assignment, Expression, Reading, Source, Stored, Width};
use crate::x86_64::arithmetic::Operation;
use crate::x86_64::exit::Exit;
use crate::x86_64::function::FunctionCode;
use crate::x86_64::translation::Translator;
use dataspace_proto::address::Svma;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// One pass over a function's instructions.
pub(super) struct Transfer<'a> {
    pub(super) graph: &'a mut ValueGraph,
    pub(super) function: &'a FunctionCode,
    pub(super) translator: Translator<'a>,
    /// Slots that are read as a whole.
    pub(super) slots: BTreeSet<Slot>,
    /// Slots whose address is taken: calls may write to them.
    pub(super) escaped: BTreeSet<Slot>,
    /// A lane of a vector register is taken out or put in somewhere.
    pub(super) has_lanes: bool,
    pub(super) depth: Depth,
    pub(super) effects: &'a CallEffects,
    /// Indirect jumps to other places of the function.
    leaps: FxHashSet<u32>,
}

impl<'a> Transfer<'a> {
    pub(super) fn new(
        graph: &'a mut ValueGraph,
        function: &'a FunctionCode,
        effects: &'a CallEffects,
        depth: Depth,
    ) -> Self {
        let translator = Translator::new(function);
        let (slots, escaped) = (BTreeSet::new(), BTreeSet::new());
        let leaps = function.leaps();
        let has_lanes = depth == Depth::Copied && function.stores_vectors();
        Self { graph, function, translator, slots, escaped, has_lanes, depth, effects, leaps }
    }

    pub(super) fn run(mut self) {
        self.graph.aligned_stack = AlignedStack::of(self.function, &mut self.translator);
        for at in 0..self.function.n_instructions() {
            if let Some(reading) = self.function.reading(at) {
                self.find_slots(at as u32, &reading);
            }
        }
        for at in 0..self.function.n_instructions() {
            if let Some(action) = self.translator.action(at) {
                self.step(at as u32, &action);
            }
        }
    }

    /// Notes the slots that an instruction reads or takes the address of.
    fn find_slots(&mut self, at: u32, reading: &Reading) {
        self.has_lanes |= reading.moves_lane;
        if reading.pops {
            let top = self.stack_top(at, 0);
            self.slots.extend(top);
        }
        if reading.takes_stack {
            let top = self.stack_top(at, 0);
            self.escaped.extend(top);
        }
        let Some(operand) = &reading.operand else { return };
        let Some(slot) = self.operand_slot(at, &operand.address) else { return };
        if operand.is_address {
            self.escaped.insert(slot);
        } else if operand.is_pointer() {
            self.slots.insert(slot);
        }
    }

    /// The slot that an operand is, if it is in the frame and no register counts in it.
    pub(super) fn operand_slot(&mut self, at: u32, address: &AddressOperand) -> Option<Slot> {
        let base = address.base.filter(|base| !base.is_32_bit)?;
        if address.index.is_some() || address.segment != SegmentBase::Flat {
            return None;
        }
        self.graph.slot(at, number(base)?.into(), address.displacement)
    }

    fn stack_top(&self, at: u32, displacement: i64) -> Option<Slot> {
        self.graph.slot(at, STACK_POINTER, displacement)
    }

    fn step(&mut self, at: u32, action: &Action) {
        self.read_operand(at, &action.reading);
        let is_written_over = action.store.is_some_and(|stored| !stored.reads);
        let loaded = if is_written_over { None } else { self.loaded(at, &action.reading) };
        if let Some((first, second)) = action.compared {
            let pair = (self.value(at, first, loaded), self.value(at, second, loaded));
            self.graph.compared.push(pair);
        }
        let regarded = action.regarded.map(|it| it.map(|register| self.register(at, register)));
        if let [Some(from), Some(to)] = regarded
            && self.depth == Depth::Copied
            && self.function.copies_string(at as usize)
        {
            self.graph.copies.push((to, from));
        }
        for assignment in &action.assignments {
            self.assign(at, assignment, loaded);
        }
        if self.has_lanes {
            self.assign_vectors(at, action, loaded);
        }
        if let Some(stored) = action.store {
            self.store(at, stored, &action.reading, loaded);
        }
        match action.exit {
            Exit::Call(_) | Exit::System => {
                let callee = action.callee.map(|callee| self.value(at, callee, loaded));
                self.call(at, callee);
            }
            // A jump out of the function is a call in the last place. A branch out may be to a part of another one, too.
            Exit::Jump(target) if self.is_outside(target) => self.note_call(at, None),
            Exit::Branch(target) if self.depth == Depth::Copied && self.is_outside(target) => {
                self.note_call(at, None);
            }
            Exit::Indirect if !self.leaps.contains(&at) => {
                let callee = action.callee.map(|callee| self.value(at, callee, loaded));
                self.note_call(at, callee);
            }
            Exit::Return => {
                let returned = self.register(at, RETURNED);
                self.graph.returned.push(returned);
            }
            _ => {}
        }
    }

    fn is_outside(&self, target: u64) -> bool {
        self.function.index_of(Svma(target)).is_none()
    }

    /// Looks at the registers of an operand's address, so that they can be asked for.
    fn read_operand(&mut self, at: u32, reading: &Reading) {
        let Some(operand) = &reading.operand else { return };
        let sum = self.graph.sum(at, &operand.address);
        if let Some(Sum { base: Some(base), index, scale, displacement, is_static: false }) = sum
            && let Some(n_bytes) = u8::try_from(operand.n_bytes).ok().filter(|n| *n != 0)
            && !operand.is_address
        {
            let step = if index.is_some() { scale } else { 0 };
            let touched = Touched { displacement, n_bytes, kind: operand.kind, step };
            if (displacement, n_bytes, step) == (-1, 1, 0) && self.function.tests_kind(at as usize)
            {
                self.graph.kind_tested.insert(base);
            }
            match index {
                None => self.graph.accesses.push((base, touched)),
                // What is not scaled may be the address, and the base what is added to it.
                Some(_) if scale > 1 && scale == n_bytes => {
                    self.graph.counted.push((base, touched));
                }
                Some(_) => {}
            }
        }
    }

    /// Makes the value that the instruction reads from memory with its written-out operand, or pops.
    fn loaded(&mut self, at: u32, reading: &Reading) -> Option<ValueIdx> {
        if reading.pops {
            let slot = self.stack_top(at, 0)?;
            return Some(self.reload(at, slot));
        }
        let operand = reading.operand.filter(|it| !it.is_address && it.n_bytes != 0)?;
        if operand.n_bytes > POINTER_BYTES.into() {
            return Some(self.graph.define(Definition::Opaque));
        }
        if operand.is_pointer()
            && let Some(slot) = self.operand_slot(at, &operand.address)
        {
            return Some(self.reload(at, slot));
        }
        let definition = match self.graph.operand(at, &operand.address) {
            Some(address) => Definition::Loaded { address, n_bytes: operand.n_bytes as u8 },
            None => Definition::Opaque,
        };
        Some(self.graph.define(definition))
    }

    fn reload(&mut self, at: u32, slot: Slot) -> ValueIdx {
        let kept = self.graph.before(at, Place::Slot(slot));
        self.graph.define(Definition::Reloaded { slot, kept, at })
    }

    fn register(&mut self, at: u32, register: u8) -> ValueIdx {
        self.graph.before(at, Place::Register(register))
    }

    /// The value that an instruction takes, which read `loaded` from memory.
    pub(super) fn value(&mut self, at: u32, source: Source, loaded: Option<ValueIdx>) -> ValueIdx {
        match source {
            Source::Register(register) => self.register(at, register),
            // No pointer fits in there: `mov %edi,%eax` makes a number of what was one.
            Source::Bits(register) => {
                let of = self.register(at, register);
                self.graph.define(Definition::Narrowed { of })
            }
            Source::Lane { register, lane } => {
                self.graph.before(at, Place::Lane { register, lane })
            }
            Source::Memory => loaded.unwrap_or(self.graph.opaque()),
            Source::Constant(number) => self.graph.define(Definition::Constant(number)),
            Source::MemoryLane(_) | Source::Opaque => self.graph.opaque(),
        }
    }

    /// Puts a new value into a register.
    fn assign(&mut self, at: u32, assignment: &Assignment, loaded: Option<ValueIdx>) {
        if u16::from(assignment.to) == STACK_POINTER
            && let Some(slot) = self.graph.aligned_stack.after(at)
        {
            let top = self.graph.frame_address(slot);
            return self.graph.write(at, Place::Register(assignment.to), top);
        }
        let value = self.made(at, &assignment.value, loaded);
        let is_constant = matches!(
            self.graph.definitions.get(value.0 as usize),
            // What is written to the lower half is extended by zeros.
            Some(Definition::Constant(0..=0xffff_ffff))
        );
        let value = match assignment.width {
            Width::Whole => value,
            Width::Half if is_constant => value,
            Width::Half => self.graph.define(Definition::Narrowed { of: value }),
            // The upper bits stay: nothing but a number is kept in such a register.
            Width::Part => self.graph.define(Definition::Number),
        };
        self.graph.write(at, Place::Register(assignment.to), value);
    }

    fn made(&mut self, at: u32, made: &Expression, loaded: Option<ValueIdx>) -> ValueIdx {
        let definition = match *made {
            Expression::Value(source) => return self.value(at, source, loaded),
            Expression::AddressOf(address) => return self.address_of(at, &address),
            Expression::Binary(operation, left, right) => {
                return self.binary(at, operation, (left, right), loaded);
            }
            Expression::Narrowed(source) => {
                Definition::Narrowed { of: self.value(at, source, loaded) }
            }
            Expression::ThreadPointer => Definition::ThreadPointer,
            Expression::Product { of, by } => {
                Definition::Product { of: self.value(at, of, loaded), by }
            }
            Expression::Stepped { of, size } => {
                let step = self.graph.define(Definition::Number);
                let of = self.value(at, of, loaded);
                Definition::Sum(Sum { index: Some(step), scale: size, ..Sum::of(of, 0) })
            }
            Expression::Chosen(first, second) => {
                let first = self.value(at, first, loaded);
                let second = self.value(at, second, loaded);
                Definition::Chosen { first, second }
            }
            Expression::Number => Definition::Number,
            Expression::Opaque => Definition::Opaque,
        };
        self.graph.define(definition)
    }

    fn address_of(&mut self, at: u32, address: &AddressOperand) -> ValueIdx {
        if address.is_ip_relative && address.base.is_none() && address.index.is_none() {
            let svma = Svma(address.displacement.cast_unsigned());
            return self.graph.define(Definition::StaticAddress(svma));
        }
        if let Some(slot) = self.operand_slot(at, address) {
            return self.graph.frame_address(slot);
        }
        let definition = match self.graph.sum(at, address) {
            Some(sum) => Definition::Sum(sum),
            None => Definition::Opaque,
        };
        self.graph.define(definition)
    }

    fn binary(
        &mut self,
        at: u32,
        operation: Operation,
        (left, right): (Source, Source),
        loaded: Option<ValueIdx>,
    ) -> ValueIdx {
        let left = self.value(at, left, loaded);
        let definition = match right {
            Source::Constant(number) => self.with_constant(operation, left, number),
            _ => {
                let right = self.value(at, right, loaded);
                match operation {
                    Operation::Add => {
                        Definition::Sum(Sum { index: Some(right), ..Sum::of(left, 0) })
                    }
                    Operation::Sub => Definition::Difference { left, right },
                    _ => Definition::Number,
                }
            }
        };
        self.graph.define(definition)
    }

    fn with_constant(&mut self, operation: Operation, left: ValueIdx, number: i64) -> Definition {
        match operation {
            Operation::Add | Operation::Inc => Definition::Sum(Sum::of(left, number)),
            Operation::Sub | Operation::Dec => {
                Definition::Sum(Sum::of(left, number.wrapping_neg()))
            }
            Operation::And => Definition::Masked { of: left, mask: number.cast_unsigned() },
            // -1 times it.
            Operation::Neg => Definition::Product { of: left, by: u64::MAX },
            Operation::Shl => {
                Definition::Product { of: left, by: 1u64.wrapping_shl(number as u32) }
            }
            // A tag in the low bits of a pointer to what is aligned to eight bytes: `or $1,%rax`.
            Operation::Or if (0..8).contains(&number) => Definition::Sum(Sum::of(left, number)),
            // The last byte of the vector or the page around an address: `or $0xfff,%rax`.
            Operation::Or if number.checked_add(1).is_some_and(|next| number & next == 0) => {
                let mask = !number.cast_unsigned();
                let start = self.graph.define(Definition::Masked { of: left, mask });
                Definition::Sum(Sum::of(start, number))
            }
            _ => Definition::Number,
        }
    }

    /// Notes what is written to memory.
    fn store(&mut self, at: u32, stored: Stored, reading: &Reading, loaded: Option<ValueIdx>) {
        if stored.is_push {
            let Some(slot) = self.stack_top(at, -i64::from(POINTER_BYTES)) else { return };
            let value = self.value(at, stored.value, loaded);
            return self.keep(at, slot, POINTER_BYTES.into(), value);
        }
        if self.has_lanes && self.store_lanes(at, reading) {
            return;
        }
        let Some(operand) = reading.operand else { return };
        if self.depth == Depth::Copied && operand.n_bytes > POINTER_BYTES.into() {
            let n_lanes = operand.n_bytes / u32::from(POINTER_BYTES);
            return self.store_each(at, reading, &vec![Source::Opaque; n_lanes as usize]);
        }
        let value = self.value(at, stored.value, loaded);
        if let Some(slot) = self.operand_slot(at, &operand.address) {
            self.keep(at, slot, operand.n_bytes, value);
        } else if let Some(address) = self.graph.operand(at, &operand.address)
            && operand.is_pointer()
        {
            self.graph.stores.push(Store { address, value });
        }
    }

    /// Notes that `n_bytes` of the frame are written.
    pub(super) fn keep(&mut self, at: u32, slot: Slot, n_bytes: u32, value: ValueIdx) {
        if n_bytes == u32::from(POINTER_BYTES) && self.depth == Depth::Copied {
            self.graph.frame_stores.push((slot, value));
        }
        // A slot that begins up to seven bytes lower is written to as well: of 8(%rsp) the upper half by
        // `movl $0,12(%rsp)`.
        let Some(first) = slot.offset.checked_sub(i64::from(POINTER_BYTES) - 1) else { return };
        let Some(end) = slot.offset.checked_add(i64::from(n_bytes.max(1))) else { return };
        let first = Slot { offset: first, ..slot };
        let end = Slot { offset: end, ..slot };
        let touched: Vec<Slot> = self.slots.range(first..end).copied().collect();
        for other in touched {
            let is_whole = other == slot && n_bytes == u32::from(POINTER_BYTES);
            let value = if is_whole { value } else { self.graph.opaque() };
            self.graph.write(at, Place::Slot(other), value);
        }
    }
}
