//! Bulk ingestion: all files or nothing, newer than what was written before, older than what is
//! written after; and everything that copies or checks a database knows the files.

use crate::script::Script;
use media::mem::MemStore;
use parking_lot::Mutex;
use shingle::runtime::Stepped;
use shingle::{
    Backups, Cause, Compression, Db, ErrorKind, Expiry, IngestOptions, Ingested, Keyspace,
    KeyspaceOptions, Options, SortedFileOptions, SortedFileWriter, WriteOptions, salvage,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const MOVE: IngestOptions = IngestOptions { move_files: true, verify: true, below: false };
const BELOW: IngestOptions = IngestOptions { move_files: false, verify: true, below: true };

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        Home(crate::medium::memory_dir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn open(&self) -> Db {
        options().open(self.path("db")).unwrap()
    }

    /// A sorted file with these keys; a key without a value is deleted.
    fn file<K: AsRef<[u8]>>(&self, name: &str, entries: &[(K, Option<&str>)]) -> PathBuf {
        let layout = SortedFileOptions { block_bytes: 256, ..SortedFileOptions::default() };
        let mut file = SortedFileWriter::create(self.path(name), &layout).unwrap();
        for (key, value) in entries {
            match value {
                Some(value) => file.put(key, value).unwrap(),
                None => file.delete(key).unwrap(),
            }
        }
        file.finish().unwrap();
        self.path(name)
    }

    /// A sorted file with the numbers of `range` as keys.
    fn numbers(&self, name: &str, range: std::ops::Range<u32>, value: &str) -> PathBuf {
        let entries: Vec<(String, _)> = range.map(|n| (key(n), Some(value))).collect();
        self.file(name, &entries)
    }

    /// Table files in the directory of the database.
    fn tables(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.path("db")).unwrap().map(|file| file.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|e| e == "table")).collect()
    }
}

fn options() -> Options {
    Options::new().write_buffer_bytes(64 << 10).expert(|e| {
        e.memtable_bytes = Some(16 << 10);
        e.scheme.table_bytes_max = Some(32 << 10);
        e.scheme.level_bytes_base = Some(128 << 10);
    })
}

fn key(number: u32) -> String {
    format!("key{number:06}")
}

fn all(db: &Db) -> BTreeMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    db.iter().map(Result::unwrap).map(|(key, value)| (text(&key), text(&value))).collect()
}

