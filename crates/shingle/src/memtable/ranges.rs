//! The range deletions of a memtable, found by the keys that they cover.
//!
//! Two structures index one list. An insertion rebuilds neither of them:
//! - *The newest*: disjoint fragments, each with the newest deletion over it. An insertion cuts at
//!   most two fragments and removes those that it hides. Each removal is paid for by the insertion
//!   of that fragment, so an insertion costs the logarithm of their number, amortised. Nearly every
//!   read needs only this structure.
//! - *Blocks*, for snapshots that are older than the newest deletion over a key: what each 16, 256,
//!   4,096 and 65,536 deletions cover together. A read goes back through the deletions that its
//!   snapshot sees, and passes whole blocks that do not cover its key. A block is made once, when
//!   its last deletion comes. It has at most two numbers for each deletion, however they overlap.

use super::RangeDelete;
use crate::work;
use base::{Key, SequenceNumber};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

/// This many deletions make a block, and this many blocks make the next larger one.
const FAN_OUT: usize = 16;

/// Number of block sizes. Larger blocks would save a read little, and delay the insertion that
/// completes one for longer.
const BLOCK_SIZES: usize = 4;

/// Approximate bytes of a deletion beside its keys: itself, its part of both structures, and the
/// counters of its keys.
pub(super) const DELETE_BYTES: usize = size_of::<RangeDelete>() + 120;

/// Adjacent keys over which the same deletion is the newest that a snapshot sees, or none is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeletedStretch {
    /// The first key; `None`: no lower limit.
    pub start: Option<Key>,
    /// The first key after it; `None`: no upper limit.
    pub end: Option<Key>,
    /// The newest deletion.
    pub sequence: Option<SequenceNumber>,
}

impl DeletedStretch {
    /// Limits the stretch to keys from `start` on.
    fn begin_at(&mut self, start: &Key) {
        if self.start.as_ref().is_none_or(|old| old < start) {
            self.start = Some(start.clone());
        }
    }

    /// Limits the stretch to keys before `end`.
    fn end_at(&mut self, end: &Key) {
        if self.end.as_ref().is_none_or(|old| end < old) {
            self.end = Some(end.clone());
        }
    }
}

/// The newest deletion of a fragment, stored under the fragment's start.
struct Newest {
    end: Key,
    sequence: SequenceNumber,
}

/// Range deletions; see the module.
#[derive(Default)]
pub(super) struct Ranges {
    /// In the order of their sequence numbers.
    all: Vec<RangeDelete>,
    newest: BTreeMap<Key, Newest>,
    /// The complete blocks in order, for each size from the smallest.
    blocks: Vec<Vec<Block>>,
}

/// What neighbours in the list cover together: disjoint stretches in key order that do not touch.
/// Each is stored as the deletions that it begins and ends with.
struct Block(Vec<(u32, u32)>);

impl Ranges {
    pub(super) fn all(&self) -> &[RangeDelete] {
        &self.all
    }

    /// See [`super::Memtable::range_deletes`].
    pub(super) fn needed(&self, snapshots: &[SequenceNumber]) -> Vec<RangeDelete> {
        let stripe = |delete: Option<&RangeDelete>| {
            delete.map(|one| snapshots.partition_point(|&snapshot| snapshot < one.sequence))
        };
        if stripe(self.all.first()) != stripe(self.all.last()) {
            return self.all.clone();
        }
        let newest = self.newest.iter();
        newest
            .map(|(start, Newest { end, sequence })| RangeDelete {
                start: start.clone(),
                end: end.clone(),
                sequence: *sequence,
            })
            .collect()
    }

    /// The smallest start and the largest end.
    pub(super) fn hull(&self) -> Option<(&Key, &Key)> {
        let (start, _) = self.newest.first_key_value()?;
        Some((start, &self.newest.last_key_value()?.1.end))
    }

    /// Adds a deletion of a range that is not empty.
    pub(super) fn insert(&mut self, delete: RangeDelete) {
        if self.all.last().is_some_and(|last| delete.sequence < last.sequence) {
            return self.insert_late(delete);
        }
        self.hide(&delete);
        self.all.push(delete);
        self.complete_blocks();
    }

