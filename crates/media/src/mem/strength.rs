//! Is the simulator strong enough? Small stores, each right but for one classical mistake, whose
//! mistake must show in some image; and the right one, which must stand in all of them.
//!
//! The store keeps a counter: `put(n)` appends a record to a log, and every third record a new log
//! begins; every fifth record
//! a snapshot of all replaces the logs, and the root names it. After a crash, the recovered records
//! must be 1, 2, ... n with no hole, and n at least what was acknowledged as synced.

use super::{MemStore, Personality};
use crate::{AppendFile, FileHint, FileName, FileStore};
use base::checksum::crc32c;
use base::{Cause, FileId, Result};
use std::sync::Arc;

/// The one mistake that a store makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    Nothing,
    /// The root names a snapshot file that was not synced.
    RootBeforeSync,
    /// A record is acknowledged after the append alone.
    AcknowledgedWithoutSync,
    /// The log's name was never synced, only its bytes.
    NameNeverSynced,
    /// The next log is written and synced while the one before is not.
    NextLogFirst,
    /// The old log is removed before the root that replaces it is switched.
    RemovedTooEarly,
    /// The checksum of a record does not say where it belongs, so another file's record passes.
    NoPlace,
    /// Records carry no checksum, so a length without data counts as records.
    NoChecksum,
    /// A failed sync is tried again, and believed.
    SyncRetried,
}

const HINT: FileHint = FileHint::NONE;
const RECORD_BYTES: usize = 8;

fn wal(id: u64) -> FileName {
    FileName::wal(FileId(id))
}

