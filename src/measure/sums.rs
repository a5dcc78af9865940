//! Sums over the samples of one thing that is measured.

use super::scale::N_BUCKETS;
use dataspace_proto::measure::Measure;
use std::collections::BTreeMap;

/// Whoever resolved a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fill {
    /// The second level had it.
    SecondLevel,
    /// The hardware walked the page tables.
    Walker,
    /// The kernel's fault handler made it.
    Software,
}

impl Fill {
    /// Every one.
    pub(crate) const ALL: [Self; 3] = [Self::SecondLevel, Self::Walker, Self::Software];

    /// The one that the words of the hardware mean (`L2 hit`, `L2 miss`, `walker`), or that the `event` itself does.
    pub(crate) fn of(tlb: Option<&str>, event: &str) -> Option<Self> {
        let Some(tlb) = tlb else {
            // Intel's retired accesses that missed the second level, and fetches that did.
            let walks = ["umask=0x11/", "umask=0x12/", "stlb_miss", "frontend=0x15"];
            let event = event.to_ascii_lowercase();
            return walks.iter().any(|part| event.contains(part)).then_some(Self::Walker);
        };
        if tlb.contains("fault") {
            Some(Self::Software)
        } else if tlb.contains("walker") || (tlb.contains("L2") && tlb.contains("miss")) {
            Some(Self::Walker)
        } else if tlb.contains("L2") && !tlb.contains("L1") {
            Some(Self::SecondLevel)
        } else {
            None
        }
    }
}

/// Sums over samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SampleSums {
    /// Samples of what is measured: of misses, of faults, of time.
    pub(crate) samples: u64,
    /// Samples of accesses that missed nothing, where the event takes those too.
    pub(crate) hits: u64,
    /// Events that the samples stand for, by event.
    pub(crate) weights: BTreeMap<String, u64>,
    /// Sum of latencies, in core cycles.
    pub(crate) latency: u64,
    /// Samples by latency bucket.
    pub(crate) buckets: [u64; N_BUCKETS],
    /// Samples by who resolved the translation.
    pub(crate) fills: [u64; Fill::ALL.len()],
    /// Samples by the source of the data, as the hardware tells it.
    pub(crate) levels: BTreeMap<String, u64>,
}

impl SampleSums {
    /// Adds another sum.
    pub(crate) fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.hits += other.hits;
        self.latency += other.latency;
        let add = |own: &mut BTreeMap<String, u64>, others: &BTreeMap<String, u64>| {
            for (key, n) in others {
                *own.entry(key.clone()).or_default() += n;
            }
        };
        add(&mut self.weights, &other.weights);
        add(&mut self.levels, &other.levels);
        for (own, n) in self.buckets.iter_mut().zip(other.buckets) {
            *own += n;
        }
        for (own, n) in self.fills.iter_mut().zip(other.fills) {
            *own += n;
        }
    }

    /// The sum of all weights.
    pub(crate) fn weight(&self) -> u64 {
        self.weights.values().fold(0, |sum, weight| sum.saturating_add(*weight))
    }

    /// The number that shares are of: latency where it is told, the weight of faults and of time, else samples.
    pub(crate) fn metric(&self, measure: Measure, has_latency: bool) -> u64 {
        match measure {
            Measure::Dcache | Measure::Icache if has_latency => self.latency,
            Measure::Faults | Measure::Time => self.weight(),
            _ => self.samples,
        }
    }

    /// Samples that resolved this way.
    pub(crate) const fn fill(&self, fill: Fill) -> u64 {
        self.fills[fill as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_resolved_a_translation_is_what_the_hardware_says_or_the_event_means() {
        let of = |tlb| Fill::of(tlb, "ibs_op//");
        assert_eq!(of(Some("L2 hit")), Some(Fill::SecondLevel));
        assert_eq!(of(Some("L2 miss")), Some(Fill::Walker));
        assert_eq!(of(Some("walker")), Some(Fill::Walker));
        assert_eq!(of(Some("fault")), Some(Fill::Software));
        assert_eq!(of(Some("L1|L2 hit")), None, "one of both");
        assert_eq!(of(Some("L1 hit")), None);
        assert_eq!(of(None), None);
        assert_eq!(Fill::of(None, "cpu/event=0xd0,umask=0x11/P"), Some(Fill::Walker));
        assert_eq!(Fill::of(None, "MEM_INST_RETIRED.STLB_MISS_STORES:pp"), Some(Fill::Walker));
        assert_eq!(Fill::of(None, "cpu/event=0xc6,umask=0x1,frontend=0x14/P"), None);
    }

    #[test]
    fn sums_add_up() {
        let mut one = SampleSums { samples: 1, latency: 5, ..SampleSums::default() };
        (one.buckets[2], one.fills[1]) = (1, 1);
        one.weights.insert("a".into(), 10);
        let mut sum = one.clone();
        sum.add(&one);
        assert_eq!((sum.samples, sum.latency, sum.weight()), (2, 10, 20));
        assert_eq!((sum.buckets[2], sum.fill(Fill::Walker)), (2, 2));
        assert_eq!(sum.metric(Measure::Dcache, true), 10);
        assert_eq!(sum.metric(Measure::Dcache, false), 2);
        assert_eq!(sum.metric(Measure::Time, false), 20);
    }
}
