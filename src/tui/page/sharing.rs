//! Cache lines that threads share: who touches which bytes of them, and what would separate the threads.

use super::{Meaning, PageRow};
use crate::header::{Segment, Tone};
use crate::session::findings::Findings;
use crate::sharing::row::{LineRow, PartRow, SharingRows};
use crate::text::{short_span, visible};
use dataspace_analyzer::sharing::survey::{LineSurvey, Sharing};
use dataspace_proto::query::{KeyValue, Query};

/// Lines that are shown at most.
const MAX_LINES: usize = 100;

/// The rows of the lines that the samples of a question touch.
///
/// # Errors
/// Why there are none, for a person.
pub(in crate::tui) fn rows(findings: &Findings, query: &Query) -> Result<Vec<PageRow>, String> {
    let history = findings.history.as_ref().ok_or("the session keeps no samples to look at")?;
    let survey = LineSurvey::new(query, false).map_err(|error| error.to_string())?;
    let shared = SharingRows::new(survey.of(history), MAX_LINES);
    let mut rows = Vec::new();
    for line in &shared.lines {
        rows.extend(line_rows(line));
        rows.push(PageRow::default());
    }
    if shared.lines.is_empty() {
        let text = "no cache line is shared by threads, so far as these samples tell";
        rows.push(PageRow::text(text, Tone::Faint));
        let text = "only samples with a data address count, and threads that touch a line in turns";
        rows.push(PageRow::text(text, Tone::Faint));
    }
    if shared.n_left_out > 0 {
        rows.push(PageRow::text(format!("… and {} more lines", shared.n_left_out), Tone::Faint));
    }
    Ok(rows)
}

fn line_rows(line: &LineRow) -> Vec<PageRow> {
    let stake = line.at_stake_ns.filter(|_| line.sharing != Sharing::None);
    let stake =
        stake.map_or_else(String::new, |ns| format!(", at most {} at stake", short_span(ns)));
    let address = format!("{:#x}", line.address);
    let mut rows = vec![PageRow {
        segments: vec![
            Segment::new(format!("line {address} "), Tone::Strong),
            Segment::new(visible(&line.verdict).into_owned(), verdict_tone(line.sharing)),
            Segment::new(stake, Tone::Plain),
        ],
        meaning: Meaning::Key("cacheline".to_owned(), KeyValue::Text(address)),
    }];
    let title = format!(
        "  {:>6} {:>7} {:>7} {:>7}  {:<24} {:<20} FUNCTION",
        "TIME", "READS", "WRITES", "BYTES", "NAME", "THREAD"
    );
    rows.push(PageRow::text(title, Tone::Faint));
    rows.extend(line.parts.iter().map(part_row));
    if let Some(advice) = &line.advice {
        rows.push(PageRow::text(format!("  to separate them: {}", visible(advice)), Tone::Plain));
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

fn part_row(row: &PartRow) -> PageRow {
    let part = &row.part;
    let last = row.line_offset + i64::from(part.size.max(1)) - 1;
    let time = row.time_ns.map(short_span).unwrap_or_default();
    let thread = match &part.comm {
        Some(comm) => format!("{} {}", part.tid, visible(comm)),
        None => part.tid.to_string(),
    };
    let name = visible(row.name.as_deref().unwrap_or(&part.object)).into_owned();
    let function = visible(part.function.as_deref().unwrap_or("-")).into_owned();
    let source = row.source.as_deref().map(super::object::short).unwrap_or_default();
    let bytes = format!("{}..{last}", row.line_offset);
    let text = format!(
        "  {time:>6} {:>7} {:>7} {bytes:>7}  {name:<24} {thread:<20} {function} {}",
        part.reads,
        part.writes,
        visible(&source)
    );
    PageRow::of(text, Meaning::Key("thread".to_owned(), KeyValue::Number(part.tid.into())))
}
