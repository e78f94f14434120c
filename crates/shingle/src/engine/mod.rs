//! The engine: what one open database consists of. Its parts are in modules of their own; here is
//! what they share, and the rules of failure.
//!
//! Lock order: `trees` before `sync` before `commit` before a keyspace's view. Nobody who holds
//! `commit` or a view does I/O on tables or the manifest.

mod check;
mod checkpoint;
pub(crate) mod clean;
pub(crate) mod close;
pub(crate) mod commit;
pub(crate) mod events;
mod exchanged;
mod flush;
mod gate;
pub(crate) mod memory;
pub(crate) mod open;
mod operands;
mod output;
mod parked;
mod parts;
mod recent;
pub(crate) mod recover;
mod relocate;
pub(crate) mod reserve;
mod rest;
mod rewrite;
pub(crate) mod scheduler;
pub(crate) mod sync;
mod traffic;
pub(crate) mod trees;
pub(crate) mod values;
pub(crate) mod work_stats;

use crate::admission::Admission;
use crate::engine::commit::CommitState;
use crate::engine::events::Events;
use crate::engine::gate::{Gate, Inside};
use crate::engine::memory::Memory;
use crate::engine::reserve::Reserve;
use crate::engine::scheduler::Scheduler;
use crate::engine::sync::SyncState;
use crate::engine::trees::Trees;
use crate::engine::work_stats::WorkStats;
use crate::keyspace::KeyspaceState;
use crate::memtable::ChunkPool;
use crate::read::moment::Moment;
use crate::read::view::Runs;
use crate::settings::Settings;
use crate::snapshot_list::SnapshotList;
use crate::stats::Latencies;
use base::env::{Event, Runtime};
use base::{
    DatabaseId, Error, ErrorKind, FileId, KeyspaceId, Ledger, LedgerSnapshot, Result, RunId,
};
use media::{AppendFile, FileHint, FileName, FileStore, StoreLock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use table::BlockCache;

/// One open database.
pub(crate) struct Engine {
    pub store: Arc<dyn FileStore>,
    pub runtime: Arc<dyn Runtime>,
    pub settings: Settings,
    pub database: DatabaseId,
    pub cache: Arc<BlockCache>,
    pub memory: Memory,
    /// What memtables are made of.
    pub chunks: Arc<ChunkPool>,
    pub runs: Arc<Runs>,
    pub snapshots: SnapshotList,
    pub admission: Admission,
    pub sync: SyncState,
    pub scheduler: Scheduler,
    pub latencies: Latencies,
    pub work_stats: WorkStats,
    pub events: Events,
    /// Background work made a step that somebody may wait for.
    pub progress: Event,
    commit: Mutex<CommitState>,
    trees: Mutex<Trees>,
    keyspaces: RwLock<BTreeMap<KeyspaceId, Arc<KeyspaceState>>>,
    numbers: Numbers,
    poison: OnceLock<Error>,
    /// Space that is kept free for what must go on.
    pub reserve: Reserve,
    /// Shut when closing begins.
    gate: Gate,
    /// How closing ended.
    pub closed_result: Mutex<Option<Result<()>>>,
    pub opened_ns: u64,
    /// What of the ledger is in the event log.
    pub noted: traffic::Noted,
    /// The ledger when a report was asked for the last time, or at opening.
    pub reported: Mutex<LedgerSnapshot>,
    pub read_only: bool,
    /// Keeps other openers out.
    pub lock: Mutex<Option<StoreLock>>,
}

/// The next free numbers.
pub(crate) struct Numbers {
    pub next_file: AtomicU64,
    pub next_run: AtomicU64,
}

/// What an engine is made of; see [`Engine`].
pub(crate) struct Parts {
    pub store: Arc<dyn FileStore>,
    pub runtime: Arc<dyn Runtime>,
    pub settings: Settings,
    pub database: DatabaseId,
    pub cache: Arc<BlockCache>,
    pub memory: Memory,
    pub runs: Arc<Runs>,
    pub commit: CommitState,
    pub trees: Trees,
    pub keyspaces: BTreeMap<KeyspaceId, Arc<KeyspaceState>>,
    pub numbers: Numbers,
    pub read_only: bool,
    pub lock: Option<StoreLock>,
}

impl Engine {
    pub(crate) fn new(parts: Parts) -> Engine {
        let snapshots = SnapshotList::default();
        snapshots.publish(parts.commit.next_sequence - 1);
        let chunks =
            ChunkPool::new(parts.settings.memtable_bytes_max as usize, parts.settings.flush_bytes);
        Engine {
            admission: Admission::new(parts.settings.admission),
            sync: SyncState::default(),
            scheduler: Scheduler::new(parts.settings.background_threads),
            latencies: Latencies::default(),
            work_stats: WorkStats::default(),
            events: Events::new(parts.store.clone(), parts.runtime.clone()),
            progress: Event::default(),
            opened_ns: parts.runtime.now_ns(),
            noted: traffic::Noted::new(parts.runtime.now_ns(), parts.store.ledger().snapshot()),
            reported: Mutex::new(parts.store.ledger().snapshot()),
            store: parts.store,
            runtime: parts.runtime,
            settings: parts.settings,
            database: parts.database,
            cache: parts.cache,
            memory: parts.memory,
            chunks,
            runs: parts.runs,
            snapshots,
            commit: Mutex::new(parts.commit),
            trees: Mutex::new(parts.trees),
            keyspaces: RwLock::new(parts.keyspaces),
            numbers: parts.numbers,
            poison: OnceLock::new(),
            reserve: Reserve::default(),
            gate: Gate::default(),
            closed_result: Mutex::new(None),
            read_only: parts.read_only,
            lock: Mutex::new(parts.lock),
        }
    }

    /// What a reader that begins now, and holds no snapshot, reads of `keyspace`.
    #[inline]
    pub(crate) fn moment(&self, keyspace: &KeyspaceState) -> Moment {
        let separates = keyspace.values.layout.separates();
        Moment::now(
            || keyspace.view(),
            &self.snapshots,
            separates,
            || {
                // Not in production: every get comes through here.
                #[cfg(any(test, feature = "testing"))]
                self.runtime.interleave("moment");
            },
        )
    }

    pub(crate) fn ledger(&self) -> &Arc<Ledger> {
        self.store.ledger()
    }

    #[inline]
    pub(crate) fn lock_commit(&self) -> MutexGuard<'_, CommitState> {
        self.commit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_trees(&self) -> MutexGuard<'_, Trees> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every living keyspace.
    pub(crate) fn keyspaces(&self) -> Vec<Arc<KeyspaceState>> {
        let keyspaces = self.keyspaces.read().unwrap_or_else(PoisonError::into_inner);
        keyspaces.values().cloned().collect()
    }

    pub(crate) fn find_keyspace(&self, id: KeyspaceId) -> Option<Arc<KeyspaceState>> {
        self.keyspaces.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    pub(crate) fn change_keyspaces(
        &self,
        change: impl FnOnce(&mut BTreeMap<KeyspaceId, Arc<KeyspaceState>>),
    ) {
        change(&mut self.keyspaces.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// A file number that was never given before.
    pub(crate) fn new_file(&self) -> FileId {
        FileId(self.numbers.next_file.fetch_add(1, Ordering::Relaxed))
    }

    /// A run number that was never given before.
    pub(crate) fn new_run(&self) -> RunId {
        RunId(self.numbers.next_run.fetch_add(1, Ordering::Relaxed))
    }

    /// The next free file and run numbers, for the manifest.
    pub(crate) fn next_numbers(&self) -> (u64, u64) {
        let load = |n: &AtomicU64| n.load(Ordering::Relaxed);
        (load(&self.numbers.next_file), load(&self.numbers.next_run))
    }

    /// Refuses every later write, because `error` left an unknown outcome on the medium. Gives the
    /// error back for the caller.
    pub(crate) fn poison(&self, error: Error) -> Error {
        if self.poison.set(error.clone()).is_ok() {
            self.events.error("poisoned", &error);
        }
        self.admission.release();
        self.progress.signal();
        error
    }

    /// [`Engine::poison`], unless the step did nothing, for want of a descriptor.
    pub(crate) fn poison_unless_tried_again(&self, error: Error) -> Error {
        if error.lacks_descriptors() { error } else { self.poison(error) }
    }

    pub(crate) fn poisoned_by(&self) -> Option<&Error> {
        self.poison.get()
    }

    pub(crate) fn check_poisoned(&self) -> Result<()> {
        match self.poison.get() {
            Some(cause) => Err(Error::poisoned(cause.clone())),
            None => Ok(()),
        }
    }

    /// Opens a file to append behind its first `bytes`, and cuts off what follows them. Every
    /// append to a file that an edit names goes through here.
    ///
    /// An edit of unknown outcome may vouch for the bytes that are cut off. A job gives the file
    /// back only after its failed edit has poisoned the database. So a job that was given the file
    /// afterwards finds the database poisoned here.
    pub(crate) fn extend_file(
        &self,
        name: FileName,
        bytes: u64,
        hint: &FileHint,
    ) -> Result<Box<dyn AppendFile>> {
        self.check_poisoned()?;
        self.store.extend(name, bytes, hint)
    }

    /// A write may begin.
    #[inline]
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::new(ErrorKind::Unsupported, "the database is open read-only"));
        }
        if self.is_closing() {
            return Err(self.closed());
        }
        self.check_poisoned()
    }

    pub(crate) fn closed(&self) -> Error {
        Error::new(ErrorKind::Closed, "the database was closed")
    }

    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.gate.is_shut()
    }

    /// Comes to work in the engine: closing waits for it to go.
    pub(crate) fn enter(&self) -> Result<Inside<'_>> {
        self.gate.enter().ok_or_else(|| self.closed())
    }

    /// Work that may take long goes on. Closing waits for it.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closing() { Err(self.closed()) } else { Ok(()) }
    }
}
