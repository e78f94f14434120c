//! A database that rests is woken by what gives it something to do.

use media::mem::MemStore;
use media::{FileKind, FileStore};
use shingle::runtime::Threads;
use shingle::{Compression, Db, Options};
use std::sync::Arc;
use std::time::{Duration, Instant};

const KEYS: u64 = 3000;

/// A loaded database whose workers rest.
fn resting(store: &MemStore) -> shingle::Result<Db> {
    let options = Options::new().compression(Compression::None);
    let db = options.open_in(Arc::new(store.clone()), Arc::new(Threads::new()))?;
    for n in 0..KEYS {
        db.put(n.to_be_bytes(), [1; 100])?;
    }
    db.flush()?;
    rest(&db)?;
    Ok(db)
}

/// Waits until workers sleep without a time at which they wake.
fn rest(db: &Db) -> shingle::Result<()> {
    db.wait_idle()?;
    std::thread::sleep(Duration::from_millis(500));
    Ok(())
}

fn tables(store: &MemStore) -> Vec<String> {
    let files = store.list().unwrap_or_default();
    let tables = files.iter().filter(|file| file.name.kind == FileKind::Table);
    tables.map(|file| file.name.to_string()).collect()
}

/// Waits until `is_done`, up to half a minute. It asks the store alone: a call of the database
/// could wake the workers.
fn comes(is_done: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    while !is_done() && begin.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    is_done()
}

/// Regression: too few deletions for a memtable stayed in memory, and what they delete in tables.
#[test]
fn deletions_become_space_in_a_database_that_rested() {
    let store = MemStore::new(Arc::default());
    let db = resting(&store).unwrap();
    assert!(!tables(&store).is_empty());
    for n in 0..KEYS {
        db.delete(n.to_be_bytes()).unwrap();
    }
    assert!(comes(|| tables(&store).is_empty()), "{:?}", tables(&store));
    assert_eq!(db.iter().count(), 0);
}

/// Regression: the files that an iterator had held stayed until the next flush.
#[test]
fn files_of_a_dropped_iterator_go_in_a_database_that_rested() {
    let store = MemStore::new(Arc::default());
    let db = resting(&store).unwrap();
    let mut iter = db.iter();
    iter.next().unwrap().unwrap();
    let held = tables(&store);
    for n in 0..KEYS {
        db.put(n.to_be_bytes(), [2; 100]).unwrap();
    }
    db.compact().unwrap();
    rest(&db).unwrap();
    let is_there = |name: &String| tables(&store).contains(name);
    assert!(held.iter().all(is_there), "the iterator needs them");
    drop(iter);
    assert!(comes(|| !held.iter().any(is_there)), "{held:?}");
}

/// Regression: what a snapshot had kept stayed until the next flush.
#[test]
fn deletions_that_a_snapshot_kept_become_space_in_a_database_that_rested() {
    let store = MemStore::new(Arc::default());
    let db = resting(&store).unwrap();
    let snapshot = db.snapshot();
    for n in 0..KEYS {
        db.delete(n.to_be_bytes()).unwrap();
    }
    db.flush().unwrap();
    rest(&db).unwrap();
    assert!(!tables(&store).is_empty());
    assert_eq!(snapshot.get(7u64.to_be_bytes()).unwrap().as_deref(), Some(&[1; 100][..]));
    drop(snapshot);
    assert!(comes(|| tables(&store).is_empty()), "{:?}", tables(&store));
}
