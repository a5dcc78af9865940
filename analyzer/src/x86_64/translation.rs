//! From instructions to actions: what of x86-64 is an assignment, a load, a store.

use super::abi::{POINTER_BYTES, dwarf_number};
use super::access;
use super::action::{
    Action, Assignment, Expression, MemoryOperand, Reading, Source, Stored, VectorAssignment, Width,
};
use super::arithmetic::Operation;
use super::effect::{self, Arithmetic, Effect, Operand, RegisterPart, is_memory, register};
use super::exit::Exit;
use super::function::FunctionCode;
use super::vector;
use dataspace_proto::register::Register;
use iced_x86::{ConditionCode, Instruction, InstructionInfoFactory, Mnemonic, OpAccess};

/// A translator of one function's instructions.
pub(crate) struct Translator<'a> {
    function: &'a FunctionCode,
    factory: InstructionInfoFactory,
}

impl FunctionCode {
    /// Returns what the instruction at `index` reads besides general registers; `None` for bytes that are none.
    pub(crate) fn reading(&self, index: usize) -> Option<Reading> {
        self.instruction(index).map(reading)
    }
}

impl<'a> Translator<'a> {
    pub(crate) fn new(function: &'a FunctionCode) -> Self {
        Self { function, factory: InstructionInfoFactory::new() }
    }

    /// Translates the instruction at `at` into its action; `None` for bytes that are none.
    pub(crate) fn action(&mut self, at: usize) -> Option<Action> {
        let here = self.function.instruction(at)?;
        let next = self.function.instruction(at + 1);
        let effects = effect::effects(here, &mut self.factory);
        let mut assignments = Vec::with_capacity(effects.len());
        // They are in the order of undoing.
        for effect in effects.iter().rev() {
            assign(here, effect, &mut assignments);
        }
        let exit = Exit::of(here);
        Some(Action {
            reading: reading(here),
            regarded: regarded(here, &effects),
            compared: compared(here, next),
            assignments,
            store: self.store(here),
            callee: callee(here, &exit),
            exit,
        })
    }

    /// Returns what the instruction at `at` leaves in the vector registers that it writes.
    pub(crate) fn vectors(&mut self, at: usize) -> Vec<VectorAssignment> {
        let here = self.function.instruction(at);
        here.map_or_else(Vec::new, |here| vector::assignments(here, self.factory.info(here)))
    }

    /// Returns the lanes of a vector register that the instruction at `at` writes to memory, from the lowest.
    pub(crate) fn lanes_stored(&self, at: usize) -> Vec<Source> {
        self.function.instruction(at).map_or_else(Vec::new, vector::lanes_stored)
    }

    fn store(&mut self, here: &Instruction) -> Option<Stored> {
        match here.mnemonic() {
            Mnemonic::Push => {
                return Some(Stored {
                    is_push: true,
                    value: register_or_number(here, 0),
                    reads: true,
                });
            }
            // The address to return to.
            Mnemonic::Call => {
                return Some(Stored { is_push: true, value: Source::Opaque, reads: true });
            }
            _ if !is_memory(here, 0) => return None,
            _ => {}
        }
        let used = self.factory.info(here).used_memory();
        let is_written = used.iter().any(|memory| {
            !matches!(memory.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess)
        });
        let reads = used.iter().any(|memory| memory.access() != OpAccess::Write);
        let is_pointer = here.memory_size().size() == usize::from(POINTER_BYTES);
        let value = match here.mnemonic() {
            Mnemonic::Mov if is_pointer => register_or_number(here, 1),
            _ => Source::Opaque,
        };
        is_written.then_some(Stored { is_push: false, value, reads })
    }
}

fn reading(here: &Instruction) -> Reading {
    let is_address = here.mnemonic() == Mnemonic::Lea;
    let operand = (is_address || access::touches_operand(here)).then(|| MemoryOperand {
        address: access::operand(here),
        n_bytes: here.memory_size().size() as u32,
        kind: access::value_kind(here.memory_size()),
        is_address,
    });
    let pops = here.mnemonic() == Mnemonic::Pop;
    let is_stack = |operand: u32| here.op_register(operand) == iced_x86::Register::RSP;
    let takes_stack = here.mnemonic() == Mnemonic::Mov && is_stack(1);
    Reading { operand, pops, takes_stack, moves_lane: vector::moves_lane(here) }
}

fn register_or_number(here: &Instruction, operand: u32) -> Source {
    match (register(here, operand), here.try_immediate(operand)) {
        (Some(part), _) => value(part),
        (None, Ok(number)) => Source::Constant(number.cast_signed()),
        (None, Err(_)) => Source::Opaque,
    }
}

fn regarded(here: &Instruction, effects: &[Effect]) -> [Option<u8>; 2] {
    if here.is_string_instruction() {
        return [Register::Rsi, Register::Rdi].map(|register| Some(number(register)));
    }
    let compared = effects.iter().find_map(|effect| match effect {
        Effect::Arithmetic(Arithmetic { operation, to: Some(to), with, .. })
            if !operation.writes() =>
        {
            let second = match with {
                Operand::Register(part) => Some(number(part.register)),
                Operand::Immediate(_) | Operand::Memory => None,
            };
            Some([Some(number(to.register)), second])
        }
        _ => None,
    });
    compared.unwrap_or_default()
}

