//! Values that a transaction writes, with their expiry.

use super::Transaction;
use crate::api::Keyspace;
use base::{EntryKind, Expiry, Result};
use table::batch::Operation;

impl Transaction {
    /// Sets `key` to `value`.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`].
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_in(&self.default_keyspace(), key, value)
    }

    /// [`Transaction::put`] in a keyspace.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`].
    pub fn put_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.put_expiring_in(keyspace, key, value, keyspace.default_expiry())
    }

    /// Sets `key` to `value` until `expiry`.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`].
    pub fn put_expiring(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: Expiry,
    ) -> Result<()> {
        self.put_expiring_in(&self.default_keyspace(), key, value, expiry)
    }

    /// [`Transaction::put_expiring`] in a keyspace.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`Transaction`].
    pub fn put_expiring_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: Expiry,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        Operation::new(keyspace.id(), EntryKind::Put, key, value)?;
        self.begin_write(keyspace, key)?;
        self.own.put(keyspace.id(), key, Some((value, expiry)));
        Ok(())
    }
}
