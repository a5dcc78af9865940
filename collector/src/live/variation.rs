//! Periods that vary, so that samples do not march in step with a loop of the target.

use crate::live::reader::Reader;
use crate::sys::clock::now_ns;
use crate::sys::open;
use dataspace_proto::event::{EventIdx, Sampling};
use dataspace_proto::measure::Variation;

/// Time between two changes. A clock begins anew with each, and what it had waited for is lost: a thousandth of the time at
/// its usual period.
const BETWEEN_NS: u64 = 1_000_000_000;

/// The first change.
const FIRST_NS: u64 = 100_000_000;

/// The most that a period changes: twice that many times a random word of 64 bits fit 128.
const MAX_CHANGE: u64 = 1 << 62;

/// Periods of a session that vary.
#[derive(Debug)]
pub(super) struct Varying {
    variation: Variation,
    next_ns: u64,
    random: u64,
}

impl Varying {
    pub(super) const fn new(variation: Variation, began_ns: u64) -> Self {
        Self { variation, next_ns: began_ns + FIRST_NS, random: began_ns | 1 }
    }

    /// A period around `period`.
    fn around(&mut self, period: u64) -> u64 {
        // Marsaglia, "Xorshift RNGs", 2003: what it need not be is unpredictable.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let most = self.variation.of(period).min(MAX_CHANGE);
        let n_values = u128::from(most) * 2 + 1;
        let change = ((u128::from(self.random) * n_values) >> 64) as u64;
        period.saturating_sub(most).saturating_add(change)
    }
}

impl Reader {
    /// Gives the events that were opened another period around their usual one, where it is time.
    pub(super) fn vary(&mut self, time_ns: u64) {
        let Some(mut varying) = self.varying.take_if(|varying| time_ns >= varying.next_ns) else {
            return;
        };
        varying.next_ns = time_ns + BETWEEN_NS;
        for event_idx in 0..self.plans.len() {
            let plan = &self.plans[event_idx];
            let Sampling::Period(period) = plan.source.sampling else { continue };
            let wanted = plan.rounded(Sampling::Period(varying.around(period)));
            if let Sampling::Period(varied) = wanted
                && varied != period
            {
                self.each(event_idx, |fd| open::set_period(fd, varied));
                self.drain.periods.vary(EventIdx(event_idx as u16), now_ns(), varied);
            }
        }
        self.varying = Some(varying);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_vary_by_as_much_as_was_asked_for_and_their_mean_is_the_usual_one() {
        let mut varying = Varying::new(Variation::DEFAULT, 12_345);
        let periods: Vec<u64> = (0..10_000).map(|_| varying.around(1_000_000)).collect();
        assert!(periods.iter().all(|period| (950_000..=1_050_000).contains(period)));
        let mean = periods.iter().sum::<u64>() / periods.len() as u64;
        // The deviation of such a mean is 100,000 / √(12 · 10,000) = 289.
        assert!((998_500..=1_001_500).contains(&mean), "{mean}");
        let far = periods.iter().filter(|period| period.abs_diff(1_000_000) > 25_000).count();
        assert!((4_500..=5_500).contains(&far), "they are spread evenly: {far}");
        assert_eq!((0..100).map(|_| varying.around(1)).max(), Some(1));
        let mut least = Varying::new(Variation::Events(u64::MAX), 7);
        assert!((0..1_000).all(|_| least.around(u64::MAX) >= 1 && least.around(2) >= 1));
    }
}
