//! The handles of a database and of its keyspaces.

use super::batch::WriteBatch;
use crate::admission::Wait;
use crate::engine::operands::check_operands;
use crate::engine::scheduler::EngineWorker;
use crate::engine::{Engine, open};
use crate::keyspace::{KeyspaceOptions, KeyspaceState};
use crate::options::{Durability, Options};
use crate::resources::Resources;
use crate::runtime::Threads;
use base::env::Runtime;
use base::{Expiry, KeyspaceId, Result};
use media::FileStore;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// How a write is done.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = shingle::Options::new().open(dir.path())?;
/// use shingle::{ErrorKind, WriteOptions};
///
/// // Returns when the value survives a power loss.
/// db.put_with("apple", "red", &WriteOptions::synced())?;
///
/// // Does not wait for background work.
/// let no_wait = WriteOptions { wait: false, ..WriteOptions::default() };
/// match db.put_with("pear", "green", &no_wait) {
///     Err(error) if error.kind() == ErrorKind::WouldWait => {
///         db.wait_writable(9, None)?;
///     }
///     other => other?,
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    /// What the write survives; `None`: as the database was opened. A keyspace without a log
    /// refuses [`Durability::Synced`] here, because the write could not keep the promise. It does
    /// not refuse the database's own durability.
    pub durability: Option<Durability>,
    /// True: wait while background work is behind. False: fail with
    /// [`ErrorKind::WouldWait`](crate::ErrorKind::WouldWait) instead; [`Db::wait_writable`] waits.
    pub wait: bool,
}

impl WriteOptions {
    /// A write that survives a power loss when it returns.
    pub fn synced() -> WriteOptions {
        WriteOptions { durability: Some(Durability::Synced), ..WriteOptions::default() }
    }
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions { durability: None, wait: true }
    }
}

/// Closes the engine when the last handle goes.
pub(crate) struct Closer {
    pub engine: Arc<Engine>,
}

impl Drop for Closer {
    fn drop(&mut self) {
        if self.engine.check_process().is_err() {
            // A forked child must not end what is its parent's: the engine stays in memory.
            std::mem::forget(self.engine.clone());
            return;
        }
        // A program that wants to see an error calls `Db::close`.
        let _ = self.engine.close();
    }
}

/// An open database. A cheap handle: clones are the same database.
///
/// Reads and writes of `Db` go to the keyspace `default`; [`Db::keyspace`] gives the others. The
/// database closes when [`Db::close`] is called or its last handle is dropped.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let db = shingle::Options::new().open(dir.path())?;
/// db.put("apple", "red")?;
/// db.put("pear", "green")?;
/// for pair in db.range("a".."b") {
///     let (key, value) = pair?;
///     assert_eq!((&key[..], &value[..]), (&b"apple"[..], &b"red"[..]));
/// }
/// println!("{}", db.stats());
/// db.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Db {
    pub(super) default: Keyspace,
}

/// A keyspace of an open database: ordered keys of its own. A cheap handle.
///
/// A [`WriteBatch`] is atomic across keyspaces, a [`Snapshot`](crate::Snapshot) holds one moment of
/// all of them.
///
/// # Errors
///
/// Every read and write fails with the kind [`Closed`](crate::ErrorKind::Closed) where the keyspace
/// was dropped, and every write where the database was closed.
///
/// Reads also fail with [`Corruption`](crate::ErrorKind::Corruption) where stored bytes are not
/// what was written, and [`Io`](crate::ErrorKind::Io) where the system cannot read. Where a merge
/// operator cannot apply the operands of a key, or the process does not know the operator, reads of
/// that key fail.
///
/// Writes also fail with:
///
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): the key or value exceeds its limit; a
///   synced write to a keyspace without a log.
/// - [`Unsupported`](crate::ErrorKind::Unsupported): the database is open for reading only.
/// - [`WouldWait`](crate::ErrorKind::WouldWait): background work is behind, and the write must not
///   wait.
/// - [`NoSpace`](crate::ErrorKind::NoSpace): the medium is full.
/// - [`Poisoned`](crate::ErrorKind::Poisoned): the outcome of an earlier failure is unknown: close
///   and reopen.
/// - [`Io`](crate::ErrorKind::Io): the system refused a write or a sync.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use shingle::{KeyspaceOptions, Options};
///
/// let db = Options::new().open(dir.path())?;
/// let users = db.open_or_create_keyspace("users", KeyspaceOptions::default())?;
/// users.put("7", "Ann")?;
/// assert_eq!(users.get("7")?.as_deref(), Some(&b"Ann"[..]));
/// assert_eq!(db.get("7")?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Keyspace {
    pub(crate) state: Arc<KeyspaceState>,
    pub(crate) closer: Arc<Closer>,
}

