//! Reads the state that the last process left: the manifest and the logs. Changes nothing on disk.
//!
//! Invariants:
//! - The recovered state is a prefix of the commit order that holds everything synced.
//! - A batch is there whole or not at all.
//! - Damage in durable bytes is an error that names the place; a torn tail is cut without one.

#[cfg(test)]
mod tests;

use crate::engine::exchanged::Exchanged;
use crate::keyspace::KeyspaceOptions;
use crate::memtable::{Memtable, Writer};
use crate::read::missing;
use base::key::SequenceNumber;
use base::{Cause, DatabaseId, Error, ErrorKind, FileId, KeyspaceId, Result};
use media::{ColdOwner, FileKind, FileName, FileStore, ReadFile};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use table::TablePlace;
use table::format::check_header;
use table::log::{
    ChainVerdict, LogHeader, LogIdentity, LogKind, LogReader, PreviousLog, check_chain,
    durable_bytes, named_log,
};
use table::log_record::LogRecord;
use table::manifest::{decode_edit, decode_root};
use tree::edit::{Change, DatabaseEdit, KeyspaceRecord};
use tree::invariant::Shape;
use tree::{FileRef, ObsoleteFiles, RunTable, Version};
use values::{SegmentPlace, ValuePointer, segment};

/// What the manifest says.
#[derive(Clone)]
pub(crate) struct Found {
    pub database: DatabaseId,
    pub keyspaces: BTreeMap<KeyspaceId, FoundKeyspace>,
    pub obsolete_files: Arc<ObsoleteFiles>,
    pub next_file: u64,
    pub next_run: u64,
    pub next_keyspace: u32,
    pub last_sequence: SequenceNumber,
    pub log_floor: FileId,
    /// The mark by which this copy of the database knows its cold store; see [`DatabaseEdit`].
    pub cold_mark: Option<u64>,
    /// `None` for a new database.
    pub manifest: Option<FileId>,
    /// Every file of Shingle's in the store.
    pub names: Vec<FileName>,
    /// Tables and segments that any edit names.
    listed: BTreeSet<FileId>,
    pub is_new: bool,
}

/// A keyspace as the manifest has it.
#[derive(Clone)]
pub(crate) struct FoundKeyspace {
    pub record: KeyspaceRecord,
    pub version: Version,
    pub runs: RunTable,
}

impl FoundKeyspace {
    /// Its writes go to no log. A keyspace whose options cannot be read does not open.
    pub(crate) fn is_without_wal(&self) -> bool {
        KeyspaceOptions::decode(&self.record.options).is_ok_and(|options| options.without_wal)
    }
}

impl Found {
    pub(crate) fn empty(database: DatabaseId, obsolete_files: Arc<ObsoleteFiles>) -> Found {
        Found {
            database,
            keyspaces: BTreeMap::new(),
            obsolete_files,
            next_file: 1,
            next_run: 1,
            next_keyspace: 0,
            last_sequence: 0,
            log_floor: FileId(0),
            cold_mark: None,
            manifest: None,
            names: Vec::new(),
            listed: BTreeSet::new(),
            is_new: false,
        }
    }

    pub(crate) fn add_keyspace(&mut self, record: KeyspaceRecord) {
        let runs = RunTable::new(self.obsolete_files.clone());
        let version = Version::empty(base::cause::LEVELS_MAX);
        self.next_keyspace = self.next_keyspace.max(record.id.0 + 1);
        self.keyspaces.insert(record.id, FoundKeyspace { record, version, runs });
    }

    /// Tables and segments that are younger than the manifest and that no edit ever named: a job
    /// that did not end leaves them. No durable edit or manifest can need them.
    pub(crate) fn strays(&self) -> Vec<FileName> {
        let is_stray = |name: &&FileName| {
            matches!(name.kind, FileKind::Table | FileKind::Value)
                && Some(name.id) > self.manifest
                && self.manifest.is_some()
                && !self.listed.contains(&name.id)
        };
        self.names.iter().filter(is_stray).copied().collect()
    }

    /// The cold store, if there is one, is that of this copy of the database, or can become that.
    pub(crate) fn check_cold_owner(&self, store: &dyn FileStore) -> Result<()> {
        let owner = ColdOwner { database: self.database, mark: self.cold_mark };
        store.cold_store().map_or(Ok(()), |pair| pair.check_owner(owner).map(drop))
    }

