//! How databases are opened, and paths that are devices: a regular file or a disk instead of a
//! directory.

use crate::failure::{Failure, Outcome};
use crate::units;
use direct::{DirectOptions, DirectStore};
use foreign::Store;
use media::block::BlockDevice;
use media::os::{FileDevice, FileDeviceOptions, OsOptions, OsStore};
use media::{FileStore, Geometry, PairStore};
use shingle::{Db, Error, ErrorKind, Follower, Ledger, Options, Result};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whether `path` is a file or a disk, and so no directory of a database.
pub fn is_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() || found.file_type().is_block_device())
}

/// The device at `path`.
pub fn device(path: &Path, read_only: bool) -> Result<Arc<FileDevice>> {
    let options = FileDeviceOptions { read_only, ..FileDeviceOptions::default() };
    FileDevice::open(path, options).map(Arc::new)
}

/// The store on the device at `path`.
pub fn store(path: &Path, read_only: bool) -> Result<DirectStore> {
    store_in(path, read_only, Arc::new(Ledger::default()))
}

fn store_in(path: &Path, read_only: bool, ledger: Arc<Ledger>) -> Result<DirectStore> {
    let options = DirectOptions { read_only, ..DirectOptions::default() };
    DirectStore::open(device(path, read_only)?, ledger, options)
}

/// What a command means to do with the database that it opens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Look only; the database must exist.
    Read,
    /// Change it; the database must exist.
    Change,
    /// Change it; a database that does not exist is created.
    Create,
}

/// What an error of opening `path` means at a shell.
pub fn explain(path: &Path, error: Error) -> Failure {
    let is_device = is_device(path);
    let help = match error.kind() {
        ErrorKind::NotFound if is_device => {
            let help = "`put`, `import` and `keyspace create` make a database on it";
            let message = format!("{} is formatted, and has no database yet", path.display());
            return Failure::Absent { message, help: help.into() };
        }
        ErrorKind::NotFound => {
            let help =
                "look at --db; `put`, `import`, `ingest` and `keyspace create` make a new one";
            let message = format!("there is no database in {}", path.display());
            return Failure::Absent { message, help: help.into() };
        }
        ErrorKind::Incompatible if is_device => {
            "look at --db, which names a directory or a formatted file or disk; \
             `shingle device format PATH` makes one"
        }
        ErrorKind::Incompatible if error.message().contains("LevelDB") => {
            let format = foreign::store_at(path).unwrap_or(Store::LevelDb).format();
            let help = format!(
                "import it into a new database: `shingle --db NEW import --format {format} {}`; \
                 nothing was changed",
                path.display()
            );
            return Failure::Opening { error, help };
        }
        ErrorKind::Io if path.exists() && !path.is_dir() && !is_device => {
            "look at --db, which names a directory or a formatted file or disk"
        }
        ErrorKind::NoSpace if log_bytes(path) > 0 => {
            let help = format!(
                "opening for writing puts the records of the logs into tables: free up to {} on \
                 the medium; until then, commands that only read work",
                units::bytes(log_bytes(path))
            );
            return Failure::Opening { error, help };
        }
        ErrorKind::InvalidArgument => {
            "look at --db, --cold-store and --option; nothing was changed"
        }
        ErrorKind::Locked => {
            "wait until that process closes the database, or end the process; commands that \
             only read a directory work beside it"
        }
        _ => return Failure::Engine(error),
    };
    Failure::Opening { error, help: help.into() }
}

/// Bytes of the logs in a directory; 0 where it has none, or is a device.
fn log_bytes(path: &Path) -> u64 {
    let files = path.read_dir().into_iter().flatten().flatten();
    let logs = files.filter(|file| file.path().extension().is_some_and(|end| end == "wal"));
    logs.filter_map(|log| log.metadata().ok()).map(|log| log.len()).sum()
}

