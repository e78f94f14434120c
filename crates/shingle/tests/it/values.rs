//! Separated values: space, snapshots, switching, salvage.

use crate::script::Script;
use crate::watched::{Request, Watched};
use base::random::Random;
use media::mem::{MemStore, Personality};
use media::{FileHint, FileKind, FileName, FileStore};
use parking_lot::Mutex;
use shingle::{
    Cause, Db, ErrorKind, KeyspaceOptions, Options, Stall, StallReason, Stats, WriteBatch,
    WriteOptions, runtime,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, Ordering::SeqCst};

const KEYS: u64 = 300;
const VALUE_BYTES: usize = 200;

fn options(layout: &str) -> Options {
    Options::new()
        .values(layout)
        .value_threshold_bytes(64)
        .write_buffer_bytes(32 << 10)
        .cache_bytes(64 << 10)
        .expert(|e| {
            e.memtable_bytes = Some(8 << 10);
            e.scheme.table_bytes_max = Some(8 << 10);
            e.scheme.level_bytes_base = Some(16 << 10);
            e.values.segment_bytes = Some(8 << 10);
            e.values.log_segment_bytes = Some(1 << 10);
            e.values.reserved_ratio = Some(0.3);
        })
}

fn open(store: &MemStore, layout: &str) -> Db {
    let runtime = Arc::new(runtime::Stepped::new(7, 2));
    options(layout).open_in(Arc::new(store.clone()), runtime).unwrap()
}

fn key(n: u64) -> Vec<u8> {
    format!("key{n:05}").into_bytes()
}

fn value(random: &mut Random) -> Vec<u8> {
    let mut value = vec![0; VALUE_BYTES];
    random.fill(&mut value);
    value
}

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

fn write(db: &Db, content: &mut Content, random: &mut Random, writes: u64) {
    for _ in 0..writes {
        let (key, value) = (key(random.below(KEYS)), value(random));
        db.put(&key, &value).unwrap();
        content.insert(key, value);
    }
}

fn settle(db: &Db) {
    // Retired segments wait for the flush of the pointers that replaced theirs.
    for _ in 0..6 {
        db.flush().unwrap();
        db.compact().unwrap();
        db.wait_idle().unwrap();
    }
}

fn assert_content(db: &Db, content: &Content) {
    let found: Content = db
        .iter()
        .map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())))
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(found == *content, "{} keys for {}", found.len(), content.len());
    for (key, value) in content.iter().step_by(7) {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(&value[..]));
    }
    let report = db.check(&mut |_| {}).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn gc_keeps_the_space_of_updated_values_bounded() {
    for layout in ["log", "hashed"] {
        let store = MemStore::new(Arc::default());
        let db = open(&store, layout);
        let (mut content, mut random) = (Content::new(), Random::new(1));
        write(&db, &mut content, &mut random, 20 * KEYS);
        settle(&db);
        assert_content(&db, &content);
        let stats = db.stats();
        let live = (content.len() * (VALUE_BYTES + 20)) as u64;
        println!("{layout}: {:?} for {live} live bytes", stats.values);
        assert!(stats.values.segments > 0 && stats.values.total_bytes < 3 * live);
        let gc_bytes = stats.ledger.cause(Cause::ValueGc).write_bytes;
        assert!(gc_bytes > 0);
        assert_collected(&stats, gc_bytes);
        drop(db);
        assert_content(&open(&store, layout), &content);
    }
}

/// Statistics of values agree with the ledger and among themselves.
fn assert_collected(stats: &Stats, gc_bytes: u64) {
    let (values, collected) = (&stats.values, stats.values.collected);
    assert!(collected.count > 0 && collected.write_bytes == gc_bytes, "{collected:?} {gc_bytes}");
    assert!(collected.reclaimed_per_written().unwrap() > 0.0);
    let in_groups: u64 = stats.value_groups.iter().map(|g| g.live_bytes + g.dead_bytes).sum();
    assert_eq!(in_groups, values.total_bytes - values.retired_bytes);
    let parts =
        stats.value_write_amplification().unwrap() + stats.index_write_amplification().unwrap();
    assert!((parts - stats.ledger.write_amplification().unwrap()).abs() < 1e-9);
    let (text, json) = (stats.to_string(), stats.to_json());
    for words in ["Index W-Amp: ", "reclaimed per byte", "Value seconds: written "] {
        assert!(text.contains(words), "{text}");
    }
    let names = ["index_wa", "value_groups", "prefix", "reclaimed_per_written", "collect_lookup"];
    assert!(names.iter().all(|name| json.contains(&format!("\"{name}\""))), "{json}");
}

