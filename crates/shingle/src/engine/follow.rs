//! Follows a database that another process, or another handle, may be writing: reads the manifest
//! and the logs on from where the last call stopped, and builds a read-only engine over the result.
//!
//! Invariants:
//! - Nothing is written, and no lock is taken.
//! - Each engine shows one prefix of the commit order. It never changes: the next call builds
//!   another one, over the same open tables and memtables. Entries that were added to a memtable
//!   since are newer than the engine's sequence number.
//! - The manifest is older than the logs that are read with it, and no edit came in between.
//!   So every sequence number that a run holds is in the prefix.
//! - An engine has all its files open: the writer may remove them.
//!
//! A follower meets files that are being written. What cannot be read yet is the end of what was
//! written, unless the next log proves that more was there. What cannot be read at all is read
//! again from the beginning, because the writer may have moved on; only then it is an error.

use crate::engine::Engine;
use crate::engine::open::{Foundation, Readers, assemble};
use crate::engine::recover::{Found, Replay, ReplayState, check};
use crate::options::Options;
use crate::read::missing;
use crate::settings::Settings;
use base::env::{Event, Runtime};
use base::{Cause, DatabaseId, Error, ErrorKind, FileId, KeyspaceId, Result, SequenceNumber};
use media::{FileKind, FileName, FileStore, ReadFile};
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::sync::Arc;
use table::log::{LogHeader, LogIdentity, LogKind, LogPosition, LogReader, durable_bytes};
use table::log_record::LogRecord;
use table::manifest::{decode_edit, decode_root};
use tree::ObsoleteFiles;

const CAUSE: Cause = Cause::Recovery;

/// The number of attempts to read a state that stands still. The writer gives time for one when it
/// rests between two edits.
const ATTEMPTS_MAX: u32 = 64;

/// A failure is returned after this many attempts from the beginning.
const FAILURES_MAX: u32 = 6;

/// The pause after the first failure, in nanoseconds. It doubles with each further one.
const PAUSE_NS: u64 = 2_000_000;

/// Follows one database.
pub(crate) struct Follow {
    options: Options,
    store: Arc<dyn FileStore>,
    runtime: Arc<dyn Runtime>,
    /// What was read; `None` before the first reading and after a failure.
    seen: Option<Seen>,
    /// The gap in the logs that every attempt met: power loss took a log, and history ends before
    /// it.
    history_end: Option<Gap>,
}

/// What was read of a database, up to some moment.
struct Seen {
    manifest: Manifest,
    found: Found,
    logs: Logs,
    settings: Settings,
    readers: Readers,
    /// The engine of the last call, and whether an edit came since.
    engine: Option<Arc<Engine>>,
    is_edited: bool,
}

struct Manifest {
    root: Vec<u8>,
    identity: LogIdentity,
    file: Arc<dyn ReadFile>,
    position: Option<LogPosition>,
}

/// The logs, read up to some position.
struct Logs {
    state: ReplayState,
    current: Option<Log>,
}

struct Log {
    id: FileId,
    /// Open, because the writer may remove it.
    file: Arc<dyn ReadFile>,
    position: Option<LogPosition>,
    /// The last sequence number up to the position, as the next log will name it.
    last_sequence: SequenceNumber,
    has_origins: bool,
}

/// How far the logs could be read.
enum Reached {
    /// To the end of what was written.
    End,
    /// To a gap. Either there is an edit that made the missing log useless, or it is lost.
    Gap(Gap),
}

/// A log that continues one which is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    missing: FileId,
    next: FileId,
}

impl Follow {
    pub(crate) fn new(
        options: Options,
        store: Arc<dyn FileStore>,
        runtime: Arc<dyn Runtime>,
    ) -> Follow {
        Follow { options, store, runtime, seen: None, history_end: None }
    }

    /// Reads on. The engine over what was found; `None`: nothing came since the last call.
    pub(crate) fn catch_up(&mut self) -> Result<Option<Arc<Engine>>> {
        let (mut attempts, mut failures) = (0, 0);
        loop {
            let is_last = failures + 1 == FAILURES_MAX;
            match self.read_on(is_last) {
                Ok(Some(engine)) => return Ok(engine),
                Ok(None) if attempts < ATTEMPTS_MAX => attempts += 1,
                Ok(None) => {
                    let message = "the writer's edits come faster than a follower reads them: \
                                   catch up later";
                    return Err(Error::new(ErrorKind::WouldWait, message));
                }
                Err(error) => {
                    self.seen = None;
                    failures += 1;
                    if failures == FAILURES_MAX || is_final(&error) {
                        return Err(error);
                    }
                    self.pause(PAUSE_NS << failures);
                }
            }
        }
    }

