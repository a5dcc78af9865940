//! Calls by their instructions alone: where each goes, as far as no value has to be followed. That is all that a sample at
//! a function's first instruction asks for, and it is had without debug information.

use crate::index::call_site::{CallForm, CalleeAddress};
use crate::index::load_object::LoadObjectIndex;
use crate::x86_64::exit::{Destination, Exit};
use crate::x86_64::function::FunctionCode;
use dataspace_proto::address::Svma;
use std::sync::Arc;

impl LoadObjectIndex {
    /// The call that returns to `behind`: its function, and its place in that.
    pub(crate) fn call_before(&mut self, behind: Svma) -> Option<(Arc<FunctionCode>, usize)> {
        let inside = Svma(behind.0.checked_sub(1)?);
        let function = self.function(inside).ok()?;
        let at = function.first_from(behind).checked_sub(1)?;
        let is_it =
            matches!(function.exit(at), Exit::Call(_)) && function.code(at)?.end == behind.0;
        is_it.then_some((function, at))
    }

    /// The form of the call that returns to `behind`.
    pub(crate) fn call_form(&mut self, behind: Svma) -> Option<CallForm> {
        let (function, at) = self.call_before(behind)?;
        let call = function.code(at)?;
        let (written, pointer) = (function.exit(at).target(), function.pointer(at));
        let stub = written.filter(|start| self.code.loaded_slot(*start).is_some());
        let stub = stub.and_then(|start| Some(self.code.linkage_jump(start)?.0));
        let callee = match function.destination(at) {
            // A pointer that the program may have changed.
            Some(Destination::Slot(slot))
                if self.code.linkage().at(slot).is_none()
                    && self.code.loaded_pointer(slot).is_none() =>
            {
                CalleeAddress::Unknown
            }
            destination => self.target(destination),
        };
        let length = (call.end - call.start) as u8;
        let onward = callee.only().and_then(|start| self.jumps_onward(start)).unwrap_or_default();
        Some(CallForm { length, callee, written, pointer, stub, onward })
    }

    fn jumps_onward(&mut self, start: Svma) -> Option<Vec<Svma>> {
        let (function, jumps) = self.last_jumps(start)?;
        // By a pointer it may go on to the same.
        let inside = function.leaps_inside();
        let mut all = 0..function.n_instructions();
        if all.any(|at| function.exit(at) == Exit::Indirect && !inside.contains(&(at as u32))) {
            return None;
        }
        let target = |jump: Svma| function.exit(function.index_of(jump)?).target();
        Some(jumps.into_iter().filter_map(target).collect())
    }
}
