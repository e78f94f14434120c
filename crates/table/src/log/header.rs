//! The header of a log: what it is, and which log it continues.
//!
//! Every format version keeps the length of the header and the places of magic, version and
//! checksum, so that a newer log is told from a damaged one.

use base::checksum::Place;
use base::coding::Reader;
use base::{DatabaseId, Error, ErrorKind, FileId, Result, SequenceNumber};
use media::FileName;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 80;

const MAGIC: [u8; 8] = *b"SHINGLOG";
const VERSION: u32 = 1;
/// The version of logs whose records have origins.
const VERSION_ORIGINS: u32 = 2;
const CHECKSUM_AT: usize = HEADER_BYTES - 8;

/// What a log is for. The numbers are on disk: never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LogKind {
    /// The write-ahead log.
    Wal = 1,
    /// The log of edits.
    Manifest = 2,
}

impl LogKind {
    fn from_byte(byte: u8) -> Option<LogKind> {
        match byte {
            1 => Some(LogKind::Wal),
            2 => Some(LogKind::Manifest),
            _ => None,
        }
    }
}

/// Which log it is; part of every checksum in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogIdentity {
    /// The database that it is part of.
    pub database: DatabaseId,
    /// The file that holds it.
    pub file: FileId,
    /// What it is for.
    pub kind: LogKind,
}

impl LogIdentity {
    pub(super) fn header_place(&self) -> Place {
        self.place(0, 0x20)
    }

    pub(super) fn record_place(&self, offset: u64) -> Place {
        self.place(offset, 0x10)
    }

    fn place(&self, offset: u64, piece: u8) -> Place {
        let kind = piece | self.kind as u8;
        Place { database: self.database, file: self.file, offset, kind }
    }
}

/// How a log ended, as the next one records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviousLog {
    /// Its file.
    pub file: FileId,
    /// Its bytes up to the end of its last record.
    pub bytes: u64,
    /// The digest of all its records.
    pub digest: u64,
    /// The last sequence number in it, or before it when it holds none.
    pub last_sequence: SequenceNumber,
}

/// The first piece of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHeader {
    /// The database that the log is part of.
    pub database: DatabaseId,
    /// The file that holds it.
    pub file: FileId,
    /// What it is for.
    pub kind: LogKind,
    /// A random number, drawn for each log: records that an earlier file of the same number left on
    /// the medium do not fit into this one's history.
    pub salt: u64,
    /// The log that this one continues.
    pub previous: Option<PreviousLog>,
    /// The records of this write-ahead log say what wrote them: see [`crate::log_record`].
    pub has_origins: bool,
    /// This log repeats the records of the logs that stand before it and behind `previous`, for
    /// change feeds. Recovery reads those, and never this one. Only with origins.
    pub restates: bool,
}

/// What stands where a header should be.
pub(super) enum Parsed {
    /// The expected header, and its checksum, where the log's digest begins.
    Header(LogHeader, u64),
    /// Not a header of this log; why, in words.
    Bad(&'static str),
}

impl LogHeader {
    /// Which log it is.
    pub fn identity(&self) -> LogIdentity {
        LogIdentity { database: self.database, file: self.file, kind: self.kind }
    }

    /// The header as bytes, and its checksum.
    pub(super) fn encode(&self) -> ([u8; HEADER_BYTES], u64) {
        let mut out = Vec::with_capacity(HEADER_BYTES);
        out.extend_from_slice(&MAGIC);
        let version = if self.has_origins { VERSION_ORIGINS } else { VERSION };
        out.extend_from_slice(&version.to_le_bytes());
        let (is_linked, restates) = (self.previous.is_some() as u8, self.restates as u8);
        out.extend_from_slice(&[self.kind as u8, is_linked, restates, 0]);
        let none = PreviousLog { file: FileId(0), bytes: 0, digest: 0, last_sequence: 0 };
        let previous = self.previous.unwrap_or(none);
        for number in [
            self.database.0,
            self.file.0,
            self.salt,
            previous.file.0,
            previous.bytes,
            previous.digest,
            previous.last_sequence,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let checksum = self.identity().header_place().hash64(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        (out.try_into().expect("the fields add up to a header"), checksum)
    }

    /// Reads the header of the log `expected`. A whole header of another database or of a newer
    /// version is an error; everything else that is not the header is `Bad`.
    pub(super) fn parse(bytes: &[u8], expected: &LogIdentity, name: FileName) -> Result<Parsed> {
        let Some((version, header, checksum)) = Self::decode(bytes) else {
            return Ok(Parsed::Bad("no whole log header"));
        };
        if !is_known(version, header.kind) {
            let message = format!(
                "log format version {version}, this program knows versions {VERSION} and \
                 {VERSION_ORIGINS}"
            );
            return Err(Error::new(ErrorKind::Incompatible, message).in_file(name.to_string()));
        }
        if header.database != expected.database {
            let message = format!(
                "the log belongs to database {:016x}, not to {:016x}",
                header.database.0, expected.database.0
            );
            return Err(Error::new(ErrorKind::Incompatible, message).in_file(name.to_string()));
        }
        if header.identity() != *expected {
            return Ok(Parsed::Bad("the header of another log of this database"));
        }
        Ok(Parsed::Header(header, checksum))
    }

    /// The header in `bytes`, whichever log it is of; `None` when it is not whole or not of this
    /// version.
    pub(super) fn sound(bytes: &[u8]) -> Option<LogHeader> {
        let (version, header, _) = Self::decode(bytes)?;
        is_known(version, header.kind).then_some(header)
    }

    /// The version, header and checksum in `bytes`; `None` when the checksum does not hold.
    fn decode(bytes: &[u8]) -> Option<(u32, LogHeader, u64)> {
        let bytes = bytes.get(..HEADER_BYTES)?;
        let mut reader = Reader::new(bytes);
        if reader.take(8)? != MAGIC {
            return None;
        }
        let version = reader.u32()?;
        let (kind, linked) = (LogKind::from_byte(reader.byte()?)?, reader.byte()?);
        let (restated, unused) = (reader.byte()?, reader.byte()?);
        let database = DatabaseId(reader.u64()?);
        let file = FileId(reader.u64()?);
        let salt = reader.u64()?;
        let previous = PreviousLog {
            file: FileId(reader.u64()?),
            bytes: reader.u64()?,
            digest: reader.u64()?,
            last_sequence: reader.u64()?,
        };
        let previous = (linked != 0).then_some(previous);
        let has_origins = version == VERSION_ORIGINS;
        let restates = has_origins && restated != 0;
        let header = LogHeader { database, file, kind, salt, previous, has_origins, restates };
        let checksum = reader.u64()?;
        let sound = header.identity().header_place().hash64(&bytes[..CHECKSUM_AT]) == checksum;
        let known = !is_known(version, kind)
            || (linked <= 1 && restated <= has_origins as u8 && unused == 0);
        (sound && known).then_some((version, header, checksum))
    }
}

/// This program reads logs of `kind` in `version`.
fn is_known(version: u32, kind: LogKind) -> bool {
    version == VERSION || (version == VERSION_ORIGINS && kind == LogKind::Wal)
}
