//! The memory budget: one account of the memory that a database holds.
//!
//! The account counts:
//! - the memtables, active and sealed;
//! - what open runs keep outside the cache;
//! - buffers of background jobs, and the records that GC remembers.
//!
//! These are counted after they are allocated, because a write or a flush cannot go on without
//! them. So the block cache yields: it gets the rest, and at least an eighth of the budget. The
//! memtables have bounds of their own: `commit` seals the active ones when together they reach a
//! write buffer, and `admission` stops writers when the sealed ones are too large.
//!
//! Databases that share all memory (`budget`) tell the budget what they hold, and it gives the
//! cache its size.
//!
//! A cache keeps its size if the user set that size, or if several databases share it alone. Not
//! counted: what users hold (values, iterators), batches, and the allocator's overhead.

use crate::budget::{CACHE_SHARE_MIN, RESERVED_BUFFERS, Share};
use crate::memtable::ChunkPool;
use crate::settings::Settings;
use base::env::Runtime;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Newly written runs stay open, before any read, until open runs have one part in this many of the
/// budget.
const WRITTEN_RUNS_SHARE: u64 = 8;
/// The cache is resized when its share is off by more than one part in this many of the budget.
const RESIZE_SHARE: u64 = 64;

/// The account of one database, in bytes.
#[derive(Debug)]
pub(crate) struct Memory {
    budget_bytes: AtomicU64,
    /// Reserved for memtables even while they are small, so that the cache keeps its size from one
    /// flush to the next.
    reserved_bytes: u64,
    /// The cache gets what the others leave.
    resizes_cache: AtomicBool,
    is_cache_shared: bool,
    /// The part of a budget that several databases share.
    share: Option<Arc<Share>>,
    /// The memory that memtables are made of.
    chunks: Arc<ChunkPool>,
    memtable_bytes: AtomicU64,
    sealed_bytes: AtomicU64,
    background_bytes: Arc<AtomicU64>,
}

impl Memory {
    pub(crate) fn new(settings: &Settings, is_cache_shared: bool) -> Memory {
        Memory::keeping_in(settings, is_cache_shared, Arc::default())
    }

    /// As [`Memory::new`]; chunks of memtables that are kept are added to `kept_bytes`.
    fn keeping_in(
        settings: &Settings,
        is_cache_shared: bool,
        kept_bytes: Arc<AtomicU64>,
    ) -> Memory {
        let reserved_bytes = RESERVED_BUFFERS * settings.flush_bytes;
        let memtable_bytes = settings.memtable_bytes_max as usize;
        Memory {
            budget_bytes: AtomicU64::new(settings.memory_bytes),
            reserved_bytes,
            resizes_cache: AtomicBool::new(settings.cache_bytes.is_none() && !is_cache_shared),
            is_cache_shared,
            share: None,
            chunks: ChunkPool::new(memtable_bytes, reserved_bytes, kept_bytes),
            memtable_bytes: AtomicU64::new(0),
            sealed_bytes: AtomicU64::new(0),
            background_bytes: Arc::default(),
        }
    }

    /// The account of a database that may share its memory with others. `runtime` wakes its
    /// workers.
    pub(crate) fn shared(
        settings: &Settings,
        is_cache_shared: bool,
        runtime: &Arc<dyn Runtime>,
    ) -> Memory {
        let pooled = settings.options.resources.as_ref().and_then(|all| all.pooled.as_ref());
        let budget = pooled.map(|pooled| &pooled.budget);
        let kept_bytes = budget.map(|budget| budget.kept_bytes().clone()).unwrap_or_default();
        let mut memory = Memory::keeping_in(settings, is_cache_shared, kept_bytes);
        memory.share = budget.map(|budget| budget.share(runtime.clone(), memory.chunks.clone()));
        memory
    }

    /// The memory that memtables are made of.
    pub(crate) fn chunks(&self) -> &Arc<ChunkPool> {
        &self.chunks
    }

    /// The part of a budget that several databases share.
    pub(crate) fn share(&self) -> Option<&Arc<Share>> {
        self.share.as_ref()
    }

    /// The size of a cache beside the memtables and `others`, the sum of everything else that
    /// counts.
    fn cache_bytes(&self, memtable_bytes: u64, others: u64) -> u64 {
        let budget_bytes = self.budget_bytes();
        let taken = memtable_bytes.max(self.reserved_bytes) + others;
        budget_bytes.saturating_sub(taken).max(budget_bytes / CACHE_SHARE_MIN)
    }

    fn budget_bytes(&self) -> u64 {
        self.budget_bytes.load(Relaxed)
    }

    /// Sets the budget. `Some`: the cache has a fixed size, which the caller sets.
    pub(crate) fn set_budget(&self, budget_bytes: u64, cache_bytes: Option<u64>) -> Option<u64> {
        self.budget_bytes.store(budget_bytes, Relaxed);
        self.resizes_cache.store(cache_bytes.is_none() && !self.is_cache_shared, Relaxed);
        cache_bytes.filter(|_| !self.is_cache_shared)
    }

