//! Pointers that calls and jumps go by.

use super::abi::POINTER_BYTES;
use super::access::{self, AddressOperand};
use super::state::{Contradiction, State};
use crate::limit;
use dataspace_proto::address::Svma;
use dataspace_proto::register::Register;
use iced_x86::{FlowControl, Instruction, OpKind};

/// A pointer that a call or jump goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodePointer {
    /// In a register.
    Register(Register),
    /// In memory.
    Memory(AddressOperand),
}

impl CodePointer {
    pub(super) fn of(instruction: &Instruction) -> Option<Self> {
        use FlowControl::{IndirectBranch, IndirectCall};
        if !matches!(instruction.flow_control(), IndirectBranch | IndirectCall) {
            return None;
        }
        match instruction.op0_kind() {
            OpKind::Register => {
                access::address_register(instruction.op0_register())?.register.map(Self::Register)
            }
            OpKind::Memory => Some(Self::Memory(access::operand(instruction))),
            _ => None,
        }
    }
}

/// A pointer that a jump inside a function went by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leap {
    /// In a register.
    Register(Register),
    /// In a table: where the entry is, and where the table begins.
    Table {
        /// The jump's operand.
        entry: AddressOperand,
        /// The table.
        table: Svma,
    },
}

impl Leap {
    /// Assumes in the registers just after the jump that it led to the instruction at `to`.
    ///
    /// # Errors
    /// The pointer that it went by was another one.
    pub fn assume(&self, state: &mut State, to: Svma) -> Result<(), Contradiction> {
        match self {
            Self::Register(register) => state.assume_value(*register, state.avma(to).0),
            Self::Table { entry, table } => {
                let Ok(at) = state.effective_address(entry) else { return Ok(()) };
                let into = at.0.wrapping_sub(state.avma(*table).0).cast_signed();
                // What is counted from one may begin with an entry before the table.
                let most = limit::MAX_JUMP_TABLE_ENTRIES as u64 * u64::from(POINTER_BYTES);
                if into.unsigned_abs() < most { Ok(()) } else { Err(Contradiction) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86_64::access::{AddressRegister, SegmentBase};
    use dataspace_proto::register::Registers;

    #[test]
    fn a_jump_by_a_register_led_only_to_where_that_points() {
        let mut registers = Registers::default();
        registers.set(Register::Rax, 0x55_1000);
        let state = State::sampled(&registers, 0x55_0000, None);
        let is_led = |register, to| Leap::Register(register).assume(&mut { state }, Svma(to));
        assert_eq!(is_led(Register::Rax, 0x1000), Ok(()));
        assert_eq!(is_led(Register::Rax, 0x1004), Err(Contradiction));
        assert_eq!(is_led(Register::Rcx, 0x1004), Ok(()), "its value is not known");
    }

    #[test]
    fn a_jump_by_a_table_read_from_there() {
        let table = Svma(0x4000);
        let rax =
            AddressRegister { register: Some(Register::Rax), dwarf: Some(0), is_32_bit: false };
        let entry = AddressOperand {
            base: None,
            index: Some(rax),
            scale: 8,
            displacement: 0x4000,
            segment: SegmentBase::Flat,
            is_ip_relative: false,
        };
        let is_led = |index| {
            let mut registers = Registers::default();
            registers.set(Register::Rax, index);
            let mut state = State::sampled(&registers, 0, None);
            Leap::Table { entry, table }.assume(&mut state, Svma(0x1000))
        };
        assert_eq!(is_led(3), Ok(()));
        assert_eq!(is_led(0x1000), Ok(()), "within the longest of tables");
        assert_eq!(is_led(0x7f00_1234_5678), Err(Contradiction));
    }
}
