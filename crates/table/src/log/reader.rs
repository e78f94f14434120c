//! Reading a log back: its records in order, and how it ended. The rule stands in [`super`].

use super::frame::{Frame, extend_digest};
use super::header::{HEADER_BYTES, LogHeader, LogIdentity, Parsed, PreviousLog};
use super::scan::Scanner;
use super::source::Source;
use base::{Cause, Error, Result, SequenceNumber};
use media::ReadFile;

/// How a log ended, when it is not damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With its last record. Zeros may follow: the file's length was ahead of its end.
    Clean,
    /// Bytes followed that never became durable; they are dropped.
    TornTail {
        /// Where the records end.
        at: u64,
        /// Bytes from there to the end of the file.
        bytes_dropped: u64,
    },
}

/// A record of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Where it begins in the file.
    pub offset: u64,
    /// What was written.
    pub payload: &'a [u8],
}

/// Where a reader of a growing log stopped: everything before it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    /// The byte of the file where the next record will begin.
    pub offset: u64,
    /// The digest of the header and the records before it.
    digest: u64,
}

impl LogPosition {
    /// What the header of the next log says about this one, if it ends here.
    pub fn as_previous(&self, file: base::FileId, last_sequence: SequenceNumber) -> PreviousLog {
        PreviousLog { file, bytes: self.offset, digest: self.digest, last_sequence }
    }
}

enum State {
    Reading,
    Ended(End),
    Failed(Error),
}

/// Reads a log from front to back. Memory: one window, or the longest record that the file has or,
/// behind a torn end, seems to have; never more than the file.
pub struct LogReader<'f> {
    source: Source<'f>,
    frame: Frame,
    header: Option<LogHeader>,
    durable_bytes_min: u64,
    at: u64,
    digest: u64,
    watermark: u64,
    records: u64,
    /// A writer may still append: no record at the end says nothing about what stands behind.
    is_growing: bool,
    state: State,
}

/// The sound header that `file` begins with, whatever the file is called. `None`: it has none that
/// this version knows.
pub fn named_log(file: &dyn ReadFile, cause: Cause) -> Result<Option<LogHeader>> {
    let mut bytes = [0; HEADER_BYTES];
    if file.len()? < HEADER_BYTES as u64 {
        return Ok(None);
    }
    file.read_at(0, &mut bytes, cause)?;
    Ok(LogHeader::sound(&bytes))
}

