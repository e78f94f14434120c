//! Reads the chain of logs forward, and gives the batches of users in commit order.
//!
//! Invariants:
//! - Every batch is given once, whole, or the feed ends with an error.
//! - The feed goes from one log to the next only if the first was read to the end that the second
//!   names.

use crate::engine::changes::chain::{ChangeLog, wal_identity};
use crate::engine::changes::source::{Logs, Source};
use base::{Cause, Error, ErrorKind, KeyspaceId, Result, SequenceNumber};
use media::{FileName, ReadFile};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use table::batch::BatchView;
use table::log::{LogPosition, LogReader, PreviousLog};
use table::log_record::{LogRecord, Origin};

/// A feed prefetches this many bytes of batches, and at least one batch.
const PREFETCH_BYTES: usize = 256 << 10;

/// A batch of a user, as the log has it.
pub(crate) struct Batch {
    pub first: SequenceNumber,
    pub count: u64,
    /// The operations, encoded.
    pub bytes: Box<[u8]>,
    /// The keyspaces of its operations that are not dropped.
    pub keyspaces: Vec<(KeyspaceId, Arc<str>)>,
}

/// A reader of changes.
pub(crate) struct Feed {
    source: Box<dyn Source>,
    /// Everything up to this sequence number was given, or was no change of a user.
    position: SequenceNumber,
    /// The same for what was read.
    read_position: SequenceNumber,
    log: Option<OpenLog>,
    prefetched: VecDeque<Batch>,
    names: BTreeMap<KeyspaceId, Option<Arc<str>>>,
}

/// The log that is being read.
struct OpenLog {
    log: Arc<ChangeLog>,
    file: Arc<dyn ReadFile>,
    /// `None`: before its first record.
    position: Option<LogPosition>,
    /// The last sequence number up to there, as the next log will name it.
    last_sequence: SequenceNumber,
}

impl OpenLog {
    fn end(&self) -> Option<PreviousLog> {
        self.position.map(|position| position.as_previous(self.log.file, self.last_sequence))
    }

    /// Bytes that were read.
    fn bytes(&self) -> u64 {
        self.position.map_or(0, |position| position.offset)
    }
}

/// The outcome of reading on in one log.
enum Reached {
    /// Enough is prefetched, or the records end here for now.
    Enough,
    /// No whole record stands behind what was read.
    EndOfLog,
}

impl Feed {
    /// A feed of what comes after the sequence number `since`; `None`: of all changes that are
    /// kept.
    pub(crate) fn new(mut source: Box<dyn Source>, since: Option<SequenceNumber>) -> Result<Feed> {
        let logs = source.logs()?;
        let position = since.unwrap_or(logs.first_sequence.saturating_sub(1));
        if position.saturating_add(1) < logs.first_sequence {
            return Err(too_late(position, logs.first_sequence));
        }
        if position > logs.last_sequence {
            return Err(Error::invalid(format!(
                "changes after {position} were asked for, and the database ends at {}: it lost \
                 writes that were not synced, or the number is of another database",
                logs.last_sequence
            )));
        }
        let (prefetched, names) = (VecDeque::new(), BTreeMap::new());
        Ok(Feed { source, position, read_position: position, log: None, prefetched, names })
    }

    /// Everything up to this sequence number was given.
    pub(crate) fn position(&self) -> SequenceNumber {
        self.position
    }

    /// The next batch; `None`: there is none yet.
    pub(crate) fn next(&mut self) -> Result<Option<Batch>> {
        self.fill()?;
        let next = self.prefetched.pop_front();
        self.position = match &next {
            Some(batch) => batch.first + batch.count - 1,
            None => self.read_position,
        };
        Ok(next)
    }

    /// Waits until there is a next batch. False: there was none until `timeout_ns` passed.
    pub(crate) fn wait(&mut self, timeout_ns: u64) -> Result<bool> {
        let deadline_ns = self.source.now_ns().saturating_add(timeout_ns);
        loop {
            let progress = self.source.progress();
            self.fill()?;
            if !self.prefetched.is_empty() {
                return Ok(true);
            }
            if !self.source.wait(progress, deadline_ns)? {
                return Ok(false);
            }
        }
    }

