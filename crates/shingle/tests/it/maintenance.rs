//! What keeps a database well over time: limits on memory and logs, and failures that stay local.

use base::env::Runtime;
use base::random::Random;
use media::faulty::{Effect, Fault, FaultPlan, FaultyStore, Filter, Operation};
use media::mem::{MemStore, Personality};
use media::{FileKind, FileName, FileStore};
use shingle::{
    Cause, Db, Durability, ErrorKind, Expert, KeyspaceOptions, Options, ReadOptions, WriteBatch,
    WriteOptions, runtime::Stepped,
};
use std::sync::Arc;
use std::time::Duration;

/// Background steps run only while a caller waits, so that tests choose when.
fn open(store: Arc<dyn FileStore>, runtime: Arc<Stepped>, change: impl FnOnce(&mut Expert)) -> Db {
    let options = Options::new().write_buffer_bytes(16 << 10).expert(|e| {
        e.memtable_bytes = Some(8192);
        e.scheme.table_bytes_max = Some(2048);
        e.scheme.level_bytes_base = Some(8192);
        change(e);
    });
    options.open_in(store, runtime).unwrap()
}

fn stepped() -> Arc<Stepped> {
    Arc::new(Stepped::new(1, u64::MAX))
}

fn log_files(store: &MemStore) -> usize {
    store.list().unwrap().iter().filter(|file| file.name.kind == FileKind::Wal).count()
}

#[test]
fn an_idle_keyspace_does_not_pin_old_logs() {
    let store = MemStore::new(Arc::default());
    let log_bytes_max = 64 << 10;
    let db = open(Arc::new(store.clone()), stepped(), |e| e.log_bytes = Some(log_bytes_max));
    let idle = db.create_keyspace("idle", KeyspaceOptions::default()).unwrap();
    idle.put("seldom", "written").unwrap();
    let mut logs_max = 0;
    for n in 0..4000u64 {
        db.put((n % 100).to_be_bytes(), [n as u8; 100]).unwrap();
        if n % 40 == 0 {
            db.wait_idle().unwrap();
            logs_max = logs_max.max(log_files(&store));
        }
    }
    // Without the limit, the one small entry would keep all of half a megabyte of logs.
    let log_bytes_min = 7000;
    assert!(logs_max <= (log_bytes_max / log_bytes_min) as usize + 2, "{logs_max} logs");
    assert!(logs_max > 4, "{logs_max} logs: the bound is not what kept them few");
    assert_eq!(idle.get("seldom").unwrap().as_deref(), Some(&b"written"[..]));
}

/// The caller goes on, and the background makes durable what was written before.
#[test]
fn a_flush_that_was_begun_is_not_waited_for() {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store), stepped(), |_| {});
    let options = KeyspaceOptions { without_wal: true, ..KeyspaceOptions::default() };
    let unlogged = db.create_keyspace("unlogged", options).unwrap();
    unlogged.put("a", "b").unwrap();
    db.wait_idle().unwrap();
    assert!(db.files().is_empty(), "one entry is no reason to flush");
    db.begin_flush().unwrap();
    unlogged.put("c", "d").unwrap();
    assert!(db.files().is_empty(), "the call has waited");
    db.wait_idle().unwrap();
    assert_eq!(db.files().len(), 1, "the later entry stays in memory");
}

/// One of two keyspaces without a log got a new memtable and the other did not, for lack of memory.
/// The flush of the one then made half of a batch durable.
#[test]
fn without_memory_no_keyspace_without_a_log_is_sealed_alone() {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store.clone()), stepped(), |_| {});
    let options = KeyspaceOptions { without_wal: true, ..KeyspaceOptions::default() };
    let one = db.create_keyspace("one", options.clone()).unwrap();
    let other = db.create_keyspace("other", options).unwrap();
    let mut batch = WriteBatch::new();
    batch.put_in(&one, "first", "1").unwrap();
    batch.put_in(&other, "first", "1").unwrap();
    db.write(batch, &WriteOptions::default()).unwrap();
    let what_power_loss_leaves = || {
        db.wait_idle().unwrap();
        let image = store.crash_image(&mut Random::new(1), Personality::ALL[0]);
        let after = open(Arc::new(image), stepped(), |_| {});
        let has = |name: &str| after.keyspace(name).unwrap().get("first").unwrap().is_some();
        (has("one"), has("other"))
    };
    for n in 0..200u32 {
        // Enough for the entry, or for one memtable more.
        one.give_memory_for_test(Some(1));
        one.put(n.to_be_bytes(), [0; 100]).unwrap();
    }
    assert_eq!(what_power_loss_leaves(), (false, false));
    one.give_memory_for_test(None);
    one.put("last", "1").unwrap();
    assert_eq!(what_power_loss_leaves(), (true, true));
}

