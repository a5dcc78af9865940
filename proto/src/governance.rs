//! Limit of the cost of sampling, the cost itself, and the changes that keep it below the limit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limit of the cost of sampling in a live session, and how it is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Governance {
    /// Limit: CPU time of the kernel's sampling, of the collector and of the analyzer, as a share of
    /// the target's CPU time, or of one CPU where that is more; `null` where nothing is governed.
    pub max_overhead: Option<f64>,
    /// The share that it took: the kernel's part over the last quarter of a second, the profiler's own
    /// as a mean over some four.
    pub overhead: f64,
    /// By event: its present period or frequency, and the cost of one sample to the target.
    pub events: Vec<EventGovernance>,
    /// Time in which events were switched off because no period lowers their cost.
    pub gap_ns: u64,
    /// Time that profiling took from the target so far: samples × the calibrated cost of one, and
    /// what `lives` adds.
    pub target_ns: u64,
    /// Time that the target's threads and processes pay for being born and for ending with events;
    /// not there where whole CPUs are sampled, which costs them nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lives: Option<Lives>,
    /// Number of changes so far.
    pub n_changes: u64,
    /// The last of them, oldest first.
    pub changes: Vec<PeriodChange>,
}

/// Threads and processes that were born and ended while they had events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lives {
    /// Births since the session began.
    #[serde(rename = "births")]
    pub n_births: u64,
    /// Ends since then.
    #[serde(rename = "ends")]
    pub n_ends: u64,
    /// Time that all events of a task add to its birth, calibrated when the session began.
    pub birth_cost_ns: u64,
    /// Time that they add to its end.
    pub end_cost_ns: u64,
    /// Time that births and ends have taken so far.
    pub target_ns: u64,
    /// Time that will be added to the end of all that lives now: to the target's exit, if it ends as a
    /// whole.
    pub exit_ns: u64,
}

/// One event, as it is sampled now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventGovernance {
    /// Events a sample, where it is fixed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub period: Option<u64>,
    /// Samples a second, where a frequency was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub frequency_hz: Option<u64>,
    /// Most that its period was varied by around that, so that samples do not march in step with a loop.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub variation: Option<u64>,
    /// Cost of a sample to the target, calibrated when the session began.
    pub sample_cost_ns: u64,
    /// True while the governor has switched it off.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_off: bool,
}

/// One change of an event's period or frequency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeriodChange {
    /// Time of the change, in the session's clock.
    pub time_ns: u64,
    /// The event, as an index into the session's events.
    pub event: u16,
    /// Period or frequency before.
    pub from: u64,
    /// Period or frequency from then on.
    pub to: u64,
    /// Share that sampling took when the change was decided.
    pub overhead: f64,
}
