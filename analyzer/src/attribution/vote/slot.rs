//! One object that was voted for, and how a further vote stands to it.

use super::kind::{KindIdx, Kinds};
use crate::limit;

/// Votes that an object needs for an access that fits no member of it, or is of unknown size; one
/// that fits bears the vote out and needs no other. Twice as many for each time that the memory turned
/// out to be something else.
const ENOUGH_VOTES: u32 = 2;

/// After so many changes no more votes are asked for: memory that changes so often is hardly named.
const MAX_DOUBLINGS: u8 = 5;

/// Votes that a run of scalars needs, and elements around an address.
pub(super) const ENOUGH_AROUND: usize = 3;

/// An object, or a run of scalars side by side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct VoteSlot {
    pub(super) start: u64,
    pub(super) seen_s: u32,
    pub(super) len: u32,
    pub(super) kind: KindIdx,
    pub(super) votes: u16,
    /// Number of times that the memory turned out to be something else.
    pub(super) n_changes: u8,
    pub(super) is_run: bool,
}

impl VoteSlot {
    pub(super) const fn end(&self) -> u64 {
        self.start.saturating_add(self.len as u64)
    }

    pub(super) const fn overlaps(&self, start: u64, end: u64) -> bool {
        self.start < end && start < self.end()
    }

    pub(super) const fn is_fresh(&self, now_s: u32) -> bool {
        now_s.saturating_sub(self.seen_s) <= limit::MAX_VOTE_AGE_S
    }

    /// Tells whether it is a run of scalars inside one of the objects of this kind that lie side by side, one
    /// of them at `first`.
    pub(super) fn is_part_of_one(&self, kinds: &mut Kinds, (kind, first): (KindIdx, u64)) -> bool {
        let size = u64::from(kinds.get(kind).size());
        let into = match self.start.checked_sub(first) {
            Some(above) => above.checked_rem(size),
            None => (first - self.start).checked_rem(size).map(|rest| (size - rest) % size),
        };
        let Some(into) = into.filter(|_| self.is_run) else { return false };
        let end = into + u64::from(self.len);
        let scalar = kinds.get(self.kind).size().max(1);
        end <= size
            && (into as u32..end as u32)
                .step_by(scalar as usize)
                .all(|at| kinds.contains(kind, at, self.kind))
    }

    /// Votes that it takes to believe in it.
    pub(super) fn n_needed(&self, does_fit: bool) -> u32 {
        match (self.is_run, self.n_changes) {
            // A number is no object: `*(long *)p` may be a part of anything, so that one vote names
            // nothing.
            (true, 0) => ENOUGH_AROUND as u32,
            // 8 bytes at offset 8 of `struct {long id; long key;}` are just `key`: what fits agrees with
            // the vote.
            (false, 0) if does_fit => 1,
            (_, n_changes) => ENOUGH_VOTES << n_changes.min(MAX_DOUBLINGS),
        }
    }
}

/// One vote: an object of a kind lies at `start`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ballot {
    pub(crate) kind: KindIdx,
    pub(crate) start: u64,
    pub(crate) len: u32,
    pub(crate) now_s: u32,
}

impl Ballot {
    pub(crate) const fn end(&self) -> u64 {
        self.start.saturating_add(self.len as u64)
    }
}

/// The relation of a vote to a slot of the same memory.
pub(super) enum SlotStanding {
    /// It is for the same.
    Same,
    /// It is for a part of it.
    Part,
    /// It is for what contains it.
    Whole,
    /// Scalars beside an object that may hold them.
    Apart,
    /// The two cannot both be there.
    Contrary,
}