#[test]
fn many_small_memtables_are_sealed_like_a_large_one() {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store), stepped(), |_| {});
    let keyspaces: Vec<_> = (0..40)
        .map(|n| db.create_keyspace(&format!("k{n}"), KeyspaceOptions::default()).unwrap())
        .collect();
    let mut memtables_max = 0;
    for n in 0..4000u64 {
        keyspaces[(n % 40) as usize].put(n.to_be_bytes(), [n as u8; 100]).unwrap();
        memtables_max = memtables_max.max(db.stats().memtable_bytes);
    }
    // 40 memtables of 8 KiB would be 320 KiB; a write buffer is active, two and a half are sealed.
    assert!(memtables_max < (16 << 10) * 4, "{memtables_max} bytes in memtables");
    let found: usize = keyspaces.iter().map(|keyspace| keyspace.iter().count()).sum();
    assert_eq!(found, 4000);
}

fn fill(keyspace: &shingle::Keyspace, db: &Db, rounds: u64) {
    for round in 0..rounds {
        for n in 0..150u64 {
            keyspace.put((n * 7919 % 1000).to_be_bytes(), [round as u8; 60]).unwrap();
        }
        db.flush().unwrap();
    }
}

#[test]
fn a_move_that_cannot_read_its_input_is_backed_off_and_others_go_on() {
    let store = MemStore::new(Arc::default());
    let plan = Arc::new(FaultPlan::default());
    let faulty = FaultyStore::new(Arc::new(store), plan.clone());
    let runtime = stepped();
    let db = open(Arc::new(faulty), runtime.clone(), |_| {});
    let good = db.create_keyspace("good", KeyspaceOptions::default()).unwrap();
    fill(db.default_keyspace(), &db, 20);
    db.wait_idle().unwrap();
    let bad = db.files().into_iter().max_by_key(|file| file.level).unwrap();
    assert!(bad.level > 0);
    plan.make_unreadable(FileName::parse(&bad.name).unwrap());

    fill(db.default_keyspace(), &db, 20);
    fill(&good, &db, 20);
    let error = db.wait_idle().unwrap_err();
    assert_eq!(error.file(), Some(bad.name.as_str()), "{error}");
    let stats = db.stats();
    let work = stats.backed_off.first().expect("no work is backed off");
    assert_eq!(work.keyspace, "default");
    assert!(work.error.contains(&bad.name), "{}", work.error);
    assert!(stats.background_error.is_some() && stats.to_string().contains("BackedOff compaction"));
    assert_eq!(db.property("rocksdb.background-errors").as_deref(), Some("1"));
    let of_good =
        |db: &Db| db.files().iter().filter(|f| f.keyspace == "good" && f.level > 0).count();
    assert!(of_good(&db) > 0, "the other keyspace was not compacted");

    // Each try doubles the pause.
    let mut pauses = Vec::new();
    for _ in 0..5 {
        let work = db.stats().backed_off.remove(0);
        pauses.push(work.retry_seconds);
        runtime.pass((work.retry_seconds * 1e9) as u64 + 1000);
        db.wait_idle().unwrap_err();
        assert_eq!(db.stats().backed_off[0].failures, work.failures + 1);
    }
    assert!(pauses.windows(2).all(|pair| pair[1] > pair[0] * 1.8), "{pauses:?}");

    plan.clear();
    runtime.pass(400_000_000_000);
    db.wait_idle().unwrap();
    assert!(db.stats().backed_off.is_empty() && db.stats().background_error.is_none());
    assert_eq!(db.iter().map(Result::unwrap).count(), 150);
}

