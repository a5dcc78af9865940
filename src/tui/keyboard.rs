//! The keyboard, and what crossterm does not say of it: that the terminal is gone.

use anyhow::Context;
use ratatui::crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{IsTerminal, stdin};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Result of waiting for a key.
#[derive(Debug)]
pub(super) enum KeyInput {
    /// Something happened.
    Event(Event),
    /// Nothing did.
    Nothing,
    /// The terminal is gone: its window was closed, or the connection to it broke.
    HungUp,
}

/// The terminal that keys come from.
#[derive(Debug)]
pub(super) struct Keyboard {
    terminal: OwnedFd,
}

impl Keyboard {
    /// The terminal that crossterm reads: standard input, or the controlling one if that is none.
    pub(super) fn open() -> anyhow::Result<Self> {
        let terminal = if stdin().is_terminal() {
            stdin().as_fd().try_clone_to_owned()
        } else {
            File::open("/dev/tty").map(OwnedFd::from)
        };
        Ok(Self {
            terminal: terminal.context("opening the terminal for its keys (--once needs none)")?,
        })
    }

    /// Waits at most `wait` for something to happen.
    ///
    /// Crossterm's own wait never returns once the terminal is gone: it takes the end of the file
    /// for "try again" and spins (0.29, `event/source/unix/mio.rs`). So we wait, and let it read
    /// only from a terminal that is there.
    pub(super) fn wait(&self, wait: Duration) -> anyhow::Result<KeyInput> {
        let timeout = Timespec::try_from(wait).context("a wait too long")?;
        let mut polled = [PollFd::new(&self.terminal, PollFlags::IN)];
        match poll(&mut polled, Some(&timeout)) {
            // A signal, such as the one that says that the window has another size.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("waiting for a key"),
        }
        let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        if polled[0].revents().intersects(gone) {
            return Ok(KeyInput::HungUp);
        }
        if event::poll(Duration::ZERO).context("waiting for a key")? {
            return Ok(KeyInput::Event(event::read().context("reading a key")?));
        }
        Ok(KeyInput::Nothing)
    }
}