    /// Commits insert in order; an insertion out of order rebuilds everything.
    fn insert_late(&mut self, delete: RangeDelete) {
        let mut all = std::mem::take(self).all;
        let at = all.partition_point(|other| other.sequence < delete.sequence);
        all.insert(at, delete);
        all.into_iter().for_each(|delete| self.insert(delete));
    }

    /// Makes `delete` the newest over its range.
    fn hide(&mut self, delete: &RangeDelete) {
        let RangeDelete { start, end, sequence } = delete;
        let before = (Unbounded, Excluded(&**start));
        let before = self.newest.range_mut::<[u8], _>(before).next_back();
        let cut = before.filter(|(_, fragment)| *fragment.end > **start).map(|(_, fragment)| {
            let sequence = fragment.sequence;
            Newest { end: std::mem::replace(&mut fragment.end, start.clone()), sequence }
        });
        self.keep_rest(cut, end);
        let within = (Included(&**start), Excluded(&**end));
        while let Some((hidden, _)) = self.newest.range::<[u8], _>(within).next() {
            work::add(1);
            let hidden = hidden.clone();
            let hidden = self.newest.remove(&hidden);
            self.keep_rest(hidden, end);
        }
        self.newest.insert(start.clone(), Newest { end: end.clone(), sequence: *sequence });
    }

    /// Keeps the part of a fragment from `end` on.
    fn keep_rest(&mut self, cut: Option<Newest>, end: &Key) {
        if let Some(rest) = cut.filter(|rest| *rest.end > **end) {
            self.newest.insert(end.clone(), rest);
        }
    }

    fn complete_blocks(&mut self) {
        let mut level = 0;
        while level < BLOCK_SIZES && self.all.len().is_multiple_of(block_size(level)) {
            let block = self.block(level, self.all.len() - block_size(level));
            if self.blocks.len() == level {
                self.blocks.push(Vec::new());
            }
            self.blocks[level].push(block);
            level += 1;
        }
    }

    /// The block of a level whose first deletion is `from`.
    fn block(&self, level: usize, from: usize) -> Block {
        let mut stretches: Vec<(u32, u32)> = match level.checked_sub(1) {
            None => (from..from + FAN_OUT).map(|one| (one as u32, one as u32)).collect(),
            Some(below) => {
                let parts = &self.blocks[below];
                parts[parts.len() - FAN_OUT..].iter().flat_map(|part| &part.0).copied().collect()
            }
        };
        work::add(stretches.len());
        stretches.sort_by(|a, b| self.start(a.0).cmp(self.start(b.0)));
        let mut joined: Vec<(u32, u32)> = Vec::new();
        for (start, end) in stretches {
            match joined.last_mut() {
                Some(last) if self.start(start) <= self.end(last.1) => {
                    if self.end(last.1) < self.end(end) {
                        last.1 = end;
                    }
                }
                _ => joined.push((start, end)),
            }
        }
        joined.shrink_to_fit();
        Block(joined)
    }

    fn start(&self, index: u32) -> &Key {
        &self.all[index as usize].start
    }

    fn end(&self, index: u32) -> &Key {
        &self.all[index as usize].end
    }

    /// The newest deletion of `key`, for any snapshot.
    pub(super) fn newest(&self, key: &[u8]) -> Option<SequenceNumber> {
        let (_, fragment) = self.newest.range::<[u8], _>((Unbounded, Included(key))).next_back()?;
        (*key < *fragment.end).then_some(fragment.sequence)
    }

    /// The newest deletion of `key` that `snapshot` sees.
    pub(super) fn covering(&self, key: &[u8], snapshot: SequenceNumber) -> Option<SequenceNumber> {
        match self.newest(key)? {
            newest if newest <= snapshot => Some(newest),
            _ => self.search_back(key, snapshot, None),
        }
    }

    /// The stretch around `key`, as `snapshot` sees it.
    pub(super) fn stretch(&self, key: &[u8], snapshot: SequenceNumber) -> DeletedStretch {
        let mut stretch = DeletedStretch::default();
        let before = self.newest.range::<[u8], _>((Unbounded, Included(key))).next_back();
        let covering = before.filter(|(_, fragment)| *key < *fragment.end);
        if let Some((start, fragment)) = covering {
            if fragment.sequence > snapshot {
                stretch.sequence = self.search_back(key, snapshot, Some(&mut stretch));
                return stretch;
            }
            stretch.begin_at(start);
            stretch.end_at(&fragment.end);
            stretch.sequence = Some(fragment.sequence);
            return stretch;
        }
        if let Some((_, fragment)) = before {
            stretch.begin_at(&fragment.end);
        }
        let after = self.newest.range::<[u8], _>((Excluded(key), Unbounded)).next();
        if let Some((start, _)) = after {
            stretch.end_at(start);
        }
        stretch
    }

