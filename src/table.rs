//! The plain table: one snapshot as text, for a pipe, a file or the end of a session.

use crate::arrangement::{Arrangement, Listing};
use crate::column::{Column, Scale};
use crate::config::{Names, Selection};
use crate::header::{self, Segment, Shares, Tone};
use crate::text::visible;
use dataspace_proto::reason::Reason;
use dataspace_proto::snapshot::{ObjectKind, Snapshot};
use dataspace_proto::window::Window;
use std::io::{self, Write};

/// Number of objects that are listed where no limit was given.
pub(crate) const DEFAULT_LIMIT: usize = 40;

/// Between two columns.
const GAP: &str = "  ";

/// Room that the longest name can claim: one monster among the names of C++ must not cost all
/// others their numbers.
const MAX_RESERVED: usize = 60;

/// Column in which the header's text begins.
const INDENT: usize = 10;

/// Options of the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableOptions {
    /// The window that shares and rates are taken over.
    pub(crate) window: Window,
    /// Objects to show.
    pub(crate) selection: Selection,
    /// Spelling of the objects.
    pub(crate) names: Names,
    /// True for output in colour.
    pub(crate) has_color: bool,
    /// Columns of a line, where they are limited. Names are never cut: columns go.
    pub(crate) width: Option<usize>,
}

/// The width of the terminal on standard output, if it is one.
pub(crate) fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
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
        names: options.names,
        selection: Selection { limit: Some(limit), ..options.selection.clone() },
        ..Arrangement::default()
    };
    let listing = arrangement.list(snapshot);
    let mut printer = Printer { out, has_color: options.has_color };
    printer.header(snapshot, options.window)?;
    let scale = Scale::new(snapshot, options.window);
    printer.objects(snapshot, &listing, &scale, options.width.unwrap_or(usize::MAX))?;
    printer.emptiness(snapshot, &listing, options)?;
    printer.footer(snapshot, &listing)
}

/// Writes segments in their tones.
pub(crate) struct Printer<'a> {
    pub(crate) out: &'a mut dyn Write,
    pub(crate) has_color: bool,
}

