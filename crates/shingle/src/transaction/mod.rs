//! Transactions: reads and writes that take effect together, as if nothing else had happened.
//!
//! A transaction reads a snapshot and keeps its writes to itself ([`own`]). The commit writes them
//! as one batch, under the condition that what the transaction relies on ([`watches`]) is
//! unchanged. Under [`Isolation::Serializable`] that is everything that it has read: keys, missing
//! keys, and ranges as far as scans went. Then the transaction is as if all of it happened at the
//! moment of the commit. Under [`Isolation::Snapshot`] it is what it writes.
//!
//! The check is done twice. Outside the commit lock everything is compared with a moment of now,
//! with I/O where needed; under the lock only with what was committed since that moment, which is
//! in memtables. If that is not certain, both are repeated.
//!
//! Locks ([`crate::key_locks`]) are an addition for keys that many transactions want: they wait
//! instead of beginning again. What is correct depends on the check alone.

mod own;
mod put;
mod scan;
mod single;
mod watches;

use crate::api::{Db, Keyspace, ReadOptions, Snapshot, WriteOptions, of_another_database};
use crate::engine::Engine;
use crate::key_locks::{Lockable, Owner};
use base::{EntryKind, Error, ErrorKind, Key, KeyRange, KeyspaceId, Result};
use own::{Base, Own, OwnWrites, Said};
use scan::Shown;
use std::ops::RangeBounds;
use std::sync::Arc;
use std::time::Duration;
use table::Bytes;
use table::batch::Operation;
use watches::Watches;

pub use scan::TransactionIter;

/// The number of times that the check at a commit is repeated because other commits came between.
const COMMIT_ATTEMPTS_MAX: usize = 16;

/// The number of times that [`Db::transact`] begins again after a conflict.
const CONFLICTS_MAX: u32 = 100;

/// The pause after the first conflict, in nanoseconds. It doubles up to [`PAUSE_NS_MAX`].
const PAUSE_NS: u64 = 2_000;
const PAUSE_NS_MAX: u64 = 1_000_000;

/// What a transaction is protected from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// The outcome is that of some order in which transactions ran one after the other. A commit
    /// fails if anything that the transaction has read was changed by another write, or has
    /// expired.
    #[default]
    Serializable,
    /// Reads see one moment, and no two transactions that overlap in time change the same key. A
    /// transaction may still decide by what another one is changing (*write skew*).
    Snapshot,
}

/// How a transaction runs.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = shingle::Options::new().open(dir.path())?;
/// use shingle::TransactionOptions;
/// use std::time::Duration;
///
/// // Waits for other transactions with locks, instead of failing at the commit.
/// let lock_timeout = Some(Duration::from_secs(1));
/// let options = TransactionOptions { lock_timeout, ..TransactionOptions::default() };
/// let mut transaction = db.transaction_with(options);
/// let stock = transaction.get_for_update("stock")?;
/// let text = stock.map_or("0".into(), |stock| String::from_utf8_lossy(&stock).into_owned());
/// transaction.put("stock", text + "+1")?;
/// transaction.commit()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TransactionOptions {
    /// What it is protected from.
    pub isolation: Isolation,
    /// `None`: it locks nothing, and finds conflicts at the commit. Else it locks each key that it
    /// writes or reads by [`Transaction::get_for_update`], and waits so long for another
    /// transaction's lock.
    pub lock_timeout: Option<Duration>,
}

/// Reads and writes that are committed together, if nothing that they rely on has changed. Owned
/// and `Send`.
///
/// A transaction sees the database as it was when the transaction began, with its own writes on
/// top. No other reader sees them before [`Transaction::commit`]. Dropping it discards them.
///
/// The methods without a keyspace work on the keyspace `default`.
///
/// # Errors
///
/// Reads fail as all reads, see [`Keyspace`]. Writes fail with
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) where the key or value exceeds its limit,
/// or the keyspace is of another database. The commit, and every method of a transaction with
/// locks, may fail with [`Conflict`](crate::ErrorKind::Conflict): then begin a new transaction.
/// [`Db::transact`] does so by itself.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use shingle::{ErrorKind, Options};
///
/// let db = Options::new().open(dir.path())?;
/// db.put("stock", "1")?;
///
/// let mut first = db.transaction();
/// let mut second = db.transaction();
/// assert_eq!(first.get("stock")?.as_deref(), Some(&b"1"[..]));
/// assert_eq!(second.get("stock")?.as_deref(), Some(&b"1"[..]));
/// first.put("stock", "0")?;
/// second.put("stock", "0")?;
/// first.commit()?;
///
/// let error = second.commit().unwrap_err();
/// assert_eq!((error.kind(), error.key()), (ErrorKind::Conflict, Some(&b"stock"[..])));
/// # Ok(())
/// # }
/// ```
pub struct Transaction {
    db: Db,
    options: TransactionOptions,
    snapshot: Snapshot,
    own: OwnWrites,
    watches: Watches,
    /// It has read what it does not watch.
    has_read_unwatched: bool,
    /// It has read for update, so its commit checks even if it wrote nothing.
    has_read_for_update: bool,
    held: HeldLocks,
}

