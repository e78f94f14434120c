//! Versions of keys, as tables and logs have them.

/// What kind of entry a version of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Delete,
    Put,
    /// An operand for a merge operator, which only the program knows.
    Merge,
    /// Several columns with names in one value.
    Columns,
    /// The place of a value in a file of its own.
    Blob,
}

/// A version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    pub key: &'a [u8],
    pub sequence: u64,
    pub kind: Kind,
    /// Empty for a deletion.
    pub value: &'a [u8],
}

/// A deletion of every key from `begin` up to but not including `end`, if it is older.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeDelete {
    pub begin: Vec<u8>,
    pub end: Vec<u8>,
    pub sequence: u64,
}

/// A key as tables have it: the key of the user, the sequence number and the byte for the kind.
pub fn split_key(internal: &[u8]) -> Option<(&[u8], u64, u8)> {
    let (key, trailer) = internal.split_last_chunk::<8>()?;
    let trailer = u64::from_le_bytes(*trailer);
    Some((key, trailer >> 8, trailer as u8))
}

/// What a program does so that values are beside their keys.
pub const WITHOUT_BLOBS: &str = "set enable_blob_files to false, enable_blob_garbage_collection to \
     true and blob_garbage_collection_age_cutoff to 1, and compact the whole database";
