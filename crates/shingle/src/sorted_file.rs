//! Sorted files: what a program writes outside of a database, for [`crate::Keyspace::ingest`].

use crate::runtime::Threads;
use base::env::Runtime;
use base::expiry::EXPIRY_BYTES;
use base::key::TRAILER_BYTES;
use base::{Cause, DatabaseId, EntryKind, Expiry, KeyRange, Ledger, Result};
use media::os::outside;
use std::path::Path;
use std::sync::Arc;
use table::sorted::SortedWriter;
use table::{Compression, Filter, PrefixRule, TableOptions};

/// How a sorted file is laid out. A database reads every layout; a compaction that rewrites the
/// file uses the options of the database.
///
/// ```
/// use shingle::{Compression, SortedFileOptions};
///
/// let options = SortedFileOptions { compression: Compression::Lz4, ..Default::default() };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SortedFileOptions {
    /// How blocks are compressed.
    pub compression: Compression,
    /// Bytes of a data block before compression.
    pub block_bytes: u32,
    /// Bits of Bloom filter for each key; 0: no filter.
    pub filter_bits_per_key: u8,
    /// The part of a key that the filter contains beside the whole key: that of the keyspace
    /// ([`KeyspaceOptions::prefix`](crate::KeyspaceOptions::prefix)), so that prefix scans can
    /// skip the file.
    pub prefix: PrefixRule,
}

impl Default for SortedFileOptions {
    fn default() -> SortedFileOptions {
        SortedFileOptions {
            compression: Compression::Zstd(1),
            block_bytes: 4096,
            filter_bits_per_key: 10,
            prefix: PrefixRule::None,
        }
    }
}

impl SortedFileOptions {
    /// The layout of a table.
    pub(crate) fn of_table(options: &TableOptions) -> SortedFileOptions {
        let filter_bits_per_key = match options.filter {
            Filter::None => 0,
            Filter::Bloom { bits_per_key } => bits_per_key,
            // The Bloom filter of that false positive rate.
            Filter::Ribbon { bits_per_key } => {
                (f64::from(bits_per_key) / std::f64::consts::LN_2).round() as u8
            }
        };
        SortedFileOptions {
            compression: options.compression,
            block_bytes: options.block_bytes,
            filter_bits_per_key,
            prefix: options.prefix,
        }
    }

    fn table_options(&self) -> TableOptions {
        let filter = match self.filter_bits_per_key {
            0 => Filter::None,
            bits_per_key => Filter::Bloom { bits_per_key },
        };
        TableOptions {
            block_bytes: self.block_bytes,
            compression: self.compression,
            filter,
            prefix: self.prefix,
            ..TableOptions::default()
        }
    }
}

/// What a sorted file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SortedFileSummary {
    /// Covers all keys and all deleted ranges; empty for a file without any.
    pub range: KeyRange,
    /// Entries, deletions included.
    pub entries: u64,
    /// Deletions of single keys.
    pub deletes: u64,
    /// Values that expire.
    pub expiring: u64,
    /// Deleted ranges; ranges that overlap count as often as they cut each other.
    pub range_deletes: u64,
    /// Bytes of keys and values.
    pub user_bytes: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Writes a sorted file, which [`Keyspace::ingest`](crate::Keyspace::ingest) brings into a
/// database. It needs no database, and any number of writers can work in parallel, each on a file
/// of its own.
///
/// Keys ascend, and each key stands once. A file that is not finished, such as one whose writer was
/// dropped, is no sorted file; remove it.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("part-1.sorted");
/// use shingle::{SortedFileOptions, SortedFileWriter};
///
/// let mut file = SortedFileWriter::create(&path, &SortedFileOptions::default())?;
/// file.put("apple", "red")?;
/// file.delete("banana")?;
/// assert!(file.put("apple", "green").is_err()); // out of order
/// let summary = file.finish()?;
/// assert_eq!((summary.entries, summary.deletes), (2, 1));
/// # Ok(())
/// # }
/// ```
pub struct SortedFileWriter {
    writer: SortedWriter,
}

