//! One function as its debug information describes it: every variable with all the places it has in
//! the course of the function, and what is called where.

use crate::dwarf::code::kept::{FunctionScope, LocatedVariable};
use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::unit::code_range;
use crate::dwarf::unit::parsed::ParsedUnit;
use crate::dwarf::unit::reader::{Entry, Reader};
use crate::dwarf::variable::location::{self, FrameBase, VariablePart, VariablePlace};
use crate::limit;
use crate::types::die::{DieRef, UnitIdx};
use crate::types::layout::{Layout, Shape};
use dataspace_proto::address::Svma;
use std::ops::Range;
use std::sync::Arc;

impl DebugInfo {
    /// The function around `svma`; `None` where no unit has code there.
    pub(crate) fn function_at(&mut self, svma: Svma) -> Option<Arc<FunctionScope>> {
        let unit_idx = self.unit_of_code(svma)?;
        if let Some(die) = self.declared.function_at(unit_idx, svma) {
            return self.declared.scope(die).map(Arc::new);
        }
        let unit = self.unit(unit_idx)?;
        let offset = unit.function_at(svma);
        if let Some(known) = self.functions.get(&(unit_idx, offset)) {
            return Some(known);
        }
        let function = Arc::new(self.read_function(unit_idx, &unit, offset));
        Some(self.functions.keep((unit_idx, offset), function))
    }

    /// The entry of the function that is entered at `svma`.
    pub(crate) fn function_entered_at(&mut self, svma: Svma) -> Option<DieRef> {
        if let Some(known) = self.entered.get(&svma) {
            return known;
        }
        let found = self.find_function_entered_at(svma);
        self.entered.keep(svma, found)
    }

    fn find_function_entered_at(&mut self, svma: Svma) -> Option<DieRef> {
        let unit = self.unit_of_code(svma)?;
        self.function_range_at(svma).filter(|(start, _)| *start == svma)?;
        let described = |info: &mut Self| {
            let offset = info.unit(unit)?.function_at(svma)?;
            Some(DieRef { unit, offset })
        };
        self.declared.function_at(unit, svma).or_else(|| described(self))
    }

    /// The range of the function around `svma`.
    pub(crate) fn function_range_at(&mut self, svma: Svma) -> Option<(Svma, Svma)> {
        let unit = self.unit_of_code(svma)?;
        let declared = self.declared.range_at(unit, svma);
        declared.or_else(|| self.unit(unit)?.function_range_at(svma))
    }

    /// The types of a function's parameters, in their order. They stop where one has none.
    pub(crate) fn parameter_types(&mut self, function: DieRef) -> Vec<DieRef> {
        if let Some(declared) = self.declared.scope(function) {
            return declared.variables.iter().map(|parameter| parameter.type_die).collect();
        }
        let mut next = Some(function);
        // What is only declared, or inlined elsewhere, is described by its origin.
        for _ in 0..limit::MAX_TYPE_DEPTH {
            let Some(die) = next else { break };
            let parameters = self.parameters_of(die);
            if !parameters.is_empty() {
                let types = parameters.into_iter().map_while(|die| self.name_and_type(die).1);
                return types.collect();
            }
            let Some((_, entry)) = self.entry(die) else { break };
            next = self.origin(die, &entry);
        }
        Vec::new()
    }

    /// The type of the first result of a function in Go, which has them among its parameters, if it comes in the register of
    /// results, as in C (the Go internal ABI specification): not what is too large for registers, an array, or empty.
    pub(crate) fn first_result(&mut self, function: DieRef) -> Option<DieRef> {
        const MAX_BYTES: u64 = 9 * 8;
        let (unit, entry) = self.entry(function)?;
        if !unit.is_go() {
            return None;
        }
        // What is inlined elsewhere is described by its origin.
        let described = self.origin(function, &entry).unwrap_or(function);
        let is_result = |info: &mut Self, parameter: &DieRef| {
            let flag = info.entry(*parameter)?.1.attr_value(gimli::DW_AT_variable_parameter)?;
            Some(matches!(flag, gimli::AttributeValue::Flag(true)))
        };
        let mut parameters = self.parameters_of(described).into_iter();
        let result = parameters.find(|parameter| is_result(self, parameter) == Some(true))?;
        let type_die = self.name_and_type(result).1?;
        let layout = self.layout(type_die);
        ((1..=MAX_BYTES).contains(&layout.size) && !has_array(&layout)).then_some(type_die)
    }

