//! Values that logs name and that no manifest vouches for, after a process ended without a clean
//! close.
//!
//! Bytes that the last process appended may be only in the system's cache. If a sync of them
//! failed, the system forgot that it has to write them, though reads still see them. No later sync
//! would write them. So they are not synced again: the first flush after the opening writes each
//! value to a new file.

use base::FileId;
use std::collections::BTreeMap;
use values::ValuePointer;

/// The bytes that the manifest vouches for, by segment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unvouched(BTreeMap<FileId, u64>);

impl Unvouched {
    /// What comes after the vouched bytes of each segment in `vouched`.
    pub(crate) fn behind(vouched: impl Iterator<Item = (FileId, u64)>) -> Unvouched {
        Unvouched(vouched.collect())
    }

    /// The only copy of the value may be in a cache.
    pub(crate) fn holds(&self, pointer: &ValuePointer) -> bool {
        self.0.get(&pointer.file).is_some_and(|&vouched| pointer.end() > vouched)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
