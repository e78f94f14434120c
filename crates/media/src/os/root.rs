//! The bytes of the root file.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `SHINGLE` and a zero |
//! | 4 | version of this layout, little endian, 1 |
//! | 4 | length of the root, little endian |
//! | n | the root |
//! | 4 | CRC-32C of everything before, little endian |

use crate::names::ROOT_NAME;
use base::checksum::crc32c;
use base::{Error, ErrorKind, Result};

/// What the file of this name begins with in a database of LevelDB or of RocksDB.
const LEVELDB_PREFIX: &[u8] = b"MANIFEST-";

/// A root is a few bytes; a file longer than this is damaged.
pub(super) const ROOT_FILE_BYTES_MAX: usize = 64 << 10;

const MAGIC: [u8; 8] = *b"SHINGLE\0";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 16;
const FOOT_BYTES: usize = 4;

/// The root file that holds `root`.
pub(super) fn encode(root: &[u8]) -> Result<Vec<u8>> {
    if root.len() > ROOT_FILE_BYTES_MAX - HEAD_BYTES - FOOT_BYTES {
        return Err(Error::invalid(format!("a root of {} bytes is too long", root.len())));
    }
    let mut file = MAGIC.to_vec();
    file.extend(VERSION.to_le_bytes());
    file.extend((root.len() as u32).to_le_bytes());
    file.extend(root);
    file.extend(crc32c(&file).to_le_bytes());
    Ok(file)
}

/// The root in `file`. `Corruption` if a byte of it is not what was written; `Incompatible` if a
/// newer version wrote it.
pub(super) fn decode(file: &[u8]) -> Result<Vec<u8>> {
    let damaged =
        |offset: usize, message: String| Error::corruption(ROOT_NAME, offset as u64, message);
    if file.starts_with(LEVELDB_PREFIX) {
        let message = "a database of LevelDB or RocksDB, which Shingle does not open: \
                       `shingle import` reads it into a new database";
        return Err(Error::new(ErrorKind::Incompatible, message).in_file(ROOT_NAME));
    }
    if file.len() < HEAD_BYTES + FOOT_BYTES {
        let message = format!("the root file is cut short: it has {} bytes", file.len());
        return Err(damaged(file.len(), message));
    }
    let (body, foot) = file.split_at(file.len() - FOOT_BYTES);
    let word =
        |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("the caller passes four bytes"));
    let (expected, found) = (word(foot), crc32c(body));
    if expected != found {
        let message = format!("root checksum: expected {expected:08x}, found {found:08x}");
        return Err(damaged(0, message));
    }
    if body[..8] != MAGIC {
        let message = "the root file was not written by Shingle";
        return Err(Error::new(ErrorKind::Incompatible, message).in_file(ROOT_NAME));
    }
    let version = word(&body[8..12]);
    if version != VERSION {
        let message = format!("root file version {version} is unknown, this is {VERSION}");
        return Err(Error::new(ErrorKind::Incompatible, message).in_file(ROOT_NAME));
    }
    let (len, root) = (word(&body[12..HEAD_BYTES]), &body[HEAD_BYTES..]);
    if len as usize != root.len() {
        let message = format!("root length: expected {len}, found {}", root.len());
        return Err(damaged(12, message));
    }
    Ok(root.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_flipped_bit_and_every_cut_is_corruption_of_the_root_file() {
        let file = encode(b"MANIFEST-000007").unwrap();
        assert_eq!(decode(&file).unwrap(), b"MANIFEST-000007");
        for bit in 0..file.len() * 8 {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = decode(&damaged).unwrap_err();
            assert_eq!((error.kind(), error.file()), (ErrorKind::Corruption, Some(ROOT_NAME)));
        }
        for len in 0..file.len() {
            assert_eq!(decode(&file[..len]).unwrap_err().kind(), ErrorKind::Corruption);
        }
    }

    #[test]
    fn a_newer_layout_is_incompatible_not_damaged() {
        let mut file = encode(b"x").unwrap();
        file[8] = 2;
        let body = file.len() - FOOT_BYTES;
        let checksum = crc32c(&file[..body]).to_le_bytes();
        file[body..].copy_from_slice(&checksum);
        assert_eq!(decode(&file).unwrap_err().kind(), ErrorKind::Incompatible);
    }

    proptest! {
        #[test]
        fn roots_come_back_and_noise_does_not_panic(
            root in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            prop_assert_eq!(decode(&encode(&root).unwrap()).unwrap(), root.clone());
            prop_assert!(decode(&root).is_err());
        }
    }
}