/// A move that is only an edit can fail too: the manifest takes no more edits, and a new one cannot
/// be created.
#[test]
fn a_move_whose_edit_cannot_be_written_is_backed_off() {
    let store = MemStore::new(Arc::default());
    let plan = Arc::new(FaultPlan::default());
    let faulty = FaultyStore::new(Arc::new(store), plan.clone());
    let runtime = stepped();
    let db = open(Arc::new(faulty), runtime.clone(), |_| {});
    db.put("key", "value").unwrap();
    let of = |operation| Filter { operation: Some(operation), kind: Some(FileKind::Manifest) };
    let no_space = Effect::NoSpace;
    let filter = of(Operation::Append);
    // The edit of the flush is written, and what proves it is not.
    plan.add(Fault { filter, after: 1, is_sticky: false, effect: no_space });
    db.flush().unwrap();
    let filter = of(Operation::Create);
    plan.add(Fault { filter, after: 0, is_sticky: true, effect: Effect::Io });
    let before = plan.count(filter);
    let error = db.compact().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert_eq!(db.stats().backed_off.len(), 1);
    for _ in 0..10 {
        assert_eq!(db.wait_idle().unwrap_err().kind(), ErrorKind::Io);
    }
    assert_eq!(plan.count(filter), before + 1, "it was tried again without a pause");
    plan.clear();
    runtime.pass(1_000_000_000);
    db.compact().unwrap();
    assert!(db.stats().backed_off.is_empty());
    assert!(db.events().iter().any(|line| line.contains("trivial_move")));
}

/// GC that failed is tried again after a pause, which doubles.
#[test]
fn garbage_whose_collection_failed_is_collected_later() {
    for layout in ["log", "hashed"] {
        let store = MemStore::new(Arc::default());
        let plan = Arc::new(FaultPlan::default());
        let faulty = FaultyStore::new(Arc::new(store), plan.clone());
        let runtime = stepped();
        let options = Options::new().values(layout).value_threshold_bytes(100).expert(|e| {
            e.memtable_bytes = Some(8192);
            e.values.segment_bytes = Some(4096);
            e.values.log_segment_bytes = Some(4096);
            e.values.reserved_ratio = Some(0.1);
        });
        let db = options.open_in(Arc::new(faulty), runtime.clone()).unwrap();
        let filter = Filter { operation: Some(Operation::Open), kind: Some(FileKind::Value) };
        plan.add(Fault { filter, after: 0, is_sticky: true, effect: Effect::Io });
        for round in 0..10u64 {
            for key in 0..50u64 {
                db.put(key.to_be_bytes(), [round as u8; 300]).unwrap();
            }
            db.flush().unwrap();
        }
        let error = db.wait_idle().unwrap_err();
        assert_eq!((error.kind(), plan.failures() > 0), (ErrorKind::Io, true), "{error}");
        let stats = db.stats();
        assert!(!stats.backed_off.is_empty() && stats.values.collected.count == 0, "{layout}");
        let failures = plan.failures();
        db.wait_idle().unwrap_err();
        assert_eq!(plan.failures(), failures, "{layout}: it was tried again without a pause");
        let work = db.stats().backed_off.remove(0);
        runtime.pass((work.retry_seconds * 1e9) as u64 + 1000);
        db.wait_idle().unwrap_err();
        assert!(db.stats().backed_off.iter().any(|again| again.failures > work.failures));

        plan.clear();
        runtime.pass(400_000_000_000);
        db.wait_idle().unwrap();
        let stats = db.stats();
        assert!(stats.backed_off.is_empty() && stats.values.collected.count > 0, "{layout}");
        let live_bytes = 50 * 300;
        let total_bytes = stats.values.total_bytes - stats.values.retired_bytes;
        assert!(total_bytes < 3 * live_bytes, "{layout}: {total_bytes} bytes of segments");
        assert_eq!(db.iter().map(Result::unwrap).count(), 50);
    }
}

/// A job syncs several tables together when they are complete. The tree has them afterwards.
#[test]
fn every_table_of_a_compaction_is_durable_when_the_tree_has_it() {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store.clone()), stepped(), |_| {});
    fill(db.default_keyspace(), &db, 20);
    db.compact().unwrap();
    let (tables, together) = (db.files().len(), store.files_synced_together());
    assert!(tables > together && !tables.is_multiple_of(together), "{tables}");
    let image = store.crash_image(&mut Random::new(0), Personality::LoseUnsynced);
    let db = open(Arc::new(image), stepped(), |_| {});
    assert_eq!(db.iter().map(Result::unwrap).count(), 150);
    assert!(db.check(&mut |_| {}).unwrap().is_clean());
}

