//! Effects of calls on values: they take some and leave one.

use super::transfer::Transfer;
use super::value::{Call, Definition, Place, ValueIdx};
use crate::x86_64::abi::{ARGUMENTS, RETURNED};
use crate::x86_64::register_use::only;

impl Transfer<'_> {
    /// Notes a call of the function at `callee`, where that is a value.
    pub(super) fn call(&mut self, at: u32, callee: Option<ValueIdx>) {
        self.note_call(at, callee);
        let lost = self.effects.lost_by(at);
        for register in (0..16).filter(|register| lost & only(*register) != 0) {
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

    /// Notes what a call, or a jump out of the function, passes.
    pub(super) fn note_call(&mut self, at: u32, callee: Option<ValueIdx>) {
        let arguments = ARGUMENTS.map(|register| self.graph.before(at, Place::Register(register)));
        self.graph.calls.push(Call { at, arguments, callee });
    }
}
