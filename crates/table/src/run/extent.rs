//! The place of a run in its file, and the errors that name it.

use crate::format::HEADER_BYTES;
use crate::place::TablePlace;
use crate::summary::RunSummary;
use base::{DatabaseId, Error, FileId, RunId, SequenceNumber};
use media::ReadFile;

/// The unit in which media and page caches read.
pub(super) const PAGE_BYTES: u64 = 4096;

/// The number of the run of a sorted file, in the file.
pub(crate) const SORTED_RUN: RunId = RunId(0);

/// Where a run lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The database, as the checksums know it.
    pub database: DatabaseId,
    /// The file, as the checksums know it.
    pub file: FileId,
    /// The run, as its footer names it.
    pub run: RunId,
    /// Where its extent begins in the file.
    pub offset: u64,
    /// Bytes of its extent.
    pub bytes: u64,
    /// The sequence number of every entry of a run in a sorted file, which stores none. `None`: the
    /// run stores the sequence numbers.
    pub sequence: Option<SequenceNumber>,
}

impl Extent {
    /// The extent of a run as its writer summed it up.
    pub fn of(summary: &RunSummary, place: TablePlace) -> Extent {
        Extent {
            database: place.database,
            file: place.file,
            run: summary.run.id,
            offset: summary.run.offset,
            bytes: summary.run.bytes,
            sequence: None,
        }
    }

    /// The extent of a run of `database`, as the tree knows it.
    pub fn of_run(run: &tree::Run, database: DatabaseId) -> Extent {
        if let Some(identity) = run.file.identity {
            return Extent::of_sorted(identity, run.offset + run.bytes, run.sequence_max);
        }
        let (file, offset, bytes) = (run.file.id, run.offset, run.bytes);
        Extent { database, file, run: run.id, offset, bytes, sequence: None }
    }

    /// The run of a sorted file of `file_bytes` bytes, read as of `sequence`.
    pub fn of_sorted(identity: DatabaseId, file_bytes: u64, sequence: SequenceNumber) -> Extent {
        let TablePlace { database, file } = TablePlace::of_sorted(identity);
        let (offset, bytes) = (HEADER_BYTES, file_bytes.saturating_sub(HEADER_BYTES));
        Extent { database, file, run: SORTED_RUN, offset, bytes, sequence: Some(sequence) }
    }

    /// The file, as checksums know it.
    pub fn place(&self) -> TablePlace {
        TablePlace { database: self.database, file: self.file }
    }
}

/// The error of a run that is damaged at `offset` of its file.
pub(super) fn damaged(file: &dyn ReadFile, extent: Extent, offset: u64, what: String) -> Error {
    Error::corruption(file.name().to_string(), offset, format!("run {}: {what}", extent.run))
}
