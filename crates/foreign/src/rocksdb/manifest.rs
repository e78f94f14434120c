//! The manifest: edits that give the column families, their tables, and the logs that are needed.

pub use super::edit::TableFile;
use super::edit::{Edit, Log, is_of_leveldb};
use crate::coding::{Input, damage, read, unsupported};
use crate::current::current;
use crate::entry::RangeDelete;
use crate::records::Records;
use base::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The comparator whose order is that of bytes.
const BYTEWISE: &str = "leveldb.BytewiseComparator";
/// RocksDB keeps its own statistics in a column family.
const STATISTICS: &str = "___rocksdb_stats_history___";

/// What the edits of a manifest give.
#[derive(Debug, Default)]
pub struct Manifest {
    path: PathBuf,
    /// By their numbers, which logs have.
    pub families: BTreeMap<u64, Family>,
    pub last_sequence: u64,
    first_log_needed: u64,
    previous_log_number: u64,
    logs: BTreeMap<u64, Log>,
}

/// A column family.
#[derive(Debug, Default)]
pub struct Family {
    pub name: String,
    comparator: String,
    /// What logs before this one have is in tables.
    pub log_number: u64,
    /// By level and number.
    tables: BTreeMap<(u64, u64), TableFile>,
    /// By number: how many values a file has that are no garbage.
    blobs: BTreeMap<u64, u64>,
}

impl TableFile {
    /// The part of a deleted range that counts. A range may reach beyond the keys of its table;
    /// what lies there has been compacted, and its keys may count as older than they were.
    pub fn cut(&self, range: RangeDelete) -> Option<RangeDelete> {
        let begin = range.begin.max(self.smallest.clone());
        let mut limit = self.largest.clone();
        if !self.is_largest_outside {
            limit.push(0);
        }
        let end = range.end.min(limit);
        (begin < end).then_some(RangeDelete { begin, end, sequence: range.sequence })
    }
}

impl Family {
    /// The tables, those of the newest writes first.
    pub fn tables(&self) -> Vec<&TableFile> {
        let mut tables: Vec<_> = self.tables.values().collect();
        tables.sort_by_key(|table| {
            (table.level, std::cmp::Reverse((table.largest_sequence, table.number)))
        });
        tables
    }

    fn apply(&mut self, edit: Edit) -> std::result::Result<(), String> {
        if let Some(comparator) = edit.comparator {
            self.comparator = comparator;
        }
        if let Some(number) = edit.log_number {
            self.log_number = self.log_number.max(number);
        }
        for (level, number) in edit.remove_tables {
            self.tables
                .remove(&(level, number))
                .ok_or_else(|| format!("an edit removes table {number}, which is not there"))?;
        }
        for table in edit.add_tables {
            let number = table.number;
            if self.tables.insert((table.level, number), table).is_some() {
                return Err(format!("an edit adds table {number} a second time"));
            }
        }
        self.blobs.extend(edit.add_blobs);
        for (number, count) in edit.blob_garbage {
            let left = self.blobs.get(&number).map_or(0, |left| left.saturating_sub(count));
            self.blobs.insert(number, left);
        }
        self.blobs.retain(|_, left| *left > 0);
        Ok(())
    }

    /// Refuses what cannot be read, in words.
    fn check(&self) -> std::result::Result<(), String> {
        let name = &self.name;
        if self.comparator.ends_with(".u64ts") {
            return Err(format!(
                "column family {name:?} has keys with timestamps of the program ({}), which are \
                 not read: write the versions that you need with keys of their own",
                self.comparator
            ));
        }
        if self.comparator != BYTEWISE {
            return Err(format!(
                "column family {name:?} has its keys in the order of {:?}; Shingle orders keys by \
                 their bytes, as {BYTEWISE} does",
                self.comparator
            ));
        }
        if let Some(number) = self.blobs.keys().next() {
            return Err(format!(
                "column family {name:?} has values in blob files ({number:06}.blob), which are not \
                 read: {}",
                crate::entry::WITHOUT_BLOBS
            ));
        }
        if let Some(table) = self.tables.values().find(|table| table.directory != 0) {
            return Err(format!(
                "table {:06}.sst of column family {name:?} is in another directory (db_paths), \
                 which is not read: compact the database with one directory",
                table.number
            ));
        }
        Ok(())
    }
}

impl Manifest {
    /// The manifest that CURRENT names.
    pub fn read(folder: &Path) -> Result<Manifest> {
        let path = folder.join(current(folder)?);
        let bytes = read(&path)?;
        let mut records = Records::new(&path, &bytes);
        let mut manifest = Manifest { path: path.clone(), ..Manifest::with_default() };
        let mut group = Vec::new();
        while let Some((at, record)) = records.next()? {
            Edit::parse(&record)
                .and_then(|edit| manifest.add(&mut group, edit))
                .map_err(|what| damage(&path, at as u64, what))?;
        }
        // A group that has no end was never written whole: it does not count.
        manifest.families.retain(|_, family| family.name != STATISTICS);
        Ok(manifest)
    }

