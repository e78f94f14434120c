//! What range tombstones hide from a cursor, one stretch of keys after another, and what earlier
//! cursors found hidden.
//!
//! A *stretch* is a range of keys over which the same tombstone is the newest that the cursor's
//! snapshot sees, or over which there is none. Each source of tombstones gives its stretch once,
//! and is not asked again before the cursor leaves it. The cursor's stretch is the intersection of
//! those of all sources. So making a cursor reads no tombstone. A key inside the stretch costs two
//! comparisons, and a new stretch costs a search in the sources whose stretch ended. Runs are
//! opened when a cursor comes near their tombstones.

use super::view::{NodeView, ReadView, SliceView, TreeView};
use crate::memtable::Memtable;
use base::key::SequenceNumber;
use base::{KeyRange, Result};
use std::sync::Arc;

/// A cursor passes this many hidden entries of a stretch one by one before it leaps: a seek costs
/// as much as a few steps.
const STEPS_BEFORE_LEAP: u32 = 8;

/// The tombstones of a view, for a cursor that moves through its keys.
pub(super) struct Deleted {
    parts: Vec<Part>,
    snapshot: SequenceNumber,
    stretch: Stretch,
    /// Hidden entries that were passed in this stretch since the last leap.
    passed: u32,
}

/// A source of tombstones, and its stretch at the cursor's last position.
struct Part {
    source: Source,
    stretch: Stretch,
    hint: usize,
}

enum Source {
    Memtable(Arc<Memtable>),
    /// A slice of a level with one node.
    Slice(Arc<NodeView>, usize),
    /// A level of several nodes.
    Level(Arc<TreeView>, usize),
    /// Keys without a value at a sequence number, as if a tombstone after it covered them.
    Hidden(KeyRange, SequenceNumber),
}

/// A stretch; its memory is reused for the next.
#[derive(Default)]
struct Stretch {
    is_known: bool,
    start: Vec<u8>,
    /// Undefined where `has_end` is false.
    end: Vec<u8>,
    has_end: bool,
    /// The sequence number of the newest tombstone; 0, which no deletion has, without one.
    sequence: SequenceNumber,
}

impl Stretch {
    #[inline]
    fn contains(&self, key: &[u8]) -> bool {
        self.is_known && *self.start <= *key && (!self.has_end || *key < *self.end)
    }

    /// Covers all keys, with no tombstone.
    fn widen(&mut self) {
        self.is_known = true;
        self.start.clear();
        self.has_end = false;
        self.sequence = 0;
    }

    /// Intersects both stretches, under the newer of both tombstones.
    fn narrow(
        &mut self,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
        sequence: Option<SequenceNumber>,
    ) {
        if let Some(start) = start.filter(|&start| *self.start < *start) {
            self.start.clear();
            self.start.extend_from_slice(start);
        }
        if let Some(end) = end.filter(|&end| !self.has_end || *end < *self.end) {
            self.has_end = true;
            self.end.clear();
            self.end.extend_from_slice(end);
        }
        self.sequence = self.sequence.max(sequence.unwrap_or(0));
    }

    /// Limits the stretch to the keys on the same side of the ends of `range` as `key`. Returns
    /// whether that side is inside.
    fn narrow_to(&mut self, range: &KeyRange, key: &[u8]) -> bool {
        let end = range.end.as_deref();
        if *key < *range.start {
            self.narrow(None, Some(&range.start), None);
            return false;
        }
        if end.is_some_and(|end| *end <= *key) {
            self.narrow(end, None, None);
            return false;
        }
        self.narrow(Some(&range.start), end, None);
        true
    }

    fn narrow_by_slice(
        &mut self,
        slice: &SliceView,
        key: &[u8],
        snapshot: SequenceNumber,
        hint: &mut usize,
    ) -> Result<()> {
        if !slice.is_whole && !self.narrow_to(&slice.range, key) {
            return Ok(());
        }
        let stretch = slice.run.run()?.range_deletes().stretch(key, snapshot, hint);
        self.narrow(stretch.start, stretch.end, stretch.sequence);
        Ok(())
    }
}

impl Part {
    fn new(source: Source) -> Part {
        Part { source, stretch: Stretch::default(), hint: 0 }
    }

