//! Range tombstones as disjoint fragments.
//!
//! Invariants: fragments are in key order, disjoint and not empty; each has at least one sequence
//! number, strictly descending; neighbours that touch differ in their sequence numbers. So equal
//! sets of tombstones have equal fragments, in whatever order they were inserted.

use base::coding::{Reader, push_bytes, push_varint};
use base::key::SEQUENCE_MAX;
use base::{Key, KeyRange, SequenceNumber};

/// The keys from `start` to `end`, exclusive, are absent from each of `sequences` on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The first key.
    pub start: Key,
    /// The first key after it.
    pub end: Key,
    /// Newest first, without repetition, never empty.
    pub sequences: Vec<SequenceNumber>,
}

impl Fragment {
    /// The newest tombstone at or before `snapshot`.
    pub fn visible(&self, snapshot: SequenceNumber) -> Option<SequenceNumber> {
        let newer = self.sequences.partition_point(|&sequence| sequence > snapshot);
        self.sequences.get(newer).copied()
    }
}

/// A set of range tombstones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeDeletes {
    fragments: Vec<Fragment>,
}

impl RangeDeletes {
    /// No tombstones.
    pub fn new() -> RangeDeletes {
        RangeDeletes::default()
    }

    /// There are no tombstones.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// The fragments, in key order.
    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// Pairs of a fragment and a sequence number.
    pub fn count(&self) -> u64 {
        self.fragments.iter().map(|fragment| fragment.sequences.len() as u64).sum()
    }

    /// The smallest range that covers all of them.
    pub fn range(&self) -> Option<KeyRange> {
        let (first, last) = (self.fragments.first()?, self.fragments.last()?);
        Some(KeyRange { start: first.start.clone(), end: Some(last.end.clone()) })
    }

    /// The smallest and the largest sequence number.
    pub fn sequence_bounds(&self) -> Option<(SequenceNumber, SequenceNumber)> {
        let all = || self.fragments.iter().flat_map(|fragment| &fragment.sequences).copied();
        all().min().zip(all().max())
    }

    /// The index of the first fragment that ends after `key`; the number of fragments if none does.
    pub fn position(&self, key: &[u8]) -> usize {
        self.fragments.partition_point(|fragment| *fragment.end <= *key)
    }

    /// The fragment that `key` lies in.
    pub fn fragment(&self, key: &[u8]) -> Option<&Fragment> {
        self.fragments.get(self.position(key)).filter(|fragment| *fragment.start <= *key)
    }

    /// The newest tombstone at or before `snapshot` that covers `key`.
    #[inline]
    pub fn covering(&self, key: &[u8], snapshot: SequenceNumber) -> Option<SequenceNumber> {
        if self.fragments.is_empty() {
            return None;
        }
        self.fragment(key)?.visible(snapshot)
    }

    /// Adds the tombstone of `start` to `end`, exclusive, at `sequence`. An empty range adds
    /// nothing.
    pub fn insert(&mut self, start: &[u8], end: &[u8], sequence: SequenceNumber) {
        self.insert_all(start, end, &[sequence]);
    }

    /// Adds tombstones of one range; `sequences` strictly descending.
    fn insert_all(&mut self, start: &[u8], end: &[u8], sequences: &[SequenceNumber]) {
        if start >= end || sequences.is_empty() {
            return;
        }
        let first = self.position(start);
        let after = self.fragments.partition_point(|fragment| *fragment.start < *end);
        let mut cut = Vec::new();
        let mut from: Key = start.into();
        for old in &self.fragments[first..after.max(first)] {
            if *old.start < *from {
                let end = from.clone();
                cut.push(Fragment {
                    start: old.start.clone(),
                    end,
                    sequences: old.sequences.clone(),
                });
            } else if *from < *old.start {
                let end = old.start.clone();
                cut.push(Fragment { start: from.clone(), end, sequences: sequences.to_vec() });
                from = old.start.clone();
            }
            let to: Key = if *old.end <= *end { old.end.clone() } else { end.into() };
            let both = union(&old.sequences, sequences);
            cut.push(Fragment { start: from.clone(), end: to.clone(), sequences: both });
            if *to < *old.end {
                let (start, end) = (to.clone(), old.end.clone());
                cut.push(Fragment { start, end, sequences: old.sequences.clone() });
            }
            from = to;
        }
        if *from < *end {
            cut.push(Fragment { start: from, end: end.into(), sequences: sequences.to_vec() });
        }
        let cut_count = cut.len();
        self.fragments.splice(first..after.max(first), cut);
        self.join(first.saturating_sub(1), first + cut_count + 1);
    }

