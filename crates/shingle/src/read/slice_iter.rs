//! The entries of a slice, for a merged read.

use super::source::Leap;
use super::view::SliceView;
use base::key::{EntryKind, SEQUENCE_MAX, internal_key, user_key};
use base::{KeyRange, Result, SequenceNumber};
use table::{Bytes, EntryIter, IterOptions, RunIter};

/// A run's entries inside a slice's range.
pub(crate) struct SliceIter {
    iter: RunIter,
    /// `None`: the slice is the whole run.
    range: Option<KeyRange>,
    inside: bool,
    /// The newest sequence number in the run.
    sequence_max: SequenceNumber,
    /// Its filter says that it has nothing for the cursor: it is not read.
    is_passed: bool,
}

impl SliceIter {
    pub(crate) fn new(
        iter: RunIter,
        range: Option<KeyRange>,
        sequence_max: SequenceNumber,
    ) -> SliceIter {
        SliceIter { iter, range, inside: false, sequence_max, is_passed: false }
    }

    /// `prefix`: that of all keys of the cursor, empty where they have none in common.
    pub(crate) fn open(
        slice: &SliceView,
        prefix: &[u8],
        options: IterOptions,
    ) -> Result<SliceIter> {
        let range = (!slice.is_whole).then(|| slice.range.clone());
        let run = slice.run.run()?;
        let is_passed = !run.may_contain_prefix(prefix, options.cause)?;
        let iter = SliceIter::new(run.iter(options), range, slice.sequence_max);
        Ok(SliceIter { is_passed, ..iter })
    }

    pub(super) fn leap(&mut self, leap: Leap<'_>) -> Result<bool> {
        if self.sequence_max >= leap.below {
            return Ok(false);
        }
        leap.run(self).map(|()| true)
    }

    /// Tells the store of the first read of a walk from the first entry.
    pub(super) fn announce(&self) -> Result<()> {
        if self.is_passed {
            return Ok(());
        }
        self.iter.announce(self.range.as_ref().unwrap_or(&KeyRange::all()))
    }

    /// The current readahead of the walk through it, in bytes.
    pub(super) fn walk_bytes(&self) -> u32 {
        self.iter.walk_bytes()
    }

    /// Notes whether the position is in the range.
    fn settle(&mut self) -> Result<()> {
        self.inside = self.iter.valid()
            && self.range.as_ref().is_none_or(|range| range.contains(user_key(self.iter.key())));
        Ok(())
    }
}

impl EntryIter for SliceIter {
    fn seek_to_first(&mut self) -> Result<()> {
        if self.is_passed {
            return Ok(());
        }
        match &self.range {
            None => self.iter.seek_to_first()?,
            Some(range) => {
                self.iter.seek(&internal_key(&range.start, SEQUENCE_MAX, EntryKind::SEARCH))?;
            }
        }
        self.settle()
    }

    fn seek_to_last(&mut self) -> Result<()> {
        if self.is_passed {
            return Ok(());
        }
        match self.range.as_ref().and_then(|range| range.end.as_ref()) {
            None => self.iter.seek_to_last()?,
            Some(end) => {
                self.iter.seek_for_prev(&internal_key(end, SEQUENCE_MAX, EntryKind::SEARCH))?;
            }
        }
        self.settle()
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        if self.is_passed {
            return Ok(());
        }
        if self.range.as_ref().is_some_and(|range| *user_key(target) < *range.start) {
            return self.seek_to_first();
        }
        self.iter.seek(target)?;
        self.settle()
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        if self.is_passed {
            return Ok(());
        }
        if self.range.as_ref().is_some_and(|range| !range.is_before_end(user_key(target))) {
            return self.seek_to_last();
        }
        self.iter.seek_for_prev(target)?;
        self.settle()
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        self.iter.next()?;
        self.settle()
    }

    fn prev(&mut self) -> Result<()> {
        self.iter.prev()?;
        self.settle()
    }

    #[inline]
    fn valid(&self) -> bool {
        self.inside
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.iter.key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.iter.value()
    }

    fn value_bytes(&self) -> Bytes {
        self.iter.value_bytes()
    }
}
