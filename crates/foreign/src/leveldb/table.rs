//! Tables: blocks of entries in the order of their keys, and an index of these blocks.
//!
//! | part | content |
//! |---|---|
//! | block | entries; then a byte for the compression and a checksum |
//! | index | a block: for each block of entries a key that is not smaller, and its place |
//! | footer, 48 bytes | places of the metadata and of the index; a magic number |

use super::kind::kind;
use crate::block::Block;
use crate::coding::{Input, masked_sum};
use crate::entry::{Entry, split_key};
use crate::file::{Pieces, Place};
use crate::merge::Cursor;
use crate::snappy;
use base::{Error, Result};
use std::path::PathBuf;

const FOOTER_BYTES: u64 = 48;
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// The byte for the compression, and the checksum.
const TRAILER_BYTES: u64 = 5;

/// A table, read block by block from its begin to its end.
pub struct Table {
    file: Pieces,
    /// The places of the blocks that were not read yet.
    blocks: std::vec::IntoIter<Place>,
    block: Block,
}

fn place(input: &mut Input<'_>) -> Option<Place> {
    Some(Place { offset: input.varint()?, bytes: input.varint()? })
}

impl Table {
    pub fn open(path: PathBuf) -> Result<Table> {
        let file = Pieces::open(path)?;
        let mut table = Table { file, blocks: Vec::new().into_iter(), block: Block::default() };
        let mut index = table.read_block(table.footer()?)?;
        let mut places = Vec::new();
        while table.advance(&mut index)? {
            let place = place(&mut Input::new(index.value()));
            places.push(place.ok_or_else(|| table.damaged(&index, "an entry of the index"))?);
        }
        table.blocks = places.into_iter();
        Ok(table)
    }

    /// The place of the index.
    fn footer(&self) -> Result<Place> {
        let (at, footer) = self.file.end(FOOTER_BYTES)?;
        let mut input = Input::new(&footer);
        let index = place(&mut input).and_then(|_metadata| place(&mut input));
        let magic = Input::new(&footer[40..]).fixed64();
        match index {
            Some(index) if magic == Some(MAGIC) => Ok(index),
            _ => Err(self.file.damage(at, "this is not the end of a table of LevelDB")),
        }
    }

    fn read_block(&self, place: Place) -> Result<Block> {
        let damage = |message: String| self.file.damage(place.offset, message);
        let bytes = self.file.read(place, TRAILER_BYTES)?;
        let (stored, trailer) = bytes.split_at(place.bytes as usize);
        let mut input = Input::new(trailer);
        let (compression, sum) = (input.byte().unwrap_or_default(), input.fixed32());
        if sum != Some(masked_sum([stored, &[compression]])) {
            return Err(damage("the checksum of a block is wrong".into()));
        }
        let content = match compression {
            0 => stored.to_vec(),
            1 => snappy::unpack(stored)
                .map_err(|error| damage(format!("a block cannot be decompressed: {error}")))?,
            other => {
                let message = format!("a block has the compression {other}; only Snappy is known");
                return Err(damage(message));
            }
        };
        Block::plain(place.offset, content).ok_or_else(|| damage("a block is too short".into()))
    }

    fn advance(&self, block: &mut Block) -> Result<bool> {
        block.advance().ok_or_else(|| self.damaged(block, "an entry"))
    }

    fn damaged(&self, block: &Block, what: &str) -> Error {
        self.file.damage(block.offset, format!("{what} in a block is not whole"))
    }
}

impl Cursor for Table {
    fn next(&mut self) -> Result<bool> {
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

    fn entry(&self) -> Result<Entry<'_>> {
        let found = split_key(self.block.key())
            .and_then(|(key, sequence, byte)| Some((key, sequence, kind(byte)?)));
        let (key, sequence, kind) = found.ok_or_else(|| self.damaged(&self.block, "a key"))?;
        Ok(Entry { key, sequence, kind, value: self.block.value() })
    }

    fn damage(&self, message: &str) -> Error {
        self.file.damage(self.block.offset, message)
    }
}
