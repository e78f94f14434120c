//! What a keyspace does with large values, which of its segments are in use, and what room is left
//! for more.

use crate::value_stats::{Collected, ValueTimes};
use base::{FileId, SequenceNumber};
use media::{ColdStore, FileStore};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use tree::segments::Usage;
use values::{ValueLayout, ValueLimits};

/// What a keyspace does with large values.
pub(crate) struct ValueRules {
    pub layout: Box<dyn ValueLayout>,
    pub limits: ValueLimits,
    /// Values of so many bytes and more go to segments.
    pub threshold_bytes: u64,
    /// Of segments of which it is known: no entry that points there is older than this.
    first_entries: Mutex<BTreeMap<FileId, SequenceNumber>>,
    /// Segments that a job writes or reads.
    claims: Mutex<BTreeSet<FileId>>,
    /// Bytes that jobs wrote beyond what memtables held, and that are not in the tree yet.
    unlisted_bytes: AtomicU64,
    /// What the collection under way is expected to write.
    collecting_bytes: AtomicU64,
    collected: Mutex<Collected>,
    times: Mutex<ValueTimes>,
    /// Who waits for room does so alone; when the index was last compacted to find dead values.
    pub swept: Mutex<Option<SweptAt>>,
}

/// The state that a compaction for the sake of dead values saw: the last write of a user, and the
/// oldest snapshot.
pub(crate) type SweptAt = (SequenceNumber, Option<SequenceNumber>);

/// A cold store that has less room than so many collections may write takes no more values.
const COLD_COLLECTIONS_MIN: u64 = 4;

impl ValueRules {
    pub(crate) fn new(
        layout: Box<dyn ValueLayout>,
        limits: ValueLimits,
        threshold_bytes: u64,
    ) -> ValueRules {
        ValueRules {
            layout,
            limits,
            threshold_bytes,
            first_entries: Mutex::default(),
            claims: Mutex::default(),
            unlisted_bytes: AtomicU64::new(0),
            collecting_bytes: AtomicU64::new(0),
            collected: Mutex::default(),
            times: Mutex::default(),
            swept: Mutex::default(),
        }
    }

    /// The bytes that segments are kept within; `None` where nothing bounds them.
    pub(crate) fn capacity_bytes(&self) -> Option<u64> {
        self.limits.capacity_bytes.filter(|_| self.layout.separates())
    }

    /// What is left of the capacity for anything but collections, beside `used_bytes` in the tree
    /// and in memtables: one collection must always find room. `None` where nothing bounds it.
    pub(crate) fn room_bytes(&self, used_bytes: u64) -> Option<u64> {
        let reserve = self.layout.collection_bytes_max(&self.limits);
        let used = used_bytes + self.unlisted_bytes.load(Relaxed);
        let kept_back = reserve.max(self.collecting_bytes.load(Relaxed));
        Some(self.capacity_bytes()?.saturating_sub(kept_back).saturating_sub(used))
    }

    /// How far collections are behind, in percent of what may be dead.
    pub(crate) fn debt_percent(&self, usage: &Usage) -> u64 {
        if !self.layout.separates() {
            return 0;
        }
        let one = self.layout.collection_bytes_max(&self.limits);
        values::layout::debt_percent(usage, &self.limits, one)
    }

    /// The cold store, if there is one, has room for what goes there, and for its own collections.
    pub(crate) fn has_cold_room(&self, store: &dyn FileStore) -> bool {
        let space = store.cold_store().and_then(ColdStore::cold_space);
        let one = self.layout.collection_bytes_max(&self.limits);
        space.is_none_or(|space| space.free_bytes >= one.saturating_mul(COLD_COLLECTIONS_MIN))
    }

    /// A job writes `bytes` that nobody counted before.
    pub(crate) fn add_unlisted(&self, bytes: u64) {
        self.unlisted_bytes.fetch_add(bytes, Relaxed);
    }

    /// The job's bytes are in the tree, or gone.
    pub(crate) fn end_unlisted(&self, bytes: u64) {
        self.unlisted_bytes.fetch_sub(bytes, Relaxed);
    }

    /// A collection begins that may write `bytes`; 0: it ended.
    pub(crate) fn set_collecting(&self, bytes: u64) {
        self.collecting_bytes.store(bytes, Relaxed);
    }

    /// What collections did since the database was opened.
    pub(crate) fn collected(&self) -> Collected {
        *self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A collection ended.
    pub(crate) fn add_collected(&self, more: &Collected) {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner).add(more);
    }

    /// Where background threads spent their time on values.
    pub(crate) fn times(&self) -> ValueTimes {
        *self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job worked on values.
    pub(crate) fn add_times(&self, more: &ValueTimes) {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).add(more);
    }

    /// The limits for a pick: memtables are going to bring `pending_bytes`.
    pub(crate) fn limits_beside(&self, pending_bytes: u64) -> ValueLimits {
        let capacity = self.capacity_bytes().map(|capacity| capacity.saturating_sub(pending_bytes));
        ValueLimits { capacity_bytes: capacity, ..self.limits.clone() }
    }

    /// No entry of any tree or memtable that points into `file` is older than `sequence`: the
    /// newest such number holds, until a flush goes on with the segment.
    pub(crate) fn note_first_entry(&self, file: FileId, sequence: SequenceNumber) {
        let mut all = self.first_entries.lock().unwrap_or_else(PoisonError::into_inner);
        let first = all.entry(file).or_default();
        *first = sequence.max(*first);
    }

    /// A flush goes on with `file` and brings an entry of `sequence`, which may be older than what
    /// the collection that wrote the segment listed.
    pub(crate) fn note_older_entry(&self, file: FileId, sequence: SequenceNumber) {
        let mut all = self.first_entries.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(file).and_modify(|first| *first = sequence.min(*first));
    }

    /// Entries that point into `file` are not older than this; 0 where nothing is known, as of what
    /// an earlier life wrote: it has no snapshots left.
    pub(crate) fn first_entry(&self, file: FileId) -> SequenceNumber {
        let all = self.first_entries.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&file).copied().unwrap_or(0)
    }

    /// The segment is gone.
    pub(crate) fn forget_segment(&self, file: FileId) {
        self.first_entries.lock().unwrap_or_else(PoisonError::into_inner).remove(&file);
    }

    /// The segments that jobs have in hand.
    pub(crate) fn claimed(&self) -> BTreeSet<FileId> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes `files` for a job; `false`, and no change, if another has one of them.
    pub(crate) fn claim(&self, files: &[FileId]) -> bool {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if files.iter().any(|file| claims.contains(file)) {
            return false;
        }
        claims.extend(files);
        true
    }

    /// A job is done with `files`.
    pub(crate) fn release(&self, files: &[FileId]) {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        for file in files {
            claims.remove(file);
        }
    }
}
