//! The handle of a follower: a reader beside the process that writes.

use super::changes::{Changes, Since};
use super::db::{Closer, Db, Keyspace};
use crate::engine::Engine;
use crate::engine::changes::feed::Feed;
use crate::engine::changes::source::{Files, Reader};
use crate::engine::core::Core;
use crate::engine::follow::Follow;
use crate::options::Options;
use crate::runtime::Threads;
use base::env::{Runtime, Worker};
use base::{Error, KeyspaceId, Ledger, Result, SequenceNumber};
use media::os::{OsOptions, OsStore};
use media::{FileStore, PairStore};
use parking_lot::{Mutex, RwLock};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Reads a database while another process, or another handle of this one, writes it.
///
/// [`Follower::db`] gives the database as it was at the last [`Follower::catch_up`]: all keyspaces
/// at one moment, between two batches. A [`Db`] that it gave never changes, and refuses writes. A
/// follower sees what the writer handed to the system, synced or not. It takes no lock and writes
/// nothing; it needs a file descriptor for each table.
///
/// After the writer was killed and opened the database again, reads through an older [`Db`] may
/// fail with [`Corruption`](crate::ErrorKind::Corruption) where large values stand in segments:
/// catch up and read again.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use shingle::Options;
///
/// let writer = Options::new().open(dir.path())?;
/// writer.put("apple", "red")?;
///
/// let follower = Options::new().follow(dir.path())?;
/// let before = follower.db();
/// writer.put("apple", "green")?;
/// assert!(follower.catch_up()?);
/// assert_eq!(follower.db().get("apple")?.as_deref(), Some(&b"green"[..]));
/// assert_eq!(before.get("apple")?.as_deref(), Some(&b"red"[..]));
/// # Ok(())
/// # }
/// ```
pub struct Follower {
    shared: Arc<Shared>,
    /// Runs the polling.
    runtime: Arc<dyn Runtime>,
}

struct Shared {
    follow: Mutex<Follow>,
    latest: RwLock<Db>,
    polling: Mutex<Polling>,
    runtime: Arc<dyn Runtime>,
}

#[derive(Default)]
struct Polling {
    every_ns: Option<u64>,
    next_ns: u64,
    last_error: Option<Error>,
}

impl Options {
    /// Opens the database in the directory `path` beside a process that writes it, or may do so
    /// later. Options for writing have no effect.
    ///
    /// # Errors
    ///
    /// As for [`Options::open`], but never [`Locked`](crate::ErrorKind::Locked); also
    /// [`WouldWait`](crate::ErrorKind::WouldWait) where the writer changed files faster than they
    /// could be read.
    pub fn follow(self, path: impl AsRef<Path>) -> Result<Follower> {
        let store = self.directory_to_follow(path, Arc::new(Ledger::default()))?;
        self.follow_store(Arc::new(store))
    }

    /// [`Options::follow`] for a database with the cold store in the directory `cold`.
    ///
    /// # Errors
    ///
    /// As for [`Options::follow`].
    pub fn follow_with_cold(
        self,
        path: impl AsRef<Path>,
        cold: impl AsRef<Path>,
    ) -> Result<Follower> {
        let ledger = Arc::new(Ledger::default());
        let first = self.directory_to_follow(path, ledger.clone())?;
        let cold = self.directory_to_follow(cold, ledger)?;
        self.follow_store(Arc::new(PairStore::new(Arc::new(first), Arc::new(cold))?))
    }

    /// The directory `path` as [`Options::follow`] takes it: for stores that are made of several.
    ///
    /// # Errors
    ///
    /// As for [`Options::directory`].
    pub fn directory_to_follow(
        &self,
        path: impl AsRef<Path>,
        ledger: Arc<Ledger>,
    ) -> Result<OsStore> {
        let os = OsOptions {
            create: false,
            read_only: true,
            direct_background: self.direct_io,
            keeps_files: true,
            ..OsOptions::default()
        };
        OsStore::open(path.as_ref(), ledger, os)
    }

    /// Follows the database in `store`, whose files may change under it. The store must keep open
    /// files readable when another opener removes them.
    ///
    /// # Errors
    ///
    /// As for [`Options::follow`].
    pub fn follow_store(self, store: Arc<dyn FileStore>) -> Result<Follower> {
        self.follow_in(store, Arc::new(Threads::new()))
    }

