//! Where the database of a benchmark lies: it is opened there, and removed from there.

use super::temporary;
use crate::args::Device;
use lab::shingle_store::ShingleStore;
use lab::{Store, StoreFactory};
use media::FileStore;
use media::mem::MemStore;
use shingle::{Db, Error, Ledger, Options, Result};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// What the database lies on.
pub enum Place {
    /// A directory that the user named.
    Named(PathBuf),
    /// A directory for this run only.
    Temporary(PathBuf),
    /// Memory, kept between openings.
    Memory(Mutex<Arc<MemStore>>),
}

impl Place {
    /// Where the flags say.
    pub fn new(device: Device, named: Option<PathBuf>) -> Place {
        match (device, named) {
            (Device::Memory, _) => Place::Memory(Mutex::new(empty_memory())),
            (Device::Files, Some(path)) => Place::Named(path),
            (Device::Files, None) => Place::Temporary(temporary()),
        }
    }
}

fn empty_memory() -> Arc<MemStore> {
    Arc::new(MemStore::new(Arc::new(Ledger::default())))
}

/// Opens and removes the database of a run.
pub struct Factory {
    options: Options,
    place: Place,
    disable_wal: bool,
}

impl Factory {
    /// For a run under these options.
    pub fn new(options: Options, place: Place, disable_wal: bool) -> Factory {
        Factory { options, place, disable_wal }
    }

    /// The database is for this run only.
    pub fn is_temporary(&self) -> bool {
        matches!(self.place, Place::Temporary(_))
    }
}

impl StoreFactory for Factory {
    fn open(&self) -> Result<Box<dyn Store>> {
        let options = self.options.clone();
        let db = match &self.place {
            Place::Named(path) | Place::Temporary(path) => options.open(path)?,
            Place::Memory(store) => {
                let store: Arc<dyn FileStore> =
                    store.lock().unwrap_or_else(PoisonError::into_inner).clone();
                options.open_store(store)?
            }
        };
        Ok(Box::new(ShingleStore::new(db, self.disable_wal)?))
    }

    fn destroy(&self) -> Result<()> {
        let path = match &self.place {
            Place::Named(path) | Place::Temporary(path) => path,
            Place::Memory(store) => {
                *store.lock().unwrap_or_else(PoisonError::into_inner) = empty_memory();
                return Ok(());
            }
        };
        let Ok(mut entries) = std::fs::read_dir(path) else { return Ok(()) };
        if entries.next().is_none() {
            return Ok(());
        }
        // Only what opens as a database is removed; a mistyped path costs nobody a directory.
        let opened = Options::new().create(false).read_only(true).open(path);
        opened.and_then(Db::close).map_err(|error| {
            let message = format!(
                "{} does not open as a database and is not removed: {}",
                path.display(),
                error.message()
            );
            Error::new(error.kind(), message)
        })?;
        std::fs::remove_dir_all(path)
            .map_err(|error| Error::io(format!("remove {}", path.display()), error))
    }
}
