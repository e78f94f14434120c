//! Regressions, each named after what was broken.

use crate::build::{History, Writer, content, database, open, options, runtime};
use crate::image::Image;
use crate::verdict::{Verdict, judge};
use base::key::SEQUENCE_MAX;
use base::{Cause, ErrorKind, KeyspaceId, Ledger};
use media::mem::MemStore;
use media::{FileHint, FileKind, FileStore};
use shingle::Durability;
use std::sync::Arc;
use table::log::{LogIdentity, LogKind, LogReader, LogWriter};

/// A database whose last edit is a flush, whose old logs are gone, and which was written to since.
fn flushed() -> (Image, History) {
    let store = Arc::new(MemStore::new(Arc::new(Ledger::default())));
    let options = options().expert(|expert| expert.scheme.level0_runs_trigger = Some(100));
    let mut writer = Writer::new(options.open_in(store.clone(), runtime(1)).unwrap(), 1);
    writer.commits(30);
    writer.flush();
    writer.db.wait_idle().unwrap();
    writer.commits(5);
    (Image::of(&*store), writer.history)
}

#[test]
fn damage_of_the_last_edit_does_not_pass_for_a_torn_tail_and_lose_a_flush() {
    let (image, history) = flushed();
    let name = *image.files.keys().find(|name| name.kind == FileKind::Manifest).unwrap();
    let mut bytes = image.files[&name].to_vec();
    let at = bytes.len() - 40;
    bytes[at] ^= 1;
    let verdict =
        judge(open(image.with(name, bytes).in_memory(), false), &history, history.flushed);
    assert_eq!(verdict, Ok(Verdict::Detected));
}

#[test]
fn the_check_finds_damage_of_a_table_header_which_no_read_touches() {
    let (image, history) = flushed();
    let name = *image.files.keys().find(|name| name.kind == FileKind::Table).unwrap();
    let mut bytes = image.files[&name].to_vec();
    bytes[20] ^= 1;
    let db = open(image.with(name, bytes).in_memory(), true).unwrap();
    assert!(content(&db).unwrap() == *history.last());
    let problems = db.check(&mut |_| {}).unwrap().problems;
    assert!(problems.len() == 1 && problems[0].contains(&name.to_string()), "{problems:?}");
}

#[test]
fn a_log_cut_short_is_damage_when_the_log_after_the_next_one_proves_it() {
    let store = Arc::new(MemStore::new(Arc::new(Ledger::default())));
    let mut writer = Writer::new(options().open_in(store.clone(), runtime(1)).unwrap(), 1);
    let logs = || Image::of(&*store).files.into_keys().filter(|n| n.kind == FileKind::Wal).count();
    while logs() < 3 {
        writer.commits(1);
    }
    writer.commit(Durability::Synced);
    writer.commits(1);
    let image = Image::of(&*store);
    let first = *image.files.keys().find(|name| name.kind == FileKind::Wal).unwrap();
    let cut = image.files[&first][..500].to_vec();
    let error = open(image.with(first, cut).in_memory(), false).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    let error = open(image.without(first).in_memory(), false).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    let (image, _) = database(1);
    assert!(open(image.in_memory(), false).is_ok());
}

#[test]
fn log_records_with_forged_sequence_numbers_are_corruption() {
    let (image, _) = database(1);
    let name = *image.files.keys().rfind(|name| name.kind == FileKind::Wal).unwrap();
    let root = table::manifest::decode_root(image.root.as_ref().unwrap()).unwrap();
    let identity = LogIdentity { database: root.database, file: name.id, kind: LogKind::Wal };
    let file = image.in_memory().open(name, false).unwrap();
    let header = *LogReader::open(&*file, identity, 0, Cause::Check).unwrap().header().unwrap();
    for first in [SEQUENCE_MAX - 1, SEQUENCE_MAX + 1, u64::MAX - 1, 1 << 40] {
        let mut batch = table::batch::WriteBatch::new();
        for key in [b"a", b"b", b"c"] {
            batch.put(KeyspaceId(0), key, b"").unwrap();
        }
        let store = image.without(name).in_memory();
        let file = store.create(name, &FileHint::default()).unwrap();
        let mut writer = LogWriter::create(file, header, Cause::Check).unwrap();
        // The last of them would be sound, once.
        writer.append(&[&first.to_le_bytes(), batch.bytes()]).unwrap();
        writer.append(&[&first.to_le_bytes(), batch.bytes()]).unwrap();
        drop(writer);
        let error = open(store, true).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert_eq!(error.file(), Some(&*name.to_string()));
    }
}

#[test]
fn a_manifest_cut_behind_an_edit_does_not_take_a_closed_database_back() {
    let store = Arc::new(MemStore::new(Arc::new(Ledger::default())));
    let mut writer = Writer::new(options().open_in(store.clone(), runtime(1)).unwrap(), 1);
    writer.fill();
    let expected = writer.state.clone();
    writer.db.close().unwrap();
    let image = Image::of(&*store);
    assert!(image.files.keys().all(|name| name.kind != FileKind::Wal));
    let name = *image.files.keys().find(|name| name.kind == FileKind::Manifest).unwrap();
    let bytes = &image.files[&name];
    for length in 0..bytes.len() {
        match open(image.with(name, bytes[..length].to_vec()).in_memory(), true) {
            // Only the record that proves the last edit.
            Ok(db) => assert!(bytes.len() - length < 20 && content(&db).unwrap() == expected),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corruption, "{length}: {error}"),
        }
    }
}
