//! The newest entries of a keyspace, in memory and in order, until they are flushed.
//!
//! Any number of threads can read a [`Memtable`] without locks while its one [`Writer`] inserts.
//! The commit holds the writer, and there is no way to make a second one. Entries are never changed
//! or removed; the memory is freed when the last reader drops the memtable.
//!
//! Point entries are in a skip list in an arena (`skiplist`). A Bloom filter spares lookups of
//! other keys the search (`filter`). Range deletions have an index of
//! their own (`ranges`), because a lookup must find them by keys that they only cover. A memtable
//! without range deletions costs a reader one atomic load. With range deletions, readers share a
//! lock, and the writer holds it for each insertion.
//!
//! A read that starts after an insert returned sees all of that insert. It may or may not see an
//! entry whose insert is still in progress: readers hide such an entry by its sequence number.

mod arena;
mod chunks;
mod filter;
mod ranges;
mod skiplist;
#[cfg(test)]
mod tests;

use parking_lot::{RwLock, RwLockReadGuard};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use base::checksum::hash64;
use base::key::{self, Key, SEQUENCE_MAX, trailer, trailer_kind, trailer_sequence};
use base::{EntryKind, Error, KeyRange, Result, SequenceNumber};
use table::batch::Operation;

pub use chunks::ChunkPool;
use filter::{FILTERED_FROM, Filler, Filter};
pub use ranges::DeletedStretch;
use ranges::Ranges;
pub use skiplist::MemIter;
use skiplist::{Inserter, SkipList};

/// An entry that [`Memtable::get`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemEntry<'a> {
    /// When it was written.
    pub sequence: SequenceNumber,
    /// What it says about its key; never [`EntryKind::DeleteRange`].
    pub kind: EntryKind,
    /// The value, operand or pointer; empty for a deletion.
    pub value: &'a [u8],
}

/// A range deletion: the keys from `start` (inclusive) to `end` (exclusive) are absent as of
/// `sequence`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeDelete {
    /// The first key deleted.
    pub start: Key,
    /// The first key not deleted.
    pub end: Key,
    /// When it was written.
    pub sequence: SequenceNumber,
}

/// The entries, for readers.
pub struct Memtable {
    list: Arc<SkipList>,
    filter: Filter,
    entries: AtomicU64,
    deletes: AtomicU64,
    sequence_min: AtomicU64,
    sequence_max: AtomicU64,
    range_delete_bytes: AtomicU64,
    range_delete_count: AtomicUsize,
    ranges: RwLock<Ranges>,
    sealed_at: AtomicU64,
}

/// The right to insert into one memtable.
pub struct Writer {
    memtable: Arc<Memtable>,
    inserter: Inserter,
    filler: Filler,
}

impl Memtable {
    /// An empty memtable that will grow to about `capacity_bytes`, and its writer. The size only
    /// decides how memory is reserved; the memtable accepts more.
    pub fn new(capacity_bytes: usize) -> Result<(Arc<Memtable>, Writer)> {
        Memtable::of_pool(&ChunkPool::new(capacity_bytes, 0, Arc::default()), b"")
    }

    /// As [`Memtable::new`], with memory of `pool`, for keys that mostly begin with `start`. It
    /// accepts all keys, but finds these sooner.
    pub fn of_pool(pool: &Arc<ChunkPool>, start: &[u8]) -> Result<(Arc<Memtable>, Writer)> {
        let (list, inserter) = SkipList::new(pool, key::CommonStart::new(start))?;
        let memtable = Arc::new(Memtable {
            list,
            filter: Filter::default(),
            entries: AtomicU64::new(0),
            deletes: AtomicU64::new(0),
            sequence_min: AtomicU64::new(u64::MAX),
            sequence_max: AtomicU64::new(0),
            range_delete_bytes: AtomicU64::new(0),
            range_delete_count: AtomicUsize::new(0),
            ranges: RwLock::default(),
            sealed_at: AtomicU64::new(u64::MAX),
        });
        let filler = Filler::default();
        Ok((Arc::clone(&memtable), Writer { memtable, inserter, filler }))
    }

