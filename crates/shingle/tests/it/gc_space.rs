//! GC of values where space is short: on the medium, and within a capacity.

use crate::plain::Plain;
use crate::script::Script;
use base::env::Runtime;
use base::{Cause, Result};
use media::faulty::{Effect, Fault, FaultPlan, FaultyStore, Filter, Operation};
use media::mem::MemStore;
use media::{Capacity, FileKind, FileStore, Space};
use parking_lot::Mutex;
use shingle::runtime::Stepped;
use shingle::{Db, Durability, ErrorKind, Keyspace, KeyspaceOptions, Options};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const VALUE_BYTES: usize = 200;
const KEYS: u64 = 60;
const CAPACITY_BYTES: u64 = 128 << 10;
/// No garbage makes GC due.
const NEVER: f64 = 50.0;

fn options(layout: &str, reserved_ratio: f64) -> Options {
    Options::new()
        .values(layout)
        .value_threshold_bytes(64)
        .durability(Durability::Synced)
        .write_buffer_bytes(64 << 10)
        .cache_bytes(64 << 10)
        .expert(|e| {
            e.memtable_bytes = Some(16 << 10);
            e.scheme.table_bytes_max = Some(8 << 10);
            e.scheme.level_bytes_base = Some(16 << 10);
            e.values.segment_bytes = Some(8 << 10);
            e.values.log_segment_bytes = Some(1 << 10);
            e.values.reserved_ratio = Some(reserved_ratio);
        })
}

/// Background steps are made only while a call waits.
fn stepped() -> Arc<Stepped> {
    Arc::new(Stepped::new(1, u64::MAX))
}

fn open(store: Arc<dyn FileStore>, options: Options) -> Db {
    options.open_in(store, stepped()).unwrap()
}

fn key(n: u64) -> Vec<u8> {
    format!("key{n:05}").into_bytes()
}

fn value(n: u64, round: u8) -> Vec<u8> {
    let mut value = vec![round; VALUE_BYTES];
    value[..8].copy_from_slice(&n.to_be_bytes());
    value
}

fn put(keyspace: &Keyspace, numbers: impl IntoIterator<Item = u64>, round: u8) {
    numbers.into_iter().for_each(|n| keyspace.put(key(n), value(n, round)).unwrap());
}

fn assert_holds(db: &Db, expected: impl Iterator<Item = (u64, u8)>) {
    let found: Vec<(Vec<u8>, Vec<u8>)> =
        db.iter().map(|pair| pair.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect();
    let expected: Vec<(Vec<u8>, Vec<u8>)> =
        expected.map(|(n, round)| (key(n), value(n, round))).collect();
    assert!(found == expected, "{} keys for {}", found.len(), expected.len());
    let report = db.check(&mut |_| {}).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

fn value_bytes_on_medium(store: &MemStore) -> u64 {
    let files = store.list().unwrap();
    files.iter().filter(|file| file.name.kind == FileKind::Value).map(|file| file.bytes).sum()
}

/// All values are in one segment group.
fn for_keys(layout: &str, reserved_ratio: f64, keys: u64) -> Options {
    let segment_bytes = if keys > KEYS { 128 << 10 } else { 8 << 10 };
    options(layout, reserved_ratio).expert(|e| e.values.segment_bytes = Some(segment_bytes))
}

/// A closed database with two versions of the values of `keys` keys; the garbage is known.
fn overwritten(layout: &str, keys: u64) -> MemStore {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store.clone()), for_keys(layout, NEVER, keys));
    for round in 0..2 {
        put(db.default_keyspace(), 0..keys, round);
        db.flush().unwrap();
    }
    db.compact().unwrap();
    db.wait_idle().unwrap();
    let values = db.stats().values;
    assert!(values.dead_bytes > 0 && values.collected.count == 0, "{layout}: {values:?}");
    db.close().unwrap();
    store
}

fn fault(operation: Operation, kind: FileKind) -> Fault {
    let filter = Filter { operation: Some(operation), kind: Some(kind) };
    Fault { filter, after: 0, is_sticky: false, effect: Effect::NoSpace }
}

/// Has `fault` happen from the first record on that is written to a segment.
fn once_gc_writes(plan: &Arc<FaultPlan>, fault: Fault) {
    let (filter, plan_then) =
        (Filter { operation: Some(Operation::Append), kind: Some(FileKind::Value) }, plan.clone());
    plan.act(filter, 0, Box::new(move || plan_then.add(fault)));
}

/// Keeps a reserve, and says what a test wants to be free.
struct Narrow {
    free_bytes: AtomicU64,
}

