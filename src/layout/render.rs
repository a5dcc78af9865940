//! The rows of a layout as text.

use super::figure::MemberFigures;
use super::row::{LayoutRow, LayoutRows, LayoutSummary, LineRow, PartKind, PartRow};
use crate::header::Tone;
use crate::table::Printer;
use crate::text::{percent, visible};
use dataspace_analyzer::dwarf::layout::listing::FoundLayout;
use std::io::{self, Write};

/// Presentation of layouts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LayoutStyle {
    /// Output in colour.
    pub(crate) has_color: bool,
    /// Columns of a line, where they are limited. Types are cut there, names of members are not.
    pub(crate) width: Option<usize>,
}

/// Widest column of members: what is longer moves its type to the right.
const MAX_MEMBER_WIDTH: usize = 40;

/// Columns of numbers before a member in a layout that nothing was measured of.
const PLAIN_TITLE: &str = "LINE OFFSET   SIZE   ";

/// The same with figures.
const MEASURED_TITLE: &str = "LINE OFFSET   SIZE     TIME  SHARE     R:W  THR  FIRST ";

/// Writes one layout: its title, its rows, its sums, and notes.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write(
    found: &FoundLayout,
    rows: &LayoutRows,
    notes: &[String],
    style: LayoutStyle,
    out: &mut dyn Write,
) -> io::Result<()> {
    let is_measured = rows.is_measured;
    let mut printer = Printer { out, has_color: style.has_color };
    printer.toned(title(found), Tone::Strong)?;
    let columns = Columns::of(rows, is_measured, style.width);
    let head = match (is_measured, rows.is_timed) {
        (false, _) => PLAIN_TITLE.to_owned(),
        (true, true) => MEASURED_TITLE.to_owned(),
        // Nothing tells how long they took.
        (true, false) => MEASURED_TITLE.replace("   TIME", "SAMPLES"),
    };
    printer.toned(columns.line(&head, "MEMBER", "TYPE"), Tone::Faint)?;
    let samples = rows.samples;
    let head_room = " ".repeat(head.chars().count());
    for row in &rows.rows {
        match row {
            LayoutRow::Line(line) => {
                if let Some(text) = border(line, samples) {
                    printer.toned(text, Tone::Faint)?;
                }
            }
            LayoutRow::Part(part) => {
                let is_gap = matches!(part.kind, PartKind::Hole | PartKind::Padding);
                let tone = if is_gap { Tone::Faint } else { Tone::Plain };
                printer.toned(columns.part(part, samples), tone)?;
                if let Some(heat) = heat(part) {
                    printer.toned(columns.line(&head_room, &heat, ""), Tone::Plain)?;
                }
            }
        }
    }
    printer.toned(sums(rows.summary), Tone::Strong)?;
    for note in notes {
        printer.toned(format!("note: {}", visible(note)), Tone::Plain)?;
    }
    Ok(())
}

/// Keyword and name, and where it is described.
fn title(found: &FoundLayout) -> String {
    let keyword = match found.layout.type_name.split(':').next() {
        Some("union") => "union ",
        Some("class") => "class ",
        // Of Rust: arms that are not all there at once, and no union.
        _ if found.layout.is_union => "enum ",
        _ => "struct ",
    };
    let mut title = format!("{keyword}{}", visible(&found.name));
    if let Some(unit) = &found.unit {
        title.push_str(&format!("   {}", visible(unit)));
    }
    title
}

/// The line at which a cache line begins; of the first one only where there are sums to tell.
fn border(line: &LineRow, samples: u64) -> Option<String> {
    let LineRow { offset, figures, .. } = line;
    let Some(figures) = figures else {
        return (line.line > 0).then(|| format!("----- {offset} B: next line -----"));
    };
    let what = if line.line == 0 { "first line" } else { "next line" };
    let sums = if figures.samples == 0 {
        "no sample".to_owned()
    } else {
        let (time, share, ratio) =
            (time(figures), percent(figures.samples, samples), ratio(figures));
        format!("{time} {share}, R:W {ratio}, {}", counted(figures.n_threads, "thread"))
    };
    Some(format!("----- {offset} B: {what}: {sums} -----"))
}

