//! Checksums that know where their bytes belong.
//!
//! Every checksum on disk covers the payload and its [`Place`]: database, file, offset and kind. A
//! block that was written to, or read from, the wrong place fails like a damaged one.
//! Data blocks and log records carry CRC-32C ([`crc32c`]), metadata carries XXH3-64 ([`hash64`]).

use crate::id::{DatabaseId, FileId};
use crc_fast::{CrcAlgorithm, Digest};
use std::sync::LazyLock;
use twox_hash::XxHash3_64;

/// Bytes of a place in a checksum.
const PLACE_BYTES: usize = 25;

/// Where a checksummed piece of a file belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The database that the file is part of.
    pub database: DatabaseId,
    /// The file.
    pub file: FileId,
    /// Byte offset of the piece in the file.
    pub offset: u64,
    /// What kind of piece it is; a small number fixed by the file's format.
    pub kind: u8,
}

impl Place {
    fn bytes(&self) -> [u8; PLACE_BYTES] {
        let mut bytes = [0; PLACE_BYTES];
        bytes[..8].copy_from_slice(&self.database.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.file.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24] = self.kind;
        bytes
    }

    /// CRC-32C of `payload` at this place.
    pub fn crc32c(&self, payload: &[u8]) -> u32 {
        self.crc32c_of([payload])
    }

    /// CRC-32C of a payload in `parts` at this place.
    pub fn crc32c_of<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> u32 {
        let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
        parts.into_iter().for_each(|part| digest.update(part));
        digest.update(&self.bytes());
        digest.finalize() as u32
    }

    /// The lengths, ascending, with which the first of `bytes` may be a payload at this place:
    /// their CRC-32C stands right behind them, and their last byte is at most `last_max`. For
    /// pieces of which only the beginning is known; one in four thousand million lengths is here by
    /// chance.
    pub fn crc32c_ends<'a>(
        &self,
        bytes: &'a [u8],
        last_max: u8,
    ) -> impl Iterator<Item = usize> + use<'a> {
        let mut state = u32::MAX;
        // A CRC is linear: what the place adds to that of a payload is the payload's own state
        // moved on by as many zeros, and a constant.
        let place = self.bytes().iter().fold(0, |state, &byte| crc32c_step(state, byte));
        bytes.iter().enumerate().filter_map(move |(at, &byte)| {
            state = crc32c_step(state, byte);
            let stored = bytes.get(at + 1..)?.first_chunk::<4>()?;
            let sum = || !(past_place(state) ^ place);
            (byte <= last_max && sum() == u32::from_le_bytes(*stored)).then_some(at + 1)
        })
    }

    /// XXH3-64 of `payload` at this place.
    pub fn hash64(&self, payload: &[u8]) -> u64 {
        hash64_seeded(payload, hash64(&self.bytes()))
    }
}

/// What a byte does to the state of a CRC-32C.
static CRC32C: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut state = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            state = (state >> 1) ^ if state & 1 == 1 { 0x82f6_3b78 } else { 0 };
            bit += 1;
        }
        table[byte] = state;
        byte += 1;
    }
    table
};

#[inline]
fn crc32c_step(state: u32, byte: u8) -> u32 {
    CRC32C[usize::from(state as u8 ^ byte)] ^ (state >> 8)
}

/// The state of a CRC-32C after as many zeros as a place has bytes, by the bytes of the state.
#[inline]
fn past_place(state: u32) -> u32 {
    static MOVED: LazyLock<[[u32; 256]; 4]> = LazyLock::new(|| {
        let moved = |state: u32| (0..PLACE_BYTES).fold(state, |state, _| crc32c_step(state, 0));
        std::array::from_fn(|at| std::array::from_fn(|byte| moved((byte as u32) << (8 * at))))
    });
    let moved = &*MOVED;
    let bytes = state.to_le_bytes().map(usize::from);
    moved[0][bytes[0]] ^ moved[1][bytes[1]] ^ moved[2][bytes[2]] ^ moved[3][bytes[3]]
}

/// Plain CRC-32C, for bytes that have no place of their own.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// XXH3-64 of `bytes`: filters, in-block hash indexes, sampling. Stable: it reaches the disk.
#[inline]
pub fn hash64(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// XXH3-64 of `bytes` with a seed.
#[inline]
pub fn hash64_seeded(bytes: &[u8], seed: u64) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table-free reference, bit by bit: known-answer for every dispatch path of the fast one.
    fn crc32c_reference(bytes: &[u8]) -> u32 {
        let mut crc = !0u32;
        for &byte in bytes {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            }
        }
        !crc
    }

    #[test]
    fn the_fast_crc_equals_the_slow_one_at_every_length_and_alignment() {
        let bytes: Vec<u8> =
            (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        for length in (0..300).chain([511, 512, 1023, 1024, 4095, 4096, 4097]) {
            for start in [0, 1, 7, 16] {
                let slice = &bytes[start..start + length];
                assert_eq!(crc32c(slice), crc32c_reference(slice), "length {length} start {start}");
            }
        }
    }

    #[test]
    fn hash64_is_the_published_function() {
        assert_eq!(hash64(b""), 0x2d06_8005_38d3_94c2);
    }

    #[test]
    fn the_ends_of_a_piece_are_found_by_its_checksum() {
        let place = Place { database: DatabaseId(7), file: FileId(8), offset: 9, kind: 2 };
        for length in [1, 2, 24, 25, 26, 255, 1000] {
            let payload: Vec<u8> = (0..length).map(|n| (n * 31 % 251) as u8).collect();
            let mut bytes = payload.clone();
            bytes.extend_from_slice(&place.crc32c(&payload).to_le_bytes());
            bytes.extend_from_slice(&[1; 40]);
            assert_eq!(place.crc32c_ends(&bytes, 255).collect::<Vec<_>>(), [payload.len()]);
            let other = Place { offset: 10, ..place };
            assert_eq!(other.crc32c_ends(&bytes, 255).count(), 0);
            bytes[length / 2] ^= 1;
            assert_eq!(place.crc32c_ends(&bytes, 255).count(), 0);
        }
        assert_eq!(place.crc32c_ends(&[1, 2, 3], 255).count(), 0);
    }

    #[test]
    fn a_checksum_depends_on_every_part_of_the_place() {
        let here = Place { database: DatabaseId(1), file: FileId(2), offset: 3, kind: 4 };
        let elsewhere = [
            Place { database: DatabaseId(9), ..here },
            Place { file: FileId(9), ..here },
            Place { offset: 9, ..here },
            Place { kind: 9, ..here },
        ];
        for place in elsewhere {
            assert_ne!(here.crc32c(b"payload"), place.crc32c(b"payload"));
            assert_ne!(here.hash64(b"payload"), place.hash64(b"payload"));
        }
    }
}