impl SortedFileWriter {
    /// Creates the file at `path`.
    ///
    /// # Errors
    ///
    /// - [`AlreadyExists`](crate::ErrorKind::AlreadyExists): there is a file at `path`.
    /// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): no file can be written with these
    ///   options.
    /// - [`Io`](crate::ErrorKind::Io): the system cannot create the file.
    pub fn create(path: impl AsRef<Path>, options: &SortedFileOptions) -> Result<SortedFileWriter> {
        let options = options.table_options();
        options.validate()?;
        let file = outside::create(path.as_ref(), Arc::new(Ledger::default()))?;
        let identity = DatabaseId(Threads::new().random_u64());
        let writer = SortedWriter::create(file, identity, &options, Cause::Ingest)?;
        Ok(SortedFileWriter { writer })
    }

    /// Adds `key` with `value`. `key` must come after the key before it.
    ///
    /// # Errors
    ///
    /// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): the keys are out of order, and the
    ///   message names both; or the key or the value exceeds its limit. The file is unchanged.
    /// - [`Io`](crate::ErrorKind::Io), [`NoSpace`](crate::ErrorKind::NoSpace): the system cannot
    ///   write. Every later call fails too.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.writer.add(key.as_ref(), EntryKind::Put, value.as_ref())
    }

    /// Adds `key` with `value` until `expiry`. From then on the key is missing. `key` must come
    /// after the key before it.
    ///
    /// The time to live of a keyspace does not apply to files: what [`SortedFileWriter::put`] adds
    /// does not end, also in such a keyspace.
    /// [`Keyspace::expiry_after`](crate::Keyspace::expiry_after) gives the expiry for a time to
    /// live.
    ///
    /// # Errors
    ///
    /// As for [`SortedFileWriter::put`].
    pub fn put_expiring(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: Expiry,
    ) -> Result<()> {
        self.writer.add_expiring(key.as_ref(), value.as_ref(), expiry)
    }

    /// Adds the deletion of `key`, which hides the older value in the database. `key` must come
    /// after the key before it.
    ///
    /// # Errors
    ///
    /// As for [`SortedFileWriter::put`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.writer.add(key.as_ref(), EntryKind::Delete, &[])
    }

    /// Adds the deletion of all keys from `start` to `end` (exclusive). It hides what is older in
    /// the database; entries of this file are newer, and stay. In any order.
    ///
    /// # Errors
    ///
    /// As for [`SortedFileWriter::put`]; also
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) where the range is empty.
    pub fn delete_range(&mut self, start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.writer.add_range_delete(start.as_ref(), end.as_ref())
    }

    /// Bytes of the file if it ended now, about.
    pub fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// Writes what is left and makes the file durable.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::ErrorKind::Io), [`NoSpace`](crate::ErrorKind::NoSpace): the system cannot
    /// write or sync. The file is no sorted file then.
    pub fn finish(self) -> Result<SortedFileSummary> {
        let (bytes, summary) = self.writer.finish()?;
        Ok(SortedFileSummary {
            user_bytes: user_bytes(&summary),
            expiring: expiring(&summary),
            range: summary.run.range,
            entries: summary.run.entries,
            deletes: summary.run.deletes,
            range_deletes: summary.run.range_deletes,
            bytes,
        })
    }
}

fn expiring(summary: &table::RunSummary) -> u64 {
    summary.run.expiry.map_or(0, |span| span.entries)
}

/// Bytes of the keys and values of a sorted file.
pub(crate) fn user_bytes(summary: &table::RunSummary) -> u64 {
    let trailer_bytes = summary.run.entries * TRAILER_BYTES as u64;
    let expiry_bytes = expiring(summary) * EXPIRY_BYTES as u64;
    let value_bytes = summary.raw_value_bytes.saturating_sub(expiry_bytes);
    summary.raw_key_bytes.saturating_sub(trailer_bytes) + value_bytes
}
