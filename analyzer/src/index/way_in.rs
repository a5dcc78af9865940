//! The ways into a function: its names, pointers to it, jumps of others, and whether its own lead back to it.

use crate::elf::linkage::LinkageSlot;
use crate::index::entered::{ComesBack, EnteredFunction, WaysIn};
use crate::index::function_type::Casts;
use crate::index::load_object::LoadObjectIndex;
use crate::limit;
use crate::x86_64::abi::dwarf_number;
use crate::x86_64::exit::{Destination, Exit};
use crate::x86_64::function::FunctionCode;
use crate::x86_64::pointer::CodePointer;
use dataspace_proto::address::Svma;
use std::sync::Arc;

/// The static pointers whose content is followed.
#[derive(Clone, Copy)]
enum Followed {
    /// Those where only the loader writes.
    Loaded,
    /// All, with what the file has there.
    First,
}

impl LoadObjectIndex {
    /// Finds by what the function at `start` can be entered.
    pub(crate) fn entered(&mut self, start: Svma) -> EnteredFunction {
        let crossings = self.code.crossings(self.frames.starts());
        let has_jump = crossings.and_then(|it| it.jumps_to(start)) != Some(false);
        // By a name, or by what is chosen at load time, a linkage stub of anybody may jump here.
        let names = self.names().at(start).to_vec();
        let is_only_called = !has_jump && names.is_empty() && self.names().stubs(start).is_empty();
        let comes_back = match self.pointers_left_by(start, Followed::Loaded) {
            None => ComesBack::ByJump,
            Some(leaving) if leaving.is_empty() => ComesBack::Never,
            Some(_) if is_only_called && self.is_pointed_to(start) == Some(false) => {
                ComesBack::Never
            }
            Some(_) => match self.pointers_left_by(start, Followed::First) {
                Some(leaving) if leaving.is_empty() => ComesBack::Unlikely,
                _ => ComesBack::ByPointer,
            },
        };
        let [pointers, loaded] = self.code.places_of_pointers();
        EnteredFunction {
            names,
            held_at: self.code.places_of(start),
            pointers,
            loaded,
            comes_back,
            is_only_called,
            is_taken: self.is_taken(start),
        }
    }

    /// Finds the ways into the function at `start` that are by pointers; `None` where they are too many.
    pub(crate) fn ways_in(&mut self, start: Svma) -> Option<WaysIn> {
        let leaving = self.pointers_left_by(start, Followed::Loaded)?;
        let mut onward = leaving.iter().map(|at| {
            let function = self.function(*at).ok()?;
            self.pointed_prototype(*at, function.pointer(function.index_of(*at)?)?)
        });
        let first = onward.next().flatten();
        let onward = first.filter(|first| onward.all(|it| it.as_ref() == Some(first)));
        let jumps = self.pointer_jumps()?;
        let function_type = self.prototype_at(start);
        let (mut elsewhere, mut dropping, mut put) = (Vec::new(), Vec::new(), Vec::new());
        let taken = function_type.as_deref();
        for (at, jump) in (0..).zip(jumps.iter()) {
            if !jump.may_be_of(taken, Casts::Dropping) || !self.may_lead(jump, start) {
                elsewhere.push(at);
                continue;
            }
            if !jump.may_be_of(taken, Casts::Keeping) {
                dropping.push(at);
            }
            if self.is_put_into(jump, start) {
                put.push(at);
            }
        }
        Some(WaysIn { function_type, onward, jumps, elsewhere, dropping, put })
    }

    /// Lists the jumps by pointers that are met on the written jumps out of the function at `start`; `None` where those
    /// lead back to it in the end, or that is not known. It is assumed that functions of other load objects do not jump
    /// here.
    fn pointers_left_by(&mut self, start: Svma, followed: Followed) -> Option<Vec<Svma>> {
        let mut left_to = vec![start];
        let mut leaving = Vec::new();
        let mut next = 0;
        while let Some(at) = left_to.get(next) {
            let function = self.function(*at).ok()?;
            for (at, target) in self.leaving(&function, followed, start) {
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

    /// The target of an indirect jump of a function, which may go by a register that it has read a static pointer into.
    fn destination(&mut self, function: &Arc<FunctionCode>, at: usize) -> Option<Destination> {
        let Some(CodePointer::Register(register)) = function.pointer(at) else {
            return function.destination(at);
        };
        let svma = function.svma(at)?;
        self.with_sums(function, |sums| sums.function_in(svma, dwarf_number(register)))?
    }

    /// Lists the jumps out of a function to others of its load object, each with its target if that is written out. What
    /// leads back is the function at `start`.
    fn leaving(
        &mut self,
        function: &Arc<FunctionCode>,
        followed: Followed,
        start: Svma,
    ) -> Vec<(Svma, Option<Svma>)> {
        let inside = function.leaps_inside();
        let mut found = Vec::new();
        for at in 0..function.n_instructions() {
            let Some(svma) = function.svma(at) else { continue };
            let target = match function.exit(at) {
                Exit::Jump(target) | Exit::Branch(target) => Some(Svma(target)),
                Exit::Indirect if inside.contains(&(at as u32)) => continue,
                Exit::Indirect => match (self.destination(function, at), followed) {
                    (Some(Destination::Slot(slot)), _)
                        if self.code.linkage().at(slot).is_some() =>
                    {
                        let slot = self.code.linkage().at(slot).cloned();
                        found.extend(self.linked_to(slot.as_ref()).map(|to| (svma, Some(to))));
                        continue;
                    }
                    (Some(Destination::Slot(slot)), Followed::Loaded) => {
                        self.code.loaded_pointer(slot)
                    }
                    (Some(Destination::Slot(slot)), Followed::First) => {
                        // What code puts there later leads back.
                        let is_put = self.is_put_at(slot, start);
                        self.code.first_content(slot).filter(|_| !is_put)
                    }
                    (Some(Destination::Code(target)), _) => Some(target),
                    (None, _) => None,
                },
                _ => continue,
            };
            if target.is_some_and(|target| function.index_of(target).is_some()) {
                continue;
            }
            match target.filter(|target| self.code.is_linkage(*target)) {
                None => found.push((svma, target)),
                Some(stub) => {
                    let slot = self.code.linkage_stub(stub).cloned();
                    found.extend(self.linked_to(slot.as_ref()).map(|to| (svma, Some(to))));
                }
            }
        }
        found
    }

    /// The function of the load object itself that the loader may put into a slot.
    fn linked_to(&mut self, slot: Option<&LinkageSlot>) -> Option<Svma> {
        let Some(LinkageSlot::Address(name)) = slot else { return None };
        self.names().start_of(name)
    }
}