    /// The registers that hold a function's parameters when it is entered at `entry`, and their
    /// types, if the compiler made a variant of the function that need not take them as declared.
    /// `None` for a function as it is declared.
    pub(crate) fn parameters_at_entry(
        &mut self,
        function: DieRef,
        entry: Svma,
    ) -> Option<Vec<(u16, DieRef)>> {
        let (unit, die) = self.entry(function)?;
        let parameters = self.parameters_of(function);
        let has = |name| die.attr_value(name).is_some();
        // What only its own unit calls need not be called as declared: clang leaves out what is not
        // used, and does not say so.
        let is_own = has(gimli::DW_AT_low_pc)
            && !has(gimli::DW_AT_external)
            && !has(gimli::DW_AT_specification);
        let is_variant = has(gimli::DW_AT_abstract_origin)
            || is_own && parameters.iter().any(|parameter| !self.has_place(*parameter));
        if !is_variant {
            return None;
        }
        let mut found = Vec::new();
        for parameter in parameters {
            let Some((_, die)) = self.entry(parameter) else { continue };
            let Some(value) = die.attr_value(gimli::DW_AT_location) else { continue };
            let Ok(Some(mut locations)) = unit.dwarf.attr_locations(&unit.unit, value) else {
                continue;
            };
            // gimli's `next` goes on over all that holds nowhere, however much that is.
            for _ in 0..limit::MAX_SCOPE_RANGES {
                let Ok(Some(raw)) = locations.next_raw() else { break };
                let Ok(location) = locations.convert_raw(raw) else { break };
                let Some(location) = location else { continue };
                if !(location.range.begin..location.range.end).contains(&entry.0) {
                    continue;
                }
                let frame_base = FrameBase::default();
                let parts = location::parts(&unit.dwarf, &unit.unit, location.data, frame_base);
                if let [VariablePart { place: VariablePlace::Register(register), offset: 0, .. }] =
                    parts.as_slice()
                    && let Some(type_die) = self.name_and_type(parameter).1
                {
                    found.push((*register, type_die));
                }
                break;
            }
        }
        Some(found)
    }

    fn has_place(&mut self, variable: DieRef) -> bool {
        let entry = self.entry(variable);
        entry.is_some_and(|(_, die)| die.attr_value(gimli::DW_AT_location).is_some())
    }

    fn parameters_of(&mut self, function: DieRef) -> Vec<DieRef> {
        self.children_of(function, gimli::DW_TAG_formal_parameter)
    }

    /// Tells whether a function may take more than its parameters say (`...`).
    pub(crate) fn takes_more(&mut self, function: DieRef) -> bool {
        let mut next = Some(function);
        for _ in 0..limit::MAX_TYPE_DEPTH {
            let Some(die) = next else { return false };
            if !self.children_of(die, gimli::DW_TAG_unspecified_parameters).is_empty() {
                return true;
            }
            let Some((_, entry)) = self.entry(die) else { return false };
            next = self.origin(die, &entry);
        }
        true
    }

    /// Tells whether it is declared what a function takes: in older C an empty list says nothing.
    pub(crate) fn is_prototyped(&mut self, function: DieRef) -> bool {
        let mut next = Some(function);
        for _ in 0..limit::MAX_TYPE_DEPTH {
            let Some((_, entry)) = next.and_then(|die| self.entry(die)) else { return false };
            if entry.attr_value(gimli::DW_AT_prototyped).is_some() {
                return true;
            }
            next = next.and_then(|die| self.origin(die, &entry));
        }
        false
    }

    fn children_of(&mut self, function: DieRef, tag: gimli::DwTag) -> Vec<DieRef> {
        let mut found = Vec::new();
        self.for_each_child(
            function,
            |it| it == tag,
            |_, entry| {
                if found.len() < limit::MAX_PARAMETERS {
                    found.push(DieRef { unit: function.unit, offset: entry.offset() });
                }
            },
        );
        found
    }

    fn read_function(
        &mut self,
        unit_idx: UnitIdx,
        unit: &ParsedUnit,
        offset: Option<gimli::UnitOffset>,
    ) -> FunctionScope {
        let unit_name = unit.name.clone();
        let mut function = FunctionScope { unit: unit_idx, unit_name, ..FunctionScope::default() };
        let Some(offset) = offset else { return function };
        let die = DieRef { unit: unit_idx, offset };
        function.die = Some(die);
        function.function_name = self.qualified_name(die);
        let mut walk = FunctionWalk {
            info: self,
            unit_idx,
            unit,
            frame_base: FrameBase::default(),
            found: Vec::new(),
            calls: Vec::new(),
            n_places_left: limit::MAX_VARIABLE_PLACES,
            n_ranges_left: limit::MAX_FUNCTION_RANGES,
        };
        walk.function(offset);
        function.calls = walk.calls;
        function.calls.sort_unstable_by_key(|(return_address, die)| {
            (*return_address, die.unit, die.offset.0)
        });
        function.calls.shrink_to_fit();
        function.variables.reserve_exact(walk.found.len());
        for (offset, depth, places) in walk.found {
            let variable = DieRef { unit: unit_idx, offset };
            if let (Some(name), Some(type_die)) = self.name_and_type(variable) {
                function.variables.push(LocatedVariable { name, type_die, depth, places });
            }
        }
        function
    }
}

type RangedParts = Box<[(Range<u64>, VariablePart)]>;

/// One walk over a function's entries.
struct FunctionWalk<'a> {
    info: &'a mut DebugInfo,
    unit_idx: UnitIdx,
    unit: &'a ParsedUnit,
    frame_base: FrameBase,
    found: Vec<(gimli::UnitOffset, u32, RangedParts)>,
    calls: Vec<(Svma, DieRef)>,
    n_places_left: usize,
    n_ranges_left: usize,
}