/// The locks of a transaction, until it ends.
struct HeldLocks {
    engine: Arc<Engine>,
    owner: Owner,
    keys: Vec<(KeyspaceId, Key)>,
}

impl Drop for HeldLocks {
    fn drop(&mut self) {
        self.engine.locks.release(self.owner, &self.keys);
    }
}

impl Db {
    /// Begins a serializable transaction without locks.
    pub fn transaction(&self) -> Transaction {
        self.transaction_with(TransactionOptions::default())
    }

    /// Begins a transaction.
    pub fn transaction_with(&self, options: TransactionOptions) -> Transaction {
        let engine = self.engine().clone();
        let owner = engine.locks.new_owner();
        Transaction {
            db: self.clone(),
            options,
            snapshot: self.snapshot(),
            own: OwnWrites::default(),
            watches: Watches::default(),
            has_read_unwatched: false,
            has_read_for_update: false,
            held: HeldLocks { engine, owner, keys: Vec::new() },
        }
    }

    /// Runs `work` in a serializable transaction and commits it. After a conflict it runs again, so
    /// it should do nothing outside the transaction. An error of `work` discards the transaction.
    ///
    /// # Errors
    ///
    /// The error of `work`, or of the commit. [`Conflict`](crate::ErrorKind::Conflict) only after
    /// 100 attempts.
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = shingle::Options::new().open(dir.path())?;
    /// db.put("from", [10])?;
    /// db.put("to", [0])?;
    /// db.transact(|transfer| {
    ///     let from = transfer.get("from")?.map_or(0, |value| value[0]);
    ///     let to = transfer.get("to")?.map_or(0, |value| value[0]);
    ///     transfer.put("from", [from - 3])?;
    ///     transfer.put("to", [to + 3])
    /// })?;
    /// assert_eq!(db.get("to")?.as_deref(), Some(&[3][..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn transact<T>(&self, work: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        self.transact_with(TransactionOptions::default(), &WriteOptions::default(), work)
    }

    /// [`Db::transact`] with options.
    ///
    /// # Errors
    ///
    /// As for [`Db::transact`].
    pub fn transact_with<T>(
        &self,
        options: TransactionOptions,
        write: &WriteOptions,
        mut work: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        let mut conflicts = 0;
        loop {
            let mut transaction = self.transaction_with(options);
            let done = work(&mut transaction);
            let done = done.and_then(|value| transaction.commit_with(write).map(|()| value));
            match done {
                Err(error) if error.kind() == ErrorKind::Conflict && conflicts < CONFLICTS_MAX => {
                    self.engine().pause_after_conflict(conflicts);
                    conflicts += 1;
                }
                done => return done,
            }
        }
    }
}

impl Engine {
    /// Waits for a random time, longer after each conflict, so that transactions that collide once
    /// do not collide again.
    fn pause_after_conflict(&self, conflicts: u32) {
        let longest_ns = (PAUSE_NS << conflicts.min(16)).min(PAUSE_NS_MAX);
        let event = base::env::Event::default();
        let ns = self.runtime.random_u64() % longest_ns;
        self.runtime.wait(&event, event.count(), Some(self.runtime.now_ns() + ns));
    }
}

impl Transaction {
    fn default_keyspace(&self) -> Keyspace {
        self.db.default_keyspace().clone()
    }

    fn check_own(&self, keyspace: &Keyspace) -> Result<()> {
        if Arc::ptr_eq(keyspace.engine(), self.db.engine()) {
            return keyspace.state.check_open();
        }
        Err(of_another_database(keyspace))
    }

    fn watches_reads(&self) -> bool {
        self.options.isolation == Isolation::Serializable
    }

    /// The value of `key`, or `None`.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`].
    pub fn get(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        self.get_in(&self.default_keyspace(), key)
    }

    /// [`Transaction::get`] in a keyspace.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`].
    pub fn get_in(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        self.check_own(keyspace)?;
        self.read(keyspace, key.as_ref(), self.watches_reads())
    }

    /// The value of `key`, which no other transaction may change before the commit: the commit
    /// fails if one did, at any isolation.
    ///
    /// With locks, it waits until no other transaction holds the key, and then gives the newest
    /// value: all later reads see that moment. The transaction stays at its own moment while a scan
    /// of it is open, and after reads that [`Isolation::Snapshot`] does not protect. A value that
    /// has changed since then is a conflict at once.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`].
    pub fn get_for_update(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        self.get_for_update_in(&self.default_keyspace(), key)
    }

