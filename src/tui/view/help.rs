//! The line of keys and the page of keys, both made from the one list of controls.

use super::Theme;
use crate::column::Column;
use crate::header::{Segment, Tone};
use crate::tui::control::{
    CONTROLS, Control, FILTER_CONTROLS, PAGE_ACTIONS, description, key_name,
};
use crate::tui::page::{Meaning, PageRow};
use crate::tui::state::ScreenState;
use dataspace_proto::window::Window;
use ratatui::text::{Line, Span};

const GAP: &str = "  ";

/// As many keys as fit on one line.
pub(super) fn line(state: &ScreenState, width: u16, theme: &Theme) -> Line<'static> {
    let pairs: Vec<(String, &str)> = if state.typed.is_some() {
        FILTER_CONTROLS.iter().map(|(key, word)| (key_name(*key), *word)).collect()
    } else if state.pages.is_empty() {
        shown().map(|control| (key_name(control.keys[0]), control.word)).collect()
    } else {
        page_pairs()
    };
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut used = 0;
    for (key, word) in pairs {
        let gap = if spans.is_empty() { "" } else { GAP };
        let word = Span::styled(format!(" {word}"), theme.style(Tone::Faint));
        let key = Span::styled(theme.drawn(&key).into_owned(), theme.key());
        let needed = gap.len() + key.width() + word.width();
        if used + needed > usize::from(width) {
            break;
        }
        used += needed;
        spans.extend([Span::raw(gap), key, word]);
    }
    Line::from(spans)
}

/// All keys that do something in this session, then what the columns tell.
pub(in crate::tui) fn page(state: &ScreenState) -> Vec<PageRow> {
    let windows: Vec<Window> = state.whole.window_lengths().windows().collect();
    let names = |control: &Control| {
        let names: Vec<String> = control.keys.iter().map(|key| key_name(*key)).collect();
        names.join(" ")
    };
    let key_row = |control: &Control| {
        let key = Segment::new(format!("{:<8}", names(control)), Tone::Strong);
        let text = Segment::new(format!(" {}", description(control, &windows)?), Tone::Plain);
        Some(PageRow { segments: vec![key, text], meaning: Meaning::Text })
    };
    let faint = |text: String| PageRow::text(text, Tone::Faint);
    let column_row = |column: &Column| faint(format!("{:<9}{}", column.name(), column.meaning()));
    let heading =
        ["", "Columns: of the window, but for threads"].map(|text| faint(text.to_owned()));
    let accounts = [
        "",
        "named      samples with a data object",
        "unknown    samples without one; <Unknown> has them by reason",
        "waiting    samples whose debug information is still being read",
        "no memory  samples of instructions that touch no memory",
        "lost       samples that the kernel took and nobody saw",
    ]
    .map(|text| faint(text.to_owned()));
    let keys = CONTROLS.iter().filter_map(key_row);
    keys.chain(accounts).chain(heading).chain(Column::ALL.iter().map(column_row)).collect()
}

fn shown() -> impl Iterator<Item = &'static Control> {
    CONTROLS.iter().filter(|control| !control.word.is_empty())
}

fn page_pairs() -> Vec<(String, &'static str)> {
    let controls = PAGE_ACTIONS
        .iter()
        .filter_map(|action| CONTROLS.iter().find(|control| control.action == *action));
    let first_word = |control: &Control| {
        let word = if control.word.is_empty() { control.description } else { control.word };
        match word.split(' ').next().unwrap_or(word) {
            "quit" => "close",
            "only" => "filter by it",
            word => word,
        }
    };
    controls.map(|control| (key_name(control.keys[0]), first_word(control))).collect()
}