impl Options {
    /// Opens the database in `store`.
    ///
    /// # Errors
    ///
    /// As for [`Options::open`].
    pub fn open_store(self, store: Arc<dyn FileStore>) -> Result<Db> {
        let shared = self.resources.as_ref().and_then(Resources::runtime);
        self.open_in(store, shared.unwrap_or_else(|| Arc::new(Threads::new())))
    }

    /// Opens the database in `store`, with clock and threads from `runtime`.
    ///
    /// # Errors
    ///
    /// As for [`Options::open`].
    pub fn open_in(self, store: Arc<dyn FileStore>, runtime: Arc<dyn Runtime>) -> Result<Db> {
        self.resources.as_ref().map_or(Ok(()), Resources::check_process)?;
        let engine = open::open(&self, store, runtime)?;
        if engine.settings.start_threads && !engine.read_only {
            let worker = Arc::new(EngineWorker(Arc::downgrade(&engine)));
            engine.runtime.start(worker, engine.settings.background_threads);
            engine.runtime.wake();
        }
        let state = engine.keyspace_by_id(KeyspaceId(0))?;
        Ok(Db { default: Keyspace { state, closer: Arc::new(Closer { engine }) } })
    }
}

/// A batch that grew beyond this for a large value is given back.
const BATCH_BYTES_KEPT_MAX: usize = 1 << 20;

thread_local! {
    /// Reused by single writes, so that they do not allocate.
    static BATCH: RefCell<table::batch::WriteBatch> =
        const { RefCell::new(table::batch::WriteBatch::new()) };
}

impl Keyspace {
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.closer.engine
    }

    pub(crate) fn id(&self) -> KeyspaceId {
        self.state.id
    }

    /// The name of the keyspace.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The fixed properties of the keyspace.
    pub fn options(&self) -> &KeyspaceOptions {
        &self.state.options
    }

    /// Writes one operation.
    pub(super) fn write_one(
        &self,
        options: &WriteOptions,
        build: impl FnOnce(&mut table::batch::WriteBatch, KeyspaceId) -> Result<()>,
    ) -> Result<()> {
        BATCH.with(|kept| {
            // Taken, not borrowed: the store below may be made of databases of its own.
            let mut batch = kept.take();
            batch.clear();
            let written = build(&mut batch, self.state.id)
                .and_then(|()| self.engine().write(&mut batch, options.durability, options.wait))
                .map(drop);
            if batch.room_bytes() <= BATCH_BYTES_KEPT_MAX {
                kept.replace(batch);
            }
            written
        })
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_with(key, value, &WriteOptions::default())
    }

    /// [`Keyspace::put`] with options, such as [`WriteOptions::synced`].
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    #[inline]
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        match self.state.options.ttl {
            None => self.write_one(options, |batch, id| batch.put(id, key, value)),
            Some(ttl) => self.put_until(key, value, self.expiry_after(ttl), options),
        }
    }

    /// Sets `key` to `value` until `expiry`. Out of line, so that a put without an expiry does not
    /// pay for it.
    #[inline(never)]
    pub(super) fn put_until(
        &self,
        key: &[u8],
        value: &[u8],
        expiry: Expiry,
        options: &WriteOptions,
    ) -> Result<()> {
        self.write_one(options, |batch, id| batch.put_expiring(id, key, value, expiry))
    }

    /// When a value that is written now with the time to live `ttl` expires, by the clock of the
    /// database. The clock does not run backwards while the database is open.
    pub fn expiry_after(&self, ttl: Duration) -> Expiry {
        self.engine().read.clock.expiry_after(ttl)
    }

    /// When a value that is written now expires, if the write does not say: the keyspace's time to
    /// live.
    pub(crate) fn default_expiry(&self) -> Expiry {
        self.state.options.ttl.map_or(Expiry::NEVER, |ttl| self.expiry_after(ttl))
    }

    /// Deletes `key`. Deleting a missing key succeeds.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_with(key, &WriteOptions::default())
    }

    /// [`Keyspace::delete`] with options.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    pub fn delete_with(&self, key: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        self.write_one(options, |batch, id| batch.delete(id, key.as_ref()))
    }

    /// Stores `operand`. The keyspace's merge operator applies it when the key is read or
    /// compacted.
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = shingle::Options::new().open(dir.path())?;
    /// use shingle::KeyspaceOptions;
    ///
    /// let options =
    ///     KeyspaceOptions { merge_operator: Some("add-u64".into()), ..Default::default() };
    /// let counts = db.create_keyspace("counts", options)?;
    /// counts.merge("visits", 2u64.to_le_bytes())?;
    /// counts.merge("visits", 3u64.to_le_bytes())?;
    /// assert_eq!(counts.get("visits")?.as_deref(), Some(&5u64.to_le_bytes()[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`]; also
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) where the keyspace has no merge
    /// operator, the process does not know it, or the operator refuses the operand.
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_with(key, operand, &WriteOptions::default())
    }

    /// [`Keyspace::merge`] with options.
    ///
    /// # Errors
    ///
    /// As for [`Keyspace::merge`].
    pub fn merge_with(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        self.state.check_operand(key, operand)?;
        self.write_one(options, |batch, id| batch.merge(id, key, operand))
    }

    /// Deletes all keys from `start` to `end` (exclusive) by one record. Files that are wholly in
    /// the range are dropped at once, unless a snapshot needs them.
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = shingle::Options::new().open(dir.path())?;
    /// for day in ["2026-01-30", "2026-01-31", "2026-02-01"] {
    ///     db.put(day, "")?;
    /// }
    /// db.delete_range("2026-01", "2026-02")?;
    /// assert_eq!(db.iter().count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`]; also
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) where `start` is behind `end`.
    pub fn delete_range(&self, start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.delete_range_with(start, end, &WriteOptions::default())
    }

    /// [`Keyspace::delete_range`] with options.
    ///
    /// # Errors
    ///
    /// As for [`Keyspace::delete_range`].
    pub fn delete_range_with(
        &self,
        start: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let (start, end) = (start.as_ref(), end.as_ref());
        let mut batch = table::batch::WriteBatch::new();
        batch.delete_range(self.id(), start, end)?;
        let committed = self.engine().write(&mut batch, options.durability, options.wait)?;
        self.engine().drop_covered(&self.state, start, end, committed)
    }
}

