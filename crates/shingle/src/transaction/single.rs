//! Transactions on one key, as one call.

use crate::api::{Db, Keyspace};
use crate::engine::commit::Unchanged;
use crate::read::get::get;
use base::Result;
use table::Bytes;
use table::batch::WriteBatch;

impl Keyspace {
    /// Sets `key` to `new` (`None`: deletes it) if its value is `expected` (`None`: if it is
    /// missing). Otherwise the inner result is an error that holds the value that it has.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = shingle::Options::new().open(dir.path())?;
    /// assert_eq!(db.compare_and_swap("leader", None, Some(b"ann"))?, Ok(()));
    /// let refused = db.compare_and_swap("leader", None, Some(b"bob"))?;
    /// assert_eq!(refused.unwrap_err().as_deref(), Some(&b"ann"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<std::result::Result<(), Option<Bytes>>> {
        let mut found = Ok(());
        self.change_atomically(key.as_ref(), |value| {
            if value.map(|value| &value[..]) == expected {
                found = Ok(());
                return Some(new.map(<[u8]>::to_vec));
            }
            found = Err(value.cloned());
            None
        })?;
        Ok(found)
    }

    /// Sets `key` to what `change` makes of its value, and returns that; `None` stands for a
    /// missing key. No write comes between the read and the write. `change` is called again where
    /// another write was faster.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = shingle::Options::new().open(dir.path())?;
    /// let count = |before: Option<&[u8]>| Some(vec![before.map_or(0, |value| value[0]) + 1]);
    /// db.update("visits", count)?;
    /// assert_eq!(db.update("visits", count)?, Some(vec![2]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let changed =
            self.change_atomically(key.as_ref(), |value| Some(change(value.map(|v| &v[..]))))?;
        Ok(changed.flatten())
    }

    /// Writes what `decide` makes of the value of `key`, once nothing came in between. `None`:
    /// `decide` wants no write.
    fn change_atomically(
        &self,
        key: &[u8],
        mut decide: impl FnMut(Option<&Bytes>) -> Option<Option<Vec<u8>>>,
    ) -> Result<Option<Option<Vec<u8>>>> {
        let mut batch = WriteBatch::new();
        loop {
            self.state.check_open()?;
            let engine = self.engine();
            let moment = engine.moment(&self.state);
            let value = get(&moment, key, self.state.operator.as_ref())?;
            engine.count_read(key, value.as_deref());
            let Some(new) = decide(value.as_ref()) else { return Ok(None) };
            batch.clear();
            match &new {
                Some(value) => {
                    batch.put_expiring(self.id(), key, value, self.default_expiry())?;
                }
                None => batch.delete(self.id(), key)?,
            }
            let (keyspace, moment, keys) = (self.id(), &moment, vec![key]);
            let given = [Unchanged { keyspace, moment, keys, ranges: &[] }];
            if engine.write_if(&mut batch, None, true, &given)?.is_some() {
                return Ok(Some(new));
            }
        }
    }
}

impl Db {
    /// [`Keyspace::compare_and_swap`] in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<std::result::Result<(), Option<Bytes>>> {
        self.default_keyspace().compare_and_swap(key, expected, new)
    }

    /// [`Keyspace::update`] in the keyspace `default`.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        self.default_keyspace().update(key, change)
    }
}
