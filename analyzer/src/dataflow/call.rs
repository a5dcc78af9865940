//! What calls do to values: they take some and leave one.

use super::transfer::Transfer;
use super::value::{Call, Definition, Place, ValueIdx};
use crate::x86_64::abi::{ARGUMENTS, CALLER_SAVED, RETURNED};
use crate::x86_64::effect::Part;
use dataspace_proto::address::Svma;
use iced_x86::{FlowControl, Instruction, OpKind};

impl Transfer<'_> {
    pub(super) fn call(&mut self, at: u32, instruction: &Instruction, loaded: Option<ValueIdx>) {
        self.note_call(at, instruction, loaded);
        for register in CALLER_SAVED {
            let definition = match register {
                RETURNED => Definition::Returned { at },
                _ => Definition::Opaque,
            };
            let value = self.graph.define(definition);
            self.graph.write(at, Place::Register(register), value);
        }
        for slot in self.escaped.intersection(&self.slots).copied().collect::<Vec<_>>() {
            let opaque = self.graph.opaque();
            self.graph.write(at, Place::Slot(slot), opaque);
        }
    }

    /// A jump out of the function is a call in the last place.
    pub(super) fn jump(&mut self, at: u32, instruction: &Instruction, loaded: Option<ValueIdx>) {
        let target = Svma(instruction.near_branch_target());
        let is_direct = instruction.flow_control() == FlowControl::UnconditionalBranch;
        if is_direct && self.function.index_of(target).is_none() {
            self.note_call(at, instruction, loaded);
        }
    }

    fn note_call(&mut self, at: u32, instruction: &Instruction, loaded: Option<ValueIdx>) {
        let arguments = ARGUMENTS.map(|register| self.graph.before(at, Place::Register(register)));
        let callee = match instruction.op0_kind() {
            OpKind::Register => {
                Part::of(instruction.op0_register()).map(|part| self.register(at, part.register))
            }
            OpKind::Memory => loaded,
            _ => None,
        };
        self.graph.calls.push(Call { at, arguments, callee });
    }
}