    pub(crate) fn apply(&mut self, edit: DatabaseEdit) -> Result<()> {
        for id in &edit.dropped {
            self.keyspaces.remove(id);
        }
        for record in edit.created {
            self.add_keyspace(record);
        }
        for part in &edit.keyspaces {
            self.listed.extend(part.changes.iter().filter_map(Change::file));
            let keyspace = self.keyspaces.get_mut(&part.keyspace).ok_or_else(|| {
                let message =
                    format!("an edit changes keyspace {}, which does not exist", part.keyspace);
                Error::new(ErrorKind::Corruption, message)
            })?;
            keyspace.version = keyspace.version.apply(&part.changes, &mut keyspace.runs)?;
        }
        self.next_file = self.next_file.max(edit.next_file.unwrap_or(0));
        self.next_run = self.next_run.max(edit.next_run.unwrap_or(0));
        self.next_keyspace = self.next_keyspace.max(edit.next_keyspace.unwrap_or(0));
        self.last_sequence = self.last_sequence.max(edit.last_sequence.unwrap_or(0));
        self.log_floor = self.log_floor.max(edit.log_floor.unwrap_or(FileId(0)));
        self.cold_mark = edit.cold_mark.or(self.cold_mark);
        Ok(())
    }
}

/// Stages 1 and 2: the trees, checked. `None`: there is no database.
pub(crate) fn find(store: &dyn FileStore) -> Result<Option<Found>> {
    let Some(bytes) = store.root()? else { return Ok(None) };
    let root = decode_root(&bytes).map_err(|error| error.in_file("CURRENT"))?;
    let name = FileName::manifest(root.manifest);
    let file = store.open(name, false).map_err(|error| missing(error, name))?;
    let identity =
        LogIdentity { database: root.database, file: root.manifest, kind: LogKind::Manifest };
    let mut reader = LogReader::open(&*file, identity, root.manifest_bytes_min, Cause::Recovery)?;
    let mut found = Found::empty(root.database, Arc::new(ObsoleteFiles::default()));
    found.manifest = Some(root.manifest);
    while let Some(record) = reader.next()? {
        let edit = decode_edit(record.payload, name, record.offset)?;
        let offset = record.offset;
        found.apply(edit).map_err(|error| error.in_file(name.to_string()).at(offset))?;
    }
    found.check_cold_owner(store)?;
    check(store, &mut found)?;
    // Files that became obsolete while the edits were replayed are leftovers; listing finds them.
    found.obsolete_files.drain();
    Ok(Some(found))
}

/// Stage 2: the invariants hold, and the files are there.
pub(crate) fn check(store: &dyn FileStore, found: &mut Found) -> Result<()> {
    let files = store.list()?;
    let largest = files.iter().map(|file| file.name.id.0 + 1).max().unwrap_or(0);
    found.next_file = found.next_file.max(largest);
    let bytes: BTreeMap<FileName, u64> = files.iter().map(|file| (file.name, file.bytes)).collect();
    found.names = files.iter().map(|file| file.name).collect();
    check_cold(store, found, &bytes)?;
    for keyspace in found.keyspaces.values() {
        tree::invariant::check(&keyspace.version, &Shape::ANY)?;
        for usage in keyspace.version.files() {
            let name = FileName::table(usage.file.id);
            let whole = check_file(&bytes, name, usage.total_bytes, "table");
            // A table that was cut is damage like a flipped bit: an error of the reads that meet
            // it. Another file under its name is not: what should be there may be under the other.
            if whole.is_err() && !begins_table(store, found.database, &usage.file) {
                return whole;
            }
        }
        for segment in keyspace.version.segments.iter() {
            let name = FileName::value(segment.file.id);
            check_file(&bytes, name, segment.bytes, "value segment")?;
        }
    }
    Ok(())
}

/// The file of `table` is there and has its header.
fn begins_table(store: &dyn FileStore, database: DatabaseId, table: &FileRef) -> bool {
    let place = TablePlace::of(table, database);
    let header = |file: Arc<dyn ReadFile>| check_header(&*file, place, Cause::Recovery);
    store.open(FileName::table(table.id), true).and_then(header).is_ok()
}

/// What the manifest vouches for is there.
fn check_file(
    bytes: &BTreeMap<FileName, u64>,
    name: FileName,
    bytes_min: u64,
    what: &str,
) -> Result<()> {
    match bytes.get(&name) {
        None => {
            let message = format!("a {what} that the manifest refers to is missing");
            Err(Error::new(ErrorKind::Corruption, message).in_file(name.to_string()))
        }
        Some(&bytes) if bytes < bytes_min => {
            let message =
                format!("the {what} has {bytes} bytes; the manifest vouches for {bytes_min}");
            Err(Error::corruption(name.to_string(), bytes, message))
        }
        Some(_) => Ok(()),
    }
}

