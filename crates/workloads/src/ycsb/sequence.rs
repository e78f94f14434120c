//! Numbers of inserted records: handed out in order, readable once everything before is there.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

/// Hands out record numbers to inserts and knows up to where all of them are acknowledged.
#[derive(Debug)]
pub(super) struct InsertSequence {
    next: AtomicU64,
    /// Every record below this exists.
    readable: AtomicU64,
    /// Acknowledged numbers above a gap.
    early: Mutex<BTreeSet<u64>>,
}

impl InsertSequence {
    /// Records below `next` exist.
    pub(super) fn new(next: u64) -> InsertSequence {
        InsertSequence {
            next: AtomicU64::new(next),
            readable: AtomicU64::new(next),
            early: Mutex::default(),
        }
    }

    /// The number of a new record.
    pub(super) fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The record `number` has been written.
    pub(super) fn acknowledge(&self, number: u64) {
        let mut early = self.early.lock();
        early.insert(number);
        let mut readable = self.readable.load(Ordering::Relaxed);
        while early.remove(&readable) {
            readable += 1;
        }
        self.readable.store(readable, Ordering::Release);
    }

    /// Every record below this number exists.
    pub(super) fn readable(&self) -> u64 {
        self.readable.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_readable_when_all_before_it_are() {
        let inserts = InsertSequence::new(10);
        assert_eq!([inserts.next(), inserts.next(), inserts.next()], [10, 11, 12]);
        inserts.acknowledge(12);
        inserts.acknowledge(11);
        assert_eq!(inserts.readable(), 10);
        inserts.acknowledge(10);
        assert_eq!(inserts.readable(), 13);
    }
}