impl Capacity for Narrow {
    fn space(&self) -> Option<Space> {
        Some(Space { total_bytes: 1 << 30, free_bytes: self.free_bytes.load(Relaxed) })
    }
    fn set_reserve(&self, _bytes: u64) -> Result<bool> {
        Ok(true)
    }
}

/// Regression: once the medium was full, no step of GC was made, not even those that only free
/// space. GC that had written its copies kept them and the segments that it had read.
#[test]
fn gc_whose_copies_are_written_ends_on_a_full_medium() {
    for layout in ["log", "hashed"] {
        let store = overwritten(layout, KEYS);
        let before = value_bytes_on_medium(&store);
        let plan = Arc::new(FaultPlan::default());
        let narrow = Arc::new(Narrow { free_bytes: AtomicU64::new(1 << 30) });
        let faulty = Plain {
            store: FaultyStore::new(Arc::new(store.clone()), plan.clone()),
            before_lock: |_| Ok(()),
            capacity: Some(narrow.clone()),
        };
        let runtime = stepped();
        let db = options(layout, 0.1).open_in(Arc::new(faulty), runtime.clone()).unwrap();
        // A flush will need space.
        db.delete("nothing").unwrap();
        narrow.free_bytes.store(0, Relaxed);
        // The edit that lists the copies takes the reserve.
        once_gc_writes(&plan, fault(Operation::Append, FileKind::Manifest));
        // Compactions are refused, and one is tried for the deletion.
        for _ in 0..10 {
            let _ = db.wait_idle();
            runtime.pass(1_000_000_000);
        }
        assert!(plan.failures() > 0, "{layout}: the medium was not full");
        db.flush().unwrap();
        for _ in 0..10 {
            let _ = db.wait_idle();
            runtime.pass(1_000_000_000);
        }
        let (values, after) = (db.stats().values, value_bytes_on_medium(&store));
        println!("{layout}: {before} {after} {values:?}");
        assert!(values.collected.count > 0, "{layout}: {values:?}");
        assert!(after < before, "{layout}: {after} bytes for {before}");
        assert_holds(&db, (0..KEYS).map(|n| (n, 1)));
    }
}

/// Regression: GC that could not commit its pointers for lack of space kept the copies that nothing
/// pointed to.
#[test]
fn gc_that_lacks_space_gives_back_its_copies() {
    let store = overwritten("hashed", KEYS);
    let before = value_bytes_on_medium(&store);
    let plan = Arc::new(FaultPlan::default());
    let faulty = FaultyStore::new(Arc::new(store.clone()), plan.clone());
    let runtime = stepped();
    let db = options("hashed", 0.1).open_in(Arc::new(faulty), runtime.clone()).unwrap();
    let lack = Fault { is_sticky: true, ..fault(Operation::Append, FileKind::Wal) };
    once_gc_writes(&plan, lack);
    for _ in 0..3 {
        assert_eq!(db.wait_idle().unwrap_err().kind(), ErrorKind::NoSpace);
        assert!(plan.failures() > 0);
        let after = value_bytes_on_medium(&store);
        assert!(after <= before, "{after} bytes for {before}");
    }
    let stats = db.stats();
    assert_eq!(stats.backed_off.len(), 1, "{:?}", stats.backed_off);
    assert_eq!(stats.values.total_bytes, before);
    plan.clear();
    runtime.pass(400_000_000_000);
    db.wait_idle().unwrap();
    let stats = db.stats();
    assert!(stats.backed_off.is_empty() && stats.values.collected.count > 0);
    assert_holds(&db, (0..KEYS).map(|n| (n, 1)));
}

/// Regression: GC that committed some of its pointers left all of its copies unconfirmed, and they
/// were copied again.
#[test]
fn gc_that_lacks_space_halfway_tells_which_copies_are_garbage() {
    const MANY: u64 = 300;
    let store = overwritten("hashed", MANY);
    let plan = Arc::new(FaultPlan::default());
    let faulty = FaultyStore::new(Arc::new(store.clone()), plan.clone());
    let runtime = stepped();
    let options = for_keys("hashed", 0.1, MANY);
    let db = options.open_in(Arc::new(faulty), runtime.clone()).unwrap();
    let before = db.stats().values;
    let append = fault(Operation::Append, FileKind::Wal);
    once_gc_writes(&plan, Fault { after: 2, is_sticky: true, ..append });
    assert_eq!(db.wait_idle().unwrap_err().kind(), ErrorKind::NoSpace);
    let after = db.stats().values;
    println!("{before:?} {after:?}");
    assert!(after.total_bytes > before.total_bytes, "no copy is used");
    let unused_bytes = (MANY - 3 * 64) * VALUE_BYTES as u64;
    assert!(after.dead_bytes >= before.dead_bytes + unused_bytes, "{before:?} {after:?}");
    plan.clear();
    runtime.pass(400_000_000_000);
    for _ in 0..3 {
        db.flush().unwrap();
        db.compact().unwrap();
        db.wait_idle().unwrap();
    }
    let values = db.stats().values;
    assert!(values.total_bytes < 2 * MANY * 220, "{values:?}");
    assert_holds(&db, (0..MANY).map(|n| (n, 1)));
}

