//! The commit: a batch gets its place in the order, goes to the log, and into the memtables.
//!
//! One short lock orders the commits. Under it a batch is appended to the log with one request and
//! inserted into the memtables; then it is visible. A synced write waits for the log outside the
//! lock (`sync`), so that one request to the device serves everybody who appended before it.
//!
//! Invariants:
//! - Sequence numbers, log positions and memtable inserts have one order.
//! - A batch is whole: its operations become visible together, and its log record is one frame.
//! - After a failed append nothing more is written: the record may be half there.

use crate::engine::Engine;
use crate::engine::reserve::only_deletes;
use crate::engine::values::front::{Fronted, Reach};
use crate::engine::values::room::{LackOfRoom, lack_of_room};
use crate::keyspace::KeyspaceState;
use crate::memtable::{Memtable, Writer};
use crate::read::moment::Moment;
use base::key::{SequenceNumber, common_prefix};
use base::{Cause, Error, ErrorKind, FileId, KeyspaceId, Result};
use media::{FileHint, FileName, SyncFile};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use table::batch::WriteBatch;
use table::log::{LogHeader, LogKind, LogWriter, PreviousLog};

/// What the commit lock guards.
pub(crate) struct CommitState {
    /// The log that takes records; `None` before the first and in a read-only database.
    pub log: Option<OpenLog>,
    /// The next batch begins at this sequence number.
    pub next_sequence: SequenceNumber,
    /// The last one in a log of this life: unlike `next_sequence`, what a reader of the logs finds.
    logged_sequence: SequenceNumber,
    /// The last one of a user's write in this life: collections change pointers, not content.
    pub user_sequence: SequenceNumber,
    actives: HashMap<KeyspaceId, Active>,
    /// Sealed memtables that wait for their flush, oldest first.
    pub sealed: Vec<Sealed>,
    /// Logs that were replaced and may not be durable yet, oldest first.
    pub replaced: Vec<(FileId, Arc<dyn SyncFile>)>,
    /// Segments that commits wrote to since the last sync.
    pub unsynced_values: BTreeMap<FileId, Arc<dyn SyncFile>>,
    /// Segments that commits wrote to, and that memtables may still point into.
    pub ended_fronts: Vec<(Arc<KeyspaceState>, FileId)>,
    /// Every log that still exists, oldest first.
    pub logs: Vec<LiveLog>,
    /// Sealed memtables that need a log up to this one are flushed, so that it can go.
    pub flush_logs_through: Option<FileId>,
    /// Bytes in active memtables.
    active_bytes: u64,
    /// Somebody waits for a flush of everything up to this sequence number.
    pub flush_through: SequenceNumber,
}

/// A log that still exists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveLog {
    pub file: FileId,
    /// Its length once it takes no more records; 0 before, and for logs of an earlier life.
    pub bytes: u64,
}

/// The log that takes records.
pub(crate) struct OpenLog {
    pub file: FileId,
    pub writer: LogWriter,
    pub syncer: Arc<dyn SyncFile>,
    /// An append found no room: the next record goes to a new log.
    pub is_broken: bool,
    /// Seals since it began.
    seals: usize,
}

/// The memtable that takes a keyspace's writes, with the right to write it.
pub(crate) struct Active {
    pub keyspace: Arc<KeyspaceState>,
    pub writer: Writer,
    /// What all keys of the memtable before it began with; `None` without one.
    pub key_start_before: Option<Vec<u8>>,
    /// The log that holds its first entry; `None` while it is empty, or without a log.
    pub first_log: Option<FileId>,
    /// Its bytes in the sum over all active memtables.
    pub counted_bytes: u64,
    /// The large values that commits write apart.
    pub fronted: Fronted,
}

impl Active {
    /// What the keys of the next memtable will begin with, most of them: what all keys of the last
    /// two do. Two, as the keys of a sequential load move on.
    fn next_key_start(&mut self) -> Vec<u8> {
        let mut start = self.writer.memtable().common_key_start().unwrap_or_default();
        if let Some(before) = self.key_start_before.replace(start.clone()) {
            start.truncate(common_prefix(&start, &before));
        }
        start
    }
}

/// A memtable that waits for its flush.
pub(crate) struct Sealed {
    pub keyspace: Arc<KeyspaceState>,
    pub memtable: Arc<Memtable>,
    /// The first log that it needs.
    pub first_log: Option<FileId>,
    pub bytes: u64,
    /// The large values that it points to.
    pub reach: Reach,
    /// A flush of it is under way.
    pub is_flushing: bool,
}

