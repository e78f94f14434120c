//! A process with few descriptors: files that are read give way to those that are written. The test
//! is alone in its process, because the limit is the process's.

#![allow(clippy::unwrap_used)]

use base::{Cause, FileId, Ledger};
use media::os::{OsOptions, OsStore};
use media::{FileHint, FileName, FileStore, Part, ReadFile, Sharing};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::sync::Arc;

const FILES: u64 = 16;

fn table(id: u64) -> FileName {
    FileName::table(FileId(id))
}

fn write(store: &OsStore, id: u64) {
    let mut file = store.create(table(id), &FileHint::default()).unwrap();
    file.append(&[id as u8; 100], Cause::Flush).unwrap();
}

fn reads(reader: &Arc<dyn ReadFile>, id: u64) {
    let mut found = [0; 100];
    reader.read_at(0, &mut found, Cause::Get).unwrap();
    assert_eq!(found, [id as u8; 100]);
}

/// What is left to the process.
fn others() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

#[test]
fn files_that_are_read_give_their_descriptors_to_those_that_are_written() {
    let old = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..old }).unwrap();
    let (home, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let options = OsOptions { open_files_max: Some(1000), ..OsOptions::default() };
    let store = OsStore::open(home.path(), Arc::new(Ledger::default()), options).unwrap();
    (0..FILES).for_each(|id| write(&store, id));
    let open = |id| store.open(table(id), id % 2 == 0).unwrap();
    let readers: Vec<_> = (0..FILES).map(open).collect();
    let taken = others();

    // Readers give way to a new file, to a listing, and to a copy elsewhere.
    (FILES..2 * FILES).for_each(|id| write(&store, id));
    assert_eq!(store.list().unwrap().len() as u64, 2 * FILES);
    store.share(table(1), copy.path(), Part::Whole).unwrap();
    (0..FILES).for_each(|id| reads(&readers[id as usize], id));
    store.remove(table(0)).unwrap();
    reads(&readers[0], 0);

    // Where the process has none at all, nothing is done, and it can be tried again.
    let writer = store.create(table(100), &FileHint::default()).unwrap();
    let more = others();
    let error = store.create(table(101), &FileHint::default()).err().unwrap();
    assert!(error.lacks_descriptors() && error.message().contains("ulimit -n"), "{error}");
    assert!(store.remove(table(1)).unwrap_err().lacks_descriptors());
    drop((more, taken, writer));
    store.remove(table(1)).unwrap();
    (0..FILES).for_each(|id| reads(&readers[id as usize], id));
    write(&store, 101);
}
