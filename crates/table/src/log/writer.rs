//! Writing a log. One record is one append of the file.

use super::frame::{Frame, RECORD_BYTES_MAX, RECORD_HEAD_BYTES_MAX, extend_digest};
use super::header::{LogHeader, PreviousLog};
use base::{Cause, Error, FileId, Result, SequenceNumber};
use media::{AppendFile, SyncFile};

/// A buffer that grew beyond this for a large record is given back.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// A log being written. After a failed append or sync it refuses everything with `Poisoned`.
pub struct LogWriter {
    file: Box<dyn AppendFile>,
    id: FileId,
    frame: Frame,
    cause: Cause,
    buffer: Vec<u8>,
    bytes: u64,
    synced_bytes: u64,
    digest: u64,
    failure: Option<Error>,
}

impl LogWriter {
    /// Begins a log in the empty `file` with `header`; nothing is durable yet. All its bytes are
    /// written for `cause`.
    pub fn create(
        mut file: Box<dyn AppendFile>,
        header: LogHeader,
        cause: Cause,
    ) -> Result<LogWriter> {
        if !file.is_empty() {
            return Err(Error::invalid("a log begins in an empty file"));
        }
        let (bytes, digest) = header.encode();
        file.append(&bytes, cause)?;
        Ok(LogWriter {
            file,
            id: header.file,
            frame: Frame::new(header.identity()),
            cause,
            buffer: Vec::new(),
            bytes: bytes.len() as u64,
            synced_bytes: 0,
            digest,
            failure: None,
        })
    }

    /// Appends one record whose payload is `parts`, one after another. `InvalidArgument`, and
    /// nothing is written, if it is longer than [`RECORD_BYTES_MAX`].
    pub fn append(&mut self, parts: &[&[u8]]) -> Result<()> {
        self.refuse_after_failure()?;
        if parts.iter().map(|part| part.len()).sum::<usize>() > RECORD_BYTES_MAX {
            return Err(Error::invalid(format!("a log record may have {RECORD_BYTES_MAX} bytes")));
        }
        self.buffer.clear();
        let (buffer, digest) = (&mut self.buffer, self.digest);
        let checksum = self.frame.push(buffer, self.bytes, digest, self.synced_bytes, parts);
        if let Err(error) = self.file.append(&self.buffer, self.cause) {
            return Err(self.fail(error));
        }
        self.bytes += self.buffer.len() as u64;
        self.digest = extend_digest(digest, checksum);
        if self.buffer.capacity() > BUFFER_BYTES_MAX {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    /// Appends one record without a copy of its payload: `record` has [`RECORD_HEAD_BYTES_MAX`]
    /// bytes of space, which this overwrites, and then the payload. `InvalidArgument`, and nothing
    /// is written, if the space is missing or the payload is longer than [`RECORD_BYTES_MAX`].
    pub fn append_in_place(&mut self, record: &mut [u8]) -> Result<()> {
        self.refuse_after_failure()?;
        let payload_bytes = record.len().checked_sub(RECORD_HEAD_BYTES_MAX);
        if payload_bytes.is_none_or(|bytes| bytes > RECORD_BYTES_MAX) {
            return Err(Error::invalid(format!(
                "a log record may have {RECORD_BYTES_MAX} bytes, and needs space for its head"
            )));
        }
        self.buffer.clear();
        let (frame, scratch, synced_bytes) = (self.frame, &mut self.buffer, self.synced_bytes);
        let (record, checksum) =
            frame.complete(scratch, record, self.bytes, self.digest, synced_bytes);
        if let Err(error) = self.file.append(record, self.cause) {
            return Err(self.fail(error));
        }
        self.bytes += record.len() as u64;
        self.digest = extend_digest(self.digest, checksum);
        Ok(())
    }

    /// Makes everything appended durable and moves the watermark. The logs before this one must be
    /// durable in full.
    pub fn sync(&mut self) -> Result<()> {
        self.refuse_after_failure()?;
        if let Err(error) = self.file.sync(self.cause) {
            return Err(self.fail(error));
        }
        self.synced_bytes = self.bytes;
        Ok(())
    }

    /// A handle that syncs while others append. Take [`LogWriter::bytes`] before its sync begins
    /// and give them to [`LogWriter::mark_synced`] after it succeeded. `None` where the store
    /// cannot.
    pub fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        self.file.syncer()
    }

    /// Everything before byte `bytes` of this log, and every log before it, is durable: later
    /// records say so. Never moves back, nor beyond what was appended.
    pub fn mark_synced(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.bytes, "durable bytes were appended");
        self.synced_bytes = self.synced_bytes.max(bytes.min(self.bytes));
    }

    /// Bytes appended, header included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes known to be durable: the watermark of the next record.
    pub fn synced_bytes(&self) -> u64 {
        self.synced_bytes
    }

    /// The digest of the header and all records.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// What the header of the next log says about this one.
    pub fn as_previous(&self, last_sequence: SequenceNumber) -> PreviousLog {
        PreviousLog { file: self.id, bytes: self.bytes, digest: self.digest, last_sequence }
    }

    fn refuse_after_failure(&self) -> Result<()> {
        match &self.failure {
            Some(error) => Err(Error::poisoned(error.clone())),
            None => Ok(()),
        }
    }

    fn fail(&mut self, error: Error) -> Error {
        self.failure = Some(error.clone());
        error
    }
}
