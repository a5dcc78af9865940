//! The state of the totals at one moment, as `top --json`, `report --json` and the API give it
//! (design section 8, fixed).

use crate::accounting::{Accounting, is_zero};
use crate::event::SkidModel;
use crate::governance::Governance;
use crate::sample_line::Scope;
use crate::window::{WindowLengths, Windows};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rises when the meaning of a field changes.
pub const SCHEMA: u32 = 1;

/// The totals at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What is profiled.
    pub target: Target,
    /// The events, in the order of their indices.
    pub events: Vec<EventLine>,
    /// Time since the session began.
    pub elapsed_ns: u64,
    /// Whether `objects` was cut at a limit.
    pub truncated: bool,
    /// Where every sample went.
    pub accounting: Accounting,
    /// What profiling costs.
    pub cost: Cost,
    /// What sampling may cost and how it is kept there; `None` for a recording.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub governance: Option<Governance>,
    /// What a person should know: losses, removed events, damaged input.
    pub warnings: Vec<String>,
    /// `<Total>` first, then by samples since attach, most first.
    pub objects: Vec<ObjectLine>,
    /// Which functions access which objects: what exports and an object's details are made of. No part
    /// of the JSON, which would be several times as long.
    #[serde(skip)]
    pub functions: Arc<[FunctionLine]>,
    /// What waits, where the session is live; no part of the JSON.
    #[serde(skip)]
    pub queues: Queues,
}

impl Snapshot {
    /// The windows that its objects have.
    #[must_use]
    pub fn window_lengths(&self) -> WindowLengths {
        self.objects.first().map(|total| total.metrics.lengths()).unwrap_or_default()
    }
}

/// How much waits in each queue of a live session. Samples that wait for debug information are `pending`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Batches of records between collector and analyzer.
    pub batches: usize,
    /// Questions about code and data that the index worker has not come to.
    pub questions: usize,
}

/// What one function did with one object itself, not with a part of it, since the session began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionLine {
    /// The object.
    pub object_id: u32,
    /// The function; `None` where it is not known, or one too many.
    pub scope: Option<Arc<Scope>>,
    /// Its samples.
    pub samples: u64,
    /// Those that read.
    pub loads: u64,
    /// Those that write.
    pub stores: u64,
    /// Sum of latencies in core cycles.
    pub latency: u64,
    /// Sums of periods, in the order of [`Snapshot::events`]; those that are missing are 0.
    pub events: Box<[u64]>,
}

/// What is profiled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// How it was given: `pid 4711`, `sqlite-bench`, `perf.data`.
    pub description: String,
    /// Processes it had when the session began, where it is live.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pids: Vec<i32>,
    /// Whether it still runs.
    pub running: bool,
}

/// One event of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLine {
    /// As `--event` takes it.
    pub name: String,
    /// How far its samples skid.
    pub skid: SkidModel,
    /// Events a sample, where it is fixed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub period: Option<u64>,
    /// Samples a second, where that is what was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub frequency_hz: Option<u64>,
}

/// What profiling costs, so far as it is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of the profiler's own process since the session began.
    pub own_cpu_ns: u64,
    /// Resident memory of the profiler's own process.
    pub own_rss_bytes: u64,
    /// Time that taking the samples cost the target: samples × what one costs (calibrated).
    pub target_ns: u64,
}

/// What kind of row an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ObjectLine {
    /// Stays the same for the life of the session.
    pub id: u32,
    /// The object whose sum contains this one's; `None` for `<Total>`.
    pub parent_id: Option<u32>,
    /// The descriptor.
    pub object: Arc<str>,
    /// What kind of row it is.
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
    /// What an outermost aggregate looks like; no part of the JSON.
    #[serde(skip)]
    pub layout: Option<Arc<TypeLayout>>,
    /// Where the code is that touched it; at most a few.
    pub scope: Vec<Scope>,
    /// Sums by window.
    pub metrics: Windows,
}

/// What a type looks like in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeLayout {
    /// As descriptors spell it: `structure:cell`.
    pub type_name: Arc<str>,
    /// Bytes.
    pub size: u64,
    /// Its members are arms, which overlap.
    pub is_union: bool,
    /// By offset, each followed by what it consists of.
    pub members: Box<[LayoutMember]>,
    /// Whether there are more, or deeper nested ones.
    pub truncated: bool,
}

/// One member of a [`TypeLayout`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutMember {
    /// `-` where it has none, `<base>` for a base class.
    pub name: Arc<str>,
    /// As descriptors spell its type.
    pub type_name: Arc<str>,
    /// In the whole, in bytes; of what is in an array, in the first element.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// For a bit-field: where it is behind `offset`.
    pub bits: Option<BitPlace>,
    /// How many elements it has, as an array of one or more dimensions.
    pub elements: Option<u64>,
    /// How many members it is inside of.
    pub depth: u32,
    /// It is one arm of several, which overlap.
    pub is_arm: bool,
    /// What it consists of are such arms.
    pub is_union: bool,
}

/// Where a bit-field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BitPlace {
    /// Its first bit in the byte.
    pub first: u64,
    /// How many bits.
    pub width: u64,
}

/// Sums over samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// Samples.
    pub samples: u64,
    /// Samples whose trigger reads memory.
    pub loads: u64,
    /// Samples whose trigger writes memory.
    pub stores: u64,
    /// Sum of latencies in core cycles.
    pub latency: u64,
    /// Samples whose access missed the first-level data TLB.
    pub tlb_misses: u64,
    /// Samples of locked accesses.
    pub locked: u64,
    /// Samples that found the line modified in another core's cache.
    pub hitm: u64,
    /// Samples whose data came from another node or socket.
    #[serde(default)]
    pub remote: u64,
    /// Threads that touched it (`all` only).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub threads: u64,
    /// Samples by data-source level.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub levels: BTreeMap<String, u64>,
    /// Samples by evidence.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub evidence: BTreeMap<String, u64>,
    /// Sum of periods by event.
    pub events: BTreeMap<String, u64>,
}
