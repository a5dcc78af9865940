//! General registers that a function's instructions read and change, and which of those that calls may change are read
//! after calls all the same.

use super::abi;
use super::abi::dwarf_number;
use super::exit::Exit;
use super::function::FunctionCode;
use crate::limit;
use iced_x86::{InstructionInfoFactory, OpAccess};
use std::ops::Range;

/// A set of general registers, a bit each by their DWARF numbers.
pub(crate) type Registers = u16;

/// All general registers.
pub(crate) const ALL: Registers = Registers::MAX;

/// The set of one register.
pub(crate) const fn only(register: u8) -> Registers {
    1 << (register & 15)
}

/// The registers that one instruction reads, and then writes.
#[derive(Clone, Copy, Debug, Default)]
struct InstructionUse {
    reads: Registers,
    /// Written whole, whatever they held.
    writes: Registers,
    /// Written whole or in part, or perhaps.
    changes: Registers,
}

/// Registers that a function's instructions read and write, in the order of the code.
#[derive(Debug)]
pub(crate) struct RegisterUse(Vec<InstructionUse>);

impl RegisterUse {
    pub(crate) fn of(function: &FunctionCode) -> Self {
        let mut factory = InstructionInfoFactory::new();
        let instructions = (0..function.n_instructions()).map(|at| {
            let mut found = InstructionUse::default();
            let Some(here) = function.instruction(at) else { return found };
            for used in factory.info(here).used_registers() {
                let register = used.register();
                if !register.is_gpr() {
                    continue;
                }
                let sampled = abi::sampled_register(register.full_register());
                let Some(number) = sampled.map(dwarf_number) else { continue };
                let number = number as u8;
                // A register of 32 bits is written with zeros above.
                let is_whole = register.size() >= 4;
                match used.access() {
                    OpAccess::Read | OpAccess::CondRead => found.reads |= only(number),
                    OpAccess::Write => {
                        found.changes |= only(number);
                        found.writes |= if is_whole { only(number) } else { 0 };
                    }
                    OpAccess::CondWrite => found.changes |= only(number),
                    OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
                        found.reads |= only(number);
                        found.changes |= only(number);
                    }
                    _ => {}
                }
            }
            found
        });
        Self(instructions.collect())
    }

    /// The registers that the instructions in a range, by their indices, read.
    pub(crate) fn read_in(&self, range: Range<usize>) -> Registers {
        self.0.get(range).unwrap_or_default().iter().fold(0, |all, it| all | it.reads)
    }

    /// The registers that its instructions change; what it calls may change more.
    pub(crate) fn changed(&self) -> Registers {
        self.0.iter().fold(0, |all, it| all | it.changes)
    }

    /// The registers among `lost` that are read after a call, with nothing written to them in between.
    pub(crate) fn read_after_calls(&self, function: &FunctionCode, lost: Registers) -> Registers {
        let mut after: Vec<Registers> = vec![0; self.0.len()];
        let mut read = 0;
        // Loops bring what they lose to their beginnings.
        for _ in 0..limit::MAX_LOSS_PASSES {
            let mut has_changed = false;
            for (at, it) in self.0.iter().enumerate() {
                let from = |from: usize| after.get(from).copied().unwrap_or(0);
                let ways = function.predecessors(at).iter();
                let mut before = ways.fold(0, |all, way| all | from(way.from as usize));
                if function.entrances(at).is_return {
                    before |= at.checked_sub(1).map_or(0, from);
                }
                read |= before & it.reads;
                let called = if matches!(function.exit(at), Exit::Call(_)) { lost } else { 0 };
                let left = before & !it.writes | called;
                has_changed |= left != after[at];
                after[at] = left;
            }
            if !has_changed {
                break;
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86_64::image_bytes::NoBytes;
    use dataspace_proto::address::Svma;

    /// A call of what is elsewhere.
    const CALL: [u8; 5] = [0xe8, 0x00, 0x10, 0x00, 0x00];

    fn read_after_calls(code: &[&[u8]]) -> Registers {
        let function = FunctionCode::decode(Svma(0x1000), &code.concat(), &NoBytes);
        RegisterUse::of(&function).read_after_calls(&function, only(8) | only(9))
    }

    #[test]
    fn what_is_read_after_a_call_with_nothing_written_to_it_is_found() {
        // call; mov (%r8),%rax; ret
        assert_eq!(read_after_calls(&[&CALL, &[0x49, 0x8b, 0x00, 0xc3]]), only(8));
        // call; xor %r8d,%r8d; mov (%r8),%rax; ret
        assert_eq!(read_after_calls(&[&CALL, &[0x45, 0x31, 0xc0, 0x49, 0x8b, 0x00, 0xc3]]), 0);
        // mov (%r8),%rax; call; ret
        assert_eq!(read_after_calls(&[&[0x49, 0x8b, 0x00], &CALL, &[0xc3]]), 0);
        // 1000: mov (%r8),%rax  1003: call  1008: jmp 1000
        assert_eq!(read_after_calls(&[&[0x49, 0x8b, 0x00], &CALL, &[0xeb, 0xf6]]), only(8));
    }

    #[test]
    fn a_part_of_a_register_is_changed_with_it() {
        // mov $1,%cl; mov %rdx,%r9; cmove %rsi,%rdi; ret
        let code = [0xb1, 1, 0x49, 0x89, 0xd1, 0x48, 0x0f, 0x44, 0xfe, 0xc3];
        let function = FunctionCode::decode(Svma(0x1000), &code, &NoBytes);
        let changed = RegisterUse::of(&function).changed() & !only(7);
        assert_eq!(changed, only(2) | only(9) | only(5), "rcx, r9, rdi, and rsp by the return");
    }
}
