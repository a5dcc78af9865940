//! The terminal while the screen is up: entered, drawn on, and left whatever happens.

use anyhow::Context;
use ratatui::{DefaultTerminal, Frame};

/// A terminal in raw mode showing its alternate screen. Dropping it restores the terminal; so does
/// ratatui's panic hook, before the message of a panic is printed.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn enter() -> anyhow::Result<Self> {
        let terminal = ratatui::try_init().inspect_err(|_| ratatui::restore());
        Ok(Self { terminal: terminal.context("setting up the terminal (--once needs none)")? })
    }

    /// Draws one picture.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> anyhow::Result<()> {
        self.terminal.draw(draw).context("drawing on the terminal")?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
