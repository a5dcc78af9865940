//! Rates that follow from exact counts.

use dataspace_proto::event_count::EventCount;
use dataspace_proto::measure::Measure;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Form of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The one in hundreds of the other.
    Percent,
    /// The one for each thousand of the other.
    PerThousand,
    /// The one for each of the other.
    Ratio,
    /// The one for each second of CPU time, which the other is in nanoseconds.
    PerCpuSecond,
    /// Nanoseconds of CPU time for each nanosecond of the session.
    Cpus,
}

/// Rates by measurement: what people call them, the events, the form.
const RATES: [(Measure, &str, &str, &str, Form); 22] = [
    (Measure::Time, "CPUs used", "task-clock", "", Form::Cpus),
    (Measure::Time, "instructions per cycle", "instructions", "cycles", Form::Ratio),
    (Measure::Time, "branches mispredicted", "branch-misses", "branches", Form::Percent),
    (
        Measure::Time,
        "context switches per second of CPU",
        "context-switches",
        "task-clock",
        Form::PerCpuSecond,
    ),
    (
        Measure::Time,
        "page faults per second of CPU",
        "page-faults",
        "task-clock",
        Form::PerCpuSecond,
    ),
    (
        Measure::Faults,
        "page faults per second of CPU",
        "page-faults",
        "task-clock",
        Form::PerCpuSecond,
    ),
    (Measure::Faults, "major among page faults", "major-faults", "page-faults", Form::Percent),
    (Measure::Dcache, "loads that missed L1", "l1d-load-misses", "loads", Form::Percent),
    (Measure::Dcache, "loads that missed L2", "l2-load-misses", "loads", Form::Percent),
    (Measure::Dcache, "loads that missed L3", "l3-load-misses", "loads", Form::Percent),
    (
        Measure::Dcache,
        "L1 load misses per thousand instructions",
        "l1d-load-misses",
        "instructions",
        Form::PerThousand,
    ),
    (Measure::Dcache, "accesses that missed L1", "l1d-misses", "l1d-accesses", Form::Percent),
    (Measure::Dcache, "accesses that missed L2", "l2-misses", "l1d-accesses", Form::Percent),
    (Measure::Dcache, "accesses that missed L3", "l3-misses", "l1d-accesses", Form::Percent),
    (Measure::Dtlb, "loads that walked the page tables", "dtlb-load-walks", "loads", Form::Percent),
    (
        Measure::Dtlb,
        "stores that walked the page tables",
        "dtlb-store-walks",
        "stores",
        Form::Percent,
    ),
    (
        Measure::Dtlb,
        "cycles in page walks of loads",
        "dtlb-load-walk-cycles",
        "cycles",
        Form::Percent,
    ),
    (
        Measure::Dtlb,
        "accesses that walked the page tables",
        "dtlb-walks",
        "l1d-accesses",
        Form::Percent,
    ),
    (Measure::Icache, "fetches that missed L1", "l1i-misses", "l1i-accesses", Form::Percent),
    (
        Measure::Icache,
        "code reads that missed L2",
        "l2-code-misses",
        "l2-code-reads",
        Form::Percent,
    ),
    (Measure::Itlb, "cycles in page walks of fetches", "itlb-walk-cycles", "cycles", Form::Percent),
    (
        Measure::Itlb,
        "page walks of fetches per thousand instructions",
        "itlb-walks",
        "instructions",
        Form::PerThousand,
    ),
];

/// A rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct DerivedRate {
    /// Its name.
    pub(crate) name: String,
    /// Its value.
    pub(crate) value: f64,
    /// `percent`, `per thousand`, `per second` or nothing.
    pub(crate) unit: &'static str,
    /// True where a count that it rests on was scaled.
    pub(crate) is_scaled: bool,
}

impl DerivedRate {
    /// The rates of a measurement that took so long. Without a count there is none.
    pub(crate) fn all(measure: Measure, counts: &[EventCount], elapsed_ns: u64) -> Vec<Self> {
        let of_measure = RATES.iter().filter(|(of, ..)| *of == measure);
        of_measure
            .filter_map(|&(_, name, event, per, form)| {
                let per = (form != Form::Cpus).then_some(per);
                let ([(count, is_scaled), mut of], kinds) = sums(counts, event, per)?;
                if per.is_none() {
                    of = (elapsed_ns, false);
                }
                let (per, is_per_scaled) = of;
                if per == 0 {
                    return None;
                }
                let ratio = count as f64 / per as f64;
                let (value, unit) = match form {
                    Form::Percent => (ratio * 100.0, "percent"),
                    Form::PerThousand => (ratio * 1e3, "per thousand"),
                    Form::PerCpuSecond => (ratio * 1e9, "per second"),
                    Form::Ratio | Form::Cpus => (ratio, ""),
                };
                let name = format!("{name}{kinds}");
                Some(Self { name, value, unit, is_scaled: is_scaled || is_per_scaled })
            })
            .collect()
    }
}

