//! Types of the debug information as [`Layout`]s.

use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::unit::entry_walk::Met;
use crate::dwarf::unit::reader::Entry;
use crate::dwarf::unit::tag::is_transparent;
use crate::known::language;
use crate::limit;
use crate::types::die::DieRef;
use crate::types::layout::{AggregateKind, Layout, ScalarKind, Shape};
use crate::types::type_expression::TypeExpression;
use std::sync::Arc;

impl DebugInfo {
    /// The layout of the type at `die`, with typedefs and qualifiers taken off where they only
    /// rename. Damage gives an opaque scalar.
    pub(crate) fn layout(&mut self, die: DieRef) -> Arc<Layout> {
        if let Some(layout) = self.layouts.known.get(&die) {
            return Arc::clone(layout);
        }
        let die = self.definition(die);
        if let Some(layout) = self.layouts.known.get(&die) {
            return Arc::clone(layout);
        }
        let is_over_budget = self.layouts.in_progress.len() >= limit::MAX_TYPE_DEPTH
            || self.layouts.known.len() >= limit::MAX_LAYOUTS
            || self.layouts.n_members >= limit::MAX_LAYOUTS;
        if is_over_budget || !self.layouts.in_progress.insert(die) {
            return opaque(TypeExpression::Unknown.into());
        }
        let made = self.make_layout(die);
        let layout = made.filter(|made| made.depth <= limit::MAX_TYPE_DEPTH);
        let layout = layout.unwrap_or_else(|| opaque(TypeExpression::Unknown.into()));
        self.layouts.in_progress.remove(&die);
        self.layouts.known.insert(die, Arc::clone(&layout));
        layout
    }

    /// The entry that defines the type which the one at `die` only declares by its signature;
    /// itself where there is none.
    pub(crate) fn definition(&mut self, die: DieRef) -> DieRef {
        let mut next = die;
        for _ in 0..limit::MAX_TYPE_DEPTH {
            let Some((_, entry)) = self.entry(next) else { return die };
            let Some(signature) = entry.attr_value(gimli::DW_AT_signature) else { return next };
            let Some(found) = self.reference(next.unit, &signature) else { return die };
            next = found;
        }
        die
    }

    fn make_layout(&mut self, die: DieRef) -> Option<Arc<Layout>> {
        if let Some(declared) = self.declared.layout(die) {
            return Some(Arc::new(declared));
        }
        let (_, entry) = self.entry(die)?;
        let size = self.byte_size(die, &entry);
        match entry.tag() {
            tag if is_transparent(tag) => self.transparent(die, &entry),
            gimli::DW_TAG_structure_type => self.aggregate(die, &entry, AggregateKind::Structure),
            gimli::DW_TAG_class_type => self.aggregate(die, &entry, AggregateKind::Class),
            gimli::DW_TAG_union_type => self.aggregate(die, &entry, AggregateKind::Union),
            gimli::DW_TAG_array_type => self.array(die, &entry),
            gimli::DW_TAG_string_type => self.text(die, &entry),
            tag => self.scalar(die, &entry, (tag, size)),
        }
    }

    fn scalar(
        &mut self,
        die: DieRef,
        entry: &Entry,
        (tag, size): (gimli::DwTag, Option<u64>),
    ) -> Option<Arc<Layout>> {
        let target = self.target(die, entry);
        let kind = match tag {
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type
            | gimli::DW_TAG_ptr_to_member_type => ScalarKind::Pointer,
            gimli::DW_TAG_base_type => base_kind(entry),
            gimli::DW_TAG_enumeration_type | gimli::DW_TAG_subrange_type => ScalarKind::Number,
            _ => ScalarKind::Opaque,
        };
        // DWARF 5 section 5.3: a pointer's size may be left to the unit's address size. A pointer to
        // a member function is a pair (Itanium C++ ABI 2.3.2).
        let size = match (tag, size) {
            (_, Some(size)) => size,
            (gimli::DW_TAG_ptr_to_member_type, None) if self.is_function(target) => 16,
            (_, None) if kind == ScalarKind::Pointer => 8,
            (gimli::DW_TAG_subroutine_type, None) => 0,
            (_, None) => return None,
        };
        let name = self.scalar_name(die, entry);
        let expression = self.expression(die, 0);
        let layout = Layout::new(expression, name, size, Shape::Scalar(kind));
        let function = (tag == gimli::DW_TAG_subroutine_type).then_some(die);
        let pointee = target.filter(|_| is_pointer(tag));
        Some(Arc::new(Layout { pointee, die: function, ..layout }))
    }

    /// Tells whether a type is that of functions.
    pub(crate) fn is_function(&mut self, die: Option<DieRef>) -> bool {
        let entry = die.and_then(|die| self.entry(die));
        entry.is_some_and(|(_, entry)| entry.tag() == gimli::DW_TAG_subroutine_type)
    }

    /// A scalar's name: for a pointer without one, as C declares it: `cell *`, by the name that the
    /// declaration gives what is pointed at.
    fn scalar_name(&mut self, die: DieRef, entry: &Entry) -> Arc<str> {
        if let Some(name) = self.type_name(die) {
            return name;
        }
        let mut suffix = String::new();
        let (mut die, mut tag) = (die, entry.tag());
        for _ in 0..limit::MAX_TYPE_DEPTH {
            if is_pointer(tag) {
                suffix.insert(0, if tag == gimli::DW_TAG_pointer_type { '*' } else { '&' });
            } else if !is_transparent(tag) {
                return "-".into();
            }
            let target = self.entry(die).and_then(|(_, entry)| self.target(die, &entry));
            let Some(target) = target else { return format!("{} {suffix}", language::VOID).into() };
            let Some((_, entry)) = self.entry(target) else { break };
            (die, tag) = (target, entry.tag());
            // Where types have name spaces, libraries call each other's types by names of their own.
            if is_transparent(tag)
                && self.unit(target.unit).is_none_or(|unit| unit.has_name_spaces())
            {
                continue;
            }
            if let Some(name) = self.type_name(target) {
                return format!("{name} {suffix}").into();
            }
        }
        "-".into()
    }