/// Regression: the pointers that GC moves fill a memtable slowly, and each stands for a value. A
/// store of 1 GB had 2 GB in segments that waited for the next flush.
#[test]
fn few_segments_that_gc_emptied_wait_for_the_flush_of_what_replaced_them() {
    const WRITE_BUFFER_BYTES: u64 = 32 << 10;
    const LOGS_MAX: u64 = 4;
    for layout in ["log", "hashed"] {
        let store = MemStore::new(Arc::default());
        let db = open(&store, layout);
        for round in 0..30u64 {
            for n in 0..KEYS {
                db.put(key(n), vec![round as u8; 10 * VALUE_BYTES]).unwrap();
            }
        }
        db.wait_idle().unwrap();
        let values = db.stats().values;
        // The last GC may have retired a group.
        let group_bytes = 4 * (8 << 10);
        let bound = LOGS_MAX * WRITE_BUFFER_BYTES + group_bytes;
        assert!(values.collected.read_bytes > 4 * bound, "{values:?}");
        assert!(values.retired_bytes <= bound, "{layout}: {values:?}");
    }
}

/// HashKV's GC works without look-ups, but no order shows what was deleted.
#[test]
fn gc_asks_the_index_only_where_the_order_of_a_group_does_not_tell() {
    let store = MemStore::new(Arc::default());
    let db = open(&store, "hashed");
    let update = |keys: std::ops::Range<u64>, rounds: u64| {
        for round in 0..rounds {
            keys.clone().for_each(|n| db.put(key(n), vec![round as u8; VALUE_BYTES]).unwrap());
            db.flush().unwrap();
            db.wait_idle().unwrap();
        }
        db.stats().values.collected
    };
    let updated = update(0..KEYS, 12);
    let records = updated.read_bytes / VALUE_BYTES as u64;
    assert!(updated.count > 10 && updated.lookups < records / 5, "{updated:?}");
    (KEYS / 3..KEYS).for_each(|n| db.delete(key(n)).unwrap());
    settle(&db);
    let deleted = update(0..KEYS / 3, 12);
    assert!(deleted.lookups > updated.lookups + KEYS / 3, "{deleted:?} after {updated:?}");
    assert!(db.iter().count() as u64 == KEYS / 3);
}

/// One by one, in the order of a segment, each look-up reads a block of its own, and a second one
/// when the pointer changes.
#[test]
fn gc_of_a_log_looks_up_in_key_order_what_shares_blocks() {
    let store = MemStore::new(Arc::default());
    let runtime = Arc::new(runtime::Stepped::new(7, 2));
    // Segments of a few hundred records, and no cache that would hide a read.
    let options = options("log").cache_bytes(0).expert(|e| {
        e.values.segment_bytes = Some(64 << 10);
        e.block_bytes = Some(1 << 10);
    });
    let db = options.open_in(Arc::new(store), runtime).unwrap();
    let (mut content, mut random) = (Content::new(), Random::new(5));
    write(&db, &mut content, &mut random, 8 * KEYS);
    settle(&db);
    let stats = db.stats();
    let (lookups, asked) = (stats.values.collected.lookups, stats.ledger.cause(Cause::Get));
    println!("{lookups} look-ups, {asked:?}");
    assert!(stats.values.collected.count > 3 && lookups > 2 * KEYS);
    assert!(asked.read_ops < lookups / 2, "{} for {lookups}", asked.read_ops);
    assert_content(&db, &content);
}

