//! Space that is kept free for the work that must go on when the medium is full: deletions and
//! their log, flushes, edits, closing and opening.
//!
//! The store keeps the space ([`media::Capacity::set_reserve`]). When such work is out of space,
//! the reserve is released to the medium and the work tries again. After that, only deletions are
//! accepted, until enough space is free to fill the reserve again (`full_medium`).
//!
//! Invariants:
//! - A write that only deletes fails for lack of space only when the reserve is released.
//! - A write that adds data never takes from the reserve.
//! - The state is what the store was last asked for: one caller at a time asks.

use crate::engine::events::Events;
use crate::event::Event;
use base::{EntryKind, Error, ErrorKind, Result};
use media::Capacity;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use table::batch::WriteBatch;

/// The time between two tries to fill the reserve.
pub(crate) const REFILL_NS: u64 = 100_000_000;

/// The store keeps no space free.
const NONE: u8 = 0;
/// The store keeps the space free.
const WHOLE: u8 = 1;
/// The space was released to the medium.
const OUT: u8 = 2;

/// What is kept free for one database.
#[derive(Debug, Default)]
pub(crate) struct Reserve {
    /// Changes under `asking`.
    state: AtomicU8,
    /// Held while the store is asked.
    asking: Mutex<()>,
    /// Bytes that the store was last asked to keep free.
    bytes: AtomicU64,
    next_refill_ns: AtomicU64,
    /// Deletions up to this sequence number were applied by compaction.
    pub applied: AtomicU64,
}

impl Reserve {
    #[inline]
    pub(crate) fn is_out(&self) -> bool {
        self.state.load(Relaxed) == OUT
    }

    /// Bytes that the store was last asked to keep free.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// What an earlier life kept free counts as whole until it is needed.
    pub(crate) fn begin(&self) {
        self.state.store(WHOLE, Relaxed);
    }

    /// Work that must go on is out of space: releases the reserve. `true`: the reserve was whole,
    /// and the work may be tried again.
    pub(crate) fn release(&self, medium: Option<&dyn Capacity>, events: &Events) -> bool {
        let _asking = self.asking.lock();
        if self.state.load(Relaxed) != WHOLE {
            return false;
        }
        self.state.store(OUT, Relaxed);
        let message = "the medium is full: only deletions are accepted";
        let error = Error::new(ErrorKind::NoSpace, message);
        events.add(Event::SpaceReserveReleased { error });
        set(medium, 0).is_ok()
    }

    /// Has the medium keep `bytes` free, or as much of that as is free.
    pub(crate) fn fill(&self, medium: Option<&dyn Capacity>, events: &Events, bytes: u64) {
        let _asking = self.asking.lock();
        self.bytes.store(bytes, Relaxed);
        let state = match set(medium, bytes) {
            Ok(true) => WHOLE,
            Ok(false) => NONE,
            Err(error) if error.kind() == ErrorKind::NoSpace => OUT,
            Err(error) => {
                events.add(Event::SpaceReserveFailed { error });
                NONE
            }
        };
        self.state.store(state, Relaxed);
    }

    /// The reserve is released, and no thread asked the medium within [`REFILL_NS`]. `true`: the
    /// caller asks it.
    pub(crate) fn takes_turn(&self, now_ns: u64) -> bool {
        self.is_out() && self.takes_next_turn(now_ns)
    }

    /// The same, while the reserve is whole.
    pub(crate) fn takes_turn_to_grow(&self, now_ns: u64) -> bool {
        self.state.load(Relaxed) == WHOLE && self.takes_next_turn(now_ns)
    }

    fn takes_next_turn(&self, now_ns: u64) -> bool {
        let next_ns = self.next_refill_ns.load(Relaxed);
        let takes = || {
            let after_ns = now_ns + REFILL_NS;
            self.next_refill_ns.compare_exchange(next_ns, after_ns, Relaxed, Relaxed)
        };
        now_ns >= next_ns && takes().is_ok()
    }

    /// A file was removed: the next caller asks the medium without waiting for [`REFILL_NS`].
    pub(crate) fn expect_space(&self) {
        if self.is_out() {
            self.next_refill_ns.store(0, Relaxed);
        }
    }
}

/// Has the medium keep `bytes` free. `false` where it cannot.
fn set(medium: Option<&dyn Capacity>, bytes: u64) -> Result<bool> {
    medium.map_or(Ok(false), |medium| medium.set_reserve(bytes))
}

/// Every operation of `batch` is a deletion.
pub(crate) fn only_deletes(batch: &WriteBatch) -> bool {
    let is_deletion = |kind| matches!(kind, EntryKind::Delete | EntryKind::DeleteRange);
    batch.iter().all(|operation| is_deletion(operation.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Threads;
    use media::Space;
    use media::mem::MemStore;
    use std::sync::Arc;

    /// A medium that keeps a reserve.
    #[derive(Default)]
    struct Keeping {
        kept_bytes: AtomicU64,
    }

    impl Capacity for Keeping {
        fn space(&self) -> Option<Space> {
            None
        }

        fn set_reserve(&self, bytes: u64) -> Result<bool> {
            std::thread::yield_now();
            self.kept_bytes.store(bytes, Relaxed);
            std::thread::yield_now();
            Ok(true)
        }
    }

    #[test]
    fn the_reserve_counts_as_whole_only_while_the_store_keeps_it() {
        let medium = Keeping::default();
        let store = Arc::new(MemStore::new(Arc::default()));
        let events = Events::new(store, Arc::new(Threads::new()), None);
        for round in 0..2000 {
            let reserve = Reserve::default();
            reserve.begin();
            std::thread::scope(|scope| {
                scope.spawn(|| reserve.fill(Some(&medium), &events, 7));
                scope.spawn(|| reserve.release(Some(&medium), &events));
            });
            let kept_bytes = if reserve.is_out() { 0 } else { 7 };
            assert_eq!(medium.kept_bytes.load(Relaxed), kept_bytes, "round {round}");
        }
    }
}
