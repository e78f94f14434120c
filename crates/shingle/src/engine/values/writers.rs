//! The segments that one job writes values to.
//!
//! A flush continues the last segment of each group. Every other job begins its own segments, so
//! that it never waits for a flush. Records are buffered by group and written in batches (HashKV
//! 3.8).
//!
//! A flush adds a little to each of many segments, and a sync is expensive even for a few bytes. So
//! segments are not synced one by one as they end: the system begins to write each of them, and the
//! syncs follow together.

use crate::engine::core::Core;
use crate::keyspace::KeyspaceState;
use crate::read::missing;
use crate::value_stats::ValueTimes;
use base::checksum::hash64;
use base::key::SEQUENCE_MAX;
use base::{Cause, ErrorKind, FileId, Result, SequenceNumber};
use media::{AppendFile, FileHint, FileName};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tree::{Change, Group, SegmentChange, Segments, Tier};
use values::segment::SegmentWriter;
use values::{SegmentPlace, ValuePointer};

/// Memory for the batches of all groups together.
const BATCHES_BYTES: usize = 4 << 20;
/// Maximum size of a group's batch...
const BATCH_BYTES_MAX: usize = 128 << 10;
/// ... and minimum size.
const BATCH_BYTES_MIN: usize = 4 << 10;

/// Full segments up to this many bytes wait for their syncs together, each with an open file.
const UNSYNCED_BYTES_MAX: u64 = 8 << 20;

/// A segment that a job wrote.
#[derive(Clone, Debug)]
pub(crate) struct WrittenSegment {
    pub file: FileId,
    pub group: Group,
    pub bytes: u64,
    pub is_new: bool,
    pub is_in_cold_store: bool,
}

impl WrittenSegment {
    /// The change that makes it part of the tree.
    pub(crate) fn change(&self, is_provisional: bool) -> Change {
        let &WrittenSegment { file, group, bytes, is_new, is_in_cold_store } = self;
        let change = match is_new {
            true => SegmentChange::Add { group, bytes, is_provisional, is_in_cold_store },
            false => SegmentChange::Grow(bytes),
        };
        Change::Segment { file, change }
    }
}

/// The target of a group's next record.
struct OpenSegment {
    file: FileId,
    /// Bytes that the manifest vouches for.
    bytes: u64,
    is_new: bool,
    segments_before: usize,
    /// The oldest sequence number of a record that the job adds.
    oldest: SequenceNumber,
    /// Opened by the first record.
    writer: Option<SegmentWriter>,
}

impl OpenSegment {
    fn new(file: FileId, bytes: u64, is_new: bool, segments_before: usize) -> OpenSegment {
        OpenSegment { file, bytes, is_new, segments_before, oldest: SEQUENCE_MAX, writer: None }
    }
}

/// Space that a job took beyond what was counted before it, until its segments are in the tree.
pub(crate) struct TakenSpace {
    keyspace: Arc<KeyspaceState>,
    bytes: AtomicU64,
}

impl TakenSpace {
    fn take(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
        self.keyspace.values.add_unlisted(bytes);
    }
}

impl Drop for TakenSpace {
    fn drop(&mut self) {
        self.keyspace.values.end_unlisted(self.bytes.load(Relaxed));
    }
}

impl fmt::Debug for TakenSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TakenSpace({:?})", self.bytes)
    }
}

/// The segments of one job.
pub(crate) struct ValueWriters {
    core: Arc<Core>,
    keyspace: Arc<KeyspaceState>,
    cause: Cause,
    /// Number of hash bits that give the group of a new record.
    depth: u8,
    batch_bytes: usize,
    open: BTreeMap<Group, OpenSegment>,
    /// Segments that take no more records, most of them being written to the medium.
    unsynced: Vec<SegmentWriter>,
    written: Vec<WrittenSegment>,
    claimed: Vec<FileId>,
    /// Time to write records to the segments, since the last call of
    /// [`ValueWriters::take_busy_ns`].
    busy_ns: u64,
    /// The bytes that the memtables of a flush are counted with.
    budget_bytes: u64,
    space: Arc<TakenSpace>,
    /// The cold store had space when the job began.
    has_cold_space: bool,
    /// The segments when the job began, which the entries it reads may point into. Kept, so that
    /// none is removed before the job ends.
    segments: Segments,
}

