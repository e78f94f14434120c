//! Names of notes, and of a store's own files in the directory.

use crate::store::FileName;
use base::{Error, Result};

/// The file that names the root.
pub(crate) const ROOT_NAME: &str = "CURRENT";

/// The file that is locked.
pub(crate) const LOCK_NAME: &str = "LOCK";

/// The file that reserves space.
pub(crate) const RESERVE_NAME: &str = "RESERVE";

/// The name of a file of the store itself, which no note may take.
pub(crate) fn is_reserved(name: &str) -> bool {
    [ROOT_NAME, LOCK_NAME, RESERVE_NAME].contains(&name)
}

/// Refuses a note's name that is no plain file name, or that is the store's own: `InvalidArgument`.
pub fn check_note_name(name: &str) -> Result<()> {
    let plain = !name.is_empty()
        && name.len() <= 200
        && !name.starts_with('.')
        && !name.ends_with(".tmp")
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if !plain || is_reserved(name) || FileName::parse(name).is_some() {
        let message = format!("{name:?} cannot name a note: use a plain file name of your own");
        return Err(Error::invalid(message));
    }
    Ok(())
}
