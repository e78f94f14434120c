//! Values that commits write to segments, with pointers in the log: written once, and safe.

use base::random::Random;
use media::faulty::{Effect, Fault, FaultPlan, FaultyStore, Filter, Operation};
use media::mem::{MemStore, Personality};
use media::{FileHint, FileKind, FileStore};
use shingle::{
    Cause, Db, Durability, ErrorKind, KeyspaceOptions, Options, WriteBatch, WriteOptions, runtime,
    salvage_store,
};
use std::collections::BTreeMap;
use std::sync::Arc;

const VALUE_BYTES: usize = 300;

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Options::new()
        .values("log")
        .value_threshold_bytes(64)
        .write_buffer_bytes(32 << 10)
        .cache_bytes(64 << 10)
        .expert(|e| {
            e.memtable_bytes = Some(8 << 10);
            e.scheme.table_bytes_max = Some(8 << 10);
            e.values.segment_bytes = Some(4 << 10);
        })
}

fn open_in(store: Arc<dyn FileStore>) -> shingle::Result<Db> {
    options().open_in(store, Arc::new(runtime::Stepped::new(7, 3)))
}

fn open(store: &MemStore) -> Db {
    open_in(Arc::new(store.clone())).unwrap()
}

fn value(random: &mut Random) -> Vec<u8> {
    let mut value = vec![0; VALUE_BYTES];
    random.fill(&mut value);
    value
}

fn content_of(db: &Db) -> Content {
    let pairs = db.iter().map(|pair| pair.map(|(key, value)| (key.to_vec(), value.to_vec())));
    pairs.collect::<Result<_, _>>().unwrap()
}

/// Puts `count` keys from `first` on; the last one synced, if requested.
fn put(db: &Db, content: &mut Content, first: u64, count: u64, durability: Durability) {
    let mut random = Random::new(first);
    for n in first..first + count {
        let (key, value) = (format!("key{n:05}").into_bytes(), value(&mut random));
        let mut batch = WriteBatch::new();
        batch.put(&key, &value).unwrap();
        let durability = Some(durability);
        db.write(batch, &WriteOptions { durability, wait: true }).unwrap();
        content.insert(key, value);
    }
}

/// Value segments that have bytes, newest last.
fn segments(store: &MemStore) -> Vec<media::FileSummary> {
    let files = store.list().unwrap().into_iter();
    let mut segments: Vec<_> =
        files.filter(|file| file.name.kind == FileKind::Value && file.bytes > 0).collect();
    segments.sort_by_key(|file| file.name.id);
    segments
}

/// Everything is there, checked, and every byte of every segment is accounted for.
fn assert_exact(db: &Db, store: &MemStore, content: &Content) {
    assert!(content_of(db) == *content);
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let report = db.check(&mut |_| {}).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let values = db.stats().values;
    let on_medium: u64 = segments(store).iter().map(|file| file.bytes).sum();
    assert_eq!((values.total_bytes, values.dead_bytes), (on_medium, 0));
}

