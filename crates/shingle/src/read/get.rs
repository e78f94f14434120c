//! Point reads.

use super::clock::{ExpiryClock, ReadTime, split};
use super::context::ReadContext;
use super::cursor::{CursorOptions, InternalCursor};
use super::moment::Moment;
use super::view::{LevelView, NodeView, ReadView, SliceView, TreeView};
use crate::merge_operator::{KeyspaceOperator, Unmerged};
use base::checksum::hash64;
use base::expiry::EXPIRY_BYTES;
use base::key::{SequenceNumber, successor};
use base::{Cause, EntryKind, Error, ErrorKind, Expiry, KeyRange, Result};
use std::sync::Arc;
use table::Bytes;
use table::range_delete::RangeDeletes;
use values::ValuePointer;

/// What a source has for a key. A source that has nothing gives `None`, which drops nothing: most
/// sources of a get have nothing. `V`: bytes, in memory that the source keeps or that is shared.
pub(crate) enum Found<V = Bytes> {
    /// The key has this value.
    Value(V),
    /// The key has the value that this pointer names.
    Pointer(V),
    /// The key has a value that expires, or had one that has expired.
    Expiring(Box<Expiring>),
    /// The key is deleted: look no further.
    Absent,
    /// An operand: the value must be combined.
    Operand,
}

impl Found<&[u8]> {
    /// With bytes that outlive their source.
    fn kept(self) -> Found {
        match self {
            Found::Value(value) => Found::Value(value.into()),
            Found::Pointer(pointer) => Found::Pointer(pointer.into()),
            Found::Expiring(expiring) => Found::Expiring(expiring),
            Found::Absent => Found::Absent,
            Found::Operand => Found::Operand,
        }
    }
}

/// A value that expires, or a pointer to it.
pub(crate) struct Expiring {
    pub expiry: Expiry,
    pub is_pointer: bool,
    /// The value or pointer alone.
    pub content: Bytes,
}

impl Expiring {
    #[cold]
    fn found<V>(kind: EntryKind, stored: Bytes) -> Result<Found<V>> {
        let (expiry, _) = split(&stored)?;
        let is_pointer = kind == EntryKind::ExpiringPointer;
        let content = stored.skip(EXPIRY_BYTES);
        Ok(Found::Expiring(Box::new(Expiring { expiry, is_pointer, content })))
    }

    /// It is the pointer `pointer`.
    pub(crate) fn names(&self, pointer: &ValuePointer) -> Result<bool> {
        Ok(self.is_pointer && ValuePointer::decode(&self.content)? == *pointer)
    }

    /// It has expired by now.
    pub(crate) fn is_over(&self, clock: &ExpiryClock) -> bool {
        self.expiry.is_over(clock.now_ms())
    }

    /// The value, unless it has expired at the read's `time`.
    pub(super) fn value(
        self,
        moment: &Moment,
        key: &[u8],
        time: &mut ReadTime,
    ) -> Result<Option<Bytes>> {
        let context = &moment.view().tree.context;
        match self.is_pointer {
            _ if time.is_over(self.expiry, &context.clock) => Ok(None),
            true => context.values.read(&self.content, key, Cause::Get).map(Some),
            false => Ok(Some(self.content)),
        }
    }
}

/// The value of `key` at `moment`.
pub(crate) fn get(
    moment: &Moment,
    key: &[u8],
    operator: Option<&Arc<KeyspaceOperator>>,
) -> Result<Option<Bytes>> {
    let found = find(moment, key)?;
    value_of(found, moment, key, operator)
}

/// What `read` makes of the value of `key` at `moment`, which it gets where it lies, without a
/// copy.
pub(crate) fn get_with<R>(
    moment: &Moment,
    key: &[u8],
    operator: Option<&Arc<KeyspaceOperator>>,
    read: impl FnOnce(&[u8]) -> R,
) -> Result<Option<R>> {
    let mut lookup = Lookup::new(key, moment.sequence());
    let found = match lookup.find_in_memtables(moment.view(), |value| value)? {
        Some(Found::Value(value)) => return Ok(Some(read(value))),
        Some(found) => Some(found.kept()),
        None => lookup.find_in_tree(&moment.view().tree)?,
    };
    Ok(value_of(found, moment, key, operator)?.map(|value| read(&value)))
}

/// The value of `key` at `moment`, for which `found` was found.
#[inline]
fn value_of(
    found: Option<Found>,
    moment: &Moment,
    key: &[u8],
    operator: Option<&Arc<KeyspaceOperator>>,
) -> Result<Option<Bytes>> {
    let values = &moment.view().tree.context.values;
    match found {
        Some(Found::Value(value)) => Ok(Some(value)),
        Some(Found::Pointer(pointer)) => values.read(&pointer, key, Cause::Get).map(Some),
        Some(Found::Absent) | None => Ok(None),
        Some(Found::Expiring(expiring)) => expiring.value(moment, key, &mut ReadTime::default()),
        Some(Found::Operand) => combine(moment, key, operator, ReadTime::default())?.value(),
    }
}

