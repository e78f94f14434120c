//! A window over a file that is read from front to back.

use base::{Cause, Error, Result};
use media::ReadFile;

/// Bytes that one read asks for, unless a record is longer.
const WINDOW_BYTES: usize = 256 << 10;

/// The file's bytes from `start`, as far as they were read.
pub(super) struct Source<'f> {
    file: &'f dyn ReadFile,
    cause: Cause,
    file_bytes: u64,
    window: Vec<u8>,
    start: u64,
}

impl<'f> Source<'f> {
    pub fn new(file: &'f dyn ReadFile, cause: Cause) -> Result<Source<'f>> {
        Ok(Source { file, cause, file_bytes: file.len()?, window: Vec::new(), start: 0 })
    }

    /// Bytes in the file when it was opened; what was appended since does not exist here.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Bytes from `offset` to the end of the file.
    pub fn bytes_after(&self, offset: u64) -> u64 {
        self.file_bytes.saturating_sub(offset)
    }

    pub fn name(&self) -> media::FileName {
        self.file.name()
    }

    pub fn corruption(&self, offset: u64, message: impl Into<String>) -> Error {
        Error::corruption(self.name().to_string(), offset, message)
    }

    /// `count` bytes from `offset`, which the caller knows to be in the file.
    pub fn read(&mut self, offset: u64, count: usize) -> Result<&[u8]> {
        let begin = self.fill(offset, count)?;
        Ok(&self.window[begin..begin + count])
    }

    /// All bytes from `offset` that are in memory, at least one unless the file ends there.
    pub fn ahead(&mut self, offset: u64) -> Result<&[u8]> {
        let count = self.bytes_after(offset).min(2) as usize;
        let begin = self.fill(offset, count)?;
        Ok(&self.window[begin..])
    }

    /// Whether nothing but zeros stands from `offset` to the end of the file.
    pub fn has_only_zeros_after(&mut self, offset: u64) -> Result<bool> {
        let mut at = offset;
        while at < self.file_bytes {
            let ahead = self.ahead(at)?;
            if ahead.iter().any(|&byte| byte != 0) {
                return Ok(false);
            }
            at += ahead.len() as u64;
        }
        Ok(true)
    }

    /// Brings `count` bytes from `offset` into the window; gives their place in it.
    fn fill(&mut self, offset: u64, count: usize) -> Result<usize> {
        let end = self.start + self.window.len() as u64;
        if offset >= self.start && offset + count as u64 <= end {
            return Ok((offset - self.start) as usize);
        }
        if offset >= self.start && offset < end {
            self.window.drain(..(offset - self.start) as usize);
        } else {
            self.window.clear();
        }
        self.start = offset;
        let wanted = self.bytes_after(offset).min(count.max(WINDOW_BYTES) as u64) as usize;
        let kept = self.window.len();
        if self.window.capacity() > 4 * wanted.max(WINDOW_BYTES) {
            self.window.shrink_to(wanted);
        }
        self.window.resize(wanted.max(kept), 0);
        let read = self.file.read_at(offset + kept as u64, &mut self.window[kept..], self.cause);
        if read.is_err() {
            self.window.truncate(kept);
        }
        read.map(|()| 0)
    }
}
