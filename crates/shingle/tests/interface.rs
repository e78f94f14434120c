//! The interface as a program uses it: with names of the crate `shingle` alone.

#![allow(clippy::unwrap_used)]

use shingle::{
    Db, Durability, ErrorKind, FileStore, KeyRange, Keyspace, KeyspaceOptions, Ledger, Options,
    OsStore, ReadOptions, Result, Runtime, WriteOptions,
};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

fn open(options: Options) -> (tempfile::TempDir, Db) {
    let directory = tempfile::tempdir().unwrap();
    let db = options.open(directory.path()).unwrap();
    (directory, db)
}

#[test]
fn a_keyspace_is_opened_or_created() {
    let (_directory, db) = open(Options::new());
    let with = |operator: Option<&str>| KeyspaceOptions {
        merge_operator: operator.map(Into::into),
        ..KeyspaceOptions::default()
    };
    let sums = db.open_or_create_keyspace("sums", with(Some("add-u64"))).unwrap();
    sums.merge("a", 7u64.to_le_bytes()).unwrap();
    let again = db.open_or_create_keyspace("sums", with(Some("add-u64"))).unwrap();
    assert_eq!(again.get("a").unwrap().as_deref(), Some(&7u64.to_le_bytes()[..]));
    let error = db.open_or_create_keyspace("sums", with(Some("append"))).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("add-u64"), "{error}");
    assert_eq!(db.keyspaces(), ["default", "sums"]);
}

