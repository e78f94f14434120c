//! Saving what can be read of a damaged database.

use crate::db::check_place;
use crate::memory::path;
use crate::options::leveldb_options_t;
use crate::status::{Place, call};
use shingle::{Error, ErrorKind, FileStore, Ledger, OsStore, Result};
use std::ffi::c_char;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Saves what can be read of a damaged database. The damaged one stays beside it, with `.damaged`
/// behind its name.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_repair_db(
    options: &leveldb_options_t,
    name: *const c_char,
    error: Place<'_>,
) {
    call(error, || repair(options, path(name)));
}

fn repair(options: &leveldb_options_t, folder: &Path) -> Result<()> {
    options.check_order()?;
    check_place(folder)?;
    // Names beside the directory, whatever path leads to it.
    let failed = |error| Error::io("find", error).in_file(folder.display().to_string());
    let folder = &folder.canonicalize().map_err(failed)?;
    let store = Arc::new(directory(folder)?);
    if !store.has_database()? {
        let message = format!("there is no database in {}", folder.display());
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    match store.root() {
        Err(error) if error.kind() == ErrorKind::Incompatible => return Err(error),
        _ => {}
    }
    // No other process opens either database until the saved one has the name.
    store.claim()?;
    match shingle::check_store(store.clone(), &mut |_| {}) {
        Ok(report) if report.is_clean() => return Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::Incompatible | ErrorKind::NotFound) => {
            return Err(error);
        }
        _ => {}
    }
    let (saved, damaged) = (beside(folder, "saved"), beside(folder, "damaged"));
    replace(options, &store, &saved, &damaged).inspect_err(|_| {
        // Part of a database is of no use. The first error is the one to report.
        let _ = shingle::destroy(&saved);
    })
}

fn replace(
    options: &leveldb_options_t,
    store: &Arc<OsStore>,
    saved: &Path,
    damaged: &Path,
) -> Result<()> {
    shingle::salvage_store(store.clone(), saved, options.engine(), &mut |_| {})?;
    let new = directory(saved)?;
    new.claim()?;
    store.replace_by(&new, damaged)
}

/// A directory that is there.
fn directory(folder: &Path) -> Result<OsStore> {
    shingle::Options::new().create(false).directory(folder, Arc::<Ledger>::default())
}

/// A path that is free, from earlier repairs too.
fn beside(folder: &Path, what: &str) -> PathBuf {
    let named = |number: u32| {
        let mut name = folder.as_os_str().to_owned();
        name.push(match number {
            1 => format!(".{what}"),
            _ => format!(".{what}-{number}"),
        });
        PathBuf::from(name)
    };
    let mut number = 1;
    while named(number).symlink_metadata().is_ok() {
        number += 1;
    }
    named(number)
}
