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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::graph::ValueGraph;
    use crate::dataflow::value::{Definition, Place};
    use crate::dwarf::code::frame::FrameRule;
    use crate::x86_64::image_bytes::NoBytes;
    use dataspace_proto::address::Svma;

    /// The definition of what a register holds before the instruction at an index.
    fn held(code: &[u8], at: u32, register: u8) -> Definition {
        let function = FunctionCode::decode(Svma(0x1000), code, &NoBytes);
        let rules = vec![FrameRule::Unknown; function.n_instructions()];
        let mut graph = ValueGraph::of(&function, rules).unwrap();
        let value = graph.before(at, Place::Register(register));
        graph.connect().unwrap();
        *graph.definition(value).unwrap()
    }

    /// A call of what is elsewhere.
    const CALL: [u8; 5] = [0xe8, 0x00, 0x10, 0x00, 0x00];

    #[test]
    fn what_is_read_after_a_call_was_there_before_it() {
        // call; mov (%r8),%rax; ret
        let code = [&CALL[..], &[0x49, 0x8b, 0x00, 0xc3]].concat();
        assert_eq!(held(&code, 1, 8), Definition::Parameter { register: 8 });
        assert_eq!(held(&code, 1, 9), Definition::Opaque, "nobody reads it");
        // mov %rdi,%r8; call; xor %r8d,%r8d; mov (%r8),%rax; ret
        let code = [&[0x49, 0x89, 0xf8], &CALL[..], &[0x45, 0x31, 0xc0, 0x49, 0x8b, 0, 0xc3]];
        assert_eq!(held(&code.concat(), 2, 8), Definition::Opaque, "it is written first");
    }

    #[test]
    fn a_loop_brings_what_a_call_may_lose_to_its_beginning() {
        // 1000: mov (%r8),%rax  1003: call  1008: jmp 1000
        let code = [&[0x49, 0x8b, 0x00], &CALL[..], &[0xeb, 0xf6]].concat();
        assert_eq!(held(&code, 2, 8), Definition::Parameter { register: 8 });
        assert_eq!(held(&code, 2, 0), Definition::Returned { at: 1 });
    }
}
