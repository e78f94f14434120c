//! Entries of a run whose footer or index cannot be read: its data blocks, found by their
//! checksums.
//!
//! A block says nowhere how long it is, but its checksum stands behind it and covers its place; so
//! from where a block must begin, the first length at which the checksum is right is the block, and
//! the next one begins behind it. Where none is found, every byte may be the beginning of the next
//! one, for some distance. What is found must also be a block, and go on in key order. To try every
//! length from every byte would take minutes for a gap; most bytes are told from the first ones of
//! a block at a look.
//!
//! Lost are the blocks that are damaged themselves and, behind a gap, those longer than
//! `HUNTED_BYTES_MAX`; and the range tombstones, which are no data.

use crate::block::Block;
use crate::cursor::Cursor;
use crate::format::{FOOTER_BYTES, Footer};
use crate::frame;
use crate::piece::{self, BlockKind};
use crate::run::Extent;
use base::coding::varint;
use base::key::{compare_internal, split_internal_key};
use base::{Cause, ErrorKind, Result};
use media::ReadFile;
use std::ops::Range;
use std::sync::Arc;

/// The longest block that is found where one must begin.
const BLOCK_BYTES_MAX: u64 = 64 << 20;
/// The longest block that is found where one may begin.
const HUNTED_BYTES_MAX: u64 = 16 << 10;
/// How far behind a damaged block the next one is looked for.
const HUNT_BYTES_MAX: u64 = 256 << 10;
/// Bytes read at once.
const READ_BYTES: u64 = 1 << 20;
/// Bytes read at once around a place that the medium cannot read.
const PART_BYTES: usize = 4 << 10;

/// Walks the entries of the blocks that are found.
pub struct Rescue {
    file: Arc<dyn ReadFile>,
    extent: Extent,
    cause: Cause,
    /// Where the next block must begin.
    next: u64,
    /// Where there is no data any more.
    end: u64,
    window_start: u64,
    window: Vec<u8>,
    block: Cursor,
    last_key: Vec<u8>,
    lost: Vec<Range<u64>>,
}

impl Rescue {
    /// Begins before the first entry of what lies at `extent`, run or not.
    pub fn new(file: Arc<dyn ReadFile>, extent: Extent, cause: Cause) -> Result<Rescue> {
        let end = extent.offset.saturating_add(extent.bytes).min(file.len()?);
        let mut rescue = Rescue {
            file,
            extent,
            cause,
            next: extent.offset,
            end,
            window_start: 0,
            window: Vec::new(),
            block: Cursor::new(Block::nothing()),
            last_key: Vec::new(),
            lost: Vec::new(),
        };
        if let Some(at) = end.checked_sub(FOOTER_BYTES) {
            let footer = Footer::decode(rescue.bytes(at, FOOTER_BYTES)?, end, extent.place());
            if let Ok(footer) = footer.as_ref()
                && (extent.offset..=end).contains(&footer.data_end)
            {
                rescue.end = footer.data_end;
            }
        }
        Ok(rescue)
    }

    /// Goes to the next entry. `false`: there is none.
    pub fn advance(&mut self) -> Result<bool> {
        if self.block.valid() && self.block.next().is_ok() && self.stands() {
            return Ok(true);
        }
        while let Some(block) = self.next_block()? {
            self.block.set_block(Arc::new(block));
            if self.block.first().is_ok() && self.stands() {
                return Ok(true);
            }
        }
        self.block.invalidate();
        Ok(false)
    }

    /// The block's cursor stands on an entry with an internal key, which is kept.
    fn stands(&mut self) -> bool {
        let is_entry = self.block.valid() && split_internal_key(self.block.key()).is_some();
        if is_entry {
            self.last_key.clear();
            self.last_key.extend_from_slice(self.block.key());
        }
        is_entry
    }

    /// The internal key of the entry.
    pub fn key(&self) -> &[u8] {
        &self.last_key
    }

    /// Its value.
    pub fn value(&self) -> &[u8] {
        self.block.value()
    }

