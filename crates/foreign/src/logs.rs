//! The logs of a folder.

use crate::coding::unread;
use base::Result;
use std::path::{Path, PathBuf};

/// The numbers and paths of the logs in `folder` that are needed, oldest first.
pub fn logs(folder: &Path, is_needed: impl Fn(u64) -> bool) -> Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    let listed = std::fs::read_dir(folder).map_err(|error| unread(folder, error))?;
    for entry in listed {
        let path = entry.map_err(|error| unread(folder, error))?.path();
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
        if let (true, Some(number)) = (is_log, number)
            && is_needed(number)
        {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found)
}
