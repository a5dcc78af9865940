//! Records of many rings put into time order.
//!
//! A recorder goes over its rings in rounds, and writes a `FINISHED_ROUND` after each. What it
//! finds in a round was written, at the latest, while that round lasted; so nothing that a later
//! round brings is older than the newest record of the round before the last. Up to there the
//! queue can be emptied (`tools/perf/util/session.c`, the comment above
//! `perf_event__process_finished_round()`).

use dataspace_proto::record::{Cgroup, Comm, KernelSymbol, Mmap, Record};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Two rounds over the rings of a large machine: 64 rings of 512 KiB hold about this many samples
/// of 128 bytes, twice. Queued they take about 350 MB. A recording that needs more has no rounds;
/// then the older half is let go.
const MAX_QUEUED: usize = 1 << 19;
/// Paths and names in the queue may take so much besides. A round of the largest machines maps
/// some ten thousand files of 200 bytes; more is a recording made to exhaust us.
const MAX_OWNED_BYTES: usize = 128 << 20;

/// A queue that gives records back by time, and by arrival within one time.
#[derive(Debug, Default)]
pub(super) struct Order {
    heap: BinaryHeap<Reverse<(u64, u64, usize)>>,
    slots: Vec<Option<Record>>,
    free: Vec<usize>,
    max_queued: usize,
    n_owned_bytes: usize,
    n_pushed: u64,
    /// Everything up to here can go.
    safe_ns: Option<u64>,
    /// The newest record so far.
    newest_ns: Option<u64>,
    /// The newest record when the last round ended.
    round_ns: Option<u64>,
    /// So many go whatever their time, as the queue was full.
    n_forced: usize,
    last_popped_ns: u64,
    n_late: u64,
    n_samples: u64,
}

impl Order {
    pub(super) fn new() -> Self {
        Self::with_limit(MAX_QUEUED)
    }

    fn with_limit(max_queued: usize) -> Self {
        Self { max_queued, ..Self::default() }
    }

    /// Queues `record`, which belongs at `time_ns`; 0 is before everything.
    pub(super) fn push(&mut self, time_ns: u64, record: Record) {
        if time_ns != 0 && time_ns < self.last_popped_ns {
            self.n_late += 1;
        }
        self.n_samples += u64::from(matches!(record, Record::Sample(_)));
        self.n_owned_bytes += owned_bytes(&record);
        self.newest_ns = self.newest_ns.max(Some(time_ns));
        let slot = self.store(record);
        self.heap.push(Reverse((time_ns, self.n_pushed, slot)));
        self.n_pushed += 1;
        if self.heap.len() >= self.max_queued || self.n_owned_bytes >= MAX_OWNED_BYTES {
            self.n_forced = self.heap.len() / 2;
        }
    }

    fn store(&mut self, record: Record) -> usize {
        let Some(slot) = self.free.pop() else {
            self.slots.push(Some(record));
            return self.slots.len() - 1;
        };
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(record);
        }
        slot
    }

    /// The recorder has gone over all rings.
    pub(super) fn finish_round(&mut self) {
        self.safe_ns = self.safe_ns.max(self.round_ns);
        self.round_ns = self.newest_ns;
    }

    /// Nothing more comes.
    pub(super) const fn finish(&mut self) {
        self.safe_ns = Some(u64::MAX);
    }

    /// Tells whether [`Self::pop`] has something to give.
    pub(super) fn is_ready(&self) -> bool {
        match self.heap.peek() {
            Some(Reverse((time_ns, ..))) => self.n_forced > 0 || Some(*time_ns) <= self.safe_ns,
            None => false,
        }
    }

    /// The oldest record, once nothing older can come.
    pub(super) fn pop(&mut self) -> Option<Record> {
        if !self.is_ready() {
            return None;
        }
        let Reverse((time_ns, _, slot)) = self.heap.pop()?;
        self.n_forced = self.n_forced.saturating_sub(1);
        self.last_popped_ns = self.last_popped_ns.max(time_ns);
        self.free.push(slot);
        let record = self.slots.get_mut(slot)?.take()?;
        self.n_samples -= u64::from(matches!(record, Record::Sample(_)));
        self.n_owned_bytes -= owned_bytes(&record);
        Some(record)
    }

    /// Samples that wait.
    pub(super) const fn n_samples(&self) -> u64 {
        self.n_samples
    }

    /// Records that came after their time had gone.
    pub(super) const fn n_late(&self) -> u64 {
        self.n_late
    }
}

/// Bytes of a record outside its slot.
fn owned_bytes(record: &Record) -> usize {
    match record {
        Record::Mmap(mmap) => size_of::<Mmap>() + mmap.path.len(),
        Record::Comm(comm) => size_of::<Comm>() + comm.name.len(),
        Record::Cgroup(cgroup) => size_of::<Cgroup>() + cgroup.path.len(),
        Record::KernelSymbol(symbol) => size_of::<KernelSymbol>() + symbol.name.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::record::Exit;

    fn exit(time_ns: u64, pid: i32) -> Record {
        Record::Exit(Exit { time_ns, pid, tid: pid })
    }

    fn pop_pids(order: &mut Order) -> Vec<i32> {
        std::iter::from_fn(|| order.pop())
            .map(|record| match record {
                Record::Exit(exit) => exit.pid,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn a_round_lets_go_what_was_there_at_the_end_of_the_round_before() {
        let mut order = Order::new();
        order.push(10, exit(10, 1));
        order.push(30, exit(30, 3));
        order.finish_round();
        assert_eq!(pop_pids(&mut order), [0; 0]);
        order.push(20, exit(20, 2));
        order.push(40, exit(40, 4));
        order.finish_round();
        assert_eq!(pop_pids(&mut order), [1, 2, 3]);
        order.finish();
        assert_eq!(pop_pids(&mut order), [4]);
        assert_eq!(order.n_late(), 0);
    }

    #[test]
    fn records_of_one_time_keep_their_order() {
        let mut order = Order::new();
        for pid in 0..100 {
            order.push(7, exit(7, pid));
        }
        order.finish();
        assert_eq!(pop_pids(&mut order), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_full_queue_lets_its_older_half_go_and_counts_what_comes_late() {
        let mut order = Order::with_limit(8);
        for pid in 1..=8 {
            order.push(10 * pid, exit(0, pid as i32));
        }
        assert_eq!(pop_pids(&mut order), [1, 2, 3, 4]);
        order.push(15, exit(0, 9));
        order.push(0, exit(0, 10));
        order.finish();
        assert_eq!(pop_pids(&mut order), [10, 9, 5, 6, 7, 8]);
        assert_eq!(order.n_late(), 1, "time 0 is before the session, and never late");
    }

    #[test]
    fn long_paths_are_bounded_too() {
        let mut order = Order::new();
        for time_ns in 1..=MAX_OWNED_BYTES as u64 / 0xffff {
            let path = vec![b'x'; 0xffff].into();
            order.push(time_ns, Record::Mmap(Box::new(Mmap { path, ..Mmap::default() })));
        }
        assert!(order.is_ready());
    }
}
