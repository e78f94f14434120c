//! A length ahead of the bytes. Where appends are small and each is synced, the new length of the
//! file is most of what the system has to write: it needs a commit of the file system's journal,
//! and the bytes need none. So such a file gets its length in advance, in steps.
//!
//! - No byte is written and no block is taken: what is ahead is a hole, which reads as zeros.
//! - Only syncs pay: a file that was not synced since the last step keeps its exact length.
//! - Handles of this store see the exact length ([`Tail::set_exact_len`]). When the writer goes,
//!   the file is cut at its end. Zeros remain when the process dies or power is lost.

use super::append::Handle;
use super::calls;
use super::tail::Tail;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How far ahead a file's length is, at most. A step costs one commit of the journal, and recovery
/// reads this many zeros at most: 1 ms.
pub(super) const STEP_BYTES: u64 = 1 << 20;

/// The length of a file that has one writer.
pub(super) struct Ahead {
    tail: Arc<Tail>,
    /// A sync came since the last step.
    was_synced: Arc<AtomicBool>,
    /// The length that the system knows, as far as it is ahead.
    file_len: u64,
}

impl Ahead {
    /// For a file of `len` bytes.
    pub(super) fn new(tail: Arc<Tail>, len: u64) -> Ahead {
        tail.set_exact_len(len);
        Ahead { tail, was_synced: Arc::default(), file_len: len }
    }

    /// Set it at each sync.
    pub(super) fn was_synced(&self) -> Arc<AtomicBool> {
        self.was_synced.clone()
    }

    /// The file is about to grow to `end`.
    pub(super) fn before_append(&mut self, handle: &Handle, end: u64) {
        // One load without a sync, as for every buffered write.
        let is_due = end > self.file_len && self.was_synced.load(Ordering::Relaxed);
        if !is_due {
            return;
        }
        self.was_synced.store(false, Ordering::Relaxed);
        // A refusal costs time and nothing else: the append gives the file its length.
        if set_len(handle, end + STEP_BYTES).is_ok() {
            self.file_len = end + STEP_BYTES;
        }
    }

    /// The file has `len` bytes.
    pub(super) fn appended(&self, len: u64) {
        self.tail.set_exact_len(len);
    }

    /// The writer of `len` bytes goes.
    pub(super) fn end(&self, handle: &Handle, len: u64) {
        if self.file_len > len {
            // Zeros at its end mean nothing to readers of the file.
            let _ = set_len(handle, len);
        }
        self.tail.forget_exact_len();
    }
}

fn set_len(handle: &Handle, len: u64) -> Result<(), rustix::io::Errno> {
    calls::patiently(|| rustix::fs::ftruncate(&handle.file, len))
}
