//! Values that are written once: a commit appends them to a segment, the *front* of its keyspace,
//! and the log has their pointers (ADR 0090).
//!
//! Invariants:
//! - A front is a new file, and listed in the tree, empty, before a commit writes to it. So no file
//!   that a log names is ever used again, and recovery finds every front in the manifest.
//! - Values reach their front before their pointers reach the log, and in the same order: the
//!   values of a prefix of the log are a prefix of each front.
//! - Fronts are durable before the log that names them is called durable.
//! - What an earlier life wrote to a front, and the manifest does not vouch for, stays nobody's:
//!   the first flush writes it anew, elsewhere ([`crate::unvouched`]).
//! - A front is claimed until the last memtable that points into it is flushed: only then the tree
//!   vouches for all its bytes. A front whose end is not sure takes no more records.

use crate::engine::commit_state::{Active, CommitState};
use crate::engine::context::Context;
use crate::keyspace::KeyspaceState;
use crate::unvouched::Unvouched;
use base::{Cause, EntryKind, FileId, KeyspaceId, Result, SequenceNumber};
use media::SyncFile;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use table::batch::{Operation, WriteBatch};
use tree::edit::{Change, SegmentChange};
use tree::{Segment, Version};
use values::segment::SegmentWriter;

/// A keyspace gets a front when its commits brought so large a part of a segment: a short session
/// leaves no segment of its own, its values go through the log and a flush to the last segment.
const FIRST_SHARE: u64 = 16;

/// The segment that commits append to.
pub(crate) struct Front {
    file: FileId,
    writer: SegmentWriter,
    syncer: Arc<dyn SyncFile>,
}

/// How the values of a keyspace are written by its commits.
#[derive(Default)]
pub(crate) struct Fronted {
    front: Option<Front>,
    /// Of the active memtable.
    pub reach: Reach,
    /// Bytes of large values that came while there was no front.
    passed_bytes: u64,
}

/// How far the pointers of a memtable reach into segments, beyond what the tree vouches for.
#[derive(Clone, Default)]
pub(crate) struct Reach {
    ends: BTreeMap<FileId, End>,
    /// Bytes of the records.
    pub bytes: u64,
}

#[derive(Clone)]
struct End {
    bytes: u64,
    /// None: an earlier life wrote it, and it is written anew.
    syncer: Option<Arc<dyn SyncFile>>,
}

/// A batch whose large values lie in fronts.
#[derive(Default)]
pub(crate) struct Separated {
    /// With pointers in their place.
    pub batch: WriteBatch,
    /// Bytes that went to the front of each keyspace.
    written: BTreeMap<KeyspaceId, u64>,
}

impl Reach {
    /// Of memtables that recovery filled: by segment, where the last record ends.
    pub(crate) fn recovered(ends: &BTreeMap<FileId, u64>) -> Reach {
        let end = |&bytes: &u64| End { bytes, syncer: None };
        Reach { ends: ends.iter().map(|(&file, bytes)| (file, end(bytes))).collect(), bytes: 0 }
    }

