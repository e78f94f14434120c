//! Saving what can be read of a damaged database.

use crate::db::refuse_foreign;
use crate::memory::path;
use crate::options::leveldb_options_t;
use crate::status::{Place, call};
use shingle::{Error, Result};
use std::ffi::c_char;
use std::path::{Path, PathBuf};

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
    refuse_foreign(folder)?;
    if shingle::check_closed(folder, &mut |_| {}).is_ok_and(|report| report.is_clean()) {
        return Ok(());
    }
    let (saved, damaged) = (beside(folder, "saved"), beside(folder, "damaged"));
    shingle::salvage_with(folder, &saved, options.engine(), &mut |_| {})?;
    rename(folder, &damaged)?;
    rename(&saved, folder)
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    let failed = |error| Error::io("rename", error).in_file(from.display().to_string());
    std::fs::rename(from, to).map_err(failed)
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