    fn pause(&self, ns: u64) {
        let never = Event::default();
        self.runtime.wait(&never, never.count(), Some(self.runtime.now_ns() + ns));
    }

    /// One attempt; `None`: the writer came in between. A gap that is there in the last attempt too
    /// is where history ends, as it is for recovery.
    fn read_on(&mut self, is_last: bool) -> Result<Option<Option<Arc<Engine>>>> {
        let root = self.root()?;
        let mut seen = match self.seen.take() {
            Some(seen) if seen.manifest.root == root => seen,
            _ => Seen::begin(&self.options, (&self.store, &self.runtime), root)?,
        };
        let store = &*self.store;
        seen.read_edits(store)?;
        let reached = seen.read_logs(store)?;
        if self.root()? != seen.manifest.root || seen.has_edits()? {
            self.seen = Some(seen);
            return Ok(None);
        }
        if let Reached::Gap(gap) = reached
            && self.history_end != Some(gap)
        {
            if !is_last {
                return Err(gap.error());
            }
            seen.expect_lost(&*self.store, gap)?;
            self.history_end = Some(gap);
        }
        let engine = seen.engine(&self.store, &self.runtime)?;
        self.seen = Some(seen);
        Ok(Some(engine))
    }

    fn root(&self) -> Result<Vec<u8>> {
        self.store.root()?.ok_or_else(|| {
            let message = format!("there is no database in {}", self.store.describe());
            Error::new(ErrorKind::NotFound, message)
        })
    }
}

/// Another attempt cannot end otherwise.
fn is_final(error: &Error) -> bool {
    use ErrorKind::{Incompatible, InvalidArgument, NotFound};
    matches!(error.kind(), Incompatible | InvalidArgument | NotFound)
}

impl Seen {
    /// Nothing is read yet but the root.
    fn begin(
        options: &Options,
        (store, runtime): (&Arc<dyn FileStore>, &Arc<dyn Runtime>),
        bytes: Vec<u8>,
    ) -> Result<Seen> {
        let root = decode_root(&bytes).map_err(|error| error.in_file("CURRENT"))?;
        let settings = Settings::of_database(options, &**store)?;
        let mut found = Found::empty(root.database, Arc::new(ObsoleteFiles::default()));
        found.manifest = Some(root.manifest);
        let name = FileName::manifest(root.manifest);
        let file = store.open(name, false).map_err(|error| missing(error, name))?;
        let (database, kind) = (root.database, LogKind::Manifest);
        let identity = LogIdentity { database, file: root.manifest, kind };
        Ok(Seen {
            manifest: Manifest { root: bytes, identity, file, position: None },
            logs: Logs { state: ReplayState::of(&found), current: None },
            readers: Readers::new(options, &settings, (store, runtime), root.database),
            settings,
            found,
            engine: None,
            is_edited: false,
        })
    }

    /// Reads the edits that came since. Where they flushed memtables or changed keyspaces, the logs
    /// are to be read from the floor again: what is in runs must not be in memtables too.
    fn read_edits(&mut self, store: &dyn FileStore) -> Result<()> {
        let before = self.flushed();
        let name = self.manifest.file.name();
        let mut reader = self.manifest.reader()?;
        let mut is_edited = false;
        while let Some(record) = reader.next()? {
            let offset = record.offset;
            let edit = decode_edit(record.payload, name, offset)?;
            let applied = self.found.apply(edit);
            applied.map_err(|error| error.in_file(name.to_string()).at(offset))?;
            is_edited = true;
        }
        let position = reader.position();
        self.manifest.position = Some(position);
        if !is_edited {
            return Ok(());
        }
        self.is_edited = true;
        self.found.check_cold_owner(store)?;
        check(store, &mut self.found)?;
        for dead in self.found.obsolete_files.drain() {
            self.readers.read.values.forget(dead.id);
        }
        if self.flushed() != before {
            self.logs = Logs { state: ReplayState::of(&self.found), current: None };
        }
        // No log has the sequence number of an ingestion.
        self.logs.state.pass(self.found.last_sequence);
        Ok(())
    }

