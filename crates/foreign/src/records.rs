//! Records of a log or manifest: pieces in blocks of 32 KiB.
//!
//! A piece has its checksum, its length and its type. A record that crosses blocks is a first, any
//! number of middle, and a last piece.

use crate::coding::{Input, damage, masked_sum};
use base::Result;
use std::path::Path;

pub const BLOCK_BYTES: usize = 32 << 10;
pub const HEADER_BYTES: usize = 7;
/// With the number of the log.
pub const HEADER_BYTES_RECYCLED: usize = 11;

pub const FULL: u8 = 1;
pub const FIRST: u8 = 2;
pub const MIDDLE: u8 = 3;
pub const LAST: u8 = 4;

/// The records of a file.
pub struct Records<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Records<'a> {
    /// Those of the file `path`, which has `bytes`. Zeros at its end, and a record that ends early
    /// there, are what a dead writer leaves: they are no records.
    pub fn new(path: &'a Path, bytes: &'a [u8]) -> Records<'a> {
        Records { path, bytes, at: 0 }
    }

    /// The next record and where it begins; `None` at the end.
    pub fn next(&mut self) -> Result<Option<(usize, Vec<u8>)>> {
        let mut record: Option<(usize, Vec<u8>)> = None;
        loop {
            let begin = self.at;
            let Some((kind, piece)) = self.piece()? else {
                // What a dead writer began is no record.
                return Ok(None);
            };
            match (kind, record.take()) {
                (FULL, None) => return Ok(Some((begin, piece.to_vec()))),
                (FIRST, None) => record = Some((begin, piece.to_vec())),
                (MIDDLE, Some((first, mut whole))) => {
                    whole.extend_from_slice(piece);
                    record = Some((first, whole));
                }
                (LAST, Some((first, mut whole))) => {
                    whole.extend_from_slice(piece);
                    return Ok(Some((first, whole)));
                }
                _ => {
                    let message = "a piece of a record does not follow the one before it";
                    return Err(damage(self.path, begin as u64, message));
                }
            }
        }
    }

    fn piece(&mut self) -> Result<Option<(u8, &'a [u8])>> {
        let left = BLOCK_BYTES - self.at % BLOCK_BYTES;
        if left < HEADER_BYTES {
            self.at += left;
        }
        let begin = self.at;
        let rest = self.bytes.get(begin..).unwrap_or_default();
        let Some(header) = Header::of(rest) else { return Ok(None) };
        if (header.sum, header.length, header.kind) == (0, 0, 0)
            && rest.iter().all(|&byte| byte == 0)
        {
            return Ok(None);
        }
        if header.bytes + header.length > BLOCK_BYTES - begin % BLOCK_BYTES {
            let message = "a piece of a record is longer than its block";
            return Err(damage(self.path, begin as u64, message));
        }
        let Some(summed) = header.summed else {
            let is_piece = |header: &Header<'_>| (FULL..=LAST).contains(&header.kind);
            if has_piece_behind(self.bytes, begin + 1, is_piece) {
                return Err(damage(self.path, begin as u64, "a record is damaged"));
            }
            return Ok(None);
        };
        if masked_sum([summed, &[]]) != header.sum {
            return Err(damage(self.path, begin as u64, "the checksum of a record is wrong"));
        }
        self.at = begin + header.bytes + header.length;
        Ok(Some((header.kind, header.content(summed))))
    }
}

/// The header of a piece, and what follows.
pub struct Header<'a> {
    pub sum: u32,
    pub kind: u8,
    pub length: usize,
    /// Bytes of the header.
    pub bytes: usize,
    /// What the checksum is of. `None`: the file, or its block, ends before.
    pub summed: Option<&'a [u8]>,
    /// The number of the log, in a piece of RocksDB's recycled logs.
    pub log: Option<u32>,
}

impl<'a> Header<'a> {
    /// That of the piece at the begin of `rest`. `None`: the bytes end in it.
    pub fn of(rest: &'a [u8]) -> Option<Header<'a>> {
        let mut input = Input::new(rest);
        let sum = input.fixed32()?;
        let (length, kind) = (usize::from(input.fixed16()?), input.byte()?);
        let is_recycled = matches!(kind, 5..=8 | 11 | 131);
        let log = if is_recycled { Some(input.fixed32()?) } else { None };
        let bytes = if is_recycled { HEADER_BYTES_RECYCLED } else { HEADER_BYTES };
        // The kind, the number of the log, and the content.
        let summed = rest.get(HEADER_BYTES - 1..bytes + length);
        Some(Header { sum, kind, length, bytes, summed, log })
    }

    /// What the piece has of its record.
    pub fn content(&self, summed: &'a [u8]) -> &'a [u8] {
        summed.get(self.bytes - (HEADER_BYTES - 1)..).unwrap_or_default()
    }
}

/// Whether a whole piece begins at `at` or behind it that `is_ours`: then what comes before it is
/// no end of a dead writer.
pub fn has_piece_behind(bytes: &[u8], at: usize, is_ours: impl Fn(&Header<'_>) -> bool) -> bool {
    (at..bytes.len()).any(|at| {
        let end = (at - at % BLOCK_BYTES + BLOCK_BYTES).min(bytes.len());
        Header::of(&bytes[at..end]).filter(&is_ours).is_some_and(|header| {
            header.summed.is_some_and(|summed| masked_sum([summed, &[]]) == header.sum)
        })
    })
}
