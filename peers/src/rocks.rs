//! RocksDB behind [`Store`], leveled compaction.

use crate::engine::{EngineOptions, VALUE_THRESHOLD_BYTES, failed};
use crate::kernel;
use base::{Error, Result};
use rocksdb::statistics::Ticker;
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Options, WaitForCompactOptions, WriteBatch,
};
use std::path::{Path, PathBuf};
use workloads::store::{Counters, Direction, Store, WriteOptions};

struct Rocks {
    database: DB,
    options: Options,
    /// With and without sync, with and without a log.
    writes: [[rocksdb::WriteOptions; 2]; 2],
    dir: PathBuf,
}

/// Opens RocksDB in `dir`.
pub fn open(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Store>> {
    open_with(dir, options, |_| {})
}

/// Opens RocksDB with large values in blob files, which compactions collect: by its defaults, the
/// oldest quarter of the files.
pub fn open_with_blobs(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Store>> {
    open_with(dir, options, |all| {
        all.set_enable_blob_files(true);
        all.set_min_blob_size(VALUE_THRESHOLD_BYTES);
        // The default, 256 MiB, belongs to a write buffer of 64 MiB.
        all.set_blob_file_size(4 * options.write_buffer_bytes);
        all.set_enable_blob_gc(true);
    })
}

fn open_with(
    dir: &Path,
    options: &EngineOptions,
    change: impl FnOnce(&mut Options),
) -> Result<Box<dyn Store>> {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(options.cache_bytes as usize));
    blocks.set_bloom_filter(options.bloom_bits as f64, false);
    let mut all = Options::default();
    all.create_if_missing(true);
    all.set_block_based_table_factory(&blocks);
    all.set_write_buffer_size(options.write_buffer_bytes as usize);
    // RocksDB's defaults, 64 MiB and 256 MiB, belong to a write buffer of 64 MiB.
    all.set_target_file_size_base(options.write_buffer_bytes);
    all.set_max_bytes_for_level_base(4 * options.write_buffer_bytes);
    all.set_compression_type(DBCompressionType::None);
    all.set_max_background_jobs(options.background_threads as i32);
    all.enable_statistics();
    change(&mut all);
    let database = DB::open(&all, dir).map_err(|error| failed("RocksDB: open", error))?;
    let writes = [false, true].map(|sync| {
        [false, true].map(|disable_wal| {
            let mut options = rocksdb::WriteOptions::default();
            options.set_sync(sync);
            options.disable_wal(disable_wal);
            options
        })
    });
    Ok(Box::new(Rocks { database, options: all, writes, dir: dir.to_path_buf() }))
}

impl Rocks {
    /// Made once: creating them for every write would cost as much as a part of it.
    fn write_options(&self, options: WriteOptions) -> &rocksdb::WriteOptions {
        &self.writes[usize::from(options.sync)][usize::from(options.disable_wal)]
    }
}

fn write_failed(error: rocksdb::Error) -> Error {
    failed("RocksDB: write", error)
}

impl Store for Rocks {
    fn put(&self, key: &[u8], value: &[u8], options: WriteOptions) -> Result<()> {
        self.database.put_opt(key, value, self.write_options(options)).map_err(write_failed)
    }

    fn put_batch(&self, entries: &[(&[u8], &[u8])], options: WriteOptions) -> Result<()> {
        let mut batch = WriteBatch::default();
        entries.iter().for_each(|(key, value)| batch.put(key, value));
        self.database.write_opt(batch, self.write_options(options)).map_err(write_failed)
    }

    fn delete(&self, key: &[u8], options: WriteOptions) -> Result<()> {
        self.database.delete_opt(key, self.write_options(options)).map_err(write_failed)
    }

    fn delete_range(&self, begin: &[u8], end: &[u8], options: WriteOptions) -> Result<()> {
        let mut batch = WriteBatch::default();
        batch.delete_range(begin, end);
        self.database.write_opt(batch, self.write_options(options)).map_err(write_failed)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let found =
            self.database.get_pinned(key).map_err(|error| failed("RocksDB: read", error))?;
        let Some(found) = found else { return Ok(false) };
        value.clear();
        value.extend_from_slice(&found);
        Ok(true)
    }

    fn scan(
        &self,
        start: Option<&[u8]>,
        count: usize,
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        let mut entries = self.database.raw_iterator();
        match (start, direction) {
            (None, Direction::Forward) => entries.seek_to_first(),
            (None, Direction::Reverse) => entries.seek_to_last(),
            (Some(key), Direction::Forward) => entries.seek(key),
            (Some(key), Direction::Reverse) => entries.seek_for_prev(key),
        }
        let mut visited = 0;
        while visited < count
            && let Some((key, value)) = entries.item()
        {
            visit(key, value);
            visited += 1;
            match direction {
                Direction::Forward => entries.next(),
                Direction::Reverse => entries.prev(),
            }
        }
        entries.status().map_err(|error| failed("RocksDB: scan", error))?;
        Ok(visited)
    }

    fn flush(&self) -> Result<()> {
        self.database.flush().map_err(|error| failed("RocksDB: flush", error))
    }

    fn compact_all(&self) -> Result<()> {
        self.database.compact_range(None::<&[u8]>, None::<&[u8]>);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.database.flush_wal(true).map_err(|error| failed("RocksDB: sync", error))
    }

    fn wait_idle(&self) -> Result<()> {
        self.database
            .wait_for_compact(&WaitForCompactOptions::default())
            .map_err(|error| failed("RocksDB: wait for compactions", error))?;
        kernel::settle(&self.dir, || false)
    }

    fn counters(&self) -> Result<Counters> {
        Ok(Counters {
            stall_ns: Some(self.options.get_ticker_count(Ticker::StallMicros) * 1000),
            ..kernel::counters(&self.dir)
        })
    }

    fn report(&self, name: &str) -> Option<String> {
        let property = format!("rocksdb.{name}");
        self.database.property_value(property.as_str()).ok().flatten()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.sync()
    }
}
