//! Databases in directories of the operating system. All else in the engine takes any store.

use super::db::Db;
use crate::notes;
use crate::options::Options;
use base::{Error, ErrorKind, Ledger, Result};
use media::os::{OsOptions, OsStore, mappable_bytes};
use media::{FileStore, PairStore};
use std::path::Path;
use std::sync::Arc;

impl Options {
    /// Opens the database in the directory `path`.
    ///
    /// # Errors
    ///
    /// - [`NotFound`](crate::ErrorKind::NotFound): there is no database, and none is to be created.
    /// - [`AlreadyExists`](crate::ErrorKind::AlreadyExists): there is a database, and
    ///   [`Options::create_new`] asks for a new one.
    /// - [`Locked`](crate::ErrorKind::Locked): a process has the database open; the message names
    ///   it.
    /// - [`Corruption`](crate::ErrorKind::Corruption): the manifest or a log is damaged, or a file
    ///   is missing.
    /// - [`Incompatible`](crate::ErrorKind::Incompatible): the files are of another store, or of a
    ///   newer version.
    /// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an option is out of bounds; a
    ///   merge operator is unknown; the directory has no database, and files that are not
    ///   Shingle's.
    /// - [`Io`](crate::ErrorKind::Io), [`NoSpace`](crate::ErrorKind::NoSpace): the system refused.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Db> {
        let store = self.directory(path, Arc::new(Ledger::default()))?;
        self.open_store(Arc::new(store))
    }

    /// Opens the database in the directory `path` with the directory `cold` as its cold store.
    ///
    /// Layouts with a cold log move values that do not change to the cold store, which may be on
    /// another medium. From the first such value on, the database opens only with that cold store;
    /// a checkpoint has everything in one place. A database may get a cold store at any opening:
    /// unless it only reads, the opening creates the directory.
    ///
    /// # Errors
    ///
    /// As for [`Options::open`]; also [`InvalidArgument`](crate::ErrorKind::InvalidArgument) where
    /// `cold` is a database or the cold store of another one.
    pub fn open_with_cold(self, path: impl AsRef<Path>, cold: impl AsRef<Path>) -> Result<Db> {
        let ledger = Arc::new(Ledger::default());
        let first = self.directory(path, ledger.clone())?;
        let cold = self.cold_directory(cold, ledger)?;
        self.open_store(Arc::new(PairStore::new(Arc::new(first), Arc::new(cold))?))
    }

    /// The directory `path` as [`Options::open`] takes it: for stores that are made of several.
    ///
    /// # Errors
    ///
    /// As for [`Options::open`], but for what only the content of the files shows.
    pub fn directory(&self, path: impl AsRef<Path>, ledger: Arc<Ledger>) -> Result<OsStore> {
        let maps = self.expert.map_tables.unwrap_or(false);
        let os = OsOptions {
            create: self.creates(),
            read_only: self.read_only,
            direct_background: self.direct_io,
            map_bytes_max: if maps { mappable_bytes() } else { 0 },
            open_files_max: self.expert.open_files_max,
            ..OsOptions::default()
        };
        let creates = os.create;
        let store = OsStore::open(path.as_ref(), ledger, os)?;
        if creates {
            check_unused(&store)?;
        }
        Ok(store)
    }

    /// The directory `path` as [`Options::open_with_cold`] takes that of the cold store. Creates a
    /// missing directory, unless the opening only reads.
    ///
    /// # Errors
    ///
    /// As for [`Options::directory`].
    pub fn cold_directory(&self, path: impl AsRef<Path>, ledger: Arc<Ledger>) -> Result<OsStore> {
        self.clone().create(true).directory(path, ledger)
    }
}

impl Db {
    /// Writes a second database with the current contents to the directory `target`, which is
    /// empty or is created. Links files where the file system allows, and copies them otherwise.
    /// Keyspaces without a log are in it as of their last flush.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](crate::ErrorKind::AlreadyExists) where `target` is not empty. Also as for
    /// all writes, see [`Keyspace`](crate::Keyspace).
    pub fn checkpoint(&self, target: impl AsRef<Path>) -> Result<()> {
        let _inside = self.engine().enter()?;
        // The checkpoint's own files are not bytes of this database.
        let ledger = Arc::new(Ledger::default());
        let copy = OsStore::open(target.as_ref(), ledger, OsOptions::default())?;
        if let Some(foreign) = copy.foreign_file(&notes::ALL)? {
            let message = format!(
                "{} holds `{foreign}`, which is not Shingle's: choose an empty directory",
                copy.describe()
            );
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        self.checkpoint_to(&copy)
    }
}

/// Removes the database in the directory `path`, and the directory where nothing else is in it.
/// Files that are not Shingle's stay. No process can open the database meanwhile. A cold store is a
/// directory of its own, and stays.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("old");
/// # shingle::Options::new().open(&path)?.close()?;
/// shingle::destroy(&path)?;
/// assert!(!path.exists());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`NotFound`](crate::ErrorKind::NotFound) where there is no database;
/// [`Locked`](crate::ErrorKind::Locked) where a process has it open;
/// [`Incompatible`](crate::ErrorKind::Incompatible) where it is that of another program;
/// [`Io`](crate::ErrorKind::Io) where the system refuses, and then calling again goes on.
pub fn destroy(path: impl AsRef<Path>) -> Result<()> {
    let options = OsOptions { create: false, ..OsOptions::default() };
    let store = OsStore::open(path.as_ref(), Arc::new(Ledger::default()), options)?;
    if !store.has_database()? {
        let message = format!("there is no database in {}", store.describe());
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    match store.root() {
        // A damaged root is no reason to keep the database; that of another program is.
        Err(error) if error.kind() != ErrorKind::Corruption => Err(error),
        _ => store.destroy(&notes::ALL),
    }
}

/// Checks that a new database would go into a directory that holds nothing else. Does nothing where
/// a database exists.
fn check_unused(store: &OsStore) -> Result<()> {
    if !matches!(store.root(), Ok(None)) {
        return Ok(());
    }
    match store.foreign_file(&notes::ALL)? {
        None => Ok(()),
        Some(foreign) => Err(Error::invalid(format!(
            "{} has no database, but holds `{foreign}`, which is not Shingle's: choose an empty \
             or new directory",
            store.describe()
        ))),
    }
}
