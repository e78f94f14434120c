//! The handles of a database and of its keyspaces.

use super::batch::WriteBatch;
use super::cursor::{Cursor, Iter, ReadOptions};
use super::snapshot::Snapshot;
use crate::admission::Wait;
use crate::engine::commit::Committed;
use crate::engine::operands::check_operands;
use crate::engine::scheduler::EngineWorker;
use crate::engine::{Engine, open};
use crate::keyspace::KeyspaceState;
use crate::options::{Durability, Options};
use crate::read::get::get;
use crate::read::multi_get::multi_get;
use crate::runtime::Threads;
use base::env::Runtime;
use base::{KeyspaceId, Ledger, Result};
use media::os::{OsOptions, OsStore, mappable_bytes};
use media::{FileStore, PairStore};
use std::cell::RefCell;
use std::ops::{Bound, Deref};
use std::path::Path;
use std::sync::Arc;
use table::Bytes;

/// How a single write is done.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    /// `None`: as the database was opened. [`Durability::Synced`] is refused for a keyspace without
    /// a log, where the call could not keep the promise; the database's own is not asked of it.
    pub durability: Option<Durability>,
    /// False: [`base::ErrorKind::WouldWait`] instead of waiting for background work.
    pub wait: bool,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions { durability: None, wait: true }
    }
}

/// Closes the engine when the last handle goes.
pub(crate) struct Closer {
    pub engine: Arc<Engine>,
}

impl Drop for Closer {
    fn drop(&mut self) {
        // Whoever wants to see an error calls `Db::close`.
        let _ = self.engine.close();
    }
}

/// An open database. A cheap handle: clones are the same database. Reads and writes go to the
/// keyspace `default`, see [`Keyspace`]. The database closes when [`Db::close`] is called or the
/// last handle goes.
#[derive(Clone)]
pub struct Db {
    default: Keyspace,
}

impl Deref for Db {
    type Target = Keyspace;

    fn deref(&self) -> &Keyspace {
        &self.default
    }
}

/// A keyspace of an open database: ordered keys of its own. A cheap handle.
#[derive(Clone)]
pub struct Keyspace {
    pub(crate) state: Arc<KeyspaceState>,
    pub(crate) closer: Arc<Closer>,
}

impl Options {
    /// Opens the database in the directory `path`.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Db> {
        let store = self.directory(path, Arc::new(Ledger::default()))?;
        self.open_store(Arc::new(store))
    }

    /// Opens the database in the directory `path` with the directory `cold` as its cold store: in
    /// layouts with a cold log, values that do not change go there, which may be another medium.
    /// From then on the database opens with it alone; a checkpoint has everything in one place.
    /// A database may get one at any opening: unless it only reads, the directory is made.
    /// `InvalidArgument` where `cold` is that of another database, or a database itself.
    pub fn open_with_cold(self, path: impl AsRef<Path>, cold: impl AsRef<Path>) -> Result<Db> {
        let ledger = Arc::new(Ledger::default());
        let first = self.directory(path, ledger.clone())?;
        let cold = self.cold_directory(cold, ledger)?;
        self.open_store(Arc::new(PairStore::new(Arc::new(first), Arc::new(cold))?))
    }

    /// The directory `path` as [`Options::open`] takes it: for stores that are made of several.
    pub fn directory(&self, path: impl AsRef<Path>, ledger: Arc<Ledger>) -> Result<OsStore> {
        let maps = self.expert.map_tables.unwrap_or(false);
        let os = OsOptions {
            create: self.create && !self.read_only,
            read_only: self.read_only,
            direct_background: self.direct_io,
            map_bytes_max: if maps { mappable_bytes() } else { 0 },
            open_files_max: self.expert.open_files_max,
            ..OsOptions::default()
        };
        let creates = os.create;
        let store = OsStore::open(path.as_ref(), ledger, os)?;
        if creates {
            open::check_unused(&store)?;
        }
        Ok(store)
    }

    /// The directory `path` as [`Options::open_with_cold`] takes the one of the cold store: made
    /// where it is missing, unless the opening only reads.
    pub fn cold_directory(&self, path: impl AsRef<Path>, ledger: Arc<Ledger>) -> Result<OsStore> {
        self.clone().create(true).directory(path, ledger)
    }

    /// Opens the database in `store`.
    pub fn open_store(self, store: Arc<dyn FileStore>) -> Result<Db> {
        self.open_in(store, Arc::new(Threads::new()))
    }

    /// Opens the database in `store`, with time and threads from `runtime`.
    pub fn open_in(self, store: Arc<dyn FileStore>, runtime: Arc<dyn Runtime>) -> Result<Db> {
        let engine = open::open(&self, store, runtime)?;
        if engine.settings.start_threads && !engine.read_only {
            let worker = Arc::new(EngineWorker(Arc::downgrade(&engine)));
            engine.runtime.start(worker, engine.settings.background_threads);
            engine.runtime.wake();
        }
        let state = engine.keyspace_by_id(KeyspaceId(0))?;
        Ok(Db { default: Keyspace { state, closer: Arc::new(Closer { engine }) } })
    }
}

