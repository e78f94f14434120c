//! [`Db`] as a keyspace: reads and writes of the keyspace `default`.

use super::cursor::{Cursor, Iter, ReadOptions};
use super::db::{Db, Keyspace, WriteOptions};
use super::snapshot::Snapshot;
use crate::ingest::{IngestOptions, Ingested};
use base::{Expiry, Result};
use std::ops::RangeBounds;
use std::path::Path;
use std::time::Duration;
use table::Bytes;

impl Db {
    /// The keyspace `default`, to which the reads and writes of `Db` go.
    pub fn default_keyspace(&self) -> &Keyspace {
        &self.default
    }

    /// [`Keyspace::put`] in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.default.put(key, value)
    }

    /// [`Keyspace::put_with`] in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        self.default.put_with(key, value, options)
    }

    /// [`Keyspace::put_with_ttl`] in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    pub fn put_with_ttl(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.default.put_with_ttl(key, value, ttl)
    }

    /// [`Keyspace::put_expiring`] in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    pub fn put_expiring(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: Expiry,
    ) -> Result<()> {
        self.default.put_expiring(key, value, expiry)
    }

    /// [`Keyspace::get_with_expiry`] in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for all reads, see [`Keyspace`].
    pub fn get_with_expiry(
        &self,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<(Bytes, Option<Expiry>)>> {
        self.default.get_with_expiry(key)
    }

    /// [`Keyspace::delete`] in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.default.delete(key)
    }

    /// [`Keyspace::delete_with`] in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    pub fn delete_with(&self, key: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        self.default.delete_with(key, options)
    }

    /// [`Keyspace::merge`] in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for [`Keyspace::merge`].
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.default.merge(key, operand)
    }

    /// [`Keyspace::delete_range`] in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for [`Keyspace::delete_range`].
    pub fn delete_range(&self, start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.default.delete_range(start, end)
    }

    /// [`Keyspace::get`] in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for all reads, see [`Keyspace`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        self.default.get(key)
    }

    /// [`Keyspace::get_with`] in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for all reads, see [`Keyspace`].
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.default.get_with(key, read)
    }

    /// [`Keyspace::multi_get`] in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for [`Keyspace::multi_get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Bytes>>> {
        self.default.multi_get(keys)
    }

    /// [`Keyspace::iter`] in the keyspace `default`.
    pub fn iter(&self) -> Iter {
        self.default.iter()
    }

    /// [`Keyspace::range`] in the keyspace `default`.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter {
        self.default.range(range)
    }

    /// [`Keyspace::prefix`] in the keyspace `default`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.default.prefix(prefix)
    }

    /// [`Keyspace::iter_with`] in the keyspace `default`.
    pub fn iter_with(&self, options: ReadOptions) -> Iter {
        self.default.iter_with(options)
    }

    /// [`Keyspace::cursor`] in the keyspace `default`.
    pub fn cursor(&self, options: ReadOptions) -> Cursor {
        self.default.cursor(options)
    }

    /// A snapshot of all keyspaces as of this moment. Its reads go to the keyspace `default`.
    pub fn snapshot(&self) -> Snapshot {
        self.default.snapshot()
    }

    /// [`Keyspace::compact`] of the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for [`Keyspace::compact`].
    pub fn compact(&self) -> Result<()> {
        self.default.compact()
    }

    /// [`Keyspace::compact_range`] of the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for [`Keyspace::compact`].
    pub fn compact_range(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        self.default.compact_range(start, end)
    }

    /// [`Keyspace::ingest`] into the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for [`Keyspace::ingest`].
    pub fn ingest<P: AsRef<Path>>(&self, paths: &[P], options: &IngestOptions) -> Result<Ingested> {
        self.default.ingest(paths, options)
    }
}
