//! Segments that the background begins, ahead of the commits that append values to them.

use crate::script::Script;
use base::random::Random;
use media::faulty::{Effect, Fault, FaultPlan, FaultyStore, Filter, Operation};
use media::mem::{MemStore, Personality};
use media::{FileKind, FileStore, FileSummary};
use shingle::runtime::Stepped;
use shingle::{Cause, Db, KeyspaceOptions, Options, WriteBatch, WriteOptions};
use std::collections::BTreeMap;
use std::sync::Arc;

const VALUE_BYTES: u64 = 300;
const SEGMENT_BYTES: u64 = 16 << 10;

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Options::new()
        .values("log")
        .value_threshold_bytes(64)
        .write_buffer_bytes(4 << 20)
        .cache_bytes(64 << 10)
        .expert(|e| e.values.segment_bytes = Some(SEGMENT_BYTES))
}

/// A database whose background makes no step unless told to, and the counts of its store.
struct World {
    store: MemStore,
    plan: Arc<FaultPlan>,
    script: Arc<Script>,
    db: Db,
    content: Content,
}

impl World {
    fn new() -> World {
        World::of(MemStore::new(Arc::default()), Content::new())
    }

    fn of(store: MemStore, content: Content) -> World {
        let (plan, script) = (Arc::<FaultPlan>::default(), Arc::<Script>::default());
        let faulty = FaultyStore::new(Arc::new(store.clone()), plan.clone());
        let db = options().open_in(Arc::new(faulty), script.clone()).unwrap();
        World { store, plan, script, db, content }
    }

    /// Puts `count` large values that must not wait.
    fn put(&mut self, count: u64) {
        for _ in 0..count {
            let n = self.content.len() as u64;
            let (key, mut value) =
                (format!("key{n:05}").into_bytes(), vec![0; VALUE_BYTES as usize]);
            Random::new(n).fill(&mut value);
            let mut batch = WriteBatch::new();
            batch.put(&key, &value).unwrap();
            self.db.write(batch, &WriteOptions { durability: None, wait: false }).unwrap();
            self.content.insert(key, value);
        }
    }

    /// Puts values until the active segment has more than `bytes`.
    fn put_until(&mut self, bytes: u64) {
        while self.largest_bytes() <= bytes {
            self.put(1);
        }
    }

    fn settle(&self) {
        while self.script.step() {}
    }

    /// Bytes of the value segments, oldest first.
    fn files(&self) -> Vec<u64> {
        let mut files = self.store.list().unwrap();
        files.retain(|file| file.name.kind == FileKind::Value);
        files.sort_by_key(|file| file.name.id);
        files.into_iter().map(|file| file.bytes).collect()
    }

    fn largest_bytes(&self) -> u64 {
        self.files().into_iter().max().unwrap_or(0)
    }

    /// Edits written and value files created so far.
    fn begun(&self) -> (u64, u64) {
        let count = |operation, kind| {
            self.plan.count(Filter { operation: Some(operation), kind: Some(kind) })
        };
        (count(Operation::Append, FileKind::Manifest), count(Operation::Create, FileKind::Value))
    }

    fn value_bytes(&self) -> u64 {
        self.db.stats().ledger.cause(Cause::ValueWrite).write_bytes
    }

    fn log_bytes(&self) -> u64 {
        self.db.stats().ledger.cause(Cause::Wal).write_bytes
    }

    fn assert_exact(&self) {
        assert!(content_of(&self.db) == self.content);
        let report = self.db.check(&mut |_| {}).unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
    }

    /// What a loss of power leaves, opened again.
    fn reopened(&self, personality: Personality) -> World {
        let image = self.store.crash_image(&mut Random::new(1), personality);
        World::of(image, self.content.clone())
    }
}

fn content_of(db: &Db) -> Content {
    let pairs = db.iter().map(|pair| pair.map(|(key, value)| (key.to_vec(), value.to_vec())));
    pairs.collect::<Result<_, _>>().unwrap()
}

/// Regression: the writer of a value that found no active segment installed an edit itself, outside
/// admission and also where it must not wait.
#[test]
fn a_write_that_must_not_wait_never_begins_a_segment() {
    let mut world = World::new();
    let before = world.begun();
    // More than a segment, all by the log.
    world.put(60);
    assert_eq!(world.begun(), before, "before the first segment");
    assert_eq!(world.value_bytes(), 0);
    world.settle();
    let first = world.begun();
    assert_eq!(first.1, before.1 + 1);
    world.put_until(SEGMENT_BYTES);
    let logged = world.log_bytes();
    world.put(60);
    assert_eq!(world.begun(), first, "with a full segment");
    assert!(world.log_bytes() - logged > 60 * VALUE_BYTES, "by the log again");
    world.settle();
    let (second, logged) = (world.begun(), world.log_bytes());
    world.put(30);
    assert_eq!(world.begun(), second);
    assert!(world.log_bytes() - logged < 30 * VALUE_BYTES, "to the second segment");
    assert!(world.files().iter().all(|&bytes| bytes < SEGMENT_BYTES + 2 * VALUE_BYTES));
    world.assert_exact();
    for personality in [Personality::KeepAll, Personality::LoseUnsynced] {
        let again = world.reopened(personality);
        assert!(content_of(&again.db).iter().all(|(key, value)| world.content[key] == *value));
    }
    world.reopened(Personality::KeepAll).assert_exact();
    world.db.flush().unwrap();
    world.assert_exact();
}

