//! Registers that a call need not keep and that code reads after one all the same: it was compiled with the function
//! that it calls, which leaves them alone (gcc's `-fipa-ra`, Go's write barriers).

use crate::limit;
use crate::x86_64::abi::{CALLER_SAVED, RETURNED, RETURNED_SECOND};
use crate::x86_64::function::FunctionCode;

/// A set of general registers, a bit each by their DWARF numbers.
pub(super) type Registers = u16;

/// A set of one register.
pub(super) const fn only(register: u8) -> Registers {
    1 << (register & 15)
}

/// Registers that a function's instructions read and write, in the order of the code.
#[derive(Debug, Default)]
pub(super) struct RegisterUse {
    instructions: Vec<InstructionUse>,
    has_calls: bool,
}

/// Registers that one instruction reads, and then writes or, if it is a call, may lose.
#[derive(Clone, Copy, Debug, Default)]
struct InstructionUse {
    reads: Registers,
    writes: Registers,
    loses: Registers,
}

impl RegisterUse {
    /// Goes on to the next instruction.
    pub(super) fn begin(&mut self) {
        self.instructions.push(InstructionUse::default());
    }

    /// Notes that the instruction reads a register.
    pub(super) fn read(&mut self, register: u8) {
        if let Some(last) = self.instructions.last_mut() {
            last.reads |= only(register);
        }
    }

    /// Notes that it writes all of one.
    pub(super) fn write(&mut self, register: u8) {
        if let Some(last) = self.instructions.last_mut() {
            last.writes |= only(register);
        }
    }

    /// Notes that it is a call. What that returns is no longer what was there before.
    pub(super) fn call(&mut self) {
        self.has_calls = true;
        if let Some(last) = self.instructions.last_mut() {
            last.writes |= only(RETURNED) | only(RETURNED_SECOND);
            last.loses = CALLER_SAVED.iter().fold(0, |all, it| all | only(*it)) & !last.writes;
        }
    }

    /// The registers that are read after a call which need not keep them, with nothing written to them in between.
    pub(super) fn read_after_calls(&self, function: &FunctionCode) -> Registers {
        if !self.has_calls {
            return 0;
        }
        let mut after: Vec<Registers> = vec![0; self.instructions.len()];
        let mut read = 0;
        // Loops bring what they lose to their beginnings.
        for _ in 0..limit::MAX_LOSS_PASSES {
            let mut has_changed = false;
            for (at, it) in self.instructions.iter().enumerate() {
                let from = |from: usize| after.get(from).copied().unwrap_or(0);
                let ways = function.predecessors(at).iter();
                let mut lost = ways.fold(0, |lost, way| lost | from(way.from as usize));
                if function.entrances(at).is_return {
                    lost |= at.checked_sub(1).map_or(0, from);
                }
                read |= lost & it.reads;
                let left = lost & !it.writes | it.loses;
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
