//! Parts at an offset of a type, of which it is not known how far it goes on.

use super::offset::{Offset, distances};
use crate::limit;
use crate::types::layout::{Layout, Shape};
use std::ops::Range;
use std::sync::Arc;

/// Finds the place in the element of an access that begins `start` bytes, and any number of steps, into
/// one of them.
pub(super) fn place_in(
    layout: &Arc<Layout>,
    start: i64,
    step: u64,
    n_bytes: u64,
    is_many: bool,
) -> Option<u64> {
    let element = layout.innermost_element();
    let size = i64::try_from(element.size).ok().filter(|size| *size > 0)?;
    if !element.is_aggregate() {
        let is_whole = start.rem_euclid(size) == 0 || step != 0;
        return (is_whole && n_bytes.is_multiple_of(element.size) || n_bytes <= element.size)
            .then_some(0);
    }
    if step == 0 {
        // Behind the end is another element, or something that is not known to be around.
        return match u64::try_from(start) {
            Ok(start) if element.holds(start) => Some(start),
            _ => is_many.then_some(start.rem_euclid(size).unsigned_abs()),
        };
    }
    if let Some(into) = into_array_at_end(&element, start, step, n_bytes) {
        return Some(into);
    }
    if step.is_multiple_of(element.size) {
        return (!is_never_in_array(&element, step))
            .then_some(start.rem_euclid(size).unsigned_abs());
    }
    let start = u64::try_from(start).ok()?;
    let start = if element.holds(start) { start } else { start % element.size };
    let Some((_, each)) = array_around(&element, start, step) else {
        // Several objects may lie in bytes that are gone over.
        let is_itself = is_scalar(&element, start, n_bytes);
        return further_on(&element, start, step, n_bytes, None).filter(|_| !is_itself);
    };
    // Part of a scalar is seldom read, but for bytes of bits; the same element has it whole in another array.
    let is_part = n_bytes > 1 && scalar_at(&element, start, n_bytes).is_some_and(|n| n > n_bytes);
    let further = || further_on(&element, start, step, n_bytes, Some(each.fingerprint));
    is_part.then(further).flatten().or(Some(start))
}

/// Bytes of the only scalar that an access at `offset` is to.
fn scalar_at(layout: &Layout, offset: u64, n_bytes: u64) -> Option<u64> {
    let leaf = layout.descend(offset, n_bytes)?.leaf;
    matches!(leaf.shape, Shape::Scalar(_)).then_some(leaf.size)
}

/// The place in the only array further on, of elements like `each` if some are given, that steps from `start` lead to a scalar
/// of this size in: `p->v[i - 1]` has the displacement of what stands before `v`.
fn further_on(
    layout: &Layout,
    start: u64,
    step: u64,
    n_bytes: u64,
    each: Option<u64>,
) -> Option<u64> {
    let Shape::Aggregate { kind, members } = &layout.shape else { return None };
    let arrays = members.iter().filter(|member| matches!(member.layout.shape, Shape::Array { .. }));
    let places = arrays.filter_map(|member| {
        let n_steps = member.offset.checked_sub(start)?.div_ceil(step);
        let place = start.checked_add(n_steps.checked_mul(step)?)?;
        let into = place.checked_sub(member.offset).filter(|into| *into < member.layout.size)?;
        let (_, element) = array_around(&member.layout, into, step)?;
        let is_like = each.is_none_or(|each| element.fingerprint == each);
        (is_like && is_scalar(&member.layout, into, n_bytes)).then_some(place)
    });
    let mut places = places.filter(|_| !kind.has_arms());
    let only = places.next();
    only.filter(|_| places.next().is_none())
}

/// Tells whether a scalar of so many bytes begins at `offset`.
fn is_scalar(layout: &Layout, offset: u64, n_bytes: u64) -> bool {
    scalar_at(layout, offset, n_bytes) == Some(n_bytes)
}

/// Tells whether it ends with an array without a length, over whose elements the step goes: of such objects there is no array.
pub(crate) fn is_never_in_array(layout: &Layout, step: u64) -> bool {
    layout.has_no_length() && steps_in_open_array(layout, step)
}

/// Tells whether the array without a length, or of none, that ends it has elements that the step is a multiple of.
pub(super) fn steps_in_open_array(layout: &Layout, step: u64) -> bool {
    layout.open_from.is_some() && array_at_end(layout, step).is_some()
}

/// The start of the array that ends an object and goes on, where steps of this size go over its elements, and such an
/// element. An array of one goes on where they do not go over whole objects.
fn array_at_end(layout: &Layout, step: u64) -> Option<(u64, &Layout)> {
    if step == 0 {
        return None;
    }
    if let Some(start) = layout.open_from {
        return array_around(layout, start, step).map(|(_, element)| (start, element));
    }
    let (start, element) = layout.array_of_one_at_end()?;
    let is_further = step.checked_rem(layout.size)? != 0 && step.checked_rem(element.size)? == 0;
    is_further.then_some((start, element))
}

/// The place of `offset` in the array that ends an object and goes on in steps of this size.
pub(crate) fn place_at_end(layout: &Layout, offset: u64, step: u64) -> Option<u64> {
    let (start, element) = array_at_end(layout, step)?;
    let into = offset.checked_sub(start)?;
    // An array of one has no other place.
    let into = if layout.open_from.is_some() { into } else { into.checked_rem(element.size)? };
    start.checked_add(into)
}

