//! The objects that were voted for in one page of a process: who is there, who was, and what lies
//! between them.

use super::kind::{KindIdx, Kinds};
use super::slot::{Ballot, ENOUGH_AROUND, SlotStanding, VoteSlot, standing};
use crate::dataflow::gcd;
use crate::limit;

/// Votes for what lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VotedObject {
    /// Kind of the object.
    pub(crate) kind: KindIdx,
    /// Distance from the start of the object, or of its element for scalars.
    pub(crate) offset: u32,
    /// Number of samples that said so.
    pub(crate) votes: u32,
}

/// The same where the elements do not touch. An allocator gives neighbouring blocks of one size to
/// whoever asks next, so that nothing but votes speaks for the block between two.
const ENOUGH_APART: usize = 6;

/// Of ten objects around an address, those that may be of another type (measured: with fewer of one
/// type the wrong answers doubled).
const MAX_OTHERS_OF_TEN: usize = 1;

/// Bytes between two elements of one run of scalars: a line of the cache. More may hold another
/// object.
const MAX_RUN_GAP: u64 = 64;

/// The result of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// One more of so many for what was known.
    Confirmed(u16),
    /// Something that was not known there.
    New,
    /// Something else than was known there.
    Changed,
}

/// Objects voted for in one page, or reaching into it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Region {
    n_slots: u8,
    /// Last time when memory in it turned out to be something else than before.
    changed_s: Option<u32>,
    slots: [VoteSlot; limit::MAX_VOTED_IN_REGION],
}

impl Region {
    fn slots(&self) -> &[VoteSlot] {
        &self.slots[..usize::from(self.n_slots)]
    }

    fn slots_mut(&mut self) -> &mut [VoteSlot] {
        &mut self.slots[..usize::from(self.n_slots)]
    }

    fn remove(&mut self, idx: usize) {
        let last = usize::from(self.n_slots) - 1;
        self.slots[idx] = self.slots[last];
        self.n_slots -= 1;
    }

    /// Takes one vote in.
    pub(crate) fn vote(&mut self, kinds: &mut Kinds, ballot: Ballot) -> Outcome {
        let is_run = kinds.get(ballot.kind).is_scalar();
        let mut n_changes = None;
        let mut outcome = None;
        let mut idx = 0;
        while let Some(slot) = self.slots().get(idx).copied() {
            let overlaps = slot.overlaps(ballot.start, ballot.end());
            match overlaps.then(|| standing(kinds, &slot, &ballot)) {
                None | Some(SlotStanding::Apart) => {}
                Some(SlotStanding::Same) => {
                    outcome = Some(Outcome::Confirmed(self.confirm(idx, ballot)));
                }
                Some(SlotStanding::Part) => {
                    self.slots[idx].seen_s = ballot.now_s;
                    outcome = Some(Outcome::Confirmed(slot.votes));
                }
                // A container wins over its member: after a vote for `p->key` one for the whole cell stands
                // for both.
                Some(SlotStanding::Whole) => {
                    self.remove(idx);
                    continue;
                }
                // A number read out of an object is weaker than the object, unless it is so again.
                Some(SlotStanding::Contrary) if is_run && !slot.is_run && slot.votes != 0 => {
                    self.doubt(idx, ballot.now_s);
                    outcome = Some(Outcome::Changed);
                }
                Some(SlotStanding::Contrary) => {
                    // `free(a); b = malloc(n)`: the new type wins at once, but each change doubles the
                    // votes that it takes to name.
                    // What is too old to be believed does not count against the new.
                    let changed = slot.n_changes.saturating_add(1);
                    let is_change = slot.is_fresh(ballot.now_s);
                    n_changes = n_changes.max(Some(if is_change { changed } else { 0 }));
                    self.changed_s = Some(ballot.now_s);
                    self.remove(idx);
                    continue;
                }
            }
            idx += 1;
        }
        match (outcome, n_changes) {
            (Some(outcome), None) => outcome,
            (Some(_), Some(_)) => Outcome::Changed,
            (None, n_changes) => self.admit(kinds, ballot, n_changes),
        }
    }

    /// Takes in what nothing known stands for, where so many changes went before.
    fn admit(&mut self, kinds: &Kinds, ballot: Ballot, n_changes: Option<u8>) -> Outcome {
        let is_run = kinds.get(ballot.kind).is_scalar();
        if is_run && n_changes.is_none() && self.lengthen(kinds, ballot) {
            return Outcome::Confirmed(1);
        }
        self.insert(VoteSlot {
            start: ballot.start,
            seen_s: ballot.now_s,
            len: ballot.len,
            kind: ballot.kind,
            votes: 1,
            n_changes: n_changes.unwrap_or(0),
            is_run,
        });
        if n_changes.is_none() { Outcome::New } else { Outcome::Changed }
    }

