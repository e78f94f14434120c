//! Restates logs: writes what an opening found in logs to a log of its own, for change feeds.
//!
//! The system may show bytes of a log that the medium does not have, because a sync of the process
//! before failed. No later sync writes them, and the next process cannot tell. Recovery flushes
//! what it replays, and then needs these logs no more. Change feeds need them for long.
//!
//! Invariants:
//! - The log is durable before the floor passes the logs that it restates.
//! - Until then it does not count: recovery reads the logs before it, and removes it. So a crash at
//!   any moment leaves one of both.

use crate::engine::changes::chain::{ChangeLog, wal_identity};
use crate::engine::changes::retained::ChangeLogs;
use crate::engine::context::Context;
use crate::event::Event;
use base::{Cause, Error, ErrorKind, FileId, Result, SequenceNumber};
use media::{FileHint, FileName};
use std::sync::Arc;
use table::log::{LogHeader, LogKind, LogReader, LogWriter, PreviousLog};
use table::log_record::{LogBegin, LogRecord};

/// Restates the logs from `floor` on, if feeds may read them. Out of space, feeds lose what earlier
/// openings kept.
pub(crate) fn restate(context: &Context, floor: FileId) -> Result<()> {
    let Some(changes) = &context.changes else { return Ok(()) };
    changes.pass_floor(floor);
    let found = changes.found_from(floor);
    let (Some(first), Some(end)) = (found.first(), changes.end()) else { return Ok(()) };
    let restated = context.before_change_logs(|| write(context, first, &found, end.last_sequence));
    match restated {
        Ok((log, end)) => changes.restated(floor, log, end),
        Err(error) if error.kind() == ErrorKind::NoSpace => give_up(context, changes),
        Err(error) => return Err(error),
    }
    Ok(())
}

fn give_up(context: &Context, changes: &ChangeLogs) {
    context.events.add(Event::ChangesGivenUp { logs: changes.give_up_found() });
}

/// A new log with the records of `found`, durable.
fn write(
    context: &Context,
    first: &ChangeLog,
    found: &[Arc<ChangeLog>],
    last_sequence: SequenceNumber,
) -> Result<(ChangeLog, PreviousLog)> {
    let file = context.new_file();
    let (database, kind, salt) = (context.database, LogKind::Wal, context.runtime.random_u64());
    let (has_origins, restates) = (true, true);
    let previous = first.previous;
    let header = LogHeader { database, file, kind, salt, previous, has_origins, restates };
    let begun_micros = first.begun_micros.min(context.runtime.wall_micros());
    let begin = LogBegin { first_sequence: first.first_sequence, wall_micros: begun_micros };
    let written =
        copy(context, header, begin, found).map(|writer| writer.as_previous(last_sequence));
    if written.is_err() {
        // If it stays, the next opening removes it.
        let _ = context.store.remove(FileName::wal(file));
    }
    let first_sequence = first.first_sequence;
    Ok((ChangeLog { file, first_sequence, begun_micros, previous, restates }, written?))
}

fn copy(
    context: &Context,
    header: LogHeader,
    begin: LogBegin,
    found: &[Arc<ChangeLog>],
) -> Result<LogWriter> {
    let append = context.store.create(FileName::wal(header.file), &FileHint::default())?;
    let mut writer = LogWriter::create(append, header, Cause::Wal)?;
    writer.append(&[&begin.encode()])?;
    for log in found {
        let name = FileName::wal(log.file);
        let file = context.store.open(name, false)?;
        let identity = wal_identity(context.database, log.file);
        let mut reader = LogReader::open(&*file, identity, 0, Cause::Recovery)?;
        while let Some(record) = reader.next()? {
            let in_file = |error: Error| error.in_file(name.to_string()).at(record.offset);
            if LogRecord::parse(record.payload, true).map_err(in_file)?.batch().is_some() {
                writer.append(&[record.payload])?;
            }
        }
    }
    writer.sync()?;
    context.store.sync_names()?;
    Ok(writer)
}
