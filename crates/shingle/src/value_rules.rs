//! What a keyspace does with large values, and which of its segments are in use.

use base::FileId;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use values::{ValueLayout, ValueLimits};

/// What a keyspace does with large values.
pub(crate) struct ValueRules {
    pub layout: Box<dyn ValueLayout>,
    pub limits: ValueLimits,
    /// Values of so many bytes and more go to segments.
    pub threshold_bytes: u64,
    /// Segments that a job appends to or reads.
    claims: Mutex<BTreeSet<FileId>>,
}

impl ValueRules {
    pub(crate) fn new(
        layout: Box<dyn ValueLayout>,
        limits: ValueLimits,
        threshold_bytes: u64,
    ) -> ValueRules {
        ValueRules { layout, limits, threshold_bytes, claims: Mutex::default() }
    }

    /// The segments that jobs have in hand.
    pub(crate) fn claimed(&self) -> Vec<FileId> {
        let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.iter().copied().collect()
    }

    /// Takes `files` for a job; `false`, and no change, if another has one of them.
    pub(crate) fn claim(&self, files: &[FileId]) -> bool {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if files.iter().any(|file| claims.contains(file)) {
            return false;
        }
        claims.extend(files);
        true
    }

    /// A job is done with `files`.
    pub(crate) fn release(&self, files: &[FileId]) {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.retain(|claimed| !files.contains(claimed));
    }
}
