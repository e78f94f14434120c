//! Files of results, written.

use crate::failure::{Failure, Outcome};
use std::path::Path;

/// Makes a directory for results, if it is not there.
pub fn create(folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder).map_err(|error| Failure::cannot_write(folder, &error))
}

/// Writes a file.
pub fn save(folder: &Path, name: &str, text: &str) -> Outcome {
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(|error| Failure::cannot_write(&path, &error))
}

/// A header and rows as CSV.
pub fn csv(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory cannot fail, and all rows are as long as the header.
    let _ = writer.write_record(header);
    rows.for_each(|row| drop(writer.write_record(row)));
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}
