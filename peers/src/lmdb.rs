//! LMDB behind [`Store`], through heed.
//!
//! Every write is a transaction of its own, as in LMDB's db_bench; a batch is one transaction. LMDB
//! has no log: a commit writes the pages from the root to the leaf anew. `NO_SYNC` leaves them in
//! the page cache, so that a commit survives the death of the process, as the others' buffered
//! writes do. After power loss the others still open, and lose their last writes; LMDB may not
//! open. It has neither filters nor a cache of its own: the page cache serves it, its pages count
//! as memory of the process, and cache size and write buffer mean nothing to it.
#![allow(unsafe_code)]

use crate::engine::{EngineOptions, failed};
use crate::kernel;
use base::Result;
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RwTxn};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use workloads::store::{Counters, Direction, Store, WriteOptions};

/// Address space that is set apart; the file grows as it is written.
const MAP_BYTES: usize = 256 << 30;

struct Lmdb {
    env: Env,
    entries: Database<'static, Bytes, Bytes>,
    dir: PathBuf,
}

fn write_failed(error: heed::Error) -> base::Error {
    failed("LMDB: write", error)
}

fn read_failed(error: heed::Error) -> base::Error {
    failed("LMDB: read", error)
}

/// Opens LMDB in `dir`.
pub fn open(dir: &Path, _: &EngineOptions) -> Result<Box<dyn Store>> {
    let open_failed = |error: heed::Error| failed("LMDB: open", error);
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES);
    // SAFETY: the directory belongs to this run alone, on a local disk; nothing else writes the
    // mapped file, and locking stays on. What NO_SYNC risks is the store after power loss.
    let env = unsafe { options.flags(EnvFlags::NO_SYNC).open(dir) }.map_err(open_failed)?;
    let transaction = env.write_txn().map_err(open_failed)?;
    let entries = env
        .create_databases_and_commit(transaction, |databases, transaction| {
            let entries = databases.create_database::<Bytes, Bytes>(transaction, None)?;
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(entries))
        })
        .map_err(open_failed)?
        .unwrap_commit();
    Ok(Box::new(Lmdb { env, entries, dir: dir.to_path_buf() }))
}

impl Lmdb {
    /// One write transaction, as durable as asked.
    fn write(
        &self,
        options: WriteOptions,
        change: impl FnOnce(&mut RwTxn<'_>) -> heed::Result<()>,
    ) -> Result<()> {
        let mut transaction = self.env.write_txn().map_err(write_failed)?;
        change(&mut transaction).map_err(write_failed)?;
        transaction.commit().map_err(write_failed)?;
        if options.sync { self.sync() } else { Ok(()) }
    }
}

impl Store for Lmdb {
    fn put(&self, key: &[u8], value: &[u8], options: WriteOptions) -> Result<()> {
        self.write(options, |transaction| self.entries.put(transaction, key, value))
    }

    fn put_batch(&self, entries: &[(&[u8], &[u8])], options: WriteOptions) -> Result<()> {
        self.write(options, |transaction| {
            entries.iter().try_for_each(|(key, value)| self.entries.put(transaction, key, value))
        })
    }

    fn delete(&self, key: &[u8], options: WriteOptions) -> Result<()> {
        self.write(options, |transaction| self.entries.delete(transaction, key).map(|_| ()))
    }

    fn delete_range(&self, begin: &[u8], end: &[u8], options: WriteOptions) -> Result<()> {
        let range = (Bound::Included(begin), Bound::Excluded(end));
        self.write(options, |transaction| {
            self.entries.delete_range(transaction, &range).map(|_| ())
        })
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let transaction = self.env.read_txn().map_err(read_failed)?;
        let found = self.entries.get(&transaction, key).map_err(read_failed)?;
        let Some(found) = found else { return Ok(false) };
        value.clear();
        value.extend_from_slice(found);
        Ok(true)
    }

    fn scan(
        &self,
        start: Option<&[u8]>,
        count: usize,
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        let transaction = self.env.read_txn().map_err(read_failed)?;
        let start = start.map_or(Bound::Unbounded, Bound::Included);
        match direction {
            Direction::Forward => {
                let range = (start, Bound::Unbounded);
                let entries = self.entries.range(&transaction, &range).map_err(read_failed)?;
                visit_up_to(count, entries, visit)
            }
            Direction::Reverse => {
                let range = (Bound::Unbounded, start);
                let entries = self.entries.rev_range(&transaction, &range).map_err(read_failed)?;
                visit_up_to(count, entries, visit)
            }
        }
    }

    /// Nothing is buffered outside the page cache.
    fn flush(&self) -> Result<()> {
        self.sync()
    }

    /// There is nothing to compact: a page that is free is used again.
    fn compact_all(&self) -> Result<()> {
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.env.force_sync().map_err(|error| failed("LMDB: sync", error))
    }

    fn wait_idle(&self) -> Result<()> {
        self.sync()?;
        kernel::settle(&self.dir, || false)
    }

    fn counters(&self) -> Result<Counters> {
        Ok(kernel::counters(&self.dir))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.sync()?;
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}

/// Visits at most `count` entries; gives how many there were.
fn visit_up_to<'a>(
    count: usize,
    entries: impl Iterator<Item = heed::Result<(&'a [u8], &'a [u8])>>,
    visit: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<usize> {
    let mut visited = 0;
    for entry in entries.take(count) {
        let (key, value) = entry.map_err(read_failed)?;
        visit(key, value);
        visited += 1;
    }
    Ok(visited)
}
