//! Draws a state: header, objects or a page over them, one line of news, one line of keys.

mod detail;
mod flow;
mod help;
mod objects;
mod theme;

pub(super) use theme::Theme;

use super::state::{Mode, ScreenState};
use crate::header::{self, Segment, Shares, Tone};
use crate::table::reason_of;
use crate::text::visible;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

/// Rows of objects that the header leaves room for, if it can.
const MIN_BODY: u16 = 4;

/// Below this width, shares of the accounting line would cost it more lines than they are worth.
const NARROW: usize = 60;

/// Below this height the line of news is not worth its room.
const MIN_HEIGHT_FOR_NEWS: u16 = 12;

/// Draws `state` over the whole frame.
pub(super) fn draw(frame: &mut Frame<'_>, state: &mut ScreenState, theme: &Theme) {
    let area = frame.area();
    if area.width == 0 || area.height == 0 {
        return;
    }
    let header = header_lines(state, area, theme);
    let news = news(state);
    let has_news = area.height >= MIN_HEIGHT_FOR_NEWS || state.mode() == Mode::Filter;
    let header_height = u16::try_from(header.len()).unwrap_or(u16::MAX).min(area.height);
    let footer_height = (1 + u16::from(has_news)).min(area.height - header_height);
    let body_height = area.height - header_height - footer_height;
    let rows = |y: u16, height: u16| Rect { x: area.x, y: area.y + y, width: area.width, height };

    frame.render_widget(Paragraph::new(header), rows(0, header_height));
    draw_body(frame, rows(header_height, body_height), state, theme);
    let mut footer = Vec::new();
    if has_news {
        footer.push(Line::styled(news.text, theme.style(news.tone)));
    }
    footer.push(help::line(state, area.width, theme));
    frame.render_widget(Paragraph::new(footer), rows(header_height + body_height, footer_height));
}

fn draw_body(frame: &mut Frame<'_>, area: Rect, state: &mut ScreenState, theme: &Theme) {
    let inner_width = usize::from(area.width.saturating_sub(4));
    let (title, lines) = match state.mode() {
        Mode::Table | Mode::Filter => return objects::draw(frame, area, state, theme),
        Mode::Help => (" keys ", help::page(state, theme)),
        Mode::Detail => (" object ", detail::page(state, inner_width, theme)),
    };
    let block = Block::bordered().title(title).padding(ratatui::widgets::Padding::horizontal(1));
    let n_visible = usize::from(block.inner(area).height);
    let first = state.fit_page(lines.len(), n_visible);
    let n_below = lines.len().saturating_sub(first + n_visible);
    let block =
        if n_below > 0 { block.title_bottom(format!(" {n_below} more ↓ ")) } else { block };
    let shown: Vec<Line<'_>> = lines.into_iter().skip(first).take(n_visible).collect();
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(shown).block(block), area);
}

/// The header. Where there is no room for all of it, costs go first, then events; the accounting
/// line stays, as whole as the screen can hold it.
fn header_lines(state: &ScreenState, area: Rect, theme: &Theme) -> Vec<Line<'static>> {
    let snapshot = state.snapshot();
    let width = usize::from(area.width);
    let mut target = header::target(snapshot);
    target.push(Segment::new(format!("window {}", state.arrangement().window), Tone::Plain));
    if state.is_paused() {
        target.insert(0, Segment::new("PAUSED", Tone::Strong));
    }
    let hidden_sort = objects::hidden_sort(state, width);
    target.extend(hidden_sort.map(|key| Segment::new(format!("sorted by {key}"), Tone::Plain)));
    let shares = if width < NARROW { Shares::Omitted } else { Shares::Shown };
    let target = flow::lines(&target, " · ", width, theme);
    let events = flow::lines(&header::events(snapshot), " · ", width, theme);
    let accounting = flow::lines(&header::accounting(snapshot, shares), " ", width, theme);
    let cost = flow::lines(&header::cost(snapshot), " · ", width, theme);

    let room = usize::from(area.height.saturating_sub(1 + MIN_BODY)).max(1);
    let mut left = room.saturating_sub(accounting.len());
    let mut take = |mut lines: Vec<Line<'static>>, is_cut: bool| {
        if lines.len() > left && !is_cut {
            return Vec::new();
        }
        lines.truncate(left);
        left -= lines.len();
        lines
    };
    let (target, events, cost) = (take(target, true), take(events, false), take(cost, false));
    let whole = [target, events, accounting, cost].concat();
    // Without room for anything else, the accounting is what is left of the header.
    whole.into_iter().take(usize::from(area.height.saturating_sub(2)).max(1)).collect()
}

/// The one line above the keys: the filter, what the selected reason means, or a warning.
fn news(state: &ScreenState) -> Segment {
    let filter = visible(&state.arrangement().selection.filter).into_owned();
    let listing = state.listing();
    let n_matches = listing.rows.iter().filter(|row| !row.is_context).count().saturating_sub(1);
    let matches = if n_matches == 1 { "1 match".into() } else { format!("{n_matches} matches") };
    if state.mode() == Mode::Filter {
        return Segment::new(format!("/{filter}█  {matches}"), Tone::Strong);
    }
    if let Some(reason) = state.selected_object().and_then(|object| reason_of(&object.object)) {
        return Segment::new(reason.sentence(), Tone::Faint);
    }
    if !filter.is_empty() {
        return Segment::new(format!("filter /{filter}  {matches}, Esc clears"), Tone::Strong);
    }
    match &state.snapshot().warnings[..] {
        [] => Segment::new("", Tone::Plain),
        [only] => Segment::new(format!("warning: {}", visible(only)), Tone::Loss),
        [.., last] => {
            let n_more = state.snapshot().warnings.len() - 1;
            let text = format!("warning: {} (+{n_more}: see <Total>)", visible(last));
            Segment::new(text, Tone::Loss)
        }
    }
}

/// A line in one style.
fn styled(text: impl Into<String>, style: Style) -> Line<'static> {
    Line::styled(text.into(), style)
}

#[cfg(test)]
mod tests;
