//! One memory budget for several databases.
//!
//! Each database has a [`Share`], and tells it what its memtables and its other memory hold. The
//! budget adds these up. The shared block cache gets what they leave, as in the account of one
//! database (`engine::memory`).
//!
//! Memtables of all databases together have the write buffer of the budget. When they exceed it,
//! the database with the largest ones is asked to flush them: its worker finds that in
//! [`Share::take_flush`]. Writers wait where memtables have twice the write buffer.
//!
//! Chunks of flushed memtables that the databases keep count as well. When they and the memtables
//! exceed what is reserved for memtables, the databases that keep chunks give them back.
//!
//! Invariants:
//! - The sums of a budget are those of its shares; a share that is dropped leaves nothing in them.
//! - Nothing here takes a lock of a database beside that of its kept chunks, which covers no other
//!   lock. So a commit may ask another database.

use crate::memtable::ChunkPool;
use base::env::{Event, Runtime};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Memtables have one part in this many of the budget.
const WRITE_BUFFER_SHARE: u64 = 5;
/// Write buffers that are reserved for memtables, so that the cache keeps its size: one that is
/// filled, and one that is flushed.
pub(crate) const RESERVED_BUFFERS: u64 = 2;
/// The cache has at least one part in this many of the budget.
pub(crate) const CACHE_SHARE_MIN: u64 = 8;
/// A commit tells that its memtables have grown when they have grown by this much.
const GROWTH_BYTES: u64 = 64 << 10;
/// A writer that waits for memory looks again after this time.
const LOOK_NS: u64 = 20_000_000;
/// A writer waits for memory at most this many times, since a database that cannot flush must not
/// stop all others for ever.
const LOOKS_MAX: u32 = 50;

/// The budget of several databases.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: u64,
    memtable_bytes: AtomicU64,
    other_bytes: AtomicU64,
    /// Bytes of chunks that wait for memtables to come.
    kept_bytes: Arc<AtomicU64>,
    shares: Mutex<Vec<Weak<Share>>>,
    /// Memtables were freed.
    freed: Event,
}

/// The part of a budget that one database has.
pub(crate) struct Share {
    budget: Arc<Budget>,
    runtime: Arc<dyn Runtime>,
    chunks: Arc<ChunkPool>,
    memtable_bytes: AtomicU64,
    other_bytes: AtomicU64,
    /// It was asked to flush, and its memtables are not smaller yet.
    is_asked: AtomicBool,
    /// No worker has seen that yet.
    is_due: AtomicBool,
}

