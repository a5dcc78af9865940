//! The layout of a type: all members by offset, borders of cache lines, and what was measured of each.

use super::{Meaning, PageRow};
use crate::column::bar;
use crate::header::{Segment, Tone};
use crate::layout::figure::MemberFigures;
use crate::layout::measure;
use crate::layout::row::{LayoutRow, LayoutRows, LineRow, PartKind, PartRow, rows as layout_rows};
use crate::session::findings::Findings;
use crate::session::question::condition_of;
use crate::text::{percent, short_span, visible};
use dataspace_proto::query::{KeyValue, Query};
use dataspace_proto::snapshot::ObjectLine;

/// Width of the bar of a member's share.
const BAR_WIDTH: usize = 10;

/// The rows, with notes of at most `width` columns, for the aggregate around an object, of the samples `within`.
///
/// # Errors
/// Why there is no layout, for a person.
pub(in crate::tui) fn rows(
    findings: &Findings,
    object: &str,
    within: &Query,
    width: usize,
) -> Result<Vec<PageRow>, String> {
    let (aggregate, layout) = findings
        .layout_around(object)
        .ok_or("nothing around this has members: layouts are of structures, classes and unions")?;
    let measured =
        measure::measure(findings, layout, within).map_err(|failure| failure.to_string())?;
    let layout_rows = layout_rows(layout, measured.figures.as_ref());
    let name = visible(&aggregate.name).into_owned();
    let mut rows = vec![PageRow {
        segments: vec![
            Segment::new(name, Tone::Strong),
            Segment::new(format!("   {}", sums(&layout_rows)), Tone::Plain),
        ],
        meaning: Meaning::Text,
    }];
    let title = format!(
        "{:>5} {:>5}  {:>6} {:>6} {:<BAR_WIDTH$} {:>6} {:>4} {:>5}  MEMBER",
        "OFF", "SIZE", "TIME", "SHARE", "", "R:W", "THR", "FIRST"
    );
    rows.push(PageRow::heading(title, Tone::Faint));
    for row in &layout_rows.rows {
        rows.extend(match row {
            LayoutRow::Line(line) => border(line, layout_rows.samples),
            LayoutRow::Part(part) => Some(member(part, &layout_rows, aggregate)),
        });
    }
    let notes = measured.notes.iter();
    rows.extend(notes.flat_map(|note| PageRow::wrapped(&visible(note), Tone::Faint, width)));
    Ok(rows)
}

fn sums(rows: &LayoutRows) -> String {
    let summary = rows.summary;
    let plural = |count: u64, word: &str| {
        if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
    };
    let mut parts = vec![
        format!("{} B", summary.size),
        plural(summary.cache_lines, "line"),
        format!("{} B holes", summary.hole_bytes),
        format!("{} B padding", summary.padding_bytes),
    ];
    if let Some(alignment) = rows.measured_alignment {
        parts.push(format!("most often at byte {alignment} of a line"));
    }
    parts.join(", ")
}

fn border(line: &LineRow, samples: u64) -> Option<PageRow> {
    if line.line == 0 && line.figures.is_none() {
        return None;
    }
    let figures = line.figures.as_ref().filter(|figures| figures.samples > 0);
    let told =
        figures.map_or_else(String::new, |it| format!(": {} of all", percent(it.samples, samples)));
    Some(PageRow::text(
        format!("──── line {} at byte {}{told} ────", line.line, line.offset),
        Tone::Faint,
    ))
}

fn member(part: &PartRow, all: &LayoutRows, aggregate: &ObjectLine) -> PageRow {
    let is_gap = matches!(part.kind, PartKind::Hole | PartKind::Padding);
    let tone = if is_gap { Tone::Faint } else { Tone::Plain };
    let (numbers, bar_text) = match part.figures.as_ref().filter(|figures| figures.samples > 0) {
        None => (format!("{:>6} {:>6}", "", ""), String::new()),
        Some(figures) => {
            let time = figures.time_ns.map_or_else(|| figures.samples.to_string(), short_span);
            let share = percent(figures.samples, all.samples);
            (format!("{time:>6} {share:>6}"), bar(figures.samples, all.samples, BAR_WIDTH))
        }
    };
    let figures = part.figures.as_ref().filter(|figures| figures.samples > 0);
    let touched = figures.map_or_else(|| format!("{:>6} {:>4} {:>5}", "", "", ""), touched);
    let indent = "  ".repeat(part.depth.min(8) as usize);
    let text = format!("  {indent}{}", visible(&part.label));
    let kind = if part.type_text.is_empty() {
        String::new()
    } else {
        format!("  {}", visible(&part.type_text))
    };
    let place = format!("{:>5} {:>5} {}", part.offset, part.size, part.mark.sign());
    let meaning = match &part.path {
        Some(path) if figures.is_some() => {
            let aggregate = condition_of(aggregate);
            Meaning::Member { aggregate, path: KeyValue::Text(path.to_string()) }
        }
        _ => Meaning::Text,
    };
    PageRow {
        segments: vec![
            Segment::new(format!("{place}{numbers} "), tone),
            Segment::new(format!("{bar_text:<BAR_WIDTH$}"), Tone::Heat),
            Segment::new(format!(" {touched}"), tone),
            Segment::new(text, if figures.is_some() { Tone::Strong } else { tone }),
            Segment::new(kind, Tone::Faint),
        ],
        meaning,
    }
}

/// Reads to writes, threads, and the share of waits in which the member was the first of its line.
fn touched(figures: &MemberFigures) -> String {
    let whole = (figures.reads + figures.writes).max(1) as f64;
    let reads = (figures.reads as f64 / whole * 100.0).round();
    let first = figures.first_touch.filter(|first| first.waits > 0);
    let first = first.map_or_else(String::new, |it| {
        format!("{:.0}%", it.first as f64 / it.waits as f64 * 100.0)
    });
    format!("{:>6} {:>4} {first:>5}", format!("{reads}:{}", 100.0 - reads), figures.n_threads)
}
