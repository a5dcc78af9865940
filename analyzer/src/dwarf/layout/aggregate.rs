//! Structures, classes, unions and what of a type is there in variants.

use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::unit::reader::{Entry, Reader};
use crate::dwarf::unit::tag::is_part;
use crate::dwarf::variable::location;
use crate::known::storage::is_storage;
use crate::limit;
use crate::types::descent::DISCRIMINANT;
use crate::types::die::DieRef;
use crate::types::layout::{AggregateKind, Layout, Member, ScalarKind, Shape};
use crate::types::type_expression::TypeExpression;
use gimli::Operation;
use std::sync::Arc;

/// Members of a class that only keeps a value, the value among them: libstdc++'s
/// `_Sp_counted_ptr_inplace<T>::_Impl` has an empty base.
const MAX_AROUND_ROOM: usize = 3;

impl DebugInfo {
    /// The layout of an aggregate; of one that only keeps a value, that of the value.
    pub(super) fn aggregate(
        &mut self,
        die: DieRef,
        entry: &Entry,
        kind: AggregateKind,
    ) -> Option<Arc<Layout>> {
        self.aggregate_as(die, entry, kind, true)
    }

    /// The layout of an aggregate as it is declared, whatever it is for.
    pub(super) fn declared_aggregate(&mut self, die: DieRef) -> Option<Arc<Layout>> {
        let known = self.layout(die);
        if known.die == Some(die) {
            return Some(known);
        }
        let (_, entry) = self.entry(die)?;
        let kind = match entry.tag() {
            gimli::DW_TAG_structure_type => AggregateKind::Structure,
            gimli::DW_TAG_class_type => AggregateKind::Class,
            gimli::DW_TAG_union_type => AggregateKind::Union,
            _ => return None,
        };
        self.aggregate_as(die, &entry, kind, false)
    }

    fn aggregate_as(
        &mut self,
        die: DieRef,
        entry: &Entry,
        kind: AggregateKind,
        is_seen_through: bool,
    ) -> Option<Arc<Layout>> {
        let name = self.type_name(die);
        let keyword = kind.keyword();
        let expression = Arc::new(TypeExpression::Named { keyword, name: name.clone() });
        let name = name.unwrap_or_else(|| "-".into());
        if entry.attr_value(gimli::DW_AT_declaration).is_some() {
            if let Some(found) = self.defined_elsewhere(die, &name) {
                return Some(self.layout(found));
            }
            let shape = Shape::Scalar(ScalarKind::Opaque);
            return Some(Arc::new(Layout::new(expression, name, 0, shape)));
        }
        let size = self.byte_size(die, entry).unwrap_or(0);
        let mut parts = Parts::default();
        self.collect_parts(die, &mut parts, 0);
        self.layouts.n_members += parts.members.len();
        let kind = if parts.has_variants { AggregateKind::Variants } else { kind };
        let room = if is_seen_through { self.room(&parts.members) } else { None };
        let mut members: Vec<Member> =
            parts.members.into_iter().map(|raw| self.member(raw)).collect();
        if let Some(kept) = room.and_then(|room| kept(room, size, &members)) {
            return Some(kept);
        }
        members.sort_by_key(|member| (member.byte_range().0, member.bits));
        if let Some(held) = parts.parameter {
            if is_seen_through && let Some(layout) = self.held(held, size, &name, &members) {
                return Some(layout);
            }
            self.fill_storage(held, &mut members);
        }
        let shape = Shape::Aggregate { kind, members: members.into() };
        let layout = Layout::new(expression, name, size, shape);
        Some(Arc::new(Layout { die: Some(die), ..layout }))
    }

    /// Collects what a type is made of, with what its variants are made of.
    fn collect_parts(&mut self, die: DieRef, parts: &mut Parts, depth: usize) {
        let mut inner = Vec::new();
        self.for_each_child(die, is_part, |info, child| match child.tag() {
            gimli::DW_TAG_variant_part | gimli::DW_TAG_variant => {
                inner.push(DieRef { offset: child.offset(), ..die });
            }
            gimli::DW_TAG_template_type_parameter if parts.parameter.is_none() => {
                parts.parameter = info.target(die, child);
            }
            _ if parts.members.len() < limit::MAX_MEMBERS => {
                parts.members.extend(RawMember::read(info, die, child));
            }
            _ => {}
        });
        for part in inner.into_iter().take(limit::MAX_MEMBERS) {
            parts.has_variants = true;
            if depth < limit::MAX_TYPE_DEPTH && parts.members.len() < limit::MAX_MEMBERS {
                self.collect_parts(part, parts, depth + 1);
            }
        }
    }

    /// The member at the beginning of a few that is room for a value.
    fn room(&mut self, members: &[RawMember]) -> Option<usize> {
        if members.len() > MAX_AROUND_ROOM {
            return None;
        }
        members.iter().position(|raw| {
            raw.offset == 0 && self.type_name(raw.type_die).is_some_and(|name| is_storage(&name))
        })
    }

    fn member(&mut self, raw: RawMember) -> Member {
        let layout = self.layout(raw.type_die);
        let bits = raw.bit_size.map(|width| {
            let first = match (raw.data_bit_offset, raw.old_bit_offset) {
                (Some(first), _) => first,
                // DWARF 2: counted from the most significant bit of the storage unit, and less than
                // nothing for one that goes on after the unit.
                (None, Some(from_top)) => {
                    let storage = raw.storage_bytes.unwrap_or(layout.size).saturating_mul(8);
                    let end = raw.offset.saturating_mul(8).saturating_add(storage);
                    let last = end.saturating_add_signed(from_top.saturating_neg());
                    last.saturating_sub(width)
                }
                (None, None) => raw.offset.saturating_mul(8),
            };
            (first, width)
        });
        Member { name: raw.name, offset: raw.offset, bits, layout }
    }

