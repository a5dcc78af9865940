//! The plain table: one snapshot as text, for a pipe, a file or the end of a session.

use crate::arrangement::{Arrangement, Listing};
use crate::column::{Column, Scale};
use crate::config::Selection;
use crate::header::{self, Segment, Shares, Tone};
use crate::text::visible;
use dataspace_proto::reason::Reason;
use dataspace_proto::snapshot::{Snapshot, Window};
use std::io::{self, Write};

/// How many objects are listed where no limit was given.
pub(crate) const DEFAULT_LIMIT: usize = 40;

/// Where the header's text begins.
const INDENT: usize = 10;

/// How the table is to look.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableOptions {
    /// The window that shares and rates are taken over.
    pub(crate) window: Window,
    /// Which objects.
    pub(crate) selection: Selection,
    /// Whether to use colour.
    pub(crate) has_color: bool,
}

/// Writes `snapshot` as a table: header, objects (the one list that Oracle's `data_objects` gives,
/// most samples first, so that the hottest member is near the top whatever it is a member of),
/// then what the reasons mean and what went wrong.
pub(crate) fn render(
    snapshot: &Snapshot,
    options: &TableOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let limit = options.selection.limit.unwrap_or(DEFAULT_LIMIT);
    let arrangement = Arrangement {
        window: options.window,
        selection: Selection { limit: Some(limit), ..options.selection.clone() },
        ..Arrangement::default()
    };
    let listing = arrangement.list(snapshot);
    let mut printer = Printer { out, has_color: options.has_color };
    printer.header(snapshot, options.window)?;
    printer.objects(snapshot, &listing, &Scale::new(snapshot, options.window))?;
    printer.footer(snapshot, &listing)
}

struct Printer<'a> {
    out: &'a mut dyn Write,
    has_color: bool,
}

impl Printer<'_> {
    fn header(&mut self, snapshot: &Snapshot, window: Window) -> io::Result<()> {
        let mut target = header::target(snapshot);
        if window != Window::All {
            target.push(Segment::new(format!("window {}", window.name()), Tone::Plain));
        }
        self.line("target", &target, " · ")?;
        self.line("events", &header::events(snapshot), " · ")?;
        self.line("accounts", &header::accounting(snapshot, Shares::Shown), " ")?;
        self.line("quality", &header::cost(snapshot), " · ")?;
        writeln!(self.out)
    }

    fn line(&mut self, name: &str, segments: &[Segment], separator: &str) -> io::Result<()> {
        write!(self.out, "{name:<INDENT$}")?;
        for (idx, segment) in segments.iter().enumerate() {
            if idx > 0 {
                write!(self.out, "{separator}")?;
            }
            self.segment(segment)?;
        }
        writeln!(self.out)
    }

    fn segment(&mut self, segment: &Segment) -> io::Result<()> {
        // ECMA-48, select graphic rendition: bold, faint, bold red.
        let code = match segment.tone {
            Tone::Strong => "1",
            Tone::Faint => "2",
            Tone::Loss => "1;31",
            Tone::Plain => "",
        };
        if self.has_color && !code.is_empty() {
            write!(self.out, "\x1b[{code}m{}\x1b[0m", segment.text)
        } else {
            write!(self.out, "{}", segment.text)
        }
    }

    fn objects(&mut self, snapshot: &Snapshot, listing: &Listing, scale: &Scale) -> io::Result<()> {
        if listing.rows.is_empty() {
            return writeln!(self.out, "no data object yet");
        }
        let columns = columns(snapshot, scale.window);
        let cells: Vec<Vec<String>> = listing
            .rows
            .iter()
            .map(|row| {
                let metrics = snapshot.objects[row.object_idx].metrics.get(scale.window);
                columns.iter().map(|column| column.cell(metrics, scale)).collect()
            })
            .collect();
        let width = |idx: usize, column: &Column| {
            cells.iter().map(|row| row[idx].len()).max().unwrap_or(0).max(column.title().len())
        };
        let widths: Vec<usize> =
            columns.iter().enumerate().map(|(idx, column)| width(idx, column)).collect();
        let titles: Vec<String> = columns.iter().map(|column| column.title().to_owned()).collect();
        let heading = format!("{}OBJECT", joined(&columns, &titles, &widths));
        self.segment(&Segment::new(heading, Tone::Strong))?;
        writeln!(self.out)?;
        for (row, cells) in listing.rows.iter().zip(&cells) {
            writeln!(self.out, "{}{}", joined(&columns, cells, &widths), row.label)?;
        }
        Ok(())
    }

    fn footer(&mut self, snapshot: &Snapshot, listing: &Listing) -> io::Result<()> {
        if listing.n_cut > 0 {
            writeln!(self.out, "… and {} more (--limit N shows more)", listing.n_cut)?;
        } else if snapshot.truncated {
            writeln!(self.out, "… and more: the list was cut at a limit")?;
        }
        let reasons: Vec<Reason> = shown_reasons(snapshot, listing).collect();
        if !reasons.is_empty() {
            writeln!(self.out)?;
        }
        for reason in reasons {
            let text = format!("({}) {}", reason.name(), reason.sentence());
            self.segment(&Segment::new(text, Tone::Faint))?;
            writeln!(self.out)?;
        }
        if !snapshot.warnings.is_empty() {
            writeln!(self.out)?;
        }
        for warning in &snapshot.warnings {
            self.segment(&Segment::new(format!("warning: {}", visible(warning)), Tone::Loss))?;
            writeln!(self.out)?;
        }
        Ok(())
    }
}

