//! The kinds of pieces that a table file is made of.
//!
//! Checksums know every piece by its number, which is on disk: never reuse one. Those pieces that
//! readers ask for one by one are blocks, see [`BlockKind`].

/// The file header.
pub const HEADER: u8 = 1;

/// A block of entries.
pub const DATA: u8 = 2;

/// An index block.
pub const INDEX: u8 = 3;

/// A filter block.
pub const FILTER: u8 = 4;

/// What an open run keeps in memory: top index, range tombstones, summary.
pub const TOP: u8 = 5;

/// The footer.
pub const FOOTER: u8 = 6;

/// Kinds of blocks as readers and counters know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Entries.
    Data,
    /// Keys and places of data blocks.
    Index,
    /// A filter.
    Filter,
    /// What an open run keeps in memory: top index, range tombstones, summary. Never cached.
    Top,
}

impl BlockKind {
    /// The kind as checksums know it.
    pub(crate) fn piece(self) -> u8 {
        match self {
            BlockKind::Data => DATA,
            BlockKind::Index => INDEX,
            BlockKind::Filter => FILTER,
            BlockKind::Top => TOP,
        }
    }

    /// Bytes after the stored bytes: compression and checksum.
    pub(crate) fn trailer_bytes(self) -> usize {
        if self == BlockKind::Data { 5 } else { 9 }
    }

    /// For errors and metrics.
    pub fn name(self) -> &'static str {
        match self {
            BlockKind::Data => "data",
            BlockKind::Index => "index",
            BlockKind::Filter => "filter",
            BlockKind::Top => "top",
        }
    }
}