impl<'f> LogReader<'f> {
    /// Opens the log `expected` in `file`. The caller knows that its first `durable_bytes_min`
    /// bytes were durable (0: knows nothing). `Incompatible` for a log of another database or of a
    /// newer format, `Corruption` when the header is damaged and something proves that it
    /// was durable.
    pub fn open(
        file: &'f dyn ReadFile,
        expected: LogIdentity,
        durable_bytes_min: u64,
        cause: Cause,
    ) -> Result<LogReader<'f>> {
        let mut reader = LogReader::at_start(file, expected, cause)?;
        reader.durable_bytes_min = durable_bytes_min;
        reader.read_header(&expected)?;
        Ok(reader)
    }

    /// Opens the log `expected`, which another process may be writing, at `position`; `None`: at
    /// its beginning. The log ends where no whole record stands yet. Whether that is damage, only
    /// the next log can tell. `Incompatible` for a log of another database or of a newer format.
    pub fn follow(
        file: &'f dyn ReadFile,
        expected: LogIdentity,
        position: Option<LogPosition>,
        cause: Cause,
    ) -> Result<LogReader<'f>> {
        let mut reader = LogReader::at_start(file, expected, cause)?;
        reader.is_growing = true;
        match position {
            Some(position) => (reader.at, reader.digest) = (position.offset, position.digest),
            None => reader.read_header(&expected)?,
        }
        Ok(reader)
    }

    fn at_start(
        file: &'f dyn ReadFile,
        expected: LogIdentity,
        cause: Cause,
    ) -> Result<LogReader<'f>> {
        Ok(LogReader {
            source: Source::new(file, cause)?,
            frame: Frame::new(expected),
            header: None,
            durable_bytes_min: 0,
            at: 0,
            digest: 0,
            watermark: 0,
            records: 0,
            is_growing: false,
            state: State::Reading,
        })
    }

    fn read_header(&mut self, expected: &LogIdentity) -> Result<()> {
        let header_bytes = self.source.file_bytes().min(HEADER_BYTES as u64) as usize;
        let name = self.source.name();
        match LogHeader::parse(self.source.read(0, header_bytes)?, expected, name)? {
            Parsed::Header(header, checksum) => {
                self.header = Some(header);
                self.at = HEADER_BYTES as u64;
                self.digest = checksum;
            }
            Parsed::Bad(found) => self.state = State::Ended(self.decide(found)?),
        }
        Ok(())
    }

    /// The next record; `None` at the end, which [`LogReader::end`] then explains. After an error
    /// it gives the same error again.
    #[allow(clippy::should_implement_trait)] // The record borrows from the reader.
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        match &self.state {
            State::Ended(_) => return Ok(None),
            State::Failed(error) => return Err(error.clone()),
            State::Reading => {}
        }
        match self.step() {
            Ok(Some((offset, begin, bytes))) => {
                let payload = &self.source.read(offset, bytes)?[begin..];
                Ok(Some(Record { offset, payload }))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.state = State::Failed(error.clone());
                Err(error)
            }
        }
    }

    /// Moves over the record at the present place; gives its offset, where in it the payload
    /// begins, and its bytes.
    fn step(&mut self) -> Result<Option<(u64, usize, usize)>> {
        let offset = self.at;
        let found = match self.frame.read_head(&mut self.source, offset)? {
            None => "no whole record",
            Some(head) if !self.frame.verify(&mut self.source, offset, &head)? => {
                "a record with a wrong checksum"
            }
            Some(head) if head.link != self.digest as u16 => "a record of another history",
            Some(head) => {
                self.at += head.bytes;
                self.digest = extend_digest(self.digest, head.checksum);
                self.watermark = self.watermark.max(head.watermark);
                self.records += 1;
                return Ok(Some((offset, head.head_bytes, head.bytes as usize)));
            }
        };
        self.state = State::Ended(self.decide(found)?);
        Ok(None)
    }

    /// The decision table: the records end at the present place, where `found` stands.
    fn decide(&mut self, found: &str) -> Result<End> {
        let at = self.at;
        let bytes_dropped = self.source.bytes_after(at);
        if self.is_growing {
            return Ok(End::TornTail { at, bytes_dropped });
        }
        let found = if bytes_dropped == 0 { "the end of the file" } else { found };
        if self.durable_bytes_min > at {
            let message = format!(
                "found {found}, but {} bytes of the log were recorded as durable",
                self.durable_bytes_min
            );
            return Err(self.source.corruption(at, message));
        }
        if self.source.has_only_zeros_after(at)? {
            return Ok(End::Clean);
        }
        let mut scanner = Scanner::new(&self.source, at + 1);
        while let Some((offset, head)) = scanner.next(&mut self.source, &self.frame)? {
            if head.watermark > at {
                let message = format!(
                    "found {found}, but the record at byte {offset} proves that {} bytes were \
                     durable",
                    head.watermark
                );
                return Err(self.source.corruption(at, message));
            }
        }
        Ok(End::TornTail { at, bytes_dropped })
    }

    /// Where the next record stands or will stand, for [`LogReader::follow`].
    pub fn position(&self) -> LogPosition {
        LogPosition { offset: self.at, digest: self.digest }
    }

    /// The header; `None` for a log that was torn when it was created, which holds no records,
    /// and for one that is followed from a position.
    pub fn header(&self) -> Option<&LogHeader> {
        self.header.as_ref()
    }

    /// How the log ended; `None` while there may be more records, and after an error.
    pub fn end(&self) -> Option<End> {
        match self.state {
            State::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Bytes of the header and the records read so far.
    pub fn bytes(&self) -> u64 {
        self.at
    }

    /// Records read so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The digest of the header and the records read so far.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Bytes that are proved to have been durable, by the caller or by the records read so far.
    pub fn durable_bytes(&self) -> u64 {
        self.durable_bytes_min.max(self.watermark)
    }

    /// What the header of the next log should say about this one, once it is read to its end.
    pub fn as_previous(&self, file: base::FileId, last_sequence: SequenceNumber) -> PreviousLog {
        self.position().as_previous(file, last_sequence)
    }
}