    fn confirm(&mut self, idx: usize, ballot: Ballot) -> u16 {
        let slot = &mut self.slots[idx];
        slot.votes = slot.votes.saturating_add(1);
        slot.seen_s = ballot.now_s;
        slot.len = slot.len.max(ballot.len);
        slot.votes
    }

    /// Lets a slot wait to be confirmed again.
    fn doubt(&mut self, idx: usize, now_s: u32) {
        let slot = &mut self.slots[idx];
        slot.votes = 0;
        slot.n_changes = slot.n_changes.saturating_add(1);
        self.changed_s = Some(now_s);
    }

    /// Makes a run of like scalars nearby reach to this one, if nothing lies between.
    fn lengthen(&mut self, kinds: &Kinds, ballot: Ballot) -> bool {
        let size = u64::from(kinds.get(ballot.kind).size());
        // `for (i) sum += v[i]`: each `double` of a vector would take a slot; one run says the same.
        let near = self.slots().iter().position(|slot| {
            let gap = slot
                .start
                .saturating_sub(ballot.end())
                .max(ballot.start.saturating_sub(slot.end()));
            slot.is_run
                && slot.is_fresh(ballot.now_s)
                && gap <= MAX_RUN_GAP
                && slot.start.abs_diff(ballot.start).is_multiple_of(size)
                && kinds.is_alike(slot.kind, ballot.kind)
        });
        let Some(near) = near else { return false };
        let slot = self.slots[near];
        let (start, end) = (slot.start.min(ballot.start), slot.end().max(ballot.end()));
        let is_alone =
            |(idx, other): (usize, &VoteSlot)| idx == near || !other.overlaps(start, end);
        if !self.slots().iter().enumerate().all(is_alone) {
            return false;
        }
        let Ok(len) = u32::try_from(end - start) else { return false };
        self.slots[near].start = start;
        self.slots[near].len = len;
        self.confirm(near, Ballot { len, ..ballot });
        true
    }

    /// Adds a slot, over the one that was confirmed longest ago if there is no room.
    fn insert(&mut self, slot: VoteSlot) {
        if let Some(free) = self.slots.get_mut(usize::from(self.n_slots)) {
            *free = slot;
            self.n_slots += 1;
            return;
        }
        let weakest = self.slots.iter_mut().min_by_key(|known| (known.seen_s, known.votes));
        if let Some(weakest) = weakest {
            *weakest = slot;
        }
    }

    /// Forgets what a new object that begins in another page overlaps, and says whether there was
    /// anything.
    pub(crate) fn yield_to(&mut self, kinds: &mut Kinds, ballot: Ballot) -> bool {
        let n_slots = self.n_slots;
        let mut idx = 0;
        while let Some(slot) = self.slots().get(idx).copied() {
            let is_contrary = slot.overlaps(ballot.start, ballot.end())
                && matches!(standing(kinds, &slot, &ballot), SlotStanding::Contrary);
            if is_contrary {
                self.changed_s = Some(ballot.now_s);
                self.remove(idx);
            } else {
                idx += 1;
            }
        }
        self.n_slots != n_slots
    }

    /// Learns that what was just voted for has taken the place of something else.
    pub(crate) fn distrust(&mut self, ballot: Ballot) {
        for slot in self.slots_mut() {
            if slot.start == ballot.start && slot.kind == ballot.kind {
                // The memory was something else just now: one vote does not name it.
                slot.n_changes = slot.n_changes.max(1);
            }
        }
        self.changed_s = Some(ballot.now_s);
    }

    /// Memory that was read as bytes: what is known there has to be confirmed again, unless it has
    /// bytes there. Says whether anything is in doubt now.
    pub(crate) fn read_as_bytes(&mut self, kinds: &mut Kinds, addr: u64) -> bool {
        let mut has_doubt = false;
        for slot in self.slots_mut() {
            // Code that reads it as characters may do so because it holds text now.
            if slot.overlaps(addr, addr.saturating_add(1))
                && (slot.is_run || !kinds.fits(slot.kind, (addr - slot.start) as u32, 1))
            {
                has_doubt |= slot.votes != 0;
                slot.votes = 0;
            }
        }
        has_doubt
    }

    /// The object that was voted for and holds the `size` bytes at `addr`; runs of scalars do not count.
    pub(crate) fn exact_object(&self, kinds: &mut Kinds, at: (u64, u32), now_s: u32) -> Exact {
        let end = at.0.saturating_add(1);
        let is_object = self.slots().iter().any(|slot| !slot.is_run && slot.overlaps(at.0, end));
        if is_object { self.exact(kinds, at, now_s) } else { Exact::Nobody }
    }

