//! The columns of the object table, the same in the plain table and on the screen.

use crate::text::{percent, rate, ratio, short_span};
use dataspace_proto::sample_line::Evidence;
use dataspace_proto::snapshot::{Metrics, Snapshot};
use dataspace_proto::window::Window;
use serde::Deserialize;

macro_rules! columns {
    ($($column:ident = $name:literal, $title:literal, $width:literal, $meaning:literal;)*) => {
        /// One number, or text, about an object.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
        pub(crate) enum Column {
            $(#[doc = $meaning] #[serde(rename = $name)] $column,)*
        }

        impl Column {
            /// The columns in the order in which they stand.
            pub(crate) const ALL: &[Column] = &[$(Column::$column,)*];

            /// The word by which it is chosen.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Column::$column => $name,)* }
            }

            /// The heading.
            pub(crate) const fn title(self) -> &'static str {
                match self { $(Column::$column => $title,)* }
            }

            /// Its width on the screen.
            pub(crate) const fn width(self) -> usize {
                match self { $(Column::$column => $width,)* }
            }

            /// Its meaning, for the help.
            pub(crate) const fn meaning(self) -> &'static str {
                match self { $(Column::$column => $meaning,)* }
            }
        }
    };
}

columns! {
    Time = "time", "TIME", 6, "time on a CPU that its samples stand for, where a clock samples";
    Cpu = "cpu", "%CPU", 5, "that time as a share of one CPU's";
    Share = "share", "SHARE", 6, "samples among those of all objects, unknown ones too";
    Bar = "bar", "", 5, "the same as a bar";
    Trend = "trend", "TREND", 8, "samples in each eighth of the last minute";
    Samples = "samples", "SAMPLES", 8, "samples";
    Rate = "rate", "RATE/S", 7, "samples a second";
    ReadWrite = "rw", "R:W", 6, "loads to stores in a hundred accesses; one that does both counts twice";
    Loads = "loads", "LOADS", 7, "samples of instructions that read it";
    Stores = "stores", "STORES", 7, "samples of instructions that write it; many do both";
    Latency = "latency", "LATENCY", 7, "core cycles of a sample on average";
    Levels = "levels", "LEVELS", 15, "where the data were found, most often first";
    TlbMisses = "tlb", "TLB", 6, "samples that missed the first-level data TLB";
    Locked = "locked", "LOCKED", 6, "samples of locked accesses";
    Hitm = "hitm", "HITM", 6, "samples that found the line modified in another core's cache";
    Threads = "threads", "THREADS", 7, "threads that touched it since the session began";
    Evidence = "evidence", "EVIDENCE", 12, "what the name rests on: debug information (type), data address, both, or both at odds (conflict)";
    HotLine = "line", "HOTTEST LINE", 28, "the source line and function with the most of its samples";
}

/// Scale that the numbers of a window are compared with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    /// The window.
    pub(crate) window: Window,
    /// Samples of `<Total>` in it.
    pub(crate) n_total_samples: u64,
    /// Part of the window that has passed already.
    pub(crate) seconds: f64,
    /// Events whose periods are nanoseconds on a CPU. Two of them tell of the same time: only the first one counts.
    clock: Option<String>,
}

impl Scale {
    /// The scale of `window` in `snapshot`.
    pub(crate) fn new(snapshot: &Snapshot, window: Window) -> Self {
        let total = snapshot.objects.first();
        let clock = snapshot.events.iter().find(|event| is_clock(&event.name));
        Self {
            window,
            n_total_samples: total.map_or(0, |total| total.metrics.get(window).samples),
            seconds: seconds(window, snapshot.elapsed_ns),
            clock: clock.map(|event| event.name.clone()),
        }
    }

    /// Samples a second.
    #[allow(clippy::cast_precision_loss, reason = "shown with at most four digits")]
    pub(crate) fn rate(&self, metrics: &Metrics) -> f64 {
        if self.seconds > 0.0 { metrics.samples as f64 / self.seconds } else { 0.0 }
    }

    /// Tells whether an event is the clock that tells the time.
    pub(crate) fn is_clock(&self, event: &str) -> bool {
        self.clock.as_deref() == Some(event)
    }

    /// Nanoseconds on a CPU, where a clock samples.
    pub(crate) fn time_ns(&self, metrics: &Metrics) -> Option<u64> {
        let clock = self.clock.as_ref()?;
        Some(metrics.events.get(clock).copied().unwrap_or(0))
    }
}

