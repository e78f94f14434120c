//! Logs: records in pieces, as in the manifest, with what RocksDB added to LevelDB's form.
//!
//! A log whose file had another log before has the number of its log in the header of each piece;
//! pieces of another number are the end. Records may be compressed, and records may tell about the
//! log instead of having writes.
//!
//! A log may end in a record that is not whole, where its writer died. Then no whole record comes
//! behind it: one that does shows that the file is damaged.

use super::compression::{ZSTD, unpack_record};
use crate::coding::{Input, damage, masked_sum, unsupported};
use crate::records::{
    BLOCK_BYTES, FIRST, FULL, HEADER_BYTES, HEADER_BYTES_RECYCLED, Header, LAST, MIDDLE,
    has_piece_behind,
};
use base::Result;
use std::path::Path;

/// What the recycled kinds of the first four are larger by.
const RECYCLED: u8 = 4;
const SET_COMPRESSION: u8 = 9;
const TIMESTAMP_SIZES: u8 = 10;
const TIMESTAMP_SIZES_RECYCLED: u8 = 11;
/// Kinds with this bit that are not known may be left out.
const CAN_BE_LEFT_OUT: u8 = 1 << 7;

/// The records of a log.
pub struct Wal<'a> {
    path: &'a Path,
    /// The lowest 32 bits of the log's number.
    number: u32,
    bytes: &'a [u8],
    at: usize,
    is_compressed: bool,
    /// A record was given.
    has_begun: bool,
    /// Where a record begins that is not whole.
    torn_at: Option<usize>,
}

/// What is at a place of a log.
enum Piece<'a> {
    Whole {
        kind: u8,
        content: &'a [u8],
    },
    /// Nothing more comes.
    End,
    /// Its writer died here, or the file had another log before.
    Torn,
}

impl<'a> Wal<'a> {
    /// Those of log `number` in the file `path`, which has `bytes`.
    pub fn new(path: &'a Path, number: u64, bytes: &'a [u8]) -> Wal<'a> {
        let (is_compressed, has_begun, torn_at) = (false, false, None);
        Wal { path, number: number as u32, bytes, at: 0, is_compressed, has_begun, torn_at }
    }

    /// Where the log ends in a record that is not whole. Known at the end.
    pub fn torn_at(&self) -> Option<u64> {
        self.torn_at.map(|at| at as u64)
    }

    /// The next record of writes and where it begins; `None` at the end.
    pub fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        let mut record: Option<(usize, Vec<u8>)> = None;
        loop {
            let begin = self.at;
            let (kind, content) = match self.piece()? {
                Piece::Whole { kind, content } => (kind, content),
                Piece::End if record.is_none() => return Ok(None),
                Piece::End | Piece::Torn => {
                    self.torn_at = Some(record.map_or(begin, |(first, _)| first));
                    return Ok(None);
                }
            };
            let kind = if (5..=8).contains(&kind) { kind - RECYCLED } else { kind };
            match (kind, record.take()) {
                (FULL, None) => return self.whole(begin, content.to_vec()).map(Some),
                // Early writers left an empty first piece at the end of a block.
                (FULL, Some((_, before))) if before.is_empty() => {
                    return self.whole(begin, content.to_vec()).map(Some);
                }
                (FIRST, None) => record = Some((begin, content.to_vec())),
                (FIRST, Some((_, before))) if before.is_empty() => {
                    record = Some((begin, content.to_vec()));
                }
                (MIDDLE, Some((first, mut whole))) => {
                    whole.extend_from_slice(content);
                    record = Some((first, whole));
                }
                (LAST, Some((first, mut whole))) => {
                    whole.extend_from_slice(content);
                    return self.whole(first, whole).map(Some);
                }
                (FULL..=LAST, _) => {
                    let message = "a piece of a record does not follow the one before it";
                    return Err(self.damage(begin, message));
                }
                (kind, None) => self.note(begin, kind, content)?,
                (_, Some(_)) => {
                    return Err(self.damage(begin, "a note about the log is inside of a record"));
                }
            }
        }
    }

    fn whole(&mut self, at: usize, record: Vec<u8>) -> Result<(u64, Vec<u8>)> {
        self.has_begun = true;
        if !self.is_compressed {
            return Ok((at as u64, record));
        }
        let record = unpack_record(&record).map_err(|error| {
            self.damage(at, &format!("a record cannot be decompressed: {error}"))
        })?;
        Ok((at as u64, record))
    }

    /// A record about the log.
    fn note(&mut self, at: usize, kind: u8, content: &[u8]) -> Result<()> {
        match kind {
            SET_COMPRESSION => {
                let kind = Input::new(content).fixed32();
                if self.has_begun || self.is_compressed || kind.is_none() {
                    return Err(self.damage(at, "the kind of compression stands in a wrong place"));
                }
                if kind != Some(u32::from(ZSTD)) && kind != Some(0) {
                    let message = format!("the log is compressed by {kind:?}, which is not known");
                    return Err(unsupported(self.path, message).at(at as u64));
                }
                self.is_compressed = kind != Some(0);
                Ok(())
            }
            // Column families that have timestamps are refused by their comparators.
            TIMESTAMP_SIZES | TIMESTAMP_SIZES_RECYCLED => Ok(()),
            kind if kind & CAN_BE_LEFT_OUT != 0 => Ok(()),
            kind => Err(self.damage(at, &format!("{kind} is no kind of record"))),
        }
    }

    fn piece(&mut self) -> Result<Piece<'a>> {
        loop {
            let left = BLOCK_BYTES - self.at % BLOCK_BYTES;
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            if rest.is_empty() || rest.iter().all(|&byte| byte == 0) {
                return Ok(Piece::End);
            }
            let block = &rest[..left.min(rest.len())];
            // Too short for a header: filled with zeros.
            let is_filled = left < HEADER_BYTES_RECYCLED && block.iter().all(|&byte| byte == 0);
            if left < HEADER_BYTES || is_filled {
                self.at += left;
                continue;
            }
            let Some(header) = Header::of(block) else { return self.end(block.len() == left) };
            if header.log.is_some_and(|log| log != self.number) {
                return self.end(false);
            }
            let Some(summed) = header.summed else { return self.end(block.len() == left) };
            if masked_sum([summed, &[]]) != header.sum {
                return self.end(header.log.is_none());
            }
            self.at += header.bytes + header.length;
            return Ok(Piece::Whole { kind: header.kind, content: header.content(summed) });
        }
    }

    /// No piece begins here. It is the end, unless that cannot be or a whole piece follows.
    fn end(&mut self, cannot_be: bool) -> Result<Piece<'a>> {
        // A file comes back only from a log of the same form. What it had may be anything.
        let is_recycled = self.has_begun && self.begins_recycled();
        let is_ours = |header: &Header<'_>| match header.log {
            Some(log) => log == self.number,
            None => !is_recycled && (FULL..=LAST).contains(&header.kind),
        };
        let cannot_be = cannot_be && !is_recycled;
        if cannot_be || has_piece_behind(self.bytes, self.at + 1, is_ours) {
            return Err(self.damage(self.at, "a record is damaged"));
        }
        Ok(Piece::Torn)
    }

    fn begins_recycled(&self) -> bool {
        Header::of(self.bytes).is_some_and(|header| header.log.is_some())
    }

    fn damage(&self, at: usize, message: &str) -> base::Error {
        damage(self.path, at as u64, message)
    }
}
