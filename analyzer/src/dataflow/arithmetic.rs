//! Arithmetic on contents: what becomes of numbers and addresses when instructions count with them.

use super::congruence::Congruence;
use super::content::{Address, Content, Origin};

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
        // A mask that keeps the 48 upper bits takes off a tag, as `and $-8,%rax`, or rounds down to a page.
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
