//! Golden databases: what a version of the format wrote stays readable. The same seed also writes
//! the same bytes.

use crate::build::{DEFAULT_SETUP, Setup, State, Writer, content, database, options, runtime};
use crate::image::{Image, everything_in, temporary};
use base::Ledger;
use media::mem::MemStore;
use shingle::{Db, Expiry, KeyspaceOptions, ReadOptions, Since};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const SEED: u64 = 7;

pub fn golden(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(version)
}

/// A line for each pair: keyspace, key, value.
pub fn dump(state: &State) -> String {
    let mut text = String::new();
    for (name, content) in state {
        for (key, value) in content {
            writeln!(text, "{name} {} {}", key.escape_ascii(), value.escape_ascii()).unwrap();
        }
    }
    text
}

fn copy(from: &Path) -> tempfile::TempDir {
    let directory = temporary();
    for (name, (bytes, _)) in everything_in(from) {
        std::fs::write(directory.path().join(name), bytes).unwrap();
    }
    directory
}

#[test]
pub fn golden_databases_stay_readable() {
    let expected = std::fs::read_to_string(golden("v1.dump")).unwrap();
    for read_only in [true, false] {
        let directory = copy(&golden("v1"));
        let db = options().read_only(read_only).create(false).open(directory.path()).unwrap();
        assert!(dump(&content(&db).unwrap()) == expected, "read_only: {read_only}");
        let report = db.check(&mut |_| {}).unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
        if !read_only {
            db.compact().unwrap();
            assert!(dump(&content(&db).unwrap()) == expected, "compacted");
        }
    }
}

/// Values that ended and values that end in the year 2500, in runs, in segments and in a log.
fn expiring_database() -> Image {
    let store = Arc::new(MemStore::new(Arc::default()));
    let setup = Setup { values: "log", ..DEFAULT_SETUP };
    let db = setup.options().open_in(store.clone(), runtime(SEED)).unwrap();
    let ttl = Some(Duration::from_secs(86_400));
    let options = KeyspaceOptions { ttl, ..KeyspaceOptions::default() };
    db.create_keyspace("a day", options).unwrap();
    let put = |from: u64, to: u64| {
        for n in from..to {
            let expiry = Expiry::from_millis(if n % 3 == 0 { 1 } else { FAR_MS + n });
            let value = format!("value {n} ").repeat(1 + n as usize % 8);
            db.put_expiring(format!("key{n:03}"), value, expiry).unwrap();
        }
    };
    put(0, 60);
    db.flush().unwrap();
    put(40, 80);
    db.put("stays", "value").unwrap();
    db.sync().unwrap();
    drop(db);
    Image::of(&*store)
}

/// In the year 2500.
const FAR_MS: u64 = 16_725_225_600_000;

/// A line for each pair: key, expiry, value.
fn dump_expiring(db: &Db) -> String {
    let mut text = String::new();
    let mut cursor = db.cursor(ReadOptions::default());
    cursor.seek_to_first().unwrap();
    while cursor.valid() {
        let expiry = cursor.expiry().map_or(0, Expiry::as_millis);
        let (key, value) = (cursor.key().escape_ascii(), cursor.value().escape_ascii());
        writeln!(text, "{key} {expiry} {value}").unwrap();
        cursor.next().unwrap();
    }
    text
}

#[test]
fn a_golden_database_with_expiring_values_stays_readable() {
    let expected = std::fs::read_to_string(golden("v1-expiry.dump")).unwrap();
    assert_eq!(expected.lines().count(), 54);
    for read_only in [true, false] {
        let directory = copy(&golden("v1-expiry"));
        let db = options().read_only(read_only).create(false).open(directory.path()).unwrap();
        assert!(dump_expiring(&db) == expected, "read_only: {read_only}");
        let report = db.check(&mut |_| {}).unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
        if !read_only {
            db.compact().unwrap();
            assert!(dump_expiring(&db) == expected, "compacted");
            let day = db.keyspace("a day").unwrap();
            day.put("key", "value").unwrap();
            assert!(day.get_with_expiry("key").unwrap().unwrap().1.is_some());
        }
    }
}

