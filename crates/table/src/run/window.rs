//! Data blocks read many at once, past the cache.

use super::Run;
use crate::format::Handle;
use crate::frame;
use crate::piece::BlockKind;
use base::{Cause, Result};
use std::ops::Range;

/// How far to read beyond the block that is asked for.
pub(super) struct Ahead {
    /// So many bytes at once.
    pub bytes: u32,
    /// But only of this part of the file.
    pub within: Range<u64>,
}

/// A part of the data of a run, as stored. Its buffer is kept from read to read.
#[derive(Default)]
pub(super) struct Window {
    offset: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// A data block, verified and raw; from the window, which moves where it has to.
    pub fn block(
        &mut self,
        run: &Run,
        handle: Handle,
        ahead: &Ahead,
        cause: Cause,
    ) -> Result<Vec<u8>> {
        let end = handle.end(BlockKind::Data);
        if self.get(handle.offset, end).is_none() {
            self.read(run, handle.offset, end, ahead, cause)?;
        }
        let frame = self.get(handle.offset, end).unwrap_or_default();
        frame::open_slice(BlockKind::Data, frame, run.extent.place(), handle.offset)
            .map_err(|what| run.damage(handle.offset, what))
    }

    fn get(&self, from: u64, to: u64) -> Option<&[u8]> {
        let start = usize::try_from(from.checked_sub(self.offset)?).ok()?;
        let end = usize::try_from(to.checked_sub(self.offset)?).ok()?;
        self.bytes.get(start..end)
    }

    /// Reads the block at `from..to` and what lies behind it in the direction of travel.
    fn read(&mut self, run: &Run, from: u64, to: u64, ahead: &Ahead, cause: Cause) -> Result<()> {
        let bytes = u64::from(ahead.bytes);
        let backwards = !self.bytes.is_empty() && to <= self.offset;
        let (start, end) = if backwards {
            (to.saturating_sub(bytes).max(ahead.within.start).min(from), to)
        } else {
            (from, from.saturating_add(bytes).min(ahead.within.end).max(to))
        };
        let mut buffer = std::mem::take(&mut self.bytes);
        buffer.resize((end - start) as usize, 0);
        run.file.read_at(start, &mut buffer, cause)?;
        *self = Window { offset: start, bytes: buffer };
        Ok(())
    }
}
