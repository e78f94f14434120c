//! Where the blocks of a table file go: a buffer before the file.
//!
//! After a failed append a sink only repeats the failure, so that nothing follows a gap.

use crate::format::Handle;
use crate::frame::{self, RAW_BYTES_MAX, Sealer};
use crate::piece::BlockKind;
use crate::place::TablePlace;
use base::{Cause, Error, Result};
use media::AppendFile;

/// Bytes are given to the file in pieces of about this size.
const APPEND_BYTES: usize = 256 << 10;

/// A table file that is complete, and not durable yet.
pub struct EndedTable {
    file: Box<dyn AppendFile>,
    cause: Cause,
}

impl EndedTable {
    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.file.len()
    }

    /// Lets the medium begin with what [`EndedTable::sync`] makes durable.
    pub fn begin_sync(&mut self) -> Result<()> {
        self.file.begin_sync()
    }

    /// Makes the file durable.
    pub fn sync(mut self) -> Result<()> {
        self.file.sync(self.cause)
    }
}

/// A table file that grows at its end.
pub(crate) struct Sink {
    file: Box<dyn AppendFile>,
    place: TablePlace,
    cause: Cause,
    buffer: Vec<u8>,
    failure: Option<Error>,
}

impl Sink {
    /// Blocks go to the end of `file`, on account of `cause`.
    pub fn new(file: Box<dyn AppendFile>, place: TablePlace, cause: Cause) -> Sink {
        let buffer = Vec::with_capacity(APPEND_BYTES + (16 << 10));
        Sink { file, place, cause, buffer, failure: None }
    }

    /// Where the next byte will be in the file.
    pub fn offset(&self) -> u64 {
        self.file.len() + self.buffer.len() as u64
    }

    /// The file, for checksums.
    pub fn place(&self) -> TablePlace {
        self.place
    }

    /// Writes a block; gives where it is.
    pub fn write_block(
        &mut self,
        sealer: &mut Sealer,
        kind: BlockKind,
        raw: &[u8],
    ) -> Result<Handle> {
        let offset = self.offset();
        if kind == BlockKind::Data && raw.len() > RAW_BYTES_MAX {
            return self.write_large(raw);
        }
        let bytes = sealer.seal(kind, raw, self.place, offset, &mut self.buffer);
        self.flush_beyond(APPEND_BYTES)?;
        Ok(Handle { offset, bytes })
    }

    /// Writes a data block that nothing compresses, without a copy of it.
    fn write_large(&mut self, raw: &[u8]) -> Result<Handle> {
        self.flush_beyond(0)?;
        let offset = self.offset();
        let appended = self.file.append(raw, self.cause);
        self.failure = appended.err();
        self.check()?;
        self.write(&frame::large_trailer(raw, self.place, offset))?;
        Ok(Handle { offset, bytes: raw.len() as u32 })
    }

    /// Writes bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        self.flush_beyond(APPEND_BYTES)
    }

    /// Repeats the failure, if there was one.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match &self.failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        }
    }

    fn flush_beyond(&mut self, limit: usize) -> Result<()> {
        self.check()?;
        if self.buffer.len() > limit {
            let appended = self.file.append(&self.buffer, self.cause);
            self.buffer.clear();
            self.failure = appended.err();
        }
        self.check()
    }

    /// Writes what is left.
    pub fn end(mut self) -> Result<EndedTable> {
        self.flush_beyond(0)?;
        Ok(EndedTable { file: self.file, cause: self.cause })
    }

    /// Makes `error` the failure, unless there is an earlier one; gives the failure.
    pub fn fail(&mut self, error: Error) -> Error {
        self.failure.get_or_insert(error).clone()
    }
}
