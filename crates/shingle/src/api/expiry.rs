//! Writes of values that expire.

use super::db::{Keyspace, WriteOptions};
use base::{Expiry, Result};
use std::time::Duration;

impl Keyspace {
    /// Sets `key` to `value` for the time `ttl`. From then on the key is missing, for snapshots and
    /// transactions too, and a compaction frees the space.
    ///
    /// Any later write of the key replaces the value and its expiry.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = shingle::Options::new().open(dir.path())?;
    /// use std::time::Duration;
    ///
    /// let sessions = db.open_or_create_keyspace("sessions", Default::default())?;
    /// sessions.put_with_ttl("ann", "token", Duration::from_secs(3600))?;
    /// let (value, expiry) = sessions.get_with_expiry("ann")?.expect("an hour is not over");
    /// assert_eq!((&value[..], expiry.is_some()), (&b"token"[..], true));
    /// sessions.put_with_ttl("ann", "token", Duration::ZERO)?;
    /// assert_eq!(sessions.get("ann")?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn put_with_ttl(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        self.put_expiring(key, value, self.expiry_after(ttl))
    }

    /// Sets `key` to `value` until `expiry`. [`Expiry::NEVER`]: without end, also in a keyspace
    /// with a time to live.
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
        self.put_expiring_with(key, value, expiry, &WriteOptions::default())
    }

    /// [`Keyspace::put_expiring`] with options.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    pub fn put_expiring_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: Expiry,
        options: &WriteOptions,
    ) -> Result<()> {
        self.put_until(key.as_ref(), value.as_ref(), expiry, options)
    }
}
