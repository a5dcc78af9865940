//! Location expressions that are the sum of two registers: a pointer that became an index.

use super::Reader;
use super::location::Place;
use gimli::Operation;

/// The sum of two registers that operations compute, with nothing but constants otherwise.
pub(super) fn read(operations: &[Operation<Reader>]) -> Option<Place> {
    let [operations @ .., Operation::StackValue] = operations else { return None };
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
            // An index of 32 bits, which the code has extended.
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
    let scale = u8::try_from(scale).ok().filter(|scale| matches!(scale, 1 | 2 | 4 | 8))?;
    Some(Place::Sum { base, index, scale, offset: constant })
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

    fn plus(self, other: Self) -> Option<Self> {
        let mut terms = self.registers.into_iter().chain(other.registers).flatten();
        let registers = [terms.next(), terms.next()];
        let constant = self.constant.wrapping_add(other.constant);
        terms.next().is_none().then_some(Self { registers, constant })
    }
}
