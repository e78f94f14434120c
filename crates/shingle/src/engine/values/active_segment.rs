//! Values that are written once: a commit appends them to the *active segment* of its keyspace, and
//! the log has their pointers (ADR 0090).
//!
//! Invariants:
//! - An active segment is a new file, and listed in the tree, empty, before a commit writes to it.
//!   So no file that a log names is ever used again, and recovery finds every one in the manifest.
//! - A commit never begins a segment: it requests the next one ahead, and the background begins it
//!   ([`super::begin_segment`], ADR 0192). While there is none, values go to the log and the
//!   memtable, and the flush separates them.
//! - Values reach their segment before their pointers reach the log, and in the same order: the
//!   values of a prefix of the log are a prefix of each active segment.
//! - Active segments are durable before the log that names them is called durable.
//! - Bytes that were written before this opening and that the manifest does not vouch for are never
//!   relied on: the first flush writes their values to new files ([`crate::unvouched`]).
//! - An active segment is claimed until the last memtable that points into it is flushed: only then
//!   the tree vouches for all its bytes. An active segment whose end is uncertain takes no more
//!   records.

use crate::engine::commit_state::{Active, CommitState};
use crate::engine::context::Context;
use crate::keyspace::KeyspaceState;
use crate::unvouched::Unvouched;
use base::{Cause, Expiry, FileId, KeyspaceId, Result, SequenceNumber};
use media::SyncFile;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use table::batch::{Operation, WriteBatch};
use tree::edit::{Change, SegmentChange};
use tree::{Segment, Version};
use values::segment::SegmentWriter;

/// A keyspace gets an active segment when its commits have brought one part in this many of a
/// segment. A short session leaves no segment of its own: its values go through the log and a flush
/// to the last segment.
const FIRST_SHARE: u64 = 16;

/// The next segment is requested when one part in this many of the active one is left. The
/// background begins it meanwhile; its step takes as long as an edit and the step before it.
const LEAD_SHARE: u64 = 4;

/// A segment that commits append to, or are going to.
pub(crate) struct ActiveSegment {
    pub file: FileId,
    pub writer: SegmentWriter,
    pub syncer: Arc<dyn SyncFile>,
}

/// How the commits of a keyspace write values.
#[derive(Default)]
pub(crate) struct CommitValues {
    active: Option<ActiveSegment>,
    /// The segment after the active one: listed in the tree, empty.
    next: Option<ActiveSegment>,
    /// The background is to begin a segment.
    is_requested: bool,
    /// The last one could not be begun. The next request waits for [`FIRST_SHARE`].
    is_refused: bool,
    /// The extents that the active memtable points to.
    pub unflushed: UnflushedExtents,
    /// Bytes of large values that came while no segment had space for them.
    passed_bytes: u64,
}

/// The extents of segments that a memtable points to and the tree does not vouch for yet.
#[derive(Clone, Default)]
pub(crate) struct UnflushedExtents {
    ends: BTreeMap<FileId, End>,
    /// Bytes of the records.
    pub bytes: u64,
}

#[derive(Clone)]
struct End {
    bytes: u64,
    /// `None`: the segment was written before this opening, and its values are written again.
    syncer: Option<Arc<dyn SyncFile>>,
}

/// A batch whose large values are in active segments.
#[derive(Default)]
pub(crate) struct Separated {
    /// The batch with pointers in place of the values.
    pub batch: WriteBatch,
    /// The keyspaces whose active segments were written to, with the bytes.
    written: Vec<(KeyspaceId, u64)>,
    pointer: Vec<u8>,
}

/// A batch that grew beyond this is given back.
const BATCH_BYTES_KEPT_MAX: usize = 1 << 20;

impl UnflushedExtents {
    /// For memtables that recovery filled: by segment, the end of the last record.
    pub(crate) fn recovered(ends: &BTreeMap<FileId, u64>) -> UnflushedExtents {
        let end = |&bytes: &u64| End { bytes, syncer: None };
        UnflushedExtents {
            ends: ends.iter().map(|(&file, bytes)| (file, end(bytes))).collect(),
            bytes: 0,
        }
    }

