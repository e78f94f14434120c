//! Slices one after another, as one input: what lies together is read from front to back.

use super::source::SliceIter;
use base::Result;
use table::{Bytes, EntryIter};

/// Slices in key order that have no keys in common. One at a time has a position.
pub(crate) struct ChainIter {
    first: SliceIter,
    /// In order, behind the first.
    rest: Vec<SliceIter>,
    /// 0 is the first.
    at: usize,
}

impl ChainIter {
    pub(crate) fn new(first: SliceIter, rest: Vec<SliceIter>) -> ChainIter {
        ChainIter { first, rest, at: 0 }
    }

    #[inline]
    fn here(&self) -> &SliceIter {
        self.at.checked_sub(1).and_then(|at| self.rest.get(at)).unwrap_or(&self.first)
    }

    #[inline]
    fn here_mut(&mut self) -> &mut SliceIter {
        let at = self.at.checked_sub(1);
        at.and_then(|at| self.rest.get_mut(at)).unwrap_or(&mut self.first)
    }

    /// Goes on to the next slice that has an entry.
    fn forward(&mut self) -> Result<()> {
        while !self.here().valid() && self.at < self.rest.len() {
            self.at += 1;
            self.here_mut().seek_to_first()?;
        }
        Ok(())
    }

    fn backward(&mut self) -> Result<()> {
        while !self.here().valid() && self.at > 0 {
            self.at -= 1;
            self.here_mut().seek_to_last()?;
        }
        Ok(())
    }
}

impl EntryIter for ChainIter {
    fn seek_to_first(&mut self) -> Result<()> {
        self.at = 0;
        self.first.seek_to_first()?;
        self.forward()
    }
    fn seek_to_last(&mut self) -> Result<()> {
        self.at = self.rest.len();
        self.here_mut().seek_to_last()?;
        self.backward()
    }
    fn seek(&mut self, target: &[u8]) -> Result<()> {
        for at in 0..=self.rest.len() {
            self.at = at;
            self.here_mut().seek(target)?;
            if self.here().valid() {
                break;
            }
        }
        Ok(())
    }
    fn seek_for_prev(&mut self, target: &[u8]) -> Result<()> {
        for at in (0..=self.rest.len()).rev() {
            self.at = at;
            self.here_mut().seek_for_prev(target)?;
            if self.here().valid() {
                break;
            }
        }
        Ok(())
    }
    #[inline]
    fn next(&mut self) -> Result<()> {
        self.here_mut().next()?;
        self.forward()
    }
    fn prev(&mut self) -> Result<()> {
        self.here_mut().prev()?;
        self.backward()
    }
    #[inline]
    fn valid(&self) -> bool {
        self.here().valid()
    }
    #[inline]
    fn key(&self) -> &[u8] {
        self.here().key()
    }
    #[inline]
    fn value(&self) -> &[u8] {
        self.here().value()
    }
    fn value_bytes(&self) -> Bytes {
        self.here().value_bytes()
    }
}