/// A wait that begins after the lack is over does not sit through the pause of the move.
#[test]
fn a_move_that_lacked_a_descriptor_is_tried_by_the_next_wait() {
    let store = MemStore::new(Arc::default());
    let plan = Arc::new(FaultPlan::default());
    let faulty = FaultyStore::new(Arc::new(store), plan.clone());
    let db = open(Arc::new(faulty), stepped(), |_| {});
    let filter = Filter { operation: Some(Operation::Create), kind: Some(FileKind::Table) };
    let lack = Fault { filter, after: 0, is_sticky: true, effect: Effect::NoDescriptor };
    let waits: [fn(&Db) -> shingle::Result<()>; 2] = [Db::wait_idle, Db::compact];
    for wait in waits {
        fill(db.default_keyspace(), &db, 20);
        plan.add(lack);
        let error = wait(&db).unwrap_err();
        assert!(error.to_string().contains("Create"), "{error}");
        assert_eq!(db.stats().backed_off.len(), 1);
        plan.clear();
        wait(&db).unwrap();
        assert!(db.stats().backed_off.is_empty());
    }
    assert_eq!(db.iter().map(Result::unwrap).count(), 150);
}

/// The log goes on without a descriptor for the next one. The write that filled it is committed, so
/// it is no error.
#[test]
fn a_write_that_fills_the_log_succeeds_where_the_next_log_lacks_a_descriptor() {
    let store = MemStore::new(Arc::default());
    let plan = Arc::new(FaultPlan::default());
    let faulty = FaultyStore::new(Arc::new(store.clone()), plan.clone());
    let db = open(Arc::new(faulty), stepped(), |e| e.log_bytes = Some(64 << 10));
    db.put("begins", "the first log").unwrap();
    let filter = Filter { operation: Some(Operation::Create), kind: Some(FileKind::Wal) };
    plan.add(Fault { filter, after: 0, is_sticky: true, effect: Effect::NoDescriptor });
    for n in 0..400u64 {
        db.put(n.to_be_bytes(), [n as u8; 100]).unwrap();
    }
    assert!(plan.failures() > 0);
    plan.clear();
    db.close().unwrap();
    let db = open(Arc::new(store), stepped(), |_| {});
    assert_eq!(db.iter().map(Result::unwrap).count(), 401);
}

/// A try to begin another manifest that failed is none: at the close the root vouches for what the
/// old one has.
#[test]
fn the_end_of_a_manifest_that_was_not_replaced_cannot_be_lost() {
    let store = MemStore::new(Arc::default());
    let plan = Arc::new(FaultPlan::default());
    let faulty = FaultyStore::new(Arc::new(store.clone()), plan.clone());
    let db = open(Arc::new(faulty), stepped(), |_| {});
    let filter = Filter { operation: Some(Operation::Create), kind: Some(FileKind::Manifest) };
    plan.add(Fault { filter, after: 0, is_sticky: true, effect: Effect::NoSpace });
    let mut keys = 0u64;
    while plan.failures() == 0 {
        db.put(keys.to_be_bytes(), "value").unwrap();
        db.flush().unwrap();
        db.wait_idle().unwrap();
        keys += 1;
        assert!(keys < 1000, "the manifest does not grow");
    }
    plan.clear();
    db.close().unwrap();
    let files = store.list().unwrap();
    let manifest = files.iter().find(|file| file.name.kind == FileKind::Manifest).unwrap();
    store.overwrite(manifest.name, manifest.bytes - 100, &[0; 100]).unwrap();
    let error = Options::new().open_store(Arc::new(store)).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
}