fn get(db: &Db, key: &str) -> Option<String> {
    let value = db.get(key).unwrap();
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn assert_sound(db: &Db) {
    let report = db.check(&mut |_| {}).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn entries_of_files_are_newer_than_what_was_written_before() {
    for moves in [true, false] {
        let home = Home::new();
        let db = home.open();
        for name in ["a", "b", "c", "d", "e"] {
            db.put(name, "old").unwrap();
        }
        let snapshot = db.snapshot();
        let mut iter = db.iter();
        let first = iter.next().unwrap().unwrap();
        assert_eq!((&first.0[..], &first.1[..]), (&b"a"[..], &b"old"[..]));

        let file = home.file("f", &[("a", Some("new")), ("b", None), ("f", Some("new"))]);
        let other = home.file("g", &[("x", Some("new"))]);
        let options = IngestOptions { move_files: moves, ..IngestOptions::default() };
        let done = db.ingest(&[&other, &file], &options).unwrap();
        assert_eq!((done.files, done.entries), (2, 4));
        assert_eq!((file.exists(), other.exists()), (!moves, !moves));
        assert_eq!(done.copied_bytes, if moves { 0 } else { done.bytes });

        let expected = "a=new c=old d=old e=old f=new x=new";
        let show = |db: &Db| {
            let pairs = all(db).into_iter().map(|(key, value)| format!("{key}={value}"));
            pairs.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(show(&db), expected);
        assert_eq!((get(&db, "a"), get(&db, "b")), (Some("new".into()), None));
        assert_eq!(snapshot.get("a").unwrap().as_deref(), Some(&b"old"[..]));
        assert_eq!(snapshot.get("x").unwrap(), None);
        assert_eq!(iter.count(), 4, "a walk that began earlier sees what was there");

        db.put("a", "newest").unwrap();
        db.delete("x").unwrap();
        assert_eq!((get(&db, "a"), get(&db, "x")), (Some("newest".into()), None));
        drop(snapshot);
        assert_sound(&db);
        db.close().unwrap();
        let db = home.open();
        assert_eq!(show(&db), "a=newest c=old d=old e=old f=new");
        db.compact().unwrap();
        assert_eq!(show(&db), "a=newest c=old d=old e=old f=new");
        assert_sound(&db);
    }
}

/// A keyspace that takes files below what it has.
fn backfilled(db: &Db) -> Keyspace {
    let options = KeyspaceOptions {
        ingests_below: true,
        merge_operator: Some("append".into()),
        ..KeyspaceOptions::default()
    };
    db.create_keyspace("backfilled", options).unwrap()
}

fn show(keyspace: &Keyspace) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let pairs = keyspace.iter().map(Result::unwrap);
    let pairs = pairs.map(|(key, value)| format!("{}={}", text(&key), text(&value)));
    pairs.collect::<Vec<_>>().join(" ")
}

#[test]
fn entries_of_files_below_are_older_than_all_that_was_written() {
    for compacts in [false, true] {
        let home = Home::new();
        let db = home.open();
        let keyspace = backfilled(&db);
        for key in ["a", "b", "c", "d", "e"] {
            keyspace.put(key, "new").unwrap();
        }
        // So that a compaction merges what deletes with what is deleted.
        db.flush().unwrap();
        keyspace.delete("b").unwrap();
        keyspace.delete_range("c", "d").unwrap();
        keyspace.merge("f", "+").unwrap();
        let snapshot = db.snapshot().of(&keyspace).unwrap();
        let mut iter = keyspace.iter();
        let first = iter.next().unwrap().unwrap();
        assert_eq!((&first.0[..], &first.1[..]), (&b"a"[..], &b"new"[..]));
        if compacts {
            // What is deleted is all that would hold the deletions in place.
            db.flush().unwrap();
            keyspace.compact().unwrap();
        }
        let entries = ["a", "b", "c", "c2", "d", "f", "g"].map(|key| (key, Some("old")));
        let done = keyspace.ingest(&[home.file("old", &entries)], &BELOW).unwrap();
        assert_eq!((done.sequence, done.entries, done.files_below_level0), (0, 7, 1));
        let expected = "a=new d=new e=new f=old+ g=old";
        assert_eq!(show(&keyspace), expected);
        assert_eq!(snapshot.get("g").unwrap(), None);
        assert_eq!(iter.count(), 3, "a walk that began earlier sees what was there");
        db.flush().unwrap();
        keyspace.compact().unwrap();
        assert_eq!(show(&keyspace), expected);
        keyspace.delete("g").unwrap();
        keyspace.put("b", "newest").unwrap();
        db.flush().unwrap();
        keyspace.compact().unwrap();
        db.close().unwrap();
        let db = home.open();
        let keyspace = db.keyspace("backfilled").unwrap();
        assert_eq!(show(&keyspace), "a=new b=newest d=new e=new f=old+");
        assert_sound(&db);
    }
}

#[test]
fn a_file_below_is_refused_where_deletions_were_not_kept_and_over_an_earlier_one() {
    let home = Home::new();
    let db = home.open();
    let file = home.file("f", &[("a", Some("old")), ("m", Some("old"))]);
    let refused = db.ingest(&[&file], &BELOW).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.message().contains("ingests_below"), "{refused}");
    let keyspace = backfilled(&db);
    keyspace.ingest(&[&file], &BELOW).unwrap();
    let files = home.tables().len();
    let (good, bad) = (home.file("g", &[("x", Some("1"))]), home.file("h", &[("b", Some("2"))]));
    let refused = keyspace.ingest(&[&good, &bad], &BELOW).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert!(refused.file().is_some_and(|file| file.ends_with("h")), "{refused}");
    assert_eq!(show(&keyspace), "a=old m=old", "all files come in or none");
    assert_eq!(home.tables().len(), files, "a refused ingestion leaves no file");
    keyspace.ingest(&[&good], &BELOW).unwrap();
    assert_eq!(show(&keyspace), "a=old m=old x=1");
}

/// It misses a key that comes in below. A transaction that sees the key, and not what the first one
/// writes, would be both before and after it.
#[test]
fn a_transaction_that_missed_what_came_in_below_does_not_commit_over_it() {
    for is_flushed in [false, true] {
        let home = Home::new();
        let db = home.open();
        let keyspace = backfilled(&db);
        keyspace.put("hidden", "new").unwrap();
        if is_flushed {
            db.flush().unwrap();
        }
        let begin = |key: &str| {
            let mut transaction = db.transaction();
            transaction.get_in(&keyspace, key).unwrap();
            transaction.put_in(&keyspace, format!("from {key}"), "1").unwrap();
            transaction
        };
        let (missed, hidden) = (begin("missed"), begin("hidden"));
        let mut scanned = db.transaction();
        assert_eq!(scanned.range_in::<&str>(&keyspace, ..).unwrap().count(), 1);
        scanned.put_in(&keyspace, "from all", "1").unwrap();
        let entries = [("hidden", Some("old")), ("missed", Some("old"))];
        let done = keyspace.ingest(&[home.file("old", &entries)], &BELOW).unwrap();
        for transaction in [missed, scanned] {
            assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
        }
        hidden.commit().unwrap();
        let later = begin("missed");
        later.commit().unwrap();
        assert!(done.held > Duration::ZERO);
        assert_eq!(show(&keyspace), "from hidden=1 from missed=1 hidden=new missed=old");
    }
}

#[test]
fn a_snapshot_from_after_an_ingestion_below_sees_it_beside_one_from_before() {
    let home = Home::new();
    let db = home.open();
    let keyspace = backfilled(&db);
    keyspace.put("a", "new").unwrap();
    let before = db.snapshot().of(&keyspace).unwrap();
    keyspace.ingest(&[home.file("old", &[("b", Some("old"))])], &BELOW).unwrap();
    let after = db.snapshot().of(&keyspace).unwrap();
    assert_eq!(before.get("b").unwrap(), None);
    assert_eq!(after.get("b").unwrap().as_deref(), Some(&b"old"[..]));
}

/// The number that tells later snapshots from earlier ones was published after the files were
/// shown, so that a snapshot in between missed what a get had given.
#[test]
fn a_snapshot_is_not_older_than_a_get_before_it_while_files_come_in_below() {
    let home = Home::new();
    let runtime = Arc::new(Script::default());
    let store = options().directory(home.path("db"), Arc::default()).unwrap();
    let db = options().open_in(Arc::new(store), runtime.clone()).unwrap();
    let keyspace = backfilled(&db);
    keyspace.put("a", "new").unwrap();
    let before = db.snapshot().of(&keyspace).unwrap();
    let reader = keyspace.clone();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    runtime.at_place(Arc::new(move |place| {
        if place.starts_with("ingest below") {
            let got = reader.get("b").unwrap();
            let snapshot = reader.snapshot();
            noted.lock().push((got.is_some(), snapshot.get("b").unwrap().is_some()));
        }
    }));
    runtime.is_reading.store(true, Ordering::SeqCst);
    keyspace.ingest(&[home.file("old", &[("b", Some("old"))])], &BELOW).unwrap();
    runtime.at_place(Arc::new(|_| {}));
    assert_eq!(*seen.lock(), [(true, true)]);
    assert_eq!(before.get("b").unwrap(), None);
}

#[test]
fn a_feed_from_before_an_ingestion_below_is_too_late() {
    for is_flushed in [false, true] {
        let home = Home::new();
        let keeping = || options().changes_retention_bytes(1 << 20).open(home.path("db")).unwrap();
        let db = keeping();
        backfilled(&db).put("a", "1").unwrap();
        let position = db.snapshot().pins().sequence;
        assert!(db.changes(position).is_ok());
        db.close().unwrap();
        let db = home.open();
        let keyspace = db.keyspace("backfilled").unwrap();
        if !is_flushed {
            keyspace.put("c", "1").unwrap();
        }
        keyspace.ingest(&[home.file("old", &[("b", Some("old"))])], &BELOW).unwrap();
        db.close().unwrap();
        let error = keeping().changes(position).expect_err("the feed goes on");
        assert_eq!(error.kind(), ErrorKind::TooLate, "{error}");
    }
}

#[test]
fn an_expired_value_hides_what_comes_in_below() {
    let home = Home::new();
    let db = home.open();
    let options = KeyspaceOptions { ingests_below: true, ..KeyspaceOptions::default() };
    let keyspace = db.create_keyspace("sessions", options).unwrap();
    keyspace.put_with_ttl("gone", "new", Duration::from_millis(1)).unwrap();
    keyspace.put_with_ttl("stays", "new", Duration::from_secs(3600)).unwrap();
    db.flush().unwrap();
    std::thread::sleep(Duration::from_millis(5));
    keyspace.compact().unwrap();
    let file = home.file("f", &[("gone", Some("old")), ("other", Some("old"))]);
    keyspace.ingest(&[&file], &BELOW).unwrap();
    assert_eq!(show(&keyspace), "other=old stays=new");
    keyspace.compact().unwrap();
    assert_eq!(show(&keyspace), "other=old stays=new");
}

#[test]
fn a_deleted_range_of_a_file_hides_what_is_older_and_nothing_of_the_file() {
    let home = Home::new();
    let db = home.open();
    (0..100).for_each(|n| db.put(key(n), "old").unwrap());
    let mut file = SortedFileWriter::create(home.path("f"), &Default::default()).unwrap();
    file.put(key(30), "new").unwrap();
    file.delete_range(key(20), key(40)).unwrap();
    assert!(file.delete_range("b", "a").is_err());
    let summary = file.finish().unwrap();
    assert_eq!((summary.entries, summary.range_deletes), (1, 1));
    db.ingest(&[home.path("f")], &MOVE).unwrap();
    for _ in 0..2 {
        let found = all(&db);
        assert_eq!(found.len(), 81);
        assert_eq!((get(&db, &key(30)), get(&db, &key(31))), (Some("new".into()), None));
        db.compact().unwrap();
    }
}

#[test]
fn all_files_come_in_or_none() {
    let home = Home::new();
    let db = home.open();
    db.put("k", "v").unwrap();
    db.flush().unwrap();
    let before = home.tables();
    let good = home.numbers("good", 0..500, "v");
    let unchanged = |paths: &[&PathBuf], kind: ErrorKind| {
        let error = db.ingest(paths, &MOVE).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(home.tables(), before, "{error}");
        assert_eq!(all(&db).len(), 1);
        assert!(good.exists());
        error.to_string()
    };
    let overlapping = home.numbers("overlapping", 499..600, "v");
    let text = unchanged(&[&good, &overlapping], ErrorKind::InvalidArgument);
    assert!(text.contains("good") && text.contains("overlapping"), "{text}");
    unchanged(&[&good, &good], ErrorKind::InvalidArgument);
    unchanged(&[&good, &home.path("missing")], ErrorKind::NotFound);

    let mut bytes = std::fs::read(&overlapping).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle] ^= 1;
    let damaged = home.path("damaged");
    std::fs::write(&damaged, &bytes).unwrap();
    let text = unchanged(&[&good, &damaged], ErrorKind::Corruption);
    assert!(text.contains("damaged"), "{text}");
    std::fs::write(&damaged, b"no sorted file").unwrap();
    unchanged(&[&damaged], ErrorKind::Corruption);
    let table = before.first().unwrap().clone();
    unchanged(&[&good, &table], ErrorKind::Incompatible);

    assert_eq!(db.ingest(&[&good], &MOVE).unwrap().files, 1);
    assert_eq!(all(&db).len(), 501);
    assert_sound(&db);
}

