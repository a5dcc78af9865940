//! Static and thread-local variables by place, found unit by unit as far as questions need it.

use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::unit::abbreviation::Whole;
use crate::dwarf::variable::address_hint::VariableExtent;
use crate::dwarf::variable::index::{DataFacts, StaticVariable, VariableRange};
use crate::dwarf::variable::walk;
use crate::elf::data_symbol::{DataPlace, Storage};
use crate::elf::symbol_name;
use crate::elf::thread_block::ThreadBlock;
use crate::limit;
use crate::types::die::{DieRef, UnitIdx};
use dataspace_proto::address::Svma;
use std::sync::Arc;

impl DebugInfo {
    /// Tells what the rest of the file says of the data.
    pub(crate) fn set_data_facts(&mut self, facts: DataFacts) {
        self.variables.facts = facts;
    }

    /// The block of the thread-local variables.
    pub(crate) const fn thread_block(&self) -> Option<ThreadBlock> {
        self.variables.facts.thread
    }

    /// Lets a new question begin, with a budget of its own.
    pub(crate) const fn begin_question(&mut self) {
        self.variables.n_bytes_left = limit::MAX_WALKED_BYTES_A_QUESTION;
        self.variables.is_unfinished = false;
    }

    /// Tells whether an answer since [`Self::begin_question`] would be another if more units had been
    /// looked through: to be asked again.
    pub(crate) const fn is_unfinished(&self) -> bool {
        self.variables.is_unfinished
    }

    /// Looks on for what the last question lacked: whether that is known now, or nowhere.
    pub(crate) fn is_ready(&mut self) -> bool {
        if let Some(wanted) = self.variables.wanted {
            let _ = self.variable_in(wanted);
        }
        !self.variables.is_unfinished
    }

    /// The variable or gap around the byte at `svma`, by the debug information.
    pub(crate) fn variable_at(&mut self, svma: Svma) -> VariableRange {
        self.variable_in(DataPlace::fixed(svma))
    }

    /// The variable or gap around the byte at `place`, by the debug information.
    ///
    /// A variable that covers the place is the answer whatever other units say; that there is none
    /// is known when all were looked through.
    pub(crate) fn variable_in(&mut self, place: DataPlace) -> VariableRange {
        let mut of_linker = self.variables.facts.of_linker.iter();
        if place.storage == Storage::Static
            && let Some((start, end)) =
                of_linker.find(|(start, end)| (*start..*end).contains(&place.at))
        {
            return VariableRange { start: *start, end: *end, variable: None };
        }
        loop {
            let mut range = self.known_at(place);
            if range.variable.is_some() || !self.walk_on(place) {
                self.variables.wanted = self.variables.is_unfinished.then_some(place);
                let hints = &self.variables.hints;
                if range.variable.is_none() && hints.is_complete {
                    // What no walk has found yet may be beside it.
                    let (start, end) = hints.bounds(place, &self.variables.facts.symbols);
                    (range.start, range.end) = (range.start.max(start), range.end.min(end));
                }
                return range;
            }
        }
    }

    /// The type of the variable that is only declared here, under this name.
    pub(crate) fn declared_variable(
        &mut self,
        start: Svma,
        name: &str,
    ) -> Option<Arc<StaticVariable>> {
        let die = *self.variables.declared.get(name)?;
        self.static_variable(start, die)
    }

    fn known_at(&mut self, place: DataPlace) -> VariableRange {
        let known = &self.variables.by_place;
        let next = known.partition_point(|(start, _)| *start <= place);
        let is_near = |(near, _): &&(DataPlace, DieRef)| near.storage == place.storage;
        let end = known.get(next).filter(is_near).map_or(Svma(u64::MAX), |(start, _)| start.at);
        // Where several overlap, the one that begins last is the finest.
        let before = known[..next].iter().rev().take_while(is_near);
        let candidates: Vec<(DataPlace, DieRef)> =
            before.take(limit::MAX_OVERLAPPING_VARIABLES).copied().collect();
        let mut start = candidates.first().map_or(Svma(0), |(start, _)| start.at);
        for group in candidates.chunk_by(|a, b| a.0 == b.0) {
            // What its symbol says ends before needs no type; to read one may take a unit's parsing.
            if let Some(end) = self.variables.facts.symbols.end_from(group[0].0)
                && end <= place.at
            {
                start = start.max(end);
                continue;
            }
            let Some(variable) = self.choose(group) else { continue };
            let variable_end = self.end_of(place.storage, &variable);
            if (variable.start..variable_end).contains(&place.at) {
                let end = end.min(variable_end);
                return VariableRange { start, end, variable: Some(variable) };
            }
            start = start.max(variable_end.min(place.at));
        }
        VariableRange { start, end, variable: None }
    }