/// Tells whether an event's periods are nanoseconds: the kernel's software clocks, perhaps with modifiers.
pub(crate) fn is_clock(event: &str) -> bool {
    let name = event.split([':', '/']).next().unwrap_or(event);
    matches!(name, "cpu-clock" | "task-clock")
}

/// Number of seconds that `window` covers. The open second, which is half over on average, is one of them;
/// but a window of one is the last whole second.
pub(crate) fn seconds(window: Window, elapsed_ns: u64) -> f64 {
    let full = match window {
        Window::All => f64::INFINITY,
        Window::Last(1) => 1.0,
        Window::Last(seconds) => f64::from(seconds) - 0.5,
    };
    ratio(elapsed_ns, 1_000_000_000).min(full)
}

impl Column {
    /// The columns of a plain table.
    pub(crate) const PLAIN: [Column; 8] = [
        Column::Share,
        Column::Time,
        Column::Samples,
        Column::Rate,
        Column::Loads,
        Column::Stores,
        Column::Latency,
        Column::Evidence,
    ];

    /// The columns of a plain table in the order in which they are given room.
    pub(crate) const BY_WORTH: [Column; 8] = [
        Column::Share,
        Column::Samples,
        Column::Time,
        Column::Evidence,
        Column::Rate,
        Column::Latency,
        Column::Loads,
        Column::Stores,
    ];

    /// The column of that name.
    ///
    /// # Errors
    /// Where there is none: the names there are.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|column| column.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|column| column.name()).collect();
            format!("there is no such column; there are {}", names.join(", "))
        })
    }

    /// Tells whether its cells end at the same column.
    pub(crate) const fn is_number(self) -> bool {
        !matches!(self, Column::Evidence | Column::Bar | Column::Levels | Column::HotLine)
    }

    /// Tells whether something in `snapshot` has such a figure at all.
    pub(crate) fn is_measured(self, snapshot: &Snapshot) -> bool {
        let Some(total) = snapshot.objects.first().map(|total| &total.metrics.all) else {
            return !matches!(self, Column::Latency | Column::Levels);
        };
        match self {
            Column::Time | Column::Cpu => snapshot.events.iter().any(|it| is_clock(&it.name)),
            Column::Latency => total.latency.is_some_and(|sum| sum > 0),
            Column::Levels => !total.levels.is_empty(),
            Column::TlbMisses => total.tlb_misses.is_some(),
            Column::Locked => total.locked.is_some(),
            Column::Hitm => total.hitm.is_some(),
            _ => true,
        }
    }

    /// Its text for an object with these metrics. A trend and a line come from elsewhere.
    pub(crate) fn cell(self, metrics: &Metrics, scale: &Scale) -> String {
        let optional = |sum: Option<u64>| sum.map(|sum| sum.to_string()).unwrap_or_default();
        match self {
            Column::Time => scale.time_ns(metrics).map(short_span).unwrap_or_default(),
            Column::Cpu => scale.time_ns(metrics).map_or_else(String::new, |time_ns| {
                let share = ratio(time_ns, 1_000_000_000) / scale.seconds.max(f64::MIN_POSITIVE);
                format!("{:.0}%", share * 100.0)
            }),
            Column::Share => percent(metrics.samples, scale.n_total_samples),
            Column::Bar => bar(metrics.samples, scale.n_total_samples, Column::Bar.width()),
            Column::Samples => metrics.samples.to_string(),
            Column::Rate => rate(scale.rate(metrics)),
            Column::ReadWrite => read_write(metrics),
            Column::Loads => metrics.loads.to_string(),
            Column::Stores => metrics.stores.to_string(),
            Column::Latency => match metrics.latency {
                None | Some(0) => String::new(),
                Some(latency) => format!("{:.0}", ratio(latency, metrics.samples)),
            },
            Column::Levels => levels(metrics),
            Column::TlbMisses => optional(metrics.tlb_misses),
            Column::Locked => optional(metrics.locked),
            Column::Hitm => optional(metrics.hitm),
            Column::Threads if metrics.threads == 0 => String::new(),
            Column::Threads => metrics.threads.to_string(),
            Column::Evidence => evidence(metrics, Evidence::ALL.len()),
            Column::Trend | Column::HotLine => String::new(),
        }
    }
}

/// A bar of eighths of a character (Unicode block elements), as long as the share.
pub(crate) fn bar(part: u64, whole: u64, width: usize) -> String {
    let eighths = (ratio(part, whole).min(1.0) * width as f64 * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get((eighths % 8).wrapping_sub(1)));
    bar
}