/// Compares a vote with what a slot says.
pub(super) fn standing(kinds: &mut Kinds, slot: &VoteSlot, ballot: &Ballot) -> SlotStanding {
    if slot.is_run && kinds.get(ballot.kind).is_scalar() {
        let size = u64::from(kinds.get(slot.kind).size());
        let is_in_step = slot.start.abs_diff(ballot.start).is_multiple_of(size);
        let is_same = is_in_step && kinds.is_alike(slot.kind, ballot.kind);
        return if is_same { SlotStanding::Same } else { SlotStanding::Contrary };
    }
    if slot.start == ballot.start && slot.kind == ballot.kind {
        return SlotStanding::Same;
    }
    let offset = |from: u64, to: u64| to.checked_sub(from).and_then(|it| u32::try_from(it).ok());
    if let Some(offset) = offset(slot.start, ballot.start)
        && ballot.end() <= slot.end()
        && kinds.contains(slot.kind, offset, ballot.kind)
    {
        return SlotStanding::Part;
    }
    if slot.is_run {
        // The first of the run's scalars that lies in the object.
        let size = u64::from(kinds.get(slot.kind).size());
        let skipped = ballot.start.saturating_sub(slot.start).next_multiple_of(size);
        let holds = offset(ballot.start, slot.start.saturating_add(skipped))
            .is_some_and(|offset| kinds.contains(ballot.kind, offset, slot.kind));
        let is_inside = ballot.start <= slot.start && slot.end() <= ballot.end();
        return match (holds, is_inside) {
            (true, true) => SlotStanding::Whole,
            (true, false) => SlotStanding::Apart,
            (false, _) => SlotStanding::Contrary,
        };
    }
    if let Some(offset) = offset(ballot.start, slot.start)
        && slot.end() <= ballot.end()
        && kinds.contains(ballot.kind, offset, slot.kind)
    {
        return SlotStanding::Whole;
    }
    SlotStanding::Contrary
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::vote::Lesson;
    use crate::attribution::vote::model::{longs, typed};
    use crate::types::layout::{Layout, ScalarKind};
    use crate::types::sample::{number, scalar, structure};
    use std::sync::Arc;

    fn kind(kinds: &mut Kinds, layout: &Arc<Layout>) -> KindIdx {
        match kinds.lesson(&typed(layout, 8, 8)) {
            Lesson::Kind(kind) => kind,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_run_is_part_of_an_element_wherever_that_lies() {
        let mut kinds = Kinds::default();
        let (long, double) = (number("long int", 8), scalar("double", 8, ScalarKind::Float));
        // Elements of 24 bytes, with the number in the middle.
        let body = structure("body", 24, &[("id", 0, &long), ("x", 8, &double), ("n", 16, &long)]);
        let (body, double) = (kind(&mut kinds, &body), kind(&mut kinds, &double));
        let first = 0x1_0008u64;
        for distance in (-96i64..96).step_by(8) {
            let start = first.wrapping_add_signed(distance);
            let run = VoteSlot { start, len: 8, kind: double, is_run: true, ..VoteSlot::default() };
            let is_x = distance.rem_euclid(24) == 8;
            assert_eq!(run.is_part_of_one(&mut kinds, (body, first)), is_x, "{distance}");
            let object = VoteSlot { is_run: false, ..run };
            assert!(!object.is_part_of_one(&mut kinds, (body, first)), "{distance}");
        }
    }

    #[test]
    fn an_access_fits_a_whole_number_or_is_wider_than_any() {
        let mut kinds = Kinds::default();
        let (int, long) = (number("int", 4), number("long int", 8));
        let members = [("a", 0, &int), ("b", 4, &int), ("c", 8, &long), ("d", 16, &long)];
        let node = kind(&mut kinds, &structure("node", 24, &members));
        let fits: Vec<(u32, u32)> = [0, 4, 8, 12, 16]
            .into_iter()
            .flat_map(|offset| [1, 2, 4, 8, 16].map(|size| (offset, size)))
            .filter(|(offset, size)| kinds.fits(node, *offset, *size))
            .collect();
        // Two ints are no number of 8 bytes; 16 bytes from the start are taken in a vector register.
        assert_eq!(fits, [(0, 4), (0, 16), (4, 4), (8, 8), (16, 8)]);
        let three = kind(&mut kinds, &longs("three", 3));
        assert!(kinds.fits(three, 8, 8) && !kinds.fits(three, 8, 4) && !kinds.fits(three, 12, 4));
    }
}