    /// Reads on if nothing is prefetched. What stands before an error is given first: the next call
    /// meets the error again.
    fn fill(&mut self) -> Result<()> {
        if !self.prefetched.is_empty() {
            return Ok(());
        }
        let read = self.read_on();
        if self.prefetched.is_empty() { read } else { Ok(()) }
    }

    /// Prefetches as far as the logs go, but not more than some batches.
    fn read_on(&mut self) -> Result<()> {
        let logs = self.source.logs()?;
        if self.log.is_none() {
            let begins = |log: &&Arc<ChangeLog>| log.first_sequence <= self.read_position + 1;
            let Some(log) = logs.chain.iter().rev().find(begins) else {
                // Every log before the first one that is kept holds older changes, or none.
                return match logs.chain.first() {
                    Some(first) => Err(too_late(self.read_position, first.first_sequence)),
                    None => Ok(()),
                };
            };
            let log = log.clone();
            self.begin(log, &logs)?;
        }
        while let Some(mut log) = self.log.take() {
            let next = match self.read_log(&mut log, &logs) {
                Ok(Reached::EndOfLog) => self.next_log(&log, &logs),
                Ok(Reached::Enough) => Ok(None),
                Err(error) => Err(if_gone(error, self.read_position, &logs)),
            };
            self.log = Some(log);
            let Some(next) = next? else { break };
            self.begin(next, &logs)?;
        }
        Ok(())
    }

    fn begin(&mut self, log: Arc<ChangeLog>, logs: &Logs) -> Result<()> {
        let opened = self.source.store().open(FileName::wal(log.file), false);
        let file = opened.map_err(|error| if_gone(error, self.read_position, logs))?;
        let last_sequence = log.previous.map_or(0, |previous| previous.last_sequence);
        self.log = Some(OpenLog { log, file, position: None, last_sequence });
        Ok(())
    }

    fn read_log(&mut self, log: &mut OpenLog, logs: &Logs) -> Result<Reached> {
        let name = FileName::wal(log.log.file);
        let identity = wal_identity(self.source.database(), log.log.file);
        let mut reader = LogReader::follow(&*log.file, identity, log.position, Cause::Changes)?;
        if log.position.is_none() {
            if reader.header().is_none() {
                return Ok(Reached::EndOfLog);
            }
            log.position = Some(reader.position());
        }
        let limit = logs.end.filter(|end| end.file <= log.log.file);
        let bytes_max =
            limit.map_or(u64::MAX, |end| if end.file == log.log.file { end.bytes } else { 0 });
        let mut prefetched_bytes = 0;
        while log.bytes() < bytes_max && prefetched_bytes < PREFETCH_BYTES {
            let Some(record) = reader.next()? else {
                return match limit {
                    Some(_) => Err(lost(name, log.bytes(), bytes_max)),
                    None => Ok(Reached::EndOfLog),
                };
            };
            let offset = record.offset;
            let in_file = |error: Error| error.in_file(name.to_string()).at(offset);
            let record = LogRecord::parse(record.payload, true).map_err(in_file)?;
            if let LogRecord::Batch { first, origin, batch } = record {
                let last = (first + batch.len() as u64).saturating_sub(1);
                if origin == Origin::User && last > self.read_position {
                    prefetched_bytes += self.push(first, batch).map_err(in_file)?;
                }
                self.read_position = self.read_position.max(last);
                log.last_sequence = last;
            }
            log.position = Some(reader.position());
        }
        Ok(Reached::Enough)
    }

