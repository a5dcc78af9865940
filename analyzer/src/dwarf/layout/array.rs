//! Arrays: their dimensions, their elements' distance, and arrays behind a descriptor.

use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::layout::expression::{CHARACTER, character};
use crate::dwarf::layout::made::opaque;
use crate::dwarf::unit::reader::{Entry, Reader};
use crate::dwarf::variable::location;
use crate::limit;
use crate::types::die::DieRef;
use crate::types::layout::{AggregateKind, Layout, Member, ScalarKind, Shape};
use crate::types::type_expression::{Prefix, TypeExpression};
use crate::types::type_layout::DATA;
use gimli::Operation;
use std::sync::Arc;

/// One dimension of an array.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dimension {
    /// Number of elements, where the type says.
    pub(super) count: Option<u64>,
    /// Bytes from one to the next, where the type says and the elements are not side by side.
    stride_bytes: Option<u64>,
}

impl DebugInfo {
    pub(super) fn array(&mut self, die: DieRef, entry: &Entry) -> Option<Arc<Layout>> {
        let target = self.target(die, entry)?;
        if let Some(location) = entry.attr_value(gimli::DW_AT_data_location) {
            return self.described_array(die, entry, &location);
        }
        let mut layout = self.layout(target);
        let whole = |value: gimli::AttributeValue<Reader>| value.udata_value();
        let mut stride = entry.attr_value(gimli::DW_AT_byte_stride).and_then(whole);
        for dimension in self.dimensions(die, entry) {
            layout = apart(layout, dimension.stride_bytes.or(stride.take()));
            layout = Arc::new(Layout::array_of(layout, dimension.count));
        }
        Some(layout)
    }

    /// Fortran's characters, which have a length and no element type.
    pub(super) fn text(&mut self, die: DieRef, entry: &Entry) -> Option<Arc<Layout>> {
        let count = self.byte_size(die, entry);
        let shape = Shape::Scalar(ScalarKind::Byte);
        let element = Layout::new(character(), CHARACTER.into(), 1, shape);
        Some(Arc::new(Layout::array_of(Arc::new(element), count)))
    }

    /// An array that is told by a descriptor, as those of Fortran whose shape is not known before:
    /// what is where the variable is, is the descriptor, in which a pointer leads to the elements
    /// (DWARF 5 section 5.18.1).
    fn described_array(
        &mut self,
        die: DieRef,
        entry: &Entry,
        location: &gimli::AttributeValue<Reader>,
    ) -> Option<Arc<Layout>> {
        let encoding = self.unit(die.unit)?.unit.encoding();
        let target = self.target(die, entry)?;
        let of = self.expression(target, 0);
        let whole = self.expression(die, 0);
        let name = self.type_name(target).unwrap_or_else(|| "-".into());
        let operations = expression(location, encoding)?;
        let [Operation::PushObjectAddress, rest @ .., Operation::Deref { space: false, .. }] =
            &operations[..]
        else {
            return Some(opaque(whole));
        };
        let offset = match rest {
            [] => 0,
            [Operation::PlusConstant { value }] => *value,
            _ => return Some(opaque(whole)),
        };
        let mut size = offset.saturating_add(8);
        self.for_each_child(
            die,
            |_| true,
            |_, child| {
                for attribute in
                    [gimli::DW_AT_lower_bound, gimli::DW_AT_upper_bound, gimli::DW_AT_byte_stride]
                {
                    let operations =
                        child.attr_value(attribute).and_then(|value| expression(&value, encoding));
                    size = size.max(furthest(&operations.unwrap_or_default()).unwrap_or(0));
                }
            },
        );
        let pointer = TypeExpression::Prefixed { prefix: Prefix::Pointer, of };
        let shape = Shape::Scalar(ScalarKind::Pointer);
        let pointer = Layout::new(pointer.into(), "-".into(), 8, shape);
        let layout = Arc::new(Layout { pointee: Some(target), ..pointer });
        let data = Member { name: DATA.into(), offset, bits: None, layout };
        let shape = Shape::Aggregate { kind: AggregateKind::Structure, members: [data].into() };
        Some(Arc::new(Layout::new(whole, name, size, shape)))
    }

