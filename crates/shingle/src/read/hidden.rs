//! Stretches of keys where a cursor stepped over many tombstones in a row.
//!
//! Cursors that come later leap over a stretch: what it had at the sequence number of the walk
//! stays hidden, so only newer entries count. A program that deletes its first keys and looks for
//! the first one again and again walks over what it deletes once.
//!
//! A leap moves each input by itself, and one that has something newer is walked. It may have what
//! the tombstones of another one hide, so a stretch hides all older entries, as a range tombstone
//! would.
//!
//! One for each keyspace, shared by its views. A flush or compaction that drops more than newer
//! entries hide (what a filter drops, what has expired) begins another one, because older views at
//! the same sequence number show what it dropped. A walk tells of itself every [`STEP`] tombstones.
//! At most [`STRETCHES_MAX`] stretches are known; one that lies in a later one is replaced by it.
//!
//! Invariant: at `sequence`, no key of a stretch is visible in any view that shares it. Nothing
//! older than the newest entry comes into a tree, except to the level of what is ingested below all
//! else: views that have it know no stretches.

use base::{KeyRange, SequenceNumber};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Cursors tell of this many tombstones at a time. Of few in tests, so that all of them come here.
pub(crate) const STEP: u32 = if cfg!(any(test, feature = "testing")) { 8 } else { 1024 };

/// Stretches that are known at a time; beyond, the oldest is forgotten.
const STRETCHES_MAX: usize = 8;

#[derive(Clone, Debug)]
struct Stretch {
    range: KeyRange,
    /// At this number, none of its keys is visible.
    sequence: SequenceNumber,
}

/// What cursors of a keyspace stepped over.
#[derive(Debug, Default)]
pub(crate) struct HiddenStretches {
    /// The latest first.
    stretches: Mutex<Vec<Stretch>>,
    /// There are some: most keyspaces have none, and seeks ask.
    is_known: AtomicBool,
}

impl HiddenStretches {
    /// A cursor at `sequence` stepped over [`STEP`] more tombstones up to the key `last`, and found
    /// nothing from the key `first` on.
    #[cold]
    pub(crate) fn add(&self, first: &[u8], last: &[u8], sequence: SequenceNumber) {
        let range = KeyRange::closed(first, last);
        let mut stretches = self.stretches.lock();
        stretches.retain(|old| old.sequence > sequence || !range.covers(&old.range));
        stretches.insert(0, Stretch { range, sequence });
        stretches.truncate(STRETCHES_MAX);
        self.is_known.store(true, Relaxed);
    }

    /// The latest known stretch around `key` for readers at `snapshot`, and the sequence number up
    /// to which its entries are hidden.
    #[inline]
    pub(crate) fn around(
        &self,
        key: &[u8],
        snapshot: SequenceNumber,
    ) -> Option<(KeyRange, SequenceNumber)> {
        if self.is_known.load(Relaxed) { self.look_around(key, snapshot) } else { None }
    }

    #[cold]
    fn look_around(
        &self,
        key: &[u8],
        snapshot: SequenceNumber,
    ) -> Option<(KeyRange, SequenceNumber)> {
        let stretches = self.stretches.lock();
        let holds = |s: &&Stretch| s.sequence <= snapshot && s.range.contains(key);
        let stretch = stretches.iter().find(holds)?;
        Some((stretch.range.clone(), stretch.sequence))
    }
}

/// The tombstones that a cursor steps over in a row.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// Tombstones, and one more; 0 before the first.
    passed: u32,
    /// No key is visible from here to the last of them.
    from: Vec<u8>,
}

impl Walk {
    /// A seek to `from`.
    pub(crate) fn begin(&mut self, from: &[u8]) {
        self.from.clear();
        self.from.extend_from_slice(from);
        self.passed = 1;
    }

    /// The cursor met something else.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.passed = 0;
    }

    /// The cursor steps over the tombstone at `key`, and reads at `snapshot`.
    #[inline(never)]
    pub(crate) fn pass(&mut self, key: &[u8], snapshot: SequenceNumber, hidden: &HiddenStretches) {
        if self.passed == 0 {
            self.begin(key);
        }
        self.passed += 1;
        if self.passed > STEP {
            self.passed = 1;
            hidden.add(&self.from, key, snapshot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_is_one_stretch() {
        let hidden = HiddenStretches::default();
        hidden.add(b"k", b"m", 5);
        hidden.add(b"k", b"p", 5);
        assert_eq!(hidden.stretches.lock().len(), 1);
        assert_eq!(hidden.around(b"p", 5), Some((KeyRange::closed(b"k", b"p"), 5)));
    }

    #[test]
    fn a_stretch_is_for_readers_that_see_all_of_it() {
        let hidden = HiddenStretches::default();
        assert_eq!(hidden.around(b"l", 9), None);
        hidden.add(b"k", b"m", 5);
        assert_eq!(hidden.around(b"l", 4), None);
        assert_eq!(hidden.around(b"j", 5), None);
        assert_eq!(hidden.around(b"m\0", 5), None);
        assert_eq!(hidden.around(b"m", 5), Some((KeyRange::closed(b"k", b"m"), 5)));
        // An older walk does not replace a newer one.
        hidden.add(b"a", b"z", 3);
        assert_eq!(hidden.around(b"l", 4).map(|(_, sequence)| sequence), Some(3));
        assert_eq!(hidden.stretches.lock().len(), 2);
    }

    #[test]
    fn no_more_than_a_few_stretches_are_known() {
        let hidden = HiddenStretches::default();
        (0..100u8).for_each(|key| hidden.add(&[key], &[key], 7));
        assert_eq!(hidden.stretches.lock().len(), STRETCHES_MAX);
        assert!(hidden.around(&[99], 7).is_some() && hidden.around(&[0], 7).is_none());
    }
}