    /// Of several entries at one place the one whose name the symbol there has; else the first.
    fn choose(&mut self, group: &[(DataPlace, DieRef)]) -> Option<Arc<StaticVariable>> {
        let place = group.first()?.0;
        let variables =
            group.iter().filter_map(|(start, die)| self.static_variable(start.at, *die));
        let variables: Vec<Arc<StaticVariable>> = variables.collect();
        let first = variables.first()?;
        if variables.iter().all(|variable| variable.name == first.name) {
            return Some(Arc::clone(first));
        }
        let symbol = self.variables.facts.symbols.at(place);
        let symbol = symbol.filter(|symbol| symbol.start == place);
        let symbol = symbol.map(|symbol| symbol_name::variable_name(&symbol.name));
        let is_it = |variable: &&Arc<StaticVariable>| {
            symbol.as_deref().is_some_and(|symbol| is_name_of(symbol, &variable.name))
        };
        // Where the linker dropped a thread-local variable its entry has the offset 0.
        let is_dropped = place == DataPlace::thread(0);
        let found = variables.iter().find(is_it);
        found.or_else(|| Some(first).filter(|_| !is_dropped)).cloned()
    }

    /// The end of a variable. One that ends in an open array is as long as its symbol says.
    fn end_of(&self, storage: Storage, variable: &StaticVariable) -> Svma {
        let size = variable.layout.size;
        let start = DataPlace { storage, at: variable.start };
        let symbol = self.variables.facts.symbols.at(start).filter(|symbol| symbol.start == start);
        let is_open = |len_bytes: &u64| *len_bytes > size && variable.layout.holds(*len_bytes - 1);
        let len_bytes = symbol.map(|symbol| symbol.len_bytes).filter(is_open).unwrap_or(size);
        Svma(variable.start.0.saturating_add(len_bytes))
    }

    /// The variable of an entry, kept because values of one function after the other are looked up.
    fn static_variable(&mut self, start: Svma, die: DieRef) -> Option<Arc<StaticVariable>> {
        if let Some(known) = self.variables.known.get(&(start, die)) {
            return known;
        }
        let variable = self.read_variable(start, die);
        self.variables.known.keep((start, die), variable)
    }

    fn read_variable(&mut self, start: Svma, die: DieRef) -> Option<Arc<StaticVariable>> {
        let (_, type_die) = self.name_and_type(die);
        let name = self.qualified_name(die)?;
        let layout = self.layout(type_die?);
        let unit = self.unit(die.unit)?.name.clone();
        Some(Arc::new(StaticVariable { start, layout, name, unit }))
    }

    /// Looks through some more units: whether there were any, and the question may have them.
    fn walk_on(&mut self, place: DataPlace) -> bool {
        self.variables.is_walked.resize(self.sources.main_units().len(), false);
        let (mut n_bytes, mut hinted) = (0, None);
        while n_bytes < limit::WALKED_BYTES_AT_ONCE {
            let Some(next) = self.next_step(place, &mut hinted) else { break };
            if self.variables.n_bytes_left == 0 {
                self.variables.is_unfinished = true;
                break;
            }
            let len = match next {
                Next::Walk(unit_idx) => self.walk_unit(unit_idx).unwrap_or(1),
                Next::Look => self.look_for_addresses(),
            };
            self.variables.n_bytes_left = self.variables.n_bytes_left.saturating_sub(len);
            n_bytes += len;
        }
        let key = |(place, die): &(DataPlace, DieRef)| (*place, die.unit, die.offset.0);
        // What was found before is in order: a stable sort only merges what is new into it.
        self.variables.by_place.sort_by_key(key);
        n_bytes != 0
    }