    /// The segments, and where the last record in each ends.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (FileId, u64)> {
        self.ends.iter().map(|(&file, end)| (file, end.bytes))
    }

    fn note(&mut self, front: &Front, bytes: u64) {
        let syncer = Some(front.syncer.clone());
        self.ends.insert(front.file, End { bytes: front.writer.bytes(), syncer });
        self.bytes += bytes;
    }

    /// Takes in what a newer memtable reaches.
    pub(crate) fn join(&mut self, newer: &Reach) {
        self.ends.extend(newer.ends.iter().map(|(&file, end)| (file, end.clone())));
        self.bytes += newer.bytes;
    }

    /// Makes durable what this life wrote.
    pub(crate) fn sync(&self, context: &Context) -> Result<()> {
        let syncers = self.ends.values().filter_map(|end| end.syncer.as_ref());
        for syncer in syncers {
            let synced = syncer.sync(Cause::ValueWrite);
            synced.map_err(|error| context.poison_unless_tried_again(error))?;
        }
        Ok(())
    }

    /// What an earlier life wrote and the manifest does not vouch for.
    pub(crate) fn unvouched(&self, version: &Version) -> Unvouched {
        Unvouched::behind(
            self.recovered_in(version).map(|(segment, _)| (segment.file.id, segment.bytes)),
        )
    }

    /// Bytes of it at the most.
    pub(crate) fn unvouched_bytes(&self, version: &Version) -> u64 {
        let all = self.recovered_in(version);
        all.map(|(segment, end)| end.saturating_sub(segment.bytes)).sum()
    }

    fn recovered_in<'a>(
        &'a self,
        version: &'a Version,
    ) -> impl Iterator<Item = (&'a Segment, u64)> {
        let recovered = self.ends.iter().filter(|(_, end)| end.syncer.is_none());
        recovered.filter_map(|(&file, end)| Some((version.segments.get(file)?, end.bytes)))
    }

    /// What it means for the tree that these values are flushed: of a front of an earlier life
    /// remains what the manifest vouched for, if anything.
    pub(crate) fn changes(&self, version: &Version) -> impl Iterator<Item = Change> {
        self.ends.iter().filter_map(|(&file, end)| {
            let vouched_bytes = version.segments.get(file)?.bytes;
            let change = match &end.syncer {
                Some(_) if vouched_bytes < end.bytes => SegmentChange::Grow(end.bytes),
                None if vouched_bytes == 0 => SegmentChange::Remove,
                _ => return None,
            };
            Some(Change::Segment { file, change })
        })
    }
}

impl Active {
    /// The value is one for a front.
    fn fronts(&self, operation: &Operation<'_>) -> bool {
        let is_large = operation.value.len() as u64 >= self.keyspace.values.threshold_bytes;
        operation.kind == EntryKind::Put && is_large && !self.keyspace.options.without_wal
    }

    /// Commits append to the segment `file` from now on.
    pub(crate) fn set_front(
        &mut self,
        file: FileId,
        writer: SegmentWriter,
        syncer: Arc<dyn SyncFile>,
    ) {
        self.fronted.front = Some(Front { file, writer, syncer });
    }

    fn open_front(&mut self) -> Option<&mut Front> {
        let bytes_max = front_bytes_max(&self.keyspace);
        self.fronted.front.as_mut().filter(|front| front.writer.bytes() < bytes_max)
    }

    pub(crate) fn lacks_front(&self) -> bool {
        let bytes_max = front_bytes_max(&self.keyspace);
        match &self.fronted.front {
            Some(front) => front.writer.bytes() >= bytes_max,
            None => self.fronted.passed_bytes >= bytes_max / FIRST_SHARE,
        }
    }

    /// Appends the value to the front; the pointer, or `None` where there is no front with room.
    fn front_value(
        &mut self,
        sequence: SequenceNumber,
        operation: &Operation<'_>,
    ) -> Result<Option<values::ValuePointer>> {
        match self.open_front() {
            Some(front) => {
                front.writer.add(sequence, operation.key, Some(operation.value)).map(Some)
            }
            None => {
                self.fronted.passed_bytes += operation.value.len() as u64;
                Ok(None)
            }
        }
    }
}

pub(crate) fn front_bytes_max(keyspace: &KeyspaceState) -> u64 {
    keyspace.values.layout.segment_bytes_max(&keyspace.values.limits, 0)
}

impl CommitState {
    /// The first keyspace of `batch` that should have a front for it and has none with room.
    pub(crate) fn lacks_front(&self, batch: &WriteBatch) -> Result<Option<Arc<KeyspaceState>>> {
        for operation in batch.iter() {
            let operation = operation?;
            let Some(active) = self.active(operation.keyspace) else { continue };
            if active.fronts(&operation) && active.lacks_front() {
                return Ok(Some(active.keyspace.clone()));
            }
        }
        Ok(None)
    }

