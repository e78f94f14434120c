//! LevelDB, version 1: a manifest that lists tables by level, logs that were not written to tables
//! yet, tables with Snappy or without.
//!
//! The newest version of a key wins. Versions carry sequence numbers, so that tables and logs are
//! merged without regard to their levels.

mod blocks;
mod current;
mod entry;
mod log;
mod manifest;
mod merge;
mod table;

use crate::coding::unread;
use base::{Error, ErrorKind, Result};
use current::current;
use manifest::Manifest;
pub use merge::Each;
use merge::Merge;
use std::fs::File;
use std::path::{Path, PathBuf};
use table::Table;

/// The comparator whose order is that of bytes.
const BYTEWISE: &str = "leveldb.BytewiseComparator";

/// A database of LevelDB, read and never changed.
pub struct LevelDb {
    folder: PathBuf,
    manifest: Manifest,
    /// While it is open, LevelDB cannot open the database.
    _lock: Option<File>,
}

impl LevelDb {
    /// Whether the directory has a database in LevelDB's form, which RocksDB's is too. A database
    /// of Shingle has a file CURRENT of another form.
    pub fn is_at(folder: &Path) -> bool {
        current(folder).is_ok()
    }

    /// Opens the database in `folder`.
    ///
    /// # Errors
    ///
    /// `NotFound`: no database. `Locked`: another program has it open. `Unsupported`: its order is
    /// not that of bytes, or it is RocksDB's. `Corruption`.
    pub fn open(folder: &Path) -> Result<LevelDb> {
        if !LevelDb::is_at(folder) {
            let folder = folder.display();
            let message = format!(
                "{folder} is no database of LevelDB: it has no file CURRENT that names a manifest"
            );
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let lock = lock(&folder.join("LOCK"))?;
        let manifest = Manifest::read(folder)?;
        if manifest.comparator != BYTEWISE {
            let message = format!(
                "the database has keys in the order of {:?}; Shingle orders keys by their bytes, \
                 as {BYTEWISE} does",
                manifest.comparator
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok(LevelDb { folder: folder.to_path_buf(), manifest, _lock: lock })
    }

    /// Bytes of the tables and logs, for progress.
    pub fn bytes(&self) -> Result<u64> {
        let logs = self.logs()?.into_iter();
        let tables = self.manifest.tables().map(|number| table_path(&self.folder, number));
        let length = |path: PathBuf| {
            let found = path.metadata().map_err(|error| unread(&path, error))?;
            Ok(found.len())
        };
        logs.chain(tables).map(length).sum()
    }

    /// Hands on every key with its newest value, in the order of keys.
    ///
    /// # Errors
    ///
    /// Those of `each`, and `Corruption`: then what was handed on is not everything.
    pub fn read<E: From<Error>>(&self, each: Each<'_, E>) -> std::result::Result<(), E> {
        let mut merge = Merge::default();
        for path in self.logs()? {
            merge.add_memory(log::replay(&path)?);
        }
        for number in self.manifest.tables() {
            merge.add_table(Table::open(table_path(&self.folder, number))?)?;
        }
        merge.run(each)
    }

    /// The logs whose entries are in no table, oldest first.
    fn logs(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let listed =
            std::fs::read_dir(&self.folder).map_err(|error| unread(&self.folder, error))?;
        for entry in listed {
            let path = entry.map_err(|error| unread(&self.folder, error))?.path();
            let is_log = path.extension().is_some_and(|extension| extension == "log");
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
            if let (true, Some(number)) = (is_log, number)
                && self.manifest.needs_log(number)
            {
                found.push((number, path));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(_, path)| path).collect())
    }
}

/// A table is called `.ldb`, or `.sst` where an old version wrote it.
fn table_path(folder: &Path, number: u64) -> PathBuf {
    let path = folder.join(format!("{number:06}.ldb"));
    if path.exists() { path } else { folder.join(format!("{number:06}.sst")) }
}

/// Takes LevelDB's lock for reading. `None`: there is no lock file, so no program has it open.
fn lock(path: &Path) -> Result<Option<File>> {
    use rustix::fs::{FlockOperation, fcntl_lock};
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| unread(path, error))?,
    };
    if fcntl_lock(&file, FlockOperation::NonBlockingLockShared).is_err() {
        let message = "another program has the database of LevelDB open; close it first";
        return Err(Error::new(ErrorKind::Locked, message).in_file(path.display().to_string()));
    }
    Ok(Some(file))
}
