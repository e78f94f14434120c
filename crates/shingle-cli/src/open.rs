//! Paths that are devices: a regular file or a disk instead of a directory.

use crate::failure::{Failure, Outcome};
use direct::{DirectOptions, DirectStore};
use media::block::BlockDevice;
use media::os::{FileDevice, FileDeviceOptions, OsOptions, OsStore};
use media::{FileStore, Geometry};
use shingle::{Db, ErrorKind, Ledger, Options, Result};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
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
    let options = DirectOptions { read_only, ..DirectOptions::default() };
    DirectStore::open(device(path, read_only)?, Arc::new(Ledger::default()), options)
}

/// The database at `path`: in a directory, or on a device.
pub fn database(path: &Path, options: Options, read_only: bool) -> Result<Db> {
    let options = options.read_only(read_only);
    if is_device(path) {
        return options.open_store(Arc::new(store(path, read_only)?));
    }
    options.open(path)
}

/// The files of the database at `path`, to be read.
pub fn files(path: &Path) -> Result<Arc<dyn FileStore>> {
    if is_device(path) {
        return Ok(Arc::new(store(path, true)?));
    }
    let options = OsOptions { create: false, read_only: true, ..OsOptions::default() };
    Ok(Arc::new(OsStore::open(path, Arc::new(Ledger::default()), options)?))
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
