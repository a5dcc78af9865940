//! Cache lines that threads share: who touches which bytes of them, and what would separate the threads.

use super::{Meaning, PageRow};
use crate::header::{Segment, Tone};
use crate::session::findings::Findings;
use crate::sharing::row::{LineRow, PartRow, SharingRows};
use crate::sharing::sheet::{TITLES, notes, part_cells};
use crate::text::{short_span, visible};
use dataspace_analyzer::sharing::survey::{LineSurvey, Sharing};
use dataspace_proto::query::{KeyValue, Query};

/// Lines that are shown at most.
const MAX_LINES: usize = 100;

/// Columns of a part that stand on its own row; function and source stand below it where there is no room.
const N_FIRST: usize = 6;

/// Columns that one long name can take.
const MAX_CELL: usize = 40;

/// The rows, of at most `width` columns, of the lines that the samples of a question touch.
///
/// # Errors
/// Why there are none, for a person.
pub(in crate::tui) fn rows(
    findings: &Findings,
    query: &Query,
    width: usize,
) -> Result<Vec<PageRow>, String> {
    let history = findings.history.as_ref().ok_or("the session keeps no samples to look at")?;
    let survey = LineSurvey::new(query, false).map_err(|error| error.to_string())?;
    let shared = SharingRows::new(survey.of(history), MAX_LINES);
    let mut rows = Vec::new();
    for line in &shared.lines {
        rows.extend(line_rows(line, width));
        rows.push(PageRow::default());
    }
    if shared.n_left_out > 0 {
        rows.push(PageRow::text(format!("… and {} more lines", shared.n_left_out), Tone::Faint));
    }
    let told = notes(&shared).into_iter();
    rows.extend(told.flat_map(|note| PageRow::wrapped(&note, Tone::Faint, width)));
    Ok(rows)
}

fn line_rows(line: &LineRow, width: usize) -> Vec<PageRow> {
    let stake = line.at_stake_ns.filter(|_| line.sharing != Sharing::None);
    let stake =
        stake.map_or_else(String::new, |ns| format!(", at most {} at stake", short_span(ns)));
    let address = format!("{:#x}", line.address);
    let verdict = visible(&line.verdict);
    let (verdict, why) = verdict.split_once(": ").unwrap_or((&verdict, ""));
    let mut rows = vec![PageRow {
        segments: vec![
            Segment::new(format!("line {address} "), Tone::Strong),
            Segment::new(verdict, verdict_tone(line.sharing)),
            Segment::new(stake, Tone::Plain),
        ],
        meaning: Meaning::Key("cacheline".to_owned(), KeyValue::Text(address)),
    }];
    rows.extend(PageRow::wrapped(why, Tone::Plain, width));
    let cells: Vec<[String; 8]> = line.parts.iter().map(part_cells).collect();
    let titles = TITLES.map(str::to_owned);
    let widths: [usize; 8] = std::array::from_fn(|column| {
        let cells = cells.iter().chain([&titles]).map(|cells| cells[column].chars().count());
        cells.max().unwrap_or(0).min(MAX_CELL)
    });
    let is_wide = widths.iter().map(|width| width + 2).sum::<usize>() <= width;
    let titles = part_texts(&titles, &widths, is_wide);
    rows.extend(titles.into_iter().take(1).map(|title| PageRow::text(title, Tone::Faint)));
    for (part, cells) in line.parts.iter().zip(&cells) {
        rows.extend(part_rows(part, part_texts(cells, &widths, is_wide)));
    }
    if line.n_parts_left_out > 0 {
        rows.push(PageRow::text(format!("  … and {} more", line.n_parts_left_out), Tone::Faint));
    }
    if let Some(advice) = &line.advice {
        let advice = format!("to separate them: {}", visible(advice));
        rows.extend(PageRow::wrapped(&advice, Tone::Plain, width));
    }
    rows
}

const fn verdict_tone(sharing: Sharing) -> Tone {
    match sharing {
        Sharing::False => Tone::Loss,
        Sharing::True => Tone::Strong,
        Sharing::None => Tone::Plain,
    }
}

/// One row of text, or two where there is no room.
fn part_texts(cells: &[String; 8], widths: &[usize; 8], is_wide: bool) -> Vec<String> {
    let n_first = if is_wide { cells.len() } else { N_FIRST };
    let mut first = String::new();
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate().take(n_first) {
        // Time and counts end where their titles do.
        first.push_str(&match column {
            1..=3 => format!("  {cell:>width$}"),
            _ => format!("  {cell:<width$}"),
        });
    }
    let below = cells[n_first..].join("  ");
    let mut texts = vec![first.trim_end().to_owned()];
    if !below.is_empty() {
        texts.push(format!("      in {below}"));
    }
    texts
}

/// Rows that stand for the part's thread, and below it for its function.
fn part_rows(row: &PartRow, texts: Vec<String>) -> Vec<PageRow> {
    let part = &row.part;
    let thread = Meaning::Key("thread".to_owned(), KeyValue::Number(part.tid.into()));
    let function = part.function.as_ref().map_or(Meaning::Text, |function| {
        Meaning::Key("function".to_owned(), KeyValue::Text(function.to_string()))
    });
    let meanings = [thread, function].into_iter();
    texts.into_iter().zip(meanings).map(|(text, meaning)| PageRow::of(text, meaning)).collect()
}
