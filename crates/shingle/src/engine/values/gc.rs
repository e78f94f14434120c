//! Garbage collection of the segments that a layout picked, in bounded steps.
//!
//! 1. *Order.* Where the layout uses the group's order, GC finds the newest record of each key. The
//!    segments that it reads stay in memory for the next phase, unless the group is large.
//! 2. *Move.* GC writes the live records to new segments, unchanged, with the sequence number of
//!    their first write. If the group has hardly more garbage than the order shows, the newest
//!    record of each key counts as live, without look-ups (HashKV 3.3). Otherwise, and where there
//!    is no order, every record that may be live is looked up: in key order, a window of records at
//!    a time ([`window`]).
//! 3. *List.* The new segments are durable and in the tree, provisionally.
//! 4. *Commit.* Pointers change, a few at a time, as ordinary writes with sequence numbers of their
//!    own, so that newer entries stay above older ones. Each changes on the condition that the tree
//!    still holds the old pointer. A concurrent write or deletion wins, and the moved record is
//!    garbage at once.
//! 5. *Retire.* The old segments are retired and the new ones confirmed.
//!
//! A crash before the last edit leaves provisional segments, which GC later reads with look-ups.
//! Until then the old segments hold all records that the tree may point to.
//!
//! GC that fails gives back the copies that nothing points to ([`give_back`]).

mod give_back;
mod lookups;
mod pointers;
mod record;
mod window;

use super::segment_buffer::SegmentBuffer;
use super::writers::ValueWriters;
use crate::engine::backed_off::Inputs;
use crate::engine::core::Core;
use crate::engine::memory::Buffers;
use crate::engine::rewrite::Progress;
use crate::engine::trees::{Flushed, TreeState, Trees};
use crate::event::Event;
use crate::keyspace::KeyspaceState;
use crate::read::missing;
use crate::span::{Span, span};
use crate::value_stats::{Collected, ValueTimes};
use base::key::SEQUENCE_MAX;
use base::{Cause, FileId, KeyspaceId, Result, SequenceNumber};
use media::{FileName, ReadFile};
use pointers::{Moved, Replacement};
use record::RecordAt;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tree::Version;
use tree::edit::{Change, DatabaseEdit, KeyspaceEdit, SegmentChange};
use values::segment::SegmentScan;
use values::{Collection, Validity, ValueLimits};
use window::Window;

/// GC trusts the order if other garbage is at most one part in this many of the garbage that the
/// order shows.
const ORDER_SLACK_SHARE: u64 = 8;

/// The newest record of a key in a group.
struct Newest {
    sequence: SequenceNumber,
    /// Number of records and tags of the key.
    count: u32,
    /// Bytes of the newest record.
    bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Order,
    Move,
    List,
    Commit,
    Retire,
}

/// GC in progress.
pub(crate) struct GcJob {
    /// Its number in the event log.
    number: u64,
    span: Span,
    keyspace: Arc<KeyspaceState>,
    collection: Collection,
    /// Keeps the segments that it reads.
    version: Arc<Version>,
    phase: Phase,
    /// The segment that is being read, as an index into the plan's files, and the offset in it.
    at: (usize, u64),
    /// The segments that the order was found in, where there is memory for them.
    segment_buffers: HashMap<FileId, Arc<SegmentBuffer>>,
    newest: HashMap<Vec<u8>, Newest>,
    /// Bytes of the records that `newest` names.
    newest_bytes: u64,
    /// Records are written without a look-up.
    trusts_order: bool,
    /// The records that are looked up together, where they are looked up.
    window: Option<Window>,
    writers: ValueWriters,
    moved: Vec<Moved>,
    /// Bytes of the keys in `newest`, and of those in `moved`.
    newest_key_bytes: u64,
    moved_key_bytes: u64,
    /// Its entry in the memory account.
    buffers: Buffers,
    committed: usize,
    /// By segment that it reads, the oldest sequence number of a value there.
    oldest: BTreeMap<FileId, SequenceNumber>,
    /// Bytes of moved records that are garbage already, by new segment.
    lost: BTreeMap<FileId, u64>,
    last_sequence: SequenceNumber,
    begin_ns: u64,
    step_bytes: u64,
    lookups: u64,
    /// Duration of the look-ups in the step.
    lookup_ns: u64,
    /// Without a log: this must be flushed before the old segments are retired.
    flush_through: Option<SequenceNumber>,
    /// The keyspace lacked space for values that it combined.
    lacks_capacity: bool,
    is_backed_off: bool,
}

