//! What every file store must do, as one suite: a store's tests call [`check`] with a way to make
//! empty stores. Each function here is one promise of the contract in [`crate::store`].

#![allow(clippy::unwrap_used, reason = "test code: a failure is a panic with its place")]

use crate::{FileHint, FileKind, FileName, FileStore, FileSummary};
use base::random::Random;
use base::{Cause, ErrorKind, FileId};
use std::sync::Arc;

/// Makes an empty store.
pub type Make<'a> = &'a dyn Fn() -> Arc<dyn FileStore>;

const FOREGROUND: FileHint = FileHint::NONE;
const BACKGROUND: FileHint = FileHint { background: true, ..FOREGROUND };
const AHEAD: FileHint = FileHint { zeros_at_end: true, ..FOREGROUND };

/// Runs the whole suite.
pub fn check(make: Make<'_>) {
    for hint in [FOREGROUND, BACKGROUND, AHEAD] {
        reads_see_every_append_at_once(make, &hint);
        a_file_goes_on_where_it_is_told(make, &hint);
        a_removed_file_stays_readable(make, &hint);
        the_ledger_counts_every_byte_once(make, &hint);
        readers_may_read_while_a_writer_appends(make, &hint);
        histories_agree_with_a_model(make, &hint);
    }
    reading_past_the_end_names_the_place(make);
    names_are_unique_and_listed(make);
    the_root_is_replaced_whole(make);
    one_opener_at_a_time(make);
    readers_share_and_keep_writers_out(make);
    notes_are_kept_beside_the_files(make);
    a_second_handle_syncs(make);
}

fn table(id: u64) -> FileName {
    FileName::table(FileId(id))
}

fn content(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::new(seed).fill(&mut bytes);
    bytes
}

fn read(store: &dyn FileStore, name: FileName, background: bool) -> Vec<u8> {
    let file = store.open(name, background).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes, Cause::Get).unwrap();
    bytes
}

fn kind<T>(result: base::Result<T>) -> ErrorKind {
    result.err().expect("an error was expected").kind()
}

fn reads_see_every_append_at_once(make: Make<'_>, hint: &FileHint) {
    let store = make();
    let all = content(1, 300_000);
    let mut file = store.create(table(1), hint).unwrap();
    assert!(file.is_empty());
    let early = store.open(table(1), false).unwrap();
    let mut end = 0;
    for (i, len) in [1, 511, 512, 4096, 5, 100_000, 8191, 3].into_iter().enumerate() {
        file.append(&all[end..end + len], Cause::Flush).unwrap();
        end += len;
        if i % 3 == 2 {
            file.sync(Cause::Flush).unwrap();
        }
        assert_eq!(file.len(), end as u64);
        assert_eq!(early.len().unwrap(), end as u64);
        let mut last = vec![0; len];
        early.read_at((end - len) as u64, &mut last, Cause::Get).unwrap();
        assert_eq!(last, &all[end - len..end]);
        assert_eq!(read(&*store, table(1), i % 2 == 0), &all[..end]);
        assert_eq!(store.list().unwrap(), [FileSummary { name: table(1), bytes: end as u64 }]);
    }
    drop(file);
    assert_eq!(early.name(), table(1));
    early.prefetch(0, end as u64);
    let mut first = vec![0; end.min(5000)];
    if early.read_from_memory(0, &mut first, Cause::Get).unwrap() {
        assert_eq!(first, &all[..first.len()]);
    }
    assert!(!early.read_from_memory(end as u64 - 1, &mut [0; 2], Cause::Get).unwrap_or(false));
    assert_eq!(read(&*store, table(1), true), &all[..end]);
}

fn a_file_goes_on_where_it_is_told(make: Make<'_>, hint: &FileHint) {
    let store = make();
    let all = content(2, 40_000);
    store.create(table(1), hint).unwrap().append(&all[..10_000], Cause::Flush).unwrap();
    let reader = store.open(table(1), false).unwrap();
    for at in [10_000, 9_999, 8192, 4097, 0] {
        let mut file = store.extend(table(1), at as u64, hint).unwrap();
        assert_eq!(file.len(), at as u64);
        assert_eq!(reader.len().unwrap(), at as u64, "bytes behind the place go");
        file.append(&all[at..30_000 + at], Cause::Flush).unwrap();
        let mut middle = vec![0; 30_000];
        reader.read_at(at as u64, &mut middle, Cause::Get).unwrap();
        assert_eq!(middle, &all[at..30_000 + at]);
        drop(file);
        assert_eq!(read(&*store, table(1), false), &all[..30_000 + at]);
    }
    assert_eq!(kind(store.extend(table(1), 1 << 30, hint)), ErrorKind::Corruption);
    assert_eq!(kind(store.extend(table(2), 0, hint)), ErrorKind::NotFound);
}