    /// One of a new database, which has a single column family.
    pub fn with_default() -> Manifest {
        let first = Family { name: "default".into(), ..Family::default() };
        Manifest { families: BTreeMap::from([(0, first)]), ..Manifest::default() }
    }

    /// Adds an edit. Those of a `group` count when the last one is there.
    pub fn add(&mut self, group: &mut Vec<Edit>, edit: Edit) -> std::result::Result<(), String> {
        if edit.group_left.is_none() && !group.is_empty() {
            return Err("an edit stands inside of a group".into());
        }
        let left = edit.group_left.unwrap_or(0);
        group.push(edit);
        if left > 0 {
            return Ok(());
        }
        std::mem::take(group).into_iter().try_for_each(|edit| self.apply(edit))
    }

    /// Refuses what cannot be read, in words.
    pub fn check(&self) -> Result<()> {
        let mut families = self.families.values();
        families.try_for_each(|family| family.check().map_err(|message| self.unsupported(message)))
    }

    fn apply(&mut self, mut edit: Edit) -> std::result::Result<(), String> {
        if let Some(sequence) = edit.last_sequence {
            self.last_sequence = self.last_sequence.max(sequence);
        }
        if let Some(number) = edit.first_log_needed {
            self.first_log_needed = self.first_log_needed.max(number);
        }
        if let Some(number) = edit.previous_log_number {
            self.previous_log_number = number;
        }
        for log in edit.add_logs.drain(..) {
            let known = self.logs.entry(log.number).or_insert(log);
            known.synced_bytes = known.synced_bytes.max(log.synced_bytes);
        }
        if let Some(number) = edit.remove_logs_before {
            self.logs = self.logs.split_off(&number);
        }
        if let Some(name) = edit.add_family.take() {
            let family = Family { name, ..Family::default() };
            if self.families.insert(edit.family, family).is_some() {
                return Err(format!("an edit adds column family {} a second time", edit.family));
            }
        }
        if edit.drops_family {
            self.families.remove(&edit.family);
            return Ok(());
        }
        let Some(family) = self.families.get_mut(&edit.family) else {
            return Err(format!("an edit is of column family {}, which is not there", edit.family));
        };
        family.apply(edit)
    }

    /// Logs before all of these have nothing that is needed.
    pub fn needs_log(&self, number: u64) -> bool {
        let first = match self.first_log_needed {
            0 => self.families.values().map(|family| family.log_number).min().unwrap_or(0),
            first => first,
        };
        number >= first || number == self.previous_log_number && number > 0
    }

    /// Checks that the logs are there which the manifest knows, with what was synced of them.
    pub fn check_logs(&self, found: &[(u64, PathBuf)]) -> Result<()> {
        for log in self.logs.values().filter(|log| self.needs_log(log.number)) {
            let number = log.number;
            let Some((_, path)) = found.iter().find(|(other, _)| *other == number) else {
                let message =
                    format!("the log {number:06}.log, which the manifest names, is missing");
                return Err(damage(&self.path, 0, message));
            };
            let bytes = path.metadata().map_err(|error| crate::coding::unread(path, error))?.len();
            if bytes < log.synced_bytes {
                let synced = log.synced_bytes;
                let message = format!("the log ends here, and {synced} bytes of it were synced");
                return Err(damage(path, bytes, message));
            }
        }
        Ok(())
    }

    /// A refusal of what the manifest and the logs have.
    pub fn unsupported(&self, message: impl Into<String>) -> Error {
        unsupported(&self.path, message)
    }
}

/// Whether a manifest has a field that LevelDB does not write.
pub fn is_of_rocksdb(folder: &Path) -> bool {
    let Ok(path) = current(folder).map(|name| folder.join(name)) else { return false };
    let Ok(bytes) = read(&path) else { return false };
    let mut records = Records::new(&path, &bytes);
    while let Ok(Some((_, record))) = records.next() {
        let mut input = Input::new(&record);
        while let Some(tag) = input.varint() {
            if !is_of_leveldb(tag) {
                return true;
            }
            if skip(tag, &mut input).is_none() {
                break;
            }
        }
    }
    false
}

/// Leaves out a field of LevelDB's.
fn skip(tag: u64, input: &mut Input<'_>) -> Option<()> {
    let (numbers, slices) = match tag {
        1 => (0, 1),
        5 => (1, 1),
        6 => (2, 0),
        7 => (3, 2),
        _ => (1, 0),
    };
    for _ in 0..numbers {
        input.varint()?;
    }
    for _ in 0..slices {
        input.slice()?;
    }
    Some(())
}
