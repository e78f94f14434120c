//! Records of a log or manifest: pieces in blocks of 32 KiB.
//!
//! A piece has its checksum, its length and its type. A record that crosses blocks is a first, any
//! number of middle, and a last piece.

use crate::coding::{Input, damage, masked_sum};
use base::Result;
use std::path::Path;

const BLOCK_BYTES: usize = 32 << 10;
const HEADER_BYTES: usize = 7;

const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

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
        let Some(rest) = self.bytes.get(begin..).filter(|rest| rest.len() >= HEADER_BYTES) else {
            return Ok(None);
        };
        let mut input = Input::new(rest);
        let (Some(sum), Some(length), Some(kind)) = (input.fixed32(), input.take(2), input.byte())
        else {
            return Ok(None);
        };
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        if (sum, length, kind) == (0, 0, 0) && self.is_zero_from(begin) {
            return Ok(None);
        }
        if HEADER_BYTES + length > BLOCK_BYTES - begin % BLOCK_BYTES {
            let message = "a piece of a record is longer than its block";
            return Err(damage(self.path, begin as u64, message));
        }
        let Some(piece) = input.take(length) else { return Ok(None) };
        if masked_sum([&[kind], piece]) != sum {
            return Err(damage(self.path, begin as u64, "the checksum of a record is wrong"));
        }
        self.at = begin + HEADER_BYTES + length;
        Ok(Some((kind, piece)))
    }

    fn is_zero_from(&self, begin: usize) -> bool {
        self.bytes[begin..].iter().all(|&byte| byte == 0)
    }
}
