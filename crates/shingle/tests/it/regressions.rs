//! Bugs that the sweeps found, each in its smallest form and named after what it broke.

use crate::medium::{Direct, KINDS, Medium};
use base::env::Runtime;
use base::random::Random;
use base::{Cause, FileId};
use media::faulty::{Effect, Fault, FaultPlan, FaultyStore, Filter, Operation};
use media::mem::{MemStore, Personality};
use media::{FileHint, FileKind, FileName, FileStore};
use shingle::runtime::{Stepped, Threads};
use shingle::{Db, ErrorKind, KeyspaceOptions, Options, Preset, WriteOptions};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Background steps run only while a caller waits, so that tests choose when.
fn open(store: Arc<dyn FileStore>) -> shingle::Result<Db> {
    Options::new()
        .write_buffer_bytes(16 << 10)
        .expert(|e| {
            e.memtable_bytes = Some(4096);
            e.scheme.table_bytes_max = Some(2048);
            e.scheme.level_bytes_base = Some(8192);
        })
        .open_in(store, Arc::new(Stepped::new(1, u64::MAX)))
}

fn after_power_loss(store: &MemStore, personality: Personality) -> Db {
    let image = store.crash_image(&mut Random::new(0), personality);
    open(Arc::new(image)).unwrap_or_else(|error| panic!("{personality:?}: {error}"))
}

/// Writes until a new log has begun.
fn fill(db: &Db, round: u64) {
    for n in 0..45u64 {
        db.put([round.to_be_bytes(), n.to_be_bytes()].concat(), [1; 100]).unwrap();
    }
}

#[test]
fn writes_without_a_log_leave_the_chain_of_logs_whole() {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store.clone())).unwrap();
    let options = KeyspaceOptions { without_wal: true, ..KeyspaceOptions::default() };
    let unlogged = db.create_keyspace("unlogged", options).unwrap();
    let held = db.create_keyspace("held", KeyspaceOptions::default()).unwrap();
    held.put("keeps", "the first log").unwrap();
    for round in 0..4 {
        unlogged.put("a", "b").unwrap();
        fill(&db, round);
    }
    let found = after_power_loss(&store, Personality::KeepAll);
    assert_eq!(found.iter().count(), 4 * 45);
}

/// Regression: what the last merge replaced was not yet removed when a wait for all work ended. An
/// observer then saw a database of twice the size.
#[test]
fn a_wait_for_all_work_leaves_no_file_to_remove() {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store.clone())).unwrap();
    for round in 0..200 {
        fill(&db, round % 7);
        db.wait_idle().unwrap();
        let names = store.list().unwrap();
        let tables = names.iter().filter(|file| file.name.kind == FileKind::Table).count();
        assert_eq!(tables, db.files().len(), "round {round}");
    }
}

#[test]
fn a_flush_of_one_keyspace_keeps_older_writes_of_another() {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store.clone())).unwrap();
    let other = db.create_keyspace("other", KeyspaceOptions::default()).unwrap();
    other.put("older", "1").unwrap();
    for round in 0..5 {
        fill(&db, round);
    }
    db.wait_idle().unwrap();
    let found = after_power_loss(&store, Personality::LoseUnsynced);
    assert!(found.iter().next().is_some(), "nothing was flushed");
    assert!(found.keyspace("other").unwrap().get("older").unwrap().is_some());
}

#[test]
fn a_log_in_the_middle_that_lost_its_name_is_a_lost_tail() {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store.clone())).unwrap();
    db.put("first", "1").unwrap();
    db.sync().unwrap();
    (0..3).for_each(|round| fill(&db, round));
    for seed in 0..60 {
        let image = store.crash_image(&mut Random::new(seed), Personality::DirectoryLag);
        let found = open(Arc::new(image)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(found.get("first").unwrap().is_some());
    }
}

