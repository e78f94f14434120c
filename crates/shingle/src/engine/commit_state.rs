//! What the commit lock guards: the log, the active memtables, and the sealed memtables that wait
//! for their flush.

use crate::engine::values::active_segment::{CommitValues, Separated, UnflushedExtents};
use crate::engine::values::capacity::LackOfSpace;
use crate::keyspace::KeyspaceState;
use crate::memtable::{Memtable, Writer};
use base::key::{SEQUENCE_MAX, SequenceNumber, common_prefix};
use base::{FileId, KeyspaceId};
use media::SyncFile;
use std::collections::BTreeMap;
use std::sync::Arc;
use table::batch::WriteBatch;
use table::log::LogWriter;
use values::record::record_bytes;

/// What the commit lock guards.
pub(crate) struct CommitState {
    /// The log that takes records; `None` before the first and in a read-only database.
    pub log: Option<OpenLog>,
    /// The next batch begins at this sequence number.
    pub next_sequence: SequenceNumber,
    /// The last sequence number in a log since opening. A reader of the logs finds this one;
    /// `next_sequence` may be further.
    pub logged_sequence: SequenceNumber,
    /// The last sequence number of a user's write since opening. GC changes pointers, not content,
    /// and does not count.
    pub user_sequence: SequenceNumber,
    pub actives: BTreeMap<KeyspaceId, Active>,
    /// Sealed memtables that wait for their flush, oldest first.
    pub sealed: Vec<Sealed>,
    /// Logs that were replaced and may not be durable yet, oldest first.
    pub replaced: Vec<(FileId, Arc<dyn SyncFile>)>,
    /// Segments that commits wrote to since the last sync.
    pub unsynced_values: BTreeMap<FileId, Arc<dyn SyncFile>>,
    /// Segments that commits wrote to and have left, and that memtables may still point into.
    pub ended_segments: Vec<(Arc<KeyspaceState>, FileId)>,
    /// The memory of the last batch whose large values went to segments.
    pub separated: Separated,
    /// Keyspaces whose commits requested a segment.
    pub requested_segments: Vec<KeyspaceId>,
    /// Every log that still exists, oldest first.
    pub logs: Vec<LiveLog>,
    /// Sealed memtables that need a log up to this one are flushed, so that the log can be removed.
    pub flush_logs_through: Option<FileId>,
    /// Bytes in active memtables.
    pub active_bytes: u64,
    /// A caller waits for a flush of everything up to this sequence number.
    pub flush_through: SequenceNumber,
    /// Keyspaces whose writers wait, once for each hold of them.
    pub held: Vec<KeyspaceId>,
}

/// A log that still exists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveLog {
    pub file: FileId,
    /// Its length once it takes no more records; 0 before, and for logs of an earlier opening.
    pub bytes: u64,
}

/// The log that takes records.
pub(crate) struct OpenLog {
    pub file: FileId,
    pub writer: LogWriter,
    pub syncer: Arc<dyn SyncFile>,
    /// An append was out of space: the next record goes to a new log.
    pub is_broken: bool,
    /// Number of seals since the log began.
    pub seals: usize,
}

/// The active memtable of a keyspace, with the right to write it.
pub(crate) struct Active {
    pub keyspace: Arc<KeyspaceState>,
    pub writer: Writer,
    /// The common start of all keys of the memtable before; `None` for the first memtable.
    pub key_start_before: Option<Vec<u8>>,
    /// The log that holds the memtable's first entry; `None` while it is empty, or without a log.
    pub first_log: Option<FileId>,
    /// Its bytes in the sum over all active memtables.
    pub counted_bytes: u64,
    /// The state of the values that commits separate.
    pub values: CommitValues,
    /// The sequence number of the last ingestion, whose entries no memtable has; 0 before the
    /// first.
    pub ingested: SequenceNumber,
}

impl Active {
    /// The expected common start of most keys of the next memtable: that of the last two memtables.
    /// Two, because the keys of a sequential load advance.
    pub(crate) fn next_key_start(&mut self) -> Vec<u8> {
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
    /// The oldest log that it needs.
    pub first_log: Option<FileId>,
    pub bytes: u64,
    /// The extents of separated values that it points to.
    pub unflushed: UnflushedExtents,
    /// A flush of it is in progress.
    pub is_flushing: bool,
}

/// The end of a commit's record in the log; a sync of that commit must cover it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct LogPosition {
    pub file: FileId,
    pub bytes: u64,
}

impl LogPosition {
    /// No log gets there.
    pub(crate) const MAX: LogPosition = LogPosition { file: FileId(u64::MAX), bytes: u64::MAX };
}

impl CommitState {
    pub(crate) fn new(next_sequence: SequenceNumber) -> CommitState {
        CommitState {
            log: None,
            next_sequence,
            logged_sequence: 0,
            user_sequence: 0,
            actives: BTreeMap::new(),
            sealed: Vec::new(),
            replaced: Vec::new(),
            unsynced_values: BTreeMap::new(),
            ended_segments: Vec::new(),
            separated: Separated::default(),
            requested_segments: Vec::new(),
            logs: Vec::new(),
            flush_logs_through: None,
            active_bytes: 0,
            flush_through: 0,
            held: Vec::new(),
        }
    }

