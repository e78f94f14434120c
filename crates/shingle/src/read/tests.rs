//! The cost of range deletions for readers, in steps.

use crate::runtime::Stepped;
use crate::work;
use crate::{Db, KeyspaceOptions, Options, PrefixRule, ReadOptions};
use base::Cause;
use base::random::Random;
use media::FileStore;
use media::mem::MemStore;
use std::collections::BTreeMap;
use std::sync::Arc;

fn open() -> Db {
    open_in(&MemStore::new(Arc::default()))
}

fn open_in(store: &MemStore) -> Db {
    let options = Options::new().expert(|e| {
        e.memtable_bytes = Some(64 << 20);
        e.scheme.table_bytes_max = Some(16 << 10);
        e.block_bytes = Some(512);
    });
    options
        .open_in(Arc::new(store.clone()), Arc::new(Stepped::new(1, 1000)))
        .expect("a new database")
}

fn key(n: usize) -> [u8; 4] {
    (n as u32).to_be_bytes()
}

/// The range of a deletion, by its number and the total.
type Shape = fn(usize, usize) -> (usize, usize);

const ROLLING: Shape = |i, _| (0, i);
const NESTED: Shape = |i, n| (i / 2, n - i / 2);
/// The first of each two keys.
const EVERY_OTHER: Shape = |i, _| (i / 2 * 2, i / 2 * 2 + 1);

/// Which parts of a history are flushed, and whether everything is compacted at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Memory,
    EntriesFlushed,
    Flushed,
    Compacted,
}

/// `count` entries, then as many deletions; the last 10 keys stay.
fn deleted(shape: Shape, count: usize, place: Place) -> Db {
    let db = open();
    (0..count).for_each(|n| db.put(key(n), b"value").expect("room"));
    if place == Place::EntriesFlushed || place == Place::Flushed {
        db.flush().expect("room");
    }
    for i in 0..count - 10 {
        let (from, to) = shape(i, count - 10);
        db.delete_range(key(from), key(to)).expect("room");
    }
    match place {
        Place::Flushed => db.flush().expect("room"),
        Place::Compacted => db.compact().expect("room"),
        Place::Memory | Place::EntriesFlushed => {}
    }
    db
}

/// Steps of a walk forward and of one backward, and the number of keys that each found.
fn steps_to_scan(db: &Db) -> (usize, usize) {
    work::take();
    let forward = db.iter().count();
    let backward = db.iter().rev().count();
    assert_eq!(forward, backward);
    (work::take(), forward)
}

const PLACES: [Place; 4] = [Place::Memory, Place::EntriesFlushed, Place::Flushed, Place::Compacted];

/// Regression: a new cursor gathered the tombstones of all sources in one set, and searched that
/// set for each entry: 40 seconds for 9,387 keys after a million deletions.
#[test]
fn twice_the_range_deletions_are_at_most_twice_the_steps_of_a_scan() {
    for (name, shape) in [("rolling", ROLLING), ("nested", NESTED), ("every other", EVERY_OTHER)] {
        for place in PLACES {
            let (half, _) = steps_to_scan(&deleted(shape, 1000, place));
            let (whole, _) = steps_to_scan(&deleted(shape, 2000, place));
            assert!(whole * 10 <= half * 23, "{name}, {place:?}: {half}, then {whole} steps");
        }
    }
}

/// Entries that are older than a deletion above them are leapt over, not walked.
#[test]
fn a_scan_leaps_over_what_newer_range_deletions_hide() {
    for place in [Place::EntriesFlushed, Place::Flushed, Place::Compacted] {
        let (steps, keys) = steps_to_scan(&deleted(ROLLING, 4000, place));
        assert!(steps < 3 * keys + 60, "{place:?}: {steps} steps for {keys} keys");
    }
}

/// A cursor in a level of many nodes passes hidden nodes without opening them, but none that has
/// something newer.
#[test]
fn leaps_over_nodes_stop_where_something_newer_is() {
    let db = open();
    let mut expected = BTreeMap::new();
    (0..4000).for_each(|n| db.put(key(n), vec![b'a'; 60]).expect("room"));
    db.flush().expect("room");
    db.compact().expect("room");
    db.delete_range(key(100), key(3900)).expect("room");
    // Newer entries in the middle, which end up in the same level.
    for n in (1500..1600).chain(2500..2510) {
        db.put(key(n), vec![b'b'; 60]).expect("room");
    }
    for place in 0..3 {
        if place == 1 {
            db.flush().expect("room");
        }
        if place == 2 {
            db.compact().expect("room");
        }
        expected.extend((0..100).chain(3900..4000).map(|n| (key(n).to_vec(), b'a')));
        expected.extend((1500..1600).chain(2500..2510).map(|n| (key(n).to_vec(), b'b')));
        work::take();
        let pair = |pair: crate::Result<(crate::Bytes, crate::Bytes)>| {
            let (key, value) = pair.expect("whole");
            (key.to_vec(), value[0])
        };
        assert_eq!(db.iter().map(pair).collect::<BTreeMap<_, _>>(), expected);
        assert_eq!(db.iter().rev().map(pair).collect::<BTreeMap<_, _>>(), expected);
        let steps = work::take();
        assert!(steps < 3 * expected.len() + 120, "{steps} steps");
    }
}

