//! Votes: samples that an instruction's type names tell what lies at their addresses, so that samples
//! of code without types are named when they touch the same objects.

mod array;
mod kind;
#[cfg(test)]
mod model;
mod region;
mod slot;
#[cfg(test)]
mod tests;

pub(crate) use kind::{Kind, KindIdx, Lesson};
pub(crate) use region::VotedObject;

use crate::limit;
use kind::Kinds;
use region::{Exact, Outcome, Region};
use rustc_hash::FxHashMap;
use slot::Ballot;

/// Bytes of a region: what is mapped as one is of one process's making.
const REGION_BYTES: u64 = 4096;

const SECOND_NS: u64 = 1_000_000_000;

/// Votes from which an object is not voted on at every sample.
const SETTLED_VOTES: u16 = 16;

/// Shortest time between two of them: a hundredth of a second, so that a burst of samples costs one vote.
const RECENT_NS: u64 = 10_000_000;

/// Objects that were lately voted on: 16 KiB, half of the first-level cache.
const N_RECENT: usize = 512;

/// Scalars of one line are voted on as one.
const LINE_BYTES: u64 = 64;

/// One sample's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    /// The process.
    pub(crate) pid: i32,
    /// The time of the sample.
    pub(crate) time_ns: u64,
    /// The first byte.
    pub(crate) addr: u64,
    /// Number of bytes; 0 if that is not known.
    pub(crate) size: u32,
}

impl Touch {
    fn second(self) -> u32 {
        u32::try_from(self.time_ns / SECOND_NS).unwrap_or(u32::MAX)
    }
}

/// An object that was voted on lately.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    start: u64,
    since_ns: u64,
    space: u32,
    kind: KindIdx,
}

type RegionKey = (u32, u64);

/// All votes of a session.
#[derive(Debug)]
pub(crate) struct Votes {
    kinds: Kinds,
    /// The address spaces of processes; one that was left is not listed any more.
    spaces: FxHashMap<i32, u32>,
    n_spaces: u32,
    last_space: Option<(i32, u32)>,
    recent: Box<[Recent]>,
    regions: Vec<(RegionKey, bool, Region)>,
    of_page: FxHashMap<RegionKey, u32>,
    /// The place where the search for a region to evict goes on.
    hand: usize,
}

impl Default for Votes {
    fn default() -> Self {
        Self {
            kinds: Kinds::default(),
            spaces: FxHashMap::default(),
            n_spaces: 0,
            last_space: None,
            recent: vec![Recent::default(); N_RECENT].into(),
            regions: Vec::new(),
            of_page: FxHashMap::default(),
            hand: 0,
        }
    }
}

impl Votes {
    /// The kinds of objects.
    pub(crate) fn kind(&self, idx: KindIdx) -> &Kind {
        self.kinds.get(idx)
    }

    /// The lesson of an object that the instruction named.
    pub(crate) fn lesson(&mut self, answer: &crate::index::site::PlacedObject) -> Lesson {
        self.kinds.lesson(answer)
    }

