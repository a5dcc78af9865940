//! The pass over all functions of a load object that tells what pointers to nothing known lead to: made when a sample
//! first needs it, some functions at each turn.

use crate::dataflow::{Carried, Included, Inclusions, PointerCell, PointsTo, Surroundings};
use crate::elf::data_symbol::DataPlace;
use crate::index::flow_cache::FlowCache;
use crate::index::load_object::LoadObjectIndex;
use crate::limit;
use crate::x86_64::exit::Exit;
use crate::x86_64::function::FunctionCode;
use dataspace_proto::address::Svma;
use std::ops::Range;

/// State of the pass.
#[derive(Debug, Default)]
pub(crate) enum PointerPass {
    /// Nobody asked for it.
    #[default]
    Idle,
    /// On its way.
    Running(Box<Running>),
    /// Done, or too much to be done.
    Done,
}

/// Instructions that are decoded and looked at in the time in which one is followed.
const INSTRUCTIONS_LOOKED_AT_FOR_ONE: usize = 8;

/// A pass on its way.
#[derive(Debug, Default)]
pub(crate) struct Running {
    /// The beginnings of functions, the next one last.
    left: Vec<u64>,
    inclusions: Inclusions,
    /// Code that was followed.
    followed: Vec<Range<u64>>,
    /// Work that was done, in instructions that were followed.
    work: usize,
}

impl LoadObjectIndex {
    /// Tells whether what pointers to nothing known lead to is still to be found out.
    pub(crate) const fn lacks_points_to(&self) -> bool {
        !matches!(self.pointer_pass, PointerPass::Done)
    }

    /// Tells whether the pass may tell what an access at `svma` goes by. A function that is only called gets what its
    /// callers pass, and one that others may call gets anything.
    pub(crate) fn is_worth_a_pass(&mut self, svma: Svma, carried: Carried) -> bool {
        if carried == Carried::Kept {
            return true;
        }
        let entry = self.function(svma).ok().and_then(|function| only_entry(&function));
        entry.is_some_and(|entry| {
            let is_exported = !self.names().at(entry).is_empty();
            let is_taken = self.addresses().to(entry).next().is_some();
            !is_exported && (is_taken || !self.code.places_of(entry).is_empty())
        })
    }

    /// Ends the pass if the last question needs it; true if it did.
    pub(crate) fn ends_wanted_pass(&mut self) -> bool {
        let is_wanted = self.is_pass_wanted;
        while is_wanted && self.lacks_points_to() {
            self.go_on_with_pass();
        }
        is_wanted
    }

    /// Gives up what was collected on the way.
    pub(crate) fn forget_pass_on_its_way(&mut self) {
        if matches!(self.pointer_pass, PointerPass::Running(_)) {
            self.pointer_pass = PointerPass::Idle;
        }
    }

    /// Goes on with the pass for one turn.
    pub(crate) fn go_on_with_pass(&mut self) {
        let mut running = match std::mem::replace(&mut self.pointer_pass, PointerPass::Done) {
            PointerPass::Idle => Box::new(self.begin_pass()),
            PointerPass::Running(running) => running,
            PointerPass::Done => return,
        };
        self.begin_question();
        let end = running.work + limit::MAX_PASS_WORK_A_TURN;
        while running.work < end {
            let Some(start) = running.left.last().copied() else {
                return self.end_pass(running);
            };
            let found = self.pass_over(Svma(start), &mut running);
            if self.is_unfinished() {
                break;
            }
            running.left.pop();
            running.inclusions.add(found);
        }
        if running.work <= limit::MAX_PASS_WORK
            && running.inclusions.all.len() <= limit::MAX_INCLUSIONS
        {
            self.pointer_pass = PointerPass::Running(running);
        }
    }

    fn begin_pass(&mut self) -> Running {
        let n_bytes = self.code.executable_ranges().map(|(_, n)| n).fold(0, u64::saturating_add);
        let mut left = Vec::new();
        if n_bytes <= limit::MAX_PASSED_CODE_BYTES {
            left = self.code.function_starts(self.frames.starts());
            left.dedup();
            left.reverse();
        }
        Running { left, ..Running::default() }
    }

    /// Collects what the function that begins at `start` puts where.
    fn pass_over(&mut self, start: Svma, running: &mut Running) -> Inclusions {
        let mut found = Inclusions::default();
        self.collect_inclusions(start, running, &mut found);
        found
    }

    fn collect_inclusions(
        &mut self,
        start: Svma,
        running: &mut Running,
        found: &mut Inclusions,
    ) -> Option<()> {
        let debug = self.debug.as_mut().filter(|debug| debug.has_unit_at(start))?;
        let unit = debug.unit_of_code(start)?;
        // The registers of arguments are C's.
        if debug.is_go(unit) {
            return None;
        }
        let function = self.function(start).ok()?;
        running.work += function.n_instructions() / INSTRUCTIONS_LOOKED_AT_FOR_ONE;
        if function.start() != Some(start) {
            return None;
        }
        let entry = only_entry(&function)?;
        if !self.may_put_pointers(&function, entry) {
            add_code(&function, &mut running.followed);
            return None;
        }
        running.work += function.n_instructions();
        let followed = self.follow(&function, start)?;
        let debug = self.debug.as_mut()?;
        let scope = &*debug.function_at(start)?;
        let (function, points_to) = (&*function, &self.points_to);
        let mut around = Surroundings { debug, image: &self.code, function, scope, points_to };
        followed.collect_inclusions(&mut around, entry, found);
        add_code(function, &mut running.followed);
        Some(())
    }

