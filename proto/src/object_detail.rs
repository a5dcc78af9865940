//! One object of a session in the daemon's API: the functions that access it, and its layout.

use crate::sample_line::Scope;
use crate::snapshot::{BitPlace, ObjectKind, ObjectLine};
use crate::window::Windows;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a cache line: those of every x86-64 processor.
pub const CACHE_LINE_BYTES: u64 = 64;

/// All that is known of one object.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ObjectDetail {
    /// Time since the session was last attached.
    pub elapsed_ns: u64,
    /// Its line, as in snapshots: metrics over all windows, evidence, levels, scope.
    pub object: ObjectLine,
    /// The objects around it, outermost first.
    pub parents: Vec<ObjectReference>,
    /// Its parts that were accessed, those with the most samples first.
    pub children: Vec<ObjectReference>,
    /// The functions that accessed it or a part of it, those with the most samples first.
    pub functions: Vec<FunctionSum>,
    /// True where `children` or `functions` was cut at a limit.
    pub truncated: bool,
    /// True where there is a layout to ask for.
    pub has_layout: bool,
}

/// Another object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectReference {
    /// Its number.
    pub id: u32,
    /// The descriptor.
    pub object: Arc<str>,
    /// Its kind.
    pub kind: ObjectKind,
    /// Its samples since the session began.
    pub samples: u64,
}

/// Accesses of one function to an object since the session began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionSum {
    /// Place of the function; `null` where it is not known.
    pub scope: Option<Scope>,
    /// Its samples.
    pub samples: u64,
    /// Those that read.
    pub loads: u64,
    /// Those that write.
    pub stores: u64,
    /// Sum of latencies in core cycles.
    pub latency: u64,
    /// Sums of periods by event.
    pub events: BTreeMap<String, u64>,
}

/// Layout in memory of the outermost aggregate around an object, with what happens where. Sums are
/// those since the session began.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ObjectLayout {
    /// The aggregate.
    pub object_id: u32,
    /// Its descriptor.
    pub object: Arc<str>,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: Arc<str>,
    /// Its size in bytes.
    pub size: u64,
    /// True where its members are arms, which overlap.
    pub is_union: bool,
    /// Bytes between members, those inside of nested ones among them.
    pub hole_bytes: u64,
    /// Bytes after the last member.
    pub padding_bytes: u64,
    /// Bytes of a cache line. Lines are counted from the beginning of the aggregate, as if it began one.
    pub cache_line_bytes: u64,
    /// The members by offset, each followed by what it consists of.
    pub members: Vec<LayoutLine>,
    /// The cache lines that were accessed.
    pub cache_lines: Vec<CacheLine>,
    /// Samples that belong to no one line: of arrays and members that reach over several
    /// lines, and of no known member.
    pub spread_samples: u64,
    /// True where there are more members, or deeper nested ones.
    pub truncated: bool,
}

/// One member of an aggregate.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LayoutLine {
    /// `-` where it has none, `<base>` for a base class.
    pub name: Arc<str>,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: Arc<str>,
    /// Offset in the aggregate, in bytes; of what is in an array, in the first element.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// For a bit-field: its place after `offset`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bits: Option<BitPlace>,
    /// Number of its elements, if it is an array.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub elements: Option<u64>,
    /// Number of members that it is inside of.
    pub depth: u32,
    /// True where it is one arm of several, which overlap.
    pub is_arm: bool,
    /// Bytes in front of it that no member has.
    pub hole_before: u64,
    /// The first cache line that it is in.
    pub first_cache_line: u64,
    /// The last one.
    pub last_cache_line: u64,
    /// The object that it is, if it was accessed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub object_id: Option<u32>,
    /// Metrics of that object, if it was accessed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub metrics: Option<Windows>,
}

/// A cache line of an aggregate that was accessed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheLine {
    /// Its index, from 0 at the beginning of the aggregate.
    pub index: u64,
    /// Samples of members that are in this line alone.
    pub samples: u64,
    /// Those that read.
    pub loads: u64,
    /// Those that write.
    pub stores: u64,
    /// Sum of latencies in core cycles.
    pub latency: u64,
    /// Number of members that were accessed there: where it is several, and some are written, threads
    /// that share the object hinder each other.
    pub n_members: u64,
}
