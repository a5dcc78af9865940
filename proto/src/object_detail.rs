//! One object of a session, as the daemon's API tells of it: what accesses it, and what it looks like.

use crate::sample_line::Scope;
use crate::snapshot::{BitPlace, ObjectKind, ObjectLine};
use crate::window::Windows;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a cache line: those of every x86-64 processor.
pub const CACHE_LINE_BYTES: u64 = 64;

/// All that is known of one object.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ObjectDetail {
    /// Time since the session was last attached.
    pub elapsed_ns: u64,
    /// As in snapshots: metrics over all windows, evidence, levels, scope.
    pub object: ObjectLine,
    /// The objects around it, outermost first.
    pub parents: Vec<ObjectReference>,
    /// Its parts that were accessed, those with the most samples first.
    pub children: Vec<ObjectReference>,
    /// The functions that accessed it or a part of it, those with the most samples first.
    pub functions: Vec<FunctionSum>,
    /// Whether `children` or `functions` was cut at a limit.
    pub truncated: bool,
    /// Whether there is a layout to ask for.
    pub has_layout: bool,
}

/// Another object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectReference {
    /// Its number.
    pub id: u32,
    /// The descriptor.
    pub object: Arc<str>,
    /// What kind of row it is.
    pub kind: ObjectKind,
    /// Its samples since the session began.
    pub samples: u64,
}

/// What one function did with an object since the session began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionSum {
    /// Where the function is; `null` where it is not known.
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

/// What the outermost aggregate around an object looks like in memory, with what happens where. Sums
/// are those since the session began.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// Whether its members are arms, which overlap.
    pub is_union: bool,
    /// Bytes between members, those inside of nested ones among them.
    pub hole_bytes: u64,
    /// Bytes behind the last member.
    pub padding_bytes: u64,
    /// Bytes of a cache line. Lines are counted from the beginning of the aggregate, as if it began one.
    pub cache_line_bytes: u64,
    /// The members by offset, each followed by what it consists of.
    pub members: Vec<LayoutLine>,
    /// The cache lines that were accessed.
    pub cache_lines: Vec<CacheLine>,
    /// Samples of which it is open which line they are in: of arrays and members that reach over several
    /// lines, and of no known member.
    pub spread_samples: u64,
    /// Whether there are more members, or deeper nested ones.
    pub truncated: bool,
}

/// One member of an [`ObjectLayout`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LayoutLine {
    /// `-` where it has none, `<base>` for a base class.
    pub name: Arc<str>,
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: Arc<str>,
    /// In the aggregate, in bytes; of what is in an array, in the first element.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// For a bit-field: where it is behind `offset`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bits: Option<BitPlace>,
    /// How many elements it has, if it is an array.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub elements: Option<u64>,
    /// How many members it is inside of.
    pub depth: u32,
    /// Whether it is one arm of several, which overlap.
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
    /// What happened there, if it was accessed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub metrics: Option<Windows>,
}

/// A cache line of an [`ObjectLayout`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheLine {
    /// Counted from 0, at the beginning of the aggregate.
    pub index: u64,
    /// Samples of members that are in this line alone.
    pub samples: u64,
    /// Those that read.
    pub loads: u64,
    /// Those that write.
    pub stores: u64,
    /// Sum of latencies in core cycles.
    pub latency: u64,
    /// How many members were accessed there: where it is several, and some write, threads that share
    /// the object hinder each other.
    pub n_members: u64,
}
