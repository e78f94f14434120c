//! Snapshots: the state of one moment, for as long as they live.

use super::batch::of_another_database;
use super::cursor::{Cursor, Held, Iter, ReadOptions};
use super::db::Keyspace;
use crate::engine::Engine;
use crate::keyspace::KeyspaceState;
use crate::read::get::{get, get_with_expiry};
use crate::read::moment::Moment;
use crate::read::multi_get::multi_get;
use base::{Expiry, Result, SequenceNumber};
use std::ops::RangeBounds;
use std::sync::Arc;
use table::Bytes;

/// The state of all keyspaces at one moment. Owned, `Send`, cheap to clone.
///
/// Reads go to the keyspace that the snapshot was taken from; [`Snapshot::of`] gives the same
/// moment of another keyspace. A snapshot keeps old versions of keys from being dropped: see
/// [`Snapshot::pins`]. A value expires for snapshots too: each read takes its own time.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = shingle::Options::new().open(dir.path())?;
/// db.put("apple", "red")?;
/// let before = db.snapshot();
/// db.put("apple", "green")?;
/// assert_eq!(before.get("apple")?.as_deref(), Some(&b"red"[..]));
/// assert_eq!(before.pins().newer_entries, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Snapshot {
    engine: Arc<Engine>,
    keyspace: Arc<KeyspaceState>,
    sequence: SequenceNumber,
    since_ns: u64,
    held: Arc<Held>,
}

/// What a snapshot keeps from being dropped.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = shingle::Options::new().open(dir.path())?;
/// let snapshot = db.snapshot();
/// db.put("apple", "red")?;
/// let pins = snapshot.pins();
/// println!("{} s old, {} newer entries", pins.age_ns / 1_000_000_000, pins.newer_entries);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pins {
    /// Sequence number of the newest write that the snapshot sees. Compaction keeps the version of
    /// each key that was the newest then, and the tombstones above it.
    pub sequence: SequenceNumber,
    /// Age of the snapshot, in nanoseconds.
    pub age_ns: u64,
    /// Operations written since then, in all keyspaces: the maximum number of old versions that are
    /// kept for the snapshot. A snapshot keeps no files and no memtables; its cursors do.
    pub newer_entries: u64,
}

impl Snapshot {
    pub(crate) fn new(engine: Arc<Engine>, keyspace: Arc<KeyspaceState>) -> Snapshot {
        let since_ns = engine.runtime.now_ns();
        let sequence = engine.snapshots.acquire(since_ns);
        let held = Arc::new(Held::new(engine.clone(), sequence));
        Snapshot { engine, keyspace, sequence, since_ns, held }
    }

    /// The same moment in another keyspace.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): the keyspace is of another open
    /// database.
    pub fn of(&self, keyspace: &Keyspace) -> Result<Snapshot> {
        if !Arc::ptr_eq(keyspace.engine(), &self.engine) {
            return Err(of_another_database(keyspace));
        }
        Ok(Snapshot { keyspace: keyspace.state.clone(), ..self.clone() })
    }

    /// What the snapshot keeps from being dropped.
    pub fn pins(&self) -> Pins {
        Pins {
            sequence: self.sequence,
            age_ns: self.engine.runtime.now_ns().saturating_sub(self.since_ns),
            newer_entries: self.engine.snapshots.visible() - self.sequence,
        }
    }

    fn moment(&self) -> Moment {
        self.moment_in(&self.keyspace)
    }

    /// The moment in a keyspace.
    pub(crate) fn moment_in(&self, keyspace: &KeyspaceState) -> Moment {
        self.engine.moment_held(self.sequence, keyspace)
    }

    pub(crate) fn sequence(&self) -> SequenceNumber {
        self.sequence
    }

    /// The value of `key`, or `None`.
    ///
    /// # Errors
    ///
    /// As for all reads, see [`Keyspace`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        self.engine.check_process()?;
        self.keyspace.check_open()?;
        let operator = self.keyspace.operator.as_ref();
        let value = get(&self.moment(), key.as_ref(), operator)?;
        self.engine.count_read(key.as_ref(), value.as_deref());
        Ok(value)
    }

    /// [`Snapshot::get`], and when the value expires.
    ///
    /// # Errors
    ///
    /// As for all reads, see [`Keyspace`].
    pub fn get_with_expiry(
        &self,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<(Bytes, Option<Expiry>)>> {
        self.engine.check_process()?;
        self.keyspace.check_open()?;
        let operator = self.keyspace.operator.as_ref();
        let found = get_with_expiry(&self.moment(), key.as_ref(), operator)?;
        self.engine.count_read(key.as_ref(), found.as_ref().map(|(value, _)| &value[..]));
        Ok(found)
    }

    /// The values of `keys`, in the order of the keys.
    ///
    /// # Errors
    ///
    /// As for [`Keyspace::multi_get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Bytes>>> {
        self.engine.check_process()?;
        self.keyspace.check_open()?;
        let operator = self.keyspace.operator.as_ref();
        let values = multi_get(&self.moment(), keys, operator)?;
        self.engine.count_reads(keys, &values);
        Ok(values)
    }

    /// All keys and values, in key order.
    pub fn iter(&self) -> Iter {
        Iter::new(self.cursor(ReadOptions::default()))
    }

    /// The keys and values in a range of keys, such as `"a".."b"`.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter {
        Iter::new(self.cursor(ReadOptions::range(range)))
    }

    /// The keys that start with `prefix`, with their values.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        Iter::new(self.cursor(ReadOptions::prefix(prefix.as_ref())))
    }

    /// A cursor over the keys that `options` select, before its first seek.
    pub fn cursor(&self, options: ReadOptions) -> Cursor {
        Cursor::new(
            self.engine.clone(),
            &self.keyspace,
            self.moment(),
            options,
            Some(self.held.clone()),
        )
    }
}
