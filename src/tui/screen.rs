//! The terminal while the screen is up: entered, drawn on, and left whatever happens.

use anyhow::Context;
use ratatui::crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use ratatui::crossterm::execute;
use ratatui::{DefaultTerminal, Frame};
use signal_hook::consts::SIGTSTP;
use std::io::{self, stdout};
use std::mem::ManuallyDrop;

/// A terminal in raw mode showing its alternate screen. Dropping it restores the terminal; so does
/// ratatui's panic hook, before the message of a panic is printed.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: ManuallyDrop<DefaultTerminal>,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn enter() -> anyhow::Result<Self> {
        let terminal = ratatui::try_init().inspect_err(|_| {
            let _ = ratatui::try_restore();
        });
        let terminal = terminal.context("setting up the terminal (--once needs none)")?;
        // One that knows no mouse ignores it.
        let _ = execute!(stdout(), EnableMouseCapture);
        Ok(Self { terminal: ManuallyDrop::new(terminal) })
    }

    /// Gives the terminal back to the shell, stops, and takes it again when the shell lets us go on.
    pub(super) fn suspend(&mut self) -> anyhow::Result<()> {
        let _ = execute!(stdout(), DisableMouseCapture);
        let _ = self.terminal.show_cursor();
        let _ = ratatui::try_restore();
        signal_hook::low_level::emulate_default_handler(SIGTSTP).context("stopping")?;
        *self = Self::enter()?;
        Ok(())
    }

    /// Draws one picture.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw)?;
        Ok(())
    }

    /// Its columns.
    pub(super) fn width(&self) -> usize {
        self.terminal.size().map_or(80, |size| usize::from(size.width))
    }

    /// Its lines.
    pub(super) fn height(&self) -> usize {
        self.terminal.size().map_or(24, |size| usize::from(size.height))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // `ratatui::restore` and the terminal's own `drop` print their failures with `eprintln!`,
        // which panics once the terminal is gone; then there is nothing to restore either. What
        // the terminal holds is memory only.
        let _ = execute!(stdout(), DisableMouseCapture);
        let _ = self.terminal.show_cursor();
        let _ = ratatui::try_restore();
    }
}