/// Regression: a GC looked at a key, a user merged into it before the pointer changed, and the GC
/// looked again, for ever.
#[test]
fn gc_ends_though_a_user_merges_into_its_keys_all_the_time() {
    const MERGES_MAX: u64 = 1000;
    for layout in ["log", "hashed"] {
        let (store, script) = (MemStore::new(Arc::default()), Arc::<Script>::default());
        let db = options(layout).open_in(Arc::new(store.clone()), script.clone()).unwrap();
        let appends =
            KeyspaceOptions { merge_operator: Some("append".into()), ..Default::default() };
        let texts = db.create_keyspace("texts", appends).unwrap();
        let (merged, refused) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let (user, counts) = (texts.clone(), (merged.clone(), refused.clone()));
        script.at_place(Arc::new(move |place| {
            let is_due = place == "collect: before pointers change";
            if !is_due || counts.0.load(SeqCst) == MERGES_MAX {
                return;
            }
            let options = WriteOptions { wait: false, ..WriteOptions::default() };
            match user.merge_with("hot", "+", &options) {
                Ok(()) => counts.0.fetch_add(1, SeqCst),
                Err(error) => {
                    assert!(error.kind() == ErrorKind::WouldWait, "{error}");
                    counts.1.fetch_add(1, SeqCst)
                }
            };
        }));
        texts.put("hot", [b'v'; VALUE_BYTES]).unwrap();
        for round in 0..200u64 {
            for n in 0..40 {
                texts.put(key(n), vec![round as u8; VALUE_BYTES]).unwrap();
            }
            db.flush().unwrap();
            db.wait_idle().unwrap();
            if refused.load(SeqCst) > 0 || merged.load(SeqCst) == MERGES_MAX {
                break;
            }
        }
        let (merged, refused) = (merged.load(SeqCst), refused.load(SeqCst));
        assert!(merged > 0 && merged < MERGES_MAX, "{layout}: {merged} merges in one GC");
        assert!(refused > 0, "{layout}: no merge waited after {merged}");
        let text = texts.get("hot").unwrap().unwrap();
        assert_eq!(text.len() as u64, VALUE_BYTES as u64 + merged, "{layout}");
        texts.merge("hot", "+").unwrap();
        assert!(db.check(&mut |_| {}).unwrap().is_clean(), "{layout}");
    }
}

/// Regression: between one and two main segments of a group's live bytes were cut into log
/// segments: tens of thousands of files in a store of 2 GB.
#[test]
fn what_gc_leaves_of_a_group_is_in_main_segments() {
    let store = MemStore::new(Arc::default());
    let db = open(&store, "hashed");
    let (mut random, keys) = (Random::new(3), 63);
    (0..keys).for_each(|n| db.put(key(n), value(&mut random)).unwrap());
    for n in (0..keys).step_by(2) {
        if db.stats().values.collected.count > 0 {
            break;
        }
        db.put(key(n), value(&mut random)).unwrap();
        settle(&db);
    }
    let values = db.stats().values;
    assert!(values.collected.count == 1 && values.groups == 1, "{values:?}");
    assert!(values.total_bytes > 12 << 10, "{values:?}");
    assert!(values.segments <= 3, "{values:?}");
}

#[test]
fn deleting_everything_gives_the_space_of_values_back() {
    for layout in ["log", "hashed"] {
        let store = MemStore::new(Arc::default());
        let db = open(&store, layout);
        let (mut content, mut random) = (Content::new(), Random::new(2));
        write(&db, &mut content, &mut random, 5 * KEYS);
        (0..KEYS).for_each(|n| db.delete(key(n)).unwrap());
        settle(&db);
        let stats = db.stats();
        println!("{layout}: {:?}", stats.values);
        assert_content(&db, &Content::new());
        // The last segment may wait for more garbage.
        assert!(stats.values.total_bytes <= 3 * (8 << 10), "{:?}", stats.values);
    }
}

