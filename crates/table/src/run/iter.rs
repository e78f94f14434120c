//! Walks the entries of a run.

use super::Run;
use super::mapped::Walk;
use super::window::{Ahead, Stride, Window};
use crate::block::{Block, Kept, Malformed};
use crate::bytes::Bytes;
use crate::cursor::{Cursor, KeyMemory};
use crate::format::Handle;
use crate::iter::EntryIter;
use crate::piece::BlockKind;
use base::key::{SEQUENCE_MAX, internal_key};
use base::{Cause, EntryKind, Error, KeyRange, Result};
use std::ops::Range;
use std::sync::Arc;

/// How a run is walked.
#[derive(Clone, Debug)]
pub struct IterOptions {
    /// Why.
    pub cause: Cause,
    /// Blocks that had to be read go into the cache; with read-ahead, those of the index alone.
    pub fill_cache: bool,
    /// Bytes to read at once, past the cache; 0: through the cache.
    pub readahead_bytes: u32,
    /// Through the cache, a walk from block to block reads more and more at once, up to this many
    /// bytes. Of a mapped file it reads as much as mappings do.
    pub walk_bytes_max: u32,
    /// The walk comes from another run and goes on with reads of this many bytes.
    pub walk_bytes: u32,
    /// Only keys of this range will be asked for: nothing beyond it is prefetched. The iterator
    /// itself is not bounded by it.
    pub range: Option<KeyRange>,
}

impl IterOptions {
    /// For user reads: block by block through the cache.
    pub fn cached(cause: Cause) -> IterOptions {
        IterOptions {
            cause,
            fill_cache: true,
            readahead_bytes: 0,
            walk_bytes_max: 0,
            walk_bytes: 0,
            range: None,
        }
    }

    /// For background work: large reads past the cache.
    pub fn streaming(cause: Cause, readahead_bytes: u32) -> IterOptions {
        IterOptions { fill_cache: false, readahead_bytes, ..IterOptions::cached(cause) }
    }
}

/// Walks the entries of a run; keeps the run open.
pub struct RunIter {
    run: Arc<Run>,
    options: IterOptions,
    /// The top index; of a one-level index it points at data.
    top: Cursor<()>,
    /// The current index block of a two-level index.
    index: Cursor<()>,
    index_handle: Option<Handle>,
    data: Cursor,
    data_handle: Option<Handle>,
    window: Window,
    index_window: Window,
    walk: Walk,
    stride: Stride,
    /// The part of the file that may be prefetched.
    data_range: Range<u64>,
    /// The store was told that it will be read up to here.
    announced: u64,
    error: Option<Error>,
}

/// Which end of a block to begin at.
#[derive(Clone, Copy, PartialEq)]
enum End {
    First,
    Last,
}

impl Run {
    /// An iterator over the entries.
    pub fn iter(self: &Arc<Run>, options: IterOptions) -> RunIter {
        RunIter {
            top: Cursor::without_keys(self.top.clone()),
            index: Cursor::without_keys(Block::nothing()),
            index_handle: None,
            data: Cursor::new(Block::nothing()),
            data_handle: None,
            window: Window::default(),
            index_window: Window::default(),
            walk: Walk::default(),
            stride: Stride::begun(options.walk_bytes),
            data_range: self.footer.start..self.footer.data_end,
            announced: 0,
            error: None,
            run: self.clone(),
            options,
        }
    }
}

impl RunIter {
    /// Bytes that the walk reads at once by now.
    pub fn walk_bytes(&self) -> u32 {
        self.stride.bytes()
    }

    /// Tells the store of the first read of a walk through `range`, which has not begun.
    pub fn announce(&self, range: &KeyRange) -> Result<()> {
        let IterOptions { cause, fill_cache, walk_bytes, .. } = self.options;
        if self.run.mapped.is_some() || walk_bytes == 0 {
            return Ok(());
        }
        let data = self.run.data_extent(range, fill_cache, cause)?;
        let is_cached = self.run.is_cached(data.start);
        if !is_cached && !data.is_empty() {
            let ahead = self.ahead(walk_bytes);
            self.run.file.prefetch(data.start, ahead.end(&*self.run.file, data.start) - data.start);
        }
        Ok(())
    }

