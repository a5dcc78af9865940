//! The newest snapshot, swapped in whole by the thread that makes it.

use crossbeam_channel::{Receiver, Sender, bounded};
use dataspace_proto::snapshot::Snapshot;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a view waits for a fresh snapshot before it takes the one before.
const PATIENCE: Duration = Duration::from_millis(250);

/// Holds the newest snapshot. Making one costs, so none is made that nobody asks for.
#[derive(Debug)]
pub(super) struct Published {
    state: Mutex<State>,
    is_newer: Condvar,
    wishes: Sender<()>,
}

#[derive(Debug)]
struct State {
    newest: Arc<Snapshot>,
    /// Of the reader, that had come to the analyzer when `newest` was made.
    n_ticks: u64,
    n_published: u64,
    is_final: bool,
}

impl Published {
    /// A holder of `first`, and the end at which wishes for a newer one arrive.
    pub(super) fn new(first: Snapshot) -> (Self, Receiver<()>) {
        let (wishes, wished) = bounded(1);
        let newest = Arc::new(first);
        let state = Mutex::new(State { newest, n_ticks: 0, n_published: 0, is_final: false });
        (Self { state, is_newer: Condvar::new(), wishes }, wished)
    }

    /// A fresh snapshot; the one before if making one takes long.
    pub(super) fn newest(&self) -> Arc<Snapshot> {
        let state = self.lock();
        if state.is_final {
            return Arc::clone(&state.newest);
        }
        let n_before = state.n_published;
        // A wish that already waits there serves us too.
        let _ = self.wishes.try_send(());
        let is_old = |state: &mut State| state.n_published == n_before && !state.is_final;
        let waited = self.is_newer.wait_timeout_while(state, PATIENCE, is_old);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&state.newest)
    }

    /// How often the reader's clock had ticked when the newest snapshot was made: a heartbeat that went
    /// through reader, analyzer and snapshot.
    pub(super) fn n_ticks(&self) -> u64 {
        self.lock().n_ticks
    }

    /// Swaps a snapshot in.
    pub(super) fn publish(&self, snapshot: Snapshot) {
        self.publish_at(snapshot, 0);
    }

    /// Swaps a snapshot in that was made after so many ticks.
    pub(super) fn publish_at(&self, snapshot: Snapshot, n_ticks: u64) {
        self.swap(snapshot, n_ticks, false);
    }

    /// Swaps the last snapshot in.
    pub(super) fn publish_final(&self, snapshot: Snapshot) {
        let n_ticks = self.n_ticks();
        self.swap(snapshot, n_ticks, true);
    }

    /// Makes the newest snapshot the last one, with a warning: the analyzer cannot make another.
    pub(super) fn end_early(&self) {
        let mut snapshot = Snapshot::clone(&self.lock().newest);
        snapshot.target.running = false;
        snapshot.warnings.push("the analyzer failed: the totals end here".to_owned());
        self.publish_final(snapshot);
    }

    /// Whether the newest snapshot is the last one.
    pub(super) fn is_final(&self) -> bool {
        self.lock().is_final
    }

    fn swap(&self, snapshot: Snapshot, n_ticks: u64, is_final: bool) {
        let mut state = self.lock();
        state.newest = Arc::new(snapshot);
        state.n_ticks = n_ticks;
        state.n_published += 1;
        state.is_final = is_final;
        self.is_newer.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