    /// The newest point entry of `user_key` that `snapshot` sees. Range deletions are not applied.
    #[inline]
    pub fn get(&self, user_key: &[u8], snapshot: SequenceNumber) -> Option<MemEntry<'_>> {
        self.get_by_hash(user_key, || hash64(user_key), snapshot)
    }

    /// As [`Memtable::get`], for a caller that knows the hash of the key, or how to find it.
    #[inline]
    pub fn get_by_hash(
        &self,
        user_key: &[u8],
        hash: impl FnOnce() -> u64,
        snapshot: SequenceNumber,
    ) -> Option<MemEntry<'_>> {
        if !self.filter.may_contain(hash) {
            return None;
        }
        let newest = self.list.target(user_key, search_trailer(snapshot));
        let (trailer, value) = self.list.versions(newest).next()?;
        Some(entry(trailer, value))
    }

    /// The point entries of `user_key` that `snapshot` sees, newest first: what a merge operator
    /// needs. Range deletions are not applied.
    #[cfg(any(test, feature = "testing"))]
    pub fn versions(
        &self,
        user_key: &[u8],
        snapshot: SequenceNumber,
    ) -> impl Iterator<Item = MemEntry<'_>> {
        let newest = self.list.target(user_key, search_trailer(snapshot));
        self.list.versions(newest).map(|(trailer, value)| entry(trailer, value))
    }

    /// `user_key` has an entry or a range deletion that is newer than `sequence`.
    pub fn has_newer(&self, user_key: &[u8], sequence: SequenceNumber) -> bool {
        let deleted = || self.ranges()?.newest(user_key);
        self.get(user_key, SEQUENCE_MAX).is_some_and(|entry| entry.sequence > sequence)
            || deleted().is_some_and(|deleted| deleted > sequence)
    }

    /// A key in `range` has an entry or a range deletion that is newer than `sequence`. Looks at
    /// every entry in the range.
    ///
    /// # Errors
    ///
    /// The start of the range is longer than a key may be.
    pub fn has_newer_in(&self, range: &KeyRange, sequence: SequenceNumber) -> Result<bool> {
        if range.is_empty() || self.sequence_max().is_none_or(|newest| newest <= sequence) {
            return Ok(false);
        }
        let deletes = self.range_deletes(&[]);
        let overlaps = |delete: &RangeDelete| {
            KeyRange::new(delete.start.clone(), Some(delete.end.clone())).overlaps(range)
        };
        if deletes.iter().any(|delete| delete.sequence > sequence && overlaps(delete)) {
            return Ok(true);
        }
        let mut entries = self.iter();
        entries.seek(&key::internal_key(&range.start, SEQUENCE_MAX, EntryKind::Put))?;
        while entries.valid() {
            let Some((user_key, trailer)) = key::split_internal_key(entries.key()) else { break };
            if !range.is_before_end(user_key) {
                break;
            }
            if trailer_sequence(trailer) > sequence {
                return Ok(true);
            }
            entries.next();
        }
        Ok(false)
    }

    /// A cursor over the point entries, at no position yet. It keeps their memory.
    pub fn iter(&self) -> MemIter {
        MemIter::new(Arc::clone(&self.list))
    }

    /// The range deletions that matter to readers at `snapshots`, ascending, and to current
    /// readers. Where no snapshot is between any two of them, that is the newest over each key.
    pub fn range_deletes(&self, snapshots: &[SequenceNumber]) -> Vec<RangeDelete> {
        self.ranges().map_or_else(Vec::new, |ranges| ranges.needed(snapshots))
    }

    /// The newest range deletion of `user_key` that `snapshot` sees. Without any range deletions
    /// it costs one atomic load.
    #[inline]
    pub fn range_deleted(
        &self,
        user_key: &[u8],
        snapshot: SequenceNumber,
    ) -> Option<SequenceNumber> {
        self.ranges()?.covering(user_key, snapshot)
    }

    /// The stretch of keys around `user_key` that the same range deletion hides from `snapshot`, or
    /// that none hides. Later deletions do not change it: they are newer.
    pub fn deleted_stretch(&self, user_key: &[u8], snapshot: SequenceNumber) -> DeletedStretch {
        self.ranges()
            .map_or_else(DeletedStretch::default, |ranges| ranges.stretch(user_key, snapshot))
    }

    #[inline]
    fn ranges(&self) -> Option<RwLockReadGuard<'_, Ranges>> {
        if self.range_delete_count() == 0 {
            return None;
        }
        Some(self.ranges.read())
    }

    /// The number of range deletions; it only grows.
    #[inline]
    pub fn range_delete_count(&self) -> usize {
        self.range_delete_count.load(Acquire)
    }

    /// Bytes of the entries and range deletions, with everything stored beside them. An empty
    /// memtable has the list's head.
    pub fn bytes(&self) -> u64 {
        self.list.used_bytes() + self.filter.bytes() + self.range_delete_bytes.load(Relaxed)
    }

    /// Bytes taken from the allocator: [`Memtable::bytes`] and the unused ends of chunks.
    #[cfg(any(test, feature = "testing"))]
    pub fn reserved_bytes(&self) -> u64 {
        self.list.reserved_bytes() + self.filter.bytes() + self.range_delete_bytes.load(Relaxed)
    }

    /// Point entries, including deletions.
    pub fn entries(&self) -> u64 {
        self.entries.load(Relaxed)
    }

    /// Point entries that are deletions.
    pub fn deletes(&self) -> u64 {
        self.deletes.load(Relaxed)
    }

    /// There is neither a point entry nor a range deletion.
    pub fn is_empty(&self) -> bool {
        self.entries() == 0 && self.range_delete_count() == 0
    }

    /// The smallest sequence number inserted; `None` when the memtable is empty.
    pub fn sequence_min(&self) -> Option<SequenceNumber> {
        let sequence = self.sequence_min.load(Relaxed);
        (sequence != u64::MAX).then_some(sequence)
    }

    /// The largest sequence number inserted; `None` when the memtable is empty.
    pub fn sequence_max(&self) -> Option<SequenceNumber> {
        self.sequence_min().map(|_| self.sequence_max.load(Relaxed))
    }

    /// The last sequence number given to any write when the memtable took its last entry: later
    /// numbers are in newer memtables. The largest number while it takes entries. A thread that
    /// sees a later number published also sees this one.
    #[inline]
    pub fn sealed_at(&self) -> SequenceNumber {
        self.sealed_at.load(Acquire)
    }

    /// The common start of the keys of all point entries; `None` without any.
    pub fn common_key_start(&self) -> Option<Vec<u8>> {
        let mut cursor = self.iter();
        cursor.seek_to_first();
        let mut start = cursor.valid().then(|| key::user_key(cursor.key()).to_vec())?;
        cursor.seek_to_last();
        start.truncate(key::common_prefix(&start, key::user_key(cursor.key())));
        Some(start)
    }

    /// The smallest range with every key inserted and every range deleted; an empty range when
    /// there is nothing.
    pub fn user_range(&self) -> KeyRange {
        let mut cursor = self.iter();
        cursor.seek_to_first();
        let mut range = KeyRange::new([], Some(Key::from([])));
        if cursor.valid() {
            let first = Key::from(key::user_key(cursor.key()));
            cursor.seek_to_last();
            range = KeyRange::closed(&first, key::user_key(cursor.key()));
        }
        let ranges = self.ranges();
        match ranges.as_ref().and_then(|ranges| ranges.hull()) {
            Some((start, end)) => range.union(&KeyRange::new(start.clone(), Some(end.clone()))),
            None => range,
        }
    }
}