    fn move_to(&mut self, key: &[u8], snapshot: SequenceNumber) -> Result<()> {
        let Part { source, stretch, hint } = self;
        stretch.widen();
        match source {
            Source::Memtable(memtable) => {
                let deleted = memtable.deleted_stretch(key, snapshot);
                stretch.narrow(deleted.start.as_deref(), deleted.end.as_deref(), deleted.sequence);
                Ok(())
            }
            Source::Slice(node, at) => {
                stretch.narrow_by_slice(&node.slices[*at], key, snapshot, hint)
            }
            Source::Level(tree, at) => {
                let (before, after) = tree.levels[*at].deleting_around(key);
                if let Some(after) = after {
                    stretch.narrow(None, Some(&after.range().start), None);
                }
                let Some(node) = before.filter(|node| stretch.narrow_to(node.range(), key)) else {
                    return Ok(());
                };
                let mut slices = node.slices.iter().filter(|slice| slice.has_range_deletes);
                slices.try_for_each(|slice| stretch.narrow_by_slice(slice, key, snapshot, hint))
            }
            Source::Hidden(range, sequence) => {
                if stretch.narrow_to(range, key) {
                    stretch.sequence = *sequence + 1;
                }
                Ok(())
            }
        }
    }
}

impl Deleted {
    pub(super) fn new(view: &ReadView, snapshot: SequenceNumber) -> Deleted {
        let mut parts = Vec::new();
        // Entries that come into a memtable later are newer than the cursor.
        let memtables = view.memtables().filter(|memtable| memtable.range_delete_count() > 0);
        parts.extend(memtables.map(|memtable| Part::new(Source::Memtable(memtable.clone()))));
        let levels = view.tree.levels.iter().enumerate();
        for (at, level) in levels.filter(|(_, level)| level.is_deleting()) {
            match &level.nodes[..] {
                [node] => {
                    let deleting = |at: &usize| node.slices[*at].has_range_deletes;
                    let slices = (0..node.slices.len()).filter(deleting);
                    parts.extend(slices.map(|at| Part::new(Source::Slice(node.clone(), at))));
                }
                _ => parts.push(Part::new(Source::Level(view.tree.clone(), at))),
            }
        }
        Deleted { parts, snapshot, stretch: Stretch::default(), passed: 0 }
    }

    /// From now on hides also what a hidden stretch hides ([`super::hidden`]), instead of the one
    /// before.
    #[inline]
    pub(super) fn hide(&mut self, stretch: Option<(KeyRange, SequenceNumber)>) {
        let is_hidden = |part: &Part| matches!(part.source, Source::Hidden(..));
        if stretch.is_none() && !self.parts.last().is_some_and(is_hidden) {
            return;
        }
        self.parts.retain(|part| !is_hidden(part));
        let hidden = stretch.map(|(range, sequence)| Part::new(Source::Hidden(range, sequence)));
        self.parts.extend(hidden);
        self.stretch.is_known = false;
    }

    /// The newest tombstone over `key`; 0 without one. It hides everything older.
    #[inline]
    pub(super) fn newest_over(&mut self, key: &[u8]) -> Result<SequenceNumber> {
        if self.parts.is_empty() {
            return Ok(0);
        }
        if !self.stretch.contains(key) {
            self.move_to(key)?;
        }
        Ok(self.stretch.sequence)
    }

    fn move_to(&mut self, key: &[u8]) -> Result<()> {
        let Deleted { parts, snapshot, stretch, passed } = self;
        stretch.is_known = false;
        for part in parts.iter_mut().filter(|part| !part.stretch.contains(key)) {
            crate::work::add(1);
            // After a failure the stretch is unknown.
            let moved = part.move_to(key, *snapshot);
            part.stretch.is_known = moved.is_ok();
            moved?;
        }
        stretch.widen();
        for Part { stretch: Stretch { start, end, has_end, sequence, .. }, .. } in parts {
            stretch.narrow(Some(start), has_end.then_some(end), Some(*sequence));
        }
        *passed = 0;
        Ok(())
    }

    /// Counts a hidden entry that the cursor passed. From time to time it is better to leap over
    /// all others that are older than the stretch's tombstone.
    #[inline]
    pub(super) fn should_leap(&mut self) -> bool {
        self.passed += 1;
        if self.passed < STEPS_BEFORE_LEAP {
            return false;
        }
        self.passed = 0;
        true
    }

    /// `key` is in the stretch, and a tombstone covers the stretch.
    pub(super) fn is_over(&self, key: &[u8]) -> bool {
        self.stretch.sequence > 0 && self.stretch.contains(key)
    }

    /// The tombstone that covers the stretch; 0 without one.
    pub(super) fn sequence(&self) -> SequenceNumber {
        self.stretch.sequence
    }

    /// The first key of the stretch.
    pub(super) fn start(&self) -> &[u8] {
        &self.stretch.start
    }

    /// The first key after the stretch.
    pub(super) fn end(&self) -> Option<&[u8]> {
        self.stretch.has_end.then_some(&self.stretch.end)
    }
}