#[test]
fn the_next_segment_is_there_before_the_active_one_is_full() {
    let mut world = World::new();
    world.put(4);
    world.settle();
    let logged = world.log_bytes();
    for _ in 0..300 {
        world.put(1);
        world.settle();
        let files = world.files();
        let active = files.iter().rev().copied().find(|&bytes| bytes > 0).unwrap();
        let is_ahead = active >= SEGMENT_BYTES * 3 / 4;
        assert_eq!(files.iter().filter(|&&bytes| bytes == 0).count(), usize::from(is_ahead));
    }
    assert!(world.files().len() > 5, "{:?}", world.files());
    assert!(world.log_bytes() - logged < 300 * VALUE_BYTES / 3, "no value was logged");
    world.assert_exact();
}

/// A world with an active segment that has values and one that has none.
fn with_a_segment_ahead() -> World {
    let mut world = World::new();
    world.put(4);
    world.settle();
    world.put_until(SEGMENT_BYTES * 3 / 4);
    world.settle();
    assert_eq!(world.files().last(), Some(&0));
    world
}

#[test]
fn a_segment_that_was_not_used_goes_with_its_session() {
    let world = with_a_segment_ahead();
    let image = world.store.crash_image(&mut Random::new(1), Personality::KeepAll);
    let World { store, db, content, .. } = world;
    db.close().unwrap();
    let is_empty = |file: &FileSummary| file.name.kind == FileKind::Value && file.bytes == 0;
    assert!(!store.list().unwrap().iter().any(is_empty), "after a close");
    World::of(store, content.clone()).assert_exact();
    let again = World::of(image, content);
    assert!(!again.files().contains(&0), "after a crash: {:?}", again.files());
    again.assert_exact();
}

#[test]
fn sessions_that_end_with_a_segment_ahead_leave_no_more_and_more_of_them() {
    let mut world = with_a_segment_ahead();
    let mut counts = Vec::new();
    for _ in 0..6 {
        world = world.reopened(Personality::KeepAll);
        world.put(4);
        world.settle();
        assert_eq!(world.files().last(), Some(&0), "its first value did not come yet");
        counts.push(world.files().len());
    }
    assert!(counts.iter().all(|count| *count <= counts[0] + 1), "{counts:?}");
    world.assert_exact();
}

/// Power is lost at any operation between a request and the first values of the segment. What an
/// opening finds are the acknowledged values and no segment without any.
#[test]
fn power_lost_while_a_segment_is_begun_loses_nothing_and_leaves_nothing() {
    let filter = |operation, kind| Filter { operation: Some(operation), kind };
    let value = Some(FileKind::Value);
    let points = [
        filter(Operation::Create, value),
        filter(Operation::SyncNames, None),
        filter(Operation::Append, Some(FileKind::Manifest)),
        filter(Operation::Sync, Some(FileKind::Manifest)),
        filter(Operation::Append, value),
        filter(Operation::Append, Some(FileKind::Wal)),
    ];
    for (at, point) in points.into_iter().enumerate() {
        let mut world = World::new();
        world.put(4);
        world.db.sync().unwrap();
        let (synced, image) = (world.content.clone(), Arc::new(parking_lot::Mutex::new(None)));
        let (store, at_point) = (world.store.clone(), image.clone());
        let take = move || {
            let images = [Personality::KeepAll, Personality::LoseUnsynced]
                .map(|personality| store.crash_image(&mut Random::new(1), personality));
            *at_point.lock() = Some(images);
        };
        world.plan.act(point, 0, Box::new(take));
        world.settle();
        world.put(4);
        let images = image.lock().take();
        for image in images.unwrap_or_else(|| panic!("point {at} was not reached")) {
            let again = World::of(image, synced.clone());
            let found = content_of(&again.db);
            assert!(synced.iter().all(|(key, value)| found.get(key) == Some(value)), "point {at}");
            assert!(found.iter().all(|(key, value)| world.content[key] == *value), "point {at}");
            assert!(!again.files().contains(&0), "point {at}: {:?}", again.files());
            assert!(again.db.check(&mut |_| {}).unwrap().is_clean(), "point {at}");
        }
    }
}

