//! Functions that are called back by the C library: what they are given is what was passed beside their address.

use crate::dataflow::{Address, Argument, Content, Doubt, Origin, Standing};
use crate::index::call_site::CalleeAddress;
use crate::index::flow::PassedByAll;
use crate::index::load_object::LoadObjectIndex;
use crate::known::callback::{CallsBack, HandedOn};
use crate::limit;
use crate::x86_64::abi::ARGUMENTS;
use crate::x86_64::call_table::CallTable;
use crate::x86_64::exit::Exit;
use crate::x86_64::function::FunctionCode;
use crate::x86_64::register_use::{RegisterUse, only};
use crate::x86_64::translation::Translator;
use dataspace_proto::address::Svma;
use std::sync::Arc;

impl LoadObjectIndex {
    /// The instructions that take the address of a function.
    pub(crate) fn addresses(&mut self) -> &CallTable {
        let (code, frames) = (&self.code, &self.frames);
        self.call_cache.addresses.get_or_insert_with(|| {
            CallTable::of_addresses(
                code.executable_ranges(),
                &code.function_starts(frames.starts()),
                code,
            )
        })
    }

    /// Finds what a function is given in some registers that nobody calls but the C library, which it is handed to wherever
    /// its address is taken. Nothing, if its address is in data or known by a name, or a jump leads to it: it may be called
    /// by anybody. `n_sites` calls are looked at.
    pub(crate) fn given_back(
        &mut self,
        entry: Svma,
        registers: &[u8],
        n_sites: &mut usize,
    ) -> Vec<Argument> {
        let are_all = self.calls().is_whole() && self.addresses().is_whole();
        let sites: Vec<Svma> = self.addresses().to(entry).take(*n_sites + 1).collect();
        let has_name = !self.names().at(entry).is_empty();
        if !are_all || has_name || sites.is_empty() || sites.len() > *n_sites {
            return Vec::new();
        }
        *n_sites -= sites.len();
        let mut passed = PassedByAll::new(registers);
        for site in sites {
            let Some(here) = self.given_back_at(site, entry, registers) else {
                return Vec::new();
            };
            passed.add(here);
        }
        let given = passed.addresses();
        if given.is_empty() || !self.is_only_handed(entry) { Vec::new() } else { given }
    }

    /// Tells whether code of the load object has the address of a function.
    pub(crate) fn is_taken(&mut self, entry: Svma) -> bool {
        self.addresses().to(entry).next().is_some()
    }

    /// Tells whether a pointer to a function can be had: data or code has its address, or it has a name for others; `None`
    /// where not all of these are known.
    pub(crate) fn is_pointed_to(&mut self, entry: Svma) -> Option<bool> {
        let is_told = self.is_taken(entry)
            || !self.names().at(entry).is_empty()
            || !self.code.places_of(entry).is_empty();
        if is_told {
            return Some(true);
        }
        let is_known = self.addresses().is_whole()
            && self.code.all_held(limit::MAX_CODE_POINTERS - 1).is_some();
        is_known.then_some(false)
    }

    /// Tells whether nothing but instructions that take its address leads to a function.
    fn is_only_handed(&mut self, entry: Svma) -> bool {
        let crossings = self.code.crossings(self.frames.starts());
        let has_jump = crossings.and_then(|it| it.jumps_to(entry)) != Some(false);
        let is_held = || {
            let known = !self.code.places_of(entry).is_empty();
            known || !self.code.open_places(&[entry]).is_empty()
        };
        !has_jump && self.code.is_data_searched() && !is_held()
    }

