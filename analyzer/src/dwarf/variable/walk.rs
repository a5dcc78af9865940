//! One pass over a unit for its static variables, which reads nothing else of it.

use crate::dwarf::unit::entry_walk::{EntryKinds, EntryWalk, Has};
use crate::dwarf::unit::reader::{Dwarf, Reader};
use crate::elf::data_symbol::{DataPlace, Storage};
use crate::limit;
use dataspace_proto::address::Svma;
use gimli::{Operation, Reader as _, UnitOffset};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// The findings of a pass.
#[derive(Debug, Default)]
pub(super) struct FoundVariables {
    /// Variables with a place.
    pub(super) defined: Vec<(DataPlace, UnitOffset)>,
    /// Variables that are only declared, if their name was wanted.
    pub(super) declared: Vec<(Arc<str>, UnitOffset)>,
}

/// The variables of a unit. Damage ends the walk; what it found before stays.
pub(super) fn walk(
    dwarf: &Dwarf,
    unit: &gimli::Unit<Reader>,
    kinds: &EntryKinds,
    wanted: &FxHashSet<Arc<str>>,
    room: usize,
) -> FoundVariables {
    let mut walk = VariableWalk { dwarf, unit, found: FoundVariables::default() };
    // Half of a C library's units define no variables.
    if kinds.may_have(|tag, has| is_wanted(tag, has, wanted)) {
        let _ = walk.entries(kinds, wanted, room);
    }
    walk.found
}

/// Tells whether an entry can be a static variable, or declare one that is wanted.
fn is_wanted(tag: gimli::DwTag, has: Has, wanted: &FxHashSet<Arc<str>>) -> bool {
    let is_declared = !wanted.is_empty() && has.declaration;
    tag == gimli::DW_TAG_variable && (has.location || is_declared)
}

struct VariableWalk<'a> {
    dwarf: &'a Dwarf,
    unit: &'a gimli::Unit<Reader>,
    found: FoundVariables,
}

impl VariableWalk<'_> {
    fn entries(
        &mut self,
        kinds: &EntryKinds,
        wanted: &FxHashSet<Arc<str>>,
        room: usize,
    ) -> gimli::Result<()> {
        let abbreviations = &self.unit.abbreviations;
        let header = &self.unit.header;
        let mut walk = EntryWalk::new(header, header.root_offset(), kinds, abbreviations)?;
        for _ in 0..limit::MAX_UNIT_ENTRIES {
            if self.found.defined.len() >= room {
                break;
            }
            let met = walk.next_where(|met| is_wanted(met.tag, met.has, wanted))?;
            let Some(met) = met else { break };
            let is_declared = !wanted.is_empty() && met.has.declaration;
            let offset = met.offset;
            let mut entries = header.entries_raw(abbreviations, Some(offset))?;
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            let (mut place, mut name) = (None, None);
            for spec in abbreviation.attributes() {
                let attribute = entries.read_attribute(*spec)?;
                match (attribute.name(), attribute.value()) {
                    (gimli::DW_AT_location, gimli::AttributeValue::Exprloc(expression)) => {
                        place = self.place(expression);
                        if !is_declared {
                            break;
                        }
                    }
                    (gimli::DW_AT_name, value) if is_declared => name = self.string(value),
                    _ => {}
                }
            }
            if let Some(place) = place {
                self.found.defined.push((place, offset));
            } else if let Some(name) = name.filter(|name| wanted.contains(name)) {
                self.found.declared.push((name, offset));
            }
        }
        Ok(())
    }

    fn string(&self, value: gimli::AttributeValue<Reader>) -> Option<Arc<str>> {
        let bytes = self.dwarf.attr_string(self.unit, value).ok()?;
        crate::dwarf::unit::parsed::bounded_string(&bytes)
    }

    /// The place that an expression says, if it is the same for the whole run.
    fn place(&self, expression: gimli::Expression<Reader>) -> Option<DataPlace> {
        // The first byte tells most locals, which are at an offset in their frame.
        let first = expression.0.clone().read_u8().ok()?;
        if (gimli::DW_OP_breg0.0..=gimli::DW_OP_fbreg.0).contains(&first) {
            return None;
        }
        let mut operations = expression.operations(self.unit.header.encoding());
        let mut at = match operations.next().ok()?? {
            Operation::Address { address } => address,
            Operation::UnsignedConstant { value } => value,
            Operation::AddressIndex { index } | Operation::ConstantIndex { index } => {
                self.dwarf.address(self.unit, index).ok()?
            }
            _ => return None,
        };
        // A number is a place only as an offset in the thread's storage.
        let mut storage = (first == gimli::DW_OP_addr.0
            || first == gimli::DW_OP_addrx.0
            || first == gimli::DW_OP_GNU_addr_index.0)
            .then_some(Storage::Static);
        for _ in 0..limit::MAX_LOCATION_OPERATIONS {
            match operations.next().ok()? {
                Some(Operation::TLS) => storage = Some(Storage::Thread),
                Some(Operation::PlusConstant { value }) => at = at.checked_add(value)?,
                Some(_) => return None,
                None => break,
            }
        }
        Some(DataPlace { storage: storage?, at: Svma(at) })
    }
}
