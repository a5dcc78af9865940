//! Progress of long work, on a terminal.

use std::io::{IsTerminal as _, Write as _, stderr};

/// A text on one line of the terminal that standard error is, wiped at the end.
pub(super) struct ProgressText {
    is_shown: bool,
    is_begun: bool,
}

impl ProgressText {
    pub(super) fn new() -> Self {
        Self { is_shown: stderr().is_terminal(), is_begun: false }
    }

    /// Puts `text` in the place of the one before: it is as long at least.
    pub(super) fn tell(&mut self, text: &str) {
        if self.is_shown {
            self.is_begun = true;
            // A terminal that is gone is no reason to stop the work.
            let _ = write!(stderr(), "\r{text}");
        }
    }
}

impl Drop for ProgressText {
    fn drop(&mut self) {
        if self.is_begun {
            // ECMA-48, erase in line.
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
