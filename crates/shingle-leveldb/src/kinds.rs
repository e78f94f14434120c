//! What programs hold of an open database, and what keys it can have.

use shingle::{Db, Snapshot};

/// The longest key that Shingle has.
const KEY_BYTES_MAX: usize = 65_535;

/// An open database.
#[allow(non_camel_case_types)]
pub struct leveldb_t(pub Db);

/// A snapshot.
#[allow(non_camel_case_types)]
pub struct leveldb_snapshot_t(pub Snapshot);

/// Whether no database can have such a key: LevelDB has no bound, Shingle has.
pub fn is_too_long(key: &[u8]) -> bool {
    key.len() > KEY_BYTES_MAX
}
