//! Events that sample memory accesses on this machine: `-e mem`, `-e loads`, `-e stores`.

use super::modifier::Modifiers;
use crate::error::Error;
use crate::system::machine::{Machine, Pmu};
use dataspace_proto::memory::Access;

/// The load latency below which loads are not sampled, in cycles: what `perf mem record` takes. A
/// first-level hit takes 4 or 5, and would be nearly all that is seen.
const LOAD_LATENCY_CYCLES: u64 = 30;

/// Kind of accesses that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accesses {
    All,
    Loads,
    Stores,
}

/// Means that the machine has for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Events in perf's spelling, and what a person should know of them.
    Events(Vec<String>, Option<String>),
    /// None, and why.
    Nothing(String),
}

impl Accesses {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "mem" => Self::All,
            "loads" => Self::Loads,
            "stores" => Self::Stores,
            _ => return None,
        })
    }

    /// The only kind that is wanted.
    pub(super) const fn only(self) -> Option<Access> {
        match self {
            Self::All => None,
            Self::Loads => Some(Access::Load),
            Self::Stores => Some(Access::Store),
        }
    }

    /// Chooses by what the machine's PMUs say of themselves: each generation of Intel's names its
    /// own encodings in sysfs, and AMD's IBS is a PMU of its own.
    ///
    /// # Errors
    /// [`Error::Sysfs`] if that makes no sense.
    pub(super) fn choose(self, machine: &Machine, modifiers: Modifiers) -> Result<Choice, Error> {
        let levels = modifiers.levels();
        if machine.has_pmu("ibs_op") {
            let note = match self {
                Self::All => None,
                _ => Some(
                    "AMD IBS samples loads and stores alike: those that were not asked for are \
                     taken, counted and dropped"
                        .to_owned(),
                ),
            };
            return Ok(Choice::Events(vec![format!("ibs_op//{levels}")], note));
        }
        let mut events = Vec::new();
        let (mut has_loads, mut has_stores) = (false, false);
        for pmu in machine.core_pmus()? {
            // A guest may be given counters that tell no addresses.
            if pmu.cap("max_precise") == Some("0") {
                continue;
            }
            let name = &pmu.name;
            if self != Self::Stores && pmu.event("mem-loads").is_some() {
                has_loads = true;
                events.push(format!("{name}/mem-loads{}/{levels}P", load_latency(&pmu)));
            }
            if self != Self::Loads && pmu.event("mem-stores").is_some() {
                has_stores = true;
                events.push(format!("{name}/mem-stores/{levels}P"));
            }
        }
        if events.is_empty() {
            return Ok(Choice::Nothing(self.why_not(machine)));
        }
        let note = (self == Self::All && has_loads && !has_stores)
            .then(|| "this processor samples loads only: stores are not shown".to_owned());
        Ok(Choice::Events(events, note))
    }

    fn why_not(self, machine: &Machine) -> String {
        if let Some(spe) = machine.pmus().iter().find(|name| name.starts_with("arm_spe")) {
            return format!(
                "the memory samples of {spe} (Arm SPE) come as a trace, which is not decoded"
            );
        }
        let what = match self {
            Self::All => "memory accesses",
            Self::Loads => "loads",
            Self::Stores => "stores",
        };
        if machine.processor.is_virtual {
            return format!("this virtual machine is given no PMU that samples {what}");
        }
        let name = match machine.processor.name.as_str() {
            "" => "this processor",
            name => name,
        };
        format!("{name} has no PMU that samples {what}, or this kernel does not know it")
    }
}

fn load_latency(pmu: &Pmu) -> String {
    match pmu.field("ldlat") {
        Some(_) => format!(",ldlat={LOAD_LATENCY_CYCLES}"),
        None => String::new(),
    }
}
