//! Types of the debug information as descriptors spell them.

use crate::bytes::name::spell;
use crate::dwarf::debug_info::DebugInfo;
use crate::limit;
use crate::types::die::DieRef;

impl DebugInfo {
    /// The type as a descriptor spells it (design section 6).
    pub(super) fn spelled(&mut self, die: DieRef, depth: usize) -> String {
        let die = self.definition(die);
        let Some((_, entry)) = self.entry(die).filter(|_| depth < limit::MAX_TYPE_DEPTH) else {
            return "-".to_owned();
        };
        let target = self.target(die, &entry);
        let name = self.type_name(die);
        let named = |prefix: &str| {
            format!("{prefix}{}", name.as_deref().map_or_else(|| "-".to_owned(), spell))
        };
        let below = |info: &mut Self, prefix: &str| match target {
            Some(target) => format!("{prefix}{}", info.spelled(target, depth + 1)),
            None => format!("{prefix}void"),
        };
        match entry.tag() {
            gimli::DW_TAG_structure_type => named("structure:"),
            gimli::DW_TAG_class_type => named("class:"),
            gimli::DW_TAG_union_type => named("union:"),
            gimli::DW_TAG_enumeration_type => named("enumeration:"),
            gimli::DW_TAG_pointer_type => below(self, "pointer+"),
            gimli::DW_TAG_reference_type => below(self, "reference+"),
            gimli::DW_TAG_rvalue_reference_type => below(self, "rvalue_reference+"),
            gimli::DW_TAG_ptr_to_member_type => below(self, "pointer_to_member+"),
            gimli::DW_TAG_const_type => below(self, "const+"),
            gimli::DW_TAG_volatile_type => below(self, "volatile+"),
            gimli::DW_TAG_restrict_type => below(self, "restrict+"),
            gimli::DW_TAG_atomic_type => below(self, "atomic+"),
            gimli::DW_TAG_subroutine_type => "function".to_owned(),
            gimli::DW_TAG_array_type => {
                let element = below(self, "");
                let dimensions = self.dimensions(die, &entry);
                dimensions.iter().fold(element, |below, it| array_of(it.count, &below))
            }
            gimli::DW_TAG_string_type => {
                let size = entry.attr_value(gimli::DW_AT_byte_size);
                array_of(size.and_then(|size| size.udata_value()), "character")
            }
            gimli::DW_TAG_typedef => {
                let spelled = below(self, "");
                match (spelled.strip_suffix(":-"), name) {
                    (Some(kind), Some(name)) => format!("{kind}:{}", spell(&name)),
                    _ => spelled,
                }
            }
            _ => named(""),
        }
    }
}

/// An array of `count` elements that are spelled so.
pub(super) fn array_of(count: Option<u64>, element: &str) -> String {
    let count = count.map(|count| count.to_string()).unwrap_or_default();
    format!("array[{count}]:{element}")
}
