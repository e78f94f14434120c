//! Keyspaces: creating, finding and dropping them.

use super::db::{Db, Keyspace};
use crate::engine::open::DEFAULT_KEYSPACE;
use crate::keyspace::KeyspaceOptions;
use base::{Error, ErrorKind, Result};

impl Db {
    /// Creates a keyspace. Its `options` cannot change later.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](ErrorKind::AlreadyExists) where a keyspace has that name;
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) where the name is empty or too long, or the
    /// merge operator or the compaction filter is not known, or there is a time to live beside a
    /// merge operator. Also as for all writes, see [`Keyspace`].
    pub fn create_keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        self.engine().settings.operator(options.merge_operator.as_deref())?;
        self.engine().settings.check_filter(options.compaction_filter.as_deref())?;
        let state = self.engine().create_keyspace(name, options)?;
        Ok(Keyspace { state, closer: self.default.closer.clone() })
    }

    /// The keyspace called `name`. Where there is none, creates it with `options`; an existing
    /// keyspace keeps its own.
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = shingle::Options::new().open(dir.path())?;
    /// let users = db.open_or_create_keyspace("users", Default::default())?;
    /// users.put("7", "Ann")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) where the existing keyspace has other
    /// options: another merge operator, time to live, compaction filter, prefix rule or log. Also
    /// as for [`Db::create_keyspace`].
    pub fn open_or_create_keyspace(
        &self,
        name: &str,
        options: KeyspaceOptions,
    ) -> Result<Keyspace> {
        match self.keyspace(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => return same_options(found?, &options),
        }
        match self.create_keyspace(name, options.clone()) {
            // Another thread was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                same_options(self.keyspace(name)?, &options)
            }
            created => created,
        }
    }

    /// The keyspace called `name`.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) where there is none.
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        let all = self.engine().keyspaces();
        let found = all.into_iter().find(|state| state.name == name);
        let state = found.ok_or_else(|| {
            let message = format!(
                "no keyspace is called `{name}`; there are: {}",
                self.keyspaces().join(", ")
            );
            Error::new(ErrorKind::NotFound, message)
        })?;
        Ok(Keyspace { state, closer: self.default.closer.clone() })
    }

    /// The names of all keyspaces, in the order of their creation.
    pub fn keyspaces(&self) -> Vec<String> {
        self.engine().keyspaces().iter().map(|state| state.name.clone()).collect()
    }

    /// Drops a keyspace with everything in it. Iterators over it stay readable; new reads fail.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) where there is no such keyspace;
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) for the keyspace `default`. Also as for all
    /// writes, see [`Keyspace`].
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        if name == DEFAULT_KEYSPACE {
            return Err(Error::invalid("the keyspace `default` cannot be dropped"));
        }
        let keyspace = self.keyspace(name)?;
        self.engine().drop_keyspace(&keyspace.state)
    }
}

/// A keyspace that is there, if it is as `options` want it.
fn same_options(keyspace: Keyspace, options: &KeyspaceOptions) -> Result<Keyspace> {
    if keyspace.state.options == *options {
        return Ok(keyspace);
    }
    Err(Error::invalid(format!(
        "the keyspace `{}` exists with other options: {:?}",
        keyspace.name(),
        keyspace.state.options
    )))
}