fn write_amplification(value_bytes: usize, at_commit: bool) -> f64 {
    let store = MemStore::new(Arc::default());
    let options = Options::new().values("log").memory_bytes(8 << 20).expert(|e| {
        e.values.segment_bytes = Some(1 << 20);
        e.values_at_commit = Some(at_commit);
    });
    let runtime = Arc::new(runtime::Stepped::new(7, 2));
    let db = options.open_in(Arc::new(store.clone()), runtime).unwrap();
    let (mut random, mut value) = (Random::new(1), vec![0; value_bytes]);
    for n in 0..(16 << 20) / value_bytes as u64 {
        random.fill(&mut value);
        db.put(format!("user{:020}", n.wrapping_mul(0x9e37_79b9) % 1_000_000_007), &value).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let ledger = db.stats().ledger;
    ledger.write_amplification().unwrap()
}

#[test]
fn a_large_value_is_written_once() {
    for (value_bytes, once) in [(1024, 1.3), (16 << 10, 1.1)] {
        let (now, before) =
            (write_amplification(value_bytes, true), write_amplification(value_bytes, false));
        println!(
            "{value_bytes} bytes: {now:.3} written for each user byte, {before:.3} by flushes"
        );
        assert!(now < once && before > now + 0.9, "{now} {before}");
    }
}

#[test]
fn values_survive_the_process_and_synced_ones_the_loss_of_power() {
    let store = MemStore::new(Arc::default());
    let db = open(&store);
    let mut content = Content::new();
    put(&db, &mut content, 0, 1, Durability::Buffered);
    // The first value requests the segment for the others.
    db.wait_idle().unwrap();
    put(&db, &mut content, 1, 9, Durability::Buffered);
    put(&db, &mut content, 10, 1, Durability::Synced);
    db.wait_idle().unwrap();
    let synced = content.clone();
    put(&db, &mut content, 11, 4, Durability::Buffered);
    let ledger = db.stats().ledger;
    assert!(ledger.cause(Cause::ValueWrite).write_bytes > 13 * VALUE_BYTES as u64);
    assert_eq!(content_of(&db), content, "pointers in memtables are followed");
    let mut random = Random::new(0);
    let images = [(Personality::KeepAll, &content), (Personality::LoseUnsynced, &synced)];
    for (personality, expected) in images {
        let image = store.crash_image(&mut random, personality);
        let untouched = image.crash_image(&mut random, Personality::KeepAll);
        let db = open(&image);
        assert_exact(&db, &image, expected);
        drop(db);
        assert_exact(&open(&image), &image, expected);
        let reader = options().read_only(true);
        let runtime = Arc::new(runtime::Stepped::new(1, 1));
        let reader = reader.open_in(Arc::new(untouched), runtime).unwrap();
        assert_eq!(content_of(&reader), *expected);
    }
}

/// A database whose newest segment lost its last byte, and its content before the last value.
fn with_a_torn_value(is_proven: bool) -> (MemStore, Content) {
    let store = MemStore::new(Arc::default());
    let db = open(&store);
    let mut content = Content::new();
    put(&db, &mut content, 0, 8, Durability::Synced);
    let before = content.clone();
    put(&db, &mut content, 8, 1, if is_proven { Durability::Synced } else { Durability::Buffered });
    // Only in the log; after a sync it tells how far that log was durable.
    db.put("small", "behind").unwrap();
    let image = store.crash_image(&mut Random::new(0), Personality::KeepAll);
    let last = *segments(&image).last().unwrap();
    drop(image.extend(last.name, last.bytes - 1, &FileHint::default()).unwrap());
    (image, before)
}

#[test]
fn a_pointer_to_a_torn_value_ends_the_history() {
    let (image, before) = with_a_torn_value(false);
    let db = open(&image);
    assert_exact(&db, &image, &before);
    assert_eq!(db.get("small").unwrap(), None, "what was written later");
}

#[test]
fn a_torn_value_that_was_durable_is_damage() {
    let (image, before) = with_a_torn_value(true);
    let error = open_in(Arc::new(image.clone())).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let text = error.to_string();
    assert!(text.contains(".wal") && text.contains(".value"), "{text}");
    let target = tempfile::tempdir().unwrap();
    let report = salvage_store(Arc::new(image), target.path(), options(), &mut |_| {}).unwrap();
    assert!(report.losses.iter().any(|loss| loss.contains(".value")), "{report:?}");
    let found = content_of(&options().open(target.path()).unwrap());
    assert!(before.iter().all(|(key, value)| found.get(key) == Some(value)));
}

#[test]
fn a_value_of_another_life_does_not_stand_for_a_new_one() {
    let store = MemStore::new(Arc::default());
    let mut content = Content::new();
    put(&open(&store), &mut content, 0, 8, Durability::Synced);
    // The same sequence numbers and keys twice; the first time only the log is lost, not the
    // values.
    let mut random = Random::new(0);
    let db = open(&store);
    put(&db, &mut content.clone(), 8, 6, Durability::Buffered);
    let image = store.crash_image(&mut random, Personality::KeepAll);
    std::mem::forget(db);
    let newest = image.list().unwrap().into_iter().filter(|f| f.name.kind == FileKind::Wal);
    let newest = newest.max_by_key(|file| file.name.id).unwrap().name;
    drop(image.extend(newest, 80, &FileHint::default()).unwrap());
    let db = open(&image);
    assert_eq!(content_of(&db), content);
    let old: Vec<_> = segments(&image).iter().map(|file| file.name).collect();
    put(&db, &mut content, 8, 6, Durability::Buffered);
    let again = image.crash_image(&mut random, Personality::KeepAll);
    for file in segments(&again).into_iter().filter(|file| !old.contains(&file.name)) {
        drop(again.extend(file.name, 0, &FileHint::default()).unwrap());
    }
    std::mem::forget(db);
    let found = content_of(&open(&again));
    assert!(found.iter().all(|(key, value)| content.get(key) == Some(value)));
}

#[test]
fn a_write_whose_value_finds_no_room_is_refused_and_the_next_goes() {
    let store = MemStore::new(Arc::default());
    let plan = Arc::new(FaultPlan::default());
    let faulty = FaultyStore::new(Arc::new(store.clone()), plan.clone());
    let db = open_in(Arc::new(faulty)).unwrap();
    let mut content = Content::new();
    put(&db, &mut content, 0, 8, Durability::Buffered);
    for (first, kind) in [(8, FileKind::Value), (30, FileKind::Wal)] {
        let filter = Filter { operation: Some(Operation::Append), kind: Some(kind) };
        plan.add(Fault { filter, after: 0, is_sticky: false, effect: Effect::NoSpace });
        let refused = db.put("refused", [1; VALUE_BYTES]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NoSpace);
        put(&db, &mut content, first, 8, Durability::Buffered);
    }
    let image = store.crash_image(&mut Random::new(0), Personality::KeepAll);
    assert!(content_of(&db) == content);
    assert!(content_of(&open(&image)) == content);
    drop(db);
    // What the refused writes left is freed at the latest now.
    assert_exact(&open(&store), &store, &content);
}

#[test]
fn a_checkpoint_has_the_values_that_the_log_names() {
    let (home, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let db = options().open(home.path()).unwrap();
    let mut content = Content::new();
    put(&db, &mut content, 0, 30, Durability::Buffered);
    db.checkpoint(target.path().join("copy")).unwrap();
    let then = content.clone();
    put(&db, &mut content, 30, 30, Durability::Buffered);
    let copy = options().open(target.path().join("copy")).unwrap();
    assert!(content_of(&copy) == then);
    let report = copy.check(&mut |_| {}).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(content_of(&db) == content);
}

#[test]
fn a_batch_over_keyspaces_and_one_without_a_log_keep_their_values() {
    let store = MemStore::new(Arc::default());
    let db = open(&store);
    let second = db.create_keyspace("second", KeyspaceOptions::default()).unwrap();
    let unlogged = KeyspaceOptions { without_wal: true, ..KeyspaceOptions::default() };
    let unlogged = db.create_keyspace("unlogged", unlogged).unwrap();
    let mut random = Random::new(3);
    let mut expected = Content::new();
    for n in 0..20 {
        let (key, value) = (format!("{n:02}").into_bytes(), value(&mut random));
        let mut batch = WriteBatch::new();
        batch.put(&key, &value).unwrap();
        batch.put_in(&second, &key, &value).unwrap();
        batch.put(&key, b"small").unwrap();
        batch.put_in(&second, b"small", &key).unwrap();
        db.write(batch, &WriteOptions::default()).unwrap();
        unlogged.put(&key, &value).unwrap();
        expected.insert(key, value);
    }
    db.delete_range("05", "10").unwrap();
    let image = store.crash_image(&mut Random::new(0), Personality::KeepAll);
    let db = open(&image);
    let second = db.keyspace("second").unwrap();
    for (key, value) in &expected {
        let is_deleted = b"05"[..] <= key[..] && key[..] < b"10"[..];
        let small = (!is_deleted).then_some(&b"small"[..]);
        assert_eq!(db.get(key).unwrap().as_deref(), small);
        assert_eq!(second.get(key).unwrap().as_deref(), Some(&value[..]));
    }
    assert_eq!(second.get("small").unwrap().as_deref(), Some(&b"19"[..]));
    db.drop_keyspace("second").unwrap();
    db.flush().unwrap();
    db.compact().unwrap();
    db.wait_idle().unwrap();
    assert!(db.check(&mut |_| {}).unwrap().problems.is_empty());
}

#[test]
fn many_synced_writers_lose_nothing() {
    let store = MemStore::new(Arc::default());
    let runtime = Arc::new(runtime::Threads::new());
    let db = options().open_in(Arc::new(store.clone()), runtime).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let db = &db;
            scope.spawn(move || {
                put(db, &mut Content::new(), writer * 1000, 100, Durability::Synced);
            });
        }
    });
    let image = store.crash_image(&mut Random::new(0), Personality::LoseUnsynced);
    drop(db);
    let mut expected = Content::new();
    let reference = open(&MemStore::new(Arc::default()));
    (0..4).for_each(|w| put(&reference, &mut expected, w * 1000, 100, Durability::Buffered));
    let db = open(&image);
    assert!(content_of(&db) == expected);
    assert!(db.check(&mut |_| {}).unwrap().problems.is_empty());
}

#[test]
fn a_threshold_that_was_measured_is_kept_for_openings_that_name_none() {
    let store = MemStore::new(Arc::default());
    let open = |options: Options| {
        let runtime = Arc::new(runtime::Stepped::new(7, 3));
        options.values("hashed").open_in(Arc::new(store.clone()), runtime).unwrap()
    };
    let apart = |db: Db| {
        db.put("large", [1; 1023]).unwrap();
        db.flush().unwrap();
        let segments = db.stats().values.segments;
        db.close().unwrap();
        segments
    };
    assert_eq!(apart(open(Options::new())), 0, "the default is 1024");
    open(Options::new()).keep_value_threshold(500).unwrap();
    assert_eq!(apart(open(Options::new().value_threshold_bytes(2000))), 0, "who names one has it");
    assert_eq!(apart(open(Options::new().set("value_threshold", "auto").unwrap())), 1);
    store.notes().unwrap().write_note("THRESHOLD", b"nonsense", false).unwrap();
    open(Options::new()).close().unwrap();
}