#[test]
fn nothing_is_ingested_without_entries() {
    let home = Home::new();
    let db = home.open();
    let empty = home.file::<&str>("empty", &[]);
    assert_eq!(db.ingest(&[&empty], &MOVE).unwrap(), Ingested::default());
    assert_eq!(db.ingest::<PathBuf>(&[], &MOVE).unwrap(), Ingested::default());
    assert!(home.tables().is_empty());
    db.close().unwrap();
    let read_only = Options::new().read_only(true).open(home.path("db")).unwrap();
    let file = home.numbers("f", 0..10, "v");
    let error = read_only.ingest(&[file], &MOVE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn a_load_by_moved_files_writes_each_byte_once() {
    let home = Home::new();
    let db = home.open();
    // Files that are written by threads of their own.
    let value = "v".repeat(100);
    let files: Vec<PathBuf> = std::thread::scope(|scope| {
        let part = |part: u32| {
            let (home, value) = (&home, &value);
            scope.spawn(move || {
                home.numbers(&format!("part{part}"), part * 5000..(part + 1) * 5000, value)
            })
        };
        let threads: Vec<_> = (0..4).map(part).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let bytes: u64 = files.iter().map(|path| path.metadata().unwrap().len()).sum();
    let before = db.stats().ledger;
    let done = db.ingest(&files, &MOVE).unwrap();
    assert_eq!((done.files, done.files_below_level0), (4, 4));
    db.wait_idle().unwrap();
    let stats = db.stats();
    let written = stats.ledger.host().write_bytes - before.host().write_bytes;
    assert!(written < 8 << 10, "{written} bytes beside {bytes} that were linked");
    assert_eq!(stats.ledger.cause(Cause::Ingest).write_bytes, 0);
    assert_eq!(stats.ledger.user_write_bytes, 20_000 * (9 + 100));
    assert_eq!((stats.ingestions.ingestions, stats.ingestions.files), (1, 4));
    assert_eq!((stats.ingestions.bytes, stats.ingestions.copied_bytes), (bytes, 0));
    assert_eq!(stats.live_bytes, bytes - 4 * 36, "all but the headers of the files");
    assert_eq!(all(&db).len(), 20_000);

    let copied = home.numbers("copied", 30_000..31_000, &value);
    let done = db.ingest(&[copied], &IngestOptions::default()).unwrap();
    let ingested = db.stats().ledger.cause(Cause::Ingest).write_bytes;
    assert_eq!((done.copied_bytes, ingested), (done.bytes, done.bytes));
}

#[test]
fn a_transaction_that_read_before_an_ingestion_does_not_commit_over_it() {
    let home = Home::new();
    let db = home.open();
    (0..1000).for_each(|n| db.put(key(n), "old").unwrap());
    let mut transaction = db.transaction();
    assert_eq!(transaction.get(key(7)).unwrap().as_deref(), Some(&b"old"[..]));
    let file = home.file("f", &[(key(7), Some("ingested"))]);
    db.ingest(&[file], &MOVE).unwrap();
    transaction.put(key(8), "from what it read").unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(get(&db, &key(8)), Some("old".into()));
}

/// Values of files that expire do so for every read and compaction, and the time to live of a
/// keyspace is not that of the files.
#[test]
fn values_of_files_expire_where_the_file_says_so() {
    let home = Home::new();
    let runtime = Arc::new(Stepped::new(1, 3));
    let store = MemStore::new(Arc::default());
    let open = || options().open_in(Arc::new(store.clone()), runtime.clone()).unwrap();
    let db = open();
    let day = KeyspaceOptions { ttl: Some(Duration::from_secs(86_400)), ..Default::default() };
    let sessions = db.create_keyspace("sessions", day).unwrap();
    sessions.put(key(7), "older").unwrap();
    let soon = sessions.expiry_after(Duration::from_secs(10));
    let mut file = SortedFileWriter::create(home.path("f"), &Default::default()).unwrap();
    for n in 0..100 {
        match n % 2 {
            0 => file.put(key(n), "for ever").unwrap(),
            _ => file.put_expiring(key(n), "for a while", soon).unwrap(),
        }
    }
    file.put_expiring("never", "ends", Expiry::NEVER).unwrap();
    let summary = file.finish().unwrap();
    assert_eq!((summary.entries, summary.expiring), (101, 50));
    assert_eq!(summary.user_bytes, 100 * 9 + 50 * 8 + 50 * 11 + 5 + 4);
    sessions.ingest(&[home.path("f")], &MOVE).unwrap();

    let both = |of: &Keyspace, left: usize, in_tree: u64| {
        assert_eq!(of.get_with_expiry(key(6)).unwrap().unwrap().1, None);
        assert_eq!(of.get(key(7)).unwrap().is_some(), left == 101);
        assert_eq!(of.iter().count(), left);
        let entries = of.tree_for_test().unwrap().slices().map(|slice| slice.run.entries).sum();
        assert_eq!(in_tree, entries);
    };
    assert_eq!(sessions.get_with_expiry(key(7)).unwrap().unwrap().1, Some(soon));
    both(&sessions, 101, 102);
    runtime.pass(11_000_000_000);
    both(&sessions, 51, 102);
    drop(sessions);
    db.close().unwrap();
    let db = open();
    let sessions = db.keyspace("sessions").unwrap();
    assert_eq!(sessions.iter().count(), 51);
    sessions.compact().unwrap();
    both(&sessions, 51, 51);
    assert_sound(&db);
}

/// Writers go on between the keys of the files the whole time. A reader that sees a value of an
/// ingestion sees it all, and no write that returned is lost.
#[test]
fn writers_between_the_keys_go_on_and_lose_nothing() {
    const ROUNDS: u32 = 12;
    let home = Home::new();
    let db = home.open();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let write = |writer: u32| {
            let (db, is_over) = (&db, &is_over);
            move || {
                let mut written = 0;
                while !is_over.load(Ordering::Relaxed) {
                    // Own keys, between those of the files.
                    let name = format!("{}w{writer}", key(written % 1000));
                    db.put(&name, written.to_string()).unwrap();
                    assert_eq!(get(db, &name), Some(written.to_string()));
                    written += 1;
                }
                written
            }
        };
        let writers: Vec<_> = (0..2).map(|writer| scope.spawn(write(writer))).collect();
        let reader = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let (first, last) = (key(0), key(999));
                let both = db.multi_get(&[&first, &last]).unwrap();
                assert_eq!(both[0], both[1], "a part of an ingestion was seen");
            }
        });
        for round in 0..ROUNDS {
            let value = format!("round {round}");
            let (low, high) =
                (home.numbers("low", 0..500, &value), home.numbers("high", 500..1000, &value));
            db.ingest(&[low, high], &MOVE).unwrap();
            assert_eq!(get(&db, &key(3)), Some(value));
        }
        is_over.store(true, Ordering::Relaxed);
        reader.join().unwrap();
        for (writer, thread) in writers.into_iter().enumerate() {
            let written = thread.join().unwrap();
            for last in (0..written).rev().take(1000) {
                let name = format!("{}w{writer}", key(last % 1000));
                assert_eq!(get(&db, &name), Some(last.to_string()));
            }
        }
    });
    assert_eq!(db.stats().ingestions.ingestions, ROUNDS.into());
    assert_sound(&db);
}

