//! The store in a directory: real files, real errors of the system, and nobody else's files.

use super::*;
use crate::conformance;
use base::FileId;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use tempfile::TempDir;

const BACKGROUND: FileHint =
    FileHint { bytes_max: None, group: None, lifetime: None, background: true };

fn open(dir: &TempDir, options: OsOptions) -> Result<OsStore> {
    OsStore::open(dir.path(), Arc::default(), options)
}

fn store() -> (TempDir, OsStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir, OsOptions::default()).unwrap();
    (dir, store)
}

fn table(id: u64) -> FileName {
    FileName::table(FileId(id))
}

/// A store that takes its directory with it.
fn conform(options: &OsOptions) {
    let dirs = Mutex::new(Vec::new());
    conformance::check(&|| {
        let dir = tempfile::tempdir().unwrap();
        let store = open(&dir, options.clone()).unwrap();
        hold(&dirs).push(dir);
        Arc::new(store)
    });
}

#[test]
fn conforms_with_direct_writes() {
    conform(&OsOptions { background_buffer_bytes: 8192, ..OsOptions::default() });
    conform(&OsOptions::default());
}

#[test]
fn conforms_without_direct_writes() {
    conform(&OsOptions {
        direct_background: false,
        background_buffer_bytes: 8192,
        ..OsOptions::default()
    });
}

#[test]
fn a_background_file_writes_exactly_the_bytes_appended() {
    let (dir, store) = store();
    let mut file = store.create(table(1), &BACKGROUND).unwrap();
    let mut total = 0;
    for len in [1, 4095, 100_000, 4096, 7, 700_000] {
        file.append(&vec![3; len], Cause::Flush).unwrap();
        file.sync(Cause::Flush).unwrap();
        total += len as u64;
        assert_eq!(fs::metadata(dir.path().join("000001.table")).unwrap().len(), total);
    }
    assert_eq!(store.ledger().snapshot().host().write_bytes, total);
}

#[test]
fn a_foreground_append_reaches_the_file_before_it_returns() {
    let (dir, store) = store();
    let mut file = store.create(FileName::wal(FileId(1)), &FileHint::default()).unwrap();
    file.append(b"record", Cause::Wal).unwrap();
    assert_eq!(fs::read(dir.path().join("000001.wal")).unwrap(), b"record");
}

#[test]
fn a_dropped_background_file_leaves_what_was_appended() {
    let (dir, store) = store();
    store.create(table(1), &BACKGROUND).unwrap().append(&[9; 5001], Cause::Flush).unwrap();
    assert_eq!(fs::read(dir.path().join("000001.table")).unwrap(), [9; 5001]);
}

