//! The logs: their entries that no run has, and what is missing of them.
//!
//! A log names the one that it continues, with its length. So a log in the middle that is missing,
//! or that lost its end, is known from the next one. Without a log, the manifest tells whether one
//! was needed. The end of the last log is known from nothing: what was lost there is not reported.

use super::find::{Finder, NeededLogs};
use crate::memtable::{Memtable, Writer};
use base::{Cause, FileId, KeyspaceId, Result, SequenceNumber};
use media::{FileKind, FileName, ReadFile};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use table::log::{HEADER_BYTES, LogHeader, LogIdentity, LogKind, Salvage, named_log};
use table::log_record::LogRecord;

/// Bytes of entries in one memtable of salvage.
const MEMTABLE_BYTES: usize = 16 << 20;

/// What was read of the logs so far.
#[derive(Default)]
struct Chain {
    /// Where the last record of each log ends.
    ends: BTreeMap<FileId, u64>,
    last_sequence: SequenceNumber,
}

impl Finder<'_, '_> {
    /// The entries that no run has, of all logs that are `needed`.
    pub(super) fn logs(&mut self, names: &[FileName], needed: &NeededLogs) -> Result<()> {
        let is_log = |name: &FileName| name.kind == FileKind::Wal && name.id >= needed.floor;
        let mut logs = names.iter().copied().filter(is_log).peekable();
        let has_file = names.iter().any(|name| name.id == needed.floor);
        if needed.floor_existed && logs.peek().is_none() && !has_file {
            let (log, after) = (FileName::wal(needed.floor), self.flushed());
            self.losses.push(format!(
                "{log}, which the manifest needs, so unflushed commits after sequence number \
                 {after} may be missing"
            ));
        }
        let mut chain = Chain::default();
        for name in logs {
            self.step(name)?;
            let file = self.store.open(name, true)?;
            let header = named_log(&*file, Cause::Recovery)?.filter(|h| h.file == name.id);
            if header.is_some_and(|header| header.restates) {
                // Its entries are in the logs before it, or in runs. Twice, an operand counts
                // twice.
                continue;
            }
            if let Some(header) = header {
                self.before(&header, names, needed, &chain);
            }
            self.log(name, &*file, &mut chain)?;
        }
        Ok(())
    }

    /// Every commit up to this sequence number is in runs.
    fn flushed(&self) -> SequenceNumber {
        self.findings.keyspaces.values().map(|keyspace| keyspace.flushed).min().unwrap_or(0)
    }

    /// Compares the log before the one of `header` with what the header says of it.
    fn before(
        &mut self,
        header: &LogHeader,
        names: &[FileName],
        needed: &NeededLogs,
        chain: &Chain,
    ) {
        let Some(before) = header.previous.filter(|before| before.file >= needed.floor) else {
            return;
        };
        let (log, name) = (FileName::wal(header.file), FileName::wal(before.file));
        let after = self.flushed().max(chain.last_sequence);
        let commits = format!("unflushed commits after sequence number {after} may be missing");
        // Without the tree, the logs before the first one may have been removed for good reason.
        let is_expected = self.knows_tree || !chain.ends.is_empty();
        match chain.ends.get(&before.file) {
            Some(&end) if end < before.bytes => self.losses.push(format!(
                "bytes {end} to {} of {name}, which {log} continues, so {commits}",
                before.bytes
            )),
            None if is_expected && !names.contains(&name) => {
                self.losses.push(format!("{name}, which {log} continues, so {commits}"));
            }
            _ => {}
        }
    }

    /// The entries of a log that no run has.
    fn log(&mut self, name: FileName, file: &dyn ReadFile, chain: &mut Chain) -> Result<()> {
        let identity = LogIdentity { database: self.database, file: name.id, kind: LogKind::Wal };
        let mut records = Salvage::open(file, identity, Cause::Recovery)?;
        let mut writers = BTreeMap::new();
        let mut at_start = true;
        while let Some(record) = records.next()? {
            // The header is not a record; anything beyond it is damage.
            let expected = if at_start { HEADER_BYTES as u64 } else { 0 };
            if record.skipped_bytes > expected {
                self.losses.push(format!("{} bytes of {name}", record.skipped_bytes - expected));
            }
            at_start = false;
            match self.record(record.payload, &mut writers) {
                Ok(last) => chain.last_sequence = chain.last_sequence.max(last),
                Err(error) => self.losses.push(format!("a record of {name}: {error}")),
            }
        }
        chain.ends.insert(name.id, records.end().max(HEADER_BYTES as u64));
        let rest_bytes = records.rest_bytes()?;
        if rest_bytes > HEADER_BYTES as u64 {
            self.losses.push(format!("{rest_bytes} bytes at the end of {name}"));
        }
        for (id, writer) in writers {
            self.keep(id, &writer);
        }
        Ok(())
    }

    fn keep(&mut self, id: KeyspaceId, writer: &Writer) {
        self.findings.memtables.entry(id).or_default().push(writer.memtable().clone());
    }

    /// The entries of a record; returns its last sequence number, 0 if it has none.
    fn record(
        &mut self,
        payload: &[u8],
        writers: &mut BTreeMap<KeyspaceId, Writer>,
    ) -> Result<SequenceNumber> {
        // The header, which says whether records have origins, may be lost.
        let record = LogRecord::parse(payload, true)?;
        let Some((first, batch)) = record.batch() else { return Ok(0) };
        let mut last = 0;
        for (sequence, operation) in (first..).zip(batch.iter()) {
            last = sequence;
            let id = operation.keyspace();
            if self.is_dropped(id) || sequence <= self.keyspace_or_new(id).flushed {
                continue;
            }
            if writers.get(&id).is_some_and(|w| w.memtable().bytes() >= MEMTABLE_BYTES as u64)
                && let Some(full) = writers.remove(&id)
            {
                self.keep(id, &full);
            }
            let writer = match writers.entry(id) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(Memtable::new(MEMTABLE_BYTES)?.1),
            };
            writer.insert(&operation, sequence)?;
        }
        Ok(last)
    }

    /// The keyspace does not exist any more.
    fn is_dropped(&self, id: KeyspaceId) -> bool {
        match self.knows_tree {
            true => !self.findings.keyspaces.contains_key(&id),
            false => self.dropped.contains(&id),
        }
    }
}