    fn has_edits(&self) -> Result<bool> {
        Ok(self.manifest.reader()?.next()?.is_some())
    }

    /// Up to where each keyspace is in runs.
    fn flushed(&self) -> BTreeMap<KeyspaceId, SequenceNumber> {
        let keyspaces = self.found.keyspaces.iter();
        keyspaces.map(|(&id, keyspace)| (id, keyspace.version.flushed_sequence)).collect()
    }

    fn read_logs(&mut self, store: &dyn FileStore) -> Result<Reached> {
        let memtable_bytes_max = self.settings.memtable_bytes_max;
        let found = &self.found;
        let state = &mut self.logs.state;
        let mut replay = Replay { store, found, memtable_bytes_max, state };
        self.logs.current.iter_mut().try_for_each(|log| log.read(&mut replay))?;
        loop {
            let floor = found.log_floor;
            let current = self.logs.current.as_mut();
            let next = match next_log(store, found.database, floor, current.as_deref())? {
                Next::None => return Ok(Reached::End),
                Next::Gap(gap) => return Ok(Reached::Gap(gap)),
                Next::Log(mut next) => {
                    next.read(&mut replay)?;
                    next
                }
                Next::Unread { bytes } => {
                    let Some(log) = current else { return Ok(Reached::End) };
                    log.read(&mut replay)?;
                    if log.bytes() < bytes {
                        log.expect_nothing_durable(found.database)?;
                        return Ok(Reached::End);
                    }
                    continue;
                }
            };
            self.logs.current = Some(next);
        }
    }

    /// The missing log of `gap` was lost with the power: it has no other name, and nothing proves
    /// that it was durable.
    fn expect_lost(&mut self, store: &dyn FileStore, gap: Gap) -> Result<()> {
        let files = store.list()?;
        self.found.names = files.iter().map(|file| file.name).collect();
        let logs = self.found.names.iter().filter(|name| name.kind == FileKind::Wal);
        let mut later: Vec<FileId> = logs.map(|log| log.id).filter(|id| *id >= gap.next).collect();
        later.sort_unstable();
        let memtable_bytes_max = self.settings.memtable_bytes_max;
        let (found, state) = (&self.found, &mut self.logs.state);
        let replay = Replay { store, found, memtable_bytes_max, state };
        replay.exchanged().check_lost_log(gap.missing)?;
        replay.expect_nothing_durable(&later, &gap.to_string())
    }

    /// The engine over what was read; `None` if that is what the last one shows.
    fn engine(
        &mut self,
        store: &Arc<dyn FileStore>,
        runtime: &Arc<dyn Runtime>,
    ) -> Result<Option<Arc<Engine>>> {
        let replayed = self.logs.state.replayed();
        let shown = self.engine.as_ref().map(|engine| engine.snapshots.visible());
        if !self.is_edited && shown == Some(replayed.last_sequence) {
            return Ok(None);
        }
        let foundation = Foundation {
            store: store.clone(),
            runtime: runtime.clone(),
            settings: self.settings.clone(),
            readers: self.readers.clone(),
            read_only: true,
            follows: true,
        };
        let previous = self.engine.as_deref();
        let core = assemble(foundation, self.found.clone(), &replayed, None, previous)?;
        let engine = Arc::new(Engine::new(core, Box::new(())));
        engine.events.mute();
        for keyspace in engine.keyspaces() {
            keyspace.tree().open_files()?;
        }
        self.engine = Some(engine.clone());
        self.is_edited = false;
        Ok(Some(engine))
    }
}

impl Gap {
    fn error(&self) -> Error {
        Error::new(ErrorKind::Corruption, self.to_string())
            .in_file(FileName::wal(self.next).to_string())
    }
}

impl Display for Gap {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "log {} before it is missing", self.missing)
    }
}

impl Manifest {
    fn reader(&self) -> Result<LogReader<'_>> {
        LogReader::follow(&*self.file, self.identity, self.position, CAUSE)
    }
}

impl Log {
    fn bytes(&self) -> u64 {
        self.position.map_or(0, |position| position.offset)
    }

