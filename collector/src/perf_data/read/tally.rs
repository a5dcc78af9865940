//! Fates of all samples of a recording.

use dataspace_proto::accounting::Collected;
use std::collections::HashMap;

/// More events than are ever throttled at one time.
const MAX_THROTTLED: usize = 1 << 16;

/// More than can be lost: 8,000 CPUs that lose a sample each microsecond need four years for it. A
/// count beyond it is damage, and would overflow the sums that it is in.
const MAX_LOST: u64 = 1 << 60;

/// Counts so far.
#[derive(Debug, Default)]
pub(super) struct RecordingTally {
    /// Sample records in the recording, whole or not.
    pub(super) n_seen: u64,
    /// Samples handed out.
    pub(super) n_delivered: u64,
    /// Samples that do not fit an event.
    pub(super) n_undecodable: u64,
    /// Records that are of no use here.
    pub(super) n_ignored: u64,
    /// Counts of `perf stat record`.
    pub(super) n_counts: u64,
    /// Sum of `PERF_RECORD_LOST`: records of any kind.
    n_lost_records: u64,
    /// Sum of `PERF_RECORD_LOST_SAMPLES`, if there is one: none lost is an answer too.
    n_lost_samples: Option<u64>,
    throttled_ns: u64,
    throttled_since: HashMap<u64, u64>,
}

impl RecordingTally {
    pub(super) const fn lose_records(&mut self, n: u64) {
        self.n_lost_records = self.n_lost_records.saturating_add(n);
    }

    pub(super) fn lose_samples(&mut self, n: u64) {
        let before = self.n_lost_samples.unwrap_or(0);
        self.n_lost_samples = Some(before.saturating_add(n));
    }

    /// The kernel stopped the event of `id`.
    pub(super) fn throttle(&mut self, id: u64, time_ns: u64) {
        if self.throttled_since.len() < MAX_THROTTLED {
            self.throttled_since.entry(id).or_insert(time_ns);
        }
    }

    /// The kernel lets the event of `id` go on.
    pub(super) fn unthrottle(&mut self, id: u64, time_ns: u64) {
        if let Some(since) = self.throttled_since.remove(&id) {
            let span = time_ns.saturating_sub(since);
            self.throttled_ns = self.throttled_ns.saturating_add(span);
        }
    }

    /// Samples lost to full rings. Where events count their lost samples (`PERF_FORMAT_LOST`)
    /// `perf` writes that figure as `PERF_RECORD_LOST_SAMPLES` at the end, and it covers what
    /// `PERF_RECORD_LOST` tells; otherwise both stand for themselves.
    pub(super) const fn n_lost(&self, counts_lost_samples: bool) -> u64 {
        let n_lost = match self.n_lost_samples {
            Some(n_lost_samples) if counts_lost_samples => n_lost_samples,
            Some(n_lost_samples) => self.n_lost_records.saturating_add(n_lost_samples),
            None => self.n_lost_records,
        };
        if n_lost > MAX_LOST { MAX_LOST } else { n_lost }
    }

    /// Tells whether [`Self::n_lost`] may count records that are no samples.
    pub(super) const fn is_lost_approximate(&self, counts_lost_samples: bool) -> bool {
        self.n_lost_records > 0 && !(counts_lost_samples && self.n_lost_samples.is_some())
    }

    /// The counts, while `n_queued` samples wait to be handed out.
    pub(super) fn collected(&self, lost: u64, n_queued: u64, n_late: u64) -> Collected {
        Collected {
            kernel_samples: self.n_seen.saturating_sub(n_queued).saturating_add(lost),
            delivered: self.n_delivered,
            ring_full: lost,
            undecodable: self.n_undecodable,
            throttled_ns: self.throttled_ns,
            late: n_late,
            ..Collected::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_samples_replace_lost_records_where_the_kernel_counts_them() {
        let mut tally = RecordingTally::default();
        tally.lose_records(10);
        assert_eq!((tally.n_lost(true), tally.is_lost_approximate(true)), (10, true));
        tally.lose_samples(0);
        assert_eq!((tally.n_lost(true), tally.is_lost_approximate(true)), (0, false));
        tally.lose_samples(7);
        assert_eq!((tally.n_lost(true), tally.is_lost_approximate(true)), (7, false));
        assert_eq!((tally.n_lost(false), tally.is_lost_approximate(false)), (17, true));
        tally.lose_samples(u64::MAX);
        let collected = tally.collected(tally.n_lost(false), 0, 0);
        assert_eq!(collected.kernel_samples, collected.ring_full, "a damaged count stays even");
    }

    #[test]
    fn throttled_time_is_summed_by_event() {
        let mut tally = RecordingTally::default();
        tally.throttle(1, 100);
        tally.throttle(2, 110);
        tally.throttle(1, 120);
        tally.unthrottle(1, 150);
        tally.unthrottle(3, 160);
        tally.unthrottle(2, 100);
        assert_eq!(tally.collected(0, 0, 0).throttled_ns, 50);
    }
}
