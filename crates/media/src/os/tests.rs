//! The store in a directory: real files, real errors of the system, and only the test's own files.

use super::*;
use crate::{Part, conformance};
use base::FileId;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use tempfile::TempDir;

const BACKGROUND: FileHint = FileHint { background: true, ..FileHint::NONE };

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
        dirs.lock().push(dir);
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

/// Files that are written count as descriptors too, and readers need some.
#[test]
fn files_synced_together_are_a_small_part_of_the_descriptors() {
    let together = |open_files_max| {
        let dir = tempfile::tempdir().unwrap();
        let options = OsOptions { open_files_max: Some(open_files_max), ..OsOptions::default() };
        open(&dir, options).unwrap().files_synced_together()
    };
    assert_eq!([5, 64, 256, 100_000].map(together), [1, 4, 16, 16]);
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
    assert!(store.write_note("events", b"x", true).is_err());
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
        reader.write_note("events", b"x", true).err(),
    ];
    for error in refused {
        assert_eq!(error.unwrap().kind(), ErrorKind::Unsupported);
    }
    assert_eq!(reader.root().unwrap().unwrap(), b"r");
    assert_eq!(reader.list().unwrap()[0].bytes, 3);
    assert_eq!(reader.ledger().snapshot().host().write_bytes, 0);
    let target = tempfile::tempdir().unwrap();
    reader.share(table(1), target.path(), Part::Whole).unwrap();
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
    store.share(table(1), target.path(), Part::Whole).unwrap();
    assert_eq!(inode(dir.path(), "000001.table"), inode(target.path(), "000001.table"));
    let error = store.share(table(1), target.path(), Part::Whole).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);

    let mut growing = store.create(table(2), &BACKGROUND).unwrap();
    growing.append(b"growing", Cause::Flush).unwrap();
    store.share(table(2), target.path(), Part::Whole).unwrap();
    assert_eq!(fs::read(target.path().join("000002.table")).unwrap(), b"growing");
    growing.append(b" on", Cause::Flush).unwrap();
    fs::remove_file(target.path().join("000002.table")).unwrap();
    store.share(table(2), target.path(), Part::Exactly(4)).unwrap();
    assert_eq!(fs::read(target.path().join("000002.table")).unwrap(), b"grow");
    assert!(store.share(table(1), target.path(), Part::AtLeast(100)).is_err());
}

#[test]
fn a_shared_file_takes_no_more_bytes_on_either_side_until_it_is_alone() {
    let (dir, store) = store();
    let target = tempfile::tempdir_in(dir.path()).unwrap();
    let other = open(&target, OsOptions::default()).unwrap();
    store.create(table(1), &BACKGROUND).unwrap().append(b"finished", Cause::Flush).unwrap();
    for hint in [BACKGROUND, FileHint::default()] {
        let mut writer = store.extend(table(1), 4, &hint).unwrap();
        writer.append(b"more", Cause::Flush).unwrap();
        store.share(table(1), target.path(), Part::AtLeast(4)).unwrap();
        assert_eq!(fs::read(target.path().join("000001.table")).unwrap(), b"fini");
        drop(writer);
        other.remove(table(1)).unwrap();
    }
    store.share(table(1), target.path(), Part::AtLeast(4)).unwrap();
    for side in [&store, &other] {
        for (at, hint) in [(4, BACKGROUND), (8, FileHint::default())] {
            let error = side.extend(table(1), at, &hint).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Shared, "{error}");
        }
        assert_eq!(fs::read(dir.path().join("000001.table")).unwrap(), b"finimore");
    }
    store.remove(table(1)).unwrap();
    other.extend(table(1), 4, &BACKGROUND).unwrap().append(b"sh", Cause::Flush).unwrap();
    assert_eq!(fs::read(target.path().join("000001.table")).unwrap(), b"finish");
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

#[test]
fn a_foreign_file_is_found_among_those_of_a_store() {
    let (dir, store) = store();
    for name in ["000001.table", "MANIFEST-000002", ".hidden", "CURRENT.tmp"] {
        fs::write(dir.path().join(name), b"").unwrap();
    }
    fs::create_dir(dir.path().join("lost+found")).unwrap();
    assert_eq!(store.foreign_file(&["LOG"]).unwrap(), None);
    fs::write(dir.path().join("LOG"), b"").unwrap();
    assert_eq!(store.foreign_file(&["LOG"]).unwrap().as_deref(), Some("LOG"));
    drop(store.lock().unwrap());
    assert_eq!(store.foreign_file(&["LOG"]).unwrap(), None, "a store was opened here");
    fs::write(dir.path().join("notes.txt"), b"").unwrap();
    assert_eq!(store.foreign_file(&["LOG"]).unwrap().as_deref(), Some("notes.txt"));
}

