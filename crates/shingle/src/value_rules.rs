//! How a keyspace treats large values, which of its segments are in use, and how much space is
//! left.

use crate::value_stats::{Collected, ValueTimes};
use base::{FileId, SequenceNumber};
use media::{ColdStore, FileStore};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tree::segments::Usage;
use values::{ValueLayout, ValueLimits};

/// How a keyspace treats large values.
pub(crate) struct ValueRules {
    pub layout: Box<dyn ValueLayout>,
    pub limits: ValueLimits,
    /// Minimum size of a separated value, in bytes.
    pub threshold_bytes: u64,
    /// By segment, if known: a sequence number that no entry pointing into it is older than.
    first_entries: Mutex<BTreeMap<FileId, SequenceNumber>>,
    /// Segments that a job writes or reads.
    claims: Mutex<BTreeSet<FileId>>,
    /// Bytes that jobs wrote beyond what memtables held, and that are not in the tree yet.
    unlisted_bytes: AtomicU64,
    /// Bytes that the GC in progress is expected to write.
    collecting_bytes: AtomicU64,
    collected: Mutex<Collected>,
    times: Mutex<ValueTimes>,
    /// Held by the writer that reclaims space, one at a time. Holds when the index was last
    /// compacted to find garbage.
    pub swept: Mutex<Option<SweptAt>>,
}

/// The state before a compaction for the sake of garbage: a user's last write, and the oldest
/// snapshot.
pub(crate) type SweptAt = (SequenceNumber, Option<SequenceNumber>);

/// A cold store takes no more values if it has less space than this many GCs may write.
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

    /// The capacity of the segments in bytes; `None` where it is unlimited.
    pub(crate) fn capacity_bytes(&self) -> Option<u64> {
        self.limits.capacity_bytes.filter(|_| self.layout.separates())
    }

    /// The space left of the capacity for anything but GC, beside `used_bytes` in the tree and in
    /// memtables: GC must always find space for one group or segment. `None` where nothing bounds
    /// it.
    pub(crate) fn space_bytes(&self, used_bytes: u64) -> Option<u64> {
        self.space_bytes_for_gc(used_bytes, 0)
    }

    /// The space for a GC that will free `freed_bytes`: it may use as much of what is kept for GC.
    pub(crate) fn space_bytes_for_gc(&self, used_bytes: u64, freed_bytes: u64) -> Option<u64> {
        let reserve = self.layout.collection_bytes_max(&self.limits);
        let used = used_bytes + self.unlisted_bytes.load(Relaxed);
        let kept = reserve.max(self.collecting_bytes.load(Relaxed)).saturating_sub(freed_bytes);
        Some(self.capacity_bytes()?.saturating_sub(kept).saturating_sub(used))
    }

    /// Garbage as a percentage of the allowed garbage: how far GC is behind.
    pub(crate) fn debt_percent(&self, usage: &Usage) -> u64 {
        if !self.layout.separates() {
            return 0;
        }
        let one = self.layout.collection_bytes_max(&self.limits);
        values::layout::debt_percent(usage, &self.limits, one)
    }

    /// The cold store, if there is one, has space for cold values and for its own GC.
    pub(crate) fn has_cold_space(&self, store: &dyn FileStore) -> bool {
        let space = store.cold_store().and_then(ColdStore::cold_space);
        let one = self.layout.collection_bytes_max(&self.limits);
        space.is_none_or(|space| space.free_bytes >= one.saturating_mul(COLD_COLLECTIONS_MIN))
    }

    /// A writer waits for space.
    pub(crate) fn is_awaited(&self) -> bool {
        self.swept.is_locked()
    }

    /// A job writes `bytes` that were not counted before.
    pub(crate) fn add_unlisted(&self, bytes: u64) {
        self.unlisted_bytes.fetch_add(bytes, Relaxed);
    }

    /// The job's bytes are in the tree, or removed.
    pub(crate) fn end_unlisted(&self, bytes: u64) {
        self.unlisted_bytes.fetch_sub(bytes, Relaxed);
    }

    /// GC begins and may write `bytes`; 0: it ended.
    pub(crate) fn set_collecting(&self, bytes: u64) {
        self.collecting_bytes.store(bytes, Relaxed);
    }

    /// The work of GC since the database was opened.
    pub(crate) fn collected(&self) -> Collected {
        *self.collected.lock()
    }

    /// Adds the work of a GC that ended.
    pub(crate) fn add_collected(&self, more: &Collected) {
        self.collected.lock().add(more);
    }

    /// The time that background threads spent on values.
    pub(crate) fn times(&self) -> ValueTimes {
        *self.times.lock()
    }

    /// Adds a job's time.
    pub(crate) fn add_times(&self, more: &ValueTimes) {
        self.times.lock().add(more);
    }

    /// The limits for a pick, beside `pending_bytes` that memtables are going to add.
    pub(crate) fn limits_beside(&self, pending_bytes: u64) -> ValueLimits {
        let capacity = self.capacity_bytes().map(|capacity| capacity.saturating_sub(pending_bytes));
        ValueLimits { capacity_bytes: capacity, ..self.limits.clone() }
    }

    /// Notes that no entry of any tree or memtable that points into `file` is older than
    /// `sequence`. The highest such number holds, until a flush continues the segment.
    pub(crate) fn note_first_entry(&self, file: FileId, sequence: SequenceNumber) {
        let mut all = self.first_entries.lock();
        let first = all.entry(file).or_default();
        *first = sequence.max(*first);
    }

    /// A flush continues `file` and adds an entry of `sequence`, which may be older than what the
    /// GC that wrote the segment listed.
    pub(crate) fn note_older_entry(&self, file: FileId, sequence: SequenceNumber) {
        let mut all = self.first_entries.lock();
        all.entry(file).and_modify(|first| *first = sequence.min(*first));
    }

    /// A sequence number that no entry pointing into `file` is older than; 0 where none is known,
    /// as for segments from before this opening: their snapshots are gone.
    pub(crate) fn first_entry(&self, file: FileId) -> SequenceNumber {
        let all = self.first_entries.lock();
        all.get(&file).copied().unwrap_or(0)
    }

    /// The segment is gone.
    pub(crate) fn forget_segment(&self, file: FileId) {
        self.first_entries.lock().remove(&file);
    }

    /// The segments that jobs use.
    pub(crate) fn claimed(&self) -> BTreeSet<FileId> {
        self.claims.lock().clone()
    }

    /// Takes `files` for a job; `false`, and no change, if another job has one of them.
    pub(crate) fn claim(&self, files: &[FileId]) -> bool {
        let mut claims = self.claims.lock();
        if files.iter().any(|file| claims.contains(file)) {
            return false;
        }
        claims.extend(files);
        true
    }

    /// Releases `files` at the end of a job.
    pub(crate) fn release(&self, files: &[FileId]) {
        let mut claims = self.claims.lock();
        for file in files {
            claims.remove(file);
        }
    }
}
