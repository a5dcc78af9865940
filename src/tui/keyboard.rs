//! The keyboard, and what crossterm does not say of it: that the terminal is gone.

use crate::broker;
use crate::exit::INTERRUPTED;
use anyhow::Context;
use ratatui::crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io::{IsTerminal, stdin};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use std::{process, thread};

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

/// Time in which a screen is left whose terminal is gone.
const LEAVING: Duration = Duration::from_secs(5);

/// The terminal that keys come from.
#[derive(Debug)]
pub(super) struct Keyboard {
    terminal: OwnedFd,
    _guard: HangupGuard,
}

/// Watches for the end of a terminal until it is dropped. A terminal that goes while crossterm reads keeps it reading for
/// ever (see [`Keyboard::wait`]): then nothing is left but to end the process.
#[derive(Debug)]
struct HangupGuard {
    /// Its end tells the thread that nobody reads any more.
    _open: OwnedFd,
}

impl HangupGuard {
    /// Has `end` called where this is still there `patience` after the terminal is gone.
    fn start(
        terminal: OwnedFd,
        patience: Duration,
        end: impl FnOnce() + Send + 'static,
    ) -> anyhow::Result<Self> {
        let (closed, open) = pipe_with(PipeFlags::CLOEXEC).context("a pipe")?;
        let patience = Timespec::try_from(patience).context("a wait too long")?;
        let watch = move || {
            let mut both = [
                PollFd::new(&terminal, PollFlags::empty()),
                PollFd::new(&closed, PollFlags::empty()),
            ];
            while poll(&mut both, None) == Err(Errno::INTR) {}
            if both[1].revents().is_empty() {
                let mut left = [PollFd::new(&closed, PollFlags::empty())];
                if poll(&mut left, Some(&patience)) == Ok(0) {
                    end();
                }
            }
        };
        thread::Builder::new().name("hangup".into()).spawn(watch).context("starting a thread")?;
        Ok(Self { _open: open })
    }
}

impl Keyboard {
    /// The terminal that crossterm reads: standard input, or the controlling one if that is none.
    pub(super) fn open() -> anyhow::Result<Self> {
        let terminal = if stdin().is_terminal() {
            stdin().as_fd().try_clone_to_owned()
        } else {
            File::open("/dev/tty").map(OwnedFd::from)
        };
        let terminal = terminal.context("opening the terminal for its keys (--once needs none)")?;
        let watched = terminal.try_clone().context("another descriptor of the terminal")?;
        let guard = HangupGuard::start(watched, LEAVING, || {
            broker::take_leave(INTERRUPTED);
            process::exit(INTERRUPTED.into());
        })?;
        Ok(Self { terminal, _guard: guard })
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{RecvTimeoutError, channel};

    #[test]
    fn who_still_reads_from_a_terminal_that_is_gone_is_ended() {
        let guarded = |patience| {
            // Like a terminal, a pipe hangs up when its other end is closed.
            let (terminal, other_end) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            let (sender, ended) = channel();
            let end = move || sender.send(()).unwrap();
            (HangupGuard::start(terminal, patience, end).unwrap(), other_end, ended)
        };
        let (_guard, other_end, ended) = guarded(Duration::ZERO);
        assert_eq!(ended.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Timeout));
        drop(other_end);
        ended.recv().expect("it is ended");
        // The thread ends with the guard, before the terminal or after it.
        let (guard, _other_end, ended) = guarded(Duration::ZERO);
        drop(guard);
        assert!(ended.recv().is_err(), "it was left");
        let (guard, other_end, ended) = guarded(Duration::from_secs(3600));
        drop(other_end);
        drop(guard);
        assert!(ended.recv().is_err(), "it was left in time");
    }
}
