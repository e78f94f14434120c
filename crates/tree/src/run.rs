//! Runs, as versions, edits and tables describe them.

use crate::sketch::KnownKeys;
use base::{ExpirySpan, KeyRange, RunId, SequenceNumber};

/// An immutable sorted sequence of entries in one contiguous extent of a table file. `File` says
/// which: a version refers to the file, an edit has its number, and its writer need not know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunMetadata<File> {
    /// Its number.
    pub id: RunId,
    /// The file that holds it.
    pub file: File,
    /// Where its extent begins in the file, in bytes.
    pub offset: u64,
    /// Bytes of its extent: blocks, index, filter, footer.
    pub bytes: u64,
    /// Covers every point key and every range tombstone in it, tightly: without range tombstones it
    /// begins at the smallest key and ends at the successor of the largest.
    pub range: KeyRange,
    /// Point entries, tombstones included.
    pub entries: u64,
    /// Point tombstones.
    pub deletes: u64,
    /// Range tombstones: pairs of a fragment and a sequence number.
    pub range_deletes: u64,
    /// The smallest sequence number in it, range tombstones included; 0 for an empty run.
    pub sequence_min: SequenceNumber,
    /// The largest sequence number in it, range tombstones included.
    pub sequence_max: SequenceNumber,
    /// Its entries that expire, if any.
    pub expiry: Option<ExpirySpan>,
    /// A sketch of its keys, if this process wrote it.
    pub keys: KnownKeys,
}

impl<File> RunMetadata<File> {
    /// When a compaction pays because of its entries that expire, in milliseconds since 1970; see
    /// [`ExpirySpan::due_ms`].
    pub fn expiry_due_ms(&self, delay_ms: u64) -> Option<u64> {
        self.expiry.map(|span| span.due_ms(self.entries, delay_ms))
    }

    /// The same run, with another way to name its file.
    pub fn in_file<Other>(&self, file: Other) -> RunMetadata<Other> {
        RunMetadata {
            id: self.id,
            file,
            offset: self.offset,
            bytes: self.bytes,
            range: self.range.clone(),
            entries: self.entries,
            deletes: self.deletes,
            range_deletes: self.range_deletes,
            sequence_min: self.sequence_min,
            sequence_max: self.sequence_max,
            expiry: self.expiry,
            keys: self.keys.clone(),
        }
    }
}
