//! The change feed: what was committed, in commit order.

use super::db::Db;
use crate::engine::changes::feed::{Batch, Feed};
use crate::engine::changes::source::{Files, Writer};
use base::{EntryKind, Error, ErrorKind, Expiry, Result, SequenceNumber};
use std::fmt;
use std::time::Duration;
use table::batch::BatchView;

/// Where a change feed begins.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use shingle::{Options, Since};
///
/// let db = Options::new().changes_retention_bytes(1 << 30).open(dir.path())?;
/// db.put("apple", "red")?;
/// let all = db.changes(Since::Oldest)?.count();
/// let newer = db.changes(1)?.count();
/// assert_eq!((all, newer), (1, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// With the oldest change that is kept.
    Oldest,
    /// With the first change after this sequence number: that of a snapshot
    /// ([`Pins::sequence`](crate::Pins::sequence)), or the [`Changes::sequence`] of an earlier
    /// feed.
    /// 0: everything ever written.
    Sequence(SequenceNumber),
}

impl From<SequenceNumber> for Since {
    fn from(sequence: SequenceNumber) -> Since {
        Since::Sequence(sequence)
    }
}

impl Since {
    pub(super) fn sequence(self) -> Option<SequenceNumber> {
        match self {
            Since::Oldest => None,
            Since::Sequence(sequence) => Some(sequence),
        }
    }
}

/// How changes are read.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = shingle::Options::new().changes_retention_bytes(1 << 20).open(dir.path())?;
/// use shingle::ChangesOptions;
///
/// let durable = ChangesOptions::durable();
/// db.put("apple", "red")?;
/// assert_eq!(db.changes_with(0, &durable)?.count(), 0);
/// db.sync()?;
/// assert_eq!(db.changes_with(0, &durable)?.count(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangesOptions {
    /// Only changes that survive a loss of power. False: every change that reads see. A power loss
    /// may take the newest of them back, and give their sequence numbers to other writes.
    pub durable_only: bool,
}

impl ChangesOptions {
    /// Only changes that survive a loss of power.
    pub fn durable() -> ChangesOptions {
        ChangesOptions { durable_only: true }
    }
}

/// Committed batches, in commit order; [`Db::changes`] makes one.
///
/// The iterator gives `None` where nothing more is committed yet, and goes on with later calls;
/// [`Changes::wait`] waits. After an error it gives no changes beyond it. Owned and `Send`. It
/// keeps neither the database open nor logs from being removed.
pub struct Changes {
    feed: Feed,
}

impl Db {
    /// The batches that were committed after `since`, in commit order.
    ///
    /// Needs [`Options::changes_retention_bytes`](crate::Options::changes_retention_bytes) or
    /// [`Options::changes_retention_age`](crate::Options::changes_retention_age), except where the
    /// database is open for reading only: then the logs must be of a writer with one of them.
    ///
    /// Not in the feed: writes to keyspaces without a log, and keyspaces that were dropped.
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// use shingle::{Operation, Options};
    ///
    /// let db = Options::new().changes_retention_bytes(1 << 30).open(dir.path())?;
    /// db.put("apple", "red")?;
    /// db.delete("pear")?;
    /// for change in db.changes(0)? {
    ///     let change = change?;
    ///     for (keyspace, operation) in change.operations() {
    ///         match operation {
    ///             Operation::Put { key, value, .. } => println!("{key:?} = {value:?}"),
    ///             other => println!("{keyspace}: {other:?}"),
    ///         }
    ///     }
    ///     println!("next time from {}", change.last_sequence());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// - [`TooLate`](crate::ErrorKind::TooLate): changes after `since` were removed. The message
    ///   has the oldest sequence number that is possible.
    /// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): `since` is beyond the last write.
    /// - [`Unsupported`](crate::ErrorKind::Unsupported): no changes are kept; a follower's [`Db`],
    ///   for which there is [`Follower::changes`](crate::Follower::changes).
    /// - [`Closed`](crate::ErrorKind::Closed), [`Io`](crate::ErrorKind::Io).
    pub fn changes(&self, since: impl Into<Since>) -> Result<Changes> {
        self.changes_with(since, &ChangesOptions::default())
    }

