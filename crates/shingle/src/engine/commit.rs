//! The commit: a batch gets its sequence numbers, goes to the log, and into the memtables.
//!
//! The commit lock orders the commits and is held briefly. Under it, a batch is appended to the log
//! with one request and inserted into the memtables; then it is visible. A synced write waits for
//! the log outside the lock (`sync`), so that one device request serves all writers that appended
//! before it.
//!
//! Invariants:
//! - Sequence numbers, log positions and memtable inserts have one order.
//! - A batch is whole: its operations become visible together, and its log record is one frame.
//! - After a failed append nothing more is written: the record may be there in part.

use crate::engine::changes::retained::ChangeLogs;
use crate::engine::commit_state::{CommitState, LiveLog, LogPosition, OpenLog, Sealed};
use crate::engine::context::Context;
use crate::engine::log_syncs::LogSyncs;
use crate::engine::reserve::only_deletes;
use crate::engine::values::capacity::LackOfSpace;
use crate::engine::write_turns::WriteTurns;
use crate::memtable::Memtable;
use crate::read::moment::Moment;
use base::key::SequenceNumber;
use base::{Cause, Error, ErrorKind, FileId, KeyRange, KeyspaceId, Result};
use media::{FileHint, FileName};
use parking_lot::{Mutex, MutexGuard};
use std::ops::Deref;
use std::sync::Arc;
use table::batch::WriteBatch;
use table::log::{LogHeader, LogKind, LogWriter, PreviousLog};
use table::log_record::{LogBegin, Origin};

/// The result of a commit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Committed {
    /// A sync must reach this position.
    pub position: LogPosition,
    /// The sequence number of the batch's last operation.
    pub last_sequence: SequenceNumber,
}

/// The outcome of a batch.
pub(crate) enum Outcome {
    Committed(Committed),
    /// No change: the segments of a keyspace lack space for its large values.
    LacksSpace(LackOfSpace),
    /// No change: what the commit takes for granted may not hold.
    Changed,
    /// No change: the writers of a keyspace are held.
    Held,
}

/// What a commit takes for granted: no key here has an entry that is newer than the moment.
pub(crate) struct Unchanged<'a> {
    pub keyspace: KeyspaceId,
    pub moment: &'a Moment,
    pub keys: Vec<&'a [u8]>,
    pub ranges: &'a [KeyRange],
}