/// Where a database lies.
#[derive(Clone, Debug)]
pub struct Place {
    /// A directory, file or disk.
    pub path: PathBuf,
    /// The same for its cold store.
    pub cold: Option<PathBuf>,
}

impl Place {
    /// Without a cold store.
    pub fn at(path: &Path) -> Place {
        Place { path: path.to_path_buf(), cold: None }
    }

    /// The database there.
    pub fn database(&self, options: Options, read_only: bool) -> Result<Db> {
        let options = options.read_only(read_only);
        let store = self.stores(&|path, is_cold, ledger| match is_device(path) {
            true => Ok(Arc::new(store_in(path, read_only, ledger)?)),
            false if is_cold => Ok(Arc::new(options.cold_directory(path, ledger)?)),
            false => Ok(Arc::new(options.directory(path, ledger)?)),
        })?;
        options.open_store(store)
    }

    /// A reader of the database there beside a process that has it open.
    pub fn follower(&self, options: Options) -> Result<Follower> {
        let store = self
            .stores(&|path, _, ledger| Ok(Arc::new(options.directory_to_follow(path, ledger)?)))?;
        options.follow_store(store)
    }

    /// Whether it can be read beside a writer: it lies in directories.
    pub fn can_be_followed(&self) -> bool {
        !is_device(&self.path) && self.cold.as_deref().is_none_or(|cold| !is_device(cold))
    }

    /// Its files, to be read.
    pub fn files(&self) -> Result<Arc<dyn FileStore>> {
        self.stores(&|path, _, ledger| {
            if is_device(path) {
                return Ok(Arc::new(store_in(path, true, ledger)?));
            }
            let options = OsOptions { create: false, read_only: true, ..OsOptions::default() };
            Ok(Arc::new(OsStore::open(path, ledger, options)?))
        })
    }

    fn stores(&self, open: OpenStore<'_>) -> Result<Arc<dyn FileStore>> {
        let ledger = Arc::new(Ledger::default());
        let first = open(&self.path, false, ledger.clone())?;
        let Some(path) = &self.cold else { return Ok(first) };
        let cold = open(path, true, ledger).map_err(|error| missing_cold(path, error))?;
        Ok(Arc::new(PairStore::new(first, cold)?))
    }
}

/// Opens the store at a path; it is a cold store, or not.
type OpenStore<'a> = &'a dyn Fn(&Path, bool, Arc<Ledger>) -> Result<Arc<dyn FileStore>>;

/// What is missing is not the database.
fn missing_cold(path: &Path, error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => {
            let path = path.display();
            let message = format!("there is no cold store in {path}: name that of this database");
            Error::invalid(message)
        }
        _ => error,
    }
}

/// What the device at `path` is like, and the store on it, if there is one.
pub fn look(path: &Path) -> Outcome<(Geometry, Option<DirectStore>)> {
    if !is_device(path) {
        return Err(Failure::said(
            format!("{} is neither a file nor a disk", path.display()),
            "`shingle device format PATH --size BYTES` makes a file",
        ));
    }
    match store(path, true) {
        Ok(store) => Ok((store.layout().geometry, Some(store))),
        Err(error) if error.kind() == ErrorKind::Incompatible => {
            Ok((device(path, true)?.geometry(), None))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_that_has_no_space_for_the_logs_says_how_much_it_needs() {
        let home = tempfile::tempdir().unwrap();
        let full = || explain(home.path(), Error::new(ErrorKind::NoSpace, "full"));
        assert!(matches!(full(), Failure::Engine(_)), "there are no logs");
        for (name, bytes) in [("000003.wal", 1_500_000), ("000005.wal", 500_000), ("LOG", 9)] {
            std::fs::write(home.path().join(name), vec![0; bytes]).unwrap();
        }
        let Failure::Opening { help, .. } = full() else { panic!("no help") };
        assert!(help.contains("free up to 2.00 MB on the medium"), "{help}");
    }
}