    /// Parts of the file passed so far that hold no block that could be read. What lies behind the
    /// data of a run without a footer is among them.
    pub fn lost(&self) -> &[Range<u64>] {
        &self.lost
    }

    fn next_block(&mut self) -> Result<Option<Block>> {
        if self.next >= self.end {
            return Ok(None);
        }
        let expected = self.next;
        for bytes_max in [HUNTED_BYTES_MAX, BLOCK_BYTES_MAX] {
            if let Some((block, end)) = self.block_at(expected, bytes_max)? {
                self.next = end;
                return Ok(Some(block));
            }
        }
        for at in expected + 1..self.end.min(expected + HUNT_BYTES_MAX) {
            if !self.may_begin_at(at)? {
                continue;
            }
            if let Some((block, end)) = self.block_at(at, HUNTED_BYTES_MAX)? {
                self.lost.push(expected..at);
                self.next = end;
                return Ok(Some(block));
            }
        }
        self.lost.push(expected..self.end);
        self.next = self.end;
        Ok(None)
    }

    fn may_begin_at(&mut self, at: u64) -> Result<bool> {
        let last_key = std::mem::take(&mut self.last_key);
        let begins = self.bytes(at, HUNTED_BYTES_MAX).map(|bytes| may_begin(bytes, &last_key));
        self.last_key = last_key;
        begins
    }

    /// The block that begins at `at`, and where it ends.
    fn block_at(&mut self, at: u64, bytes_max: u64) -> Result<Option<(Block, u64)>> {
        let (place, sequence) = (self.extent.place(), self.extent.sequence);
        let bytes = self.bytes(at, bytes_max)?;
        let sum_bytes = BlockKind::Data.trailer_bytes() - 1;
        let found = place.at(at, piece::DATA).crc32c_ends(bytes, frame::METHOD_MAX).find_map(|n| {
            let stored = bytes.get(..n + sum_bytes)?;
            let raw = frame::open_slice(BlockKind::Data, stored, place, at).ok()?;
            let mut block = Block::new(raw).ok()?;
            if let Some(sequence) = sequence {
                block.stamp(sequence).ok()?;
            }
            Some((block, at + stored.len() as u64))
        });
        let Some((block, end)) = found else { return Ok(None) };
        let block = Arc::new(block);
        let mut cursor = Cursor::new(block.clone());
        let follows = cursor.first().is_ok()
            && cursor.valid()
            && split_internal_key(cursor.key()).is_some()
            && (self.last_key.is_empty() || compare_internal(&self.last_key, cursor.key()).is_lt());
        drop(cursor);
        Ok(Arc::into_inner(block).filter(|_| follows).map(|block| (block, end)))
    }

    /// The bytes from `at` on, `bytes_max` of them or as many as there are before the end.
    fn bytes(&mut self, at: u64, bytes_max: u64) -> Result<&[u8]> {
        let end = at.saturating_add(bytes_max).min(self.end);
        let window_end = self.window_start + self.window.len() as u64;
        if at < self.window_start || end > window_end {
            let read_end = at.saturating_add(READ_BYTES).max(end).min(self.end.max(end));
            self.window.resize((read_end - at) as usize, 0);
            self.window_start = at;
            match self.file.read_at(at, &mut self.window, self.cause) {
                Err(error) if error.kind() == ErrorKind::Io && !error.lacks_descriptors() => {
                    self.read_parts()
                }
                Err(error) => {
                    self.window.clear();
                    return Err(error);
                }
                Ok(()) => {}
            }
        }
        let (from, to) = (at - self.window_start, end - self.window_start);
        Ok(self.window.get(from as usize..to as usize).unwrap_or_default())
    }

    /// Reads the window by small parts. What the medium cannot read becomes zeros, which are no
    /// block.
    fn read_parts(&mut self) {
        for (number, part) in self.window.chunks_mut(PART_BYTES).enumerate() {
            let at = self.window_start + (number * PART_BYTES) as u64;
            if self.file.read_at(at, part, self.cause).is_err() {
                part.fill(0);
            }
        }
    }
}