    /// The type that a template is room for that has nothing but bytes, just as many as its parameter:
    /// libstdc++'s `__aligned_membuf<T>`, in which nodes keep their values.
    fn held(
        &mut self,
        parameter: DieRef,
        size: u64,
        name: &str,
        members: &[Member],
    ) -> Option<Arc<Layout>> {
        if !is_storage(name) || !members.iter().all(|member| is_bytes(&member.layout)) {
            return None;
        }
        let layout = self.layout(parameter);
        (size != 0 && layout.size == size && !is_bytes(&layout)).then_some(layout)
    }

    /// Gives members that are room for a value (`std::aligned_storage<…>::type`) the type of the
    /// template's parameter, if they are as large.
    fn fill_storage(&mut self, parameter: DieRef, members: &mut [Member]) {
        for member in members {
            let layout = &member.layout;
            if !layout.is_aggregate() || !is_storage(&layout.name) || !is_bytes(layout) {
                continue;
            }
            let held = self.layout(parameter);
            if held.size == member.layout.size && !is_bytes(&held) {
                member.layout = held;
            }
        }
    }
}

/// The layout that the member `room` holds, if it is all that there is in an aggregate of `size` bytes.
fn kept(room: usize, size: u64, members: &[Member]) -> Option<Arc<Layout>> {
    let layout = &members.get(room)?.layout;
    let is_all = (0..).zip(members).all(|(at, other)| at == room || is_empty(&other.layout));
    // What is still called room holds something of its own.
    let is_value = layout.is_aggregate() && !is_storage(&layout.name) && !is_bytes(layout);
    (is_all && layout.size == size && is_value).then(|| Arc::clone(layout))
}

/// Tells whether there is nothing in a type, but perhaps in the same way in one that it is made from.
fn is_empty(layout: &Layout) -> bool {
    match &layout.shape {
        Shape::Aggregate { members, .. } => {
            members.len() <= 1 && members.iter().all(|member| is_empty(&member.layout))
        }
        _ => false,
    }
}

/// Tells whether there is nothing in a type but bytes.
fn is_bytes(layout: &Layout) -> bool {
    match &layout.innermost().shape {
        Shape::Scalar(kind) => *kind == ScalarKind::Byte,
        // Storage has one array, besides what gives it its alignment.
        Shape::Aggregate { members, .. } => {
            members.len() <= 2 && members.iter().all(|member| is_bytes(&member.layout))
        }
        Shape::Array { .. } => false,
    }
}

/// The parts of a type.
#[derive(Default)]
struct Parts {
    members: Vec<RawMember>,
    has_variants: bool,
    /// The template's first type.
    parameter: Option<DieRef>,
}

/// A member before its type is laid out.
struct RawMember {
    name: Arc<str>,
    type_die: DieRef,
    offset: u64,
    bit_size: Option<u64>,
    data_bit_offset: Option<u64>,
    old_bit_offset: Option<i64>,
    storage_bytes: Option<u64>,
}

impl RawMember {
    /// The member of an entry below `parent`, if it is one that has a place.
    fn read(info: &mut DebugInfo, parent: DieRef, entry: &Entry) -> Option<Self> {
        let is_base = entry.tag() == gimli::DW_TAG_inheritance;
        let is_static = entry.attr_value(gimli::DW_AT_external).is_some();
        if !(is_base || entry.tag() == gimli::DW_TAG_member && !is_static) {
            return None;
        }
        let number = |attribute| entry.attr_value(attribute).and_then(|v| v.udata_value());
        let unit = info.unit(parent.unit)?;
        let offset = match entry.attr_value(gimli::DW_AT_data_member_location) {
            None => 0,
            Some(value) => place(&value, unit.unit.encoding())?,
        };
        let name = entry.attr_value(gimli::DW_AT_name).and_then(|value| unit.string(value));
        let is_artificial = entry.attr_value(gimli::DW_AT_artificial).is_some();
        let nameless = match (is_base, is_artificial) {
            (true, _) => "<base>",
            // Only what tells the variants apart is both nameless and not in the source.
            (false, true) => DISCRIMINANT,
            (false, false) => "-",
        };
        Some(Self {
            name: name.unwrap_or_else(|| nameless.into()),
            type_die: info.reference(parent.unit, &entry.attr_value(gimli::DW_AT_type)?)?,
            offset,
            bit_size: number(gimli::DW_AT_bit_size),
            data_bit_offset: number(gimli::DW_AT_data_bit_offset),
            old_bit_offset: entry.attr_value(gimli::DW_AT_bit_offset).and_then(signed),
            storage_bytes: number(gimli::DW_AT_byte_size),
        })
    }
}

/// A number that may be below zero; clang writes it without saying so, in eight bytes.
fn signed(value: gimli::AttributeValue<Reader>) -> Option<i64> {
    match value {
        gimli::AttributeValue::Sdata(value) => Some(value),
        value => value.udata_value().map(u64::cast_signed),
    }
}

/// The place of a member. A virtual base's place is an expression over the object, which the type
/// alone does not tell; DWARF 2 writes even a constant as an expression.
fn place(value: &gimli::AttributeValue<Reader>, encoding: gimli::Encoding) -> Option<u64> {
    let gimli::AttributeValue::Exprloc(expression) = value else { return value.udata_value() };
    match location::operations(expression.clone(), encoding)?[..] {
        [Operation::PlusConstant { value }] => Some(value),
        _ => None,
    }
}
