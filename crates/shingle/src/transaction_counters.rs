//! How transactions ended, for statistics.

use base::{ErrorKind, Result};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How the transactions of a database ended so far.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    committed: AtomicU64,
    conflicts: AtomicU64,
}

/// How the transactions of a database ended since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionCounters {
    /// Committed, also those that only read.
    pub committed: u64,
    /// Refused at the commit because of a conflict.
    pub conflicts: u64,
}

impl Counters {
    pub(crate) fn count(&self, outcome: &Result<()>) {
        match outcome {
            Ok(()) => self.committed.fetch_add(1, Relaxed),
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.conflicts.fetch_add(1, Relaxed)
            }
            Err(_) => 0,
        };
    }

    pub(crate) fn get(&self) -> TransactionCounters {
        TransactionCounters {
            committed: self.committed.load(Relaxed),
            conflicts: self.conflicts.load(Relaxed),
        }
    }
}
