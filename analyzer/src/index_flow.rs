//! The data flow of a load object's functions: worked out when it is asked for, with what callers pass.

use crate::dataflow::{ARGUMENTS, Address, Argument, Content, Dataflow, Surroundings};
use crate::dwarf::DebugInfo;
use crate::index::LoadObjectIndex;
use crate::limit;
use crate::thunk::Thunk;
use crate::x86_64::function::FunctionCode;
use dataspace_proto::address::Svma;
use std::sync::Arc;

impl LoadObjectIndex {
    /// The values of the function around `svma`, lent out; `None` where they are too many.
    pub(crate) fn dataflow(&mut self, svma: Svma) -> Option<Box<Dataflow>> {
        let function = self.function(svma).ok()?;
        let start = Svma(function.instruction(0)?.ip());
        if let Some(known) = self.flows.take((start, true)) {
            return Some(known);
        }
        let flow = match self.flows.take((start, false)) {
            Some(known) => known,
            None => self.new_dataflow(&function, svma, &[])?,
        };
        let open = flow.open_parameters();
        if open.is_empty() {
            return Some(flow);
        }
        let given = match self.flows.given(start) {
            Some(known) => known,
            None => {
                let mut n_sites = limit::MAX_CALLER_SITES;
                let given = self.given(&function, svma, &open, &mut n_sites);
                if !self.is_unfinished() {
                    self.flows.put_given(start, given.clone());
                }
                given
            }
        };
        if given.is_empty() { Some(flow) } else { self.new_dataflow(&function, svma, &given) }
    }

    fn new_dataflow(
        &mut self,
        function: &Arc<FunctionCode>,
        svma: Svma,
        given: &[Argument],
    ) -> Option<Box<Dataflow>> {
        let debug = self.debug.as_mut()?;
        let mut given = given.to_vec();
        let thunk = Thunk::at(svma, &self.code.image);
        let scope = match thunk {
            Some(thunk) => {
                given.extend(adjusted_argument(debug, thunk));
                debug.function_at(thunk.method)?
            }
            None => debug.function_at(svma)?,
        };
        let mut around = Surroundings { debug, image: &self.code, function, scope: &scope };
        Dataflow::of(function, &self.frames, &mut around, &given).map(Box::new)
    }

    /// What the direct callers of a function pass in the registers that it says nothing of. Those
    /// that pass different things say nothing. `n_sites` calls are looked at, those of callers that
    /// pass on what they were given among them.
    fn given(
        &mut self,
        function: &FunctionCode,
        svma: Svma,
        open: &[u8],
        n_sites: &mut usize,
    ) -> Vec<Argument> {
        let entry = self.debug.as_mut().and_then(|debug| debug.function_scope_start(svma));
        let Some(entry) = entry.filter(|entry| function.index_of(*entry).is_some()) else {
            return Vec::new();
        };
        let sites: Vec<Svma> = self.calls().to(entry).take(limit::MAX_CALLERS).collect();
        let mut given: Vec<(u8, Option<Content>)> =
            open.iter().map(|register| (*register, Some(Content::Unseen))).collect();
        for site in sites {
            // Nothing more can come of it.
            if given.iter().all(|(_, content)| *content == Some(Content::Mixed)) {
                break;
            }
            if function.index_of(site).is_some() {
                continue;
            }
            let Some(left) = n_sites.checked_sub(1) else { break };
            *n_sites = left;
            for (place, passed) in self.passed(site, entry, open, n_sites).into_iter().enumerate() {
                if let (Some(passed), Some((_, content))) = (passed, given.get_mut(place)) {
                    *content = content.take().map(|known| known.join(passed));
                }
            }
        }
        let argument = |(register, content): (u8, Option<Content>)| match content {
            Some(content @ Content::Address(_)) => Some(Argument { register, content }),
            _ => None,
        };
        given.into_iter().filter_map(argument).collect()
    }

    /// What the call of `entry` at `site` passes in each register.
    fn passed(
        &mut self,
        site: Svma,
        entry: Svma,
        registers: &[u8],
        n_sites: &mut usize,
    ) -> Vec<Option<Content>> {
        let Some(mut caller) = self.caller_flow(site, entry) else { return Vec::new() };
        let mut passed = Vec::with_capacity(registers.len());
        for register in registers {
            passed.push(match &mut self.debug {
                Some(debug) => caller.passed(site, *register, debug),
                None => None,
            });
        }
        let mut passed_on = Vec::new();
        for (place, register) in registers.iter().enumerate() {
            if passed[place].is_none() {
                passed_on.extend(caller.passed_on(site, *register).map(|from| (place, from)));
            }
        }
        self.keep_dataflow(site, caller, false);
        let Ok(function) = self.function(site) else { return passed };
        for (place, (register, distance)) in passed_on {
            let given = self.given(&function, site, &[register], n_sites);
            passed[place] = given.into_iter().next().map(|given| match given.content {
                Content::Address(address) => Content::Address(address.shifted(distance)),
                other => other,
            });
        }
        passed
    }

    /// The values of the function that calls `entry` at `site`, without what its own callers pass.
    fn caller_flow(&mut self, site: Svma, entry: Svma) -> Option<Box<Dataflow>> {
        let function = self.function(site).ok()?;
        let call = function.instruction(function.index_of(site)?)?;
        // The table holds bytes that look like a call.
        if call.near_branch_target() != entry.0
            || function.n_instructions() > limit::MAX_CALLER_INSTRUCTIONS
        {
            return None;
        }
        let start = Svma(function.instruction(0)?.ip());
        if let Some(known) = self.flows.take((start, false)) {
            return Some(known);
        }
        self.new_dataflow(&function, site, &[])
    }

    /// Takes back what [`Self::dataflow`] lent.
    pub(crate) fn keep_dataflow(&mut self, svma: Svma, flow: Box<Dataflow>, is_given: bool) {
        if self.is_unfinished() {
            // What was worked out without all variables is worked out again.
            return;
        }
        let function = self.function(svma).ok();
        let first = function.and_then(|function| Some(function.instruction(0)?.ip()));
        if let Some(start) = first {
            self.flows.put((Svma(start), is_given), flow);
        }
    }
}

/// What a thunk gets in place of the object that its method is declared to get.
fn adjusted_argument(debug: &mut DebugInfo, thunk: Thunk) -> Option<Argument> {
    let method = debug.function_entered_at(thunk.method)?;
    let object = *debug.parameter_types(method).first()?;
    let object = debug.layout(object).pointee?;
    let layout = debug.layout(object);
    let content = Content::Address(Address::object(layout, thunk.offset, None));
    Some(Argument { register: ARGUMENTS[0], content })
}
