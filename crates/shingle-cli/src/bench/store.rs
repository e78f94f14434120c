//! The engine as the lab's workloads see a store.

use super::temporary;
use crate::args::Device;
use lab::{Counters, Direction, Store, StoreFactory, WriteOptions};
use media::FileStore;
use media::mem::MemStore;
use shingle::{
    Cause, Db, Durability, Error, ErrorKind, Keyspace, KeyspaceOptions, Ledger, Options, Result,
    WriteBatch,
};
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The keyspace of runs that write no log: having one is a keyspace's property, not a write's.
const KEYSPACE_WITHOUT_LOG: &str = "without-log";

/// What the database lies on.
pub enum Place {
    /// A directory that the user named.
    Named(PathBuf),
    /// A directory for this run only.
    Temporary(PathBuf),
    /// Memory, kept between openings.
    Memory(Mutex<Arc<MemStore>>),
}

impl Place {
    /// Where the flags say.
    pub fn new(device: Device, named: Option<PathBuf>) -> Place {
        match (device, named) {
            (Device::Memory, _) => Place::Memory(Mutex::new(empty_memory())),
            (Device::Files, Some(path)) => Place::Named(path),
            (Device::Files, None) => Place::Temporary(temporary()),
        }
    }
}

fn empty_memory() -> Arc<MemStore> {
    Arc::new(MemStore::new(Arc::new(Ledger::default())))
}

/// Opens and removes the database of a run.
pub struct Factory {
    options: Options,
    place: Place,
    disable_wal: bool,
}

impl Factory {
    /// For a run under these options.
    pub fn new(options: Options, place: Place, disable_wal: bool) -> Factory {
        Factory { options, place, disable_wal }
    }

    /// The database is for this run only.
    pub fn is_temporary(&self) -> bool {
        matches!(self.place, Place::Temporary(_))
    }
}

impl StoreFactory for Factory {
    fn open(&self) -> Result<Box<dyn Store>> {
        let options = self.options.clone();
        let db = match &self.place {
            Place::Named(path) | Place::Temporary(path) => options.open(path)?,
            Place::Memory(store) => {
                let store: Arc<dyn FileStore> =
                    store.lock().unwrap_or_else(PoisonError::into_inner).clone();
                options.open_store(store)?
            }
        };
        let name = if self.disable_wal { KEYSPACE_WITHOUT_LOG } else { "default" };
        let keyspace = match db.keyspace(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let without_wal = self.disable_wal;
                db.create_keyspace(
                    name,
                    KeyspaceOptions { without_wal, ..KeyspaceOptions::default() },
                )?
            }
            found => found?,
        };
        Ok(Box::new(Adapter { db, keyspace }))
    }

    fn destroy(&self) -> Result<()> {
        let path = match &self.place {
            Place::Named(path) | Place::Temporary(path) => path,
            Place::Memory(store) => {
                *store.lock().unwrap_or_else(PoisonError::into_inner) = empty_memory();
                return Ok(());
            }
        };
        let Ok(mut entries) = std::fs::read_dir(path) else { return Ok(()) };
        if entries.next().is_none() {
            return Ok(());
        }
        // Only what opens as a database is removed; a mistyped path costs nobody a directory.
        let opened = Options::new().create(false).read_only(true).open(path);
        opened.and_then(Db::close).map_err(|error| {
            let message = format!(
                "{} does not open as a database and is not removed: {}",
                path.display(),
                error.message()
            );
            Error::new(error.kind(), message)
        })?;
        std::fs::remove_dir_all(path)
            .map_err(|error| Error::io(format!("remove {}", path.display()), error))
    }
}

struct Adapter {
    db: Db,
    keyspace: Keyspace,
}

impl Adapter {
    fn write(&self, batch: WriteBatch, options: WriteOptions) -> Result<()> {
        let durability = if options.sync { Durability::Synced } else { Durability::Buffered };
        let options = shingle::WriteOptions { durability: Some(durability), wait: true };
        self.db.write(batch, &options)
    }
}

impl Store for Adapter {
    fn put(&self, key: &[u8], value: &[u8], options: WriteOptions) -> Result<()> {
        self.put_batch(&[(key, value)], options)
    }

    fn put_batch(&self, entries: &[(&[u8], &[u8])], options: WriteOptions) -> Result<()> {
        let mut batch = WriteBatch::new();
        for (key, value) in entries {
            batch.put_in(&self.keyspace, key, value)?;
        }
        self.write(batch, options)
    }

    fn delete(&self, key: &[u8], options: WriteOptions) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete_in(&self.keyspace, key)?;
        self.write(batch, options)
    }

    fn delete_range(&self, begin: &[u8], end: &[u8], options: WriteOptions) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete_range_in(&self.keyspace, begin, end)?;
        self.write(batch, options)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let Some(found) = self.keyspace.get(key)? else { return Ok(false) };
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
        let mut entries = match direction {
            Direction::Forward => self.keyspace.range(bound, Bound::Unbounded),
            Direction::Reverse => self.keyspace.range(Bound::Unbounded, bound),
        };
        for visited in 0..count {
            let entry = match direction {
                Direction::Forward => entries.next(),
                Direction::Reverse => entries.next_back(),
            };
            let Some((key, value)) = entry.transpose()? else { return Ok(visited) };
            visit(&key, &value);
        }
        Ok(count)
    }

    fn flush(&self) -> Result<()> {
        self.db.flush()
    }

    fn compact_all(&self) -> Result<()> {
        self.db.compact()
    }

    fn sync(&self) -> Result<()> {
        self.db.sync()
    }

    fn wait_idle(&self) -> Result<()> {
        self.db.wait_idle()
    }

    fn counters(&self) -> Result<Counters> {
        let stats = self.db.stats();
        let (ledger, host) = (&stats.ledger, stats.ledger.host());
        Ok(Counters {
            user_write_bytes: Some(ledger.user_write_bytes),
            host_write_bytes: Some(host.write_bytes),
            host_read_bytes: Some(host.read_bytes),
            media_write_bytes: Some(ledger.media_write_bytes).filter(|bytes| *bytes > 0),
            wal_bytes: Some(ledger.cause(Cause::Wal).write_bytes),
            stall_ns: Some(stats.stall_ns()),
            space_bytes: Some(stats.space_bytes),
        })
    }

    fn report(&self, name: &str) -> Option<String> {
        match name {
            "stats" => Some(self.db.stats().to_string()),
            _ => self.db.property(&format!("rocksdb.{name}")),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Adapter { db, keyspace } = *self;
        drop(keyspace);
        db.close()
    }
}
