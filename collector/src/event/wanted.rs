//! Events that a selector can name.

use super::breakpoint::Access;
use super::memory::Accesses;
use super::term::Term;

/// Events that a selector can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Clock {
        config: u32,
    },
    /// Something else that the kernel itself counts.
    Software {
        config: u32,
    },
    Breakpoint {
        address: u64,
        len_bytes: u8,
        access: Access,
    },
    Tracepoint {
        system: String,
        name: String,
    },
    /// The events that this machine has for memory accesses.
    Memory(Accesses),
    /// `PERF_TYPE_HARDWARE`.
    Generic(u64),
    /// `PERF_TYPE_HW_CACHE`.
    Cache(u64),
    /// `PERF_TYPE_RAW`.
    Raw(u64),
    /// An event that sysfs names.
    Named(String),
    /// A PMU and terms.
    Pmu {
        pmu: String,
        terms: Vec<Term>,
    },
}

impl Wanted {
    /// Tells whether a PMU counts it, so that it can be more or less precise.
    pub(super) const fn is_counter(&self) -> bool {
        matches!(
            self,
            Self::Memory(_)
                | Self::Generic(_)
                | Self::Cache(_)
                | Self::Raw(_)
                | Self::Named(_)
                | Self::Pmu { .. }
        )
    }
}