/// [`get`], and when the value expires.
pub(crate) fn get_with_expiry(
    moment: &Moment,
    key: &[u8],
    operator: Option<&Arc<KeyspaceOperator>>,
) -> Result<Option<(Bytes, Option<Expiry>)>> {
    if let Some(Found::Expiring(expiring)) = find(moment, key)? {
        let expiry = Some(expiring.expiry);
        let value = expiring.value(moment, key, &mut ReadTime::default())?;
        return Ok(value.map(|value| (value, expiry)));
    }
    // An operand may stand on a value that expires.
    let mut cursor = cursor_before(moment, key, operator)?;
    cursor.seek(key)?;
    Ok(cursor.valid().then(|| (cursor.value_bytes(), cursor.expiry())))
}

/// What the tree and the memtables hold for `key` at `moment`, without following a pointer. GC
/// compares it.
#[inline]
pub(crate) fn find(moment: &Moment, key: &[u8]) -> Result<Option<Found>> {
    Lookup::new(key, moment.sequence()).find(moment.view())
}

/// The result of combining the operands of a key.
pub(crate) enum Combined {
    /// The value; `None`: the key has none.
    Merged(Option<Bytes>),
    /// They are not merged.
    Unmerged(Unmerged),
}

/// Combines the operands of `key` by walking its versions.
pub(crate) fn combine(
    moment: &Moment,
    key: &[u8],
    operator: Option<&Arc<KeyspaceOperator>>,
    time: ReadTime,
) -> Result<Combined> {
    let mut cursor = cursor_before(moment, key, operator)?.at(time);
    let moved = cursor.seek(key);
    Combined::of(&cursor, moved)
}

/// What `key` has at `moment`, such that writing it again changes nothing, now or later. Operands
/// on a value that expires are not merged, because they outlive it. Also when that value expires.
pub(crate) fn restate(
    moment: &Moment,
    key: &[u8],
    operator: Option<&Arc<KeyspaceOperator>>,
) -> Result<(Combined, Option<Expiry>)> {
    let mut cursor = cursor_before(moment, key, operator)?;
    let moved = cursor.seek(key);
    let Some(expiry) = cursor.expiry() else { return Ok((Combined::of(&cursor, moved)?, None)) };
    // It merges nothing, and so gives the value and the operands.
    let none = Arc::new(KeyspaceOperator::absent("", ""));
    let mut parts = cursor_before(moment, key, Some(&none))?;
    let moved = parts.seek(key);
    Ok((Combined::of(&parts, moved)?, Some(expiry)))
}

fn cursor_before(
    moment: &Moment,
    key: &[u8],
    operator: Option<&Arc<KeyspaceOperator>>,
) -> Result<InternalCursor> {
    let options = CursorOptions { fill_cache: true, readahead_bytes: 0, walk_bytes_max: 0 };
    // Limited to this key: damage of the next key must not fail this read.
    let only = KeyRange { start: key.into(), end: Some(successor(key)) };
    InternalCursor::new(moment.clone(), operator.cloned(), options, only)
}

impl Combined {
    /// What the cursor found, which `moved` to the key.
    fn of(cursor: &InternalCursor, moved: Result<()>) -> Result<Combined> {
        if let Some(unmerged) = cursor.unmerged() {
            return Ok(Combined::Unmerged(unmerged.clone()));
        }
        moved?;
        Ok(Combined::Merged(cursor.valid().then(|| cursor.value_bytes())))
    }

    /// The value, or the error that explains why there is none.
    pub(super) fn value(self) -> Result<Option<Bytes>> {
        match self {
            Combined::Merged(value) => Ok(value),
            Combined::Unmerged(unmerged) => Err(unmerged.error),
        }
    }
}

