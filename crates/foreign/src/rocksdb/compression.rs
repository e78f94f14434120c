//! Blocks as they are compressed: the kind is in the trailer, the length of the content before it
//! (Snappy has the length itself).

use crate::coding::Input;
use crate::file::BLOCK_BYTES_MAX;
use crate::snappy;
use flate2::read::DeflateDecoder;
use std::io::Read;

const NONE: u8 = 0;
const SNAPPY: u8 = 1;
const ZLIB: u8 = 2;
const BZIP2: u8 = 3;
const LZ4: u8 = 4;
const LZ4HC: u8 = 5;
const XPRESS: u8 = 6;
pub const ZSTD: u8 = 7;
/// From this kind on, compressors are those of programs.
const CUSTOM: u8 = 0x80;

/// A stored block of Deflate has its length in 16 bits.
const DEFLATE_STORED_MAX: usize = 65_535;

/// Why a block cannot be decompressed.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    Damage(String),
    Unsupported(String),
}

impl From<String> for Refusal {
    fn from(message: String) -> Refusal {
        Refusal::Damage(message)
    }
}

/// The content of a block. Memory is taken for what `stored` can have.
pub fn unpack(kind: u8, stored: &[u8], dictionary: &[u8]) -> Result<Vec<u8>, Refusal> {
    match kind {
        NONE => return Ok(stored.to_vec()),
        SNAPPY => return Ok(snappy::unpack(stored)?),
        BZIP2 => return Err(unsupported("bzip2, which this program does not have")),
        XPRESS => return Err(unsupported("Xpress, which Windows alone has")),
        CUSTOM.. => return Err(unsupported(format!("{kind}, which is the program's own"))),
        _ => {}
    }
    let mut input = Input::new(stored);
    let bytes = input.varint().ok_or_else(|| "its length is not whole".to_string())?;
    let packed = input.take(input.len()).unwrap_or_default();
    // No byte of a format can stand for more bytes.
    let ratio = match kind {
        ZLIB => 1_032,
        LZ4 | LZ4HC => 255,
        _ => 32_768,
    };
    if bytes > BLOCK_BYTES_MAX || bytes > ratio * (packed.len() as u64 + 1) {
        return Err(format!("{bytes} bytes cannot come from {}", packed.len()).into());
    }
    let content = match kind {
        ZLIB => deflated(packed, dictionary, bytes as usize),
        LZ4 | LZ4HC => lz4_flex::block::decompress_with_dict(packed, bytes as usize, dictionary)
            .map_err(|error| error.to_string()),
        ZSTD => zstd(packed, dictionary, bytes as usize),
        other => return Err(Refusal::Damage(format!("{other} is no kind of compression"))),
    }?;
    match content.len() as u64 == bytes {
        true => Ok(content),
        false => Err(format!("it has {} bytes, not {bytes}", content.len()).into()),
    }
}

fn unsupported(compression: impl std::fmt::Display) -> Refusal {
    Refusal::Unsupported(format!(
        "a block is compressed by {compression}; compact the database with another compression"
    ))
}

/// Decompresses bare Deflate. A dictionary is what the window has before the first byte, as if
/// blocks that are stored as they are had come before.
fn deflated(packed: &[u8], dictionary: &[u8], bytes: usize) -> Result<Vec<u8>, String> {
    let mut before = Vec::new();
    for piece in dictionary.chunks(DEFLATE_STORED_MAX) {
        let length = piece.len() as u16;
        before.push(0);
        before.extend_from_slice(&length.to_le_bytes());
        before.extend_from_slice(&(!length).to_le_bytes());
        before.extend_from_slice(piece);
    }
    let mut content = Vec::new();
    let limit = (dictionary.len() + bytes + 1) as u64;
    DeflateDecoder::new(before.chain(packed))
        .take(limit)
        .read_to_end(&mut content)
        .map_err(|error| error.to_string())?;
    if content.len() < dictionary.len() {
        return Err("it is shorter than its dictionary".into());
    }
    content.drain(..dictionary.len());
    Ok(content)
}

fn zstd(packed: &[u8], dictionary: &[u8], bytes: usize) -> Result<Vec<u8>, String> {
    let decompressor = zstd::bulk::Decompressor::with_dictionary(dictionary);
    decompressor
        .and_then(|mut decompressor| decompressor.decompress(packed, bytes))
        .map_err(|error| error.to_string())
}

/// Decompresses a record of a log, whose length stands nowhere.
pub fn unpack_record(packed: &[u8]) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let mut decoder =
        zstd::stream::read::Decoder::new(packed).map_err(|error| error.to_string())?;
    decoder
        .by_ref()
        .take(BLOCK_BYTES_MAX)
        .read_to_end(&mut content)
        .map_err(|error| error.to_string())?;
    if content.len() as u64 == BLOCK_BYTES_MAX {
        return Err("a record is larger than any that is written".into());
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_cannot_be_takes_no_memory() {
        // 2^60 bytes, from a few.
        let stored = [&[0x80; 8][..], &[0x10, 1, 2, 3]].concat();
        for kind in [ZLIB, LZ4, LZ4HC, ZSTD] {
            let Err(Refusal::Damage(why)) = unpack(kind, &stored, &[]) else {
                panic!("{kind} took it")
            };
            assert!(why.contains("cannot come from 3"), "{kind}: {why}");
        }
        assert!(unpack(ZLIB, &[0x80], &[]).is_err());
        assert!(matches!(unpack(0x85, &[1], &[]), Err(Refusal::Unsupported(_))));
        assert!(matches!(unpack(0x42, &[1, 1], &[]), Err(Refusal::Damage(_))));
    }

    #[test]
    fn a_block_has_exactly_the_length_that_stands_before_it() {
        let packed = lz4_flex::block::compress(b"abcabcabcabc");
        let with = |length: u8| unpack(LZ4, &[&[length], &packed[..]].concat(), &[]);
        assert_eq!(with(12).unwrap(), b"abcabcabcabc");
        assert!(with(11).is_err() && with(13).is_err());
    }
}
