//! Range tombstones as disjoint fragments.
//!
//! Invariants: fragments are in key order, disjoint and not empty; each has at least one sequence
//! number, strictly descending; neighbours that touch differ in their sequence numbers. So equal
//! sets of tombstones have equal fragments, in whatever order they came.
//!
//! A set is made at once, by one sweep over the sorted ends of its tombstones, and does not change
//! afterwards: a set that grew by one tombstone at a time would be cut anew each time. What lies on
//! top of each other costs one sequence number for each layer, so that a caller that keeps a set
//! for long asks for the layers that some snapshot needs ([`RangeDeletes::needed`]), no others.

use base::coding::{Reader, push_bytes, push_varint};
use base::key::{CommonStart, SEQUENCE_MAX};
use base::{KeyRange, SequenceNumber};
use std::collections::BTreeMap;
use std::fmt;

/// The keys from `start` to `end`, exclusive, are absent from `sequence` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeTombstone<'a> {
    /// The first key.
    pub start: &'a [u8],
    /// The first key after it.
    pub end: &'a [u8],
    /// When it was written.
    pub sequence: SequenceNumber,
}

/// The keys from `start` to `end`, exclusive, are absent from each of `sequences` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The first key.
    pub start: &'a [u8],
    /// The first key after it.
    pub end: &'a [u8],
    /// Newest first, without repetition, never empty.
    pub sequences: &'a [SequenceNumber],
}

impl<'a> Fragment<'a> {
    /// The newest tombstone at or before `snapshot`.
    pub fn visible(&self, snapshot: SequenceNumber) -> Option<SequenceNumber> {
        let newer = self.sequences.partition_point(|&sequence| sequence > snapshot);
        self.sequences.get(newer).copied()
    }

    /// Its tombstones, newest first.
    pub fn tombstones(self) -> impl Iterator<Item = RangeTombstone<'a>> {
        let Fragment { start, end, sequences } = self;
        sequences.iter().map(move |&sequence| RangeTombstone { start, end, sequence })
    }
}

/// Neighbouring keys over which the same tombstone is the newest that a snapshot sees, or none is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch<'a> {
    /// The first key; `None`: no tombstone begins or ends before the key that was asked for.
    pub start: Option<&'a [u8]>,
    /// The first key after it; `None`: none begins or ends behind it.
    pub end: Option<&'a [u8]>,
    /// The newest tombstone.
    pub sequence: Option<SequenceNumber>,
}

/// A set of range tombstones: four arrays, whatever there is of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RangeDeletes {
    /// Start and end of each fragment, one behind the other.
    keys: Vec<u8>,
    spans: Vec<Span>,
    sequences: Vec<SequenceNumber>,
    /// That of all ends.
    shared: CommonStart,
    /// The eight bytes behind those of each end, big-endian: most comparisons of a search end here,
    /// and half of the cache misses.
    heads: Vec<u64>,
}

/// Where a fragment's parts end; each begins where the one before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start_to: usize,
    end_to: usize,
    sequences_to: usize,
}

impl fmt::Debug for RangeDeletes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.fragments()).finish()
    }
}

impl RangeDeletes {
    /// No tombstones.
    pub fn new() -> RangeDeletes {
        RangeDeletes::default()
    }

