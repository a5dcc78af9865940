//! Large arrays: an element between others of its kind that lie pages away.

use super::kind::Kinds;
use super::region::{Found, Region, common_divisor};
use crate::limit;

/// Elements that must be known around an address before one among them is named: with six at random
/// places their common distance is that of neighbours, unless the blocks do not touch.
const ENOUGH_IN_ARRAY: usize = 6;

/// The element that holds the `size` bytes at `addr`, if what is known in the pages around it is of
/// one kind only, side by side, and on both sides of it.
pub(super) fn element<'a>(
    kinds: &mut Kinds,
    regions: impl Iterator<Item = &'a Region>,
    at: (u64, u32),
    now_s: u32,
) -> Option<Found> {
    let (addr, size) = at;
    let (mut first, mut last) = (None, 0);
    let (mut n_known, mut votes, mut stride) = (0, 0, 0);
    for region in regions {
        if region.has_changed_lately(now_s) {
            return None;
        }
        for slot in region.fresh_slots(now_s) {
            let (kind, start) = *first.get_or_insert((slot.kind, slot.start));
            let is_one = slot.kind == kind
                && !slot.is_run
                && slot.votes != 0
                && slot.len == kinds.get(kind).size();
            if !is_one {
                return None;
            }
            n_known += 1;
            votes += u32::from(slot.votes);
            stride = common_divisor(stride, slot.start.abs_diff(start));
            first = Some((kind, start.min(slot.start)));
            last = last.max(slot.start);
        }
    }
    let (kind, start) = first?;
    let length = kinds.get(kind).size();
    let is_between = start <= addr && addr < last;
    if n_known < ENOUGH_IN_ARRAY || stride != u64::from(length) || !is_between {
        return None;
    }
    let offset = u32::try_from((addr - start) % stride).ok()?;
    let is_inside = offset.checked_add(size).is_some_and(|end| end <= length);
    let fits = is_inside && kinds.fits(kind, offset, size);
    fits.then_some(Found { kind, offset, votes })
}

/// The pages around one in which an array's elements are looked for.
pub(super) const fn pages_around(page: u64) -> std::ops::RangeInclusive<u64> {
    page.saturating_sub(limit::MAX_PAGES_AROUND)..=page.saturating_add(limit::MAX_PAGES_AROUND)
}
