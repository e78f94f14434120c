//! Files as the engine writes them, made here from the formats alone.

use super::*;
use crate::context::Global;
use base::Ledger;
use base::key::internal_key;
use base::{EntryKind, FileId, KeyspaceId, RunId};
use media::FileHint;
use media::os::{OsOptions, OsStore};
use table::batch::WriteBatch;
use table::log::{LogHeader, LogWriter};
use table::manifest::{Root, encode_edit, encode_root};
use table::{TableOptions, TableWriter};
use tree::edit::{DatabaseEdit, KeyspaceRecord};

const DATABASE: DatabaseId = DatabaseId(7);

/// One record in a log of its own.
fn write_log(store: &OsStore, name: FileName, kind: LogKind, parts: &[&[u8]]) {
    let header = LogHeader {
        database: DATABASE,
        file: name.id,
        kind,
        salt: 1,
        previous: None,
        has_origins: false,
        restates: false,
    };
    let file = store.create(name, &FileHint::default()).unwrap();
    let mut log = LogWriter::create(file, header, Cause::Wal).unwrap();
    log.append(parts).unwrap();
    log.sync().unwrap();
}

fn write_table(store: &OsStore, id: FileId) {
    let file = store.create(FileName::table(id), &FileHint::default()).unwrap();
    let place = TablePlace { database: DATABASE, file: id };
    let mut table = TableWriter::create(file, place, Cause::Flush).unwrap();
    table.begin_run(RunId(5), &TableOptions::default()).unwrap();
    table.add(&internal_key(b"apple", 3, EntryKind::Put), b"red").unwrap();
    table.add(&internal_key(b"pear", 4, EntryKind::Delete), b"").unwrap();
    table.finish_run().unwrap();
    table.finish().unwrap();
}

fn database() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let ledger = Arc::new(Ledger::default());
    let store = OsStore::open(directory.path(), ledger, OsOptions::default()).unwrap();
    let name = "default".to_string();
    let created = KeyspaceRecord { id: KeyspaceId(0), name, options: String::new() };
    let edit = DatabaseEdit { created: vec![created], ..DatabaseEdit::default() };
    let mut bytes = Vec::new();
    encode_edit(&edit, &mut bytes);
    write_log(&store, FileName::manifest(FileId(1)), LogKind::Manifest, &[&bytes]);
    let mut batch = WriteBatch::new();
    batch.put(KeyspaceId(0), b"plum", b"blue\n").unwrap();
    let first = 9u64.to_le_bytes();
    write_log(&store, FileName::wal(FileId(2)), LogKind::Wal, &[&first, batch.bytes()]);
    write_table(&store, FileId(3));
    let root = Root { database: DATABASE, manifest: FileId(1), manifest_bytes_min: 0 };
    store.set_root(&encode_root(&root)).unwrap();
    directory
}

fn dumped(db: &Path, kind: DumpKind, file: Option<&str>) -> Outcome<String> {
    let global = Global {
        db: Some(db.to_path_buf()),
        cold_store: None,
        keyspace: "default".into(),
        option: Vec::new(),
        hex: false,
        json: false,
        quiet: true,
    };
    let mut out = Vec::new();
    let file = file.map(|name| db.join(name));
    let args = DumpArgs { kind, file, entries: true, svg: None };
    let outcome = dump(&mut Context::new(global, &mut out), args);
    outcome.map(|()| String::from_utf8(out).unwrap())
}

#[test]
fn a_table_shows_its_runs_and_entries() {
    let db = database();
    let text = dumped(db.path(), DumpKind::Table, None).unwrap();
    assert!(text.contains("run 5 at byte"), "{text}");
    assert!(text.contains("keys apple to pear, sequence 3 to 4"), "{text}");
    assert!(text.contains("  apple @ 3 Put => red\n  pear @ 4 Delete => \n"), "{text}");
}

#[test]
fn a_manifest_shows_its_edits() {
    let db = database();
    let text = dumped(db.path(), DumpKind::Manifest, Some("MANIFEST-000001")).unwrap();
    assert!(text.contains("create keyspace 0 \"default\"") && text.contains("1 records"), "{text}");
}

#[test]
fn a_log_shows_its_batches() {
    let db = database();
    let text = dumped(db.path(), DumpKind::Wal, None).unwrap();
    assert!(text.contains("\n9,1,"), "{text}");
    assert!(text.contains("  keyspace 0 Put plum : blue\\n\n"), "{text}");
}

#[test]
fn damage_is_named_after_what_is_whole() {
    let db = database();
    let path = db.path().join("000003.table");
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = dumped(db.path(), DumpKind::Table, None).unwrap_err();
    assert!(matches!(&error, Failure::Engine(e) if e.file() == Some("000003.table")), "{error:?}");
}