/// Run by hand, once.
#[test]
#[ignore = "writes the golden database with expiring values"]
fn write_golden_expiry() {
    let directory = expiring_database().in_directory();
    std::fs::create_dir_all(golden("v1-expiry")).unwrap();
    for (name, (bytes, _)) in everything_in(directory.path()) {
        std::fs::write(golden("v1-expiry").join(name), bytes).unwrap();
    }
    let copied = copy(&golden("v1-expiry"));
    let db = options().read_only(true).create(false).open(copied.path()).unwrap();
    std::fs::write(golden("v1-expiry.dump"), dump_expiring(&db)).unwrap();
}

#[test]
fn a_golden_database_has_every_kind_of_file() {
    let image = Image::of_directory(&golden("v1"));
    for kind in [media::FileKind::Table, media::FileKind::Wal, media::FileKind::Manifest] {
        assert!(image.files.keys().any(|name| name.kind == kind), "{kind:?}");
    }
    assert!(image.bytes() < 64 << 10);
}

#[test]
fn the_same_seed_writes_the_same_bytes() {
    for seed in 0..4 {
        let ((first, history), (second, _)) = (database(seed), database(seed));
        assert!(first == second, "seed {seed}");
        assert!(history.states.len() > 400);
    }
    assert!(database(1).0 != database(2).0);
}

/// Run by hand, and only when a new version of the format gets a database of its own.
#[test]
#[ignore = "writes the golden database"]
fn write_golden_database() {
    let (image, history) = database(SEED);
    let directory = image.in_directory();
    std::fs::create_dir_all(golden("v1")).unwrap();
    for (name, (bytes, _)) in everything_in(directory.path()) {
        std::fs::write(golden("v1").join(name), bytes).unwrap();
    }
    std::fs::write(golden("v1.dump"), dump(history.last())).unwrap();
}

/// A line for each change.
fn dump_changes(db: &Db) -> String {
    let mut text = String::new();
    for change in db.changes(Since::Oldest).unwrap() {
        writeln!(text, "{:?}", change.unwrap()).unwrap();
    }
    text
}

/// Logs with origins have version 2.
#[test]
fn golden_logs_of_changes_stay_readable() {
    let expected = std::fs::read_to_string(golden("v1-changes.dump")).unwrap();
    let changes = std::fs::read_to_string(golden("v1-changes.feed")).unwrap();
    for read_only in [true, false] {
        let directory = copy(&golden("v1-changes"));
        let options = options().changes_retention_bytes(1 << 20).values("hashed");
        let db = options.read_only(read_only).create(false).open(directory.path()).unwrap();
        assert!(dump(&content(&db).unwrap()) == expected, "read_only: {read_only}");
        assert!(dump_changes(&db) == changes, "read_only: {read_only}");
        let report = db.check(&mut |_| {}).unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
    }
}

#[test]
#[ignore = "writes the golden database with logs of changes"]
fn write_golden_changes() {
    let store = Arc::new(MemStore::new(Arc::new(Ledger::default())));
    let options = options().changes_retention_bytes(1 << 20).values("hashed");
    let db = options.open_in(store.clone(), runtime(SEED)).unwrap();
    let mut writer = Writer::new(db, SEED);
    writer.fill_a_little();
    let directory = Image::of(&*store).in_directory();
    std::fs::create_dir_all(golden("v1-changes")).unwrap();
    for (name, (bytes, _)) in everything_in(directory.path()) {
        std::fs::write(golden("v1-changes").join(name), bytes).unwrap();
    }
    std::fs::write(golden("v1-changes.dump"), dump(writer.history.last())).unwrap();
    std::fs::write(golden("v1-changes.feed"), dump_changes(&writer.db)).unwrap();
}
