//! The live snapshots, whose versions compaction must keep.

use base::key::SequenceNumber;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The sequence numbers that readers hold, and the newest one that is visible to all readers.
#[derive(Debug, Default)]
pub(crate) struct SnapshotList {
    visible: AtomicU64,
    live: Mutex<BTreeMap<SequenceNumber, Held>>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    count: u64,
    since_ns: u64,
}

impl SnapshotList {
    /// The newest sequence number that reads see.
    #[inline]
    pub(crate) fn visible(&self) -> SequenceNumber {
        self.visible.load(Ordering::Acquire)
    }

    /// Everything up to `sequence` is in the memtables: reads may see it.
    #[inline]
    pub(crate) fn publish(&self, sequence: SequenceNumber) {
        self.visible.store(sequence, Ordering::Release);
    }

    /// Holds the newest visible state. Each call needs one [`SnapshotList::release`].
    pub(crate) fn acquire(&self, now_ns: u64) -> SequenceNumber {
        let mut live = self.live.lock();
        // Under the lock: a compaction that lists the snapshots afterwards sees this one.
        let sequence = self.visible();
        live.entry(sequence).or_insert(Held { count: 0, since_ns: now_ns }).count += 1;
        sequence
    }

    /// Ends a hold. Calls `ended` if it was the last one of this sequence number, before another
    /// can begin.
    pub(crate) fn release(&self, sequence: SequenceNumber, ended: impl FnOnce()) {
        let mut live = self.live.lock();
        if let Some(held) = live.get_mut(&sequence) {
            held.count -= 1;
            if held.count == 0 {
                live.remove(&sequence);
                ended();
            }
        }
    }

    /// Gives `work` the sequence numbers held, ascending. None begins to be held meanwhile.
    pub(crate) fn with_held(&self, work: impl FnOnce(&mut dyn Iterator<Item = SequenceNumber>)) {
        let live = self.live.lock();
        work(&mut live.keys().copied());
    }

    /// The sequence numbers held, ascending.
    pub(crate) fn list(&self) -> Vec<SequenceNumber> {
        let live = self.live.lock();
        live.keys().copied().collect()
    }

    /// The oldest sequence number held, and since when.
    pub(crate) fn oldest(&self) -> Option<(SequenceNumber, u64)> {
        let live = self.live.lock();
        live.first_key_value().map(|(&sequence, held)| (sequence, held.since_ns))
    }

    /// A reader holds a sequence number from `first` to `end`, exclusive.
    pub(crate) fn holds_any(&self, first: SequenceNumber, end: SequenceNumber) -> bool {
        let live = self.live.lock();
        live.range(first..end.max(first)).next().is_some()
    }

    /// The oldest sequence number that a present or later reader can have: later readers get no
    /// older one.
    pub(crate) fn horizon(&self) -> SequenceNumber {
        let live = self.live.lock();
        live.first_key_value().map_or_else(|| self.visible(), |(&sequence, _)| sequence)
    }

    pub(crate) fn len(&self) -> u64 {
        let live = self.live.lock();
        live.values().map(|held| held.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_held_until_its_last_release() {
        let list = SnapshotList::default();
        list.publish(5);
        let (a, b) = (list.acquire(0), list.acquire(1));
        list.publish(9);
        let c = list.acquire(2);
        assert_eq!((a, b, c), (5, 5, 9));
        list.release(a, || panic!("another holds it"));
        assert_eq!(list.list(), [5, 9]);
        assert_eq!(list.oldest(), Some((5, 0)));
        assert!(list.holds_any(5, 6) && list.holds_any(0, 100) && list.holds_any(6, 10));
        assert!(!list.holds_any(6, 9) && !list.holds_any(10, 100) && !list.holds_any(9, 9));
        assert!(!list.holds_any(9, 5));
        let mut has_ended = false;
        list.release(b, || has_ended = true);
        assert!(has_ended);
        assert_eq!((list.list(), list.len()), (vec![9], 1));
    }
}
