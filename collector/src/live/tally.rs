//! The counts of a session: what the kernel took, what became of it, what was not seen.

use crate::attach::OpenEvent;
use crate::event::EventPlan;
use crate::sys::open::{self, EventCounts};
use dataspace_proto::accounting::Collected;
use dataspace_proto::event::EventIdx;
use dataspace_proto::governance::Governance;
use std::collections::HashMap;

/// The clocks of the events on one thread are read one after the other, so they differ by what
/// passes in between. Less than this is no sign of lost time.
const MIN_INVISIBLE_NS: u64 = 10_000_000;

/// Throttled events remembered at once. A thread that ends while it is throttled never tells of
/// its release; what is forgotten here is time that was not counted as throttled.
const MAX_THROTTLED: usize = 4096;

/// The counts of a session.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Samples pushed to the analyzer's channel, by event.
    pub(crate) n_pushed: Vec<u64>,
    /// Samples that the kernel took, by event, as far as they were found in the rings.
    pub(crate) n_taken: Vec<u64>,
    /// Number of events that they stand for.
    pub(crate) taken_weights: Vec<u64>,
    /// Samples of operations that access no memory, which the reader leaves out.
    pub(crate) n_not_memory: u64,
    /// Samples of processes that are not the target's, and of levels that were not asked for.
    n_outside: u64,
    /// The same by event.
    outside: Vec<u64>,
    /// Samples whose bytes made no sense.
    pub(crate) n_undecodable: u64,
    /// LOST records of the sample rings: a lower bound, short of the last gap.
    pub(crate) n_lost_told: u64,
    /// True if the kernel knows the exact number.
    pub(crate) knows_lost: bool,
    throttled_ns: u64,
    throttled_since: HashMap<u64, u64>,
    read: Read,
    /// Counts of events that were closed since.
    closed: Read,
    /// By event: how many count one thread. As many as there are CPUs for it, each on one of them.
    n_together: Vec<usize>,
}

/// Sums of what `read()` says.
#[derive(Clone, Debug, Default)]
struct Read {
    n_lost: u64,
    invisible_ns: u64,
    /// Time in which the first event counted: CPU time of its tasks, or time of whole CPUs.
    running_ns: u64,
    values: Vec<u64>,
    lost: Vec<u64>,
}

impl Read {
    fn new(n_events: usize) -> Self {
        Self { values: vec![0; n_events], lost: vec![0; n_events], ..Self::default() }
    }

    fn begin_with(&mut self, other: &Self) {
        (self.n_lost, self.invisible_ns) = (other.n_lost, other.invisible_ns);
        self.running_ns = other.running_ns;
        self.values.copy_from_slice(&other.values);
        self.lost.copy_from_slice(&other.lost);
    }

    /// Adds the counts of one event on one thread, by CPU.
    ///
    /// What counts on one kind of core only (not `is_everywhere`) does not see the others, and that
    /// is no lost time: another event does. Each of them is enabled whenever the thread runs, and running when that is on its CPU.
    fn add(
        &mut self,
        event: EventIdx,
        is_everywhere: bool,
        by_cpu: impl Iterator<Item = EventCounts>,
    ) {
        let event_idx = usize::from(event.0);
        let (mut enabled_ns, mut running_ns) = (0, 0);
        for counts in by_cpu {
            enabled_ns = counts.enabled_ns.max(enabled_ns);
            running_ns += counts.running_ns;
            self.n_lost += counts.n_lost;
            self.values[event_idx] += counts.value;
            self.lost[event_idx] += counts.n_lost;
        }
        if event_idx == 0 {
            self.running_ns += running_ns;
        }
        let invisible_ns = enabled_ns.saturating_sub(running_ns);
        if is_everywhere && invisible_ns >= MIN_INVISIBLE_NS {
            self.invisible_ns += invisible_ns;
        }
    }

