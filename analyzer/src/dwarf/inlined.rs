//! Which function's code an instruction is, of those that were inlined into another one, and what type
//! such a function copies.

use super::unit::ParsedUnit;
use super::{DebugInfo, DieRef, Entry, code_range};
use crate::limit;
use dataspace_proto::address::Svma;

/// Functions of Rust's `core` that do nothing but copy a value of their first type parameter from or to
/// memory.
const READS: [&str; 3] =
    ["core::ptr::read", "core::ptr::read_unaligned", "core::ptr::read_volatile"];
const WRITES: [&str; 3] =
    ["core::ptr::write", "core::ptr::write_unaligned", "core::ptr::write_volatile"];

impl DebugInfo {
    /// The type of the values that the code at `svma` only reads from memory, or writes there.
    pub(crate) fn copied_at(&mut self, svma: Svma, is_store: bool) -> Option<DieRef> {
        let unit_idx = self.unit_of_code(svma)?;
        let unit = self.unit(unit_idx)?;
        if !unit.is_rust() {
            return None;
        }
        let inlined = innermost(&unit, unit.function_at(svma)?, svma)?;
        let entry = unit.unit.entry(inlined).ok()?;
        let origin = entry.attr_value(gimli::DW_AT_abstract_origin)?;
        let origin = self.reference(unit_idx, &origin)?;
        let name = self.qualified_name(origin)?;
        let name = name.split('<').next()?;
        let copying = if is_store { WRITES } else { READS };
        if !copying.contains(&name) {
            return None;
        }
        let mut parameter = None;
        self.for_each_child(
            origin,
            |tag| tag == gimli::DW_TAG_template_type_parameter,
            |info, child| parameter = parameter.or_else(|| info.target(origin, child)),
        );
        parameter
    }
}

/// The innermost inlined function around `svma`.
fn innermost(
    unit: &ParsedUnit,
    function: gimli::UnitOffset,
    svma: Svma,
) -> Option<gimli::UnitOffset> {
    let mut found = None;
    let mut next = Some(function);
    for _ in 0..limit::MAX_SCOPE_DEPTH {
        let Some(around) = next.take() else { break };
        let mut tree = unit.unit.entries_tree(Some(around)).ok()?;
        let mut children = tree.root().ok()?.children();
        while let Ok(Some(child)) = children.next() {
            let entry = child.entry();
            let is_inlined = entry.tag() == gimli::DW_TAG_inlined_subroutine;
            if !is_inlined && entry.tag() != gimli::DW_TAG_lexical_block {
                continue;
            }
            if is_around(unit, entry, svma) {
                next = Some(entry.offset());
                found = next.filter(|_| is_inlined).or(found);
                break;
            }
        }
    }
    found
}

fn is_around(unit: &ParsedUnit, entry: &Entry, svma: Svma) -> bool {
    let mut n_left = limit::MAX_SCOPE_RANGES;
    let ranges = code_range::ranges(&unit.dwarf, &unit.unit, entry, &mut n_left);
    ranges.iter().any(|range| (range.begin..range.end).contains(&svma.0))
}