impl ValueWriters {
    /// For a job that begins while the caller holds the trees. `extends`: the job continues
    /// existing segments.
    pub(crate) fn new(
        core: &Arc<Core>,
        keyspace: &Arc<KeyspaceState>,
        segments: &Segments,
        depth: u8,
        cause: Cause,
        extends: bool,
    ) -> ValueWriters {
        let batch_bytes = (BATCHES_BYTES >> depth).clamp(BATCH_BYTES_MIN, BATCH_BYTES_MAX);
        let mut writers = ValueWriters {
            core: core.clone(),
            keyspace: keyspace.clone(),
            cause,
            depth,
            batch_bytes,
            open: BTreeMap::new(),
            unsynced: Vec::new(),
            written: Vec::new(),
            claimed: Vec::new(),
            busy_ns: 0,
            budget_bytes: 0,
            space: Arc::new(TakenSpace { keyspace: keyspace.clone(), bytes: AtomicU64::new(0) }),
            has_cold_space: keyspace.values.has_cold_space(&*core.store),
            segments: segments.clone(),
        };
        if extends {
            writers.claim_active_segments(segments);
        }
        writers
    }

    /// The job writes the content of memtables, which are counted with `bytes`.
    pub(crate) fn with_budget(mut self, bytes: u64) -> ValueWriters {
        self.budget_bytes = bytes;
        self
    }

    /// Takes space for a record of `bytes`; `false`: the capacity or the cold store has none.
    pub(crate) fn take_space(&mut self, tier: Tier, bytes: u64) -> bool {
        if tier == Tier::Cold && !self.has_cold_space {
            return false;
        }
        if self.keyspace.values.capacity_bytes().is_none() {
            return true;
        }
        if let Some(left) = self.budget_bytes.checked_sub(bytes) {
            self.budget_bytes = left;
            return true;
        }
        let pending_bytes = self.core.commits.lock().pending_bytes(self.keyspace.id);
        let space_bytes = self.keyspace.value_space_bytes(pending_bytes);
        let has_space = space_bytes.is_none_or(|space_bytes| space_bytes >= bytes);
        if has_space {
            self.space.take(bytes);
        }
        has_space
    }

    /// The space that was taken, to be kept until an edit lists the segments.
    pub(crate) fn space(&self) -> &Arc<TakenSpace> {
        &self.space
    }

    fn claim_active_segments(&mut self, segments: &Segments) {
        let rules = &self.keyspace.values;
        for (group, members) in segments.groups() {
            // The empty ones behind it are begun for commits, or left over.
            let Some(before) = members.iter().rposition(|segment| segment.bytes > 0) else {
                continue;
            };
            let last = members[before];
            let is_open = last.bytes < rules.layout.segment_bytes_max(&rules.limits, before);
            if group.tier != Tier::Main || group.depth != self.depth || last.is_provisional {
                continue;
            }
            if is_open && rules.claim(&[last.file.id]) {
                self.claimed.push(last.file.id);
                let (file, bytes) = (last.file.id, last.bytes);
                self.open.insert(group, OpenSegment::new(file, bytes, false, before));
            }
        }
    }

