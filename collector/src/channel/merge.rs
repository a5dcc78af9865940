//! Records of several rings, put in the order of their times.
//!
//! Each ring is nearly in order by itself: a record's time is read before its place in the ring is
//! taken, so an interrupt in between can swap two. A round reads every ring once. Whatever has a
//! time before the *previous* round began was written before this round read its ring, or its
//! writer has been held up for a whole round; so that much can be handed on.
//!
//! ```text
//!      round 1 begins      round 2 begins      round 2 has read all rings
//! ───────────┼───────────────────┼────────────────────┼──▶ time
//!  hand on ◀─┘      keep                  keep
//! ```

use crate::channel::ahead;
use crate::channel::batch::Slots;
use crate::sys::prefetch;
use dataspace_proto::record::Record;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::ControlFlow;

/// Records that wait for their turn. Room that was used once is used again: in steady state
/// nothing is allocated for a sample.
#[derive(Debug, Default)]
pub struct Merge {
    /// By ring: what waits, in the order of time unless it is marked.
    queues: Vec<Queue>,
    /// The front of each queue that has one, while records are handed on.
    fronts: BinaryHeap<Reverse<(u64, u32)>>,
    /// Slots to put records into; they hold what they held last.
    slots: Slots,
    handed_on_to_ns: u64,
    n_late: u64,
}

#[derive(Debug, Default)]
struct Queue {
    places: VecDeque<QueuedRecord>,
    /// Number of records so far.
    n_added: u64,
    last_ns: u64,
    is_out_of_order: bool,
}

#[derive(Debug)]
struct QueuedRecord {
    time_ns: u64,
    /// Order of arrival, so that equal times keep it.
    arrival: u64,
    source: u32,
    record: Box<Record>,
}

impl Queue {
    fn add(&mut self, time_ns: u64, source: u32, record: Box<Record>) {
        self.is_out_of_order |= time_ns < self.last_ns && !self.places.is_empty();
        self.last_ns = time_ns;
        self.places.push_back(QueuedRecord { time_ns, arrival: self.n_added, source, record });
        self.n_added += 1;
    }

    fn put_in_order(&mut self) {
        if std::mem::take(&mut self.is_out_of_order) {
            // Not the stable sort, which allocates; the order of arrival makes this one as good.
            let places = self.places.make_contiguous();
            places.sort_unstable_by_key(|place| (place.time_ns, place.arrival));
            self.last_ns = places.last().map_or(0, |place| place.time_ns);
        }
    }

    /// The next one, if its time is not after `until_ns`.
    fn next(&mut self, until_ns: u64) -> Option<QueuedRecord> {
        if self.places.front()?.time_ns > until_ns {
            return None;
        }
        self.places.pop_front()
    }
}

impl Merge {
    /// An empty queue with room for `n_records`.
    #[must_use]
    pub fn with_capacity(n_records: usize) -> Self {
        Self { slots: Slots::with_capacity(n_records), ..Self::default() }
    }

    /// A slot for a record, with whatever was last in it.
    #[must_use]
    pub fn slot(&mut self) -> Box<Record> {
        if let Some(soon) = self.slots.len().checked_sub(3).and_then(|idx| self.slots.get(idx)) {
            // The analyzer had it last, and decoding writes over it.
            prefetch::to_write(&**soon, ahead::RECORD_BYTES);
        }
        self.slots.pop().unwrap_or_else(|| Box::new(Record::Tick { time_ns: 0 }))
    }

    /// Destination of slots that are not needed any more.
    pub const fn slots(&mut self) -> &mut Slots {
        &mut self.slots
    }

    /// Takes in a record of `ring` that happened at `time_ns`. Of records with equal times that of the first
    /// ring goes first. `source` is the caller's own mark of where it came from, handed back with it.
    pub fn add(&mut self, ring: u32, time_ns: u64, source: u32, record: Box<Record>) {
        self.n_late += u64::from(time_ns < self.handed_on_to_ns);
        let ring = ring as usize;
        if ring >= self.queues.len() {
            self.queues.resize_with(ring + 1, Queue::default);
        }
        self.queues[ring].add(time_ns, source, record);
    }

