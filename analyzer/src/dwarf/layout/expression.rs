//! Types of the debug information by their parts.

use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::layout::made::encoding;
use crate::dwarf::unit::reader::Entry;
use crate::limit;
use crate::types::die::DieRef;
use crate::types::type_expression::{Encoding, Keyword, Prefix, TypeExpression};
use std::sync::Arc;

/// Fortran's characters, which have no entry of their own (DWARF 5 section 5.11).
pub(super) const CHARACTER: &str = "character";

/// The type of one of them.
pub(super) fn character() -> Arc<TypeExpression> {
    let encoding = Encoding::Integer;
    Arc::new(TypeExpression::Base { name: CHARACTER.into(), encoding, n_bytes: 1 })
}

impl DebugInfo {
    /// The type at `die` by its parts.
    pub(super) fn expression(&mut self, die: DieRef, depth: usize) -> Arc<TypeExpression> {
        let die = self.definition(die);
        let Some((_, entry)) = self.entry(die).filter(|_| depth < limit::MAX_TYPE_DEPTH) else {
            return TypeExpression::Unknown.into();
        };
        let mut of = || match self.target(die, &entry) {
            Some(target) => self.expression(target, depth + 1),
            None => TypeExpression::Void.into(),
        };
        let prefixed = |prefix, of| TypeExpression::Prefixed { prefix, of };
        let expression = match entry.tag() {
            gimli::DW_TAG_pointer_type => prefixed(Prefix::Pointer, of()),
            gimli::DW_TAG_reference_type => prefixed(Prefix::Reference, of()),
            gimli::DW_TAG_rvalue_reference_type => prefixed(Prefix::RvalueReference, of()),
            gimli::DW_TAG_ptr_to_member_type => prefixed(Prefix::PointerToMember, of()),
            gimli::DW_TAG_const_type => prefixed(Prefix::Const, of()),
            gimli::DW_TAG_volatile_type => prefixed(Prefix::Volatile, of()),
            gimli::DW_TAG_restrict_type => prefixed(Prefix::Restrict, of()),
            gimli::DW_TAG_atomic_type => prefixed(Prefix::Atomic, of()),
            gimli::DW_TAG_subroutine_type => TypeExpression::Function,
            gimli::DW_TAG_array_type => {
                let element = of();
                let dimensions = self.dimensions(die, &entry);
                return dimensions
                    .iter()
                    .fold(element, |of, it| TypeExpression::array_of(&of, it.count));
            }
            gimli::DW_TAG_string_type => {
                return TypeExpression::array_of(&character(), self.byte_size(die, &entry));
            }
            gimli::DW_TAG_typedef => {
                let below = of();
                let called = self.type_name(die).and_then(|name| below.called(&name));
                return called.map_or(below, Arc::new);
            }
            gimli::DW_TAG_structure_type => self.named(die, Keyword::Structure),
            gimli::DW_TAG_class_type => self.named(die, Keyword::Class),
            gimli::DW_TAG_union_type => self.named(die, Keyword::Union),
            gimli::DW_TAG_enumeration_type => self.named(die, Keyword::Enumeration),
            gimli::DW_TAG_base_type => self.base(die, &entry),
            _ => self.named(die, Keyword::None),
        };
        expression.into()
    }

    fn named(&mut self, die: DieRef, keyword: Keyword) -> TypeExpression {
        TypeExpression::Named { keyword, name: self.type_name(die) }
    }

    fn base(&mut self, die: DieRef, entry: &Entry) -> TypeExpression {
        let encoding = match encoding(entry) {
            gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => Encoding::Integer,
            gimli::DW_ATE_unsigned => Encoding::UnsignedInteger,
            gimli::DW_ATE_unsigned_char => Encoding::UnsignedCharacter,
            other => Encoding::Other(other.0),
        };
        let name = self.type_name(die).unwrap_or_else(|| "-".into());
        let n_bytes = self.byte_size(die, entry).unwrap_or(0);
        TypeExpression::Base { name, encoding, n_bytes }
    }
}