    /// The dimensions, innermost in memory first; one of no length where the type tells none.
    pub(super) fn dimensions(&mut self, die: DieRef, entry: &Entry) -> Vec<Dimension> {
        let first_index = self.unit(die.unit).map_or(0, |unit| unit.first_index());
        let mut dimensions = Vec::new();
        let is_dimension =
            |tag| matches!(tag, gimli::DW_TAG_subrange_type | gimli::DW_TAG_enumeration_type);
        self.for_each_child(die, is_dimension, |_, child| {
            if dimensions.len() < limit::MAX_TYPE_DEPTH {
                dimensions.push(dimension(child, first_index));
            }
        });
        // The entry's first dimension is the outermost in memory, in Fortran the innermost.
        let is_column_major = matches!(
            entry.attr_value(gimli::DW_AT_ordering),
            Some(gimli::AttributeValue::Ordering(gimli::DW_ORD_col_major))
        );
        if !is_column_major {
            dimensions.reverse();
        }
        if dimensions.is_empty() { vec![Dimension::default()] } else { dimensions }
    }
}

/// A dimension of its entry. A bound that is an expression or a variable is not known here.
fn dimension(entry: &Entry, first_index: i64) -> Dimension {
    let unsigned = |attribute| entry.attr_value(attribute).and_then(|value| value.udata_value());
    let lower = match entry.attr_value(gimli::DW_AT_lower_bound) {
        None => Some(first_index),
        Some(value) => bound(&value),
    };
    let from_bounds = || {
        let upper = bound(&entry.attr_value(gimli::DW_AT_upper_bound)?)?;
        // gcc writes the upper bound of `[0]` as -1, of any width.
        let count = upper.checked_sub(lower?)?.checked_add(1)?;
        u64::try_from(count).ok().filter(|count| *count < 1 << 48)
    };
    Dimension {
        count: unsigned(gimli::DW_AT_count).or_else(from_bounds),
        stride_bytes: unsigned(gimli::DW_AT_byte_stride),
    }
}

/// A bound: forms without a sign are what C compilers write.
fn bound(value: &gimli::AttributeValue<Reader>) -> Option<i64> {
    match value {
        gimli::AttributeValue::Sdata(value) => Some(*value),
        // All ones is gcc's -1.
        gimli::AttributeValue::Data8(u64::MAX) => Some(-1),
        value => value.udata_value().and_then(|value| i64::try_from(value).ok()),
    }
}

/// The element with room around it so that the next one begins `stride_bytes` on.
fn apart(element: Arc<Layout>, stride_bytes: Option<u64>) -> Arc<Layout> {
    let Some(stride_bytes) = stride_bytes.filter(|stride| *stride > element.size) else {
        return element;
    };
    let member = Member { name: "-".into(), offset: 0, bits: None, layout: Arc::clone(&element) };
    let shape = Shape::Aggregate { kind: AggregateKind::Structure, members: [member].into() };
    let (expression, name) = (Arc::clone(&element.expression), Arc::clone(&element.name));
    Arc::new(Layout::new(expression, name, stride_bytes, shape))
}

fn expression(
    value: &gimli::AttributeValue<Reader>,
    encoding: gimli::Encoding,
) -> Option<Vec<Operation<Reader>>> {
    let gimli::AttributeValue::Exprloc(expression) = value else { return None };
    location::operations(expression.clone(), encoding)
}

/// The end of the furthest word of the object that an expression reads.
fn furthest(operations: &[Operation<Reader>]) -> Option<u64> {
    let words = operations.windows(3).filter_map(|window| match window {
        [
            Operation::PushObjectAddress,
            Operation::PlusConstant { value },
            Operation::Deref { .. },
        ] => value.checked_add(8),
        _ => None,
    });
    // A descriptor has a few words for each of at most fifteen dimensions.
    words.filter(|end| *end <= limit::MAX_DESCRIPTOR_BYTES).max()
}