#[test]
fn a_root_of_leveldb_is_called_that() {
    let (dir, store) = store();
    fs::write(dir.path().join("CURRENT"), b"MANIFEST-000005\n").unwrap();
    let error = store.root().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incompatible);
    assert!(error.to_string().contains("LevelDB or RocksDB"), "{error}");
}

fn mapping_store(map_bytes_max: u64) -> (TempDir, OsStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir, OsOptions { map_bytes_max, ..OsOptions::default() }).unwrap();
    (dir, store)
}

fn write_table(store: &OsStore, id: u64, bytes: &[u8]) {
    let mut file = store.create(table(id), &BACKGROUND).unwrap();
    file.append(bytes, Cause::Flush).unwrap();
    file.sync(Cause::Flush).unwrap();
}

#[test]
#[cfg_attr(miri, ignore)] // Maps files.
fn a_mapping_shows_the_file_and_outlives_its_name() {
    let (_dir, store) = mapping_store(1 << 20);
    let bytes: Vec<u8> = (0..10_000u32).map(|n| n as u8).collect();
    write_table(&store, 1, &bytes);
    let file = store.open(table(1), false).unwrap();
    let mapping = file.map().unwrap();
    store.remove(table(1)).unwrap();
    drop(file);
    let before = store.ledger().snapshot().cause(Cause::Get).read_bytes;
    mapping.fetch(4000..9000, Cause::Get).unwrap();
    assert_eq!(store.ledger().snapshot().cause(Cause::Get).read_bytes - before, 5000);
    assert_eq!(mapping.bytes(), bytes);
    assert!(store.open(table(1), true).is_err());
}

#[test]
#[cfg_attr(miri, ignore)] // Maps files.
fn what_a_mapping_cannot_read_is_an_error_of_fetch() {
    let (dir, store) = mapping_store(1 << 20);
    write_table(&store, 1, &[7; 100_000]);
    let mapping = store.open(table(1), false).unwrap().map().unwrap();
    for range in [99_999..100_001, 200_000..200_001, u64::MAX - 1..u64::MAX] {
        let error = mapping.fetch(range, Cause::Get).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    }
    let path = dir.path().join(table(1).to_string());
    fs::File::options().write(true).open(path).unwrap().set_len(10).unwrap();
    let error = mapping.fetch(50_000..60_000, Cause::Get).unwrap_err();
    assert!(error.to_string().contains("10 bytes"), "{error}");
}

#[test]
#[cfg_attr(miri, ignore)] // Maps files.
fn nothing_is_mapped_over_the_budget_or_while_it_is_written() {
    let (_dir, store) = mapping_store(15_000);
    for id in 1..=2 {
        write_table(&store, id, &[7; 10_000]);
    }
    let mapped = |id| store.open(table(id), false).unwrap().map();
    let first = mapped(1).unwrap();
    assert!(mapped(2).is_none());
    drop(first);
    assert!(mapped(2).is_some());
    assert!(store.open(table(2), true).unwrap().map().is_none());
    let mut growing = store.create(table(3), &BACKGROUND).unwrap();
    growing.append(b"more to come", Cause::Flush).unwrap();
    let reader = store.open(table(3), false).unwrap();
    assert!(reader.map().is_none());
    growing.sync(Cause::Flush).unwrap();
    drop(growing);
    assert_eq!(reader.map().unwrap().bytes(), b"more to come");
}

/// How many descriptors of this process lie in `dir`.
fn open_in(dir: &TempDir) -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap();
    let targets = links.filter_map(|link| fs::read_link(link.unwrap().path()).ok());
    targets.filter(|target| target.parent() == Some(dir.path())).count()
}

#[test]
fn more_files_are_read_than_may_be_open() {
    let dir = tempfile::tempdir().unwrap();
    let options = OsOptions { open_files_max: Some(4), ..OsOptions::default() };
    let store = open(&dir, options).unwrap();
    let write = |id| {
        let mut file = store.create(table(id), &BACKGROUND).unwrap();
        file.append(&[id as u8; 5000], Cause::Flush).unwrap();
    };
    (1..=32).for_each(write);
    let readers: Vec<_> = (1..=32).map(|id| store.open(table(id), false).unwrap()).collect();
    let expect = |id: u64| {
        let mut found = vec![0; 5000];
        readers[id as usize - 1].read_at(0, &mut found, Cause::Get).unwrap();
        assert_eq!(found, [id as u8; 5000]);
        assert!(open_in(&dir) <= 4, "{} are open", open_in(&dir));
    };
    for id in (1..=32).chain((1..=32).rev()).chain((0..200).map(|i| 1 + i * 13 % 32)) {
        expect(id);
    }
    // One that has no descriptor loses its name, which then leads to another file.
    store.remove(table(1)).unwrap();
    store.create(table(1), &BACKGROUND).unwrap().append(b"other", Cause::Flush).unwrap();
    (2..=32).for_each(|id| {
        let mut found = [0];
        readers[id as usize - 1].read_at(4999, &mut found, Cause::Get).unwrap();
    });
    expect(1);
    let mut found = [0; 5];
    store.open(table(1), false).unwrap().read_at(0, &mut found, Cause::Get).unwrap();
    assert_eq!(&found, b"other");
    drop(readers);
    assert_eq!(open_in(&dir), 0);
}

