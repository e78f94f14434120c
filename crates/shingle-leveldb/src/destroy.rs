//! Removing a database.

use crate::db::{has_database, refuse_foreign};
use crate::memory::path;
use crate::options::leveldb_options_t;
use crate::status::{Place, call};
use shingle::{Error, FileStore, Ledger, Result};
use std::ffi::c_char;
use std::path::Path;
use std::sync::Arc;

/// The file that makes a directory a database. It goes last, so that an interrupted removal can be
/// done again.
const ROOT: &str = "CURRENT";

/// Removes a database, and the directory where nothing else is in it. Files of LevelDB stay, with
/// an error.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_destroy_db(
    _options: &leveldb_options_t,
    name: *const c_char,
    error: Place<'_>,
) {
    call(error, || destroy(path(name)));
}

fn destroy(folder: &Path) -> Result<()> {
    refuse_foreign(folder)?;
    if !has_database(folder) {
        return Ok(());
    }
    let store =
        shingle::Options::new().create(false).directory(folder, Arc::<Ledger>::default())?;
    let lock = store.lock()?;
    let failed = |path: &Path, error| {
        Error::io("remove the database", error).in_file(path.display().to_string())
    };
    for entry in std::fs::read_dir(folder).map_err(|error| failed(folder, error))? {
        let entry = entry.map_err(|error| failed(folder, error))?;
        if is_ours(&entry.file_name().to_string_lossy()) {
            std::fs::remove_file(entry.path()).map_err(|error| failed(&entry.path(), error))?;
        }
    }
    let root = folder.join(ROOT);
    std::fs::remove_file(&root).map_err(|error| failed(&root, error))?;
    drop(lock);
    // The lock's file is of no use without a database; what others have put there stays, and so
    // does the directory.
    let _ = std::fs::remove_file(folder.join("LOCK"));
    let _ = std::fs::remove_dir(folder);
    Ok(())
}

/// Whether Shingle gives this name to files of a database, other than its root and its lock.
fn is_ours(name: &str) -> bool {
    let is_number = |text: &str| text.len() >= 6 && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = name.strip_suffix(".tmp").unwrap_or(name);
    if let Some(number) = name.strip_prefix("MANIFEST-") {
        return is_number(number);
    }
    match name.split_once('.') {
        Some((number, "table" | "wal" | "value")) => is_number(number),
        _ => matches!(name, "LOG" | "LOG.old" | "OPTIONS" | "RESERVE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_not_ours() {
        for name in ["MANIFEST-000007", "000012.table", "1234567.wal", "OPTIONS.tmp", "LOG.old"] {
            assert!(is_ours(name), "{name}");
        }
        for name in ["CURRENT", "LOCK", "12.table", "MANIFEST-x", "000012.ldb", "notes", "a.wal"] {
            assert!(!is_ours(name), "{name}");
        }
    }
}