#[test]
fn a_file_has_one_background_writer() {
    let (_dir, store) = store();
    let first = store.create(table(1), &BACKGROUND).unwrap();
    for hint in [BACKGROUND, FileHint::default()] {
        let error = store.extend(table(1), 0, &hint).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    drop(first);
    store.extend(table(1), 0, &BACKGROUND).unwrap();
}

#[test]
fn a_flipped_byte_in_the_root_file_is_corruption_that_names_it() {
    let (dir, store) = store();
    store.set_root(b"MANIFEST-000003").unwrap();
    let path = dir.path().join("CURRENT");
    let mut bytes = fs::read(&path).unwrap();
    bytes[20] ^= 4;
    fs::write(&path, bytes).unwrap();
    let error = store.root().unwrap_err();
    assert_eq!((error.kind(), error.file()), (ErrorKind::Corruption, Some("CURRENT")));
}

#[test]
fn a_left_over_temporary_root_does_not_matter() {
    let (dir, store) = store();
    store.set_root(b"old").unwrap();
    fs::write(dir.path().join("CURRENT.tmp"), b"half").unwrap();
    assert_eq!(store.root().unwrap().unwrap(), b"old");
    store.set_root(b"new").unwrap();
    assert_eq!(store.root().unwrap().unwrap(), b"new");
    assert!(!dir.path().join("CURRENT.tmp").exists());
}

#[test]
fn files_are_private_and_links_are_not_followed() {
    let (dir, store) = store();
    store.create(table(1), &BACKGROUND).unwrap();
    store.set_root(b"x").unwrap();
    let _lock = store.lock().unwrap();
    for name in ["000001.table", "CURRENT", "LOCK"] {
        let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let secret = dir.path().join("secret");
    fs::write(&secret, b"not ours").unwrap();
    symlink(&secret, dir.path().join("000002.table")).unwrap();
    symlink(&secret, dir.path().join("events")).unwrap();
    assert!(store.open(table(2), false).is_err());
    assert!(store.extend(table(2), 0, &FileHint::default()).is_err());
    assert!(store.create(table(2), &FileHint::default()).is_err());
    assert!(store.note("events", b"x", true).is_err());
    assert!(store.read_note("events").is_err());
    symlink(&secret, dir.path().join("CURRENT.tmp")).unwrap();
    store.set_root(b"y").unwrap();
    assert_eq!(store.list().unwrap().len(), 1);
    assert_eq!(fs::read(&secret).unwrap(), b"not ours");
}

#[test]
fn a_second_store_in_this_process_neither_locks_nor_unlocks() {
    let (dir, first) = store();
    let alias = dir.path().join("..").join(dir.path().file_name().unwrap());
    let second = OsStore::open(&alias, Arc::default(), OsOptions::default()).unwrap();
    let lock = first.lock().unwrap();
    for _ in 0..3 {
        let error = second.lock().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    }
    let pid = fs::read_to_string(dir.path().join("LOCK")).unwrap();
    assert_eq!(pid.trim(), std::process::id().to_string());
    drop(lock);
    second.lock().unwrap();
}

#[test]
fn the_lock_of_another_holder_names_its_process() {
    let (dir, store) = store();
    fs::write(dir.path().join("LOCK"), "4711\n").unwrap();
    // A descriptor of its own stands for another process: `flock` does not tell them apart.
    let other = fs::File::open(dir.path().join("LOCK")).unwrap();
    rustix::fs::flock(&other, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let error = store.lock().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains("process 4711"), "{error}");
    drop(other);
    store.lock().unwrap();
}

#[test]
fn a_lock_held_by_readers_names_them_and_not_the_last_writer() {
    let (dir, store) = store();
    fs::write(dir.path().join("LOCK"), "4711\n").unwrap();
    // Stands for another process, as above; this one is what the system lists.
    let other = fs::File::open(dir.path().join("LOCK")).unwrap();
    rustix::fs::flock(&other, rustix::fs::FlockOperation::LockShared).unwrap();
    drop(store.lock_shared().unwrap());
    let error = store.lock().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked);
    if cfg!(target_os = "linux") {
        let who = format!("process {} for reading", std::process::id());
        assert!(error.to_string().contains(&who), "{error}");
    }
    drop(other);
    store.lock().unwrap();
}

#[test]
fn a_read_only_store_writes_nothing_and_keeps_writers_out() {
    let (dir, writable) = store();
    writable.create(table(1), &BACKGROUND).unwrap().append(b"abc", Cause::Flush).unwrap();
    writable.set_root(b"r").unwrap();
    drop(writable.lock().unwrap());
    let before = fs::read_dir(dir.path()).unwrap().count();
    let options = OsOptions { read_only: true, ..OsOptions::default() };
    let readers = [open(&dir, options.clone()).unwrap(), open(&dir, options).unwrap()];
    let locks = readers.each_ref().map(|reader| reader.lock().unwrap());
    assert_eq!(writable.lock().err().unwrap().kind(), ErrorKind::Locked);
    let reader = &readers[0];
    let refused = [
        reader.create(table(2), &BACKGROUND).err(),
        reader.extend(table(1), 0, &BACKGROUND).err(),
        reader.remove(table(1)).err(),
        reader.set_root(b"s").err(),
        reader.sync_names().err(),
        reader.note("events", b"x", true).err(),
    ];
    for error in refused {
        assert_eq!(error.unwrap().kind(), ErrorKind::Unsupported);
    }
    assert_eq!(reader.root().unwrap().unwrap(), b"r");
    assert_eq!(reader.list().unwrap()[0].bytes, 3);
    assert_eq!(reader.ledger().snapshot().host().write_bytes, 0);
    let target = tempfile::tempdir().unwrap();
    reader.share(table(1), target.path(), None).unwrap();
    assert_eq!(fs::read(target.path().join("000001.table")).unwrap(), b"abc");
    let file = fs::metadata(dir.path().join("000001.table")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::nlink(&file), 1);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), before);
    drop(locks);
    writable.lock().unwrap();
}

#[test]
fn a_missing_directory_is_created_only_on_demand() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("a/b/c");
    let keep = OsOptions { create: false, ..OsOptions::default() };
    let error = OsStore::open(&deep, Arc::default(), keep).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    OsStore::open(&deep, Arc::default(), OsOptions::default()).unwrap();
    assert!(deep.is_dir());
}

#[test]
fn a_file_is_shared_by_link_and_a_growing_one_by_copy() {
    let (dir, store) = store();
    let target = tempfile::tempdir_in(dir.path()).unwrap();
    let inode = |path: &Path, name: &str| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(path.join(name)).unwrap().ino()
    };
    store.create(table(1), &BACKGROUND).unwrap().append(b"finished", Cause::Flush).unwrap();
    store.share(table(1), target.path(), None).unwrap();
    assert_eq!(inode(dir.path(), "000001.table"), inode(target.path(), "000001.table"));
    let error = store.share(table(1), target.path(), None).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);

    let mut growing = store.create(table(2), &BACKGROUND).unwrap();
    growing.append(b"growing", Cause::Flush).unwrap();
    store.share(table(2), target.path(), None).unwrap();
    assert_eq!(fs::read(target.path().join("000002.table")).unwrap(), b"growing");
    growing.append(b" on", Cause::Flush).unwrap();
    fs::remove_file(target.path().join("000002.table")).unwrap();
    store.share(table(2), target.path(), Some(4)).unwrap();
    assert_eq!(fs::read(target.path().join("000002.table")).unwrap(), b"grow");
    assert!(store.share(table(1), target.path(), Some(100)).is_err());
}

#[test]
fn space_is_what_the_file_system_says() {
    let (_dir, store) = store();
    let space = store.space().unwrap();
    assert!(space.free_bytes <= space.total_bytes && space.total_bytes > 0);
}

#[test]
fn foreign_files_are_neither_listed_nor_touched() {
    let (dir, store) = store();
    for name in ["7.table", "notes.txt", "000001.table.bak", "CURRENT"] {
        fs::write(dir.path().join(name), b"foreign").unwrap();
    }
    fs::create_dir(dir.path().join("000009.table")).unwrap();
    assert_eq!(store.list().unwrap(), []);
    assert_eq!(store.root().unwrap_err().kind(), ErrorKind::Corruption);
}