impl Unchanged<'_> {
    /// It holds for certain. Under the commit lock, so that nothing newer comes.
    fn holds(&self, state: &CommitState) -> Result<bool> {
        let seen = self.moment.sequence();
        let active = state.actives.get(&self.keyspace);
        // No memtable has what came in below.
        if active.is_some_and(|active| active.keyspace.may_have_more_below(self.moment.view())) {
            return Ok(false);
        }
        if state.next_sequence == seen + 1 {
            return Ok(true);
        }
        if active.is_some_and(|active| active.ingested > seen) {
            return Ok(false);
        }
        let active = active.map(|active| active.writer.memtable());
        let sealed = state.sealed.iter().filter(|sealed| sealed.keyspace.id == self.keyspace);
        let mut memtables: Vec<&Arc<Memtable>> = sealed.map(|sealed| &sealed.memtable).collect();
        memtables.extend(active);
        // The view holds everything that is not newer than the moment. Newer entries are in its
        // active memtable or in later ones, and those stay in memory as long as that memtable does.
        let last = &self.moment.view().active;
        if !memtables.iter().any(|memtable| Arc::ptr_eq(memtable, last)) {
            return Ok(false);
        }
        memtables.retain(|memtable| memtable.sequence_max().is_none_or(|newest| newest > seen));
        for memtable in memtables {
            if self.keys.iter().any(|key| memtable.has_newer(key, seen)) {
                return Ok(false);
            }
            for range in self.ranges {
                if memtable.has_newer_in(range, seen)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// All of `given` hold for certain. Out of line, so that a write without them does not pay for it.
#[inline(never)]
fn all_hold(given: &[Unchanged<'_>], state: &CommitState) -> Result<bool> {
    given.iter().try_fold(true, |all, part| Ok(all && part.holds(state)?))
}

/// The commits of one open database.
pub(crate) struct Commits {
    context: Arc<Context>,
    state: Mutex<CommitState>,
    pub syncs: LogSyncs,
    pub turns: WriteTurns,
}

/// A commit works in a context.
impl Deref for Commits {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl Commits {
    pub(crate) fn new(context: Arc<Context>, state: CommitState) -> Commits {
        context.snapshots.publish(state.next_sequence - 1);
        let (syncs, turns) = (LogSyncs::default(), WriteTurns::default());
        Commits { context, state: Mutex::new(state), syncs, turns }
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, CommitState> {
        self.state.lock()
    }

    /// Commits `batch` if `given` holds. `is_synced`: the caller will promise that the batch is
    /// durable.
    pub(crate) fn commit(
        &self,
        batch: &mut WriteBatch,
        is_synced: bool,
        given: &[Unchanged<'_>],
    ) -> Result<Outcome> {
        if batch.is_empty() && given.is_empty() {
            return Ok(Outcome::Committed(Committed::default()));
        }
        let mut state = self.lock();
        if !state.held.is_empty() && state.is_held(batch) {
            return Ok(Outcome::Held);
        }
        if !given.is_empty() && !all_hold(given, &state)? {
            return Ok(Outcome::Changed);
        }
        if batch.is_empty() {
            return Ok(Outcome::Committed(Committed::default()));
        }
        self.check_writable()?;
        let with_log = check_keyspaces(&state, batch)?;
        if is_synced && !with_log {
            return Err(Error::invalid(
                "a write to a keyspace without a log cannot be synced: call `flush`",
            ));
        }
        if self.settings.bounds_values()
            && self.has_large_values(batch)
            && let Some(lack) = state.lack_of_space(batch, 0)
        {
            return Ok(Outcome::LacksSpace(lack));
        }
        let committed = self.commit_checked(&mut state, batch, with_log, Origin::User)?;
        state.user_sequence = committed.last_sequence;
        self.ledger().user_wrote(batch.user_bytes());
        Ok(Outcome::Committed(committed))
    }

    /// Some value of `batch` may be separated.
    fn has_large_values(&self, batch: &WriteBatch) -> bool {
        batch.put_bytes_max() as u64 >= self.settings.value_threshold_bytes
    }

    /// Commits `batch`, which the caller has checked under the lock.
    fn commit_checked(
        &self,
        state: &mut CommitState,
        batch: &mut WriteBatch,
        with_log: bool,
        origin: Origin,
    ) -> Result<Committed> {
        let at_commit = with_log && self.settings.writes_values_at_commit;
        let last = match at_commit && self.has_large_values(batch) {
            true => self.write_separated(state, batch)?,
            false => self.write_batch(state, batch, with_log, origin)?,
        };
        state.next_sequence = last + 1;
        if with_log {
            state.logged_sequence = last;
        }
        self.snapshots.publish(last);
        self.note_commit();
        let position = state.position();
        self.memory.grow_active(state.active_bytes);
        // The batch is committed, so a lack of memory is no error of it: the memtable stays full,
        // and the next commit tries again.
        self.seal_full_memtables(state, batch).or_else(|_| self.check_poisoned())?;
        Ok(Committed { position, last_sequence: last })
    }

    /// Writes `batch` to log and memtables. Returns the last sequence number used.
    fn write_batch(
        &self,
        state: &mut CommitState,
        batch: &mut WriteBatch,
        with_log: bool,
        origin: Origin,
    ) -> Result<SequenceNumber> {
        let first = state.next_sequence;
        if with_log {
            self.append_or_reserve(state, first, batch, origin)?;
        }
        self.insert(state, first, batch)
    }

    /// [`Commits::write_batch`] with large values in active segments. Wakes the background for the
    /// segments that this requests.
    fn write_separated(
        &self,
        state: &mut CommitState,
        batch: &mut WriteBatch,
    ) -> Result<SequenceNumber> {
        let requests = state.requested_segments.len();
        let separated = state.append_values(state.next_sequence, batch);
        if state.requested_segments.len() > requests {
            self.runtime.wake();
        }
        let Some(mut separated) = separated? else {
            return self.write_batch(state, batch, true, Origin::User);
        };
        let first = state.next_sequence;
        let appended = self.append_or_reserve(state, first, &mut separated.batch, Origin::User);
        match &appended {
            Ok(()) => state.note_appended(&separated),
            Err(_) => state.give_up(&separated),
        }
        let last = appended.and_then(|()| self.insert(state, first, &separated.batch));
        state.keep_separated(separated);
        last
    }

    /// Commits `batch` of the engine, which restates what a reader saw, unless something of that
    /// has or may have changed. An empty batch has the sequence number of the reader's moment. Its
    /// GC will free `freed_bytes`.
    pub(crate) fn commit_unless_newer(
        &self,
        seen: &Unchanged<'_>,
        batch: &mut WriteBatch,
        freed_bytes: u64,
    ) -> Result<Outcome> {
        if batch.is_empty() {
            let last_sequence = seen.moment.sequence();
            return Ok(Outcome::Committed(Committed { last_sequence, ..Committed::default() }));
        }
        let mut state = self.lock();
        self.check_writable()?;
        let with_log = check_keyspaces(&state, batch)?;
        if !seen.holds(&state)? {
            return Ok(Outcome::Changed);
        }
        if let Some(lack) = state.lack_of_space(batch, freed_bytes) {
            return Ok(Outcome::LacksSpace(lack));
        }
        let origin = if self.changes.is_some() { Origin::Engine } else { Origin::User };
        self.commit_checked(&mut state, batch, with_log, origin).map(Outcome::Committed)
    }

    /// Appends to the log. A batch that only deletes may use the reserve of the medium.
    #[inline]
    fn append_or_reserve(
        &self,
        state: &mut CommitState,
        first: SequenceNumber,
        batch: &mut WriteBatch,
        origin: Origin,
    ) -> Result<()> {
        match self.append_to_log(state, first, batch, origin) {
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                self.append_to_full_medium(state, first, batch, origin, error)
            }
            appended => appended,
        }
    }

    /// Appends after `lack`, with the space of logs that only change feeds need, and then with that
    /// of the reserve.
    #[cold]
    fn append_to_full_medium(
        &self,
        state: &mut CommitState,
        first: SequenceNumber,
        batch: &mut WriteBatch,
        origin: Origin,
        lack: Error,
    ) -> Result<()> {
        let appended = match self.give_up_change_logs() {
            true => self.append_to_log(state, first, batch, origin),
            false => Err(lack),
        };
        match appended {
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                let goes_on = only_deletes(batch) && self.release_reserve();
                if goes_on { self.append_to_log(state, first, batch, origin) } else { Err(error) }
            }
            appended => appended,
        }
    }

    fn append_to_log(
        &self,
        state: &mut CommitState,
        first: SequenceNumber,
        batch: &mut WriteBatch,
        origin: Origin,
    ) -> Result<()> {
        if state.log.as_ref().is_none_or(|log| log.is_broken) {
            self.begin_log(state)?;
        }
        let Some(log) = &mut state.log else { return Err(self.closed()) };
        let appended = log.writer.append_in_place(batch.as_record(origin.mark(first)));
        appended.map_err(|error| match error.kind() {
            // At most a part of the record is there: a new log goes on after the last whole record.
            ErrorKind::NoSpace => {
                log.is_broken = true;
                error
            }
            _ => self.poison(error),
        })
    }

    /// Inserts the operations; returns the last sequence number used. The batch was validated, so a
    /// failure here means that log and memory differ, and poisons the database.
    fn insert(
        &self,
        state: &mut CommitState,
        first: SequenceNumber,
        batch: &WriteBatch,
    ) -> Result<SequenceNumber> {
        let log = state.log.as_ref().map(|log| log.file);
        let mut sequence = first;
        for operation in batch.iter() {
            let Some(active) = state.actives.get_mut(&operation.keyspace()) else { continue };
            let inserted = active.writer.insert(&operation, sequence);
            inserted.map_err(|error| self.poison(error))?;
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

    /// Replaces the log by a new one that is chained to it.
    pub(super) fn begin_log(&self, state: &mut CommitState) -> Result<()> {
        let file = self.new_file();
        let previous: Option<PreviousLog> = match &state.log {
            Some(log) => Some(log.writer.as_previous(state.logged_sequence)),
            None => self.changes.as_ref().and_then(ChangeLogs::end),
        };
        let salt = self.runtime.random_u64();
        let has_origins = self.changes.is_some();
        let (database, kind) = (self.database, LogKind::Wal);
        let header =
            LogHeader { database, file, kind, salt, previous, has_origins, restates: false };
        let begin = self.log_begin(state);
        let writer =
            self.create_log(header, begin).map_err(|error| self.log_refused(error, file))?;
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
        if let (Some(changes), Some(begin)) = (&self.changes, begin) {
            changes.begun(&header, begin);
        }
        Ok(())
    }

    /// What the next log begins with, if it has origins.
    fn log_begin(&self, state: &CommitState) -> Option<LogBegin> {
        let changes = self.changes.as_ref()?;
        Some(changes.begin_at(state.logged_sequence, self.runtime.wall_micros()))
    }

    fn create_log(&self, header: LogHeader, begin: Option<LogBegin>) -> Result<LogWriter> {
        let hint = FileHint { zeros_at_end: true, ..FileHint::NONE };
        let append = self.store.create(FileName::wal(header.file), &hint)?;
        let mut writer = LogWriter::create(append, header, Cause::Wal)?;
        begin.map_or(Ok(()), |begin| writer.append(&[&begin.encode()]))?;
        Ok(writer)
    }

    /// Requests a background flush of what `keyspace` holds up to `sequence`.
    pub(crate) fn request_flush(&self, keyspace: KeyspaceId, sequence: u64) -> Result<()> {
        let mut state = self.lock();
        self.check_poisoned()?;
        let first = state.active(keyspace).and_then(|a| a.writer.memtable().sequence_min());
        // Independent of the requests for other keyspaces.
        if first.is_some_and(|first| first <= sequence) {
            self.seal(&mut state, &[keyspace])?;
        }
        state.flush_through = state.flush_through.max(sequence);
        Ok(())
    }

    /// The memtables are in the tree: releases their memory and the logs below `floor`.
    pub(crate) fn finish_flushed(&self, flushed: &[Arc<Memtable>], floor: FileId) -> Vec<FileId> {
        let mut state = self.lock();
        let is_flushed = |m: &Arc<Memtable>| flushed.iter().any(|f| Arc::ptr_eq(f, m));
        // Kept until the lock is released: freeing a memtable may take long.
        let gone: Vec<Sealed> =
            state.sealed.extract_if(.., |sealed| is_flushed(&sealed.memtable)).collect();
        state.release_ended_segments();
        let all = state.logs.iter().map(|log| log.file);
        let dead: Vec<FileId> = all.filter(|&log| log < floor).collect();
        state.logs.retain(|log| log.file >= floor);
        state.replaced.retain(|(file, _)| *file >= floor);
        self.note_memtables(&state);
        drop(state);
        drop(gone);
        self.memtables_changed();
        dead
    }

    /// A log could not be begun. For lack of space or of a file descriptor, the attempt can be
    /// repeated, once the file is removed. Otherwise the outcome is unknown, and the database is
    /// poisoned.
    fn log_refused(&self, error: Error, file: FileId) -> Error {
        let is_gone = match self.store.remove(FileName::wal(file)) {
            Ok(()) => true,
            Err(removal) => removal.kind() == ErrorKind::NotFound,
        };
        if is_gone && error.is_lack() { error } else { self.poison(error) }
    }
}

/// Checks that every keyspace of the batch exists, and that all have a log or none has. Returns
/// which.
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
        let this = check(operation.keyspace())?;
        if *with_log.get_or_insert(this) != this {
            return Err(Error::invalid(
                "a batch cannot span keyspaces with and without a log: they do not share an order",
            ));
        }
    }
    Ok(with_log.unwrap_or(true))
}
