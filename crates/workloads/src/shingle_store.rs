//! Shingle behind [`Store`]: the one place of the lab that knows an engine.
//!
//! Whether there is a log is a property of a keyspace, not of a write. So a run without a log has a
//! keyspace of its own, and every write must ask for what the keyspace is.

use crate::store::{Counters, Direction, Store, WriteOptions};
use base::env::Runtime;
use base::{Cause, Error, ErrorKind, Result};
use shingle::{Db, Durability, Keyspace, KeyspaceOptions, ReadOptions, WriteBatch};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Steps of a scan that end like an operation: about as much work as one.
const SCAN_STEPS_PER_TURN: usize = 16;

/// The keyspace of runs with a log: the one that every database has.
const KEYSPACE: &str = "default";

/// The keyspace of runs without a log.
const KEYSPACE_WITHOUT_LOG: &str = "without-log";

/// A database, and the keyspace of it that a workload runs on.
pub struct ShingleStore {
    db: Db,
    keyspace: Keyspace,
    disable_wal: bool,
    /// Reads have to give background work its turn where there are no threads.
    runtime: Option<Arc<dyn Runtime>>,
    /// Receives the bytes written, when the store is closed.
    total_write_bytes: Option<Arc<AtomicU64>>,
    /// Set by another thread: the workload is to end.
    is_cancelled: Arc<AtomicBool>,
}

impl ShingleStore {
    /// An open database for writes with a log or, if `disable_wal` is set, without. A keyspace that
    /// is missing is created.
    pub fn new(db: Db, disable_wal: bool) -> Result<ShingleStore> {
        let name = if disable_wal { KEYSPACE_WITHOUT_LOG } else { KEYSPACE };
        let keyspace = match db.keyspace(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let options =
                    KeyspaceOptions { without_wal: disable_wal, ..KeyspaceOptions::default() };
                db.create_keyspace(name, options)?
            }
            found => found?,
        };
        Ok(ShingleStore {
            db,
            keyspace,
            disable_wal,
            runtime: None,
            total_write_bytes: None,
            is_cancelled: Arc::default(),
        })
    }

    /// The same for a database that was opened in `runtime`, a simulation.
    pub fn in_runtime(self, runtime: Arc<dyn Runtime>) -> ShingleStore {
        ShingleStore { runtime: Some(runtime), ..self }
    }

    /// Adds the bytes that it wrote to its files to `total` when it is closed. What closing itself
    /// writes after the flush is not in it.
    pub fn counted_in(self, total: Arc<AtomicU64>) -> ShingleStore {
        ShingleStore { total_write_bytes: Some(total), ..self }
    }

    /// Fails its reads and writes from the moment on when another thread sets `flag`.
    pub fn cancelled_by(self, flag: Arc<AtomicBool>) -> ShingleStore {
        ShingleStore { is_cancelled: flag, ..self }
    }

    fn check_cancelled(&self) -> Result<()> {
        if self.is_cancelled.load(Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "the workload was cancelled"));
        }
        Ok(())
    }

    fn turn(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.turn();
        }
    }

    fn write(&self, batch: WriteBatch, options: WriteOptions) -> Result<()> {
        self.check_cancelled()?;
        if options.disable_wal != self.disable_wal {
            let message = "a write asks for a log where the store was opened without one, or the \
                           other way round; open the store for the writes that it gets";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        // Otherwise the database's own setting counts.
        let durability = options.sync.then_some(Durability::Synced);
        let options = shingle::WriteOptions { durability, wait: true };
        self.db.write(batch, &options)
    }
}