    /// Runs `step` unless an error came before; remembers its error.
    #[inline]
    fn guard(&mut self, step: impl FnOnce(&mut RunIter) -> Result<()>) -> Result<()> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let done = step(self);
        if let Err(error) = &done {
            self.data.invalidate();
            self.error = Some(error.clone());
        }
        done
    }

    fn two_levels(&self) -> bool {
        self.run.footer.index_levels == 2
    }

    /// The cursor whose entries point at data blocks, and the block that it is in.
    fn leaf(&self) -> (&Cursor<()>, Handle) {
        match self.index_handle {
            Some(handle) => (&self.index, handle),
            None => (&self.top, self.run.footer.top),
        }
    }

    fn top_step(&mut self, step: impl FnOnce(&mut Cursor<()>) -> Moved) -> Result<()> {
        step(&mut self.top).map_err(|m| self.run.malformed(self.run.footer.top, m))
    }

    fn leaf_step(&mut self, step: impl FnOnce(&mut Cursor<()>) -> Moved) -> Result<()> {
        let Some(handle) = self.index_handle else { return self.top_step(step) };
        step(&mut self.index).map_err(|m| self.run.malformed(handle, m))
    }

    #[inline]
    fn data_step(&mut self, step: impl FnOnce(&mut Cursor) -> Moved) -> Result<()> {
        match step(&mut self.data) {
            Ok(()) => Ok(()),
            Err(malformed) => {
                Err(self.run.malformed(self.data_handle.unwrap_or_default(), malformed))
            }
        }
    }

    /// Makes the index block that the top index stands at the current one.
    fn load_index(&mut self) -> Result<()> {
        let top = self.run.footer.top;
        let (handle, _) = self.run.handle(self.top.value(), top, BlockKind::Index)?;
        if self.index_handle != Some(handle) {
            self.index_handle = None;
            let block = self.index_block(handle)?;
            self.index.set_block(block);
            self.index_handle = Some(handle);
        }
        Ok(())
    }

    /// An index block from the cache, or read: where data is read many blocks at once, with those
    /// that follow it, so that a disk need not go to the end of the run for each.
    fn index_block(&mut self, handle: Handle) -> Result<Block<Kept>> {
        let IterOptions { cause, fill_cache, readahead_bytes, .. } = self.options;
        let bytes = readahead_bytes.max(self.stride.bytes());
        if self.run.mapped.is_some() || bytes <= handle.bytes {
            return self.run.block(BlockKind::Index, handle, fill_cache, cause);
        }
        if let Some(block) = self.run.cached(BlockKind::Index, handle) {
            return Ok(Block::from(block));
        }
        let within = self.index_range(handle);
        let ahead = Ahead { bytes, within, announced: 0 };
        let window = &mut self.index_window;
        let raw = window.block(&self.run, BlockKind::Index, handle, &ahead, cause)?;
        let block = self.run.parse_block(BlockKind::Index, handle, raw)?;
        if fill_cache {
            self.run.keep(handle, &block);
        }
        Ok(Block::from(block))
    }

    /// The part of the index, from `handle` on, that is as large as the part of the data that may
    /// be read.
    fn index_range(&self, handle: Handle) -> Range<u64> {
        let footer = &self.run.footer;
        let index_bytes = footer.pinned_start() - footer.filters_end;
        let data_bytes = (footer.data_end - footer.start).max(1);
        let share = (self.data_range.end - self.data_range.start) as f64 / data_bytes as f64;
        let end = handle.offset + (index_bytes as f64 * share) as u64;
        handle.offset..end.min(footer.pinned_start())
    }

    /// Makes the data block that the index stands at the current one; none when it stands nowhere.
    fn load_data(&mut self) -> Result<()> {
        let (leaf, from) = self.leaf();
        if !leaf.valid() {
            self.data.invalidate();
            return Ok(());
        }
        let (handle, _) = self.run.handle(leaf.value(), from, BlockKind::Data)?;
        if self.data_handle != Some(handle) {
            self.data_handle = None;
            let block = self.data_block(handle)?;
            self.data.set_block(block);
            self.data_handle = Some(handle);
        }
        Ok(())
    }

    fn data_block(&mut self, handle: Handle) -> Result<Block<Kept>> {
        if self.options.readahead_bytes == 0 {
            let fill = self.options.fill_cache;
            if self.run.mapped.is_none() && self.options.walk_bytes_max > 0 {
                return self.walked_block(handle);
            }
            self.walk.enter(&self.run, handle, self.data_range.end, self.options.cause)?;
            return self.run.block(BlockKind::Data, handle, fill, self.options.cause);
        }
        let ahead = self.ahead(self.options.readahead_bytes);
        let raw =
            self.window.block(&self.run, BlockKind::Data, handle, &ahead, self.options.cause)?;
        self.run.parse_block(BlockKind::Data, handle, raw).map(Block::from)
    }

    fn ahead(&self, bytes: u32) -> Ahead {
        Ahead { bytes, within: self.data_range.clone(), announced: self.announced }
    }

    /// A block from the cache, or read with what follows it.
    fn walked_block(&mut self, handle: Handle) -> Result<Block<Kept>> {
        let IterOptions { cause, fill_cache, walk_bytes_max, .. } = self.options;
        let bytes = self.stride.enter(handle.offset, handle.end(BlockKind::Data));
        if let Some(block) = self.run.cached(BlockKind::Data, handle) {
            return Ok(Block::from(block));
        }
        let ahead = self.ahead(bytes);
        let was_at = self.window.end();
        let raw = self.window.block(&self.run, BlockKind::Data, handle, &ahead, cause)?;
        if self.window.end() != was_at {
            self.stride.grow(bytes, walk_bytes_max);
            if bytes >= walk_bytes_max && self.window.end() > was_at {
                self.announce_next();
            }
        }
        let block = self.run.parse_block(BlockKind::Data, handle, raw)?;
        if fill_cache {
            self.run.keep(handle, &block);
        }
        Ok(Block::from(block))
    }

    /// A walk that reads as much at once as it may goes on for long: the store begins with what
    /// comes next while this is walked, so that a disk goes on turning below its head.
    fn announce_next(&mut self) {
        let from = self.window.end();
        let end = self.ahead(self.stride.bytes()).end(&*self.run.file, from);
        if from < end {
            self.run.file.prefetch(from, end - from);
            self.announced = end;
        }
    }

    /// Narrows read-ahead to the blocks of the range that was announced.
    fn prepare(&mut self) -> Result<()> {
        if self.options.readahead_bytes == 0 {
            return Ok(());
        }
        let part = self.options.range.take();
        if let Some(range) = part.filter(|range| !range.covers(&self.run.summary.run.range)) {
            let (fill, cause) = (self.options.fill_cache, self.options.cause);
            self.data_range = self.run.data_extent(&range, fill, cause)?;
        }
        Ok(())
    }

    /// Goes to the block after, or before, the current one, and to its nearer end.
    fn cross(&mut self, end: End) -> Result<()> {
        while !self.data.valid() {
            let step = move |cursor: &mut Cursor<()>| match end {
                End::First => cursor.next(),
                End::Last => cursor.prev(),
            };
            self.leaf_step(step)?;
            if !self.leaf().0.valid() {
                if !self.two_levels() {
                    return Ok(());
                }
                self.top_step(step)?;
                if !self.top.valid() {
                    return Ok(());
                }
                self.load_index()?;
                self.leaf_step(|cursor| at_end(cursor, end))?;
            }
            self.load_data()?;
            if self.leaf().0.valid() {
                self.data_step(|cursor| at_end(cursor, end))?;
            }
        }
        Ok(())
    }

    fn seek_to_end(&mut self, end: End) -> Result<()> {
        self.prepare()?;
        self.data.invalidate();
        self.top_step(|cursor| at_end(cursor, end))?;
        if !self.top.valid() {
            return Ok(());
        }
        if self.two_levels() {
            self.load_index()?;
            self.leaf_step(|cursor| at_end(cursor, end))?;
        }
        self.load_data()?;
        if self.leaf().0.valid() {
            self.data_step(|cursor| at_end(cursor, end))?;
        }
        self.cross(end)
    }

    fn seek_entry(&mut self, target: &[u8]) -> Result<()> {
        self.prepare()?;
        self.data.invalidate();
        self.top_step(|cursor| cursor.seek(target))?;
        if !self.top.valid() {
            return Ok(());
        }
        if self.two_levels() {
            self.load_index()?;
            self.leaf_step(|cursor| cursor.seek(target))?;
        }
        self.load_data()?;
        if self.leaf().0.valid() {
            self.data_step(|cursor| cursor.seek(target))?;
        }
        self.cross(End::First)
    }
}

