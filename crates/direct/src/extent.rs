//! Ranges of a device, and the map of those that are free.
//!
//! Invariant of [`FreeMap`]: its extents are not empty, do not overlap and do not touch.

use std::collections::BTreeMap;

/// A range of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// Its first byte.
    pub start: u64,
    /// Its length.
    pub bytes: u64,
}

impl Extent {
    /// The extent from `start` to `end`; empty where `end` is not behind `start`.
    pub fn between(start: u64, end: u64) -> Extent {
        Extent { start, bytes: end.saturating_sub(start) }
    }

    /// The byte behind it.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes)
    }

    /// Whether `other` lies in it.
    pub fn contains(&self, other: Extent) -> bool {
        self.start <= other.start && other.end() <= self.end()
    }

    /// Whether they have a byte in common.
    pub fn overlaps(&self, other: Extent) -> bool {
        self.start < other.end() && other.start < self.end()
    }
}

/// The free extents of a device, coalesced.
#[derive(Clone, Debug, Default)]
pub struct FreeMap {
    ends: BTreeMap<u64, u64>,
    bytes: u64,
}

impl FreeMap {
    /// A map in which `extent` is free.
    pub fn new(extent: Extent) -> FreeMap {
        let mut map = FreeMap::default();
        map.give(extent);
        map
    }

    /// Free bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The free extents, in order of place.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Extent> + '_ {
        self.ends.iter().map(|(start, end)| Extent::between(*start, *end))
    }

    /// The free extents that begin at `from` or behind it.
    pub fn from(&self, from: u64) -> impl Iterator<Item = Extent> + '_ {
        self.ends.range(from..).map(|(start, end)| Extent::between(*start, *end))
    }

    /// The free extent in which byte `at` lies.
    pub fn around(&self, at: u64) -> Option<Extent> {
        let (start, end) = self.ends.range(..=at).next_back()?;
        (at < *end).then(|| Extent::between(*start, *end))
    }

    /// Takes `extent` out. False, and nothing happens, if it is not wholly free.
    pub fn take(&mut self, extent: Extent) -> bool {
        if extent.bytes == 0 {
            return true;
        }
        let Some(free) = self.around(extent.start).filter(|free| free.contains(extent)) else {
            return false;
        };
        self.ends.remove(&free.start);
        for rest in
            [Extent::between(free.start, extent.start), Extent::between(extent.end(), free.end())]
        {
            if rest.bytes > 0 {
                self.ends.insert(rest.start, rest.end());
            }
        }
        self.bytes -= extent.bytes;
        true
    }

    /// Makes `extent` free; returns the free extent that it became part of.
    pub fn give(&mut self, extent: Extent) -> Extent {
        if extent.bytes == 0 {
            return extent;
        }
        let before = self.ends.range(..extent.end()).next_back();
        debug_assert!(before.is_none_or(|(_, end)| *end <= extent.start), "{extent:?} is free");
        let mut merged = extent;
        if let Some(end) = self.ends.remove(&extent.end()) {
            merged.bytes = end - merged.start;
        }
        if let Some((start, end)) = self.ends.range(..extent.start).next_back()
            && *end == extent.start
        {
            merged = Extent::between(*start, merged.end());
        }
        self.ends.insert(merged.start, merged.end());
        self.bytes += extent.bytes;
        merged
    }
}