    /// [`Transaction::get_for_update`] in a keyspace.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`].
    pub fn get_for_update_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Bytes>> {
        self.check_own(keyspace)?;
        self.has_read_for_update = true;
        let is_new = self.lock(keyspace, key.as_ref())?;
        let may_move = !self.has_read_unwatched && !self.watches.has_open_scan();
        if is_new && may_move {
            self.move_to_now()?;
        }
        let value = self.read(keyspace, key.as_ref(), true)?;
        if is_new && !may_move {
            self.compare_with_now()?;
        }
        Ok(value)
    }

    fn read(&mut self, keyspace: &Keyspace, key: &[u8], watches: bool) -> Result<Option<Bytes>> {
        let Own { base, operands } = match self.own.said(keyspace.id(), key) {
            Said::Own(own) => own,
            Said::Deleted => return Ok(None),
            Said::Nothing => Own { base: Base::Below, operands: Vec::new() },
        };
        let below = match base {
            Base::Written(value) => own::unexpired(value, &self.held.engine.read.clock),
            Base::Below if self.own.has_deleted(keyspace.id(), key) => None,
            Base::Below => {
                let below = self.snapshot.of(keyspace)?;
                if watches {
                    self.watches.add_key(keyspace, &self.snapshot, key);
                    let (value, expiry) = below.get_with_expiry(key)?.unzip();
                    self.watches.add_expiry(keyspace, key, expiry.flatten());
                    value
                } else {
                    self.has_read_unwatched = true;
                    below.get(key)?
                }
            }
        };
        let Some(operator) = keyspace.state.operator.as_ref().filter(|_| !operands.is_empty())
        else {
            return Ok(below);
        };
        let operands: Vec<&[u8]> = operands.iter().map(|operand| &operand[..]).collect();
        Ok(operator.merge(key, below.as_deref(), &operands)?.map(Bytes::from))
    }

    /// The values of `keys`, in their order.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`].
    pub fn multi_get<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<Vec<Option<Bytes>>> {
        let keyspace = self.default_keyspace();
        keys.iter().map(|key| self.get_in(&keyspace, key)).collect()
    }

    /// All keys and values, in key order.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`].
    pub fn iter(&mut self) -> Result<TransactionIter> {
        self.scan(&self.default_keyspace(), KeyRange::all())
    }

    /// The keys and values in a range of keys, such as `"a".."b"`.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`].
    pub fn range<K: AsRef<[u8]>>(&mut self, range: impl RangeBounds<K>) -> Result<TransactionIter> {
        self.scan(&self.default_keyspace(), ReadOptions::range(range).range)
    }

    /// [`Transaction::range`] in a keyspace.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`].
    pub fn range_in<K: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Result<TransactionIter> {
        self.scan(keyspace, ReadOptions::range(range).range)
    }

    /// The keys that start with `prefix`, with their values.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`].
    pub fn prefix(&mut self, prefix: impl AsRef<[u8]>) -> Result<TransactionIter> {
        self.scan(&self.default_keyspace(), KeyRange::prefix(prefix.as_ref()))
    }

    fn scan(&mut self, keyspace: &Keyspace, range: KeyRange) -> Result<TransactionIter> {
        self.check_own(keyspace)?;
        let mut own = Vec::new();
        for key in self.own.keys(keyspace.id(), &range) {
            let value = self.read(keyspace, &key, self.watches_reads())?;
            own.push((key, value));
        }
        let shown = Shown::new(range.clone());
        if self.watches_reads() {
            self.watches.add_scan(keyspace, &self.snapshot, shown.clone());
        } else {
            self.has_read_unwatched = true;
        }
        let options = ReadOptions { range, ..ReadOptions::default() };
        let below = crate::api::Iter::new(self.snapshot.of(keyspace)?.cursor(options));
        Ok(TransactionIter::new(below, own, self.own.deleted(keyspace.id()), shown))
    }