#[test]
fn a_snapshot_reads_values_whose_segments_gc_emptied() {
    for layout in ["log", "hashed"] {
        let store = MemStore::new(Arc::default());
        let db = open(&store, layout);
        let (mut content, mut random) = (Content::new(), Random::new(3));
        write(&db, &mut content, &mut random, 3 * KEYS);
        let (snapshot, then) = (db.snapshot(), content.clone());
        let iterator = db.iter();
        write(&db, &mut content, &mut random, 10 * KEYS);
        settle(&db);
        for (key, value) in &then {
            assert_eq!(snapshot.get(key).unwrap().as_deref(), Some(&value[..]), "{layout}");
        }
        let seen: Vec<_> = iterator.map(|entry| entry.unwrap().1.to_vec()).collect();
        assert!(seen.iter().eq(then.values()), "{layout}");
        drop(snapshot);
        settle(&db);
        assert_content(&db, &content);
    }
}

/// Bytes on the medium after every key was overwritten `rounds` times under snapshots: one before
/// the first round, and those that come and go meanwhile.
fn bytes_under_snapshots(layout: &str, rounds: u64, every: u64) -> u64 {
    let store = MemStore::new(Arc::default());
    let db = open(&store, layout);
    let (mut content, mut random) = (Content::new(), Random::new(21));
    for n in 0..KEYS {
        let value = value(&mut random);
        db.put(key(n), &value).unwrap();
        content.insert(key(n), value);
    }
    let held = (db.snapshot(), content.clone());
    let mut passing = (db.snapshot(), content.clone());
    for round in 0..rounds {
        write(&db, &mut content, &mut random, KEYS);
        if round % every == 0 {
            passing = (db.snapshot(), content.clone());
        }
    }
    settle(&db);
    let files = store.list().unwrap();
    let bytes = files.iter().map(|file| file.bytes).sum();
    for (snapshot, then) in [&held, &passing] {
        let found = snapshot.iter().map(|pair| pair.map(|(k, v)| (k.to_vec(), v.to_vec())));
        assert!(found.collect::<Result<Content, _>>().unwrap() == *then, "{layout}");
    }
    assert_content(&db, &content);
    drop((held, passing));
    write(&db, &mut content, &mut random, 2 * KEYS);
    settle(&db);
    let left: u64 = store.list().unwrap().iter().map(|file| file.bytes).sum();
    let live = content.len() as u64 * (VALUE_BYTES as u64 + 30);
    assert!(left < 2 * live + 8 * (8 << 10), "{layout}: {left} bytes are left for {live}");
    bytes
}

/// No snapshot sees what was written after it and overwritten before the next. Regression: one
/// snapshot kept nearly every later overwrite.
#[test]
fn a_snapshot_holds_what_it_sees_and_no_later_overwrite() {
    // A second snapshot also keeps what was garbage when it was taken.
    for (every, factor) in [(1000, 2), (7, 3)] {
        let inline = bytes_under_snapshots("inline", 40, every);
        for layout in ["log", "hashed"] {
            let bytes = bytes_under_snapshots(layout, 40, every);
            println!("{layout}: {bytes} bytes under snapshots, {inline} inline, every {every}");
            let bound = factor * inline + 4 * (8 << 10);
            assert!(bytes <= bound, "{layout}: {bytes} bytes, {inline} inline");
        }
    }
}

/// Each snapshot is taken a few writes before or after GC, whose copies are younger than the values
/// in them, and older than what is written next.
#[test]
fn snapshots_between_gc_runs_see_what_they_saw() {
    for layout in ["log", "hashed"] {
        let db = open(&MemStore::new(Arc::default()), layout);
        let (mut content, mut random) = (Content::new(), Random::new(22));
        write(&db, &mut content, &mut random, 2 * KEYS);
        let mut held = Vec::new();
        for _ in 0..60 {
            let writes = random.below(40);
            write(&db, &mut content, &mut random, writes);
            if random.one_in(3) {
                held.push((db.snapshot(), content.clone()));
            }
            db.flush().unwrap();
            db.compact().unwrap();
            db.wait_idle().unwrap();
            held.push((db.snapshot(), content.clone()));
            while held.len() > 4 {
                held.remove(random.below(held.len() as u64) as usize);
            }
            for (snapshot, then) in &held {
                for (key, value) in then.iter() {
                    assert_eq!(snapshot.get(key).unwrap().as_deref(), Some(&value[..]));
                }
            }
        }
        assert!(db.stats().values.collected.count > 20, "{:?}", db.stats().values);
        assert_content(&db, &content);
    }
}

