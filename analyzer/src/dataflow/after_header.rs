//! Elements that lie after the header by which they are known.

use super::content::{Address, Origin, PointerName, holder_of_pointer};
use super::doubt::Doubt;
use crate::dwarf::debug_info::DebugInfo;
use crate::types::layout::{Layout, ScalarKind, Shape};
use std::sync::Arc;

impl Address {
    /// The elements after a header of numbers alone, in which nothing can be counted: one that is made for a type, as Qt's
    /// `QTypedArrayData<T>`, or that a container of one type points at. `step` is what is counted by from there. How far
    /// from the header they begin is often one of its numbers: where in an element an address goes is not known.
    pub(crate) fn elements_after(&self, step: u64, debug: &mut DebugInfo) -> Option<Arc<Layout>> {
        let Origin::Object(layout) = &self.origin else { return None };
        let header = layout.innermost_element();
        let doubts = [Doubt::Which, Doubt::Beyond, Doubt::Owner, Doubt::Variable];
        let is_within = step == 0 || step.is_multiple_of(header.size);
        if is_within || !is_of_numbers(&header) || doubts.into_iter().any(|it| self.has(it)) {
            return None;
        }
        let element = match (debug.only_parameter(&header), &self.name) {
            (Some(element), _) => element,
            (None, Some(PointerName::Member(outer, offset))) => {
                debug.only_parameter(holder_of_pointer(outer, *offset)?.0)?
            }
            _ => return None,
        };
        Some(debug.layout(element))
    }
}

/// Tells whether a structure is of whole numbers, none of them in an array.
fn is_of_numbers(layout: &Layout) -> bool {
    let Shape::Aggregate { members, .. } = &layout.shape else { return false };
    !members.is_empty()
        && members.iter().all(|member| match &member.layout.shape {
            Shape::Scalar(kind) => *kind == ScalarKind::Number,
            Shape::Aggregate { .. } => is_of_numbers(&member.layout),
            Shape::Array { .. } => false,
        })
}
