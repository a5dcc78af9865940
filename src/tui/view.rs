//! Draws a state: header, objects or a page over them, one line of news, one line of keys.

pub(in crate::tui) mod flow;
mod header;
mod help;
mod objects;
mod theme;

pub(super) use help::page as help_rows;
pub(super) use objects::columns;
pub(super) use theme::Theme;

use super::page::{Page, PageRow};
use super::state::ScreenState;
use crate::header::{Segment, Tone};
use crate::table::reason_of;
use crate::text::visible;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Padding, Paragraph};

/// Below this height the line of news is not worth its room.
const MIN_HEIGHT_FOR_NEWS: u16 = 8;

/// Draws `state` over the whole frame.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut ScreenState, theme: &Theme) {
    let area = frame.area();
    if area.width == 0 || area.height == 0 {
        return;
    }
    let header = header::lines(state, area, theme);
    let news = news(state);
    let has_news = area.height >= MIN_HEIGHT_FOR_NEWS || state.typed.is_some();
    let header_height = u16::try_from(header.len()).unwrap_or(u16::MAX).min(area.height);
    let footer_height = (1 + u16::from(has_news)).min(area.height - header_height);
    let body_height = area.height - header_height - footer_height;
    let rows = |y: u16, height: u16| Rect { x: area.x, y: area.y + y, width: area.width, height };

    frame.render_widget(Paragraph::new(header), rows(0, header_height));
    let body = rows(header_height, body_height);
    match state.pages.pop() {
        Some(mut page) => {
            state.body = draw_page(frame, body, &mut page, theme);
            state.pages.push(page);
        }
        None => objects::draw(frame, body, state, theme),
    }
    let mut footer = Vec::new();
    if has_news {
        footer.push(Line::styled(news.text, theme.style(news.tone)));
    }
    footer.push(help::line(state, area.width, theme));
    frame.render_widget(Paragraph::new(footer), rows(header_height + body_height, footer_height));
}

/// Below this height the rows need the room that titles of columns would take.
const MIN_HEIGHT_FOR_HEADING: u16 = 4;

/// Draws a page; gives where its rows are. Titles of columns that have scrolled away stay above them.
fn draw_page(frame: &mut Frame<'_>, area: Rect, page: &mut Page, theme: &Theme) -> Rect {
    let block = Block::bordered().title(page.title()).padding(Padding::horizontal(1));
    let block = block.border_set(theme.border());
    let inside = block.inner(area);
    let n_rows = page.rows.len();
    let mut without = page.at;
    let first = without.fit(n_rows, inside.height.into());
    let has_heading =
        inside.height >= MIN_HEIGHT_FOR_HEADING && page.heading_above(first).is_some();
    let body = Rect {
        y: inside.y + u16::from(has_heading),
        height: inside.height - u16::from(has_heading),
        ..inside
    };
    let n_visible = usize::from(body.height);
    let first = page.at.fit(n_rows, n_visible);
    let heading = page.heading_above(first).filter(|_| has_heading);
    let n_below = n_rows.saturating_sub(first + n_visible);
    let block = match n_below {
        0 => block,
        _ => block.title_bottom(format!(" {n_below} more {} ", theme.glyph('↓'))),
    };
    let shown = page.rows.iter().enumerate().skip(first).take(n_visible);
    let width = usize::from(inside.width);
    let lines = shown.map(|(idx, row)| page_line(row, idx == page.at.selected, width, theme));
    // Where a table ends its line stays empty: rows do not move for it.
    let heading = has_heading
        .then(|| heading.map_or_else(Line::default, |row| page_line(row, false, width, theme)));
    let lines: Vec<Line<'_>> = heading.into_iter().chain(lines).collect();
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
    body
}

fn page_line(row: &PageRow, is_selected: bool, width: usize, theme: &Theme) -> Line<'static> {
    let span = |segment: &Segment| {
        Span::styled(theme.drawn(&segment.text).into_owned(), theme.style(segment.tone))
    };
    let line = Line::from(row.segments.iter().map(span).collect::<Vec<_>>());
    if is_selected { selected(line, width, theme) } else { line }
}

/// The line of the selected row, marked over its whole width.
fn selected(line: Line<'static>, width: usize, theme: &Theme) -> Line<'static> {
    let padding = " ".repeat(width.saturating_sub(line.width()));
    let mut line = line.patch_style(theme.selected());
    line.push_span(Span::styled(padding, theme.selected()));
    line
}

/// The one line above the keys: what is typed, what a key had to say, the filters, or a word about the selected row.
pub(super) fn news(state: &ScreenState) -> Segment {
    let filter = visible(&state.arrangement().selection.filter).into_owned();
    let listing = state.listing();
    let n_matches = listing.rows.iter().filter(|row| !row.is_context).count();
    let matches = if n_matches == 1 { "1 match".into() } else { format!("{n_matches} matches") };
    if let Some(typed) = &state.typed {
        let typed = visible(typed);
        let found = match typed.strip_prefix('=') {
            Some(_) => "Enter keeps only samples for which it is true".to_owned(),
            None => matches,
        };
        return Segment::new(format!("/{typed}█  {found}"), Tone::Strong);
    }
    if let Some(message) = &state.message {
        return message.clone();
    }
    let mut filters: Vec<String> =
        state.lens.conditions.iter().map(|it| visible(&it.label).into_owned()).collect();
    if !filter.is_empty() {
        filters.push(format!("/{filter} ({matches})"));
    }
    let missing = state.missing.as_ref().filter(|_| state.lens.is_needed());
    if !filters.is_empty() {
        let missing = missing.map_or_else(String::new, |missing| format!("; {missing}"));
        let text = format!("only {}  (Esc takes it off){missing}", filters.join(" and "));
        return Segment::new(text, Tone::Strong);
    }
    if let Some(missing) = missing {
        return Segment::new(missing, Tone::Faint);
    }
    if let Some(reason) = state.selected_object().and_then(|object| reason_of(&object.object)) {
        return Segment::new(reason.sentence(), Tone::Faint);
    }
    match &state.whole.warnings[..] {
        [.., last] if state.pages.is_empty() => {
            Segment::new(format!("warning: {}", visible(last)), Tone::Loss)
        }
        _ => Segment::new("", Tone::Plain),
    }
}

/// A line in one style.
fn styled(text: impl Into<String>, style: Style) -> Line<'static> {
    Line::styled(text.into(), style)
}

#[cfg(test)]
mod tests;