impl Db {
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        self.default.engine()
    }

    /// Commits `batch`: all of its operations or none.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`]; also
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) where a merge operator refuses an
    /// operand of the batch, or the batch has keyspaces of another open database. The database is
    /// then unchanged.
    pub fn write(&self, mut batch: WriteBatch, options: &WriteOptions) -> Result<()> {
        batch.check_database(self.engine())?;
        check_operands(self.engine(), &batch.inner, batch.copies_operands)?;
        self.engine().write(&mut batch.inner, options.durability, options.wait).map(drop)
    }

    /// Makes every write that returned before this call survive a power loss. Writes to keyspaces
    /// without a log are the exception: only [`Db::flush`] makes them durable.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`]. After a failed sync the database is
    /// [`Poisoned`](crate::ErrorKind::Poisoned).
    pub fn sync(&self) -> Result<()> {
        let engine = self.engine();
        engine.check_writable()?;
        let position = engine.commits.lock().position();
        engine.commits.sync_log(position)
    }

    /// Writes everything that was written before this call to synced tables.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    pub fn flush(&self) -> Result<()> {
        self.engine().check_writable()?;
        self.engine().flush()
    }

    /// Begins what [`Db::flush`] does, and does not wait for its end. An error of the flush comes
    /// with a later write, or with the close.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    pub fn begin_flush(&self) -> Result<()> {
        self.engine().check_writable()?;
        self.engine().begin_flush()
    }

    /// Waits until no background work is due, except work that the database does only while it is
    /// idle.
    ///
    /// # Errors
    ///
    /// The error that stopped background work; [`Closed`](crate::ErrorKind::Closed) where the
    /// database was closed.
    pub fn wait_idle(&self) -> Result<()> {
        self.engine().wait_idle()
    }

    /// Why, and about how long, a write of `bytes` would have to wait now. `None`: not at all.
    pub fn would_wait(&self, bytes: u64) -> Option<Wait> {
        let engine = self.engine();
        engine.admission.forecast(bytes, engine.runtime.now_ns())
    }

    /// Waits until a write of `bytes` would not have to wait: what to do after
    /// [`WouldWait`](crate::ErrorKind::WouldWait). False: `timeout` passed first.
    ///
    /// Another writer may be faster, so that the next try finds `WouldWait` again. Separated values
    /// that find no space in their segments wait longer than this call: write them with
    /// [`WriteOptions::wait`].
    ///
    /// # Errors
    ///
    /// The error that a write would have: [`Closed`](crate::ErrorKind::Closed),
    /// [`Poisoned`](crate::ErrorKind::Poisoned), or what stopped the background work it waits for.
    pub fn wait_writable(&self, bytes: u64, timeout: Option<Duration>) -> Result<bool> {
        let engine = self.engine();
        let deadline_ns = timeout.map(|timeout| {
            let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
            engine.runtime.now_ns().saturating_add(timeout_ns)
        });
        engine.admission.wait_free(bytes, deadline_ns, &*engine.runtime, engine.check_of_wait())
    }

    /// Closes the database for all handles. Everything that was acknowledged survives a power loss
    /// when this returns. Iterators and snapshots stay readable.
    ///
    /// # Errors
    ///
    /// The error of the last sync or flush.
    pub fn close(self) -> Result<()> {
        self.engine().close()
    }
}