    /// [`Db::changes`] with options.
    ///
    /// # Errors
    ///
    /// As for [`Db::changes`]; also [`Unsupported`](crate::ErrorKind::Unsupported) for durable
    /// changes of a database that is open for reading only.
    pub fn changes_with(
        &self,
        since: impl Into<Since>,
        options: &ChangesOptions,
    ) -> Result<Changes> {
        let core = self.engine().core.clone();
        let unsupported = |message| Err(Error::new(ErrorKind::Unsupported, message));
        let since = since.into().sequence();
        if core.follows {
            return unsupported("a follower's database does not move: use `Follower::changes`");
        }
        let feed = match core.read_only {
            true if options.durable_only => {
                return unsupported("only the writer knows which changes are durable");
            }
            true => Feed::new(Box::new(Files::new(core)?), since)?,
            false => Feed::new(Box::new(Writer::new(core, options.durable_only)?), since)?,
        };
        Ok(Changes { feed })
    }
}

impl Changes {
    pub(super) fn new(feed: Feed) -> Changes {
        Changes { feed }
    }

    /// Where a later feed goes on: everything up to this sequence number was given. At the end,
    /// where the iterator gives `None`, it may be beyond the last change: the engine's own writes
    /// take sequence numbers too. A consumer that keeps this number is not too late because of
    /// those.
    pub fn sequence(&self) -> SequenceNumber {
        self.feed.position()
    }

    /// Waits until there is a next change. False: none came within `timeout`. A feed of the writer
    /// wakes with the commit; a feed of a follower looks at the files every 10 ms.
    ///
    /// # Errors
    ///
    /// As for the iterator; also [`Closed`](crate::ErrorKind::Closed) when the database is closed
    /// meanwhile, and [`Poisoned`](crate::ErrorKind::Poisoned) when nothing can come any more.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool> {
        self.feed.wait(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// # Errors
///
/// [`TooLate`](crate::ErrorKind::TooLate) where the next changes were removed meanwhile,
/// [`Corruption`](crate::ErrorKind::Corruption) where a log is damaged, and
/// [`Closed`](crate::ErrorKind::Closed) after the database was closed.
impl Iterator for Changes {
    type Item = Result<Change>;

    fn next(&mut self) -> Option<Result<Change>> {
        self.feed.next().map(|batch| batch.map(Change)).transpose()
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("sequence", &self.sequence()).finish_non_exhaustive()
    }
}

/// A committed batch.
pub struct Change(Batch);

impl Change {
    /// The sequence number of its first operation.
    pub fn first_sequence(&self) -> SequenceNumber {
        self.0.first
    }

    /// The sequence number of its last operation: a feed since this number begins after the batch.
    pub fn last_sequence(&self) -> SequenceNumber {
        self.0.first + self.0.count - 1
    }

    /// The operations in order, each with the name of its keyspace. Those of keyspaces that were
    /// dropped are left out.
    pub fn operations(&self) -> impl Iterator<Item = (&str, Operation<'_>)> {
        let batch = BatchView::parse(&self.0.bytes).ok();
        batch.into_iter().flat_map(|batch| batch.iter()).filter_map(|operation| {
            let key = operation.key();
            let (expires, value) = operation.expiry_and_value();
            let mut names = self.0.keyspaces.iter();
            let (_, keyspace) = names.find(|(id, _)| *id == operation.keyspace())?;
            let operation = match operation.kind() {
                EntryKind::Put | EntryKind::ExpiringPut => Operation::Put { key, value, expires },
                EntryKind::Delete => Operation::Delete { key },
                EntryKind::Merge => Operation::Merge { key, operand: value },
                EntryKind::DeleteRange => Operation::DeleteRange { start: key, end: value },
                // The feed refuses it.
                EntryKind::Pointer | EntryKind::ExpiringPointer => return None,
            };
            Some((&**keyspace, operation))
        })
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Change {}..={} ", self.first_sequence(), self.last_sequence())?;
        f.debug_list().entries(self.operations()).finish()
    }
}

/// One operation of a [`Change`], as the user gave it.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// The key has this value, until it expires.
    #[non_exhaustive]
    Put {
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
        /// When the value expires. No other change tells that it did.
        expires: Option<Expiry>,
    },
    /// The key has no value.
    Delete {
        /// The key.
        key: &'a [u8],
    },
    /// The keyspace's merge operator combines the operand with the value before.
    Merge {
        /// The key.
        key: &'a [u8],
        /// The operand.
        operand: &'a [u8],
    },
    /// No key of the range has a value.
    DeleteRange {
        /// The first key of the range.
        start: &'a [u8],
        /// The first key after the range.
        end: &'a [u8],
    },
}
