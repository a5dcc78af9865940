//! What each instruction of a function makes of the values before it.

use super::graph::ValueGraph;
use super::sum::number;
use super::value::{Definition, Frame, Place, Slot, Store, Sum, ValueIdx};
use super::vector::takes_lane;
use crate::dwarf::code::frame::FrameRule;
use crate::x86_64::abi::{FRAME_POINTER, POINTER_BYTES, RETURNED, STACK_POINTER, dwarf_number};
use crate::x86_64::access::{self, Address, SegmentBase};
use crate::x86_64::arithmetic::Operation;
use crate::x86_64::effect::{self, Arithmetic, Effect, Operand, Part};
use crate::x86_64::function::FunctionCode;
use dataspace_proto::address::Svma;
use dataspace_proto::register::Register;
use iced_x86::{
    ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
};
use std::collections::BTreeSet;

/// One pass over a function's instructions.
pub(super) struct Transfer<'a> {
    pub(super) graph: &'a mut ValueGraph,
    pub(super) function: &'a FunctionCode,
    pub(super) factory: InstructionInfoFactory,
    /// Slots that are read as a whole.
    pub(super) slots: BTreeSet<Slot>,
    /// Slots whose address is taken: calls may write to them.
    pub(super) escaped: BTreeSet<Slot>,
    /// A lane of a vector register is taken out somewhere.
    pub(super) has_lanes: bool,
}

impl<'a> Transfer<'a> {
    pub(super) fn new(graph: &'a mut ValueGraph, function: &'a FunctionCode) -> Self {
        let factory = InstructionInfoFactory::new();
        let (slots, escaped) = (BTreeSet::new(), BTreeSet::new());
        Self { graph, function, factory, slots, escaped, has_lanes: false }
    }

    pub(super) fn run(mut self) {
        for at in 0..self.function.n_instructions() {
            if let Some(instruction) = self.function.instruction(at) {
                self.find_slots(at as u32, instruction);
            }
        }
        for at in 0..self.function.n_instructions() {
            if let Some(instruction) = self.function.instruction(at) {
                self.step(at as u32, instruction);
            }
        }
    }

    /// Notes the slots that an instruction reads or takes the address of.
    fn find_slots(&mut self, at: u32, instruction: &Instruction) {
        self.has_lanes |= takes_lane(instruction);
        if instruction.mnemonic() == Mnemonic::Pop {
            let top = self.stack_top(at, 0);
            self.slots.extend(top);
        }
        if !has_operand(instruction) {
            return;
        }
        let Some(slot) = self.operand_slot(at, &access::operand(instruction)) else { return };
        if instruction.mnemonic() == Mnemonic::Lea {
            self.escaped.insert(slot);
        } else if instruction.memory_size().size() == POINTER_BYTES as usize {
            self.slots.insert(slot);
        }
    }

    /// The slot that an operand is, if it is in the frame and no register counts in it.
    pub(super) fn operand_slot(&mut self, at: u32, address: &Address) -> Option<Slot> {
        let base = address.base.filter(|base| !base.is_32_bit)?;
        if address.index.is_some() || address.segment != SegmentBase::Flat {
            return None;
        }
        self.slot(at, number(base)?, address.displacement)
    }

    /// The place in the frame that is so far from where a register points.
    fn slot(&mut self, at: u32, register: u8, displacement: i64) -> Option<Slot> {
        match self.graph.frames.get(at as usize)? {
            FrameRule::Known(rule) if rule.register == u16::from(register) => {
                Some(Slot { frame: Frame::Cfa, offset: displacement.checked_sub(rule.offset)? })
            }
            FrameRule::Expression if u16::from(register) == FRAME_POINTER => {
                Some(Slot { frame: Frame::Register(register), offset: displacement })
            }
            _ => None,
        }
    }

    fn stack_top(&mut self, at: u32, displacement: i64) -> Option<Slot> {
        self.slot(at, STACK_POINTER as u8, displacement)
    }