    /// Variables are mostly asked about by code of the unit that defines them: units at hand go
    /// first, then those that speak of the address. Without hints it may be any.
    fn next_step(&mut self, place: DataPlace, hinted: &mut Option<Vec<UnitIdx>>) -> Option<Next> {
        let Self { variables, sources, .. } = self;
        if let Some(at_hand) = sources.units_at_hand().find(|unit| variables.is_new(*unit)) {
            return Some(Next::Walk(at_hand));
        }
        if variables.has_hints(place) {
            if !variables.hints.is_complete {
                return Some(Next::Look);
            }
            let around = || variables.hints.units(place, &variables.facts.symbols);
            let units = hinted.get_or_insert_with(around);
            return units.iter().copied().find(|unit| variables.is_new(*unit)).map(Next::Walk);
        }
        while variables.is_walked.get(variables.next as usize) == Some(&true) {
            variables.next += 1;
        }
        variables.is_new(variables.next).then_some(Next::Walk(variables.next))
    }

    /// Looks through the next unit for addresses; gives its length.
    fn look_for_addresses(&mut self) -> u64 {
        let variables = &mut self.variables;
        let unit_idx = variables.hints.next;
        variables.hints.next += 1;
        if unit_idx as usize >= variables.is_walked.len() {
            variables.hints.complete();
            return 1;
        }
        let header = self.sources.header(unit_idx);
        let Some((_, header)) = header.filter(|_| variables.is_new(unit_idx)) else { return 1 };
        let len = header.length_including_self() as u64;
        let entries = header.range_from(header.root_offset()..);
        if let (Ok(entries), Some(fixed)) = (entries, variables.facts.extent) {
            let thread_bytes = variables.facts.thread.map_or(0, |block| block.len_bytes);
            variables.hints.add(unit_idx, entries, VariableExtent { fixed, thread_bytes });
        }
        len.max(1)
    }

    /// Looks through one of the file's own units, or the split one in its place; gives its length.
    fn walk_unit(&mut self, main_idx: UnitIdx) -> Option<u64> {
        *self.variables.is_walked.get_mut(main_idx as usize)? = true;
        let unit_idx = self.whole_unit(main_idx);
        let (dwarf, mut unit, kinds) = self.sources.for_walk(unit_idx, Whole::Variables)?;
        if unit_idx != main_idx {
            let (_, skeleton, _) = self.sources.for_walk(main_idx, Whole::Root)?;
            unit.copy_relocated_attributes(&skeleton);
        }
        let variables = &mut self.variables;
        let room = limit::MAX_STATIC_VARIABLES.saturating_sub(variables.by_place.len());
        let found = walk::walk(&dwarf, &unit, &kinds, &variables.facts.copied, room);
        let is_there = |place: &DataPlace| match place.storage {
            // What the linker dropped is at 0, or where no segment is.
            Storage::Static => {
                let extent = variables.facts.extent;
                place.at.0 != 0
                    && extent.is_none_or(|(start, end)| start <= place.at && place.at < end)
            }
            Storage::Thread => {
                variables.facts.thread.is_some_and(|block| place.at.0 < block.len_bytes)
            }
        };
        let defined = found.defined.into_iter().filter(|(place, _)| is_there(place));
        let die = |offset| DieRef { unit: unit_idx, offset };
        variables.by_place.extend(defined.map(|(place, offset)| (place, die(offset))));
        for (name, offset) in found.declared {
            variables.declared.entry(name).or_insert(die(offset));
        }
        Some((unit.header.length_including_self() as u64).max(1))
    }
}

/// The next step in the search for a variable.
enum Next {
    /// To look through a unit's entries.
    Walk(UnitIdx),
    /// To see where addresses stand.
    Look,
}

/// Tells whether a symbol of this qualified name is of the variable: symbols may leave the scope out.
fn is_name_of(symbol: &str, variable: &str) -> bool {
    symbol == variable || variable.rsplit("::").next() == Some(symbol)
}
