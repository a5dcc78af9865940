//! Cache lines that threads share: who touches which bytes of them, and what would separate the threads.

use super::{Meaning, PageRow};
use crate::header::{Segment, Tone};
use crate::session::findings::Findings;
use crate::sharing::row::{LineRow, PartRow, SharingRows};
use crate::sharing::sheet::{PartTable, notes};
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
    let table = PartTable::of(&line.parts, MAX_CELL);
    let n_columns = if table.width() <= width { PartTable::N_COLUMNS } else { N_FIRST };
    rows.push(PageRow::heading(table.text(0, n_columns), Tone::Faint));
    for (idx, part) in line.parts.iter().enumerate() {
        let of_thread = Meaning::Key("thread".to_owned(), KeyValue::Number(part.part.tid.into()));
        rows.push(PageRow::of(table.text(idx + 1, n_columns), of_thread));
        if n_columns == N_FIRST {
            let below = format!("      in {}", table.rest(idx + 1, n_columns));
            rows.push(PageRow::of(below, of_function(part)));
        }
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

/// Meaning of a row that names the function of a part.
fn of_function(part: &PartRow) -> Meaning {
    part.part.function.as_ref().map_or(Meaning::Text, |function| {
        Meaning::Key("function".to_owned(), KeyValue::Text(function.to_string()))
    })
}
