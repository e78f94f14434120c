//! The bytes that say what an entry is.

use crate::entry::Kind;

/// The kind of an entry by its byte.
pub fn kind(byte: u8) -> Option<Kind> {
    match byte {
        0 => Some(Kind::Delete),
        1 => Some(Kind::Put),
        _ => None,
    }
}
