//! Tables: blocks of entries in the order of their keys, and an index of these blocks.
//!
//! | part | content |
//! |---|---|
//! | block | entries, restart points, their count; then a byte for the compression and a checksum |
//! | index | a block: for each block of entries a key that is not smaller, and its place |
//! | footer, 48 bytes | places of the metadata and of the index; a magic number |

use super::entry::{Kind, split_key};
use crate::coding::{Input, damage, masked_sum, unread};
use base::Result;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

const FOOTER_BYTES: u64 = 48;
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// The byte for the compression, and the checksum.
const TRAILER_BYTES: usize = 5;
/// No block of LevelDB is larger: what says so is damage.
const BLOCK_BYTES_MAX: u64 = 2 << 30;

/// A table, read block by block from its begin to its end.
pub struct Table {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// The places of the blocks that were not read yet.
    blocks: std::vec::IntoIter<Place>,
    block: Block,
}

/// Where a block is.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    bytes: u64,
}

/// A block and how far it was read.
#[derive(Default)]
struct Block {
    place: Option<Place>,
    content: Vec<u8>,
    /// Where its entries end.
    end: usize,
    at: usize,
    key: Vec<u8>,
    value: std::ops::Range<usize>,
}

/// An entry of a table.
pub struct Entry<'a> {
    pub key: &'a [u8],
    pub sequence: u64,
    pub value: Option<&'a [u8]>,
}

impl Place {
    fn of(input: &mut Input<'_>) -> Option<Place> {
        Some(Place { offset: input.varint()?, bytes: input.varint()? })
    }
}

impl Table {
    pub fn open(path: PathBuf) -> Result<Table> {
        let file = File::open(&path).map_err(|error| unread(&path, error))?;
        let bytes = file.metadata().map_err(|error| unread(&path, error))?.len();
        let mut table =
            Table { path, file, bytes, blocks: Vec::new().into_iter(), block: Block::default() };
        let index = table.footer()?;
        let mut index = table.read_block(index)?;
        let mut places = Vec::new();
        while table.advance(&mut index)? {
            let mut value = Input::new(&index.content[index.value.clone()]);
            let place = Place::of(&mut value);
            places.push(place.ok_or_else(|| table.damaged(&index, "an entry of the index"))?);
        }
        table.blocks = places.into_iter();
        Ok(table)
    }

    /// Goes to the next entry; `false` at the end.
    pub fn next(&mut self) -> Result<bool> {
        let mut block = std::mem::take(&mut self.block);
        let found = loop {
            if self.advance(&mut block)? {
                break true;
            }
            let Some(place) = self.blocks.next() else { break false };
            block = self.read_block(place)?;
        };
        self.block = block;
        Ok(found)
    }

    /// The entry that it is at.
    pub fn entry(&self) -> Result<Entry<'_>> {
        let block = &self.block;
        let (key, sequence, kind) =
            split_key(&block.key).ok_or_else(|| self.damaged(block, "a key"))?;
        let value = &block.content[block.value.clone()];
        Ok(Entry { key, sequence, value: (kind == Kind::Put).then_some(value) })
    }

    /// The place of the index.
    fn footer(&self) -> Result<Place> {
        let at = self.bytes.saturating_sub(FOOTER_BYTES);
        let mut footer = [0; FOOTER_BYTES as usize];
        if self.bytes < FOOTER_BYTES {
            return Err(damage(&self.path, self.bytes, "the file is too short for a table"));
        }
        self.file.read_exact_at(&mut footer, at).map_err(|error| unread(&self.path, error))?;
        let mut input = Input::new(&footer);
        let index = Place::of(&mut input).and_then(|_metadata| Place::of(&mut input));
        let magic = Input::new(&footer[40..]).fixed64();
        match index {
            Some(index) if magic == Some(MAGIC) => Ok(index),
            _ => Err(damage(&self.path, at, "this is not the end of a table of LevelDB")),
        }
    }

    fn read_block(&self, place: Place) -> Result<Block> {
        let whole = place.bytes.saturating_add(TRAILER_BYTES as u64);
        if whole > BLOCK_BYTES_MAX || place.offset.saturating_add(whole) > self.bytes {
            return Err(damage(
                &self.path,
                place.offset,
                "a block ends behind the end of the file",
            ));
        }
        let mut bytes = vec![0; whole as usize];
        self.file
            .read_exact_at(&mut bytes, place.offset)
            .map_err(|error| unread(&self.path, error))?;
        let (stored, trailer) = bytes.split_at(place.bytes as usize);
        let mut input = Input::new(trailer);
        let (compression, sum) = (input.byte().unwrap_or_default(), input.fixed32());
        if sum != Some(masked_sum([stored, &[compression]])) {
            return Err(damage(&self.path, place.offset, "the checksum of a block is wrong"));
        }
        let content = match compression {
            0 => stored.to_vec(),
            1 => snap::raw::Decoder::new().decompress_vec(stored).map_err(|error| {
                damage(&self.path, place.offset, format!("a block cannot be decompressed: {error}"))
            })?,
            other => {
                let message = format!("a block has the compression {other}; only Snappy is known");
                return Err(damage(&self.path, place.offset, message));
            }
        };
        let restarts = content.last_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
        let end = restarts.and_then(|count| {
            content.len().checked_sub(4)?.checked_sub((count as usize).checked_mul(4)?)
        });
        let end = end.ok_or_else(|| damage(&self.path, place.offset, "a block is too short"))?;
        Ok(Block { place: Some(place), content, end, ..Block::default() })
    }

    fn advance(&self, block: &mut Block) -> Result<bool> {
        if block.at >= block.end {
            return Ok(false);
        }
        block.advance().ok_or_else(|| self.damaged(block, "an entry"))?;
        Ok(true)
    }

    fn damaged(&self, block: &Block, what: &str) -> base::Error {
        let offset = block.place.map_or(0, |place| place.offset);
        damage(&self.path, offset, format!("{what} in a block is not whole"))
    }
}

impl Block {
    /// Goes to the next entry: what its key shares with the one before, the rest, and the value.
    fn advance(&mut self) -> Option<()> {
        let mut input = Input::new(self.content.get(self.at..self.end)?);
        let (shared, own) = (input.varint_usize()?, input.varint_usize()?);
        let value_bytes = input.varint_usize()?;
        let own = input.take(own)?;
        if shared > self.key.len() {
            return None;
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(own);
        input.take(value_bytes)?;
        let end = self.end - input.len();
        self.value = end - value_bytes..end;
        self.at = self.value.end;
        Some(())
    }
}
