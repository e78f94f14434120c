//! Removing a database.

use crate::db::check_place;
use crate::memory::path;
use crate::options::leveldb_options_t;
use crate::status::{Place, call};
use shingle::{ErrorKind, Result};
use std::ffi::c_char;
use std::path::Path;

/// Removes a database, and the directory where nothing else is in it. Files of LevelDB stay, with
/// an error. Where there is no database, nothing happens.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_destroy_db(
    _options: &leveldb_options_t,
    name: *const c_char,
    error: Place<'_>,
) {
    call(error, || destroy(path(name)));
}

fn destroy(folder: &Path) -> Result<()> {
    check_place(folder)?;
    match shingle::destroy(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        destroyed => destroyed,
    }
}
