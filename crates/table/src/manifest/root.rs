//! The root: the few bytes that say which manifest is the database.

use base::checksum::Place;
use base::coding::Reader;
use base::{DatabaseId, Error, ErrorKind, FileId, Result};

/// Bytes of a root.
pub const ROOT_BYTES: usize = 48;

const MAGIC: [u8; 8] = *b"SHINROOT";
const VERSION: u32 = 1;
const PLACE_KIND: u8 = 0x30;
const CHECKSUM_AT: usize = ROOT_BYTES - 8;

/// Where a database begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// The database.
    pub database: DatabaseId,
    /// The file of its manifest.
    pub manifest: FileId,
    /// Bytes of the manifest that were durable before the root named it.
    pub manifest_bytes_min: u64,
}

/// The root as bytes.
pub fn encode_root(root: &Root) -> [u8; ROOT_BYTES] {
    let mut out = Vec::with_capacity(ROOT_BYTES);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    for number in [root.database.0, root.manifest.0, root.manifest_bytes_min] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    let checksum = place(root).hash64(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.try_into().expect("the fields add up to a root")
}

/// The root that `bytes` are. `Incompatible` for what is no root of ours, or one of a newer
/// version; `Corruption` for a damaged one, or one whose bytes are zeros.
pub fn decode_root(bytes: &[u8]) -> Result<Root> {
    let damaged = || Error::new(ErrorKind::Corruption, "the root of the database is damaged");
    // A file system may lose the content of a file and not its length.
    if bytes.iter().all(|&byte| byte == 0) {
        return Err(damaged());
    }
    if !bytes.starts_with(&MAGIC) {
        return Err(Error::new(
            ErrorKind::Incompatible,
            "the root is not one of a Shingle database",
        ));
    }
    let (version, root, checksum) = parse(bytes).ok_or_else(damaged)?;
    if place(&root).hash64(&bytes[..CHECKSUM_AT]) != checksum {
        return Err(damaged());
    }
    if version != VERSION {
        let message =
            format!("root of format version {version}; this program knows version {VERSION}");
        return Err(Error::new(ErrorKind::Incompatible, message));
    }
    Ok(root)
}

/// The version, fields and checksum of a root of the right length.
fn parse(bytes: &[u8]) -> Option<(u32, Root, u64)> {
    let mut reader = Reader::new(bytes);
    reader.take(MAGIC.len())?;
    let version = reader.u32()?;
    reader.take(4)?;
    let root = Root {
        database: DatabaseId(reader.u64()?),
        manifest: FileId(reader.u64()?),
        manifest_bytes_min: reader.u64()?,
    };
    let checksum = reader.u64()?;
    reader.is_empty().then_some((version, root, checksum))
}

fn place(root: &Root) -> Place {
    Place { database: root.database, file: root.manifest, offset: 0, kind: PLACE_KIND }
}