    /// All of `tombstones`; those of an empty range are none.
    pub fn of<'a>(tombstones: impl IntoIterator<Item = RangeTombstone<'a>>) -> RangeDeletes {
        Sweep::new(tombstones).run(|open, layers| layers.extend(open.keys().rev()))
    }

    /// The same tombstones, all with the sequence number `sequence`.
    pub(crate) fn stamped(&self, sequence: SequenceNumber) -> RangeDeletes {
        RangeDeletes::of(
            self.tombstones().map(|tombstone| RangeTombstone { sequence, ..tombstone }),
        )
    }

    /// Those of `tombstones` that a rewrite must know while `snapshots`, ascending, are alive: over
    /// each key the newest between two snapshots.
    pub fn needed<'a>(
        tombstones: impl IntoIterator<Item = RangeTombstone<'a>>,
        snapshots: &[SequenceNumber],
    ) -> RangeDeletes {
        Sweep::new(tombstones).run(|open, layers| {
            let mut bound = SequenceNumber::MAX;
            while let Some((&newest, _)) = open.range(..=bound).next_back() {
                layers.push(newest);
                let older = snapshots.partition_point(|&snapshot| snapshot < newest);
                let Some(&snapshot) = older.checked_sub(1).and_then(|at| snapshots.get(at)) else {
                    break;
                };
                bound = snapshot;
            }
        })
    }

    /// The tombstones of all of `sets`.
    pub fn merge<'a>(sets: impl IntoIterator<Item = &'a RangeDeletes>) -> RangeDeletes {
        RangeDeletes::of(sets.into_iter().flat_map(RangeDeletes::tombstones))
    }

    /// There are no tombstones.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// How many fragments there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// The fragments, in key order.
    pub fn fragments(&self) -> impl ExactSizeIterator<Item = Fragment<'_>> {
        (0..self.len()).map(|at| self.at(at))
    }

    /// Each fragment of each tombstone.
    pub fn tombstones(&self) -> impl Iterator<Item = RangeTombstone<'_>> {
        self.fragments().flat_map(Fragment::tombstones)
    }

    /// Pairs of a fragment and a sequence number.
    pub fn count(&self) -> u64 {
        self.sequences.len() as u64
    }

    /// The smallest range that covers all of them.
    pub fn range(&self) -> Option<KeyRange> {
        let last = self.len().checked_sub(1)?;
        Some(KeyRange::new(self.at(0).start, Some(self.end(last).into())))
    }

    /// The smallest and the largest sequence number.
    pub fn sequence_bounds(&self) -> Option<(SequenceNumber, SequenceNumber)> {
        let all = || self.sequences.iter().copied();
        all().min().zip(all().max())
    }

    fn at(&self, index: usize) -> Fragment<'_> {
        let before = match index {
            0 => Span { start_to: 0, end_to: 0, sequences_to: 0 },
            _ => self.spans[index - 1],
        };
        let Span { start_to, end_to, sequences_to } = self.spans[index];
        Fragment {
            start: &self.keys[before.end_to..start_to],
            end: &self.keys[start_to..end_to],
            sequences: &self.sequences[before.sequences_to..sequences_to],
        }
    }

    fn end(&self, index: usize) -> &[u8] {
        let Span { start_to, end_to, .. } = self.spans[index];
        &self.keys[start_to..end_to]
    }

    /// The index of the first fragment that ends after `key`; the number of fragments if none does.
    pub fn position(&self, key: &[u8]) -> usize {
        let Some(head) = self.shared.prefix_after(key) else {
            return if *key < *self.shared.bytes() { 0 } else { self.len() };
        };
        let (mut from, mut to) = (self.heads.partition_point(|&other| other < head), self.len());
        while from < to && self.heads[from] == head {
            let middle = from + (to - from) / 2;
            let is_behind = self.heads[middle] == head && self.end(middle) <= key;
            if is_behind { from = middle + 1 } else { to = middle }
        }
        from
    }

    /// [`RangeDeletes::position`] for a search that goes on from `hint` in small steps.
    fn position_near(&self, key: &[u8], hint: usize) -> usize {
        let is_after = |index: usize| index >= self.len() || key < self.end(index);
        let is_behind = |index: usize| index == 0 || self.end(index - 1) <= key;
        for near in hint..=hint.saturating_add(1) {
            if near <= self.len() && is_behind(near) && is_after(near) {
                return near;
            }
        }
        self.position(key)
    }

    /// The fragment that `key` lies in.
    pub fn fragment(&self, key: &[u8]) -> Option<Fragment<'_>> {
        let index = self.position(key);
        (index < self.len()).then(|| self.at(index)).filter(|fragment| fragment.start <= key)
    }

    /// The newest tombstone at or before `snapshot` that covers `key`.
    #[inline]
    pub fn covering(&self, key: &[u8], snapshot: SequenceNumber) -> Option<SequenceNumber> {
        if self.is_empty() {
            return None;
        }
        self.fragment(key)?.visible(snapshot)
    }

    /// The stretch around `key`, as `snapshot` sees it. `hint` is where the last call left it, so
    /// that a walk through the keys in order pays for each fragment once.
    pub fn stretch(&self, key: &[u8], snapshot: SequenceNumber, hint: &mut usize) -> Stretch<'_> {
        let index = self.position_near(key, *hint);
        *hint = index;
        let next = (index < self.len()).then(|| self.at(index));
        match next.filter(|fragment| fragment.start <= key) {
            Some(Fragment { start, end, .. }) => {
                let sequence = next.and_then(|fragment| fragment.visible(snapshot));
                Stretch { start: Some(start), end: Some(end), sequence }
            }
            None => Stretch {
                start: index.checked_sub(1).map(|before| self.end(before)),
                end: next.map(|fragment| fragment.start),
                sequence: None,
            },
        }
    }

    /// Appends a fragment that lies behind all others.
    fn push(&mut self, start: &[u8], end: &[u8], sequences: &[SequenceNumber]) {
        self.keys.extend_from_slice(start);
        let start_to = self.keys.len();
        self.keys.extend_from_slice(end);
        self.sequences.extend_from_slice(sequences);
        let (end_to, sequences_to) = (self.keys.len(), self.sequences.len());
        self.spans.push(Span { start_to, end_to, sequences_to });
    }

    /// Appends a fragment that lies behind all others; a neighbour with equal sequence numbers that
    /// it touches grows instead.
    fn push_joined(&mut self, start: &[u8], end: &[u8], sequences: &[SequenceNumber]) {
        let last = self.len().checked_sub(1).map(|last| self.at(last));
        if last.is_none_or(|last| last.end != start || last.sequences != sequences) {
            return self.push(start, end, sequences);
        }
        if let Some(last) = self.spans.last_mut() {
            self.keys.truncate(last.start_to);
            self.keys.extend_from_slice(end);
            last.end_to = self.keys.len();
        }
    }

    /// What of the tombstones lies in `range`.
    pub fn clip(&self, range: &KeyRange) -> RangeDeletes {
        let mut clipped = RangeDeletes::new();
        let from = self.position(&range.start);
        for fragment in (from..self.len()).map(|index| self.at(index)) {
            let start = fragment.start.max(&range.start);
            let end = range.end.as_ref().map_or(fragment.end, |end| fragment.end.min(end));
            if end <= start {
                break;
            }
            clipped.push(start, end, fragment.sequences);
        }
        clipped.finish();
        clipped
    }

    /// Keeps the tombstones for which `keep` says so; `keep` sees fragment and sequence number.
    pub fn retain(&mut self, mut keep: impl FnMut(Fragment<'_>, SequenceNumber) -> bool) {
        let mut kept = RangeDeletes::new();
        let mut layers = Vec::new();
        for fragment in self.fragments() {
            layers.clear();
            let all = fragment.sequences.iter().copied();
            layers.extend(all.filter(|&sequence| keep(fragment, sequence)));
            if !layers.is_empty() {
                kept.push_joined(fragment.start, fragment.end, &layers);
            }
        }
        kept.finish();
        *self = kept;
    }

    /// Bytes that they take in memory.
    pub fn memory_bytes(&self) -> usize {
        self.keys.capacity()
            + self.spans.capacity() * size_of::<Span>()
            + self.sequences.capacity() * size_of::<SequenceNumber>()
            + self.heads.capacity() * size_of::<u64>()
            + self.shared.bytes().len()
    }

    /// After the last fragment: makes what searches need, and gives back memory that growing left
    /// over.
    fn finish(&mut self) {
        let Some(last) = self.len().checked_sub(1) else { return };
        self.shared = CommonStart::of(self.end(0), self.end(last));
        let head = |at| self.shared.prefix_after(self.end(at)).unwrap_or_default();
        self.heads = (0..=last).map(head).collect();
        self.keys.shrink_to_fit();
        self.spans.shrink_to_fit();
        self.sequences.shrink_to_fit();
    }

    /// The tombstones as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_varint(&mut out, self.len() as u64);
        for fragment in self.fragments() {
            push_bytes(&mut out, fragment.start);
            push_bytes(&mut out, fragment.end);
            push_varint(&mut out, fragment.sequences.len() as u64);
            for &sequence in fragment.sequences {
                push_varint(&mut out, sequence);
            }
        }
        out
    }

    /// Reads [`RangeDeletes::encode`]d tombstones; `None` when they break an invariant.
    pub fn decode(bytes: &[u8]) -> Option<RangeDeletes> {
        let mut reader = Reader::new(bytes);
        let mut decoded = RangeDeletes::new();
        let mut sequences: Vec<SequenceNumber> = Vec::new();
        for _ in 0..reader.varint()? {
            let (start, end) = (reader.bytes()?, reader.bytes()?);
            sequences.clear();
            for _ in 0..reader.varint()? {
                let sequence = reader.varint()?;
                if sequence > SEQUENCE_MAX || sequences.last().is_some_and(|&l| l <= sequence) {
                    return None;
                }
                sequences.push(sequence);
            }
            let last = decoded.len().checked_sub(1).map(|last| decoded.end(last));
            if start >= end || last.is_some_and(|last| start < last) || sequences.is_empty() {
                return None;
            }
            decoded.push(start, end, &sequences);
        }
        decoded.finish();
        reader.is_empty().then_some(decoded)
    }
}

