//! Value bytes without copies: a range of a shared block, or bytes of one's own.

use crate::block::{Block, Kept};
use std::cmp::Ordering;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Bytes that fit where a vector's pointer, length and capacity would stand.
const INLINE_BYTES_MAX: usize = 30;

/// Bytes of a value. Those of a block keep the block in memory for as long as they live.
///
/// Cloning shared bytes costs a reference count; cloning owned bytes copies them. A few bytes need
/// no memory of their own.
///
/// ```
/// # extern crate table as shingle;
/// use shingle::Bytes;
///
/// let value = Bytes::from(&b"red"[..]);
/// assert_eq!(value.len(), 3); // every method of a slice
/// assert_eq!(&value[..], b"red");
/// let owned: Vec<u8> = value.into_vec();
/// ```
#[derive(Clone)]
pub struct Bytes(Held);

#[derive(Clone)]
enum Held {
    Shared { block: Arc<Block>, start: u32, end: u32 },
    Owned(Vec<u8>),
    Inline { length: u8, bytes: [u8; INLINE_BYTES_MAX] },
}

impl Bytes {
    /// The bytes `range` of `block`, which must lie inside it.
    pub(crate) fn shared(block: Arc<Block>, range: Range<usize>) -> Bytes {
        debug_assert!(range.start <= range.end && range.end <= block.bytes().len());
        Bytes(Held::Shared { block, start: range.start as u32, end: range.end as u32 })
    }

    /// The bytes `range` of a block that a cursor stands in. Those of a mapped file are copied: a
    /// value that a caller keeps must not keep a file on the device.
    pub(crate) fn kept(block: &Block<Kept>, range: Range<usize>) -> Bytes {
        match block.kept() {
            Kept::Shared(block) => Bytes::shared(block.clone(), range),
            Kept::Nothing | Kept::Mapped(_) => Bytes::from(&block.bytes()[range]),
        }
    }

    /// Without the first `count` bytes, or empty where there are fewer. Shared bytes stay shared.
    pub fn skip(self, count: usize) -> Bytes {
        match self.0 {
            Held::Shared { block, start, end } => {
                let start = start.saturating_add(count as u32).min(end);
                Bytes(Held::Shared { block, start, end })
            }
            Held::Owned(mut bytes) => {
                bytes.drain(..count.min(bytes.len()));
                Bytes(Held::Owned(bytes))
            }
            Held::Inline { length, bytes } => {
                Bytes::from(bytes[..usize::from(length)].get(count..).unwrap_or_default())
            }
        }
    }

    /// The bytes as a vector of one's own; copies only shared ones.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Held::Owned(bytes) => bytes,
            Held::Shared { .. } | Held::Inline { .. } => self.to_vec(),
        }
    }

    /// They keep a block in memory that may be larger than they are.
    pub fn is_shared(&self) -> bool {
        matches!(self.0, Held::Shared { .. })
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Shared { block, start, end } => &block.bytes()[*start as usize..*end as usize],
            Held::Owned(bytes) => bytes,
            Held::Inline { length, bytes } => &bytes[..usize::from(*length)],
        }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes(Held::Owned(Vec::new()))
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        Bytes(Held::Owned(bytes))
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        if bytes.len() > INLINE_BYTES_MAX {
            return Bytes(Held::Owned(bytes.to_vec()));
        }
        let mut inline = [0; INLINE_BYTES_MAX];
        inline[..bytes.len()].copy_from_slice(bytes);
        Bytes(Held::Inline { length: bytes.len() as u8, bytes: inline })
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Bytes) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl PartialOrd for Bytes {
    fn partial_cmp(&self, other: &Bytes) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bytes {
    fn cmp(&self, other: &Bytes) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl PartialEq<[u8]> for Bytes {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_wherever_they_are_kept() {
        assert_eq!(size_of::<Bytes>(), 32);
        for length in [0, 1, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, 1000] {
            let bytes: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let (copied, owned) = (Bytes::from(&bytes[..]), Bytes::from(bytes.clone()));
            assert_eq!(copied, owned);
            assert_eq!(copied.clone().into_vec(), bytes);
        }
    }
}
