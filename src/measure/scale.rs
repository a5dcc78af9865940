//! Buckets of latency, whose bounds are measured: HP Caliper's came from a table of processors.

use std::collections::BTreeMap;

/// Buckets, as many as HP Caliper has.
pub(crate) const N_BUCKETS: usize = 8;

/// Share of a level's samples that lie below its bound.
const COVERED: f64 = 0.95;

/// Sources of data, from the nearest.
const LEVELS: [&str; 9] = ["L0", "L1", "LFB", "L2", "L2_MHB", "L3", "L4", "MSC", "RAM"];

/// Bounds of the buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LatencyScale {
    /// The highest latency of each bucket but the last, which is open.
    pub(crate) bounds: [u64; N_BUCKETS - 1],
    /// The level that a bound was measured for.
    pub(crate) levels: [Option<&'static str>; N_BUCKETS - 1],
}

impl LatencyScale {
    /// The scale of samples of these levels and latencies, with their numbers. Where the hardware tells levels a bucket ends
    /// where nearly all samples of a level are below; the others are spread evenly, by their logarithms.
    ///
    /// `None` where no latency is told.
    pub(crate) fn measured(samples: &BTreeMap<(Option<String>, u64), u64>) -> Option<Self> {
        let told = samples.iter().filter(|((_, latency), _)| *latency != 0);
        let least = told.clone().map(|((_, latency), _)| *latency).min()?;
        let most = told.clone().map(|((_, latency), _)| *latency).max()?;
        let mut found: Vec<(u64, Option<&'static str>)> = Vec::new();
        for level in LEVELS {
            let of_level = told.clone().filter(|((own, _), _)| own.as_deref() == Some(level));
            let Some(bound) = quantile(of_level.map(|((_, latency), n)| (*latency, *n))) else {
                continue;
            };
            // A level that is no farther than the one before has no bucket of its own.
            if found.last().is_none_or(|(before, _)| bound > *before) && bound < most {
                found.push((bound, Some(level)));
            }
        }
        found.truncate(N_BUCKETS - 1);
        spread(&mut found, least, most);
        let mut scale = Self::default();
        for (place, (bound, level)) in found.into_iter().enumerate() {
            (scale.bounds[place], scale.levels[place]) = (bound, level);
        }
        Some(scale)
    }

    /// The bucket of a latency.
    #[cfg(test)]
    fn bucket(&self, latency: u64) -> usize {
        self.bounds.iter().position(|bound| latency <= *bound).unwrap_or(N_BUCKETS - 1)
    }

    /// The bucket as an expression over the fields of a sample.
    pub(crate) fn expression(&self) -> String {
        let mut text = String::from("latency == null ? -1 : ");
        for (bucket, bound) in self.bounds.iter().enumerate() {
            text.push_str(&format!("latency <= {bound} ? {bucket} : "));
        }
        text + &(N_BUCKETS - 1).to_string()
    }
}

/// The latency below which nearly all are, of latencies and their numbers in the order of latency.
fn quantile(samples: impl Iterator<Item = (u64, u64)> + Clone) -> Option<u64> {
    let n: u64 = samples.clone().map(|(_, n)| n).sum();
    let mut left = (n as f64 * COVERED).ceil() as u64;
    for (latency, n) in samples {
        if n >= left {
            return Some(latency);
        }
        left -= n;
    }
    None
}

/// Adds bounds until there are as many as buckets need, each in the middle of the widest gap.
fn spread(found: &mut Vec<(u64, Option<&'static str>)>, least: u64, most: u64) {
    while found.len() < N_BUCKETS - 1 {
        let ends = std::iter::once(least.saturating_sub(1).max(1))
            .chain(found.iter().map(|(bound, _)| *bound))
            .chain([most.max(2)]);
        let ends: Vec<u64> = ends.collect();
        // Not its logarithm: that would be all that every process of ours loads the mathematical library for.
        let width = |place: usize| ends[place + 1] as f64 / ends[place] as f64;
        let widest = (0..ends.len() - 1).max_by(|a, b| width(*a).total_cmp(&width(*b)));
        let Some(widest) = widest else { break };
        let middle = ((ends[widest] as f64) * (ends[widest + 1] as f64)).sqrt().round() as u64;
        if middle <= ends[widest] || middle >= ends[widest + 1] {
            // There is no number between: what is left stays empty.
            let last = ends[ends.len() - 1].max(found.last().map_or(0, |(bound, _)| *bound));
            found.push((last + 1, None));
            continue;
        }
        found.insert(widest, (middle, None));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn samples(of: &[(Option<&str>, u64, u64)]) -> BTreeMap<(Option<String>, u64), u64> {
        of.iter().map(|(level, latency, n)| ((level.map(str::to_owned), *latency), *n)).collect()
    }

    #[test]
    fn bounds_are_where_nearly_all_of_a_level_lie_below() {
        let of = samples(&[
            (Some("L1"), 4, 90),
            (Some("L1"), 5, 9),
            (Some("L1"), 200, 1),
            (Some("L2"), 14, 99),
            (Some("L2"), 60, 1),
            (Some("L3"), 44, 50),
            (Some("L3"), 70, 50),
            (Some("RAM"), 300, 90),
            (Some("RAM"), 900, 10),
        ]);
        let scale = LatencyScale::measured(&of).unwrap();
        let of_level = |level| {
            let place = scale.levels.iter().position(|it| *it == Some(level))?;
            Some(scale.bounds[place])
        };
        let bounds = ["L1", "L2", "L3", "RAM"].map(of_level);
        assert_eq!(bounds, [Some(5), Some(14), Some(70), None], "{scale:?}");
        assert_eq!(scale.bucket(5) + 1, scale.bucket(6));
        assert_eq!(scale.bucket(900), N_BUCKETS - 1);
    }

    #[test]
    fn without_latencies_there_are_no_buckets() {
        assert_eq!(LatencyScale::measured(&samples(&[(None, 0, 5)])), None);
        assert_eq!(LatencyScale::measured(&samples(&[])), None);
    }

    proptest! {
        #[test]
        fn bounds_rise_and_every_latency_has_a_bucket(
            latencies in prop::collection::vec((0usize..4, 1u64..100_000, 1u64..50), 1..60),
        ) {
            let levels = [None, Some("L1"), Some("L3"), Some("RAM")];
            let of: Vec<_> = latencies.iter().map(|(level, at, n)| (levels[*level], *at, *n)).collect();
            let scale = LatencyScale::measured(&samples(&of)).unwrap();
            prop_assert!(scale.bounds.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", scale);
            for (_, latency, _) in latencies {
                prop_assert!(scale.bucket(latency) < N_BUCKETS);
            }
        }
    }
}
