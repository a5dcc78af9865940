//! Location expressions that are the sum of two registers: a pointer that became an index, or an element of an array.

use crate::dwarf::unit::reader::Reader;
use crate::dwarf::variable::location::VariablePlace;
use gimli::Operation;

/// The sum of two registers that operations compute, with nothing but constants otherwise.
pub(super) fn read(operations: &[Operation<Reader>]) -> Option<VariablePlace> {
    let (operations, is_place) = match operations {
        [operations @ .., Operation::StackValue] => (operations, false),
        operations => (operations, true),
    };
    let mut stack: Vec<Linear> = Vec::new();
    for operation in operations {
        let value = match operation {
            Operation::RegisterOffset { register, offset, base_type } if base_type.0 == 0 => {
                Linear { registers: [Some((register.0, 1)), None], constant: *offset }
            }
            Operation::UnsignedConstant { value } => Linear::of(value.cast_signed()),
            Operation::SignedConstant { value } => Linear::of(*value),
            Operation::PlusConstant { value } => {
                stack.pop()?.plus(Linear::of(value.cast_signed()))?
            }
            Operation::Plus => {
                let second = stack.pop()?;
                stack.pop()?.plus(second)?
            }
            Operation::Minus => {
                let second = stack.pop()?.times(-1);
                stack.pop()?.plus(second)?
            }
            Operation::Mul => {
                let second = stack.pop()?.number()?;
                stack.pop()?.times(second)
            }
            Operation::Shl => {
                let by = u32::try_from(stack.pop()?.number()?).ok()?;
                stack.pop()?.times(1i64.checked_shl(by)?)
            }
            // An index of fewer bits, which the code has extended with its sign: shifted up before, and down.
            Operation::Shra => {
                let by = u32::try_from(stack.pop()?.number()?).ok()?;
                stack.pop()?.divided(1i64.checked_shl(by)?)?
            }
            // One of 32 bits, extended by zeros.
            Operation::And if stack.last()?.number() == Some(0xffff_ffff) => {
                stack.pop();
                stack.pop()?
            }
            _ => return None,
        };
        stack.push(value);
    }
    let [Linear { registers: [Some(first), Some(second)], constant }] = stack[..] else {
        return None;
    };
    let ((base, 1), (index, scale)) =
        (if first.1 == 1 { (first, second) } else { (second, first) })
    else {
        return None;
    };
    (scale > 0).then_some(VariablePlace::Sum { base, index, scale, offset: constant, is_place })
}

/// A sum of multiples of at most two registers and a number.
#[derive(Clone, Copy)]
struct Linear {
    registers: [Option<(u16, i64)>; 2],
    constant: i64,
}

impl Linear {
    const fn of(constant: i64) -> Self {
        Self { registers: [None; 2], constant }
    }

    fn number(&self) -> Option<i64> {
        (self.registers == [None; 2]).then_some(self.constant)
    }

    fn times(self, by: i64) -> Self {
        let many = |term: Option<(u16, i64)>| term.map(|(it, times)| (it, times.wrapping_mul(by)));
        Self { registers: self.registers.map(many), constant: self.constant.wrapping_mul(by) }
    }

    /// The same without a factor that all of it has.
    fn divided(self, by: i64) -> Option<Self> {
        let less = |number: i64| (number.checked_rem(by)? == 0).then(|| number / by);
        let mut registers = self.registers;
        for (_, times) in registers.iter_mut().flatten() {
            *times = less(*times)?;
        }
        Some(Self { registers, constant: less(self.constant)? })
    }

    fn plus(self, other: Self) -> Option<Self> {
        let mut terms = self.registers.into_iter().chain(other.registers).flatten();
        let registers = [terms.next(), terms.next()];
        let constant = self.constant.wrapping_add(other.constant);
        terms.next().is_none().then_some(Self { registers, constant })
    }
}

#[cfg(test)]
mod tests {
    use super::{VariablePlace, read};
    use crate::dwarf::unit::reader::Reader;
    use crate::dwarf::variable::location;