    /// Joins touching neighbours with equal sequence numbers among the fragments `from..to`.
    fn join(&mut self, from: usize, to: usize) {
        let mut index = (to.min(self.fragments.len())).saturating_sub(1);
        while index > from {
            let (left, right) = (&self.fragments[index - 1], &self.fragments[index]);
            if left.end == right.start && left.sequences == right.sequences {
                let right = self.fragments.remove(index);
                self.fragments[index - 1].end = right.end;
            }
            index -= 1;
        }
    }

    /// The tombstones of all of `sets`.
    pub fn merge<'a>(sets: impl IntoIterator<Item = &'a RangeDeletes>) -> RangeDeletes {
        let mut sets = sets.into_iter().filter(|set| !set.is_empty());
        let mut merged = sets.next().cloned().unwrap_or_default();
        for set in sets {
            for fragment in &set.fragments {
                merged.insert_all(&fragment.start, &fragment.end, &fragment.sequences);
            }
        }
        merged
    }

    /// What of the tombstones lies in `range`.
    pub fn clip(&self, range: &KeyRange) -> RangeDeletes {
        let mut fragments = Vec::new();
        for fragment in &self.fragments[self.position(&range.start)..] {
            let start = fragment.start.clone().max(range.start.clone());
            let mut end = fragment.end.clone();
            if let Some(bound) = &range.end {
                end = end.min(bound.clone());
            }
            if end <= start {
                break;
            }
            fragments.push(Fragment { start, end, sequences: fragment.sequences.clone() });
        }
        RangeDeletes { fragments }
    }

    /// Keeps the tombstones for which `keep` says so; `keep` sees fragment and sequence number.
    pub fn retain(&mut self, mut keep: impl FnMut(&Fragment, SequenceNumber) -> bool) {
        for index in 0..self.fragments.len() {
            let fragment = &self.fragments[index];
            let kept = fragment.sequences.iter().copied();
            let kept: Vec<_> = kept.filter(|&sequence| keep(fragment, sequence)).collect();
            self.fragments[index].sequences = kept;
        }
        self.fragments.retain(|fragment| !fragment.sequences.is_empty());
        self.join(0, self.fragments.len());
    }

    /// Bytes that they take in memory, about.
    pub fn memory_bytes(&self) -> usize {
        let each = |f: &Fragment| {
            size_of::<Fragment>() + f.start.len() + f.end.len() + 32 + 8 * f.sequences.len()
        };
        self.fragments.iter().map(each).sum()
    }

    /// The tombstones as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_varint(&mut out, self.fragments.len() as u64);
        for fragment in &self.fragments {
            push_bytes(&mut out, &fragment.start);
            push_bytes(&mut out, &fragment.end);
            push_varint(&mut out, fragment.sequences.len() as u64);
            for &sequence in &fragment.sequences {
                push_varint(&mut out, sequence);
            }
        }
        out
    }

    /// Reads [`RangeDeletes::encode`]d tombstones; `None` when they break an invariant.
    pub fn decode(bytes: &[u8]) -> Option<RangeDeletes> {
        let mut reader = Reader::new(bytes);
        let mut fragments: Vec<Fragment> = Vec::new();
        for _ in 0..reader.varint()? {
            let (start, end): (Key, Key) = (reader.bytes()?.into(), reader.bytes()?.into());
            let mut sequences: Vec<SequenceNumber> = Vec::new();
            for _ in 0..reader.varint()? {
                let sequence = reader.varint()?;
                if sequence > SEQUENCE_MAX || sequences.last().is_some_and(|&l| l <= sequence) {
                    return None;
                }
                sequences.push(sequence);
            }
            let ordered = start < end && fragments.last().is_none_or(|last| last.end <= start);
            if !ordered || sequences.is_empty() {
                return None;
            }
            fragments.push(Fragment { start, end, sequences });
        }
        reader.is_empty().then_some(RangeDeletes { fragments })
    }
}

