//! Calls, as the worker knows them: where the arguments of a function go in it, and what a call passes.

use crate::dataflow::{
    Address, ArgumentSums, CallEffects, Content, Dataflow, Derived, Doubt, Origin, Slot, Standing,
};
use crate::elf::data_symbol::DataPlace;
use crate::elf::linkage::LinkageSlot;
use crate::index::call_site::{CallSite, CalleeAddress, Handed, Passed, PassedPointer};
use crate::index::entered::JumpCache;
use crate::index::entry_name::{self, Detour, Entries, EntryNames};
use crate::index::load_object::LoadObjectIndex;
use crate::index::site::OwnedRoot;
use crate::index::type_path::owned_root;
use crate::limit::{self, BoundedMap};
use crate::types::layout::{ScalarKind, Shape};
use crate::x86_64::abi::{ARGUMENTS, N_ARGUMENTS};
use crate::x86_64::access::{MemoryAccess, Role, SegmentBase};
use crate::x86_64::call_table::CallTable;
use crate::x86_64::exit::Destination;
use crate::x86_64::function::FunctionCode;
use crate::x86_64::image_bytes::ImageBytes as _;
use dataspace_proto::address::Svma;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Cache of what was worked out of calls, as long as there is room.
#[derive(Debug, Default)]
pub(crate) struct CallCache {
    names: Option<EntryNames>,
    pub(crate) jumps: JumpCache,
    calls: Option<CallTable>,
    pub(crate) addresses: Option<CallTable>,
    /// By the function's first instruction.
    sums: FxHashMap<Svma, Option<Box<ArgumentSums>>>,
    n_values: usize,
    entries: BoundedMap<Svma, Arc<Entries>, { limit::MAX_CACHED_FLOWS }>,
}

impl LoadObjectIndex {
    /// Works out what a caller must know to tell what an access is to that the function around it has no types
    /// for.
    pub(crate) fn handed(&mut self, svma: Svma, memory: &MemoryAccess) -> Option<Arc<Handed>> {
        let address = &memory.address;
        if memory.role == Role::StackSlot || address.segment != SegmentBase::Flat {
            return None;
        }
        let frame = self.frames.step_at(svma)?;
        let function = self.function(svma).ok()?;
        let sum = self.with_sums(&function, |sums| sums.address(svma, address))?;
        let Derived::Sum(sum) = sum else { return None };
        if sum.is_number() {
            return None;
        }
        let sum = if memory.is_repeated { sum.anywhere() } else { sum };
        let entries = self.entries(&function);
        Some(Arc::new(Handed { sum, frame, entries }))
    }

    /// Finds what is known of the call that returns to `behind`.
    pub(crate) fn call_site(&mut self, behind: Svma) -> CallSite {
        self.find_call_site(behind).unwrap_or_default()
    }

    fn find_call_site(&mut self, behind: Svma) -> Option<CallSite> {
        let (function, at) = self.call_before(behind)?;
        let (call, inside) = (function.code(at)?, Svma(behind.0.checked_sub(1)?));
        let pointer = function.pointer(at);
        let pointed = pointer.and_then(|by| self.pointed_prototype(Svma(call.start), by));
        let site = self.site_of(Svma(call.start), &function).unwrap_or_default();
        let onward = site.callee.only().and_then(|start| self.onward(start));
        let frame = self.frames.step_at(inside);
        let onward = onward.unwrap_or_default();
        let scope = self.debug.as_mut().and_then(|debug| debug.function_at(inside));
        let variables = self.frame_slots(scope.as_deref(), inside);
        Some(CallSite { frame, onward, variables, pointed, ..site })
    }

    /// The call, or jump to another function, at `at`.
    fn site_of(&mut self, at: Svma, function: &Arc<FunctionCode>) -> Option<CallSite> {
        let (callee, sums) = self.with_sums(function, |sums| (sums.callee(at), sums.passed(at)))?;
        let contents = self.passed_contents(at).into_iter().zip(sums);
        let mut arguments = contents.map(|(passed, sum)| Passed { sum, ..passed });
        Some(CallSite {
            callee: self.target(callee),
            arguments: std::array::from_fn(|_| arguments.next().unwrap_or_default()),
            entries: self.entries(function),
            ..CallSite::default()
        })
    }

    /// The calls in the last place of the function at `start`.
    fn onward(&mut self, start: Svma) -> Option<Vec<CallSite>> {
        let (function, jumps) = self.last_jumps(start)?;
        Some(jumps.into_iter().filter_map(|jump| self.site_of(jump, &function)).collect())
    }