/// Checks that the segments in the cold store exist: without that store, their values are missing.
fn check_cold(store: &dyn FileStore, found: &Found, bytes: &BTreeMap<FileName, u64>) -> Result<()> {
    let segments = found.keyspaces.values().flat_map(|keyspace| keyspace.version.segments.iter());
    let cold = segments.filter(|segment| segment.is_in_cold_store);
    let missing: Vec<FileName> = cold
        .map(|segment| FileName::value(segment.file.id))
        .filter(|name| !bytes.contains_key(name))
        .collect();
    let Some(first) = missing.first() else { return Ok(()) };
    if store.cold_store().is_some() {
        let message = "a value segment is missing in the cold store";
        return Err(Error::new(ErrorKind::Corruption, message).in_file(first.to_string()));
    }
    Err(Error::invalid(format!(
        "{} value segments are in a cold store, {first} among them: open the database with that \
         store",
        missing.len()
    )))
}

/// The result of replaying the logs.
#[derive(Clone, Default)]
pub(crate) struct Replayed {
    /// Oldest first.
    pub memtables: BTreeMap<KeyspaceId, Vec<Arc<Memtable>>>,
    /// Every log that was found, in order, including those after a lost tail.
    pub logs: Vec<FileId>,
    /// The logs among them that hold nothing, or nothing that counts.
    pub lost_logs: Vec<FileId>,
    pub last_sequence: SequenceNumber,
    /// The end of the last log whose history was replayed whole.
    pub end: Option<PreviousLog>,
    /// The last sequence number of their records; 0: they have none.
    pub logged_sequence: SequenceNumber,
    /// By keyspace and segment: the end of the last value that the logs point to and that the
    /// manifest does not vouch for.
    pub unflushed_ends: BTreeMap<KeyspaceId, BTreeMap<FileId, u64>>,
}

/// Stage 3: replays the logs from the floor on, until the history ends.
pub(crate) fn replay(
    store: &dyn FileStore,
    found: &Found,
    memtable_bytes_max: u64,
) -> Result<Replayed> {
    let mut logs: Vec<FileId> = store
        .list()?
        .iter()
        .filter(|file| file.name.kind == FileKind::Wal && file.name.id >= found.log_floor)
        .map(|file| file.name.id)
        .collect();
    logs.sort_unstable();
    let mut state = ReplayState::of(found);
    let mut replay = Replay { store, found, memtable_bytes_max, state: &mut state };
    let mut previous: Option<PreviousLog> = None;
    for (index, &log) in logs.iter().enumerate() {
        match replay.log(log, previous)? {
            LogOutcome::Replayed(next) => previous = Some(next),
            LogOutcome::Headerless | LogOutcome::Restated => {
                replay.state.replayed.lost_logs.push(log);
            }
            LogOutcome::HistoryEnded(why) => {
                replay.expect_nothing_durable(&logs[index..], &why)?;
                replay.state.replayed.lost_logs.extend(&logs[index..]);
                break;
            }
            LogOutcome::ValueLost(why) => {
                previous = None;
                replay.expect_nothing_durable(&logs[index + 1..], &why)?;
                replay.state.replayed.lost_logs.extend(&logs[index + 1..]);
                break;
            }
        }
    }
    state.replayed.logs = logs;
    state.replayed.end = previous;
    state.replayed.logged_sequence = state.next_sequence_min.saturating_sub(1);
    Ok(state.replayed())
}

/// What replay has read so far.
#[derive(Default)]
pub(crate) struct ReplayState {
    writers: BTreeMap<KeyspaceId, Writer>,
    /// One after the last record's sequence numbers; the next record must not begin below it.
    next_sequence_min: SequenceNumber,
    /// Opened to check values.
    segments: BTreeMap<FileId, Arc<dyn ReadFile>>,
    replayed: Replayed,
}

impl ReplayState {
    /// Nothing is read yet of the logs of `found`.
    pub(crate) fn of(found: &Found) -> ReplayState {
        let mut state = ReplayState::default();
        state.replayed.last_sequence = found.last_sequence;
        for keyspace in found.keyspaces.values() {
            let flushed = keyspace.version.flushed_sequence;
            state.replayed.last_sequence = state.replayed.last_sequence.max(flushed);
        }
        state
    }

    /// Sequence numbers up to `sequence` were given, as an edit says.
    pub(crate) fn pass(&mut self, sequence: SequenceNumber) {
        self.replayed.last_sequence = self.replayed.last_sequence.max(sequence);
    }

