//! Values that logs name and no manifest vouches for, after a close that was none.
//!
//! What an earlier life appended may be in the system's cache alone: a sync of it failed, and the
//! system forgot that it has to write the bytes, though reads still see them. No later sync writes
//! them. So nobody syncs them again: the first flush after the opening writes each value anew.

use base::FileId;
use std::collections::BTreeMap;
use values::ValuePointer;

/// By segment, how many bytes of it the manifest vouches for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unvouched(BTreeMap<FileId, u64>);

impl Unvouched {
    /// Of each segment in `vouched`, what lies behind so many bytes.
    pub(crate) fn behind(vouched: impl Iterator<Item = (FileId, u64)>) -> Unvouched {
        Unvouched(vouched.collect())
    }

    /// The value may be in a cache alone.
    pub(crate) fn holds(&self, pointer: &ValuePointer) -> bool {
        self.0.get(&pointer.file).is_some_and(|&vouched| pointer.end() > vouched)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