    fn step(&mut self, at: u32, instruction: &Instruction) {
        self.read_operands(at, instruction);
        let loaded = self.loaded(at, instruction);
        self.compare(at, instruction, loaded);
        let effects = effect::effects(instruction, &mut self.factory);
        for effect in effects.iter().rev() {
            self.apply(at, effect, instruction, loaded);
        }
        self.write_vectors(at, instruction);
        self.store(at, instruction);
        match instruction.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => self.call(at, instruction, loaded),
            FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => {
                self.jump(at, instruction, loaded);
            }
            FlowControl::Return => {
                let returned = self.graph.before(at, Place::Register(RETURNED));
                self.graph.returned.push(returned);
            }
            _ => {}
        }
    }

    /// Looks at the registers of every address, so that they can be asked for.
    fn read_operands(&mut self, at: u32, instruction: &Instruction) {
        if has_operand(instruction) {
            let sum = self.graph.sum(at, &access::operand(instruction));
            let n_bytes = instruction.memory_size().size();
            if let Some(Sum { base: Some(base), index: None, displacement, .. }) = sum
                && let Some(n_bytes) = u8::try_from(n_bytes).ok().filter(|n_bytes| *n_bytes != 0)
                && instruction.mnemonic() != Mnemonic::Lea
            {
                self.graph.accesses.push((base, displacement, n_bytes));
            }
        } else if instruction.is_string_instruction() {
            for register in [Register::Rsi, Register::Rdi] {
                self.register(at, register);
            }
        }
    }

    /// What the instruction reads from memory with its written-out operand, or pops.
    fn loaded(&mut self, at: u32, instruction: &Instruction) -> Option<ValueIdx> {
        if instruction.mnemonic() == Mnemonic::Pop {
            let slot = self.stack_top(at, 0)?;
            return Some(self.reload(at, slot));
        }
        let is_read = (0..instruction.op_count())
            .any(|operand| instruction.op_kind(operand) == OpKind::Memory)
            && instruction.mnemonic() != Mnemonic::Lea;
        let n_bytes = instruction.memory_size().size() as u32;
        if !is_read || n_bytes == 0 {
            return None;
        }
        if n_bytes > POINTER_BYTES {
            return Some(self.graph.define(Definition::Opaque));
        }
        let address = access::operand(instruction);
        if n_bytes == POINTER_BYTES
            && let Some(slot) = self.operand_slot(at, &address)
        {
            return Some(self.reload(at, slot));
        }
        let definition = match self.graph.operand(at, &address) {
            Some(address) => Definition::Loaded { address, n_bytes: n_bytes as u8 },
            None => Definition::Opaque,
        };
        Some(self.graph.define(definition))
    }

    fn reload(&mut self, at: u32, slot: Slot) -> ValueIdx {
        let kept = self.graph.before(at, Place::Slot(slot));
        self.graph.define(Definition::Reloaded { slot, kept, at })
    }

    fn compare(&mut self, at: u32, instruction: &Instruction, loaded: Option<ValueIdx>) {
        // Only what may be equal is of one kind: copies compare unrelated places for overlap.
        let next = self.function.instruction(at as usize + 1);
        let is_equality = next.is_some_and(|next| {
            matches!(next.condition_code(), ConditionCode::e | ConditionCode::ne)
        });
        if instruction.mnemonic() != Mnemonic::Cmp || !is_equality {
            return;
        }
        let mut operand = |operand: u32| match instruction.op_kind(operand) {
            OpKind::Register => {
                let part = Part::of(instruction.op_register(operand))?;
                (part.width_bits == 64).then(|| self.register(at, part.register))
            }
            OpKind::Memory => loaded,
            _ => None,
        };
        if let (Some(first), Some(second)) = (operand(0), operand(1)) {
            self.graph.compared.push((first, second));
        }
    }

    pub(super) fn register(&mut self, at: u32, register: Register) -> ValueIdx {
        self.graph.before(at, Place::Register(dwarf_number(register) as u8))
    }

    /// The value of a register's part; a narrow one is a number.
    fn part(&mut self, at: u32, part: Part) -> ValueIdx {
        let whole = self.register(at, part.register);
        if part.width_bits == 64 {
            return whole;
        }
        self.graph.define(Definition::Narrowed { of: whole })
    }

    fn set(&mut self, at: u32, to: Part, value: ValueIdx) {
        let is_constant = matches!(
            self.graph.definitions.get(value.0 as usize),
            // What is written to the lower half is extended by zeros.
            Some(Definition::Constant(0..=0xffff_ffff))
        );
        let value = match to.width_bits {
            64 => value,
            32 if is_constant => value,
            32 => self.graph.define(Definition::Narrowed { of: value }),
            // The upper bits stay: nothing but a number is kept in such a register.
            _ => self.graph.define(Definition::Number),
        };
        let place = Place::Register(dwarf_number(to.register) as u8);
        self.graph.write(at, place, value);
    }

    fn apply(
        &mut self,
        at: u32,
        effect: &Effect,
        instruction: &Instruction,
        loaded: Option<ValueIdx>,
    ) {
        match *effect {
            Effect::Overwritten(to) | Effect::Unfollowed(to) => {
                let value = self.overwritten(at, instruction, loaded);
                self.set(at, to, value);
            }
            Effect::ThreadBaseRead { to } => self.make(at, to, Definition::ThreadPointer),
            Effect::Constant { to, value } => {
                self.make(at, to, Definition::Constant(value.cast_signed()));
            }
            Effect::Zeroed { to, .. } => self.make(at, to, Definition::Constant(0)),
            Effect::Copied { to, from } => {
                let value = self.part(at, from);
                self.set(at, to, value);
            }
            Effect::Extended { to, from, from_width, .. } => {
                let definition = self.extended(at, from, from_width, loaded);
                self.make(at, to, definition);
            }
            Effect::AddressOf { to, address } => {
                let value = self.address_of(at, &address);
                self.set(at, to, value);
            }
            Effect::Arithmetic(arithmetic) => self.arithmetic(at, &arithmetic, loaded),
            Effect::Stepped { register, size } => {
                let step = self.graph.define(Definition::Number);
                let base = self.register(at, register);
                let sum = Sum { index: Some(step), scale: size as u8, ..Sum::of(base, 0) };
                self.make(at, Part::whole(register), Definition::Sum(sum));
            }
            Effect::Moved { register, by } => {
                let base = self.register(at, register);
                self.make(at, Part::whole(register), Definition::Sum(Sum::of(base, by)));
            }
            Effect::SignSpread { to, .. } | Effect::ConditionSet { to, .. } => {
                self.make(at, to, Definition::Number);
            }
            Effect::ConditionMoved { to, from, .. } => {
                let first = self.register(at, to.register);
                let second = match from {
                    Some(from) => self.register(at, from.register),
                    None => loaded.unwrap_or(self.graph.opaque()),
                };
                self.make(at, to, Definition::Chosen { first, second });
            }
            Effect::Exchanged(first, second) => {
                let (a, b) = (self.part(at, first), self.part(at, second));
                self.set(at, first, b);
                self.set(at, second, a);
            }
            Effect::FrameLeft => {
                for register in [Register::Rsp, Register::Rbp] {
                    self.set(at, Part::whole(register), self.graph.opaque());
                }
            }
            Effect::Flags { .. } | Effect::Direction | Effect::Touched(_) => {}
        }
    }

    /// What a value of fewer bits is as a whole register.
    fn extended(
        &mut self,
        at: u32,
        from: Option<Part>,
        from_width: u32,
        loaded: Option<ValueIdx>,
    ) -> Definition {
        let of = match from {
            // So few bits wrap, and leave nothing of what a number was a multiple of.
            Some(_) if from_width < 32 => None,
            Some(from) => Some(self.register(at, from.register)),
            None => loaded,
        };
        of.map_or(Definition::Number, |of| Definition::Narrowed { of })
    }

    /// Puts a new value into a register.
    fn make(&mut self, at: u32, to: Part, definition: Definition) {
        let value = self.graph.define(definition);
        self.set(at, to, value);
    }

    /// The value of a register that the effects only know to be overwritten.
    fn overwritten(
        &mut self,
        at: u32,
        instruction: &Instruction,
        loaded: Option<ValueIdx>,
    ) -> ValueIdx {
        if let Some(lane) = self.lane_taken(at, instruction) {
            return lane;
        }
        match instruction.mnemonic() {
            Mnemonic::Mov | Mnemonic::Pop => loaded.unwrap_or(self.graph.opaque()),
            Mnemonic::Imul if instruction.op_count() == 3 => {
                let by = instruction.try_immediate(2).unwrap_or(1);
                let of = match Part::of(instruction.op1_register()) {
                    Some(part) if instruction.op1_kind() == OpKind::Register => self.part(at, part),
                    _ => loaded.unwrap_or(self.graph.opaque()),
                };
                self.graph.define(Definition::Product { of, by })
            }
            Mnemonic::Imul
            | Mnemonic::Mul
            | Mnemonic::Div
            | Mnemonic::Idiv
            | Mnemonic::Bsr
            | Mnemonic::Bsf
            | Mnemonic::Tzcnt
            | Mnemonic::Lzcnt
            | Mnemonic::Popcnt => self.graph.define(Definition::Number),
            _ => self.graph.define(Definition::Opaque),
        }
    }

    fn address_of(&mut self, at: u32, address: &Address) -> ValueIdx {
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

    fn arithmetic(&mut self, at: u32, arithmetic: &Arithmetic, loaded: Option<ValueIdx>) {
        let Some(to) = arithmetic.to else { return };
        let left = self.part(at, to);
        let right = match arithmetic.with {
            Operand::Immediate(value) => Err(sign_extended(value, arithmetic.width_bits)),
            Operand::Register(part) => Ok(self.part(at, part)),
            Operand::Memory => Ok(loaded.unwrap_or(self.graph.opaque())),
        };
        if let (Operation::Or, Err(bits @ 8..)) = (arithmetic.operation, right)
            && let Some(value) = self.rounded_up(left, bits)
        {
            return self.set(at, to, value);
        }
        let definition = match (arithmetic.operation, right) {
            (Operation::Cmp | Operation::Test, _) => return,
            (Operation::Add | Operation::Inc, Err(by)) => Definition::Sum(Sum::of(left, by)),
            (Operation::Sub | Operation::Dec, Err(by)) => {
                Definition::Sum(Sum::of(left, by.wrapping_neg()))
            }
            (Operation::Add, Ok(right)) => {
                Definition::Sum(Sum { index: Some(right), ..Sum::of(left, 0) })
            }
            (Operation::Sub, Ok(right)) => Definition::Difference { left, right },
            (Operation::And, Err(mask)) => {
                Definition::Masked { of: left, mask: mask.cast_unsigned() }
            }
            // -1 times it.
            (Operation::Neg, _) => Definition::Product { of: left, by: u64::MAX },
            (Operation::Shl, Err(by)) => {
                Definition::Product { of: left, by: 1u64.wrapping_shl(by as u32) }
            }
            // A tag in the low bits of a pointer.
            (Operation::Or, Err(tag)) if (0..8).contains(&tag) => {
                Definition::Sum(Sum::of(left, tag))
            }
            _ => Definition::Number,
        };
        let value = self.graph.define(definition);
        self.set(at, to, value);
    }

    /// The last byte of the vector or the page around an address.
    fn rounded_up(&mut self, of: ValueIdx, bits: i64) -> Option<ValueIdx> {
        if bits & bits.checked_add(1)? != 0 {
            return None;
        }
        let mask = !bits.cast_unsigned();
        let start = self.graph.define(Definition::Masked { of, mask });
        Some(self.graph.define(Definition::Sum(Sum::of(start, bits))))
    }

    /// Notes what is written to memory.
    fn store(&mut self, at: u32, instruction: &Instruction) {
        if matches!(instruction.mnemonic(), Mnemonic::Push | Mnemonic::Call) {
            let Some(slot) = self.stack_top(at, -8) else { return };
            let value = self.source(at, instruction, 0);
            self.keep(at, slot, POINTER_BYTES, value);
            return;
        }
        if instruction.op_count() == 0 || instruction.op0_kind() != OpKind::Memory {
            return;
        }
        let is_write = self.factory.info(instruction).used_memory().iter().any(|memory| {
            !matches!(memory.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess)
        });
        if !is_write {
            return;
        }
        let n_bytes = instruction.memory_size().size() as u32;
        let value = match instruction.mnemonic() {
            Mnemonic::Mov if n_bytes == POINTER_BYTES => self.source(at, instruction, 1),
            _ => self.graph.opaque(),
        };
        let address = access::operand(instruction);
        if let Some(slot) = self.operand_slot(at, &address) {
            self.keep(at, slot, n_bytes, value);
        } else if let Some(address) = self.graph.operand(at, &address)
            && n_bytes == POINTER_BYTES
        {
            self.graph.stores.push(Store { address, value });
        }
    }

    /// The value of an operand that is a register or a number.
    fn source(&mut self, at: u32, instruction: &Instruction, operand: u32) -> ValueIdx {
        if operand < instruction.op_count()
            && instruction.op_kind(operand) == OpKind::Register
            && let Some(part) = Part::of(instruction.op_register(operand))
        {
            return self.part(at, part);
        }
        match instruction.try_immediate(operand) {
            Ok(value) => self.graph.define(Definition::Constant(value.cast_signed())),
            Err(_) => self.graph.opaque(),
        }
    }

    /// Notes that `n_bytes` of the frame are written.
    fn keep(&mut self, at: u32, slot: Slot, n_bytes: u32, value: ValueIdx) {
        let Some(first) = slot.offset.checked_sub(i64::from(POINTER_BYTES) - 1) else { return };
        let Some(end) = slot.offset.checked_add(i64::from(n_bytes.max(1))) else { return };
        let first = Slot { offset: first, ..slot };
        let end = Slot { offset: end, ..slot };
        let touched: Vec<Slot> = self.slots.range(first..end).copied().collect();
        for other in touched {
            let is_whole = other == slot && n_bytes == POINTER_BYTES;
            let value = if is_whole { value } else { self.graph.opaque() };
            self.graph.write(at, Place::Slot(other), value);
        }
    }
}

fn has_operand(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory)
}

/// The immediate of an instruction of this width, which effects hold without its sign.
fn sign_extended(value: u64, width_bits: u32) -> i64 {
    let shift = 64 - width_bits.min(64);
    (value << shift).cast_signed() >> shift
}
