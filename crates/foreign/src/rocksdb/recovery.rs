//! What the logs have that is in no table, by column family.
//!
//! RocksDB stops at the first damage and leaves out what comes behind it. Here only the last log
//! may end in a record that is not whole; damage elsewhere is an error. A log that ends so, and is
//! followed by a log that goes on with the very next sequence number, lost nothing: RocksDB had
//! opened the database in between.
//!
//! Writes of a transaction that is prepared count when its commit comes. One that is neither
//! committed nor rolled back in the end is refused: whether it counts is for its program to say.

use super::batch::{Batch, Item, Write};
use super::kinds;
use super::manifest::Manifest;
use super::wal::Wal;
use crate::coding::{damage, read, shown, unsupported};
use crate::entry::Entry;
use crate::merge::Memory;
use base::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Writes of transactions by their names, for column families.
type Prepared = BTreeMap<Vec<u8>, Vec<(u64, Write)>>;

/// The state of reading the logs.
struct Recovery<'a> {
    manifest: &'a Manifest,
    memories: BTreeMap<u64, Memory>,
    prepared: Prepared,
    /// The sequence number behind those of the writes so far, in logs.
    next_sequence: Option<u64>,
    /// A log that ends in a record that is not whole: number, path, offset.
    torn: Option<(u64, PathBuf, u64)>,
}

/// Reads the logs, oldest first.
pub fn recover(manifest: &Manifest, logs: &[(u64, PathBuf)]) -> Result<BTreeMap<u64, Memory>> {
    let mut recovery = Recovery {
        manifest,
        memories: BTreeMap::new(),
        prepared: Prepared::new(),
        next_sequence: None,
        torn: None,
    };
    for (number, path) in logs {
        recovery.log(*number, path)?;
    }
    recovery.finish()
}

impl Recovery<'_> {
    fn log(&mut self, number: u64, path: &Path) -> Result<()> {
        let bytes = read(path)?;
        let mut records = Wal::new(path, number, &bytes);
        while let Some((at, record)) = records.next()? {
            let batch = Batch::parse(&record)
                .ok_or_else(|| damage(path, at, "a batch of writes is not whole"))?;
            self.check_order(&batch, path, at)?;
            self.batch(batch, number, path, at)?;
        }
        if let Some(at) = records.torn_at()
            && self.torn.is_none()
        {
            self.torn = Some((number, path.to_path_buf(), at));
        }
        Ok(())
    }

    /// Sequence numbers only grow, and go on where a log has no whole end.
    fn check_order(&mut self, batch: &Batch, path: &Path, at: u64) -> Result<()> {
        if self.next_sequence.is_some_and(|next| batch.sequence < next) {
            return Err(unsupported(path, WRITTEN_BEFORE).at(at));
        }
        if let Some((_, torn, at)) = self.torn.take()
            && batch.sequence != self.next_sequence.unwrap_or(self.manifest.last_sequence + 1)
        {
            let message = "a record is not whole, and writes behind it are missing in later logs";
            return Err(damage(&torn, at, message));
        }
        Ok(())
    }

    fn batch(&mut self, batch: Batch, log: u64, path: &Path, at: u64) -> Result<()> {
        let mut sequence = batch.sequence;
        let mut waiting: Option<Vec<(u64, Write)>> = None;
        for item in batch.items {
            match (item, &mut waiting) {
                (Item::Write(family, write), Some(waiting)) => waiting.push((family, write)),
                (Item::Write(family, write), None) => self.write(family, write, &mut sequence, log),
                (Item::Prepare, None) => waiting = Some(Vec::new()),
                (Item::Prepared(name), Some(writes)) => {
                    self.prepared.insert(name, std::mem::take(writes));
                    waiting = None;
                }
                (Item::Commit(name), None) => {
                    // One that is not known was prepared in a log that is not needed any more.
                    for (family, write) in self.prepared.remove(&name).unwrap_or_default() {
                        self.write(family, write, &mut sequence, log);
                    }
                }
                (Item::RollBack(name), None) => drop(self.prepared.remove(&name)),
                (Item::WrittenBefore, _) => return Err(unsupported(path, WRITTEN_BEFORE).at(at)),
                _ => return Err(damage(path, at, "marks of transactions are in a wrong order")),
            }
        }
        if waiting.is_some() {
            return Err(damage(path, at, "a prepared transaction has no end"));
        }
        self.next_sequence = Some(sequence);
        Ok(())
    }

    /// Adds a write, unless a table of its column family has it, or the family was dropped.
    fn write(&mut self, family: u64, write: Write, sequence: &mut u64, log: u64) {
        let number = *sequence;
        *sequence += 1;
        let is_needed = |known: &super::manifest::Family| log >= known.log_number;
        if !self.manifest.families.get(&family).is_some_and(is_needed) {
            return;
        }
        let memory = self.memories.entry(family).or_default();
        if let Some(range) = write.range(number) {
            memory.add_range(range);
        }
        if let Write::Entry { kind, key, value } = &write
            && let Some((kind, value)) = kinds::entry(*kind, value)
        {
            memory.add(Entry { key, sequence: number, kind, value });
        }
    }

    fn finish(self) -> Result<BTreeMap<u64, Memory>> {
        if let Some(name) = self.prepared.keys().next() {
            return Err(unfinished(self.manifest, name));
        }
        if let Some((number, path, at)) = self.torn {
            let mut families = self.manifest.families.values();
            if let Some(family) =
                families.find(|family| family.log_number > number && !family.tables().is_empty())
            {
                let message = format!(
                    "a record is not whole, and column family {:?} has later writes",
                    family.name
                );
                return Err(damage(&path, at, message));
            }
        }
        Ok(self.memories)
    }
}

const WRITTEN_BEFORE: &str = "the log is of transactions that write before they commit (write \
     policy WritePrepared or WriteUnprepared), which are not read: open the database with its \
     program, end all transactions, and flush all column families";

fn unfinished(manifest: &Manifest, name: &[u8]) -> Error {
    manifest.unsupported(format!(
        "the transaction {} is prepared, and neither committed nor rolled back: open the database \
         with its program and end the transaction",
        shown(name)
    ))
}
