//! Classes that a unit only declares: their definitions in the units that their methods are in.
//!
//! gcc describes a class with a virtual method that is not inline in full only where that is (`-femit-class-debug-always`
//! is off), clang one whose constructors are not inline where these are (`-fno-standalone-debug`).

use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::unit::entry_walk::Met;
use crate::dwarf::unit::reader::Reader;
use crate::elf::image::FunctionSymbol;
use crate::known::mangling;
use crate::limit;
use crate::types::die::{DieRef, UnitIdx};
use gimli::AttributeValue;
use std::sync::Arc;

impl DebugInfo {
    /// Takes the functions by whose names the units of classes are found.
    pub(crate) fn note_methods(&mut self, functions: &[FunctionSymbol]) {
        let methods = &mut self.class_definitions.methods;
        for function in functions {
            let name = &*function.name;
            if mangling::is_rust(name) {
                continue;
            }
            let is_short = |class: &String| class.len() <= limit::MAX_CLASS_NAME_BYTES;
            let class = mangling::class_of_method(name).filter(is_short);
            let Some(class) = class else { continue };
            if methods.len() >= limit::MAX_CLASSES {
                break;
            }
            let known = methods.entry(class.into()).or_default();
            if mangling::makes_or_ends(name) {
                known.insert(0, function.start);
                known.truncate(limit::MAX_METHODS);
            } else if known.len() < limit::MAX_METHODS {
                known.push(function.start);
            }
        }
    }

    /// The entry that defines the class `name`, which the one at `die` only declares.
    pub(super) fn defined_elsewhere(&mut self, die: DieRef, name: &Arc<str>) -> Option<DieRef> {
        if let Some(known) = self.class_definitions.known.get(name) {
            return known;
        }
        let methods = self.class_definitions.methods.get(&**name)?.clone();
        let (unit, entry) = self.entry(die)?;
        let declared = entry.attr_value(gimli::DW_AT_name)?;
        let is_union = entry.tag() == gimli::DW_TAG_union_type;
        if !unit.is_cpp() {
            return None;
        }
        let mut searched = vec![die.unit];
        let mut found = None;
        for method in methods {
            let Some(idx) = self.unit_of_code(method) else { continue };
            if searched.contains(&idx) {
                continue;
            }
            searched.push(idx);
            // What cannot be read now, or would take too long, is not known to be nowhere.
            let unit = self.unit(idx)?;
            let n_bytes = unit.unit.header.length_including_self() as u64;
            let left = &mut self.class_definitions.n_bytes_left;
            *left = left.checked_sub(n_bytes)?;
            found =
                unit.is_cpp().then(|| self.defined_in(idx, name, &declared, is_union)).flatten();
            if found.is_some() {
                break;
            }
        }
        self.class_definitions.known.keep(Arc::clone(name), found)
    }

    /// The entry of a unit that defines the class `name`, of which `declared` is the last part.
    fn defined_in(
        &mut self,
        idx: UnitIdx,
        name: &Arc<str>,
        declared: &AttributeValue<Reader>,
        is_union: bool,
    ) -> Option<DieRef> {
        let unit = self.unit(idx)?;
        let own = name.rsplit("::").next()?;
        let is_named = |offset| {
            let value = unit.name_value(offset)?;
            // Linkers merge the names of all units.
            if let (AttributeValue::DebugStrRef(at), AttributeValue::DebugStrRef(declared)) =
                (&value, declared)
            {
                return Some(at == declared);
            }
            Some(*unit.string(value)? == *own)
        };
        // One in a function has another around it than its name tells.
        let depth = name.split("::").count() as isize;
        let is_like = |met: &Met| {
            let is_as_deep = met.depth == depth;
            is_as_deep && met.is_definition() && (met.tag == gimli::DW_TAG_union_type) == is_union
        };
        let mut walk = unit.walk_from(unit.unit.header.root_offset()).ok()?;
        let mut n_left = limit::MAX_ALIKE_CLASSES;
        for _ in 0..limit::MAX_UNIT_ENTRIES {
            let met = walk.next_within(depth, is_like).ok()??;
            if is_named(met.offset) != Some(true) {
                continue;
            }
            let die = DieRef { unit: idx, offset: met.offset };
            if self.type_name(die).as_ref() == Some(name) {
                return Some(die);
            }
            n_left -= 1;
            if n_left == 0 {
                break;
            }
        }
        None
    }
}
