//! Schemes `ldc` and `adaptive` follow what the engine observes of reads, and get their flushes as
//! they want them.

use media::FileStore;
use media::mem::MemStore;
use shingle::runtime::{Stepped, Threads};
use shingle::{Cause, Compression, Db, Options, ReadOptions, Runtime};
use std::sync::Arc;
use std::time::Duration;

const KEYS: u64 = 6000;

fn open(scheme: &str, store: &Arc<MemStore>) -> Db {
    open_with(scheme, store, false)
}

fn open_with(scheme: &str, store: &Arc<MemStore>, seek_compaction: bool) -> Db {
    options(scheme, seek_compaction).open_in(store.clone(), Arc::new(Stepped::new(1, 5))).unwrap()
}

fn options(scheme: &str, seek_compaction: bool) -> Options {
    Options::new()
        .scheme(scheme)
        .compression(Compression::None)
        .filter_bits_per_key(10)
        .write_buffer_bytes(64 << 10)
        .cache_bytes(0)
        .expert(|e| {
            e.memtable_bytes = Some(8 << 10);
            e.scheme.table_bytes_max = Some(4 << 10);
            e.scheme.level_bytes_base = Some(20 << 10);
            e.scheme.level0_runs_trigger = Some(4);
            e.map_tables = Some(false);
            e.scheme.seek_compaction = Some(seek_compaction);
        })
}

fn key(n: u64) -> [u8; 8] {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS).to_be_bytes()
}

fn write(db: &Db, from: u64, count: u64) {
    for n in from..from + count {
        db.put(key(n), [n as u8; 100]).unwrap();
    }
    db.wait_idle().unwrap();
}

fn read(db: &Db, count: u64) {
    for n in 0..count {
        db.get(key(n)).unwrap();
    }
    db.wait_idle().unwrap();
}

/// Slices of each node below level 0 beyond its own run.
fn linked(db: &Db) -> Vec<usize> {
    let version = db.keyspace("default").unwrap().tree_for_test().unwrap();
    let nodes = version.levels.iter().skip(1).flat_map(|level| level.nodes.iter());
    nodes.map(|node| node.slices.len() - 1).collect()
}

/// Slices that may have a key, per get.
fn slices_of_a_get(db: &Db) -> f64 {
    let version = db.keyspace("default").unwrap().tree_for_test().unwrap();
    let of = |n| version.slices().filter(|slice| slice.range.contains(&key(n))).count();
    (0..2000).map(of).sum::<usize>() as f64 / 2000.0
}

#[test]
fn links_go_as_the_share_of_reads_grows_and_a_get_meets_as_few_slices_as_under_leveldb() {
    let store = Arc::new(MemStore::new(Arc::default()));
    let db = open("ldc", &store);
    write(&db, 0, 20_000);
    let written = linked(&db);
    assert!(written.iter().any(|&slices| slices > 5), "{written:?}");
    let before = slices_of_a_get(&db);

    // Most recent operations are reads, but not nearly all.
    read(&db, 40_000);
    let balanced = linked(&db);
    assert!(balanced.iter().all(|&slices| slices < 10), "{balanced:?}");
    assert!(balanced.iter().sum::<usize>() < written.iter().sum::<usize>(), "{balanced:?}");

    read(&db, 400_000);
    let idle = linked(&db);
    assert!(idle.iter().all(|&slices| slices == 0), "{idle:?}");
    let ldc = slices_of_a_get(&db);

    let store = Arc::new(MemStore::new(Arc::default()));
    let leveldb = open("leveldb", &store);
    write(&leveldb, 0, 20_000);
    let leveldb = slices_of_a_get(&leveldb);
    // Level 0 may hold one more run.
    assert!(ldc <= 1.15 * leveldb, "{ldc} slices for a get, under leveldb {leveldb}");
    assert!(ldc < 0.6 * before, "{ldc} slices for a get, {before} before");
}

