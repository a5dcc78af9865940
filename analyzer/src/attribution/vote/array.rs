//! Large arrays: an element between others of its kind that lie pages away.

use super::kind::{KindIdx, Kinds};
use super::region::{Region, VotedObject};
use super::slot::VoteSlot;
use crate::dataflow::gcd;
use crate::limit;

/// Elements that must be known around an address before one among them is named: with six at random
/// places their common distance is that of neighbours, unless the blocks do not touch.
const ENOUGH_IN_ARRAY: usize = 6;

/// Of these, how many on each side: one alone may be of another array.
const ENOUGH_BESIDE: usize = 2;

/// The elements known around an address.
#[derive(Clone, Copy, Debug)]
struct Elements {
    kind: KindIdx,
    first: u64,
    n_below: usize,
    n_above: usize,
    votes: u32,
    /// A divisor of all distances between them.
    stride: u64,
}

/// The element that holds the `size` bytes at `addr`, if what is known in the pages around it is of
/// one kind only, side by side, and on both sides of it. `regions` come from the nearest on; those
/// after what is enough are not looked at.
pub(super) fn element<'a>(
    kinds: &mut Kinds,
    regions: impl Iterator<Item = &'a Region> + Clone,
    at: (u64, u32),
    now_s: u32,
) -> Option<VotedObject> {
    let (addr, size) = at;
    let mut objects = regions.clone().flat_map(|region| region.fresh_slots(now_s));
    let VoteSlot { kind, start: first, .. } = *objects.find(|slot| !slot.is_run)?;
    let mut known = Elements { kind, first, n_below: 0, n_above: 0, votes: 0, stride: 0 };
    for region in regions {
        // Memory whose types change is a heap's, where neighbours say nothing.
        if region.has_changed_lately(now_s) {
            return None;
        }
        known = with_region(kinds, known, region, (addr, now_s))?;
        let length = kinds.get(known.kind).size();
        let is_between = known.n_below.min(known.n_above) >= ENOUGH_BESIDE
            && known.n_below + known.n_above >= ENOUGH_IN_ARRAY;
        // `cells[0]` and `cells[3]` alone leave the distance open: pages further out may show their
        // neighbours.
        if known.stride != u64::from(length) || !is_between {
            continue;
        }
        let offset = u32::try_from((addr - known.first) % known.stride).ok()?;
        let is_inside = offset.checked_add(size).is_some_and(|end| end <= length);
        let fits = is_inside && kinds.begins(known.kind, offset, size);
        return fits.then_some(VotedObject { kind: known.kind, offset, votes: known.votes });
    }
    None
}

/// The elements with those of one more page; `None` where there is anything else.
fn with_region(
    kinds: &mut Kinds,
    mut known: Elements,
    region: &Region,
    (addr, now_s): (u64, u32),
) -> Option<Elements> {
    for slot in region.fresh_slots(now_s) {
        // Numbers that may be parts of elements do not speak against them.
        if slot.is_part_of_one(kinds, (known.kind, known.first)) {
            continue;
        }
        if slot.kind != known.kind || slot.votes == 0 || slot.len != kinds.get(slot.kind).size() {
            return None;
        }
        match slot.start <= addr {
            true => known.n_below += 1,
            false => known.n_above += 1,
        }
        known.votes += u32::from(slot.votes);
        known.stride = gcd(known.stride, slot.start.abs_diff(known.first));
        known.first = known.first.min(slot.start);
    }
    Some(known)
}

/// A page and those around it in which an array's elements are looked for, the nearest first.
pub(super) fn pages_around(page: u64) -> impl Iterator<Item = u64> + Clone {
    let beside = (1..=limit::MAX_PAGES_AROUND)
        .flat_map(move |distance| [page.checked_sub(distance), page.checked_add(distance)]);
    std::iter::once(page).chain(beside.flatten())
}