    /// Gives every record with a time up to `until_ns` to `take`, with its source, in order.
    pub fn hand_on(&mut self, until_ns: u64, mut take: impl FnMut(u32, Box<Record>)) {
        self.hand_on_while(until_ns, |source, record| {
            take(source, record);
            ControlFlow::Continue(())
        });
    }

    /// The same, up to a record that `take` gives back: it waits on, and so does all after it. Its
    /// time, if there is one.
    pub fn hand_on_while(
        &mut self,
        until_ns: u64,
        mut take: impl FnMut(u32, Box<Record>) -> ControlFlow<Box<Record>>,
    ) -> Option<u64> {
        for (queue_idx, queue) in self.queues.iter_mut().enumerate() {
            queue.put_in_order();
            if let Some(front) = queue.places.front() {
                self.fronts.push(Reverse((front.time_ns, queue_idx as u32)));
            }
        }
        while let Some(Reverse((_, queue_idx))) = self.fronts.pop() {
            // As long as it is before all others no other queue is looked at.
            let Some(queue) = self.queues.get_mut(queue_idx as usize) else { break };
            let (rival_ns, rival_idx) =
                self.fronts.peek().map_or((u64::MAX, u32::MAX), |Reverse(rival)| *rival);
            // One with the rival's time is before it only in an earlier ring.
            let before_rival_ns = rival_ns.saturating_sub(u64::from(rival_idx < queue_idx));
            while let Some(place) = queue.next(until_ns.min(before_rival_ns)) {
                let QueuedRecord { time_ns, arrival, source, record } = place;
                if let ControlFlow::Break(record) = take(source, record) {
                    queue.places.push_front(QueuedRecord { time_ns, arrival, source, record });
                    self.fronts.clear();
                    self.handed_on_to_ns = self.handed_on_to_ns.max(time_ns);
                    return Some(time_ns);
                }
            }
            match queue.places.front() {
                Some(front) if front.time_ns <= until_ns => {
                    self.fronts.push(Reverse((front.time_ns, queue_idx)));
                }
                _ => {}
            }
        }
        self.handed_on_to_ns = self.handed_on_to_ns.max(until_ns);
        None
    }

    /// Gives everything that is left to `take`, in order.
    pub fn hand_on_all(&mut self, take: impl FnMut(u32, Box<Record>)) {
        self.hand_on(u64::MAX, take);
    }

    /// Number of records that came after their time had been handed on. They were kept, and handed on
    /// out of order.
    #[must_use]
    pub const fn n_late(&self) -> u64 {
        self.n_late
    }

    /// Up to when records were handed on: one that comes now with a time before it is late.
    #[must_use]
    pub const fn handed_on_to_ns(&self) -> u64 {
        self.handed_on_to_ns
    }

    /// The latest time of a record that waits.
    #[must_use]
    pub fn last_time_ns(&self) -> Option<u64> {
        let waiting = self.queues.iter().flat_map(|queue| &queue.places);
        waiting.map(|place| place.time_ns).max()
    }

