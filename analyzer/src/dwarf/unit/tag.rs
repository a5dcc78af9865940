//! Sorts of entries, by their tags.

pub(crate) const fn is_transparent(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type
    )
}

/// Tells whether an entry is a structure, class or union.
pub(crate) const fn is_aggregate(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type
    )
}

/// Tells whether an entry tells what a type is made of.
pub(crate) const fn is_part(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_member
            | gimli::DW_TAG_inheritance
            | gimli::DW_TAG_template_type_parameter
            | gimli::DW_TAG_variant_part
            | gimli::DW_TAG_variant
    )
}

/// Tells whether all that is inside of an entry are its own parts: parameters of a function that is declared, elements
/// of a type, arguments of a call.
pub(crate) const fn is_closed(tag: gimli::DwTag, is_declaration: bool) -> bool {
    match tag {
        gimli::DW_TAG_subprogram => is_declaration,
        gimli::DW_TAG_subroutine_type
        | gimli::DW_TAG_enumeration_type
        | gimli::DW_TAG_array_type
        | gimli::DW_TAG_call_site
        | gimli::DW_TAG_GNU_call_site => true,
        _ => false,
    }
}
