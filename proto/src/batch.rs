//! The bounded channel from collector to analyzer: records travel in batches whose buffers come
//! back, so that steady state allocates nothing.

use crate::record::Record;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

/// Records in time order.
pub type Batch = Vec<Record>;

/// Makes a channel that holds at most `n_batches` batches of `batch_len` records.
///
/// A buffer is made when none has come back by [`BatchReceiver::recycle`]: there are as many as were
/// on their way at one time, which is two or three unless the analyzer falls behind.
#[must_use]
pub fn channel(n_batches: usize, batch_len: usize) -> (BatchSender, BatchReceiver) {
    let (full_sender, full_receiver) = bounded(n_batches);
    // One buffer is filled and one is read while the channel is full.
    let (empty_sender, empty_receiver) = bounded(n_batches + 2);
    let sender = BatchSender {
        batch: Batch::with_capacity(batch_len),
        batch_len,
        to_analyzer: full_sender,
        empty: empty_receiver,
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
    to_analyzer: Sender<Batch>,
    empty: Receiver<Batch>,
    n_dropped_samples: u64,
    is_closed: bool,
}

impl BatchSender {
    /// Adds a record to the current batch. The caller flushes when [`Self::is_full`].
    pub fn push(&mut self, record: Record) {
        self.batch.push(record);
    }

    /// Whether the current batch has reached its length.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.batch.len() >= self.batch_len
    }

    /// Sends the current batch if the channel has room. Without room the samples in it are
    /// dropped and counted; everything else stays for the next flush, so that mappings and task
    /// births are never lost.
    pub fn flush_or_drop_samples(&mut self) {
        if self.batch.is_empty() || self.is_closed {
            self.batch.clear();
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        match self.to_analyzer.try_send(batch) {
            Ok(()) => self.batch = self.next_buffer(),
            Err(TrySendError::Full(mut batch)) => {
                let before = batch.len();
                batch.retain(|record| !matches!(record, Record::Sample(_)));
                self.n_dropped_samples += (before - batch.len()) as u64;
                self.batch = batch;
            }
            Err(TrySendError::Disconnected(mut batch)) => {
                batch.clear();
                self.batch = batch;
                self.is_closed = true;
            }
        }
    }

    /// Sends the current batch, waiting for room: for recordings, and for the end of a session.
    pub fn flush_waiting(&mut self) {
        if self.batch.is_empty() || self.is_closed {
            self.batch.clear();
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        if self.to_analyzer.send(batch).is_err() {
            self.is_closed = true;
        } else {
            self.batch = self.next_buffer();
        }
    }

    /// Samples dropped so far because the channel was full.
    #[must_use]
    pub const fn n_dropped_samples(&self) -> u64 {
        self.n_dropped_samples
    }

    /// Whether the analyzer is gone.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn next_buffer(&self) -> Batch {
        self.empty.try_recv().unwrap_or_else(|_| Batch::with_capacity(self.batch_len))
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

    /// Gives a buffer back.
    pub fn recycle(&self, mut batch: Batch) {
        batch.clear();
        // A full return path means that there are buffers enough: this one is freed.
        let _ = self.empty.try_send(batch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Fork, Sample};

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
                buffers.insert(batch.as_ptr() as usize);
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
        assert!(matches!(batch[..], [Record::Fork(Fork { pid: 7, .. })]));
    }
}
