//! A cache of updates before a store, as HashKV's comparison has before every store (section 4.1):
//! a put stays in memory, and the value of a key that is there is replaced in place. When the cache
//! is full, all of it is written to the store, in the order in which the keys came.
//!
//! What it holds is lost in a crash, as in the paper. Whatever asks the store for more than a key
//! writes the cache to it first.

use crate::store::{Counters, Direction, Store, WriteOptions};
use base::Result;
use base::env::Runtime;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A store with a cache of updates before it.
pub struct UpdateCache {
    store: Box<dyn Store>,
    bytes_max: u64,
    held: Mutex<Held>,
    absorbed_bytes: Arc<AtomicU64>,
    runtime: Option<Arc<dyn Runtime>>,
}

/// What the cache holds.
#[derive(Default)]
struct Held {
    /// In the order in which the keys came.
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    /// Where a key is among them.
    places: HashMap<Vec<u8>, usize>,
    bytes: u64,
    options: WriteOptions,
}

impl Held {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.bytes += (key.len() + value.len()) as u64;
        match self.places.get(key) {
            Some(&place) => {
                let old = std::mem::replace(&mut self.entries[place].1, value.to_vec());
                self.bytes -= (key.len() + old.len()) as u64;
            }
            None => {
                self.places.insert(key.to_vec(), self.entries.len());
                self.entries.push((key.to_vec(), value.to_vec()));
            }
        }
    }
}

impl UpdateCache {
    /// A cache of `bytes_max` bytes of keys and values before `store`.
    pub fn new(store: Box<dyn Store>, bytes_max: u64) -> UpdateCache {
        let absorbed_bytes = Arc::default();
        UpdateCache { store, bytes_max, held: Mutex::default(), absorbed_bytes, runtime: None }
    }

    /// The same in a simulation: a put and a hit take the time of an operation.
    pub fn in_runtime(self, runtime: Arc<dyn Runtime>) -> UpdateCache {
        UpdateCache { runtime: Some(runtime), ..self }
    }

    /// Bytes of keys and values that were put and did not reach the store: those that were
    /// replaced, and those that the cache holds.
    pub fn absorbed_bytes(&self) -> Arc<AtomicU64> {
        self.absorbed_bytes.clone()
    }

    fn turn(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.turn();
        }
    }

    /// Writes all that the cache holds to the store.
    fn write_all(&self, held: &mut Held) -> Result<()> {
        held.places.clear();
        self.absorbed_bytes.fetch_sub(std::mem::take(&mut held.bytes), Relaxed);
        let mut entries = std::mem::take(&mut held.entries).into_iter();
        entries.try_for_each(|(key, value)| self.store.put(&key, &value, held.options))
    }

    /// The store, with all that was put.
    fn whole(&self) -> Result<&dyn Store> {
        self.write_all(&mut self.held.lock())?;
        Ok(&*self.store)
    }
}

impl Store for UpdateCache {
    fn put(&self, key: &[u8], value: &[u8], options: WriteOptions) -> Result<()> {
        self.put_batch(&[(key, value)], options)
    }

    fn put_batch(&self, entries: &[(&[u8], &[u8])], options: WriteOptions) -> Result<()> {
        let mut held = self.held.lock();
        held.options = options;
        for (key, value) in entries {
            held.put(key, value);
            self.absorbed_bytes.fetch_add((key.len() + value.len()) as u64, Relaxed);
        }
        self.turn();
        if held.bytes < self.bytes_max { Ok(()) } else { self.write_all(&mut held) }
    }

    fn delete(&self, key: &[u8], options: WriteOptions) -> Result<()> {
        self.whole()?.delete(key, options)
    }

    fn delete_range(&self, begin: &[u8], end: &[u8], options: WriteOptions) -> Result<()> {
        self.whole()?.delete_range(begin, end, options)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let held = self.held.lock();
        let Some(&place) = held.places.get(key) else {
            drop(held);
            return self.store.get(key, value);
        };
        value.clone_from(&held.entries[place].1);
        self.turn();
        Ok(true)
    }

    fn scan(
        &self,
        start: Option<&[u8]>,
        count: usize,
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        self.whole()?.scan(start, count, direction, visit)
    }

    fn flush(&self) -> Result<()> {
        self.whole()?.flush()
    }

    fn compact_all(&self) -> Result<()> {
        self.whole()?.compact_all()
    }

    fn sync(&self) -> Result<()> {
        self.whole()?.sync()
    }

    fn wait_idle(&self) -> Result<()> {
        self.whole()?.wait_idle()
    }

    fn counters(&self) -> Result<Counters> {
        let absorbed_bytes = self.absorbed_bytes.load(Relaxed);
        let own = self.store.counters()?;
        let user_write_bytes = own.user_write_bytes.map(|bytes| bytes + absorbed_bytes);
        Ok(Counters { user_write_bytes, ..own })
    }

    fn below(&self) -> Option<&dyn Store> {
        Some(&*self.store)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.whole()?;
        self.store.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_store::MemoryStore;

    const PLAIN: WriteOptions = WriteOptions { sync: false, disable_wal: false };

    #[test]
    fn updates_are_made_in_place_until_the_cache_is_full() {
        let below = MemoryStore::default();
        let cache = UpdateCache::new(Box::new(below.clone()), 1000);
        for n in 0..100u8 {
            cache.put(&[n % 9], &[n; 99], PLAIN).unwrap();
        }
        assert!(below.entries().is_empty(), "nine entries of 100 bytes have their place");
        assert_eq!(cache.counters().unwrap().user_write_bytes, Some(100 * 100));
        let mut value = Vec::new();
        assert!(cache.get(&[8], &mut value).unwrap() && value == [98; 99]);
        assert!(!cache.get(&[9], &mut value).unwrap());
        cache.put(&[9], &[9; 99], PLAIN).unwrap();
        assert_eq!(below.entries().len(), 10);
        assert_eq!(below.counters().unwrap().user_write_bytes, Some(10 * 100));
        assert_eq!(cache.counters().unwrap().user_write_bytes, Some(101 * 100));
        assert_eq!(cache.absorbed_bytes().load(Relaxed), 91 * 100);
        assert!(cache.get(&[8], &mut value).unwrap() && value == [98; 99], "from the store");
    }

    #[test]
    fn scans_deletions_and_a_close_find_all_that_was_put() {
        let below = MemoryStore::default();
        let cache = Box::new(UpdateCache::new(Box::new(below.clone()), 1000));
        cache.put(b"a", b"1", PLAIN).unwrap();
        let mut found = Vec::new();
        let mut visit = |key: &[u8], _: &[u8]| found.extend_from_slice(key);
        cache.scan(None, 9, Direction::Forward, &mut visit).unwrap();
        assert_eq!(found, b"a");
        cache.put(b"a", b"2", PLAIN).unwrap();
        cache.delete(b"a", PLAIN).unwrap();
        assert!(!cache.get(b"a", &mut Vec::new()).unwrap());
        cache.put(b"b", b"3", PLAIN).unwrap();
        cache.close().unwrap();
        assert!(below.entries().iter().eq([(&b"b".to_vec(), &b"3".to_vec())]));
    }
}
