//! A full medium: deletions, flushes, closing and opening go on. When there is space again
//! everything goes on, without a reopening.

use crate::medium::{Direct, KINDS, Medium};
use base::random::Random;
use media::FileStore;
use media::os::{OsOptions, OsStore};
use shingle::runtime::Stepped;
use shingle::{Db, ErrorKind, Options, Preset, WriteBatch, WriteOptions};
use std::sync::Arc;

const VALUE_BYTES: usize = 1000;

fn options(scheme: &str, layout: &str) -> Options {
    let preset = if scheme == "leveldb" { Preset::LevelDb } else { Preset::Modern };
    Options::new()
        .preset(preset)
        .scheme(scheme)
        .values(layout)
        .value_threshold_bytes(200)
        .write_buffer_bytes(128 << 10)
        .expert(|e| {
            e.memtable_bytes = Some(64 << 10);
            e.scheme.table_bytes_max = Some(32 << 10);
            e.scheme.level_bytes_base = Some(256 << 10);
            e.values.segment_bytes = Some(64 << 10);
            e.values.log_segment_bytes = Some(32 << 10);
        })
}

fn open(store: Arc<dyn FileStore>, scheme: &str, layout: &str) -> shingle::Result<Db> {
    open_with(store, scheme, layout, &Arc::new(Stepped::new(1, 4)))
}

fn open_with(
    store: Arc<dyn FileStore>,
    scheme: &str,
    layout: &str,
    runtime: &Arc<Stepped>,
) -> shingle::Result<Db> {
    options(scheme, layout).open_in(store, runtime.clone())
}

fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

/// Bytes that do not compress.
fn value(n: u64) -> Vec<u8> {
    let mut bytes = vec![0; VALUE_BYTES];
    Random::new(n).fill(&mut bytes);
    bytes
}

/// Puts until the medium is full; returns the number of keys.
fn fill(db: &Db, what: &str) -> u64 {
    let mut refused = 0;
    let mut count = 0;
    // Background work may find space a few times more.
    while refused < 20 {
        assert!(count < 1 << 20, "the medium is never full");
        match db.put(key(count), value(count)) {
            Ok(()) => count += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{what}: {error}");
                refused += 1;
            }
        }
    }
    count
}

fn assert_holds(db: &Db, from: u64, to: u64, what: &str) {
    let found: Vec<(Vec<u8>, Vec<u8>)> =
        db.iter().map(|pair| pair.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect();
    let expected: Vec<(Vec<u8>, Vec<u8>)> =
        (from..to).map(|n| (key(n).to_vec(), value(n))).collect();
    assert_eq!(found.len(), expected.len(), "{what}");
    assert!(found == expected, "{what}");
}

/// A put after some of the background steps that deletions allow.
fn put_again(db: &Db, runtime: &Stepped, what: &str) {
    for _ in 0..2000 {
        match db.put("again", "there") {
            Ok(()) => return,
            Err(error) => assert_eq!(error.kind(), ErrorKind::NoSpace, "{what}: {error}"),
        }
        let _ = db.wait_idle();
        runtime.pass(10_000_000);
    }
    panic!("{what}: no space again after everything was deleted");
}

/// Regression: deletions were refused on a full medium, so that only a larger medium helped.
///
/// Deletions come in batches: on a medium that does not rewrite sectors each write takes a sector
/// of the log, and some hundred of them exhaust the reserve of a device as small as these.
#[test]
fn deletions_make_space_on_a_full_medium() {
    let cells = KINDS.iter().map(|kind| (kind, "leveled", "inline"));
    let schemes = tree::policy::registry().iter().map(|scheme| scheme.name);
    let of_schemes = schemes.flat_map(|scheme| {
        values::registry().iter().map(move |layout| (&KINDS[0], scheme, layout.name))
    });
    for (kind, scheme, layout) in cells.chain(of_schemes) {
        let what = format!("{}, {scheme}, {layout}", kind.name);
        let medium = Direct::new(kind);
        let runtime = Arc::new(Stepped::new(1, 4));
        let db = open_with(medium.store().unwrap(), scheme, layout, &runtime).unwrap();
        let count = fill(&db, &what);
        assert!(count > 1000, "{what}: {count}");
        for first in (0..count).step_by(1024) {
            let mut batch = WriteBatch::new();
            (first..count.min(first + 1024))
                .step_by(16)
                .for_each(|n| batch.delete(key(n)).unwrap());
            let deleted = db.write(batch, &WriteOptions::default());
            deleted.unwrap_or_else(|error| panic!("{what}: deletions from {first} on: {error}"));
        }
        db.delete_range(key(0), key(count)).unwrap_or_else(|error| panic!("{what}: {error}"));
        // After a crash no deleted key is there, and no record that was refused.
        let image = medium.with_all();
        let found = open(image.store().unwrap(), scheme, layout);
        let found = found.unwrap_or_else(|error| panic!("{what}: after a crash: {error}"));
        assert!(found.iter().next().is_none(), "{what}: a deleted key is there after a crash");
        drop(found);
        put_again(&db, &runtime, &what);
        assert_eq!(db.get(key(1)).unwrap(), None, "{what}");
        db.close().unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

/// Regression: a close that could not flush for lack of space failed, and so did the next opening.
#[test]
fn a_full_medium_is_closed_and_opened_again() {
    for kind in &KINDS {
        let medium = Direct::new(kind);
        let db = open(medium.store().unwrap(), "leveled", "inline").unwrap();
        let count = fill(&db, kind.name);
        db.close().unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        let db = open(medium.store().unwrap(), "leveled", "inline");
        let db = db.unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        assert_holds(&db, 0, count, kind.name);
        // A crash on the full medium, with the log still to be replayed.
        let _ = db.put("last", "in the log");
        db.sync().unwrap();
        drop(db);
        let db = open(medium.with_all().store().unwrap(), "leveled", "inline");
        let db = db.unwrap_or_else(|error| panic!("{}: after a crash: {error}", kind.name));
        db.delete("last").unwrap();
        assert_holds(&db, 0, count, kind.name);
    }
}

/// On a file system, real blocks keep the space free, instead of a number.
#[test]
fn the_reserve_is_a_file_with_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let db = options("leveled", "inline").open(&path).unwrap();
    db.put("a", "b").unwrap();
    db.close().unwrap();
    let reserve = std::fs::metadata(path.join("RESERVE"));
    let store = OsStore::open(&path, Arc::default(), OsOptions::default()).unwrap();
    match store.capacity().unwrap().set_reserve(64 << 10).unwrap() {
        true => {
            use std::os::unix::fs::MetadataExt;
            assert!(reserve.unwrap().blocks() * 512 >= 64 << 10);
        }
        false => println!("this file system gives files no blocks in advance"),
    }
    assert!(store.capacity().unwrap().set_reserve(0).unwrap());
    assert!(!path.join("RESERVE").exists());
    drop(store);
    let db = options("leveled", "inline").open(&path).unwrap();
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"b"[..]));
}
