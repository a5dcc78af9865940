//! Two-operand arithmetic backwards: what the first operand was, and which flags it left.

use super::flags::{Flag, FlagSet};
use super::state::Contradiction;
use iced_x86::Mnemonic;

/// An arithmetic operation whose result tells of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the instructions' own")]
pub enum Operation {
    Add,
    Sub,
    And,
    Or,
    Xor,
    Cmp,
    Test,
    Inc,
    Dec,
    Neg,
    Not,
    Shl,
    Shr,
    Sar,
    Rol,
    Ror,
    /// `adc` and `sbb`: of them only the result is looked at.
    WithCarry,
}

impl Operation {
    /// The operation of an instruction.
    #[must_use]
    pub(super) const fn of(mnemonic: Mnemonic) -> Option<Self> {
        Some(match mnemonic {
            Mnemonic::Add => Self::Add,
            Mnemonic::Sub => Self::Sub,
            Mnemonic::And => Self::And,
            Mnemonic::Or => Self::Or,
            Mnemonic::Xor => Self::Xor,
            Mnemonic::Cmp => Self::Cmp,
            Mnemonic::Test => Self::Test,
            Mnemonic::Inc => Self::Inc,
            Mnemonic::Dec => Self::Dec,
            Mnemonic::Neg => Self::Neg,
            Mnemonic::Not => Self::Not,
            Mnemonic::Shl | Mnemonic::Sal => Self::Shl,
            Mnemonic::Shr => Self::Shr,
            Mnemonic::Sar => Self::Sar,
            Mnemonic::Rol => Self::Rol,
            Mnemonic::Ror => Self::Ror,
            Mnemonic::Adc | Mnemonic::Sbb => Self::WithCarry,
            _ => return None,
        })
    }

    /// Tells whether the second operand is a count of bits.
    #[must_use]
    pub const fn is_shift(self) -> bool {
        matches!(self, Self::Shl | Self::Shr | Self::Sar | Self::Rol | Self::Ror)
    }

