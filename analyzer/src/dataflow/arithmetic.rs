//! Arithmetic on contents: what becomes of numbers and addresses when instructions count with them.

use super::address::{Address, Origin};
use super::congruence::Congruence;
use super::content::Content;
use crate::types::layout::Layout;

/// A value and a number that the instruction holds.
pub(super) fn added(base: &Content, by: i64) -> Content {
    match base {
        Content::Address(address) => Content::Address(address.clone().shifted(by)),
        Content::Constant(number) => Content::Constant(number.wrapping_add(by)),
        Content::Number(number) => Content::Number(number.plus(Congruence::exact(by))),
        other => other.clone(),
    }
}

/// A multiple of a number, and another one.
pub(super) fn multiplied(number: &Content, by: u64, displacement: i64) -> Content {
    match number {
        Content::Distance => Content::Distance,
        other => {
            let product = other.number().times(by.cast_signed());
            Content::counted(product.plus(Congruence::exact(displacement)))
        }
    }
}

/// An address in which something counts.
pub(super) fn indexed(
    address: &Address,
    index: &Content,
    scale: u64,
    displacement: i64,
) -> Content {
    let address = address.clone();
    Content::Address(match index {
        Content::Constant(number) => {
            let by = number.wrapping_mul(scale.cast_signed()).wrapping_add(displacement);
            address.shifted(by)
        }
        Content::Distance | Content::Top | Content::Address(_) => return Content::Distance,
        other => {
            let counted = other.number().times(scale.cast_signed());
            address.shifted(displacement.wrapping_add(counted.rest())).stepped(counted.step())
        }
    })
}

/// A value with the bits of a mask.
pub(super) fn masked(content: &Content, mask: u64) -> Content {
    match content {
        Content::Bottom => Content::Bottom,
        // What an object's address is rounded down to by more than a tag, as `p & ~4095`, is a page's beginning.
        Content::Address(Address { origin: Origin::Object(layout), .. })
            if mask.leading_ones() >= 48 && !is_inside(layout, mask) =>
        {
            Content::Unknown
        }
        // A mask that keeps the 48 upper bits takes off a tag, as `and $-8,%rax`, or aligns the stack.
        Content::Address(address) if mask.leading_ones() >= 48 => {
            let clear = (!mask).cast_signed();
            let mut address = address.clone();
            if matches!(address.origin, Origin::Object(_)) {
                address.offset = address.offset.map(|offset| offset & !clear);
            }
            Content::Address(address)
        }
        Content::Unknown if mask.leading_ones() >= 48 => Content::Unknown,
        _ => {
            let step = 1u64.checked_shl(mask.trailing_zeros()).unwrap_or(1);
            Content::Number(Congruence::stepped(step, 0))
        }
    }
}

/// Tells whether what a mask leaves of a pointer is mostly in the same object: pointers are tagged in their lowest bits,
/// and vectors begin at multiples of their size in arrays of numbers.
fn is_inside(layout: &Layout, mask: u64) -> bool {
    const MAX_VECTOR_BYTES: u64 = 64;
    is_tag(mask) || !layout.innermost().is_aggregate() && mask.wrapping_neg() <= MAX_VECTOR_BYTES
}

/// Tells whether a mask takes no more off a pointer than what programs keep in its lowest bits.
pub(super) const fn is_tag(mask: u64) -> bool {
    /// Of malloc's blocks, the alignment.
    const MAX_TAG_BITS: u32 = 4;
    mask.trailing_zeros() <= MAX_TAG_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::sample::{number, structure};
    use std::sync::Arc;

    #[test]
    fn rounding_down_leaves_an_object_and_taking_a_tag_off_does_not() {
        let long = number("long int", 8);
        let node = structure("node", 16, &[("key", 0, &long), ("next", 8, &long)]);
        let left = |layout, mask: i64| {
            let whole = Content::Address(Address::object(Arc::clone(layout), 3, None));
            match masked(&whole, mask.cast_unsigned()) {
                Content::Address(address) => address.offset.only(),
                _ => None,
            }
        };
        assert_eq!(
            [-4, -16, -32, -4096].map(|mask| left(&node, mask)),
            [Some(0), Some(0), None, None]
        );
        assert_eq!([-16, -64, -4096].map(|mask| left(&long, mask)), [Some(0), Some(0), None]);
    }
}
