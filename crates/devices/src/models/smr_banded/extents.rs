//! Which bytes are in the media cache, and where: ranges that do not overlap, by first byte.

use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Copy, Debug)]
struct Extent {
    end: u64,
    place: u64,
}

/// The map of a media cache.
#[derive(Clone, Debug, Default)]
pub struct Extents {
    map: BTreeMap<u64, Extent>,
    /// The longest range that there ever was: how far before a byte its range can begin.
    longest: u64,
}

impl Extents {
    /// How many ranges there are.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// The bytes are at `place` now, and nowhere else.
    pub fn insert(&mut self, range: Range<u64>, place: u64) {
        self.remove(range.clone());
        self.longest = self.longest.max(range.end - range.start);
        self.map.insert(range.start, Extent { end: range.end, place });
    }

    /// The bytes are not here any more.
    pub fn remove(&mut self, range: Range<u64>) {
        while let Some((start, extent)) = self.last(&range) {
            self.map.remove(&start);
            if range.end < extent.end {
                let place = extent.place + (range.end - start);
                self.map.insert(range.end, Extent { end: extent.end, place });
            }
            if start < range.start {
                self.map.insert(start, Extent { end: range.start, ..extent });
                break;
            }
        }
    }

    /// What of `range` is here, each part with its place, from the last to the first.
    pub fn parts(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, u64)> {
        let (from, to) = (range.start, range.end);
        self.touching(&range).map(move |(start, extent)| {
            let begin = start.max(from);
            (begin..extent.end.min(to), extent.place + (begin - start))
        })
    }

    fn last(&self, range: &Range<u64>) -> Option<(u64, Extent)> {
        self.touching(range).next()
    }

    /// The extents that overlap `range`, from the last to the first.
    fn touching(&self, range: &Range<u64>) -> impl Iterator<Item = (u64, Extent)> + use<'_> {
        let from = range.start;
        // One lower bound near the upper one: both are found on one way down the map.
        let near = self.map.range(from.saturating_sub(self.longest)..range.end).rev();
        near.take_while(move |(_, extent)| extent.end > from)
            .map(|(&start, &extent)| (start, extent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_map_agrees_with_one_by_byte(
            steps in prop::collection::vec((any::<bool>(), 0u64..100, 1u64..30, 0u64..1000), 1..40),
        ) {
            let mut extents = Extents::default();
            let mut plain: BTreeMap<u64, u64> = BTreeMap::new();
            for (is_insert, start, len, place) in steps {
                let range = start..start + len;
                if is_insert {
                    extents.insert(range.clone(), place);
                    plain.extend(range.map(|byte| (byte, place + byte - start)));
                } else {
                    extents.remove(range.clone());
                    plain.retain(|byte, _| !range.contains(byte));
                }
            }
            for (from, to) in [(0, 200), (37, 80), (50, 51)] {
                let mut found = BTreeMap::new();
                for (part, place) in extents.parts(from..to) {
                    found.extend(part.clone().map(|byte| (byte, place + byte - part.start)));
                }
                let expected = plain.range(from..to).map(|(&byte, &place)| (byte, place));
                prop_assert_eq!(found, expected.collect::<BTreeMap<_, _>>());
            }
        }
    }
}