#[test]
fn values_follow_the_layout_of_now() {
    let store = MemStore::new(Arc::default());
    let (mut content, mut random) = (Content::new(), Random::new(4));
    for layout in ["inline", "hashed", "log", "inline", "hashed"] {
        let db = open(&store, layout);
        write(&db, &mut content, &mut random, 2 * KEYS);
        settle(&db);
        assert_content(&db, &content);
        let values = db.stats().values;
        println!("{layout}: {values:?}");
        if layout == "inline" {
            assert!(values.total_bytes - values.dead_bytes - values.retired_bytes == 0);
        } else {
            assert!(values.segments > 0);
        }
    }
}

/// Regression: an opening looked only for tables, and the first read found a missing segment.
#[test]
fn an_opening_misses_segments_and_their_bytes() {
    for layout in ["log", "hashed"] {
        let store = MemStore::new(Arc::default());
        let db = open(&store, layout);
        let (mut content, mut random) = (Content::new(), Random::new(5));
        write(&db, &mut content, &mut random, KEYS);
        db.close().unwrap();
        let files = store.list().unwrap();
        let segment = files.iter().find(|f| f.name.kind == FileKind::Value && f.bytes > 0).unwrap();
        let image = || store.crash_image(&mut Random::new(0), Personality::KeepAll);
        let (gone, short) = (image(), image());
        gone.remove(segment.name).unwrap();
        drop(short.extend(segment.name, segment.bytes - 1, &FileHint::default()).unwrap());
        for (damaged, text) in [(gone, "is missing"), (short, "the manifest vouches for")] {
            let runtime = Arc::new(runtime::Stepped::new(7, 2));
            let error = options(layout).open_in(Arc::new(damaged), runtime).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert_eq!(error.file(), Some(&*segment.name.to_string()), "{error}");
            assert!(error.message().contains(text), "{error}");
        }
        assert_content(&open(&store, layout), &content);
    }
}

const CAPACITY_BYTES: u64 = 128 << 10;

fn bounded(layout: &str) -> Options {
    options(layout).expert(|e| e.values.capacity_bytes = Some(Some(CAPACITY_BYTES)))
}

fn open_bounded(store: &MemStore, layout: &str, runtime_seed: u64) -> Db {
    let runtime = Arc::new(runtime::Stepped::new(runtime_seed, 2));
    bounded(layout).open_in(Arc::new(store.clone()), runtime).unwrap()
}

/// Puts new keys until one is refused; returns the error.
fn fill(
    db: &Db,
    content: &mut Content,
    random: &mut Random,
    numbers: &mut std::ops::RangeFrom<u64>,
) -> shingle::Error {
    loop {
        let (key, value) = (key(numbers.next().unwrap()), value(random));
        match db.put(&key, &value) {
            Ok(()) => content.insert(key, value),
            Err(error) => return error,
        };
        assert!(db.stats().values.total_bytes <= CAPACITY_BYTES);
    }
}

fn value_bytes_on_medium(store: &MemStore) -> u64 {
    let files = store.list().unwrap();
    files.iter().filter(|file| file.name.kind == FileKind::Value).map(|file| file.bytes).sum()
}

/// Every byte of every value segment on the medium is one that the tree lists.
fn assert_no_leak(db: &Db, store: &MemStore) {
    db.wait_idle().unwrap();
    assert_eq!(value_bytes_on_medium(store), db.stats().values.total_bytes);
}

