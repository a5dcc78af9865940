//! Calls: what they pass, what they show to code that is not followed, and what comes back.

use super::Collector;
use crate::dataflow::address::{Address, Origin};
use crate::dataflow::content::Content;
use crate::dataflow::pointer_cell::PutPlace;
use crate::dataflow::points_to::{Included, PassedValues, PointerCell};
use crate::dataflow::value::{Call, ValueIdx};
use crate::known::borrower;
use crate::types::die::DieRef;
use crate::x86_64::abi::{ARGUMENTS, N_ARGUMENTS};
use crate::x86_64::exit::Exit;
use dataspace_proto::address::Svma;
use std::sync::Arc;

impl Collector<'_, '_, '_> {
    /// Notes that bytes are written to where a pointer to nothing known leads.
    fn write_to(&mut self, to: ValueIdx) {
        if self.typing.of(to).is_untold() {
            for it in self.included(to) {
                if let Included::Cell(cell) = it {
                    self.found.write(cell);
                }
            }
        }
    }

    /// Notes that memory is copied from one place to another.
    pub(super) fn copy(&mut self, to: ValueIdx, from: ValueIdx) {
        self.write_to(to);
        let (to, from) = (self.typing.of(to).clone(), self.typing.of(from).clone());
        let (place, source) = (self.typing.put_place(&to), self.typing.put_place(&from));
        if place.cells != source.cells || place.cells.len() > 1 {
            place.cells.iter().for_each(|cell| self.found.put(*cell, Included::Anything));
        }
        let Some(layout) = self.typing.object_layout(&to) else { return };
        let source = self.typing.object_layout(&from);
        let is_same = source.is_some_and(|source| source.geometry == layout.geometry)
            && is_at_same_offset(&to, &from);
        if !is_same {
            let cell = self.exposed(&layout, false);
            self.found.put(cell, Included::Anything);
        }
    }

    /// Notes what a call passes.
    pub(super) fn pass(&mut self, call: &Call) {
        let callee = self.typing.callee(call);
        let target = self.typing.direct_target(call);
        let target = target.filter(|target| self.typing.is_described(*target));
        let wanted = self.wanted(call, callee, target);
        if let Some(target) = target {
            let passed = self.passed(call, &wanted, false, true);
            return self.give(target, &passed);
        }
        let by = match call.callee {
            Some(callee) => self.included(callee),
            _ => vec![Included::Anything],
        };
        let name = self.typing.library_name(call);
        if name.as_deref().is_some_and(borrower::copies) {
            return self.copy(call.arguments[0], call.arguments[1]);
        }
        let is_borrowed = name.as_deref().is_some_and(borrower::is_known);
        let registers = self.passed(call, &wanted, is_borrowed, name.is_some());
        let exposed = match is_borrowed {
            true => Vec::new(),
            false => self.shown(call, &wanted, callee.is_none()),
        };
        let result = callee.filter(|_| !is_borrowed);
        let exposed = exposed.into_iter().chain(result.and_then(|it| self.returned(it)));
        let passed = Arc::new(PassedValues { registers, exposed: exposed.collect() });
        for by in by {
            match by {
                Included::Cell(by) => self.found.call(by, &passed),
                Included::Function(target) => self.give(target, &passed.registers),
                Included::Object(_) | Included::Anything => {
                    passed.registers.iter().for_each(|included| self.lose(included));
                    let exposed = passed.exposed.iter();
                    exposed.for_each(|it| self.found.put(*it, Included::Anything));
                }
            }
        }
    }

    /// Notes that a function gets values in the registers of arguments.
    fn give(&mut self, target: Svma, registers: &[Vec<Included>; N_ARGUMENTS]) {
        for (register, included) in ARGUMENTS.into_iter().zip(registers) {
            let cell = PointerCell::Parameter(target, register);
            included.iter().for_each(|it| self.found.put(cell, it.clone()));
        }
    }

    /// The content that the callee is declared to get in each register of arguments that it gets something in.
    fn wanted(
        &mut self,
        call: &Call,
        callee: Option<DieRef>,
        target: Option<Svma>,
    ) -> Vec<Content> {
        let declared = callee.map(|callee| self.typing.parameters(call, callee));
        let n_passed = self.typing.n_passed(callee, target);
        let wanted = declared.map_or(vec![Content::Unknown; N_ARGUMENTS], |it| it.to_vec());
        wanted.into_iter().take(n_passed).collect()
    }

    /// Lists what a call passes in each register in which the callee wants what its type does not tell; if it is not `named`, what
    /// is called may be declared otherwise.
    fn passed(
        &mut self,
        call: &Call,
        wanted: &[Content],
        is_borrowed: bool,
        is_named: bool,
    ) -> [Vec<Included>; N_ARGUMENTS] {
        let mut passed = [const { Vec::new() }; N_ARGUMENTS];
        for ((argument, wanted), passed) in call.arguments.into_iter().zip(wanted).zip(&mut passed)
        {
            if matches!(wanted, Content::Number(_) | Content::Constant(_)) {
                continue;
            }
            let included = self.included(argument);
            for it in &included {
                if let Included::Object(Address { origin: Origin::Object(layout), .. }) = it {
                    // It may be written to as bytes.
                    let layout = Arc::clone(layout);
                    self.exposed(&layout, false);
                }
            }
            if !is_borrowed {
                self.give_slot(argument, &PutPlace::default(), wanted);
            }
            if wanted.is_untold() || !is_named {
                *passed = included;
            } else {
                self.lose(&included);
            }
        }
        passed
    }

    /// Lists the types of objects that a call shows to whatever it calls.
    fn shown(&mut self, call: &Call, wanted: &[Content], is_undeclared: bool) -> Vec<PointerCell> {
        let mut shown = Vec::new();
        for (argument, wanted) in call.arguments.into_iter().zip(wanted) {
            let declared = self.typing.object_layout(wanted).and_then(|it| match &*it {
                layout if layout.is_aggregate() => Some(it),
                pointer => self.typing.around.debug.pointed_aggregate(pointer),
            });
            let passed = self.typing.of(argument).clone();
            if wanted.is_untold() {
                self.write_to(argument);
            }
            let cell = match (declared, wanted) {
                (Some(declared), _) => Some(self.exposed(&declared, true)),
                (None, Content::Number(_)) => None,
                (None, _) => {
                    let layout = self.typing.structure_at(&passed);
                    layout.map(|layout| self.exposed(&layout, is_undeclared))
                }
            };
            shown.extend(cell);
        }
        shown
    }

    /// The objects that a function of others returns.
    fn returned(&mut self, callee: DieRef) -> Option<PointerCell> {
        let (layout, _) = self.typing.result_of(callee)?;
        let pointed = self.typing.around.debug.pointed_aggregate(&layout)?;
        Some(self.exposed(&pointed, true))
    }

    /// Notes what the function returns: also what those return that it goes on to.
    pub(super) fn give_back(&mut self) {
        let own = self.typing.around.scope.die;
        let Some((layout, _)) = own.and_then(|own| self.typing.result_of(own)) else { return };
        let declared = self.typing.content_of(&layout, None);
        let result = PointerCell::Result(self.entry);
        let is_carried = self.typing.around.debug.is_carrier(&layout);
        let place = if is_carried { PutPlace::cell(result) } else { PutPlace::default() };
        for value in self.typing.graph.returned.clone() {
            self.put(value, &place, &declared);
        }
        if !is_carried {
            return;
        }
        self.found.returning.insert(self.entry);
        for call in self.typing.graph.calls.clone() {
            let function = self.typing.around.function;
            let exit = function.exit(call.at as usize);
            if matches!(exit, Exit::Call(_) | Exit::System) {
                continue;
            }
            let target = exit.target().filter(|target| self.typing.is_described(*target));
            let given = target
                .map_or(Included::Anything, |target| Included::Cell(PointerCell::Result(target)));
            self.found.put(result, given);
        }
    }
}

/// Tells whether two pointers lead to the same place of their objects.
fn is_at_same_offset(first: &Content, second: &Content) -> bool {
    match (first, second) {
        (Content::Address(first), Content::Address(second)) => {
            match (&first.origin, &second.origin) {
                (Origin::Object(_), Origin::Object(_)) => first.offset == second.offset,
                // Whole variables.
                _ => true,
            }
        }
        _ => false,
    }
}
