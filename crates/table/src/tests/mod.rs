//! Tests over whole runs: against a model, under damage, under malice.

mod damage;
mod fences;
mod golden;
mod mapped;
mod merge;
mod model;
mod sorted;
mod walking;
mod writing;

use crate::{
    BlockCache, Compression, EntryIter, Extent, Filter, PrefixRule, Run, RunSummary, TableOptions,
    TablePlace, TableWriter,
};
use base::checksum::hash64;
use base::{Cause, DatabaseId, Error, FileId, Result, RunId};
use media::{AppendFile, FileName, ReadFile, SyncFile};
use parking_lot::Mutex;
use std::sync::Arc;

pub const PLACE: TablePlace = TablePlace { database: DatabaseId(0xdb), file: FileId(7) };

/// A file in memory: what the crate needs of a store.
#[derive(Clone, Default)]
pub struct MemoryFile(Arc<Mutex<Vec<u8>>>);

impl MemoryFile {
    pub fn with(bytes: Vec<u8>) -> MemoryFile {
        MemoryFile(Arc::new(Mutex::new(bytes)))
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().clone()
    }
}

impl AppendFile for MemoryFile {
    fn append(&mut self, bytes: &[u8], _: Cause) -> Result<()> {
        self.0.lock().extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self, _: Cause) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> u64 {
        self.0.lock().len() as u64
    }

    fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        None
    }
}

impl ReadFile for MemoryFile {
    fn read_at(&self, offset: u64, into: &mut [u8], _: Cause) -> Result<()> {
        let bytes = self.0.lock();
        let found = bytes.get(offset as usize..).and_then(|rest| rest.get(..into.len()));
        let found = found.ok_or_else(|| {
            let what = format!("read past the end, there are {} bytes", bytes.len());
            Error::corruption(self.name().to_string(), offset, what)
        })?;
        into.copy_from_slice(found);
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.0.lock().len() as u64)
    }

    fn prefetch(&self, _: u64, _: u64) {}

    fn name(&self) -> FileName {
        FileName::table(PLACE.file)
    }
}

pub type Entries = Vec<(Vec<u8>, Vec<u8>)>;
pub type Tombstone = (Vec<u8>, Vec<u8>, u64);

/// Writes one run into a file of its own.
pub fn write_run(
    options: &TableOptions,
    entries: &Entries,
    tombstones: &[Tombstone],
) -> (MemoryFile, RunSummary) {
    let file = MemoryFile::default();
    let mut writer = TableWriter::create(Box::new(file.clone()), PLACE, Cause::Flush).unwrap();
    writer.begin_run(RunId(3), options).unwrap();
    for (key, value) in entries {
        writer.add(key, value).unwrap();
    }
    for (start, end, sequence) in tombstones {
        writer.add_range_delete(start, end, *sequence).unwrap();
    }
    let summary = writer.finish_run().unwrap().into_summary();
    assert_eq!(writer.finish().unwrap(), file.bytes().len() as u64);
    (file, summary)
}

pub fn open(file: &MemoryFile, summary: &RunSummary, cache: &Arc<BlockCache>) -> Result<Arc<Run>> {
    let extent = Extent::of(summary, PLACE);
    Run::open(Arc::new(file.clone()), extent, cache.clone(), Cause::OpenRun)
}

/// Every combination that lays a run out differently.
pub fn all_options() -> Vec<TableOptions> {
    let mut all = Vec::new();
    for (block_bytes, index_block_bytes) in [(1, 1), (1, 4096), (100, 60), (4096, 4096)] {
        for (restart_interval, hash_index) in [(1, false), (3, true), (16, false), (16, true)] {
            for compression in [Compression::None, Compression::Lz4, Compression::Zstd(1)] {
                for (filter, prefix) in [
                    (Filter::None, PrefixRule::None),
                    (Filter::Bloom { bits_per_key: 10 }, PrefixRule::Fixed(2)),
                    (
                        Filter::Ribbon { bits_per_key: 7 },
                        PrefixRule::Delimiter { byte: b'a', count: 1 },
                    ),
                ] {
                    all.push(TableOptions {
                        block_bytes,
                        restart_interval,
                        hash_index,
                        index_block_bytes,
                        compression,
                        filter,
                        prefix,
                    });
                }
            }
        }
    }
    all
}

pub fn hash(user_key: &[u8]) -> u64 {
    hash64(user_key)
}

#[test]
fn what_readers_share_goes_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<Run>();
    check::<BlockCache>();
    check::<crate::Bytes>();
    check::<crate::RangeDeletes>();
}

/// Everything that an iterator gives from first to last.
pub fn collect(iter: &mut dyn EntryIter) -> Result<Entries> {
    let mut entries = Entries::new();
    iter.seek_to_first()?;
    while iter.valid() {
        entries.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next()?;
    }
    Ok(entries)
}