    /// Appends a record, or a tag where there is no value.
    pub(crate) fn add(
        &mut self,
        tier: Tier,
        sequence: SequenceNumber,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<ValuePointer> {
        let depth = if tier == Tier::Cold { 0 } else { self.depth };
        let group = Group::of(tier, hash64(key), depth);
        let begin_ns = self.core.runtime.now_ns();
        self.end_full(group)?;
        let pointer = self.writer(group, sequence)?.add(sequence, key, value);
        self.busy_ns += self.core.runtime.now_ns() - begin_ns;
        pointer
    }

    /// Time to write records to the segments, since the last call.
    pub(crate) fn take_busy_ns(&mut self) -> u64 {
        std::mem::take(&mut self.busy_ns)
    }

    /// Ends the group's segment if it is full.
    fn end_full(&mut self, group: Group) -> Result<()> {
        let rules = &self.keyspace.values;
        let Some(segment) = self.open.get(&group) else { return Ok(()) };
        let bytes = segment.writer.as_ref().map_or(segment.bytes, SegmentWriter::bytes);
        let bytes_max = rules.layout.segment_bytes_max(&rules.limits, segment.segments_before);
        if bytes < bytes_max {
            return Ok(());
        }
        // GC writes the rest of a group to main segments: log segments are smaller, so it would
        // take more of them.
        let is_survivor = self.cause == Cause::ValueGc;
        let before = if is_survivor { 0 } else { segment.segments_before + 1 };
        if let Some(full) = self.open.remove(&group) {
            self.end(group, full)?;
        }
        if self.unsynced.iter().map(SegmentWriter::bytes).sum::<u64>() >= UNSYNCED_BYTES_MAX {
            self.sync_ended()?;
        }
        let fresh = self.fresh(before);
        self.open.insert(group, fresh);
        Ok(())
    }

    fn fresh(&mut self, segments_before: usize) -> OpenSegment {
        let file = self.core.new_file();
        // It is listed before the job ends; until then no other job may use it.
        self.keyspace.values.claim(&[file]);
        self.claimed.push(file);
        OpenSegment::new(file, 0, true, segments_before)
    }

    /// The writer for the group's next record, one of `sequence`.
    fn writer(&mut self, group: Group, sequence: SequenceNumber) -> Result<&mut SegmentWriter> {
        if !self.open.contains_key(&group) {
            let fresh = self.fresh(0);
            self.open.insert(group, fresh);
        }
        if self.open.get(&group).is_some_and(|segment| segment.writer.is_none()) {
            let file = match self.open_segment(group) {
                // Shared with a checkpoint: it stays as it is, and a new one takes the records.
                Err(error) if error.kind() == ErrorKind::Shared => {
                    let before = self.open.get(&group).map_or(0, |segment| segment.segments_before);
                    let fresh = self.fresh(before + 1);
                    self.open.insert(group, fresh);
                    self.open_segment(group)?
                }
                opened => opened?,
            };
            if let Some(segment) = self.open.get_mut(&group) {
                let place = SegmentPlace { database: self.core.database, file: segment.file };
                let writer = SegmentWriter::new(file, place, self.batch_bytes, self.cause);
                segment.writer = Some(writer);
            }
        }
        let Some(segment) = self.open.get_mut(&group) else {
            return Err(base::Error::invalid("a group without a segment"));
        };
        segment.oldest = sequence.min(segment.oldest);
        segment.writer.as_mut().ok_or_else(|| base::Error::invalid("a segment without a writer"))
    }

    /// Opens the group's segment to be written.
    fn open_segment(&self, group: Group) -> Result<Box<dyn AppendFile>> {
        let rules = &self.keyspace.values;
        let Some(segment) = self.open.get(&group) else {
            return Err(base::Error::invalid("a group without a segment"));
        };
        let hint = FileHint {
            bytes_max: Some(rules.layout.segment_bytes_max(&rules.limits, segment.segments_before)),
            group: Some(group.prefix >> 40 | u64::from(group.tier as u8) << 32),
            background: true,
            is_cold: group.tier == Tier::Cold,
            ..FileHint::NONE
        };
        let name = FileName::value(segment.file);
        if segment.is_new {
            return self.core.store.create(name, &hint);
        }
        let extended = self.core.extend_file(name, segment.bytes, &hint);
        extended.map_err(|error| missing(error, name))
    }

    /// The segment takes no more; it is durable after [`ValueWriters::sync_ended`].
    fn end(&mut self, group: Group, segment: OpenSegment) -> Result<()> {
        let OpenSegment { file, is_new, writer, oldest, .. } = segment;
        let Some(mut writer) = writer else { return Ok(()) };
        if !is_new {
            self.keyspace.values.note_older_entry(file, oldest);
        }
        // Listed before it is written: a failure removes it.
        let name = FileName::value(file);
        let is_in_cold_store = self.core.store.cold_store().is_some_and(|s| s.is_cold(name));
        let bytes = writer.bytes();
        self.written.push(WrittenSegment { file, group, bytes, is_new, is_in_cold_store });
        writer.begin_sync()?;
        self.unsynced.push(writer);
        Ok(())
    }

    fn sync_ended(&mut self) -> Result<()> {
        self.unsynced.drain(..).try_for_each(|mut writer| writer.sync().map(drop))
    }

    /// The segments when the job began.
    pub(crate) fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Makes every record durable.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let begin_ns = self.core.runtime.now_ns();
        while let Some((group, segment)) = self.open.pop_first() {
            self.end(group, segment)?;
        }
        self.sync_ended()?;
        self.busy_ns += self.core.runtime.now_ns() - begin_ns;
        Ok(())
    }

    /// The segments that the job claimed. They stay claimed when it ends.
    pub(crate) fn take_claims(&mut self) -> Vec<FileId> {
        std::mem::take(&mut self.claimed)
    }

    /// Releases the segments to other jobs: they are in the tree.
    pub(crate) fn release(&mut self) {
        self.keyspace.values.release(&std::mem::take(&mut self.claimed));
    }

    /// The output so far; after [`ValueWriters::finish`], all of it.
    pub(crate) fn written(&self) -> &[WrittenSegment] {
        &self.written
    }

    /// Removes the output: the job failed, and no edit lists it.
    pub(crate) fn remove_created(&self) {
        if self.core.poisoned_by().is_some() {
            return;
        }
        let open = self.open.values().filter(|segment| segment.is_new && segment.writer.is_some());
        let ended = self.written.iter().filter(|written| written.is_new).map(|w| w.file);
        for file in open.map(|segment| segment.file).chain(ended) {
            // What cannot be removed now is removed at the next opening.
            let _ = self.core.store.remove(FileName::value(file));
        }
    }
}

impl Drop for ValueWriters {
    fn drop(&mut self) {
        self.release();
        // GC takes this time after each step.
        let times = ValueTimes { write_ns: self.take_busy_ns(), ..ValueTimes::default() };
        self.keyspace.values.add_times(&times);
    }
}