/// A batch that grew beyond this for a large value is given back.
const BATCH_BYTES_KEPT_MAX: usize = 1 << 20;

thread_local! {
    /// Reused by single writes, so that they do not allocate.
    static BATCH: RefCell<table::batch::WriteBatch> = RefCell::default();
}

impl Keyspace {
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.closer.engine
    }

    pub(crate) fn id(&self) -> KeyspaceId {
        self.state.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Writes one operation.
    fn write_one(
        &self,
        build: impl FnOnce(&mut table::batch::WriteBatch, KeyspaceId) -> Result<()>,
    ) -> Result<Committed> {
        // Taken, not borrowed: the store below may be made of databases of its own.
        let mut batch = BATCH.take();
        batch.clear();
        let written =
            build(&mut batch, self.state.id).and_then(|()| self.engine().write(&batch, None, true));
        if batch.room_bytes() <= BATCH_BYTES_KEPT_MAX {
            BATCH.set(batch);
        }
        written
    }

    /// `key` has `value` from here on.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(|batch, id| batch.put(id, key.as_ref(), value.as_ref())).map(drop)
    }

    /// `key` is absent from here on.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(|batch, id| batch.delete(id, key.as_ref())).map(drop)
    }

    /// Hands `operand` to the keyspace's merge operator, when the key is read or compacted.
    /// `InvalidArgument` where there is none, or it refuses the operand.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        self.state.check_operand(key, operand)?;
        self.write_one(|batch, id| batch.merge(id, key, operand)).map(drop)
    }

    /// All keys from `start` to `end` (exclusive) are absent from here on. Files that lie wholly in
    /// the range go at once, when no snapshot needs them.
    pub fn delete_range(&self, start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        let (start, end) = (start.as_ref(), end.as_ref());
        let committed = self.write_one(|batch, id| batch.delete_range(id, start, end))?;
        self.engine().drop_covered(&self.state, start, end, committed)
    }

    /// The value of `key`. A value in the block cache is not copied: [`Bytes`] keeps its block.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        self.state.check_open()?;
        let moment = self.engine().moment(&self.state);
        let value = get(&moment, key.as_ref(), self.state.operator.as_ref())?;
        self.engine().count_read(key.as_ref(), value.as_ref());
        Ok(value)
    }

    /// The values of `keys`, all at one moment, in the order of the keys.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Bytes>>> {
        self.state.check_open()?;
        let moment = self.engine().moment(&self.state);
        let values = multi_get(&moment, keys, self.state.operator.as_ref())?;
        self.engine().count_reads(keys, &values);
        Ok(values)
    }

    /// Every key and value, in key order, at this moment.
    pub fn iter(&self) -> Iter {
        self.iter_with(ReadOptions::default())
    }

    /// The keys in a range.
    pub fn range(&self, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Iter {
        self.iter_with(ReadOptions::range(start, end))
    }

    /// The keys that start with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.iter_with(ReadOptions::prefix(prefix.as_ref()))
    }

    /// The keys that `options` choose.
    pub fn iter_with(&self, options: ReadOptions) -> Iter {
        Iter::new(self.cursor(options))
    }

    /// A cursor that stands nowhere.
    pub fn cursor(&self, options: ReadOptions) -> Cursor {
        let moment = self.engine().moment(&self.state);
        Cursor::new(self.engine().clone(), &self.state, moment, options, None)
    }

    /// Holds the state of this moment, of all keyspaces; reads go to this one.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.engine().clone(), self.state.clone())
    }
}

impl Db {
    /// Commits `batch`, whole.
    pub fn write(&self, batch: WriteBatch, options: &WriteOptions) -> Result<()> {
        check_operands(self.engine(), &batch.inner, batch.copies_operands)?;
        self.engine().write(&batch.inner, options.durability, options.wait).map(drop)
    }

    /// Every write that returned before this call is safe from power loss when it returns, except
    /// those to keyspaces without a log, which [`Db::flush`] alone makes safe.
    pub fn sync(&self) -> Result<()> {
        let engine = self.engine();
        engine.check_writable()?;
        let position = engine.commits.lock().position();
        engine.commits.sync_log(position)
    }

    /// Everything written before this call is in synced runs when it returns.
    pub fn flush(&self) -> Result<()> {
        self.engine().check_writable()?;
        self.engine().flush()
    }

    /// Waits until no background work is due. Not for what the database does when it is at rest.
    pub fn wait_idle(&self) -> Result<()> {
        self.engine().wait_idle()
    }

    /// What a write of `bytes` would have to wait for now.
    pub fn would_wait(&self, bytes: u64) -> Option<Wait> {
        let engine = self.engine();
        engine.admission.forecast(bytes, engine.runtime.now_ns())
    }

    /// Closes the database for all handles: what was acknowledged is safe from power loss when this
    /// returns. Iterators and snapshots stay readable.
    pub fn close(self) -> Result<()> {
        self.engine().close()
    }
}
