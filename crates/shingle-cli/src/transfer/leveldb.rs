//! A database of LevelDB: its keys with their newest values. It is not changed.

use super::foreign_source::{Stop, of_source};
use super::record::Record;
use crate::failure::Outcome;
use crate::progress::Bar;
use foreign::leveldb::LevelDb;
use std::path::Path;

/// Reads every key.
pub fn read(folder: &Path, bar: &Bar, each: &mut dyn FnMut(Record<'_>) -> Outcome) -> Outcome {
    let db = LevelDb::open(folder).map_err(|error| of_source(&error))?;
    db.read(&mut |key, value| {
        each(Record::new(key, value))?;
        bar.add((key.len() + value.len()) as u64);
        Ok::<(), Stop>(())
    })?;
    Ok(())
}