/// Sums as a sentence.
fn sums(summary: LayoutSummary) -> String {
    let bits = |bytes: u64, bits: u64, word: &str| match (bytes, bits) {
        (0, 0) => format!("no {word}"),
        (_, 0) => format!("{bytes} B {word}"),
        (0, _) => format!("{bits} bits {word}"),
        _ => format!("{bytes} B and {bits} bits {word}"),
    };
    format!(
        "{} B, {}, {}, {}, {}",
        summary.size,
        counted(summary.cache_lines, "cache line"),
        counted(summary.n_members as u64, "member"),
        bits(summary.hole_bytes, summary.hole_bits, "holes"),
        bits(summary.padding_bytes, summary.padding_bits, "padding"),
    )
}

fn counted(number: u64, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

/// Time as a table shows it: `1.19s`, `23.4ms`; samples where no clock was sampled.
fn time(figures: &MemberFigures) -> String {
    let Some(time_ns) = figures.time_ns else { return figures.samples.to_string() };
    let seconds = time_ns as f64 / 1e9;
    match seconds {
        1.0.. => format!("{seconds:.2}s"),
        0.1.. => format!("{:.0}ms", seconds * 1e3),
        _ => format!("{:.1}ms", seconds * 1e3),
    }
}

/// Reads against writes, as shares of a hundred; nothing where there was neither.
fn ratio(figures: &MemberFigures) -> String {
    let both = figures.reads.saturating_add(figures.writes);
    if both == 0 {
        return String::new();
    }
    let reads = (figures.reads as f64 / both as f64 * 100.0).round();
    format!("{reads:.0}:{:.0}", 100.0 - reads)
}

/// Share of the waits for its lines in which a member was touched first; `-` where nothing tells.
fn first_touch(figures: &MemberFigures) -> String {
    figures.first_touch.map_or_else(|| "-".to_owned(), |it| percent(it.first, it.waits))
}

/// The hottest elements of an array, with their shares of its samples: `[512] 14.3%`.
fn heat(part: &PartRow) -> Option<String> {
    let figures = part.figures.as_ref().filter(|it| !it.hottest.is_empty())?;
    let mut text = "  ".repeat(part.depth as usize + 1);
    let share = |samples| percent(samples, figures.samples);
    let elements = figures.hottest.iter().take(MAX_SHOWN_ELEMENTS);
    let elements: Vec<String> =
        elements.map(|(index, samples)| format!("[{index}] {}", share(*samples))).collect();
    text.push_str(&elements.join("  "));
    Some(text)
}

/// Elements of an array that are shown; JSON has some more.
const MAX_SHOWN_ELEMENTS: usize = 4;

/// Widths of the columns.
struct Columns {
    member: usize,
    /// Room for the type; `None` for as much as it takes.
    type_text: Option<usize>,
    is_measured: bool,
}

impl Columns {
    fn of(rows: &LayoutRows, is_measured: bool, width: Option<usize>) -> Self {
        let widths = rows.rows.iter().filter_map(|row| match row {
            LayoutRow::Part(part) => Some(name_of(part).chars().count()),
            LayoutRow::Line(_) => None,
        });
        let member = widths.max().unwrap_or(0).clamp("MEMBER".len(), MAX_MEMBER_WIDTH);
        let head = if is_measured { MEASURED_TITLE } else { PLAIN_TITLE }.chars().count();
        let type_text = width.map(|width| width.saturating_sub(head + 2 + member + 2));
        Self { member, type_text, is_measured }
    }

    fn part(&self, part: &PartRow, samples: u64) -> String {
        let PartRow { line, offset, size, .. } = part;
        let mut head = format!("{line:4} {offset:6} {size:6} {}", part.mark.sign());
        if self.is_measured {
            match &part.figures {
                Some(figures) if figures.samples > 0 => head.push_str(&format!(
                    "{:>7} {:>6} {:>7} {:>4} {:>6} ",
                    time(figures),
                    percent(figures.samples, samples),
                    ratio(figures),
                    figures.n_threads,
                    first_touch(figures)
                )),
                _ => head.push_str(&" ".repeat(35)),
            }
        } else {
            head.push(' ');
        }
        self.line(&head, &name_of(part), &visible(&part.type_text))
    }

    fn line(&self, head: &str, member: &str, type_text: &str) -> String {
        let width = self.member;
        let n_over = member.chars().count().saturating_sub(width);
        let room = self.type_text.map(|room| room.saturating_sub(n_over));
        let shown: String = match room {
            Some(room) if room < MIN_TYPE_WIDTH => String::new(),
            Some(room) if type_text.chars().count() > room => {
                type_text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
            }
            _ => type_text.to_owned(),
        };
        format!("{head} {member:width$}  {shown}").trim_end().to_owned()
    }
}

/// Room in which a type tells anything.
const MIN_TYPE_WIDTH: usize = 6;

/// The name, moved in by what it is inside of; a gap stands between lines.
fn name_of(part: &PartRow) -> String {
    let indent = "  ".repeat(part.depth as usize);
    match part.kind {
        PartKind::Hole | PartKind::Padding => format!("{indent}-- {} --", part.label),
        _ => format!("{indent}{}", visible(&part.label)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::layout::figure::{AlikeSamples, LayoutFigures};
    use crate::layout::row;

    fn printed(figures: Option<&LayoutFigures>, name: &str, width: Option<usize>) -> String {
        let layout = fixture::findings().layouts[&2].as_ref().clone();
        let found = FoundLayout {
            name: name.into(),
            alias: None,
            unit: Some("book.c".into()),
            entry: None,
            virtual_bases: Box::default(),
            layout,
        };
        let rows = row::rows(&found.layout, figures);
        let mut out = Vec::new();
        let style = LayoutStyle { has_color: false, width };
        write(&found, &rows, &["a note".to_owned()], style, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Tells whether a line has these words.
    fn has_line(text: &str, line: &str) -> bool {
        text.lines().any(|printed| printed.split_whitespace().eq(line.split_whitespace()))
    }

    #[test]
    fn a_layout_without_samples_has_places_and_types() {
        let text = printed(None, "order", Some(80));
        for line in [
            "struct order   book.c",
            "LINE OFFSET   SIZE    MEMBER            TYPE",
            "   0      8      8 |  price             ?",
            "   0     20      4 |    y               ?",
            "   0     24      8 |  -- 8 B hole --    ",
            "   0     32     40 X  name              ?",
            "----- 64 B: next line -----",
            "   1     72     48 |  -- 48 B hole --",
            "136 B, 3 cache lines, 5 members, 56 B holes, 8 B padding",
            "note: a note",
        ] {
            assert!(has_line(&text, line), "{line}\n{text}");
        }
        assert!(!printed(None, "a\x1b[31m", None).contains('\x1b'), "names are foreign");
    }

    #[test]
    fn samples_stand_beside_members_and_their_sums_at_the_borders() {
        let mut figures = LayoutFigures::new([(48, (3, 40))].into(), true);
        let alike = |member, offset, samples| AlikeSamples {
            member: Some(member),
            offset: Some(offset),
            alignment: Some(48),
            thread: Some(7),
            samples,
            time_ns: samples * 100_000_000,
            reads: samples,
            waits: samples,
            first: samples,
            ..AlikeSamples::default()
        };
        figures.add(&alike("next", 0, 30));
        figures.add(&alike("pos.y", 20, 10));
        let text = printed(Some(&figures), "order", Some(120));
        for line in [
            "----- 0 B: first line: 3.00s 75.0%, R:W 100:0, 1 thread -----",
            "   0      0      8 |   3.00s  75.0%   100:0    1 100.0%  next              ?",
            "   0      8      8 \\                                     price             ?",
            "----- 16 B: next line: 1.00s 25.0%, R:W 100:0, 1 thread -----",
            "   1     16      8 /   1.00s  25.0%   100:0    1 100.0%  pos               ?",
        ] {
            assert!(has_line(&text, line), "{line}\n{text}");
        }
    }
}
