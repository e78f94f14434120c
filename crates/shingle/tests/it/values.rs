//! Values apart from the runs: space, snapshots, switching, salvage.

use base::random::Random;
use media::mem::MemStore;
use shingle::{Cause, Db, Options, runtime};
use std::collections::BTreeMap;
use std::sync::Arc;

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
            e.table_bytes = Some(8 << 10);
            e.level_bytes_base = Some(16 << 10);
            e.value_segment_bytes = Some(8 << 10);
            e.value_log_segment_bytes = Some(1 << 10);
            e.value_reserved_ratio = Some(0.3);
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
fn collections_keep_the_space_of_updated_values_bounded() {
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
        assert!(stats.ledger.cause(Cause::ValueGc).write_bytes > 0);
        drop(db);
        assert_content(&open(&store, layout), &content);
    }
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
        // The last segment may wait for more to die.
        assert!(stats.values.total_bytes <= 3 * (8 << 10), "{:?}", stats.values);
    }
}

#[test]
fn a_snapshot_reads_values_whose_segments_were_collected() {
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
        let seen = iterator.map(|entry| entry.unwrap()).count();
        assert_eq!(seen, then.len());
        drop(snapshot);
        settle(&db);
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
