//! Finds the chain of logs with origins in a store: from the newest log back, as far as each log
//! names the one before it.

use crate::change_stats::ChangeStats;
use base::{Cause, DatabaseId, ErrorKind, FileId, Result, SequenceNumber};
use media::{FileKind, FileName, FileStore};
use std::sync::Arc;
use table::log::{LogHeader, LogIdentity, LogKind, LogReader, PreviousLog};
use table::log_record::{LogBegin, LogRecord};

/// A log that a feed can read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangeLog {
    pub file: FileId,
    /// Every logged operation from this sequence number on is in this log or in a later one.
    pub first_sequence: SequenceNumber,
    /// When it began, in microseconds since 1970; that of the next log where a crash took the time.
    pub begun_micros: u64,
    /// The end of the log before it.
    pub previous: Option<PreviousLog>,
    /// An opening repeated in it what it found in logs between `previous` and this one.
    pub restates: bool,
}

/// How a file that should be a log begins.
enum Begun {
    /// It is gone, or it has no header: it is being created, or was given up.
    Nothing,
    /// A log without origins, or one that cannot be read.
    Other,
    Log {
        header: LogHeader,
        begin: Option<LogBegin>,
    },
}

pub(crate) fn wal_identity(database: DatabaseId, file: FileId) -> LogIdentity {
    LogIdentity { database, file, kind: LogKind::Wal }
}

/// The log that a chain ends with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Newest {
    Log(FileId),
    /// The newest log with a header. From `floor` on, one that restates others does not count: the
    /// opening that writes it has not ended.
    Found {
        floor: FileId,
    },
}

impl Newest {
    fn takes(self, header: &LogHeader) -> bool {
        match self {
            Newest::Log(newest) => header.file == newest,
            Newest::Found { floor } => !header.restates || header.file < floor,
        }
    }
}

/// The logs that a feed can read, one after another.
#[derive(Default)]
pub(crate) struct Chain {
    /// Oldest first.
    pub logs: Vec<Arc<ChangeLog>>,
    /// A log that restates others stands behind them, and does not count yet.
    pub is_behind: bool,
}

/// The chain that ends with the log `newest`. Empty where that log has no origins. A
/// log in `known` is not read again.
pub(crate) fn find_chain(
    store: &dyn FileStore,
    database: DatabaseId,
    newest: Newest,
    known: &[Arc<ChangeLog>],
) -> Result<Chain> {
    let listed = store.list()?;
    let files = listed.iter().map(|file| file.name).filter(|name| name.kind == FileKind::Wal);
    let mut files: Vec<FileId> = files.map(|name| name.id).collect();
    if let Newest::Log(newest) = newest {
        files.retain(|&id| id <= newest);
    }
    files.sort_unstable();
    let mut chain: Vec<Arc<ChangeLog>> = Vec::new();
    let mut is_behind = false;
    while let Some(file) = files.pop() {
        let next = chain.last();
        match next.map(|next| next.previous) {
            Some(Some(previous)) if previous.file < file => continue,
            Some(Some(previous)) if previous.file == file => {}
            Some(_) => break,
            None => {}
        }
        if let Some(log) = known.iter().find(|log| log.file == file) {
            chain.push(log.clone());
            continue;
        }
        let newer_micros = next.map_or(u64::MAX, |next| next.begun_micros);
        match begun(store, database, file)? {
            Begun::Nothing if chain.is_empty() => {}
            Begun::Nothing | Begun::Other => break,
            Begun::Log { header, .. } if chain.is_empty() && !newest.takes(&header) => {
                is_behind = true;
            }
            Begun::Log { header, begin } => match as_change_log(&header, begin, newer_micros) {
                Some(log) => chain.push(Arc::new(log)),
                None if chain.is_empty() => {}
                None => break,
            },
        }
    }
    chain.reverse();
    Ok(Chain { logs: chain, is_behind })
}