/// `99:1`: reads and writes in a hundred of both.
fn read_write(metrics: &Metrics) -> String {
    let whole = metrics.loads + metrics.stores;
    if whole == 0 {
        return String::new();
    }
    // One that is there at all is never rounded away.
    let share = |part: u64| ratio(part, whole) * 100.0;
    let reads = share(metrics.loads).round();
    let reads = if metrics.stores > 0 { reads.min(99.0) } else { reads };
    let reads = if metrics.loads > 0 { reads.max(1.0) } else { reads };
    format!("{reads}:{}", 100.0 - reads)
}

/// `L1 80 RAM 15`: the levels in a hundred samples that tell one.
fn levels(metrics: &Metrics) -> String {
    let whole: u64 = metrics.levels.values().sum();
    let mut levels: Vec<(&String, u64)> =
        metrics.levels.iter().map(|(level, count)| (level, *count)).collect();
    levels.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let text =
        |(level, count): (&String, u64)| format!("{level} {:.0}", ratio(count, whole) * 100.0);
    levels.into_iter().take(2).map(text).collect::<Vec<_>>().join(" ")
}

/// `both 93% type 7%`: at most `n_kinds` kinds, most first. Conflicts are never left out.
pub(crate) fn evidence(metrics: &Metrics, n_kinds: usize) -> String {
    let mut kinds: Vec<(Evidence, u64)> = Evidence::ALL
        .into_iter()
        .filter_map(|kind| Some((kind, *metrics.evidence.get(kind.name())?)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let whole: u64 = kinds.iter().map(|(_, count)| count).sum();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    if kinds.len() > n_kinds {
        let is_conflict = |kind: &(Evidence, u64)| kind.0 == Evidence::Conflict;
        let conflict = kinds[n_kinds..].iter().copied().find(is_conflict);
        kinds.truncate(n_kinds);
        if let (Some(conflict), Some(last)) = (conflict, kinds.last_mut()) {
            *last = conflict;
        }
    }
    let texts = kinds.iter().map(|(kind, count)| {
        let share = (ratio(*count, whole) * 100.0).round();
        if share < 1.0 {
            format!("{} <1%", kind.name())
        } else {
            format!("{} {share}%", kind.name())
        }
    });
    texts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(evidence: &[(Evidence, u64)]) -> Metrics {
        let evidence = evidence.iter().map(|(kind, count)| (kind.name().to_owned(), *count));
        Metrics { evidence: evidence.collect(), ..Metrics::default() }
    }

    #[test]
    fn a_conflict_is_never_left_out_of_the_evidence() {
        use Evidence::{Address, Both, Conflict, Type};
        let check = |kinds: &[(Evidence, u64)], n_kinds: usize, expect: &str| {
            assert_eq!(evidence(&metrics(kinds), n_kinds), expect);
        };
        check(&[], 2, "");
        check(&[(Both, 93), (Type, 7)], 2, "both 93% type 7%");
        check(&[(Address, 5)], 2, "address 100%");
        check(&[(Both, 900), (Type, 95), (Conflict, 5)], 2, "both 90% conflict 1%");
        check(&[(Both, 9990), (Conflict, 10)], 2, "both 100% conflict <1%");
        check(&[(Both, 50), (Type, 30), (Address, 20)], 4, "both 50% type 30% address 20%");
    }

    #[test]
    fn a_young_session_has_not_filled_its_windows() {
        let check = |window: Window, elapsed_ms: u64, expect: f64| {
            let seconds = seconds(window, elapsed_ms * 1_000_000);
            assert!((seconds - expect).abs() < 1e-9, "{window:?} {elapsed_ms}: {seconds}");
        };
        check(Window::Last(10), 4_000, 4.0);
        check(Window::Last(10), 40_000, 9.5);
        check(Window::Last(1), 200, 0.2);
        check(Window::All, 40_000, 40.0);
    }

    #[test]
    fn reads_and_writes_are_told_in_a_hundred() {
        let of = |loads, stores| read_write(&Metrics { loads, stores, ..Metrics::default() });
        assert_eq!(
            [of(0, 0), of(5, 0), of(1, 1), of(999, 1), of(1, 999)].join(" "),
            " 100:0 50:50 99:1 1:99"
        );
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(
            [bar(1, 1, 5), bar(1, 2, 5), bar(0, 9, 5), bar(1, 40, 5)],
            ["█████", "██▌", "", "▏"]
        );
        assert_eq!(bar(1, 0, 5), "");
    }

    #[test]
    fn clocks_are_known_with_their_modifiers() {
        assert!(is_clock("cpu-clock") && is_clock("task-clock:u") && is_clock("cpu-clock/freq=9/"));
        assert!(!is_clock("page-faults") && !is_clock("ref-cycles"));
    }
}
