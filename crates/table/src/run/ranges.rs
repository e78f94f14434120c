//! What the index knows of key ranges: sizes and places to cut.

use super::Run;
use super::iter::first_of;
use crate::cursor::Cursor;
use crate::format::Handle;
use crate::piece::BlockKind;
use base::key::split_internal_key;
use base::{Cause, Key, KeyRange, Result};
use std::ops::Range;

/// A key near the end of a block, and how many bytes of data lie up to there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// A user key at or after the block's last key and at or before the next block's first.
    pub key: Key,
    /// Bytes of data of the run from its start to the end of the block.
    pub bytes: u64,
}

impl Run {
    /// Bytes of the run whose keys lie in `range`, index and filter included in proportion; exact
    /// to about a block at each end, and at least 1. Ranges that follow each other count no block
    /// twice. Reads the index blocks at both ends, through the cache.
    pub fn approximate_bytes(&self, range: &KeyRange, cause: Cause) -> Result<u64> {
        if range.covers(&self.summary.run.range) {
            return Ok(self.extent.bytes);
        }
        let total = self.footer.data_end - self.footer.start;
        if range.is_empty() || total == 0 {
            return Ok(0);
        }
        let start = self.data_block_of(&range.start, true, cause)?.0;
        let end = match &range.end {
            None => self.footer.data_end,
            Some(end) => self.data_block_of(end, true, cause)?.0,
        };
        let part = u128::from(end.saturating_sub(start)) * u128::from(self.extent.bytes);
        Ok((part / u128::from(total)).max(1) as u64)
    }

    /// The part of the file with the data blocks that may hold keys of `range`; `fill`: index
    /// blocks that had to be read go into the cache.
    pub(super) fn data_extent(
        &self,
        range: &KeyRange,
        fill: bool,
        cause: Cause,
    ) -> Result<Range<u64>> {
        if range.is_empty() {
            return Ok(self.footer.start..self.footer.start);
        }
        let start = self.data_block_of(&range.start, fill, cause)?.0;
        let end = match &range.end {
            None => self.footer.data_end,
            // The block that holds `end`'s place may hold smaller keys too.
            Some(end) => self.data_block_of(end, fill, cause)?.1,
        };
        Ok(start..end.max(start))
    }

    /// Begin and end of the data block that a user key falls into.
    fn data_block_of(&self, user_key: &[u8], fill: bool, cause: Cause) -> Result<(u64, u64)> {
        let target = first_of(user_key);
        let after = (self.footer.data_end, self.footer.data_end);
        let mut cursor = Cursor::new(self.top.clone());
        let mut from = self.footer.top;
        cursor.seek(&target).map_err(|m| self.malformed(from, m))?;
        if cursor.valid() && self.footer.index_levels == 2 {
            let (handle, _) = self.handle(cursor.value(), from, BlockKind::Index)?;
            cursor.set_block(self.block(BlockKind::Index, handle, fill, cause)?);
            from = handle;
            cursor.seek(&target).map_err(|m| self.malformed(from, m))?;
        }
        if !cursor.valid() {
            return Ok(after);
        }
        let (handle, _) = self.handle(cursor.value(), from, BlockKind::Data)?;
        Ok((handle.offset, handle.end(BlockKind::Data)))
    }

    /// The boundaries of data blocks whose keys lie inside `range`, in key order, for cutting work
    /// into parts. Reads the index blocks of the range.
    pub fn boundaries(&self, range: &KeyRange, cause: Cause) -> Result<Vec<Boundary>> {
        let mut boundaries = Vec::new();
        if range.is_empty() {
            return Ok(boundaries);
        }
        let target = first_of(&range.start);
        let mut top = Cursor::new(self.top.clone());
        let top_handle = self.footer.top;
        top.seek(&target).map_err(|m| self.malformed(top_handle, m))?;
        if self.footer.index_levels == 1 {
            self.collect(&mut top, top_handle, range, &mut boundaries)?;
            return Ok(boundaries);
        }
        while top.valid() {
            let (handle, _) = self.handle(top.value(), top_handle, BlockKind::Index)?;
            let mut index = Cursor::new(self.block(BlockKind::Index, handle, false, cause)?);
            index.seek(&target).map_err(|m| self.malformed(handle, m))?;
            if !self.collect(&mut index, handle, range, &mut boundaries)? {
                break;
            }
            top.next().map_err(|m| self.malformed(top_handle, m))?;
        }
        Ok(boundaries)
    }

    /// Takes boundaries from an index block; false when the range ended in it.
    fn collect(
        &self,
        index: &mut Cursor,
        from: Handle,
        range: &KeyRange,
        boundaries: &mut Vec<Boundary>,
    ) -> Result<bool> {
        while index.valid() {
            let (data, _) = self.handle(index.value(), from, BlockKind::Data)?;
            let key = split_internal_key(index.key()).map_or(&[][..], |(key, _)| key);
            if !range.is_before_end(key) {
                return Ok(false);
            }
            let ascends = boundaries.last().is_none_or(|last| *last.key < *key);
            if ascends && *key > *range.start {
                let bytes = data.end(BlockKind::Data) - self.footer.start;
                boundaries.push(Boundary { key: key.into(), bytes });
            }
            index.next().map_err(|m| self.malformed(from, m))?;
        }
        Ok(true)
    }

    /// At most `parts - 1` ascending user keys strictly inside `range` that cut the run's data
    /// there into parts of about equal bytes. All versions of a key are in one part.
    pub fn split_points(&self, range: &KeyRange, parts: usize, cause: Cause) -> Result<Vec<Key>> {
        let boundaries = self.boundaries(range, cause)?;
        let data = self.data_extent(range, false, cause)?;
        let from = data.start - self.footer.start;
        let total = data.end - data.start;
        let mut points: Vec<Key> = Vec::new();
        for part in 1..parts as u64 {
            let goal = from + (u128::from(total) * u128::from(part) / parts as u128) as u64;
            let index = boundaries.partition_point(|boundary| boundary.bytes < goal);
            let Some(boundary) = boundaries.get(index) else { break };
            if points.last().is_none_or(|last| *last < boundary.key) {
                points.push(boundary.key.clone());
            }
        }
        Ok(points)
    }
}