/// Regression: the first get after a flush read all tombstones back and decoded them: 0.2 s for a
/// million.
#[test]
fn a_flushed_run_with_range_deletions_is_not_read_back_for_the_first_get() {
    let store = MemStore::new(Arc::default());
    let db = open_in(&store);
    (0..100).for_each(|n| db.put(key(n), b"value").expect("room"));
    (0..50).for_each(|n| db.delete_range(key(2 * n), key(2 * n + 1)).expect("room"));
    db.flush().expect("room");
    let before = store.ledger().snapshot();
    let gotten = (0..100).filter(|&n| db.get(key(n)).expect("whole").is_some()).count();
    let read = store.ledger().snapshot().since(&before);
    assert_eq!((gotten, read.cause(Cause::OpenRun).read_bytes), (50, 0));
    drop(db);
    let db = open_in(&store);
    let before = store.ledger().snapshot();
    assert_eq!(db.get(key(1)).expect("whole").as_deref(), Some(&b"value"[..]));
    let read = store.ledger().snapshot().since(&before);
    assert!(read.cause(Cause::OpenRun).read_bytes > 0, "this test would see it");
}

/// Cursors that change direction in the middle of leaps, with snapshots between the deletions.
#[test]
fn cursors_walk_both_ways_through_deletions_of_any_place() {
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let db = open();
        let mut model = BTreeMap::new();
        let mut kept = Vec::new();
        for step in 0..600 {
            let n = random.below(300) as usize;
            match random.below(40) {
                0 => db.flush().expect("room"),
                1 if step > 300 => db.compact().expect("room"),
                2 => kept.push((db.snapshot(), model.clone())),
                3..=7 => {
                    let to = n + 1 + random.below(if step % 7 == 0 { 200 } else { 20 }) as usize;
                    db.delete_range(key(n), key(to)).expect("room");
                    model.retain(|k: &Vec<u8>, _| k[..] < key(n)[..] || k[..] >= key(to)[..]);
                }
                _ => {
                    db.put(key(n), [step as u8]).expect("room");
                    model.insert(key(n).to_vec(), step as u8);
                }
            }
        }
        kept.push((db.snapshot(), model));
        for (snapshot, model) in &kept {
            let mut cursor = snapshot.cursor(ReadOptions::default());
            let all: Vec<_> = model.iter().collect();
            cursor.seek_to_first().expect("whole");
            let mut at = 0usize;
            for _ in 0..200 {
                let found = cursor.valid().then(|| (cursor.key().to_vec(), cursor.value()[0]));
                let expected = all.get(at).map(|(key, value)| ((*key).clone(), **value));
                assert_eq!(found, expected, "seed {seed}, at {at}");
                if found.is_none() || random.one_in(12) {
                    at = random.below(all.len() as u64 + 1) as usize;
                    match all.get(at) {
                        Some((key, _)) if random.one_in(2) => cursor.seek_for_prev(key),
                        Some((key, _)) => cursor.seek(key),
                        None => cursor.seek([0xff; 5]),
                    }
                    .expect("whole");
                } else if at > 0 && random.one_in(2) {
                    (0..=random.below(at as u64).min(9))
                        .try_for_each(|_| {
                            at -= 1;
                            cursor.prev()
                        })
                        .expect("whole");
                } else {
                    at += 1;
                    cursor.next().expect("whole");
                }
            }
        }
    }
}

/// Filters knew prefixes, and no cursor asked them.
#[test]
fn scans_of_a_prefix_read_no_run_without_it() {
    let read_bytes = |prefix: PrefixRule| {
        let store = MemStore::new(Arc::default());
        let db = open_in(&store);
        let options = KeyspaceOptions { prefix, ..KeyspaceOptions::default() };
        let keyspace = db.create_keyspace("letters", options).expect("a new name");
        for letter in b'b'..=b'd' {
            // Every run overlaps every prefix.
            for first in [b'a', letter, b'z'] {
                (0..20).for_each(|n| keyspace.put([first, n], [n; 100]).expect("room"));
            }
            db.flush().expect("room");
        }
        keyspace.delete_range([b'c', 5], [b'c', 10]).expect("room");
        db.close().expect("room");
        let db = open_in(&store);
        let keyspace = db.keyspace("letters").expect("it exists");
        let before = store.ledger().snapshot();
        assert_eq!(keyspace.prefix(b"x").count(), 0);
        let read = store.ledger().snapshot().since(&before);
        let found = keyspace.prefix(b"c").map(|pair| pair.expect("whole").0.to_vec());
        assert!(found.eq((0..5).chain(10..20).map(|n| vec![b'c', n])));
        assert!(keyspace.prefix(b"c").rev().count() == 15 && keyspace.prefix(b"cc").count() == 0);
        assert_eq!(keyspace.range([b'b', 10]..[b'c', 3]).count(), 13);
        read.cause(Cause::Scan).read_bytes
    };
    let (without, with) = (read_bytes(PrefixRule::None), read_bytes(PrefixRule::Fixed(1)));
    assert!(with * 2 < without, "{with} bytes, {without} without the rule");
}

