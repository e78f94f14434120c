//! What every part of an open database shares: the store, the clock, the settings, the cache, the
//! memory account, the snapshots, the keyspaces, and the rules of failure.
//!
//! A part that needs no more than this takes a [`Context`]. A context knows neither the log nor the
//! trees.

use crate::admission::{Admission, Pressure};
use crate::engine::changes::retained::ChangeLogs;
use crate::engine::events::Events;
use crate::engine::gate::{Gate, Inside};
use crate::engine::memory::Memory;
use crate::engine::reserve::Reserve;
use crate::engine::sleep::Sleep;
use crate::engine::traffic::Noted;
use crate::engine::work_stats::WorkStats;
use crate::event::Event;
use crate::ingest;
use crate::key_locks::Locks;
use crate::keyspace::KeyspaceState;
use crate::live::Live;
use crate::read::context::ReadContext;
use crate::read::kept_views::KeptViews;
use crate::read::moment::Moment;
use crate::settings::Settings;
use crate::snapshot_list::SnapshotList;
use crate::stats::Latencies;
use crate::transaction_counters::Counters;
use base::env::Runtime;
use base::{
    DatabaseId, Error, ErrorKind, FileId, KeyspaceId, Ledger, Result, RunId, SequenceNumber,
};
use media::{AppendFile, FileHint, FileName, FileStore, Space};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use table::BlockCache;
use tree::ObsoleteFiles;

/// What the parts of one open database share.
pub(crate) struct Context {
    pub store: Arc<dyn FileStore>,
    pub runtime: Arc<dyn Runtime>,
    pub settings: Settings,
    pub live: Live,
    pub database: DatabaseId,
    pub cache: Arc<BlockCache>,
    pub memory: Memory,
    pub read: Arc<ReadContext>,
    pub snapshots: SnapshotList,
    pub kept_views: KeptViews,
    pub admission: Admission,
    pub latencies: Latencies,
    pub work_stats: WorkStats,
    pub events: Events,
    /// Keys that transactions have locked.
    pub locks: Locks,
    pub transactions: Counters,
    pub ingestions: ingest::Counters,
    /// Fires when background work has made a step that a thread may wait for.
    pub progress: base::env::Event,
    /// Fires when a memtable was sealed: a flush is due.
    pub sealed: base::env::Event,
    keyspaces: RwLock<BTreeMap<KeyspaceId, Arc<KeyspaceState>>>,
    numbers: Numbers,
    poison: OnceLock<Error>,
    /// The logs that change feeds read; `None`: no changes are kept.
    pub changes: Option<ChangeLogs>,
    /// Space that is kept free for work that must go on.
    pub reserve: Reserve,
    /// Whether workers sleep until they are woken.
    pub sleep: Sleep,
    /// Files that no version refers to any more.
    pub obsolete_files: Arc<ObsoleteFiles>,
    /// Shut when closing begins.
    pub gate: Gate,
    pub opened_ns: u64,
    /// The part of the ledger that is already in the event log.
    pub noted: Noted,
    pub read_only: bool,
    /// Another process, or another handle, writes the files.
    pub follows: bool,
}

/// The next free numbers.
pub(crate) struct Numbers {
    pub next_file: AtomicU64,
    pub next_run: AtomicU64,
}

/// What a context is made of; see [`Context`].
pub(crate) struct Parts {
    pub store: Arc<dyn FileStore>,
    pub runtime: Arc<dyn Runtime>,
    pub settings: Settings,
    pub database: DatabaseId,
    pub cache: Arc<BlockCache>,
    pub memory: Memory,
    pub read: Arc<ReadContext>,
    pub keyspaces: BTreeMap<KeyspaceId, Arc<KeyspaceState>>,
    pub numbers: Numbers,
    pub changes: Option<ChangeLogs>,
    pub obsolete_files: Arc<ObsoleteFiles>,
    pub read_only: bool,
    pub follows: bool,
}

impl Context {
    pub(crate) fn new(parts: Parts) -> Context {
        let now_ns = parts.runtime.now_ns();
        // Each look of a follower is an engine of its own.
        let listener = parts.settings.listener.clone().filter(|_| !parts.follows);
        Context {
            live: Live::new(&parts.settings.options),
            admission: Admission::new(parts.settings.admission),
            snapshots: SnapshotList::default(),
            kept_views: KeptViews::default(),
            latencies: Latencies::default(),
            work_stats: WorkStats::default(),
            events: Events::new(parts.store.clone(), parts.runtime.clone(), listener),
            locks: Locks::default(),
            transactions: Counters::default(),
            ingestions: ingest::Counters::default(),
            progress: base::env::Event::default(),
            sealed: base::env::Event::default(),
            opened_ns: now_ns,
            noted: Noted::new(now_ns, parts.store.ledger().snapshot()),
            changes: parts.changes,
            reserve: Reserve::default(),
            sleep: Sleep::default(),
            obsolete_files: parts.obsolete_files,
            gate: Gate::default(),
            poison: OnceLock::new(),
            store: parts.store,
            runtime: parts.runtime,
            settings: parts.settings,
            database: parts.database,
            cache: parts.cache,
            memory: parts.memory,
            read: parts.read,
            keyspaces: RwLock::new(parts.keyspaces),
            numbers: parts.numbers,
            read_only: parts.read_only,
            follows: parts.follows,
        }
    }

