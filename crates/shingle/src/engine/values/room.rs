//! Room for large values, where a capacity bounds the segments.
//!
//! A write that brings large values is committed only where they fit beside all that segments and
//! memtables hold; what one collection writes is kept back. Where they do not fit, the writer has
//! room won, by all means and each once: it waits for what is under way, has retired segments
//! freed, and has the index compacted, which finds the dead among superseded and deleted values.
//! Then it goes on, or gets an error. Writes without large values, deletions before all, never
//! come here.

use crate::admission::StallReason;
use crate::engine::Engine;
use crate::engine::commit::CommitState;
use crate::engine::scheduler::{self, Manual};
use crate::keyspace::KeyspaceState;
use crate::value_rules::SweptAt;
use base::key::SEQUENCE_MAX;
use base::{EntryKind, Error, ErrorKind, KeyRange, KeyspaceId, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use table::batch::WriteBatch;
use tree::segments::Usage;
use tree::{Cut, Input, Move, Plan, Reason};
use values::record::record_bytes;

/// What a write misses.
pub(crate) struct LackOfRoom {
    keyspace: Arc<KeyspaceState>,
    /// Bytes of the records of its large values.
    wanted_bytes: u64,
}

/// The first keyspace whose segments lack room for the large values of `batch`.
pub(crate) fn lack_of_room(state: &CommitState, batch: &WriteBatch) -> Result<Option<LackOfRoom>> {
    let mut wanted: BTreeMap<KeyspaceId, u64> = BTreeMap::new();
    for operation in batch.iter() {
        let operation = operation?;
        let Some(active) = state.active(operation.keyspace) else { continue };
        let is_large = operation.value.len() as u64 >= active.keyspace.values.threshold_bytes;
        if operation.kind == EntryKind::Put && is_large {
            let bytes = record_bytes(SEQUENCE_MAX, operation.key, Some(operation.value));
            *wanted.entry(operation.keyspace).or_default() += bytes as u64;
        }
    }
    let lack = wanted.into_iter().find_map(|(id, wanted_bytes)| {
        let keyspace = state.active(id)?.keyspace.clone();
        let room_bytes = keyspace.value_room_bytes(state.pending_bytes(id))?;
        (room_bytes < wanted_bytes).then_some(LackOfRoom { keyspace, wanted_bytes })
    });
    Ok(lack)
}

impl LackOfRoom {
    fn is_over(&self, engine: &Engine) -> bool {
        let pending_bytes = engine.lock_commit().pending_bytes(self.keyspace.id);
        let room_bytes = self.keyspace.value_room_bytes(pending_bytes);
        // The commit says what there is to say of a dropped keyspace.
        room_bytes.is_none_or(|bytes| bytes >= self.wanted_bytes) || self.keyspace.is_dropped()
    }

    fn error(&self, engine: &Engine) -> Error {
        let rules = &self.keyspace.values;
        let segments = &self.keyspace.view().tree.segments;
        let Usage { total_bytes, dead_bytes, retired_bytes } = segments.usage();
        let capacity_bytes = rules.capacity_bytes().unwrap_or(u64::MAX);
        let room_bytes = rules.room_bytes(total_bytes).unwrap_or(u64::MAX);
        let held = match engine.snapshots.oldest() {
            Some(_) => "; snapshots and iterators keep old values: drop them",
            None => "",
        };
        let message = format!(
            "the value segments of keyspace `{}` are full: {total_bytes} of {capacity_bytes} bytes \
             are taken ({dead_bytes} dead, {retired_bytes} kept for older readers), {room_bytes} \
             can be written beside what garbage collection needs, and this write has {} bytes of \
             large values; delete values, or raise value_capacity_bytes{held}",
            self.keyspace.name, self.wanted_bytes,
        );
        Error::new(ErrorKind::NoSpace, message)
    }
}

impl Engine {
    /// Wins room for a write that lacks it; an error where there is none to win. Who must not wait
    /// gets `WouldWait` where winning it takes time.
    pub(crate) fn make_room(self: &Arc<Self>, lack: &LackOfRoom, waits: bool) -> Result<()> {
        if !waits {
            return Err(self.refuse(lack));
        }
        let _inside = self.enter()?;
        let begin_ns = self.runtime.now_ns();
        let won = self.win_room(lack);
        self.admission.record(StallReason::ValueSpace, self.runtime.now_ns() - begin_ns);
        won
    }

    /// The error of a write that lacks room and must not wait.
    fn refuse(self: &Arc<Self>, lack: &LackOfRoom) -> Error {
        // Who holds it is winning room.
        let Ok(swept) = lack.keyspace.values.swept.try_lock() else { return would_wait() };
        let can_win = !scheduler::is_idle(self)
            || self.needs_flush(lack)
            || *swept != Some(self.sweep_state());
        if can_win { would_wait() } else { lack.error(self) }
    }

    fn win_room(self: &Arc<Self>, lack: &LackOfRoom) -> Result<()> {
        let rules = &lack.keyspace.values;
        // One writer at a time: the others find what it won.
        let mut swept = rules.swept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut least_bytes = u64::MAX;
        let mut may_sweep = true;
        while !lack.is_over(self) {
            self.check_writable()?;
            self.settle_values(lack)?;
            let bytes = lack.keyspace.segment_bytes();
            let is_less = bytes < least_bytes;
            least_bytes = least_bytes.min(bytes);
            let state = self.sweep_state();
            if may_sweep && *swept != Some(state) && !lack.is_over(self) {
                may_sweep = false;
                let was_held = swept.is_some_and(|(_, oldest)| oldest.is_some());
                self.compact_index(lack, was_held)?;
                *swept = Some(state);
            } else if !is_less && !lack.is_over(self) {
                return Err(lack.error(self));
            }
        }
        Ok(())
    }

    /// Waits for what is under way and due. Memtables are counted with all their bytes, and retired
    /// segments wait for them: they are flushed.
    fn settle_values(self: &Arc<Self>, lack: &LackOfRoom) -> Result<()> {
        // What commits append to cannot be collected.
        self.lock_commit().end_front(lack.keyspace.id);
        let ends = || lack.is_over(self) || scheduler::is_idle(self);
        self.wait_for(ends)?;
        let mut needs_flush = self.needs_flush(lack);
        while needs_flush && !lack.is_over(self) {
            self.flush_all()?;
            self.wait_for(ends)?;
            let version = self.lock_trees().tree(lack.keyspace.id)?.version.clone();
            needs_flush = self.unflushed_retired_bytes(lack.keyspace.id, &version) > 0;
        }
        Ok(())
    }

    /// Memtables hold something.
    fn needs_flush(&self, lack: &LackOfRoom) -> bool {
        self.lock_commit().unflushed_sequence(lack.keyspace.id).is_some()
    }

    /// What a compaction of the index for the sake of dead values goes by.
    fn sweep_state(&self) -> SweptAt {
        let oldest = self.snapshots.oldest().map(|(sequence, _)| sequence);
        (self.lock_commit().user_sequence, oldest)
    }

    /// Brings versions of a key together, so that dead values are found. `in_place`: also those
    /// that lie together already, and were kept for a snapshot.
    fn compact_index(self: &Arc<Self>, lack: &LackOfRoom, in_place: bool) -> Result<()> {
        let id = lack.keyspace.id;
        self.scheduler.add_manual(Manual { keyspace: id, range: KeyRange::all() });
        self.runtime.wake();
        self.wait_for(|| !self.scheduler.has_manual())?;
        if !in_place {
            return Ok(());
        }
        let version = self.lock_trees().tree(id)?.version.clone();
        for (level, nodes) in (0..).zip(version.levels.iter().map(|level| &level.nodes)) {
            for node in nodes.iter().filter(|node| !node.slices.is_empty()) {
                let input = Input::whole(level, node);
                scheduler::begin_plan(self, id, rewrite(input, &lack.keyspace))?;
                self.wait_for(|| scheduler::is_idle(self))?;
            }
        }
        Ok(())
    }

    /// What segments weigh for admission: beyond the soft limit, what collections can give back.
    pub(crate) fn value_pressure(&self, usage: &Usage) -> u64 {
        let soft = self.settings.admission.value_bytes_soft;
        let reclaimable = usage.dead_bytes + usage.retired_bytes;
        usage.total_bytes.min(soft.saturating_add(reclaimable))
    }
}

/// A node is merged with itself.
pub(crate) fn rewrite(input: Input, keyspace: &KeyspaceState) -> Plan {
    let table_bytes_max = keyspace.limits.table_bytes_max;
    let cut = Cut { table_bytes_max, overlap_bytes_max: None };
    let (to_level, one_file, parallel_max) = (input.level, false, 1);
    Plan {
        action: Move::Merge { inputs: vec![input], to_level, cut, one_file, parallel_max },
        reason: Reason::Garbage,
        score: 1.0,
        read_bytes: 0,
        write_bytes: 0,
        cursors: Vec::new(),
    }
}

fn would_wait() -> Error {
    let message = "would wait for room in the value segments: value-space";
    Error::new(ErrorKind::WouldWait, message)
}
