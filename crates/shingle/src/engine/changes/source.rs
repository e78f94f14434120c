//! Where a change feed finds its logs: in the open database that writes them, or in the files of a
//! database that this handle only reads.

use crate::engine::changes::chain::{Chain, ChangeLog, Newest, find_chain};
use crate::engine::changes::retained::ChangeLogs;
use crate::engine::commit_state::LogPosition;
use crate::engine::core::Core;
use base::env::{Event, Runtime};
use base::{DatabaseId, Error, ErrorKind, KeyspaceId, Result, SequenceNumber};
use media::FileStore;
use std::sync::Arc;

/// The time between two looks at files that another process writes.
const POLL_NS: u64 = 10_000_000;

/// The logs at one moment.
pub(crate) struct Logs {
    /// Oldest first.
    pub chain: Vec<Arc<ChangeLog>>,
    /// They have everything from this sequence number on.
    pub first_sequence: SequenceNumber,
    /// Records end here for now; `None`: where no whole record stands.
    pub end: Option<LogPosition>,
    /// The newest sequence number, as far as it is known.
    pub last_sequence: SequenceNumber,
}

/// Gives a feed its logs.
pub(crate) trait Source: Send {
    fn store(&self) -> &dyn FileStore;

    fn database(&self) -> DatabaseId;

    fn logs(&mut self) -> Result<Logs>;

    /// The name of a keyspace; `None`: it was dropped.
    fn keyspace(&mut self, id: KeyspaceId) -> Result<Option<Arc<str>>>;

    /// Counts what may bring changes. Take it before a look at the logs.
    fn progress(&self) -> u64;

    /// Waits until something may have come since `progress`. False: the deadline is over.
    fn wait(&self, progress: u64, deadline_ns: u64) -> Result<bool>;

    fn now_ns(&self) -> u64;
}

/// The open database that writes the logs.
pub(crate) struct Writer {
    core: Arc<Core>,
    durable_only: bool,
}

impl Writer {
    /// `Unsupported` if the database keeps no changes.
    pub(crate) fn new(core: Arc<Core>, durable_only: bool) -> Result<Writer> {
        let source = Writer { core, durable_only };
        source.changes().map(|_| ())?;
        Ok(source)
    }

    fn changes(&self) -> Result<&ChangeLogs> {
        self.core.changes.as_ref().ok_or_else(|| {
            let message = "the database keeps no changes: open it with `changes_retention_bytes` \
                           or `changes_retention_age`";
            Error::new(ErrorKind::Unsupported, message)
        })
    }
}

impl Source for Writer {
    fn store(&self) -> &dyn FileStore {
        &*self.core.store
    }

    fn database(&self) -> DatabaseId {
        self.core.database
    }

    fn logs(&mut self) -> Result<Logs> {
        self.core.check_open()?;
        let changes = self.changes()?;
        let (chain, first_sequence) = changes.chain();
        // What was logged before this opening is durable: in its log, or in the runs that it was
        // flushed to.
        let opened = changes.end().map(|end| LogPosition { file: end.file, bytes: end.bytes });
        let end = match self.durable_only {
            true => self.core.commits.syncs.durable(),
            false => self.core.commits.lock().position(),
        };
        let end = Some(end.max(opened.unwrap_or_default()));
        let last_sequence = self.core.snapshots.visible();
        Ok(Logs { chain, first_sequence, end, last_sequence })
    }

    fn keyspace(&mut self, id: KeyspaceId) -> Result<Option<Arc<str>>> {
        Ok(self.core.find_keyspace(id).map(|keyspace| keyspace.name.as_str().into()))
    }

    fn progress(&self) -> u64 {
        self.core.changes.as_ref().map_or(0, |changes| changes.progress.count())
    }

    fn wait(&self, progress: u64, deadline_ns: u64) -> Result<bool> {
        self.core.check_open()?;
        self.core.check_poisoned()?;
        let event = &self.changes()?.progress;
        self.core.runtime.wait(event, progress, Some(deadline_ns));
        Ok(event.count() != progress || self.now_ns() < deadline_ns)
    }

    fn now_ns(&self) -> u64 {
        self.core.runtime.now_ns()
    }
}

/// Tells the names of keyspaces and the newest sequence number of a database that another handle
/// writes.
pub(crate) trait Reader: Send {
    /// The engine over what was read so far. `anew`: as the files are now.
    fn core(&self, anew: bool) -> Result<Arc<Core>>;
}

/// A database that is open for reading only.
impl Reader for Arc<Core> {
    fn core(&self, _anew: bool) -> Result<Arc<Core>> {
        Ok(self.clone())
    }
}

/// The files of a database that another handle may be writing.
pub(crate) struct Files<R> {
    reader: R,
    store: Arc<dyn FileStore>,
    runtime: Arc<dyn Runtime>,
    database: DatabaseId,
    chain: Vec<Arc<ChangeLog>>,
}

impl<R: Reader> Files<R> {
    pub(crate) fn new(reader: R) -> Result<Files<R>> {
        let core = reader.core(false)?;
        let (store, runtime) = (core.store.clone(), core.runtime.clone());
        Ok(Files { reader, store, runtime, database: core.database, chain: Vec::new() })
    }

    fn find(&self, anew: bool) -> Result<(Arc<Core>, Chain)> {
        let core = self.reader.core(anew)?;
        core.check_open()?;
        let newest = Newest::Found { floor: core.versions.lock().log_floor };
        let chain = find_chain(&*self.store, self.database, newest, &self.chain)?;
        Ok((core, chain))
    }
}

impl<R: Reader> Source for Files<R> {
    fn store(&self) -> &dyn FileStore {
        &*self.store
    }

    fn database(&self) -> DatabaseId {
        self.database
    }

    fn logs(&mut self) -> Result<Logs> {
        let (core, chain) = match self.find(false)? {
            // The floor may have passed that log since the last look.
            (_, chain) if chain.is_behind => self.find(true)?,
            found => found,
        };
        self.chain = chain.logs;
        let last_sequence = core.snapshots.visible();
        let Some(first) = self.chain.first() else {
            let message = "there are no logs with changes: the writer keeps none, or has written \
                           nothing yet";
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        let first_sequence = first.first_sequence;
        Ok(Logs { chain: self.chain.clone(), first_sequence, end: None, last_sequence })
    }

    fn keyspace(&mut self, id: KeyspaceId) -> Result<Option<Arc<str>>> {
        // The writer may have created it since the last look.
        for anew in [false, true] {
            if let Some(keyspace) = self.reader.core(anew)?.find_keyspace(id) {
                return Ok(Some(keyspace.name.as_str().into()));
            }
        }
        Ok(None)
    }

    fn progress(&self) -> u64 {
        0
    }

    fn wait(&self, _progress: u64, deadline_ns: u64) -> Result<bool> {
        let now_ns = self.now_ns();
        if now_ns >= deadline_ns {
            return Ok(false);
        }
        let never = Event::default();
        self.runtime.wait(&never, never.count(), Some(deadline_ns.min(now_ns + POLL_NS)));
        Ok(true)
    }

    fn now_ns(&self) -> u64 {
        self.runtime.now_ns()
    }
}