    pub(crate) fn add_keyspace(&mut self, active: Active) {
        self.actives.insert(active.keyspace.id, active);
    }

    /// Removes a dropped keyspace with its memtables.
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

    /// Maximum bytes that the memtables of a keyspace may add to its segments.
    pub(crate) fn pending_bytes(&self, id: KeyspaceId) -> u64 {
        let sealed = self.sealed.iter().filter(|sealed| sealed.keyspace.id == id);
        let active = self.actives.get(&id);
        let active =
            active.map_or(0, |active| active.counted_bytes + active.values.unflushed.bytes);
        sealed.map(|sealed| sealed.bytes + sealed.unflushed.bytes).sum::<u64>() + active
    }

    /// The first keyspace whose segments lack space for the large values of `batch`. For GC, beside
    /// the `freed_bytes` that it will free.
    pub(crate) fn lack_of_space(
        &self,
        batch: &WriteBatch,
        freed_bytes: u64,
    ) -> Option<LackOfSpace> {
        let mut wanted: BTreeMap<KeyspaceId, u64> = BTreeMap::new();
        for operation in batch.iter() {
            let Some(active) = self.active(operation.keyspace()) else { continue };
            let (key, (_, value)) = (operation.key(), operation.expiry_and_value());
            let is_large = value.len() as u64 >= active.keyspace.values.threshold_bytes;
            if operation.kind().is_value() && is_large {
                let bytes = record_bytes(SEQUENCE_MAX, key, Some(value));
                *wanted.entry(operation.keyspace()).or_default() += bytes as u64;
            }
        }
        wanted.into_iter().find_map(|(id, wanted_bytes)| {
            let keyspace = self.active(id)?.keyspace.clone();
            let pending_bytes = self.pending_bytes(id);
            let space_bytes = keyspace.value_space_bytes_for_gc(pending_bytes, freed_bytes)?;
            (space_bytes < wanted_bytes).then_some(LackOfSpace { keyspace, wanted_bytes })
        })
    }

    /// An ingestion gets the next sequence number. The active memtable of its keyspace, which is
    /// empty, makes way for that of `writer`: a reader that found the old one has a tree without
    /// the ingested files, and sees nothing that is newer.
    pub(crate) fn pass_ingestion(&mut self, id: KeyspaceId, writer: Writer) {
        let sequence = self.next_sequence;
        if let Some(active) = self.actives.get_mut(&id) {
            let fresh = writer.memtable().clone();
            let passed = std::mem::replace(&mut active.writer, writer);
            passed.seal(sequence - 1);
            self.active_bytes -= std::mem::take(&mut active.counted_bytes);
            active.keyspace.renew(fresh);
            active.ingested = sequence;
        }
        self.next_sequence = sequence + 1;
        self.user_sequence = sequence;
    }

    /// An ingestion holds the writers of a keyspace that `batch` writes to.
    #[cold]
    pub(crate) fn is_held(&self, batch: &WriteBatch) -> bool {
        match batch.only_keyspace() {
            Some(id) => self.held.contains(&id),
            None => batch.iter().any(|operation| self.held.contains(&operation.keyspace())),
        }
    }

    /// The memtables of a keyspace that have entries.
    pub(crate) fn memtables(&self, id: KeyspaceId) -> impl Iterator<Item = &Arc<Memtable>> {
        let sealed = self.sealed.iter().filter(move |sealed| sealed.keyspace.id == id);
        let active = self.actives.get(&id).map(|active| active.writer.memtable());
        let all = sealed.map(|sealed| &sealed.memtable).chain(active);
        all.filter(|memtable| !memtable.is_empty())
    }

    /// The lowest sequence number in the memtables of a keyspace.
    pub(crate) fn unflushed_sequence(&self, id: KeyspaceId) -> Option<SequenceNumber> {
        self.memtables(id).filter_map(|memtable| memtable.sequence_min()).min()
    }

    pub(crate) fn actives(&self) -> impl Iterator<Item = &Active> {
        self.actives.values()
    }

    /// The oldest log that a memtable outside `flushed` still needs.
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

    /// When the logs exceed `bytes_max`: the keyspaces whose active memtables need one of the
    /// oldest logs. Flushing them releases logs until half of `bytes_max` is left. These keyspaces
    /// may have had no write for long.
    pub(crate) fn keyspaces_of_old_logs(&mut self, bytes_max: u64) -> Vec<KeyspaceId> {
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

    /// The smallest number of active memtables, largest first, that hold half of all active bytes.
    pub(crate) fn largest_actives(&self) -> Vec<KeyspaceId> {
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

    /// The end of the log.
    pub(crate) fn position(&self) -> LogPosition {
        match &self.log {
            Some(log) => LogPosition { file: log.file, bytes: log.writer.bytes() },
            None => LogPosition::default(),
        }
    }
}