/// Counts of an event by kind of core, each with whether it was scaled; none where one is of less or more than the target. What is
/// not of one kind has no name there.
fn by_kind<'a>(counts: &'a [EventCount], event: &str) -> Option<BTreeMap<&'a str, (u64, bool)>> {
    let mut kinds: BTreeMap<&str, (u64, bool)> = BTreeMap::new();
    for one in counts.iter().filter(|one| one.event == event) {
        if one.lacks.is_some() {
            return None;
        }
        let sum = kinds.entry(kind(one)).or_default();
        *sum = (sum.0.saturating_add(one.count?), sum.1 || one.is_scaled());
    }
    (!kinds.is_empty()).then_some(kinds)
}

/// The kind of core that a count is of, where there are several: `cpu_core`.
fn kind(count: &EventCount) -> &str {
    let pmu = count.selector.split_once('/').map_or("", |(pmu, _)| pmu);
    if pmu.starts_with("cpu_") { pmu } else { "" }
}

/// Sums of two counts over the kinds of core that have both, and the names of those where they are not all of the machine's.
fn sums(
    counts: &[EventCount],
    event: &str,
    per: Option<&str>,
) -> Option<([(u64, bool); 2], String)> {
    let all: BTreeSet<&str> = counts.iter().map(kind).filter(|kind| !kind.is_empty()).collect();
    let event = by_kind(counts, event)?;
    let per = per.map_or_else(|| Some(event.clone()), |per| by_kind(counts, per))?;
    let both: Vec<&str> = event.keys().filter(|kind| per.contains_key(*kind)).copied().collect();
    let sum = |of: &BTreeMap<&str, (u64, bool)>| {
        let kept = both.iter().map(|kind| of[kind]);
        kept.fold((0u64, false), |sum, own| (sum.0.saturating_add(own.0), sum.1 || own.1))
    };
    let is_whole = both == [""] || both.len() == all.len();
    let names = if is_whole { String::new() } else { format!(" ({})", both.join(", ")) };
    (!both.is_empty()).then(|| ([sum(&event), sum(&per)], names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(event: &str, count: u64) -> EventCount {
        let event = event.to_owned();
        EventCount { event, count: Some(count), counted: count, ..EventCount::default() }
    }

    #[test]
    fn rates_need_both_counts() {
        let counts = [
            counted("loads", 2_000),
            counted("l1d-load-misses", 100),
            counted("instructions", 10_000),
        ];
        let rates = DerivedRate::all(Measure::Dcache, &counts, 1);
        let shown: Vec<_> = rates.iter().map(|rate| (rate.value, rate.unit)).collect();
        assert_eq!(shown, [(5.0, "percent"), (10.0, "per thousand")]);
        assert!(DerivedRate::all(Measure::Dcache, &counts[..1], 1).is_empty());
    }

    #[test]
    fn two_kinds_of_core_count_together_and_scaling_is_told() {
        let mut small = counted("cycles", 300);
        (small.counted, small.enabled_ns, small.running_ns) = (150, 10, 5);
        let counts = [counted("cycles", 100), small, counted("instructions", 800)];
        let rates = DerivedRate::all(Measure::Time, &counts, 1);
        assert_eq!((rates[0].value, rates[0].is_scaled), (2.0, true));
        let lacking = EventCount { event: "cycles".to_owned(), ..EventCount::default() };
        let counts = [counted("cycles", 100), lacking, counted("instructions", 800)];
        assert!(DerivedRate::all(Measure::Time, &counts, 1).is_empty(), "one kind is not counted");
    }

    #[test]
    fn what_one_kind_of_core_counts_is_put_to_what_that_kind_did() {
        let of = |event: &str, pmu: &str, count| EventCount {
            selector: format!("{pmu}/event=0x3c/"),
            ..counted(event, count)
        };
        let counts = [
            of("dtlb-load-walk-cycles", "cpu_core", 100),
            of("cycles", "cpu_core", 1_000),
            of("cycles", "cpu_atom", 9_000),
            of("loads", "cpu_core", 300),
            of("loads", "cpu_atom", 100),
            of("dtlb-load-walks", "cpu_core", 3),
            of("dtlb-load-walks", "cpu_atom", 1),
        ];
        let rates = DerivedRate::all(Measure::Dtlb, &counts, 1);
        let shown: Vec<_> = rates.iter().map(|rate| (&*rate.name, rate.value)).collect();
        assert_eq!(
            shown,
            [
                ("loads that walked the page tables", 1.0),
                ("cycles in page walks of loads (cpu_core)", 10.0)
            ]
        );
    }

    #[test]
    fn time_is_in_cpus() {
        let counts = [counted("task-clock", 3_000_000_000), counted("context-switches", 30)];
        let rates = DerivedRate::all(Measure::Time, &counts, 2_000_000_000);
        let shown: Vec<_> = rates.iter().map(|rate| (&*rate.name, rate.value)).collect();
        assert_eq!(shown, [("CPUs used", 1.5), ("context switches per second of CPU", 10.0)]);
    }
}
