//! The data flow of a load object's functions: worked out when it is asked for, with what callers pass.

use crate::dataflow::{
    Address, Argument, Content, Dataflow, Depth, Following, Given, PointerCell, Surroundings,
};
use crate::dwarf::code::kept::FunctionScope;
use crate::dwarf::debug_info::DebugInfo;
use crate::elf::thunk::Thunk;
use crate::index::load_object::LoadObjectIndex;
use crate::limit;
use crate::x86_64::abi::ARGUMENTS;
use crate::x86_64::function::FunctionCode;
use dataspace_proto::address::Svma;
use std::sync::Arc;

/// Arguments that a function is given in some registers, whoever calls it.
pub(crate) struct PassedByAll(Vec<Argument>);

impl PassedByAll {
    /// No caller yet.
    pub(crate) fn new(registers: &[u8]) -> Self {
        let nothing = |register: &u8| Argument { register: *register, content: Content::Bottom };
        Self(registers.iter().map(nothing).collect())
    }

    /// Adds what one caller passes. What is not known of it may be anything.
    pub(crate) fn add(&mut self, passed: Vec<Option<Content>>) {
        for (Argument { content, .. }, passed) in self.0.iter_mut().zip(passed) {
            let passed = passed.unwrap_or(Content::Top);
            *content = std::mem::replace(content, Content::Bottom).join(passed);
        }
    }

    /// Tells whether nothing more can come of it.
    fn is_hopeless(&self) -> bool {
        self.0.iter().all(|argument| argument.content == Content::Top)
    }

    /// The arguments that are addresses for all of them.
    pub(crate) fn addresses(mut self) -> Vec<Argument> {
        self.0.retain(|argument| matches!(argument.content, Content::Address(_)));
        self.0
    }
}

impl LoadObjectIndex {
    /// The values of the function around `svma`, lent out; `None` where they are too many.
    pub(crate) fn dataflow(&mut self, svma: Svma) -> Option<Box<Dataflow>> {
        let function = self.function(svma).ok()?;
        let start = function.start()?;
        if let Some(known) = self.flows.take((start, true)) {
            return Some(known);
        }
        let known = self.flows.take((start, false));
        let (open, followed) = match &known {
            Some(known) => (known.open_parameters().to_vec(), None),
            None => {
                let followed = self.follow(&function, svma, Depth::Named)?;
                (followed.open_parameters(), Some(followed))
            }
        };
        let given = self.given_to(&function, svma, &open);
        let followed = match (known, followed) {
            (Some(known), _) if given.is_empty() => return Some(known),
            (_, Some(followed)) => followed,
            (_, None) => self.follow(&function, svma, Depth::Named)?,
        };
        self.settled(followed, &function, svma, &given)
    }

    /// Finds what all callers pass in the registers that the function says nothing of.
    fn given_to(&mut self, function: &FunctionCode, svma: Svma, open: &[u8]) -> Vec<Argument> {
        let Some(start) = function.start().filter(|_| !open.is_empty()) else { return Vec::new() };
        // The registers of arguments are C's.
        let debug = self.debug.as_mut();
        if debug.is_some_and(|debug| debug.unit_of_code(svma).is_some_and(|unit| debug.is_go(unit)))
        {
            return Vec::new();
        }
        if let Some(known) = self.flows.given.get(&start) {
            return known;
        }
        let mut n_sites = limit::MAX_CALLER_SITES;
        let mut given = self.given(function, svma, open, &mut n_sites);
        self.add_pointed(svma, start, open, &mut given);
        if self.is_unfinished() { given } else { self.flows.given.keep(start, given) }
    }

    /// Adds what all code that reaches a function passes in the registers of which its callers do not tell it.
    fn add_pointed(&mut self, svma: Svma, start: Svma, open: &[u8], given: &mut Vec<Argument>) {
        let range = self.debug.as_mut().and_then(|debug| debug.function_range_at(svma));
        let entry = range.map_or(start, |(entry, _)| entry);
        for register in open.iter().copied() {
            let cell = PointerCell::Parameter(entry, register);
            if let Some(content) = self.points_to.content(cell)
                && given.iter().all(|known| known.register != register)
            {
                given.push(Argument { register, content: content.clone() });
            }
        }
    }

    /// Finds what is said of the function around `svma`, and what a thunk gets whoever calls it.
    fn scope_of_function(&mut self, svma: Svma) -> Option<(Arc<FunctionScope>, Option<Argument>)> {
        let debug = self.debug.as_mut()?;
        Some(match Thunk::at(svma, &self.code.image) {
            Some(thunk) => {
                let object = adjusted_argument(debug, thunk);
                (debug.function_at(thunk.method)?, object)
            }
            None => (debug.function_at(svma)?, None),
        })
    }

    pub(crate) fn follow(
        &mut self,
        function: &Arc<FunctionCode>,
        svma: Svma,
        depth: Depth,
    ) -> Option<Following> {
        let start = function.start()?;
        if self.flows.too_large.get(&start).is_some() {
            return None;
        }
        let (scope, given) = self.scope_of_function(svma)?;
        let effects = self.call_effects(function);
        let debug = self.debug.as_mut()?;
        let points_to = &self.points_to;
        let mut around =
            Surroundings { debug, image: &self.code, function, scope: &scope, points_to };
        let followed =
            Following::of(function, &self.frames, &effects, &mut around, given.as_slice(), depth);
        if followed.is_none() && depth == Depth::Named {
            self.flows.too_large.keep(start, ());
        }
        followed
    }

