//! The file of options, for the one that tells where logs are.

use crate::coding::{read, unsupported};
use base::Result;
use std::path::{Path, PathBuf};

/// The newest file of options.
pub fn newest(folder: &Path) -> Option<PathBuf> {
    let number = |path: &PathBuf| -> Option<u64> {
        path.file_name()?.to_str()?.strip_prefix("OPTIONS-")?.parse().ok()
    };
    let listed = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    listed.filter(|path| number(path).is_some()).max_by_key(number)
}

/// Refuses a database whose logs are elsewhere: its newest writes would be left out.
pub fn check(folder: &Path) -> Result<()> {
    let Some(path) = newest(folder) else { return Ok(()) };
    let text = read(&path)?;
    let text = String::from_utf8_lossy(&text);
    let logs = text.lines().find_map(|line| line.trim().strip_prefix("wal_dir=")).unwrap_or("");
    let is_here = |other: &str| {
        let (other, here) = (Path::new(other).canonicalize(), folder.canonicalize());
        matches!((other, here), (Ok(other), Ok(here)) if other == here)
    };
    if logs.is_empty() || is_here(logs) {
        return Ok(());
    }
    let message = format!(
        "the logs of the database are in {logs} (wal_dir), and only logs beside the tables are \
         read: flush all column families, and open the database once without wal_dir"
    );
    Err(unsupported(&path, message))
}