#[test]
fn a_node_that_reads_pass_often_is_merged_before_the_others() {
    let store = Arc::new(MemStore::new(Arc::default()));
    let db = open("ldc", &store);
    write(&db, 0, 20_000);
    let version = db.keyspace("default").unwrap().tree_for_test().unwrap();
    let (level, node) = (1u8..)
        .zip(version.levels.iter().skip(1))
        .flat_map(|(level, nodes)| nodes.nodes.iter().map(move |node| (level, node)))
        .max_by_key(|(_, node)| node.slices.len())
        .unwrap();
    let hot: Vec<u64> = (0..KEYS).filter(|&n| node.range.contains(&key(n))).collect();
    for n in 0..20_000 {
        db.get(key(hot[n % hot.len()])).unwrap();
    }
    // With as many reads as writes, the others stay linked.
    db.put(key(hot[0]), b"wakes the scheduler").unwrap();
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let after = db.keyspace("default").unwrap().tree_for_test().unwrap();
    assert!(after.node(level, node.id).is_none(), "it was not merged: {node:?}");
    assert!(linked(&db).iter().any(|&slices| slices > 0), "the others were too");
}

/// Regression: the option did nothing, because only stacks of several slices were counted, and
/// `leveldb` has none.
#[test]
fn tables_that_reads_keep_missing_in_are_merged_down_if_asked_for() {
    let merged_by_reads = |seek_compaction: bool| {
        let store = Arc::new(MemStore::new(Arc::default()));
        let db = open_with("leveldb", &store, seek_compaction);
        write(&db, 0, 20_000);
        let levels = || {
            let version = db.keyspace("default").unwrap().tree_for_test().unwrap();
            version.levels.iter().skip(1).filter(|level| !level.nodes.is_empty()).count()
        };
        assert!(levels() > 1);
        let before = store.ledger().snapshot();
        let gets = slices_of_a_get(&db);
        (0..30).for_each(|_| read(&db, KEYS));
        let merged = store.ledger().snapshot().since(&before).merges().write_bytes;
        (merged, levels(), slices_of_a_get(&db) < gets)
    };
    let (merged, levels, is_cheaper) = merged_by_reads(true);
    assert!(merged > 0 && levels == 1 && is_cheaper, "{merged} bytes, {levels} levels");
    assert_eq!(merged_by_reads(false).0, 0);
}

/// Key ranges of about 1 MiB.
fn adaptive(store: &Arc<MemStore>, runtime: Arc<dyn Runtime>) -> Db {
    let options = Options::new().scheme("adaptive").compression(Compression::None);
    options.write_buffer_bytes(1 << 20).open_in(store.clone(), runtime).unwrap()
}

fn put_new(db: &Db, numbers: std::ops::Range<u64>) {
    numbers.for_each(|n| db.put(new_key(n), [n as u8; 100]).unwrap());
    db.flush().unwrap();
    db.wait_idle().unwrap();
}

fn new_key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Gets told policies what they passed, cursors did not; and no read woke a worker, so in an idle
/// database it made no difference.
#[test]
fn seeks_of_cursors_alone_make_an_idle_database_merge_its_stacks() {
    const COUNT: u64 = 60_000;
    let store = Arc::new(MemStore::new(Arc::default()));
    let db = adaptive(&store, Arc::new(Stepped::new(1, 5)));
    // Without garbage, stacks stay.
    put_new(&db, 0..COUNT);
    db.close().unwrap();
    let db = adaptive(&store, Arc::new(Threads::new()));
    // An opening alone merges none.
    db.wait_idle().unwrap();
    let before: usize = linked(&db).iter().sum();
    assert!(before > 5, "{before} slices to be merged");
    let mut cursor = db.cursor(ReadOptions::default());
    // A seek in a stack of two counts as one, and a node is looked at after 256.
    for n in 0..20 * COUNT {
        cursor.seek(new_key(n % COUNT)).unwrap();
        if n % 1000 == 0 && linked(&db).iter().sum::<usize>() < before {
            return;
        }
    }
    let after = linked(&db);
    panic!("{before} slices more than one before, now {after:?}");
}

