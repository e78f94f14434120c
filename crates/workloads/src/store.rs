//! The interface between workloads and engines: what db_bench and YCSB need, and no more.
//!
//! Keys are ordered by unsigned bytes. A store is shared by all threads of a benchmark; what one
//! thread wrote, every thread reads from then on.

use base::{LedgerSnapshot, Result};
use std::collections::BTreeMap;

/// How a write is made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Return only when the write survives power loss.
    pub sync: bool,
    /// Write no log: the write may be lost in a crash until the next flush.
    pub disable_wal: bool,
}

/// The order of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys, from the first key at or after the start.
    Forward,
    /// Descending keys, from the last key at or before the start.
    Reverse,
}

/// Cumulative counters of a store since it was opened; `None` where the engine cannot tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes of keys and values that users wrote.
    pub user_write_bytes: Option<u64>,
    /// Bytes written to files, for whatever cause.
    pub host_write_bytes: Option<u64>,
    /// Bytes read from files.
    pub host_read_bytes: Option<u64>,
    /// Bytes that the device wrote to its medium.
    pub media_write_bytes: Option<u64>,
    /// Bytes written to the log, part of `host_write_bytes`.
    pub wal_bytes: Option<u64>,
    /// Time that user threads were stalled, summed over threads.
    pub stall_ns: Option<u64>,
    /// Time of background work on large values, by part; empty where the engine does not tell.
    pub value_ns: BTreeMap<&'static str, u64>,
    /// Bytes that the store occupies now: a level, not a sum.
    pub space_bytes: Option<u64>,
    /// Everything that moved, by its cause.
    pub ledger: Option<LedgerSnapshot>,
}

impl Counters {
    /// What was added since `earlier`; `space_bytes` stays as it is now.
    pub fn since(&self, earlier: &Counters) -> Counters {
        let less = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        Counters {
            user_write_bytes: less(self.user_write_bytes, earlier.user_write_bytes),
            host_write_bytes: less(self.host_write_bytes, earlier.host_write_bytes),
            host_read_bytes: less(self.host_read_bytes, earlier.host_read_bytes),
            media_write_bytes: less(self.media_write_bytes, earlier.media_write_bytes),
            wal_bytes: less(self.wal_bytes, earlier.wal_bytes),
            stall_ns: less(self.stall_ns, earlier.stall_ns),
            value_ns: self
                .value_ns
                .iter()
                .map(|(part, ns)| (*part, ns - earlier.value_ns.get(part).unwrap_or(&0)))
                .collect(),
            space_bytes: self.space_bytes,
            ledger: self.ledger.as_ref().zip(earlier.ledger.as_ref()).map(|(a, b)| a.since(b)),
        }
    }
}

/// An ordered key-value store under test.
pub trait Store: Send + Sync {
    /// Sets the value of one key.
    fn put(&self, key: &[u8], value: &[u8], options: WriteOptions) -> Result<()>;

    /// Sets the values of several keys atomically.
    fn put_batch(&self, entries: &[(&[u8], &[u8])], options: WriteOptions) -> Result<()>;

    /// Removes a key; no error when it does not exist.
    fn delete(&self, key: &[u8], options: WriteOptions) -> Result<()>;

    /// Removes every key in `begin..end`.
    fn delete_range(&self, begin: &[u8], end: &[u8], options: WriteOptions) -> Result<()>;

    /// Replaces the content of `value` by the value of `key`. `false`: no such key, and the content
    /// of `value` means nothing.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Visits up to `count` entries (key, value) from `start`, or from the end that `direction`
    /// begins at; returns how many there were.
    fn scan(
        &self,
        start: Option<&[u8]>,
        count: usize,
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize>;

    /// Writes what is buffered in memory to tables.
    fn flush(&self) -> Result<()>;

    /// Compacts the whole key range down to its last level.
    fn compact_all(&self) -> Result<()>;

    /// Makes every acknowledged write durable.
    fn sync(&self) -> Result<()>;

    /// Waits until no background work is left.
    fn wait_idle(&self) -> Result<()>;

    /// The counters now.
    fn counters(&self) -> Result<Counters>;

    /// The store that this one is a layer over, whose reports are also its own; `None`: it is none.
    fn below(&self) -> Option<&dyn Store> {
        None
    }

    /// A report for people by its db_bench name (`stats`, `levelstats`, `sstables`, ...); `None`
    /// where the engine has no such report.
    fn report(&self, name: &str) -> Option<String> {
        self.below()?.report(name)
    }

    /// The report called `name` as one JSON value; `None` where it is text only.
    fn report_json(&self, name: &str) -> Option<String> {
        self.below()?.report_json(name)
    }

    /// Begins the reports anew; counters go on. Nothing where the engine has no such reports.
    fn reset_statistics(&self) {
        if let Some(below) = self.below() {
            below.reset_statistics();
        }
    }

    /// Closes the store and releases its files. To reopen it, ask its [`StoreFactory`].
    fn close(self: Box<Self>) -> Result<()>;
}

/// Opens the store that a run is about; the caller has put engine options and place into it.
pub trait StoreFactory {
    /// Opens the store as it stands, creating it where there is none.
    fn open(&self) -> Result<Box<dyn Store>>;

    /// Removes the store with everything in it. It is closed when this is called.
    fn destroy(&self) -> Result<()>;
}
