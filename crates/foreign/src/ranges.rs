//! Deleted ranges, for a walk over keys in their order.

use crate::entry::RangeDelete;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Deleted ranges that the walk has not left behind yet.
#[derive(Default)]
pub struct Ranges {
    /// Those that begin later, the first one on top.
    later: BinaryHeap<Reverse<Later>>,
    /// Those that began: the newest on top.
    begun: BinaryHeap<(u64, Vec<u8>)>,
}

/// Begin, end, sequence number.
type Later = (Vec<u8>, Vec<u8>, u64);

impl Ranges {
    /// Adds a range. One that begins before the key of the last call of `newest` counts from the
    /// next call on.
    pub fn add(&mut self, range: RangeDelete) {
        if range.begin < range.end {
            self.later.push(Reverse((range.begin, range.end, range.sequence)));
        }
    }

    /// The sequence number of the newest range that has `key`. Keys come in their order.
    pub fn newest(&mut self, key: &[u8]) -> Option<u64> {
        while self.later.peek().is_some_and(|Reverse((begin, ..))| begin.as_slice() <= key) {
            let Some(Reverse((_, end, sequence))) = self.later.pop() else { break };
            self.begun.push((sequence, end));
        }
        while self.begun.peek().is_some_and(|(_, end)| end.as_slice() <= key) {
            self.begun.pop();
        }
        self.begun.peek().map(|(sequence, _)| *sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_the_newest_of_the_ranges_around_it() {
        let given = [("b", "f", 5), ("c", "d", 9), ("a", "c", 7), ("e", "e", 20), ("x", "d", 30)];
        let mut ranges = Ranges::default();
        for (begin, end, sequence) in given {
            ranges.add(RangeDelete { begin: begin.into(), end: end.into(), sequence });
        }
        let found: Vec<_> = ["", "a", "b", "c", "cc", "d", "e", "f", "z"]
            .map(|key| ranges.newest(key.as_bytes()))
            .into();
        let expected = [None, Some(7), Some(7), Some(9), Some(9), Some(5), Some(5), None, None];
        assert_eq!(found, expected);
    }
}
