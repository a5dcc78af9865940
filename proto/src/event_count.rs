//! Exact counts of events over all of a session's tasks, from counters that take no samples.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The count of one event.
///
/// The kernel counts a PMU's events in turns where there are more of them than counters. What it did not see is added in
/// proportion: `count = counted × enabled_ns / running_ns`. With equal times nothing was added, and the count is exact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventCount {
    /// The event, as reports call it: `minor-faults`, `l1d-load-misses`.
    pub event: String,
    /// The event as `--event` takes it.
    pub selector: String,
    /// Events in the whole time; `null` where nothing was counted.
    pub count: Option<u64>,
    /// Events that a counter saw.
    pub counted: u64,
    /// Time in which the event was wanted and its tasks ran, summed over them.
    pub enabled_ns: u64,
    /// Time in which a counter counted it.
    pub running_ns: u64,
    /// True where the kernel's side is counted too.
    pub includes_kernel: bool,
    /// The reason that it is not counted, or not on all tasks.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lacks: Option<String>,
}

impl EventCount {
    /// `counted` events in `running_ns`, as many as they would be in `enabled_ns`; `None` where no counter ran.
    #[must_use]
    pub fn scaled(counted: u64, enabled_ns: u64, running_ns: u64) -> Option<u64> {
        if running_ns == 0 {
            // What was enabled for no time has counted nothing, and has missed nothing.
            return (enabled_ns == 0).then_some(counted);
        }
        if running_ns >= enabled_ns {
            return Some(counted);
        }
        let scaled = u128::from(counted) * u128::from(enabled_ns) / u128::from(running_ns);
        Some(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// Tells whether something was added for time in which no counter ran.
    #[must_use]
    pub fn is_scaled(&self) -> bool {
        self.count.is_some() && self.running_ns < self.enabled_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_a_counter_is_made_up_for_in_proportion() {
        let scaled = EventCount::scaled;
        assert_eq!(scaled(1_000, 50, 50), Some(1_000), "it ran all the time");
        assert_eq!(scaled(1_000, 50, 10), Some(5_000), "it had a fifth of the time");
        assert_eq!(scaled(1_000, 50, 0), None, "never");
        assert_eq!(scaled(0, 0, 0), Some(0), "the tasks did not run");
        // Clocks that are read one after the other.
        assert_eq!(scaled(7, 50, 51), Some(7));
        assert_eq!(scaled(u64::MAX, u64::MAX, 1), Some(u64::MAX));
        // Thirds: 2/3 of the time for three groups on two counters.
        assert_eq!(scaled(200_000_000_001, 3_000_000_000, 2_000_000_000), Some(300_000_000_001));
    }
}
