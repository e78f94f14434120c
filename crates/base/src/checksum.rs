//! Checksums that know where their bytes belong.
//!
//! Every checksum on disk covers the payload and its [`Place`]: database, file, offset and kind. A
//! block that was written to, or read from, the wrong place fails like a damaged one.
//! Data blocks and log records carry CRC-32C ([`crc32c`]), metadata carries XXH3-64 ([`hash64`]).

use crate::id::{DatabaseId, FileId};
use crc_fast::{CrcAlgorithm, Digest};
use twox_hash::XxHash3_64;

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
    fn bytes(&self) -> [u8; 25] {
        let mut bytes = [0; 25];
        bytes[..8].copy_from_slice(&self.database.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.file.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24] = self.kind;
        bytes
    }

    /// CRC-32C of `payload` at this place.
    pub fn crc32c(&self, payload: &[u8]) -> u32 {
        let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
        digest.update(payload);
        digest.update(&self.bytes());
        digest.finalize() as u32
    }

    /// XXH3-64 of `payload` at this place.
    pub fn hash64(&self, payload: &[u8]) -> u64 {
        hash64_seeded(payload, hash64(&self.bytes()))
    }
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