    /// [`Options::follow_store`], with clock and threads from `runtime`.
    ///
    /// # Errors
    ///
    /// As for [`Options::follow`].
    pub fn follow_in(
        self,
        store: Arc<dyn FileStore>,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Follower> {
        let mut follow = Follow::new(self.read_only(true), store, runtime.clone());
        let engine = follow.catch_up()?.ok_or_else(|| Error::invalid("nothing was read"))?;
        let shared = Shared {
            follow: Mutex::new(follow),
            latest: RwLock::new(handle(engine)?),
            polling: Mutex::default(),
            runtime: runtime.clone(),
        };
        Ok(Follower { shared: Arc::new(shared), runtime })
    }
}

fn handle(engine: Arc<Engine>) -> Result<Db> {
    let state = engine.keyspace_by_id(KeyspaceId(0))?;
    Ok(Db { default: Keyspace { state, closer: Arc::new(Closer { engine }) } })
}

impl Follower {
    /// The database as of the last catch-up.
    pub fn db(&self) -> Db {
        self.shared.latest.read().clone()
    }

    /// The sequence number of the last write in [`Follower::db`].
    pub fn sequence(&self) -> SequenceNumber {
        self.db().default.engine().snapshots.visible()
    }

    /// Reads what the writer has written since the last call. False: nothing.
    ///
    /// # Errors
    ///
    /// As for [`Options::follow`]. [`Follower::db`] stays what it was; the next call begins anew.
    pub fn catch_up(&self) -> Result<bool> {
        self.shared.catch_up()
    }

    /// The batches that the writer committed after `since`, in commit order: [`Db::changes`] beside
    /// the writer, which must keep changes. The feed reads the writer's files by itself, synced or
    /// not, and is independent of [`Follower::catch_up`].
    ///
    /// # Errors
    ///
    /// As for [`Db::changes`], and for [`Follower::catch_up`], which the feed calls where it meets
    /// a keyspace that it does not know.
    pub fn changes(&self, since: impl Into<Since>) -> Result<Changes> {
        self.catch_up()?;
        let source = Files::new(self.shared.clone())?;
        Ok(Changes::new(Feed::new(Box::new(source), since.into().sequence())?))
    }

    /// Catches up by itself in this interval, from a thread of its own, until the follower is
    /// dropped. A failed attempt does not end that: [`Follower::poll_error`] has its error.
    pub fn poll_every(&self, interval: Duration) {
        let every_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1);
        let mut polling = self.shared.polling();
        let is_first = polling.every_ns.replace(every_ns).is_none();
        polling.next_ns = self.runtime.now_ns().saturating_add(every_ns);
        drop(polling);
        if is_first {
            self.runtime.start(self.shared.clone(), 1);
        }
        self.runtime.wake();
    }

    /// The error of the last attempt to catch up by polling; `None` if it succeeded.
    pub fn poll_error(&self) -> Option<Error> {
        self.shared.polling().last_error.clone()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.runtime.stop();
    }
}

impl Shared {
    fn catch_up(&self) -> Result<bool> {
        let mut follow = self.follow.lock();
        let Some(engine) = follow.catch_up()? else { return Ok(false) };
        let db = handle(engine)?;
        *self.latest.write() = db;
        Ok(true)
    }

    fn polling(&self) -> parking_lot::MutexGuard<'_, Polling> {
        self.polling.lock()
    }
}

impl Reader for Arc<Shared> {
    fn core(&self, anew: bool) -> Result<Arc<Core>> {
        if anew {
            self.catch_up()?;
        }
        Ok(self.latest.read().engine().core.clone())
    }
}

impl Worker for Shared {
    fn step(&self) -> bool {
        if self.next_ns() == Some(0) {
            let caught_up = self.catch_up();
            let mut polling = self.polling();
            polling.last_error = caught_up.err();
            polling.next_ns =
                self.runtime.now_ns().saturating_add(polling.every_ns.unwrap_or(u64::MAX));
        }
        false
    }

    fn next_ns(&self) -> Option<u64> {
        let polling = self.polling();
        polling.every_ns.map(|_| polling.next_ns.saturating_sub(self.runtime.now_ns()))
    }
}