    /// Replays what was appended since. A value that a record points to may not be there yet: then
    /// the record is read again next time.
    fn read(&mut self, replay: &mut Replay<'_>) -> Result<()> {
        let name = FileName::wal(self.id);
        let identity = log_identity(replay.found.database, self.id);
        let mut reader = LogReader::follow(&*self.file, identity, self.position, CAUSE)?;
        if self.position.is_none() && reader.header().is_none() {
            // Where it ends is unknown then, and nothing more would ever be read.
            let message = "the header that was read before cannot be read again";
            return Err(Error::corruption(name.to_string(), 0, message));
        }
        self.position.get_or_insert(reader.position());
        while let Some(record) = reader.next()? {
            let offset = record.offset;
            let in_file = |error: Error| error.in_file(name.to_string()).at(offset);
            let record = LogRecord::parse(record.payload, self.has_origins).map_err(in_file)?;
            if replay.find_values(&record).map_err(in_file)?.is_some() {
                return Ok(());
            }
            let last = replay.record(&record).map_err(in_file)?;
            self.last_sequence = last.unwrap_or(self.last_sequence);
            self.position = Some(reader.position());
        }
        Ok(())
    }

    /// The next log says that this one is longer than what can be read of it. So the rest was lost,
    /// which is no error only if it was never durable.
    fn expect_nothing_durable(&self, database: DatabaseId) -> Result<()> {
        let proven_bytes = durable_bytes(&*self.file, log_identity(database, self.id), CAUSE)?;
        if proven_bytes <= self.bytes() {
            return Ok(());
        }
        let message = format!("no whole record, but {proven_bytes} bytes of the log were durable");
        Err(Error::corruption(FileName::wal(self.id).to_string(), self.bytes(), message))
    }

    /// `next` continues this log as it was read so far.
    fn is_before(&self, next: &LogHeader) -> bool {
        let end = self.position.map(|position| position.as_previous(self.id, self.last_sequence));
        end.is_some() && end == next.previous
    }
}

fn log_identity(database: DatabaseId, file: FileId) -> LogIdentity {
    LogIdentity { database, file, kind: LogKind::Wal }
}

/// What stands behind the log that is being read.
enum Next {
    /// Nothing yet.
    None,
    /// The log that continues it.
    Log(Log),
    /// A log that says that this one has this many bytes.
    Unread { bytes: u64 },
    /// A log that continues one that is gone, or that is gone itself by now.
    Gap(Gap),
}

/// Looks for the log that continues `current`, or for the first one from `floor` on. A log without
/// a whole header is being created, or was given up. One that restates others is for change feeds.
fn next_log(
    store: &dyn FileStore,
    database: DatabaseId,
    floor: FileId,
    current: Option<&Log>,
) -> Result<Next> {
    let from = current.map_or(floor, |log| FileId(log.id.0 + 1));
    let files = store.list()?;
    let logs = files.iter().map(|file| file.name);
    let mut logs: Vec<FileName> =
        logs.filter(|name| name.kind == FileKind::Wal && name.id >= from).collect();
    logs.sort_unstable();
    for name in logs {
        let file = match store.open(name, false) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Next::Gap(Gap { missing: name.id, next: name.id }));
            }
            opened => opened?,
        };
        let identity = log_identity(database, name.id);
        let Some(&header) = LogReader::follow(&*file, identity, None, CAUSE)?.header() else {
            continue;
        };
        if header.restates {
            continue;
        }
        let last_sequence = header.previous.map_or(0, |previous| previous.last_sequence);
        let log = || Log {
            id: name.id,
            file: file.clone(),
            position: None,
            last_sequence,
            has_origins: header.has_origins,
        };
        return match (current, header.previous) {
            (None, previous) if previous.is_none_or(|before| before.file < floor) => {
                Ok(Next::Log(log()))
            }
            (Some(current), _) if current.is_before(&header) => Ok(Next::Log(log())),
            (Some(current), Some(before)) if before.file == current.id => {
                chain(current, before.bytes, name)
            }
            (_, Some(before)) => Ok(Next::Gap(Gap { missing: before.file, next: name.id })),
            (_, None) => {
                let message = "the log continues none, but there is a log before it";
                Err(Error::corruption(name.to_string(), 0, message))
            }
        };
    }
    Ok(Next::None)
}

/// The log `next` continues `current`, but not as it was read so far.
fn chain(current: &Log, bytes: u64, next: FileName) -> Result<Next> {
    if bytes > current.bytes() {
        return Ok(Next::Unread { bytes });
    }
    let message = format!(
        "the log continues log {} with {bytes} bytes; {} bytes were read there",
        current.id,
        current.bytes()
    );
    Err(Error::corruption(next.to_string(), 0, message))
}