    /// Goes back from the last deletion that `snapshot` sees to the first that covers `key`. The
    /// stretch begins unlimited. It loses what the passed deletions cover, and is limited to the
    /// range of the one that is found.
    fn search_back(
        &self,
        key: &[u8],
        snapshot: SequenceNumber,
        mut stretch: Option<&mut DeletedStretch>,
    ) -> Option<SequenceNumber> {
        let mut to = self.all.partition_point(|delete| delete.sequence <= snapshot);
        while to > 0 {
            if let Some(passed) = self.pass_block(key, to, stretch.as_deref_mut()) {
                to -= passed;
                continue;
            }
            to -= 1;
            let delete = &self.all[to];
            work::add(1);
            if *key < *delete.start {
                narrow(&mut stretch, None, Some(&delete.start));
            } else if *delete.end <= *key {
                narrow(&mut stretch, Some(&delete.end), None);
            } else {
                narrow(&mut stretch, Some(&delete.start), Some(&delete.end));
                return Some(delete.sequence);
            }
        }
        None
    }

    /// The number of deletions before `to` in the largest block that does not cover `key`.
    fn pass_block(
        &self,
        key: &[u8],
        to: usize,
        mut stretch: Option<&mut DeletedStretch>,
    ) -> Option<usize> {
        let ends_here = |&level: &usize| to.is_multiple_of(block_size(level));
        let levels = (0..self.blocks.len()).take_while(ends_here).count();
        for level in (0..levels).rev() {
            let size = block_size(level);
            let Block(stretches) = &self.blocks[level][to / size - 1];
            let at = stretches.partition_point(|&(_, end)| {
                work::add(1);
                **self.end(end) <= *key
            });
            let next = stretches.get(at).map(|&(start, _)| self.start(start));
            if next.is_some_and(|start| **start <= *key) {
                continue;
            }
            let before = at.checked_sub(1).map(|before| self.end(stretches[before].1));
            narrow(&mut stretch, before, next);
            return Some(size);
        }
        None
    }
}

/// The number of deletions in the blocks of a level.
fn block_size(level: usize) -> usize {
    FAN_OUT.pow(level as u32 + 1)
}

