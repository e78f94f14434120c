//! Blocks of entries in the order of their keys, as LevelDB lays them out, and RocksDB after it.
//!
//! | part | content |
//! |---|---|
//! | entries | how much of the key is that of the entry before, its own bytes, the value |
//! | restart points | where entries with whole keys are |
//! | their count, 4 bytes | |
//!
//! RocksDB may keep the values separated, behind all keys. Then an entry at a restart point has the
//! place of its value, and the values of the entries after it follow that value.

use crate::coding::Input;
use std::ops::Range;

/// A block and how far it was read.
#[derive(Default)]
pub struct Block {
    /// Where it is in its file.
    pub offset: u64,
    content: Vec<u8>,
    /// Where its entries end, or its keys where values are separated.
    end: usize,
    separated: Option<Separated>,
    at: usize,
    key: Vec<u8>,
    value: Range<usize>,
}

/// Values behind the keys.
struct Separated {
    values: Range<usize>,
    restarts: Vec<usize>,
}

/// The count of restart points without the flags that RocksDB keeps beside it.
const COUNT_MAX: usize = (1 << 28) - 1;

impl Block {
    /// A block that has nothing behind its restart points but their count.
    pub fn plain(offset: u64, content: Vec<u8>) -> Option<Block> {
        let count = u32::from_le_bytes(*content.last_chunk::<4>()?) as usize;
        let behind = content.len() - 4;
        let (end, _) = restarts(&content, behind, count)?;
        Some(Block { offset, content, end, ..Block::default() })
    }

    /// A block of RocksDB: with `count` restart points that end at `behind`, and its values at
    /// `values_at` if they are separated.
    pub fn with_parts(
        offset: u64,
        content: Vec<u8>,
        behind: usize,
        count: usize,
        values_at: Option<usize>,
    ) -> Option<Block> {
        let (end, restarts) = restarts(&content, behind, count)?;
        let mut block = Block { offset, content, end, ..Block::default() };
        if let Some(begin) = values_at {
            block.separated = Some(Separated { values: begin..end, restarts });
            block.end = if begin <= end { begin } else { return None };
            block.value = begin..begin;
        }
        Some(block)
    }

    pub fn key(&self) -> &[u8] {
        &self.key
    }

    pub fn value(&self) -> &[u8] {
        self.content.get(self.value_place()).unwrap_or_default()
    }

    /// Where the value is in the block.
    pub fn value_place(&self) -> Range<usize> {
        self.value.clone()
    }

    /// Goes to the next entry. `false`: at the end; `None`: the entry is not whole.
    pub fn advance(&mut self) -> Option<bool> {
        self.advance_with(|input| input.varint_usize(), |_, _| None)
    }

    /// Goes to the next entry of a block whose values have no length: `length` finds where a value
    /// ends that begins the bytes it gets. It is told whether the key shares bytes with the key
    /// before.
    pub fn advance_by(
        &mut self,
        length: impl FnOnce(&[u8], bool) -> Option<usize>,
    ) -> Option<bool> {
        self.advance_with(|_| Some(0), length)
    }

    fn advance_with(
        &mut self,
        before: impl FnOnce(&mut Input<'_>) -> Option<usize>,
        after: impl FnOnce(&[u8], bool) -> Option<usize>,
    ) -> Option<bool> {
        if self.at >= self.end {
            return Some(false);
        }
        let mut input = Input::new(self.content.get(self.at..self.end)?);
        let (shared, own) = (input.varint_usize()?, input.varint_usize()?);
        let mut value_bytes = before(&mut input)?;
        let mut value_at = None;
        if let Some(separated) = &self.separated {
            let is_restart = separated.restarts.binary_search(&self.at).is_ok();
            value_at = Some(match is_restart {
                true => separated.values.start.checked_add(input.varint_usize()?)?,
                false => self.value.end,
            });
        }
        let own = input.take(own)?;
        if shared > self.key.len() {
            return None;
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(own);
        let inline = self.end - input.len();
        let limit = self.separated.as_ref().map_or(self.end, |separated| separated.values.end);
        let begin = value_at.unwrap_or(inline);
        let rest = self.content.get(begin..limit)?;
        if let Some(bytes) = after(rest, shared > 0) {
            value_bytes = bytes;
        }
        rest.get(..value_bytes)?;
        self.value = begin..begin + value_bytes;
        self.at = if self.separated.is_some() { inline } else { self.value.end };
        Some(true)
    }
}

/// Where the restart points begin, and what they say.
fn restarts(content: &[u8], behind: usize, count: usize) -> Option<(usize, Vec<usize>)> {
    if count > COUNT_MAX {
        return None;
    }
    let begin = behind.checked_sub(count.checked_mul(4)?)?;
    let mut input = Input::new(content.get(begin..behind)?);
    let mut points = Vec::with_capacity(count);
    while let Some(point) = input.fixed32() {
        points.push(point as usize);
    }
    Some((begin, points))
}
