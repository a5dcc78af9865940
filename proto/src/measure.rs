//! Measurements, in HP Caliper's sense: a group of events that are counted exactly, and one that is sampled beside them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

named! {
    /// Thing that is measured.
    Measure {
        /// Misses of the data cache, with their latency.
        Dcache = "dcache";
        /// Misses of the data TLB, and who resolved them.
        Dtlb = "dtlb";
        /// Misses of the instruction cache, with their latency.
        Icache = "icache";
        /// Misses of the instruction TLB, and who resolved them.
        Itlb = "itlb";
        /// Page faults, minor and major.
        Faults = "faults";
        /// Time on a CPU.
        Time = "time";
    }
}

impl Measure {
    /// The measurement of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|measure| measure.name() == name)
    }

    /// Tells whether samples of it are of the fetching of code: what the instruction touches is not what waited.
    #[must_use]
    pub const fn is_of_code(self) -> bool {
        matches!(self, Self::Icache | Self::Itlb)
    }

    /// Tells whether its samples weigh by their latency.
    #[must_use]
    pub const fn has_latency(self) -> bool {
        matches!(self, Self::Dcache | Self::Icache)
    }

    /// Tells whether its samples tell who resolved a translation.
    #[must_use]
    pub const fn has_fills(self) -> bool {
        matches!(self, Self::Dtlb | Self::Itlb)
    }
}

/// Privilege levels that are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PrivilegeLevels {
    /// All that these privileges allow.
    #[default]
    All,
    /// User code alone.
    User,
    /// The kernel alone.
    Kernel,
}

/// Amount by which periods vary, so that they do not march in step with a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Variation {
    /// So many events more or less.
    Events(u64),
    /// So many thousandths of the period more or less.
    PerMille(u16),
}

impl Variation {
    /// Five percent, as HP Caliper has it.
    pub const DEFAULT: Self = Self::PerMille(50);

    /// The most that `period` changes, up or down: less than the period itself.
    #[must_use]
    pub fn of(self, period: u64) -> u64 {
        let most = match self {
            Self::Events(n_events) => n_events,
            Self::PerMille(share) => {
                u64::try_from(u128::from(period) * u128::from(share) / 1_000).unwrap_or(u64::MAX)
            }
        };
        most.min(period.saturating_sub(1))
    }
}

/// A measurement as a person asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasureRequest {
    /// Thing to measure.
    pub measure: Measure,
    /// Events from one sample to the next, of a clock nanoseconds; `None`: as is sane for the event.
    pub rate: Option<u64>,
    /// Amount by which that varies.
    pub variation: Variation,
    /// The event to sample in the place of the usual one.
    pub event: Option<String>,
    /// The least latency, in core cycles, of what is sampled.
    pub threshold: Option<u64>,
    /// The privilege levels.
    pub levels: PrivilegeLevels,
}

impl MeasureRequest {
    /// The usual measurement of a thing.
    #[must_use]
    pub const fn new(measure: Measure) -> Self {
        Self {
            measure,
            rate: None,
            variation: Variation::DEFAULT,
            event: None,
            threshold: None,
            levels: PrivilegeLevels::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variation_never_takes_a_period_to_nothing() {
        let of = |variation: Variation, period| variation.of(period);
        assert_eq!(of(Variation::DEFAULT, 1_000_000), 50_000);
        assert_eq!(of(Variation::DEFAULT, 1), 0, "every event stays a sample");
        assert_eq!(of(Variation::DEFAULT, 19), 0);
        assert_eq!(of(Variation::Events(7), 1_000), 7);
        assert_eq!(of(Variation::Events(7_000), 1_000), 999);
        assert_eq!(of(Variation::PerMille(1_000), u64::MAX), u64::MAX - 1);
        assert_eq!(of(Variation::Events(0), 0), 0);
    }
}
