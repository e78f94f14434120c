//! The end of a run: what is known of it as a whole, and stays in memory while it is open.
//!
//! It is read when the run is opened, or kept from when it was written. Both give the same: a
//! filter only where it comes with the end's first read, so that an open run takes the same memory
//! whichever way it was opened.

use super::extent::{Extent, PAGE_BYTES, damaged};
use crate::block::{Block, Malformed};
use crate::filter::FilterBlock;
use crate::format::{FOOTER_BYTES, Footer, Handle};
use crate::frame;
use crate::piece::BlockKind;
use crate::range_delete::RangeDeletes;
use crate::summary::RunSummary;
use base::{Cause, Error, Result};
use media::ReadFile;
use std::sync::Arc;

/// Bytes that the first read of a run takes from its end; of a small run a part, but at least the
/// minimum, which holds the index of a small run.
const TAIL_BYTES: u64 = 16 << 10;
const TAIL_BYTES_MIN: u64 = 2 << 10;
const TAIL_PART: u64 = 32;

/// What is known of a run as a whole.
#[derive(Clone)]
pub struct RunEnd {
    pub(crate) footer: Footer,
    pub(crate) top: Arc<Block>,
    /// The one filter of a small run, where the first read has it.
    pub(crate) filter: Option<Arc<FilterBlock>>,
    pub(crate) tombstones: Arc<RangeDeletes>,
    pub(crate) summary: RunSummary,
}

/// Where the first read of a run's end begins: with a page, as media read no less.
fn tail_start(offset: u64, bytes: u64) -> u64 {
    let tail = (bytes / TAIL_PART).clamp(TAIL_BYTES_MIN, TAIL_BYTES);
    let start = offset.saturating_add(bytes).saturating_sub(tail);
    (start - start % PAGE_BYTES).max(offset)
}

/// The footer of a run, and the bytes of its end with where they begin: what is kept in memory, and
/// what came with it. Two reads at most.
fn read_tail(file: &dyn ReadFile, extent: Extent, cause: Cause) -> Result<(Footer, u64, Vec<u8>)> {
    let damage = |offset, what: String| Err(damaged(file, extent, offset, what));
    let end = extent.offset.saturating_add(extent.bytes);
    if extent.bytes < FOOTER_BYTES {
        return damage(extent.offset, "an extent shorter than a footer".into());
    }
    let mut tail_start = tail_start(extent.offset, extent.bytes);
    let mut tail = vec![0; (end - tail_start) as usize];
    file.read_at(tail_start, &mut tail, cause)?;
    let footer = match Footer::decode(&tail, end, extent.place()) {
        Ok(footer) => footer,
        Err(what) => return damage(end - FOOTER_BYTES, what.into()),
    };
    if (footer.run, footer.start, footer.bytes) != (extent.run, extent.offset, extent.bytes) {
        let what = format!("found run {} of {} bytes", footer.run, footer.bytes);
        return damage(end - FOOTER_BYTES, what);
    }
    if footer.pinned_start() < tail_start {
        let missing = (tail_start - footer.pinned_start()) as usize;
        let length = tail.len();
        tail.resize(length + missing, 0);
        tail.copy_within(..length, missing);
        tail_start = footer.pinned_start();
        file.read_at(tail_start, &mut tail[..missing], cause)?;
    }
    Ok((footer, tail_start, tail))
}

impl RunEnd {
    /// Reads the end of the run at `extent` of `file`, and once more if that was too little. What
    /// reads in place need not be verified here: `keeps_filter` says of the footer and the summary
    /// whether the filter is for memory.
    pub(crate) fn read(
        file: &dyn ReadFile,
        extent: Extent,
        keeps_filter: impl FnOnce(&Footer, &RunSummary) -> bool,
        cause: Cause,
    ) -> Result<RunEnd> {
        let damage = |offset, what: String| damaged(file, extent, offset, what);
        let (footer, tail_start, tail) = read_tail(file, extent, cause)?;
        let at_end = |kind: BlockKind, handle: Handle| {
            let from = (handle.offset - tail_start) as usize;
            let to = (handle.end(kind) - tail_start) as usize;
            frame::open_slice(kind, &tail[from..to], extent.place(), handle.offset)
                .map_err(|what| damage(handle.offset, what))
        };
        let pinned = |handle| at_end(BlockKind::Top, handle);
        let malformed = |handle: Handle, what: &str| damage(handle.offset, what.into());
        let tombstones = match footer.tombstones {
            None => RangeDeletes::new(),
            Some(handle) => RangeDeletes::decode(&pinned(handle)?)
                .ok_or_else(|| malformed(handle, "malformed range tombstones"))?,
        };
        let top = Block::new(pinned(footer.top)?)
            .map_err(|Malformed(what)| malformed(footer.top, what))?;
        let summary = pinned(footer.summary)?;
        let summary =
            RunSummary::decode(&summary, extent.run, extent.offset, extent.bytes, &tombstones)
                .filter(|summary| summary.run.entries == footer.entries)
                .ok_or_else(|| malformed(footer.summary, "a malformed summary"))?;
        let (summary, tombstones) = match extent.sequence {
            None => (summary, tombstones),
            Some(_) if summary.run.sequence_max > 0 => {
                return Err(malformed(footer.summary, "a sorted file with sequence numbers"));
            }
            Some(sequence) => (summary.stamped(sequence), tombstones.stamped(sequence)),
        };
        let keeps_filter = keeps_filter(&footer, &summary);
        // Damage is reported when the filter is needed.
        let at = footer.filter.filter(|at| keeps_filter && tail_start <= at.offset);
        let filter = at.and_then(|at| FilterBlock::new(at_end(BlockKind::Filter, at).ok()?));
        let (top, tombstones) = (Arc::new(top), Arc::new(tombstones));
        Ok(RunEnd { footer, top, filter: filter.map(Arc::new), tombstones, summary })
    }

    /// The end of a run that was just written; `filter` is that of a run with a single one.
    pub(crate) fn written(
        footer: Footer,
        mut top: Vec<u8>,
        mut filter: Vec<u8>,
        tombstones: RangeDeletes,
        summary: RunSummary,
    ) -> Result<RunEnd> {
        top.shrink_to_fit();
        filter.shrink_to_fit();
        let top = Block::new(top).map_err(|Malformed(what)| Error::invalid(what))?;
        let read_from = tail_start(footer.start, footer.bytes).min(footer.pinned_start());
        let comes_with_end = footer.filter.is_some_and(|at| read_from <= at.offset);
        let filter = if comes_with_end { FilterBlock::new(filter) } else { None };
        let (top, tombstones) = (Arc::new(top), Arc::new(tombstones));
        Ok(RunEnd { footer, top, filter: filter.map(Arc::new), tombstones, summary })
    }

    /// What is known of the run as a whole.
    pub fn summary(&self) -> &RunSummary {
        &self.summary
    }

    /// The same, and the rest is forgotten.
    pub fn into_summary(self) -> RunSummary {
        self.summary
    }

    /// Bytes that it takes in memory.
    pub fn memory_bytes(&self) -> u64 {
        let keys = self.summary.smallest.len() + self.summary.largest.len();
        let filter = self.filter.as_ref().map_or(0, |filter| filter.memory_bytes());
        let pinned = self.top.memory_bytes() + self.tombstones.memory_bytes() + filter;
        (size_of::<RunEnd>() + pinned + 2 * keys) as u64
    }
}