fn a_removed_file_stays_readable(make: Make<'_>, hint: &FileHint) {
    let store = make();
    let bytes = content(3, 5000);
    store.create(table(1), hint).unwrap().append(&bytes, Cause::Flush).unwrap();
    let reader = store.open(table(1), false).unwrap();
    store.remove(table(1)).unwrap();
    let mut found = vec![0; 5000];
    reader.read_at(0, &mut found, Cause::Get).unwrap();
    assert_eq!(found, bytes);
    assert_eq!(store.list().unwrap(), []);
    assert_eq!(kind(store.open(table(1), false)), ErrorKind::NotFound);
    assert_eq!(kind(store.remove(table(1))), ErrorKind::NotFound);
    let again = store.create(table(1), hint).unwrap();
    assert_eq!((again.len(), reader.len().unwrap()), (0, 5000));
}

fn the_ledger_counts_every_byte_once(make: Make<'_>, hint: &FileHint) {
    let store = make();
    let before = store.ledger().snapshot();
    let mut file = store.create(table(1), hint).unwrap();
    file.append(&content(4, 70_001), Cause::Flush).unwrap();
    file.append(&content(5, 4097), Cause::Compaction(2)).unwrap();
    file.begin_sync().unwrap();
    file.sync(Cause::Flush).unwrap();
    file.append(&content(6, 77), Cause::Compaction(3)).unwrap();
    drop(file);
    read(&*store, table(1), false);
    let traffic = store.ledger().snapshot().since(&before);
    assert!(traffic.cause(Cause::Flush).write_bytes >= 70_001);
    assert!(traffic.cause(Cause::Compaction(2)).write_bytes >= 4097);
    assert!(traffic.cause(Cause::Compaction(3)).write_bytes >= 77);
    assert_eq!(traffic.cause(Cause::Flush).sync_ops, 1);
    assert!(traffic.cause(Cause::Get).read_ops >= 1);
    assert_eq!(traffic.cause(Cause::Wal).write_bytes, 0);
}

fn readers_may_read_while_a_writer_appends(make: Make<'_>, hint: &FileHint) {
    let store = make();
    let all = content(7, 200_000);
    let mut file = store.create(table(1), hint).unwrap();
    let reader = store.open(table(1), false).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for piece in all.chunks(777) {
                file.append(piece, Cause::Flush).unwrap();
            }
            drop(file);
        });
        let mut seen = 0;
        while seen < all.len() {
            let len = reader.len().unwrap() as usize;
            assert!(len >= seen, "a file being written does not shrink");
            let from = len.saturating_sub(3000);
            let mut found = vec![0; len - from];
            reader.read_at(from as u64, &mut found, Cause::Get).unwrap();
            assert_eq!(found, &all[from..len]);
            seen = len;
        }
    });
}

/// Random creations, appends, syncs, cuts, drops, removals and reads against a map of vectors.
fn histories_agree_with_a_model(make: Make<'_>, hint: &FileHint) {
    let store = make();
    let mut random = Random::new(99);
    let mut model = std::collections::BTreeMap::<u64, Vec<u8>>::new();
    let mut writers = std::collections::BTreeMap::new();
    for step in 0..400 {
        let id = random.below(4);
        match random.below(8) {
            0 if !model.contains_key(&id) => {
                writers.insert(id, store.create(table(id), hint).unwrap());
                model.insert(id, Vec::new());
            }
            1 if random.one_in(4) => {
                writers.remove(&id);
                let found = store.remove(table(id));
                assert_eq!(found.is_ok(), model.remove(&id).is_some());
            }
            2 => drop(writers.remove(&id)),
            3 if model.contains_key(&id) && !writers.contains_key(&id) => {
                let bytes = model.get_mut(&id).unwrap();
                let at = random.below(bytes.len() as u64 + 1);
                bytes.truncate(at as usize);
                writers.insert(id, store.extend(table(id), at, hint).unwrap());
            }
            4 => {
                if let Some(writer) = writers.get_mut(&id) {
                    writer.begin_sync().unwrap();
                    if random.one_in(2) {
                        writer.sync(Cause::Flush).unwrap();
                    }
                }
            }
            _ => {
                if let Some(writer) = writers.get_mut(&id) {
                    let scale = 1 << random.below(16);
                    let bytes = content(step, random.below(scale) as usize);
                    writer.append(&bytes, Cause::Flush).unwrap();
                    model.get_mut(&id).unwrap().extend(bytes);
                }
            }
        }
        let listed: Vec<_> = store.list().unwrap();
        let expected: Vec<_> = model
            .iter()
            .map(|(id, bytes)| FileSummary { name: table(*id), bytes: bytes.len() as u64 })
            .collect();
        assert_eq!(listed, expected, "step {step}");
        if let Some(bytes) = model.get(&id) {
            let found = read(&*store, table(id), random.one_in(2));
            assert!(found == *bytes, "step {step}, file {id}");
        }
    }
}