/// Only what may be equal is of one kind: copies compare unrelated places for overlap.
fn compared(here: &Instruction, next: Option<&Instruction>) -> Option<(Source, Source)> {
    let condition = next.map(Instruction::condition_code);
    let is_equality = matches!(condition, Some(ConditionCode::e | ConditionCode::ne));
    if here.mnemonic() != Mnemonic::Cmp || !is_equality {
        return None;
    }
    let operand = |operand: u32| match register(here, operand) {
        Some(part) => (part.width_bits == 64).then(|| whole(part.register)),
        None => is_memory(here, operand).then_some(Source::Memory),
    };
    operand(0).zip(operand(1))
}

fn callee(here: &Instruction, exit: &Exit) -> Option<Source> {
    match exit {
        Exit::Call(None) | Exit::Indirect => match register(here, 0) {
            Some(part) => Some(whole(part.register)),
            None => is_memory(here, 0).then_some(Source::Memory),
        },
        _ => None,
    }
}

fn number(register: Register) -> u8 {
    dwarf_number(register) as u8
}

/// All of a register.
fn whole(register: Register) -> Source {
    Source::Register(number(register))
}

fn value(part: RegisterPart) -> Source {
    match part.width_bits {
        64 => whole(part.register),
        _ => Source::Bits(number(part.register)),
    }
}

/// The second operand of an arithmetic instruction.
fn second(arithmetic: &Arithmetic) -> Source {
    match arithmetic.with {
        Operand::Immediate(number) => {
            Source::Constant(sign_extended(number, arithmetic.width_bits))
        }
        Operand::Register(part) => value(part),
        Operand::Memory => Source::Memory,
    }
}

/// The immediate of an instruction of this width, which effects hold without its sign.
fn sign_extended(value: u64, width_bits: u32) -> i64 {
    let shift = 64 - width_bits.min(64);
    (value << shift).cast_signed() >> shift
}

/// Adds what an effect assigns.
fn assign(here: &Instruction, effect: &Effect, found: &mut Vec<Assignment>) {
    let mut set = |to: RegisterPart, value: Expression| {
        let width = match to.width_bits {
            64 => Width::Whole,
            32 => Width::Half,
            _ => Width::Part,
        };
        found.push(Assignment { to: number(to.register), width, value });
    };
    match *effect {
        Effect::Overwritten(to) | Effect::Unfollowed(to) => set(to, overwritten(here)),
        Effect::ThreadBaseRead { to } => set(to, Expression::ThreadPointer),
        Effect::Constant { to, value } => {
            set(to, Expression::Value(Source::Constant(value.cast_signed())));
        }
        Effect::Zeroed { to, .. } => set(to, Expression::Value(Source::Constant(0))),
        Effect::Copied { to, from } => set(to, Expression::Value(value(from))),
        Effect::Extended { to, from, from_width, .. } => set(to, extended(from, from_width)),
        Effect::AddressOf { to, address } => set(to, Expression::AddressOf(address)),
        Effect::Arithmetic(arithmetic) => {
            if let Some(to) = arithmetic.to.filter(|_| arithmetic.operation.writes()) {
                let (first, second) = (value(to), second(&arithmetic));
                set(to, Expression::Binary(arithmetic.operation, first, second));
            }
        }
        Effect::Stepped { register, size } => {
            let of = whole(register);
            set(RegisterPart::whole(register), Expression::Stepped { of, size: size as u8 });
        }
        Effect::Moved { register, by } => {
            let (of, by) = (whole(register), Source::Constant(by));
            set(RegisterPart::whole(register), Expression::Binary(Operation::Add, of, by));
        }
        Effect::SignSpread { to, .. } | Effect::ConditionSet { to, .. } => {
            set(to, Expression::Number);
        }
        Effect::ConditionMoved { to, from, .. } => {
            let from = from.map_or(Source::Memory, |from| whole(from.register));
            set(to, Expression::Chosen(whole(to.register), from));
        }
        Effect::Exchanged(first, second) => {
            set(first, Expression::Value(value(second)));
            set(second, Expression::Value(value(first)));
        }
        Effect::FrameLeft => {
            for register in [Register::Rsp, Register::Rbp] {
                set(RegisterPart::whole(register), Expression::Opaque);
            }
        }
        Effect::Flags { .. } | Effect::Direction | Effect::Touched(_) => {}
    }
}

/// Extends a value of fewer bits to a whole register.
fn extended(from: Option<RegisterPart>, from_width: u32) -> Expression {
    match from {
        // So few bits wrap, and leave nothing of what a number was a multiple of.
        Some(_) if from_width < 32 => Expression::Number,
        Some(from) => Expression::Narrowed(whole(from.register)),
        None => Expression::Narrowed(Source::Memory),
    }
}

/// The value of a register that the effects only know to be overwritten.
fn overwritten(here: &Instruction) -> Expression {
    if let Some(lane) = vector::lane_taken(here) {
        return Expression::Value(lane);
    }
    match here.mnemonic() {
        Mnemonic::Mov | Mnemonic::Pop => Expression::Value(Source::Memory),
        Mnemonic::Imul if here.op_count() == 3 => {
            let of = register(here, 1).map_or(Source::Memory, value);
            Expression::Product { of, by: here.try_immediate(2).unwrap_or(1) }
        }
        Mnemonic::Imul
        | Mnemonic::Mul
        | Mnemonic::Div
        | Mnemonic::Idiv
        | Mnemonic::Bsr
        | Mnemonic::Bsf
        | Mnemonic::Tzcnt
        | Mnemonic::Lzcnt
        | Mnemonic::Popcnt => Expression::Number,
        _ => Expression::Opaque,
    }
}
