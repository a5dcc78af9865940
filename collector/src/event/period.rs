//! Periods of an event over time: the weights of its samples.
//!
//! Samples cannot be asked. `PERF_SAMPLE_PERIOD` makes software events and breakpoints ignore
//! their period, and a clock whose period was changed goes on telling the old one.

use dataspace_proto::event::EventIdx;

/// Changes of one event that are kept: a governor makes four a second, and a sample waits for less
/// than that in its ring.
const MAX_CHANGES: usize = 64;

/// The periods of a session's events, by time.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeriodLog {
    /// By event, then in the order of time.
    changes: Vec<Vec<Change>>,
    /// The same of events that were opened, and not inherited, whose periods vary.
    varied: Vec<Vec<Change>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    from_ns: u64,
    period: u64,
}

impl PeriodLog {
    /// Notes that `event` has `period` from `from_ns` on, inherited or not.
    ///
    /// Changes of one event come in the order of time; one that does not replaces those after it.
    pub(crate) fn set(&mut self, event: EventIdx, from_ns: u64, period: u64) {
        add(&mut self.changes, event, Change { from_ns, period });
        if self.varied.get(usize::from(event.0)).is_some_and(|varied| !varied.is_empty()) {
            self.vary(event, from_ns, period);
        }
    }

    /// Notes that `event` has `period` from `from_ns` on where it was opened: what inherited it keeps its own
    /// (`perf_event_period()` in Linux `kernel/events/core.c` is of one event).
    pub(crate) fn vary(&mut self, event: EventIdx, from_ns: u64, period: u64) {
        add(&mut self.varied, event, Change { from_ns, period });
    }

    /// Notes that all events have their usual periods again from `from_ns` on: they were opened anew.
    pub(crate) fn end_varying(&mut self, from_ns: u64) {
        for event_idx in 0..self.varied.len() {
            let event = EventIdx(event_idx as u16);
            if !self.varied[event_idx].is_empty() {
                self.vary(event, from_ns, self.at(event, from_ns, true));
            }
        }
    }

    /// The period of `event`, which was inherited or not, at `time_ns`; its first one before that, and 1 where none is
    /// known.
    #[must_use]
    pub(crate) fn at(&self, event: EventIdx, time_ns: u64, is_inherited: bool) -> u64 {
        let event_idx = usize::from(event.0);
        // From the end: samples are about the latest period, nearly always.
        let current = |changes: &[Change]| {
            changes.iter().rev().find(|change| change.from_ns <= time_ns).copied()
        };
        let varied = self.varied.get(event_idx).filter(|_| !is_inherited);
        if let Some(change) = varied.and_then(|varied| current(varied)) {
            return change.period;
        }
        let Some(changes) = self.changes.get(event_idx) else { return 1 };
        current(changes).or_else(|| changes.first().copied()).map_or(1, |change| change.period)
    }
}

fn add(changes: &mut Vec<Vec<Change>>, event: EventIdx, change: Change) {
    let event_idx = usize::from(event.0);
    if changes.len() <= event_idx {
        changes.resize(event_idx + 1, Vec::new());
    }
    let changes = &mut changes[event_idx];
    changes.retain(|known| known.from_ns < change.from_ns);
    if changes.len() >= MAX_CHANGES {
        changes.remove(0);
    }
    changes.push(change);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_period_of_its_time() {
        let mut log = PeriodLog::default();
        log.set(EventIdx(1), 100, 5);
        log.set(EventIdx(1), 200, 7);
        let at = |time_ns| log.at(EventIdx(1), time_ns, false);
        assert_eq!((at(50), at(100), at(199), at(200), at(900)), (5, 5, 5, 7, 7));
        assert_eq!((log.at(EventIdx(0), 100, false), log.at(EventIdx(9), 100, false)), (1, 1));
    }

    #[test]
    fn what_is_inherited_keeps_the_period_that_it_was_born_with() {
        let mut log = PeriodLog::default();
        let event = EventIdx(0);
        log.set(event, 0, 100);
        log.vary(event, 10, 97);
        log.vary(event, 20, 104);
        let at = |log: &PeriodLog, time_ns, is_inherited| log.at(event, time_ns, is_inherited);
        assert_eq!([5, 15, 25].map(|time_ns| at(&log, time_ns, false)), [100, 97, 104]);
        assert_eq!([5, 15, 25].map(|time_ns| at(&log, time_ns, true)), [100, 100, 100]);
        // The governor gives all of them another one, after which they vary again.
        log.set(event, 30, 200);
        log.vary(event, 40, 190);
        assert_eq!([25, 35, 45].map(|time_ns| at(&log, time_ns, false)), [104, 200, 190]);
        assert_eq!([25, 35, 45].map(|time_ns| at(&log, time_ns, true)), [100, 200, 200]);
        log.end_varying(50);
        assert_eq!([45, 55].map(|time_ns| at(&log, time_ns, false)), [190, 200]);
    }
}