/// Two strictly descending lists as one.
fn union(a: &[SequenceNumber], b: &[SequenceNumber]) -> Vec<SequenceNumber> {
    let mut all = [a, b].concat();
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Tombstone = (u8, u8, SequenceNumber);

    fn key(n: u8) -> Vec<u8> {
        vec![n]
    }

    fn build(tombstones: &[Tombstone]) -> RangeDeletes {
        let mut set = RangeDeletes::new();
        for &(start, end, sequence) in tombstones {
            set.insert(&key(start), &key(end), sequence);
        }
        set
    }

    fn naive(tombstones: &[Tombstone], k: u8, snapshot: u64) -> Option<u64> {
        let covers =
            |&&(start, end, sequence): &&Tombstone| start <= k && k < end && sequence <= snapshot;
        tombstones.iter().filter(covers).map(|t| t.2).max()
    }

    fn check_invariants(set: &RangeDeletes) {
        for fragment in set.fragments() {
            assert!(fragment.start < fragment.end);
            assert!(!fragment.sequences.is_empty());
            assert!(fragment.sequences.windows(2).all(|pair| pair[0] > pair[1]));
        }
        for pair in set.fragments().windows(2) {
            assert!(pair[0].end <= pair[1].start);
            assert!(pair[0].end < pair[1].start || pair[0].sequences != pair[1].sequences);
        }
    }

    fn tombstones() -> impl Strategy<Value = Vec<Tombstone>> {
        prop::collection::vec((0u8..20, 0u8..20, 0u64..12), 0..12)
    }

    proptest! {
        #[test]
        fn covering_is_what_the_list_of_tombstones_says(list in tombstones()) {
            let set = build(&list);
            check_invariants(&set);
            for k in 0..22 {
                for snapshot in 0..13 {
                    prop_assert_eq!(
                        set.covering(&key(k), snapshot), naive(&list, k, snapshot), "{}", k
                    );
                }
            }
        }

        #[test]
        fn order_of_insertion_and_merging_do_not_matter(list in tombstones(), at in 0usize..12) {
            let set = build(&list);
            let mut reversed = list.clone();
            reversed.reverse();
            prop_assert_eq!(&build(&reversed), &set);
            let (a, b) = list.split_at(at.min(list.len()));
            prop_assert_eq!(&RangeDeletes::merge([&build(a), &build(b)]), &set);
            prop_assert_eq!(RangeDeletes::decode(&set.encode()), Some(set));
        }

        #[test]
        fn clipping_keeps_what_lies_inside(list in tombstones(), a in 0u8..20, b in 0u8..20) {
            let clipped = build(&list).clip(&KeyRange::new(key(a), Some(key(b).into())));
            check_invariants(&clipped);
            for k in 0..22 {
                let expected = naive(&list, k, 99).filter(|_| a <= k && k < b);
                prop_assert_eq!(clipped.covering(&key(k), 99), expected);
            }
        }

        #[test]
        fn retain_forgets_tombstones(list in tombstones(), bound in 0u64..12) {
            let mut set = build(&list);
            set.retain(|_, sequence| sequence >= bound);
            let kept: Vec<_> = list.iter().filter(|t| t.2 >= bound).copied().collect();
            prop_assert_eq!(set, build(&kept));
        }

        #[test]
        fn any_bytes_decode_or_not(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some(set) = RangeDeletes::decode(&bytes) {
                prop_assert!(set.count() <= 100);
            }
        }
    }
}
