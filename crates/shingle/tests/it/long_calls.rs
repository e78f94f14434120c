//! Calls that take long on a large database: what they read, and how they end early.

use base::Ledger;
use media::mem::MemStore;
use media::{AppendFile, FileHint, FileKind, FileStore};
use shingle::{Cause, Db, ErrorKind, Options, salvage_store};
use std::sync::Arc;

const KEYS: u64 = 20_000;

/// A database of several tables.
fn filled(store: &MemStore) -> Db {
    let options = Options::new().write_buffer_bytes(256 << 10);
    let db = options.expert(|e| e.scheme.table_bytes_max = Some(128 << 10));
    let db = db.open_store(Arc::new(store.clone())).unwrap();
    for n in 0..KEYS {
        db.put(format!("key{n:06}"), [n as u8; 100]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    db
}

/// The files of a closed database, in a store whose ledger has counted nothing. Tables are cut to
/// `part` of their bytes.
fn copied(store: &MemStore, part: impl Fn(u64) -> u64) -> (MemStore, u64) {
    let copy = MemStore::new(Arc::new(Ledger::default()));
    let mut total_bytes = 0;
    for file in store.list().unwrap() {
        let is_table = file.name.kind == FileKind::Table;
        let bytes = if is_table { part(file.bytes) } else { file.bytes };
        let mut content = vec![0; bytes as usize];
        store.open(file.name, false).unwrap().read_at(0, &mut content, Cause::Check).unwrap();
        let mut writer: Box<dyn AppendFile> = copy.create(file.name, &FileHint::default()).unwrap();
        writer.append(&content, Cause::Checkpoint).unwrap();
        writer.sync(Cause::Checkpoint).unwrap();
        total_bytes += bytes;
    }
    copy.set_root(&store.root().unwrap().expect("a database has a root")).unwrap();
    (copy, total_bytes)
}

#[test]
fn a_cancelled_check_says_so_and_ends_at_its_next_step() {
    let store = MemStore::new(Arc::default());
    let db = filled(&store);
    let mut steps = 0;
    db.check(&mut |_| steps += 1).unwrap();
    let mut seen = 0;
    let report = db
        .check(&mut |progress| {
            seen += 1;
            progress.cancel();
        })
        .unwrap();
    assert!(report.is_cancelled && !report.is_clean());
    assert!(report.problems.is_empty() && seen < steps, "{seen} of {steps}");
    assert!(db.check(&mut |_| {}).unwrap().is_clean(), "the next check is whole");
}

#[test]
fn a_cancelled_salvage_is_an_error_and_leaves_the_source_as_it_was() {
    let store = MemStore::new(Arc::default());
    filled(&store).close().unwrap();
    let (source, _) = copied(&store, |bytes| bytes);
    let before = source.list().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (directory.path().join("a"), directory.path().join("b"));
    let mut seen = 0;
    let source: Arc<dyn FileStore> = Arc::new(source);
    let error = salvage_store(source.clone(), &first, Options::new(), &mut |progress| {
        seen += 1;
        if seen == 3 {
            progress.cancel();
        }
    });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(source.list().unwrap(), before);
    let report = salvage_store(source, &second, Options::new(), &mut |_| {}).unwrap();
    assert!(report.losses.is_empty(), "{:?}", report.losses);
    assert_eq!(Options::new().open(&second).unwrap().iter().count() as u64, KEYS);
}

#[test]
fn salvage_of_cut_tables_reads_each_byte_about_once() {
    let store = MemStore::new(Arc::default());
    filled(&store).close().unwrap();
    // Whole, without a byte of the end, and half.
    for cut in [|bytes| bytes, |bytes| bytes - 1, |bytes| bytes / 2] {
        let (source, total_bytes) = copied(&store, cut);
        let ledger = source.ledger().clone();
        let target = tempfile::tempdir().unwrap();
        salvage_store(Arc::new(source), target.path(), Options::new(), &mut |_| {}).unwrap();
        let read_bytes = ledger.snapshot().host().read_bytes;
        assert!(
            read_bytes <= total_bytes + total_bytes / 4,
            "{read_bytes} bytes read of files of {total_bytes} bytes"
        );
    }
}