/// The end of a lack of space is noticed when a file is removed, without waiting for the pause.
#[test]
fn gc_that_lacked_space_is_tried_again_when_files_are_removed() {
    let store = overwritten("hashed", KEYS);
    let plan = Arc::new(FaultPlan::default());
    store.set_capacity_bytes(Some(1 << 30));
    let faulty = FaultyStore::new(Arc::new(store.clone()), plan.clone());
    let script = Arc::new(Script::default());
    let db = options("hashed", 0.1).open_in(Arc::new(faulty), script.clone()).unwrap();
    once_gc_writes(&plan, fault(Operation::Append, FileKind::Value));
    let small = db.create_keyspace("small", KeyspaceOptions::default()).unwrap();
    (0..1000).for_each(|n| small.put(key(n), [1; 60]).unwrap());
    db.flush().unwrap();
    while script.step() {}
    assert_eq!((db.stats().backed_off.len(), db.stats().values.collected.count), (1, 0));
    // Its pause is not over: these steps take no time. A call that waits for all work would have it
    // tried at once.
    drop(small);
    db.drop_keyspace("small").unwrap();
    while script.step() {}
    let stats = db.stats();
    assert!(stats.backed_off.is_empty(), "{:?}", stats.backed_off);
    assert!(stats.values.collected.count > 0, "{:?}", stats.values);
    script.stop();
}

fn bounded(layout: &str, reserved_ratio: f64) -> Options {
    options(layout, reserved_ratio).expert(|e| {
        e.values.segment_bytes = Some(2 << 10);
        e.values.capacity_bytes = Some(Some(CAPACITY_BYTES));
    })
}

fn collected(db: &Db, name: &str) -> u64 {
    let stats = db.stats();
    let mut keyspaces = stats.keyspaces.iter();
    keyspaces.find(|keyspace| keyspace.name == name).unwrap().values.collected.count
}

/// A closed database. Its first keyspace has much garbage, the second one is full of live values.
fn busy_and_full() -> (MemStore, u64) {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store.clone()), bounded("log", NEVER));
    let full = db.create_keyspace("full", KeyspaceOptions::default()).unwrap();
    for round in 0..4 {
        put(db.default_keyspace(), 0..100, round);
        db.flush().unwrap();
    }
    db.default_keyspace().compact().unwrap();
    let refused = (0..).find(|&n| full.put(key(n), value(n, 0)).is_err()).unwrap();
    db.close().unwrap();
    (store, refused)
}

/// Regression: GC began with the first keyspace whose garbage was due, although writers of another
/// one waited.
#[test]
fn gc_serves_the_keyspace_first_that_writers_wait_for() {
    let (store, count) = busy_and_full();
    let db = open(Arc::new(store), bounded("log", 0.1));
    let full = db.keyspace("full").unwrap();
    (0..count).step_by(2).for_each(|n| full.delete(key(n)).unwrap());
    full.put(key(count), value(count, 0)).unwrap();
    let (busy, own) = (collected(&db, "default"), collected(&db, "full"));
    db.wait_idle().unwrap();
    let all = collected(&db, "default");
    println!("{busy} of {all} GCs elsewhere, {own} of its own");
    // Some, until the garbage of its own was found.
    assert!(own > 0 && busy < all * 3 / 4, "{busy} of {all} GCs elsewhere, {own} of its own");
}

