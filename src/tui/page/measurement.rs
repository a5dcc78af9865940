//! A measurement while it runs: exact counts, and sums by process, function, data object and kind of memory.

use super::{Meaning, PageRow};
use crate::header::Tone;
use crate::measure::question::{MeasuredSamples, text};
use crate::measure::sheet::{count_lines, rate_line};
use crate::measure::summary::{MeasureOverview, Summary, SummaryRow};
use crate::measure::table::MeasureTable;
use crate::measure::view::MeasureView;
use crate::session::Source;
use crate::text::visible;
use dataspace_proto::measure::Measure;
use dataspace_proto::query::{KeyValue, Query};
use dataspace_proto::snapshot::Snapshot;

/// Rows of a summary.
const N_LISTED: usize = 12;

/// The rows, of the samples of a question.
///
/// # Errors
/// Why there are none, for a person.
pub(in crate::tui) fn rows(
    source: &dyn Source,
    query: Query,
    asked: Option<Measure>,
    view: &MeasureView,
) -> Result<Vec<PageRow>, String> {
    let snapshot = source.snapshot();
    let samples = match asked {
        Some(measure) => {
            let Query { filter, span, keys, .. } = query;
            MeasuredSamples::new(measure, &snapshot.events, filter, span, keys)
        }
        None => MeasuredSamples::fitting(&snapshot.events, &query),
    };
    let samples = samples.map_err(|failure| failure.to_string())?;
    let overview =
        MeasureOverview::of(source, samples, view).map_err(|error| format!("{error:#}"))?;
    let mut rows = counts(&snapshot, &overview);
    for summary in overview.summaries.iter().chain(&overview.data) {
        rows.push(PageRow::default());
        rows.extend(summary_rows(summary, &overview));
    }
    Ok(rows)
}

fn counts(snapshot: &Snapshot, overview: &MeasureOverview) -> Vec<PageRow> {
    let measure = overview.samples.measure.name();
    let title = format!("{measure}: EXACT METRICS, OF THE WHOLE RUN");
    let mut rows = vec![PageRow::text(title, Tone::Strong)];
    if snapshot.counts.is_empty() {
        let text = format!("nothing is counted: dataspace measure {measure} does");
        rows.push(PageRow::text(text, Tone::Faint));
    }
    rows.extend(count_lines(&snapshot.counts).map(|(text, tone)| PageRow::text(text, tone)));
    rows.extend(overview.rates.iter().map(|rate| PageRow::text(rate_line(rate), Tone::Plain)));
    rows
}

fn summary_rows(summary: &Summary, overview: &MeasureOverview) -> Vec<PageRow> {
    let kept: Vec<&SummaryRow> =
        summary.rows.iter().filter(|row| !row.is_cut).take(N_LISTED).collect();
    let table = MeasureTable::of(overview, kept.iter().map(|row| (&row.sums, row.shares)));
    let mut rows = vec![PageRow::text(summary.title.to_uppercase(), Tone::Strong)];
    let titles = table.titles(summary.heading);
    let titles = titles.into_iter().filter(|line| !line.trim().is_empty());
    rows.extend(titles.map(|line| PageRow::heading(line, Tone::Faint)));
    for row in kept {
        let cells = table.cells(&row.sums, row.shares);
        let text = format!("{cells}{}", visible(&row.name));
        rows.push(PageRow::of(text, meaning(summary, row)));
    }
    let n_more = summary.rows.len().saturating_sub(N_LISTED);
    if n_more > 0 {
        rows.push(PageRow::text(format!("… and {n_more} more"), Tone::Faint));
    }
    rows
}

/// The samples that a row stands for.
fn meaning(summary: &Summary, row: &SummaryRow) -> Meaning {
    let (key, place) = match summary.name {
        "thread" | "function" => (summary.name, 1),
        name => (name, 0),
    };
    match row.key.get(place) {
        Some(value @ KeyValue::Number(_)) => Meaning::Key(key.to_owned(), value.clone()),
        Some(value) => match text(value) {
            Some(_) => Meaning::Key(key.to_owned(), value.clone()),
            None => Meaning::Text,
        },
        None => Meaning::Text,
    }
}