#[test]
fn a_manifest_that_cannot_be_rewritten_costs_nothing() {
    let store = MemStore::new(Arc::default());
    let plan = Arc::new(FaultPlan::default());
    let faulty = FaultyStore::new(Arc::new(store.clone()), plan.clone());
    let db = open(Arc::new(faulty)).unwrap();
    let filter = Filter { operation: Some(Operation::Create), kind: Some(FileKind::Manifest) };
    plan.add(Fault { filter, after: 0, is_sticky: true, effect: Effect::NoSpace });
    for round in 0..60 {
        fill(&db, round);
        db.flush().unwrap();
    }
    assert!(plan.failures() > 0, "no manifest was rewritten");
    assert_eq!(db.iter().map(Result::unwrap).count(), 60 * 45);
    plan.clear();
    assert_eq!(after_power_loss(&store, Personality::LoseUnsynced).iter().count(), 60 * 45);
}

#[test]
fn a_stopped_writer_learns_why_flushes_fail() {
    let plan = Arc::new(FaultPlan::default());
    let inner = Arc::new(MemStore::new(Arc::default()));
    let db = open(Arc::new(FaultyStore::new(inner, plan.clone()))).unwrap();
    let filter = Filter { operation: Some(Operation::Create), kind: Some(FileKind::Table) };
    // They end, so that a writer that waits for them is seen to wait, but not forever.
    for after in 0..40 {
        plan.add(Fault { filter, after, is_sticky: false, effect: Effect::Io });
    }
    let put = |n: u64| db.put(n.to_be_bytes(), [n as u8; 100]);
    let first_refused = (0..3000).find_map(|n| put(n).err().map(|error| (n, error)));
    let (refused, error) = first_refused.expect("the writer waited");
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    plan.clear();
    db.flush().unwrap();
    put(refused).unwrap();
    assert_eq!(db.iter().map(Result::unwrap).count() as u64, refused + 1);
}

/// Opens with LevelDB's preset, whose level 0 stops writers.
fn open_as_leveldb(store: Arc<dyn FileStore>, runtime: Arc<dyn Runtime>) -> shingle::Result<Db> {
    let options = Options::new().preset(Preset::LevelDb).cache_bytes(0).expert(|e| {
        e.memtable_bytes = Some(4096);
        e.scheme.table_bytes_max = Some(2048);
        e.scheme.flush_level_max = Some(0);
    });
    options.write_buffer_bytes(16 << 10).open_in(store, runtime)
}

