//! The place of a run in its file, and the errors that name it.

use crate::place::TablePlace;
use crate::sorted;
use crate::summary::RunSummary;
use base::{DatabaseId, Error, FileId, RunId, SequenceNumber};
use media::ReadFile;

/// The unit in which media and page caches read.
pub(super) const PAGE_BYTES: u64 = 4096;

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
            return sorted::extent(identity, run.offset + run.bytes, run.sequence_max);
        }
        let (file, offset, bytes) = (run.file.id, run.offset, run.bytes);
        Extent { database, file, run: run.id, offset, bytes, sequence: None }
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