impl Writer {
    /// The memtable that this writer fills.
    pub fn memtable(&self) -> &Arc<Memtable> {
        &self.memtable
    }

    /// The memtable takes no more entries, and `sequence` is the last number given. Call it before
    /// a later number is published.
    pub fn seal(&self, sequence: SequenceNumber) {
        self.memtable.sealed_at.store(sequence, Release);
    }

    /// Adds what `operation` says of its key; every entry needs a sequence number of its own. An
    /// empty range deletion adds nothing.
    ///
    /// Fails, and adds nothing, when the sequence number is over its limit, the entry exists, or
    /// memory is short.
    pub fn insert(&mut self, operation: &Operation<'_>, sequence: SequenceNumber) -> Result<()> {
        if sequence > SEQUENCE_MAX {
            return Err(Error::invalid(format!(
                "sequence number {sequence} is over the largest, {SEQUENCE_MAX}"
            )));
        }
        let (kind, key, value) = (operation.kind(), operation.key(), operation.value());
        if kind == EntryKind::DeleteRange {
            if key < value {
                self.insert_range_delete(key, value, sequence);
            }
            return Ok(());
        }
        self.inserter.insert(operation, trailer(sequence, kind))?;
        let memtable = &*self.memtable;
        add(&memtable.entries, 1);
        if memtable.entries() > FILTERED_FROM {
            self.filler.add(&memtable.filter, hash64(key));
        } else if memtable.entries() == FILTERED_FROM {
            self.filler.begin(&memtable.filter, memtable.key_hashes());
        }
        add(&memtable.deletes, u64::from(kind == EntryKind::Delete));
        memtable.note_sequence(sequence);
        Ok(())
    }

    fn insert_range_delete(&mut self, start: &[u8], end: &[u8], sequence: SequenceNumber) {
        let memtable = &*self.memtable;
        let bytes = ranges::DELETE_BYTES + start.len() + end.len();
        add(&memtable.range_delete_bytes, bytes as u64);
        memtable.note_sequence(sequence);
        let delete = RangeDelete { start: start.into(), end: end.into(), sequence };
        let mut ranges = memtable.ranges.write();
        ranges.insert(delete);
        memtable.range_delete_count.store(ranges.all().len(), Release);
    }
}

impl Memtable {
    fn key_hashes(&self) -> impl Iterator<Item = u64> {
        let mut cursor = self.iter();
        cursor.seek_to_first();
        std::iter::from_fn(move || {
            let hash = cursor.valid().then(|| hash64(key::user_key(cursor.key())));
            cursor.next();
            hash
        })
    }

    /// Called by the writer alone.
    fn note_sequence(&self, sequence: SequenceNumber) {
        if sequence > self.sequence_max.load(Relaxed) {
            self.sequence_max.store(sequence, Relaxed);
        }
        if sequence < self.sequence_min.load(Relaxed) {
            self.sequence_min.store(sequence, Relaxed);
        }
    }
}

/// Adds to a counter that only the writer changes, which avoids a locked instruction.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}

/// The trailer that sorts before every entry that `snapshot` sees.
fn search_trailer(snapshot: SequenceNumber) -> u64 {
    trailer(snapshot.min(SEQUENCE_MAX), EntryKind::SEARCH)
}

fn entry(trailer: u64, value: &[u8]) -> MemEntry<'_> {
    let kind = trailer_kind(trailer).expect("insert stored a kind");
    MemEntry { sequence: trailer_sequence(trailer), kind, value }
}
