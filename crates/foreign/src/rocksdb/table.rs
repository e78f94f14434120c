//! Tables of blocks, read from their begin to their end.

use super::blocks::Blocks;
use super::index::Index;
use super::kinds;
use super::manifest::TableFile;
use super::properties::Metadata;
use crate::block::Block;
use crate::coding::unsupported;
use crate::entry::{Entry, RangeDelete, split_key};
use crate::file::Pieces;
use crate::merge::Cursor;
use base::{Error, Result};
use std::path::PathBuf;

/// A table that is being read.
pub struct Table {
    blocks: Blocks,
    index: Index,
    block: Block,
    /// The sequence number that every entry has.
    global: Option<u64>,
    ranges: Vec<RangeDelete>,
}

impl Table {
    /// Opens the table in `path`, of which the manifest says `known`.
    pub fn open(path: PathBuf, known: &TableFile) -> Result<Table> {
        let file = Pieces::open(path)?;
        if file.bytes != known.bytes {
            let message =
                format!("the file does not have the {} bytes of its manifest", known.bytes);
            return Err(file.damage(file.bytes.min(known.bytes), message));
        }
        let mut blocks = Blocks::open(file)?;
        let metadata = Metadata::read(&blocks)?;
        let at = blocks.footer.metadata.offset;
        let Some(form) = metadata.index_form() else {
            return Err(unsupported(&blocks.file.path, "the kind of index is not known").at(at));
        };
        let Some(index) = blocks.footer.index.or_else(|| metadata.place("rocksdb.index")) else {
            return Err(blocks.file.damage(at, "the table has no index"));
        };
        if let Some(place) = metadata.place("rocksdb.compression_dict") {
            blocks.dictionary = blocks.content(place, &[])?;
        }
        let global = metadata
            .global_sequence(known.largest_sequence)
            .map_err(|message| blocks.file.damage(at, message))?;
        let index = Index::read(&blocks, index, form)?;
        let (block, ranges) = (Block::default(), Vec::new());
        let mut table = Table { blocks, index, block, global, ranges };
        if let Some(place) = metadata.place("rocksdb.range_del") {
            table.ranges = table.read_ranges(table.blocks.block(place)?, known)?;
        }
        Ok(table)
    }

    fn read_ranges(&self, mut block: Block, known: &TableFile) -> Result<Vec<RangeDelete>> {
        let mut ranges = Vec::new();
        while self.blocks.advance(&mut block)? {
            let damaged = || self.blocks.damaged(&block, "a deleted range");
            let (begin, sequence, kind) = split_key(block.key()).ok_or_else(damaged)?;
            if kind != kinds::RANGE_DELETE {
                return Err(damaged());
            }
            let (begin, end) = (begin.to_vec(), block.value().to_vec());
            let sequence = self.global.unwrap_or(sequence);
            ranges.extend(known.cut(RangeDelete { begin, end, sequence }));
        }
        Ok(ranges)
    }
}

impl Cursor for Table {
    fn next(&mut self) -> Result<bool> {
        let mut block = std::mem::take(&mut self.block);
        let found = loop {
            if self.blocks.advance(&mut block)? {
                break true;
            }
            let Some(place) = self.index.next(&self.blocks)? else { break false };
            block = self.blocks.entries(place)?;
        };
        self.block = block;
        Ok(found)
    }

    fn entry(&self) -> Result<Entry<'_>> {
        let damaged = || self.blocks.damaged(&self.block, "a key");
        let (key, sequence, byte) = split_key(self.block.key()).ok_or_else(damaged)?;
        if byte == kinds::DELETE_WITH_TIMESTAMP {
            let message = "the table has keys with timestamps of the program, which are not read";
            return Err(unsupported(&self.blocks.file.path, message).at(self.block.offset));
        }
        let (kind, value) = kinds::entry(byte, self.block.value()).ok_or_else(|| {
            let message =
                format!("an entry in a block has the kind {byte:#04x}, which is not known");
            self.blocks.file.damage(self.block.offset, message)
        })?;
        Ok(Entry { key, sequence: self.global.unwrap_or(sequence), kind, value })
    }

    fn take_ranges(&mut self) -> Vec<RangeDelete> {
        std::mem::take(&mut self.ranges)
    }

    fn damage(&self, message: &str) -> Error {
        self.blocks.file.damage(self.block.offset, message)
    }
}