    /// Tells whether the first operand is written.
    #[must_use]
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Cmp | Self::Test)
    }

    /// Tells whether a register with itself keeps its value.
    #[must_use]
    pub const fn keeps_equal(self) -> bool {
        matches!(self, Self::And | Self::Or | Self::Cmp | Self::Test)
    }

    /// The first operand before, from the result and the second operand, where both are known.
    #[must_use]
    pub const fn before(self, result: u64, with: Option<u64>, width_bits: u32) -> Option<u64> {
        let mask = u64::MAX >> (64 - width_bits);
        let before = match (self, with) {
            (Self::Cmp | Self::Test, _) => result,
            (Self::Inc, _) => result.wrapping_sub(1),
            (Self::Dec, _) => result.wrapping_add(1),
            (Self::Neg, _) => result.wrapping_neg(),
            (Self::Not, _) => !result,
            (Self::Add, Some(with)) => result.wrapping_sub(with),
            (Self::Sub, Some(with)) => result.wrapping_add(with),
            (Self::Xor, Some(with)) => result ^ with,
            (Self::Rol, Some(count)) => rotated_right(result, count as u32, width_bits),
            (Self::Ror, Some(count)) => {
                rotated_right(result, width_bits - count as u32, width_bits)
            }
            _ => return None,
        };
        Some(before & mask)
    }

    /// The bits of the first operand that can be told where it cannot be told whole.
    ///
    /// # Errors
    /// The result cannot come from this operation.
    pub const fn bits_before(
        self,
        result: u64,
        known: u64,
        with: Option<u64>,
        width_bits: u32,
    ) -> Result<(u64, u64), Contradiction> {
        let mask = u64::MAX >> (64 - width_bits);
        let Some(with) = with else { return Ok((0, 0)) };
        let (must_clear, must_set, before, before_known) = match self {
            Self::And => (!with, 0, result, known & with),
            Self::Or => (0, with, result, known & !with),
            Self::Shl => {
                let low = (1 << with) - 1;
                (low, 0, result >> with, known >> with & mask >> with)
            }
            Self::Shr => (!(mask >> with) & mask, 0, result << with, known << with),
            Self::Sar => (0, 0, result << with, known << with),
            _ => return Ok((0, 0)),
        };
        if result & known & must_clear & mask != 0 || !result & known & must_set & mask != 0 {
            return Err(Contradiction);
        }
        let before_known = before_known & mask;
        Ok((before & before_known, before_known))
    }

    /// The flags that the operation leaves, as far as its operands and result are known (SDM
    /// volume 1, appendix A).
    #[must_use]
    pub const fn flags(
        self,
        before: Option<u64>,
        with: Option<u64>,
        result: Option<u64>,
        width_bits: u32,
    ) -> FlagSet {
        let mask = u64::MAX >> (64 - width_bits);
        let logical = FlagSet::ANY.with(Flag::Carry, false).with(Flag::Overflow, false);
        match (self, before, with) {
            (Self::Not | Self::Rol | Self::Ror, _, _) => FlagSet::ANY,
            (Self::Add, Some(a), Some(b)) => added(a, b, width_bits),
            (Self::Sub | Self::Cmp, Some(a), Some(b)) => subtracted(a, b, width_bits),
            (Self::Neg, Some(a), _) => subtracted(0, a, width_bits),
            (Self::Inc, Some(a), _) => {
                of_step(a, a.wrapping_add(1) & mask, width_bits, a == mask >> 1)
            }
            (Self::Dec, Some(a), _) => {
                of_step(a, a.wrapping_sub(1) & mask, width_bits, a == (mask >> 1) + 1)
            }
            (Self::Test, Some(a), Some(b)) => logical.and(FlagSet::of_result(a & b, width_bits)),
            (Self::Test, _, _) => logical,
            (Self::Cmp, _, _) => FlagSet::ANY,
            (Self::And | Self::Or | Self::Xor, _, _) => match result {
                Some(result) => logical.and(FlagSet::of_result(result, width_bits)),
                None => logical,
            },
            _ => match result {
                Some(result) => FlagSet::of_result(result, width_bits),
                None => FlagSet::ANY,
            },
        }
    }
}

const fn rotated_right(value: u64, count: u32, width_bits: u32) -> u64 {
    let mask = u64::MAX >> (64 - width_bits);
    let (value, count) = (value & mask, count % width_bits);
    if count == 0 { value } else { (value >> count | value << (width_bits - count)) & mask }
}

const fn added(a: u64, b: u64, width_bits: u32) -> FlagSet {
    let mask = u64::MAX >> (64 - width_bits);
    let (a, b) = (a & mask, b & mask);
    let result = a.wrapping_add(b) & mask;
    FlagSet::of_result(result, width_bits)
        .with(Flag::Carry, result < a)
        .with(Flag::Adjust, (a ^ b ^ result) >> 4 & 1 != 0)
        .with(Flag::Overflow, (!(a ^ b) & (a ^ result)) >> (width_bits - 1) & 1 != 0)
}

const fn subtracted(a: u64, b: u64, width_bits: u32) -> FlagSet {
    let mask = u64::MAX >> (64 - width_bits);
    let (a, b) = (a & mask, b & mask);
    let result = a.wrapping_sub(b) & mask;
    FlagSet::of_result(result, width_bits)
        .with(Flag::Carry, a < b)
        .with(Flag::Adjust, (a ^ b ^ result) >> 4 & 1 != 0)
        .with(Flag::Overflow, ((a ^ b) & (a ^ result)) >> (width_bits - 1) & 1 != 0)
}

/// `inc` and `dec`, which leave CF.
const fn of_step(a: u64, result: u64, width_bits: u32, overflows: bool) -> FlagSet {
    FlagSet::of_result(result, width_bits)
        .with(Flag::Adjust, (a ^ 1 ^ result) >> 4 & 1 != 0)
        .with(Flag::Overflow, overflows)
}