/// A bad place of the medium costs what lies there, also where the system reports it as an error.
#[test]
fn salvage_goes_on_where_a_table_cannot_be_read() {
    let store = MemStore::new(Arc::default());
    let plan = Arc::new(FaultPlan::default());
    let db = open(Arc::new(store.clone()), stepped(), |_| {});
    fill(db.default_keyspace(), &db, 3);
    db.compact().unwrap();
    db.close().unwrap();
    let files = store.list().unwrap();
    let tables: Vec<FileName> =
        files.iter().map(|file| file.name).filter(|name| name.kind == FileKind::Table).collect();
    assert!(tables.len() > 2, "{tables:?}");
    plan.make_unreadable(tables[1]);
    let faulty = Arc::new(FaultyStore::new(Arc::new(store), plan));
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("saved");
    let report = shingle::salvage_store(faulty, &target, Options::new(), &mut |_| {}).unwrap();
    assert!(report.losses.iter().any(|loss| loss.contains(&tables[1].to_string())), "{report:?}");
    let saved = Options::new().open(&target).unwrap().iter().map(Result::unwrap).count();
    assert!((1..150).contains(&saved), "{saved} of 150 keys");
}

#[test]
fn many_keys_are_read_with_one_read_for_each_block() {
    let store = MemStore::new(Arc::default());
    let ledger = store.ledger().clone();
    let options = Options::new().write_buffer_bytes(1 << 20).cache_bytes(0);
    let db = options.open_in(Arc::new(store), stepped()).unwrap();
    for n in 0..4000u64 {
        db.put(n.to_be_bytes(), [n as u8; 60]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let reads = |keys: &[[u8; 8]]| {
        let before = ledger.snapshot();
        let values = db.multi_get(keys).unwrap();
        let during = ledger.snapshot().since(&before);
        (values, during.cause(Cause::Get).read_ops)
    };
    // Warm: runs are open.
    reads(&[0u64.to_be_bytes()]);
    let one = reads(&[7u64.to_be_bytes()]).1;
    assert!(one >= 2, "without a cache a get reads a filter and a data block, not {one}");
    // Keys of about one block, in any order, some twice.
    let keys: Vec<[u8; 8]> = (0..30u64).map(|n| ((n * 7) % 20).to_be_bytes()).collect();
    let (values, near) = reads(&keys);
    assert!(values.iter().zip(&keys).all(|(v, k)| v.as_deref() == Some(&[k[7]; 60][..])));
    assert!(near <= one + 2, "30 keys of a block or two cost {near} reads, one costs {one}");
    // All keys: no more reads than there are blocks.
    let all: Vec<[u8; 8]> = (0..4000u64).map(u64::to_be_bytes).collect();
    let (values, far) = reads(&all);
    assert!(values.iter().all(Option::is_some));
    let blocks = 4000 * 80 / 4096 + 20;
    assert!(far < blocks, "{far} reads for about {blocks} blocks");
    // Filters keep missing keys out, and are read once.
    let absent: Vec<[u8; 8]> = (0..50u64).map(|n| (n << 32 | 7).to_be_bytes()).skip(1).collect();
    let (values, misses) = reads(&absent);
    assert!(values.iter().all(Option::is_none) && misses <= 10, "{misses} reads");
}

#[test]
fn what_users_receive_is_counted() {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store), stepped(), |_| {});
    for n in 0..100u64 {
        db.put(n.to_be_bytes(), [1; 50]).unwrap();
    }
    let received = |read: &dyn Fn()| {
        let before = db.stats().ledger.user_read_bytes;
        read();
        db.stats().ledger.user_read_bytes - before
    };
    let pair = 58;
    let key = 5u64.to_be_bytes();
    assert_eq!(received(&|| drop(db.get(key).unwrap())), pair);
    assert_eq!(received(&|| drop(db.get("absent").unwrap())), 0);
    assert_eq!(received(&|| drop(db.snapshot().get(key).unwrap())), pair);
    assert_eq!(received(&|| drop(db.multi_get(&[&key[..], b"absent", &key]).unwrap())), 2 * pair);
    assert_eq!(received(&|| assert_eq!(db.iter().count(), 100)), 100 * pair);
    assert_eq!(received(&|| assert_eq!(db.iter().rev().take(10).count(), 10)), 10 * pair);
    let visited = |count: usize| {
        let (mut cursor, mut left) = (db.cursor(ReadOptions::default()), count);
        cursor.seek_to_first().unwrap();
        while left > 0 {
            let mut piece = left.min(7);
            cursor
                .next_while(|_, _| {
                    (left, piece) = (left - 1, piece - 1);
                    piece > 0
                })
                .unwrap();
        }
    };
    // The cursor stands at one more, which it showed by that.
    assert_eq!(received(&|| visited(10)), 11 * pair);
    assert_eq!(received(&|| visited(100)), 100 * pair);
    assert!(db.stats().to_json().contains("\"ra\":"));
}

