//! Sealing: full memtables make way for new ones and wait for their flush.
//!
//! Invariants:
//! - Keyspaces without a log are sealed together, all or none: a flush of what is sealed then makes
//!   durable what they had at one point of the commit order.
//! - A batch is in the memtables as a whole before one of them is sealed.

use crate::engine::commit::Commits;
use crate::engine::commit_state::{Active, CommitState, OpenLog, Sealed};
use crate::memtable::Memtable;
use base::{KeyspaceId, Result};
use std::sync::Arc;
use table::batch::WriteBatch;

impl Commits {
    /// Seals where `batch` has made a memtable full, or all of them together.
    pub(super) fn seal_full_memtables(
        &self,
        state: &mut CommitState,
        batch: &WriteBatch,
    ) -> Result<()> {
        let is_any_full = match batch.only_keyspace() {
            Some(id) => state.actives.get(&id).is_some_and(|active| self.is_full(active)),
            None => state.actives().any(|active| self.is_full(active)),
        };
        match is_any_full || state.active_bytes >= self.settings.flush_bytes {
            true => self.seal_due(state),
            false => Ok(()),
        }
    }

    #[inline]
    fn is_full(&self, active: &Active) -> bool {
        self.settings.is_full(active.writer.memtable())
            || active.values.unflushed.bytes >= self.settings.unflushed_value_bytes_max
    }

    /// Seals the full memtables; without such, the largest ones.
    #[cold]
    fn seal_due(&self, state: &mut CommitState) -> Result<()> {
        let full = state.actives().filter(|active| self.is_full(active));
        let full: Vec<KeyspaceId> = full.map(|active| active.keyspace.id).collect();
        let due = if full.is_empty() { state.largest_actives() } else { full };
        // Memtables that are flushed together share a log: a new file costs a writer more than a
        // seal.
        let settings = &self.settings;
        self.seal_and_end_log(state, &due, |log| {
            log.seals >= settings.flush_memtables || log.writer.bytes() >= settings.log_bytes_soft
        })
    }

    /// Seals the memtables of `keyspaces` (those with entries), and begins a new log.
    pub(crate) fn seal(&self, state: &mut CommitState, keyspaces: &[KeyspaceId]) -> Result<()> {
        self.seal_and_end_log(state, keyspaces, |_| true)
    }

    /// Seals the memtables of `keyspaces` (those with entries). Begins a new log if `is_full`
    /// returns true for the current one.
    fn seal_and_end_log(
        &self,
        state: &mut CommitState,
        keyspaces: &[KeyspaceId],
        is_full: impl Fn(&OpenLog) -> bool,
    ) -> Result<()> {
        let mut ids = keyspaces.to_vec();
        let touches_unlogged = |id: &KeyspaceId| {
            state.actives.get(id).is_some_and(|active| active.keyspace.options.without_wal)
        };
        if ids.iter().any(touches_unlogged) {
            // Keyspaces without a log are flushed together, at one point of the commit order.
            let unlogged = state.actives.values().filter(|a| a.keyspace.options.without_wal);
            ids.extend(unlogged.map(|active| active.keyspace.id));
            ids.sort_unstable();
            ids.dedup();
        }
        self.seal_together(state, &ids)?;
        let of_old_logs = state.keyspaces_of_old_logs(self.settings.log_bytes_max);
        self.seal_together(state, &of_old_logs)?;
        self.note_memtables(state);
        self.memtables_changed();
        if let Some(log) = &mut state.log {
            log.seals += 1;
        }
        if state.log.as_ref().is_some_and(is_full) && !self.is_closing() {
            match self.begin_log(state) {
                // Without space or a descriptor for a new log, the old one goes on.
                Err(error) if error.is_lack() => {}
                begun => begun?,
            }
        }
        self.sealed.signal();
        self.runtime.wake();
        Ok(())
    }

    /// Tells the memory account how much the memtables hold.
    pub(crate) fn note_memtables(&self, state: &CommitState) {
        // The active memtables will grow at least to the size of one memtable.
        // Where databases share their memory, only what they have counts: most of them are small.
        let expected_bytes = match self.memory.share() {
            Some(_) => 0,
            None => self.settings.memtable_bytes_max,
        };
        let active_bytes = state.active_bytes.max(expected_bytes);
        self.memory.set_memtables(active_bytes, state.sealed_bytes());
    }

    /// Seals the memtables of `ids` that have entries: all of them, or none if memory for those
    /// that follow is lacking.
    fn seal_together(&self, state: &mut CommitState, ids: &[KeyspaceId]) -> Result<()> {
        let mut following = Vec::with_capacity(ids.len());
        for id in ids {
            let active = state.actives.get_mut(id);
            if let Some(active) = active.filter(|active| !active.writer.memtable().is_empty()) {
                let start = active.next_key_start();
                following.push((*id, Memtable::of_pool(self.memory.chunks(), &start)?));
            }
        }
        for (id, (fresh, writer)) in following {
            let Some(active) = state.actives.get_mut(&id) else { continue };
            let full = std::mem::replace(&mut active.writer, writer);
            full.seal(state.next_sequence - 1);
            let sealed = Sealed {
                keyspace: active.keyspace.clone(),
                memtable: full.memtable().clone(),
                first_log: active.first_log.take(),
                bytes: full.memtable().bytes(),
                unflushed: std::mem::take(&mut active.values.unflushed),
                is_flushing: false,
            };
            state.active_bytes -= std::mem::take(&mut active.counted_bytes);
            active.keyspace.seal(fresh);
            state.sealed.push(sealed);
        }
        Ok(())
    }

    /// Requests a background flush of everything in memory; returns the memtables concerned.
    pub(crate) fn seal_all(&self) -> Result<Vec<Arc<Memtable>>> {
        let mut state = self.lock();
        self.check_poisoned()?;
        let ids: Vec<KeyspaceId> = state.actives().map(|active| active.keyspace.id).collect();
        if state.actives().any(|active| !active.writer.memtable().is_empty()) {
            self.seal(&mut state, &ids)?;
        }
        state.flush_through = self.snapshots.visible();
        Ok(state.sealed.iter().map(|sealed| sealed.memtable.clone()).collect())
    }
}
