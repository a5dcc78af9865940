//! Effects of called functions on registers, by their own code: compilers that have seen it keep values in those which
//! it leaves alone (gcc's `-fipa-ra`, Go's write barriers).

use crate::code::outline::Evidence;
use crate::dataflow::CallEffects;
use crate::index::called_code::CalledCode;
use crate::index::load_object::LoadObjectIndex;
use crate::known::go;
use crate::limit;
use crate::x86_64::abi::{FRAME_POINTER, RETURNED, STACK_POINTER};
use crate::x86_64::exit::Exit;
use crate::x86_64::function::FunctionCode;
use crate::x86_64::register_use::{ALL, RegisterUse, Registers, only};
use crate::x86_64::scan;
use dataspace_proto::address::Svma;
use std::sync::Arc;

impl LoadObjectIndex {
    /// Works out what a function's calls change: of those after which it reads what they may change, what their functions
    /// leave alone.
    pub(crate) fn call_effects(&mut self, function: &FunctionCode) -> CallEffects {
        let mut effects = CallEffects::default();
        let is_go = function.start().is_some_and(|start| self.is_go(start));
        if is_go {
            let kept = only(STACK_POINTER as u8) | only(FRAME_POINTER as u8) | only(go::GOROUTINE);
            effects.lost = ALL & !kept;
        }
        let results = if is_go { 0 } else { only(RETURNED) };
        let read = RegisterUse::of(function).read_after_calls(function, effects.lost) & !results;
        if read == 0 {
            return effects;
        }
        for at in 0..function.n_instructions() {
            let Exit::Call(Some(target)) = function.exit(at) else { continue };
            let changed = match is_go {
                true => self.changed_in_go(Svma(target)),
                false => self.changed_by(Svma(target), limit::MAX_CALLED_DEPTH),
            };
            if read & !changed != 0 {
                effects.kept.push((at as u32, read & !changed));
            }
        }
        effects
    }

    /// Tells whether the code at an address is Go's.
    pub(crate) fn is_go(&mut self, svma: Svma) -> bool {
        let Some(debug) = self.debug.as_mut() else { return false };
        debug.unit_of_code(svma).is_some_and(|unit| debug.is_go(unit))
    }

    /// Results of Go's functions may be in any register. Its write barriers alone keep all, but for the one that later
    /// versions return in.
    fn changed_in_go(&mut self, target: Svma) -> Registers {
        let scope = self.debug.as_mut().and_then(|debug| debug.function_at(target));
        let name = scope.as_ref().and_then(|scope| scope.function_name.as_deref());
        match name {
            Some(name) if name.starts_with(go::WRITE_BARRIER) => only(go::BARRIER_RESULT),
            _ => ALL,
        }
    }

    /// The registers that a function of this load object, or what it calls, may change.
    fn changed_by(&mut self, target: Svma, depth: usize) -> Registers {
        if let Some(known) = self.called.changed.get(&(target, depth)) {
            return known;
        }
        let Some(below) = depth.checked_sub(1) else { return ALL };
        let mut changed = ALL;
        if let Some(code) = self.called_code(target) {
            changed = code.changed;
            for to in &code.goes_to {
                if changed == ALL {
                    break;
                }
                changed |= self.changed_by(*to, below);
            }
        }
        self.called.changed.keep((target, depth), changed)
    }

    /// The function that is entered at `target`; `None` where not all of it is known, or it is no small one.
    fn called_code(&mut self, target: Svma) -> Option<Arc<CalledCode>> {
        if let Some(known) = self.called.code.get(&target) {
            return known;
        }
        let code = self.find_called_code(target).map(Arc::new);
        self.called.code.keep(target, code)
    }

    fn find_called_code(&mut self, target: Svma) -> Option<CalledCode> {
        let function = self.function_at_once(target, limit::MAX_CALLED_INSTRUCTIONS)?;
        let entry = function.index_of(target)?;
        if !function.entrances(entry).is_entry {
            return None;
        }
        let mut goes_to = Vec::new();
        for at in 0..function.n_instructions() {
            match function.exit(at) {
                Exit::Call(target) => goes_to.push(Svma(target?)),
                Exit::Jump(target) | Exit::Branch(target)
                    if function.index_of(Svma(target)).is_none() =>
                {
                    goes_to.push(Svma(target));
                }
                Exit::Indirect if function.jump_table(at).is_none() => return None,
                Exit::System => return None,
                _ => {}
            }
        }
        goes_to.sort_unstable();
        goes_to.dedup();
        if goes_to.len() > limit::MAX_CALLED_BY_ONE {
            return None;
        }
        let changed = RegisterUse::of(&function).changed();
        Some(CalledCode { changed, goes_to: goes_to.into() })
    }

    /// The flow graph of the function around `svma`, which is looked at once and not kept; `None` for more than so many
    /// instructions. None is made of code that calls what is not written out.
    fn function_at_once(
        &mut self,
        svma: Svma,
        max_instructions: usize,
    ) -> Option<Arc<FunctionCode>> {
        let debug = self.debug.as_mut();
        let mut evidence = Evidence { code: &self.code, frames: &self.frames, debug };
        let extent = evidence.extent(svma)?;
        let n_bytes = usize::try_from(extent.end.offset_from(extent.start)?).ok()?;
        if n_bytes > max_instructions * scan::MAX_INSTRUCTION_BYTES {
            return None;
        }
        let function = match self.functions.get(&extent.start) {
            Some(known) => Arc::clone(known),
            None => {
                let outline = evidence.outline(extent).ok()?;
                let mut parts = outline.parts.iter();
                if parts.any(|part| scan::leaves_to_unknown(part.start, &part.code)) {
                    return None;
                }
                Arc::new(FunctionCode::of(&outline, &self.code).ok()?)
            }
        };
        (function.n_instructions() <= max_instructions).then_some(function)
    }
}
