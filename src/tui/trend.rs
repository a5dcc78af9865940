//! The last minutes of a session as its snapshots told them: samples of each object, and the accounts.

use dataspace_proto::accounting::{Accounting, Lost};
use dataspace_proto::reason::Reason;
use dataspace_proto::snapshot::Snapshot;
use dataspace_proto::window::Window;
use std::collections::VecDeque;

const SECOND_NS: u64 = 1_000_000_000;

/// Time between two moments that are kept, at least.
const STEP_NS: u64 = SECOND_NS / 2;

/// Seconds that a trend shows, and its cells.
const TREND_S: u64 = 60;
pub(super) const N_CELLS: usize = 8;

/// Objects of a moment, at most: what is further down a list nobody looks at.
const MAX_OBJECTS: usize = 4_096;

/// Moments that are kept: those of the longest window.
const MAX_MOMENTS: usize = 640;

/// A moment of the session.
#[derive(Debug)]
struct Moment {
    elapsed_ns: u64,
    accounting: Accounting,
    /// Samples since the session began by object, in the order of their numbers; only of the last minute.
    samples: Vec<(u32, u64)>,
}

/// Moments of a session, newest last.
#[derive(Debug, Default)]
pub(super) struct Trend {
    moments: VecDeque<Moment>,
}

impl Trend {
    /// Notes a snapshot, if it is newer.
    pub(super) fn note(&mut self, snapshot: &Snapshot) {
        let newest = self.moments.back().map(|moment| moment.elapsed_ns);
        let is_due = newest.is_none_or(|newest| snapshot.elapsed_ns >= newest + STEP_NS);
        if newest.is_some_and(|newest| snapshot.elapsed_ns < newest) {
            // The daemon attached anew: the session begins again.
            self.moments.clear();
        } else if !is_due {
            return;
        }
        let objects = snapshot.objects.iter().take(MAX_OBJECTS);
        let mut samples: Vec<(u32, u64)> =
            objects.map(|object| (object.id, object.metrics.all.samples)).collect();
        samples.sort_unstable();
        self.moments.push_back(Moment {
            elapsed_ns: snapshot.elapsed_ns,
            accounting: snapshot.accounting.clone(),
            samples,
        });
        if self.moments.len() > MAX_MOMENTS {
            self.moments.pop_front();
        }
        let old = snapshot.elapsed_ns.saturating_sub((TREND_S + 2) * SECOND_NS);
        let olds = self.moments.iter_mut().take_while(|moment| moment.elapsed_ns < old);
        olds.for_each(|moment| moment.samples = Vec::new());
    }

    /// Samples of an object in each eighth of the last minute, oldest first; `None` before the screen was there.
    pub(super) fn cells(&self, object: u32) -> [Option<u64>; N_CELLS] {
        let Some(now) = self.moments.back().map(|moment| moment.elapsed_ns) else {
            return [None; N_CELLS];
        };
        let cell_ns = TREND_S * SECOND_NS / N_CELLS as u64;
        let at = |n_cells_ago: usize| {
            let time_ns = now.checked_sub(n_cells_ago as u64 * cell_ns)?;
            let after = self.moments.partition_point(|moment| moment.elapsed_ns <= time_ns);
            let moment = self.moments.get(after.checked_sub(1)?)?;
            let place = moment.samples.binary_search_by_key(&object, |(id, _)| *id);
            (!moment.samples.is_empty()).then(|| place.map_or(0, |place| moment.samples[place].1))
        };
        std::array::from_fn(|cell| {
            let end = at(N_CELLS - 1 - cell)?;
            // Of the first cell that is seen in part, what was seen of it.
            let begin = at(N_CELLS - cell).or_else(|| self.first(object))?;
            Some(end.saturating_sub(begin))
        })
    }

    fn first(&self, object: u32) -> Option<u64> {
        let moment = self.moments.front().filter(|moment| !moment.samples.is_empty())?;
        let place = moment.samples.binary_search_by_key(&object, |(id, _)| *id);
        Some(place.map_or(0, |place| moment.samples[place].1))
    }