    /// The state of `keyspace` for a reader that begins now without a snapshot.
    #[inline(always)]
    pub(crate) fn moment(&self, keyspace: &KeyspaceState) -> Moment {
        let separates = keyspace.values.layout.separates();
        Moment::now(
            || keyspace.view(),
            &self.snapshots,
            separates,
            || {
                // Compiled to nothing in production: every get passes here.
                #[cfg(any(test, feature = "testing"))]
                self.runtime.interleave("moment");
            },
        )
    }

    /// The state of `keyspace` for a reader that holds a snapshot at `sequence`.
    pub(crate) fn moment_held(&self, sequence: SequenceNumber, keyspace: &KeyspaceState) -> Moment {
        let view = keyspace.view();
        // In this order: where the view is the one after a filter's decisions, or after files came
        // in below, the view from before was kept already.
        let keeps = keyspace.filter.is_some() || keyspace.options.ingests_below;
        let kept = keeps.then(|| self.kept_views.get(sequence, keyspace.id)).flatten();
        Moment::held(sequence, kept.unwrap_or(view))
    }

    /// A reader ends that held `sequence`.
    pub(crate) fn release_snapshot(&self, sequence: SequenceNumber) {
        if self.gate.is_inherited() {
            return;
        }
        let mut has_ended = false;
        self.snapshots.release(sequence, || {
            self.kept_views.release(sequence);
            has_ended = true;
        });
        if has_ended {
            self.sleep.end_by_reader(sequence, self.snapshots.visible(), &*self.runtime);
            self.release_files();
        }
    }

    /// A reader ended that may have been the last to hold files.
    pub(crate) fn release_files(&self) {
        // No step removes them from a poisoned database, and a child has no workers.
        let may_go =
            || !self.read_only && !self.gate.is_inherited() && self.poisoned_by().is_none();
        if self.obsolete_files.has_some() && may_go() {
            self.runtime.wake();
        }
    }

    #[inline]
    pub(crate) fn ledger(&self) -> &Arc<Ledger> {
        self.store.ledger()
    }

    /// Every keyspace that is not dropped.
    pub(crate) fn keyspaces(&self) -> Vec<Arc<KeyspaceState>> {
        let keyspaces = self.keyspaces.read();
        keyspaces.values().cloned().collect()
    }

    pub(crate) fn find_keyspace(&self, id: KeyspaceId) -> Option<Arc<KeyspaceState>> {
        self.keyspaces.read().get(&id).cloned()
    }

    pub(crate) fn change_keyspaces(
        &self,
        change: impl FnOnce(&mut BTreeMap<KeyspaceId, Arc<KeyspaceState>>),
    ) {
        change(&mut self.keyspaces.write());
    }

    /// A file number that was never used before.
    pub(crate) fn new_file(&self) -> FileId {
        FileId(self.numbers.next_file.fetch_add(1, Ordering::Relaxed))
    }

    /// A run number that was never used before.
    pub(crate) fn new_run(&self) -> RunId {
        RunId(self.numbers.next_run.fetch_add(1, Ordering::Relaxed))
    }

    /// The next free file and run numbers, for the manifest.
    pub(crate) fn next_numbers(&self) -> (u64, u64) {
        let load = |n: &AtomicU64| n.load(Ordering::Relaxed);
        (load(&self.numbers.next_file), load(&self.numbers.next_run))
    }

    /// Refuses every later write, because `error` left an unknown outcome on the medium. Returns
    /// the error.
    pub(crate) fn poison(&self, error: Error) -> Error {
        if self.poison.set(error.clone()).is_ok() {
            self.events.add(Event::Poisoned { error: error.clone() });
        }
        self.admission.release();
        self.progress.signal();
        self.note_changes();
        error
    }

    /// Like [`Context::poison`], unless the step failed for lack of a file descriptor and so did
    /// nothing.
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

    /// Opens a file to append after its first `bytes`, and cuts off the rest. Every append to a
    /// file that an edit names goes through here.
    ///
    /// An edit of unknown outcome may vouch for the bytes that are cut off. A job gives the file
    /// back only after its failed edit has poisoned the database. So a job that gets the file
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