    /// Deletes `key`.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_in(&self.default_keyspace(), key)
    }

    /// [`Transaction::delete`] in a keyspace.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`].
    pub fn delete_in(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        Operation::new(keyspace.id(), EntryKind::Delete, key, &[])?;
        self.begin_write(keyspace, key)?;
        self.own.put(keyspace.id(), key, None);
        Ok(())
    }

    /// Adds an operand for the merge operator of a keyspace. Merging reads nothing: transactions
    /// that only merge into a key do not conflict there, unless the isolation is
    /// [`Isolation::Snapshot`].
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`]; also
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) where the keyspace has no operator,
    /// or it refuses the operand.
    pub fn merge_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        Operation::new(keyspace.id(), EntryKind::Merge, key, operand)?;
        keyspace.state.check_operand(key, operand)?;
        self.begin_write(keyspace, key)?;
        self.own.merge(keyspace.id(), key, operand);
        Ok(())
    }

    /// Deletes all keys from `start` to `end` (exclusive) in a keyspace. It locks nothing.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`]; also
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) where `start` is behind `end`.
    pub fn delete_range_in(
        &mut self,
        keyspace: &Keyspace,
        start: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (start, end) = (start.as_ref(), end.as_ref());
        Operation::new(keyspace.id(), EntryKind::DeleteRange, start, end)?;
        self.check_own(keyspace)?;
        let range = KeyRange::new(start, Some(end.into()));
        if !self.watches_reads() {
            self.watches.add_range(keyspace, &self.snapshot, range.clone());
        }
        self.own.delete_range(keyspace.id(), range);
        Ok(())
    }

    fn begin_write(&mut self, keyspace: &Keyspace, key: &[u8]) -> Result<()> {
        self.check_own(keyspace)?;
        self.lock(keyspace, key)?;
        // First committer wins.
        if !self.watches_reads() {
            self.watches.add_key(keyspace, &self.snapshot, key);
        }
        Ok(())
    }

    /// Locks `key` if the transaction locks. True: it did not have the lock before.
    fn lock(&mut self, keyspace: &Keyspace, key: &[u8]) -> Result<bool> {
        let Some(timeout) = self.options.lock_timeout else { return Ok(false) };
        let runtime = &*self.held.engine.runtime;
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let deadline_ns = runtime.now_ns().saturating_add(timeout_ns);
        let (id, name) = (keyspace.id(), keyspace.name());
        let what = Lockable { keyspace: id, keyspace_name: name, key };
        let locks = &self.held.engine.locks;
        let is_new = locks.acquire(self.held.owner, what, runtime, deadline_ns)?;
        if is_new {
            self.held.keys.push((id, key.into()));
        }
        Ok(is_new)
    }

    /// Goes on with the state of now, if nothing that the transaction relies on has changed.
    fn move_to_now(&mut self) -> Result<()> {
        let now = self.compare_with_now()?;
        if now.sequence() != self.snapshot.sequence() {
            self.watches.move_to(&now);
            self.snapshot = now;
        }
        Ok(())
    }

    /// The state of now, in which nothing that the transaction relies on has changed.
    fn compare_with_now(&self) -> Result<Snapshot> {
        let now = self.db.snapshot();
        if now.sequence() != self.snapshot.sequence() {
            self.watches.compare(&self.snapshot, |keyspace| now.moment_in(&keyspace.state))?;
        }
        Ok(now)
    }

    /// Marks this point, to which [`Transaction::roll_back`] returns.
    pub fn set_savepoint(&mut self) {
        self.own.set_savepoint();
    }

    /// Discards the writes since the last savepoint, and the savepoint. Reads and locks since then
    /// stay. False: there is no savepoint, and nothing happened.
    pub fn roll_back(&mut self) -> bool {
        self.own.roll_back()
    }

    /// Writes everything as one batch, if what the transaction relies on is unchanged.
    ///
    /// # Errors
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict): nothing was written; [`Error::key`] says what has
    /// changed. Else as for [`Db::write`](crate::Db::write).
    pub fn commit(self) -> Result<()> {
        self.commit_with(&WriteOptions::default())
    }

    /// [`Transaction::commit`] with options.
    ///
    /// # Errors
    ///
    /// As for [`Transaction::commit`].
    pub fn commit_with(self, options: &WriteOptions) -> Result<()> {
        let outcome = self.try_commit(options);
        self.held.engine.transactions.count(&outcome);
        outcome
    }

    fn try_commit(&self, options: &WriteOptions) -> Result<()> {
        // What only read has seen one moment, and wrote nothing that depends on it.
        if self.own.is_empty() && !self.has_read_for_update {
            return Ok(());
        }
        let engine = self.db.engine();
        let moment_of = |keyspace: &Keyspace| engine.moment(&keyspace.state);
        if self.own.is_empty() {
            return self.watches.compare(&self.snapshot, moment_of).map(drop);
        }
        let mut batch = self.own.batch()?;
        for _ in 0..COMMIT_ATTEMPTS_MAX {
            let compared = self.watches.compare(&self.snapshot, moment_of)?;
            let given = self.watches.unchanged_since(&compared);
            if engine.write_if(&mut batch, options.durability, options.wait, &given)?.is_some() {
                return Ok(());
            }
        }
        let message = "other commits came between each check and the commit";
        Err(Error::new(ErrorKind::Conflict, message))
    }
}
