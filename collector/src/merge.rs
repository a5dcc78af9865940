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

use dataspace_proto::record::Record;

/// Records that wait for their turn. Room that was used once is used again: in steady state
/// nothing is allocated for a sample.
#[derive(Debug, Default)]
pub struct Merge {
    /// The records, where they were put when they came; sorting moves 24 bytes, not 640.
    slots: Vec<Record>,
    free: Vec<u32>,
    order: Vec<Place>,
    n_added: u64,
    handed_on_to_ns: u64,
    n_late: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    time_ns: u64,
    /// Order of arrival, so that equal times keep it.
    arrival: u64,
    slot: u32,
    source: u32,
}

/// What stands in a slot that is free.
const NOTHING: Record = Record::Tick { time_ns: 0 };

impl Merge {
    /// An empty queue with room for `n_records`.
    #[must_use]
    pub fn with_capacity(n_records: usize) -> Self {
        Self {
            slots: Vec::with_capacity(n_records),
            free: Vec::with_capacity(n_records),
            order: Vec::with_capacity(n_records),
            ..Self::default()
        }
    }

    /// Takes in a record that happened at `time_ns`. `source` is the caller's own mark of where it
    /// came from, handed back with it.
    pub fn add(&mut self, time_ns: u64, source: u32, record: Record) {
        if time_ns < self.handed_on_to_ns {
            self.n_late += 1;
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = record;
                slot
            }
            None => {
                self.slots.push(record);
                // 2^32 records of 640 bytes do not fit in memory.
                (self.slots.len() - 1) as u32
            }
        };
        self.order.push(Place { time_ns, arrival: self.n_added, slot, source });
        self.n_added += 1;
    }

    /// Gives every record with a time up to `until_ns` to `take`, with its source, in order.
    pub fn hand_on(&mut self, until_ns: u64, mut take: impl FnMut(u32, Record)) {
        // Not the stable sort, which allocates; the order of arrival makes this one as good.
        self.order.sort_unstable();
        let n_ready = self.order.partition_point(|place| place.time_ns <= until_ns);
        for place in self.order.drain(..n_ready) {
            let record = std::mem::replace(&mut self.slots[place.slot as usize], NOTHING);
            take(place.source, record);
            self.free.push(place.slot);
        }
        self.handed_on_to_ns = self.handed_on_to_ns.max(until_ns);
    }

    /// Gives everything that is left to `take`, in order.
    pub fn hand_on_all(&mut self, take: impl FnMut(u32, Record)) {
        self.hand_on(u64::MAX, take);
    }

    /// How many records came after their time had been handed on. They were kept, and handed on
    /// out of order.
    #[must_use]
    pub const fn n_late(&self) -> u64 {
        self.n_late
    }

    /// How many records wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::record::Fork;
    use proptest::prelude::*;

    fn record(time_ns: u64, tid: i32) -> Record {
        Record::Fork(Fork { time_ns, tid, ..Fork::default() })
    }

    fn times_and_tids(records: &[Record]) -> Vec<(u64, i32)> {
        records
            .iter()
            .map(|record| match record {
                Record::Fork(fork) => (fork.time_ns, fork.tid),
                other => panic!("{other:?} was never added"),
            })
            .collect()
    }

    #[test]
    fn a_record_that_comes_too_late_is_counted_and_kept() {
        let mut merge = Merge::default();
        merge.add(10, 0, record(10, 0));
        merge.hand_on(20, |_, _| {});
        merge.add(15, 0, record(15, 1));
        let mut out = Vec::new();
        merge.hand_on(25, |_, record| out.push(record));
        assert_eq!((times_and_tids(&out), merge.n_late()), (vec![(15, 1)], 1));
    }

    proptest! {
        /// Rounds of records whose times are at most one round old come out sorted, each once,
        /// equal times in the order they came.
        #[test]
        fn the_order_is_that_of_the_times(
            rounds in prop::collection::vec(prop::collection::vec(0u64..200, 0..50), 1..10),
        ) {
            let mut merge = Merge::default();
            let (mut out, mut expected) = (Vec::new(), Vec::new());
            let mut previous_round_began = 0;
            for (i, round) in rounds.iter().enumerate() {
                let began = 100 * (i as u64 + 1);
                for offset in round {
                    let time_ns = previous_round_began + 1 + offset;
                    let tid = expected.len() as i32;
                    merge.add(time_ns, tid as u32, record(time_ns, tid));
                    expected.push((time_ns, tid));
                }
                merge.hand_on(previous_round_began, |_, record| out.push(record));
                previous_round_began = began;
            }
            merge.hand_on_all(|_, record| out.push(record));
            expected.sort();
            prop_assert_eq!(times_and_tids(&out), expected);
            prop_assert_eq!(merge.n_late(), 0);
            prop_assert!(merge.is_empty());
        }
    }

    #[test]
    fn slots_are_used_again() {
        let mut merge = Merge::with_capacity(4);
        for round in 0..100 {
            for i in 0..4 {
                merge.add(round * 4 + i, 0, record(round * 4 + i, 0));
            }
            merge.hand_on(round * 4 + 3, |_, _| {});
        }
        assert_eq!(merge.slots.len(), 4);
    }
}