    /// The accounts of a window, and the seconds that they are of: fewer than the window has where the screen was not
    /// there before.
    pub(super) fn accounting(&self, snapshot: &Snapshot, window: Window) -> (Accounting, f64) {
        let all = snapshot.accounting.clone();
        let elapsed_ns = snapshot.elapsed_ns;
        let seconds = |time_ns: u64| time_ns as f64 / SECOND_NS as f64;
        let Window::Last(length) = window else { return (all, seconds(elapsed_ns)) };
        let Some(begin_ns) = elapsed_ns.checked_sub(u64::from(length) * SECOND_NS) else {
            return (all, seconds(elapsed_ns));
        };
        let after = self.moments.partition_point(|moment| moment.elapsed_ns <= begin_ns);
        let base = self.moments.get(after.saturating_sub(1));
        match base.filter(|base| base.elapsed_ns < elapsed_ns) {
            Some(base) => (since(&all, &base.accounting), seconds(elapsed_ns - base.elapsed_ns)),
            None => (all, seconds(elapsed_ns)),
        }
    }
}

/// The samples that `now` has and `before` had not. What was pending before may be anything now: the difference of a sum
/// that fell is 0.
fn since(now: &Accounting, before: &Accounting) -> Accounting {
    let less = |now: u64, before: u64| now.saturating_sub(before);
    let reason =
        |reason: &Reason, count: u64| less(count, before.unknown.get(reason).copied().unwrap_or(0));
    let is_pending = |which: &Reason| *which == Reason::Pending;
    let unknown = now.unknown.iter().map(|(which, count)| {
        // Those that wait, wait now.
        (*which, if is_pending(which) { *count } else { reason(which, *count) })
    });
    Accounting {
        kernel: less(now.kernel, before.kernel),
        attributed: less(now.attributed, before.attributed),
        unknown: unknown.filter(|(_, count)| *count > 0).collect(),
        not_memory: less(now.not_memory, before.not_memory),
        lost: Lost {
            ring_full: less(now.lost.ring_full, before.lost.ring_full),
            channel_full: less(now.lost.channel_full, before.lost.channel_full),
            undecodable: less(now.lost.undecodable, before.lost.undecodable),
        },
        ..now.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn at(seconds: u64, samples: u64) -> Snapshot {
        let mut snapshot = fixture::running();
        snapshot.elapsed_ns = seconds * SECOND_NS;
        snapshot.accounting.kernel = samples * 2;
        snapshot.accounting.attributed = samples;
        snapshot.objects[1].metrics.all.samples = samples;
        snapshot
    }

    #[test]
    fn cells_hold_what_came_in_their_time() {
        let mut trend = Trend::default();
        // 10 samples a second for 30 seconds, then none.
        (0..=60).for_each(|second| trend.note(&at(second, second.min(30) * 10)));
        let id = fixture::running().objects[1].id;
        let cells = trend.cells(id).map(Option::unwrap);
        assert_eq!(cells.iter().sum::<u64>(), 300);
        assert_eq!(cells[4..], [0; 4]);
        assert!(cells[..4].iter().all(|cell| (70..=80).contains(cell)), "{cells:?}");
        assert_eq!(trend.cells(9_999).map(Option::unwrap), [0; N_CELLS]);
    }

    #[test]
    fn a_young_screen_knows_the_last_cells_only() {
        let mut trend = Trend::default();
        (100..=110).for_each(|second| trend.note(&at(second, second * 10)));
        let cells = trend.cells(fixture::running().objects[1].id);
        assert_eq!(cells[..6], [None; 6]);
        assert_eq!(cells[6..].iter().map(|cell| cell.unwrap()).sum::<u64>(), 100);
    }

    #[test]
    fn accounts_are_those_of_the_window() {
        let mut trend = Trend::default();
        (0..=60).for_each(|second| trend.note(&at(second, second * second)));
        let (accounts, seconds) = trend.accounting(&at(60, 3_600), Window::Last(10));
        assert_eq!((accounts.attributed, accounts.kernel), (3_600 - 2_500, 2 * (3_600 - 2_500)));
        assert!((seconds - 10.0).abs() < 1e-9);
        assert_eq!(trend.accounting(&at(60, 3_600), Window::All).0.attributed, 3_600);
    }

    #[test]
    fn a_session_that_begins_again_has_a_new_trend() {
        let mut trend = Trend::default();
        (0..=60).for_each(|second| trend.note(&at(second, second)));
        trend.note(&at(1, 5));
        assert_eq!(trend.moments.len(), 1);
    }
}