    /// A typed instruction touched the byte at `offset` of an object, which tells what lies there.
    pub(crate) fn teach(&mut self, touch: Touch, lesson: Lesson, offset: u64) {
        let kind = match lesson {
            Lesson::Nothing => return,
            Lesson::Bytes => return self.read_as_bytes(touch),
            Lesson::Kind(kind) => kind,
        };
        let Some(start) = touch.addr.checked_sub(offset) else { return };
        let Some(space) = self.space(touch.pid) else { return };
        let known = self.kinds.get(kind);
        let (is_scalar, size) = (known.is_scalar(), known.size());
        let key = if is_scalar { start & !(LINE_BYTES - 1) } else { start };
        let recent = recent_slot(space, key);
        let seen = &self.recent[recent];
        // A loop over one object votes for it all the time: once it is settled, a vote now and then is
        // enough.
        if (seen.start, seen.space, seen.kind) == (key, space, kind)
            && touch.time_ns.wrapping_sub(seen.since_ns) < RECENT_NS
        {
            return;
        }
        // What ends in an open array reaches as far as it is touched.
        let reach = offset.saturating_add(u64::from(touch.size));
        let Ok(reach) = u32::try_from(reach) else { return };
        if start.checked_add(u64::from(reach.max(size))).is_none() || reach > limit::MAX_VOTED_BYTES
        {
            return;
        }
        let len = if is_scalar { size } else { size.max(reach) };
        let ballot = Ballot { kind, start, len, now_s: touch.second() };
        let outcome = self.vote(space, touch, ballot, is_scalar);
        match outcome {
            Outcome::Confirmed(votes) if votes >= SETTLED_VOTES => {
                self.recent[recent] = Recent { start: key, since_ns: touch.time_ns, space, kind };
            }
            Outcome::Confirmed(_) | Outcome::New => {}
            Outcome::Changed => self.recent.fill(Recent::default()),
        }
    }

    fn vote(&mut self, space: u32, touch: Touch, ballot: Ballot, is_scalar: bool) -> Outcome {
        let is_large = u64::from(ballot.len) > REGION_BYTES;
        // A large object, such as a `struct` with a table in it, has votes in each page that is touched.
        let at = if is_scalar || is_large { touch.addr } else { ballot.start };
        let page = at / REGION_BYTES;
        let region = self.region_or_new((space, page));
        let mut outcome = self.regions[region].2.vote(&mut self.kinds, ballot);
        // An object that begins near a page's end reaches into the next, whose votes do not know of it.
        if !matches!(outcome, Outcome::Confirmed(_)) && !is_scalar && !is_large {
            for page in [page.wrapping_sub(1), page + 1] {
                let Some(beside) = self.region((space, page)) else { continue };
                let has_yielded = self.regions[beside].2.yield_to(&mut self.kinds, ballot);
                if has_yielded {
                    self.regions[region].2.distrust(ballot);
                    outcome = Outcome::Changed;
                }
            }
        }
        outcome
    }

    fn read_as_bytes(&mut self, touch: Touch) {
        let Some(space) = self.known_space(touch.pid) else { return };
        let page = touch.addr / REGION_BYTES;
        for page in [page, page.wrapping_sub(1)] {
            if let Some(region) = self.region((space, page))
                && self.regions[region].2.read_as_bytes(&mut self.kinds, touch.addr)
            {
                self.recent.fill(Recent::default());
            }
        }
    }

    /// The object that votes find for an access that no type names.
    pub(crate) fn find(&mut self, touch: Touch) -> Option<VotedObject> {
        self.look(touch, Region::exact)
    }

    /// The object that votes say is around a number that an instruction names, which may be one of many
    /// that it voted for itself.
    pub(crate) fn find_around(&mut self, touch: Touch) -> Option<VotedObject> {
        self.look(touch, Region::exact_object)
    }

    fn look(
        &mut self,
        touch: Touch,
        exact: impl Fn(&Region, &mut Kinds, (u64, u32), u32) -> Exact,
    ) -> Option<VotedObject> {
        let space = self.known_space(touch.pid)?;
        let now_s = touch.second();
        let page = touch.addr / REGION_BYTES;
        let here = self.region((space, page));
        // An object may begin in the page before.
        let before = page.checked_sub(1).and_then(|before| self.region((space, before)));
        let at = (touch.addr, touch.size);
        let mut exact = |region: usize| exact(&self.regions[region].2, &mut self.kinds, at, now_s);
        let here_exact = here.map_or(Exact::Nobody, &mut exact);
        match (here_exact, before.map_or(Exact::Nobody, &mut exact)) {
            (Exact::Found(found), Exact::Nobody) | (Exact::Nobody, Exact::Found(found)) => {
                Some(found)
            }
            (Exact::Nobody, Exact::Nobody) if touch.size != 0 => {
                let between = here.and_then(|here| {
                    self.regions[here].1 = true;
                    self.regions[here].2.between(&mut self.kinds, at, now_s)
                });
                between.or_else(|| self.element_of_array(space, page, at, now_s))
            }
            _ => None,
        }
    }