/// Record `n`: its number, and a checksum that covers the log's number and the offset too.
fn record(n: u32, id: u64, offset: usize, mistake: Mistake) -> [u8; RECORD_BYTES] {
    let mut covered = n.to_le_bytes().to_vec();
    if mistake != Mistake::NoPlace {
        covered.extend(id.to_le_bytes());
        covered.extend(offset.to_le_bytes());
    }
    let sum = if mistake == Mistake::NoChecksum { 0 } else { crc32c(&covered) };
    let mut bytes = [0; RECORD_BYTES];
    bytes[..4].copy_from_slice(&n.to_le_bytes());
    bytes[4..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Logs in the order of their numbers, from the one that the root names; the first holds a snapshot
/// of everything before it.
struct Toy {
    store: MemStore,
    mistake: Mistake,
    log: Box<dyn AppendFile>,
    id: u64,
}

impl Toy {
    fn new(store: MemStore, mistake: Mistake) -> Result<Toy> {
        let log = store.create(wal(1), &HINT)?;
        store.set_root(&1u64.to_le_bytes())?;
        Ok(Toy { store, mistake, log, id: 1 })
    }

    /// Stores record `n`; it is acknowledged when this returns.
    fn put(&mut self, n: u32) -> Result<()> {
        if n.is_multiple_of(5) {
            self.snapshot(n)?;
        } else if n.is_multiple_of(3) {
            self.next_log()?;
        }
        let offset = self.log.len() as usize;
        self.log.append(&record(n, self.id, offset, self.mistake), Cause::Wal)?;
        match self.mistake {
            Mistake::AcknowledgedWithoutSync => Ok(()),
            // Acknowledged late: only every second record is synced.
            Mistake::NextLogFirst if n % 3 == 2 => Ok(()),
            Mistake::SyncRetried => {
                self.store.fail_next_sync(wal(self.id));
                self.log.sync(Cause::Wal).or_else(|_| self.log.sync(Cause::Wal))
            }
            _ => self.log.sync(Cause::Wal),
        }
    }

    fn next_log(&mut self) -> Result<()> {
        self.id += 1;
        self.log = self.store.create(wal(self.id), &HINT)?;
        if self.mistake == Mistake::NameNeverSynced { Ok(()) } else { self.store.sync_names() }
    }

    /// Writes records 1 .. n-1 into a new log and switches the root to it.
    fn snapshot(&mut self, n: u32) -> Result<()> {
        let oldest = u64::from_le_bytes(self.store.root()?.unwrap().try_into().unwrap());
        self.id += 1;
        self.log = self.store.create(wal(self.id), &HINT)?;
        let all: Vec<u8> = (1..n)
            .flat_map(|n| record(n, self.id, (n as usize - 1) * RECORD_BYTES, self.mistake))
            .collect();
        self.log.append(&all, Cause::Wal)?;
        if self.mistake != Mistake::RootBeforeSync {
            self.log.sync(Cause::Wal)?;
        }
        let remove = || (oldest..self.id).try_for_each(|id| self.store.remove(wal(id)));
        if self.mistake == Mistake::RemovedTooEarly {
            remove()?;
            self.store.sync_names()?;
        }
        self.store.set_root(&self.id.to_le_bytes())?;
        if self.mistake != Mistake::RemovedTooEarly { remove() } else { Ok(()) }
    }
}

/// The records that a crash left; an error says why they are no history.
fn recover(store: &MemStore, mistake: Mistake) -> std::result::Result<u32, String> {
    let Some(root) = store.root().unwrap() else { return Ok(0) };
    let oldest = u64::from_le_bytes(root.try_into().unwrap());
    let mut last = 0;
    for id in oldest..oldest + 20 {
        let Ok(file) = store.open(wal(id), false) else {
            if id == oldest {
                return Err("the root names a missing log".into());
            }
            continue;
        };
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes, Cause::Recovery).unwrap();
        for (i, piece) in bytes.chunks_exact(RECORD_BYTES).enumerate() {
            let n = u32::from_le_bytes(piece[..4].try_into().unwrap());
            if piece != record(n, id, i * RECORD_BYTES, mistake) {
                break;
            }
            if i == 0 && n == 1 && id != oldest {
                // A snapshot that the root was not switched to.
                return Ok(last);
            }
            if n != last + 1 {
                return Err(format!("record {n} follows {last}"));
            }
            last = n;
        }
    }
    Ok(last)
}

/// Runs the store, crashing at every operation; the first image that breaks the promise.
fn first_violation(mistake: Mistake) -> Option<String> {
    for stop in 0.. {
        let store = MemStore::new(Arc::default());
        store.stop_after(stop);
        let mut acknowledged = 0;
        let run = || -> Result<()> {
            let mut toy = Toy::new(store.clone(), mistake)?;
            for n in 1..12 {
                toy.put(n)?;
                if mistake != Mistake::NextLogFirst {
                    acknowledged = n;
                }
            }
            Ok(())
        };
        let is_finished = { run }().is_ok();
        for image in store.crash_images(300, stop) {
            let found = recover(&image, mistake);
            if !found.as_ref().is_ok_and(|last| *last >= acknowledged) {
                let from = image.describe();
                return Some(format!("stop {stop}, {from}: {found:?}, synced {acknowledged}"));
            }
        }
        if is_finished {
            return None;
        }
    }
    None
}

#[test]
fn the_right_store_stands_in_every_image() {
    assert_eq!(first_violation(Mistake::Nothing), None);
}

#[test]
fn every_mistake_is_caught() {
    for mistake in [
        Mistake::RootBeforeSync,
        Mistake::AcknowledgedWithoutSync,
        Mistake::NameNeverSynced,
        Mistake::NextLogFirst,
        Mistake::RemovedTooEarly,
        Mistake::NoPlace,
        Mistake::NoChecksum,
        Mistake::SyncRetried,
    ] {
        let violation = first_violation(mistake);
        assert!(violation.is_some(), "{mistake:?} was not caught");
    }
}

#[test]
fn some_mistakes_need_more_than_the_strictest_image() {
    // Why there is more than one personality: losing everything unsynced never shows these.
    let store = MemStore::new(Arc::default());
    let mut toy = Toy::new(store.clone(), Mistake::NextLogFirst).unwrap();
    for n in 1..3 {
        toy.put(n).unwrap();
    }
    toy.next_log().unwrap();
    toy.log.append(&record(3, 2, 0, Mistake::Nothing), Cause::Wal).unwrap();
    let strict = store.crash_image(&mut base::random::Random::new(0), Personality::LoseUnsynced);
    assert!(recover(&strict, Mistake::Nothing).is_ok());
    let is_broken = |image: MemStore| recover(&image, Mistake::Nothing).is_err();
    assert!(store.crash_images(100, 0).any(is_broken));
}
