//! Samples by second: the whole history, so that the window can be moved back over it.

use super::{Meaning, PageRow};
use crate::column::bar;
use crate::header::{Segment, Tone};
use crate::text::span;
use dataspace_proto::query::{KeyValue, Query, QueryAnswer};
use std::collections::BTreeMap;

/// Width of a bar.
const BAR_WIDTH: usize = 40;

/// Seconds that are shown at most: the newest.
const MAX_SECONDS: u64 = 100_000;

/// The question for the samples that meet a condition.
pub(in crate::tui) fn query(filter: Option<String>) -> Query {
    let by = vec!["second".to_owned()];
    Query { by, filter, limit: Some(MAX_SECONDS as usize), ..Query::default() }
}

/// A row for each second, the newest first; a mark where the window is, of so many seconds up to `end_s`.
pub(in crate::tui) fn rows(answer: &QueryAnswer, window: (u64, u64)) -> Vec<PageRow> {
    let mut samples: BTreeMap<u64, (u64, u64, u64)> = BTreeMap::new();
    for row in &answer.rows {
        if let [KeyValue::Number(second)] = row.key[..]
            && let Ok(second) = u64::try_from(second)
        {
            let sums = &row.metrics;
            samples.insert(second, (sums.samples, sums.loads, sums.stores));
        }
    }
    let most = samples.values().map(|(samples, ..)| *samples).max().unwrap_or(0);
    let (Some((&first, _)), Some((&last, _))) =
        (samples.first_key_value(), samples.last_key_value())
    else {
        return vec![PageRow::text("the history has no such samples", Tone::Faint)];
    };
    let title = format!("  {:>9} {:>8} {:>8} {:>8}", "SECOND", "SAMPLES", "LOADS", "STORES");
    let heading = PageRow::heading(title, Tone::Strong);
    let seconds = (first.max(last.saturating_sub(MAX_SECONDS))..=last).rev();
    let row = |second: u64| {
        let (count, loads, stores) = samples.get(&second).copied().unwrap_or_default();
        let mark = if (window.0..window.1).contains(&second) { '│' } else { ' ' };
        let at = span(second * 1_000_000_000);
        let text = format!("{mark} {at:>9} {count:>8} {loads:>8} {stores:>8} ");
        let bar = Segment::new(bar(count, most, BAR_WIDTH), Tone::Heat);
        PageRow {
            segments: vec![Segment::new(text, Tone::Plain), bar],
            meaning: Meaning::Second(second),
        }
    };
    std::iter::once(heading).chain(seconds.map(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::query::{QueryMetrics, QueryRow};

    #[test]
    fn seconds_without_samples_have_their_row() {
        let row = |second: i64, samples: u64| QueryRow {
            key: vec![KeyValue::Number(second)],
            metrics: QueryMetrics { samples, ..QueryMetrics::default() },
        };
        let answer = QueryAnswer { rows: vec![row(3, 10), row(6, 5)], ..QueryAnswer::default() };
        let rows = rows(&answer, (4, 6));
        let seconds: Vec<&Meaning> = rows.iter().skip(1).map(|row| &row.meaning).collect();
        assert_eq!(seconds, [6, 5, 4, 3].map(Meaning::Second).iter().collect::<Vec<_>>());
        let marks = rows.iter().filter(|row| row.segments[0].text.starts_with('│')).count();
        assert_eq!(marks, 2);
    }
}
