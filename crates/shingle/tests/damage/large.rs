//! A value of many megabytes takes memory in proportion: the limit for values is 1 GiB.

use crate::memory::peak_bytes;
use base::env::Runtime;
use media::os::{OsOptions, OsStore};
use shingle::runtime::Stepped;
use shingle::{Cause, Ledger, Options};
use std::path::Path;
use std::sync::Arc;

const BYTES: usize = 32 << 20;

/// `times` values and a small allowance.
fn bound(times: usize) -> u64 {
    (times * BYTES + BYTES / 4) as u64
}

fn open(path: &Path, runtime: Arc<dyn Runtime>) -> shingle::Db {
    let store = OsStore::open(path, Arc::new(Ledger::default()), OsOptions::default()).unwrap();
    Options::new().open_in(Arc::new(store), runtime).unwrap()
}

/// The memtable has one more copy, which the allocator does not see: three in total.
#[test]
fn a_large_value_is_in_memory_at_most_three_times() {
    let home = tempfile::tempdir().unwrap();
    let value: Vec<u8> = (0..BYTES).map(|n| ((n * 31) >> 7) as u8).collect();
    let runtime: Arc<Stepped> = Arc::new(Stepped::new(1, 1 << 40));
    let db = open(home.path(), runtime.clone());
    let ((), put) = peak_bytes(|| db.put("large", &value).unwrap());
    assert!(put <= bound(2), "put: {put} bytes for {BYTES}");
    let ((), idle) = peak_bytes(|| db.put("small", "1").unwrap());
    assert!(idle < bound(0), "{idle}");
    let ((), flush) = peak_bytes(|| db.flush().unwrap());
    assert!(flush <= bound(1), "flush: {flush} bytes for {BYTES}");
    let (found, get) = peak_bytes(|| db.get("large").unwrap());
    assert!(found.as_deref() == Some(&value[..]), "the value is another");
    assert!(get <= bound(1), "get: {get} bytes for {BYTES}");
    drop(found);
    // Two versions and the block that is written; no memtable.
    let ((), compact) = peak_bytes(|| {
        db.put("large", &value).unwrap();
        db.compact().unwrap();
        db.close().unwrap();
    });
    assert!(compact <= bound(3), "put, compact and close: {compact} bytes for {BYTES}");
}

/// A log that holds a large value is replayed: its record, and the block that is written of it.
#[test]
fn a_large_value_is_replayed_in_two_copies() {
    let (home, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let db = open(home.path(), Arc::new(Stepped::new(1, 1 << 40)));
    db.put("large", vec![7; BYTES]).unwrap();
    for file in std::fs::read_dir(home.path()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    let (db, replay) = peak_bytes(|| open(copy.path(), Arc::new(Stepped::new(1, 1 << 40))));
    assert!(replay <= bound(2), "replay: {replay} bytes for {BYTES}");
    assert_eq!(db.get("large").unwrap().map(|value| value.len()), Some(BYTES));
}

/// A value passes through the store once for the log and once for its table or segment, and is
/// never read.
#[test]
fn a_large_value_is_written_twice_and_read_never() {
    for (values, causes) in [
        ("inline", &[Cause::Wal, Cause::Flush][..]),
        ("log", &[Cause::Wal, Cause::ValueWrite]),
        ("hashed", &[Cause::Wal, Cause::ValueWrite]),
    ] {
        let home = tempfile::tempdir().unwrap();
        let runtime = Arc::new(Stepped::new(1, 1 << 40));
        let ledger = Arc::new(Ledger::default());
        let store = OsStore::open(home.path(), ledger.clone(), OsOptions::default()).unwrap();
        let db = Options::new().values(values).open_in(Arc::new(store), runtime).unwrap();
        let value = vec![7; BYTES];
        let ((), peak) = peak_bytes(|| {
            db.put("large", &value).unwrap();
            db.flush().unwrap();
            db.close().unwrap();
        });
        assert!(peak <= bound(2), "{values}: {peak} bytes for {BYTES}");
        let counts = ledger.snapshot();
        for cause in causes {
            let bytes = counts.cause(*cause).write_bytes;
            assert!((BYTES as u64..bound(1)).contains(&bytes), "{values}, {cause:?}: {bytes}");
        }
        let (written, read) = (counts.host().write_bytes, counts.host().read_bytes);
        assert!(written < bound(causes.len()) && read < bound(0), "{values}: {written}, {read}");
    }
}

/// The buffer that a thread keeps for its next write is smaller than its largest batch.
#[test]
fn a_thread_keeps_no_large_batch() {
    let home = tempfile::tempdir().unwrap();
    let value = vec![7; BYTES];
    let db = open(home.path(), Arc::new(Stepped::new(1, 1 << 40)));
    let held = crate::memory::held_bytes();
    db.put("large", &value).unwrap();
    let kept = crate::memory::held_bytes() - held;
    assert!(kept < 4 << 20, "{kept} bytes");
}
