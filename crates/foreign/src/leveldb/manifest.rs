//! The manifest: edits that give which tables and logs make up the database.

use crate::coding::{Input, damage, read};
use crate::current::current;
use crate::entry::split_key;
use crate::records::Records;
use base::Result;
use std::collections::BTreeMap;
use std::path::Path;

/// What the edits of a manifest give.
#[derive(Debug, Default)]
pub struct Manifest {
    pub comparator: String,
    /// Logs from this number on are needed.
    log_number: u64,
    /// So is this one.
    previous_log_number: u64,
    /// By level and number: the smallest key.
    tables: BTreeMap<(u64, u64), Vec<u8>>,
}

impl Manifest {
    /// The manifest that CURRENT names.
    pub fn read(folder: &Path) -> Result<Manifest> {
        let path = folder.join(current(folder)?);
        let bytes = read(&path)?;
        let mut records = Records::new(&path, &bytes);
        let mut manifest = Manifest::default();
        while let Some((at, record)) = records.next()? {
            manifest.apply(&record).map_err(|what| damage(&path, at as u64, what))?;
        }
        Ok(manifest)
    }

    /// The number and the smallest key of each table.
    pub fn tables(&self) -> impl Iterator<Item = (u64, &[u8])> + '_ {
        self.tables.iter().map(|((_, number), smallest)| (*number, smallest.as_slice()))
    }

    pub fn needs_log(&self, number: u64) -> bool {
        number >= self.log_number || number == self.previous_log_number
    }

    fn apply(&mut self, record: &[u8]) -> std::result::Result<(), String> {
        let mut input = Input::new(record);
        while !input.is_empty() {
            let tag = input.varint().ok_or("an edit ends in a tag")?;
            if !matches!(tag, 1..=7 | 9) {
                return Err(format!(
                    "an edit has a field {tag}, which LevelDB does not write; a database of \
                     RocksDB is imported with --format rocksdb"
                ));
            }
            self.field(tag, &mut input)
                .ok_or_else(|| format!("an edit has a field {tag} that is not whole"))?;
        }
        Ok(())
    }

    fn field(&mut self, tag: u64, input: &mut Input<'_>) -> Option<()> {
        match tag {
            1 => self.comparator = String::from_utf8_lossy(input.slice()?).into_owned(),
            2 => self.log_number = input.varint()?,
            9 => self.previous_log_number = input.varint()?,
            // The next file number and the last sequence number.
            3 | 4 => {
                input.varint()?;
            }
            // Where the next compaction of a level begins.
            5 => {
                input.varint()?;
                input.slice()?;
            }
            6 => {
                let table = (input.varint()?, input.varint()?);
                self.tables.remove(&table);
            }
            7 => {
                let table = (input.varint()?, input.varint()?);
                // Its bytes, its smallest and its largest key.
                input.varint()?;
                let (smallest, ..) = split_key(input.slice()?)?;
                input.slice()?;
                self.tables.insert(table, smallest.to_vec());
            }
            _ => return None,
        }
        Some(())
    }
}
