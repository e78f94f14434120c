//! What one worker leaves to the next, and to the next opening: open segments, the turn to run GC,
//! and retired segments whose replacements only the log knows.

use crate::script::Script;
use crate::watched::{Hook, Watched};
use base::random::Random;
use media::faulty::{Effect, Fault, FaultPlan, FaultyStore, Filter, Operation};
use media::mem::{MemStore, Personality};
use media::{FileKind, FileStore};
use parking_lot::Mutex;
use shingle::{Cause, Db, Options, salvage_store};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

const VALUE_BYTES: usize = 200;

fn options() -> Options {
    Options::new()
        .values("hashed")
        .value_threshold_bytes(64)
        .write_buffer_bytes(16 << 10)
        .cache_bytes(0)
        .expert(|e| {
            e.memtable_bytes = Some(16 << 10);
            e.scheme.table_bytes_max = Some(16 << 10);
            e.scheme.level_bytes_base = Some(64 << 10);
            e.step_bytes = Some(4 << 10);
            e.values.segment_bytes = Some(64 << 10);
            e.values.log_segment_bytes = Some(1 << 10);
        })
}

fn put(db: &Db, numbers: impl IntoIterator<Item = u64>, byte: u8) {
    for n in numbers {
        db.put(format!("key{n:05}"), [byte; VALUE_BYTES]).unwrap();
    }
}

/// Regression: a flush released its claims on segments when its job was dropped, after the lock
/// that the next flush waits for. So the next flush found no segment free, and began a small
/// segment in each group.
#[test]
fn a_flush_goes_on_with_the_segments_of_the_one_that_just_ended() {
    let (store, script) = (MemStore::new(Arc::default()), Arc::<Script>::default());
    let db = Arc::new(options().open_in(Arc::new(store), script.clone()).unwrap());
    put(&db, 0..75, b'a');
    assert!(script.step());
    assert_eq!(db.stats().values.segments, 0, "the flush is under way");
    let user = db.clone();
    // It ends, and wakes a worker.
    script.at_wake(Box::new(move || {
        assert_eq!(user.stats().values.segments, 1);
        put(&user, 75..100, b'b');
        user.flush().unwrap();
    }));
    while script.step() {}
    let values = db.stats().values;
    assert!(values.total_bytes > 100 * VALUE_BYTES as u64, "{values:?}");
    assert_eq!(values.segments, 1, "{values:?}");
}

/// Regression: segments were synced one by one, each while no other was being written.
#[test]
fn a_flush_begins_to_write_all_segments_before_it_syncs_the_first() {
    let value = |operation| Filter { operation: Some(operation), kind: Some(FileKind::Value) };
    let (filter, effect) = (value(Operation::Sync), Effect::Io);
    let plan = FaultPlan::with(Fault { filter, after: 0, is_sticky: true, effect });
    let (store, script) = (with_much_to_collect(), Arc::<Script>::default());
    let store = FaultyStore::new(Arc::new(store), plan.clone());
    let db = small(100.0).open_in(Arc::new(store), script.clone()).unwrap();
    let groups = db.stats().values.groups;
    put(&db, 0..100, b'c');
    while plan.failures() == 0 {
        assert!(script.step());
    }
    let begun = plan.count(value(Operation::BeginSync));
    assert!(begun >= groups && groups > 2, "{begun} of {groups} groups");
    assert_eq!(plan.count(filter), 1);
}

#[test]
fn a_flush_syncs_no_segment_that_it_did_not_write_to() {
    let (store, script) = (with_much_to_collect(), Arc::<Script>::default());
    let db = small(100.0).open_in(Arc::new(store), script).unwrap();
    let syncs = || db.stats().ledger.cause(Cause::ValueWrite).sync_ops;
    let before = syncs();
    put(&db, [7], b'c');
    db.flush().unwrap();
    assert_eq!(syncs() - before, 1);
}

