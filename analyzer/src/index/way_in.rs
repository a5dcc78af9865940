//! The ways into a function: its names, pointers to it, jumps of others, and whether its own lead back to it.

use crate::index::entered::{ComesBack, EnteredFunction, WaysIn};
use crate::index::load_object::LoadObjectIndex;
use crate::limit;
use crate::x86_64::exit::{Destination, Exit};
use crate::x86_64::function::FunctionCode;
use dataspace_proto::address::Svma;

impl LoadObjectIndex {
    /// Finds by what the function at `start` can be entered.
    pub(crate) fn entered(&mut self, start: Svma) -> EnteredFunction {
        let crossings = self.code.crossings(self.frames.starts());
        let has_jump = crossings.and_then(|it| it.jumps_to(start)) != Some(false);
        // By a name, or by what is chosen at load time, a linkage stub of anybody may jump here.
        let names = self.names().at(start).to_vec();
        let is_only_called = !has_jump && names.is_empty() && self.names().stubs(start).is_empty();
        let comes_back = match self.pointers_left_by(start) {
            None => ComesBack::ByJump,
            Some(leaving) if leaving.is_empty() => ComesBack::Never,
            Some(_) => ComesBack::ByPointer,
        };
        let [pointers, loaded] = self.code.places_of_pointers();
        EnteredFunction {
            names,
            held_at: self.code.places_of(start),
            pointers,
            loaded,
            comes_back,
            is_only_called,
        }
    }

    /// Finds the ways into the function at `start` that are by pointers; `None` where they are too many.
    pub(crate) fn ways_in(&mut self, start: Svma) -> Option<WaysIn> {
        let leaving = self.pointers_left_by(start)?;
        let mut onward = leaving.iter().map(|at| {
            let function = self.function(*at).ok()?;
            self.pointed_prototype(*at, function.pointer(function.index_of(*at)?)?)
        });
        let first = onward.next().flatten();
        let onward = first.filter(|first| onward.all(|it| it.as_ref() == Some(first)));
        let jumps = self.pointer_jumps()?;
        let function_type = self.prototype_at(start);
        let mut elsewhere = Vec::new();
        for (at, jump) in (0..).zip(jumps.iter()) {
            if !self.may_lead(jump, start, function_type.as_deref()) {
                elsewhere.push(at);
            }
        }
        Some(WaysIn { function_type, onward, jumps, elsewhere })
    }

    /// Lists the jumps by pointers that are met on the written jumps out of the function at `start`; `None` where those
    /// lead back to it in the end, or that is not known. It is assumed that functions of other load objects do not jump
    /// here.
    fn pointers_left_by(&mut self, start: Svma) -> Option<Vec<Svma>> {
        let mut left_to = vec![start];
        let mut leaving = Vec::new();
        let mut next = 0;
        while let Some(at) = left_to.get(next) {
            let function = self.function(*at).ok()?;
            for (at, target) in self.leaving(&function) {
                match target {
                    None => leaving.push(at),
                    Some(target) if target == start => return None,
                    Some(target) if left_to.contains(&target) => {}
                    Some(target) => left_to.push(target),
                }
            }
            next += 1;
            if left_to.len() > limit::MAX_LEFT_TO {
                return None;
            }
        }
        Some(leaving)
    }

    /// Lists the jumps out of a function to others of its load object, each with its target if that is written out.
    fn leaving(&self, function: &FunctionCode) -> Vec<(Svma, Option<Svma>)> {
        let inside = function.leaps();
        let is_elsewhere = |target: &Svma| {
            function.index_of(*target).is_none() && self.code.linkage_slot(*target).is_none()
        };
        let mut found = Vec::new();
        for at in 0..function.n_instructions() {
            let Some(svma) = function.svma(at) else { continue };
            let target = match (function.exit(at), function.destination(at)) {
                (Exit::Jump(target) | Exit::Branch(target), _) => Some(Svma(target)),
                (Exit::Indirect, _) if inside.contains(&(at as u32)) => continue,
                (Exit::Indirect, Some(Destination::Slot(slot))) => {
                    if self.code.linkage().at(slot).is_some() {
                        continue;
                    }
                    self.code.loaded_pointer(slot)
                }
                (Exit::Indirect, _) => None,
                _ => continue,
            };
            if target.as_ref().is_none_or(is_elsewhere) {
                found.push((svma, target));
            }
        }
        found
    }
}