    fn element_of_array(
        &mut self,
        space: u32,
        page: u64,
        at: (u64, u32),
        now_s: u32,
    ) -> Option<VotedObject> {
        let around = array::pages_around(page)
            .filter_map(|page| self.of_page.get(&(space, page)))
            .map(|idx| &self.regions[*idx as usize].2);
        array::element(&mut self.kinds, around, at, now_s)
    }

    /// The process has another address space, or none any more.
    pub(crate) fn forget_process(&mut self, pid: i32) {
        self.spaces.remove(&pid);
        self.last_space = None;
    }

    /// Something else was mapped from `start` to `end`.
    pub(crate) fn forget_range(&mut self, pid: i32, start: u64, end: u64) {
        let Some(space) = self.known_space(pid) else { return };
        let pages = start / REGION_BYTES..end.div_ceil(REGION_BYTES);
        if pages.end.saturating_sub(pages.start) <= self.regions.len() as u64 {
            for page in pages {
                if let Some(region) = self.region((space, page)) {
                    self.regions[region].2.clear();
                }
            }
        } else {
            for ((of, page), _, region) in &mut self.regions {
                if *of == space && pages.contains(page) {
                    region.clear();
                }
            }
        }
        self.recent.fill(Recent::default());
    }

    fn known_space(&mut self, pid: i32) -> Option<u32> {
        if let Some((last, space)) = self.last_space
            && last == pid
        {
            return Some(space);
        }
        let space = *self.spaces.get(&pid)?;
        self.last_space = Some((pid, space));
        Some(space)
    }

    /// The address space of a process, which is one that the recording tells.
    fn space(&mut self, pid: i32) -> Option<u32> {
        if let Some(space) = self.known_space(pid) {
            return Some(space);
        }
        if pid < 0 {
            return None;
        }
        if self.spaces.len() >= limit::MAX_PROCESSES {
            self.spaces.clear();
        }
        // 0 is no address space, which is what the empty places of `recent` have.
        self.n_spaces = self.n_spaces.checked_add(1)?;
        self.spaces.insert(pid, self.n_spaces);
        self.known_space(pid)
    }

    fn region(&self, key: RegionKey) -> Option<usize> {
        self.of_page.get(&key).map(|idx| *idx as usize)
    }

    /// The votes in a page, over those of one that was not used lately if there are too many.
    fn region_or_new(&mut self, key: RegionKey) -> usize {
        if let Some(known) = self.region(key) {
            self.regions[known].1 = true;
            return known;
        }
        let idx = if self.regions.len() < limit::MAX_VOTE_REGIONS {
            self.regions.push((key, true, Region::default()));
            self.regions.len() - 1
        } else {
            let idx = self.unused_region();
            self.of_page.remove(&self.regions[idx].0);
            self.regions[idx] = (key, true, Region::default());
            idx
        };
        self.of_page.insert(key, idx as u32);
        idx
    }

    /// A region that was not used since the hand last passed it.
    fn unused_region(&mut self) -> usize {
        loop {
            let idx = self.hand;
            self.hand = (idx + 1) % self.regions.len();
            let (_, was_used, region) = &mut self.regions[idx];
            if !std::mem::take(was_used) || region.is_empty() {
                return idx;
            }
        }
    }
}

/// The object's slot among those that were voted on lately.
const fn recent_slot(space: u32, start: u64) -> usize {
    // The golden ratio's bits spread what differs in a few (Knuth, volume 3, section 6.4).
    let mixed = (start ^ (space as u64) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 55) as usize % N_RECENT
}