/// Regression: a compaction that failed by itself was backed off without a word to the writers that
/// waited for it. They waited for ever, in every keyspace.
#[test]
fn a_writer_stopped_by_level_0_learns_why_its_compaction_fails() {
    let plan = Arc::new(FaultPlan::default());
    let inner = Arc::new(MemStore::new(Arc::default()));
    let store = Arc::new(FaultyStore::new(inner, plan.clone()));
    let db = open_as_leveldb(store, Arc::new(Threads::new())).unwrap();
    let put = |db: &Db, n: u64| db.put((n * 7919 % 1000).to_be_bytes(), [n as u8; 100]);
    (0..2000).for_each(|n| put(&db, n).unwrap());
    db.compact().unwrap();
    let files = db.files();
    let bad = files.iter().find(|file| file.level == 1).unwrap().name.clone();
    plan.make_unreadable(FileName::parse(&bad).unwrap());

    // A writer that waits for ever must not stop the test.
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let refused = (0..100_000).find_map(|n| put(&db, n).err());
        let _ = tell.send((refused, db));
    });
    let (refused, db) = told.recv_timeout(Duration::from_secs(60)).expect("the writer waits");
    let error = refused.unwrap();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert_eq!(error.file(), Some(bad.as_str()), "{error}");
    let other = db.create_keyspace("other", KeyspaceOptions::default()).unwrap();
    assert_eq!(other.put("a", "b").unwrap_err().file(), Some(bad.as_str()));
    // It goes on once the next try of the compaction succeeds.
    plan.clear();
    let begin = Instant::now();
    while other.put("a", "b").is_err() {
        assert!(begin.elapsed() < Duration::from_secs(60), "writers stay stopped");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Regression: writers of all keyspaces waited for the level 0 of one that was dropped.
#[test]
fn a_dropped_keyspace_stops_no_writer() {
    let runtime = Arc::new(Stepped::new(1, u64::MAX));
    let store = Arc::new(MemStore::new(Arc::default()));
    let db = open_as_leveldb(store, runtime).unwrap();
    let passing = db.create_keyspace("passing", KeyspaceOptions::default()).unwrap();
    let at_once = WriteOptions { wait: false, ..WriteOptions::default() };
    let put = || db.put_with("a", "b", &at_once);
    for n in 0..100u64 {
        if db.would_wait(10).is_some() {
            break;
        }
        passing.put("first", n.to_be_bytes()).unwrap();
        passing.put("last", n.to_be_bytes()).unwrap();
        // Its steps flush, and a flush comes before a compaction.
        db.flush().unwrap();
    }
    assert_eq!(put().unwrap_err().kind(), ErrorKind::WouldWait);
    db.drop_keyspace("passing").unwrap();
    put().unwrap();
}

#[test]
fn a_check_beside_appends_finds_nothing() {
    let options = Options::new().scheme("lwc").write_buffer_bytes(8 << 10).expert(|e| {
        e.memtable_bytes = Some(2 << 10);
        e.scheme.table_bytes_max = Some(4 << 10);
        e.scheme.level_bytes_base = Some(8 << 10);
    });
    let db = options.open_store(Arc::new(MemStore::new(Arc::default()))).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut random = Random::new(1);
            for _ in 0..20_000 {
                db.put(random.below(5_000).to_be_bytes(), [1; 50]).unwrap();
            }
        });
        while !writer.is_finished() {
            let report = db.check(&mut |_| {}).unwrap();
            assert!(report.problems.is_empty(), "{:?}", report.problems);
        }
    });
}

#[test]
fn a_keyspace_dropped_during_its_flush_fails_no_call() {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store)).unwrap();
    let passing = db.create_keyspace("passing", KeyspaceOptions::default()).unwrap();
    for n in 0..900u64 {
        passing.put((n % 300).to_be_bytes(), [n as u8; 60]).unwrap();
    }
    db.drop_keyspace("passing").unwrap();
    db.put("a", "b").unwrap();
    db.flush().unwrap();
    db.wait_idle().unwrap();
}

#[test]
fn a_manifest_rewritten_by_a_drop_forgets_the_keyspace_and_no_other() {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store.clone())).unwrap();
    for round in 0..300 {
        db.create_keyspace("passing", KeyspaceOptions::default()).unwrap();
        let found = after_power_loss(&store, Personality::LoseUnsynced);
        assert_eq!(found.keyspaces(), ["default", "passing"], "round {round}");
        db.drop_keyspace("passing").unwrap();
        let found = after_power_loss(&store, Personality::LoseUnsynced);
        assert_eq!(found.keyspaces(), ["default"], "round {round}");
    }
}

#[test]
fn leveldbs_preset_makes_one_run_of_each_memtable_even_when_flushes_are_late() {
    let options = Options::new().preset(Preset::LevelDb).write_buffer_bytes(16 << 10);
    let runtime = Arc::new(Stepped::new(1, u64::MAX));
    let db = options.open_in(Arc::new(MemStore::new(Arc::default())), runtime).unwrap();
    // A writer with two full memtables waits for a flush; the fourth run would begin a compaction.
    for n in 0..400u64 {
        db.put((n * 7919 % 1000).to_be_bytes(), [1; 100]).unwrap();
    }
    let tree = db.default_keyspace().tree_for_test().unwrap();
    let entries: Vec<u64> = tree.slices().map(|slice| slice.run.entries).collect();
    assert!(entries.len() >= 2, "{entries:?}");
    assert!(entries.iter().all(|&entries| entries < 150), "two memtables in a run: {entries:?}");
}