#[test]
fn a_write_that_must_not_wait_is_refused_or_done() {
    let home = Home::new();
    let db = home.open();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let options = WriteOptions { wait: false, ..WriteOptions::default() };
            for n in 0.. {
                match db.put_with(key(n % 1000), "w", &options) {
                    Ok(()) => {}
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldWait, "{error}"),
                }
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        for round in 0..8 {
            let file = home.numbers(&format!("r{round}"), 0..1000, "ingested");
            db.ingest(&[file], &MOVE).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
}

#[test]
fn keyspaces_with_and_without_a_log_take_files() {
    let home = Home::new();
    let db = home.open();
    let unlogged = KeyspaceOptions { without_wal: true, ..KeyspaceOptions::default() };
    let fast = db.create_keyspace("fast", unlogged.clone()).unwrap();
    let beside = db.create_keyspace("beside", unlogged).unwrap();
    beside.put("b", "1").unwrap();
    fast.put("f", "1").unwrap();
    db.put("d", "1").unwrap();
    fast.ingest(&[home.numbers("f", 0..100, "v")], &MOVE).unwrap();
    // Where only the other one has something in memory.
    beside.put("b", "2").unwrap();
    fast.ingest(&[home.numbers("g", 0..100, "w")], &MOVE).unwrap();
    drop((fast, beside));
    let copy = home.path("copy");
    // No file comes or goes while they are copied.
    db.wait_idle().unwrap();
    // What is in runs, or in the log, is there after the process is gone.
    std::fs::create_dir(&copy).unwrap();
    for file in std::fs::read_dir(home.path("db")).unwrap().map(Result::unwrap) {
        if file.file_name() != "LOCK" {
            std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
        }
    }
    let db = options().open(&copy).unwrap();
    assert_eq!(get(&db, "d"), Some("1".into()));
    let fast = db.keyspace("fast").unwrap();
    assert_eq!(fast.iter().count(), 101);
    // Keyspaces without a log become durable at one point of the commit order.
    let beside = db.keyspace("beside").unwrap();
    assert_eq!(beside.get("b").unwrap().as_deref(), Some(&b"2"[..]));
}

#[test]
fn separated_values_and_files_go_together() {
    for layout in ["log", "hashed"] {
        let home = Home::new();
        let mixed = options().values(layout).value_threshold_bytes(64);
        let db = mixed.clone().open(home.path("db")).unwrap();
        let large = |mark: &str| mark.repeat(200);
        (0..400).for_each(|n| db.put(key(n), large("w")).unwrap());
        db.ingest(&[home.numbers("f", 100..300, &large("i"))], &MOVE).unwrap();
        (200..250).for_each(|n| db.put(key(n), large("x")).unwrap());
        let expect = |db: &Db| {
            for n in 0..400 {
                let mark = match n {
                    200..250 => "x",
                    100..300 => "i",
                    _ => "w",
                };
                assert_eq!(get(db, &key(n)), Some(large(mark)), "{layout} {n}");
            }
        };
        expect(&db);
        db.flush().unwrap();
        db.compact().unwrap();
        db.wait_idle().unwrap();
        expect(&db);
        assert_sound(&db);
        db.close().unwrap();
        expect(&mixed.open(home.path("db")).unwrap());
    }
}

#[test]
fn copies_and_followers_have_the_ingested_files() {
    let home = Home::new();
    let db = home.open();
    (0..100).for_each(|n| db.put(key(n), "old").unwrap());
    let follower = Options::new().follow(home.path("db")).unwrap();
    let ingest = |from: u32| {
        let file = home.numbers(&format!("f{from}"), from..from + 100, "new");
        db.ingest(&[file], &MOVE).unwrap();
    };
    ingest(50);
    follower.catch_up().unwrap();
    assert_eq!(all(&follower.db()), all(&db));
    ingest(500);
    follower.catch_up().unwrap();
    assert_eq!(all(&follower.db()).len(), 250);

    let expected = all(&db);
    db.checkpoint(home.path("checkpoint")).unwrap();
    let backups = Backups::open(home.path("backups")).unwrap();
    let backup = backups.create(&db, &mut |_| {}).unwrap();
    backups.restore(backup.number, home.path("restored"), &mut |_| {}).unwrap();
    // The original goes on, and gives the ingested files up.
    db.compact().unwrap();
    db.close().unwrap();
    for name in ["db", "checkpoint", "restored"] {
        let db = options().open(home.path(name)).unwrap();
        assert_eq!(all(&db), expected, "{name}");
        assert_sound(&db);
    }
}

#[test]
fn salvage_finds_ingested_files_with_and_without_the_manifest() {
    for damage in ["none", "root", "manifest"] {
        let home = Home::new();
        let db = home.open();
        (0..200).for_each(|n| db.put(key(n), "old").unwrap());
        db.flush().unwrap();
        let file = home.numbers("f", 100..300, "new");
        db.ingest(&[file], &MOVE).unwrap();
        (150..160).for_each(|n| db.put(key(n), "newest").unwrap());
        let expected = all(&db);
        db.close().unwrap();
        let path = home.path("db");
        let manifest = std::fs::read_dir(&path).unwrap().map(|file| file.unwrap().path());
        let manifest = manifest.filter(|path| path.to_string_lossy().contains("MANIFEST"));
        match damage {
            "root" => std::fs::remove_file(path.join("CURRENT")).unwrap(),
            "manifest" => manifest.for_each(|path| std::fs::remove_file(path).unwrap()),
            _ => {}
        }
        let report = salvage(&path, &home.path("salvaged"), &mut |_| {}).unwrap();
        let db = options().open(home.path("salvaged")).unwrap();
        if damage == "manifest" {
            // Nothing says when the file came in: its entries count as the oldest.
            assert!(report.losses.iter().any(|loss| loss.contains("ingested")), "{report:?}");
            assert_eq!((get(&db, &key(100)), all(&db).len()), (Some("old".into()), 300));
        } else {
            assert_eq!(all(&db), expected, "{damage}: {report:?}");
        }
    }
}

#[test]
fn files_of_every_layout_are_read() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd(3)] {
        for (block_bytes, filter_bits_per_key) in [(64, 0), (4096, 10), (1 << 20, 4)] {
            let home = Home::new();
            let db = home.open();
            let layout = SortedFileOptions {
                compression,
                block_bytes,
                filter_bits_per_key,
                ..SortedFileOptions::default()
            };
            let mut file = SortedFileWriter::create(home.path("f"), &layout).unwrap();
            (0..3000).for_each(|n| file.put(key(n), n.to_string()).unwrap());
            let about = file.bytes();
            let summary = file.finish().unwrap();
            assert!(summary.bytes.abs_diff(about) < 64 << 10, "{about} {}", summary.bytes);
            db.ingest(&[home.path("f")], &MOVE).unwrap();
            assert_eq!(get(&db, &key(2222)), Some("2222".into()));
            assert_eq!(get(&db, "key1"), None);
            assert_eq!(db.range(key(5)..key(15)).count(), 10);
            assert_sound(&db);
        }
    }
    let bad = SortedFileOptions { block_bytes: 0, ..SortedFileOptions::default() };
    let home = Home::new();
    let error = SortedFileWriter::create(home.path("f"), &bad).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(!home.path("f").exists());
}

