//! Locks whose holder may have panicked: what they guard is whole at every step.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The value that `mutex` guards.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
