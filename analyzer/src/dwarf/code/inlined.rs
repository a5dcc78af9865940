//! Code of a function that is inlined from functions that do nothing but copy a value, with its type.

use crate::dwarf::code::kept::{Copies, CopyingCode};
use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::unit::code_range;
use crate::known::rust_std::{READS, WRITES};
use crate::limit;
use crate::types::die::DieRef;
use dataspace_proto::address::Svma;
use rustc_hash::FxHashMap;
use std::sync::Arc;

impl DebugInfo {
    /// The type of the values that the code at `svma` only reads from memory, or writes there.
    pub(crate) fn copied_at(&mut self, svma: Svma, is_store: bool) -> Option<DieRef> {
        let unit_idx = self.unit_of_code(svma)?;
        let unit = self.unit(unit_idx).filter(|unit| unit.is_rust())?;
        let function = DieRef { unit: unit_idx, offset: unit.function_at(svma)? };
        let known = self.copying_code(function);
        let here = known.iter().filter(|code| (code.start..code.end).contains(&svma.0));
        let innermost = here.min_by_key(|code| code.end - code.start)?;
        (innermost.copies.is_store == is_store).then_some(innermost.copies.of)
    }

    fn copying_code(&mut self, function: DieRef) -> Arc<[CopyingCode]> {
        if let Some(known) = self.copying_codes.get(&function) {
            return known;
        }
        let found = self.find_copying_code(function).into();
        self.copying_codes.keep(function, found)
    }

    /// Damage ends the walk: what it found before stays.
    fn find_copying_code(&mut self, function: DieRef) -> Vec<CopyingCode> {
        let mut found = Vec::new();
        let Some(unit) = self.unit(function.unit) else { return found };
        let Ok(mut walk) = unit.walk_from(function.offset) else { return found };
        if !matches!(walk.next(), Ok(Some(root)) if root.has_children) {
            return found;
        }
        let mut known: FxHashMap<DieRef, Option<Copies>> = FxHashMap::default();
        let mut n_ranges_left = limit::MAX_FUNCTION_RANGES;
        while let Ok(Some(met)) =
            walk.next_where(|met| met.depth < 1 || met.tag == gimli::DW_TAG_inlined_subroutine)
            && met.depth >= 1
            && let Ok(entry) = unit.unit.entry(met.offset)
        {
            let origin = entry.attr_value(gimli::DW_AT_abstract_origin);
            let origin = origin.and_then(|origin| self.reference(function.unit, &origin));
            let Some(origin) = origin else { continue };
            let copies = *known.entry(origin).or_insert_with(|| self.copies_of(origin));
            let Some(copies) = copies else { continue };
            let ranges = code_range::ranges(&unit.dwarf, &unit.unit, &entry, &mut n_ranges_left);
            found.extend(ranges.iter().map(|range| CopyingCode {
                start: range.begin,
                end: range.end,
                copies,
            }));
        }
        found
    }

    /// The copy that the function described at `origin` makes, if it does nothing else.
    fn copies_of(&mut self, origin: DieRef) -> Option<Copies> {
        let name = self.qualified_name(origin)?;
        let name = name.split('<').next()?;
        let is_store = WRITES.contains(&name);
        if !is_store && !READS.contains(&name) {
            return None;
        }
        let mut of = None;
        self.for_each_child(
            origin,
            |tag| tag == gimli::DW_TAG_template_type_parameter,
            |info, child| of = of.or_else(|| info.target(origin, child)),
        );
        of.map(|of| Copies { is_store, of })
    }
}

#[cfg(test)]
mod tests {
    use super::{READS, WRITES};
    use crate::dwarf::debug_info::DebugInfo;
    use crate::dwarf::sample;
    use crate::program::{Program, has_tool};
    use std::collections::BTreeSet;

    /// The functions right in `core::ptr` whose own names end so, without their parameters.
    fn functions(info: &mut DebugInfo, ending: &str) -> BTreeSet<String> {
        let functions = sample::entries(info, &[gimli::DW_TAG_subprogram]).into_iter();
        let named = functions.filter_map(|die| {
            let name = info.qualified_name(die)?;
            let name = name.strip_suffix(ending)?;
            let (scope, _) = name.rsplit_once("::")?;
            (scope == "core::ptr").then(|| name.to_owned())
        });
        named.collect()
    }

    #[test]
    fn functions_that_copy_a_value_have_these_names() {
        if !has_tool("rustc") {
            return;
        }
        let flags = "--edition 2024 --crate-name program -g";
        let program = Program::compile("rustc", "arms.rs", flags);
        let mut info = sample::info(&program);
        let known: BTreeSet<String> =
            READS.iter().chain(&WRITES).map(|name| (*name).to_owned()).collect();
        // The program has a type for nothing else.
        assert_eq!(functions(&mut info, "<program::Copied>"), known);
    }
}