impl Printer<'_> {
    /// The lines about the session.
    pub(crate) fn header(&mut self, snapshot: &Snapshot, window: Window) -> io::Result<()> {
        let mut target = header::target(snapshot);
        if window != Window::All {
            target.push(Segment::new(format!("window {window}"), Tone::Plain));
        }
        self.line("target", &target, " · ")?;
        self.line("events", &header::events(snapshot), " · ")?;
        self.line("accounts", &header::accounting(snapshot, Shares::Shown), " ")?;
        self.line("quality", &header::cost(snapshot), " · ")?;
        writeln!(self.out)
    }

    /// A line of the header: its name, then segments.
    pub(crate) fn line(
        &mut self,
        name: &str,
        segments: &[Segment],
        separator: &str,
    ) -> io::Result<()> {
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
            Tone::Plain | Tone::Heat => "",
        };
        if self.has_color && !code.is_empty() {
            write!(self.out, "\x1b[{code}m{}\x1b[0m", segment.text)
        } else {
            write!(self.out, "{}", segment.text)
        }
    }

    /// A line of one tone.
    pub(crate) fn toned(&mut self, text: impl Into<String>, tone: Tone) -> io::Result<()> {
        self.segment(&Segment::new(text, tone))?;
        writeln!(self.out)
    }

    /// Warnings, if there are any, below an empty line.
    pub(crate) fn warnings(&mut self, warnings: &[String]) -> io::Result<()> {
        if !warnings.is_empty() {
            writeln!(self.out)?;
        }
        warnings.iter().try_for_each(|warning| {
            self.toned(format!("warning: {}", visible(warning)), Tone::Loss)
        })
    }

    fn objects(
        &mut self,
        snapshot: &Snapshot,
        listing: &Listing,
        scale: &Scale,
        width: usize,
    ) -> io::Result<()> {
        let labels = listing.rows.iter().map(|row| row.label.chars().count());
        let room = width.saturating_sub(labels.max().unwrap_or(0).min(MAX_RESERVED));
        let columns = fit(columns(snapshot, listing, scale), room);
        let titles = columns.iter().map(|column| column.column.title().to_owned());
        self.toned(line(columns.iter(), titles, "OBJECT"), Tone::Strong)?;
        for (idx, row) in listing.rows.iter().enumerate() {
            let cells = columns.iter().map(|column| column.cells[idx].clone());
            writeln!(self.out, "{}", line(columns.iter(), cells, &row.label))?;
        }
        Ok(())
    }

    /// Says why there is nothing but `<Total>`, if so.
    fn emptiness(
        &mut self,
        snapshot: &Snapshot,
        listing: &Listing,
        options: &TableOptions,
    ) -> io::Result<()> {
        let mut objects = listing.rows.iter().map(|row| &snapshot.objects[row.object_idx]);
        if objects.any(|object| object.kind != ObjectKind::Total) {
            return Ok(());
        }
        let filter = visible(&options.selection.filter);
        let n_sampled =
            |window| snapshot.objects.first().map_or(0, |it| it.metrics.get(window).samples);
        let why = if listing.n_cut > 0 {
            return Ok(());
        } else if n_sampled(options.window) > 0 && !filter.is_empty() {
            format!("no object has `{filter}` in its name")
        } else if n_sampled(Window::All) > 0 {
            format!("nothing was sampled in the last {}", options.window)
        } else if snapshot.accounting.kernel > 0 {
            "no sample was at an instruction that touches memory".to_owned()
        } else if snapshot.target.running {
            "nothing was sampled yet".to_owned()
        } else if snapshot.governance.is_none() {
            "there is no sample in it".to_owned()
        } else {
            "nothing was sampled: the target did not run in this time, or has none of the events"
                .to_owned()
        };
        self.toned(why, Tone::Strong)
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
            self.toned(text, Tone::Faint)?;
        }
        self.warnings(&snapshot.warnings)
    }
}

/// A column with all its cells, and how wide the widest is.
struct Filled {
    column: Column,
    cells: Vec<String>,
    width: usize,
}

/// All columns of figures that something has.
fn columns(snapshot: &Snapshot, listing: &Listing, scale: &Scale) -> Vec<Filled> {
    let kept = |column: &Column| column.is_measured(snapshot);
    let filled = |column: Column| {
        let metrics = listing.rows.iter().map(|row| &snapshot.objects[row.object_idx].metrics);
        let cells: Vec<String> =
            metrics.map(|metrics| column.cell(metrics.get(scale.window), scale)).collect();
        let width = cells.iter().map(String::len).max().unwrap_or(0).max(column.title().len());
        Filled { column, cells, width }
    };
    Column::PLAIN.into_iter().filter(kept).map(filled).collect()
}

/// Takes the least worthy columns away until the others have room; share and samples stay.
fn fit(mut columns: Vec<Filled>, room: usize) -> Vec<Filled> {
    for worthless in Column::BY_WORTH.into_iter().skip(2).rev() {
        let used: usize = columns.iter().map(|column| column.width + GAP.len()).sum();
        if used <= room {
            break;
        }
        columns.retain(|column| column.column != worthless);
    }
    columns
}

/// Cells side by side, each as wide as its column, then the object.
fn line<'a>(
    columns: impl Iterator<Item = &'a Filled>,
    cells: impl Iterator<Item = String>,
    object: &str,
) -> String {
    let mut line = String::new();
    for (column, cell) in columns.zip(cells) {
        let width = column.width;
        if column.column.is_number() {
            line.push_str(&format!("{cell:>width$}{GAP}"));
        } else {
            line.push_str(&format!("{cell:<width$}{GAP}"));
        }
    }
    line + object
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
        let options = TableOptions { width: Some(80), ..Default::default() };
        check("table_80", fixture::ended(), options);
        let options = TableOptions { window: Window::Last(1), ..Default::default() };
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
        assert!(table.contains("hostile\\u{1b}[2Jname"), "{table}");
    }
}