    /// Tells whether a function may put a pointer somewhere, or pass one: others need not be followed.
    fn may_put_pointers(&mut self, function: &FunctionCode, entry: Svma) -> bool {
        let is_returning = self.returns_pointers(entry);
        is_returning
            || function.puts_pointers()
            || (0..function.n_instructions()).any(|at| {
                let is_taken = |svma: Svma| self.code.image.is_code(svma);
                if function.names_address(at).is_some_and(is_taken) {
                    return true;
                }
                match function.exit(at) {
                    Exit::Call(None) | Exit::Indirect => true,
                    exit => exit.target().is_some_and(|target| {
                        function.index_of(target).is_none() && self.may_take_pointers(target)
                    }),
                }
            })
    }

    /// Tells whether what the function at `entry` returns may be a pointer to nothing known, or to a function.
    fn returns_pointers(&mut self, entry: Svma) -> bool {
        let Some(debug) = &mut self.debug else { return false };
        let Some(function) = debug.function_entered_at(entry) else { return true };
        let result = debug.name_and_type(function).1;
        result.is_some_and(|result| {
            let layout = debug.layout(result);
            debug.is_carrier(&layout)
        })
    }

    /// Tells whether the function at `entry` may be passed a pointer to nothing known, or to a function.
    fn may_take_pointers(&mut self, entry: Svma) -> bool {
        if self.code.linkage_slot(entry).is_some() {
            return false;
        }
        let Some(debug) = &mut self.debug else { return false };
        let Some(function) = debug.function_entered_at(entry) else { return true };
        let types = debug.parameter_types(function);
        types.into_iter().any(|die| {
            let layout = debug.layout(die);
            debug.is_carrier(&layout)
        })
    }

    /// Solves what was collected, or goes on with what it takes from data.
    fn end_pass(&mut self, mut running: Box<Running>) {
        let Some(held) = self.held_in_data() else { return };
        if self.is_unfinished() {
            self.pointer_pass = PointerPass::Running(running);
            return;
        }
        let mut open = std::mem::take(&mut running.inclusions.escaped);
        for (cell, included) in held {
            match (cell, included) {
                (Some(cell), included) => running.inclusions.all.push((cell, included)),
                (None, Included::Function(function)) => {
                    open.insert(function);
                }
                (None, _) => {}
            }
        }
        let Running { inclusions, mut followed, .. } = *running;
        followed.sort_unstable_by_key(|code| code.start);
        for function in inclusions.functions() {
            if !self.has_known_callers(function, &inclusions, &followed) {
                open.insert(function);
            }
        }
        self.points_to = PointsTo::solve(inclusions, open);
        self.flows = FlowCache::default();
    }

    /// Tells whether all calls of a function and all code that takes its address was followed.
    fn has_known_callers(
        &mut self,
        function: Svma,
        inclusions: &Inclusions,
        followed: &[Range<u64>],
    ) -> bool {
        let is_followed = |site: &Svma| {
            let behind = followed.partition_point(|code| code.start <= site.0);
            behind.checked_sub(1).is_some_and(|at| followed[at].contains(&site.0))
        };
        let is_cut = self.calls().is_cut() || self.addresses().is_cut();
        if is_cut || !self.names().at(function).is_empty() {
            return false;
        }
        let n_taken = self.addresses().to(function).count();
        let n_seen = inclusions.taken.get(&function).copied().unwrap_or(0);
        n_taken <= n_seen && self.calls().to(function).all(|site| is_followed(&site))
    }

    /// Lists the pointers in data, each with the cell that it is in; `None` where they are too many.
    fn held_in_data(&mut self) -> Option<Vec<(Option<PointerCell>, Included)>> {
        let functions = self.code.held();
        let pointers = self.code.data_pointers(limit::MAX_DATA_POINTERS)?;
        if functions.len() > limit::MAX_DATA_POINTERS {
            return None;
        }
        let debug = self.debug.as_mut()?;
        let mut held = Vec::with_capacity(functions.len());
        for (function, place) in functions {
            let cell = debug.static_cell(DataPlace::fixed(*place));
            held.push((cell, Included::Function(*function)));
        }
        for (place, target) in pointers {
            let Some(cell) = debug.static_cell(DataPlace::fixed(place)) else { continue };
            let object = target.and_then(|target| debug.static_object(DataPlace::fixed(target)));
            held.push((Some(cell), object.map_or(Included::Anything, Included::Object)));
        }
        Some(held)
    }
}

/// The only place at which a function is entered.
fn only_entry(function: &FunctionCode) -> Option<Svma> {
    let mut entries = (0..function.n_instructions()).filter(|at| function.entrances(*at).is_entry);
    let entry = entries.next().filter(|_| entries.next().is_none())?;
    function.svma(entry)
}

/// Adds the ranges of a function's code.
fn add_code(function: &FunctionCode, followed: &mut Vec<Range<u64>>) {
    let first = followed.len();
    for code in (0..function.n_instructions()).filter_map(|at| function.code(at)) {
        match followed[first..].last_mut() {
            Some(last) if last.end == code.start => last.end = code.end,
            _ => followed.push(code),
        }
    }
}
