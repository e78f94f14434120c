//! A set of sectors, one bit each.

use std::ops::Range;

const WORD: u64 = 64;

/// The set.
#[derive(Clone, Debug)]
pub struct Bits {
    words: Vec<u64>,
}

/// The words that `range` touches, each with the bits of it that are meant.
fn masks(range: &Range<u64>) -> impl Iterator<Item = (usize, u64)> + use<> {
    let (start, end) = (range.start, range.end);
    let words = if start < end { start / WORD..end.div_ceil(WORD) } else { 0..0 };
    words.map(move |word| {
        let from = start.saturating_sub(word * WORD);
        let to = (end - word * WORD).min(WORD);
        (word as usize, (u64::MAX << from) & (u64::MAX >> (WORD - to)))
    })
}

impl Bits {
    /// The empty set of `len` possible sectors.
    pub fn new(len: u64) -> Bits {
        Bits { words: vec![0; len.div_ceil(WORD) as usize] }
    }

    /// All sectors of the range are in the set.
    pub fn insert(&mut self, range: &Range<u64>) {
        for (word, mask) in masks(range) {
            if let Some(word) = self.words.get_mut(word) {
                *word |= mask;
            }
        }
    }

    /// No sector of the range is in the set.
    pub fn remove(&mut self, range: &Range<u64>) {
        for (word, mask) in masks(range) {
            if let Some(word) = self.words.get_mut(word) {
                *word &= !mask;
            }
        }
    }

    /// The runs of sectors of `range` that are in the set, in order.
    pub fn runs(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for (word, mask) in masks(range) {
            let mut bits = self.words.get(word).copied().unwrap_or(0) & mask;
            while bits != 0 {
                let first = bits.trailing_zeros();
                let count = (bits >> first).trailing_ones();
                let start = word as u64 * WORD + u64::from(first);
                let end = start + u64::from(count);
                match runs.last_mut().filter(|run| run.end == start) {
                    Some(run) => run.end = end,
                    None => runs.push(start..end),
                }
                bits &= u64::MAX.checked_shl(first + count).unwrap_or(0);
            }
        }
        runs
    }
}
