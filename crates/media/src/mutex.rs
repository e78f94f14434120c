//! Locks of memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`. Every holder leaves the state whole, so a panic elsewhere does not spoil it.
pub(crate) fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