#[test]
fn conforms_with_one_file_open_at_a_time() {
    conform(&OsOptions { open_files_max: Some(1), ..OsOptions::default() });
}

#[test]
fn threads_share_few_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let options = OsOptions { open_files_max: Some(2), ..OsOptions::default() };
    let store = open(&dir, options).unwrap();
    for id in 0..8 {
        let mut file = store.create(table(id), &FileHint::default()).unwrap();
        file.append(&[id as u8; 100], Cause::Flush).unwrap();
    }
    let readers: Vec<_> = (0..8).map(|id| store.open(table(id), false).unwrap()).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let readers = &readers;
            scope.spawn(move || {
                for step in 0..2000 {
                    let id = (step * (2 * thread + 1) + thread) % 8;
                    let mut found = [0; 100];
                    readers[id].read_at(0, &mut found, Cause::Get).unwrap();
                    assert_eq!(found, [id as u8; 100]);
                }
            });
        }
    });
    assert!(open_in(&dir) <= 2);
}

const LOG: FileHint = FileHint { zeros_at_end: true, ..FileHint::NONE };

/// The length that the system knows.
fn system_len(dir: &TempDir, id: u64) -> u64 {
    fs::metadata(dir.path().join(table(id).to_string())).unwrap().len()
}

#[test]
fn a_synced_log_has_its_length_ahead_and_no_block_more() {
    use std::os::unix::fs::MetadataExt;
    let (dir, store) = store();
    let mut file = store.create(table(1), &LOG).unwrap();
    let syncer = file.syncer().unwrap();
    let mut end = 0;
    let mut lengths = BTreeSet::new();
    for _ in 0..3000 {
        file.append(&[7; 500], Cause::Wal).unwrap();
        end += 500;
        syncer.sync(Cause::Wal).unwrap();
        lengths.insert(system_len(&dir, 1));
    }
    assert!(lengths.len() <= 3, "a sync writes no new length: {lengths:?}");
    assert!(system_len(&dir, 1) > end, "the length is ahead");
    let blocks = fs::metadata(dir.path().join(table(1).to_string())).unwrap().blocks();
    assert!(blocks * 512 < end + ahead::STEP_BYTES / 2, "{blocks} blocks for {end} bytes");
    assert_eq!(store.ledger().snapshot().host().write_bytes, end, "no byte is written ahead");
    assert_eq!(store.list().unwrap()[0].bytes, end);
    let reader = store.open(table(1), false).unwrap();
    assert_eq!(reader.len().unwrap(), end);
    assert!(reader.read_at(end - 1, &mut [0; 2], Cause::Get).is_err(), "zeros are no content");
    drop(file);
    assert_eq!((system_len(&dir, 1), reader.len().unwrap()), (end, end));
}

#[test]
fn a_log_that_is_not_synced_has_its_exact_length() {
    let (dir, store) = store();
    let mut file = store.create(table(1), &LOG).unwrap();
    file.append(&[7; 500], Cause::Wal).unwrap();
    file.sync(Cause::Wal).unwrap();
    for appends in 1..10_000u64 {
        file.append(&[7; 500], Cause::Wal).unwrap();
        let ahead = system_len(&dir, 1) - (500 + 500 * appends);
        // One step for the one sync.
        let expected = ahead::STEP_BYTES.saturating_sub(500 * (appends - 1));
        assert_eq!(ahead, expected);
    }
}

#[test]
fn after_the_death_of_the_process_zeros_remain_and_go_when_the_file_goes_on() {
    let (dir, killed) = store();
    let mut file = killed.create(table(1), &LOG).unwrap();
    for _ in 0..2 {
        file.append(b"synced", Cause::Wal).unwrap();
        file.sync(Cause::Wal).unwrap();
    }
    std::mem::forget(file);
    let store = open(&dir, OsOptions::default()).unwrap();
    let reader = store.open(table(1), false).unwrap();
    let mut bytes = vec![1; reader.len().unwrap() as usize];
    reader.read_at(0, &mut bytes, Cause::Get).unwrap();
    assert_eq!(&bytes[..12], b"syncedsynced");
    assert!(bytes.len() > 12 && bytes[12..].iter().all(|&byte| byte == 0));
    drop(store.extend(table(1), 12, &LOG).unwrap());
    assert_eq!((system_len(&dir, 1), reader.len().unwrap()), (12, 12));
}
