//! Files as versions hold them.
//!
//! A file lives as long as a live version refers to it: each version that refers to it holds its
//! [`FileRef`], and the last `FileRef` to be dropped reports the file to the [`ObsoleteFiles`].
//! Nothing counts references but `Arc`, so the count is a function of the live versions and never
//! stored.

use base::{DatabaseId, FileId};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Files that no live version refers to any more. Shared by the file references of one database.
///
/// A version that was abandoned because its edit failed reports its files here too. So a database
/// whose last edit has an unknown outcome must not remove what it finds here.
#[derive(Debug, Default)]
pub struct ObsoleteFiles {
    files: Mutex<Vec<DeadFile>>,
    /// There are such files; it changes under the lock.
    has_some: AtomicBool,
}

/// A file that nothing refers to any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadFile {
    /// What it held.
    pub kind: FileRefKind,
    /// The file.
    pub id: FileId,
}

/// What a file holds that versions refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRefKind {
    /// Runs.
    Runs,
    /// Large values.
    Values,
}

impl ObsoleteFiles {
    /// Takes the files that died since the last call.
    pub fn drain(&self) -> Vec<DeadFile> {
        let mut files = self.files.lock();
        self.has_some.store(false, Ordering::Relaxed);
        std::mem::take(&mut *files)
    }

    /// Files died since the last call of [`ObsoleteFiles::drain`]. Takes no lock.
    pub fn has_some(&self) -> bool {
        self.has_some.load(Ordering::Relaxed)
    }
}

/// A file as versions hold it. One object for a file in a database, shared by all references to it.
#[derive(Debug)]
pub struct FileRef {
    /// The file.
    pub id: FileId,
    kind: FileRefKind,
    /// The identity of a sorted file that was ingested; `None` for a file of the database's own.
    /// Its checksums know this number in place of the database and the file, and its entries carry
    /// no sequence numbers: all have the one of its run.
    pub identity: Option<DatabaseId>,
    bytes: AtomicU64,
    obsolete_files: Arc<ObsoleteFiles>,
}

impl FileRef {
    /// A table file of `bytes` bytes that reports its end to `obsolete_files`.
    pub fn new(id: FileId, bytes: u64, obsolete_files: Arc<ObsoleteFiles>) -> Arc<FileRef> {
        FileRef::of(id, FileRefKind::Runs, None, bytes, obsolete_files)
    }

    /// A sorted file of `bytes` bytes that was ingested.
    pub fn new_ingested(
        id: FileId,
        identity: DatabaseId,
        bytes: u64,
        obsolete_files: Arc<ObsoleteFiles>,
    ) -> Arc<FileRef> {
        FileRef::of(id, FileRefKind::Runs, Some(identity), bytes, obsolete_files)
    }

    /// A file of values.
    pub fn new_values(id: FileId, bytes: u64, obsolete_files: Arc<ObsoleteFiles>) -> Arc<FileRef> {
        FileRef::of(id, FileRefKind::Values, None, bytes, obsolete_files)
    }

    fn of(
        id: FileId,
        kind: FileRefKind,
        identity: Option<DatabaseId>,
        bytes: u64,
        obsolete_files: Arc<ObsoleteFiles>,
    ) -> Arc<FileRef> {
        let bytes = AtomicU64::new(bytes);
        Arc::new(FileRef { id, kind, identity, bytes, obsolete_files })
    }

    /// Bytes in the file: the part that the manifest vouches for.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The file grew (an append). Never shrinks.
    pub fn grow(&self, bytes: u64) {
        self.bytes.fetch_max(bytes, Ordering::Relaxed);
    }

    /// The file has as many bytes again as before an append whose edit failed.
    pub(crate) fn shrink_back(&self, bytes: u64) {
        self.bytes.fetch_min(bytes, Ordering::Relaxed);
    }
}

impl Drop for FileRef {
    fn drop(&mut self) {
        let mut files = self.obsolete_files.files.lock();
        files.push(DeadFile { kind: self.kind, id: self.id });
        self.obsolete_files.has_some.store(true, Ordering::Relaxed);
    }
}