#[test]
fn a_full_value_store_refuses_writes_and_takes_them_again_after_deletions() {
    for layout in ["log", "hashed"] {
        let store = MemStore::new(Arc::default());
        let mut db = open_bounded(&store, layout, 5);
        let (mut content, mut random, mut numbers) = (Content::new(), Random::new(11), 0..);
        for round in 0..4 {
            let error = fill(&db, &mut content, &mut random, &mut numbers);
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
            let text = error.message();
            let parts = ["`default`", "131072 bytes", "delete values", "value_capacity_bytes"];
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
            // Most of the capacity holds live values, not garbage.
            let live = content.len() as u64 * VALUE_BYTES as u64;
            assert!(live > CAPACITY_BYTES * 6 / 10, "{layout}, round {round}: {live} live bytes");
            assert_content(&db, &content);
            // Further large values are refused at once; small values and deletions are not.
            assert_eq!(db.put("more", [1; VALUE_BYTES]).unwrap_err().kind(), ErrorKind::NoSpace);
            db.put("small", "value").unwrap();
            content.insert(b"small".to_vec(), b"value".to_vec());
            let gone: Vec<Vec<u8>> = content.keys().step_by(3).cloned().collect();
            for key in gone {
                db.delete(&key).unwrap();
                content.remove(&key);
            }
            if round == 1 {
                db.close().unwrap();
                db = open_bounded(&store, layout, round);
            }
        }
        let stats = db.stats();
        println!("{layout}: {:?}, {:?}", stats.values, stats.stalls);
        let waited = |stall: &Stall| stall.reason == StallReason::ValueSpace && stall.count > 0;
        assert!(stats.stalls.iter().any(waited), "{:?}", stats.stalls);
        assert_content(&db, &content);
        settle(&db);
        assert_no_leak(&db, &store);
        drop(db);
        let db = open_bounded(&store, layout, 9);
        assert_no_leak(&db, &store);
        assert_content(&db, &content);
    }
}

#[test]
fn updates_in_a_nearly_full_value_store_go_on_by_gc() {
    for layout in ["log", "hashed"] {
        let store = MemStore::new(Arc::default());
        let db = open_bounded(&store, layout, 6);
        let (mut content, mut random) = (Content::new(), Random::new(12));
        // Live values take 60 % of the capacity.
        let keys = CAPACITY_BYTES * 6 / 10 / (VALUE_BYTES as u64 + 20);
        for _ in 0..10 * keys {
            let (key, value) = (key(random.below(keys)), value(&mut random));
            db.put(&key, &value).unwrap();
            content.insert(key, value);
            let values = db.stats().values;
            assert!(values.total_bytes <= CAPACITY_BYTES, "{layout}: {values:?}");
        }
        assert_content(&db, &content);
        let stalls = db.stats().stalls;
        let slowed = stalls.iter().find(|stall| stall.reason == StallReason::ValueSpace);
        println!("{layout}: {slowed:?}");
        settle(&db);
        assert_no_leak(&db, &store);
    }
}

/// Regression: a writer that was faster than the one worker was not throttled, and garbage grew
/// with every write until the medium was full.
#[test]
fn overwriting_without_pause_keeps_the_garbage_among_values_bounded() {
    const KEYS_MANY: u64 = 3000;
    for (layout, odds) in [("log", 4), ("log", 16), ("hashed", 16)] {
        let store = MemStore::new(Arc::default());
        let small_steps = options(layout).expert(|e| {
            e.step_bytes = Some(2 << 10);
            e.slow_rate_bytes_max = Some(1 << 20);
            e.slow_rate_bytes_min = Some(16 << 10);
        });
        let runtime = Arc::new(runtime::Stepped::new(3, odds));
        let db = small_steps.open_in(Arc::new(store.clone()), runtime).unwrap();
        let (mut content, mut random) = (Content::new(), Random::new(21));
        let mut total_bytes_max = 0;
        for n in 0..30 * KEYS_MANY {
            let (key, value) = (key(random.below(KEYS_MANY)), value(&mut random));
            db.put(&key, &value).unwrap();
            content.insert(key, value);
            if n % 100 == 0 {
                total_bytes_max = total_bytes_max.max(db.stats().values.total_bytes);
            }
        }
        let live_bytes = KEYS_MANY * (VALUE_BYTES as u64 + 20);
        println!("{layout}, {odds}: {total_bytes_max} bytes for {live_bytes}");
        assert!(total_bytes_max < 6 * live_bytes, "{layout}, {odds}: {total_bytes_max}");
        assert_content(&db, &content);
        settle(&db);
        assert_no_leak(&db, &store);
    }
}