    /// Finds what a function is given by that of the library which it is handed to at `site`, where its address is taken;
    /// `None` where it goes elsewhere.
    fn given_back_at(
        &mut self,
        site: Svma,
        entry: Svma,
        registers: &[u8],
    ) -> Option<Vec<Option<Content>>> {
        let function = self.function(site).ok()?;
        // Of itself the values are being worked out.
        let is_small = function.n_instructions() <= limit::MAX_CALLER_INSTRUCTIONS;
        if function.index_of(entry).is_some() || !is_small {
            return None;
        }
        let at = instruction_around(&function, site)?;
        let call = call_after(&function, at)?;
        let name = match self.target(function.destination(call)) {
            CalleeAddress::Named(name) => name,
            CalleeAddress::At(starts) => match starts[..] {
                [start] => Arc::clone(self.names().at(start).first()?),
                _ => return None,
            },
            CalleeAddress::Unknown => return None,
        };
        let calls_back = CallsBack::named(&name)?;
        let handed = ARGUMENTS[usize::from(calls_back.function)];
        // In another register, or in memory, it may outlive the call.
        let action = Translator::new(&function).action(at)?;
        let is_kept = RegisterUse::of(&function).read_in(at + 1..call + 1) & only(handed) != 0;
        if is_kept || !matches!(&action.assignments[..], [taken] if taken.to == handed) {
            return None;
        }
        let svma = function.svma(call)?;
        let caller = self.own_dataflow(svma)?;
        let is_handed = match caller.register(svma, handed.into()) {
            Content::Address(Address { origin: Origin::Static, offset, .. }) => offset.only(),
            Content::Constant(number) => Some(number),
            _ => None,
        } == Some(entry.0.cast_signed());
        let mut given = |register: &u8| {
            let to = ARGUMENTS.iter().position(|argument| argument == register)?;
            let handed_on = calls_back.given.iter().find(|it| usize::from(it.to) == to)?;
            let from = ARGUMENTS[usize::from(handed_on.from)];
            let passed = caller.passed(svma, from, self.debug.as_mut()?)?;
            match handed_on {
                HandedOn { element_bytes: None, .. } => Some(passed),
                HandedOn { element_bytes: Some(size), .. } => {
                    let size = ARGUMENTS[usize::from(*size)];
                    element(&passed, &caller.register(svma, size.into()))
                }
            }
        };
        let given = is_handed.then(|| registers.iter().map(&mut given).collect());
        self.keep_dataflow(svma, caller);
        given
    }
}

/// The instruction that a byte is of.
fn instruction_around(function: &FunctionCode, byte: Svma) -> Option<usize> {
    let at = function.first_from(Svma(byte.0 + 1)).checked_sub(1)?;
    function.code(at)?.contains(&byte.0).then_some(at)
}

/// The call, or the jump out of the function, that the instruction at `at` leads to and nothing else does.
fn call_after(function: &FunctionCode, at: usize) -> Option<usize> {
    for next in at + 1..(at + 1 + limit::MAX_PASSED_BEFORE_CALL).min(function.n_instructions()) {
        if !function.is_after_one(next) {
            return None;
        }
        match function.exit(next) {
            Exit::Call(_) => return Some(next),
            Exit::Jump(target) if function.index_of(Svma(target)).is_none() => return Some(next),
            Exit::Indirect => return function.destination(next).map(|_| next),
            Exit::Next => {}
            _ => return None,
        }
    }
    None
}

/// Any element of an array that is handed over with the size of one.
fn element(array: &Content, size: &Content) -> Option<Content> {
    let (Content::Address(address), Content::Constant(size)) = (array, size) else { return None };
    let Origin::Object(layout) = &address.origin else { return None };
    // Behind a structure may be what it is the header of.
    let doubts = [Doubt::Which, Doubt::Beyond, Doubt::Owner, Doubt::Whole];
    if doubts.into_iter().any(|doubt| address.has(doubt)) || address.standing == Standing::Aside {
        return None;
    }
    let element = layout.innermost_element();
    let is_whole = u64::try_from(*size).is_ok_and(|size| size == element.size) && *size != 0;
    let start = address.offset.only()?.checked_rem(*size)?;
    (is_whole && start == 0).then(|| Content::Address(Address::object(element, 0, None)))
}