#[test]
fn the_length_of_a_keyspace_is_its_own() {
    let (_directory, db) = open(Options::new());
    let sums = db.create_keyspace("sums", KeyspaceOptions::default()).unwrap();
    for key in 0..100u8 {
        sums.put([key], "").unwrap();
    }
    db.put("a", "1").unwrap();
    let lengths = || {
        let default = db.default_keyspace().approximate_len().unwrap();
        (default, sums.approximate_len().unwrap())
    };
    assert_eq!(lengths(), (1, 100));
    db.flush().unwrap();
    assert_eq!(lengths(), (1, 100));
    sums.delete([7]).unwrap();
    db.flush().unwrap();
    assert_eq!(lengths(), (1, 99));
    db.drop_keyspace("sums").unwrap();
    assert_eq!(sums.approximate_len().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_single_write_has_options_of_its_own() {
    let (_directory, db) = open(Options::new());
    let syncs = || db.stats().ledger.cause(shingle::Cause::Wal).sync_ops;
    let before = syncs();
    db.put("a", "1").unwrap();
    assert_eq!(syncs(), before, "a write is buffered unless it asks for more");
    db.put_with("a", "2", &WriteOptions::synced()).unwrap();
    let put = syncs();
    assert!(put > before);
    let synced = WriteOptions { durability: Some(Durability::Synced), ..WriteOptions::default() };
    db.delete_with("a", &synced).unwrap();
    assert!(syncs() > put);
    let deleted = syncs();
    db.default_keyspace().delete_range_with("a", "b", &synced).unwrap();
    assert!(syncs() > deleted);
}

#[test]
fn ranges_are_written_as_ranges() {
    let (_directory, db) = open(Options::new());
    for key in ["a", "b", "c", "d"] {
        db.put(key, "").unwrap();
    }
    let keys = |iter: shingle::Iter| {
        let keys = iter.map(|pair| String::from_utf8(pair.unwrap().0.to_vec()).unwrap());
        keys.collect::<String>()
    };
    assert_eq!(keys(db.range("b".."d")), "bc");
    assert_eq!(keys(db.range("b"..="d")), "bcd");
    assert_eq!(keys(db.range("c"..)), "cd");
    assert_eq!(keys(db.range(..String::from("c"))), "ab");
    assert_eq!(keys(db.range(vec![b'b']..=vec![b'b'])), "b");
    assert_eq!(keys(db.range::<&[u8]>(..)), "abcd");
    assert_eq!(keys(db.range::<&str>((Bound::Excluded("a"), Bound::Included("c")))), "bc");
    assert_eq!(keys(db.snapshot().range("b".."c")), "b");
    let mut cursor = db.cursor(ReadOptions::range("b".."d"));
    cursor.seek_to_last().unwrap();
    assert_eq!(cursor.key(), b"c");
    let range = KeyRange::prefix(b"d");
    assert_eq!(keys(db.iter_with(ReadOptions { range, ..ReadOptions::default() })), "d");
}

/// Every type of a public signature can be named.
#[test]
fn types_of_signatures_are_names_of_the_crate() {
    fn of_store(options: Options, store: OsStore) -> Result<Db> {
        let store: Arc<dyn FileStore> = Arc::new(store);
        options.open_store(store)
    }
    fn _of_runtime(
        options: Options,
        store: Arc<dyn FileStore>,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Db> {
        options.open_in(store, runtime)
    }
    fn name(keyspace: &Keyspace) -> &str {
        keyspace.name()
    }
    let directory = tempfile::tempdir().unwrap();
    let store = Options::new().directory(directory.path(), Arc::new(Ledger::default())).unwrap();
    let db = of_store(Options::new(), store).unwrap();
    assert_eq!(name(db.default_keyspace()), "default");
}

#[test]
fn statistics_print_names() {
    let (_directory, db) = open(Options::new());
    db.put("a", "b").unwrap();
    let text = format!("{:?}", db.stats());
    for name in ["wal: Traffic { write_bytes: ", "Stall { reason: Level0, count: 0", "hits: 0"] {
        assert!(text.contains(name), "{name} is not in {text}");
    }
    assert!(!text.contains("[Traffic"), "{text}");
}

#[test]
fn a_writer_that_would_wait_can_wait() {
    let options = Options::new().write_buffer_bytes(64 << 10).expert(|expert| {
        expert.no_threads = true;
    });
    let (directory, db) = open(options);
    let no_wait = WriteOptions { wait: false, ..WriteOptions::default() };
    let value = [7; 1000];
    let timeout = Some(Duration::from_millis(100));
    // Without background threads memory fills.
    let mut keys = 0u32..;
    let error = loop {
        let key = keys.next().unwrap().to_be_bytes();
        if let Err(error) = db.put_with(key, value, &no_wait)
            && !db.wait_writable(1000, timeout).unwrap()
        {
            break error;
        }
    };
    assert_eq!((error.kind(), error.kind().code()), (ErrorKind::WouldWait, 8));
    drop(db);
    let db = Options::new().open(directory.path()).unwrap();
    assert!(db.wait_writable(1000, None).unwrap());
    db.put_with("a", value, &no_wait).unwrap();
}

/// Each main type shows how it is used.
#[test]
fn main_types_have_examples() {
    let sources = [
        (include_str!("../src/api/db.rs"), &["Db", "Keyspace", "WriteOptions"][..]),
        (include_str!("../src/api/batch.rs"), &["WriteBatch"]),
        (include_str!("../src/api/cursor.rs"), &["Cursor", "Iter", "ReadOptions"]),
        (include_str!("../src/api/snapshot.rs"), &["Snapshot"]),
        (include_str!("../src/options.rs"), &["Options"]),
        (include_str!("../src/keyspace.rs"), &["KeyspaceOptions"]),
        (include_str!("../src/merge_operator.rs"), &["MergeOperator"]),
        (include_str!("../src/resources.rs"), &["Resources"]),
        (include_str!("../src/stats.rs"), &["Stats"]),
    ];
    for (source, names) in sources {
        for name in names {
            let declared = |line: &&str| {
                let rest = line.strip_prefix("pub struct ").or(line.strip_prefix("pub trait "));
                rest.is_some_and(|rest| rest.split([' ', ':', '(']).next() == Some(name))
            };
            let lines: Vec<&str> = source.lines().collect();
            let at = lines.iter().position(declared).expect("the type is there");
            let above = lines[..at].iter().rev().take_while(|line| line.starts_with(['/', '#']));
            assert!(above.filter(|line| line.contains("```")).count() > 1, "{name}");
        }
    }
}