/// Begins with the keyspace whose writers wait for space, and then with the one whose garbage
/// exceeds the allowed garbage most. `None`: nothing is due.
pub(crate) fn begin(core: &Arc<Core>, trees: &Trees) -> Option<Box<GcJob>> {
    let mut order: Vec<&TreeState> = trees.keyspaces.values().collect();
    order.sort_by_cached_key(|tree| {
        let (rules, usage) = (&tree.keyspace.values, tree.version.segments.usage());
        Reverse((rules.is_awaited(), rules.debt_percent(&usage)))
    });
    order.into_iter().find_map(|tree| {
        let keyspace = &tree.keyspace;
        let (rules, segments) = (&keyspace.values, &tree.version.segments);
        let collection = pick(core, tree)?;
        if !rules.claim(&collection.files) {
            return None;
        }
        rules.set_collecting(collection.write_bytes);
        let (depth, cause) = (collection.to_depth, Cause::ValueGc);
        let writers = ValueWriters::new(core, keyspace, segments, depth, cause, false);
        let phase = match collection.validity {
            Validity::GroupOrder => Phase::Order,
            Validity::Lookup => Phase::Move,
        };
        let number = core.events.begin_job();
        let span = span!("value_collection", job = number, keyspace = %keyspace.name);
        let started = Event::ValueGcStarted {
            job: number,
            keyspace: keyspace.name.clone(),
            files: collection.files.iter().map(|file| file.0).collect(),
            read_bytes: collection.read_bytes,
        };
        span.within(|| core.events.add(started));
        Some(Box::new(GcJob {
            number,
            span,
            keyspace: keyspace.clone(),
            version: tree.version.clone(),
            phase,
            at: (0, 0),
            segment_buffers: HashMap::new(),
            newest: HashMap::new(),
            newest_bytes: 0,
            trusts_order: false,
            window: None,
            writers,
            moved: Vec::new(),
            newest_key_bytes: 0,
            moved_key_bytes: 0,
            buffers: core.memory.begin_job(),
            committed: 0,
            oldest: collection.files.iter().map(|&file| (file, SEQUENCE_MAX)).collect(),
            lost: BTreeMap::new(),
            last_sequence: 0,
            begin_ns: core.runtime.now_ns(),
            step_bytes: 0,
            lookups: 0,
            lookup_ns: 0,
            flush_through: None,
            lacks_capacity: false,
            is_backed_off: false,
            collection,
        }))
    })
}

/// GC is due.
pub(crate) fn is_due(core: &Core, trees: &Trees) -> bool {
    trees.keyspaces.values().any(|tree| pick(core, tree).is_some())
}

/// What GC would read if it began now.
pub(crate) fn pick(core: &Core, tree: &TreeState) -> Option<Collection> {
    let (rules, segments) = (&tree.keyspace.values, &tree.version.segments);
    if segments.is_empty() {
        return None;
    }
    let busy = busy(core, tree);
    let is_warm = rules.limits.hotness && !rules.has_cold_space(&*core.store);
    if rules.capacity_bytes().is_none() && !is_warm {
        return rules.layout.pick(segments, &rules.limits, &busy);
    }
    let pending_bytes = core.commits.lock().pending_bytes(tree.keyspace.id);
    let beside = rules.limits_beside(pending_bytes);
    // Where the cold store is full, all values stay in their groups.
    let limits = ValueLimits { hotness: beside.hotness && !is_warm, ..beside };
    rules.layout.pick(segments, &limits, &busy)
}

/// The segments that GC cannot read now: those of other jobs, and on a full medium all whose values
/// would have to be copied.
fn busy(core: &Core, tree: &TreeState) -> BTreeSet<FileId> {
    let mut busy = tree.keyspace.values.claimed();
    if core.check_space_to_rewrite().is_err() {
        let live = tree.version.segments.iter().filter(|segment| segment.live_bytes() > 0);
        busy.extend(live.map(|segment| segment.file.id));
    }
    busy
}