/// One walk over the keys at which tombstones begin and end.
struct Sweep<'a> {
    by_start: Vec<RangeTombstone<'a>>,
    by_end: Vec<(&'a [u8], SequenceNumber)>,
}

/// The tombstones over the current key, and how many pieces of each: one tombstone may have come
/// from several runs.
type Open = BTreeMap<SequenceNumber, usize>;

impl<'a> Sweep<'a> {
    fn new(tombstones: impl IntoIterator<Item = RangeTombstone<'a>>) -> Sweep<'a> {
        let mut by_start: Vec<RangeTombstone<'a>> =
            tombstones.into_iter().filter(|one| one.start < one.end).collect();
        // Stable sorts: what is in order already, as runs are, costs one look.
        by_start.sort_by(|a, b| work::compare(a.start, b.start));
        let mut by_end: Vec<_> = by_start.iter().map(|one| (one.end, one.sequence)).collect();
        by_end.sort_by(|a, b| work::compare(a.0, b.0));
        Sweep { by_start, by_end }
    }

    /// `choose` says which of the open tombstones a fragment has, newest first.
    fn run(self, choose: impl Fn(&Open, &mut Vec<SequenceNumber>)) -> RangeDeletes {
        let mut out = RangeDeletes::new();
        let (mut open, mut layers) = (Open::new(), Vec::new());
        let (mut begun, mut ended) = (0, 0);
        while let Some(&(end, _)) = self.by_end.get(ended) {
            let here = self.by_start.get(begun).map_or(end, |next| next.start.min(end));
            while let Some((_, sequence)) = self.by_end.get(ended).filter(|next| next.0 == here) {
                close(&mut open, *sequence);
                ended += 1;
            }
            while let Some(next) = self.by_start.get(begun).filter(|next| next.start == here) {
                *open.entry(next.sequence).or_default() += 1;
                begun += 1;
            }
            let Some(&(end, _)) = self.by_end.get(ended) else { break };
            if open.is_empty() {
                continue;
            }
            let to = self.by_start.get(begun).map_or(end, |next| next.start.min(end));
            layers.clear();
            choose(&open, &mut layers);
            work::add(layers.len());
            out.push_joined(here, to, &layers);
        }
        out.finish();
        out
    }
}

fn close(open: &mut Open, sequence: SequenceNumber) {
    if let Some(pieces) = open.get_mut(&sequence) {
        *pieces -= 1;
        if *pieces == 0 {
            open.remove(&sequence);
        }
    }
}

/// Steps of sweeps: counted in tests, nothing elsewhere.
mod work {
    use std::cmp::Ordering;

