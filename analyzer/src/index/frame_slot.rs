//! Variables in a function's frame, as the registers at an instruction tell their places.

use crate::dwarf::code::frame::CfaRule;
use crate::dwarf::code::kept::FunctionScope;
use crate::dwarf::variable::location::{Base, VariablePlace};
use crate::index::load_object::LoadObjectIndex;
use crate::index::site::FrameSlot;
use crate::index::type_path::is_own_place;
use crate::limit;
use crate::x86_64::abi::STACK_POINTER;
use crate::x86_64::access;
use dataspace_proto::address::Svma;
use std::sync::Arc;

impl LoadObjectIndex {
    /// The variables that are seen in the frame at `svma`; none where they are too many to be kept for each access.
    pub(crate) fn frame_slots(
        &mut self,
        function: Option<&FunctionScope>,
        svma: Svma,
    ) -> Vec<FrameSlot> {
        let (Some(debug), Some(function)) = (&mut self.debug, function) else { return Vec::new() };
        let cfa = self.frames.cfa_at(svma);
        let (mut slots, mut pushed) = (Vec::new(), None);
        for (variable, part) in function.in_memory_at(svma) {
            let VariablePlace::Memory { base, offset } = part.place else { continue };
            let Some((register, offset)) = CfaRule::rebase(cfa, base, offset) else { continue };
            let offset = if base == Base::Register(STACK_POINTER) {
                let pushed = *pushed.get_or_insert_with(|| self.frames.pushed_at(svma));
                offset.wrapping_add(pushed.unwrap_or_default())
            } else {
                offset
            };
            let Some(base) = access::register_of_dwarf(register) else { continue };
            let layout = debug.layout(variable.type_die);
            // Elsewhere or nowhere is the rest of what is said to be there only in part.
            if part.n_bytes.is_some_and(|n_bytes| n_bytes < layout.size) {
                continue;
            }
            if !is_own_place(&layout, register, cfa) {
                continue;
            }
            if slots.len() == limit::MAX_FRAME_SLOTS {
                return Vec::new();
            }
            slots.push(FrameSlot { base, offset, layout, name: Arc::clone(&variable.name) });
        }
        slots
    }
}