    /// Number of records that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queues.iter().map(|queue| queue.places.len()).sum()
    }

    /// Tells whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(|queue| queue.places.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::record::Fork;
    use proptest::prelude::*;

    fn record(time_ns: u64, tid: i32) -> Box<Record> {
        Box::new(Record::Fork(Fork { time_ns, tid, ..Fork::default() }))
    }

    fn times_and_tids(records: &[Box<Record>]) -> Vec<(u64, i32)> {
        records
            .iter()
            .map(|record| match &**record {
                Record::Fork(fork) => (fork.time_ns, fork.tid),
                other => panic!("{other:?} was never added"),
            })
            .collect()
    }

    #[test]
    fn a_record_that_comes_too_late_is_counted_and_kept() {
        let mut merge = Merge::default();
        merge.add(0, 10, 0, record(10, 0));
        merge.hand_on(20, |_, _| {});
        merge.add(0, 15, 0, record(15, 1));
        let mut out = Vec::new();
        assert_eq!(merge.handed_on_to_ns(), 20);
        merge.hand_on(25, |_, record| out.push(record));
        assert_eq!((times_and_tids(&out), merge.n_late()), (vec![(15, 1)], 1));
        merge.hand_on(22, |_, _| {});
        assert_eq!(merge.handed_on_to_ns(), 25);
    }

    #[test]
    fn the_last_moment_is_handed_on_too() {
        let mut merge = Merge::default();
        for (ring, tid) in [(1, 1), (0, 0), (2, 2)] {
            merge.add(ring, u64::MAX, 0, record(u64::MAX, tid));
        }
        let mut out = Vec::new();
        merge.hand_on_all(|_, record| out.push(record));
        assert_eq!(times_and_tids(&out), [(u64::MAX, 0), (u64::MAX, 1), (u64::MAX, 2)]);
        assert!(merge.is_empty());
    }

    proptest! {
        /// Rounds of records whose times are at most one round old come out sorted, each once,
        /// equal times in the order of rings, and of one ring in the order they came.
        #[test]
        fn the_order_is_that_of_the_times(
            rounds in prop::collection::vec(prop::collection::vec((0u64..200, 0u32..4), 0..50), 1..10),
        ) {
            let mut merge = Merge::default();
            let (mut out, mut expected) = (Vec::new(), Vec::new());
            let mut previous_round_began = 0;
            for (i, round) in rounds.iter().enumerate() {
                let began = 100 * (i as u64 + 1);
                for (offset, ring) in round {
                    let time_ns = previous_round_began + 1 + offset;
                    let tid = expected.len() as i32;
                    merge.add(*ring, time_ns, tid as u32, record(time_ns, tid));
                    expected.push((time_ns, *ring, tid));
                }
                merge.hand_on(previous_round_began, |_, record| out.push(record));
                previous_round_began = began;
            }
            merge.hand_on_all(|_, record| out.push(record));
            expected.sort();
            let expected: Vec<_> = expected.into_iter().map(|(time, _, tid)| (time, tid)).collect();
            prop_assert_eq!(times_and_tids(&out), expected);
            prop_assert_eq!(merge.n_late(), 0);
            prop_assert!(merge.is_empty());
        }
    }

    proptest! {
        /// Whatever is given back, and however often, comes next, and the order stays.
        #[test]
        fn what_is_given_back_waits_with_all_behind_it(
            records in prop::collection::vec((0u64..20, 0u32..3), 0..60),
            n_taken in prop::collection::vec(0usize..5, 0..40),
        ) {
            let mut merge = Merge::default();
            let mut expected = Vec::new();
            for (tid, &(time_ns, ring)) in records.iter().enumerate() {
                merge.add(ring, time_ns, tid as u32, record(time_ns, tid as i32));
                expected.push((time_ns, ring, tid as i32));
            }
            let mut out = Vec::new();
            for n_taken in n_taken {
                let mut n_left = n_taken;
                let held_ns = merge.hand_on_while(u64::MAX, |_, record| {
                    if n_left == 0 {
                        return ControlFlow::Break(record);
                    }
                    n_left -= 1;
                    out.push(record);
                    ControlFlow::Continue(())
                });
                prop_assert_eq!(held_ns.is_none(), merge.is_empty());
                prop_assert_eq!(held_ns.unwrap_or(u64::MAX), merge.handed_on_to_ns());
            }
            merge.hand_on_all(|_, record| out.push(record));
            expected.sort_unstable();
            let expected: Vec<_> = expected.into_iter().map(|(time, _, tid)| (time, tid)).collect();
            prop_assert_eq!(times_and_tids(&out), expected);
            prop_assert_eq!(merge.n_late(), 0);
        }
    }

    #[test]
    fn slots_are_used_again() {
        let mut merge = Merge::with_capacity(4);
        let mut addresses = std::collections::HashSet::new();
        for round in 0..100 {
            for i in 0..4 {
                let mut slot = merge.slot();
                addresses.insert(std::ptr::from_ref::<Record>(&slot) as usize);
                *slot = Record::Tick { time_ns: round * 4 + i };
                merge.add(0, round * 4 + i, 0, slot);
            }
            let mut taken = Vec::new();
            merge.hand_on(round * 4 + 3, |_, slot| taken.push(slot));
            merge.slots().append(&mut taken);
        }
        assert_eq!(addresses.len(), 4);
    }
}