impl Store for ShingleStore {
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
        self.check_cancelled()?;
        let found = self.keyspace.get(key)?;
        self.turn();
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
        let mut cursor = self.keyspace.cursor(ReadOptions::default());
        for visited in 0..count {
            self.check_cancelled()?;
            match (visited, start, direction) {
                (0, None, Direction::Forward) => cursor.seek_to_first()?,
                (0, None, Direction::Reverse) => cursor.seek_to_last()?,
                (0, Some(key), Direction::Forward) => cursor.seek(key)?,
                (0, Some(key), Direction::Reverse) => cursor.seek_for_prev(key)?,
                (_, _, Direction::Forward) => cursor.next()?,
                (_, _, Direction::Reverse) => cursor.prev()?,
            }
            if visited % SCAN_STEPS_PER_TURN == 0 {
                self.turn();
            }
            if !cursor.valid() {
                return Ok(visited);
            }
            visit(cursor.key(), cursor.value());
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
            media_write_bytes: Some(host.media_write_bytes).filter(|bytes| *bytes > 0),
            wal_bytes: Some(ledger.cause(Cause::Wal).write_bytes),
            stall_ns: Some(stats.stall_ns()),
            value_ns: stats.values.times.parts().into(),
            space_bytes: Some(stats.space_bytes),
            ledger: Some(ledger.clone()),
        })
    }

    fn report(&self, name: &str) -> Option<String> {
        self.db.property(&format!("rocksdb.{name}"))
    }

    fn report_json(&self, name: &str) -> Option<String> {
        (name == "stats").then(|| self.db.stats().to_json())
    }

    fn close(self: Box<Self>) -> Result<()> {
        let ShingleStore { db, keyspace, total_write_bytes, .. } = *self;
        if let Some(total) = total_write_bytes {
            db.flush()?;
            total.fetch_add(db.stats().ledger.host().write_bytes, Relaxed);
        }
        drop(keyspace);
        db.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use media::FileStore;
    use media::mem::MemStore;
    use shingle::Options;
    use std::sync::Arc;

    fn open(disk: &Arc<MemStore>, disable_wal: bool) -> Box<ShingleStore> {
        let db = Options::new().open_store(disk.clone()).unwrap();
        Box::new(ShingleStore::new(db, disable_wal).unwrap())
    }

    fn scan(store: &ShingleStore, start: &str, count: usize, direction: Direction) -> String {
        let mut keys = Vec::new();
        let visited = store
            .scan(Some(start.as_bytes()), count, direction, &mut |key, _| {
                keys.push(String::from_utf8(key.to_vec()).unwrap());
            })
            .unwrap();
        assert_eq!(visited, keys.len());
        keys.join(" ")
    }

    #[test]
    fn what_is_written_is_read_in_both_directions_and_after_reopening() {
        for disable_wal in [false, true] {
            let disk = Arc::new(MemStore::new(Arc::default()));
            let options = WriteOptions { sync: false, disable_wal };
            let store = open(&disk, disable_wal);
            store.put_batch(&[(b"a", b"1"), (b"b", b"2"), (b"c", b"3")], options).unwrap();
            store.put(b"d", b"4", options).unwrap();
            store.delete(b"b", options).unwrap();
            store.delete_range(b"d", b"e", options).unwrap();
            assert!(store.counters().unwrap().user_write_bytes > Some(0));
            store.close().unwrap();
            let store = open(&disk, disable_wal);
            let mut value = b"old".to_vec();
            assert!(store.get(b"c", &mut value).unwrap() && value == b"3");
            assert!(!store.get(b"d", &mut value).unwrap());
            assert_eq!(scan(&store, "a", 9, Direction::Forward), "a c");
            assert_eq!(scan(&store, "b", 9, Direction::Forward), "c");
            assert_eq!(scan(&store, "b", 9, Direction::Reverse), "a");
            assert_eq!(scan(&store, "c", 1, Direction::Reverse), "c");
            store.close().unwrap();
        }
    }

    #[test]
    fn the_durability_of_the_database_counts_where_a_write_asks_for_none() {
        for durability in [Durability::Buffered, Durability::Synced] {
            let disk = Arc::new(MemStore::new(Arc::default()));
            let db = Options::new().durability(durability).open_store(disk.clone()).unwrap();
            let store = ShingleStore::new(db, false).unwrap();
            let syncs = || disk.ledger().snapshot().cause(Cause::Wal).sync_ops;
            let before = syncs();
            store.put(b"a", b"1", WriteOptions { sync: false, disable_wal: false }).unwrap();
            assert_eq!(syncs() > before, durability == Durability::Synced);
            let before = syncs();
            store.put(b"b", b"1", WriteOptions { sync: true, disable_wal: false }).unwrap();
            assert!(syncs() > before);
        }
    }

    #[test]
    fn a_write_that_does_not_fit_the_keyspace_is_refused() {
        let disk = Arc::new(MemStore::new(Arc::default()));
        for disable_wal in [false, true] {
            let store = open(&disk, disable_wal);
            let options = WriteOptions { sync: false, disable_wal: !disable_wal };
            let error = store.put(b"k", b"v", options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            store.close().unwrap();
        }
    }
}
