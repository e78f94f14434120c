//! Blocks of a table, checked and decompressed.
//!
//! Behind the restart points a block of entries may have a hash index, and the place of values that
//! are apart from the keys. Flags in the count of restart points say so.

use super::checksum::{Checksum, of_context};
use super::compression::{Refusal, unpack};
use super::footer::{Footer, TRAILER_BYTES};
use crate::block::Block;
use crate::coding::{Input, unsupported};
use crate::file::{Pieces, Place};
use base::{Error, Result};

const HAS_HASH_INDEX: u32 = 1 << 31;
const HAS_EVEN_KEYS: u32 = 1 << 29;
const HAS_VALUES_APART: u32 = 1 << 28;

/// A table's file, with what is needed to read its blocks.
pub struct Blocks {
    pub file: Pieces,
    pub footer: Footer,
    /// What blocks of entries were compressed with besides their own bytes.
    pub dictionary: Vec<u8>,
}

impl Blocks {
    pub fn open(file: Pieces) -> Result<Blocks> {
        let footer = Footer::read(&file)?;
        Ok(Blocks { file, footer, dictionary: Vec::new() })
    }

    /// A block of entries, which may need the dictionary.
    pub fn entries(&self, place: Place) -> Result<Block> {
        self.parsed(place, &self.dictionary)
    }

    /// Any other block that has keys.
    pub fn block(&self, place: Place) -> Result<Block> {
        self.parsed(place, &[])
    }

    fn parsed(&self, place: Place, dictionary: &[u8]) -> Result<Block> {
        self.parsed_of(place, self.content(place, dictionary)?)
    }

    fn parsed_of(&self, place: Place, content: Vec<u8>) -> Result<Block> {
        parse(place.offset, content)
            .ok_or_else(|| self.file.damage(place.offset, "a block has no whole end"))
    }

    /// The block of properties. RocksDB may write the value of the property `late` into the file
    /// when it is done: the checksum is that of zeros in its place.
    pub fn properties(&self, place: Place, late: &[u8]) -> Result<Block> {
        let stored = self.file.read(place, TRAILER_BYTES)?;
        if self.has_sum(place, &stored) {
            return self.block(place);
        }
        let content = stored[..place.bytes as usize].to_vec();
        let value = parse(place.offset, content).and_then(|mut block| {
            while block.advance()? {
                if block.key() == late {
                    return Some(block.value_place());
                }
            }
            None
        });
        let mut zeroed = stored.clone();
        if let Some(bytes) = value.and_then(|value| zeroed.get_mut(value)) {
            bytes.fill(0);
        }
        match self.has_sum(place, &zeroed) && stored[place.bytes as usize] == 0 {
            true => self.parsed_of(place, stored[..place.bytes as usize].to_vec()),
            false => Err(self.wrong_sum(place)),
        }
    }

    /// The bytes of a block.
    pub fn content(&self, place: Place, dictionary: &[u8]) -> Result<Vec<u8>> {
        let stored = self.file.read(place, TRAILER_BYTES)?;
        if !self.has_sum(place, &stored) {
            return Err(self.wrong_sum(place));
        }
        let (content, trailer) = stored.split_at(place.bytes as usize);
        unpack(trailer[0], content, dictionary).map_err(|refusal| match refusal {
            Refusal::Damage(why) => {
                self.file.damage(place.offset, format!("a block cannot be decompressed: {why}"))
            }
            Refusal::Unsupported(why) => unsupported(&self.file.path, why).at(place.offset),
        })
    }

    /// Whether a block with its trailer has the checksum that it should have.
    fn has_sum(&self, place: Place, stored: &[u8]) -> bool {
        let (summed, sum) = stored.split_at(place.bytes as usize + 1);
        let expected = self.footer.checksum.of(summed);
        let expected = expected.wrapping_add(of_context(self.footer.base, place.offset));
        self.footer.checksum == Checksum::None || Input::new(sum).fixed32() == Some(expected)
    }

    fn wrong_sum(&self, place: Place) -> Error {
        self.file.damage(place.offset, "the checksum of a block is wrong")
    }

    /// Goes to the next entry of `block`; `false` at the end.
    pub fn advance(&self, block: &mut Block) -> Result<bool> {
        block.advance().ok_or_else(|| self.damaged(block, "an entry"))
    }

    pub fn damaged(&self, block: &Block, what: &str) -> Error {
        self.file.damage(block.offset, format!("{what} in a block is not whole"))
    }
}

fn parse(offset: u64, content: Vec<u8>) -> Option<Block> {
    let packed = u32::from_le_bytes(*content.last_chunk::<4>()?);
    let mut behind = content.len() - 4;
    let mut values_at = None;
    if packed & HAS_VALUES_APART != 0 {
        behind = behind.checked_sub(4)?;
        values_at = Some(Input::new(content.get(behind..)?).fixed32()? as usize);
    }
    if packed & HAS_HASH_INDEX != 0 {
        behind = behind.checked_sub(2)?;
        let buckets = Input::new(content.get(behind..)?).fixed16()?;
        behind = behind.checked_sub(usize::from(buckets))?;
    }
    let count = packed & !(HAS_HASH_INDEX | HAS_EVEN_KEYS | HAS_VALUES_APART);
    Block::with_parts(offset, content, behind, count as usize, values_at)
}