    /// Keeps a batch, unless all its keyspaces were dropped. Returns its bytes.
    fn push(&mut self, first: SequenceNumber, batch: BatchView<'_>) -> Result<usize> {
        let mut keyspaces: Vec<(KeyspaceId, Arc<str>)> = Vec::new();
        for operation in batch.iter() {
            if operation.kind().is_pointer() {
                let message = "a change without its value, which a log with changes must hold";
                return Err(Error::new(ErrorKind::Corruption, message));
            }
            let id = operation.keyspace();
            if keyspaces.iter().all(|(known, _)| *known != id)
                && let Some(name) = self.name(id)?
            {
                keyspaces.push((id, name));
            }
        }
        if keyspaces.is_empty() {
            return Ok(0);
        }
        let (count, bytes) = (batch.len() as u64, batch.bytes().into());
        self.prefetched.push_back(Batch { first, count, bytes, keyspaces });
        Ok(batch.bytes().len())
    }

    /// A keyspace keeps its name, and a dropped one never comes back.
    fn name(&mut self, id: KeyspaceId) -> Result<Option<Arc<str>>> {
        if let Some(name) = self.names.get(&id) {
            return Ok(name.clone());
        }
        let name = self.source.keyspace(id)?;
        self.names.insert(id, name.clone());
        Ok(name)
    }

    /// The log behind `log`, which has no more records; `None`: there is none yet.
    fn next_log(&self, log: &OpenLog, logs: &Logs) -> Result<Option<Arc<ChangeLog>>> {
        let file = log.log.file;
        let continues =
            |next: &&Arc<ChangeLog>| next.previous.is_some_and(|previous| previous.file == file);
        let Some(next) = logs.chain.iter().find(continues) else {
            return self.log_after(log, logs);
        };
        let (read, named) = (log.end(), next.previous);
        if read == named {
            return Ok(Some(next.clone()));
        }
        let named_bytes = named.map_or(0, |named| named.bytes);
        // What another process wrote may be lost, until it opens the database again and says so.
        if logs.end.is_none() && log.bytes() < named_bytes {
            return Ok(None);
        }
        Err(lost(FileName::wal(file), log.bytes(), named_bytes))
    }

    /// The chain has no log that continues `log`. `None`: the writer has not gone on yet.
    fn log_after(&self, log: &OpenLog, logs: &Logs) -> Result<Option<Arc<ChangeLog>>> {
        let Some(at) = logs.chain.iter().position(|next| next.file > log.log.file) else {
            return Ok(None);
        };
        let next = &logs.chain[at];
        if !next.restates || next.first_sequence > self.read_position + 1 {
            // The chain has gone on without the reader.
            return Err(too_late(self.read_position, next.first_sequence));
        }
        // The next opening of the writer restated `log`. It is whole once a log follows it.
        let end = logs.chain.get(at + 1).and_then(|behind| behind.previous);
        match end {
            Some(end) if end.last_sequence < log.last_sequence => {
                Err(lost(FileName::wal(log.log.file), end.bytes, log.bytes()))
            }
            Some(_) => Ok(Some(next.clone())),
            None => Ok(None),
        }
    }
}

fn lost(name: FileName, bytes: u64, expected_bytes: u64) -> Error {
    let message = format!(
        "changes are lost: {bytes} bytes of the log are whole, {expected_bytes} were logged"
    );
    Error::corruption(name.to_string(), bytes, message)
}

fn too_late(position: SequenceNumber, first: SequenceNumber) -> Error {
    let oldest = first.saturating_sub(1);
    let message = format!(
        "the changes after {position} are not kept any more, only those after {oldest}: copy the \
         database again, and raise `changes_retention_bytes` or `changes_retention_age`"
    );
    Error::new(ErrorKind::TooLate, message)
}

/// The log was removed: its reader came too late.
fn if_gone(error: Error, position: SequenceNumber, logs: &Logs) -> Error {
    match error.kind() {
        ErrorKind::NotFound => {
            let next = logs.chain.iter().find(|log| log.first_sequence > position + 1);
            too_late(position, next.map_or(position + 2, |log| log.first_sequence))
        }
        _ => error,
    }
}
