//! Value bytes without copies: a range of a shared block, or bytes of one's own.

use crate::block::Block;
use std::cmp::Ordering;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Bytes of a value. Those of a block keep the block in memory for as long as they live.
///
/// Cloning shared bytes costs a reference count; cloning owned bytes copies them.
#[derive(Clone)]
pub struct Bytes(Held);

#[derive(Clone)]
enum Held {
    Shared { block: Arc<Block>, start: u32, end: u32 },
    Owned(Vec<u8>),
}

impl Bytes {
    /// The bytes `range` of `block`, which must lie inside it.
    pub(crate) fn shared(block: Arc<Block>, range: Range<usize>) -> Bytes {
        debug_assert!(range.start <= range.end && range.end <= block.bytes().len());
        Bytes(Held::Shared { block, start: range.start as u32, end: range.end as u32 })
    }

    /// The bytes as a vector of one's own; copies only shared ones.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Held::Owned(bytes) => bytes,
            Held::Shared { .. } => self.to_vec(),
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
        Bytes(Held::Owned(bytes.to_vec()))
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
