//! Sorted files: table files that a program writes outside of a database, for bulk ingestion.
//!
//! Invariants:
//! - A sorted file has one run, directly behind its header. Both have number 0.
//! - Its checksums know a random number, the file's *identity*, in the place of the database, so
//!   that it verifies in whatever database and under whatever name it lies.
//! - Its keys ascend, and each stands once. Its entries are puts, with or without expiry, and
//!   deletions, and have sequence number 0. The database that ingests the file gives them one of
//!   its own ([`Extent::sequence`](crate::Extent::sequence)).
//! - Its range tombstones are older than its entries.

use crate::format::{FOOTER_BYTES, Footer, HEADER_BYTES, check_header};
use crate::options::TableOptions;
use crate::place::TablePlace;
use crate::run::SORTED_RUN;
use crate::summary::RunSummary;
use crate::writer::TableWriter;
use base::key::{display_key, push_internal_key};
use base::{Cause, DatabaseId, EntryKind, Error, Expiry, Result, SequenceNumber};
use media::{AppendFile, ReadFile};

/// The sequence number of its entries as they are stored.
const SEQUENCE: SequenceNumber = 0;

/// The identity of the sorted file that `file` is. `Corruption`: it is damaged, or no sorted file.
/// `Incompatible`: a table of a database, or of a newer version.
pub fn identity(file: &dyn ReadFile, cause: Cause) -> Result<DatabaseId> {
    let name = || file.name().to_string();
    let bytes = file.len()?;
    if bytes < HEADER_BYTES + FOOTER_BYTES {
        let what = format!("this is no sorted file: it has {bytes} bytes");
        return Err(Error::corruption(name(), 0, what));
    }
    let mut head = [0; HEADER_BYTES as usize];
    file.read_at(0, &mut head, cause)?;
    let identity = head[12..].first_chunk().copied().map_or(0, u64::from_le_bytes);
    let place = TablePlace::of_sorted(DatabaseId(identity));
    check_header(file, place, cause)?;
    let mut tail = [0; FOOTER_BYTES as usize];
    let at = bytes - FOOTER_BYTES;
    file.read_at(at, &mut tail, cause)?;
    let footer = Footer::decode(&tail, bytes, place);
    let footer = footer.map_err(|what| Error::corruption(name(), at, what))?;
    if (footer.run, footer.start) != (SORTED_RUN, HEADER_BYTES) {
        return Err(Error::corruption(name(), at, "a sorted file has one run"));
    }
    Ok(DatabaseId(identity))
}

/// Writes a sorted file. A wrong call is refused and changes nothing. After an error of the file
/// every call gives that error again: abandon the file.
pub struct SortedWriter {
    writer: TableWriter,
    key: Vec<u8>,
    value: Vec<u8>,
    last_key: Option<Vec<u8>>,
}

impl SortedWriter {
    /// Begins the file of this identity, which must be random.
    pub fn create(
        file: Box<dyn AppendFile>,
        identity: DatabaseId,
        options: &TableOptions,
        cause: Cause,
    ) -> Result<SortedWriter> {
        options.validate()?;
        let mut writer = TableWriter::create(file, TablePlace::of_sorted(identity), cause)?;
        writer.begin_run(SORTED_RUN, options)?;
        Ok(SortedWriter { writer, key: Vec::new(), value: Vec::new(), last_key: None })
    }

    /// Adds an entry of a key that is behind the last one.
    pub fn add(&mut self, key: &[u8], kind: EntryKind, value: &[u8]) -> Result<()> {
        if let Some(last) = self.last_key.as_ref().filter(|last| last.as_slice() >= key) {
            return Err(Error::invalid(format!(
                "the keys of a sorted file ascend: {} does not come after {}",
                display_key(key),
                display_key(last)
            )));
        }
        self.key.clear();
        push_internal_key(&mut self.key, key, SEQUENCE, kind);
        self.writer.add(&self.key, value)?;
        let last = self.last_key.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        Ok(())
    }

    /// Adds a put that ends at `expiry`. [`Expiry::NEVER`]: a put without end.
    pub fn add_expiring(&mut self, key: &[u8], value: &[u8], expiry: Expiry) -> Result<()> {
        if expiry == Expiry::NEVER {
            return self.add(key, EntryKind::Put, value);
        }
        let mut stored = std::mem::take(&mut self.value);
        stored.clear();
        expiry.push_with(value, &mut stored);
        let added = self.add(key, EntryKind::ExpiringPut, &stored);
        self.value = stored;
        added
    }

    /// Adds the tombstone of all keys from `start` to `end`, exclusive. In any order.
    pub fn add_range_delete(&mut self, start: &[u8], end: &[u8]) -> Result<()> {
        self.writer.add_range_delete(start, end, SEQUENCE)
    }

    /// Bytes of the file if it ended now, about.
    pub fn bytes(&self) -> u64 {
        HEADER_BYTES + self.writer.run_bytes()
    }

    /// Writes the rest and syncs the file; gives its bytes and what it holds.
    pub fn finish(mut self) -> Result<(u64, RunSummary)> {
        let summary = self.writer.finish_run()?.into_summary();
        Ok((self.writer.finish()?, summary))
    }
}
