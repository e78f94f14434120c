//! What range tombstones hide from a cursor, one stretch of keys after another.
//!
//! A *stretch* is a range of keys over which the same tombstone is the newest that the cursor's
//! snapshot sees, or none is. Each source of tombstones is asked where its stretch ends, and not
//! again before the cursor leaves it; the stretch of all is what they have in common. So a cursor
//! is made without a look at any tombstone, a key inside a stretch costs two comparisons, and a new
//! stretch a search in the sources that it comes from. Runs are opened when a cursor comes near
//! their tombstones.

use super::view::{NodeView, ReadView, SliceView, TreeView};
use crate::memtable::Memtable;
use base::key::SequenceNumber;
use base::{KeyRange, Result};
use std::sync::Arc;

/// So many hidden entries of a stretch are passed one by one before the cursor leaps: a seek costs
/// as much as a few steps.
const STEPS_BEFORE_LEAP: u32 = 8;

/// The tombstones of a view, for a cursor that moves through its keys.
pub(super) struct Deleted {
    parts: Vec<Part>,
    snapshot: SequenceNumber,
    reach: UnflushedExtents,
    /// Hidden entries that were passed in this stretch since the last leap.
    passed: u32,
}

/// A source of tombstones, and its stretch where the cursor was last.
struct Part {
    source: Source,
    reach: UnflushedExtents,
    hint: usize,
}

enum Source {
    Memtable(Arc<Memtable>),
    /// A slice of a level with one node.
    Slice(Arc<NodeView>, usize),
    /// A level of several nodes.
    Level(Arc<TreeView>, usize),
}

/// A stretch; its memory is used again for the next.
#[derive(Default)]
struct UnflushedExtents {
    is_known: bool,
    start: Vec<u8>,
    /// Of no meaning where `has_end` is false.
    end: Vec<u8>,
    has_end: bool,
    /// The newest tombstone; 0, which is no deletion's, without one.
    sequence: SequenceNumber,
}

impl UnflushedExtents {
    #[inline]
    fn contains(&self, key: &[u8]) -> bool {
        self.is_known && *self.start <= *key && (!self.has_end || *key < *self.end)
    }

    /// All keys, and no tombstone.
    fn widen(&mut self) {
        self.is_known = true;
        self.start.clear();
        self.has_end = false;
        self.sequence = 0;
    }

    /// What lies in both stretches, under the newer of both tombstones.
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

    /// What lies on the same side of the ends of `range` as `key`. Says whether that is inside.
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
        Part { source, reach: UnflushedExtents::default(), hint: 0 }
    }

    fn move_to(&mut self, key: &[u8], snapshot: SequenceNumber) -> Result<()> {
        let Part { source, reach, hint } = self;
        reach.widen();
        match source {
            Source::Memtable(memtable) => {
                let stretch = memtable.deleted_stretch(key, snapshot);
                reach.narrow(stretch.start.as_deref(), stretch.end.as_deref(), stretch.sequence);
                Ok(())
            }
            Source::Slice(node, at) => {
                reach.narrow_by_slice(&node.slices[*at], key, snapshot, hint)
            }
            Source::Level(tree, at) => {
                let (before, after) = tree.levels[*at].deleting_around(key);
                if let Some(after) = after {
                    reach.narrow(None, Some(&after.range().start), None);
                }
                let Some(node) = before.filter(|node| reach.narrow_to(node.range(), key)) else {
                    return Ok(());
                };
                let mut slices = node.slices.iter().filter(|slice| slice.has_range_deletes);
                slices.try_for_each(|slice| reach.narrow_by_slice(slice, key, snapshot, hint))
            }
        }
    }
}

impl Deleted {
    pub(super) fn new(view: &ReadView, snapshot: SequenceNumber) -> Deleted {
        let mut parts = Vec::new();
        // What comes into a memtable later is newer than the cursor.
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
        Deleted { parts, snapshot, reach: UnflushedExtents::default(), passed: 0 }
    }

    /// The newest tombstone over `key`; 0 without one. What is older than that is hidden.
    #[inline]
    pub(super) fn newest_over(&mut self, key: &[u8]) -> Result<SequenceNumber> {
        if self.parts.is_empty() {
            return Ok(0);
        }
        if !self.reach.contains(key) {
            self.move_to(key)?;
        }
        Ok(self.reach.sequence)
    }

    fn move_to(&mut self, key: &[u8]) -> Result<()> {
        let Deleted { parts, snapshot, reach, passed } = self;
        reach.is_known = false;
        for part in parts.iter_mut().filter(|part| !part.reach.contains(key)) {
            crate::work::add(1);
            // A failure leaves no stretch that was not found.
            let moved = part.move_to(key, *snapshot);
            part.reach.is_known = moved.is_ok();
            moved?;
        }
        reach.widen();
        for Part { reach: UnflushedExtents { start, end, has_end, sequence, .. }, .. } in parts {
            reach.narrow(Some(start), has_end.then_some(end), Some(*sequence));
        }
        *passed = 0;
        Ok(())
    }

    /// A hidden entry of the stretch is passed. From time to time it is better to leap over the
    /// rest: over everything older than the stretch's tombstone.
    #[inline]
    pub(super) fn should_leap(&mut self) -> bool {
        self.passed += 1;
        if self.passed < STEPS_BEFORE_LEAP {
            return false;
        }
        self.passed = 0;
        true
    }

    /// `key` lies in the stretch, and a tombstone is over that.
    pub(super) fn is_over(&self, key: &[u8]) -> bool {
        self.reach.sequence > 0 && self.reach.contains(key)
    }

    /// The tombstone that is over the stretch; 0 without one.
    pub(super) fn sequence(&self) -> SequenceNumber {
        self.reach.sequence
    }

    /// The first key of the stretch.
    pub(super) fn start(&self) -> &[u8] {
        &self.reach.start
    }

    /// The first key behind the stretch.
    pub(super) fn end(&self) -> Option<&[u8]> {
        self.reach.has_end.then_some(&self.reach.end)
    }
}
