//! What a get needs of a run before its data block, in memory: the filters, and the fences, which
//! say in which data block a key can be.
//!
//! A get asks a filter of every run that may have its key, and most answer no. In a large database
//! it waits for memory most of the time, once for each line of the processor's caches that it
//! touches. Here a question touches the last keys of the partitions, which are few and numbers, and
//! one line of a filter; a key that a filter admits touches four more. Through the block cache
//! these would be searches in the top index, in an index block, and two in the cache.
//!
//! Invariants:
//! - All bytes were verified as they were read.
//! - They are read with the first question, in one piece, because a run that is only merged needs
//!   none.
//! - The memory is a pinned part of the cache's budget. Where no more may be pinned, and where a
//!   block is damaged, the run has no fences: lookups go through the cache.

use crate::block::Block;
use crate::cache::Pinned;
use crate::cursor::Cursor;
use crate::filter::Shape;
use crate::format::{Footer, Handle};
use crate::frame;
use crate::piece::BlockKind;
use crate::place::TablePlace;
use crate::summary::RunSummary;
use base::Cause;
use base::key::{CommonStart, split_internal_key};
use base::prefetch::LINE_BYTES;
use media::ReadFile;
use std::ops::Range;
use std::sync::Arc;

/// Runs with more bytes have no fences: places are 32-bit numbers.
const RUN_BYTES_MAX: u64 = u32::MAX as u64;

/// Keys in a line.
const LINE_KEYS: usize = LINE_BYTES / size_of::<u64>();

/// Where a key can be in a run.
pub(super) enum Place {
    /// Nowhere.
    Absent,
    /// In this data block; the filter admits it.
    Block(Handle),
    /// In this data block, or in one behind it: the fences do not say.
    From(Handle),
    /// The fences do not say.
    Unknown,
}

/// The fences of a run. A key is here the eight bytes that follow what all keys of the run start
/// with, big-endian; where two are equal, the fences do not say which is smaller.
pub(super) struct Fences {
    /// That of all keys.
    shared: CommonStart,
    partitions: Vec<Partition>,
    /// For each data block the last key in it.
    blocks: Vec<u64>,
    /// The last of every [`LINE_KEYS`] numbers in `blocks`.
    lines: Vec<u64>,
    /// Where the data blocks begin, from the run's start, and their bytes.
    handles: Vec<(u32, u32)>,
    /// The filters, one after the other.
    filters: Vec<u8>,
    /// Of all filters; `None` without any.
    shape: Option<Shape>,
    /// Their part of the cache's budget.
    _pinned: Pinned,
}

/// A partition of the index.
struct Partition {
    /// The last key in it.
    last: u64,
    /// Where its filter lies.
    filter: Range<u32>,
    /// The number of its first data block.
    first: u32,
}

impl Fences {
    /// Bytes that the fences of a run take in memory at most, whose filters take `filter_bytes` in
    /// the file: a frame is longer than a filter and its place.
    fn memory_bytes_max(filter_bytes: u64, data_blocks: u64) -> u64 {
        let block_bytes = size_of::<u64>() + size_of::<(u32, u32)>() + 1 + size_of::<Partition>();
        let blocks_bytes = data_blocks.saturating_mul(block_bytes as u64);
        let others = size_of::<Fences>() + 2 * LINE_BYTES;
        blocks_bytes.saturating_add(filter_bytes + others as u64)
    }

