//! The line of keys and the page of keys, both made from the one list of controls.

use super::Theme;
use crate::header::Tone;
use crate::tui::control::{
    CONTROLS, Control, FILTER_CONTROLS, PAGE_ACTIONS, description, key_name,
};
use crate::tui::state::{Mode, ScreenState};
use dataspace_proto::window::Window;
use ratatui::text::{Line, Span};

const GAP: &str = "  ";

/// Meanings of the numbers, below the keys.
const LEGEND: &[&str] = &[
    "",
    "share    samples of the object among those of <Total>, in the window",
    "rate     samples a second in the window",
    "latency  core cycles of a sample on average, where the hardware tells",
    "evidence how attributions were reached: by the instruction and the debug",
    "         information (type), by the data address (address), by both, or",
    "         the two disagree (conflict)",
    "lost     samples that the kernel took and nobody saw, by cause",
];

/// As many keys as fit on one line.
pub(super) fn line(state: &ScreenState, width: u16, theme: &Theme) -> Line<'static> {
    let pairs: Vec<(String, &str)> = match state.mode() {
        Mode::Filter => FILTER_CONTROLS.iter().map(|(key, word)| (key_name(*key), *word)).collect(),
        Mode::Table => shown().map(|control| (key_name(control.keys[0]), control.word)).collect(),
        Mode::Detail | Mode::Help => page_pairs(),
    };
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut used = 0;
    for (key, word) in pairs {
        let gap = if spans.is_empty() { "" } else { GAP };
        let word = Span::styled(format!(" {word}"), theme.style(Tone::Faint));
        let key = Span::styled(key, theme.key());
        let needed = gap.len() + key.width() + word.width();
        if used + needed > usize::from(width) {
            break;
        }
        used += needed;
        spans.extend([Span::raw(gap), key, word]);
    }
    Line::from(spans)
}

/// All keys that do something in this session.
pub(super) fn page(state: &ScreenState, theme: &Theme) -> Vec<Line<'static>> {
    let windows: Vec<Window> = state.snapshot().window_lengths().windows().collect();
    let names = |control: &Control| {
        let names: Vec<String> = control.keys.iter().map(|key| key_name(*key)).collect();
        names.join(" ")
    };
    let key_line = |control: &Control| {
        Some(Line::from(vec![
            Span::styled(format!("{:<8}", names(control)), theme.key()),
            Span::raw(format!(" {}", description(control, &windows)?)),
        ]))
    };
    let legend = LEGEND.iter().map(|text| Line::styled(*text, theme.style(Tone::Faint)));
    CONTROLS.iter().filter_map(key_line).chain(legend).collect()
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
        word.split(' ').next().unwrap_or(word)
    };
    controls.map(|control| (key_name(control.keys[0]), first_word(control))).collect()
}
