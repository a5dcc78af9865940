//! How much sampling may cost, what it costs, and what was changed to keep it there.

use serde::{Deserialize, Serialize};

/// What the governor of a live session knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Governance {
    /// What sampling may take: CPU time of the kernel's sampling, of the collector and of the
    /// analyzer, as a share of the target's CPU time, or of one CPU where that is more; `None`
    /// where nothing is governed.
    pub max_overhead: Option<f64>,
    /// What it took: the kernel's part over the last quarter of a second, our own as a mean over
    /// some four.
    pub overhead: f64,
    /// By event: what it samples with now and what one sample costs the target.
    pub events: Vec<EventGovernance>,
    /// Time in which events were switched off because no period lowers their cost.
    pub gap_ns: u64,
    /// Time that profiling took from the target so far: samples × the calibrated cost of one, and
    /// what [`Self::lives`] adds.
    pub target_ns: u64,
    /// What the target's threads and processes pay for being born and for ending with events;
    /// `None` where whole CPUs are sampled, which costs them nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lives: Option<Lives>,
    /// How many changes there were.
    pub n_changes: u64,
    /// The last of them, oldest first.
    pub changes: Vec<PeriodChange>,
}

/// Threads and processes that were born and ended while they had events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lives {
    /// Births since the session began.
    #[serde(rename = "births")]
    pub n_births: u64,
    /// Ends since then.
    #[serde(rename = "ends")]
    pub n_ends: u64,
    /// By how much all events of a task make its birth longer, calibrated when the session began.
    pub birth_cost_ns: u64,
    /// By how much they make its end longer.
    pub end_cost_ns: u64,
    /// What births and ends have taken so far.
    pub target_ns: u64,
    /// By how much the end of all that lives now will take longer: the target's exit, if it ends as
    /// a whole.
    pub exit_ns: u64,
}

/// One event, as it is sampled now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventGovernance {
    /// Events a sample, where it is fixed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub period: Option<u64>,
    /// Samples a second, where that is what was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub frequency_hz: Option<u64>,
    /// What a sample costs the target, calibrated when the session began.
    pub sample_cost_ns: u64,
    /// The governor has switched it off for the moment.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_off: bool,
}

/// One change of an event's period or frequency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeriodChange {
    /// When, in the session's clock.
    pub time_ns: u64,
    /// Which event, as an index into the session's events.
    pub event: u16,
    /// Period or frequency before.
    pub from: u64,
    /// Period or frequency from then on.
    pub to: u64,
    /// What sampling took, as a share, when it was decided.
    pub overhead: f64,
}