/// What a commit got.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Committed {
    /// A sync must reach this.
    pub position: LogPosition,
    /// Of the batch's last operation.
    pub last_sequence: SequenceNumber,
}

/// What became of a user's batch.
pub(crate) enum Outcome {
    Committed(Committed),
    /// Nothing happened: the segments of a keyspace lack room for its large values.
    LacksRoom(LackOfRoom),
    /// Nothing happened: a keyspace lacks a segment for its large values.
    LacksFront(Arc<KeyspaceState>),
}

/// How far a commit reached in the log, for a sync that must cover it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct LogPosition {
    pub file: FileId,
    pub bytes: u64,
}

impl CommitState {
    pub(crate) fn new(next_sequence: SequenceNumber) -> CommitState {
        CommitState {
            log: None,
            next_sequence,
            logged_sequence: 0,
            user_sequence: 0,
            actives: HashMap::new(),
            sealed: Vec::new(),
            replaced: Vec::new(),
            unsynced_values: BTreeMap::new(),
            ended_fronts: Vec::new(),
            logs: Vec::new(),
            flush_logs_through: None,
            active_bytes: 0,
            flush_through: 0,
        }
    }

    pub(crate) fn add_keyspace(&mut self, active: Active) {
        self.actives.insert(active.keyspace.id, active);
    }

    /// Forgets a dropped keyspace, with its memtables.
    pub(crate) fn remove_keyspace(&mut self, id: KeyspaceId) {
        let active = self.actives.remove(&id);
        self.active_bytes -= active.map_or(0, |active| active.counted_bytes);
        self.sealed.retain(|sealed| sealed.keyspace.id != id);
    }

    pub(crate) fn active(&self, id: KeyspaceId) -> Option<&Active> {
        self.actives.get(&id)
    }

    pub(crate) fn active_mut(&mut self, id: KeyspaceId) -> Option<&mut Active> {
        self.actives.get_mut(&id)
    }

    /// What the memtables of a keyspace may bring into its segments, at the most.
    pub(crate) fn pending_bytes(&self, id: KeyspaceId) -> u64 {
        let sealed = self.sealed.iter().filter(|sealed| sealed.keyspace.id == id);
        let active = self.actives.get(&id);
        let active = active.map_or(0, |active| active.counted_bytes + active.fronted.reach.bytes);
        sealed.map(|sealed| sealed.bytes + sealed.reach.bytes).sum::<u64>() + active
    }

    /// The first sequence number that memtables of a keyspace hold.
    pub(crate) fn unflushed_sequence(&self, id: KeyspaceId) -> Option<SequenceNumber> {
        let sealed = self.sealed.iter().filter(|sealed| sealed.keyspace.id == id);
        let active = self.actives.get(&id).map(|active| active.writer.memtable());
        let all = sealed.map(|sealed| &sealed.memtable).chain(active);
        all.filter_map(|memtable| memtable.sequence_min()).min()
    }

    pub(crate) fn actives(&self) -> impl Iterator<Item = &Active> {
        self.actives.values()
    }

    /// The oldest log that some memtable outside `flushed` still needs.
    pub(crate) fn log_floor(&self, flushed: &[Arc<Memtable>]) -> Option<FileId> {
        let is_flushed = |m: &Arc<Memtable>| flushed.iter().any(|f| Arc::ptr_eq(f, m));
        let sealed = self.sealed.iter().filter(|s| !is_flushed(&s.memtable));
        let needed = sealed
            .filter_map(|s| s.first_log)
            .chain(self.actives.values().filter_map(|a| a.first_log));
        needed.chain(self.log.as_ref().map(|log| log.file)).min()
    }

    /// Bytes in sealed memtables.
    pub(crate) fn sealed_bytes(&self) -> u64 {
        self.sealed.iter().map(|sealed| sealed.bytes).sum()
    }

    /// When logs have more than `bytes_max` bytes: the keyspaces whose active memtables need one of
    /// the oldest, without which half of that is left. They may not have been written for long.
    fn keyspaces_of_old_logs(&mut self, bytes_max: u64) -> Vec<KeyspaceId> {
        let mut bytes: u64 = self.logs.iter().map(|log| log.bytes).sum();
        if bytes <= bytes_max {
            return Vec::new();
        }
        let mut through = None;
        for log in &self.logs {
            if bytes <= bytes_max / 2 || self.log.as_ref().is_some_and(|l| l.file == log.file) {
                break;
            }
            through = Some(log.file);
            bytes -= log.bytes;
        }
        self.flush_logs_through = through.max(self.flush_logs_through);
        let is_old = |active: &&Active| active.first_log.is_some() && active.first_log <= through;
        self.actives.values().filter(is_old).map(|active| active.keyspace.id).collect()
    }