type Moved = std::result::Result<(), Malformed>;

fn at_end<K: KeyMemory>(cursor: &mut Cursor<K>, end: End) -> Moved {
    match end {
        End::First => cursor.first(),
        End::Last => cursor.last(),
    }
}

impl EntryIter for RunIter {
    fn seek_to_first(&mut self) -> Result<()> {
        self.guard(|iter| iter.seek_to_end(End::First))
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.guard(|iter| iter.seek_to_end(End::Last))
    }

    fn seek(&mut self, internal_key: &[u8]) -> Result<()> {
        self.guard(|iter| iter.seek_entry(internal_key))
    }

    fn seek_for_prev(&mut self, internal_key: &[u8]) -> Result<()> {
        self.guard(|iter| {
            iter.seek_entry(internal_key)?;
            if !iter.data.valid() {
                return iter.seek_to_end(End::Last);
            }
            if iter.data.key() == internal_key {
                return Ok(());
            }
            iter.data_step(Cursor::prev)?;
            if iter.data.valid() { Ok(()) } else { iter.cross(End::Last) }
        })
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if !self.data.valid() {
            return self.guard(|_| Ok(()));
        }
        let moved = self.data.next();
        if moved.is_ok() && self.data.valid() {
            return Ok(());
        }
        self.guard(|iter| {
            iter.data_step(|_| moved)?;
            iter.cross(End::First)
        })
    }

    fn prev(&mut self) -> Result<()> {
        if !self.data.valid() {
            return self.guard(|_| Ok(()));
        }
        self.guard(|iter| {
            iter.data_step(Cursor::prev)?;
            if iter.data.valid() { Ok(()) } else { iter.cross(End::Last) }
        })
    }

    #[inline]
    fn valid(&self) -> bool {
        self.data.valid()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        if self.data.valid() { self.data.key() } else { &[] }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        if self.data.valid() { self.data.value() } else { &[] }
    }

    fn value_bytes(&self) -> Bytes {
        if self.data.valid() { self.data.value_bytes() } else { Bytes::default() }
    }
}

/// The search key that stands before every entry of `user_key`.
pub(super) fn first_of(user_key: &[u8]) -> Vec<u8> {
    internal_key(user_key, SEQUENCE_MAX, EntryKind::SEARCH)
}