impl GcJob {
    /// The keyspace whose values it works on.
    pub(crate) fn keyspace(&self) -> KeyspaceId {
        self.keyspace.id
    }

    /// One bounded step.
    pub(crate) fn step(&mut self, core: &Arc<Core>) -> Result<Progress> {
        self.span.clone().within(|| self.step_inside(core))
    }

    fn step_inside(&mut self, core: &Arc<Core>) -> Result<Progress> {
        let (phase, begin_ns) = (self.phase, core.runtime.now_ns());
        let stepped = self.step_phase(core);
        let mut times = ValueTimes {
            collect_lookup_ns: std::mem::take(&mut self.lookup_ns),
            collect_write_ns: self.writers.take_busy_ns(),
            ..ValueTimes::default()
        };
        let told_ns = times.collect_lookup_ns + times.collect_write_ns;
        let rest_ns = (core.runtime.now_ns() - begin_ns).saturating_sub(told_ns);
        match phase {
            Phase::Order | Phase::Move => times.collect_read_ns += rest_ns,
            Phase::List => times.collect_write_ns += rest_ns,
            Phase::Commit | Phase::Retire => times.collect_pointer_ns += rest_ns,
        }
        self.keyspace.values.add_times(&times);
        stepped
    }

    fn step_phase(&mut self, core: &Arc<Core>) -> Result<Progress> {
        // The phases after these confirm the copies, and free what they were made from.
        if matches!(self.phase, Phase::Order | Phase::Move) && self.collection.write_bytes > 0 {
            core.check_space_to_rewrite()?;
        }
        match self.phase {
            Phase::Order => {
                if !self.scan(core, GcJob::note_order)? {
                    self.trusts_order = self.order_tells();
                    self.phase = Phase::Move;
                    self.at = (0, 0);
                }
            }
            Phase::Move => {
                let is_more = match self.trusts_order {
                    true => self.scan(core, GcJob::move_newest)?,
                    false => self.step_window(core)?,
                };
                if !is_more {
                    self.phase = Phase::List;
                }
            }
            Phase::List => {
                self.list(core)?;
                self.phase = Phase::Commit;
            }
            Phase::Commit => {
                if !self.commit_some(core)? {
                    self.phase = Phase::Retire;
                }
            }
            Phase::Retire => {
                if self.is_durable(core)? {
                    self.retire(core)?;
                    return Ok(Progress::Done);
                }
            }
        }
        Ok(Progress::More)
    }

