//! Bulk ingestion as programs see it: options, results and counters. [`crate::sorted_file`] writes
//! the files; `engine::ingest` brings them in.

use crate::json;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How sorted files are ingested; see [`Keyspace::ingest`](crate::Keyspace::ingest).
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = shingle::Options::new().open(dir.path().join("db"))?;
/// use shingle::{IngestOptions, SortedFileOptions, SortedFileWriter};
///
/// let path = dir.path().join("fruit.sorted");
/// let mut file = SortedFileWriter::create(&path, &SortedFileOptions::default())?;
/// file.put("apple", "red")?;
/// file.put("pear", "green")?;
/// file.finish()?;
///
/// let options = IngestOptions { move_files: true, ..IngestOptions::default() };
/// let ingested = db.ingest(&[&path], &options)?;
/// assert_eq!(ingested.entries, 2);
/// assert_eq!(db.get("pear")?.as_deref(), Some(&b"green"[..]));
/// assert!(!path.exists());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct IngestOptions {
    /// True: the files become files of the database, without a copy where both are in one file
    /// system, and are gone from their paths. False: the database copies them.
    pub move_files: bool,
    /// Read every byte and compare all checksums before anything changes. False: only what tells
    /// the keys of a file is read; damage elsewhere is an error of the reads that meet it.
    pub verify: bool,
    /// The files are older than all that the keyspace holds: a key that was written or deleted
    /// before keeps what it has, and operands apply to the value of the file. For a keyspace that
    /// was created with [`KeyspaceOptions::ingests_below`](crate::KeyspaceOptions), and for keys
    /// that no earlier file below covers.
    pub below: bool,
}

impl Default for IngestOptions {
    fn default() -> IngestOptions {
        IngestOptions { move_files: false, verify: true, below: false }
    }
}

/// What an ingestion did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ingested {
    /// The sequence number of all entries. Snapshots that are older do not see them. 0 for files
    /// that came in below.
    pub sequence: u64,
    /// Files that came in. Files without entries are left out.
    pub files: u64,
    /// Files that went to the deepest level that the compaction scheme allows, where no compaction
    /// needs to rewrite them soon, or below all levels. The others are in level 0.
    pub files_below_level0: u64,
    /// Entries, deletions included.
    pub entries: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Bytes that were copied; 0 where all files were linked.
    pub copied_bytes: u64,
    /// How long writers of the keyspace could not commit.
    pub held: Duration,
}

/// Ingestions of a database since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IngestCounters {
    /// Ingestions that brought something in.
    pub ingestions: u64,
    /// Their files.
    pub files: u64,
    /// Files that went below level 0.
    pub files_below_level0: u64,
    /// Their entries.
    pub entries: u64,
    /// Bytes of the files. The ledger has them only where they were copied, under the cause
    /// `ingest`.
    pub bytes: u64,
    /// Bytes that were copied.
    pub copied_bytes: u64,
}

impl IngestCounters {
    pub(crate) fn to_json(self) -> String {
        let int = |n: u64| n.to_string();
        json::object([
            ("ingestions", int(self.ingestions)),
            ("files", int(self.files)),
            ("files_below_level0", int(self.files_below_level0)),
            ("entries", int(self.entries)),
            ("bytes", int(self.bytes)),
            ("copied_bytes", int(self.copied_bytes)),
        ])
    }
}

/// The same, while they are counted.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    ingestions: AtomicU64,
    files: AtomicU64,
    files_below_level0: AtomicU64,
    entries: AtomicU64,
    bytes: AtomicU64,
    copied_bytes: AtomicU64,
}

impl Counters {
    pub(crate) fn count(&self, done: &Ingested) {
        for (counter, more) in [
            (&self.ingestions, 1),
            (&self.files, done.files),
            (&self.files_below_level0, done.files_below_level0),
            (&self.entries, done.entries),
            (&self.bytes, done.bytes),
            (&self.copied_bytes, done.copied_bytes),
        ] {
            counter.fetch_add(more, Relaxed);
        }
    }

    pub(crate) fn get(&self) -> IngestCounters {
        IngestCounters {
            ingestions: self.ingestions.load(Relaxed),
            files: self.files.load(Relaxed),
            files_below_level0: self.files_below_level0.load(Relaxed),
            entries: self.entries.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            copied_bytes: self.copied_bytes.load(Relaxed),
        }
    }
}
