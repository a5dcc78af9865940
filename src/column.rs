//! The columns of the object table, the same in the plain table and on the screen.

use crate::text::{percent, rate, ratio};
use dataspace_proto::sample_line::Evidence;
use dataspace_proto::snapshot::{Metrics, Snapshot};
use dataspace_proto::window::Window;

/// One number, or text, about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// Share of the samples of `<Total>`.
    Share,
    /// Samples.
    Samples,
    /// Samples a second.
    Rate,
    /// Samples that load.
    Loads,
    /// Samples that store.
    Stores,
    /// Latency of a sample on average, in core cycles.
    Latency,
    /// Evidence of the attributions.
    Evidence,
}

/// Scale that the numbers of a window are compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    /// The window.
    pub(crate) window: Window,
    /// Samples of `<Total>` in it.
    pub(crate) n_total_samples: u64,
    /// Part of the window that has passed already.
    pub(crate) seconds: f64,
}

impl Scale {
    /// The scale of `window` in `snapshot`.
    pub(crate) fn new(snapshot: &Snapshot, window: Window) -> Self {
        let total = snapshot.objects.first();
        Self {
            window,
            n_total_samples: total.map_or(0, |total| total.metrics.get(window).samples),
            seconds: seconds(window, snapshot.elapsed_ns),
        }
    }

    /// Samples a second.
    #[allow(clippy::cast_precision_loss, reason = "shown with at most four digits")]
    pub(crate) fn rate(&self, metrics: &Metrics) -> f64 {
        if self.seconds > 0.0 { metrics.samples as f64 / self.seconds } else { 0.0 }
    }
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
    /// The columns in the order in which they stand.
    pub(crate) const ALL: [Column; 7] = [
        Column::Share,
        Column::Samples,
        Column::Rate,
        Column::Loads,
        Column::Stores,
        Column::Latency,
        Column::Evidence,
    ];

    /// The columns in the order in which they are given room.
    pub(crate) const BY_WORTH: [Column; 7] = [
        Column::Share,
        Column::Samples,
        Column::Rate,
        Column::Evidence,
        Column::Latency,
        Column::Loads,
        Column::Stores,
    ];

    /// The heading.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Column::Share => "SHARE",
            Column::Samples => "SAMPLES",
            Column::Rate => "RATE/S",
            Column::Loads => "LOADS",
            Column::Stores => "STORES",
            Column::Latency => "LATENCY",
            Column::Evidence => "EVIDENCE",
        }
    }

    /// Tells whether its cells end at the same column.
    pub(crate) const fn is_number(self) -> bool {
        !matches!(self, Column::Evidence)
    }

    /// Its text for an object with these metrics.
    pub(crate) fn cell(self, metrics: &Metrics, scale: &Scale) -> String {
        match self {
            Column::Share => percent(metrics.samples, scale.n_total_samples),
            Column::Samples => metrics.samples.to_string(),
            Column::Rate => rate(scale.rate(metrics)),
            Column::Loads => metrics.loads.to_string(),
            Column::Stores => metrics.stores.to_string(),
            Column::Latency if metrics.latency == 0 => String::new(),
            Column::Latency => format!("{:.0}", ratio(metrics.latency, metrics.samples)),
            Column::Evidence => evidence(metrics, Evidence::ALL.len()),
        }
    }
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
}