fn reading_past_the_end_names_the_place(make: Make<'_>) {
    for hint in [FOREGROUND, BACKGROUND] {
        let store = make();
        let mut file = store.create(table(1), &hint).unwrap();
        file.append(&[7; 100], Cause::Flush).unwrap();
        let reader = store.open(table(1), false).unwrap();
        for finished in [false, true] {
            for (offset, len) in [(0, 101), (100, 1), (1 << 40, 1), (u64::MAX, 1)] {
                let mut into = vec![0; len];
                let error = reader.read_at(offset, &mut into, Cause::Get).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corruption);
                assert_eq!(error.file(), Some("000001.table"));
                assert_eq!(error.offset(), Some(offset));
                assert!(error.message().contains("100 bytes"), "{error} ({finished})");
            }
            reader.read_at(100, &mut [], Cause::Get).unwrap();
            file.sync(Cause::Flush).unwrap();
        }
    }
}

fn names_are_unique_and_listed(make: Make<'_>) {
    let store = make();
    let mut names = Vec::new();
    for (i, kind) in [FileKind::Table, FileKind::Wal, FileKind::Manifest, FileKind::Value]
        .into_iter()
        .enumerate()
    {
        let name = FileName { kind, id: FileId(i as u64 + 1) };
        drop(store.create(name, &FOREGROUND).unwrap());
        names.push(name);
    }
    assert_eq!(kind(store.create(names[0], &FOREGROUND)), ErrorKind::AlreadyExists);
    if let Some(notes) = store.notes() {
        notes.write_note("options", b"x", false).unwrap();
    }
    store.set_root(b"root").unwrap();
    store.sync_names().unwrap();
    let mut listed: Vec<_> = store.list().unwrap().into_iter().map(|file| file.name).collect();
    listed.sort();
    names.sort();
    assert_eq!(listed, names);
}

fn the_root_is_replaced_whole(make: Make<'_>) {
    let store = make();
    assert_eq!(store.root().unwrap(), None);
    for root in [&b"first"[..], b"", b"a longer one than before"] {
        store.set_root(root).unwrap();
        assert_eq!(store.root().unwrap().as_deref(), Some(root));
    }
}

fn one_opener_at_a_time(make: Make<'_>) {
    let store = make();
    let lock = store.lock().unwrap();
    for _ in 0..2 {
        assert_eq!(kind(store.lock()), ErrorKind::Locked);
    }
    drop(lock);
    drop(store.lock().unwrap());
    drop(store.lock().unwrap());
}

fn readers_share_and_keep_writers_out(make: Make<'_>) {
    let store = make();
    let writer = store.lock().unwrap();
    assert_eq!(kind(store.lock_shared()), ErrorKind::Locked);
    drop(writer);
    let first = store.lock_shared().unwrap();
    let second = store.lock_shared();
    assert_eq!(kind(store.lock()), ErrorKind::Locked);
    drop(first);
    if second.is_ok() {
        assert_eq!(kind(store.lock()), ErrorKind::Locked);
    }
    drop(second);
    drop(store.lock().unwrap());
}

fn notes_are_kept_beside_the_files(make: Make<'_>) {
    let store = make();
    let Some(notes) = store.notes() else { return };
    assert_eq!(notes.read_note("events").unwrap(), None);
    notes.write_note("events", b"one", true).unwrap();
    notes.write_note("events", b" two", true).unwrap();
    assert_eq!(notes.read_note("events").unwrap().as_deref(), Some(&b"one two"[..]));
    notes.write_note("events", b"new", false).unwrap();
    assert_eq!(notes.read_note("events").unwrap().as_deref(), Some(&b"new"[..]));
    for bad in ["", ".", "..", "a/b", "/etc/passwd", "CURRENT", "LOCK", "000001.wal", "a\0"] {
        assert_eq!(kind(notes.write_note(bad, b"x", false)), ErrorKind::InvalidArgument, "{bad:?}");
        assert_eq!(kind(notes.read_note(bad)), ErrorKind::InvalidArgument, "{bad:?}");
    }
}

fn a_second_handle_syncs(make: Make<'_>) {
    let store = make();
    let mut file = store.create(FileName::wal(FileId(1)), &FOREGROUND).unwrap();
    file.append(b"x", Cause::Wal).unwrap();
    if let Some(syncer) = file.syncer() {
        syncer.sync(Cause::Wal).unwrap();
        assert_eq!(store.ledger().snapshot().cause(Cause::Wal).sync_ops, 1);
    }
}