pub(super) struct Lookup<'a> {
    key: &'a [u8],
    hash: Option<u64>,
    snapshot: SequenceNumber,
    /// A range tombstone of a source above hides everything older than this.
    deleted_below: SequenceNumber,
    runs_asked: u32,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(key: &'a [u8], snapshot: SequenceNumber) -> Lookup<'a> {
        Lookup { key, hash: None, snapshot, deleted_below: 0, runs_asked: 0 }
    }

    /// Passes sources that have nothing as new as `seen`. Finds nothing, or what may be newer.
    pub(super) fn newer_than(
        key: &'a [u8],
        seen: SequenceNumber,
        snapshot: SequenceNumber,
    ) -> Lookup<'a> {
        // Not one more: a range deletion of the next number must raise it.
        Lookup { deleted_below: seen, ..Lookup::new(key, snapshot) }
    }

    /// Entries that are older than this do not count.
    pub(super) fn hides_below(&self) -> SequenceNumber {
        self.deleted_below
    }

    pub(super) fn key(&self) -> &'a [u8] {
        self.key
    }

    pub(super) fn snapshot(&self) -> SequenceNumber {
        self.snapshot
    }

    /// Computed on first use.
    pub(super) fn hash(&mut self) -> u64 {
        *self.hash.get_or_insert_with(|| hash64(self.key))
    }

    /// Versions of the key that are older than the newest tombstone of `deletes` over it no longer
    /// count.
    pub(super) fn note_range_deletes(&mut self, deletes: &RangeDeletes) {
        self.note_deleted(deletes.covering(self.key, self.snapshot));
    }

    #[inline]
    fn note_deleted(&mut self, covering: Option<SequenceNumber>) {
        self.deleted_below = self.deleted_below.max(covering.unwrap_or(0));
    }

    /// The slice may have a version of the key that no range tombstone above hides.
    #[inline]
    pub(super) fn needs(&self, slice: &SliceView) -> bool {
        slice.sequence_max >= self.deleted_below
    }

    #[inline]
    fn find(&mut self, view: &ReadView) -> Result<Option<Found>> {
        // Copied, because the memtable may be freed before the caller is done.
        if let Some(found) = self.find_in_memtables(view, Bytes::from)? {
            return Ok(Some(found));
        }
        self.find_in_tree(&view.tree)
    }

    fn find_in_tree(&mut self, tree: &TreeView) -> Result<Option<Found>> {
        let found = self.find_in_levels(tree);
        if self.runs_asked > 1 {
            tree.note_miss(self.key);
        }
        found
    }

    fn find_in_levels(&mut self, tree: &TreeView) -> Result<Option<Found>> {
        for level in &tree.levels {
            if let Some(found) = self.find_in_level(level, &tree.context)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// What the memtables have; `keep` gets the bytes of an entry, which lie in its memtable.
    pub(super) fn find_in_memtables<'v, V: Into<Bytes>>(
        &mut self,
        view: &'v ReadView,
        keep: impl Fn(&'v [u8]) -> V,
    ) -> Result<Option<Found<V>>> {
        for memtable in view.memtables() {
            self.note_deleted(memtable.range_deleted(self.key, self.snapshot));
            let (key, snapshot) = (self.key, self.snapshot);
            if let Some(entry) = memtable.get_by_hash(key, || self.hash(), snapshot) {
                return self.judge(entry.sequence, entry.kind, || keep(entry.value)).map(Some);
            }
        }
        Ok(None)
    }

    fn find_in_level(&mut self, level: &LevelView, context: &ReadContext) -> Result<Option<Found>> {
        let Some(node) = level.find(self.key) else { return Ok(None) };
        if node.slices.len() > 1 {
            self.prefetch(node);
        }
        for (passed, slice) in node.slices.iter().enumerate() {
            if let Some(found) = self.find_in_slice(slice)? {
                node.note_passed(passed, context);
                return Ok(Some(found));
            }
        }
        // The oldest run would be probed without the others too.
        node.note_passed(node.slices.len().saturating_sub(1), context);
        Ok(None)
    }

    /// Prefetches the filters of a node's runs all at once. Otherwise the get waits for memory in
    /// each run that it asks.
    fn prefetch(&mut self, node: &NodeView) {
        let hash = self.hash();
        let runs = node.slices.iter().filter_map(|slice| slice.run.opened());
        runs.for_each(|run| run.prefetch(self.key, hash));
    }

    fn find_in_slice(&mut self, slice: &SliceView) -> Result<Option<Found>> {
        if !self.needs(slice) || (!slice.covers_node && !slice.range.contains(self.key)) {
            return Ok(None);
        }
        self.runs_asked += 1;
        let run = slice.run.run()?;
        if slice.has_range_deletes {
            self.note_range_deletes(run.range_deletes());
        }
        let hash = self.hash();
        match run.get(self.key, hash, self.snapshot, Cause::Get)? {
            None => Ok(None),
            Some(entry) => self.judge(entry.sequence, entry.kind, || entry.value).map(Some),
        }
    }

    pub(super) fn judge<V: Into<Bytes>>(
        &self,
        sequence: SequenceNumber,
        kind: EntryKind,
        value: impl FnOnce() -> V,
    ) -> Result<Found<V>> {
        if sequence < self.deleted_below {
            return Ok(Found::Absent);
        }
        // The value is made in one place, so that the compiler expands it there.
        let stored = match kind {
            EntryKind::Delete => return Ok(Found::Absent),
            EntryKind::Merge => return Ok(Found::Operand),
            EntryKind::DeleteRange => return Err(misplaced_range_delete()),
            _ => value(),
        };
        match kind {
            EntryKind::Put => Ok(Found::Value(stored)),
            EntryKind::Pointer => Ok(Found::Pointer(stored)),
            _ => Expiring::found(kind, stored.into()),
        }
    }
}

#[cold]
fn misplaced_range_delete() -> Error {
    Error::new(ErrorKind::Corruption, "a range tombstone is among the entries")
}
