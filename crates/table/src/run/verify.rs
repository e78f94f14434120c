//! Verification: every byte of a run against its checksums, and everything that one part of the run
//! says of another.

use super::Run;
use super::window::{Ahead, Window};
use crate::block::{Block, Malformed};
use crate::cursor::Cursor;
use crate::filter::{FilterBlock, key_hash, prefix_hash};
use crate::format::{FOOTER_BYTES, Footer, Handle};
use crate::piece::BlockKind;
use crate::summary::RunSummary;
use base::key::{compare_internal, split_internal_key, user_key};
use base::{Cause, Result};
use std::sync::Arc;

/// What verification has seen so far.
struct Seen {
    summary: RunSummary,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    /// Where the next data, filter and index block must begin.
    data_next: u64,
    filter_next: u64,
    index_next: u64,
    /// Data blocks read together.
    window: Window,
}

/// Data is read in pieces of this size.
const READ_BYTES: u32 = 256 << 10;

impl Run {
    /// Reads every byte of the run and compares: checksums, the order of keys, counts, that filters
    /// admit every key and prefix, that the index leads to every block and bounds it. `progress`
    /// hears the bytes verified since it was called before. The error names the first damage.
    pub fn verify(&self, progress: &mut dyn FnMut(u64)) -> Result<RunSummary> {
        let options = self.summary.options;
        let mut seen = Seen {
            summary: RunSummary::new(self.extent.run, self.extent.offset, options),
            first_key: Vec::new(),
            last_key: Vec::new(),
            data_next: self.footer.start,
            filter_next: self.footer.data_end,
            index_next: self.footer.filters_end,
            window: Window::default(),
        };
        self.verify_index(&mut seen, progress)?;
        let ends = [
            (seen.data_next, self.footer.data_end),
            (seen.filter_next, self.footer.filters_end),
            (seen.index_next, self.footer.pinned_start()),
        ];
        for (reached, end) in ends {
            if reached != end {
                return Err(
                    self.damage(reached, format!("blocks that no index names, up to {end}"))
                );
            }
        }
        let end = self.extent.offset + self.extent.bytes;
        self.verify_pinned(end)?;
        progress(end - self.footer.pinned_start());
        let mut summary = seen.summary;
        summary.set_bounds(&seen.first_key, &seen.last_key, &self.tombstones);
        summary.run.bytes = self.extent.bytes;
        summary.data_bytes = self.summary.data_bytes;
        summary.filter_bytes = self.summary.filter_bytes;
        summary.index_bytes = self.summary.index_bytes;
        if summary != self.summary {
            let what = format!("the summary says {:?}, counted {summary:?}", self.summary);
            return Err(self.damage(self.footer.summary.offset, what));
        }
        Ok(summary)
    }

    /// The pieces that are in memory are still what is stored.
    fn verify_pinned(&self, end: u64) -> Result<()> {
        let mut bytes = [0; FOOTER_BYTES as usize];
        let at = end - FOOTER_BYTES;
        self.file.read_at(at, &mut bytes, Cause::Check)?;
        let footer = Footer::decode(&bytes, end, self.extent.place());
        if footer != Ok(self.footer) {
            return Err(self.damage(at, "the footer changed since the run was opened".into()));
        }
        for handle in [self.footer.tombstones, Some(self.footer.top), Some(self.footer.summary)]
            .into_iter()
            .flatten()
        {
            self.read(BlockKind::Top, handle, Cause::Check)?;
        }
        Ok(())
    }

    fn verify_index(&self, seen: &mut Seen, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let top = self.footer.top;
        if self.footer.index_levels == 1 {
            let filter = self.verify_filter(seen, self.footer.filter, progress)?;
            return self.verify_leaf(seen, self.top.clone(), top, filter.as_ref(), progress);
        }
        let mut cursor = Cursor::new(self.top.clone());
        let malformed = |m| self.malformed(top, m);
        cursor.first().map_err(malformed)?;
        while cursor.valid() {
            let (handle, filter) = self.handle(cursor.value(), top, BlockKind::Index)?;
            self.expect_at(&mut seen.index_next, handle, BlockKind::Index)?;
            let raw = self.read(BlockKind::Index, handle, Cause::Check)?;
            let block = self.parse_block(BlockKind::Index, handle, raw)?;
            progress(handle.end(BlockKind::Index) - handle.offset);
            let filter = self.verify_filter(seen, filter, progress)?;
            self.verify_leaf(seen, block, handle, filter.as_ref(), progress)?;
            if compare_internal(&seen.last_key, cursor.key()).is_gt() {
                return Err(malformed(Malformed("an index key before the keys of its block")));
            }
            cursor.next().map_err(malformed)?;
        }
        Ok(())
    }

