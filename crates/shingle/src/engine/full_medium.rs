//! Works with a full medium, while the reserve is released: applies deletions to free space, and
//! fills the reserve again when enough space is free.

use crate::engine::reserve::only_deletes;
use crate::engine::trees::TreeState;
use crate::engine::{Engine, requests};
use crate::event::Event;
use base::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use table::batch::WriteBatch;
use tree::Input;
use tree::policy::Wanted;

/// The reserve has what the memtables hold, and at least this share of the bytes of all trees...
const TREE_SHARE: u64 = 16;
/// ... at most this many write buffers: one is flushed while the next fills...
const BUFFERS_MAX: u64 = 2;
/// ... and this for edits and a log...
const BYTES_MIN: u64 = 1 << 20;
/// ... but not more than this share of the medium.
const MEDIUM_SHARE: u64 = 4;

impl Engine {
    /// Has the store keep the reserve free, or as much of it as is free.
    pub(crate) fn fill_reserve(&self) {
        let bytes = self.reserve_bytes();
        if bytes > 0 {
            self.reserve.fill(self.store.capacity(), &self.events, bytes);
        }
        if self.reserve.is_out() && self.give_up_change_logs() {
            self.reserve.fill(self.store.capacity(), &self.events, bytes);
        }
    }

    /// Fills the reserve if the medium has twice as much free, so that its next user finds space
    /// too. Otherwise applies deletions. Asks the medium only from time to time.
    pub(crate) fn refill_reserve(self: &Arc<Self>) {
        if !self.reserve.takes_turn(self.runtime.now_ns()) {
            return;
        }
        self.fill_reserve_if_possible();
        if !self.reserve.is_out() {
            self.versions.lock().end_lacks_of_space(u64::MAX);
        } else if let Err(error) = self.apply_deletions() {
            self.events.add(Event::SpaceReserveFailed { error });
        }
    }

    fn fill_reserve_if_possible(&self) {
        let free_bytes = self.space().map_or(u64::MAX, |space| space.free_bytes);
        if free_bytes >= 2 * self.reserve_bytes() {
            self.fill_reserve();
        }
    }

    /// The reserve grows with the memtables: what was not flushed when the medium became full is
    /// flushed by a close or by the next opening.
    pub(crate) fn grow_reserve(&self) {
        let is_fixed = self.settings.reserve_bytes.is_some();
        if is_fixed || self.memory.memtable_bytes() <= self.reserve.bytes() {
            return;
        }
        if self.reserve.takes_turn_to_grow(self.runtime.now_ns())
            && self.reserve_bytes() > self.reserve.bytes()
        {
            self.fill_reserve_if_possible();
        }
    }

    /// Applies deletions. They free space once they are in the tree and have been merged with what
    /// they delete. No other write fills a memtable now, and no level grows. So this begins a
    /// flush, then a compaction of everything, and then rewrites the nodes that still have several
    /// versions of a key.
    fn apply_deletions(self: &Arc<Self>) -> Result<()> {
        let sequence = self.snapshots.visible();
        if !self.commits.seal_all()?.is_empty() || !self.scheduler.is_idle() {
            self.runtime.wake();
        } else if self.reserve.applied.swap(sequence, Relaxed) != sequence {
            let wanted = Wanted { written_through: sequence, ..Wanted::all() };
            for &keyspace in self.versions.lock().keyspaces.keys() {
                self.scheduler.add_manual(keyspace, wanted.clone());
            }
            self.runtime.wake();
        } else {
            self.rewrite_stacks()?;
        }
        Ok(())
    }

    /// Begins to rewrite nodes whose stacks have several slices, up to the number of workers.
    fn rewrite_stacks(self: &Arc<Self>) -> Result<()> {
        let mut due = Vec::new();
        for tree in self.versions.lock().keyspaces.values() {
            for (level, nodes) in (0..).zip(tree.version.levels.iter().map(|level| &level.nodes)) {
                let high = nodes.iter().filter(|node| node.slices.len() > 1);
                due.extend(high.map(|node| (tree.keyspace.clone(), Input::whole(level, node))));
            }
        }
        for (keyspace, input) in due {
            if !self.scheduler.has_free_slot() {
                break;
            }
            requests::begin_plan(self, keyspace.id, requests::rewrite(input, &keyspace))?;
        }
        Ok(())
    }

    /// Bytes to keep free.
    fn reserve_bytes(&self) -> u64 {
        if let Some(bytes) = self.settings.reserve_bytes {
            return bytes;
        }
        let trees = self.versions.lock();
        let bytes: u64 = trees.keyspaces.values().map(tree_bytes).sum();
        drop(trees);
        let bytes = (bytes / TREE_SHARE).max(self.memory.memtable_bytes());
        let bytes = BYTES_MIN + bytes.min(BUFFERS_MAX * self.settings.flush_bytes);
        let medium = self.space().map_or(u64::MAX, |space| space.total_bytes / MEDIUM_SHARE);
        bytes.min(medium)
    }

    /// The medium has no space for `batch`, unless it only deletes, or there is space again. The
    /// background is asked for it.
    #[inline]
    pub(crate) fn check_reserve(&self, batch: &WriteBatch) -> Result<()> {
        if self.reserve.is_out() { self.check_released(batch) } else { Ok(()) }
    }

    #[cold]
    fn check_released(&self, batch: &WriteBatch) -> Result<()> {
        self.runtime.wake();
        if only_deletes(batch) {
            return Ok(());
        }
        self.fill_reserve_if_possible();
        if !self.reserve.is_out() {
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
