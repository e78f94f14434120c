//! Logs whose length is ahead of their end: readers find what was written and nothing more, also
//! after the death of the process.

use shingle::{Db, Durability, Options};
use std::fs;
use std::path::{Path, PathBuf};

const KEYS: u64 = 300;

/// A database in `path` with one log of [`KEYS`] writes.
fn written(path: &Path, durability: Durability) -> Db {
    let db = Options::new().durability(durability).open(path).unwrap();
    for key in 0..KEYS {
        db.put(format!("key {key:04}"), [b'v'; 100]).unwrap();
    }
    db
}

fn is_complete(db: &Db) -> bool {
    db.iter().count() as u64 == KEYS && db.check(&mut |_| {}).unwrap().is_clean()
}

/// The one log in `path`, and the zeros at its end.
fn log_of(path: &Path) -> (PathBuf, usize) {
    let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let logs: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "wal")).collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    let bytes = fs::read(&logs[0]).unwrap();
    let zeros = bytes.iter().rev().take_while(|&&byte| byte == 0).count();
    (logs[0].clone(), zeros)
}

/// The files as the death of the process would leave them.
fn killed(path: &Path, target: &Path) {
    fs::create_dir(target).unwrap();
    for entry in fs::read_dir(path).unwrap() {
        let from = entry.unwrap().path();
        fs::copy(&from, target.join(from.file_name().unwrap())).unwrap();
    }
}

#[test]
fn a_killed_database_has_zeros_behind_its_log_and_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let db = written(&path("db"), Durability::Synced);
    assert!(log_of(&path("db")).1 > 100_000, "the length is ahead");

    killed(&path("db"), &path("salvaged from"));
    let report = shingle::salvage(&path("salvaged from"), &path("salvaged"), &mut |_| {}).unwrap();
    assert_eq!((report.entries, report.losses.len()), (KEYS, 0), "{:?}", report.losses);

    killed(&path("db"), &path("killed"));
    assert!(is_complete(&Options::new().read_only(true).open(path("killed")).unwrap()));
    let opened = Options::new().open(path("killed")).unwrap();
    assert!(is_complete(&opened));
    opened.close().unwrap();
    assert!(is_complete(&db));
}

#[test]
fn a_follower_a_checkpoint_and_a_close_find_the_end_of_the_log() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let db = written(&path("db"), Durability::Synced);
    let follower = Options::new().follow(path("db")).unwrap();
    assert_eq!(follower.db().iter().count() as u64, KEYS);
    db.put("later", "value").unwrap();
    follower.catch_up().unwrap();
    assert_eq!(&*follower.db().get("later").unwrap().unwrap(), b"value");
    db.delete("later").unwrap();

    db.checkpoint(path("copy")).unwrap();
    assert_eq!(log_of(&path("copy")).1, 0, "a copy has what was written");
    assert!(is_complete(&Options::new().open(path("copy")).unwrap()));
    db.close().unwrap();
    assert!(is_complete(&Options::new().open(path("db")).unwrap()));
}

#[test]
fn the_log_of_a_database_that_never_syncs_ends_with_its_last_record() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("db");
    let db = written(&path, Durability::Buffered);
    assert_eq!(log_of(&path).1, 0);
    // One sync, at which the length is right, and one step for it.
    db.sync().unwrap();
    assert_eq!(log_of(&path).1, 0);
    db.put("behind the sync", "value").unwrap();
    assert!(log_of(&path).1 > 100_000);
}

/// Zeros at the end are no reason to believe that nothing was there: a record behind them proves
/// that they were durable.
#[test]
fn zeros_in_the_middle_of_a_synced_log_are_damage() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let _db = written(&path("db"), Durability::Synced);
    killed(&path("db"), &path("killed"));
    let (log, zeros) = log_of(&path("killed"));
    let mut bytes = fs::read(&log).unwrap();
    let end = bytes.len() - zeros;
    bytes[end / 2..end / 2 + 1000].fill(0);
    fs::write(&log, bytes).unwrap();
    let error = Options::new().open(path("killed")).err().expect("the log is damaged");
    assert_eq!(error.kind(), shingle::ErrorKind::Corruption, "{error}");
}
