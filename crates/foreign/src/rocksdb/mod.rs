//! RocksDB, from 4.6 to 11: a manifest that lists tables by column family and level, logs that were
//! not written to tables yet, tables of blocks of format versions 2 to 7.
//!
//! The newest version of a key wins, unless a newer range that was deleted has it. What cannot be
//! read without the program that wrote it is refused by name: operands of merge operators, wide
//! columns, blob files, timestamps, other orders of keys (docs/adr/0229).

mod batch;
mod blocks;
mod checksum;
mod compression;
mod edit;
mod footer;
mod index;
mod kinds;
mod manifest;
mod options;
mod properties;
mod recovery;
#[cfg(test)]
mod scenarios;
mod table;
mod wal;

use crate::coding::unread;
use crate::current::current;
use crate::lock::lock;
use crate::logs::logs;
pub use crate::merge::Each;
use crate::merge::{Closed, Cursor, Memory, Merge};
use base::{Error, ErrorKind, Result};
use manifest::{Family, Manifest};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use table::Table;

/// A database of RocksDB, read and never changed.
#[derive(Debug)]
pub struct RocksDb {
    folder: PathBuf,
    manifest: Manifest,
    /// What the logs have, by column family.
    memories: BTreeMap<u64, Memory>,
    logs: Vec<(u64, PathBuf)>,
    /// While it is open, RocksDB cannot open the database.
    _lock: Option<File>,
}

impl RocksDb {
    /// Whether the directory has a database that RocksDB wrote. LevelDB's has the same files, but
    /// no options, no identity, and fewer kinds of fields in its manifest.
    pub fn is_at(folder: &Path) -> bool {
        let is_named = || folder.join("IDENTITY").exists() || options::newest(folder).is_some();
        current(folder).is_ok() && (is_named() || manifest::is_of_rocksdb(folder))
    }

    /// Opens the database in `folder`, and reads its logs.
    ///
    /// # Errors
    ///
    /// `NotFound`: no database. `Locked`: another program has it open. `Unsupported`: it has what
    /// cannot be read. `Corruption`.
    pub fn open(folder: &Path) -> Result<RocksDb> {
        if current(folder).is_err() {
            let folder = folder.display();
            let message = format!(
                "{folder} is no database of RocksDB: it has no file CURRENT that names a manifest"
            );
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let lock = lock(folder, "RocksDB")?;
        if !RocksDb::is_at(folder) {
            let message = format!(
                "{} is a database of LevelDB: import it with --format leveldb",
                folder.display()
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let manifest = Manifest::read(folder)?;
        manifest.check()?;
        options::check(folder)?;
        let logs = logs(folder, |number| manifest.needs_log(number))?;
        manifest.check_logs(&logs)?;
        let memories = recovery::recover(&manifest, &logs)?;
        Ok(RocksDb { folder: folder.to_path_buf(), manifest, memories, logs, _lock: lock })
    }

    /// The names of the column families, in the order of their creation.
    pub fn families(&self) -> impl Iterator<Item = &str> {
        self.manifest.families.values().map(|family| family.name.as_str())
    }

    /// Bytes of the tables and logs, for progress.
    pub fn bytes(&self) -> Result<u64> {
        let tables = self.manifest.families.values().flat_map(Family::tables);
        let length = |(_, path): &(u64, PathBuf)| {
            let found = path.metadata().map_err(|error| unread(path, error))?;
            Ok(found.len())
        };
        let logs: u64 = self.logs.iter().map(length).sum::<Result<_>>()?;
        Ok(logs + tables.map(|table| table.bytes).sum::<u64>())
    }

    /// Hands on every key of the column family `name` with its newest value, in the order of keys.
    ///
    /// # Errors
    ///
    /// `NotFound`: there is no such column family. Those of `each`. `Unsupported` and `Corruption`:
    /// then what was handed on is not everything.
    pub fn read<E: From<Error>>(
        &self,
        name: &str,
        each: Each<'_, E>,
    ) -> std::result::Result<(), E> {
        let found = self.manifest.families.iter().find(|(_, family)| family.name == name);
        let Some((id, family)) = found else {
            let message = format!("there is no column family {name:?}");
            return Err(Error::new(ErrorKind::NotFound, message).into());
        };
        let mut merge = Merge::new(self.memories.get(id).cloned().unwrap_or_default());
        for known in family.tables() {
            let path = table_path(&self.folder, known.number);
            let open = move || -> Result<Box<dyn Cursor>> {
                Ok(Box::new(Table::open(path.clone(), known)?))
            };
            merge.add_table(Closed { smallest: known.smallest.clone(), open: Box::new(open) });
        }
        merge.run(each)
    }
}

/// A table is called `.sst`, or `.ldb` where LevelDB wrote it.
fn table_path(folder: &Path, number: u64) -> PathBuf {
    let path = folder.join(format!("{number:06}.ldb"));
    if path.exists() { path } else { folder.join(format!("{number:06}.sst")) }
}