    /// What the logs gave so far. Entries that replay adds later to the same memtables have larger
    /// sequence numbers than its last one.
    pub(crate) fn replayed(&self) -> Replayed {
        let mut replayed = self.replayed.clone();
        // An operation without effect leaves a memtable without entries.
        let writers = self.writers.iter().filter(|(_, writer)| !writer.memtable().is_empty());
        for (&id, writer) in writers {
            replayed.memtables.entry(id).or_default().push(writer.memtable().clone());
        }
        replayed
    }
}

/// Replays records into memtables.
pub(crate) struct Replay<'a> {
    pub store: &'a dyn FileStore,
    pub found: &'a Found,
    pub memtable_bytes_max: u64,
    pub state: &'a mut ReplayState,
}

/// The outcome of a log.
enum LogOutcome {
    /// All of its history is replayed; the next log must continue it.
    Replayed(PreviousLog),
    /// Nothing of it reached the medium. If its creation was given up, the next log continues the
    /// one before it.
    Headerless,
    /// A recovery that did not end repeated the logs before it, for change feeds.
    Restated,
    /// The history ended before this log, for this reason.
    HistoryEnded(String),
    /// The history ended in this log, for this reason: a value that it points to never became
    /// durable.
    ValueLost(String),
}

impl Replay<'_> {
    fn log(&mut self, log: FileId, previous: Option<PreviousLog>) -> Result<LogOutcome> {
        let name = FileName::wal(log);
        let file = self.store.open(name, false)?;
        let mut reader = LogReader::open(&*file, self.identity(log), 0, Cause::Recovery)?;
        let Some(&header) = reader.header() else {
            self.exchanged().check_lost_log(log)?;
            return Ok(LogOutcome::Headerless);
        };
        if header.restates {
            return Ok(LogOutcome::Restated);
        }
        // Finding durable bytes takes a scan, so it is done only if the answer matters.
        let verdict = match (previous, header.previous) {
            // Names become durable in any order: the log between may have lost its own.
            (Some(previous), Some(before)) if before.file > previous.file => {
                ChainVerdict::LostTail { bytes_missing: before.bytes }
            }
            (Some(previous), _) => check_chain(&previous, &header, 0),
            (None, Some(before)) if before.file >= self.found.log_floor => {
                ChainVerdict::LostTail { bytes_missing: before.bytes }
            }
            (None, _) => ChainVerdict::Matches,
        };
        match verdict {
            ChainVerdict::Matches => {}
            ChainVerdict::LostTail { bytes_missing } => {
                let before = header.previous.map_or(FileId(0), |before| before.file);
                if previous.is_none_or(|previous| previous.file != before) {
                    self.exchanged().check_lost_log(before)?;
                }
                let why = format!("{bytes_missing} bytes of log {before} before it are missing");
                return Ok(LogOutcome::HistoryEnded(why));
            }
            ChainVerdict::Damage(what) => return Err(Error::corruption(name.to_string(), 0, what)),
        }
        // The end as the next log's header will name it: from the logs alone, without the manifest.
        let mut logged_sequence = header.previous.map_or(0, |previous| previous.last_sequence);
        while let Some(record) = reader.next()? {
            let offset = record.offset;
            let in_file = |error: Error| error.in_file(name.to_string()).at(offset);
            let record = LogRecord::parse(record.payload, header.has_origins).map_err(in_file)?;
            let lost = self.find_values(&record).map_err(in_file)?;
            if let Some((segment, why)) = lost {
                self.exchanged().check_lost_value(segment)?;
                return self.value_lost(&*file, log, offset, &why);
            }
            let last = self.record(&record).map_err(in_file)?;
            logged_sequence = last.unwrap_or(logged_sequence);
        }
        Ok(LogOutcome::Replayed(reader.as_previous(log, logged_sequence)))
    }

    /// A record points to a value that is missing. That is the end of what was written, unless the
    /// log proves that the record, and with it the value, was durable.
    fn value_lost(
        &self,
        file: &dyn ReadFile,
        log: FileId,
        offset: u64,
        why: &Error,
    ) -> Result<LogOutcome> {
        if durable_bytes(file, self.identity(log), Cause::Recovery)? <= offset {
            return Ok(LogOutcome::ValueLost(why.to_string()));
        }
        let message = format!("the log proves that a value was durable, but: {why}");
        Err(Error::corruption(FileName::wal(log).to_string(), offset, message))
    }

    /// Checks the values that a record points to and that the manifest does not vouch for; if all
    /// exist, notes where they end. Otherwise returns the segment of the first missing value, and
    /// the error.
    pub(crate) fn find_values(
        &mut self,
        record: &LogRecord<'_>,
    ) -> Result<Option<(FileId, Error)>> {
        let Some((first, batch)) = record.batch() else { return Ok(None) };
        let mut found = Vec::new();
        for (sequence, operation) in (first..).zip(batch.iter()) {
            let Some(keyspace) = self.found.keyspaces.get(&operation.keyspace()) else { continue };
            let is_flushed = sequence <= keyspace.version.flushed_sequence;
            if !operation.kind().is_pointer() || is_flushed {
                continue;
            }
            let pointer = ValuePointer::decode(operation.expiry_and_value().1)?;
            let segment = keyspace.version.segments.get(pointer.file);
            if segment.is_none_or(|segment| pointer.end() <= segment.bytes) {
                continue;
            }
            let place = SegmentPlace { database: self.found.database, file: pointer.file };
            let file = self.segment(pointer.file)?;
            let key = operation.key();
            match segment::verify(&*file, place, &pointer, key, sequence, Cause::Recovery) {
                Ok(()) => found.push((operation.keyspace(), pointer)),
                Err(error) if error.kind() == ErrorKind::Corruption => {
                    return Ok(Some((pointer.file, error)));
                }
                Err(error) => return Err(error),
            }
        }
        for (keyspace, pointer) in found {
            let ends = self.state.replayed.unflushed_ends.entry(keyspace).or_default();
            ends.insert(pointer.file, pointer.end());
        }
        Ok(None)
    }

    fn segment(&mut self, id: FileId) -> Result<Arc<dyn ReadFile>> {
        if let Some(file) = self.state.segments.get(&id) {
            return Ok(file.clone());
        }
        let name = FileName::value(id);
        let file = self.store.open(name, true).map_err(|error| missing(error, name))?;
        self.state.segments.insert(id, file.clone());
        Ok(file)
    }

    /// A log's bytes are called durable only after every log before it is durable in full. So what
    /// any of `logs` proves, it proves for all before it.
    pub(crate) fn expect_nothing_durable(&self, logs: &[FileId], why: &str) -> Result<()> {
        for &log in logs {
            let file = self.store.open(FileName::wal(log), true)?;
            let restates = |header: LogHeader| header.file == log && header.restates;
            if named_log(&*file, Cause::Recovery)?.is_some_and(restates) {
                continue;
            }
            let proven_bytes = durable_bytes(&*file, self.identity(log), Cause::Recovery)?;
            if proven_bytes > 0 {
                let message =
                    format!("{why}, but log {log} proves that everything before it was durable");
                return Err(Error::corruption(FileName::wal(logs[0]).to_string(), 0, message));
            }
        }
        Ok(())
    }

    pub(crate) fn exchanged(&self) -> Exchanged<'_> {
        Exchanged::new(self.store, self.found)
    }

    fn identity(&self, log: FileId) -> LogIdentity {
        LogIdentity { database: self.found.database, file: log, kind: LogKind::Wal }
    }

    /// Replays one batch; returns its last sequence number.
    pub(crate) fn record(&mut self, record: &LogRecord<'_>) -> Result<Option<SequenceNumber>> {
        let Some((first, batch)) = record.batch() else { return Ok(None) };
        if first < self.state.next_sequence_min {
            let message = format!(
                "a log record begins at sequence number {first}; the one before ends at {}",
                self.state.next_sequence_min
            );
            return Err(Error::new(ErrorKind::Corruption, message));
        }
        self.state.next_sequence_min = first + batch.len() as u64;
        let mut last = None;
        for (sequence, operation) in (first..).zip(batch.iter()) {
            // Skips keyspaces that were dropped later, and entries that are in runs already.
            if let Some(keyspace) = self.found.keyspaces.get(&operation.keyspace())
                && sequence > keyspace.version.flushed_sequence
            {
                self.writer(operation.keyspace())?.insert(&operation, sequence)?;
            }
            last = Some(sequence);
        }
        self.state.replayed.last_sequence =
            self.state.replayed.last_sequence.max(last.unwrap_or(0));
        Ok(last)
    }

    /// The memtable that takes the next entry of a keyspace.
    fn writer(&mut self, id: KeyspaceId) -> Result<&mut Writer> {
        let is_full = |writer: &Writer| writer.memtable().bytes() >= self.memtable_bytes_max;
        if self.state.writers.get(&id).is_some_and(is_full)
            && let Some(full) = self.state.writers.remove(&id)
        {
            let memtable = full.memtable().clone();
            self.state.replayed.memtables.entry(id).or_default().push(memtable);
        }
        match self.state.writers.entry(id) {
            std::collections::btree_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let (_, writer) = Memtable::new(self.memtable_bytes_max as usize)?;
                Ok(entry.insert(writer))
            }
        }
    }
}
