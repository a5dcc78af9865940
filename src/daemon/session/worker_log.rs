//! Log of a worker that is our child: it reaches ours line by line, so that who took the worker over can neither empty it
//! nor fill it, nor write to a terminal.

use crate::text::visible;
use std::io::{BufRead as _, BufReader, Read};
use std::process::ChildStderr;
use std::time::{Duration, Instant};

/// Longest line.
const MAX_LINE_BYTES: u64 = 2 << 10;

/// Lines within [`INTERVAL`]; more are left out.
const MAX_LINES: usize = 200;

const INTERVAL: Duration = Duration::from_secs(60);

/// Says what worker `pid` says, until it says nothing more.
pub(crate) fn relay(pid: u32, said: ChildStderr) {
    let mut pace = Pace { began: Instant::now(), n_lines: 0 };
    lines(said, |line| {
        if !pace.has_room(Instant::now()) {
            return;
        }
        let line = visible(line);
        // As tracing writes it: the level, then the rest.
        let (level, rest) = line.trim_start().split_once(' ').unwrap_or_default();
        match level {
            "ERROR" => tracing::error!(worker = pid, "{rest}"),
            "WARN" => tracing::warn!(worker = pid, "{rest}"),
            "INFO" => tracing::info!(worker = pid, "{rest}"),
            "DEBUG" => tracing::debug!(worker = pid, "{rest}"),
            "TRACE" => tracing::trace!(worker = pid, "{rest}"),
            _ => tracing::warn!(worker = pid, "{line}"),
        }
    });
}

/// Lines in the present interval.
#[derive(Debug)]
struct Pace {
    began: Instant,
    n_lines: usize,
}

impl Pace {
    fn has_room(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.began) >= INTERVAL {
            *self = Self { began: now, n_lines: 0 };
        }
        self.n_lines += 1;
        self.n_lines <= MAX_LINES
    }
}

/// Gives each line of `said` to `take`; one that is too long in parts.
fn lines(said: impl Read, mut take: impl FnMut(&str)) {
    let mut said = BufReader::new(said);
    let mut line = Vec::new();
    while said.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        take(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_longest_one_and_a_pace() {
        let mut taken = Vec::new();
        let said = ["x\n".to_owned(), "y".repeat(3 << 10), "\nz".to_owned()].concat();
        lines(said.as_bytes(), |line| taken.push(line.len()));
        assert_eq!(taken, [1, 2 << 10, 1 << 10, 1]);
        let began = Instant::now();
        let mut pace = Pace { began, n_lines: 0 };
        assert_eq!((0..1_000).filter(|_| pace.has_room(began)).count(), MAX_LINES);
        assert!(pace.has_room(began + INTERVAL));
    }
}
