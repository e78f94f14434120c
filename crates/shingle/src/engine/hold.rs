//! Holds the writers of a keyspace while background work does what they would spoil each time.
//!
//! An ingestion brings what is older than it into runs. It first flushes without holding anyone.
//! Only where writers to its keyspace do not pause does it hold them, for one flush of the little
//! that is in memory by then. GC holds them for one look at the tree, where they wrote to the keys
//! whose pointers it changes each time that it tried.

use crate::engine::core::Core;
use base::KeyspaceId;

/// Writers of these keyspaces wait until this is dropped.
pub(crate) struct Hold<'a> {
    core: &'a Core,
    keyspaces: Vec<KeyspaceId>,
}

impl Core {
    /// Holds the writers of `keyspaces`. Commits of background work go on.
    pub(crate) fn hold(&self, keyspaces: Vec<KeyspaceId>) -> Hold<'_> {
        self.commits.lock().held.extend(&keyspaces);
        Hold { core: self, keyspaces }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let mut state = self.core.commits.lock();
        for id in &self.keyspaces {
            if let Some(at) = state.held.iter().position(|held| held == id) {
                state.held.remove(at);
            }
        }
        drop(state);
        self.core.progress.signal();
    }
}
