//! Periods that vary, so that samples do not march in step with a loop of the target.

use crate::attach::OpenEvent;
use crate::event::EventPlan;
use crate::live::reader::{Reader, Watch};
use crate::sys::clock::now_ns;
use crate::sys::open;
use dataspace_proto::event::{EventIdx, Sampling};
use dataspace_proto::measure::Variation;

/// Time between two looks at which events have taken enough samples.
const BETWEEN_NS: u64 = 100_000_000;

/// Samples of each open event between two changes of its period. The kernel begins a period anew with each, and what was
/// counted towards the next sample is lost: a two-thousandth.
const SAMPLES_BETWEEN: u64 = 1_000;

/// Longest time between a task's inheriting and when its birth is told: a big address space is copied in between
/// (`copy_process()` in Linux `kernel/fork.c`).
const MAX_BIRTH_NS: u64 = 200_000_000;

/// Events that are open at most where a period varies: it takes a call for each of them.
const MAX_OPEN: u64 = 512;

/// The most that a period changes: twice that many times a random word of 64 bits fit 128.
const MAX_CHANGE: u64 = 1 << 62;

/// Periods of a session that vary.
#[derive(Debug)]
pub(super) struct Varying {
    variation: Variation,
    next_ns: u64,
    random: u64,
    /// Samples of each event when its period was last changed.
    n_taken: Vec<u64>,
    /// The most that the period of each event was changed; none where it never was.
    varied: Vec<Option<u64>>,
    /// Time of the last change since events were opened, of one whose samples do not say what they stand for.
    changed_ns: Option<u64>,
}

impl Varying {
    pub(super) fn new(variation: Variation, began_ns: u64) -> Self {
        let (next_ns, random) = (began_ns + BETWEEN_NS, began_ns | 1);
        let (n_taken, varied) = (Vec::new(), Vec::new());
        Self { variation, next_ns, random, n_taken, varied, changed_ns: None }
    }

    /// The most that the period of an event was changed around its usual one; none where it never was.
    pub(super) fn varied(&self, event_idx: usize) -> Option<u64> {
        self.varied.get(event_idx).copied().flatten()
    }

    /// The most that the period of an event differs from its usual one; none where it does not vary: where samples do not
    /// say what they stand for, tasks that are born inherit the period of the moment (`_perf_event_period()`,
    /// `inherit_event()` in Linux `kernel/events/core.c`), and it stays.
    fn most(&self, plan: &EventPlan, has_heirs: bool) -> Option<u64> {
        let Sampling::Period(period) = plan.source.sampling else { return None };
        let most = self.variation.of(period).min(MAX_CHANGE);
        (most != 0 && (plan.source.says_period() || !has_heirs)).then_some(most)
    }

    /// A period around `period`.
    fn around(&mut self, period: u64, most: u64) -> u64 {
        // Marsaglia, "Xorshift RNGs", 2003: what it need not be is unpredictable.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let n_values = u128::from(most) * 2 + 1;
        let change = ((u128::from(self.random) * n_values) >> 64) as u64;
        period.saturating_sub(most).saturating_add(change).max(1)
    }
}

impl Reader {
    /// Gives the events that have taken enough samples another period around their usual one.
    pub(super) fn vary(&mut self, time_ns: u64, watch: &Watch<'_>) {
        let Some(mut varying) = self.varying.take_if(|varying| time_ns >= varying.next_ns) else {
            return;
        };
        varying.next_ns = time_ns + BETWEEN_NS;
        let born_ns = self.drain.first_birth_ns.filter(|_| self.binding.inherit);
        if let (Some(born_ns), Some(changed_ns)) = (born_ns, varying.changed_ns)
            && born_ns < changed_ns + MAX_BIRTH_NS
        {
            // It may have the period before the change: all begin again at the usual one.
            self.varying = Some(varying);
            return self.reattach(watch);
        }
        varying.n_taken.resize(self.plans.len(), 0);
        varying.varied.resize(self.plans.len(), None);
        for event_idx in 0..self.plans.len() {
            let plan = &self.plans[event_idx];
            let (Sampling::Period(period), Some(most)) =
                (plan.source.sampling, varying.most(plan, self.has_heirs()))
            else {
                continue;
            };
            let is_its = |open: &&OpenEvent| usize::from(open.event.0) == event_idx;
            let n_open = self.events.iter().filter(is_its).count() as u64;
            let n_taken = self.drain.tally.n_taken[event_idx];
            let n_since = n_taken.saturating_sub(varying.n_taken[event_idx]);
            if n_open > MAX_OPEN || n_since < n_open.saturating_mul(SAMPLES_BETWEEN) {
                continue;
            }
            (varying.n_taken[event_idx], varying.varied[event_idx]) = (n_taken, Some(most));
            let wanted = plan.rounded(Sampling::Period(varying.around(period, most)));
            if let Sampling::Period(varied) = wanted {
                self.each(event_idx, |fd| open::set_period(fd, varied));
                let changed_ns = now_ns();
                self.drain.periods.set(EventIdx(event_idx as u16), changed_ns, varied);
                if !self.plans[event_idx].source.says_period() {
                    varying.changed_ns = Some(changed_ns);
                }
            }
        }
        self.varying = Some(varying);
    }

    /// Notes that all events have their usual periods again: they were opened anew.
    pub(super) fn end_varying(&mut self, from_ns: u64) {
        let Some(varying) = &mut self.varying else { return };
        varying.n_taken.clone_from(&self.drain.tally.n_taken);
        varying.changed_ns = None;
        for (event_idx, plan) in self.plans.iter().enumerate() {
            if let Sampling::Period(period) = plan.source.sampling {
                self.drain.periods.set(EventIdx(event_idx as u16), from_ns, period);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_vary_by_as_much_as_was_asked_for_and_their_mean_is_the_usual_one() {
        let mut varying = Varying::new(Variation::DEFAULT, 12_345);
        let periods: Vec<u64> = (0..10_000).map(|_| varying.around(1_000_000, 50_000)).collect();
        assert!(periods.iter().all(|period| (950_000..=1_050_000).contains(period)));
        let mean = periods.iter().sum::<u64>() / periods.len() as u64;
        // The deviation of such a mean is 100,000 / √(12 · 10,000) = 289.
        assert!((998_500..=1_001_500).contains(&mean), "{mean}");
        let far = periods.iter().filter(|period| period.abs_diff(1_000_000) > 25_000).count();
        assert!((4_500..=5_500).contains(&far), "they are spread evenly: {far}");
        assert_eq!((0..100).map(|_| varying.around(1, 0)).max(), Some(1));
        assert!((0..1_000).all(|_| varying.around(u64::MAX, MAX_CHANGE) >= 1));
        assert!((0..1_000).all(|_| varying.around(2, 2) >= 1));
    }
}