/// A database in groups, each with 50 % garbage, for which GC is due only when it is opened with
/// the ratio of `small`.
fn with_much_to_collect() -> MemStore {
    let store = MemStore::new(Arc::default());
    let db = small(100.0).open_in(Arc::new(store.clone()), Arc::<Script>::default()).unwrap();
    // The second part comes when there is enough for groups.
    for part in [0..50, 50..100] {
        put(&db, part, b'a');
        db.flush().unwrap();
    }
    put(&db, (0..100).step_by(2), b'b');
    db.flush().unwrap();
    db.compact().unwrap();
    db.wait_idle().unwrap();
    assert!(db.stats().values.dead_bytes > 0);
    db.close().unwrap();
    store
}

fn small(ratio: f64) -> Options {
    options().expert(|e| {
        e.values.segment_bytes = Some(4 << 10);
        e.values.reserved_ratio = Some(ratio);
    })
}

#[test]
fn collections_do_not_run_side_by_side() {
    let script = Arc::<Script>::default();
    let (of_step, read) = (script.clone(), Arc::new(Mutex::new(BTreeSet::new())));
    let noted = read.clone();
    // A worker comes while GC reads, which it does without locks.
    let hook: Hook = Arc::new(move |request| {
        if request.cause == Some(Cause::ValueGc) {
            noted.lock().insert(request.name.id);
            if of_step.depth.load(SeqCst) == 1 {
                of_step.second();
            }
        }
    });
    let store = Watched { inner: with_much_to_collect(), hook, in_memory: false };
    let db = small(0.01).open_in(Arc::new(store), script.clone()).unwrap();
    let keyspace = db.keyspace("default").unwrap();
    let (mut group_of, mut count) = (BTreeMap::new(), 0);
    loop {
        let version = keyspace.tree_for_test().unwrap();
        group_of.extend(version.segments.iter().map(|segment| (segment.file.id, segment.group)));
        if !script.step() {
            break;
        }
        // Groups read since the last GC ended.
        let groups: BTreeSet<_> = read.lock().iter().map(|id| group_of[id]).collect();
        assert!(groups.len() <= 1, "{groups:?}");
        let has_copies = version.segments.iter().any(|segment| segment.is_provisional);
        let stats = db.stats();
        if stats.values.collected.count > count {
            count = stats.values.collected.count;
            read.lock().clear();
        } else if has_copies {
            assert!(stats.background_buffer_bytes > 0, "what a collection remembers is counted");
        }
    }
    assert!(count > 1, "{count} collections");
    assert_eq!(db.stats().background_buffer_bytes, 0);
}

/// The new pointers of GC are in the log and in memtables. Until they are in runs, old runs and
/// retired segments have everything that was flushed, whatever happens to the log.
#[test]
fn what_a_collection_moved_survives_the_loss_of_the_log() {
    let (store, script) = (with_much_to_collect(), Arc::<Script>::default());
    let db = small(0.1).open_in(Arc::new(store.clone()), script.clone()).unwrap();
    while script.step() {}
    let values = db.stats().values;
    assert!(values.collected.count > 0, "{values:?}");
    assert_eq!(db.stats().flush.count, 0, "the pointers are in runs");
    let image = store.crash_image(&mut Random::new(0), Personality::KeepAll);
    for file in image.list().unwrap().iter().filter(|file| file.name.kind == FileKind::Wal) {
        image.remove(file.name).unwrap();
    }
    let target = tempfile::tempdir().unwrap();
    let report = salvage_store(Arc::new(image), target.path(), small(0.1), &mut |_| {}).unwrap();
    assert!(report.losses.is_empty(), "{report:?}");
    let saved = small(0.1).open(target.path()).unwrap();
    for n in 0..100 {
        let byte = if n % 2 == 0 { b'b' } else { b'a' };
        let found = saved.get(format!("key{n:05}")).unwrap();
        assert_eq!(found.as_deref(), Some(&[byte; VALUE_BYTES][..]), "key {n}");
    }
}