    /// Appends the large values of `batch`, whose first operation has the sequence number `first`,
    /// to the fronts. `None`: it has none that go there. After an error nothing was written that
    /// counts.
    pub(crate) fn write_to_fronts(
        &mut self,
        first: SequenceNumber,
        batch: &WriteBatch,
    ) -> Result<Option<Separated>> {
        let mut separated = Separated::default();
        let written = separated.fill(self, first, batch);
        if let Err(error) = written {
            self.give_up(&separated);
            return Err(error);
        }
        Ok((!separated.written.is_empty()).then_some(separated))
    }
}

impl Separated {
    fn fill(
        &mut self,
        state: &mut CommitState,
        first: SequenceNumber,
        batch: &WriteBatch,
    ) -> Result<()> {
        for (sequence, operation) in (first..).zip(batch.iter()) {
            let operation = operation?;
            let id = operation.keyspace;
            let active = state.active_mut(id).filter(|active| active.fronts(&operation));
            match active.map(|active| active.front_value(sequence, &operation)).transpose()? {
                Some(Some(pointer)) => {
                    *self.written.entry(id).or_default() += u64::from(pointer.record_bytes);
                    self.batch.put_pointer(id, operation.key, &pointer.encode())?;
                }
                Some(None) | None => self.batch.copy(&operation)?,
            }
        }
        for &id in self.written.keys() {
            let front = state.active_mut(id).and_then(|active| active.fronted.front.as_mut());
            front.map_or(Ok(()), |front| front.writer.write_batch())?;
        }
        Ok(())
    }
}

impl CommitState {
    /// The log has the pointers: the memtables reach that far.
    pub(crate) fn note_fronts(&mut self, separated: &Separated) {
        for (&id, &bytes) in &separated.written {
            let Some(active) = self.active_mut(id) else { continue };
            let Some(front) = &active.fronted.front else { continue };
            active.fronted.reach.note(front, bytes);
            let (file, syncer) = (front.file, front.syncer.clone());
            self.unsynced_values.insert(file, syncer);
        }
    }

    /// The log has no pointers to what was written: nothing may come behind it.
    pub(crate) fn give_up(&mut self, separated: &Separated) {
        separated.written.keys().for_each(|&id| self.end_front(id));
    }

    /// The keyspace's front takes no more, and can be collected once it is flushed. The next one
    /// begins when a part of a segment came.
    pub(crate) fn end_front(&mut self, id: KeyspaceId) {
        let Some(active) = self.active_mut(id) else { return };
        active.fronted.passed_bytes = 0;
        let Some(front) = active.fronted.front.take() else { return };
        let keyspace = active.keyspace.clone();
        self.ended_fronts.push((keyspace, front.file));
        self.release_fronts();
    }

    /// Fronts that ended are free for collections once no memtable reaches into them.
    pub(crate) fn release_fronts(&mut self) {
        if self.ended_fronts.is_empty() {
            return;
        }
        let sealed = self.sealed.iter().map(|sealed| &sealed.reach);
        let reaches = sealed.chain(self.actives().map(|active| &active.fronted.reach));
        let held: BTreeSet<FileId> = reaches.flat_map(|reach| reach.ends.keys().copied()).collect();
        self.ended_fronts.retain(|(keyspace, file)| {
            let is_held = held.contains(file);
            if !is_held {
                keyspace.values.release(&[*file]);
            }
            is_held
        });
    }

    /// How far the values reach that memtables of all keyspaces point to, by segment.
    pub(crate) fn reach(&self) -> BTreeMap<FileId, u64> {
        let sealed = self.sealed.iter().map(|sealed| &sealed.reach);
        let active = self.actives().map(|active| &active.fronted.reach);
        sealed.chain(active).flat_map(Reach::ends).collect()
    }
}