    // Operations, DWARF 5 section 7.7.1: DW_OP_breg1, 2 and 12 with what is added to them.
    const RDX: [u8; 2] = [0x71, 0];
    const RCX: [u8; 2] = [0x72, 0];
    const R12: [u8; 2] = [0x7c, 0];
    const R12_AND_8: [u8; 2] = [0x7c, 8];
    const RDX_LESS_1: [u8; 2] = [0x71, 0x7f];
    const LOW_HALF: [u8; 6] = [0x0c, 0xff, 0xff, 0xff, 0xff, AND];
    const LOW_BYTES: [u8; 4] = [0x0a, 0xff, 0xff, AND];
    const AND: u8 = 0x1a;
    const MINUS: u8 = 0x1c;
    const MUL: u8 = 0x1e;
    const PLUS: u8 = 0x22;
    const PLUS_16: [u8; 2] = [0x23, 16];
    const SHL: u8 = 0x24;
    const SHRA: u8 = 0x26;
    const LIT_2: u8 = 0x32;
    const LIT_3: u8 = 0x33;
    const LIT_8: u8 = 0x38;
    const CONST_32: [u8; 2] = [0x08, 32];
    const CONST_64: [u8; 2] = [0x08, 64];
    const STACK_VALUE: u8 = 0x9f;

    fn place(parts: &[&[u8]]) -> Option<VariablePlace> {
        let expression = gimli::Expression(Reader::of_bytes(parts.concat().into()));
        let format = gimli::Format::Dwarf32;
        let encoding = gimli::Encoding { address_size: 8, format, version: 5 };
        read(&location::operations(expression, encoding).unwrap())
    }

    #[test]
    fn a_sum_of_two_registers_is_base_and_index() {
        let check = |parts: &[&[u8]], base, index, scale, offset| {
            let sum = |is_place| VariablePlace::Sum { base, index, scale, offset, is_place };
            let value = place(&[parts, &[&[STACK_VALUE]]].concat());
            assert_eq!(value, Some(sum(false)), "{parts:x?}");
            assert_eq!(place(parts), Some(sum(true)), "{parts:x?}");
        };
        check(&[&R12, &LOW_HALF, &RDX, &[PLUS]], 12, 1, 1, 0);
        check(&[&R12_AND_8, &RDX, &[LIT_2, SHL, PLUS]], 12, 1, 4, 8);
        check(&[&RDX, &[LIT_3, SHL], &R12_AND_8, &[PLUS]], 12, 1, 8, 8);
        check(&[&R12, &RDX, &[PLUS], &PLUS_16], 12, 1, 1, 16);
        check(&[&R12, &RDX, &[PLUS, LIT_8, MINUS]], 12, 1, 1, -8);
        // `&table[i]` with an index of 32 bits and its sign: shifted up and down again.
        let extended: &[u8] = &[CONST_32[0], CONST_32[1], SHL, CONST_32[0], CONST_32[1], SHRA];
        check(&[&RDX_LESS_1, extended, &[LIT_2, SHL], &R12, &[PLUS]], 12, 1, 4, -4);
        // What is added to an index before it is scaled counts as often as it.
        check(&[&R12_AND_8, &RDX_LESS_1, &[LIT_8, MUL, PLUS]], 12, 1, 8, 0);
        // `table[i]`, of elements of 24 bytes.
        check(&[&RDX, &[LIT_8, LIT_3, MUL, MUL], &R12, &[PLUS]], 12, 1, 24, 0);
    }

    #[test]
    fn what_is_no_sum_of_two_registers_is_none() {
        let check = |parts: &[&[u8]]| {
            assert_eq!(place(&[parts, &[&[STACK_VALUE]]].concat()), None, "{parts:x?}");
        };
        check(&[&R12, &RDX, &[PLUS], &RCX, &[PLUS]]);
        check(&[&R12, &RDX, &[MUL]]);
        check(&[&R12, &RDX, &[MINUS]]);
        check(&[&R12, &[LIT_2, SHL], &RDX, &[LIT_2, SHL, PLUS]]);
        check(&[&R12, &RDX, &CONST_64, &[SHL, PLUS]]);
        check(&[&R12, &LOW_BYTES, &RDX, &[PLUS]]);
        check(&[&R12, &[LIT_2, SHRA], &RDX, &[PLUS]]);
        check(&[&R12, &RDX]);
        check(&[&R12, &PLUS_16]);
        check(&[&R12, &[PLUS]]);
        check(&[]);
    }
}