    /// The fewest active memtables, largest first, that have half of the bytes in all of them.
    fn largest_actives(&self) -> Vec<KeyspaceId> {
        let mut actives: Vec<(u64, KeyspaceId)> =
            self.actives.values().map(|a| (a.counted_bytes, a.keyspace.id)).collect();
        actives.sort_unstable_by(|a, b| b.cmp(a));
        let mut rest = self.active_bytes / 2;
        let is_needed = |&(bytes, _): &(u64, KeyspaceId)| {
            let needed = rest > 0;
            rest = rest.saturating_sub(bytes);
            needed
        };
        actives.into_iter().take_while(is_needed).map(|(_, id)| id).collect()
    }

    /// Where the log stands.
    pub(crate) fn position(&self) -> LogPosition {
        match &self.log {
            Some(log) => LogPosition { file: log.file, bytes: log.writer.bytes() },
            None => LogPosition::default(),
        }
    }
}

impl Engine {
    /// Commits `batch`. `is_synced`: the caller will promise that it is durable.
    pub(crate) fn commit(self: &Arc<Self>, batch: &WriteBatch, is_synced: bool) -> Result<Outcome> {
        if batch.is_empty() {
            return Ok(Outcome::Committed(Committed::default()));
        }
        self.check_reserve(batch)?;
        let mut state = self.lock_commit();
        self.check_writable()?;
        let with_log = check_keyspaces(&state, batch)?;
        if is_synced && !with_log {
            return Err(Error::invalid(
                "a write to a keyspace without a log cannot be synced: call `flush`",
            ));
        }
        if self.settings.bounds_values()
            && let Some(lack) = lack_of_room(&state, batch)?
        {
            return Ok(Outcome::LacksRoom(lack));
        }
        if with_log && let Some(keyspace) = self.lacks_front(&state, batch)? {
            return Ok(Outcome::LacksFront(keyspace));
        }
        let committed = self.commit_checked(&mut state, batch, with_log)?;
        state.user_sequence = committed.last_sequence;
        self.ledger().user_wrote(batch.user_bytes());
        Ok(Outcome::Committed(committed))
    }

    /// Commits `batch`, which the lock's holder checked.
    fn commit_checked(
        &self,
        state: &mut CommitState,
        batch: &WriteBatch,
        with_log: bool,
    ) -> Result<Committed> {
        let first = state.next_sequence;
        let separated = match with_log {
            true => self.write_to_fronts(state, first, batch)?,
            false => None,
        };
        let logged = separated.as_ref().map_or(batch, |separated| &separated.batch);
        let appended = match with_log {
            true => self.append_or_reserve(state, first, logged),
            false => Ok(()),
        };
        if let Some(separated) = &separated {
            match &appended {
                Ok(()) => state.note_fronts(separated),
                Err(_) => state.give_up(separated),
            }
        }
        appended?;
        let last = self.insert(state, first, logged)?;
        state.next_sequence = last + 1;
        if with_log {
            state.logged_sequence = last;
        }
        self.snapshots.publish(last);
        let position = state.position();
        self.seal_full_memtables(state, batch)?;
        Ok(Committed { position, last_sequence: last })
    }

    /// Commits `batch`, which stands for what a reader saw of `keys` at `moment`; gives its last
    /// sequence number, or the moment's for an empty one. `None`, and no change, when something
    /// newer was written to one of them, or may have been.
    pub(crate) fn commit_unless_newer(
        &self,
        keyspace: &KeyspaceState,
        moment: &Moment,
        keys: &[&[u8]],
        batch: &WriteBatch,
    ) -> Result<Option<SequenceNumber>> {
        if batch.is_empty() {
            return Ok(Some(moment.sequence()));
        }
        let mut state = self.lock_commit();
        self.check_writable()?;
        let with_log = check_keyspaces(&state, batch)?;
        let active = state.actives.get(&keyspace.id).map(|active| active.writer.memtable());
        let sealed = state.sealed.iter().filter(|sealed| sealed.keyspace.id == keyspace.id);
        let mut memtables: Vec<&Arc<Memtable>> = sealed.map(|sealed| &sealed.memtable).collect();
        memtables.extend(active);
        // The view holds all that is not newer than the moment. What is newer is in its active
        // memtable or in those after it, and they are in memory as long as that itself is.
        let last = &moment.view().active;
        let is_known = memtables.iter().any(|m| Arc::ptr_eq(m, last));
        let seen = moment.sequence();
        let has_newer = |key: &&[u8]| memtables.iter().any(|m| m.has_newer(key, seen));
        if !is_known || keys.iter().any(has_newer) {
            return Ok(None);
        }
        self.commit_checked(&mut state, batch, with_log).map(|done| Some(done.last_sequence))
    }

