//! Blocks used where they lie: runs without compression in a file that the store has mapped.
//!
//! A block is fetched and verified when it is first used after the run was opened, and believed
//! from then on. What has been verified is remembered in a slot for each granule of the run: where
//! in it the block begins that was verified last. Granules are no longer than the blocks in them,
//! so nearly every block has a slot of its own; two in one slot are verified again in turn. Filters
//! can be much shorter than data blocks, so the granules behind the data are small.
//!
//! Not noticed is what changes in the file, or in the memory that shows it, after the first use
//! and before the run is opened again: the same as for a block in the cache, except that a block
//! that the system dropped and read again is not verified again.

use super::Run;
use crate::block::Block;
use crate::format::Handle;
use crate::frame;
use crate::piece::BlockKind;
use base::{Cause, Result};
use media::ReadFile;
use media::{MappedBytes, Mapping};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// Granules of data blocks are a power of two that their least length allows, within these bounds,
/// which are logarithms too.
const DATA_GRANULE_MIN: u32 = 8;
const DATA_GRANULE_MAX: u32 = 12;

/// The length of the granules behind the data: its logarithm to base two.
const OTHER_GRANULE: u32 = 7;

/// A run's part of a mapped file.
pub(super) struct Mapped {
    mapping: Arc<dyn Mapping>,
    data: Slots,
    /// Of filters and index blocks.
    others: Slots,
}

/// What has been verified of a part of a file.
struct Slots {
    start: u64,
    /// The length of a granule: its logarithm to base two.
    granule: u32,
    /// For each granule: one more than where in it the verified block begins; 0: none.
    marks: Box<[AtomicU16]>,
}

impl Slots {
    fn new(part: Range<u64>, granule: u32) -> Slots {
        let count = part.end.saturating_sub(part.start).div_ceil(1 << granule);
        Slots { start: part.start, granule, marks: (0..count).map(|_| AtomicU16::new(0)).collect() }
    }

    /// The slot of a block that begins at `offset`, and what stands there once it is verified.
    #[inline]
    fn of(&self, offset: u64) -> Option<(&AtomicU16, u16)> {
        let at = offset.checked_sub(self.start)?;
        let slot = self.marks.get((at >> self.granule) as usize)?;
        Some((slot, (at & ((1 << self.granule) - 1)) as u16 + 1))
    }
}

impl Mapped {
    /// The mapping of a run that ends at `end`, if `file` has one that reaches so far. Its data
    /// blocks lie in `data` and have `block_bytes` or more, but for the last.
    pub fn new(
        file: &dyn ReadFile,
        data: Range<u64>,
        end: u64,
        block_bytes: u32,
    ) -> Option<Mapped> {
        let mapping = file.map()?;
        if end > mapping.bytes().len() as u64 {
            return None;
        }
        let granule = block_bytes.max(1).ilog2().clamp(DATA_GRANULE_MIN, DATA_GRANULE_MAX);
        let others = Slots::new(data.end..end, OTHER_GRANULE);
        Some(Mapped { mapping, data: Slots::new(data, granule), others })
    }

    /// Bytes of memory beside the mapping.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.data.marks) + size_of_val(&*self.others.marks)
    }

    /// The slot of a block that begins at `offset`, and what stands there once it is verified.
    #[inline]
    fn slot(&self, offset: u64) -> Option<(&AtomicU16, u16)> {
        let slots = if offset < self.others.start { &self.data } else { &self.others };
        slots.of(offset)
    }

    #[inline]
    fn is_verified(&self, offset: u64) -> bool {
        self.slot(offset).is_some_and(|(slot, mark)| slot.load(Relaxed) == mark)
    }
}

impl Run {
    /// A block as it lies in the mapped file, verified; `None` where there is no mapping, or the
    /// block is compressed.
    #[inline]
    pub(super) fn in_place(
        &self,
        kind: BlockKind,
        handle: Handle,
        cause: Cause,
    ) -> Result<Option<&[u8]>> {
        let Some(mapped) = &self.mapped else { return Ok(None) };
        if !mapped.is_verified(handle.offset) {
            self.begin_in_place(mapped, kind, handle, cause)?;
        }
        let start = handle.offset as usize;
        let frame = mapped.mapping.bytes().get(start..handle.end(kind) as usize);
        Ok(frame.and_then(|frame| frame::raw(kind, frame)))
    }

    /// Like [`Run::in_place`], as something to keep.
    pub(super) fn in_place_to_keep(
        &self,
        kind: BlockKind,
        handle: Handle,
        cause: Cause,
    ) -> Result<Option<MappedBytes>> {
        let Some(raw) = self.in_place(kind, handle, cause)? else { return Ok(None) };
        let start = handle.offset as usize;
        let range = start..start + raw.len();
        Ok(self.mapped.as_ref().and_then(|m| MappedBytes::new(m.mapping.clone(), range)))
    }

    #[cold]
    fn begin_in_place(
        &self,
        mapped: &Mapped,
        kind: BlockKind,
        handle: Handle,
        cause: Cause,
    ) -> Result<()> {
        mapped.mapping.fetch(handle.offset..handle.end(kind), cause)?;
        self.verify_in_place(mapped, kind, handle)
    }

    fn verify_in_place(&self, mapped: &Mapped, kind: BlockKind, handle: Handle) -> Result<()> {
        let (from, to) = (handle.offset, handle.end(kind));
        let frame = mapped.mapping.bytes().get(from as usize..to as usize).unwrap_or_default();
        frame::verify(kind, frame, self.extent.place(), from)
            .map_err(|what| self.damage(from, what))?;
        if let (BlockKind::Data | BlockKind::Index, Some(raw)) = (kind, frame::raw(kind, frame)) {
            let block = Block::parse(raw).and_then(|block| block.check_restarts());
            block.map_err(|malformed| self.malformed(handle, malformed))?;
        }
        if let Some((slot, mark)) = mapped.slot(from) {
            slot.store(mark, Relaxed);
        }
        Ok(())
    }
}

/// What a walk through a mapped run has fetched ahead of it: more the longer it goes on through
/// blocks that were not used before.
#[derive(Default)]
pub(super) struct Walk {
    /// Where the block before ended.
    at: u64,
    fetched_to: u64,
    bytes: u64,
}

/// Maximum bytes that a walk fetches at once.
const FETCH_BYTES_MAX: u64 = 256 << 10;

impl Walk {
    /// The walk comes to the data block at `handle`: verifies it, fetched with what comes behind
    /// it, if it was not used before.
    #[inline]
    pub fn enter(&mut self, run: &Run, handle: Handle, end: u64, cause: Cause) -> Result<()> {
        let Some(mapped) = &run.mapped else { return Ok(()) };
        if !mapped.is_verified(handle.offset) {
            self.fetch(run, mapped, handle, end, cause)?;
        }
        self.at = handle.end(BlockKind::Data);
        Ok(())
    }

    #[cold]
    fn fetch(
        &mut self,
        run: &Run,
        mapped: &Mapped,
        handle: Handle,
        end: u64,
        cause: Cause,
    ) -> Result<()> {
        let (from, to) = (handle.offset, handle.end(BlockKind::Data));
        if from != self.at {
            *self = Walk::default();
        }
        if to > self.fetched_to {
            let until = from.saturating_add(self.bytes).min(end).max(to);
            mapped.mapping.fetch(from..until, cause)?;
            self.fetched_to = until;
            self.bytes = (2 * (until - from)).min(FETCH_BYTES_MAX);
        }
        run.verify_in_place(mapped, BlockKind::Data, handle)
    }
}