/// The place in the array that ends an object, where steps from `start` lead there. What is counted down to one, not to zero,
/// begins before it.
pub(crate) fn into_array_at_end(
    layout: &Layout,
    start: i64,
    step: u64,
    n_bytes: u64,
) -> Option<u64> {
    let (open, _) = array_at_end(layout, step)?;
    let before = open.cast_signed().checked_sub(start)?;
    let n_steps = u64::try_from(before).unwrap_or(0).div_ceil(step);
    let into = start.checked_add_unsigned(n_steps.checked_mul(step)?)?;
    let into = into.try_into().ok()?;
    if n_steps != 0 {
        let is_other =
            |start: u64| is_scalar(layout, start, n_bytes) || steps_in_array(layout, start, step);
        // Where a scalar of the header is meant as well as an element's, neither is named.
        let is_before = u64::try_from(start).is_ok_and(is_other);
        (is_scalar(layout, into, n_bytes) && !is_before).then_some(())?;
    }
    place_at_end(layout, into, step)
}

/// Tells whether an array that `offset` is in has elements that the step is a multiple of.
pub(super) fn steps_in_array(layout: &Layout, offset: u64, step: u64) -> bool {
    array_around(layout, offset, step).is_some()
}

/// The outermost array that `offset` is in whose elements the step is a multiple of, and such an element.
pub(super) fn array_around(
    layout: &Layout,
    offset: u64,
    step: u64,
) -> Option<(Range<u64>, &Layout)> {
    let (mut part, mut into) = (layout, offset);
    for _ in 0..limit::MAX_TYPE_DEPTH {
        match &part.shape {
            Shape::Array { element, .. } => {
                if element.size == 0 {
                    return None;
                }
                if step.is_multiple_of(element.size) {
                    // Room between members is an array of bytes: what has just such elements goes
                    // before it.
                    let is_it = step == element.size || !has_array_of(layout, step);
                    let start = offset - into;
                    return is_it.then(|| (start..start.saturating_add(part.size), &**element));
                }
                (part, into) = (element, into % element.size);
            }
            Shape::Aggregate { members, .. } => {
                let member = members.iter().rev().find(|member| {
                    let (start, end) = member.byte_range();
                    start <= into && (into < end || start == end)
                });
                let member = member.filter(|member| member.bits.is_none())?;
                (part, into) = (&member.layout, into - member.offset);
            }
            Shape::Scalar(_) => return None,
        }
    }
    None
}

/// The starts that are accessed, of several in an object from which nothing steps on: those in an array of it without the one just behind its last element,
/// where a loop over them ends. With `is_many` that may be in another object. `None` where there is no such end, or what
/// lies there is like an element and may be meant.
pub(super) fn without_end(
    layout: &Arc<Layout>,
    offset: &Offset,
    is_many: bool,
) -> Option<Vec<i64>> {
    // Two elements and the end.
    let starts @ [first, _, _, ..] = offset.starts() else { return None };
    if offset.step != 0 {
        return None;
    }
    let element = layout.innermost_element();
    let (first, step) = (u64::try_from(*first).ok()?, distances(starts));
    let (array, each) = (step != 0).then(|| array_around(&element, first, step))??;
    let is_in = |start: &&i64| u64::try_from(**start).is_ok_and(|start| array.contains(&start));
    let (inside, outside): (Vec<i64>, Vec<i64>) = starts.iter().partition(|start| is_in(start));
    let [end] = outside[..] else { return None };
    let (end, into) = (u64::try_from(end).ok()?, first.checked_sub(array.start)? % step);
    let behind = array.end.checked_add(into)?;
    let is_end = end == behind || is_many && Some(end) == behind.checked_rem(element.size);
    let is_alike = element.holds(array.end) && has_part(&element, array.end, each);
    (inside.len() > 1 && is_end && !is_alike).then_some(inside)
}

/// Tells whether there is an array of aggregates in it whose elements have this size.
fn has_array_of(layout: &Layout, size: u64) -> bool {
    let Shape::Aggregate { members, .. } = &layout.shape else { return false };
    members.iter().any(|member| {
        let element = member.layout.innermost();
        matches!(member.layout.shape, Shape::Array { .. })
            && element.is_aggregate()
            && element.size == size
    })
}

/// Tells whether a part like `wanted` begins at `offset` of `layout`.
pub(super) fn has_part(layout: &Layout, offset: u64, wanted: &Layout) -> bool {
    let mut parts = vec![(layout, offset)];
    for _ in 0..limit::MAX_UNION_ARMS {
        let Some((part, at)) = parts.pop() else { return false };
        let is_scalar = matches!(part.shape, Shape::Scalar(_));
        let is_wanted = part.fingerprint == wanted.fingerprint
            || is_scalar && part.size == wanted.size && !wanted.is_aggregate();
        if is_wanted && at == 0 {
            return true;
        }
        match &part.shape {
            Shape::Array { element, .. } if element.size != 0 => {
                parts.push((element, at % element.size));
            }
            Shape::Aggregate { members, .. } => {
                for member in members.iter().filter(|member| member.bits.is_none()) {
                    let (start, end) = member.byte_range();
                    if start <= at && (at < end || start == end) && parts.len() < MAX_OPEN_PARTS {
                        parts.push((&member.layout, at - start));
                    }
                }
            }
            Shape::Array { .. } | Shape::Scalar(_) => {}
        }
    }
    false
}

/// Parts that wait to be looked into: unions of unions multiply.
const MAX_OPEN_PARTS: usize = 256;
