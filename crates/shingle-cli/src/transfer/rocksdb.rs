//! A database of RocksDB: the keys of its column families with their newest values. It is not
//! changed.

use super::foreign_source::{Stop, of_source};
use super::record::Record;
use crate::failure::Outcome;
use crate::progress::Bar;
use foreign::rocksdb::RocksDb;
use std::path::Path;
use std::rc::Rc;

/// A column family of an open database.
#[derive(Clone)]
pub struct Family {
    db: Rc<RocksDb>,
    /// Also that of the keyspace that it goes to.
    pub name: String,
}

impl Family {
    /// All of the database in `folder`.
    pub fn all(folder: &Path) -> Outcome<Vec<Family>> {
        let db = Rc::new(RocksDb::open(folder).map_err(|error| of_source(&error))?);
        let names = db.families().map(str::to_string);
        Ok(names.map(|name| Family { db: Rc::clone(&db), name }).collect())
    }

    /// Reads every key.
    pub fn read(&self, bar: &Bar, each: &mut dyn FnMut(Record<'_>) -> Outcome) -> Outcome {
        self.db.read(&self.name, &mut |key, value| {
            each(Record::new(key, value))?;
            bar.add((key.len() + value.len()) as u64);
            Ok::<(), Stop>(())
        })?;
        Ok(())
    }
}
