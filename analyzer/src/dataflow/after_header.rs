//! Elements that lie after the header by which they are known.

use super::address::{Address, Origin, PointerName, holder_of_pointer};
use super::doubt::{Doubts, Standing};
use crate::dwarf::debug_info::DebugInfo;
use crate::limit;
use crate::types::layout::{Layout, ScalarKind, Shape};
use std::sync::Arc;

impl Address {
    /// Tells whether it is about a structure of numbers alone.
    pub(super) fn is_header(&self) -> bool {
        matches!(&self.origin, Origin::Object(layout) if is_of_numbers(&layout.innermost_element()))
    }

    /// The whole element of `n_bytes` after a header of numbers alone: one that is made for a type, as Qt's
    /// `QTypedArrayData<T>`, or that a container of one type points at. How far from the header they begin is often one of
    /// its numbers: from the header on, `step` has to be counted by single bytes, which nothing in it of more than a byte is,
    /// and where in a larger element an address goes is not known.
    pub(crate) fn element_after(
        &self,
        step: u64,
        n_bytes: u64,
        debug: &mut DebugInfo,
    ) -> Option<Arc<Layout>> {
        let is_certain = self.doubts == Doubts::NONE && self.standing != Standing::Aside;
        let Origin::Object(layout) = &self.origin else { return None };
        if step != 1 || n_bytes == 1 || !is_certain || !self.is_header() {
            return None;
        }
        let header = layout.innermost_element();
        let element = match (debug.only_parameter(&header), &self.name) {
            (Some(element), _) => element,
            (None, Some(PointerName::Member(outer, offset))) => {
                debug.only_parameter(holder_of_pointer(outer, *offset)?.0)?
            }
            _ => return None,
        };
        let element = debug.layout(element);
        // What a pointer is made for, may be what it points at; and a vector is of what it has members of.
        let pointee = element.pointee.map(|pointee| debug.layout(pointee));
        let is_other = |other: &Layout| other.fingerprint != header.fingerprint;
        let is_apart = is_other(&element) && pointee.is_none_or(|pointee| is_other(&pointee));
        (is_apart && element.size == n_bytes && !has_member(&header, &element)).then_some(element)
    }
}

/// Tells whether a structure is of whole numbers, none of them in an array.
fn is_of_numbers(layout: &Layout) -> bool {
    let Shape::Aggregate { members, .. } = &layout.shape else { return false };
    (1..=limit::MAX_HEADER_MEMBERS).contains(&members.len())
        && members.iter().all(|member| match &member.layout.shape {
            Shape::Scalar(kind) => *kind == ScalarKind::Number,
            Shape::Aggregate { .. } => is_of_numbers(&member.layout),
            Shape::Array { .. } => false,
        })
}

/// Tells whether a member of a structure, or of one inside of it, is of a type.
fn has_member(layout: &Layout, wanted: &Layout) -> bool {
    let Shape::Aggregate { members, .. } = &layout.shape else { return false };
    members.iter().any(|member| {
        member.layout.fingerprint == wanted.fingerprint || has_member(&member.layout, wanted)
    })
}
