//! Reclaims space for large values, where a capacity bounds the segments.
//!
//! A write with large values is committed only if they fit beside everything in segments and
//! memtables, and beside the space reserved for one GC. If they do not fit, the writer tries each
//! way to reclaim space once:
//! - it waits for what its keyspace has in progress or due, and background work of that keyspace
//!   comes before that of others;
//! - it has retired segments removed;
//! - it has the index compacted, which finds the garbage among overwritten and deleted values.
//!
//! Then the write goes on, or fails. Writes without large values never come here; above all,
//! deletions do not.

use crate::admission::StallReason;
use crate::engine::Engine;
use crate::engine::values::capacity::LackOfSpace;
use crate::engine::{requests, scheduler};
use crate::value_rules::SweptAt;
use base::{Error, ErrorKind, Result};
use std::sync::Arc;
use tree::Input;
use tree::policy::Wanted;

impl Engine {
    /// Reclaims space for a write that lacks it; an error where none can be reclaimed. A caller
    /// that must not wait gets `WouldWait` if that takes time.
    pub(crate) fn make_space(self: &Arc<Self>, lack: &LackOfSpace, waits: bool) -> Result<()> {
        if !waits {
            return Err(self.refuse(lack));
        }
        let _inside = self.enter()?;
        let begin_ns = self.runtime.now_ns();
        let won = self.reclaim_space(lack);
        self.admission.record(StallReason::ValueSpace, self.runtime.now_ns() - begin_ns);
        won
    }

    /// The error of a write that lacks space and must not wait.
    fn refuse(self: &Arc<Self>, lack: &LackOfSpace) -> Error {
        // The thread that holds the lock is reclaiming space.
        let Some(swept) = lack.keyspace.values.swept.try_lock() else { return would_wait() };
        let can_win = !scheduler::is_settled(self, lack.keyspace.id)
            || self.needs_flush(lack)
            || *swept != Some(self.sweep_state());
        if can_win { would_wait() } else { lack.error(&self.snapshots) }
    }

    fn reclaim_space(self: &Arc<Self>, lack: &LackOfSpace) -> Result<()> {
        let rules = &lack.keyspace.values;
        // One writer at a time: the others find the space that it reclaimed.
        let mut swept = rules.swept.lock();
        let mut least_bytes = u64::MAX;
        let mut may_sweep = true;
        while !self.has_space_again(lack) {
            self.check_writable()?;
            self.settle_values(lack)?;
            let bytes = lack.keyspace.segment_bytes();
            let is_less = bytes < least_bytes;
            least_bytes = least_bytes.min(bytes);
            let state = self.sweep_state();
            if may_sweep && *swept != Some(state) && !self.has_space_again(lack) {
                may_sweep = false;
                let was_held = swept.is_some_and(|(_, oldest)| oldest.is_some());
                self.compact_index(lack, was_held)?;
                *swept = Some(state);
            } else if !is_less && !self.has_space_again(lack) {
                return Err(lack.error(&self.snapshots));
            }
        }
        Ok(())
    }

    /// Waits for work of the keyspace that is in progress or due. Flushes the memtables too: they
    /// are counted with all their bytes, and retired segments wait for their flush.
    fn settle_values(self: &Arc<Self>, lack: &LackOfSpace) -> Result<()> {
        // GC cannot read the segment that commits append to.
        self.commits.lock().end_active_segment(lack.keyspace.id);
        let ends = || self.has_space_again(lack) || scheduler::is_settled(self, lack.keyspace.id);
        self.wait_for(ends)?;
        let mut needs_flush = self.needs_flush(lack);
        while needs_flush && !self.has_space_again(lack) {
            self.flush_all()?;
            self.wait_for(ends)?;
            let version = self.versions.lock().tree(lack.keyspace.id)?.version.clone();
            needs_flush = self.unflushed_retired_bytes(lack.keyspace.id, &version) > 0;
        }
        Ok(())
    }

    fn has_space_again(&self, lack: &LackOfSpace) -> bool {
        lack.is_over(self.commits.lock().pending_bytes(lack.keyspace.id))
    }

    /// The memtables hold something.
    fn needs_flush(&self, lack: &LackOfSpace) -> bool {
        self.commits.lock().unflushed_sequence(lack.keyspace.id).is_some()
    }

    /// The state that a compaction of the index for the sake of garbage depends on.
    fn sweep_state(&self) -> SweptAt {
        let oldest = self.snapshots.oldest().map(|(sequence, _)| sequence);
        (self.commits.lock().user_sequence, oldest)
    }

    /// Brings versions of a key together, so that garbage is found. `in_place`: also those that are
    /// in one run already, and were kept for a snapshot.
    fn compact_index(self: &Arc<Self>, lack: &LackOfSpace, in_place: bool) -> Result<()> {
        let id = lack.keyspace.id;
        let written_through = self.snapshots.visible();
        let wanted = Wanted { written_through, ..Wanted::all() };
        let requested = self.scheduler.request_manual(id, wanted);
        self.runtime.wake();
        self.wait_for(|| requested.is_done())?;
        if !in_place {
            return Ok(());
        }
        let version = self.versions.lock().tree(id)?.version.clone();
        for (level, nodes) in (0..).zip(version.levels.iter().map(|level| &level.nodes)) {
            for node in nodes.iter().filter(|node| !node.slices.is_empty()) {
                let input = Input::whole(level, node);
                requests::begin_plan(self, id, requests::rewrite(input, &lack.keyspace))?;
                self.wait_for(|| scheduler::is_settled(self, id))?;
            }
        }
        Ok(())
    }
}

fn would_wait() -> Error {
    let message = "would wait for space in the value segments: value-space";
    Error::new(ErrorKind::WouldWait, message)
}
