//! What workloads and devices are watched by: a store that takes the time of each call, and the
//! bands that merges write into.

use base::{Cause, Result};
use devices::simulation::Write;
use lab::shingle_store::ShingleStore;
use lab::store::{Counters, Direction, WriteOptions};
use lab::{Clock, Store, VirtualClock};
use shingle::Db;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bands that each merge wrote into, summed over merges. A merge ends with its edit.
#[derive(Default)]
pub struct Bands {
    band_bytes: u64,
    state: Mutex<(BTreeSet<u64>, u64)>,
}

impl Bands {
    /// Bands of so many bytes; 0: none.
    pub fn new(band_bytes: u64) -> Bands {
        Bands { band_bytes, state: Mutex::default() }
    }

    /// A write to the device.
    pub fn note(&self, write: Write) {
        if self.band_bytes == 0 {
            return;
        }
        let (open, total) = &mut *hold(&self.state);
        match write.cause {
            Cause::Compaction(_) => {
                let (first, end) = (write.offset, write.offset + write.bytes);
                open.extend(first / self.band_bytes..end.div_ceil(self.band_bytes));
            }
            Cause::Manifest => {
                *total += open.len() as u64;
                open.clear();
            }
            _ => {}
        }
    }

    /// The sum so far.
    pub fn count(&self) -> u64 {
        hold(&self.state).1
    }
}

/// Times of the calls of one kind.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// How long all of them took.
    pub sum_ns: u64,
}

/// Calls since the last look.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// Puts.
    pub writes: Times,
    /// Gets and scans.
    pub reads: Times,
    /// When each put ended, and how long it took.
    pub series: Vec<(u64, u64)>,
}

/// A store that takes the time of every call.
pub struct Probe {
    db: Db,
    store: ShingleStore,
    clock: VirtualClock,
    calls: Mutex<Calls>,
}

impl Probe {
    /// Around `store`, which is `db`.
    pub fn new(db: Db, store: ShingleStore, clock: VirtualClock) -> Probe {
        Probe { db, store, clock, calls: Mutex::default() }
    }

    /// The database.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The calls since this was asked last.
    pub fn take(&self) -> Calls {
        std::mem::take(&mut *hold(&self.calls))
    }

    /// Closes the database.
    pub fn close(self) -> Result<()> {
        let Probe { db, store, .. } = self;
        drop(store);
        db.close()
    }

    fn timed<T>(&self, is_write: bool, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let start_ns = self.clock.now_ns();
        let result = call()?;
        let end_ns = self.clock.now_ns();
        let calls = &mut *hold(&self.calls);
        let times = if is_write { &mut calls.writes } else { &mut calls.reads };
        times.count += 1;
        times.sum_ns += end_ns - start_ns;
        if is_write {
            calls.series.push((end_ns, end_ns - start_ns));
        }
        Ok(result)
    }
}

impl Store for Probe {
    fn put(&self, key: &[u8], value: &[u8], options: WriteOptions) -> Result<()> {
        self.timed(true, || self.store.put(key, value, options))
    }

    fn put_batch(&self, entries: &[(&[u8], &[u8])], options: WriteOptions) -> Result<()> {
        self.timed(true, || self.store.put_batch(entries, options))
    }

    fn delete(&self, key: &[u8], options: WriteOptions) -> Result<()> {
        self.timed(true, || self.store.delete(key, options))
    }

    fn delete_range(&self, begin: &[u8], end: &[u8], options: WriteOptions) -> Result<()> {
        self.timed(true, || self.store.delete_range(begin, end, options))
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.timed(false, || self.store.get(key, value))
    }

    fn scan(
        &self,
        start: Option<&[u8]>,
        count: usize,
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        self.timed(false, || self.store.scan(start, count, direction, visit))
    }

    fn flush(&self) -> Result<()> {
        self.store.flush()
    }

    fn compact_all(&self) -> Result<()> {
        self.store.compact_all()
    }

    fn sync(&self) -> Result<()> {
        self.store.sync()
    }

    fn wait_idle(&self) -> Result<()> {
        self.store.wait_idle()
    }

    fn counters(&self) -> Result<Counters> {
        self.store.counters()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Probe::close(*self)
    }
}
