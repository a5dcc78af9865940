//! Lines of all instructions of a function: the calls in line are read once for all of them.

use crate::dwarf::code::line::{InlinedCall, SourceLine, chained};
use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::unit::code_range;
use crate::dwarf::unit::parsed::ParsedUnit;
use crate::limit;
use crate::types::die::{DieRef, UnitIdx};
use dataspace_proto::address::Svma;
use gimli::UnitOffset;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The lines of one instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListedLine {
    /// Its own, then those of the calls in line around it, outwards; empty where none is named.
    pub(crate) lines: Vec<SourceLine>,
    /// True where the statement begins with it, as far as the compiler says.
    pub(crate) is_statement: bool,
    /// True where the line table says that it is of no line.
    pub(crate) is_of_no_line: bool,
    /// The column in its line, from 1 on; 0 where it is not told.
    pub(crate) column: u16,
}

/// A call that was put in line, and its code.
struct PlacedCall {
    offset: UnitOffset,
    depth: isize,
    ranges: Vec<gimli::Range>,
    /// Read where an instruction in it is met.
    call: Option<InlinedCall>,
}

/// A function and all that was put in line in it, outer calls before those in them.
struct CallsInLine {
    unit: UnitIdx,
    parsed: Arc<ParsedUnit>,
    function: Option<Arc<str>>,
    calls: Vec<PlacedCall>,
}

impl DebugInfo {
    /// The lines of the instructions at `addresses`.
    pub(crate) fn listed_lines(&mut self, addresses: &[Svma]) -> Vec<ListedLine> {
        let mut known = FxHashMap::default();
        addresses.iter().map(|svma| self.listed_line(*svma, &mut known)).collect()
    }

    fn listed_line(
        &mut self,
        svma: Svma,
        known: &mut FxHashMap<DieRef, Option<CallsInLine>>,
    ) -> ListedLine {
        let Some(table) = self.line_table_at(svma) else { return ListedLine::default() };
        let Some(mark) = table.mark_at(svma) else { return ListedLine::default() };
        let is_statement = mark.is_statement;
        if mark.line == 0 {
            return ListedLine { is_statement, is_of_no_line: true, ..ListedLine::default() };
        }
        let (outermost, calls) = self.listed_calls(svma, known).unwrap_or_default();
        let lines = chained(&table, (mark.file, mark.line), outermost, calls);
        ListedLine { lines, is_statement, is_of_no_line: false, column: mark.column }
    }

    /// The function at `svma`, and the calls in line around it, outermost first.
    fn listed_calls(
        &mut self,
        svma: Svma,
        known: &mut FxHashMap<DieRef, Option<CallsInLine>>,
    ) -> Option<(Option<Arc<str>>, Vec<InlinedCall>)> {
        let unit_idx = self.unit_of_code(svma)?;
        let parsed = self.unit(unit_idx)?;
        let function = DieRef { unit: unit_idx, offset: parsed.function_at(svma)? };
        let found = match known.entry(function) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(vacant) => vacant.insert(self.all_calls_in_line(function, parsed)),
        };
        let found = found.as_mut()?;
        Some((found.function.clone(), found.around(svma, self)))
    }

    /// All calls in line in a function.
    fn all_calls_in_line(
        &mut self,
        function: DieRef,
        parsed: Arc<ParsedUnit>,
    ) -> Option<CallsInLine> {
        let name = self.qualified_name(function);
        let mut calls = Vec::new();
        {
            let mut walk = parsed.walk_from(function.offset).ok()?;
            let has_children = matches!(walk.next(), Ok(Some(root)) if root.has_children);
            let mut n_ranges_left = limit::MAX_FUNCTION_RANGES;
            let is_wanted = |tag| tag == gimli::DW_TAG_inlined_subroutine;
            while has_children
                && let Ok(Some(met)) = walk.next_where(|met| met.depth < 1 || is_wanted(met.tag))
                && met.depth >= 1
                && calls.len() < limit::MAX_LISTED_CALLS
            {
                let Ok(entry) = parsed.unit.entry(met.offset) else { break };
                let (dwarf, unit) = (&parsed.dwarf, &parsed.unit);
                let ranges = code_range::ranges(dwarf, unit, &entry, &mut n_ranges_left);
                calls.push(PlacedCall { offset: met.offset, depth: met.depth, ranges, call: None });
            }
        }
        Some(CallsInLine { unit: function.unit, parsed, function: name, calls })
    }
}

impl CallsInLine {
    /// The calls around `svma`, outermost first.
    fn around(&mut self, svma: Svma, debug: &mut DebugInfo) -> Vec<InlinedCall> {
        let mut around = Vec::new();
        // Depth of a call that does not hold the address: nothing in it does.
        let mut elsewhere = isize::MAX;
        for placed in &mut self.calls {
            if around.len() >= limit::MAX_INLINED_CALLS {
                break;
            }
            if placed.depth > elsewhere {
                continue;
            }
            elsewhere = isize::MAX;
            if !placed.ranges.iter().any(|range| (range.begin..range.end).contains(&svma.0)) {
                elsewhere = placed.depth;
                continue;
            }
            if placed.call.is_none() {
                let entry = self.parsed.unit.entry(placed.offset).ok();
                placed.call = entry.map(|entry| debug.call_in_line(self.unit, &entry));
            }
            around.extend(placed.call.clone());
        }
        around
    }
}
