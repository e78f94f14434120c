//! What was deleted costs neither space nor readers, under every scheme.

use media::mem::MemStore;
use shingle::runtime::{Stepped, Threads};
use shingle::{Compression, Db, Options};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tree::policy::registry;

const KEYS: u64 = 6000;

fn open(scheme: &str, store: &Arc<MemStore>, write_buffer_bytes: u64) -> Db {
    let options = Options::new().scheme(scheme).compression(Compression::None);
    let options = options.write_buffer_bytes(write_buffer_bytes).cache_bytes(0).expert(|e| {
        e.memtable_bytes = Some(write_buffer_bytes / 8);
        e.scheme.level_bytes_base = Some(20 << 10);
    });
    options.open_in(store.clone(), Arc::new(Stepped::new(1, 5))).unwrap()
}

fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

/// Every number once, in an order of no use.
fn shuffled() -> impl Iterator<Item = u64> {
    (0..KEYS).map(|n| n * 7_919 % KEYS)
}

/// Bytes of the tree, and its tombstones.
fn tree(db: &Db) -> (u64, u64) {
    let version = db.keyspace("default").unwrap().tree_for_test().unwrap();
    (version.bytes(), version.slices().map(|slice| slice.run.deletes).sum())
}

fn loaded(scheme: &str, store: &Arc<MemStore>, write_buffer_bytes: u64) -> Db {
    let db = open(scheme, store, write_buffer_bytes);
    shuffled().for_each(|n| db.put(key(n), [n as u8; 100]).unwrap());
    db.wait_idle().unwrap();
    db
}

#[test]
fn deletions_become_space_without_more_writes_and_after_a_reopening() {
    for scheme in registry() {
        let store = Arc::new(MemStore::new(Arc::default()));
        let db = loaded(scheme.name, &store, 64 << 10);
        shuffled().filter(|n| n % 2 == 0).for_each(|n| db.delete(key(n)).unwrap());
        (0..KEYS / 10 * 9).for_each(|n| db.delete(key(n)).unwrap());
        db.wait_idle().unwrap();
        let live_bytes = KEYS / 20 * 108;
        let (bytes, _) = tree(&db);
        // What one write buffer deleted may not have reached the tree.
        let buffered_bytes = 64 << 10;
        let name = scheme.name;
        assert!(bytes <= 2 * live_bytes + buffered_bytes, "{name}: {bytes} for {live_bytes}");
        db.close().unwrap();
        let db = open(name, &store, 64 << 10);
        db.wait_idle().unwrap();
        let (bytes, tombstones) = tree(&db);
        assert!(bytes <= 2 * live_bytes, "{name}: {bytes} for {live_bytes}");
        assert!(tombstones <= KEYS / 20, "{name}: {tombstones} tombstones");
        let left: Vec<u64> = (0..KEYS).filter(|n| db.get(key(*n)).unwrap().is_some()).collect();
        let expected: Vec<u64> = (KEYS / 10 * 9..KEYS).filter(|n| n % 2 == 1).collect();
        assert_eq!(left, expected, "{name}");
    }
}

#[test]
fn tombstones_stay_while_a_snapshot_needs_what_they_hide() {
    let store = Arc::new(MemStore::new(Arc::default()));
    let db = loaded("leveled", &store, 64 << 10);
    let snapshot = db.snapshot();
    (0..KEYS).for_each(|n| db.delete(key(n)).unwrap());
    db.flush().unwrap();
    db.wait_idle().unwrap();
    assert_eq!(snapshot.get(key(7)).unwrap().as_deref(), Some(&[7; 100][..]));
    drop(snapshot);
    db.wait_idle().unwrap();
    assert_eq!(tree(&db), (0, 0));
}

/// No write comes that would bring the tombstones in memory to the tree.
#[test]
fn an_idle_database_flushes_deletions_that_are_worth_it() {
    for scheme in registry() {
        let store = Arc::new(MemStore::new(Arc::default()));
        let options = Options::new().scheme(scheme.name);
        let db = options.open_in(store, Arc::new(Threads::new())).unwrap();
        shuffled().for_each(|n| db.put(key(n), [n as u8; 100]).unwrap());
        db.flush().unwrap();
        (0..KEYS).for_each(|n| db.delete(key(n)).unwrap());
        let begin = Instant::now();
        while tree(&db) != (0, 0) {
            assert!(begin.elapsed() < Duration::from_secs(30), "{}: {:?}", scheme.name, tree(&db));
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(db.iter().count(), 0);
    }
}