    /// The values that were followed, with what callers pass.
    fn settled(
        &mut self,
        mut followed: Following,
        function: &FunctionCode,
        svma: Svma,
        given: &[Argument],
    ) -> Option<Box<Dataflow>> {
        let (scope, _) = self.scope_of_function(svma)?;
        let (debug, points_to) = (self.debug.as_mut()?, &self.points_to);
        let mut around =
            Surroundings { debug, image: &self.code, function, scope: &scope, points_to };
        if !given.is_empty() {
            followed.type_with(&mut around, given);
        }
        let mut settled = followed.settled(&mut around);
        settled.is_given = !given.is_empty();
        Some(Box::new(settled))
    }

    /// Finds what the direct callers of a function pass in the registers that it says nothing of. Those
    /// that pass different things say nothing. `n_sites` calls are looked at, those of callers that
    /// pass on what they were given among them.
    fn given(
        &mut self,
        function: &FunctionCode,
        svma: Svma,
        open: &[u8],
        n_sites: &mut usize,
    ) -> Vec<Argument> {
        let range = self.debug.as_mut().and_then(|debug| debug.function_range_at(svma));
        let entry = range.map(|(start, _)| start);
        let Some(entry) = entry.filter(|entry| function.index_of(*entry).is_some()) else {
            return Vec::new();
        };
        let sites: Vec<Svma> = self.calls().to(entry).take(limit::MAX_CALLERS).collect();
        if sites.is_empty() {
            return self.given_back(entry, open, n_sites);
        }
        let mut given = PassedByAll::new(open);
        for site in sites {
            if given.is_hopeless() {
                break;
            }
            if function.index_of(site).is_some() {
                continue;
            }
            // Those that are not looked at may pass something else.
            let Some(left) = n_sites.checked_sub(1) else { return Vec::new() };
            *n_sites = left;
            if let Some(passed) = self.passed_by(site, entry, open, n_sites) {
                given.add(passed);
            }
        }
        given.addresses()
    }

    /// Finds what the call of `entry` at `site` passes in each register, as far as its function can be
    /// followed; `None` where there is no call, but other bytes that look like one.
    fn passed_by(
        &mut self,
        site: Svma,
        entry: Svma,
        registers: &[u8],
        n_sites: &mut usize,
    ) -> Option<Vec<Option<Content>>> {
        let nothing = vec![None; registers.len()];
        let Ok(function) = self.function(site) else { return Some(nothing) };
        if function.exit(function.index_of(site)?).target() != Some(entry) {
            return None;
        }
        let is_small = function.n_instructions() <= limit::MAX_CALLER_INSTRUCTIONS;
        let caller = if is_small { self.own_dataflow(site) } else { None };
        let Some(caller) = caller else { return Some(nothing) };
        let own = |register: &u8| caller.passed(site, *register, self.debug.as_mut()?);
        let mut passed: Vec<Option<Content>> = registers.iter().map(own).collect();
        let open = (0..).zip(registers).filter(|(place, _)| passed[*place].is_none());
        let passed_on = open.filter_map(|(place, it)| Some((place, caller.given(site, *it)?)));
        let passed_on: Vec<(usize, Given)> = passed_on.collect();
        self.keep_dataflow(site, caller);
        for (place, Given { register, distance }) in passed_on {
            let given = self.given(&function, site, &[register], n_sites);
            passed[place] = given.into_iter().next().map(|given| match given.content {
                Content::Address(address) => Content::Address(address.shifted(distance)),
                other => other,
            });
        }
        Some(passed)
    }

    /// The values of the function around `svma`, without what its callers pass: one of them is known.
    pub(crate) fn own_dataflow(&mut self, svma: Svma) -> Option<Box<Dataflow>> {
        let function = self.function(svma).ok()?;
        let start = function.start()?;
        if let Some(known) = self.flows.take((start, false)) {
            return Some(known);
        }
        let followed = self.follow(&function, svma, Depth::Named)?;
        self.settled(followed, &function, svma, &[])
    }

    /// Takes back what [`Self::dataflow`] or [`Self::own_dataflow`] lent. Where callers pass nothing
    /// that was not known, the two are one.
    pub(crate) fn keep_dataflow(&mut self, svma: Svma, flow: Box<Dataflow>) {
        if self.is_unfinished() {
            // What was worked out without all variables is worked out again.
            return;
        }
        let start = self.function(svma).ok().and_then(|function| function.start());
        if let Some(start) = start {
            self.flows.put((start, flow.is_given), flow);
        }
    }
}

/// Works out what a thunk gets in place of the object that its method is declared to get.
fn adjusted_argument(debug: &mut DebugInfo, thunk: Thunk) -> Option<Argument> {
    let method = debug.function_entered_at(thunk.method)?;
    let object = *debug.parameter_types(method).first()?;
    let object = debug.layout(object).pointee?;
    let layout = debug.layout(object);
    let content = Content::Address(Address::object(layout, thunk.offset, None));
    Some(Argument { register: ARGUMENTS[0], content })
}