    /// The size of the cache of a database that is being opened.
    pub(crate) fn first_cache_bytes(settings: &Settings) -> u64 {
        settings.cache_bytes.unwrap_or_else(|| Memory::new(settings, false).cache_bytes(0, 0))
    }

    /// Maximum memory of open runs up to which a run stays open after it is written. Unlimited if
    /// the cache does not yield, as for runs that are opened to be read.
    pub(crate) fn written_runs_bytes_max(&self) -> u64 {
        let resizes_cache = self.resizes_cache.load(Relaxed);
        if resizes_cache { self.budget_bytes() / WRITTEN_RUNS_SHARE } else { u64::MAX }
    }

    /// Sets the bytes of the memtables. The caller holds the commit lock.
    pub(crate) fn set_memtables(&self, active_bytes: u64, sealed_bytes: u64) {
        self.memtable_bytes.store(active_bytes + sealed_bytes, Relaxed);
        self.sealed_bytes.store(sealed_bytes, Relaxed);
        if let Some(share) = &self.share {
            share.set_memtables(active_bytes + sealed_bytes);
        }
    }

    /// The active memtables have `active_bytes` now. The caller holds the commit lock.
    #[inline]
    pub(crate) fn grow_active(&self, active_bytes: u64) {
        if let Some(share) = &self.share {
            share.grow_memtables(active_bytes + self.sealed_bytes());
        }
    }

    /// Bytes in sealed memtables.
    pub(crate) fn sealed_bytes(&self) -> u64 {
        self.sealed_bytes.load(Relaxed)
    }

    /// Bytes in all memtables, with what the active ones will grow to.
    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.memtable_bytes.load(Relaxed)
    }

    /// The size that a cache of `capacity_bytes` should have beside runs that hold `open_bytes`.
    /// `None`: it is close enough, or it is fixed.
    pub(crate) fn cache_resize(&self, open_bytes: u64, capacity_bytes: u64) -> Option<u64> {
        let others = open_bytes + self.background_bytes();
        let wanted = match &self.share {
            Some(share) => {
                share.set_others(others);
                share.budget().cache_bytes()
            }
            None if !self.resizes_cache.load(Relaxed) => return None,
            None => self.cache_bytes(self.memtable_bytes.load(Relaxed), others),
        };
        (wanted.abs_diff(capacity_bytes) > self.budget_bytes() / RESIZE_SHARE).then_some(wanted)
    }

    /// Bytes in buffers of background steps.
    pub(crate) fn background_bytes(&self) -> u64 {
        self.background_bytes.load(Relaxed)
    }

    /// An entry of the account for the buffers of one background job.
    pub(crate) fn begin_job(&self) -> Buffers {
        Buffers { account: self.background_bytes.clone(), bytes: 0 }
    }
}

/// The bytes in buffers of one background job; given back on drop.
#[derive(Debug)]
pub(crate) struct Buffers {
    account: Arc<AtomicU64>,
    bytes: u64,
}

impl Buffers {
    /// Sets the bytes of the job's buffers.
    pub(crate) fn set(&mut self, bytes: u64) {
        self.account.fetch_add(bytes, Relaxed);
        self.account.fetch_sub(self.bytes, Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        self.account.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn memory(options: Options) -> Memory {
        Memory::new(&Settings::new(&options).unwrap(), false)
    }

    #[test]
    fn the_cache_has_what_the_others_leave_and_never_nothing() {
        let memory = memory(Options::new().memory_bytes(100 << 20));
        let all = 100 << 20;
        assert_eq!(memory.cache_bytes(0, 0), all - 2 * (20 << 20));
        assert_eq!(memory.cache_bytes(30 << 20, 0), memory.cache_bytes(0, 0), "within reserve");
        assert_eq!(memory.cache_bytes(60 << 20, 5 << 20), all - (65 << 20));
        assert_eq!(memory.cache_bytes(90 << 20, 90 << 20), all / CACHE_SHARE_MIN);
    }

    #[test]
    fn written_runs_stay_open_within_a_part_of_the_budget_that_they_share() {
        let shared = memory(Options::new().memory_bytes(80 << 20));
        assert_eq!(shared.written_runs_bytes_max(), 10 << 20);
        assert_eq!(memory(Options::new().cache_bytes(5)).written_runs_bytes_max(), u64::MAX);
    }

    #[test]
    fn buffers_are_given_back() {
        let memory = memory(Options::new());
        let mut a = memory.begin_job();
        let mut b = memory.begin_job();
        a.set(100);
        b.set(7);
        a.set(50);
        assert_eq!(memory.background_bytes(), 57);
        drop(a);
        assert_eq!(memory.background_bytes(), 7);
        drop(b);
        assert_eq!(memory.background_bytes(), 0);
    }

    #[test]
    fn a_cache_that_was_set_apart_keeps_its_size() {
        assert!(memory(Options::new()).resizes_cache.into_inner());
        let apart = Settings::new(&Options::new().cache_bytes(5)).unwrap();
        assert!(!Memory::new(&apart, false).resizes_cache.into_inner());
        assert_eq!(Memory::first_cache_bytes(&apart), 5);
        let shared = Memory::new(&Settings::new(&Options::new()).unwrap(), true);
        assert!(!shared.resizes_cache.into_inner());
    }
}
