//! Records handed to the analyzer one by one, those that come next already on their way into its CPU's cache.

use crate::channel::batch::Batch;
use crate::sys::prefetch;
use dataspace_proto::record::Record;

/// The collector's CPU wrote the records last. Work on three of them takes as long as to fetch one.
const N_AHEAD: usize = 3;

/// The part of a record that is always looked at: all but the stack of a sample.
pub(crate) const RECORD_BYTES: usize = 448;

/// Gives each record of `batch` to `take`, in order.
///
/// ```
/// use dataspace_collector::channel::ahead;
/// use dataspace_collector::channel::batch;
/// use dataspace_proto::record::Record;
///
/// let (mut sender, receiver) = batch::channel(4, 16);
/// sender.push(Record::Tick { time_ns: 7 });
/// sender.flush_waiting();
/// let batch = receiver.receive().unwrap();
/// let mut times = Vec::new();
/// ahead::each(&batch, |record| times.extend(record.time_ns()));
/// assert_eq!(times, [7]);
/// ```
pub fn each<'a>(batch: &'a Batch, mut take: impl FnMut(&'a Record)) {
    for (record_idx, record) in batch.iter().enumerate() {
        if record_idx + N_AHEAD < batch.len() {
            prefetch::to_read(&batch[record_idx + N_AHEAD], RECORD_BYTES);
        }
        take(record);
    }
}
