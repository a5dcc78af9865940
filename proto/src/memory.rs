//! What the hardware says about one access: level, TLB, lock, latency.

use serde::{Deserialize, Serialize};

/// Where the data came from, as `PERF_SAMPLE_DATA_SRC` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the levels' own")]
pub enum Level {
    L0,
    L1,
    /// The line fill buffer: the line was already on its way.
    #[serde(rename = "LFB")]
    Lfb,
    L2,
    L3,
    L4,
    #[serde(rename = "RAM")]
    Ram,
    #[serde(rename = "PMEM")]
    Pmem,
    #[serde(rename = "CXL")]
    Cxl,
    #[serde(rename = "IO")]
    Io,
    /// Uncached memory.
    #[serde(rename = "UNC")]
    Uncached,
    /// A cache, which one is not told.
    #[serde(rename = "cache")]
    AnyCache,
}

/// How many levels there are.
pub const N_LEVELS: usize = 12;

impl Level {
    /// Every level, in the order of the discriminants.
    pub const ALL: [Level; N_LEVELS] = [
        Level::L0,
        Level::L1,
        Level::Lfb,
        Level::L2,
        Level::L3,
        Level::L4,
        Level::Ram,
        Level::Pmem,
        Level::Cxl,
        Level::Io,
        Level::Uncached,
        Level::AnyCache,
    ];

    /// The level's name in JSON and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Level::L0 => "L0",
            Level::L1 => "L1",
            Level::Lfb => "LFB",
            Level::L2 => "L2",
            Level::L3 => "L3",
            Level::L4 => "L4",
            Level::Ram => "RAM",
            Level::Pmem => "PMEM",
            Level::Cxl => "CXL",
            Level::Io => "IO",
            Level::Uncached => "UNC",
            Level::AnyCache => "cache",
        }
    }
}

/// How an instruction touches its memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes, as `add %rax,(%rdi)` does.
    LoadStore,
    /// Only asks for the line.
    Prefetch,
}

/// `PERF_SAMPLE_DATA_SRC`, decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataSource {
    /// What the hardware calls the access, where it says.
    pub access: Option<Access>,
    /// Where the data came from, where it is known.
    pub level: Option<Level>,
    /// The access missed that level (the older encoding has "L3 miss").
    pub is_miss: bool,
    /// The data came from another socket or node.
    pub is_remote: bool,
    /// Another core held the line modified.
    pub is_hitm: bool,
    /// The access was locked.
    pub is_locked: bool,
    /// The first-level data TLB missed.
    pub is_tlb_miss: bool,
}