#[test]
fn a_flush_under_adaptive_has_a_run_for_each_node_that_it_meets() {
    let store = Arc::new(MemStore::new(Arc::default()));
    let db = adaptive(&store, Arc::new(Stepped::new(1, 5)));
    put_new(&db, 0..20_000);
    let shape = || {
        let version = db.keyspace("default").unwrap().tree_for_test().unwrap();
        (version.level0().len(), linked(&db))
    };
    let (level0, before) = shape();
    assert!(level0 == 0 && before.len() > 1, "{level0} {before:?}");
    let written = store.ledger().snapshot();
    put_new(&db, 20_000..23_000);
    let more: Vec<usize> = before.iter().map(|slices| slices + 1).collect();
    assert_eq!(shape(), (0, more));
    // Not by way of level 0.
    assert_eq!(store.ledger().snapshot().since(&written).merges().write_bytes, 0);
    let runs = db.keyspace("default").unwrap().tree_for_test().unwrap().runs_count();
    assert_eq!(
        runs,
        before.iter().sum::<usize>() + 2 * before.len(),
        "a run has a node of its own"
    );
}

/// What an idle database writes has a cause of its own, and an option.
#[test]
fn idle_time_frees_garbage_under_a_cause_of_its_own_unless_it_is_told_not_to() {
    const COUNT: u64 = 30_000;
    let store = Arc::new(MemStore::new(Arc::default()));
    let options = Options::new().scheme("adaptive").compression(Compression::None);
    let options = options.write_buffer_bytes(1 << 20).idle_compaction(false);
    let db = options.open_in(store.clone(), Arc::new(Threads::new())).unwrap();
    let idle_bytes = || store.ledger().snapshot().cause(Cause::IdleCompaction).write_bytes;
    (0..5).for_each(|_| put_new(&db, 0..COUNT));
    put_new(&db, 0..COUNT / 3);
    // Three times as long as it takes until the database counts as idle.
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(idle_bytes(), 0);
    db.set_option("idle_compaction", "true").unwrap();
    // How much garbage the writes' own merges leave depends on when threads ran.
    for _ in 0..20 {
        put_new(&db, 0..COUNT / 3);
        let before = db.stats().live_bytes;
        for _ in 0..200 {
            if idle_bytes() > 0 && db.stats().live_bytes < before {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    panic!("{} bytes written in idle time, {} left", idle_bytes(), db.stats().live_bytes);
}

/// Writes expect garbage that an idle database does not. A wait for what was due to writers alone
/// had no end once the pause had begun, and the workers woke each other for it all the time.
#[test]
fn a_wait_ends_when_what_is_due_was_due_to_writers_alone() {
    let store = Arc::new(MemStore::new(Arc::default()));
    // Background steps run only while a call waits.
    let runtime = Arc::new(Stepped::new(1, u64::MAX));
    let db = adaptive(&store, runtime.clone());
    put_new(&db, 0..60_000);
    for n in 60_000..100_000 {
        db.put(new_key(n), [1; 100]).unwrap();
    }
    db.flush().unwrap();
    let stacked = linked(&db);
    runtime.pass(1_000_000_000);
    let (sender, done) = std::sync::mpsc::channel();
    let waiting = db.clone();
    std::thread::spawn(move || sender.send(waiting.wait_idle()));
    // A wait without an end is not to hang the tests.
    done.recv_timeout(Duration::from_secs(120)).expect("the wait has no end").unwrap();
    assert!(stacked.iter().sum::<usize>() > 5, "nothing was due: {stacked:?}");
    assert_eq!(linked(&db), stacked, "an idle database merges new keys for nothing");
}