    fn add_all(&mut self, events: &[OpenEvent], n_together: &[usize]) {
        for group in events.chunk_by(|a, b| (a.tid, a.event) == (b.tid, b.event)) {
            let n_most = n_together.iter().copied().max().unwrap_or(1);
            let n_together = n_together[usize::from(group[0].event.0)];
            for by_cpu in group.chunks(n_together.max(1)) {
                let counts = by_cpu.iter().filter_map(|open| {
                    // An event that cannot be read has nothing to add.
                    open::read_counts(open.fd.as_ref()?).ok().flatten()
                });
                self.add(by_cpu[0].event, n_together == n_most, counts);
            }
        }
    }
}

impl Tally {
    /// By event, so many count one thread: each on a CPU of its own, and it runs on one at a time.
    pub(crate) fn new(n_together: Vec<usize>, knows_lost: bool) -> Self {
        let n_events = n_together.len();
        Self {
            n_pushed: vec![0; n_events],
            n_taken: vec![0; n_events],
            taken_weights: vec![0; n_events],
            outside: vec![0; n_events],
            read: Read::new(n_events),
            closed: Read::new(n_events),
            n_together,
            knows_lost,
            ..Self::default()
        }
    }

    /// From now on events are on `n_cpus` for each thread.
    pub(crate) fn set_cpus(&mut self, plans: &[EventPlan], n_cpus: usize) {
        self.n_together = n_together(plans, n_cpus);
    }

    /// Tells whether a record is a sample, which those of an `open` event are, and that event was found to double
    /// another: as if it had never been.
    pub(crate) const fn is_double(open: Option<&OpenEvent>) -> bool {
        matches!(open, Some(open) if open.fd.is_none())
    }

    /// Counts a sample, which is of an `open` event, as pushed or as outside.
    pub(crate) fn passed(&mut self, open: Option<&OpenEvent>, is_pushed: bool) {
        match open {
            Some(open) if is_pushed => self.n_pushed[usize::from(open.event.0)] += 1,
            Some(open) => self.left_out(open),
            None => {}
        }
    }

    /// Counts a sample that is not of what was asked for.
    pub(crate) fn left_out(&mut self, open: &OpenEvent) {
        self.n_outside += 1;
        self.outside[usize::from(open.event.0)] += 1;
    }

    /// Reads the counts of all open events again.
    pub(crate) fn read(&mut self, events: &[OpenEvent]) {
        self.read.begin_with(&self.closed);
        self.read.add_all(events, &self.n_together);
    }

    /// Reads the counts of all open events for the last time: they are about to be closed.
    pub(crate) fn close(&mut self, events: &[OpenEvent]) {
        self.read(events);
        self.closed.begin_with(&self.read);
    }

    /// Share of `event`'s count that its samples stand for, those that were lost too: the count,
    /// and their weights. What a lost one stood for is not known, so it is what the others do on
    /// average; `None` where there are no others.
    pub(crate) fn count_and_weights(&self, event: EventIdx) -> Option<(u64, u64)> {
        let event_idx = usize::from(event.0);
        let (n_taken, weights) = (self.n_taken[event_idx], self.taken_weights[event_idx]);
        // Whose those are that were only told of is not known.
        let n_lost = if self.knows_lost { self.read.lost[event_idx] } else { self.n_lost_told };
        let mean = match n_taken {
            0 if n_lost != 0 => return None,
            n_taken => weights / n_taken.max(1),
        };
        let lost = n_lost.saturating_mul(mean);
        Some((self.read.values[event_idx], weights.saturating_add(lost)))
    }

    /// CPU time of the tasks that the first event counts, when its counts were last read.
    pub(crate) const fn running_ns(&self) -> u64 {
        self.read.running_ns
    }

    /// The kernel stopped the event `stream_id` or let it go.
    pub(crate) fn throttled(&mut self, time_ns: u64, stream_id: u64, begins: bool) {
        if begins {
            if self.throttled_since.len() >= MAX_THROTTLED {
                self.throttled_since.clear();
            }
            self.throttled_since.entry(stream_id).or_insert(time_ns);
        } else if let Some(since_ns) = self.throttled_since.remove(&stream_id) {
            self.throttled_ns += time_ns.saturating_sub(since_ns);
        }
    }

