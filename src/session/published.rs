//! The newest snapshot, swapped in whole by the thread that makes it.

use dataspace_proto::snapshot::Snapshot;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Holds the newest snapshot, and whether somebody waits for a newer one: making one costs, so
/// none is made that nobody asks for.
#[derive(Debug)]
pub(super) struct Published {
    newest: Mutex<Arc<Snapshot>>,
    is_wanted: AtomicBool,
    is_final: AtomicBool,
}

impl Published {
    pub(super) fn new(first: Snapshot) -> Self {
        Self {
            newest: Mutex::new(Arc::new(first)),
            is_wanted: AtomicBool::new(true),
            is_final: AtomicBool::new(false),
        }
    }

    /// The newest snapshot; asks for a newer one.
    pub(super) fn newest(&self) -> Arc<Snapshot> {
        self.is_wanted.store(true, Ordering::Release);
        Arc::clone(&self.newest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether somebody asked since the last snapshot; takes the wish.
    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted.swap(false, Ordering::AcqRel)
    }

    /// Swaps a snapshot in.
    pub(super) fn publish(&self, snapshot: Snapshot) {
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
    }

    /// Swaps the last snapshot in.
    pub(super) fn publish_final(&self, snapshot: Snapshot) {
        self.publish(snapshot);
        self.is_final.store(true, Ordering::Release);
    }

    /// Whether the newest snapshot is the last one.
    pub(super) fn is_final(&self) -> bool {
        self.is_final.load(Ordering::Acquire)
    }
}
