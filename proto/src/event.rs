//! Events, and the properties of each one's samples.

use crate::address::Avma;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The event that a sample belongs to: an index into the session's list of [`Event`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventIdx(pub u16);

/// Distance of the reported IP from the instruction that caused the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SkidModel {
    /// The instruction at IP is the trigger.
    Exact,
    /// The trigger retired just before IP.
    AfterOne,
    /// `unknown(N)`: the trigger is one of the last N instructions.
    #[serde(untagged, with = "bounded")]
    #[schemars(with = "String")]
    Unknown(u32),
}

mod bounded {
    //! `unknown(8)` as text.
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(range: &u32, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("unknown({range})"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
        let text = String::deserialize(from)?;
        text.strip_prefix("unknown(")
            .and_then(|rest| rest.strip_suffix(')'))
            .and_then(|range| range.parse().ok())
            .ok_or_else(|| D::Error::custom("expected exact, after-one or unknown(N)"))
    }
}

/// Kind of an event, as far as attribution needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Time on a CPU: any instruction can be the trigger, and only a memory access is one of ours.
    Clock,
    /// Page faults: the trigger accesses memory at the sampled address.
    PageFault,
    /// A hardware breakpoint: the trigger touches these bytes. The sampled address is the
    /// breakpoint's, not the access's (Linux `kernel/events/hw_breakpoint.c`).
    Breakpoint {
        /// First watched byte.
        address: Avma,
        /// Number of watched bytes.
        len_bytes: u8,
    },
    /// A tracepoint: it fires in the kernel and names no data.
    Tracepoint,
    /// A hardware event of memory accesses.
    Memory,
    /// A hardware event of fetching code: a sample tells of the instruction at its IP, not of what that touches.
    Fetch,
    /// Any other counter: its trigger is not known to be a memory access.
    Other,
}

impl EventKind {
    /// Tells whether every trigger of this event accesses memory, so that one that does not is a
    /// contradiction (`unspecified`), not a fact about the program (`not_memory`).
    #[must_use]
    pub const fn is_memory_only(self) -> bool {
        matches!(self, Self::PageFault | Self::Breakpoint { .. } | Self::Memory)
    }
}

/// Kind of an event, as far as views need to know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventClass {
    /// Time on a CPU.
    Clock,
    /// Page faults.
    PageFault,
    /// A hardware breakpoint.
    Breakpoint,
    /// A tracepoint.
    Tracepoint,
    /// Accesses to memory.
    Memory,
    /// Fetches of code.
    Fetch,
    /// Any other counter.
    #[default]
    Other,
}

impl From<EventKind> for EventClass {
    fn from(kind: EventKind) -> Self {
        match kind {
            EventKind::Clock => Self::Clock,
            EventKind::PageFault => Self::PageFault,
            EventKind::Breakpoint { .. } => Self::Breakpoint,
            EventKind::Tracepoint => Self::Tracepoint,
            EventKind::Memory => Self::Memory,
            EventKind::Fetch => Self::Fetch,
            EventKind::Other => Self::Other,
        }
    }
}

/// Rate at which an event samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Number of events from one sample to the next.
    Period(u64),
    /// Samples a second; the kernel adapts the period.
    FrequencyHz(u64),
}

/// One event of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The name as a user would give it to `--event`.
    pub name: String,
    /// Its kind.
    pub kind: EventKind,
    /// Skid of its samples.
    pub skid: SkidModel,
    /// Its rate.
    pub sampling: Sampling,
    /// True where it samples the kernel's own code too.
    pub includes_kernel: bool,
}

/// The instruction set of the machine that the samples come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Machine {
    /// x86-64; 32-bit tasks on it are told apart by their samples.
    X86_64,
    /// Any other: samples are counted, and none can be attributed.
    Other,
}