/// Regression: a write to a full keyspace waited until the whole database was idle.
#[test]
fn a_write_to_a_full_keyspace_does_not_wait_for_gc_of_others() {
    let (store, count) = busy_and_full();
    let db = open(Arc::new(store), bounded("log", 0.1));
    let full = db.keyspace("full").unwrap();
    let error = full.put(key(count), value(count, 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    let busy = collected(&db, "default");
    db.wait_idle().unwrap();
    let all = collected(&db, "default");
    println!("{busy} of {all} GCs elsewhere");
    assert!(busy < all / 2, "{busy} of {all} GCs elsewhere");
}

fn appending(db: &Db) -> Keyspace {
    let merge_operator = Some("append".into());
    let options = KeyspaceOptions { merge_operator, ..KeyspaceOptions::default() };
    db.create_keyspace("lists", options).unwrap()
}

/// Regression: GC combined operands with their values whatever space that took.
#[test]
fn values_that_gc_combines_keep_to_the_capacity() {
    const OPERAND: [u8; 60] = [7; 60];
    for layout in ["log", "hashed"] {
        let large = |reserved_ratio| {
            options(layout, reserved_ratio).write_buffer_bytes(1 << 20).expert(|e| {
                e.memtable_bytes = Some(512 << 10);
                e.values.capacity_bytes = Some(Some(CAPACITY_BYTES));
            })
        };
        let store = MemStore::new(Arc::default());
        let db = open(Arc::new(store.clone()), large(NEVER));
        let lists = appending(&db);
        for numbers in [(0..250).step_by(1), (0..250).step_by(3)] {
            put(&lists, numbers, 0);
            db.flush().unwrap();
        }
        lists.compact().unwrap();
        db.wait_idle().unwrap();
        assert!(db.stats().values.dead_bytes > 0);
        // Combined, they are larger than the capacity.
        let live = (0..250).filter(|n| n % 3 != 0);
        let stacked = live.flat_map(|n| [n; 8]);
        stacked.for_each(|n| lists.merge(key(n), OPERAND).unwrap());
        db.close().unwrap();
        let script = Arc::new(Script::default());
        let db = large(0.1).open_in(Arc::new(store.clone()), script.clone()).unwrap();
        let lists = || db.keyspace("lists").unwrap();
        let mut most_bytes = 0;
        for _ in 0..4 {
            while script.step() {
                most_bytes = most_bytes.max(db.stats().values.total_bytes);
            }
            db.flush().unwrap();
        }
        // That GC lacks space in a full keyspace is no failure.
        db.wait_idle().unwrap();
        lists().compact().unwrap();
        let stats = db.stats();
        println!("{layout}: {most_bytes} bytes at most, {:?}", stats.values);
        assert!(most_bytes <= CAPACITY_BYTES, "{layout}: {most_bytes} bytes");
        assert!(stats.values.collected.count > 0 || !stats.backed_off.is_empty(), "{layout}");
        let lists = lists();
        for n in 0..250 {
            let operands = if n % 3 == 0 { 0 } else { 8 * OPERAND.len() };
            let found = lists.get(key(n)).unwrap().unwrap();
            assert_eq!(found.len(), VALUE_BYTES + operands, "{layout}: key {n}");
        }
        assert!(db.check(&mut |_| {}).unwrap().problems.is_empty());
        script.stop();
    }
}

/// Regression: GC combined the values of 64 keys in memory, however large they were.
#[test]
fn values_that_gc_combines_are_limited_in_memory() {
    const LARGE_BYTES: usize = 100 << 10;
    let large = |reserved_ratio| {
        options("hashed", reserved_ratio).write_buffer_bytes(64 << 20).expert(|e| {
            e.memtable_bytes = Some(16 << 20);
            e.values.segment_bytes = Some(32 << 20);
            e.values.log_segment_bytes = Some(1 << 20);
        })
    };
    let store = MemStore::new(Arc::default());
    let script = Arc::new(Script::default());
    let db = large(NEVER).open_in(Arc::new(store.clone()), script.clone()).unwrap();
    let lists = appending(&db);
    for round in 0..2 {
        (0..64).for_each(|n| lists.put(key(n), vec![round; LARGE_BYTES]).unwrap());
        db.flush().unwrap();
    }
    lists.compact().unwrap();
    (0..64).for_each(|n| lists.merge(key(n), [9; 10]).unwrap());
    db.close().unwrap();
    let script = Arc::new(Script::default());
    let db = large(0.1).open_in(Arc::new(store.clone()), script.clone()).unwrap();
    let wal_bytes = {
        let store = store.clone();
        move || store.ledger().snapshot().cause(Cause::Wal).write_bytes
    };
    let most = Arc::new(Mutex::new((wal_bytes(), 0, 0)));
    let note = most.clone();
    script.at_place(Arc::new(move |place| {
        if place.starts_with("collect:") {
            let (now, mut note) = (wal_bytes(), note.lock());
            *note = (now, note.1.max(now - note.0), note.2 + 1);
        }
    }));
    db.wait_idle().unwrap();
    let (_, bytes, _) = *most.lock();
    println!("{:?}, {:?}", most.lock(), db.stats().values.collected);
    assert!(bytes > LARGE_BYTES as u64, "GC combined nothing");
    assert!(bytes < 2 << 20, "{bytes} bytes were combined in memory");
    let lists = db.keyspace("lists").unwrap();
    for n in 0..64 {
        assert_eq!(lists.get(key(n)).unwrap().unwrap().len(), LARGE_BYTES + 10);
    }
    script.stop();
}
