//! The page cache of a simulated host: which pages of a device are in memory.
//!
//! What was written or read last is there, as far as it fits. Pages leave in the order of their
//! last use, and when their bytes are discarded. It holds no bytes: the content of the device has
//! them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

const PAGE_BYTES: u64 = 4096;

/// The pages in memory.
#[derive(Debug, Default)]
pub(super) struct PageCache {
    pages_max: usize,
    /// The last use of each page, and the page of each use.
    last_uses: HashMap<u64, u64>,
    pages: BTreeMap<u64, u64>,
    /// Uses so far.
    uses: u64,
}

fn pages_of(offset: u64, bytes: u64) -> Range<u64> {
    offset / PAGE_BYTES..(offset + bytes).div_ceil(PAGE_BYTES)
}

impl PageCache {
    /// A cache of `bytes`, empty; of 0 bytes, it never has anything.
    pub(super) fn new(bytes: u64) -> PageCache {
        let pages_max = usize::try_from(bytes / PAGE_BYTES).unwrap_or(usize::MAX);
        PageCache { pages_max, ..PageCache::default() }
    }

    /// What has to be read of a range, for all of it to be in memory: from the first page that is
    /// not there to the last one. `None`: nothing.
    pub(super) fn missing(&self, offset: u64, bytes: u64) -> Option<Range<u64>> {
        let is_missing = |page: &u64| !self.last_uses.contains_key(page);
        let first = pages_of(offset, bytes).find(is_missing)?;
        let last = pages_of(offset, bytes).rev().find(is_missing)?;
        let end = (last + 1) * PAGE_BYTES;
        Some((first * PAGE_BYTES).max(offset)..end.min(offset + bytes))
    }

    /// The range was written or read.
    pub(super) fn note(&mut self, offset: u64, bytes: u64) {
        if self.pages_max == 0 {
            return;
        }
        for page in pages_of(offset, bytes) {
            self.uses += 1;
            if let Some(before) = self.last_uses.insert(page, self.uses) {
                self.pages.remove(&before);
            }
            self.pages.insert(self.uses, page);
        }
        while self.last_uses.len() > self.pages_max
            && let Some((_, page)) = self.pages.pop_first()
        {
            self.last_uses.remove(&page);
        }
    }

    /// Pages of the range are not in memory any more.
    pub(super) fn forget(&mut self, offset: u64, bytes: u64) {
        if self.last_uses.is_empty() {
            return;
        }
        for page in pages_of(offset, bytes) {
            if let Some(last_use) = self.last_uses.remove(&page) {
                self.pages.remove(&last_use);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = PAGE_BYTES;

    #[test]
    fn the_page_that_was_used_longest_ago_leaves_first() {
        let mut cache = PageCache::new(3 * PAGE);
        cache.note(0, 3 * PAGE);
        assert_eq!(cache.missing(0, 3 * PAGE), None);
        cache.note(0, PAGE);
        cache.note(9 * PAGE, PAGE);
        assert_eq!(cache.missing(0, 3 * PAGE), Some(PAGE..2 * PAGE));
        assert_eq!(cache.missing(9 * PAGE, PAGE), None);
    }

    #[test]
    fn what_is_missing_goes_from_the_first_page_to_the_last() {
        let mut cache = PageCache::new(100 * PAGE);
        assert_eq!(cache.missing(PAGE, 2 * PAGE), Some(PAGE..3 * PAGE));
        cache.note(2 * PAGE, PAGE);
        cache.note(4 * PAGE, PAGE);
        assert_eq!(cache.missing(2 * PAGE, 5 * PAGE), Some(3 * PAGE..7 * PAGE));
        assert_eq!(cache.missing(2 * PAGE, 3 * PAGE), Some(3 * PAGE..4 * PAGE));
        cache.forget(2 * PAGE, PAGE);
        assert_eq!(cache.missing(2 * PAGE, PAGE), Some(2 * PAGE..3 * PAGE));
    }

    #[test]
    fn a_cache_of_nothing_has_nothing() {
        let mut cache = PageCache::new(0);
        cache.note(0, PAGE);
        assert_eq!(cache.missing(0, PAGE), Some(0..PAGE));
    }
}