    /// No partitions yet, of the run of `summary`.
    fn new(summary: &RunSummary, frames_bytes: usize, pinned: Pinned) -> Fences {
        let blocks = summary.data_blocks as usize;
        let mut filters: Vec<u8> = Vec::with_capacity(frames_bytes + LINE_BYTES);
        filters.resize(filters.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES), 0);
        Fences {
            shared: CommonStart::of(&summary.smallest, &summary.largest),
            partitions: Vec::new(),
            blocks: Vec::with_capacity(blocks),
            lines: Vec::with_capacity(blocks / LINE_KEYS),
            handles: Vec::with_capacity(blocks),
            filters,
            shape: None,
            _pinned: pinned,
        }
    }

    /// The blocks that follow are of a partition whose last key is `last`. `None`: its filter is
    /// not like those before.
    fn begin_partition(&mut self, last: &[u8], filter: Option<(&[u8], Shape)>) -> Option<()> {
        let start = self.filters.len() as u32;
        let (body, shape) = filter.unzip();
        if self.partitions.is_empty() {
            self.shape = shape;
        } else if self.shape != shape {
            return None;
        }
        self.filters.extend_from_slice(body.unwrap_or_default());
        let (last, first) = (self.key(last), self.blocks.len() as u32);
        self.partitions.push(Partition { last, filter: start..self.filters.len() as u32, first });
        Some(())
    }

    /// The partition that `key` falls into, and its number.
    #[inline]
    fn partition(&self, key: u64) -> Option<(usize, &Partition)> {
        let number = self.partitions.partition_point(|partition| partition.last < key);
        self.partitions.get(number).map(|partition| (number, partition))
    }

    /// The filter of a partition.
    #[inline]
    fn filter(&self, partition: &Partition) -> Option<(&[u8], Shape)> {
        let body = self.filters.get(partition.filter.start as usize..partition.filter.end as usize);
        body.zip(self.shape)
    }

    /// The filter of the partition admits `hash`, or it has none.
    #[inline]
    fn admits(&self, partition: &Partition, hash: u64) -> bool {
        self.filter(partition).is_none_or(|(body, shape)| shape.may_contain(body, hash))
    }

    /// Prefetches what [`Fences::place`] reads of a filter, which it waits for otherwise.
    #[inline]
    pub(super) fn prefetch(&self, user_key: &[u8], hash: u64) {
        if let Some(key) = self.shared.prefix_after(user_key)
            && let Some((_, partition)) = self.partition(key)
            && let Some((body, shape)) = self.filter(partition)
        {
            shape.prefetch(body, hash);
        }
    }

    /// Adds a data block whose last key is `last`.
    fn add_block(&mut self, last: &[u8], handle: (u32, u32)) {
        let last = self.key(last);
        self.blocks.push(last);
        self.handles.push(handle);
        if self.blocks.len().is_multiple_of(LINE_KEYS) {
            self.lines.push(last);
        }
    }

    /// A key as it stands here. Behind the last key of the run, its index may have any key.
    fn key(&self, user_key: &[u8]) -> u64 {
        self.shared.prefix_after(user_key).unwrap_or(u64::MAX)
    }

    /// Where `user_key` can be, whose hash is `hash`.
    #[inline]
    pub(super) fn place(&self, user_key: &[u8], hash: u64, data_start: u64) -> Place {
        let Some(key) = self.shared.prefix_after(user_key) else { return Place::Absent };
        let Some((number, partition)) = self.partition(key) else { return Place::Absent };
        if !self.admits(partition, hash) {
            return if partition.last == key { Place::Unknown } else { Place::Absent };
        }
        let block = self.block(number, key);
        let (Some(&last), Some(&(offset, bytes))) =
            (self.blocks.get(block), self.handles.get(block))
        else {
            return Place::Unknown;
        };
        let handle = Handle { offset: data_start + u64::from(offset), bytes };
        match self.blocks.get(block + 1) {
            _ if last != key => Place::Block(handle),
            Some(&next) if next == key => Place::Unknown,
            _ => Place::From(handle),
        }
    }

    /// The first block whose last key is not before `key`: in partition `number`, or the first of
    /// the next one.
    #[inline]
    fn block(&self, number: usize, key: u64) -> usize {
        let first = |number: usize| {
            self.partitions.get(number).map_or(self.blocks.len(), |next| next.first as usize)
        };
        let (from, to) = (first(number) / LINE_KEYS, first(number + 1) / LINE_KEYS);
        let lines = self.lines.get(from..to).unwrap_or_default();
        let start = (from + lines.partition_point(|&last| last < key)) * LINE_KEYS;
        let line = self.blocks.get(start..).unwrap_or_default();
        let line = &line[..line.len().min(LINE_KEYS)];
        start + line.partition_point(|&last| last < key)
    }
}

/// What the fences of a run are made of.
pub(super) struct Source<'a> {
    pub file: &'a dyn ReadFile,
    pub place: TablePlace,
    pub footer: &'a Footer,
    pub top: &'a Arc<Block>,
    pub summary: &'a RunSummary,
    /// The run's only filter is in memory anyway.
    pub has_filter: bool,
}

