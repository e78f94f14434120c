//! Versions of keys, as tables and logs have them.

/// What kind of entry a version of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Delete,
    Put,
}

/// A key with its version: the last 8 bytes are the sequence number and the kind.
pub fn split_key(internal: &[u8]) -> Option<(&[u8], u64, Kind)> {
    let (key, trailer) = internal.split_last_chunk::<8>()?;
    let trailer = u64::from_le_bytes(*trailer);
    let kind = match trailer as u8 {
        0 => Kind::Delete,
        1 => Kind::Put,
        _ => return None,
    };
    Some((key, trailer >> 8, kind))
}
