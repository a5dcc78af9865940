//! The pass over all functions of a load object that tells what pointers to nothing known lead to: made when a sample
//! first needs it, some functions at each turn.

use crate::dataflow::{Carried, Depth, Included, Inclusions, PointerCell, PointsTo, Surroundings};
use crate::elf::data_symbol::DataPlace;
use crate::index::flow_cache::FlowCache;
use crate::index::load_object::LoadObjectIndex;
use crate::known::loader;
use crate::limit;
use crate::types::die::DieRef;
use crate::x86_64::exit::Exit;
use crate::x86_64::function::FunctionCode;
use dataspace_proto::address::Svma;

/// State of the pass.
#[derive(Debug)]
pub(crate) enum PointerPass {
    /// Not on its way; it was begun so many times.
    Idle(usize),
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
    /// Functions that others find by name.
    exported: Vec<Svma>,
    /// Work that was done, in instructions that were followed.
    work: usize,
    /// Times that the pass was begun.
    n_begun: usize,
}

impl Default for PointerPass {
    fn default() -> Self {
        Self::Idle(0)
    }
}

impl LoadObjectIndex {
    /// Says from the beginning that the pass finds nothing where there is too much code for it.
    pub(crate) fn limit_pass(&mut self) {
        if self.code.executable_bytes() > limit::MAX_PASSED_CODE_BYTES {
            self.end_without_pass();
        }
    }

    /// Tells whether what pointers to nothing known lead to is still to be found out.
    pub(crate) const fn lacks_points_to(&self) -> bool {
        !matches!(self.pointer_pass, PointerPass::Done)
    }

    /// Tells whether the pass is still to be made and may tell what an access at `svma` goes by. A function that is only called gets what its
    /// callers pass, and one that others may call gets anything.
    pub(crate) fn is_worth_a_pass(&mut self, svma: Svma, carried: Carried) -> bool {
        if !self.lacks_points_to() {
            return false;
        }
        if carried == Carried::Kept {
            return true;
        }
        let entry = self.function(svma).ok().and_then(|function| only_entry(&function));
        entry.is_some_and(|entry| {
            let is_exported = !self.names().at(entry).is_empty();
            let is_taken = self.is_taken(entry);
            !is_exported && (is_taken || !self.code.places_of(entry).is_empty())
        })
    }

    /// Goes on with the pass if the last question needs it.
    pub(crate) fn goes_on_with_pass(&mut self) -> bool {
        let is_wanted = self.is_pass_wanted;
        if is_wanted {
            self.go_on_with_pass();
        }
        is_wanted
    }

    /// Ends the pass if the last question needs it; true if it did.
    pub(crate) fn ends_wanted_pass(&mut self) -> bool {
        let is_wanted = self.is_pass_wanted;
        while is_wanted && self.lacks_points_to() {
            self.go_on_with_pass();
        }
        is_wanted
    }

    /// Gives up what was collected on the way. It is begun anew at most once.
    pub(crate) fn forget_pass_on_its_way(&mut self) {
        if let PointerPass::Running(running) = &self.pointer_pass {
            match running.n_begun {
                limit::MAX_PASSES_BEGUN.. => self.end_without_pass(),
                n_begun => self.pointer_pass = PointerPass::Idle(n_begun),
            }
        }
    }

    /// Says that the pass finds nothing.
    fn end_without_pass(&mut self) {
        self.pointer_pass = PointerPass::Done;
        self.points_to = PointsTo::nothing();
    }

    /// Goes on with the pass for one turn.
    pub(crate) fn go_on_with_pass(&mut self) {
        let mut running = match std::mem::take(&mut self.pointer_pass) {
            PointerPass::Idle(n_begun) => Box::new(self.begin_pass(n_begun + 1)),
            PointerPass::Running(running) => running,
            PointerPass::Done => return self.pointer_pass = PointerPass::Done,
        };
        self.begin_question();
        let end = running.work + limit::MAX_PASS_WORK_A_TURN;
        while running.work < end {
            let Some(start) = running.left.last().copied() else {
                return self.end_pass(running);
            };
            running.work += 1;
            let found = self.collect_inclusions(Svma(start), &mut running);
            if self.is_unfinished() {
                break;
            }
            if found.is_none() {
                return self.end_without_pass();
            }
            running.left.pop();
        }
        if running.work > limit::MAX_PASS_WORK || running.inclusions.is_cut {
            return self.end_without_pass();
        }
        self.pointer_pass = PointerPass::Running(running);
    }

    fn begin_pass(&self, n_begun: usize) -> Running {
        let mut left = self.code.function_starts(self.frames.starts());
        left.retain(|start| self.code.image.is_code(Svma(*start)));
        left.dedup();
        left.reverse();
        Running { left, n_begun, ..Running::default() }
    }

