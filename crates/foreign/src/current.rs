//! The file CURRENT, which names the manifest.

use crate::coding::{damage, read};
use base::Result;
use std::path::Path;

/// The name that CURRENT has.
pub fn current(folder: &Path) -> Result<String> {
    let path = folder.join("CURRENT");
    let text = String::from_utf8_lossy(&read(&path)?).into_owned();
    match text.strip_suffix('\n') {
        Some(name) if name.starts_with("MANIFEST-") && !name.contains('/') => Ok(name.to_string()),
        _ => Err(damage(&path, 0, "it does not name a manifest")),
    }
}
