//! The table of objects: as many columns as there is room for, the object last.

use super::flow::elide;
use super::{Theme, selected, styled};
use crate::arrangement::{Arrangement, Fold, Row, SortKey};
use crate::column::{Column, Scale, evidence};
use crate::header::Tone;
use crate::text::{short_count, visible};
use crate::tui::state::ScreenState;
use dataspace_proto::sample_line::Evidence;
use dataspace_proto::snapshot::{ObjectKind, ObjectLine};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

/// Columns that the object keeps, at least: its own part of the name in a tree, the whole
/// name in a list.
const MIN_OWN_PART_WIDTH: usize = 26;
const MIN_NAME_WIDTH: usize = 40;

/// Room for names beyond which it goes to more columns.
const GOOD_NAME_WIDTH: usize = 44;

/// The columns that are shown unless others are chosen, in the order in which they are given room.
const BY_WORTH: [Column; 15] = [
    Column::Share,
    Column::Bar,
    Column::Time,
    Column::ReadWrite,
    Column::Latency,
    Column::Trend,
    Column::Evidence,
    Column::Samples,
    Column::Levels,
    Column::HotLine,
    Column::Threads,
    Column::Hitm,
    Column::Locked,
    Column::Rate,
    Column::TlbMisses,
];

/// Columns after the first ones need a wide terminal: a name comes before them.
const N_NARROW: usize = 7;

/// Draws the heading and the rows that fit.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState, theme: &Theme) {
    let n_visible = usize::from(area.height.saturating_sub(1));
    let n_rows = state.listing().rows.len();
    let first = state.at.fit(n_rows, n_visible);
    state.body = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let state = &*state;
    let width = usize::from(area.width);
    let columns = columns(state, width);
    let scale = Scale::new(&state.snapshot, state.arrangement().window);
    let mut lines = vec![heading(&columns, state.arrangement(), theme)];
    for (idx, row) in state.listing().rows.iter().enumerate().skip(first).take(n_visible) {
        let object = &state.snapshot.objects[row.object_idx];
        let mut line = cells(object, row, &columns, &scale, state, theme);
        let room = width.saturating_sub(line.width());
        line.push_span(label(row, object, room, theme));
        lines.push(if idx == state.at.selected { selected(line, width, theme) } else { line });
    }
    if n_rows == 0 {
        lines.push(styled(nothing(state), theme.style(Tone::Faint)));
    } else if state.listing().n_cut > 0 {
        let text = format!("… and {} more: the limit cut them", state.listing().n_cut);
        lines.push(styled(theme.drawn(&text).into_owned(), theme.style(Tone::Faint)));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// The reason that no object is listed.
fn nothing(state: &ScreenState) -> &'static str {
    let total = state.whole.objects.first();
    let sampled = |window| total.is_some_and(|total| total.metrics.get(window).samples > 0);
    if !state.arrangement().selection.filter.is_empty() || !state.lens.conditions.is_empty() {
        "no sample meets the filter: Esc takes it off"
    } else if state.lens.end_s.is_some() {
        "nothing was sampled then: 0 goes back to now"
    } else if sampled(dataspace_proto::window::Window::All) {
        "the target did not run in this window: w chooses a longer one"
    } else if state.whole.target.running {
        "waiting for the first samples: the target does not run, or touches no memory"
    } else {
        "the target has ended, and nothing of it was sampled"
    }
}

/// Name of the sort key, where its column has no room.
pub(super) fn hidden_sort(state: &ScreenState, width: usize) -> Option<String> {
    let sorted = sorted_column(state.arrangement().sort)?;
    let is_shown = |column: &Column| {
        *column == sorted || (sorted == Column::Samples && *column == Column::Share)
    };
    (!columns(state, width).iter().any(is_shown)).then(|| sorted.title().to_lowercase())
}

/// The columns: those that were chosen, else those that there is room for and something to show in.
pub(in crate::tui) fn columns(state: &ScreenState, width: usize) -> Vec<Column> {
    let is_tree = state.arrangement().is_tree;
    let name_width = if is_tree { MIN_OWN_PART_WIDTH } else { MIN_NAME_WIDTH };
    let mut left = width.saturating_sub(name_width.min(width / 2));
    // The totals alone tell of these.
    let is_seen = |column: Column| {
        let is_of_totals = matches!(column, Column::Trend | Column::HotLine | Column::Threads);
        !is_of_totals || !state.lens.is_split()
    };
    if !state.columns.is_empty() {
        let mut chosen = state.columns.clone();
        chosen.retain(|column| {
            is_seen(*column) && column.is_measured(&state.whole) && take(&mut left, *column)
        });
        return chosen;
    }
    let mut wanted = Vec::new();
    for (idx, column) in BY_WORTH.into_iter().enumerate() {
        if idx == N_NARROW {
            left = left.saturating_sub(GOOD_NAME_WIDTH.saturating_sub(name_width));
        }
        if is_seen(column) && column.is_measured(&state.whole) {
            if !take(&mut left, column) {
                break;
            }
            wanted.push(column);
        }
    }
    wanted.sort_by_key(|shown| Column::ALL.iter().position(|known| known == shown));
    wanted
}

