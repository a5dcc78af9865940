//! Colours, or what stands for them where there is none.

use crate::header::Tone;
use ratatui::style::{Color, Modifier, Style};

/// Styles that tell things apart.
#[derive(Clone, Copy, Debug)]
pub(in crate::tui) struct Theme {
    has_color: bool,
}

impl Theme {
    /// With colour, or with bold, faint and reversed only.
    pub(in crate::tui) fn new(has_color: bool) -> Self {
        Self { has_color }
    }

    /// The style of a tone.
    pub(super) fn style(self, tone: Tone) -> Style {
        match tone {
            Tone::Plain => Style::new(),
            Tone::Strong => Style::new().add_modifier(Modifier::BOLD),
            Tone::Faint => Style::new().add_modifier(Modifier::DIM),
            Tone::Loss => self.colored(Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    /// The line of headings.
    pub(super) fn heading(self) -> Style {
        self.colored(Color::Cyan).add_modifier(Modifier::BOLD)
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
        self.colored(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// A contradiction between the two paths.
    pub(super) fn conflict(self) -> Style {
        self.colored(Color::Yellow)
    }

    fn colored(self, color: Color) -> Style {
        if self.has_color { Style::new().fg(color) } else { Style::new() }
    }
}