    /// The segments, with the end of the last record in each.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (FileId, u64)> {
        self.ends.iter().map(|(&file, end)| (file, end.bytes))
    }

    fn note(&mut self, segment: &ActiveSegment, bytes: u64) {
        let syncer = Some(segment.syncer.clone());
        self.ends.insert(segment.file, End { bytes: segment.writer.bytes(), syncer });
        self.bytes += bytes;
    }

    /// Adds the extents of a newer memtable.
    pub(crate) fn join(&mut self, newer: &UnflushedExtents) {
        self.ends.extend(newer.ends.iter().map(|(&file, end)| (file, end.clone())));
        self.bytes += newer.bytes;
    }

    /// Makes durable what was written since opening.
    pub(crate) fn sync(&self, context: &Context) -> Result<()> {
        let syncers = self.ends.values().filter_map(|end| end.syncer.as_ref());
        for syncer in syncers {
            let synced = syncer.sync(Cause::ValueWrite);
            synced.map_err(|error| context.poison_unless_tried_again(error))?;
        }
        Ok(())
    }

    /// The part that was written before this opening and that the manifest does not vouch for.
    pub(crate) fn unvouched(&self, version: &Version) -> Unvouched {
        Unvouched::behind(
            self.recovered_in(version).map(|(segment, _)| (segment.file.id, segment.bytes)),
        )
    }

    /// Maximum bytes of that part.
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

    /// The changes to the tree once these values are flushed. Of a segment from before this
    /// opening, only the part that the manifest vouched for remains, if any.
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
    /// The value goes to the active segment.
    fn separates(&self, operation: &Operation<'_>) -> bool {
        let (_, value) = operation.expiry_and_value();
        let is_large = value.len() as u64 >= self.keyspace.values.threshold_bytes;
        operation.kind().is_value() && is_large && !self.keyspace.options.without_wal
    }

    fn open_segment(&mut self) -> Option<&mut ActiveSegment> {
        let bytes_max = active_segment_bytes_max(&self.keyspace);
        self.values.active.as_mut().filter(|segment| segment.writer.bytes() < bytes_max)
    }

    /// The keyspace should have another active segment.
    fn lacks_segment(&self) -> bool {
        let bytes_max = active_segment_bytes_max(&self.keyspace);
        match &self.values.active {
            Some(segment) => segment.writer.bytes() >= bytes_max,
            None => self.values.passed_bytes >= bytes_max / FIRST_SHARE,
        }
    }

    /// It should be requested.
    fn wants_segment(&self) -> bool {
        let values = &self.values;
        if values.is_requested || values.next.is_some() {
            return false;
        }
        let bytes_max = active_segment_bytes_max(&self.keyspace);
        let lead_bytes = bytes_max - bytes_max / LEAD_SHARE;
        let ends_soon = |segment: &ActiveSegment| segment.writer.bytes() >= lead_bytes;
        values.passed_bytes >= bytes_max / FIRST_SHARE
            || (!values.is_refused && values.active.as_ref().is_some_and(ends_soon))
    }

    /// Appends the value to the active segment. Returns the pointer, or `None` where no segment has
    /// space.
    fn append_value(
        &mut self,
        sequence: SequenceNumber,
        operation: &Operation<'_>,
    ) -> Result<Option<values::ValuePointer>> {
        let (_, value) = operation.expiry_and_value();
        match self.open_segment() {
            Some(segment) => segment.writer.add(sequence, operation.key(), Some(value)).map(Some),
            None => {
                self.values.passed_bytes += value.len() as u64;
                Ok(None)
            }
        }
    }
}

pub(crate) fn active_segment_bytes_max(keyspace: &KeyspaceState) -> u64 {
    keyspace.values.layout.segment_bytes_max(&keyspace.values.limits, 0)
}

impl CommitState {
    /// Appends the large values of `batch`, whose first operation has the sequence number `first`,
    /// to the active segments. `None`: no value goes there. After an error, nothing that was
    /// written counts.
    pub(crate) fn append_values(
        &mut self,
        first: SequenceNumber,
        batch: &WriteBatch,
    ) -> Result<Option<Separated>> {
        let mut separated = std::mem::take(&mut self.separated);
        separated.batch.clear();
        separated.written.clear();
        let written = separated.fill(self, first, batch);
        if let Err(error) = written {
            self.give_up(&separated);
            return Err(error);
        }
        if separated.written.is_empty() {
            self.keep_separated(separated);
            return Ok(None);
        }
        Ok(Some(separated))
    }

    /// Keeps the memory for the next batch.
    pub(crate) fn keep_separated(&mut self, separated: Separated) {
        if separated.batch.room_bytes() <= BATCH_BYTES_KEPT_MAX {
            self.separated = separated;
        }
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
            let id = operation.keyspace();
            if state.active(id).is_some_and(|active| active.separates(&operation)) {
                // A batch writes to one segment of a keyspace at most.
                if self.written.iter().all(|(written, _)| *written != id) {
                    state.use_next_segment(id);
                }
                if let Some(pointer) = state.append_value(sequence, &operation)? {
                    self.note_written(id, pointer.record_bytes.into());
                    self.pointer.clear();
                    pointer.push(&mut self.pointer);
                    let expiry = operation.expiry_and_value().0.unwrap_or(Expiry::NEVER);
                    self.batch.put_expiring_pointer(id, operation.key(), &self.pointer, expiry)?;
                    continue;
                }
            }
            self.batch.push(&operation)?;
        }
        for &(id, _) in &self.written {
            let segment = state.active_mut(id).and_then(|active| active.values.active.as_mut());
            segment.map_or(Ok(()), |segment| segment.writer.write_batch())?;
        }
        Ok(())
    }

    fn note_written(&mut self, id: KeyspaceId, bytes: u64) {
        match self.written.iter_mut().find(|(written, _)| *written == id) {
            Some((_, sum)) => *sum += bytes,
            None => self.written.push((id, bytes)),
        }
    }
}

