//! Operands' addresses as sums of values.

use super::graph::ValueGraph;
use super::value::{Definition, Place, Sum, ValueIdx};
use crate::x86_64::access::{AddressOperand, AddressRegister, SegmentBase};

impl ValueGraph {
    /// An operand's address in values; `None` where a register of it is none of the general ones.
    pub(crate) fn sum(&mut self, at: u32, address: &AddressOperand) -> Option<Sum> {
        let mut value = |part: Option<AddressRegister>| match part {
            None => Some(None),
            Some(part) => {
                let whole = self.before(at, Place::Register(number(part)?));
                Some(Some(if part.is_32_bit {
                    self.define(Definition::Narrowed { of: whole })
                } else {
                    whole
                }))
            }
        };
        Some(Sum {
            base: value(address.base)?,
            index: value(address.index)?,
            scale: address.scale,
            displacement: address.displacement,
            is_static: address.is_ip_relative,
        })
    }

    /// The address of an operand in memory; `None` for one of more than two values, or that a vector
    /// indexes.
    pub(crate) fn operand(&mut self, at: u32, address: &AddressOperand) -> Option<Sum> {
        if address.segment == SegmentBase::Other || address.is_32_bit() {
            return None;
        }
        let sum = self.sum(at, address)?;
        match (address.segment, sum.index) {
            (SegmentBase::Thread, None) if !sum.is_static => {
                let thread = self.define(Definition::ThreadPointer);
                Some(Sum { base: Some(thread), index: sum.base, scale: 1, ..sum })
            }
            (SegmentBase::Thread, _) => None,
            _ => Some(sum),
        }
    }
}

impl Sum {
    /// A value and a constant.
    pub(crate) const fn of(base: ValueIdx, displacement: i64) -> Self {
        Self { base: Some(base), index: None, scale: 1, displacement, is_static: false }
    }
}

/// The DWARF number of a register of an address.
pub(super) fn number(register: AddressRegister) -> Option<u8> {
    u8::try_from(register.dwarf?).ok()
}
