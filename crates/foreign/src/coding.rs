//! Numbers and checksums as LevelDB, and RocksDB after it, write them.

use base::checksum::crc32c;
use base::{Error, ErrorKind, Result};
use std::path::Path;

/// A position in bytes of a file.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { rest: bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Bytes that are left.
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// The next `count` bytes; `None`: there are fewer.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    pub fn fixed16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_le_bytes(bytes.try_into().ok()?))
    }

    pub fn fixed32(&mut self) -> Option<u32> {
        let bytes = self.take(4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    pub fn fixed64(&mut self) -> Option<u64> {
        let bytes = self.take(8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// A number in pieces of 7 bits, the lowest first.
    pub fn varint(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A number with a sign: its distance from zero, and the sign in the lowest bit.
    pub fn varint_signed(&mut self) -> Option<i64> {
        let coded = self.varint()?;
        Some((coded >> 1) as i64 ^ -((coded & 1) as i64))
    }

    pub fn varint_usize(&mut self) -> Option<usize> {
        usize::try_from(self.varint()?).ok()
    }

    /// Bytes behind their count.
    pub fn slice(&mut self) -> Option<&'a [u8]> {
        let count = self.varint_usize()?;
        self.take(count)
    }
}

/// The checksum that stands in a file: the CRC-32C of `parts`, turned and moved.
pub fn masked(sum: u32) -> u32 {
    sum.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The CRC-32C of two pieces after each other, as a file has it.
pub fn masked_sum(parts: [&[u8]; 2]) -> u32 {
    masked(crc32c(&parts.concat()))
}

/// Damage of a file at a byte.
pub fn damage(path: &Path, offset: u64, message: impl Into<String>) -> Error {
    Error::corruption(path.display().to_string(), offset, message)
}

/// What this program cannot read, though it is no damage.
pub fn unsupported(path: &Path, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unsupported, message).in_file(path.display().to_string())
}

/// A key in a message: what is not ASCII by its bytes, and not more than fits a line.
pub fn shown(key: &[u8]) -> String {
    const BYTES_MAX: usize = 60;
    match key.get(..BYTES_MAX) {
        Some(begin) if key.len() > BYTES_MAX => {
            format!("\"{}...\" of {} bytes", begin.escape_ascii(), key.len())
        }
        _ => format!("\"{}\"", key.escape_ascii()),
    }
}

/// A file that cannot be read.
pub fn unread(path: &Path, error: std::io::Error) -> Error {
    Error::io("read a file of the source", error).in_file(path.display().to_string())
}

/// Reads a file whole.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| unread(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_their_bytes_end() {
        let mut input = Input::new(&[0x00, 0x7f, 0x80, 0x01, 0xff, 0xff, 0x03, 0x80]);
        let found: Vec<_> = (0..5).map(|_| input.varint()).collect();
        assert_eq!(found, [Some(0), Some(127), Some(128), Some(65_535), None]);
        let mut input = Input::new(&[0xff; 11]);
        assert_eq!(input.varint(), None);
        let mut input = Input::new(&[2, b'a', b'b', 5, b'c']);
        assert_eq!((input.slice(), input.slice()), (Some(&b"ab"[..]), None));
        let mut input = Input::new(&[0, 1, 2, 3, 0x80, 0x01]);
        let signed: Vec<_> = (0..6).map(|_| input.varint_signed()).collect();
        assert_eq!(signed, [Some(0), Some(-1), Some(1), Some(-2), Some(64), None]);
    }

    #[test]
    fn the_mask_is_that_of_the_format() {
        // From RFC 3720: 32 bytes of zeros have the CRC-32C 0x8a9136aa.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(masked(0x8a91_36aa), 0x8a91_36aa_u32.rotate_right(15).wrapping_add(0xa282_ead8));
        assert_ne!(masked(masked(1)), masked(1));
    }
}
