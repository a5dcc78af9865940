//! The table of objects: as many columns as there is room for, the object last.

use super::flow::elide;
use super::{Theme, styled};
use crate::arrangement::{Arrangement, Row, SortKey};
use crate::column::{Column, Scale, evidence};
use crate::header::Tone;
use crate::text::short_count;
use crate::tui::state::ScreenState;
use dataspace_proto::sample_line::Evidence;
use dataspace_proto::snapshot::{Metrics, ObjectKind, ObjectLine};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

/// Columns that the object keeps, at least: its own part of the descriptor in a tree, the whole
/// descriptor in a list.
const MIN_OWN_PART_WIDTH: usize = 26;
const MIN_DESCRIPTOR_WIDTH: usize = 40;

/// The columns with their widths, in the order in which they stand.
const COLUMNS: [(Column, usize); 7] = [
    (Column::Share, 6),
    (Column::Samples, 8),
    (Column::Rate, 7),
    (Column::Loads, 7),
    (Column::Stores, 7),
    (Column::Latency, 8),
    (Column::Evidence, NARROW_EVIDENCE),
];

/// One kind of evidence, `address 100%`, or two of them.
const NARROW_EVIDENCE: usize = 12;
const WIDE_EVIDENCE: usize = 22;

/// From this width on, two kinds of evidence are shown.
const WIDE: usize = 110;

/// Draws the heading and the rows that fit.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState, theme: &Theme) {
    let first = state.fit_rows(usize::from(area.height.saturating_sub(1)));
    let snapshot = state.snapshot();
    let arrangement = state.arrangement();
    let scale = Scale::new(snapshot, arrangement.window);
    let columns = fitting(state, usize::from(area.width));
    let mut lines = vec![heading(&columns, arrangement, theme)];
    let rows = state.listing().rows.iter().enumerate().skip(first);
    for (idx, row) in rows.take(usize::from(area.height.saturating_sub(1))) {
        let object = &snapshot.objects[row.object_idx];
        let mut line = row_line(row, object, &columns, &scale, theme);
        let room = usize::from(area.width).saturating_sub(line.width());
        line.push_span(label(row, object, room, theme));
        if idx == state.selected() {
            line = line.patch_style(theme.selected());
            let padding = usize::from(area.width).saturating_sub(line.width());
            line.push_span(Span::styled(" ".repeat(padding), theme.selected()));
        }
        lines.push(line);
    }
    if state.listing().rows.is_empty() {
        lines.push(styled("waiting for the first samples", theme.style(Tone::Faint)));
    } else if state.listing().n_cut > 0 {
        let text = format!("… and {} more: the limit cut them", state.listing().n_cut);
        lines.push(styled(text, theme.style(Tone::Faint)));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// Name of the sort key, where its column has no room.
pub(super) fn hidden_sort(state: &ScreenState, width: usize) -> Option<String> {
    let sorted = sorted_column(state.arrangement().sort)?;
    let is_shown = fitting(state, width).iter().any(|(column, _)| *column == sorted);
    (!is_shown).then(|| sorted.title().to_lowercase())
}

/// The columns that there is room for. Latency is one only where something has it.
fn fitting(state: &ScreenState, width: usize) -> Vec<(Column, usize)> {
    let window = state.arrangement().window;
    let has_latency =
        state.snapshot().objects.iter().any(|object| object.metrics.get(window).latency > 0);
    let mut columns = COLUMNS.to_vec();
    columns.retain(|(column, _)| has_latency || *column != Column::Latency);
    if let (true, Some(evidence)) = (width >= WIDE, columns.last_mut()) {
        evidence.1 = WIDE_EVIDENCE;
    }
    let is_tree = state.arrangement().is_tree;
    let object_width = if is_tree { MIN_OWN_PART_WIDTH } else { MIN_DESCRIPTOR_WIDTH };
    let mut left = width.saturating_sub(object_width.min(width / 2));
    let mut is_full = false;
    let mut fitting = Vec::new();
    for wanted in Column::BY_WORTH {
        if let Some(&(_, column_width)) = columns.iter().find(|(column, _)| *column == wanted) {
            is_full |= column_width + 1 > left;
            if !is_full {
                left -= column_width + 1;
                fitting.push(wanted);
            }
        }
    }
    columns.retain(|(column, _)| fitting.contains(column));
    columns
}

fn heading(columns: &[(Column, usize)], arrangement: &Arrangement, theme: &Theme) -> Line<'static> {
    let arrow = if arrangement.is_inverted { '▲' } else { '▼' };
    let sorted = sorted_column(arrangement.sort);
    let mut spans = Vec::new();
    let mut push = |title: &str, is_sorted: bool, width: usize, is_number: bool| {
        let title = if is_sorted { format!("{title}{arrow}") } else { title.to_owned() };
        let style = if is_sorted { theme.sorted_heading() } else { theme.heading() };
        let padding = " ".repeat(width.saturating_sub(title.chars().count()));
        let (before, after) =
            if is_number { (padding, String::new()) } else { (String::new(), padding) };
        spans.extend([Span::raw(before), Span::styled(title, style), Span::raw(after + " ")]);
    };
    for &(column, width) in columns {
        push(column.title(), sorted == Some(column), width, column.is_number());
    }
    push("OBJECT", arrangement.sort == SortKey::Name, 0, false);
    Line::from(spans)
}

fn row_line(
    row: &Row,
    object: &ObjectLine,
    columns: &[(Column, usize)],
    scale: &Scale,
    theme: &Theme,
) -> Line<'static> {
    let metrics = object.metrics.get(scale.window);
    let base = row_style(row, object, theme);
    let mut spans = Vec::new();
    for &(column, width) in columns {
        let (text, style) = cell(column, width, metrics, scale, theme);
        let text = if column.is_number() {
            format!("{text:>width$} ")
        } else {
            format!("{text:<width$} ")
        };
        spans.push(Span::styled(text, base.patch(style)));
    }
    Line::from(spans)
}

fn label(row: &Row, object: &ObjectLine, room: usize, theme: &Theme) -> Span<'static> {
    let indent = "  ".repeat(row.depth.min(room / 4));
    let label = elide(&row.label, room.saturating_sub(indent.len()));
    Span::styled(indent + &label, row_style(row, object, theme))
}

fn row_style(row: &Row, object: &ObjectLine, theme: &Theme) -> Style {
    match object.kind {
        ObjectKind::Total => theme.style(Tone::Strong),
        _ if row.is_context || object.object.starts_with("<Unknown>") => theme.style(Tone::Faint),
        _ => Style::new(),
    }
}

fn cell(
    column: Column,
    width: usize,
    metrics: &Metrics,
    scale: &Scale,
    theme: &Theme,
) -> (String, Style) {
    let text = match column {
        Column::Samples => short_count(metrics.samples, width),
        Column::Loads => short_count(metrics.loads, width),
        Column::Stores => short_count(metrics.stores, width),
        Column::Evidence => evidence(metrics, if width >= WIDE_EVIDENCE { 2 } else { 1 }),
        _ => column.cell(metrics, scale),
    };
    let is_conflict = column == Column::Evidence && text.contains(Evidence::Conflict.name());
    (text, if is_conflict { theme.conflict() } else { Style::new() })
}

fn sorted_column(sort: SortKey) -> Option<Column> {
    match sort {
        SortKey::Samples => Some(Column::Samples),
        SortKey::Rate => Some(Column::Rate),
        SortKey::Loads => Some(Column::Loads),
        SortKey::Stores => Some(Column::Stores),
        SortKey::Latency => Some(Column::Latency),
        SortKey::Name => None,
    }
}
