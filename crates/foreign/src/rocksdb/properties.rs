//! What a table says of itself: blocks of metadata by their names, and properties.

use super::blocks::Blocks;
use super::footer::place;
use crate::coding::Input;
use crate::file::Place;
use base::Result;
use std::collections::BTreeMap;

/// Of a table whose entries all count as written at once, when it came into the database.
const EXTERNAL_VERSION: &[u8] = b"rocksdb.external_sst_file.version";
const GLOBAL_SEQUENCE: &[u8] = b"rocksdb.external_sst_file.global_seqno";
const INDEX_KIND: &[u8] = b"rocksdb.block.based.table.index.type";
const IS_INDEX_SHORT: &[u8] = b"rocksdb.index.value.is.delta.encoded";

/// How the index of a table is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexForm {
    /// The index is an index of indexes.
    pub is_partitioned: bool,
    /// Each entry has the first key of its block too.
    pub has_first_keys: bool,
    /// Places have no length in front, and may be given by the place before.
    pub is_short: bool,
}

/// The blocks of metadata.
pub struct Metadata {
    named: BTreeMap<Vec<u8>, Place>,
    properties: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Metadata {
    pub fn read(blocks: &Blocks) -> Result<Metadata> {
        let mut list = blocks.block(blocks.footer.metadata)?;
        let mut metadata = Metadata { named: BTreeMap::new(), properties: BTreeMap::new() };
        while blocks.advance(&mut list)? {
            let place = place(&mut Input::new(list.value()))
                .ok_or_else(|| blocks.damaged(&list, "the place of metadata"))?;
            metadata.named.insert(list.key().to_vec(), place);
        }
        let name = ["rocksdb.properties", "rocksdb.stats"];
        let Some(place) = name.iter().find_map(|name| metadata.place(name)) else {
            let offset = blocks.footer.metadata.offset;
            return Err(blocks.file.damage(offset, "the table has no properties"));
        };
        let mut list = blocks.properties(place, GLOBAL_SEQUENCE)?;
        while blocks.advance(&mut list)? {
            metadata.properties.insert(list.key().to_vec(), list.value().to_vec());
        }
        Ok(metadata)
    }

    /// The place of a block of metadata.
    pub fn place(&self, name: &str) -> Option<Place> {
        self.named.get(name.as_bytes()).copied()
    }

    fn number32(&self, name: &[u8]) -> Option<u32> {
        Input::new(self.properties.get(name)?).fixed32()
    }

    /// `None`: the kind of index is not known.
    pub fn index_form(&self) -> Option<IndexForm> {
        let kind =
            if self.properties.contains_key(INDEX_KIND) { self.number32(INDEX_KIND)? } else { 0 };
        let is_short = self.properties.get(IS_INDEX_SHORT).map(|value| Input::new(value).varint());
        Some(IndexForm {
            is_partitioned: kind == 2,
            has_first_keys: match kind {
                // By binary search, by hash, partitioned.
                0..=2 => false,
                3 => true,
                _ => return None,
            },
            is_short: match is_short {
                None => false,
                Some(number) => number? != 0,
            },
        })
    }

    /// The sequence number that every entry has, if there is one: that of the table's own
    /// properties, or where they have none, the `largest` of the manifest.
    pub fn global_sequence(
        &self,
        largest: Option<u64>,
    ) -> std::result::Result<Option<u64>, String> {
        let own = self.properties.get(GLOBAL_SEQUENCE);
        match (self.properties.get(EXTERNAL_VERSION).map(|value| Input::new(value).fixed32()), own)
        {
            (None, None) | (Some(Some(1)), None) => Ok(None),
            (Some(Some(2)), own) => {
                let own = own.map_or(Some(0), |value| Input::new(value).fixed64());
                match (own, largest) {
                    (None, _) => Err("its sequence number is not whole".into()),
                    (Some(0), Some(largest)) => Ok(Some(largest)),
                    (Some(own), Some(largest)) if own != largest => {
                        Err(format!("its sequence number is {own}, and {largest} in the manifest"))
                    }
                    (own, _) => Ok(own),
                }
            }
            _ => Err("it came from outside in a form that is not known".into()),
        }
    }
}