    /// Checks that a write may begin.
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
        let message = match self.gate.is_inherited() {
            true => {
                "this process was forked from the one that opened the database: open the database \
                 in the process that uses it"
            }
            false => "the database was closed",
        };
        Error::new(ErrorKind::Closed, message)
    }

    /// Refuses a forked child, before it waits for a lock that a thread of its parent has.
    #[inline]
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.gate.is_inherited() { Err(self.closed()) } else { Ok(()) }
    }

    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.gate.is_shut()
    }

    /// Enters the engine to work; closing waits until the caller leaves.
    pub(crate) fn enter(&self) -> Result<Inside<'_>> {
        self.gate.enter().ok_or_else(|| self.closed())
    }

    /// Checks that long work may go on. Closing waits for that work.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closing() { Err(self.closed()) } else { Ok(()) }
    }

    /// Tells admission and the cache how much the memtables hold. Call it without the commit lock
    /// when that fell: it wakes writers, and their first step takes that lock.
    pub(crate) fn memtables_changed(&self) {
        // Of two concurrent calls, the later one reads what the other's lock holder has stored.
        self.change_pressure(|pressure| pressure.sealed_bytes = self.memory.sealed_bytes());
        self.resize_cache();
    }

    /// Changes what admission knows of the background work.
    pub(crate) fn change_pressure(&self, change: impl FnOnce(&mut Pressure)) {
        let stalls = || self.admission.stalls();
        self.events.end_stall(false, stalls);
        self.admission.update(change, |change| self.events.note_stall(change, stalls));
    }

    /// Gives the cache what the rest of the account leaves. Called where the account changes much:
    /// when a memtable is sealed or flushed, and between background steps.
    pub(crate) fn resize_cache(&self) {
        let open_bytes = self.read.tables.open_bytes();
        if let Some(bytes) = self.memory.cache_resize(open_bytes, self.cache.capacity_bytes()) {
            self.cache.set_capacity(bytes);
        }
    }

    /// Changes an option of those that may change while the database is open.
    pub(crate) fn set_option(&self, name: &str, value: &str) -> Result<()> {
        let options = self.live.set(name, value)?;
        match self.memory.set_budget(options.memory_bytes, options.cache_bytes) {
            Some(cache_bytes) => self.cache.set_capacity(cache_bytes),
            None => self.resize_cache(),
        }
        Ok(())
    }

    /// Space on the medium; `None` where it is unknown.
    pub(crate) fn space(&self) -> Option<Space> {
        self.store.capacity()?.space()
    }

    /// Work that must go on is out of space. `true`: the caller may try again, with the reserve.
    pub(crate) fn release_reserve(&self) -> bool {
        self.reserve.release(self.store.capacity(), &self.events)
    }

    /// A commit was made, under the commit lock.
    #[inline]
    pub(crate) fn note_commit(&self) {
        self.sleep.end_by_commit(&*self.runtime);
        self.note_changes();
    }

    /// Change feeds may find more, or will find no more.
    #[inline]
    pub(crate) fn note_changes(&self) {
        if let Some(changes) = &self.changes {
            changes.progress.signal();
        }
    }

    /// The medium is out of space: removes the logs that only change feeds need. `true`: there were
    /// some.
    pub(crate) fn give_up_change_logs(&self) -> bool {
        let logs = self.changes.as_ref().map_or_else(Vec::new, ChangeLogs::take_all);
        if logs.is_empty() {
            return false;
        }
        self.events.add(Event::ChangesGivenUp { logs: logs.len() as u64 });
        for log in logs {
            if let Err(error) = self.store.remove(FileName::wal(log)) {
                self.events.add(Event::FileDeletionFailed { error });
            }
        }
        true
    }

    /// Does `work`; if it is out of space, once more without the logs that only change feeds need.
    pub(crate) fn before_change_logs<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<T> {
        match work() {
            Err(error) if error.kind() == ErrorKind::NoSpace && self.give_up_change_logs() => {
                work()
            }
            done => done,
        }
    }

    /// Does `work`; if it is out of space, once more without the logs that only change feeds need,
    /// and then with the reserve.
    pub(crate) fn with_reserve<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<T> {
        match self.before_change_logs(&mut work) {
            Err(error) if error.kind() == ErrorKind::NoSpace && self.release_reserve() => work(),
            done => done,
        }
    }

    /// While the reserve is released, a compaction may go on only if it leaves the space that the
    /// memtables need. Otherwise `NoSpace`: its output so far is removed, and its space is free
    /// again.
    pub(crate) fn check_space_to_rewrite(&self) -> Result<()> {
        if !self.reserve.is_out() {
            return Ok(());
        }
        let Some(space) = self.space() else { return Ok(()) };
        let needed_bytes = self.memory.memtable_bytes().min(self.reserve.bytes());
        if space.free_bytes >= needed_bytes {
            return Ok(());
        }
        let message = format!(
            "the medium has {} bytes free and a flush may need {needed_bytes}: no compaction \
             begins or goes on",
            space.free_bytes
        );
        Err(Error::new(ErrorKind::NoSpace, message))
    }
}