    /// A typedef or qualifier: the layout below, under another expression where that changes it.
    fn transparent(&mut self, die: DieRef, entry: &Entry) -> Option<Arc<Layout>> {
        let target = self.target(die, entry)?;
        let below = self.layout(target);
        let expression = self.expression(die, 0);
        let is_typedef = entry.tag() == gimli::DW_TAG_typedef;
        let name = match self.type_name(die) {
            // C names an unnamed aggregate by its typedef.
            Some(name) if is_typedef && &*below.name == "-" => name,
            _ => Arc::clone(&below.name),
        };
        if expression == below.expression && name == below.name {
            return Some(below);
        }
        let expression = if below.is_aggregate() && !is_typedef {
            Arc::clone(&below.expression)
        } else {
            expression
        };
        let layout = Layout::new(expression, name, below.size, below.shape.clone());
        Some(Arc::new(Layout { pointee: below.pointee, die: below.die, ..layout }))
    }

    /// The type that an entry is made from.
    pub(crate) fn target(&mut self, die: DieRef, entry: &Entry) -> Option<DieRef> {
        self.reference(die.unit, &entry.attr_value(gimli::DW_AT_type)?)
    }

    /// Calls `visit` for each child of `die` whose tag is wanted; damage ends the walk.
    pub(crate) fn for_each_child(
        &mut self,
        die: DieRef,
        is_wanted: impl Fn(gimli::DwTag) -> bool,
        mut visit: impl FnMut(&mut Self, &Entry),
    ) {
        let Some(unit) = self.unit(die.unit) else { return };
        let Ok(mut walk) = unit.walk_from(die.offset) else { return };
        if !matches!(walk.next(), Ok(Some(root)) if root.has_children) {
            return;
        }
        // Each entry is looked at for all that it is inside of.
        let is_outside = |depth: isize| !(1..=limit::MAX_TYPE_DEPTH as isize).contains(&depth);
        let is_of_interest =
            |met: &Met| is_outside(met.depth) || met.depth == 1 && is_wanted(met.tag);
        while let Ok(Some(met)) = walk.next_within(1, is_of_interest) {
            if is_outside(met.depth) {
                break;
            }
            let Ok(entry) = unit.unit.entry(met.offset) else { break };
            visit(self, &entry);
        }
    }

    pub(super) fn byte_size(&mut self, die: DieRef, entry: &Entry) -> Option<u64> {
        let own = entry.attr_value(gimli::DW_AT_byte_size).and_then(|value| value.udata_value());
        if own.is_some() || !is_transparent(entry.tag()) {
            return own;
        }
        let target = self.target(die, entry)?;
        Some(self.layout(target).size)
    }

    /// The type's own name with its name spaces, `None` where it has none.
    pub(super) fn type_name(&mut self, die: DieRef) -> Option<Arc<str>> {
        let (unit, entry) = self.entry(die)?;
        let name = unit.string(entry.attr_value(gimli::DW_AT_name)?)?;
        Some(match self.scope_of_type(die) {
            // Rust and C++ name types by their name space, C has none.
            Some(scope) => format!("{scope}::{name}").into(),
            None => name,
        })
    }

    /// The name space of a type: a definition may stand elsewhere than its declaration, as it does
    /// in a type unit of gcc's.
    fn scope_of_type(&mut self, die: DieRef) -> Option<String> {
        let mut next = die;
        for _ in 0..limit::MAX_TYPE_DEPTH {
            let (unit, entry) = self.entry(next)?;
            let Some(declared) = entry.attr_value(gimli::DW_AT_specification) else {
                return unit.scope_of(&entry);
            };
            next = self.reference(next.unit, &declared)?;
        }
        None
    }
}

fn is_pointer(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type
    )
}

/// The encoding of a base type; 0, which is none, where that is not told.
pub(super) fn encoding(entry: &Entry) -> gimli::DwAte {
    match entry.attr_value(gimli::DW_AT_encoding) {
        Some(gimli::AttributeValue::Encoding(encoding)) => encoding,
        _ => gimli::DwAte(0),
    }
}

/// The sort of a base type (DWARF 5 section 5.1.1).
fn base_kind(entry: &Entry) -> ScalarKind {
    let size = entry.attr_value(gimli::DW_AT_byte_size).and_then(|value| value.udata_value());
    match encoding(entry) {
        gimli::DW_ATE_float
        | gimli::DW_ATE_complex_float
        | gimli::DW_ATE_imaginary_float
        | gimli::DW_ATE_decimal_float => ScalarKind::Float,
        // Nobody keeps other things in truth values.
        gimli::DW_ATE_boolean => ScalarKind::Number,
        _ if size == Some(1) => ScalarKind::Byte,
        _ => ScalarKind::Number,
    }
}

pub(super) fn opaque(expression: Arc<TypeExpression>) -> Arc<Layout> {
    let name = expression.to_string().into();
    Arc::new(Layout::new(expression, name, 0, Shape::Scalar(ScalarKind::Opaque)))
}
