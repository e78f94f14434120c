//! Which store wrote the files of a directory.

use crate::leveldb::LevelDb;
use crate::rocksdb::RocksDb;
use std::path::Path;

/// A store whose databases are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// LevelDB.
    LevelDb,
    /// RocksDB.
    RocksDb,
}

impl Store {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Store::LevelDb => "LevelDB",
            Store::RocksDb => "RocksDB",
        }
    }

    /// The name of its format, as `shingle import --format` takes it.
    pub fn format(self) -> &'static str {
        match self {
            Store::LevelDb => "leveldb",
            Store::RocksDb => "rocksdb",
        }
    }
}

/// The store that wrote the database in `folder`; `None`: there is no database of these. A database
/// of Shingle has a file CURRENT of another form.
pub fn store_at(folder: &Path) -> Option<Store> {
    match (RocksDb::is_at(folder), LevelDb::is_at(folder)) {
        (true, _) => Some(Store::RocksDb),
        (_, true) => Some(Store::LevelDb),
        _ => None,
    }
}
