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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    from_ns: u64,
    period: u64,
}

impl PeriodLog {
    /// Notes that `event` has `period` from `from_ns` on.
    ///
    /// Changes of one event come in the order of time; one that does not replaces those after it.
    pub(crate) fn set(&mut self, event: EventIdx, from_ns: u64, period: u64) {
        let event_idx = usize::from(event.0);
        if self.changes.len() <= event_idx {
            self.changes.resize(event_idx + 1, Vec::new());
        }
        let changes = &mut self.changes[event_idx];
        changes.retain(|change| change.from_ns < from_ns);
        if changes.len() >= MAX_CHANGES {
            changes.remove(0);
        }
        changes.push(Change { from_ns, period });
    }

    /// The period of `event` at `time_ns`; its first one before that, and 1 where none is known.
    #[must_use]
    pub(crate) fn at(&self, event: EventIdx, time_ns: u64) -> u64 {
        let Some(changes) = self.changes.get(usize::from(event.0)) else { return 1 };
        // From the end: samples are about the latest period, nearly always.
        let current = changes.iter().rev().find(|change| change.from_ns <= time_ns);
        current.or_else(|| changes.first()).map_or(1, |change| change.period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_period_of_its_time() {
        let mut log = PeriodLog::default();
        log.set(EventIdx(1), 100, 5);
        log.set(EventIdx(1), 200, 7);
        let at = |time_ns| log.at(EventIdx(1), time_ns);
        assert_eq!((at(50), at(100), at(199), at(200), at(900)), (5, 5, 5, 7, 7));
        assert_eq!((log.at(EventIdx(0), 100), log.at(EventIdx(9), 100)), (1, 1));
    }
}
