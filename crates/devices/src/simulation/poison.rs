//! Ranges of bytes that a write nearby destroyed.
//!
//! Invariant: the ranges are disjoint, not empty, and in order.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ends by begins.
#[derive(Default)]
pub(super) struct Poison(BTreeMap<u64, u64>);

impl Poison {
    /// The first destroyed byte in `range`.
    pub(super) fn first_in(&self, range: &Range<u64>) -> Option<u64> {
        let before = self.0.range(..=range.start).next_back();
        if before.is_some_and(|(_, &end)| end > range.start) && !range.is_empty() {
            return Some(range.start);
        }
        self.0.range(range.clone()).next().map(|(&start, _)| start)
    }

    /// `range` is destroyed.
    pub(super) fn add(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.remove(&range);
            self.0.insert(range.start, range.end);
        }
    }

    /// `range` was written, or is not needed.
    pub(super) fn remove(&mut self, range: &Range<u64>) {
        if range.is_empty() {
            return;
        }
        if let Some((&start, &end)) = self.0.range(..range.start).next_back()
            && end > range.start
        {
            self.0.insert(start, range.start);
            if end > range.end {
                self.0.insert(range.end, end);
            }
        }
        while let Some((&start, &end)) = self.0.range(range.clone()).next() {
            self.0.remove(&start);
            if end > range.end {
                self.0.insert(range.end, end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn agrees_with_a_vector() {
        let (mut poison, mut model) = (Poison::default(), vec![false; 64]);
        let mut random = Random::new(3);
        for _ in 0..20_000 {
            let start = random.below(64);
            let range = start..start + random.below(65 - start);
            let places = range.start as usize..range.end as usize;
            match random.below(3) {
                0 => {
                    poison.add(range);
                    model[places].fill(true);
                }
                1 => {
                    poison.remove(&range);
                    model[places].fill(false);
                }
                _ => {
                    let first = places.clone().find(|&place| model[place]);
                    assert_eq!(poison.first_in(&range), first.map(|place| place as u64));
                }
            }
        }
    }
}
