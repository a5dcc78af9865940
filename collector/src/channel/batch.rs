//! The bounded channel from collector to analyzer: records travel in batches whose buffers come
//! back, so that steady state allocates nothing.

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use dataspace_proto::record::Record;
use std::time::{Duration, Instant};

/// Records in time order, each in a slot of its own: a record is written once, where the analyzer reads it,
/// and what is put in order and sent are pointers.
#[derive(Debug, Default)]
pub struct Batch(Slots);

/// Records, each in a place of its own.
#[allow(clippy::vec_box, reason = "records are moved from list to list, and are large")]
pub type Slots = Vec<Box<Record>>;

impl Batch {
    fn with_capacity(n_records: usize) -> Self {
        Self(Slots::with_capacity(n_records))
    }

    /// The records.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Record> {
        self.0.iter().map(|slot| &**slot)
    }

    /// Number of records.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Tells whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::ops::Index<usize> for Batch {
    type Output = Record;

    fn index(&self, index: usize) -> &Record {
        &self.0[index]
    }
}

/// Slots that the sender keeps for the records it makes itself: ticks, counts, warnings.
const N_KEPT_SLOTS: usize = 64;

/// Makes a channel that holds at most `n_batches` batches of `batch_len` records.
///
/// A buffer is made when none has come back by [`BatchReceiver::recycle`]: there are as many as were
/// on their way at one time, which is two or three unless the analyzer falls behind. Slots come back in them.
#[must_use]
pub fn channel(n_batches: usize, batch_len: usize) -> (BatchSender, BatchReceiver) {
    let (full_sender, full_receiver) = bounded(n_batches);
    // One buffer is filled and one is read while the channel is full.
    let (empty_sender, empty_receiver) = bounded(n_batches + 2);
    let sender = BatchSender {
        batch: Batch::with_capacity(batch_len),
        batch_len,
        slots: Slots::with_capacity(batch_len),
        buffers: Vec::with_capacity(n_batches + 2),
        to_analyzer: full_sender,
        empty: empty_receiver,
        n_kept: 0,
        n_dropped_samples: 0,
        is_closed: false,
    };
    (sender, BatchReceiver { from_collector: full_receiver, empty: empty_sender })
}

/// The collector's end.
#[derive(Debug)]
pub struct BatchSender {
    batch: Batch,
    batch_len: usize,
    /// Slots that came back, with what was last in them.
    slots: Slots,
    /// Buffers that came back, empty.
    buffers: Vec<Batch>,
    to_analyzer: Sender<Batch>,
    empty: Receiver<Batch>,
    /// So many records of the batch stay whatever happens: they were looked at when the channel was
    /// full before, and are no samples.
    n_kept: usize,
    n_dropped_samples: u64,
    is_closed: bool,
}

impl BatchSender {
    /// Adds a record to the current batch. The caller flushes when [`Self::is_full`].
    pub fn push(&mut self, record: Record) {
        let slot = match self.slots.pop() {
            Some(mut slot) => {
                *slot = record;
                slot
            }
            None => Box::new(record),
        };
        self.push_slot(slot);
    }

    /// The same with a record that has its slot already.
    pub fn push_slot(&mut self, slot: Box<Record>) {
        self.batch.0.push(slot);
    }

    /// Moves slots that came back to `into`, all but a few. They still hold what they held.
    pub fn take_slots(&mut self, into: &mut Slots) {
        while let Ok(mut buffer) = self.empty.try_recv() {
            self.slots.append(&mut buffer.0);
            self.buffers.push(buffer);
        }
        let n_kept = self.slots.len().min(N_KEPT_SLOTS);
        into.extend(self.slots.drain(n_kept..));
    }

