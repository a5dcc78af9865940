//! Targets of pointers of known type: which part of the object an access is to.

use crate::dataflow::{Address, Doubt};
use crate::index::site::TypeAnswer;
use crate::index::type_path::{Index, named, owned_root};
use crate::known::{go, language, malloc, rust_std};
use crate::types::data_object::Root;
use crate::types::layout::{AggregateKind, Layout, ScalarKind, Shape};
use crate::x86_64::access::MemoryAccess;
use dataspace_proto::reason::Reason;
use std::sync::Arc;

/// Answers what a pointer of known type points at.
pub(crate) fn answer(
    access: &MemoryAccess,
    layout: &Arc<Layout>,
    address: &Address,
    index: Option<Index>,
) -> TypeAnswer {
    let unknown = TypeAnswer::Unknown(Reason::Unidentified);
    let part =
        if address.has(Doubt::Whole) || rust_std::is_inner_tree_node(&layout.innermost().name) {
            first_part(layout, address, index.is_some())
        } else {
            None
        };
    let layout = part.as_ref().unwrap_or(layout);
    let element = layout.innermost_element();
    let size = u64::from(access.size);
    if element.size == 0 {
        return unknown;
    }
    let root = owned_root(address.name.as_ref());
    let is_counted = index.is_some() || address.offset.step != 0;
    if is_counted && *element.name == *malloc::CHUNK {
        let place = address.offset.starts().first().and_then(|start| u64::try_from(*start).ok());
        return place.map_or(unknown, |place| named(&element, root.borrow(), place, access));
    }
    let is_aside = is_counted || address.is_outside() || address.has(Doubt::Which);
    if is_aside && size != 1 && *element.name == *go::BUCKET {
        return unknown;
    }
    if let Shape::Scalar(kind) = element.shape {
        // Characters and void are what C calls any storage: a wider access tells nothing. Programs that
        // read raw data in words say `unsigned char`.
        let is_raw = element.expression.is_unsigned_character();
        let is_untyped =
            kind == ScalarKind::Byte && size > 1 && !is_raw || kind == ScalarKind::Opaque;
        let is_whole = index.is_some()
            || address.offset.step != 0
            || address
                .offset
                .only()
                .is_some_and(|only| only.rem_euclid(element.size.cast_signed()) == 0);
        // What is declared to begin with a table of functions may have it somewhere else.
        let is_slot = *element.name == *language::VIRTUAL_SLOT;
        if is_untyped || !is_whole || is_slot && size != element.size || address.has(Doubt::Owner) {
            return unknown;
        }
        return named(&element, root.borrow(), 0, access);
    }
    // Bytes that are counted from a union are of it, or lie beside it.
    let is_union = matches!(element.shape, Shape::Aggregate { kind: AggregateKind::Union, .. });
    if is_union && size < element.size && index.is_some_and(|it| it.counts_within(element.size)) {
        return unknown;
    }
    // From where objects end, other things may be counted upwards.
    let is_before = address.offset.only().is_some_and(|offset| offset < 0);
    if address.has(Doubt::Beyond) && index.is_some() && !is_before {
        return unknown;
    }
    if let (Some(index), Some(offset)) = (index, address.offset.only()) {
        // Just behind one object lies another one, or what it is the header of.
        let is_behind = u64::try_from(offset).is_ok_and(|into| into / element.size == 1);
        if is_behind && !address.has(Doubt::Which) && !layout.holds(offset.unsigned_abs()) {
            return unknown;
        }
        // Which part it is only the index's value tells: `p->v[i - 1]` has the displacement of
        // what stands before `v`.
        return index.answer(layout, offset, root, access);
    }
    spread(&element, root.borrow(), address, access)
}

/// The first part of an object, if that is where an address is; before the object only an index leads
/// into it.
fn first_part(layout: &Layout, address: &Address, is_indexed: bool) -> Option<Arc<Layout>> {
    let Shape::Aggregate { kind, members } = &layout.innermost().shape else { return None };
    if !matches!(kind, AggregateKind::Structure | AggregateKind::Class) {
        return None;
    }
    let first = members.iter().find(|member| member.offset == 0 && member.layout.is_aggregate())?;
    let is_in = |start: &i64| match u64::try_from(*start) {
        Ok(start) => start < first.layout.size,
        Err(_) => is_indexed,
    };
    address.offset.starts().iter().all(is_in).then(|| Arc::clone(&first.layout))
}

/// The part that an access is to, of an object of which several places are possible.
pub(crate) fn spread(
    layout: &Arc<Layout>,
    root: Root<'_>,
    address: &Address,
    access: &MemoryAccess,
) -> TypeAnswer {
    let unknown = TypeAnswer::Unknown(Reason::Undetermined);
    let Some(places) = address.places(u64::from(access.size)) else {
        return TypeAnswer::Unknown(Reason::Unidentified);
    };
    let mut only: Option<TypeAnswer> = None;
    for place in places {
        let answer = named(layout, root, place, access);
        match (&only, &answer) {
            (None, _) => only = Some(answer),
            (Some(TypeAnswer::Object(first)), TypeAnswer::Object(second))
                if first.object.leaf() == second.object.leaf() => {}
            _ => return unknown,
        }
    }
    only.unwrap_or(unknown)
}
