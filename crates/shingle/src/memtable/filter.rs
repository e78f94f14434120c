//! Which keys a memtable may have, so that a lookup of another key need not search the list.
//!
//! Most lookups find their key below the memtable, and beyond the processor's caches each step of a
//! search is a miss. A Bloom filter answers with one miss. Its size cannot be known in advance, so
//! it grows by segments, each four times as large as the one before: a key is in one of them.
//!
//! All bits of a key are in one word of 64 bits (Putze, Sanders, Singler: "Cache-, Hash- and
//! Space-Efficient Bloom Filters", 2007).
//!
//! Invariants:
//! - Only the [`Filler`] sets bits, and a filter has one. Bits are never taken back.
//! - A segment is published with the bits of its first keys. The bits of a key are set before its
//!   insert returns: a thread that sees the sequence number of the entry sees them too.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A list of fewer entries is in the processor's caches, and is searched without a filter.
pub(super) const FILTERED_FROM: u64 = 1024;

/// Keys of the first segment.
const SEGMENT_KEYS: usize = 4096;

/// Enough for 10^9 keys; the last segment takes what comes.
const SEGMENTS_MAX: usize = 9;

/// A key is taken for present in error in about one of 40 questions.
const BITS_PER_KEY: usize = 10;
const PROBES: u32 = 4;

/// The filter, for readers.
#[derive(Default)]
pub(super) struct Filter {
    segments: [OnceLock<Box<[AtomicU64]>>; SEGMENTS_MAX],
    bytes: AtomicU64,
}

/// The writer's part: what the newest segment still takes.
#[derive(Default)]
pub(super) struct Filler {
    segments: usize,
    keys_left: usize,
}

impl Filter {
    /// A key of this hash may have been added, or there is no filter yet.
    #[inline]
    pub(super) fn may_contain(&self, hash: impl FnOnce() -> u64) -> bool {
        let Some(first) = self.segments[0].get() else { return true };
        let hash = hash();
        has(first, hash) || self.is_in_later(hash)
    }

    #[inline]
    fn is_in_later(&self, hash: u64) -> bool {
        for segment in &self.segments[1..] {
            match segment.get() {
                None => return false,
                Some(words) if has(words, hash) => return true,
                Some(_) => {}
            }
        }
        false
    }

    /// Bytes of all segments.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }
}

impl Filler {
    /// Begins the filter with these hashes.
    pub(super) fn begin(&mut self, filter: &Filter, hashes: impl Iterator<Item = u64>) {
        let words = self.new_segment(filter);
        for hash in hashes {
            set(&words, hash);
            self.keys_left = self.keys_left.saturating_sub(1);
        }
        self.publish(filter, words);
    }

    /// Adds a key to a filter that has begun. A key that it has already takes nothing.
    #[inline]
    pub(super) fn add(&mut self, filter: &Filter, hash: u64) {
        if filter.may_contain(|| hash) {
            return;
        }
        if self.keys_left == 0 && self.segments < SEGMENTS_MAX {
            let words = self.new_segment(filter);
            self.publish(filter, words);
        }
        let newest = self.segments.checked_sub(1).and_then(|newest| filter.segments[newest].get());
        if let Some(words) = newest {
            set(words, hash);
        }
        self.keys_left = self.keys_left.saturating_sub(1);
    }

    #[cold]
    fn new_segment(&mut self, filter: &Filter) -> Box<[AtomicU64]> {
        self.keys_left = SEGMENT_KEYS << (2 * self.segments);
        let words = self.keys_left * BITS_PER_KEY / 64;
        filter.bytes.store(filter.bytes() + words as u64 * 8, Relaxed);
        (0..words).map(|_| AtomicU64::new(0)).collect()
    }

    fn publish(&mut self, filter: &Filter, words: Box<[AtomicU64]>) {
        filter.segments[self.segments].get_or_init(|| words);
        self.segments += 1;
    }
}

/// The word of `hash` and its bits: the high bits of the hash choose the word, the low ones the
/// bits.
#[inline]
fn place(words: &[AtomicU64], hash: u64) -> (&AtomicU64, u64) {
    let word = ((u128::from(hash) * words.len() as u128) >> 64) as usize;
    let bits = (0..PROBES).fold(0, |bits, probe| bits | 1 << (hash >> (6 * probe) & 63));
    (&words[word], bits)
}

#[inline]
fn has(words: &[AtomicU64], hash: u64) -> bool {
    let (word, bits) = place(words, hash);
    word.load(Relaxed) & bits == bits
}

/// One writer: a plain load and store.
#[inline]
fn set(words: &[AtomicU64], hash: u64) {
    let (word, bits) = place(words, hash);
    word.store(word.load(Relaxed) | bits, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::checksum::hash64;

    fn hash(number: u64) -> u64 {
        hash64(&number.to_be_bytes())
    }

    #[test]
    fn what_was_added_is_found_and_little_else() {
        let (filter, mut filler) = (Filter::default(), Filler::default());
        assert!(filter.may_contain(|| hash(7)), "without a filter, any key may be there");
        let first = FILTERED_FROM;
        filler.begin(&filter, (0..first).map(hash));
        let count = if cfg!(miri) { 6_000 } else { 200_000 };
        (first..count).for_each(|number| filler.add(&filter, hash(number)));
        assert!((0..count).all(|number| filter.may_contain(|| hash(number))));
        let wrong = (count..2 * count).filter(|&number| filter.may_contain(|| hash(number)));
        let share = wrong.count() as f64 / count as f64;
        assert!((0.001..0.08).contains(&share), "{share} of the other keys");
        assert!(filter.bytes() <= count * 5, "{} bytes", filter.bytes());
    }

    #[test]
    fn a_key_that_comes_again_takes_no_more_memory() {
        let (filter, mut filler) = (Filter::default(), Filler::default());
        filler.begin(&filter, (0..FILTERED_FROM).map(hash));
        let bytes = filter.bytes();
        (0..10 * SEGMENT_KEYS as u64).for_each(|n| filler.add(&filter, hash(n % FILTERED_FROM)));
        assert_eq!(filter.bytes(), bytes);
    }
}