    /// Bytes that steps processed since the last call.
    pub(crate) fn take_step_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.step_bytes)
    }

    /// The group has hardly more garbage than the order shows. The rest are values that were
    /// deleted, that became small, or that have a newer version in the segment that a flush appends
    /// to. Moving them costs less than looking them up, and the commit finds them. Their share of
    /// the reclaimed bytes is limited, because otherwise GC could read the same group forever;
    /// where a capacity bounds the segments, or nothing is live, none is allowed. Values that are
    /// soon garbage must not go to the cold log, so with a cold log everything is looked up.
    fn order_tells(&self) -> bool {
        if self.collection.tags_cold {
            return false;
        }
        let Collection { read_bytes, write_bytes, .. } = self.collection;
        let shown_bytes = read_bytes.saturating_sub(self.newest_bytes);
        let hidden_bytes = self.newest_bytes.saturating_sub(write_bytes);
        let is_bounded = self.keyspace.values.capacity_bytes().is_some() || write_bytes == 0;
        hidden_bytes <= if is_bounded { 0 } else { shown_bytes / ORDER_SLACK_SHARE }
    }

    /// Hands one buffer of records to `each`, until that gives `false` for one: the next call hands
    /// it over again. `false`: there are no more.
    fn scan(
        &mut self,
        core: &Arc<Core>,
        each: fn(&mut GcJob, &RecordAt<'_>) -> Result<bool>,
    ) -> Result<bool> {
        let Some(&id) = self.collection.files.get(self.at.0) else { return Ok(false) };
        let bytes = self.version.segments.get(id).map_or(0, |segment| segment.bytes);
        if self.at.1 >= bytes {
            self.at = (self.at.0 + 1, 0);
            if self.phase == Phase::Move {
                self.segment_buffers.remove(&id);
            }
            return Ok(true);
        }
        let file = self.open(core, id, bytes)?;
        let place = core.read.values.place(id);
        let begin = self.at.1;
        let mut scan = SegmentScan::new(&*file, place, bytes, Cause::ValueGc).starting_at(begin);
        self.at.1 = bytes;
        while let Some((record, pointer)) = scan.next_record()? {
            let record = RecordAt {
                sequence: record.sequence,
                key: record.key,
                value: record.value,
                pointer,
            };
            if !each(self, &record)? {
                self.at.1 = pointer.offset;
                break;
            }
            if !scan.is_buffered() {
                self.at.1 = scan.offset();
                break;
            }
        }
        self.step_bytes += self.at.1 - begin;
        self.account(core);
        Ok(true)
    }

    /// Opens a segment of `bytes`. Its bytes stay in memory once read, unless the group is too
    /// large.
    fn open(&mut self, core: &Core, id: FileId, bytes: u64) -> Result<Arc<dyn ReadFile>> {
        if let Some(buffer) = self.segment_buffers.get(&id) {
            return Ok(buffer.clone());
        }
        let name = FileName::value(id);
        let file = core.store.open(name, true).map_err(|error| missing(error, name))?;
        let keeps = self.collection.read_bytes <= core.settings.collection_bytes_kept_max;
        if self.phase != Phase::Order || !keeps {
            return Ok(file);
        }
        let buffer = Arc::new(SegmentBuffer::new(file, bytes));
        self.segment_buffers.insert(id, buffer.clone());
        Ok(buffer)
    }

    fn buffered_bytes(&self) -> u64 {
        self.segment_buffers.values().map(|buffer| buffer.memory_bytes()).sum()
    }

    /// Updates the memory account with what the job holds: a map has one control byte beside each
    /// slot.
    fn account(&mut self, core: &Core) {
        let newest = self.newest.capacity() * (size_of::<(Vec<u8>, Newest)>() + 1);
        let moved = self.moved.capacity() * size_of::<Moved>();
        let keys_bytes = self.newest_key_bytes + self.moved_key_bytes;
        let buffered_bytes = self.buffered_bytes();
        let window_bytes = self.window.as_ref().map_or(0, Window::memory_bytes);
        self.buffers.set((newest + moved) as u64 + keys_bytes + buffered_bytes + window_bytes);
        core.resize_cache();
    }

    fn note_order(&mut self, record: &RecordAt<'_>) -> Result<bool> {
        match self.newest.get_mut(record.key) {
            Some(newest) => {
                newest.count += 1;
                match newest.sequence.cmp(&record.sequence) {
                    Ordering::Less => {
                        self.newest_bytes = self.newest_bytes + record.bytes() - newest.bytes;
                        (newest.sequence, newest.bytes) = (record.sequence, record.bytes());
                    }
                    // Copies of one record, where a crash ended an earlier GC. All of them are
                    // moved, so the order shows none of them as garbage.
                    Ordering::Equal => {
                        self.newest_bytes += record.bytes();
                        newest.bytes += record.bytes();
                    }
                    Ordering::Greater => {}
                }
            }
            None => {
                let (sequence, bytes) = (record.sequence, record.bytes());
                self.newest_bytes += bytes;
                let newest = Newest { sequence, count: 1, bytes };
                self.newest.insert(record.key.to_vec(), newest);
                self.newest_key_bytes += record.key.len() as u64;
            }
        }
        Ok(true)
    }

    /// The record may be live, as far as the order tells, and how often the group has its key.
    fn note_read(&mut self, record: &RecordAt<'_>) -> Option<u32> {
        if record.value.is_some() {
            let oldest = self.oldest.entry(record.pointer.file).or_insert(SEQUENCE_MAX);
            *oldest = record.sequence.min(*oldest);
        }
        match self.newest.get(record.key) {
            Some(newest) if newest.sequence > record.sequence => None,
            Some(newest) => Some(newest.count),
            None => Some(0),
        }
    }

    /// Moves the record if it is its key's newest in the group.
    fn move_newest(&mut self, record: &RecordAt<'_>) -> Result<bool> {
        let (Some(_), Some(value)) = (self.note_read(record), record.value) else {
            return Ok(true);
        };
        let tier = self.collection.group.tier;
        let to = self.writers.add(tier, record.sequence, record.key, Some(value))?;
        self.note_moved(Moved {
            key: record.key.to_vec(),
            from: record.pointer,
            to: Replacement::Record(to),
            seen: None,
        });
        Ok(true)
    }

    fn note_moved(&mut self, moved: Moved) {
        self.moved_key_bytes += moved.key.len() as u64;
        self.moved.push(moved);
    }

    /// The new segments become part of the tree.
    fn list(&mut self, core: &Arc<Core>) -> Result<()> {
        (self.newest, self.newest_key_bytes) = (HashMap::new(), 0);
        self.account(core);
        // The index is asked for them once more, in key order.
        self.moved.sort_by(|a, b| a.key.cmp(&b.key));
        self.writers.finish()?;
        core.runtime.interleave("collect: before the tree lists segments");
        // Pointers into the new segments are still to be committed: they are newer than every
        // present entry.
        let first = core.snapshots.visible() + 1;
        let written = self.writers.written().iter();
        written.for_each(|new| self.keyspace.values.note_first_entry(new.file, first));
        let changes: Vec<Change> =
            self.writers.written().iter().map(|segment| segment.change(true)).collect();
        self.install(core, changes)
    }

    fn install(&self, core: &Arc<Core>, changes: Vec<Change>) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let keyspaces = vec![KeyspaceEdit { keyspace: self.keyspace.id, changes }];
        let edit = DatabaseEdit { keyspaces, ..DatabaseEdit::default() };
        core.versions.install(&mut core.versions.lock(), edit, &Flushed::new())
    }

    /// Retires the old segments.
    fn retire(&mut self, core: &Arc<Core>) -> Result<()> {
        let written = self.writers.written().iter();
        let mut changes: Vec<(FileId, SegmentChange)> =
            written.map(|segment| (segment.file, SegmentChange::Confirm)).collect();
        let lost = self.lost.iter();
        changes.extend(lost.map(|(&file, &bytes)| (file, SegmentChange::Bury(bytes))));
        // A reader at an older moment may still need a record that was found to be garbage. Entries
        // are not older than the records that they point to.
        let oldest = self.oldest.iter();
        oldest.for_each(|(&file, &first)| self.keyspace.values.note_first_entry(file, first));
        let sequence = self.last_sequence;
        core.runtime.interleave("collect: before segments retire");
        let files = self.collection.files.iter();
        changes.extend(files.map(|&file| (file, SegmentChange::Retire(sequence))));
        let changes = changes.into_iter().map(|(file, change)| Change::Segment { file, change });
        self.install(core, changes.collect())?;
        // Buried once.
        self.lost.clear();
        self.report(core);
        let id = self.keyspace.id;
        let mut trees = core.versions.lock();
        trees.forgive(id, &Inputs::Segments(self.collection.files.clone()));
        let version = trees.keyspaces.get(&id).map(|tree| tree.version.clone());
        drop(trees);
        let waiting_bytes = version.map_or(0, |v| core.unflushed_retired_bytes(id, &v));
        match waiting_bytes >= core.settings.log_bytes_max {
            true => core.commits.request_flush(id, sequence),
            false => Ok(()),
        }
    }

    fn report(&self, core: &Core) {
        let written: u64 = self.writers.written().iter().map(|segment| segment.bytes).sum();
        self.keyspace.values.add_collected(&Collected {
            count: 1,
            read_bytes: self.collection.read_bytes,
            write_bytes: written,
            lookups: self.lookups,
        });
        core.events.add(Event::ValueGcFinished {
            job: self.number,
            keyspace: self.keyspace.name.clone(),
            files: self.collection.files.iter().map(|file| file.0).collect(),
            read_bytes: self.collection.read_bytes,
            written_bytes: written,
            moved: self.moved.len() as u64,
            lookups: self.lookups,
            micros: (core.runtime.now_ns() - self.begin_ns) / 1000,
        });
    }
}

impl Drop for GcJob {
    fn drop(&mut self) {
        self.keyspace.values.set_collecting(0);
        if !self.is_backed_off {
            self.keyspace.values.release(&self.collection.files);
        }
    }
}
