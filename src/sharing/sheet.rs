//! The lines that threads share as a plain table.

use super::row::{LineRow, PartRow, SharingRows};
use crate::header::Tone;
use crate::table::Printer;
use crate::text::visible;
use dataspace_analyzer::sharing::survey::Sharing;
use dataspace_proto::snapshot::Snapshot;
use dataspace_proto::window::Window;
use std::io::{self, Write};

/// The columns of a part of a line.
const TITLES: [&str; 8] =
    ["THREAD", "TIME", "READS", "WRITES", "BYTES", "NAME", "FUNCTION", "SOURCE"];

/// Columns whose cells end at the same column: those of numbers.
const IS_NUMBER: [bool; 8] = [false, true, true, true, false, false, false, false];

/// Between two columns.
const GAP: &str = "  ";

/// Columns that are filled up for the sake of one long name.
const MAX_WIDTH: usize = 60;

/// Writes the rows below the header of `snapshot`.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write(
    snapshot: &Snapshot,
    rows: &SharingRows,
    has_color: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut printer = Printer { out, has_color };
    printer.header(snapshot, Window::All)?;
    for row in &rows.lines {
        line(row, rows, &mut printer)?;
    }
    if rows.n_left_out != 0 {
        let text = format!("… and {} more lines (--limit N shows more)", rows.n_left_out);
        printer.toned(text, Tone::Plain)?;
    }
    for note in notes(rows) {
        printer.toned(note, Tone::Faint)?;
    }
    printer.warnings(&snapshot.warnings)?;
    printer.out.flush()
}

fn line(row: &LineRow, rows: &SharingRows, printer: &mut Printer<'_>) -> io::Result<()> {
    let title = format!("line {:#x} of process {}: {}", row.address, row.pid, row.verdict);
    printer.toned(title, Tone::Strong)?;
    let table = PartTable::of(&row.parts, MAX_WIDTH);
    for number in 0..table.cells.len() {
        let tone = if number == 0 { Tone::Faint } else { Tone::Plain };
        printer.toned(table.text(number, PartTable::N_COLUMNS), tone)?;
    }
    if row.n_parts_left_out != 0 {
        printer.toned(format!("  … and {} more", row.n_parts_left_out), Tone::Plain)?;
    }
    if row.sharing != Sharing::None {
        printer.toned(format!("  at stake: {}", stake(row, rows)), Tone::Plain)?;
    }
    if let Some(advice) = &row.advice {
        printer.toned(format!("  to separate: {}", visible(advice)), Tone::Plain)?;
    }
    writeln!(printer.out)
}

/// The parts of a line below each other: the titles, then one row for each.
#[derive(Clone, Debug)]
pub(crate) struct PartTable {
    cells: Vec<[String; 8]>,
    widths: [usize; 8],
}

impl PartTable {
    /// Columns of a row.
    pub(crate) const N_COLUMNS: usize = TITLES.len();

    /// The table of `parts`; no column is filled up beyond `max_width`.
    pub(crate) fn of(parts: &[PartRow], max_width: usize) -> Self {
        let titles = [TITLES.map(str::to_owned)].into_iter();
        let cells: Vec<[String; 8]> = titles.chain(parts.iter().map(part_cells)).collect();
        let width = |column: usize| {
            let widths = cells.iter().map(|cells| cells[column].chars().count());
            widths.max().unwrap_or(0).min(max_width)
        };
        let widths = std::array::from_fn(width);
        Self { cells, widths }
    }

    /// Columns of a row, as long as no cell is wider than was allowed.
    pub(crate) fn width(&self) -> usize {
        self.widths.iter().map(|width| width + GAP.len()).sum()
    }

    /// The first columns of a row, of which 0 is the titles.
    pub(crate) fn text(&self, number: usize, n_columns: usize) -> String {
        let mut text = String::new();
        for (column, cell) in self.cells[number].iter().enumerate().take(n_columns) {
            let width = self.widths[column];
            text.push_str(GAP);
            text.push_str(&match IS_NUMBER[column] {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            });
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// The other columns of a row, not filled up.
    pub(crate) fn rest(&self, number: usize, n_columns: usize) -> String {
        self.cells[number][n_columns..].join(GAP)
    }
}

/// The cells of a part; safe to print.
fn part_cells(row: &PartRow) -> [String; 8] {
    let part = &row.part;
    let thread = match &part.comm {
        Some(comm) => format!("{} {}", part.tid, visible(comm)),
        None => part.tid.to_string(),
    };
    let time = row.time_ns.map_or_else(|| "-".to_owned(), seconds);
    let last = row.line_offset + i64::from(part.size.max(1)) - 1;
    let name = row.name.as_deref().unwrap_or(&part.object);
    let function = part.function.as_deref().or(part.module.as_deref()).unwrap_or("-");
    let source = row.source.as_deref().map_or("-", short);
    [
        thread,
        time,
        part.reads.to_string(),
        part.writes.to_string(),
        format!("{}..{last}", row.line_offset),
        visible(name).into_owned(),
        visible(function).into_owned(),
        visible(source).into_owned(),
    ]
}

/// The bound of what the sharing costs.
fn stake(row: &LineRow, rows: &SharingRows) -> String {
    match row.at_stake_ns {
        Some(ns) => format!(
            "at most {} of {} on CPUs ({} samples)",
            seconds(ns),
            seconds(rows.survey.time_ns),
            row.met
        ),
        None => format!("at most {} of {} samples on memory", row.met, rows.survey.n_memory),
    }
}

/// The file's name and the line: paths are in JSON.
fn short(source: &str) -> &str {
    source.rsplit_once('/').map_or(source, |(_, name)| name)
}

fn seconds(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    if seconds < 0.995 { format!("{seconds:.2} s") } else { format!("{seconds:.1} s") }
}

/// Lines below: on how much the answer rests.
pub(crate) fn notes(rows: &SharingRows) -> Vec<String> {
    let survey = &rows.survey;
    let n_shared = rows.lines.iter().filter(|row| row.sharing != Sharing::None).count() as u64;
    let n_other = survey.n_common.saturating_sub(n_shared + rows.n_left_out);
    let mut notes = Vec::new();
    if n_shared == 0 {
        notes.push("no line is shared by threads, so far as these samples tell".to_owned());
    }
    if n_other != 0 && n_shared == rows.lines.len() as u64 {
        let lines =
            if n_other == 1 { "1 more line is" } else { &format!("{n_other} more lines are") };
        notes.push(format!(
            "{lines} touched by two threads or more, but not in turns (`threads --all` shows that)"
        ));
    }
    notes.push(format!(
        "addresses are known of {} of the {} samples on memory, which are of {} of {} samples",
        survey.n_addressed, survey.n_memory, survey.rows_held, survey.rows_of_span
    ));
    if survey.n_left_out != 0 {
        notes.push(format!(
            "{} samples are on lines that were too many to look at",
            survey.n_left_out
        ));
    }
    if survey.lines_open != 0 {
        notes.push(format!(
            "the source lines of {} places in code are not found out",
            survey.lines_open
        ));
    }
    notes
}