#[test]
fn short_sessions_that_append_leave_no_row_of_tiny_tables() {
    let store = MemStore::new(Arc::default());
    let options = || Options::new().write_buffer_bytes(1 << 20);
    for session in 0..200u64 {
        let db = options().open_in(Arc::new(store.clone()), stepped()).unwrap();
        for n in 0..10u64 {
            db.put((session * 10 + n).to_be_bytes(), [1; 100]).unwrap();
        }
        db.wait_idle().unwrap();
        db.close().unwrap();
    }
    let db = options().open_in(Arc::new(store), stepped()).unwrap();
    db.wait_idle().unwrap();
    assert!(db.files().len() < 30, "{} tables", db.files().len());
    assert_eq!(db.iter().map(Result::unwrap).count(), 2000);
}

#[test]
fn operands_without_an_operator_are_refused_whole() {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store), stepped(), |_| {});
    let mut batch = WriteBatch::new();
    batch.put("a", "1").unwrap();
    batch.merge("b", "2").unwrap();
    let error = db.write(batch, &WriteOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("default") && error.message().contains("operator"));
    assert_eq!(db.get("a").unwrap(), None);
    db.put("a", "3").unwrap();
}

#[test]
fn a_synced_write_without_a_log_is_refused() {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store), stepped(), |_| {});
    let options = KeyspaceOptions { without_wal: true, ..KeyspaceOptions::default() };
    let unlogged = db.create_keyspace("unlogged", options).unwrap();
    let mut batch = WriteBatch::new();
    batch.put_in(&unlogged, "a", "1").unwrap();
    let synced = WriteOptions { durability: Some(Durability::Synced), wait: true };
    let error = db.write(batch.clone(), &synced).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert_eq!(unlogged.get("a").unwrap(), None);
    db.write(batch, &WriteOptions::default()).unwrap();
    assert!(unlogged.get("a").unwrap().is_some());
}

#[test]
fn the_event_log_is_bounded() {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store.clone()), stepped(), |_| {});
    let bytes = |name| store.notes().unwrap().read_note(name).unwrap().map_or(0, |note| note.len());
    let mut bytes_max = 0;
    for round in 0..120u64 {
        fill(db.default_keyspace(), &db, 2);
        db.put("round", round.to_be_bytes()).unwrap();
        db.wait_idle().unwrap();
        bytes_max = bytes_max.max(bytes("LOG") + bytes("LOG.old"));
    }
    // Built for tests a log is full at 8 KiB, and a batch of lines is about as long.
    assert!(bytes("LOG.old") > 0 && bytes_max < 80 << 10, "{bytes_max} bytes");
}