/// Latency only where something has one.
fn columns(snapshot: &Snapshot, window: Window) -> Vec<Column> {
    let has_latency = snapshot.objects.iter().any(|object| object.metrics.get(window).latency > 0);
    let mut columns =
        vec![Column::Share, Column::Samples, Column::Rate, Column::Loads, Column::Stores];
    if has_latency {
        columns.push(Column::Latency);
    }
    columns.push(Column::Evidence);
    columns
}

/// Cells side by side, each as wide as its column, with two blanks behind.
fn joined(columns: &[Column], cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for ((column, cell), &width) in columns.iter().zip(cells).zip(widths) {
        if column.is_number() {
            line.push_str(&format!("{cell:>width$}  "));
        } else {
            line.push_str(&format!("{cell:<width$}  "));
        }
    }
    line
}

fn shown_reasons<'a>(
    snapshot: &'a Snapshot,
    listing: &'a Listing,
) -> impl Iterator<Item = Reason> + 'a {
    let objects = listing.rows.iter().map(|row| &*snapshot.objects[row.object_idx].object);
    objects.filter_map(reason_of)
}

/// The reason that `<Unknown>.(reason)` stands for.
pub(crate) fn reason_of(object: &str) -> Option<Reason> {
    let name = object.strip_prefix("<Unknown>.(")?.strip_suffix(')')?;
    Reason::ALL.iter().copied().find(|reason| reason.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn text(snapshot: &Snapshot, options: &TableOptions) -> String {
        let mut out = Vec::new();
        render(snapshot, options, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn tables_look_as_expected() {
        let check = |name: &str, snapshot: Snapshot, options: TableOptions| {
            crate::golden::check(&format!("golden/{name}.txt"), &text(&snapshot, &options));
        };
        let selection = Selection { limit: Some(4), filter: "order".into() };
        check("table_ended", fixture::ended(), TableOptions::default());
        check("table_lossy", fixture::lossy(), TableOptions { selection, ..Default::default() });
        check("table_empty", fixture::empty(), TableOptions::default());
        let options = TableOptions { window: Window::Last1s, ..Default::default() };
        check("table_window", fixture::running(), options);
    }

    #[test]
    fn losses_are_red_only_where_colour_is_wanted() {
        let options = TableOptions { has_color: true, ..Default::default() };
        let colored = text(&fixture::lossy(), &options);
        assert!(colored.contains("\x1b[1;31m+ lost 300 (2.3%)\x1b[0m"), "{colored}");
        assert!(!text(&fixture::lossy(), &TableOptions::default()).contains('\x1b'));
    }

    #[test]
    fn a_hostile_name_reaches_the_terminal_as_text() {
        let table = text(&fixture::ended(), &TableOptions::default());
        assert!(table.contains("{char hostile\\u{1b}[2Jname}"), "{table}");
    }
}
