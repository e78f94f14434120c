//! The file LOCK, which a program holds while it has a database open.

use crate::coding::unread;
use base::{Error, ErrorKind, Result};
use rustix::fs::{FlockOperation, fcntl_lock};
use std::fs::File;
use std::path::Path;

/// Takes the lock of a database of `store` for reading. While the file is open, the store's own
/// programs cannot open the database. `None`: there is no lock file, so no program has it open.
pub fn lock(folder: &Path, store: &str) -> Result<Option<File>> {
    let path = folder.join("LOCK");
    let file = match File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| unread(&path, error))?,
    };
    if fcntl_lock(&file, FlockOperation::NonBlockingLockShared).is_err() {
        let message = format!("another program has the database of {store} open; close it first");
        return Err(Error::new(ErrorKind::Locked, message).in_file(path.display().to_string()));
    }
    Ok(Some(file))
}
