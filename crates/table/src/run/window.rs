//! Data blocks, or index blocks, read many at once, past the cache.

use super::Run;
use super::extent::PAGE_BYTES;
use crate::format::Handle;
use crate::frame;
use crate::piece::BlockKind;
use base::page_memory::PageBuffer;
use base::{Cause, Result};
use media::ReadFile;
use std::ops::Range;

/// How far to read beyond the block that is asked for.
pub(super) struct Ahead {
    /// Bytes to read at once.
    pub bytes: u32,
    /// But only of this part of the file.
    pub within: Range<u64>,
    /// The store was told that it will be read up to here.
    pub announced: u64,
}

impl Ahead {
    /// Where a read forward from `from` ends: at a boundary of the medium, or where the announced
    /// read that it falls into ends.
    pub fn end(&self, file: &dyn ReadFile, from: u64) -> u64 {
        let bytes = u64::from(self.bytes);
        let wanted = file.boundary(from.saturating_add(bytes).min(self.within.end));
        let goes_on = (wanted..wanted.saturating_add(bytes)).contains(&self.announced);
        let end = if goes_on { self.announced } else { wanted };
        end.min(self.within.end)
    }
}

/// A part of the blocks of a run, as stored. Its buffer is kept from read to read.
#[derive(Default)]
pub(super) struct Window {
    offset: u64,
    buffer: PageBuffer,
    /// The number of bytes of the buffer that are the file's.
    len: usize,
}

impl Window {
    /// A block, verified and raw; from the window, which moves where it has to.
    pub fn block(
        &mut self,
        run: &Run,
        kind: BlockKind,
        handle: Handle,
        ahead: &Ahead,
        cause: Cause,
    ) -> Result<Vec<u8>> {
        let end = handle.end(kind);
        if self.get(handle.offset, end).is_none() {
            self.read(run, handle.offset, end, ahead, cause)?;
        }
        let frame = self.get(handle.offset, end).unwrap_or_default();
        frame::open_slice(kind, frame, run.extent.place(), handle.offset)
            .map_err(|what| run.damage(handle.offset, what))
    }

    fn get(&self, from: u64, to: u64) -> Option<&[u8]> {
        let start = usize::try_from(from.checked_sub(self.offset)?).ok()?;
        let end = usize::try_from(to.checked_sub(self.offset)?).ok()?;
        self.buffer[..self.len].get(start..end)
    }

    /// Where it ends in the file.
    pub fn end(&self) -> u64 {
        self.offset + self.len as u64
    }

    /// Reads the block at `from..to` and what lies behind it in the direction of travel. Going
    /// forward it ends where a page or sector does, and what it has of the next block stays: none
    /// of the medium is read twice.
    fn read(&mut self, run: &Run, from: u64, to: u64, ahead: &Ahead, cause: Cause) -> Result<()> {
        let bytes = u64::from(ahead.bytes);
        let backwards = self.len > 0 && from < self.offset;
        let (start, end) = if backwards {
            (to.saturating_sub(bytes).max(ahead.within.start).min(from), to)
        } else {
            (from, ahead.end(&*run.file, from).max(to))
        };
        let kept = if (self.offset..self.end()).contains(&start) { self.end() - start } else { 0 };
        let (kept, len) = (kept as usize, (end - start) as usize);
        let passed = self.len - kept..self.len;
        // A read that fails leaves an empty window.
        let mut buffer = std::mem::take(self).buffer;
        if buffer.len() < len {
            let mut larger = PageBuffer::zeroed(len.next_multiple_of(PAGE_BYTES as usize));
            larger[..kept].copy_from_slice(&buffer[passed]);
            buffer = larger;
        } else {
            buffer.copy_within(passed, 0);
        }
        run.file.read_at(start + kept as u64, &mut buffer[kept..len], cause)?;
        *self = Window { offset: start, buffer, len };
        Ok(())
    }
}

/// How much a walk through the cache reads at once: one block at first, and twice as much with each
/// read as long as it goes on from block to block, as a page cache does for a file.
#[derive(Default)]
pub(super) struct Stride {
    /// The block before; none yet, and the walk goes on from another run.
    last: Option<Range<u64>>,
    bytes: u64,
}

impl Stride {
    /// A walk that comes from another run, where it reads `bytes` bytes at once.
    pub fn begun(bytes: u32) -> Stride {
        Stride { last: None, bytes: bytes.into() }
    }

    /// Bytes of the next read, if the walk goes on.
    pub fn bytes(&self) -> u32 {
        self.bytes as u32
    }

    /// The walk comes to the block at `from..to`; answers what to read if it has to be read.
    pub fn enter(&mut self, from: u64, to: u64) -> u32 {
        if self.last.as_ref().is_some_and(|last| from != last.end && to != last.start) {
            self.bytes = 0;
        }
        self.last = Some(from..to);
        self.bytes.max(to - from) as u32
    }

    /// Records that `read_bytes` bytes were read.
    pub fn grow(&mut self, read_bytes: u32, bytes_max: u32) {
        self.bytes = u64::from(read_bytes.saturating_mul(2).min(bytes_max));
    }
}