    /// The function that begins at `start`, and its jumps to others.
    pub(crate) fn last_jumps(&mut self, start: Svma) -> Option<(Arc<FunctionCode>, Vec<Svma>)> {
        let function = self.function(start).ok()?;
        let is_entered = |at| function.entrances(at).is_entry;
        function.index_of(start).filter(|at| is_entered(*at))?;
        let jumps = function.jumps_out()?;
        Some((function, jumps))
    }

    /// The direct calls and jumps of the load object.
    pub(crate) fn calls(&mut self) -> &CallTable {
        let (code, frames) = (&self.code, &self.frames);
        self.call_cache.calls.get_or_insert_with(|| {
            CallTable::read(code.executable_ranges(), &code.function_starts(frames.starts()), code)
        })
    }

    pub(crate) fn names(&mut self) -> &EntryNames {
        let (code, frames) = (&self.code, &self.frames);
        self.call_cache.names.get_or_insert_with(|| EntryNames::load(code, frames))
    }

    /// Finds where a function is entered, by itself or by way of others that jump to it.
    fn entries(&mut self, function: &Arc<FunctionCode>) -> Arc<Entries> {
        let start = function.start();
        if let Some(known) = start.and_then(|start| self.call_cache.entries.get(&start)) {
            return known;
        }
        let mut entries = self.names().of(function);
        self.add_detours(function, limit::MAX_DETOUR, &mut entries.detours);
        let entries = Arc::new(entries);
        match start {
            Some(start) => self.call_cache.entries.keep(start, entries),
            None => entries,
        }
    }

