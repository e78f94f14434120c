//! A sorted map behind [`Store`], so that workloads can be tested without an engine.

use crate::store::{Counters, Direction, Store, StoreFactory, WriteOptions};
use base::Result;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// The content survives closing: a clone is the same store.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    entries: Arc<Mutex<Entries>>,
    user_write_bytes: Arc<AtomicU64>,
    syncs: Arc<AtomicU64>,
    maintenance: Arc<AtomicU64>,
    keys_read: Arc<Mutex<BTreeSet<Vec<u8>>>>,
}

impl MemoryStore {
    pub fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock()
    }

    pub fn syncs(&self) -> u64 {
        self.syncs.load(Relaxed)
    }

    /// How often flush, compact_all or wait_idle was called.
    pub fn maintenance(&self) -> u64 {
        self.maintenance.load(Relaxed)
    }

    /// The keys that were asked for.
    pub fn keys_read(&self) -> MutexGuard<'_, BTreeSet<Vec<u8>>> {
        self.keys_read.lock()
    }

    fn count_write(&self, bytes: usize, options: WriteOptions) {
        self.user_write_bytes.fetch_add(bytes as u64, Relaxed);
        self.syncs.fetch_add(u64::from(options.sync), Relaxed);
    }

    fn maintain(&self) -> Result<()> {
        self.maintenance.fetch_add(1, Relaxed);
        Ok(())
    }
}

impl Store for MemoryStore {
    fn put(&self, key: &[u8], value: &[u8], options: WriteOptions) -> Result<()> {
        self.put_batch(&[(key, value)], options)
    }

    fn put_batch(&self, entries: &[(&[u8], &[u8])], options: WriteOptions) -> Result<()> {
        let bytes = entries.iter().map(|(key, value)| key.len() + value.len()).sum();
        self.count_write(bytes, options);
        self.entries().extend(entries.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        Ok(())
    }

    fn delete(&self, key: &[u8], options: WriteOptions) -> Result<()> {
        self.count_write(key.len(), options);
        self.entries().remove(key);
        Ok(())
    }

    fn delete_range(&self, begin: &[u8], end: &[u8], options: WriteOptions) -> Result<()> {
        self.count_write(begin.len() + end.len(), options);
        self.entries().retain(|key, _| key.as_slice() < begin || key.as_slice() >= end);
        Ok(())
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.keys_read().insert(key.to_vec());
        let entries = self.entries();
        let Some(found) = entries.get(key) else { return Ok(false) };
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
        let entries = self.entries();
        let bound = start.map_or(Bound::Unbounded, Bound::Included);
        let range: Box<dyn Iterator<Item = _>> = match direction {
            Direction::Forward => Box::new(entries.range::<[u8], _>((bound, Bound::Unbounded))),
            Direction::Reverse => {
                Box::new(entries.range::<[u8], _>((Bound::Unbounded, bound)).rev())
            }
        };
        Ok(range.take(count).map(|(key, value)| visit(key, value)).count())
    }

    fn flush(&self) -> Result<()> {
        self.maintain()
    }

    fn compact_all(&self) -> Result<()> {
        self.maintain()
    }

    fn sync(&self) -> Result<()> {
        self.syncs.fetch_add(1, Relaxed);
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        self.maintain()
    }

    fn counters(&self) -> Result<Counters> {
        let user_write_bytes = self.user_write_bytes.load(Relaxed);
        Ok(Counters {
            user_write_bytes: Some(user_write_bytes),
            host_write_bytes: Some(user_write_bytes * 2),
            wal_bytes: Some(user_write_bytes),
            ..Counters::default()
        })
    }

    fn report(&self, name: &str) -> Option<String> {
        (name == "stats").then(|| format!("entries: {}", self.entries().len()))
    }

    fn report_json(&self, name: &str) -> Option<String> {
        (name == "stats").then(|| format!("{{\"entries\": {}}}", self.entries().len()))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl StoreFactory for MemoryStore {
    fn open(&self) -> Result<Box<dyn Store>> {
        Ok(Box::new(self.clone()))
    }

    fn destroy(&self) -> Result<()> {
        self.entries().clear();
        Ok(())
    }
}
