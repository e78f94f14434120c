//! fjall behind [`Store`]. A delete of a range is a delete of each key in it.

use crate::engine::{EngineOptions, failed, wal_is_fixed};
use crate::kernel;
use base::{Error, Result};
use fjall::config::{BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use workloads::store::{Counters, Direction, Store, WriteOptions};

struct Fjall {
    database: Database,
    keyspace: Keyspace,
    dir: PathBuf,
}

/// Opens fjall in `dir`.
pub fn open(dir: &Path, options: &EngineOptions) -> Result<Box<dyn Store>> {
    let database = Database::builder(dir)
        .cache_size(options.cache_bytes)
        .worker_threads((options.background_threads as usize).max(1))
        .journal_compression(CompressionType::None)
        .open()
        .map_err(|error| failed("fjall: open", error))?;
    let bloom = BloomConstructionPolicy::BitsPerKey(options.bloom_bits as f32);
    let create = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(options.write_buffer_bytes)
            .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(bloom)))
            .data_block_compression_policy(CompressionPolicy::disabled())
            .index_block_compression_policy(CompressionPolicy::disabled())
    };
    let keyspace = database
        .keyspace("default", create)
        .map_err(|error| failed("fjall: open keyspace", error))?;
    Ok(Box::new(Fjall { database, keyspace, dir: dir.to_path_buf() }))
}

impl Fjall {
    /// Makes a write that was just done as durable as asked.
    fn persist(&self, options: WriteOptions) -> Result<()> {
        if options.sync { self.sync() } else { Ok(()) }
    }

    fn check(options: WriteOptions) -> Result<()> {
        if options.disable_wal { Err(wal_is_fixed("fjall")) } else { Ok(()) }
    }
}

fn write_failed(error: fjall::Error) -> Error {
    failed("fjall: write", error)
}

fn read_failed(error: fjall::Error) -> Error {
    failed("fjall: read", error)
}

impl Store for Fjall {
    fn put(&self, key: &[u8], value: &[u8], options: WriteOptions) -> Result<()> {
        Fjall::check(options)?;
        self.keyspace.insert(key, value).map_err(write_failed)?;
        self.persist(options)
    }

    fn put_batch(&self, entries: &[(&[u8], &[u8])], options: WriteOptions) -> Result<()> {
        Fjall::check(options)?;
        let mut batch = self.database.batch();
        for (key, value) in entries {
            batch.insert(&self.keyspace, *key, *value);
        }
        batch.commit().map_err(write_failed)?;
        self.persist(options)
    }

    fn delete(&self, key: &[u8], options: WriteOptions) -> Result<()> {
        Fjall::check(options)?;
        self.keyspace.remove(key).map_err(write_failed)?;
        self.persist(options)
    }

    fn delete_range(&self, begin: &[u8], end: &[u8], options: WriteOptions) -> Result<()> {
        Fjall::check(options)?;
        for entry in self.keyspace.range(begin..end) {
            let key = entry.key().map_err(read_failed)?;
            self.keyspace.remove(key).map_err(write_failed)?;
        }
        self.persist(options)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let Some(found) = self.keyspace.get(key).map_err(read_failed)? else { return Ok(false) };
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
        let bound = start.map_or(Bound::Unbounded, Bound::Included);
        let mut entries: Box<dyn Iterator<Item = fjall::Guard>> = match direction {
            Direction::Forward => {
                Box::new(self.keyspace.range::<&[u8], _>((bound, Bound::Unbounded)))
            }
            Direction::Reverse => {
                Box::new(self.keyspace.range::<&[u8], _>((Bound::Unbounded, bound)).rev())
            }
        };
        let mut visited = 0;
        while visited < count
            && let Some(entry) = entries.next()
        {
            let (key, value) = entry.into_inner().map_err(read_failed)?;
            visit(&key, &value);
            visited += 1;
        }
        Ok(visited)
    }

    fn flush(&self) -> Result<()> {
        self.keyspace.rotate_memtable_and_wait().map_err(|error| failed("fjall: flush", error))
    }

    fn compact_all(&self) -> Result<()> {
        self.flush()?;
        self.keyspace.major_compact().map_err(|error| failed("fjall: compact", error))
    }

    fn sync(&self) -> Result<()> {
        self.database.persist(PersistMode::SyncData).map_err(|error| failed("fjall: sync", error))
    }

    fn wait_idle(&self) -> Result<()> {
        kernel::settle(&self.dir, || {
            self.database.active_compactions() > 0 || self.database.outstanding_flushes() > 0
        })
    }

    fn counters(&self) -> Result<Counters> {
        Ok(kernel::counters(&self.dir))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.sync()
    }
}