#[test]
fn a_snapshot_that_holds_the_space_is_named_and_its_end_gives_the_space_back() {
    for layout in ["log", "hashed"] {
        let store = MemStore::new(Arc::default());
        let db = open_bounded(&store, layout, 7);
        let (mut content, mut random, mut numbers) = (Content::new(), Random::new(13), 0..);
        fill(&db, &mut content, &mut random, &mut numbers);
        let (snapshot, then) = (db.snapshot(), content.clone());
        for key in std::mem::take(&mut content).keys() {
            db.delete(key).unwrap();
        }
        let error = fill(&db, &mut content, &mut random, &mut numbers);
        assert!(error.message().contains("snapshots"), "{error}");
        for (key, value) in &then {
            assert_eq!(snapshot.get(key).unwrap().as_deref(), Some(&value[..]), "{layout}");
        }
        drop(snapshot);
        let before = content.len();
        fill(&db, &mut content, &mut random, &mut numbers);
        assert!(content.len() > before + then.len() * 8 / 10, "{} {before}", content.len());
        assert_content(&db, &content);
    }
}

#[test]
fn a_write_that_must_not_wait_learns_whether_waiting_would_help() {
    let store = MemStore::new(Arc::default());
    let db = open_bounded(&store, "log", 8);
    let (mut content, mut random, mut numbers) = (Content::new(), Random::new(14), 0..);
    fill(&db, &mut content, &mut random, &mut numbers);
    let write = |db: &Db| {
        let mut batch = WriteBatch::new();
        batch.put("now", [7; VALUE_BYTES]).unwrap();
        db.write(batch, &WriteOptions { wait: false, ..WriteOptions::default() })
    };
    assert_eq!(write(&db).unwrap_err().kind(), ErrorKind::NoSpace);
    for key in content.keys().step_by(2) {
        db.delete(key).unwrap();
    }
    assert_eq!(write(&db).unwrap_err().kind(), ErrorKind::WouldWait);
    db.put("wait", [7; VALUE_BYTES]).unwrap();
}

#[test]
fn a_value_larger_than_the_capacity_is_refused_and_changes_nothing() {
    let store = MemStore::new(Arc::default());
    let db = open_bounded(&store, "hashed", 9);
    db.put("a", [1; VALUE_BYTES]).unwrap();
    let error = db.put("b", vec![2; CAPACITY_BYTES as usize]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    db.put("c", [3; VALUE_BYTES]).unwrap();
    assert_eq!(db.iter().count(), 2);
}

#[test]
fn values_that_find_no_space_when_a_layout_begins_stay_in_the_runs() {
    let store = MemStore::new(Arc::default());
    let (mut content, mut random) = (Content::new(), Random::new(15));
    let db = open(&store, "inline");
    for n in 0..2 * CAPACITY_BYTES / VALUE_BYTES as u64 {
        let (key, value) = (key(n), value(&mut random));
        db.put(&key, &value).unwrap();
        content.insert(key, value);
    }
    drop(db);
    let db = open_bounded(&store, "hashed", 10);
    let touch = |db: &Db| {
        for key in content.keys() {
            db.delete([key, &b"x"[..]].concat()).unwrap();
        }
        settle(db);
    };
    touch(&db);
    let total = db.stats().values.total_bytes;
    assert!(total > CAPACITY_BYTES / 2 && total <= CAPACITY_BYTES, "{total}");
    assert_content(&db, &content);
    // With more capacity: values are separated again when the tree is rewritten.
    db.close().unwrap();
    let db = open(&store, "hashed");
    touch(&db);
    assert!(db.stats().values.total_bytes > 2 * CAPACITY_BYTES);
    assert_content(&db, &content);
}

#[test]
fn a_capacity_without_space_for_gc_is_refused_at_opening() {
    let store = MemStore::new(Arc::default());
    let options = options("hashed").expert(|e| e.values.capacity_bytes = Some(Some(50 << 10)));
    let error = options.open_in(Arc::new(store), Arc::new(runtime::Stepped::new(1, 1)));
    let error = error.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("at least 65536"), "{error}");
}

