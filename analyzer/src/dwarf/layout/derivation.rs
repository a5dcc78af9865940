//! Derived classes of a unit: which begin with which other class, and what type they are made for.

use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::layout::kept::Derivation;
use crate::dwarf::unit::parsed::ParsedUnit;
use crate::dwarf::unit::reader::Entry;
use crate::limit;
use crate::types::die::{DieRef, UnitIdx};
use gimli::UnitOffset;
use std::sync::Arc;

impl DebugInfo {
    /// The only class of the unit that begins with `base` and is made for one of `parameters`, or is
    /// one of `named`: a container's node, which the container's links call by its base alone.
    pub(super) fn node_of(
        &mut self,
        base: DieRef,
        parameters: &[DieRef],
        named: &[DieRef],
    ) -> Option<DieRef> {
        let known = self.derivations(base.unit)?;
        let first = known.partition_point(|known| known.base.0 < base.offset.0);
        let of_base = known[first..].iter().take_while(|known| known.base == base.offset);
        // `_List_node<int>` and `_List_node<cell>` both begin with `_List_node_base`: the parameter tells
        // which is meant.
        let mut nodes = of_base.filter(|known| {
            let at = |offset| DieRef { offset, ..base };
            let is_for = known.parameter.is_some_and(|offset| parameters.contains(&at(offset)));
            is_for || named.contains(&at(known.derived))
        });
        let only = nodes.next()?;
        // Two that fit leave it open: a guess would name another container's node.
        nodes.next().is_none().then_some(DieRef { offset: only.derived, ..base })
    }

    fn derivations(&mut self, idx: UnitIdx) -> Option<Arc<[Derivation]>> {
        if let Some(known) = self.derivations.get(&idx) {
            return Some(known);
        }
        let unit = self.unit(idx)?;
        let mut found = Vec::new();
        // Damage ends the walk: what it found before stays.
        let _ = collect(&unit, &mut found);
        found.sort_unstable_by_key(|it| (it.base.0, it.derived.0));
        Some(self.derivations.keep(idx, found.into()))
    }
}

/// A class around the entry that the walk is at.
struct Open {
    depth: isize,
    class: UnitOffset,
    base: Option<UnitOffset>,
    parameter: Option<UnitOffset>,
}

/// One walk over a unit's classes, their bases and their templates' parameters.
fn collect(unit: &ParsedUnit, found: &mut Vec<Derivation>) -> gimli::Result<()> {
    let mut walk = unit.walk_from(unit.unit.header.root_offset())?;
    let unit = &unit.unit;
    let mut open: Vec<Open> = Vec::new();
    for _ in 0..limit::MAX_UNIT_ENTRIES {
        if found.len() >= limit::MAX_DERIVATIONS {
            break;
        }
        let Some(met) = walk.next_where(|met| is_of_class(met.tag))? else { break };
        let (offset, depth) = (met.offset, met.depth);
        while open.last().is_some_and(|class| class.depth >= depth) {
            found.extend(open.pop().and_then(derivation));
        }
        match met.tag {
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => {
                open.push(Open { depth, class: offset, base: None, parameter: None });
            }
            tag @ (gimli::DW_TAG_inheritance | gimli::DW_TAG_template_type_parameter) => {
                let Some(class) = open.last_mut().filter(|class| class.depth + 1 == depth) else {
                    continue;
                };
                let entry = unit.entry(offset)?;
                let Some(gimli::AttributeValue::UnitRef(target)) =
                    entry.attr_value(gimli::DW_AT_type)
                else {
                    continue;
                };
                if tag == gimli::DW_TAG_template_type_parameter {
                    class.parameter.get_or_insert(target);
                } else if is_at_start(&entry) {
                    // Only a base at offset 0 has the address that the link holds.
                    class.base.get_or_insert(target);
                }
            }
            _ => {}
        }
    }
    found.extend(open.into_iter().rev().filter_map(derivation));
    Ok(())
}

/// Tells whether an entry is a class, or tells what it is made from or for.
const fn is_of_class(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_inheritance
            | gimli::DW_TAG_template_type_parameter
    )
}

fn derivation(class: Open) -> Option<Derivation> {
    Some(Derivation { base: class.base?, derived: class.class, parameter: class.parameter })
}

/// Tells whether a base is at the beginning of its class.
fn is_at_start(entry: &Entry) -> bool {
    let place = entry.attr_value(gimli::DW_AT_data_member_location);
    place.is_some_and(|place| place.udata_value() == Some(0))
}