/// Steps of a seek to the first key, and this key.
fn steps_to_first(db: &Db) -> (usize, Option<Vec<u8>>) {
    work::take();
    let mut cursor = db.cursor(ReadOptions::default());
    cursor.seek_to_first().expect("whole");
    (work::take(), cursor.valid().then(|| cursor.key().to_vec()))
}

/// A queue: what was taken is stepped over once, in memory and in runs.
#[test]
fn seeks_to_the_first_key_walk_over_what_was_deleted_once() {
    const COUNT: usize = 2_000;
    for flushes in [false, true] {
        let db = open();
        (0..COUNT).for_each(|n| db.put(key(n), b"value").unwrap());
        let oldest = db.snapshot();
        let (mut last, mut total) = (0, 0);
        for end in (0..COUNT).step_by(100) {
            (last..end).for_each(|n| db.delete(key(n)).unwrap());
            last = end;
            if flushes && end % 400 == 0 {
                db.flush().unwrap();
            }
            for _ in 0..10 {
                let (steps, first) = steps_to_first(&db);
                assert_eq!(first.as_deref(), Some(&key(end)[..]));
                total += steps;
            }
        }
        let first = |db: &Db| steps_to_first(db).1;
        // The snapshot holds everything, so nothing was merged away.
        assert!(total < 20 * 10 * COUNT / 4, "{total} steps, flushes: {flushes}");
        // What is newer is seen, and what is older where it was not deleted yet.
        db.put(key(7), b"again").unwrap();
        assert_eq!(first(&db).as_deref(), Some(&key(7)[..]));
        let mut cursor = db.cursor(ReadOptions::default());
        cursor.seek(key(7)).unwrap();
        cursor.next().unwrap();
        assert_eq!(cursor.key(), key(last));
        cursor.prev().unwrap();
        assert_eq!(cursor.key(), key(7));
        assert_eq!(&oldest.iter().next().unwrap().unwrap().0[..], key(0));
        db.delete(key(7)).unwrap();
        assert_eq!(first(&db).as_deref(), Some(&key(last)[..]));
    }
}

/// The run of the deleted keys got a newer entry while their tombstones stayed above it: a seek
/// leapt over the tombstones, and walked through the run.
#[test]
fn a_seek_hides_what_the_tombstones_that_it_leaps_over_hide() {
    let db = open();
    (0..12).chain([900]).for_each(|n| db.put(key(n), b"old").unwrap());
    db.compact().unwrap();
    let _keeps_what_is_deleted = db.snapshot();
    (0..12).for_each(|n| db.delete(key(n)).unwrap());
    db.flush().unwrap();
    assert_eq!(steps_to_first(&db).1.as_deref(), Some(&key(900)[..]));
    db.put(key(500), b"new").unwrap();
    db.flush().unwrap();
    db.compact_range(Some(&key(500)), Some(&key(501))).unwrap();
    assert_eq!(steps_to_first(&db).1.as_deref(), Some(&key(500)[..]));
    assert_eq!(db.get(key(0)).unwrap(), None);
    assert_eq!((db.iter().count(), db.iter().rev().count()), (2, 2));
}

#[test]
fn cursors_see_the_same_whatever_stretches_are_known() {
    let mut random = Random::new(17);
    let db = open();
    let mut model: BTreeMap<[u8; 4], u64> = BTreeMap::new();
    let mut snapshots = Vec::new();
    for round in 0..400u64 {
        let from = random.below(500) as usize;
        for n in from..from + random.below(120) as usize {
            if random.one_in(8) {
                db.put(key(n), round.to_be_bytes()).unwrap();
                model.insert(key(n), round);
            } else {
                db.delete(key(n)).unwrap();
                model.remove(&key(n));
            }
        }
        if random.one_in(10) {
            db.flush().unwrap();
        }
        if random.one_in(20) {
            snapshots.push((db.snapshot(), model.clone()));
        }
        let start = key(random.below(620) as usize);
        let expected = model.range(start..).map(|(key, _)| key.to_vec());
        let mut cursor = db.cursor(ReadOptions::default());
        cursor.seek(start).unwrap();
        for expected in expected.take(20) {
            assert!(cursor.valid() && cursor.key() == expected, "round {round}");
            cursor.next().unwrap();
        }
        if let Some((snapshot, model)) = snapshots.get(random.below(20) as usize) {
            let mut cursor = snapshot.cursor(ReadOptions::default());
            cursor.seek(start).unwrap();
            let first = model.range(start..).next().map(|(key, _)| key.to_vec());
            assert_eq!(cursor.valid().then(|| cursor.key().to_vec()), first, "round {round}");
        }
    }
}