    /// Collects what the function that begins at `start` puts where; `None` if it cannot be told: it may be anything.
    fn collect_inclusions(&mut self, start: Svma, running: &mut Running) -> Option<()> {
        let debug = self.debug.as_mut()?;
        if !debug.has_unit_at(start) {
            return self.is_of_runtime(start).then_some(());
        }
        let unit = debug.unit_of_code(start)?;
        // The registers of arguments are C's.
        if debug.is_go(unit) || debug.is_assembled(unit) {
            return None;
        }
        let function = self.function(start).ok()?;
        running.work += function.n_instructions() / INSTRUCTIONS_LOOKED_AT_FOR_ONE;
        // A part of another one is followed with that.
        if function.start() != Some(start) {
            return Some(());
        }
        let entry = only_entry(&function)?;
        if !self.names().at(entry).is_empty() {
            running.exported.push(entry);
        }
        let debug = self.debug.as_mut()?;
        let described = debug.function_entered_at(entry)?;
        debug.expose_parameters(described, entry, &mut running.inclusions);
        if !self.may_put_pointers(&function, described) {
            return Some(());
        }
        running.work += function.n_instructions();
        let followed = self.follow(&function, start, Depth::Copied)?;
        let debug = self.debug.as_mut()?;
        let scope = &*debug.function_at(start)?;
        let (function, points_to) = (&*function, &self.points_to);
        let mut around = Surroundings { debug, image: &self.code, function, scope, points_to };
        followed.collect_inclusions(&mut around, entry, &mut running.inclusions);
        Some(())
    }

    /// Tells whether code is the linker's, or of what a C library links to each program: it puts nothing into objects of the
    /// program's.
    fn is_of_runtime(&self, start: Svma) -> bool {
        let section = self.code.image.loaded_section(start);
        let is_linkers = section.is_some_and(|section| {
            let names = [".plt", ".init", ".fini"];
            names.iter().any(|name| section.name.starts_with(name))
        });
        is_linkers || {
            let symbol = self.code.image.functions.iter().find(|symbol| symbol.start == start);
            symbol.is_some_and(|symbol| loader::is_linked_code(&symbol.name))
        }
    }

    /// Tells whether a function may put a pointer somewhere, or pass one: others need not be followed.
    fn may_put_pointers(&mut self, function: &FunctionCode, described: DieRef) -> bool {
        self.returns_pointers(described)
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

    /// Tells whether what a function returns may be a pointer to nothing known, or to a function.
    fn returns_pointers(&mut self, function: DieRef) -> bool {
        let Some(debug) = &mut self.debug else { return false };
        let result = debug.name_and_type(function).1;
        result.is_some_and(|result| {
            let layout = debug.layout(result);
            debug.is_carrier(&layout)
        })
    }

    /// Tells whether the function at `entry` may be passed a pointer to nothing known, or to a function, or what it may put
    /// such a pointer in if it is not followed.
    fn may_take_pointers(&mut self, entry: Svma) -> bool {
        let Some(debug) = &mut self.debug else { return true };
        let Some(function) = debug.function_entered_at(entry) else { return true };
        let is_variant = debug.parameters_at_entry(function, entry).is_some();
        let types = debug.parameter_types(function);
        is_variant
            || types.into_iter().any(|die| {
                let layout = debug.layout(die);
                layout.is_aggregate()
                    || debug.is_carrier(&layout)
                    || debug.leads_to_carriers(&layout)
            })
    }

    /// Solves what was collected, or goes on with what it takes from data.
    fn end_pass(&mut self, mut running: Box<Running>) {
        let n_collected = running.inclusions.len();
        let is_held = self.add_held(&mut running.inclusions);
        if self.is_unfinished() {
            running.inclusions.truncate(n_collected);
            self.pointer_pass = PointerPass::Running(running);
            return;
        }
        self.end_without_pass();
        if is_held.is_some() {
            for function in running.exported {
                running.inclusions.put(PointerCell::Outside, Included::Function(function));
            }
            self.points_to = PointsTo::solve(running.inclusions);
            self.flows = FlowCache::default();
        }
    }

    /// Adds the pointers in data, and what other load objects may put into variables; `None` where they are too many.
    fn add_held(&mut self, found: &mut Inclusions) -> Option<()> {
        let exported: Vec<Svma> = self.names().exported().collect();
        let functions = self.code.all_held(limit::MAX_DATA_POINTERS)?;
        let pointers = self.code.data_pointers(limit::MAX_DATA_POINTERS)?;
        let debug = self.debug.as_mut()?;
        for place in exported {
            debug.expose_variable(DataPlace::fixed(place), found);
        }
        for (function, place) in functions {
            let is_described = debug.function_entered_at(*function).is_some();
            let included =
                if is_described { Included::Function(*function) } else { Included::Anything };
            debug.put_initially(self.code.data_place(*place), &included, found);
        }
        for (place, target) in pointers {
            let place = self.code.data_place(place);
            let target = target.map(DataPlace::fixed);
            let object = target.and_then(|target| debug.static_object(target));
            if object.is_none() {
                debug.expose_unnamed(place, found);
            }
            debug.put_initially(place, &object.map_or(Included::Anything, Included::Object), found);
        }
        Some(())
    }
}

/// The only place at which a function is entered.
fn only_entry(function: &FunctionCode) -> Option<Svma> {
    let mut entries = (0..function.n_instructions()).filter(|at| function.entrances(*at).is_entry);
    let entry = entries.next().filter(|_| entries.next().is_none())?;
    function.svma(entry)
}