    /// Tells whether the current batch has reached its length.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.batch.len() >= self.batch_len
    }

    /// Sends the current batch if the channel has room. Without room it is kept until it is full;
    /// then the samples in it are dropped and counted, and everything else stays for the next flush, so
    /// that mappings and task births are never lost.
    pub fn flush_or_drop_samples(&mut self) {
        if self.batch.is_empty() || self.is_closed {
            self.slots.append(&mut self.batch.0);
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        match self.to_analyzer.try_send(batch) {
            Ok(()) => self.next_buffer(),
            Err(TrySendError::Full(batch)) => {
                self.batch = batch;
                // There is room for more in one that was to be sent early.
                if self.is_full() {
                    self.drop_samples();
                }
            }
            Err(TrySendError::Disconnected(batch)) => {
                self.batch = batch;
                self.slots.append(&mut self.batch.0);
                self.is_closed = true;
            }
        }
    }

    fn drop_samples(&mut self) {
        for slot_idx in self.n_kept..self.batch.len() {
            if !matches!(self.batch[slot_idx], Record::Sample(_)) {
                self.batch.0.swap(self.n_kept, slot_idx);
                self.n_kept += 1;
            }
        }
        self.n_dropped_samples += (self.batch.len() - self.n_kept) as u64;
        self.slots.extend(self.batch.0.drain(self.n_kept..));
    }

    /// Sends the current batch, waiting for room: for recordings, and for the end of a session.
    pub fn flush_waiting(&mut self) {
        if self.batch.is_empty() || self.is_closed {
            self.slots.append(&mut self.batch.0);
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        if self.to_analyzer.send(batch).is_err() {
            self.is_closed = true;
        } else {
            self.next_buffer();
        }
    }

    /// Tells whether `n_batches` or more are on their way to the analyzer.
    #[must_use]
    pub fn is_behind(&self, n_batches: usize) -> bool {
        self.to_analyzer.len() >= n_batches
    }

    /// Waits, no longer than `timeout`, while `n_batches` or more are on their way to the analyzer. Whether
    /// it has caught up.
    pub fn wait_while_behind(&mut self, n_batches: usize, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        while self.is_behind(n_batches) {
            // A buffer comes back for each batch that the analyzer is through with.
            match self.empty.recv_deadline(end) {
                Ok(mut buffer) => {
                    self.slots.append(&mut buffer.0);
                    self.buffers.push(buffer);
                }
                Err(RecvTimeoutError::Timeout) => return false,
                // Nobody is there to be waited for.
                Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
        true
    }

    /// Samples dropped so far because the channel was full.
    #[must_use]
    pub const fn n_dropped_samples(&self) -> u64 {
        self.n_dropped_samples
    }

    /// Tells whether the analyzer is gone.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Begins a batch in a buffer that came back, whose slots are used again.
    fn next_buffer(&mut self) {
        let came_back = self.buffers.pop().or_else(|| self.empty.try_recv().ok());
        self.batch = came_back.unwrap_or_else(|| Batch::with_capacity(self.batch_len));
        self.n_kept = 0;
        self.slots.append(&mut self.batch.0);
    }
}

/// The analyzer's end.
#[derive(Debug)]
pub struct BatchReceiver {
    from_collector: Receiver<Batch>,
    empty: Sender<Batch>,
}

impl BatchReceiver {
    /// The next batch, or `None` when the collector is done.
    #[must_use]
    pub fn receive(&self) -> Option<Batch> {
        self.from_collector.recv().ok()
    }

    /// The channel itself, for a `select!` over several.
    #[must_use]
    pub const fn receiver(&self) -> &Receiver<Batch> {
        &self.from_collector
    }

    /// Gives a buffer back, and the slots in it.
    pub fn recycle(&self, batch: Batch) {
        // A full return path means that there are buffers enough: this one is freed.
        let _ = self.empty.try_send(batch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::record::{Fork, Sample};

    #[test]
    fn buffers_go_round_and_are_as_many_as_are_on_their_way() {
        let (mut sender, receiver) = channel(64, 2);
        let mut send = |n_batches: usize| {
            for _ in 0..n_batches {
                sender.push(Record::Sample(Sample::default()));
                sender.flush_or_drop_samples();
            }
        };
        let mut buffers = std::collections::HashSet::new();
        let mut receive = |n_batches: usize| {
            for _ in 0..n_batches {
                let batch = receiver.receive().unwrap();
                buffers.insert(batch.0.as_ptr() as usize);
                receiver.recycle(batch);
            }
            buffers.len()
        };
        for _ in 0..100 {
            send(1);
            assert!(receive(1) <= 2, "one is filled while one is read");
        }
        for _ in 0..5 {
            send(10);
            assert!(receive(10) <= 11, "ten wait while one is filled");
        }
    }

    #[test]
    fn who_waits_for_the_analyzer_waits_until_it_is_near_or_the_time_is_up() {
        let (mut sender, receiver) = channel(64, 2);
        for _ in 0..10 {
            sender.push(Record::Sample(Sample::default()));
            sender.flush_or_drop_samples();
        }
        assert!(sender.wait_while_behind(11, Duration::ZERO));
        assert!(!sender.wait_while_behind(10, Duration::ZERO), "nobody takes any");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..7 {
                    receiver.recycle(receiver.receive().unwrap());
                }
            });
            assert!(sender.wait_while_behind(4, Duration::from_secs(60)));
        });
        assert_eq!(receiver.receiver().len(), 3);
        drop(receiver);
        assert!(sender.wait_while_behind(1, Duration::from_secs(60)), "nobody is left");
    }

    #[test]
    fn a_full_channel_drops_samples_and_keeps_side_band() {
        let (mut sender, receiver) = channel(1, 2);
        sender.push(Record::Sample(Sample::default()));
        sender.flush_or_drop_samples();
        sender.push(Record::Sample(Sample::default()));
        sender.push(Record::Fork(Fork { pid: 7, ..Fork::default() }));
        sender.flush_or_drop_samples();
        assert_eq!(sender.n_dropped_samples(), 1);
        receiver.recycle(receiver.receive().unwrap());
        sender.flush_or_drop_samples();
        let batch = receiver.receive().unwrap();
        assert_eq!(batch.len(), 1);
        assert!(matches!(batch[0], Record::Fork(Fork { pid: 7, .. })));
    }

    #[test]
    fn a_batch_that_is_sent_early_loses_nothing_while_it_has_room() {
        let (mut sender, receiver) = channel(1, 4);
        for n_samples in 1..=4 {
            sender.push(Record::Sample(Sample::default()));
            sender.flush_or_drop_samples();
            assert_eq!(sender.n_dropped_samples(), 0, "{n_samples} samples, 5 have room");
        }
        receiver.recycle(receiver.receive().unwrap());
        sender.flush_or_drop_samples();
        assert_eq!(receiver.receive().unwrap().len(), 3);
    }

    #[test]
    fn what_is_kept_of_a_batch_stays_in_its_order() {
        let (mut sender, receiver) = channel(1, 6);
        sender.push(Record::Tick { time_ns: 0 });
        sender.flush_or_drop_samples();
        for pid in 1..=3 {
            sender.push(Record::Sample(Sample::default()));
            sender.push(Record::Fork(Fork { pid, ..Fork::default() }));
        }
        sender.flush_or_drop_samples();
        receiver.recycle(receiver.receive().unwrap());
        sender.flush_or_drop_samples();
        let batch = receiver.receive().unwrap();
        let pids = batch.iter().map(|record| match record {
            Record::Fork(fork) => fork.pid,
            other => panic!("{other:?} was dropped"),
        });
        assert_eq!(pids.collect::<Vec<_>>(), [1, 2, 3]);
    }

    /// Beyond its length a batch that finds no room is flushed with each record.
    #[test]
    fn what_is_kept_is_looked_at_once_however_often_the_channel_is_full() {
        let (mut sender, receiver) = channel(1, 2);
        sender.push(Record::Tick { time_ns: 0 });
        sender.flush_or_drop_samples();
        for pid in 1..=100 {
            sender.push(Record::Fork(Fork { pid, ..Fork::default() }));
            sender.push(Record::Sample(Sample::default()));
            sender.flush_or_drop_samples();
            assert_eq!((sender.n_kept, sender.batch.len()), (pid as usize, pid as usize));
        }
        assert_eq!(sender.n_dropped_samples(), 100);
        receiver.recycle(receiver.receive().unwrap());
        sender.flush_or_drop_samples();
        assert_eq!(receiver.receive().unwrap().len(), 100);
        sender.push(Record::Sample(Sample::default()));
        sender.flush_or_drop_samples();
        assert_eq!(receiver.receive().unwrap().len(), 1, "the next batch begins anew");
    }

    #[test]
    fn slots_come_back() {
        let (mut sender, receiver) = channel(2, 128);
        let mut slots = Vec::new();
        let mut addresses = std::collections::HashSet::new();
        for _ in 0..10 {
            for _ in 0..128 {
                let slot = slots.pop().unwrap_or_else(|| Box::new(Record::Tick { time_ns: 0 }));
                addresses.insert(std::ptr::from_ref::<Record>(&slot) as usize);
                sender.push_slot(slot);
            }
            sender.flush_waiting();
            receiver.recycle(receiver.receive().unwrap());
            sender.take_slots(&mut slots);
        }
        assert!(addresses.len() <= 3 * 128 + N_KEPT_SLOTS, "{}", addresses.len());
    }
}
