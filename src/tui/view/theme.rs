//! Colours, or what stands for them where there is none; letters, or what stands for those that a terminal has not.

use crate::config::ThemeName;
use crate::header::Tone;
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;
use std::borrow::Cow;

/// Letters of the screen that are not in ASCII, and what is drawn where the terminal has no others.
const IN_ASCII: [(char, char); 32] = [
    ('▏', '.'),
    ('▎', '.'),
    ('▍', '-'),
    ('▌', '-'),
    ('▋', '='),
    ('▊', '='),
    ('▉', '#'),
    ('█', '#'),
    ('▁', '.'),
    ('▂', '.'),
    ('▃', ':'),
    ('▄', ':'),
    ('▅', '+'),
    ('▆', '+'),
    ('▇', '#'),
    ('▾', '-'),
    ('▸', '+'),
    ('▲', '^'),
    ('▼', 'v'),
    ('↓', 'v'),
    ('↑', '^'),
    ('←', '<'),
    ('→', '>'),
    ('·', '-'),
    ('…', '~'),
    ('⚠', '!'),
    ('│', '|'),
    ('µ', 'u'),
    ('•', '*'),
    ('─', '-'),
    ('●', '*'),
    ('○', 'o'),
];

/// Styles that tell things apart.
#[derive(Clone, Copy, Debug)]
pub(in crate::tui) struct Theme {
    has_color: bool,
    name: ThemeName,
    is_ascii: bool,
}

impl Theme {
    /// With colour, or with bold, faint and reversed only; with all letters, or with those of ASCII only.
    pub(in crate::tui) const fn new(has_color: bool, name: ThemeName, is_ascii: bool) -> Self {
        Self { has_color, name, is_ascii }
    }

    /// The style of a tone.
    pub(super) fn style(self, tone: Tone) -> Style {
        match tone {
            Tone::Plain => Style::new(),
            Tone::Strong => Style::new().add_modifier(Modifier::BOLD),
            Tone::Faint => Style::new().add_modifier(Modifier::DIM),
            Tone::Loss => self.colored(Color::Red).add_modifier(Modifier::BOLD),
            Tone::Heat => self.colored(self.of_theme(Color::Yellow, Color::Blue)),
        }
    }

    /// The line of headings.
    pub(super) fn heading(self) -> Style {
        self.colored(self.of_theme(Color::Cyan, Color::Blue)).add_modifier(Modifier::BOLD)
    }

    /// The heading of the column that sorts.
    pub(super) fn sorted_heading(self) -> Style {
        self.heading().add_modifier(Modifier::UNDERLINED)
    }

    /// The selected row.
    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A key in the help.
    pub(super) fn key(self) -> Style {
        self.heading()
    }

    /// A contradiction between the two paths.
    pub(super) fn conflict(self) -> Style {
        self.colored(self.of_theme(Color::Yellow, Color::Magenta))
    }

    /// The frame of a page.
    pub(super) fn border(self) -> border::Set<'static> {
        if !self.is_ascii {
            return border::PLAIN;
        }
        border::Set {
            top_left: "+",
            top_right: "+",
            bottom_left: "+",
            bottom_right: "+",
            vertical_left: "|",
            vertical_right: "|",
            horizontal_top: "-",
            horizontal_bottom: "-",
        }
    }

    /// A letter as the terminal has it.
    pub(super) fn glyph(self, letter: char) -> char {
        if letter.is_ascii() || !self.is_ascii {
            return letter;
        }
        let known = IN_ASCII.iter().find(|(of, _)| *of == letter);
        known.map_or('?', |(_, ascii)| *ascii)
    }

    /// A text as the terminal has it.
    pub(super) fn drawn(self, text: &str) -> Cow<'_, str> {
        match self.is_ascii && !text.is_ascii() {
            true => text.chars().map(|letter| self.glyph(letter)).collect::<String>().into(),
            false => Cow::Borrowed(text),
        }
    }

    fn of_theme(self, dark: Color, light: Color) -> Color {
        match self.name {
            ThemeName::Dark => dark,
            ThemeName::Light => light,
        }
    }

    fn colored(self, color: Color) -> Style {
        if self.has_color { Style::new().fg(color) } else { Style::new() }
    }
}
