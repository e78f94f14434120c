//! The bytes that say what an entry is.

use crate::entry::Kind;

pub const DELETE: u8 = 0x00;
pub const PUT: u8 = 0x01;
pub const MERGE: u8 = 0x02;
pub const SINGLE_DELETE: u8 = 0x07;
pub const RANGE_DELETE: u8 = 0x0f;
pub const BLOB: u8 = 0x11;
pub const DELETE_WITH_TIMESTAMP: u8 = 0x14;
pub const COLUMNS: u8 = 0x16;
/// A value with the time of its write, or a sequence number for it, in its last 8 bytes.
pub const TIMED_PUT: u8 = 0x18;

/// The kind of an entry, and the part of its value that the program wrote.
pub fn entry(byte: u8, value: &[u8]) -> Option<(Kind, &[u8])> {
    Some(match byte {
        DELETE | SINGLE_DELETE => (Kind::Delete, &[]),
        PUT => (Kind::Put, value),
        MERGE => (Kind::Merge, value),
        BLOB => (Kind::Blob, value),
        COLUMNS => (Kind::Columns, value),
        TIMED_PUT => (Kind::Put, value.split_last_chunk::<8>()?.0),
        _ => return None,
    })
}
