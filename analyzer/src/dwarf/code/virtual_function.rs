//! Virtual functions of C++ classes, by their slots in the tables that objects point to.

use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::unit::reader::Entry;
use crate::limit;
use crate::types::die::DieRef;
use gimli::{AttributeValue, Operation};

impl DebugInfo {
    /// The declaration of the function in a slot of a class's table (DWARF 5, section 5.7.8), by the class itself or one
    /// that it begins with.
    pub(crate) fn virtual_function(&mut self, class: DieRef, slot: u64) -> Option<DieRef> {
        if let Some(known) = self.virtual_functions.get(&(class, slot)) {
            return known;
        }
        let found = self.find_virtual_function(class, slot)?;
        self.virtual_functions.keep((class, slot), found)
    }

    /// The same; `None` where a class cannot be read now.
    fn find_virtual_function(&mut self, class: DieRef, slot: u64) -> Option<Option<DieRef>> {
        let mut next = Some(class);
        for _ in 0..limit::MAX_TYPE_DEPTH {
            let Some(class) = next.take() else { break };
            let encoding = self.unit(class.unit)?.unit.encoding();
            let (mut found, mut base) = (None, None);
            let is_wanted =
                |tag| matches!(tag, gimli::DW_TAG_subprogram | gimli::DW_TAG_inheritance);
            self.for_each_child(class, is_wanted, |_, entry| match entry.tag() {
                gimli::DW_TAG_subprogram if slot_of(entry, encoding) == Some(slot) => {
                    found.get_or_insert(DieRef { unit: class.unit, offset: entry.offset() });
                }
                gimli::DW_TAG_inheritance if base.is_none() && is_first(entry) => {
                    base = entry.attr_value(gimli::DW_AT_type);
                }
                _ => {}
            });
            if found.is_some() {
                return Some(found);
            }
            next = base.and_then(|base| self.reference(class.unit, &base));
        }
        Some(None)
    }
}

fn slot_of(entry: &Entry, encoding: gimli::Encoding) -> Option<u64> {
    match entry.attr_value(gimli::DW_AT_vtable_elem_location)? {
        AttributeValue::Exprloc(expression) => {
            match expression.operations(encoding).next().ok()?? {
                Operation::UnsignedConstant { value } => Some(value),
                _ => None,
            }
        }
        value => value.udata_value(),
    }
}

/// Tells whether a base class lies where the class begins.
fn is_first(base: &Entry) -> bool {
    let place = base.attr_value(gimli::DW_AT_data_member_location);
    place.is_none_or(|place| place.udata_value() == Some(0))
}