impl FunctionWalk<'_> {
    fn function(&mut self, offset: gimli::UnitOffset) {
        let unit = self.unit;
        let unit = &unit.unit;
        let Ok(mut tree) = unit.entries_tree(Some(offset)) else { return };
        let Ok(root) = tree.root() else { return };
        if let Some(gimli::AttributeValue::Exprloc(expression)) =
            root.entry().attr_value(gimli::DW_AT_frame_base)
        {
            self.frame_base = location::frame_base(expression, unit.encoding());
        }
        let code = self.ranges(root.entry());
        self.children(root, &code, 0);
    }

    /// Visits the children of a scope with code in the ranges `code`. Damage ends the walk; what it
    /// found before stays.
    fn children(
        &mut self,
        node: gimli::EntriesTreeNode<'_, '_, Reader>,
        code: &[Range<u64>],
        depth: u32,
    ) {
        let mut children = node.children();
        while let Ok(Some(child)) = children.next() {
            let entry = child.entry();
            match entry.tag() {
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                    self.add(entry, code, depth);
                }
                gimli::DW_TAG_call_site | gimli::DW_TAG_GNU_call_site => self.add_call(entry),
                gimli::DW_TAG_lexical_block
                | gimli::DW_TAG_inlined_subroutine
                | gimli::DW_TAG_try_block
                | gimli::DW_TAG_catch_block
                    if depth < limit::MAX_SCOPE_DEPTH =>
                {
                    let inside = self.ranges(entry);
                    // A block without code of its own only groups what is in it.
                    let inside = if inside.is_empty() { code } else { &inside };
                    self.children(child, inside, depth + 1);
                }
                _ => {}
            }
        }
    }

    pub(crate) fn ranges(&mut self, entry: &Entry) -> Vec<Range<u64>> {
        let room = self.n_ranges_left.min(limit::MAX_SCOPE_RANGES);
        let mut n_left = room;
        let ranges = code_range::ranges(&self.unit.dwarf, &self.unit.unit, entry, &mut n_left);
        self.n_ranges_left -= room - n_left;
        ranges.into_iter().map(|range| range.begin..range.end).collect()
    }

    fn add(&mut self, entry: &Entry, code: &[Range<u64>], depth: u32) {
        let Some(value) = entry.attr_value(gimli::DW_AT_location) else { return };
        if self.n_places_left == 0 {
            return;
        }
        let mut places = Vec::new();
        if let gimli::AttributeValue::Exprloc(expression) = value {
            for part in self.parts(expression) {
                places.extend(code.iter().map(|range| (range.clone(), part)));
            }
        } else {
            let locations = self.unit.dwarf.attr_locations(&self.unit.unit, value);
            let Ok(Some(mut locations)) = locations else { return };
            // What says nothing counts as well: variables can share one long list of it.
            while self.n_places_left > places.len()
                && let Ok(Some(raw)) = locations.next_raw()
                && let Ok(entry) = locations.convert_raw(raw)
            {
                self.n_places_left -= 1;
                let Some(entry) = entry else { continue };
                let range = entry.range.begin..entry.range.end;
                let parts = self.parts(entry.data).into_iter();
                places.extend(parts.map(|part| (range.clone(), part)));
            }
        }
        places.truncate(self.n_places_left);
        self.n_places_left -= places.len();
        if !places.is_empty() {
            self.found.push((entry.offset(), depth, places.into()));
        }
    }

    fn parts(&self, expression: gimli::Expression<Reader>) -> Vec<VariablePart> {
        location::parts(&self.unit.dwarf, &self.unit.unit, expression, self.frame_base)
    }

    fn add_call(&mut self, entry: &Entry) {
        // DWARF 5 names them otherwise than gcc's extension of DWARF 4, which has the origin and
        // the address after the call in attributes of a function.
        let return_address = entry
            .attr_value(gimli::DW_AT_call_return_pc)
            .or_else(|| entry.attr_value(gimli::DW_AT_low_pc));
        let origin = entry
            .attr_value(gimli::DW_AT_call_origin)
            .or_else(|| entry.attr_value(gimli::DW_AT_abstract_origin));
        let (Some(return_address), Some(origin)) = (return_address, origin) else { return };
        let address = self.unit.dwarf.attr_address(&self.unit.unit, return_address);
        if let Ok(Some(return_address)) = address
            && let Some(origin) = self.info.reference(self.unit_idx, &origin)
            && self.calls.len() < limit::MAX_CALL_SITES
        {
            self.calls.push((Svma(return_address), origin));
        }
    }
}

/// Tells whether a type is an array or has one in it.
fn has_array(layout: &Layout) -> bool {
    match &layout.shape {
        Shape::Scalar(_) => false,
        Shape::Array { .. } => true,
        Shape::Aggregate { members, .. } => members.iter().any(|member| has_array(&member.layout)),
    }
}
