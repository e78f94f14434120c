//! The last 53 bytes of a table: its kind, its version, and where its metadata is.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | kind of checksum |
//! | 40 | to version 5: places of the metadata and of the index |
//! | | from version 6: a magic number, a checksum of these 53 bytes, the base of checksums, |
//! | | the length of the metadata, zeros |
//! | 4 | version |
//! | 8 | magic number |

use super::checksum::{Checksum, of_context};
use crate::coding::{Input, unsupported};
use crate::file::{Pieces, Place};
use base::Result;

const BYTES: u64 = 53;
const MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
/// Of tables without a version, and of LevelDB's.
const MAGIC_OLD: u64 = 0xdb47_7524_8b80_fb57;
const MAGIC_PLAIN: [u64; 2] = [0x8242_2296_63bf_9564, 0x4f34_18eb_7a8f_13b8];
const MAGIC_CUCKOO: u64 = 0x9267_89d0_c5f1_7873;
/// What stands in place of the metadata's place from version 6 on.
const EXTENDED: [u8; 4] = [0x3e, 0x00, 0x7a, 0x00];
/// The byte for the compression, and the checksum.
pub const TRAILER_BYTES: u64 = 5;

/// What the footer of a table says.
#[derive(Debug)]
pub struct Footer {
    pub checksum: Checksum,
    /// Zero: checksums do not know their place.
    pub base: u32,
    pub metadata: Place,
    /// `None`: the metadata has the place of the index.
    pub index: Option<Place>,
}

/// The place of a block.
pub fn place(input: &mut Input<'_>) -> Option<Place> {
    Some(Place { offset: input.varint()?, bytes: input.varint()? })
}

impl Footer {
    pub fn read(file: &Pieces) -> Result<Footer> {
        let (at, bytes) = file.end(BYTES)?;
        let (version, magic) = version_and_magic(&bytes);
        check_kind(file, at, version, magic)?;
        let Some(checksum) = Checksum::by_byte(bytes[0]) else {
            return Err(file.damage(at, format!("{} is no kind of checksum", bytes[0])));
        };
        let parts = Input::new(&bytes[1..41]);
        let footer = match version {
            ..6 => Footer::with_places(checksum, parts),
            _ => {
                let footer = Footer::with_checksum(checksum, at, parts);
                if !footer.as_ref().is_some_and(|(footer, sum)| footer.has_sum(&bytes, at, *sum)) {
                    return Err(file.damage(at, "the checksum of the end of the table is wrong"));
                }
                footer.map(|(footer, _)| footer)
            }
        };
        footer.ok_or_else(|| file.damage(at, "the end of the table names no metadata"))
    }

    fn with_places(checksum: Checksum, mut parts: Input<'_>) -> Option<Footer> {
        let (metadata, index) = (place(&mut parts)?, place(&mut parts)?);
        Some(Footer { checksum, base: 0, metadata, index: Some(index) })
    }

    /// With the checksum that it has.
    fn with_checksum(checksum: Checksum, at: u64, mut parts: Input<'_>) -> Option<(Footer, u32)> {
        let extended = parts.take(4)?;
        let (sum, base) = (parts.fixed32()?, parts.fixed32()?);
        let bytes = u64::from(parts.fixed32()?);
        let offset = at.checked_sub(bytes.checked_add(TRAILER_BYTES)?)?;
        parts.take(16)?;
        let is_known = extended == EXTENDED && base != 0 && parts.fixed64()? == 0;
        let metadata = Place { offset, bytes };
        is_known.then_some((Footer { checksum, base, metadata, index: None }, sum))
    }

    fn has_sum(&self, bytes: &[u8], at: u64, sum: u32) -> bool {
        let mut without = bytes.to_vec();
        without[5..9].fill(0);
        self.checksum.of(&without).wrapping_add(of_context(self.base, at)) == sum
    }
}

fn version_and_magic(bytes: &[u8]) -> (u32, u64) {
    let mut input = Input::new(&bytes[41..]);
    (input.fixed32().unwrap_or_default(), input.fixed64().unwrap_or_default())
}

/// Refuses what is no table of blocks of a version that is known.
fn check_kind(file: &Pieces, at: u64, version: u32, magic: u64) -> Result<()> {
    let refuse = |what: String| Err(unsupported(&file.path, what));
    let remedy = "compact the database with tables of blocks (BlockBasedTableFactory)";
    match magic {
        MAGIC if (2..=7).contains(&version) => Ok(()),
        MAGIC => refuse(format!(
            "the table has format version {version}; versions 2 to 7 are read: compact the \
             database with one of these (format_version)"
        )),
        MAGIC_OLD => refuse(
            "the table has the format before version 2: compact the database with a RocksDB from \
             4.6 to 10"
                .into(),
        ),
        _ if MAGIC_PLAIN.contains(&magic) => {
            refuse(format!("the file is a plain table, which is not read: {remedy}"))
        }
        MAGIC_CUCKOO => refuse(format!("the file is a cuckoo table, which is not read: {remedy}")),
        _ => Err(file.damage(at, "this is not the end of a table of RocksDB")),
    }
}
