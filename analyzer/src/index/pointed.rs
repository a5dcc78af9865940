//! What a pointer of known type points at: which part of the object an access is to.

use crate::dataflow::Address;
use crate::index::site::TypeAnswer;
use crate::index::type_path::{Index, named, owned_root};
use crate::types::data_object::Root;
use crate::types::layout::{AggregateKind, Layout, ScalarKind, Shape};
use crate::x86_64::access::MemoryAccess;
use dataspace_proto::reason::Reason;
use std::sync::Arc;

/// What a pointer of known type points at.
pub(crate) fn answer(
    access: &MemoryAccess,
    layout: &Arc<Layout>,
    address: &Address,
    index: Option<Index>,
) -> TypeAnswer {
    let unknown = TypeAnswer::Unknown(Reason::Unidentified);
    let part = if address.is_perhaps_part || begins_as_leaf(layout) {
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
    if let Shape::Scalar(kind) = element.shape {
        // Characters and void are what C calls any storage: a wider access tells nothing.
        let is_untyped = kind == ScalarKind::Byte && size > 1 && !is_buffer(&element)
            || kind == ScalarKind::Opaque;
        let is_whole = index.is_some()
            || address.offset.step != 0
            || address
                .offset
                .only()
                .is_some_and(|only| only.rem_euclid(element.size.cast_signed()) == 0);
        if is_untyped || !is_whole || address.is_inside {
            return unknown;
        }
        return named(&element, root.borrow(), 0, access);
    }
    // From where objects end, other things may be counted upwards.
    let is_before = address.offset.only().is_some_and(|offset| offset < 0);
    if address.is_behind && index.is_some() && !is_before {
        return unknown;
    }
    if let (Some(index), Some(offset)) = (index, address.offset.only()) {
        // Just behind one object lies another one, or what it is the header of.
        let is_behind = u64::try_from(offset).is_ok_and(|into| into / element.size == 1);
        if is_behind && !address.is_many && !layout.holds(offset.unsigned_abs()) {
            return unknown;
        }
        // Which part it is only the index's value tells: `p->v[i - 1]` has the displacement of
        // what stands before `v`.
        return index.answer(layout, offset, root, access);
    }
    spread(&element, root.borrow(), address, access)
}

/// Whether it is an inner node of Rust's `BTreeMap`, which begins as a leaf does: code that looks for a
/// key takes a leaf for one until it looks behind that.
fn begins_as_leaf(layout: &Layout) -> bool {
    layout.innermost().name.starts_with("alloc::collections::btree::node::InternalNode<")
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

/// Whether a byte is one of raw data: programs that read it in words say `unsigned char`, those that
/// mean anything at all say `char` or `void`.
fn is_buffer(element: &Layout) -> bool {
    element.expression.is_unsigned_character()
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
