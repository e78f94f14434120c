//! Space that is kept free for what must go on when the medium is full: deletions and their log,
//! flushes, edits, closing and opening.
//!
//! The store keeps the space ([`media::FileStore::set_reserve`]). Work that must go on and finds no
//! space gives it back to the medium and tries again. From then on only deletions are accepted,
//! until there is as much free space again and the reserve is whole.
//!
//! Invariants:
//! - A write that only deletes is refused for want of space only when the reserve is out.
//! - A write that adds data never takes from the reserve.

use crate::engine::Engine;
use crate::engine::scheduler::{self, Manual};
use crate::engine::trees::TreeState;
use crate::engine::values::room::rewrite;
use base::{EntryKind, Error, ErrorKind, KeyRange, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use table::batch::WriteBatch;
use tree::Input;

/// The reserve has this share of the bytes of all trees...
const TREE_SHARE: u64 = 64;
/// ... at least this...
const BYTES_MIN: u64 = 1 << 20;
/// ... and not more than this share of the medium.
const MEDIUM_SHARE: u64 = 64;

/// The time between two tries to fill the reserve.
const REFILL_NS: u64 = 100_000_000;

/// The store keeps no space free.
const NONE: u8 = 0;
/// The store keeps the space free.
const WHOLE: u8 = 1;
/// The space was given back to the medium.
const OUT: u8 = 2;

/// What is kept free for one database.
#[derive(Debug)]
pub(crate) struct Reserve {
    state: AtomicU8,
    next_refill_ns: AtomicU64,
    /// Deletions up to this sequence number were applied by compaction.
    applied: AtomicU64,
}

impl Default for Reserve {
    fn default() -> Reserve {
        Reserve {
            state: AtomicU8::new(NONE),
            next_refill_ns: AtomicU64::new(0),
            applied: AtomicU64::new(0),
        }
    }
}

impl Reserve {
    #[inline]
    pub(crate) fn is_out(&self) -> bool {
        self.state.load(Relaxed) == OUT
    }

    /// A file was removed: the medium is asked at the next occasion, not after [`REFILL_NS`].
    pub(crate) fn expect_space(&self) {
        if self.is_out() {
            self.next_refill_ns.store(0, Relaxed);
        }
    }
}

impl Engine {
    /// Work that must go on found no space: the reserve goes back to the medium. `true`: it was
    /// whole, and the work may be tried again.
    pub(crate) fn release_reserve(&self) -> bool {
        if self.reserve.state.compare_exchange(WHOLE, OUT, Relaxed, Relaxed).is_err() {
            return false;
        }
        self.events.error(
            "space_reserve_released",
            &Error::new(ErrorKind::NoSpace, "the medium is full: only deletions are accepted"),
        );
        self.store.set_reserve(0).is_ok()
    }

    /// Does `work`; out of space, once more with the reserve.
    pub(crate) fn with_reserve<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<T> {
        match work() {
            Err(error) if error.kind() == ErrorKind::NoSpace && self.release_reserve() => work(),
            done => done,
        }
    }

    /// What an earlier life kept free counts as whole until it is needed.
    pub(crate) fn begin_reserve(&self) {
        if self.settings.reserve_bytes != Some(0) {
            self.reserve.state.store(WHOLE, Relaxed);
        }
    }

    /// Has the store keep the space free, as far as there is as much.
    pub(crate) fn fill_reserve(&self) {
        let bytes = self.reserve_bytes();
        if bytes == 0 {
            return;
        }
        let state = match self.store.set_reserve(bytes) {
            Ok(true) => WHOLE,
            Ok(false) => NONE,
            Err(error) if error.kind() == ErrorKind::NoSpace => OUT,
            Err(error) => {
                self.events.error("space_reserve_failed", &error);
                NONE
            }
        };
        self.reserve.state.store(state, Relaxed);
    }

    /// Fills the reserve where the medium has twice as much free, so that what it is needed for
    /// next finds space too; flushes deletions otherwise. Asks the medium now and then only.
    pub(crate) fn refill_reserve(self: &Arc<Self>) {
        if !self.reserve.is_out() {
            return;
        }
        let now_ns = self.runtime.now_ns();
        let next_ns = self.reserve.next_refill_ns.load(Relaxed);
        let takes_turn = || {
            let after_ns = now_ns + REFILL_NS;
            self.reserve.next_refill_ns.compare_exchange(next_ns, after_ns, Relaxed, Relaxed)
        };
        if now_ns < next_ns || takes_turn().is_err() {
            return;
        }
        let free_bytes = self.store.space().map_or(u64::MAX, |space| space.free_bytes);
        if free_bytes >= 2 * self.reserve_bytes() {
            self.fill_reserve();
            return;
        }
        if let Err(error) = self.apply_deletions() {
            self.events.error("space_reserve_failed", &error);
        }
    }

    /// Deletions make space once they are in the tree and have met what they delete: no other write
    /// fills a memtable, and no level grows. First a flush, then a compaction of everything, then
    /// the nodes in which versions of a key still lie one above another.
    fn apply_deletions(self: &Arc<Self>) -> Result<()> {
        let sequence = self.snapshots.visible();
        if !self.seal_all()?.is_empty() || !self.scheduler.is_idle() {
            self.runtime.wake();
        } else if self.reserve.applied.swap(sequence, Relaxed) != sequence {
            for &keyspace in self.lock_trees().keyspaces.keys() {
                self.scheduler.add_manual(Manual { keyspace, range: KeyRange::all() });
            }
            self.runtime.wake();
        } else {
            self.rewrite_stacks()?;
        }
        Ok(())
    }

    /// Begins to rewrite nodes whose stacks have several slices, as many as workers take.
    fn rewrite_stacks(self: &Arc<Self>) -> Result<()> {
        let mut due = Vec::new();
        for tree in self.lock_trees().keyspaces.values() {
            for (level, nodes) in (0..).zip(tree.version.levels.iter().map(|level| &level.nodes)) {
                let high = nodes.iter().filter(|node| node.slices.len() > 1);
                due.extend(high.map(|node| (tree.keyspace.clone(), Input::whole(level, node))));
            }
        }
        for (keyspace, input) in due {
            if !self.scheduler.has_room() {
                break;
            }
            scheduler::begin_plan(self, keyspace.id, rewrite(input, &keyspace))?;
        }
        Ok(())
    }

    /// A compaction goes on while the reserve is out only as long as it leaves what the memtables
    /// need. `NoSpace` otherwise: its output so far goes, and with it the space that it took.
    pub(crate) fn check_space_to_rewrite(&self) -> Result<()> {
        if !self.reserve.is_out() {
            return Ok(());
        }
        let Some(space) = self.store.space() else { return Ok(()) };
        if space.free_bytes >= self.settings.flush_bytes {
            return Ok(());
        }
        let message = format!(
            "the medium has {} bytes free and a flush may need {}: no compaction begins or goes on",
            space.free_bytes, self.settings.flush_bytes
        );
        Err(Error::new(ErrorKind::NoSpace, message))
    }

    /// Bytes that are to be kept free.
    fn reserve_bytes(&self) -> u64 {
        if let Some(bytes) = self.settings.reserve_bytes {
            return bytes;
        }
        let trees = self.lock_trees();
        let bytes: u64 = trees.keyspaces.values().map(tree_bytes).sum();
        drop(trees);
        let bytes_max = BYTES_MIN + self.settings.flush_bytes;
        let bytes = (bytes / TREE_SHARE).clamp(BYTES_MIN, bytes_max);
        let medium = self.store.space().map_or(u64::MAX, |space| space.total_bytes / MEDIUM_SHARE);
        bytes.min(medium)
    }

    /// The medium has no space for `batch`, unless it only deletes.
    pub(crate) fn check_reserve(self: &Arc<Self>, batch: &WriteBatch) -> Result<()> {
        if !self.reserve.is_out() {
            return Ok(());
        }
        self.refill_reserve();
        if !self.reserve.is_out() || only_deletes(batch)? {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::NoSpace,
            "the medium is full: only deletions are accepted until there is space again",
        ))
    }
}

/// Bytes of a tree's files.
fn tree_bytes(tree: &TreeState) -> u64 {
    tree.version.file_bytes() + tree.version.segments.usage().total_bytes
}

/// Every operation of `batch` is a deletion.
pub(crate) fn only_deletes(batch: &WriteBatch) -> Result<bool> {
    for operation in batch.iter() {
        if !matches!(operation?.kind, EntryKind::Delete | EntryKind::DeleteRange) {
            return Ok(false);
        }
    }
    Ok(true)
}