/// A segment that finds no space costs no write and nothing of the reserve: values go by the log
/// until a part of a segment has come again.
#[test]
fn a_segment_that_cannot_be_begun_costs_no_write() {
    let create = Filter { operation: Some(Operation::Create), kind: Some(FileKind::Value) };
    let list = Filter { operation: Some(Operation::Append), kind: Some(FileKind::Manifest) };
    for filter in [create, list] {
        let mut world = World::new();
        world.put(4);
        let fault = Fault { filter, after: 0, is_sticky: false, effect: Effect::NoSpace };
        world.plan.add(fault);
        world.settle();
        assert_eq!(world.plan.failures(), 1, "{filter:?}");
        assert!(world.files().is_empty(), "{filter:?}: the file is gone");
        let created = world.begun().1;
        world.put(2);
        world.settle();
        assert_eq!(world.begun().1, created, "{filter:?}: it waits before the next try");
        world.put(4);
        world.settle();
        assert_eq!(world.files(), [0], "{filter:?}");
        world.put(4);
        assert!(world.value_bytes() > 4 * VALUE_BYTES, "{filter:?}");
        world.assert_exact();
        world.reopened(Personality::KeepAll).assert_exact();
    }
}

#[test]
fn a_segment_that_cannot_be_begun_takes_nothing_of_the_reserve() {
    let home = tempfile::tempdir().unwrap();
    let files = options().directory(home.path(), Arc::default()).unwrap();
    let (plan, script) = (Arc::<FaultPlan>::default(), Arc::<Script>::default());
    let store = FaultyStore::new(Arc::new(files), plan.clone());
    let db = options().open_in(Arc::new(store), script.clone()).unwrap();
    let edit = Filter { operation: Some(Operation::Append), kind: Some(FileKind::Manifest) };
    let fault = Fault { filter: edit, after: 0, is_sticky: false, effect: Effect::NoSpace };
    let refuse = || {
        plan.add(fault);
        (0..4).for_each(|n: u64| db.put(n.to_be_bytes(), [1; VALUE_BYTES as usize]).unwrap());
        let before = plan.failures();
        while script.step() {}
        assert_eq!(plan.failures(), before + 1);
    };
    let log = || std::fs::read_to_string(home.path().join("LOG")).unwrap();
    refuse();
    assert!(log().contains("segment_begin_failed"), "{}", log());
    assert!(!log().contains("space_reserve_released"), "{}", log());
    // A flush must go on, so its edit does.
    plan.add(fault);
    db.flush().unwrap();
    assert!(log().contains("space_reserve_released"), "{}", log());
}

/// The edit that lists a segment may be durable although it failed: the database is poisoned, and
/// the file stays until an opening decides.
#[test]
fn an_edit_of_unknown_outcome_that_lists_a_segment_poisons() {
    for effect in [Effect::IoDone, Effect::IoHalfDone] {
        let mut world = World::new();
        world.put(4);
        let filter = Filter { operation: Some(Operation::Append), kind: Some(FileKind::Manifest) };
        world.plan.add(Fault { filter, after: 0, is_sticky: false, effect });
        world.settle();
        assert_eq!(world.files(), [0]);
        assert!(world.db.put("refused", "").is_err());
        assert!(content_of(&world.db) == world.content);
        let again = world.reopened(Personality::KeepAll);
        assert!(!again.files().contains(&0), "{:?}", again.files());
        again.assert_exact();
    }
}

/// The segment is begun while its keyspace is dropped.
#[test]
fn a_keyspace_that_is_dropped_takes_its_requests_and_segments_with_it() {
    for steps in 0..2 {
        let world = World::new();
        let other = world.db.create_keyspace("other", KeyspaceOptions::default()).unwrap();
        for n in 0..4u64 {
            other.put(n.to_be_bytes(), [1; VALUE_BYTES as usize]).unwrap();
        }
        for _ in 0..steps {
            world.script.step();
        }
        world.db.drop_keyspace("other").unwrap();
        drop(other);
        world.db.wait_idle().unwrap();
        assert!(world.files().is_empty(), "{steps}: {:?}", world.files());
    }
}

/// With threads, and segments that fill faster than the background begins them.
#[test]
fn writers_that_outrun_the_background_lose_nothing() {
    let store = MemStore::new(Arc::default());
    let options = options().expert(|e| e.values.segment_bytes = Some(2 << 10));
    let runtime = Arc::new(shingle::runtime::Threads::new());
    let db = options.clone().open_in(Arc::new(store.clone()), runtime).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4u64 {
            let db = &db;
            scope.spawn(move || {
                for n in 0..300 {
                    db.put(format!("{writer}-{n:04}"), [n as u8; VALUE_BYTES as usize]).unwrap();
                }
            });
        }
    });
    db.close().unwrap();
    let db = options.open_in(Arc::new(store), Arc::new(Stepped::new(1, 1))).unwrap();
    let content = content_of(&db);
    assert_eq!(content.len(), 1200);
    for (key, value) in content {
        let n: u64 = std::str::from_utf8(&key[2..]).unwrap().parse().unwrap();
        assert_eq!(value, [n as u8; VALUE_BYTES as usize]);
    }
    assert!(db.check(&mut |_| {}).unwrap().is_clean());
}
