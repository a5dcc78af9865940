//! Sums over samples, and what a sample adds to them.

use dataspace_proto::memory::{Access, N_LEVELS, Snoop};
use dataspace_proto::record::Sample;
use dataspace_proto::sample_line::{Evidence, Scope};
use std::sync::Arc;

/// Sums of one object over one span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) samples: u64,
    pub(crate) loads: u64,
    pub(crate) stores: u64,
    pub(crate) latency: u64,
    pub(crate) tlb_misses: u64,
    pub(crate) locked: u64,
    pub(crate) hitm: u64,
    pub(crate) remote: u64,
    pub(crate) levels: [u32; N_LEVELS],
    pub(crate) evidence: [u32; 4],
}

impl Sums {
    /// Counts one sample.
    pub(crate) fn count(&mut self, charge: &Charge<'_>) {
        let sample = charge.sample;
        let source = sample.data_source.unwrap_or_default();
        let access = source.access.or(charge.access);
        self.samples += 1;
        self.loads += u64::from(matches!(access, Some(Access::Load | Access::LoadStore)));
        self.stores += u64::from(matches!(access, Some(Access::Store | Access::LoadStore)));
        self.latency = self.latency.wrapping_add(u64::from(sample.latency));
        self.tlb_misses += u64::from(source.tlb.is_first_level_miss());
        self.locked += u64::from(source.locked == Some(true));
        self.hitm += u64::from(source.snoop.has(Snoop::HITM));
        self.remote += u64::from(source.is_remote);
        if let Some(level) = source.level {
            let sum = &mut self.levels[level as usize];
            *sum = sum.wrapping_add(1);
        }
        if let Some(evidence) = charge.evidence {
            let sum = &mut self.evidence[evidence as usize];
            *sum = sum.wrapping_add(1);
        }
    }

    pub(crate) fn add(&mut self, other: &Sums) {
        self.each(other, u64::wrapping_add, u32::wrapping_add);
    }

    pub(crate) fn subtract(&mut self, other: &Sums) {
        self.each(other, u64::wrapping_sub, u32::wrapping_sub);
    }

    fn each(&mut self, other: &Sums, wide: fn(u64, u64) -> u64, narrow: fn(u32, u32) -> u32) {
        for (sum, value) in [
            (&mut self.samples, other.samples),
            (&mut self.loads, other.loads),
            (&mut self.stores, other.stores),
            (&mut self.latency, other.latency),
            (&mut self.tlb_misses, other.tlb_misses),
            (&mut self.locked, other.locked),
            (&mut self.hitm, other.hitm),
            (&mut self.remote, other.remote),
        ] {
            *sum = wide(*sum, value);
        }
        for (sum, value) in self.levels.iter_mut().zip(other.levels) {
            *sum = narrow(*sum, value);
        }
        for (sum, value) in self.evidence.iter_mut().zip(other.evidence) {
            *sum = narrow(*sum, value);
        }
    }
}

/// The addition of one sample besides its count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge<'a> {
    pub(crate) sample: &'a Sample,
    pub(crate) access: Option<Access>,
    pub(crate) evidence: Option<Evidence>,
    pub(crate) scope: Option<&'a Arc<Scope>>,
}

/// The place with this number in a list, which grows by free places up to it.
pub(crate) fn place<T: Clone>(list: &mut Vec<T>, number: usize, free: T) -> &mut T {
    if number >= list.len() {
        list.resize(number + 1, free);
    }
    &mut list[number]
}
