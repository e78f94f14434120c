//! Batches of writes that become visible and durable together.

use super::db::Keyspace;
use base::{KeyspaceId, Result};

/// Operations in order, to be committed as one, over any keyspaces of a database. Owned and `Send`.
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    pub(crate) inner: table::batch::WriteBatch,
    /// Operands go in as they are.
    pub(crate) copies_operands: bool,
}

const DEFAULT: KeyspaceId = KeyspaceId(0);

impl WriteBatch {
    /// A batch without operations.
    pub fn new() -> WriteBatch {
        WriteBatch::default()
    }

    /// `key` has `value` from here on.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.inner.put(DEFAULT, key.as_ref(), value.as_ref())
    }

    /// `key` is absent from here on.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.delete(DEFAULT, key.as_ref())
    }

    /// `operand` is for the keyspace's merge operator.
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.inner.merge(DEFAULT, key.as_ref(), operand.as_ref())
    }

    /// All keys from `start` to `end` (exclusive) are absent from here on.
    pub fn delete_range(&mut self, start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.inner.delete_range(DEFAULT, start.as_ref(), end.as_ref())
    }

    /// [`WriteBatch::put`] in a keyspace.
    pub fn put_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.inner.put(keyspace.id(), key.as_ref(), value.as_ref())
    }

    /// [`WriteBatch::delete`] in a keyspace.
    pub fn delete_in(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.delete(keyspace.id(), key.as_ref())
    }

    /// [`WriteBatch::merge`] in a keyspace.
    pub fn merge_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.inner.merge(keyspace.id(), key.as_ref(), operand.as_ref())
    }

    /// [`WriteBatch::merge_in`] with an operand of another database: the operator is not asked
    /// whether it takes it, nor any other operand of this batch, and need not be known.
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
    pub fn delete_range_in(
        &mut self,
        keyspace: &Keyspace,
        start: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.inner.delete_range(keyspace.id(), start.as_ref(), end.as_ref())
    }

    /// Removes all operations and keeps the memory.
    pub fn clear(&mut self) {
        self.inner.clear();
        self.copies_operands = false;
    }

    /// Operations.
    pub fn len(&self) -> usize {
        self.inner.len()
    }

    /// There are no operations.
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// Bytes of keys and values.
    pub fn user_bytes(&self) -> u64 {
        self.inner.user_bytes()
    }
}