/// The first bytes that a data block of each method of compression has may stand here, and its
/// first key, where it can be read, comes after `last_key` (an internal key, or nothing).
fn may_begin(bytes: &[u8], last_key: &[u8]) -> bool {
    may_begin_raw(bytes, last_key) || may_begin_compressed(bytes)
}

/// The first entry shares nothing with one before it.
fn may_begin_raw(bytes: &[u8], last_key: &[u8]) -> bool {
    let Some(bytes) = bytes.strip_prefix(&[0]) else { return false };
    let Some((key_bytes, at)) = varint(bytes) else { return false };
    let Some((_, more)) = varint(&bytes[at..]) else { return false };
    let rest = &bytes[at + more..];
    let key_bytes = usize::try_from(key_bytes).unwrap_or(usize::MAX);
    let (key, last) = (rest.get(..key_bytes), split_internal_key(last_key));
    match (key, last) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(key), Some((last, _))) => key >= last,
    }
}

/// Its length, then a frame of Zstandard, or a sequence of LZ4 that begins with a zero: the first
/// byte of a block, which nothing before it can have been.
fn may_begin_compressed(bytes: &[u8]) -> bool {
    const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let Some((raw_bytes, at)) = varint(bytes) else { return false };
    if raw_bytes == 0 || raw_bytes > frame::RAW_BYTES_MAX as u64 {
        return false;
    }
    let packed = &bytes[at..];
    if packed.starts_with(&ZSTD_MAGIC) {
        return true;
    }
    let Some((&token, literals)) = packed.split_first() else { return false };
    let extended = if token >> 4 == 15 {
        literals.iter().position(|&byte| byte != u8::MAX).map_or(literals.len(), |at| at + 1)
    } else {
        0
    };
    token >> 4 > 0 && literals.get(extended) == Some(&0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_builder::BlockBuilder;
    use crate::frame::Sealer;
    use crate::options::Compression;
    use crate::place::TablePlace;
    use base::key::{EntryKind, push_internal_key};
    use base::{DatabaseId, FileId};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const PLACE: TablePlace = TablePlace { database: DatabaseId(1), file: FileId(2) };

    fn frame_of(entries: &BTreeMap<Vec<u8>, Vec<u8>>, compression: Compression) -> Vec<u8> {
        let mut builder = BlockBuilder::new(4, true);
        for (key, value) in entries {
            let mut internal = Vec::new();
            push_internal_key(&mut internal, key, 7, EntryKind::Put);
            builder.add(0, &internal, value, 1);
        }
        let mut out = Vec::new();
        let mut sealer = Sealer::new(compression).unwrap();
        sealer.seal(BlockKind::Data, builder.finish(), PLACE, 9, &mut out);
        out
    }

    proptest! {
        #[test]
        fn no_block_is_passed_over(
            entries in prop::collection::btree_map(
                prop::collection::vec(any::<u8>(), 0..300),
                prop::collection::vec(0u8..4, 0..300),
                1..20,
            ),
            method in 0..3usize,
        ) {
            let method = [Compression::None, Compression::Lz4, Compression::Zstd(1)][method];
            let frame = frame_of(&entries, method);
            prop_assert!(may_begin(&frame, &[]));
            let mut before = Vec::new();
            let first = entries.keys().next().map_or(&[][..], Vec::as_slice);
            push_internal_key(&mut before, first, 8, EntryKind::Put);
            prop_assert!(may_begin(&frame, &before));
        }
    }

    #[test]
    fn hardly_any_byte_of_a_gap_may_begin_a_block() {
        let mut last = Vec::new();
        push_internal_key(&mut last, b"key00001", 8, EntryKind::Put);
        let mut noise = vec![0; 64 << 10];
        base::random::Random::new(3).fill(&mut noise);
        let text = b"the quick brown fox jumps over the lazy dog ".repeat(1000);
        for gap in [noise, text, vec![0; 64 << 10], vec![0xff; 64 << 10]] {
            let tried = (0..gap.len()).filter(|&at| may_begin(&gap[at..], &last)).count();
            assert!(tried * 50 < gap.len(), "{tried} of {}", gap.len());
        }
    }
}
