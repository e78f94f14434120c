//! Finding records where the sequence of records is broken: as evidence of durability, and to
//! salvage. Never used to replay.
//!
//! Records begin with their log's marker and are verified by checksum and place, so what a user
//! stored is never taken for a record. Work is linear: bytes verified without finding a record are
//! limited to [`VAIN_FACTOR`] times the bytes scanned.

use super::frame::{Frame, Head, RECORD_BYTES_MIN};
use super::header::LogIdentity;
use super::source::Source;
use base::{Cause, Result};
use media::ReadFile;

/// Random bytes of a log of 64 MB cost about 11 times their length; see docs/format/log.md.
const VAIN_FACTOR: u64 = 64;
/// Bytes that may be verified without finding a record even in a short file.
const VAIN_BYTES_MIN: u64 = 16 << 20;

/// Finds valid records from some byte on.
pub(super) struct Scanner {
    at: u64,
    vain_bytes_left: u64,
}

impl Scanner {
    pub fn new(source: &Source<'_>, at: u64) -> Scanner {
        let vain_bytes_left =
            source.bytes_after(at).saturating_mul(VAIN_FACTOR).saturating_add(VAIN_BYTES_MIN);
        Scanner { at, vain_bytes_left }
    }

    /// The next valid record, with its offset. `Corruption` when too many bytes look like records
    /// and are none, so that the question cannot be answered in bounded time.
    pub fn next(&mut self, source: &mut Source<'_>, frame: &Frame) -> Result<Option<(u64, Head)>> {
        while source.bytes_after(self.at) >= RECORD_BYTES_MIN as u64 {
            let ahead = source.ahead(self.at)?;
            let Some(skip) = ahead.windows(2).position(|pair| pair == frame.marker) else {
                self.at += ahead.len() as u64 - 1;
                continue;
            };
            let offset = self.at + skip as u64;
            self.at = offset + 1;
            let Some(head) = frame.read_head(source, offset)? else { continue };
            if frame.verify(source, offset, &head)? {
                self.at = offset + head.bytes;
                return Ok(Some((offset, head)));
            }
            let Some(left) = self.vain_bytes_left.checked_sub(head.bytes) else {
                return Err(source.corruption(offset, "too many bytes that only look like records"));
            };
            self.vain_bytes_left = left;
        }
        Ok(None)
    }
}

/// The largest number of bytes of the log that any valid record in it proves to have been durable;
/// 0 without proof. Reads the whole file: for the one question that [`super::check_chain`] asks
/// when the log before this one is shorter than this one says.
pub fn durable_bytes(file: &dyn ReadFile, expected: LogIdentity, cause: Cause) -> Result<u64> {
    let mut source = Source::new(file, cause)?;
    let frame = Frame::new(expected);
    let mut scanner = Scanner::new(&source, 0);
    let mut durable = 0;
    while let Some((_, head)) = scanner.next(&mut source, &frame)? {
        durable = durable.max(head.watermark);
    }
    Ok(durable)
}

/// A record found by [`Salvage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Salvaged<'a> {
    /// Where it stands in the file.
    pub offset: u64,
    /// Bytes between the record before it (or the start of the file) and this one that are not
    /// part of any valid record.
    pub skipped_bytes: u64,
    /// What was written.
    pub payload: &'a [u8],
}

/// Every valid record of a damaged log, in file order, over all gaps. Records behind a gap are true
/// but not a prefix of history: a person must decide. The file is only read.
pub struct Salvage<'f> {
    source: Source<'f>,
    frame: Frame,
    scanner: Scanner,
    end: u64,
}

impl<'f> Salvage<'f> {
    /// Reads the log `expected` from `file`. The header may be damaged too.
    pub fn open(
        file: &'f dyn ReadFile,
        expected: LogIdentity,
        cause: Cause,
    ) -> Result<Salvage<'f>> {
        let source = Source::new(file, cause)?;
        let scanner = Scanner::new(&source, 0);
        Ok(Salvage { source, frame: Frame::new(expected), scanner, end: 0 })
    }

    /// The next valid record.
    #[allow(clippy::should_implement_trait)] // The record borrows from the reader.
    pub fn next(&mut self) -> Result<Option<Salvaged<'_>>> {
        let Some((offset, head)) = self.scanner.next(&mut self.source, &self.frame)? else {
            return Ok(None);
        };
        let skipped_bytes = offset - self.end;
        self.end = offset + head.bytes;
        let record = self.source.read(offset, head.bytes as usize)?;
        Ok(Some(Salvaged { offset, skipped_bytes, payload: &record[head.head_bytes..] }))
    }

    /// Where the last record found ends; 0 without one.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Bytes behind the last record found; with the gaps before records, all that was not salvaged.
    /// 0 if they are zeros.
    pub fn rest_bytes(&mut self) -> Result<u64> {
        Ok(match self.source.has_only_zeros_after(self.end)? {
            true => 0,
            false => self.source.bytes_after(self.end),
        })
    }
}