    /// Adds the functions that end with a jump to `function`.
    fn add_detours(
        &mut self,
        function: &Arc<FunctionCode>,
        depth: usize,
        detours: &mut Vec<Detour>,
    ) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let sites = self.jumps_to(function);
        for (site, target) in sites.into_iter().take(limit::MAX_CALLERS) {
            let Ok(from) = self.function(site) else { continue };
            if from.n_instructions() > limit::MAX_CALLER_INSTRUCTIONS {
                continue;
            }
            let led_to = from.index_of(site).and_then(|at| from.exit(at).target());
            if led_to != Some(target) {
                continue;
            }
            let passed = self.with_sums(&from, |sums| sums.passed(site));
            let Some(passed) = passed else { continue };
            let Entries { starts, names, .. } = self.names().of(&from);
            detours.push(Detour { starts, names, passed });
            let mut before = Vec::new();
            self.add_detours(&from, depth, &mut before);
            detours.extend(before.into_iter().map(|detour| Detour {
                passed: passed.map(|sum| match sum {
                    Derived::Sum(sum) => sum.with_arguments(&detour.passed),
                    other => other,
                }),
                ..detour
            }));
        }
        detours.truncate(limit::MAX_ENTRIES);
    }

    /// Lists what may be jumps to where `function` is entered, each with its target.
    fn jumps_to(&mut self, function: &FunctionCode) -> Vec<(Svma, Svma)> {
        let names = self.names();
        let starts = names.of(function).starts;
        let stubs = starts.iter().flat_map(|start| names.stubs(*start).iter().copied());
        let targets: Vec<Svma> = starts.iter().copied().chain(stubs).collect();
        let mut jumps = Vec::new();
        for target in targets {
            let sites = self.calls().jumps_to(target);
            let outside = sites.filter(|site| function.index_of(*site).is_none());
            jumps.extend(outside.map(|site| (site, target)));
        }
        jumps
    }

    pub(crate) fn with_sums<T>(
        &mut self,
        function: &Arc<FunctionCode>,
        ask: impl FnOnce(&mut ArgumentSums) -> T,
    ) -> Option<T> {
        let start = function.start()?;
        let is_known = self.call_cache.sums.contains_key(&start);
        let effects = if is_known { CallEffects::default() } else { self.call_effects(function) };
        let cache = &mut self.call_cache;
        let is_full =
            cache.n_values > limit::MAX_CACHED_SUMS || cache.sums.len() > limit::MAX_CACHED_FLOWS;
        if is_full && !is_known {
            cache.sums.clear();
            cache.n_values = 0;
        }
        let frames = &self.frames;
        let sums = cache.sums.entry(start).or_insert_with(|| {
            let sums = ArgumentSums::of(function, frames, &effects).map(Box::new);
            cache.n_values += sums.as_ref().map_or(0, |sums| sums.n_values());
            sums
        });
        let sums = sums.as_mut()?;
        let n_before = sums.n_values();
        let answer = ask(sums);
        // Asking makes values of entries.
        cache.n_values += sums.n_values() - n_before;
        Some(answer)
    }

    /// The function that a call is of, as another load object can compare it.
    pub(crate) fn target(&self, callee: Option<Destination>) -> CalleeAddress {
        let slot = match callee {
            Some(Destination::Code(start)) => match self.code.loaded_slot(start) {
                Some(slot) => slot,
                None => return CalleeAddress::At([start].into()),
            },
            Some(Destination::Slot(slot)) => slot,
            None => return CalleeAddress::Unknown,
        };
        match self.code.linkage().at(slot) {
            Some(LinkageSlot::Address(name)) => CalleeAddress::Named(Arc::clone(name)),
            Some(LinkageSlot::Chosen(resolver)) => {
                let choices = entry_name::choices(&self.code, &self.frames, *resolver);
                CalleeAddress::At(choices.into())
            }
            _ => match self.code.relocated(slot) {
                Some(start) => CalleeAddress::At([start].into()),
                None => CalleeAddress::Unknown,
            },
        }
    }

    /// Finds what the debug information says of the arguments of the call at `svma`. What the callers of its
    /// function pass does not go into it: which of them it was, the stack tells.
    fn passed_contents(&mut self, svma: Svma) -> [Passed; N_ARGUMENTS] {
        let Some(flow) = self.own_dataflow(svma) else { return Default::default() };
        let passed = ARGUMENTS.map(|register| self.passed(&flow, svma, register));
        self.keep_dataflow(svma, flow);
        passed
    }

    fn passed(&mut self, flow: &Dataflow, svma: Svma, register: u8) -> Passed {
        let mut passed = Passed::default();
        match flow.register(svma, u16::from(register)) {
            Content::Number(_) => passed.number = Some(None),
            Content::Constant(number) => passed.number = Some(Some(number)),
            Content::Address(address) => {
                passed.is_other = true;
                passed.pointer = self.pointer(flow, svma, &address);
            }
            Content::Top | Content::Distance => passed.is_other = true,
            Content::Bottom | Content::Unknown => {}
        }
        passed
    }

    fn pointer(&mut self, flow: &Dataflow, svma: Svma, address: &Address) -> Option<PassedPointer> {
        // A name is enough for bytes and numbers.
        let is_plain = matches!(&address.origin, Origin::Object(layout)
            if !layout.innermost().is_aggregate());
        let is_unsure =
            [Doubt::Owner, Doubt::Beyond, Doubt::Whole].into_iter().any(|it| address.has(it));
        if is_unsure || address.standing == Standing::Aside && !is_plain {
            return None;
        }
        let is_exact = address.offset.only().is_some();
        let only_start = match address.offset.starts() {
            [start] => Some(*start),
            _ => None,
        };
        let (variable, into) = match &address.origin {
            Origin::Object(layout) => {
                let element = layout.innermost_element();
                let is_opaque = matches!(element.shape, Shape::Scalar(ScalarKind::Opaque));
                let root = owned_root(address.name.as_ref());
                let layout = Arc::clone(layout);
                // `p + 1` is how programs write the bytes behind what `p` points at.
                let is_behind =
                    address.has(Doubt::Which) && element.is_aggregate() && only_start == Some(0);
                // One that is a byte itself, as Rust's `MaybeUninit<u8>` is, counts those that it points at.
                let is_counted = matches!(layout.shape, Shape::Array { .. }) || element.size == 1;
                let is_behind = is_behind && !is_counted;
                let pointer = PassedPointer { layout, offset: only_start, is_exact, root };
                return (!is_opaque && element.size != 0 && !is_behind).then_some(pointer);
            }
            Origin::Frame(frame) => {
                let slot = Slot { frame: *frame, offset: only_start? };
                let (variable, into) = flow.frame_variable(svma, slot)?;
                // Results that are returned in memory are put in slots that other variables have
                // before and after (LLVM merges them); nothing returns an array.
                if !matches!(variable.layout.shape, Shape::Array { .. }) {
                    return None;
                }
                ((Arc::clone(&variable.layout), Arc::clone(&variable.name)), into)
            }
            Origin::Static => {
                let start = Svma(only_start?.cast_unsigned());
                let variable = self.debug.as_mut()?.variable_in(DataPlace::fixed(start)).variable?;
                let into = start.offset_from(variable.start)?;
                ((Arc::clone(&variable.layout), Arc::clone(&variable.name)), into)
            }
            Origin::Thread | Origin::Arms(_) => return None,
        };
        let (layout, name) = variable;
        let (offset, root) = (i64::try_from(into).ok(), OwnedRoot::Variable(name));
        Some(PassedPointer { layout, offset, is_exact, root })
    }
}