/// Requests to a store's value segments, in order: prefetches and reads of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Soon(FileName, u64),
    Now(FileName, u64),
}

/// A database whose scans are watched: its content, and what its store is asked for once it is
/// flagged.
fn watched(
    layout: &str,
    in_memory: bool,
) -> (Db, Content, Arc<Mutex<Vec<Asked>>>, Arc<AtomicBool>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (log, scan) = (asked.clone(), Arc::new(AtomicBool::new(false)));
    let is_on = scan.clone();
    let noted = move |request: &Request| {
        let &Request { name, offset, cause, .. } = request;
        if is_on.load(Ordering::Relaxed) && name.kind == FileKind::Value {
            log.lock().push(match cause {
                Some(_) => Asked::Now(name, offset),
                None => Asked::Soon(name, offset),
            });
        }
    };
    let watched =
        Watched { inner: MemStore::new(Arc::default()), hook: Arc::new(noted), in_memory };
    let runtime = Arc::new(runtime::Stepped::new(7, 2));
    let db = options(layout).open_in(Arc::new(watched), runtime).unwrap();
    let (mut content, mut random) = (Content::new(), Random::new(21));
    write(&db, &mut content, &mut random, 4 * KEYS);
    settle(&db);
    (db, content, asked, scan)
}

/// The prefetcher walks the entries a second time, and a prefetch is a call of the system.
#[test]
fn a_scan_of_values_in_memory_asks_for_nothing_ahead() {
    for layout in ["log", "hashed"] {
        let (db, content, asked, scan) = watched(layout, true);
        scan.store(true, Ordering::Relaxed);
        let whole: Vec<_> = db.iter().map(|pair| pair.unwrap().1.to_vec()).collect();
        assert!(whole.iter().eq(content.values()));
        let asked = asked.lock();
        assert!(asked.iter().all(|asked| matches!(asked, Asked::Now(..))), "{layout}: {asked:?}");
        assert_eq!(asked.len(), content.len(), "{layout}: each is read once");
    }
}

#[test]
fn a_long_scan_has_its_values_fetched_ahead_once_each() {
    for layout in ["log", "hashed"] {
        let (db, content, asked, scan) = watched(layout, false);
        scan.store(true, Ordering::Relaxed);
        let whole: Vec<_> = db.iter().map(|pair| pair.unwrap().1.to_vec()).collect();
        assert!(whole.iter().eq(content.values()));
        let asked_whole = std::mem::take(&mut *asked.lock());
        let mut ahead = 0usize;
        let (mut soon, mut cold, mut lead) = (BTreeSet::new(), 0, 0);
        for asked in asked_whole {
            match asked {
                Asked::Soon(name, offset) => {
                    assert!(soon.insert((name, offset)), "{layout}: asked for twice");
                    ahead += 1;
                    lead = lead.max(ahead);
                }
                Asked::Now(name, offset) if soon.contains(&(name, offset)) => ahead -= 1,
                Asked::Now(..) => cold += 1,
            }
        }
        println!("{layout}: {cold} of {} read cold, lead {lead}", content.len());
        // The one that is being read is counted too.
        assert!(cold <= 4 && ahead == 0 && lead > 16 && lead <= 33, "{cold} {ahead} {lead}");
        // A short scan prefetches nothing.
        assert_eq!(db.iter().take(3).count(), 3);
        let asked = std::mem::take(&mut *asked.lock());
        assert!(asked.iter().all(|asked| matches!(asked, Asked::Now(..))), "{asked:?}");
    }
}
