//! The records of a write-ahead log: batches with their sequence numbers.
//!
//! In a log that has origins ([`LogHeader::has_origins`](crate::log::LogHeader::has_origins)) a
//! record also says whether a user or the engine wrote its batch, and the first record says when
//! the log began. A change feed needs both; recovery needs neither. See docs/format/log.md.
//!
//! Invariants:
//! - Parsing is total: it gives operations within the limits, with sequence numbers in bounds, or
//!   `Corruption`.
//! - A log without origins is read as before they existed: an origin in it is `Corruption`.

use crate::batch::BatchView;
use base::coding::Reader;
use base::key::{SEQUENCE_MAX, SequenceNumber};
use base::{Error, ErrorKind, Result};

/// The bits of a record's first number above the sequence number hold its kind.
const KIND_SHIFT: u32 = SEQUENCE_MAX.count_ones();

const BEGIN: u8 = 2;

/// The writer of a batch. The numbers are on disk: never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Origin {
    /// A user: the batch changes what reads see.
    User = 0,
    /// The engine: the batch moves values, and reads see the same before and after it.
    Engine = 1,
}

impl Origin {
    /// The first number of a record whose batch begins at `sequence`.
    #[inline]
    pub fn mark(self, sequence: SequenceNumber) -> u64 {
        sequence | (self as u64) << KIND_SHIFT
    }
}

/// The beginning of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBegin {
    /// Every logged operation from this sequence number on is in this log or in a later one.
    pub first_sequence: SequenceNumber,
    /// When the log began, in microseconds since 1970 on the wall clock.
    pub wall_micros: u64,
}

impl LogBegin {
    /// The payload of the record.
    pub fn encode(&self) -> [u8; 16] {
        let mut out = [0; 16];
        let number = self.first_sequence | u64::from(BEGIN) << KIND_SHIFT;
        out[..8].copy_from_slice(&number.to_le_bytes());
        out[8..].copy_from_slice(&self.wall_micros.to_le_bytes());
        out
    }
}

/// What a record of a write-ahead log holds.
#[derive(Clone, Copy, Debug)]
pub enum LogRecord<'a> {
    /// Nothing: it proves that what stands before it was durable.
    Proof,
    /// The log begins.
    Begin(LogBegin),
    /// A batch.
    Batch {
        /// The sequence number of its first operation.
        first: SequenceNumber,
        /// The writer; [`Origin::User`] in a log without origins.
        origin: Origin,
        /// The operations. Sequence numbers up to the last are in bounds.
        batch: BatchView<'a>,
    },
}

impl<'a> LogRecord<'a> {
    /// Reads `payload`, a record of a log with or without origins. `Corruption` if it holds none of
    /// the above.
    pub fn parse(payload: &'a [u8], has_origins: bool) -> Result<LogRecord<'a>> {
        if payload.is_empty() {
            return Ok(LogRecord::Proof);
        }
        let damaged = |what: &str| Error::new(ErrorKind::Corruption, what);
        let mut reader = Reader::new(payload);
        let number = reader.u64().ok_or_else(|| damaged("a log record without sequence number"))?;
        let (first, kind) = (number & SEQUENCE_MAX, (number >> KIND_SHIFT) as u8);
        let origin = match kind {
            0 => Origin::User,
            1 if has_origins => Origin::Engine,
            BEGIN if has_origins => {
                let micros = reader.u64().filter(|_| reader.is_empty());
                let wall_micros = micros.ok_or_else(|| damaged("no beginning of a log"))?;
                return Ok(LogRecord::Begin(LogBegin { first_sequence: first, wall_micros }));
            }
            _ => return Err(damaged("a log record with sequence numbers out of bounds")),
        };
        let batch = BatchView::parse(reader.rest())?;
        match first.checked_add(batch.len() as u64) {
            Some(behind) if behind <= SEQUENCE_MAX => Ok(LogRecord::Batch { first, origin, batch }),
            _ => Err(damaged("a log record with sequence numbers out of bounds")),
        }
    }

    /// The sequence number of the first operation and the batch; `None` for a record without one.
    pub fn batch(&self) -> Option<(SequenceNumber, BatchView<'a>)> {
        match *self {
            LogRecord::Batch { first, batch, .. } => Some((first, batch)),
            LogRecord::Proof | LogRecord::Begin(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::WriteBatch;
    use crate::log::RECORD_HEAD_BYTES_MAX;
    use base::KeyspaceId;
    use base::random::Random;

    fn record(origin: Origin, first: SequenceNumber) -> Vec<u8> {
        let mut batch = WriteBatch::new();
        batch.put(KeyspaceId(0), b"a", b"1").unwrap();
        batch.delete(KeyspaceId(3), b"b").unwrap();
        batch.as_record(origin.mark(first))[RECORD_HEAD_BYTES_MAX..].to_vec()
    }

    #[test]
    fn a_batch_comes_back_with_its_origin() {
        for expected in [Origin::User, Origin::Engine] {
            let payload = record(expected, 1 << 40);
            let parsed = LogRecord::parse(&payload, true).unwrap();
            let LogRecord::Batch { first, origin, batch } = parsed else { panic!("{parsed:?}") };
            assert_eq!((first, origin, batch.len()), (1 << 40, expected, 2));
        }
    }

    #[test]
    fn a_user_s_batch_is_the_same_with_and_without_origins() {
        let payload = record(Origin::User, 77);
        assert_eq!(payload[..8], 77u64.to_le_bytes());
        let parsed = LogRecord::parse(&payload, false).unwrap();
        assert_eq!(parsed.batch().map(|(first, batch)| (first, batch.len())), Some((77, 2)));
    }

    #[test]
    fn a_log_without_origins_has_none() {
        let begin = LogBegin { first_sequence: 9, wall_micros: 8 }.encode();
        for payload in [record(Origin::Engine, 5), begin.to_vec()] {
            let error = LogRecord::parse(&payload, false).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert!(LogRecord::parse(&payload, true).is_ok());
        }
    }

    #[test]
    fn the_beginning_of_a_log_comes_back() {
        let begin = LogBegin { first_sequence: SEQUENCE_MAX, wall_micros: u64::MAX };
        let payload = begin.encode();
        let parsed = LogRecord::parse(&payload, true).unwrap();
        assert!(matches!(parsed, LogRecord::Begin(found) if found == begin), "{parsed:?}");
        let long = [&payload[..], &[0]].concat();
        assert!(LogRecord::parse(&long, true).is_err());
        assert!(LogRecord::parse(&payload[..15], true).is_err());
    }

    #[test]
    fn hostile_bytes_parse_or_are_corruption() {
        let mut random = Random::new(11);
        let mut bytes = [0; 40];
        for _ in 0..50_000 {
            random.fill(&mut bytes);
            bytes[7] &= 3;
            let length = random.below(41) as usize;
            if let Err(error) = LogRecord::parse(&bytes[..length], true) {
                assert_eq!(error.kind(), ErrorKind::Corruption);
            }
        }
    }
}