    /// Appends to the log. A batch that only deletes has the reserve of the medium.
    fn append_or_reserve(
        &self,
        state: &mut CommitState,
        first: SequenceNumber,
        batch: &WriteBatch,
    ) -> Result<()> {
        match self.append_to_log(state, first, batch) {
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                let goes_on = only_deletes(batch)? && self.release_reserve();
                if goes_on { self.append_to_log(state, first, batch) } else { Err(error) }
            }
            appended => appended,
        }
    }

    fn append_to_log(
        &self,
        state: &mut CommitState,
        first: SequenceNumber,
        batch: &WriteBatch,
    ) -> Result<()> {
        if state.log.as_ref().is_none_or(|log| log.is_broken) {
            self.begin_log(state)?;
        }
        let Some(log) = &mut state.log else { return Err(self.closed()) };
        let appended = log.writer.append(&[&first.to_le_bytes(), batch.bytes()]);
        appended.map_err(|error| match error.kind() {
            // The record is there in part at most: a new log goes on from the last whole one.
            ErrorKind::NoSpace => {
                log.is_broken = true;
                error
            }
            _ => self.poison(error),
        })
    }

    /// Inserts the operations; gives the last sequence number used. The batch was validated, so a
    /// failure here leaves log and memory apart and poisons the database.
    fn insert(
        &self,
        state: &mut CommitState,
        first: SequenceNumber,
        batch: &WriteBatch,
    ) -> Result<SequenceNumber> {
        let log = state.log.as_ref().map(|log| log.file);
        let mut sequence = first;
        for operation in batch.iter() {
            let operation = operation.map_err(|error| self.poison(error))?;
            let Some(active) = state.actives.get_mut(&operation.keyspace) else { continue };
            active
                .writer
                .insert(operation.key, sequence, operation.kind, operation.value)
                .map_err(|error| self.poison(error))?;
            let bytes = active.writer.memtable().bytes();
            state.active_bytes += bytes - active.counted_bytes;
            active.counted_bytes = bytes;
            let holds_entries = !active.writer.memtable().is_empty();
            if holds_entries && active.first_log.is_none() && !active.keyspace.options.without_wal {
                active.first_log = log;
            }
            sequence += 1;
        }
        Ok(sequence - 1)
    }

    fn seal_full_memtables(&self, state: &mut CommitState, batch: &WriteBatch) -> Result<()> {
        let is_full = |active: &Active| {
            self.settings.is_full(active.writer.memtable())
                || active.fronted.reach.bytes >= self.settings.reach_bytes_max
        };
        let full: Vec<KeyspaceId> = match batch.only_keyspace() {
            Some(id) => state.actives.get(&id).filter(|a| is_full(a)).map(|a| a.keyspace.id),
            None => None,
        }
        .into_iter()
        .chain(
            (batch.only_keyspace().is_none())
                .then(|| state.actives.values().filter(|a| is_full(a)).map(|a| a.keyspace.id))
                .into_iter()
                .flatten(),
        )
        .collect();
        let due = match full.is_empty() {
            true if state.active_bytes >= self.settings.flush_bytes => state.largest_actives(),
            true => return Ok(()),
            false => full,
        };
        // Memtables that are flushed together share a log: a file costs a writer more than a seal.
        let settings = &self.settings;
        self.seal_and_end_log(state, &due, |log| {
            log.seals >= settings.flush_memtables || log.writer.bytes() >= settings.log_bytes_soft
        })
    }

    /// Seals the memtables of `keyspaces` (those with entries), and begins a new log.
    pub(crate) fn seal(&self, state: &mut CommitState, keyspaces: &[KeyspaceId]) -> Result<()> {
        self.seal_and_end_log(state, keyspaces, |_| true)
    }

    /// Seals the memtables of `keyspaces` (those with entries), and begins a new log if `is_full`
    /// says so of the one there is.
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
        for id in ids {
            self.seal_one(state, id)?;
        }
        for id in state.keyspaces_of_old_logs(self.settings.log_bytes_max) {
            self.seal_one(state, id)?;
        }
        self.note_memtables(state);
        self.memtables_changed();
        if let Some(log) = &mut state.log {
            log.seals += 1;
        }
        if state.log.as_ref().is_some_and(is_full) && !self.is_closing() {
            match self.begin_log(state) {
                // Without room for a new log, the old one goes on.
                Err(error) if error.kind() == ErrorKind::NoSpace => {}
                begun => begun?,
            }
        }
        self.runtime.wake();
        Ok(())
    }

    /// Tells the account of memory how much the memtables hold.
    pub(crate) fn note_memtables(&self, state: &CommitState) {
        // What is active will grow at least to a memtable.
        let active_bytes = state.active_bytes.max(self.settings.memtable_bytes_max);
        self.memory.set_memtables(active_bytes, state.sealed_bytes());
    }

    fn seal_one(&self, state: &mut CommitState, id: KeyspaceId) -> Result<()> {
        let Some(active) = state.actives.get_mut(&id) else { return Ok(()) };
        if active.writer.memtable().is_empty() {
            return Ok(());
        }
        let (fresh, writer) = Memtable::of_pool(&self.chunks, &active.next_key_start())?;
        let full = std::mem::replace(&mut active.writer, writer);
        full.seal(state.next_sequence - 1);
        let sealed = Sealed {
            keyspace: active.keyspace.clone(),
            memtable: full.memtable().clone(),
            first_log: active.first_log.take(),
            bytes: full.memtable().bytes(),
            reach: std::mem::take(&mut active.fronted.reach),
            is_flushing: false,
        };
        state.active_bytes -= std::mem::take(&mut active.counted_bytes);
        active.keyspace.seal(fresh);
        state.sealed.push(sealed);
        Ok(())
    }

    /// Replaces the log by a new one that is chained to it.
    fn begin_log(&self, state: &mut CommitState) -> Result<()> {
        let file = self.new_file();
        let previous: Option<PreviousLog> = match &state.log {
            Some(log) => Some(log.writer.as_previous(state.logged_sequence)),
            None => None,
        };
        let salt = self.runtime.random_u64();
        let header =
            LogHeader { database: self.database, file, kind: LogKind::Wal, salt, previous };
        let opened = self
            .store
            .create(FileName::wal(file), &FileHint::default())
            .and_then(|append| LogWriter::create(append, header, Cause::Wal));
        let writer = opened.map_err(|error| self.log_refused(error, file))?;
        let Some(syncer) = writer.syncer() else {
            return Err(Error::new(ErrorKind::Unsupported, "the store cannot sync a log"));
        };
        let log = OpenLog { file, writer, syncer: Arc::from(syncer), is_broken: false, seals: 0 };
        if let Some(replaced) = state.log.replace(log) {
            if let Some(live) = state.logs.last_mut() {
                live.bytes = replaced.writer.bytes();
            }
            state.replaced.push((replaced.file, replaced.syncer));
        }
        state.logs.push(LiveLog { file, bytes: 0 });
        Ok(())
    }

    /// A log that could not be begun: without room, or a descriptor, it can be tried again, else
    /// nothing is sure.
    fn log_refused(&self, error: Error, file: FileId) -> Error {
        let is_gone = match self.store.remove(FileName::wal(file)) {
            Ok(()) => true,
            Err(removal) => removal.kind() == ErrorKind::NotFound,
        };
        let is_lack = error.kind() == ErrorKind::NoSpace || error.lacks_descriptors();
        if is_gone && is_lack { error } else { self.poison(error) }
    }
}

/// Every keyspace of the batch exists, and all have a log or none has. Gives which.
fn check_keyspaces(state: &CommitState, batch: &WriteBatch) -> Result<bool> {
    let check = |id: KeyspaceId| match state.actives.get(&id) {
        Some(active) => Ok(!active.keyspace.options.without_wal),
        None => {
            Err(Error::new(ErrorKind::Closed, format!("keyspace {id} does not exist any more")))
        }
    };
    if let Some(only) = batch.only_keyspace() {
        return check(only);
    }
    let mut with_log = None;
    for operation in batch.iter() {
        let this = check(operation?.keyspace)?;
        if *with_log.get_or_insert(this) != this {
            return Err(Error::invalid(
                "a batch cannot span keyspaces with and without a log: they do not share an order",
            ));
        }
    }
    Ok(with_log.unwrap_or(true))
}
