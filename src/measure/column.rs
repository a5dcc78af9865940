//! Columns of a measurement's tables, in HP Caliper's order.

use super::scale::{LatencyScale, N_BUCKETS};
use super::sums::{Fill, SampleSums};
use crate::text::percent;
use dataspace_proto::measure::Measure;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MeasureColumn {
    /// Share of the whole.
    Total,
    /// The shares so far.
    Cumulative,
    /// Samples.
    Samples,
    /// Events that they stand for.
    Weight,
    /// Those of them that are of an event whose name begins so.
    EventWeight(&'static str, &'static str),
    /// Nanoseconds that they stand for.
    Time,
    /// Sum of latencies.
    Latency,
    /// Latency of a sample on average.
    AverageLatency,
    /// Share of the samples in a bucket of latency.
    Bucket(usize),
    /// Samples that missed nothing.
    Hits,
    /// Samples that missed among all.
    MissRate,
    /// Sources of the data, as the hardware tells them.
    Levels,
    /// Samples that were resolved so.
    Filled(Fill),
    /// The same as a share.
    FilledShare(Fill),
}

const MINOR: MeasureColumn = MeasureColumn::EventWeight("Minor", "minor-faults");
const MAJOR: MeasureColumn = MeasureColumn::EventWeight("Major", "major-faults");

impl MeasureColumn {
    /// The columns of a measurement. Buckets are there where latency is told and they are wanted.
    pub(crate) fn of(
        measure: Measure,
        scale: Option<&LatencyScale>,
        has_buckets: bool,
        has_levels: bool,
        is_of_time: bool,
    ) -> Vec<Self> {
        let mut columns = vec![Self::Total, Self::Cumulative, Self::Samples];
        match measure {
            Measure::Faults => columns.extend([Self::Weight, MINOR, MAJOR]),
            Measure::Time if is_of_time => columns.push(Self::Time),
            Measure::Time => columns.push(Self::Weight),
            Measure::Dcache | Measure::Icache => {
                if scale.is_some() {
                    columns.extend([Self::Latency, Self::AverageLatency]);
                }
                if scale.is_some() && has_buckets {
                    columns.extend((0..N_BUCKETS).map(Self::Bucket));
                }
                if measure == Measure::Dcache {
                    columns.extend([Self::Hits, Self::MissRate]);
                }
                if has_levels {
                    columns.push(Self::Levels);
                }
            }
            Measure::Dtlb | Measure::Itlb => {
                columns.extend(Fill::ALL.map(Self::Filled));
                columns.extend(Fill::ALL.map(Self::FilledShare));
            }
        }
        columns
    }

    /// The three lines of its title.
    pub(crate) fn title(self, measure: Measure, scale: Option<&LatencyScale>) -> [String; 3] {
        let lines = |a: &str, b: &str, c: &str| [a.to_owned(), b.to_owned(), c.to_owned()];
        let event = match measure {
            Measure::Dcache => "Dcache",
            Measure::Icache => "Icache",
            Measure::Dtlb => "DTLB",
            Measure::Itlb => "ITLB",
            Measure::Faults | Measure::Time => "",
        };
        match self {
            Self::Total => match measure {
                Measure::Faults => lines("", "% Total", "Faults"),
                Measure::Time => lines("", "% Total", "Time"),
                _ if scale.is_some() => lines("% Total", event, "Latency"),
                _ => lines("% Total", event, "Misses"),
            },
            Self::Cumulative => lines("", "Cumulat", "% Total"),
            Self::Samples => match measure {
                Measure::Faults => lines("", "Sampled", "Faults"),
                Measure::Time => lines("", "", "Samples"),
                _ => lines("Sampled", event, "Misses"),
            },
            Self::Weight => {
                lines("", "", if measure == Measure::Time { "Cycles" } else { "Faults" })
            }
            Self::EventWeight(title, _) => lines("", title, "Faults"),
            Self::Time => lines("", "Time", "ms"),
            Self::Latency => lines(event, "Latency", "Cycles"),
            Self::AverageLatency => lines("Avg.", "Latency", "Cycles"),
            Self::Bucket(bucket) => {
                let bound = match scale.and_then(|scale| scale.bounds.get(bucket)) {
                    Some(bound) => bound.to_string(),
                    None => ">".to_owned(),
                };
                let level = scale.and_then(|scale| *scale.levels.get(bucket)?);
                [
                    if bucket == 0 { "% of Misses".to_owned() } else { String::new() },
                    level.map(|level| format!("({level})")).unwrap_or_default(),
                    bound,
                ]
            }
            Self::Hits => lines("Sampled", event, "Hits"),
            Self::MissRate => lines("", "Miss", "Rate"),
            Self::Levels => lines("", "Data", "Source"),
            Self::Filled(fill) => lines("", fill_name(fill), "Fills"),
            Self::FilledShare(fill) => lines("%", fill_name(fill), "Fills"),
        }
    }

    /// The text of a row, whose shares are of `total` and come after those of `before`.
    pub(crate) fn cell(self, sums: &SampleSums, shares: Shares) -> String {
        let number = |n: u64| if n == 0 { String::new() } else { n.to_string() };
        match self {
            Self::Total => share(shares.own, shares.total),
            Self::Cumulative => match shares.before {
                Some(before) => share(before.saturating_add(shares.own), shares.total),
                None => String::new(),
            },
            Self::Samples => number(sums.samples),
            Self::Weight => number(sums.weight()),
            Self::EventWeight(_, event) => {
                let of_event = sums.weights.iter().filter(|(name, _)| name.starts_with(event));
                number(of_event.map(|(_, weight)| *weight).sum())
            }
            Self::Time if sums.weight() == 0 => String::new(),
            Self::Time => format!("{:.1}", sums.weight() as f64 / 1e6),
            Self::Latency => number(sums.latency),
            Self::AverageLatency if sums.samples == 0 => String::new(),
            Self::AverageLatency => format!("{:.1}", sums.latency as f64 / sums.samples as f64),
            Self::Bucket(bucket) => {
                sums.buckets.get(bucket).map_or_else(String::new, |n| share(*n, sums.samples))
            }
            Self::Hits => number(sums.hits),
            Self::MissRate if sums.hits == 0 => String::new(),
            Self::MissRate => share(sums.samples, sums.samples + sums.hits),
            Self::Levels => {
                let mut levels: Vec<_> = sums.levels.iter().collect();
                levels.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
                let shown = levels.iter().take(3);
                shown
                    .map(|(level, n)| format!("{level} {}", share(**n, sums.samples)))
                    .collect::<Vec<_>>()
                    .join(" ")
            }
            Self::Filled(fill) => number(sums.fill(fill)),
            Self::FilledShare(fill) => share(sums.fill(fill), sums.samples),
        }
    }
}

/// Names of HP Caliper's columns.
const fn fill_name(fill: Fill) -> &'static str {
    match fill {
        Fill::SecondLevel => "L2",
        Fill::Walker => "HPW",
        Fill::Software => "Soft",
    }
}

/// The numbers that shares of a row are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    /// The row's own.
    pub(crate) own: u64,
    /// Of the rows before; `None` where rows are not in order of their share.
    pub(crate) before: Option<u64>,
    /// Of all.
    pub(crate) total: u64,
}

fn share(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 { String::new() } else { percent(part, whole) }
}