fn narrow(stretch: &mut Option<&mut DeletedStretch>, start: Option<&Key>, end: Option<&Key>) {
    let Some(stretch) = stretch else { return };
    start.into_iter().for_each(|start| stretch.begin_at(start));
    end.into_iter().for_each(|end| stretch.end_at(end));
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;
    use proptest::prelude::*;

    type Deletion = (u8, u8, SequenceNumber);

    fn delete(from: u32, to: u32, sequence: SequenceNumber) -> RangeDelete {
        let (start, end) = (Key::from(from.to_be_bytes()), Key::from(to.to_be_bytes()));
        RangeDelete { start, end, sequence }
    }

    fn build(list: &[Deletion]) -> Ranges {
        let mut ranges = Ranges::default();
        for &(from, to, sequence) in list.iter().filter(|(from, to, _)| from < to) {
            ranges.insert(delete(from.into(), to.into(), sequence));
        }
        ranges
    }

    fn naive(list: &[Deletion], k: u8, snapshot: SequenceNumber) -> Option<SequenceNumber> {
        let covers =
            |&&(from, to, sequence): &&Deletion| from <= k && k < to && sequence <= snapshot;
        list.iter().filter(covers).map(|deletion| deletion.2).max()
    }

    fn number(key: &Option<Key>, or: u8) -> u8 {
        key.as_ref().map_or(or, |key| key[3])
    }

    fn check(list: &[Deletion], snapshot: SequenceNumber) {
        let ranges = build(list);
        for k in 0..24 {
            let key = u32::from(k).to_be_bytes();
            let expected = naive(list, k, snapshot);
            assert_eq!(ranges.covering(&key, snapshot), expected, "{k} at {snapshot}: {list:?}");
            let stretch = ranges.stretch(&key, snapshot);
            assert_eq!(stretch.sequence, expected, "{k} at {snapshot}: {list:?}");
            let (from, to) = (number(&stretch.start, 0), number(&stretch.end, 24));
            assert!(from <= k && k < to, "{stretch:?} around {k}");
            for inside in from..to {
                assert_eq!(naive(list, inside, snapshot), expected, "{stretch:?}: {list:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_snapshot_finds_its_newest_deletion(
            list in prop::collection::vec((0u8..24, 0u8..24, Just(0u64)), 0..40),
            snapshot in 0u64..40,
        ) {
            let numbered = (1..).zip(&list).map(|(sequence, &(from, to, _))| (from, to, sequence));
            check(&numbered.collect::<Vec<_>>(), snapshot);
        }

        #[test]
        fn the_order_of_insertions_does_not_matter(
            list in prop::collection::vec((0u8..24, 0u8..24, 0u64..40), 0..24),
            snapshot in 0u64..40,
        ) {
            check(&list, snapshot);
        }
    }

    #[test]
    fn rewrites_get_all_or_the_newest_over_each_key() {
        let ranges = build(&[(0, 9, 1), (4, 12, 2), (2, 6, 5)]);
        let needed = |snapshots: &[SequenceNumber]| -> Vec<_> {
            let one = |delete: RangeDelete| (delete.start[3], delete.end[3], delete.sequence);
            ranges.needed(snapshots).into_iter().map(one).collect()
        };
        let newest = [(0, 2, 1), (2, 6, 5), (6, 12, 2)];
        for snapshots in [&[][..], &[0], &[5], &[0, 7]] {
            assert_eq!(needed(snapshots), newest, "{snapshots:?}");
        }
        for snapshots in [&[1][..], &[0, 4], &[3, 9]] {
            assert_eq!(needed(snapshots), [(0, 9, 1), (4, 12, 2), (2, 6, 5)], "{snapshots:?}");
        }
    }

    #[test]
    fn blocks_of_blocks_find_what_a_list_finds() {
        let mut random = Random::new(11);
        let mut list = Vec::new();
        for sequence in 1..=900 {
            let from = random.below(23) as u8;
            let to = from
                + 1
                + random.below(if sequence % 90 == 0 { 24 - u64::from(from) } else { 1 }) as u8;
            list.push((from, to.min(24), sequence));
        }
        for snapshot in [0, 1, 15, 16, 17, 255, 256, 257, 511, 700, 768, 900, 5000] {
            check(&list, snapshot);
        }
    }

    /// Ranges as pairs of numbers, by the number of the deletion and the total.
    type Shape = fn(u32, u32) -> (u32, u32);

    const SHAPES: [(&str, Shape); 4] = [
        ("rolling", |i, _| (0, i + 1)),
        ("nested", |i, n| (i, 2 * n - i)),
        ("disjoint", |i, _| (2 * i, 2 * i + 1)),
        ("scattered", |i, n| {
            let from = i.wrapping_mul(2_654_435_761) % n;
            (from, from + 1 + i % 7)
        }),
    ];

    /// Steps of all insertions, and of one look-up at each of some snapshots.
    fn steps_of(shape: Shape, count: u32) -> (usize, usize) {
        let mut ranges = Ranges::default();
        work::take();
        for i in 0..count {
            let (from, to) = shape(i, count);
            ranges.insert(delete(from, to, u64::from(i) + 1));
        }
        let insertions = work::take();
        for i in (0..count).step_by(count as usize / 100) {
            ranges.covering(&i.to_be_bytes(), u64::from(count - i));
            ranges.stretch(&i.to_be_bytes(), u64::from(i));
        }
        (insertions, work::take())
    }

    /// Regression: the first read after each insertion rebuilt the fragments from all deletions.
    /// Twice as many deletions took four times the work, and eight times where they overlapped.
    #[test]
    fn twice_the_deletions_are_twice_the_work_to_insert_and_hardly_more_to_find() {
        for (name, shape) in SHAPES {
            let (insert_half, find_half) = steps_of(shape, 8000);
            let (insert, find) = steps_of(shape, 16_000);
            assert!(insert * 10 <= insert_half * 23, "{name}: {insert_half}, then {insert} steps");
            assert!(find * 10 <= find_half * 15, "{name}: {find_half}, then {find} steps");
            assert!(find <= 200 * 250, "{name}: {find} steps for 200 look-ups");
        }
    }
}
