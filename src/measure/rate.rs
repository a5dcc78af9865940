//! Rates that follow from exact counts.

use dataspace_proto::event_count::EventCount;
use dataspace_proto::measure::Measure;
use serde::Serialize;

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
    pub(crate) name: &'static str,
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
                let (count, is_scaled) = count(counts, event)?;
                let (per, is_per_scaled) = match form {
                    Form::Cpus => (elapsed_ns, false),
                    _ => self::count(counts, per)?,
                };
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
                Some(Self { name, value, unit, is_scaled: is_scaled || is_per_scaled })
            })
            .collect()
    }
}

/// The count of an event over all kinds of core, and whether it was scaled; none where it is of less or more than the target.
fn count(counts: &[EventCount], event: &str) -> Option<(u64, bool)> {
    let mut sum = None;
    for one in counts.iter().filter(|one| one.event == event) {
        if one.lacks.is_some() {
            return None;
        }
        let (known, is_scaled) = sum.unwrap_or((0, false));
        sum = Some((one.count?.saturating_add(known), is_scaled || one.is_scaled()));
    }
    sum
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
    fn time_is_in_cpus() {
        let counts = [counted("task-clock", 3_000_000_000), counted("context-switches", 30)];
        let rates = DerivedRate::all(Measure::Time, &counts, 2_000_000_000);
        let shown: Vec<_> = rates.iter().map(|rate| (rate.name, rate.value)).collect();
        assert_eq!(shown, [("CPUs used", 1.5), ("context switches per second of CPU", 10.0)]);
    }
}
