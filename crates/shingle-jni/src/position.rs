//! Where a scan is, and the entries there that Java gets: of a cursor, or of a transaction.
//!
//! Invariants:
//! - Entries before an error are given first. The error then comes again and again, until a seek.
//! - The entries of the last [`Position::fill`] stay, so that Java can fetch them with a larger
//!   array.

use bindings::{Chunk, fill};
use jni_sys::jint;
use shingle::{Cursor, Error, Result, TransactionIter};

/// Movements that do not seek: the entries behind the last ones, forward and in reverse.
const FORWARD: jint = 0;
const IN_REVERSE: jint = 1;

/// A place in a scan.
pub enum Position {
    /// Of a keyspace or a snapshot.
    Cursor(Cursor, Chunk),
    /// Of a transaction.
    Scan(Box<Scan>),
}

impl From<Cursor> for Position {
    fn from(cursor: Cursor) -> Position {
        Position::Cursor(cursor, Chunk::default())
    }
}

impl From<TransactionIter> for Position {
    fn from(iter: TransactionIter) -> Position {
        Position::Scan(Box::new(Scan { iter, bytes: Vec::new(), failure: None }))
    }
}

impl Position {
    /// Moves as `movement` says, and takes the entries from there on.
    pub(crate) fn fill(
        &mut self,
        movement: jint,
        key: Option<&[u8]>,
        bytes_max: usize,
    ) -> Result<()> {
        match self {
            Position::Cursor(cursor, chunk) => {
                if !matches!(movement, FORWARD | IN_REVERSE) {
                    chunk.clear(); // The seek begins anew, also after an error.
                }
                let in_reverse = moved(cursor, movement, key)?;
                fill(cursor, in_reverse, usize::MAX, bytes_max, chunk)
            }
            Position::Scan(scan) => match movement {
                FORWARD | IN_REVERSE => scan.fill(movement == IN_REVERSE, bytes_max),
                _ => Err(Error::invalid("an iterator of a transaction has no seeks")),
            },
        }
    }

    /// The entries, in the form of [`bindings::Chunk`].
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Position::Cursor(_, chunk) => chunk.bytes(),
            Position::Scan(scan) => &scan.bytes,
        }
    }
}

/// An iterator of a transaction, and its entries.
pub struct Scan {
    iter: TransactionIter,
    bytes: Vec<u8>,
    failure: Option<Error>,
}

impl Scan {
    fn fill(&mut self, in_reverse: bool, bytes_max: usize) -> Result<()> {
        self.bytes.clear();
        while self.failure.is_none() {
            match if in_reverse { self.iter.next_back() } else { self.iter.next() } {
                Some(Ok((key, value))) => self.push(&key, &value),
                Some(Err(error)) => self.failure = Some(error),
                None => break,
            }
            if self.bytes.len() >= bytes_max {
                break;
            }
        }
        match &self.failure {
            Some(error) if self.bytes.is_empty() => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }
}

/// Moves a cursor, and gives whether entries follow in reverse.
fn moved(cursor: &mut Cursor, movement: jint, key: Option<&[u8]>) -> Result<bool> {
    match (movement, key) {
        (FORWARD, None) => {}
        (IN_REVERSE, None) => return Ok(true),
        (2, None) => cursor.seek_to_first()?,
        (3, None) => {
            cursor.seek_to_last()?;
            return Ok(true);
        }
        (4, Some(key)) => cursor.seek(key)?,
        (5, Some(key)) => {
            cursor.seek_for_prev(key)?;
            return Ok(true);
        }
        (6, Some(key)) => {
            cursor.seek(key)?;
            if cursor.valid() && cursor.key() == key {
                cursor.next()?;
            }
        }
        (7, Some(key)) => {
            cursor.seek_for_prev(key)?;
            if cursor.valid() && cursor.key() == key {
                cursor.prev()?;
            }
            return Ok(true);
        }
        _ => return Err(Error::invalid(format!("no movement {movement}"))),
    }
    Ok(false)
}