fn as_change_log(
    header: &LogHeader,
    begin: Option<LogBegin>,
    newer_micros: u64,
) -> Option<ChangeLog> {
    let begin = match (begin, header.previous) {
        (Some(begin), _) => begin,
        // A crash took the first record, and with it all others.
        (None, Some(previous)) => {
            let first_sequence = previous.last_sequence.saturating_add(1);
            LogBegin { first_sequence, wall_micros: newer_micros }
        }
        (None, None) => return None,
    };
    Some(ChangeLog {
        file: header.file,
        first_sequence: begin.first_sequence,
        begun_micros: begin.wall_micros,
        previous: header.previous,
        restates: header.restates,
    })
}

fn begun(store: &dyn FileStore, database: DatabaseId, id: FileId) -> Result<Begun> {
    let read = || -> Result<Begun> {
        let file = store.open(FileName::wal(id), false)?;
        let identity = wal_identity(database, id);
        let mut reader = LogReader::follow(&*file, identity, None, Cause::Changes)?;
        let Some(&header) = reader.header() else { return Ok(Begun::Nothing) };
        if !header.has_origins {
            return Ok(Begun::Other);
        }
        let begin = match reader.next()?.map(|record| LogRecord::parse(record.payload, true)) {
            Some(Ok(LogRecord::Begin(begin))) => Some(begin),
            Some(_) => return Ok(Begun::Other),
            None => None,
        };
        Ok(Begun::Log { header, begin })
    };
    use ErrorKind::{Corruption, Incompatible, NotFound};
    match read() {
        Err(error) if error.kind() == NotFound => Ok(Begun::Nothing),
        Err(error) if matches!(error.kind(), Corruption | Incompatible) => Ok(Begun::Other),
        read => read,
    }
}

/// The end of the newest log below `floor` that has a header; `None`: there is none, or it has no
/// origins. Reads that log whole.
pub(crate) fn end_below(
    store: &dyn FileStore,
    database: DatabaseId,
    floor: FileId,
) -> Result<Option<PreviousLog>> {
    let listed = store.list()?;
    let logs = listed.iter().map(|file| file.name).filter(|name| name.kind == FileKind::Wal);
    let mut logs: Vec<FileId> = logs.map(|name| name.id).filter(|&id| id < floor).collect();
    logs.sort_unstable();
    for id in logs.into_iter().rev() {
        match begun(store, database, id)? {
            Begun::Nothing => {}
            Begun::Other => return Ok(None),
            Begun::Log { header, .. } => {
                return match read_end(store, &header) {
                    Err(error) if error.kind() == ErrorKind::Corruption => Ok(None),
                    end => end.map(Some),
                };
            }
        }
    }
    Ok(None)
}

fn read_end(store: &dyn FileStore, header: &LogHeader) -> Result<PreviousLog> {
    let file = store.open(FileName::wal(header.file), false)?;
    let mut reader = LogReader::open(&*file, header.identity(), 0, Cause::Changes)?;
    let mut last_sequence = header.previous.map_or(0, |previous| previous.last_sequence);
    while let Some(record) = reader.next()? {
        if let Some((first, batch)) = LogRecord::parse(record.payload, true)?.batch() {
            last_sequence = (first + batch.len() as u64).saturating_sub(1);
        }
    }
    Ok(reader.as_previous(header.file, last_sequence))
}

/// What the store keeps for change feeds alone: logs below `floor`.
pub(crate) fn stats(
    store: &dyn FileStore,
    database: DatabaseId,
    floor: FileId,
) -> Result<ChangeStats> {
    let chain = find_chain(store, database, Newest::Found { floor }, &[])?.logs;
    let listed = store.list()?;
    let is_kept = |name: FileName| {
        let mut kept = chain.iter().take_while(|log| log.file < floor);
        name.kind == FileKind::Wal && kept.any(|log| log.file == name.id)
    };
    let kept: Vec<u64> =
        listed.iter().filter(|file| is_kept(file.name)).map(|file| file.bytes).collect();
    Ok(ChangeStats {
        logs: kept.len() as u64,
        bytes: kept.iter().sum(),
        oldest_sequence: chain.first().map(|log| log.first_sequence),
    })
}