/// LevelDB writes a memtable as it is, and drops overwritten values when it compacts. With the
/// preset they were dropped before: the baseline wrote 0.3 bytes where LevelDB writes at least 1.
#[test]
fn leveldbs_preset_flushes_overwritten_values_and_others_do_not() {
    for values in ["inline", "log", "hashed"] {
        for preset in [Preset::LevelDb, Preset::Modern] {
            let options = Options::new().preset(preset).values(values).value_threshold_bytes(100);
            let options = options.write_buffer_bytes(4 << 20);
            let runtime = Arc::new(Stepped::new(1, 1));
            let db = options.open_in(Arc::new(MemStore::new(Arc::default())), runtime).unwrap();
            let snapshot = db.snapshot();
            for n in 0..5_000u64 {
                if n == 2_500 {
                    db.delete(7u64.to_be_bytes()).unwrap();
                } else {
                    db.put((n % 100).to_be_bytes(), [n as u8; 100]).unwrap();
                }
            }
            db.flush().unwrap();
            let tree = db.default_keyspace().tree_for_test().unwrap();
            let entries: u64 = tree.slices().map(|slice| slice.run.entries).sum();
            let keeps = preset == Preset::LevelDb && values == "inline";
            assert_eq!(entries, if keeps { 5_000 } else { 100 }, "{preset:?} {values}");
            assert_eq!(db.get(99u64.to_be_bytes()).unwrap().as_deref(), Some(&[135; 100][..]));
            assert_eq!(snapshot.get(99u64.to_be_bytes()).unwrap(), None);
            drop(snapshot);
            db.compact().unwrap();
            let tree = db.default_keyspace().tree_for_test().unwrap();
            assert_eq!(tree.slices().map(|slice| slice.run.entries).sum::<u64>(), 100);
            assert_eq!(db.range::<&[u8]>(..).count(), 100);
        }
    }
}

/// Memory that no memtable will fill soon goes back to the system.
#[test]
fn memory_of_memtables_is_kept_for_the_next_ones_and_goes_back_at_rest() {
    let write_buffer_bytes = 64 << 10;
    let runtime = Arc::new(Stepped::new(1, 1));
    let store = Arc::new(MemStore::new(Arc::default()));
    let options = Options::new().write_buffer_bytes(write_buffer_bytes);
    let db = options.open_in(store, runtime.clone()).unwrap();
    let keyspace = db.keyspace("default").unwrap();
    let mut kept_bytes_max = 0;
    for n in 0..5_000u64 {
        db.put(n.to_be_bytes(), [1; 100]).unwrap();
        kept_bytes_max = keyspace.kept_memory_for_test().max(kept_bytes_max);
    }
    assert!(kept_bytes_max > write_buffer_bytes / 4, "{kept_bytes_max}");
    assert!(kept_bytes_max <= 2 * write_buffer_bytes, "{kept_bytes_max}");
    db.flush().unwrap();
    db.wait_idle().unwrap();
    assert!(keyspace.kept_memory_for_test() > 0);
    for _ in 0..4 {
        runtime.turn();
        runtime.pass(1_000_000_000);
    }
    assert_eq!(keyspace.kept_memory_for_test(), 0);
}