/// The entries would be a gap in the feed.
#[test]
fn a_database_that_keeps_changes_refuses_ingestion() {
    let home = Home::new();
    let layout = SortedFileOptions::default();
    let mut file = SortedFileWriter::create(home.path("f"), &layout).unwrap();
    file.put("a", "1").unwrap();
    file.finish().unwrap();
    let db = options().changes_retention_bytes(1 << 20).open(home.path("db")).unwrap();
    let error = db.ingest(&[home.path("f")], &MOVE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("changes_retention_bytes"), "{error}");
    assert!(home.path("f").exists() && get(&db, "a").is_none());
    db.close().unwrap();
    let db = options().open(home.path("db")).unwrap();
    db.ingest(&[home.path("f")], &MOVE).unwrap();
    assert_eq!(get(&db, "a"), Some("1".into()));
}

/// No log has the entries: a consumer of the changes from before has to copy the database again. So
/// it is, too, where the logs from before are still there.
#[test]
fn a_feed_from_before_an_ingestion_without_retention_is_too_late() {
    for keeps_logs in [false, true] {
        let home = Home::new();
        let keeping = || options().changes_retention_bytes(1 << 20).open(home.path("db")).unwrap();
        let logs = || {
            let files = std::fs::read_dir(home.path("db")).unwrap();
            let files = files.map(|file| file.unwrap().path());
            files.filter(|path| path.extension().is_some_and(|end| end == "wal"))
        };
        let db = keeping();
        db.put("a", "1").unwrap();
        let mut changes = db.changes(0).unwrap();
        assert_eq!(changes.by_ref().count(), 1);
        let position = changes.sequence();
        db.close().unwrap();
        let kept: Vec<_> = logs().map(|path| (std::fs::read(&path).unwrap(), path)).collect();
        assert!(!kept.is_empty());

        let db = home.open();
        let done = db.ingest(&[home.numbers("f", 0..10, "v")], &MOVE).unwrap();
        db.close().unwrap();
        if keeps_logs {
            kept.iter().for_each(|(bytes, path)| std::fs::write(path, bytes).unwrap());
        }
        let db = keeping();
        let error = db.changes(position).expect_err("the feed goes on over the ingestion");
        assert_eq!(error.kind(), ErrorKind::TooLate, "{error}");
        assert!(error.message().contains(&format!("after {}", done.sequence)), "{error}");
        let mut changes = db.changes(done.sequence).unwrap();
        db.put("b", "1").unwrap();
        assert_eq!(changes.by_ref().map(Result::unwrap).count(), 1);
    }
}