#[test]
fn a_checkpoint_does_not_go_where_other_files_are() {
    let (home, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let db = Options::new().open(home.path()).unwrap();
    db.put("a", "1").unwrap();
    std::fs::write(target.path().join("notes.txt"), "mine").unwrap();
    let error = db.checkpoint(target.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert!(error.message().contains("notes.txt"), "{error}");
    assert_eq!(std::fs::read_dir(target.path()).unwrap().count(), 1);
    db.checkpoint(target.path().join("inside")).unwrap();
}

#[test]
fn a_reader_keeps_writers_out_and_other_readers_not() {
    let home = tempfile::tempdir().unwrap();
    let writer = Options::new().open(home.path()).unwrap();
    writer.put("a", "1").unwrap();
    let reader = || Options::new().read_only(true).open(home.path());
    let error = reader().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.message().contains(&std::process::id().to_string()), "{error}");
    writer.close().unwrap();
    let (first, second) = (reader().unwrap(), reader().unwrap());
    let error = Options::new().open(home.path()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.message().contains("for reading"), "{error}");
    first.close().unwrap();
    assert_eq!(second.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    drop(second);
    drop(Options::new().open(home.path()).unwrap());
}

#[test]
fn options_that_change_at_run_time_count_at_once() {
    let store = MemStore::new(Arc::default());
    let db = open(Arc::new(store.clone()), stepped(), |_| {});
    let syncs = || store.ledger().snapshot().cause(Cause::Wal).sync_ops;
    db.put("a", "1").unwrap();
    let before = syncs();
    db.put("b", "1").unwrap();
    assert_eq!(syncs(), before);
    db.set_option("durability", "synced").unwrap();
    db.put("c", "1").unwrap();
    assert!(syncs() > before);
    for (name, value, said) in [
        ("scheme", "ldc", "next opening"),
        ("durability", "sometimes", "durability"),
        ("no_such_option", "1", "no_such_option"),
    ] {
        let error = db.set_option(name, value).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains(said), "{error}");
    }
    db.clone().close().unwrap();
    assert_eq!(db.set_option("durability", "buffered").unwrap_err().kind(), ErrorKind::Closed);
}

/// The only worker has a compaction that the limit throttles for hours. It is free for flushes.
#[test]
fn a_limit_of_background_bytes_does_not_hold_up_flushes() {
    let options = Options::new().background_threads(1).expert(|e| {
        e.step_bytes = Some(4096);
        e.scheme.level0_runs_trigger = Some(2);
        e.scheme.table_bytes_max = Some(16 << 10);
    });
    let store = Arc::new(MemStore::new(Arc::default()));
    let db = options.open_in(store, Arc::new(shingle::runtime::Threads::new())).unwrap();
    db.set_option("background_bytes_per_second", "1").unwrap();
    let writer = db.clone();
    let ends = ends_soon(move || {
        // A worker that has the next flush to do may not have begun a compaction yet.
        for round in (0u64..).take_while(|&round| round < 20 || !is_throttled(&writer)) {
            for n in 0..200u64 {
                writer.put((n * 20 + round).to_be_bytes(), [round as u8; 100]).unwrap();
            }
            writer.flush().unwrap();
        }
    });
    assert!(ends, "flushes wait for the limit, or no compaction is throttled");
    let compacting = db.clone();
    db.set_option("background_bytes_per_second", "0").unwrap();
    let ends = ends_soon(move || compacting.wait_idle().unwrap());
    assert!(ends, "compactions wait for the limit that was");
    let waited_ns = db.stats().limit_wait_ns;
    db.put("z", "1").unwrap();
    db.compact().unwrap();
    assert_eq!(db.stats().limit_wait_ns, waited_ns, "there is no limit");
}

/// A compaction has waited for the limit.
fn is_throttled(db: &Db) -> bool {
    db.stats().limit_wait_ns > 0
}

/// Whether `work` ends in a minute, where it would else take hours.
fn ends_soon(work: impl FnOnce() + Send + 'static) -> bool {
    let (sender, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        work();
        // The receiver is gone if this took too long.
        let _ = sender.send(());
    });
    done.recv_timeout(Duration::from_secs(60)).is_ok()
}

#[test]
fn a_limit_of_background_bytes_is_kept() {
    const BYTES_PER_SECOND: u64 = 10 << 10;
    let seconds_and_bytes = |limit: u64| {
        let store = MemStore::new(Arc::default());
        let runtime = stepped();
        let db = open(Arc::new(store.clone()), runtime.clone(), |e| e.step_bytes = Some(4096));
        db.set_option("background_bytes_per_second", &limit.to_string()).unwrap();
        for n in 0..16_000u64 {
            db.put((n * 7919 % 4000).to_be_bytes(), [n as u8; 100]).unwrap();
        }
        db.wait_idle().unwrap();
        let bytes = store.ledger().snapshot().merges().write_bytes;
        (runtime.now_ns() as f64 / 1e9, bytes)
    };
    let (seconds, bytes) = seconds_and_bytes(BYTES_PER_SECOND);
    let seconds_min = bytes as f64 / BYTES_PER_SECOND as f64;
    assert!(bytes > 10 * BYTES_PER_SECOND, "{bytes}");
    assert!(seconds > 0.5 * seconds_min, "{seconds} s for {bytes} bytes");
    assert!(seconds_and_bytes(0).0 < 0.1 * seconds_min);
}