impl CommitState {
    /// The log has the pointers: extends the memtables' unflushed extents.
    pub(crate) fn note_appended(&mut self, separated: &Separated) {
        for &(id, bytes) in &separated.written {
            let Some(active) = self.active_mut(id) else { continue };
            let Some(segment) = &active.values.active else { continue };
            active.values.unflushed.note(segment, bytes);
            let (file, syncer) = (segment.file, segment.syncer.clone());
            self.unsynced_values.insert(file, syncer);
        }
    }

    /// The log has no pointers to what was written: nothing may be appended after it.
    pub(crate) fn give_up(&mut self, separated: &Separated) {
        separated.written.iter().for_each(|&(id, _)| self.end_active_segment(id));
    }

    /// Appends a large value to its keyspace's active segment, and requests the next segment if it
    /// is time. `None`: no segment has space.
    fn append_value(
        &mut self,
        sequence: SequenceNumber,
        operation: &Operation<'_>,
    ) -> Result<Option<values::ValuePointer>> {
        let id = operation.keyspace();
        let Some(active) = self.active_mut(id) else { return Ok(None) };
        let pointer = active.append_value(sequence, operation);
        if active.wants_segment() {
            active.values.is_requested = true;
            self.requested_segments.push(id);
        }
        pointer
    }

    /// Makes the next segment the active one, if it is there and the keyspace lacks one.
    fn use_next_segment(&mut self, id: KeyspaceId) {
        let Some(active) = self.active_mut(id).filter(|active| active.lacks_segment()) else {
            return;
        };
        let Some(next) = active.values.next.take() else { return };
        self.replace_active_segment(id, next);
    }

    fn replace_active_segment(&mut self, id: KeyspaceId, segment: ActiveSegment) {
        self.end_active_segment(id);
        let Some(active) = self.active_mut(id) else { return };
        active.values.active = Some(segment);
    }

    /// Takes a request for a segment, which must be answered by one of the two calls that follow.
    pub(crate) fn take_segment_request(&mut self) -> Option<Arc<KeyspaceState>> {
        loop {
            let id = self.requested_segments.pop()?;
            // Dropped keyspaces need no segment.
            if let Some(active) = self.active(id) {
                return Some(active.keyspace.clone());
            }
        }
    }

    /// A requested segment is not there yet.
    pub(crate) fn awaits_segment(&self) -> bool {
        self.actives().any(|active| active.values.is_requested)
    }

    /// The requested segment is in the tree.
    pub(crate) fn add_segment(&mut self, id: KeyspaceId, segment: ActiveSegment) {
        let Some(active) = self.active_mut(id) else { return };
        (active.values.is_requested, active.values.is_refused) = (false, false);
        let is_open = active.open_segment().is_some();
        active.values.passed_bytes = 0;
        match is_open {
            true => active.values.next = Some(segment),
            false => self.replace_active_segment(id, segment),
        }
    }

    /// The requested segment could not be begun.
    pub(crate) fn refuse_segment(&mut self, id: KeyspaceId) {
        let Some(active) = self.active_mut(id) else { return };
        (active.values.is_requested, active.values.is_refused) = (false, true);
        active.values.passed_bytes = 0;
    }

    /// Forgets the segments that commits append to: there are no more commits.
    pub(crate) fn forget_segments(&mut self) {
        self.requested_segments.clear();
        for active in self.actives.values_mut() {
            (active.values.active, active.values.next) = (None, None);
        }
    }

    /// Ends the keyspace's active segment: it takes no more, and GC may read it once it is flushed.
    /// The next one is used when enough bytes have come ([`FIRST_SHARE`]).
    pub(crate) fn end_active_segment(&mut self, id: KeyspaceId) {
        let Some(active) = self.active_mut(id) else { return };
        active.values.passed_bytes = 0;
        let Some(segment) = active.values.active.take() else { return };
        let keyspace = active.keyspace.clone();
        self.ended_segments.push((keyspace, segment.file));
        self.release_ended_segments();
    }

    /// Active segments that ended become free for GC once no memtable points into them.
    pub(crate) fn release_ended_segments(&mut self) {
        if self.ended_segments.is_empty() {
            return;
        }
        let sealed = self.sealed.iter().map(|sealed| &sealed.unflushed);
        let extents = sealed.chain(self.actives().map(|active| &active.values.unflushed));
        let held: BTreeSet<FileId> =
            extents.flat_map(|extents| extents.ends.keys().copied()).collect();
        self.ended_segments.retain(|(keyspace, file)| {
            let is_held = held.contains(file);
            if !is_held {
                keyspace.values.release(&[*file]);
            }
            is_held
        });
    }

    /// By segment, the end of the values that memtables of all keyspaces point to.
    pub(crate) fn unflushed_ends(&self) -> BTreeMap<FileId, u64> {
        let sealed = self.sealed.iter().map(|sealed| &sealed.unflushed);
        let active = self.actives().map(|active| &active.values.unflushed);
        sealed.chain(active).flat_map(UnflushedExtents::ends).collect()
    }
}