    fn verify_filter(
        &self,
        seen: &mut Seen,
        handle: Option<Handle>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Option<FilterBlock>> {
        let Some(handle) = handle else { return Ok(None) };
        self.expect_at(&mut seen.filter_next, handle, BlockKind::Filter)?;
        let filter = FilterBlock::new(self.read(BlockKind::Filter, handle, Cause::Check)?);
        progress(handle.end(BlockKind::Filter) - handle.offset);
        let unknown = || self.malformed(handle, Malformed("a filter of an unknown shape"));
        filter.map(Some).ok_or_else(unknown)
    }

    /// The data blocks that the index block at `from` names.
    fn verify_leaf(
        &self,
        seen: &mut Seen,
        index: Arc<Block>,
        from: Handle,
        filter: Option<&FilterBlock>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let within = self.footer.start..self.footer.data_end;
        let ahead = Ahead { bytes: READ_BYTES, within, announced: 0 };
        let mut cursor = Cursor::new(index);
        let malformed = |m| self.malformed(from, m);
        cursor.first().map_err(malformed)?;
        while cursor.valid() {
            let (handle, _) = self.handle(cursor.value(), from, BlockKind::Data)?;
            self.expect_at(&mut seen.data_next, handle, BlockKind::Data)?;
            if !seen.last_key.is_empty() && compare_internal(&seen.last_key, cursor.key()).is_ge() {
                return Err(malformed(Malformed("index keys out of order")));
            }
            let raw = seen.window.block(self, BlockKind::Data, handle, &ahead, Cause::Check)?;
            let block = self.parse_block(BlockKind::Data, handle, raw)?;
            progress(handle.end(BlockKind::Data) - handle.offset);
            self.verify_data(seen, block, handle, filter)?;
            seen.summary.data_blocks += 1;
            if compare_internal(&seen.last_key, cursor.key()).is_gt() {
                return Err(malformed(Malformed("an index key before the keys of its block")));
            }
            cursor.next().map_err(malformed)?;
        }
        Ok(())
    }

    fn verify_data(
        &self,
        seen: &mut Seen,
        block: Arc<Block>,
        handle: Handle,
        filter: Option<&FilterBlock>,
    ) -> Result<()> {
        let malformed = |m| self.malformed(handle, m);
        let mut cursor = Cursor::new(block.clone());
        cursor.first().map_err(malformed)?;
        if !cursor.valid() {
            return Err(malformed(Malformed("a data block without entries")));
        }
        while cursor.valid() {
            let key = cursor.key();
            if !seen.last_key.is_empty() && compare_internal(&seen.last_key, key).is_ge() {
                return Err(malformed(Malformed("entries out of order")));
            }
            let (user, trailer) = split_internal_key(key).unwrap_or((&[], 0));
            if !seen.summary.count(trailer, key.len(), cursor.value()) {
                return Err(malformed(Malformed("an entry of an unknown kind")));
            }
            if seen.summary.run.entries == 1 {
                seen.first_key = key.to_vec();
            }
            let hash = key_hash(user);
            let prefix = self.summary.options.prefix.prefix(user).map(prefix_hash);
            if let Some(filter) = filter
                && !(filter.may_contain(hash) && prefix.is_none_or(|p| filter.may_contain(p)))
            {
                return Err(malformed(Malformed("a key that its filter denies")));
            }
            let found = block.search_point(user, trailer, hash).map_err(malformed)?;
            if !found.is_some_and(|found| found.same_key && found.trailer == trailer) {
                return Err(malformed(Malformed("an entry that a search does not find")));
            }
            seen.last_key.clear();
            seen.last_key.extend_from_slice(key);
            cursor.next().map_err(malformed)?;
        }
        debug_assert!(user_key(&seen.last_key).len() < seen.last_key.len());
        Ok(())
    }

    /// The block begins where the one before it ended.
    fn expect_at(&self, next: &mut u64, handle: Handle, kind: BlockKind) -> Result<()> {
        if handle.offset != *next {
            let what = format!("the next {} block should begin at {next}", kind.name());
            return Err(self.damage(handle.offset, what));
        }
        *next = handle.end(kind);
        Ok(())
    }
}
