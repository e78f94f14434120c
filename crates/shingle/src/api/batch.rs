//! Batches of writes that become visible and durable together.

use super::db::Keyspace;
use crate::engine::Engine;
use base::{Error, Expiry, KeyspaceId, Result};
use std::ptr;
use std::sync::{Arc, Weak};

/// Operations that are committed together, in order, over any keyspaces of a database. Owned and
/// `Send`.
///
/// Each operation adds to the batch; [`Db::write`](crate::Db::write) commits it. After a crash the
/// database has all operations of a batch or none.
///
/// # Errors
///
/// Every method that adds an operation fails with
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) where the key or the value is longer than
/// the limits, or the keyspace is not of the same open database as those before, and leaves the
/// batch as it was.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use shingle::{Options, WriteBatch, WriteOptions};
///
/// let db = Options::new().open(dir.path())?;
/// let totals = db.open_or_create_keyspace("totals", Default::default())?;
/// let mut batch = WriteBatch::new();
/// batch.put("order/7", "3 apples")?;
/// batch.put_in(&totals, "apples", "3")?;
/// db.write(batch, &WriteOptions::synced())?;
/// assert_eq!(totals.get("apples")?.as_deref(), Some(&b"3"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    pub(crate) inner: table::batch::WriteBatch,
    /// Operands go in as they are.
    pub(crate) copies_operands: bool,
    /// The open database of the keyspaces: a number of a keyspace means nothing in another.
    database: Option<Weak<Engine>>,
}

const DEFAULT: KeyspaceId = KeyspaceId(0);

impl WriteBatch {
    /// A batch without operations.
    pub fn new() -> WriteBatch {
        WriteBatch::default()
    }

    /// Sets `key` to `value` in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for all operations, see [`WriteBatch`].
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.inner.put(DEFAULT, key.as_ref(), value.as_ref())
    }

    /// Deletes `key` in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for all operations, see [`WriteBatch`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.delete(DEFAULT, key.as_ref())
    }

    /// Adds an operand for the merge operator of the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for all operations, see [`WriteBatch`]. Whether the operator accepts the operand turns
    /// out in [`Db::write`](crate::Db::write).
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.inner.merge(DEFAULT, key.as_ref(), operand.as_ref())
    }

    /// Deletes all keys from `start` to `end` (exclusive) in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for all operations, see [`WriteBatch`]; also where `start` is behind `end`.
    pub fn delete_range(&mut self, start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.inner.delete_range(DEFAULT, start.as_ref(), end.as_ref())
    }

    /// [`WriteBatch::put`] in a keyspace. The keyspace's time to live, if it has one, begins now.
    ///
    /// # Errors
    ///
    /// As for all operations, see [`WriteBatch`].
    pub fn put_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let expiry = keyspace.default_expiry();
        let keyspace = self.number(keyspace)?;
        self.inner.put_expiring(keyspace, key.as_ref(), value.as_ref(), expiry)
    }

    /// [`WriteBatch::delete`] in a keyspace.
    ///
    /// # Errors
    ///
    /// As for all operations, see [`WriteBatch`].
    pub fn delete_in(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        let keyspace = self.number(keyspace)?;
        self.inner.delete(keyspace, key.as_ref())
    }

    /// [`WriteBatch::merge`] in a keyspace.
    ///
    /// # Errors
    ///
    /// As for [`WriteBatch::merge`].
    pub fn merge_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let keyspace = self.number(keyspace)?;
        self.inner.merge(keyspace, key.as_ref(), operand.as_ref())
    }

    /// [`WriteBatch::merge_in`] with an operand of another database. The operator does not check
    /// the operands of this batch, and need not be known.
    ///
    /// # Errors
    ///
    /// As for all operations, see [`WriteBatch`].
    pub fn copy_operand_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.copies_operands = true;
        self.merge_in(keyspace, key, operand)
    }

    /// [`WriteBatch::delete_range`] in a keyspace.
    ///
    /// # Errors
    ///
    /// As for [`WriteBatch::delete_range`].
    pub fn delete_range_in(
        &mut self,
        keyspace: &Keyspace,
        start: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> Result<()> {
        let keyspace = self.number(keyspace)?;
        self.inner.delete_range(keyspace, start.as_ref(), end.as_ref())
    }

    /// Sets `key` to `value` until `expiry` in the keyspace `default`.
    /// [`Keyspace::expiry_after`] gives the expiry of a time to live.
    ///
    /// # Errors
    ///
    /// As for all operations, see [`WriteBatch`].
    pub fn put_expiring(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: Expiry,
    ) -> Result<()> {
        self.inner.put_expiring(DEFAULT, key.as_ref(), value.as_ref(), expiry)
    }

    /// [`WriteBatch::put_expiring`] in a keyspace.
    ///
    /// # Errors
    ///
    /// As for all operations, see [`WriteBatch`].
    pub fn put_expiring_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: Expiry,
    ) -> Result<()> {
        let keyspace = self.number(keyspace)?;
        self.inner.put_expiring(keyspace, key.as_ref(), value.as_ref(), expiry)
    }

    /// Removes all operations and keeps the memory.
    pub fn clear(&mut self) {
        self.inner.clear();
        self.copies_operands = false;
        self.database = None;
    }

    /// The number of a keyspace in the database of this batch.
    #[inline]
    fn number(&mut self, keyspace: &Keyspace) -> Result<KeyspaceId> {
        let engine = keyspace.engine();
        match &self.database {
            Some(database) if !ptr::eq(database.as_ptr(), Arc::as_ptr(engine)) => {
                return Err(of_another_database(keyspace));
            }
            Some(_) => {}
            None => self.database = Some(Arc::downgrade(engine)),
        }
        Ok(keyspace.id())
    }

    /// Refuses a batch with keyspaces of another open database.
    pub(crate) fn check_database(&self, engine: &Arc<Engine>) -> Result<()> {
        match &self.database {
            Some(database) if !ptr::eq(database.as_ptr(), Arc::as_ptr(engine)) => {
                Err(Error::invalid("the batch has keyspaces of another open database"))
            }
            _ => Ok(()),
        }
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.inner.len()
    }

    /// True where the batch has no operations.
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// Bytes of keys and values.
    pub fn user_bytes(&self) -> u64 {
        self.inner.user_bytes()
    }
}

/// The error for a keyspace that was opened with another database, or with this one earlier.
pub(crate) fn of_another_database(keyspace: &Keyspace) -> Error {
    Error::invalid(format!("the keyspace `{}` is of another open database", keyspace.name()))
}