    /// The object that was voted for and holds the `size` bytes at `addr`.
    pub(crate) fn exact(&self, kinds: &mut Kinds, at: (u64, u32), now_s: u32) -> Exact {
        let (addr, size) = at;
        let mut covering =
            self.slots().iter().filter(|slot| slot.overlaps(addr, addr.saturating_add(1)));
        // `struct cell` and the `long` read out of it lie in the same bytes: the cell says more.
        let by_object = |slot: &&VoteSlot| !slot.is_run;
        let Some(slot) = covering.clone().find(by_object).or_else(|| covering.next()) else {
            return Exact::Nobody;
        };
        // Both are less than the slot's length.
        let into = (addr - slot.start) as u32;
        let element = kinds.get(slot.kind).size();
        let (offset, does_fit) = if slot.is_run {
            let is_whole = size != 0 && size.is_multiple_of(element);
            let is_inside = addr.saturating_add(u64::from(size)) <= slot.end();
            (into % element, is_whole && is_inside && into.is_multiple_of(element))
        } else {
            (into, size != 0 && kinds.fits(slot.kind, into, size))
        };
        // A part of a number, or more than the run, speaks of something else.
        if slot.is_run && !does_fit {
            return Exact::Unsure;
        }
        if !slot.is_fresh(now_s) || u32::from(slot.votes) < slot.n_needed(does_fit) {
            return Exact::Unsure;
        }
        Exact::Found(VotedObject { kind: slot.kind, offset, votes: u32::from(slot.votes) })
    }

    /// The object between others of its kind that holds the `size` bytes at `addr`.
    pub(crate) fn between(
        &self,
        kinds: &mut Kinds,
        at: (u64, u32),
        now_s: u32,
    ) -> Option<VotedObject> {
        let (addr, size) = at;
        // An allocator that gave a block here to another type may have given the one asked for, too.
        if self.has_changed_lately(now_s) {
            return None;
        }
        let slots = || self.fresh_slots(now_s);
        let objects = || slots().filter(|slot| !slot.is_run);
        let below = objects().filter(|slot| slot.start <= addr).max_by_key(|slot| slot.start)?;
        let above = objects().filter(|slot| slot.start > addr).min_by_key(|slot| slot.start)?;
        if below.kind != above.kind {
            return None;
        }
        let element = kinds.get(below.kind).size();
        let (mut n_same, mut n_other, mut votes, mut stride) = (0, 0, 0, 0);
        for slot in slots() {
            if slot.is_part_of_one(kinds, (below.kind, below.start)) {
                continue;
            }
            if slot.kind != below.kind || slot.votes == 0 || slot.len != element {
                n_other += 1;
                continue;
            }
            n_same += 1;
            votes += u32::from(slot.votes);
            stride = gcd(stride, slot.start.abs_diff(below.start));
        }
        let n_others_allowed = (n_same + n_other) * MAX_OTHERS_OF_TEN / 10;
        // Elements that touch are an array: `struct cell cells[64]`. With gaps they are blocks of malloc,
        // of which each may be of another type.
        let (enough, n_others_allowed) = if stride == u64::from(element) {
            (ENOUGH_AROUND, n_others_allowed)
        } else {
            (ENOUGH_APART, 0)
        };
        if stride < u64::from(element) || n_same < enough || n_other > n_others_allowed {
            return None;
        }
        let into = (addr - below.start) % stride;
        let start = addr - into;
        let is_inside = |into: &u32| into.checked_add(size).is_some_and(|end| end <= element);
        let offset = u32::try_from(into).ok().filter(is_inside)?;
        let end = start.saturating_add(u64::from(element));
        let is_free = !objects().any(|slot| slot.overlaps(start, end));
        let fits = is_free && kinds.fits(below.kind, offset, size);
        fits.then_some(VotedObject { kind: below.kind, offset, votes })
    }

    /// Tells whether memory in it turned out to be something else, not long ago.
    pub(super) fn has_changed_lately(&self, now_s: u32) -> bool {
        self.changed_s.is_some_and(|since| now_s.saturating_sub(since) <= limit::MAX_VOTE_AGE_S)
    }

    /// The slots that are in use and not too old.
    pub(super) fn fresh_slots(&self, now_s: u32) -> impl Iterator<Item = &VoteSlot> {
        self.slots().iter().filter(move |slot| slot.is_fresh(now_s))
    }

    /// Tells whether nothing is known in it.
    pub(crate) const fn is_empty(&self) -> bool {
        self.n_slots == 0
    }

    /// Forgets all.
    pub(crate) const fn clear(&mut self) {
        self.n_slots = 0;
        self.changed_s = None;
    }
}

/// The claim of the objects that are known to be at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exact {
    /// The object that is there.
    Found(VotedObject),
    /// Something is there, and what is not sure.
    Unsure,
    /// Nothing is known there.
    Nobody,
}
