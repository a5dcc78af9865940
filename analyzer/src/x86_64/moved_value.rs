//! The value that an instruction moves between memory and a register or a constant, and what the registers after it
//! therefore tell of the memory.

use super::abi::sampled_register;
use super::flags::Flag;
use dataspace_proto::register::{Register as Sampled, Registers};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// A value that memory has after an instruction, or had before it, and where else it is then (SDM volume 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MovedValue {
    /// A load: the register has it.
    Loaded(Sampled),
    /// A store: the register had it and still has.
    Stored(Sampled),
    /// A store of a constant.
    StoredConstant(i32),
    /// `xchg`, `xadd`: the register has what memory had.
    Exchanged(Sampled),
    /// `cmpxchg`: the accumulator has what memory had, and where the zero flag is set, memory has this register's value.
    Compared(Sampled),
}

/// The value of some memory before and after an access, as far as it is known: the lowest bytes, as many as the access
/// has; the others are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueChange {
    /// Before the access.
    pub before: Option<u64>,
    /// After it.
    pub after: Option<u64>,
}

impl ValueChange {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { before: None, after: None };
}

impl MovedValue {
    /// The value that moves between the written-out memory operand of `instruction` and a register or a constant.
    pub(super) fn of(instruction: &Instruction) -> Option<Self> {
        use Mnemonic as M;
        if instruction.op_count() != 2 {
            return None;
        }
        let (to, from) = (instruction.op0_kind(), instruction.op1_kind());
        match (instruction.mnemonic(), to, from) {
            (M::Mov, OpKind::Memory, OpKind::Register) => {
                low(instruction.op1_register()).map(Self::Stored)
            }
            // No instruction stores a constant of more than 32 bits.
            (M::Mov, OpKind::Memory, _) => {
                Some(Self::StoredConstant((instruction.immediate(1) as u32).cast_signed()))
            }
            (M::Mov | M::Movzx | M::Movsx | M::Movsxd, OpKind::Register, OpKind::Memory) => {
                low(instruction.op0_register()).map(Self::Loaded)
            }
            (M::Xchg | M::Xadd, OpKind::Memory, OpKind::Register) => {
                low(instruction.op1_register()).map(Self::Exchanged)
            }
            (M::Xchg, OpKind::Register, OpKind::Memory) => {
                low(instruction.op0_register()).map(Self::Exchanged)
            }
            (M::Cmpxchg, OpKind::Memory, OpKind::Register) => {
                low(instruction.op1_register()).map(Self::Compared)
            }
            _ => None,
        }
    }

    /// The register that the instruction writes.
    pub(crate) const fn written(self) -> Option<Sampled> {
        match self {
            Self::Loaded(register) | Self::Exchanged(register) => Some(register),
            Self::Compared(_) => Some(Sampled::Rax),
            Self::Stored(_) | Self::StoredConstant(_) => None,
        }
    }

    /// The change that `registers`, those after the instruction, tell of its memory, of which it touches `n_bytes`.
    #[must_use]
    pub fn change(self, registers: &Registers, n_bytes: u32) -> ValueChange {
        let mask = match n_bytes {
            1 | 2 | 4 => (1 << (8 * n_bytes)) - 1,
            8 => u64::MAX,
            _ => return ValueChange::UNKNOWN,
        };
        let value = |register| registers.get(register).map(|value| value & mask);
        match self {
            Self::Loaded(register) => {
                let value = value(register);
                ValueChange { before: value, after: value }
            }
            Self::Stored(register) => ValueChange { before: None, after: value(register) },
            Self::StoredConstant(constant) => {
                let value = i64::from(constant).cast_unsigned() & mask;
                ValueChange { before: None, after: Some(value) }
            }
            Self::Exchanged(register) => ValueChange { before: value(register), after: None },
            Self::Compared(register) => {
                let before = value(Sampled::Rax);
                let after = match registers.get(Sampled::Rflags) {
                    Some(flags) if flags >> Flag::Zero.rflags_bit() & 1 != 0 => value(register),
                    Some(_) => before,
                    None => None,
                };
                ValueChange { before, after }
            }
        }
    }
}

/// The sampled register of which `register` is the lowest part: not `ah`.
fn low(register: Register) -> Option<Sampled> {
    let is_high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
    if is_high { None } else { sampled_register(register.full_register()) }
}
