//! The newest findings, swapped in whole by the thread that makes them.

use super::findings::Findings;
use crate::lock::lock;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time that a view waits for fresh findings before it takes those before.
const PATIENCE: Duration = Duration::from_millis(250);

/// Time that a question waits for source lines: a line table takes some milliseconds.
const LINES_DEADLINE: Duration = Duration::from_secs(3);

/// Interval at which it is checked whether they are there.
const LINES_LOOK: Duration = Duration::from_millis(20);

/// Holds the newest findings. Making them costs, so none are made that nobody asks for.
#[derive(Debug)]
pub(super) struct Published {
    state: Mutex<PublishedState>,
    is_newer: Condvar,
    wishes: Sender<()>,
    /// Somebody has asked for the history: findings have it from now on.
    has_history: AtomicBool,
    /// Somebody has asked for source lines.
    has_lines: AtomicBool,
}

#[derive(Debug)]
struct PublishedState {
    newest: Findings,
    /// Of the reader, that had come to the analyzer when `newest` was made.
    n_ticks: u64,
    n_published: u64,
    is_final: bool,
}

impl Published {
    /// A holder of `first`, and the end at which wishes for newer ones arrive.
    pub(super) fn new(first: Findings) -> (Self, Receiver<()>) {
        let (wishes, wished) = bounded(1);
        let state = Mutex::new(PublishedState {
            newest: first,
            n_ticks: 0,
            n_published: 0,
            is_final: false,
        });
        let published = Self {
            state,
            is_newer: Condvar::new(),
            wishes,
            has_history: AtomicBool::new(false),
            has_lines: AtomicBool::new(false),
        };
        (published, wished)
    }

    /// Fresh findings with the history, where the session `keeps_history`; with the source lines of all that is in it where
    /// it `has_lines`, so far as they are found out soon.
    pub(super) fn history(&self, has_lines: bool, keeps_history: bool) -> Findings {
        // Those that are under way may be without.
        self.has_history.store(true, Ordering::Release);
        self.has_lines.fetch_or(has_lines, Ordering::AcqRel);
        let until = Instant::now() + LINES_DEADLINE;
        loop {
            let is_final = self.is_final();
            let findings = self.newest();
            let is_there = match &findings.history {
                Some(history) if has_lines => history.has_lines && history.n_lines_open == 0,
                Some(_) => true,
                None => !keeps_history,
            };
            if is_there || is_final || Instant::now() >= until {
                return findings;
            }
            std::thread::sleep(LINES_LOOK);
        }
    }

    /// Tells whether the history is to have source lines.
    pub(super) fn has_lines(&self) -> bool {
        self.has_lines.load(Ordering::Acquire)
    }

    /// Tells whether findings are to have the history.
    pub(super) fn has_history(&self) -> bool {
        self.has_history.load(Ordering::Acquire)
    }

    /// Fresh findings; those before if making them takes long.
    pub(super) fn newest(&self) -> Findings {
        let state = lock(&self.state);
        if state.is_final {
            return state.newest.clone();
        }
        let n_before = state.n_published;
        // A wish that already waits there serves us too.
        let _ = self.wishes.try_send(());
        let is_old = |state: &mut PublishedState| state.n_published == n_before && !state.is_final;
        let waited = self.is_newer.wait_timeout_while(state, PATIENCE, is_old);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.newest.clone()
    }

    /// Number of ticks of the reader's clock when the newest findings were made: a heartbeat that went
    /// through reader and analyzer.
    pub(super) fn n_ticks(&self) -> u64 {
        lock(&self.state).n_ticks
    }

    /// Swaps findings in that were made after so many ticks.
    pub(super) fn publish(&self, findings: Findings, n_ticks: u64) {
        self.swap(findings, n_ticks, false);
    }

    /// Swaps the last findings in.
    pub(super) fn publish_final(&self, findings: Findings) {
        let n_ticks = self.n_ticks();
        self.swap(findings, n_ticks, true);
    }

    /// Makes the newest findings the last ones, with a warning: the analyzer cannot make others.
    pub(super) fn end_early(&self) {
        let mut findings = lock(&self.state).newest.clone();
        let snapshot = Arc::make_mut(&mut findings.snapshot);
        snapshot.target.running = false;
        snapshot.warnings.push("the analyzer failed: the totals end here".to_owned());
        self.publish_final(findings);
    }

    /// Tells whether the newest findings are the last ones.
    pub(super) fn is_final(&self) -> bool {
        lock(&self.state).is_final
    }

    fn swap(&self, findings: Findings, n_ticks: u64, is_final: bool) {
        let mut state = lock(&self.state);
        state.newest = findings;
        state.n_ticks = n_ticks;
        state.n_published += 1;
        state.is_final = is_final;
        self.is_newer.notify_all();
    }
}
