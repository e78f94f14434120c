//! Checksums of blocks: one of five kinds, the same for all blocks of a table.

use crate::coding::masked;
use base::checksum::crc32c;
use twox_hash::{XxHash3_64, XxHash32, XxHash64};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    None,
    Crc32c,
    XxHash32,
    XxHash64,
    Xxh3,
}

/// What the last byte adds to XXH3, which the format computes without it.
const LAST_BYTE: u32 = 0x6b90_83d9;

impl Checksum {
    pub fn by_byte(byte: u8) -> Option<Checksum> {
        use Checksum::{Crc32c, None, XxHash32, XxHash64, Xxh3};
        [None, Crc32c, XxHash32, XxHash64, Xxh3].get(usize::from(byte)).copied()
    }

    /// The checksum of `bytes`, as a table has it.
    pub fn of(self, bytes: &[u8]) -> u32 {
        match self {
            Checksum::None => 0,
            Checksum::Crc32c => masked(crc32c(bytes)),
            Checksum::XxHash32 => XxHash32::oneshot(0, bytes),
            Checksum::XxHash64 => XxHash64::oneshot(0, bytes) as u32,
            Checksum::Xxh3 => bytes.split_last().map_or(0, |(last, rest)| {
                XxHash3_64::oneshot(rest) as u32 ^ u32::from(*last).wrapping_mul(LAST_BYTE)
            }),
        }
    }
}

/// What is added to the checksum of a piece at `offset` in a table that has a `base` for it, so
/// that a piece of another place or another file is found. Zero without a base.
pub fn of_context(base: u32, offset: u64) -> u32 {
    match base {
        0 => 0,
        base => base ^ (offset as u32).wrapping_add((offset >> 32) as u32),
    }
}
