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
            let class = mangling::class_of_method(name).filter(|_| !mangling::is_rust(name));
            let Some(class) = class else { continue };
            if methods.len() >= limit::MAX_CLASSES {
                break;
            }
            let known = methods.entry(class.into()).or_default();
            if mangling::makes_or_ends(&function.name) {
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
        let declared = self.entry(die)?.1.attr_value(gimli::DW_AT_name)?;
        let mut searched = vec![die.unit];
        let mut found = None;
        for method in methods {
            let Some(unit) = self.unit_of_code(method) else { continue };
            if searched.contains(&unit) {
                continue;
            }
            searched.push(unit);
            found = self.defined_in(unit, name, &declared);
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
        let mut walk = unit.walk_from(unit.unit.header.root_offset()).ok()?;
        for _ in 0..limit::MAX_UNIT_ENTRIES {
            let met = walk.next_where(Met::is_definition).ok()??;
            let die = DieRef { unit: idx, offset: met.offset };
            if is_named(met.offset) == Some(true) && self.type_name(die).as_ref() == Some(name) {
                return Some(die);
            }
        }
        None
    }
}