/// New memtables take memory that a flush before them has put on huge pages.
#[cfg(not(miri))]
#[test]
fn memory_of_flushed_memtables_gets_huge_pages() {
    let write_buffer_bytes = 4 << 20;
    // Nothing is flushed while it loads.
    let runtime = Arc::new(Stepped::new(1, u64::MAX));
    let store = Arc::new(MemStore::new(Arc::default()));
    let options = Options::new().write_buffer_bytes(write_buffer_bytes);
    let db = options.open_in(store, runtime).unwrap();
    let keyspace = db.keyspace("default").unwrap();
    let load = || (0..3_000u64).for_each(|n| db.put(n.to_be_bytes(), [1; 1000]).unwrap());
    load();
    assert_eq!(keyspace.huge_memory_for_test(), 0);
    // The background alone has the memtables that it flushes.
    let flush = || db.begin_flush().and_then(|()| db.wait_idle()).unwrap();
    flush();
    let huge_bytes = keyspace.huge_memory_for_test();
    assert!(huge_bytes >= 2 << 20, "{huge_bytes}");
    load();
    assert!(keyspace.huge_memory_for_test() < huge_bytes, "the next ones take it");
    flush();
    assert!(keyspace.huge_memory_for_test() >= huge_bytes);
    assert!(db.iter().all(|pair| pair.unwrap().1[..] == [1; 1000]));
}

/// Regression: a close gave up the merge that an opening began, so every opening left a run that
/// gets had to probe.
#[test]
fn lives_too_short_for_a_merge_leave_few_runs() {
    let key = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let store = MemStore::new(Arc::default());
    for n in 0..200 {
        let runtime = Arc::new(Stepped::new(1, 1));
        let db = Options::new().open_in(Arc::new(store.clone()), runtime).unwrap();
        db.put(key(n), [1; 100]).unwrap();
        assert_eq!(db.get(key(n / 2)).unwrap().as_deref(), Some(&[1; 100][..]));
        assert!(db.files().len() <= 32, "{} tables after {n} lives", db.files().len());
        db.close().unwrap();
    }
}

/// Regression: an opening on a full medium failed although unneeded files filled it, because they
/// were removed last.
#[test]
fn leftovers_make_room_for_an_opening_on_a_full_medium() {
    for free_bytes in (0..=64u64 << 10).step_by(8 << 10) {
        let medium = Direct::new(&KINDS[0]);
        let db = open(medium.store().unwrap()).unwrap();
        (0..4).for_each(|round| fill(&db, round));
        db.put("last", "in the log").unwrap();
        db.sync().unwrap();
        let dead = medium.with_all();
        fill_up(&*dead.store().unwrap(), free_bytes);
        let db = open(dead.store().unwrap());
        let db = db.unwrap_or_else(|error| panic!("{free_bytes} bytes free: {error}"));
        assert_eq!(db.get("last").unwrap().as_deref(), Some(&b"in the log"[..]));
        assert_eq!(db.iter().count(), 4 * 45 + 1);
        assert_eq!(
            db.check(&mut |_| {}).unwrap().problems,
            Vec::<String>::new(),
            "{free_bytes} bytes free"
        );
    }
}

/// Leaves hardly more than `free_bytes` free: the rest is tables that no edit names.
fn fill_up(store: &dyn FileStore, free_bytes: u64) {
    let mut id = store.list().unwrap().iter().map(|file| file.name.id.0).max().unwrap();
    let mut piece_bytes = 1u64 << 20;
    let free = || store.capacity().unwrap().space().unwrap().free_bytes;
    while free() > free_bytes && piece_bytes >= 512 {
        id += 1;
        let name = FileName::table(FileId(id));
        let bytes = piece_bytes.min(free() - free_bytes);
        if append(store, name, bytes).is_err() {
            let _ = store.remove(name);
            piece_bytes /= 2;
        }
    }
    store.sync_names().unwrap();
    assert!(free() <= free_bytes + 4096, "{} bytes are free", free());
}

fn append(store: &dyn FileStore, name: FileName, bytes: u64) -> shingle::Result<()> {
    let hint = FileHint { bytes_max: Some(bytes), ..FileHint::default() };
    let mut file = store.create(name, &hint)?;
    file.append(&vec![7; bytes as usize], Cause::Housekeeping)?;
    file.sync(Cause::Housekeeping)
}
