//! Totals at one moment, as `top --json`, `report --json` and the API give them.

use crate::accounting::{Accounting, is_zero};
use crate::event::{EventClass, SkidModel};
use crate::event_count::EventCount;
use crate::governance::Governance;
use crate::sample_line::Scope;
use crate::window::{WindowLengths, Windows};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rises when the meaning of a field changes.
pub const SCHEMA: u32 = 2;

/// Totals at one moment, as `dataspace top --json` prints them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// Version of the format: it rises when the meaning of a field changes.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: u32,
    /// The target.
    pub target: Target,
    /// The events, in the order of their indices.
    pub events: Vec<EventLine>,
    /// Time since the session began.
    pub elapsed_ns: u64,
    /// True where `objects` was cut at a limit.
    pub truncated: bool,
    /// Account of every sample.
    pub accounting: Accounting,
    /// Cost of profiling.
    pub cost: Cost,
    /// Limit of that cost and how it is kept; not there for a recording.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub governance: Option<Governance>,
    /// Exact counts over all tasks, where they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub counts: Vec<EventCount>,
    /// Load objects without debug information in whose code samples found no data object, most samples first: what would
    /// bring names.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub undescribed: Vec<Undescribed>,
    /// Sentences for a person: losses, removed events, damaged input.
    pub warnings: Vec<String>,
    /// `<Total>` first, then by samples since attach, most first.
    pub objects: Vec<ObjectLine>,
}

impl Snapshot {
    /// The windows that its objects have.
    #[must_use]
    pub fn window_lengths(&self) -> WindowLengths {
        self.objects.first().map(|total| total.metrics.lengths()).unwrap_or_default()
    }
}

/// A load object for which no debug information was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undescribed {
    /// Its path.
    pub module: String,
    /// Its build-id in hexadecimal, by which distributions and debuginfod servers know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// True where the file itself is not there, or another one is in its place.
    pub is_missing: bool,
    /// True where its path is of another root, as in a container: here another file may have it.
    pub is_elsewhere: bool,
    /// Samples in its code that have no data object.
    pub samples: u64,
}

/// Target of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// The target as it was given: `pid 4711`, `sqlite-bench`, `perf.data`.
    pub description: String,
    /// Processes it had when the session began, where it is live.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pids: Vec<i32>,
    /// True while it still runs.
    pub running: bool,
}

/// One event of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventLine {
    /// Its name as `--event` takes it.
    pub name: String,
    /// Kind of the event.
    #[serde(default)]
    pub kind: EventClass,
    /// Skid of its samples.
    pub skid: SkidModel,
    /// Events a sample, where it is fixed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub period: Option<u64>,
    /// Samples a second, where a frequency was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub frequency_hz: Option<u64>,
}

/// Cost of profiling, so far as it is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// CPU time of the profiler's own process since the session began; 0 for a client of the daemon that
    /// may not see all sessions.
    pub own_cpu_ns: u64,
    /// Resident memory of the profiler's own process; 0 likewise.
    pub own_rss_bytes: u64,
    /// Time that taking the samples cost the target: samples × what one costs (calibrated).
    pub target_ns: u64,
}

/// Kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// `<Total>`.
    Total,
    /// A structure, union or class as a whole.
    Aggregate,
    /// A member of one.
    Member,
    /// A scalar variable, or scalars behind a pointer.
    Scalar,
    /// `<Scalars>`, `<Stack>`, `<Unknown>`, its reasons, `<Other>`.
    Artificial,
}

/// One data object and its metrics.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ObjectLine {
    /// Number of the object: it stays the same for the life of the session.
    pub id: u32,
    /// Number of the object whose sum contains this one's; `null` for `<Total>`.
    pub parent_id: Option<u32>,
    /// The descriptor.
    pub object: Arc<str>,
    /// The same as a programmer writes it: `order.next`. What a library or a compiler put in is left out.
    #[serde(default)]
    pub name: Arc<str>,
    /// Part of the name that it adds to what is around it, `.next`; the whole name where it is not there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub part: Option<Arc<str>>,
    /// True where the names of what is inside of it leave its part out.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_elided: bool,
    /// Its kind.
    pub kind: ObjectKind,
    /// Offset in the outermost aggregate, in bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offset: Option<u64>,
    /// Size in bytes, where there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub size: Option<u64>,
    /// Dotted paths of the members that accesses to it may have meant, where a union or bit-fields
    /// leave it open; at most a few.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub candidates: Vec<Arc<str>>,
    /// Places of the code that touched it; at most a few.
    pub scope: Vec<Scope>,
    /// Sums by window.
    pub metrics: Windows,
}

/// Place of a bit-field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BitPlace {
    /// Its first bit in the byte.
    pub first: u64,
    /// Number of its bits.
    pub width: u64,
}

/// Sums over samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// Samples.
    pub samples: u64,
    /// Samples whose trigger reads memory.
    pub loads: u64,
    /// Samples whose trigger writes memory.
    pub stores: u64,
    /// Sum of latencies in core cycles. This and the next four are `null` where no sample of the session tells of it.
    pub latency: Option<u64>,
    /// Samples whose access missed the first-level data TLB.
    pub tlb_misses: Option<u64>,
    /// Samples of locked accesses.
    pub locked: Option<u64>,
    /// Samples that found the line modified in another core's cache.
    pub hitm: Option<u64>,
    /// Samples whose data came from another node or socket.
    #[serde(default)]
    pub remote: Option<u64>,
    /// Threads that touched it; only since the session began.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub threads: u64,
    /// Samples by data-source level.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub levels: BTreeMap<String, u64>,
    /// Samples by evidence: both, type, address, conflict.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub evidence: BTreeMap<String, u64>,
    /// Sum of periods by event.
    pub events: BTreeMap<String, u64>,
}
