//! Records: how a value lies in a segment, with its key, so that garbage collection knows whose it
//! is without the tree (HashKV 3.2).
//!
//! A record is a checksum (CRC-32C with its place, over the rest), then varint sequence number,
//! varint key bytes, varint length word, key, value. The length word is the value's bytes plus one;
//! 0 makes the record a *tag*: the key's value is cold and lies elsewhere (HashKV 3.4).
//!
//! Invariant: what [`decode`] accepts was written at this place of this file of this database.

use base::checksum::Place;
use base::coding::{Reader, push_varint, varint_bytes};
use base::key::{KEY_BYTES_MAX, SEQUENCE_MAX, SequenceNumber, VALUE_BYTES_MAX};
use base::{DatabaseId, Error, FileId, Result};
use media::FileName;

/// The kind of piece in the checksum's place.
const RECORD_PIECE: u8 = 32;

const CHECKSUM_BYTES: usize = 4;

/// The longest header: checksum and three varints.
pub const HEADER_BYTES_MAX: usize = CHECKSUM_BYTES + 8 + 3 + 5;

/// What a segment's records are checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentPlace {
    /// The database.
    pub database: DatabaseId,
    /// The segment.
    pub file: FileId,
}

/// A record, borrowed from where it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The sequence number that the value was written at.
    pub sequence: SequenceNumber,
    /// The user key.
    pub key: &'a [u8],
    /// The value; `None` for a tag.
    pub value: Option<&'a [u8]>,
    /// Bytes of the record.
    pub bytes: usize,
}

/// Bytes of the record of this key and value.
pub fn record_bytes(sequence: SequenceNumber, key: &[u8], value: Option<&[u8]>) -> usize {
    let word = value.map_or(0, |value| value.len() as u64 + 1);
    let varints = varint_bytes(sequence) + varint_bytes(key.len() as u64) + varint_bytes(word);
    CHECKSUM_BYTES + varints + key.len() + value.map_or(0, <[u8]>::len)
}

/// Appends a record to `out`, which will stand at `offset` of its segment.
pub fn push_record(
    out: &mut Vec<u8>,
    place: SegmentPlace,
    offset: u64,
    sequence: SequenceNumber,
    key: &[u8],
    value: Option<&[u8]>,
) {
    let start = out.len();
    out.extend_from_slice(&[0; CHECKSUM_BYTES]);
    push_varint(out, sequence);
    push_varint(out, key.len() as u64);
    push_varint(out, value.map_or(0, |value| value.len() as u64 + 1));
    out.extend_from_slice(key);
    out.extend_from_slice(value.unwrap_or_default());
    let body = start + CHECKSUM_BYTES;
    let sum = checksum(place, offset, &out[body..]);
    out[start..body].copy_from_slice(&sum.to_le_bytes());
}

fn checksum(place: SegmentPlace, offset: u64, body: &[u8]) -> u32 {
    let SegmentPlace { database, file } = place;
    Place { database, file, offset, kind: RECORD_PIECE }.crc32c(body)
}

/// The lengths that a record's first bytes state.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    sequence: SequenceNumber,
    header: usize,
    key: usize,
    value: Option<usize>,
}

fn lengths(bytes: &[u8]) -> Option<Lengths> {
    let mut reader = Reader::new(bytes);
    reader.take(CHECKSUM_BYTES)?;
    let sequence = reader.varint().filter(|&sequence| sequence <= SEQUENCE_MAX)?;
    let key = reader.varint().filter(|&key| key <= KEY_BYTES_MAX as u64)? as usize;
    let word = reader.varint().filter(|&word| word <= VALUE_BYTES_MAX as u64 + 1)?;
    let value = word.checked_sub(1).map(|value| value as usize);
    Some(Lengths { sequence, header: bytes.len() - reader.rest().len(), key, value })
}

/// Bytes of the record that begins with `bytes`, as far as its header says; `None` when the header
/// is not whole or states lengths that no record has.
pub fn stated_bytes(bytes: &[u8]) -> Option<usize> {
    lengths(bytes).map(|l| l.header + l.key + l.value.unwrap_or(0))
}

/// The record at the front of `bytes`, which stood at `offset`; verified. `Corruption` that names
/// file and offset otherwise.
pub fn decode(bytes: &[u8], place: SegmentPlace, offset: u64) -> Result<Record<'_>> {
    let damaged = |what: String| {
        let file = FileName::value(place.file).to_string();
        Error::corruption(file, offset, format!("a value record {what}"))
    };
    let lengths = lengths(bytes).ok_or_else(|| damaged("without a whole header".to_string()))?;
    let total = lengths.header + lengths.key + lengths.value.unwrap_or(0);
    let Some(whole) = bytes.get(..total) else {
        return Err(damaged(format!("of {total} bytes, of which {} are there", bytes.len())));
    };
    let body = &whole[CHECKSUM_BYTES..];
    let stored = whole.first_chunk().copied().map_or(0, u32::from_le_bytes);
    let found = checksum(place, offset, body);
    if stored != found {
        let sums = format!("whose checksum is {found:08x} and should be {stored:08x}");
        return Err(damaged(sums));
    }
    let (key, value) = whole[lengths.header..].split_at(lengths.key);
    Ok(Record {
        sequence: lengths.sequence,
        key,
        value: lengths.value.map(|_| value),
        bytes: total,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: SegmentPlace = SegmentPlace { database: DatabaseId(5), file: FileId(9) };

    fn encoded(offset: u64, key: &[u8], value: Option<&[u8]>) -> Vec<u8> {
        let mut out = Vec::new();
        push_record(&mut out, PLACE, offset, 77, key, value);
        assert_eq!(out.len(), record_bytes(77, key, value));
        out
    }

    #[test]
    fn records_come_back_the_empty_key_and_value_and_the_tag_too() {
        for key in [&b""[..], b"k", &[0; 300], &[255; 200]] {
            for value in [None, Some(&b""[..]), Some(&b"\0v"[..]), Some(&[7; 5000][..])] {
                let bytes = encoded(40, key, value);
                let record = decode(&bytes, PLACE, 40).unwrap();
                assert_eq!((record.sequence, record.key, record.value), (77, key, value));
                assert_eq!(record.bytes, bytes.len());
                assert_eq!(stated_bytes(&bytes), Some(bytes.len()));
            }
        }
    }

    #[test]
    fn every_flipped_bit_and_every_other_place_is_found() {
        let bytes = encoded(40, b"key", Some(b"value"));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&damaged, PLACE, 40).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length], PLACE, 40).is_err(), "{length} bytes");
        }
        assert!(decode(&bytes, PLACE, 41).is_err());
        assert!(decode(&bytes, SegmentPlace { file: FileId(8), ..PLACE }, 40).is_err());
        let error = decode(&bytes, PLACE, 41).unwrap_err().to_string();
        assert!(error.contains("000009.value") && error.contains("checksum"), "{error}");
    }
}
