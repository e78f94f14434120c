//! Which openings are allowed: read-only openings, the lock, foreign and newer directories.

use crate::build::{content, database, options};
use crate::image::{everything_in, temporary};
use base::{ErrorKind, Ledger};
use media::FileStore;
use media::os::{OsOptions, OsStore};
use shingle::Options;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

const CHILD: &str = "SHINGLE_DAMAGE_CHILD";

#[test]
fn read_only_openers_share_a_database_and_leave_no_trace() {
    let (image, history) = database(1);
    let directory = image.in_directory();
    let set_mode = |mode| {
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(0o555);
    let before = everything_in(directory.path());
    let read_only = || options().read_only(true).open(directory.path()).unwrap();
    let (first, second) = (read_only(), read_only());
    assert!(content(&first).unwrap() == *history.last());
    assert!(content(&second).unwrap() == *history.last());
    assert_eq!(first.put("a", "b").unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(first.delete_range("a", "b").unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(first.compact().unwrap_err().kind(), ErrorKind::Unsupported);
    first.close().unwrap();
    drop(second);
    assert!(everything_in(directory.path()) == before);
    set_mode(0o755);
}

#[test]
fn a_second_opener_is_refused_and_the_first_goes_on() {
    let home = temporary();
    let db = options().open(home.path()).unwrap();
    db.put("a", "1").unwrap();
    for _ in 0..3 {
        let error = options().open(home.path()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["doors::in_another_process", "--exact", "--ignored"])
            .env(CHILD, home.path())
            .output()
            .unwrap();
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
        db.put("b", "2").unwrap();
        db.flush().unwrap();
    }
    assert_eq!(db.iter().count(), 2);
    db.close().unwrap();
    assert_eq!(options().open(home.path()).unwrap().iter().count(), 2);
}

/// The other process of the test above.
#[test]
#[ignore = "runs in a process of its own"]
fn in_another_process() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let error = options().open(Path::new(&path)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
}

#[test]
fn foreign_directories_are_refused_and_stay_as_they_are() {
    let foreign: [&[(&str, &[u8])]; 5] = [
        &[("CURRENT", b"MANIFEST-000002\n"), ("MANIFEST-000002", b"\x56\xf9\xb8"), ("LOCK", b"")],
        &[("CURRENT", b"MANIFEST-000002\n"), ("000005.ldb", b"x"), ("LOCK", b"")],
        &[("CURRENT", &[0; 300])],
        &[("CURRENT", b"")],
        &[("000005.table", b"random bytes of somebody else")],
    ];
    for files in foreign {
        let directory = temporary();
        for (name, bytes) in files {
            std::fs::write(directory.path().join(name), bytes).unwrap();
        }
        let before = everything_in(directory.path());
        for read_only in [true, false] {
            let opened = Options::new().read_only(read_only).open(directory.path());
            let kind = opened.err().unwrap().kind();
            let is_refused = matches!(kind, ErrorKind::Corruption | ErrorKind::Incompatible);
            assert!(is_refused, "{files:?}: {kind:?}");
        }
        let mut after = everything_in(directory.path());
        if files[0].0 != "CURRENT" {
            after.remove("LOCK");
        }
        assert!(after == before, "{files:?}");
    }
}

#[test]
fn files_of_other_programs_beside_a_database_are_left_alone() {
    let home = temporary();
    options().open(home.path()).unwrap().close().unwrap();
    for name in ["notes.txt", "000007.sst", "MANIFEST-7", "CURRENT.bak"] {
        std::fs::write(home.path().join(name), name).unwrap();
    }
    let db = options().open(home.path()).unwrap();
    db.put("a", "1").unwrap();
    db.compact().unwrap();
    db.close().unwrap();
    for name in ["notes.txt", "000007.sst", "MANIFEST-7", "CURRENT.bak"] {
        assert_eq!(std::fs::read(home.path().join(name)).unwrap(), name.as_bytes());
    }
}

#[test]
fn a_database_of_a_newer_version_is_incompatible_and_stays_as_it_is() {
    let (image, _) = database(1);
    let directory = image.in_directory();
    let mut root = image.root.clone().unwrap();
    root[8] = 2;
    let number = |at: usize| u64::from_le_bytes(root[at..at + 8].try_into().unwrap());
    let (database, file) = (base::DatabaseId(number(16)), base::FileId(number(24)));
    let place = base::checksum::Place { database, file, offset: 0, kind: 0x30 };
    let sum = place.hash64(&root[..40]);
    root[40..].copy_from_slice(&sum.to_le_bytes());
    let store =
        OsStore::open(directory.path(), Arc::new(Ledger::default()), OsOptions::default()).unwrap();
    store.set_root(&root).unwrap();
    let before = everything_in(directory.path());
    for read_only in [true, false] {
        let error = options().read_only(read_only).open(directory.path()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Incompatible, "{error}");
    }
    assert!(everything_in(directory.path()) == before);
}

#[test]
fn a_directory_without_a_database_stays_empty_where_none_is_to_be_created() {
    let home = temporary();
    for options in [Options::new().create(false), Options::new().read_only(true)] {
        let options = options.create_new(false);
        assert_eq!(options.open(home.path()).err().unwrap().kind(), ErrorKind::NotFound);
    }
    assert!(everything_in(home.path()).is_empty());
    Options::new().create(false).create_new(true).open(home.path()).unwrap();
}

#[test]
fn a_database_is_destroyed_by_who_has_it_alone_and_that_of_another_program_never() {
    let home = temporary();
    let path = home.path().join("db");
    let kind = || shingle::destroy(&path).unwrap_err().kind();
    assert_eq!(kind(), ErrorKind::NotFound);
    let db = options().open(&path).unwrap();
    assert_eq!(kind(), ErrorKind::Locked);
    db.close().unwrap();
    // A damaged root keeps no database.
    std::fs::write(path.join("CURRENT"), b"").unwrap();
    shingle::destroy(&path).unwrap();
    assert!(!path.exists());
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("CURRENT"), b"MANIFEST-000002\n").unwrap();
    assert_eq!(kind(), ErrorKind::Incompatible);
    std::fs::remove_file(path.join("CURRENT")).unwrap();
    std::fs::write(path.join("000007.table"), b"of another program").unwrap();
    assert_eq!(kind(), ErrorKind::NotFound);
    assert!(path.join("000007.table").exists());
}