    #[cfg(test)]
    thread_local! {
        static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    #[inline]
    pub(super) fn add(_steps: usize) {
        #[cfg(test)]
        STEPS.set(STEPS.get() + _steps);
    }

    #[inline]
    pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
        add(1);
        a.cmp(b)
    }

    #[cfg(test)]
    pub(super) fn take() -> usize {
        STEPS.replace(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Tombstone = (u8, u8, SequenceNumber);

    fn key(n: u8) -> Vec<u8> {
        vec![n]
    }

    fn with_all<T>(tombstones: &[Tombstone], make: impl FnOnce(Vec<RangeTombstone<'_>>) -> T) -> T {
        let keys: Vec<_> = tombstones.iter().map(|t| (key(t.0), key(t.1), t.2)).collect();
        let borrowed = keys.iter().map(|(start, end, sequence)| RangeTombstone {
            start,
            end,
            sequence: *sequence,
        });
        make(borrowed.collect())
    }

    fn build(tombstones: &[Tombstone]) -> RangeDeletes {
        with_all(tombstones, |all| RangeDeletes::of(all))
    }

    fn naive(tombstones: &[Tombstone], k: u8, snapshot: u64) -> Option<u64> {
        let covers =
            |&&(start, end, sequence): &&Tombstone| start <= k && k < end && sequence <= snapshot;
        tombstones.iter().filter(covers).map(|t| t.2).max()
    }

    fn check_invariants(set: &RangeDeletes) {
        let fragments: Vec<Fragment<'_>> = set.fragments().collect();
        for fragment in &fragments {
            assert!(fragment.start < fragment.end);
            assert!(!fragment.sequences.is_empty());
            assert!(fragment.sequences.windows(2).all(|pair| pair[0] > pair[1]));
        }
        for pair in fragments.windows(2) {
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
        fn what_is_needed_answers_every_snapshot(
            list in tombstones(),
            snapshots in prop::collection::btree_set(0u64..12, 0..4),
        ) {
            let snapshots: Vec<_> = snapshots.into_iter().collect();
            let set = with_all(&list, |all| RangeDeletes::needed(all, &snapshots));
            check_invariants(&set);
            for snapshot in snapshots.iter().copied().chain([SEQUENCE_MAX]) {
                for k in 0..22 {
                    let expected = naive(&list, k, snapshot);
                    prop_assert_eq!(set.covering(&key(k), snapshot), expected, "{}", k);
                }
            }
            let stripe = |s: &u64| snapshots.partition_point(|snapshot| snapshot < s);
            for fragment in set.fragments() {
                let stripes: Vec<_> = fragment.sequences.iter().map(stripe).collect();
                prop_assert!(stripes.windows(2).all(|pair| pair[0] > pair[1]), "two of a stripe");
            }
        }

        #[test]
        fn a_search_among_like_keys_finds_what_a_walk_finds(
            ends in prop::collection::btree_set("k{0,10}[ab]{0,12}", 2..24),
            keys in prop::collection::vec("k{0,11}[a-c]{0,13}", 1..24),
        ) {
            let ends: Vec<_> = ends.iter().map(String::as_bytes).collect();
            let set = RangeDeletes::of(ends.windows(2).step_by(2).zip(1..).map(
                |(pair, sequence)| RangeTombstone { start: pair[0], end: pair[1], sequence },
            ));
            for key in keys.iter().map(String::as_bytes).chain(ends.iter().copied()) {
                let walked = set.fragments().take_while(|fragment| fragment.end <= key).count();
                prop_assert_eq!(set.position(key), walked);
            }
        }

        #[test]
        fn a_stretch_has_one_newest_tombstone(
            list in tombstones(),
            keys in prop::collection::vec(0u8..22, 1..12),
            snapshot in 0u64..13,
        ) {
            let set = build(&list);
            let mut hint = 0;
            for k in keys {
                let stretch = set.stretch(&key(k), snapshot, &mut hint);
                prop_assert_eq!(stretch.sequence, naive(&list, k, snapshot));
                let from = stretch.start.map_or(0, |start| start[0]);
                let to = stretch.end.map_or(22, |end| end[0]);
                prop_assert!(from <= k && k < to);
                for inside in from..to {
                    prop_assert_eq!(naive(&list, inside, snapshot), stretch.sequence);
                }
            }
        }

        #[test]
        fn any_bytes_decode_or_not(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some(set) = RangeDeletes::decode(&bytes) {
                prop_assert!(set.count() <= 100);
            }
        }
    }

    /// Ranges as pairs of numbers, by the number of the deletion and how many there are.
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

    fn steps_of(shape: Shape, count: u32, snapshots: &[SequenceNumber]) -> (usize, usize) {
        let keys: Vec<_> = (0..count).map(|i| shape(i, count)).collect();
        let keys: Vec<_> =
            keys.iter().map(|(from, to)| (from.to_be_bytes(), to.to_be_bytes())).collect();
        let tombstones = (1..).zip(&keys).map(|(sequence, (start, end))| RangeTombstone {
            start,
            end,
            sequence,
        });
        work::take();
        let set = RangeDeletes::needed(tombstones, snapshots);
        (work::take(), set.len())
    }

    /// Each insertion into a set cut every fragment before it anew: four times the work for twice
    /// the tombstones, and eight times where each fragment had a list of all of them.
    #[test]
    fn twice_the_tombstones_are_twice_the_work() {
        for (name, shape) in SHAPES {
            for snapshots in [&[][..], &[100, 700][..]] {
                let (half, _) = steps_of(shape, 1000, snapshots);
                let (whole, fragments) = steps_of(shape, 2000, snapshots);
                assert!(whole * 10 <= half * 23, "{name}: {half}, then {whole} steps");
                assert!(fragments <= 2 * 2000, "{name}: {fragments} fragments");
            }
        }
        assert_eq!(steps_of(SHAPES[0].1, 2000, &[]).1, 1, "the newest hides all before it");
    }
}
