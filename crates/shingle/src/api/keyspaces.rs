//! Keyspaces: creating, finding and dropping them.

use super::db::{Db, Keyspace};
use crate::engine::open::DEFAULT_KEYSPACE;
use crate::keyspace::KeyspaceOptions;
use base::{Error, ErrorKind, Result};

impl Db {
    /// Creates a keyspace. The properties in `options` are its own for ever.
    pub fn create_keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        self.engine().settings.operator(options.merge_operator.as_deref())?;
        let state = self.engine().create_keyspace(name, options)?;
        Ok(Keyspace { state, closer: self.closer.clone() })
    }

    /// The keyspace called `name`.
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
        Ok(Keyspace { state, closer: self.closer.clone() })
    }

    /// The names of all keyspaces, in the order of their creation.
    pub fn keyspaces(&self) -> Vec<String> {
        self.engine().keyspaces().iter().map(|state| state.name.clone()).collect()
    }

    /// Drops a keyspace with everything in it. Iterators over it stay readable; new reads do not
    /// begin.
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        if name == DEFAULT_KEYSPACE {
            return Err(Error::invalid("the keyspace `default` cannot be dropped"));
        }
        let keyspace = self.keyspace(name)?;
        self.engine().drop_keyspace(&keyspace.state)
    }
}