impl Budget {
    pub(crate) fn new(bytes: u64) -> Arc<Budget> {
        Arc::new(Budget {
            bytes,
            memtable_bytes: AtomicU64::new(0),
            other_bytes: AtomicU64::new(0),
            kept_bytes: Arc::default(),
            shares: Mutex::default(),
            freed: Event::default(),
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn write_buffer_bytes(&self) -> u64 {
        self.bytes / WRITE_BUFFER_SHARE
    }

    /// Bytes in memtables of all databases, and in what else they hold beside the cache.
    pub(crate) fn used_bytes(&self) -> (u64, u64) {
        (self.memtable_bytes.load(Relaxed), self.other_bytes.load(Relaxed))
    }

    fn reserved_bytes(&self) -> u64 {
        RESERVED_BUFFERS * self.write_buffer_bytes()
    }

    /// The sum of what the pools of all databases keep.
    pub(crate) fn kept_bytes(&self) -> &Arc<AtomicU64> {
        &self.kept_bytes
    }

    /// The size that the shared cache should have.
    pub(crate) fn cache_bytes(&self) -> u64 {
        let (memtable_bytes, other_bytes) = self.used_bytes();
        let taken = memtable_bytes.max(self.reserved_bytes()) + other_bytes;
        self.bytes.saturating_sub(taken).max(self.bytes / CACHE_SHARE_MIN)
    }

    /// The share of a database whose workers `runtime` wakes. The pool `chunks` adds what it keeps
    /// to [`Budget::kept_bytes`].
    pub(crate) fn share(
        self: &Arc<Self>,
        runtime: Arc<dyn Runtime>,
        chunks: Arc<ChunkPool>,
    ) -> Arc<Share> {
        let share = Arc::new(Share {
            budget: self.clone(),
            runtime,
            chunks,
            memtable_bytes: AtomicU64::new(0),
            other_bytes: AtomicU64::new(0),
            is_asked: AtomicBool::new(false),
            is_due: AtomicBool::new(false),
        });
        let mut shares = self.shares.lock();
        shares.retain(|share| share.strong_count() > 0);
        shares.push(Arc::downgrade(&share));
        share
    }

    /// Memtables, with the chunks that are kept for others, have more than is reserved for them.
    fn keeps_too_much(&self) -> bool {
        let kept_bytes = self.kept_bytes.load(Relaxed);
        kept_bytes > 0 && self.memtable_bytes.load(Relaxed) + kept_bytes > self.reserved_bytes()
    }

    /// Has databases give back the chunks that they keep, until the others are within the reserve.
    #[cold]
    fn clear_kept(&self) {
        let shares: Vec<Arc<Share>> = self.shares.lock().iter().filter_map(Weak::upgrade).collect();
        for share in shares.iter().take_while(|_| self.keeps_too_much()) {
            share.chunks.clear();
        }
    }

    /// Asks the database with the largest memtables to flush them, unless enough have been asked.
    #[cold]
    fn ask_largest(&self) {
        let shares: Vec<Arc<Share>> = self.shares.lock().iter().filter_map(Weak::upgrade).collect();
        let (asked, others): (Vec<_>, Vec<_>) =
            shares.iter().partition(|share| share.is_asked.load(Relaxed));
        let leaving: u64 = asked.iter().map(|share| share.memtable_bytes.load(Relaxed)).sum();
        let staying = self.memtable_bytes.load(Relaxed).saturating_sub(leaving);
        if staying <= self.write_buffer_bytes() {
            return;
        }
        if let Some(largest) = others.iter().max_by_key(|share| share.memtable_bytes.load(Relaxed))
        {
            largest.is_asked.store(true, Relaxed);
            largest.is_due.store(true, Relaxed);
            largest.runtime.wake();
        }
    }
}

/// Sets one part of a sum. Returns what it was.
fn replace(part: &AtomicU64, sum: &AtomicU64, bytes: u64) -> u64 {
    let before = part.swap(bytes, Relaxed);
    sum.fetch_add(bytes, Relaxed);
    sum.fetch_sub(before, Relaxed);
    before
}

impl Share {
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Sets the bytes of the database's memtables.
    pub(crate) fn set_memtables(&self, bytes: u64) {
        let before = replace(&self.memtable_bytes, &self.budget.memtable_bytes, bytes);
        if self.budget.keeps_too_much() {
            self.budget.clear_kept();
        }
        if bytes < before {
            self.is_asked.store(false, Relaxed);
            self.budget.freed.signal();
        } else if self.budget.memtable_bytes.load(Relaxed) > self.budget.write_buffer_bytes() {
            self.budget.ask_largest();
        }
    }

    /// The memtables have `bytes` now. Cheap, for each commit.
    #[inline]
    pub(crate) fn grow_memtables(&self, bytes: u64) {
        if bytes >= self.memtable_bytes.load(Relaxed) + GROWTH_BYTES {
            self.set_memtables(bytes);
        }
    }

    /// Sets the bytes of everything else that counts, without the cache.
    pub(crate) fn set_others(&self, bytes: u64) {
        replace(&self.other_bytes, &self.budget.other_bytes, bytes);
    }

    /// Whether the database was asked to flush; once for each time.
    pub(crate) fn take_flush(&self) -> bool {
        self.is_due.load(Relaxed) && self.is_due.swap(false, Relaxed)
    }

    /// A write has to wait until memtables are freed.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.budget.memtable_bytes.load(Relaxed) > self.budget.reserved_bytes()
    }

    /// Waits until memtables are freed, a bounded time, and while `go_on` gives no error.
    #[cold]
    pub(crate) fn wait<E>(&self, go_on: impl Fn() -> Result<(), E>) -> Result<(), E> {
        for _ in 0..LOOKS_MAX {
            let seen = self.budget.freed.count();
            if !self.is_full() {
                break;
            }
            go_on()?;
            self.budget.ask_largest();
            let deadline_ns = self.runtime.now_ns().saturating_add(LOOK_NS);
            self.runtime.wait(&self.budget.freed, seen, Some(deadline_ns));
        }
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        replace(&self.memtable_bytes, &self.budget.memtable_bytes, 0);
        replace(&self.other_bytes, &self.budget.other_bytes, 0);
        self.budget.freed.signal();
    }
}

impl std::fmt::Debug for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.memtable_bytes.load(Relaxed);
        f.debug_struct("Share").field("memtable_bytes", &bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memtable::Memtable;
    use crate::runtime::Threads;

    fn budget() -> (Arc<Budget>, Arc<Share>, Arc<Share>) {
        budget_of(5000)
    }

    fn budget_of(bytes: u64) -> (Arc<Budget>, Arc<Share>, Arc<Share>) {
        let budget = Budget::new(bytes);
        let share = || {
            let chunks = ChunkPool::new(0, bytes, budget.kept_bytes().clone());
            budget.share(Arc::new(Threads::new()), chunks)
        };
        let (a, b) = (share(), share());
        (budget, a, b)
    }

    #[test]
    fn kept_chunks_give_way_to_memtables_of_other_databases() {
        let (budget, a, b) = budget_of(50_000);
        let kept_bytes = || budget.kept_bytes().load(Relaxed);
        drop(Memtable::of_pool(&a.chunks, b"").expect("a little memory"));
        let chunk_bytes = kept_bytes();
        assert!(chunk_bytes > 0);
        b.set_memtables(20_000 - chunk_bytes);
        assert_eq!(kept_bytes(), chunk_bytes, "within two write buffers");
        b.set_memtables(20_001 - chunk_bytes);
        assert_eq!(kept_bytes(), 0);
    }

    #[test]
    fn the_largest_is_asked_once_and_again_when_it_has_flushed() {
        let (_budget, a, b) = budget();
        a.set_memtables(400);
        b.set_memtables(600);
        assert!(!a.take_flush() && !b.take_flush(), "within the write buffer");
        a.set_memtables(401);
        assert!(b.take_flush() && !a.take_flush() && !b.take_flush());
        a.set_memtables(900);
        assert!(!a.take_flush(), "what stays when `b` has flushed is within the write buffer");
        a.set_memtables(1001);
        assert!(a.take_flush());
        b.set_memtables(0);
        b.set_memtables(1002);
        assert!(b.take_flush() && !a.take_flush());
    }

    #[test]
    fn the_cache_has_what_all_leave_and_a_dropped_share_leaves_nothing() {
        let (budget, a, b) = budget();
        assert_eq!(budget.cache_bytes(), 3000, "two write buffers are reserved");
        a.set_others(100);
        b.set_others(200);
        b.set_memtables(2500);
        assert_eq!(budget.cache_bytes(), 2200);
        a.set_memtables(4000);
        assert_eq!(budget.cache_bytes(), 5000 / CACHE_SHARE_MIN);
        drop(a);
        assert_eq!(budget.cache_bytes(), 2300);
        drop(b);
        assert_eq!((budget.cache_bytes(), budget.used_bytes()), (3000, (0, 0)));
    }

    #[test]
    fn a_writer_waits_for_memory_and_not_for_ever() {
        let (_budget, a, b) = budget();
        a.set_memtables(2001);
        assert!(b.is_full());
        assert_eq!(b.wait(|| Err("closed")), Err("closed"));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| b.wait(|| Ok::<(), ()>(())));
            a.set_memtables(2000);
            assert_eq!(waits.join().unwrap(), Ok(()));
        });
        a.set_memtables(3000);
        assert_eq!(b.wait(|| Ok::<(), ()>(())), Ok(()), "no database flushes");
    }

    #[test]
    fn small_growth_is_told_later() {
        let (budget, a, _b) = budget();
        a.grow_memtables(GROWTH_BYTES - 1);
        assert_eq!(budget.used_bytes().0, 0);
        a.grow_memtables(GROWTH_BYTES);
        assert_eq!(budget.used_bytes().0, GROWTH_BYTES);
    }
}
