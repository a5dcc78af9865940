//! Counts whose sums must come out even: every sample the kernel took is somewhere.

use crate::event_count::EventCount;
use crate::governance::Governance;
use crate::reason::Reason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts of the kernel and of the collector since the session began.
///
/// `kernel_samples = delivered + not_memory + ring_full + channel_full + undecodable`, where the left side is
/// the kernel's own figure: the samples found in the rings plus what `read()` with
/// `PERF_FORMAT_LOST` says it could not store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collected {
    /// Samples that the kernel took, but for those of `outside`.
    pub kernel_samples: u64,
    /// Samples handed on to the analyzer.
    pub delivered: u64,
    /// Samples the kernel could not store because a ring was full. Whose they were is not known:
    /// where events are on whole CPUs and told apart by process, some may be of others.
    pub ring_full: u64,
    /// Samples dropped because the analyzer did not keep up.
    pub channel_full: u64,
    /// Samples whose bytes do not fit their event's layout; some may be of others, as those of
    /// `ring_full`.
    pub undecodable: u64,
    /// Samples that events took beside what was asked for: of other processes, where events are on
    /// whole CPUs, and of a level or a kind of access that an event cannot leave out.
    pub outside: u64,
    /// Samples of operations that access no memory, left out before the analyzer: AMD's IBS takes
    /// them too.
    pub not_memory: u64,
    /// Time in which the kernel had throttled an event.
    pub throttled_ns: u64,
    /// Time in which the event was scheduled but could not count (multiplexing), or the target
    /// ran where we may not look.
    pub invisible_ns: u64,
    /// Records that came after their time had been handed on; they are kept.
    pub late: u64,
    /// By event: how many events the kernel counted, where it was read.
    pub event_counts: Vec<u64>,
    /// What is counted beside the samples.
    pub counts: Vec<EventCount>,
    /// Cost of sampling, and how it is kept in bounds.
    pub governance: Governance,
}

/// Account of every sample: `kernel = attributed + Σ unknown + not_memory + Σ lost`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accounting {
    /// Samples that the kernel took: its own figure.
    pub kernel: u64,
    /// Samples with a data object.
    pub attributed: u64,
    /// Samples without one, by reason.
    // The schema leaves the reasons open: there may be more of them later.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub unknown: BTreeMap<Reason, u64>,
    /// Samples whose trigger accesses no memory.
    pub not_memory: u64,
    /// Samples lost before attribution, by cause.
    pub lost: Lost,
    /// Samples whose two paths disagree (they are in `attributed`).
    pub conflicts: u64,
    /// Samples named after the votes of typed instructions (they are in `attributed`).
    #[serde(default)]
    pub voted: u64,
    /// Samples with several possible triggers, named after the one that by far runs most often (they are in
    /// `attributed`).
    #[serde(default)]
    pub by_frequency: u64,
    /// Samples that events took beside what was asked for: of other processes, or of a level or a
    /// kind of access that an event cannot leave out (they are not in `kernel`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outside: u64,
    /// Time in which the kernel had throttled an event.
    pub throttled_ns: u64,
    /// Time in which an event could not count.
    pub invisible_ns: u64,
}

/// Samples lost before attribution, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lost {
    /// A kernel ring was full. Whose samples would have been in it is not known: where events are
    /// on whole CPUs and told apart by process, some may be of others.
    pub ring_full: u64,
    /// The channel to the analyzer was full.
    pub channel_full: u64,
    /// The bytes do not fit the event's layout; some may be of others, as those of `ring_full`.
    pub undecodable: u64,
}

impl Lost {
    /// All causes together.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.ring_full.saturating_add(self.channel_full).saturating_add(self.undecodable)
    }
}

impl Accounting {
    /// All samples without a data object.
    #[must_use]
    pub fn unknown_total(&self) -> u64 {
        self.unknown.values().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Difference of the two sides: 0 when every sample is accounted for.
    #[must_use]
    pub fn imbalance(&self) -> i128 {
        let right = [self.attributed, self.unknown_total(), self.not_memory, self.lost.total()];
        i128::from(self.kernel) - right.into_iter().map(i128::from).sum::<i128>()
    }
}

/// Tells whether a count is left out of the JSON.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
pub(crate) const fn is_zero(value: &u64) -> bool {
    *value == 0
}
