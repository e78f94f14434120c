//! Reads of a keyspace.

use super::cursor::{Cursor, Iter, ReadOptions};
use super::db::Keyspace;
use super::snapshot::Snapshot;
use crate::read::get::{get, get_with, get_with_expiry};
use crate::read::multi_get::multi_get;
use base::{Expiry, Result};
use std::ops::RangeBounds;
use table::Bytes;

impl Keyspace {
    /// The value of `key`, or `None`. A value in the block cache is not copied: [`Bytes`] keeps its
    /// block.
    ///
    /// # Errors
    ///
    /// As for all reads, see [`Keyspace`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        self.check_open()?;
        let moment = self.engine().moment(&self.state);
        let value = get(&moment, key.as_ref(), self.state.operator.as_ref())?;
        self.engine().count_read(key.as_ref(), value.as_deref());
        Ok(value)
    }

    /// What `read` makes of the value of `key`, or `None`. `read` gets the value where it lies, in
    /// a memtable, in the block cache or in what was read: nothing is copied, and no memory is
    /// allocated for it. The memtables and files of this moment stay until `read` is done.
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = shingle::Options::new().open(dir.path())?;
    /// db.put("apple", "red")?;
    /// assert_eq!(db.get_with("apple", |value| value.len())?, Some(3));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for all reads, see [`Keyspace`].
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.check_open()?;
        let (key, engine) = (key.as_ref(), self.engine());
        let moment = engine.moment(&self.state);
        let counted = |value: &[u8]| {
            engine.count_read(key, Some(value));
            read(value)
        };
        let found = get_with(&moment, key, self.state.operator.as_ref(), counted)?;
        if found.is_none() {
            engine.count_read(key, None);
        }
        Ok(found)
    }

    /// [`Keyspace::get`], and when the value expires.
    ///
    /// # Errors
    ///
    /// As for all reads, see [`Keyspace`].
    pub fn get_with_expiry(
        &self,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<(Bytes, Option<Expiry>)>> {
        self.check_open()?;
        let moment = self.engine().moment(&self.state);
        let found = get_with_expiry(&moment, key.as_ref(), self.state.operator.as_ref())?;
        self.engine().count_read(key.as_ref(), found.as_ref().map(|(value, _)| &value[..]));
        Ok(found)
    }

    /// The values of `keys`, all at one moment, in the order of the keys.
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = shingle::Options::new().open(dir.path())?;
    /// db.put("apple", "red")?;
    /// let values = db.multi_get(&["apple", "pear"])?;
    /// assert_eq!(values[0].as_deref(), Some(&b"red"[..]));
    /// assert_eq!(values[1], None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for all reads, see [`Keyspace`]. An error of one key is the error of the whole call.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Bytes>>> {
        self.check_open()?;
        let moment = self.engine().moment(&self.state);
        let values = multi_get(&moment, keys, self.state.operator.as_ref())?;
        self.engine().count_reads(keys, &values);
        Ok(values)
    }

    /// All keys and values, in key order, as of this moment.
    pub fn iter(&self) -> Iter {
        self.iter_with(ReadOptions::default())
    }

    /// The keys and values in a range of keys, such as `"a".."b"` or `"a"..="b"`. A pair of
    /// [`Bound`](std::ops::Bound)s needs the type of key: `range::<&[u8]>((start, end))`.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter {
        self.iter_with(ReadOptions::range(range))
    }

    /// The keys that start with `prefix`, with their values.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.iter_with(ReadOptions::prefix(prefix.as_ref()))
    }

    /// The keys and values that `options` select.
    pub fn iter_with(&self, options: ReadOptions) -> Iter {
        Iter::new(self.cursor(options))
    }

    #[inline]
    fn check_open(&self) -> Result<()> {
        self.engine().check_open()?;
        self.state.check_open()
    }

    /// A cursor over the keys that `options` select, before its first seek.
    pub fn cursor(&self, options: ReadOptions) -> Cursor {
        let moment = self.engine().moment(&self.state);
        let cursor = Cursor::new(self.engine().clone(), &self.state, moment, options, None);
        match self.check_open() {
            Ok(()) => cursor,
            Err(error) => cursor.failed(error),
        }
    }

    /// A snapshot of all keyspaces as of this moment. Its reads go to this keyspace.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.engine().clone(), self.state.clone())
    }
}