fn take(left: &mut usize, column: Column) -> bool {
    let needed = column.width() + 1;
    let has_room = needed <= *left;
    if has_room {
        *left -= needed;
    }
    has_room
}

fn heading(columns: &[Column], arrangement: &Arrangement, theme: &Theme) -> Line<'static> {
    let arrow = theme.glyph(if arrangement.is_inverted { '▲' } else { '▼' });
    let sorted = sorted_column(arrangement.sort);
    let mut spans = Vec::new();
    let mut push = |title: &str, is_sorted: bool, width: usize, is_number: bool| {
        let title = if is_sorted { format!("{title}{arrow}") } else { title.to_owned() };
        let style = if is_sorted { theme.sorted_heading() } else { theme.heading() };
        let title: String = title.chars().take(width.max(8)).collect();
        let padding = " ".repeat(width.saturating_sub(title.chars().count()));
        let (before, after) =
            if is_number { (padding, String::new()) } else { (String::new(), padding) };
        spans.extend([Span::raw(before), Span::styled(title, style), Span::raw(after + " ")]);
    };
    let has_samples = columns.contains(&Column::Samples);
    for &column in columns {
        let is_sorted = sorted == Some(column)
            || (sorted == Some(Column::Samples) && !has_samples && column == Column::Share);
        let title = if is_sorted && column.title().chars().count() >= column.width() {
            &column.title()[..column.width() - 1]
        } else {
            column.title()
        };
        push(title, is_sorted, column.width(), column.is_number());
    }
    push("OBJECT", arrangement.sort == SortKey::Name, 0, false);
    Line::from(spans)
}

fn cells(
    object: &ObjectLine,
    row: &Row,
    columns: &[Column],
    scale: &Scale,
    state: &ScreenState,
    theme: &Theme,
) -> Line<'static> {
    let base = row_style(row, object, theme);
    let mut spans = Vec::new();
    for &column in columns {
        let width = column.width();
        let (text, style) = cell(object, column, scale, state, theme);
        let text = theme.drawn(&text).into_owned();
        let text = match column.is_number() {
            true => format!("{text:>width$} "),
            false => format!("{text:<width$} "),
        };
        spans.push(Span::styled(text, base.patch(style)));
    }
    Line::from(spans)
}

/// A row's name, with a mark whether there is more below it.
fn label(row: &Row, object: &ObjectLine, room: usize, theme: &Theme) -> Span<'static> {
    let mark = match row.fold {
        Fold::Leaf => "  ",
        Fold::Open => "▾ ",
        Fold::Closed => "▸ ",
    };
    let indent = "  ".repeat(row.depth.min(room / 4)) + &theme.drawn(mark);
    let label = elide(&row.label, room.saturating_sub(indent.chars().count()));
    Span::styled(indent + &theme.drawn(&label), row_style(row, object, theme))
}

fn row_style(row: &Row, object: &ObjectLine, theme: &Theme) -> Style {
    match object.kind {
        ObjectKind::Total => theme.style(Tone::Strong),
        _ if row.is_context || object.object.starts_with("<Unknown>") => theme.style(Tone::Faint),
        _ => Style::new(),
    }
}

fn cell(
    object: &ObjectLine,
    column: Column,
    scale: &Scale,
    state: &ScreenState,
    theme: &Theme,
) -> (String, Style) {
    let metrics = object.metrics.get(scale.window);
    let width = column.width();
    let text = match column {
        Column::Samples => short_count(metrics.samples, width),
        Column::Loads => short_count(metrics.loads, width),
        Column::Stores => short_count(metrics.stores, width),
        Column::Evidence => evidence(metrics, 1),
        Column::Threads if object.metrics.all.threads == 0 => String::new(),
        Column::Threads => object.metrics.all.threads.to_string(),
        Column::Trend => sparkline(&state.trend.cells(object.id)),
        Column::HotLine => {
            let line = state.hot_lines.get(&*object.object).map_or("", String::as_str);
            head(&visible(line), width)
        }
        _ => column.cell(metrics, scale),
    };
    let style = match column {
        Column::Evidence if text.contains(Evidence::Conflict.name()) => theme.conflict(),
        Column::Bar => theme.style(Tone::Heat),
        Column::Trend => theme.style(Tone::Faint),
        _ => Style::new(),
    };
    (text, style)
}

/// The beginning of a text that has no room.
fn head(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// A bar for each cell, as high as its part of the highest one; a blank where nothing is known.
fn sparkline(cells: &[Option<u64>]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = cells.iter().flatten().copied().max().unwrap_or(0).max(1);
    let bar = |cell: &Option<u64>| match cell {
        None | Some(0) => ' ',
        Some(count) => BARS[((count * 7).div_ceil(most) as usize).min(7)],
    };
    cells.iter().map(bar).collect()
}

const fn sorted_column(sort: SortKey) -> Option<Column> {
    match sort {
        SortKey::Samples => Some(Column::Samples),
        SortKey::Time => Some(Column::Time),
        SortKey::Loads => Some(Column::Loads),
        SortKey::Stores => Some(Column::Stores),
        SortKey::Latency => Some(Column::Latency),
        SortKey::Name => None,
    }
}