    /// The counts as they are now, `n_dropped` of the pushed samples having met a full channel.
    ///
    /// Samples that still wait in the merge are on neither side.
    pub(crate) fn collected(&self, n_dropped: u64, n_late: u64) -> Collected {
        let ring_full = if self.knows_lost { self.read.n_lost } else { self.n_lost_told };
        let n_pushed: u64 = self.n_pushed.iter().sum();
        Collected {
            kernel_samples: n_pushed + self.n_undecodable + self.n_not_memory + ring_full,
            delivered: n_pushed - n_dropped.min(n_pushed),
            ring_full,
            channel_full: n_dropped,
            undecodable: self.n_undecodable,
            throttled_ns: self.throttled_ns,
            invisible_ns: self.read.invisible_ns,
            late: n_late,
            outside: self.n_outside,
            not_memory: self.n_not_memory,
            event_counts: self.read.values.clone(),
            counts: Vec::new(),
            governance: Governance::default(),
        }
    }

    /// The samples that the kernel says it lost, by event; empty where it does not tell.
    pub(crate) fn lost_by_event(&self) -> &[u64] {
        if self.knows_lost { &self.read.lost } else { &[] }
    }

    /// Number of samples of `event` that the kernel took, and number of events that it counted: equal where
    /// each event is sampled and every sample was decoded.
    pub(crate) fn samples_and_count(&self, event: EventIdx) -> (u64, u64) {
        let event_idx = usize::from(event.0);
        let n_samples = self.n_pushed[event_idx] + self.outside[event_idx];
        (n_samples + self.read.lost[event_idx], self.read.values[event_idx])
    }
}

/// By event, how many count one thread where that is opened on `n_cpus`.
pub(crate) fn n_together(plans: &[EventPlan], n_cpus: usize) -> Vec<usize> {
    let of = |plan: &EventPlan| plan.cpus.as_ref().map_or(n_cpus, |cpus| cpus.len().min(n_cpus));
    plans.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(value: u64, enabled_ms: u64, running_ms: u64, n_lost: u64) -> EventCounts {
        let (enabled_ns, running_ns) = (enabled_ms * 1_000_000, running_ms * 1_000_000);
        EventCounts { value, enabled_ns, running_ns, n_lost }
    }

    #[test]
    fn a_thread_that_moves_between_cpus_is_always_visible() {
        let mut read = Read::new(2);
        read.add(EventIdx(1), true, [counts(5, 100, 70, 1), counts(7, 101, 31, 2)].into_iter());
        assert_eq!((read.n_lost, read.invisible_ns, &*read.values), (3, 0, &[0, 12][..]));
        read.add(EventIdx(0), true, [counts(1, 100, 20, 0), counts(1, 100, 30, 0)].into_iter());
        assert_eq!(read.invisible_ns, 50_000_000);
    }

    #[test]
    fn lost_samples_stand_for_what_the_others_do() {
        let mut tally = Tally::new(vec![1, 1], true);
        tally.read.values = vec![1_000, 5];
        tally.read.lost = vec![6, 0];
        assert_eq!(tally.count_and_weights(EventIdx(0)), None, "all were lost");
        assert_eq!(tally.count_and_weights(EventIdx(1)), Some((5, 0)), "there were none");
        (tally.n_taken[0], tally.taken_weights[0]) = (4, 400);
        assert_eq!(tally.count_and_weights(EventIdx(0)), Some((1_000, 1_000)));
        tally.knows_lost = false;
        tally.n_lost_told = 3;
        assert_eq!(tally.count_and_weights(EventIdx(0)), Some((1_000, 700)));
    }

    #[test]
    fn throttled_time_is_summed_by_event() {
        let mut tally = Tally::new(vec![1], true);
        tally.throttled(100, 1, true);
        tally.throttled(150, 2, true);
        tally.throttled(200, 1, false);
        tally.throttled(300, 3, false);
        assert_eq!(tally.collected(0, 0).throttled_ns, 100);
    }

    #[test]
    fn both_sides_are_equal_whatever_was_lost() {
        let mut tally = Tally::new(vec![1], false);
        tally.n_pushed[0] = 10;
        tally.n_undecodable = 2;
        tally.n_lost_told = 3;
        let collected = tally.collected(4, 0);
        assert_eq!((collected.kernel_samples, collected.delivered), (15, 6));
    }
}