impl Source<'_> {
    /// Bytes that the fences take in memory at most. `None`: the run is too long for any.
    pub fn memory_bytes_max(&self) -> Option<u64> {
        let filter_bytes = self.footer.filters_end - self.footer.data_end;
        let bytes_max = Fences::memory_bytes_max(filter_bytes, self.summary.data_blocks);
        (self.footer.bytes <= RUN_BYTES_MAX).then_some(bytes_max)
    }

    /// Reads the fences; `pinned` is their memory. `None`: a block is damaged, or cannot be read.
    pub fn read(&self, pinned: Pinned, cause: Cause) -> Option<Fences> {
        let frames = self.read_frames(cause)?;
        let mut fences = Fences::new(self.summary, frames.bytes.len(), pinned);
        if self.footer.index_levels == 1 {
            let filter = self.footer.filter.filter(|_| !self.has_filter);
            fences.begin_partition(&self.summary.largest, frames.filter(filter)?)?;
            self.add_blocks(&mut fences, self.top.clone())?;
            return Some(fences);
        }
        let mut cursor = Cursor::new(self.top.clone());
        cursor.first().ok()?;
        while cursor.valid() {
            let (index, filter) = self.footer.handles(cursor.value(), BlockKind::Index)?;
            let (last, _) = split_internal_key(cursor.key())?;
            fences.begin_partition(last, frames.filter(filter)?)?;
            self.add_blocks(&mut fences, frames.index(index)?)?;
            cursor.next().ok()?;
        }
        Some(fences)
    }

    /// Adds the data blocks of an index block.
    fn add_blocks(&self, fences: &mut Fences, index: Arc<Block>) -> Option<()> {
        let mut cursor = Cursor::new(index);
        cursor.first().ok()?;
        while cursor.valid() {
            let (data, _) = self.footer.handles(cursor.value(), BlockKind::Data)?;
            let offset = (data.offset - self.footer.start) as u32;
            fences.add_block(split_internal_key(cursor.key())?.0, (offset, data.bytes));
            cursor.next().ok()?;
        }
        Some(())
    }

    /// What lies between the data and what an open run has anyway: filters and index blocks.
    fn read_frames(&self, cause: Cause) -> Option<Frames> {
        let start = self.footer.data_end;
        let end = match self.footer.index_levels {
            1 if self.has_filter => start,
            1 => self.footer.filters_end,
            _ => self.footer.pinned_start(),
        };
        let mut bytes = vec![0; (end - start) as usize];
        if !bytes.is_empty() {
            self.file.read_at(start, &mut bytes, cause).ok()?;
        }
        Some(Frames { place: self.place, start, bytes })
    }
}

/// Frames of a run as they were read.
struct Frames {
    place: TablePlace,
    start: u64,
    bytes: Vec<u8>,
}

impl Frames {
    fn frame(&self, kind: BlockKind, handle: Handle) -> Option<&[u8]> {
        let (from, to) = (handle.offset - self.start, handle.end(kind) - self.start);
        self.bytes.get(from as usize..to as usize)
    }

    /// A filter, where there is one; outside `None`: it is damaged.
    fn filter(&self, handle: Option<Handle>) -> Option<Option<(&[u8], Shape)>> {
        let Some(handle) = handle else { return Some(None) };
        let kind = BlockKind::Filter;
        let frame = self.frame(kind, handle)?;
        frame::verify(kind, frame, self.place, handle.offset).ok()?;
        Shape::split(frame::raw(kind, frame)?).map(Some)
    }

    fn index(&self, handle: Handle) -> Option<Arc<Block>> {
        let kind = BlockKind::Index;
        let frame = self.frame(kind, handle)?;
        let raw = frame::open_slice(kind, frame, self.place, handle.offset).ok()?;
        Block::new(raw).ok().map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::BlockCache;
    use crate::filter;
    use crate::options::{Filter, TableOptions};
    use base::RunId;

    #[test]
    fn partitions_have_filters_of_one_kind_or_none() {
        let built = |kind: Filter| {
            let mut bytes = Vec::new();
            filter::build(kind, &[1, 2, 3], &mut bytes);
            bytes
        };
        let bloom = built(Filter::Bloom { bits_per_key: 10 });
        let ribbon = built(Filter::Ribbon { bits_per_key: 7 });
        let (bloom, ribbon) = (Shape::split(&bloom), Shape::split(&ribbon));
        let cache = BlockCache::new(1 << 20);
        let summary = RunSummary::new(RunId(1), 0, TableOptions::default());
        for (first, second) in [(bloom, ribbon), (bloom, None), (None, bloom)] {
            let mut fences = Fences::new(&summary, 0, cache.pin(0).unwrap());
            assert!(fences.begin_partition(b"a", first).is_some());
            assert!(fences.begin_partition(b"b", second).is_none());
            assert!(fences.begin_partition(b"b", first).is_some());
        }
    }
}
