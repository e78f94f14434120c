//! Holds the writers of a keyspace while an ingestion brings what is older than it into runs.
//!
//! An ingestion first flushes without holding anyone. Only where writers to its keyspace do not
//! pause does it hold them, for one flush of the little that is in memory by then.

use crate::admission::StallReason;
use crate::engine::Engine;
use crate::engine::core::Core;
use base::{Error, ErrorKind, KeyspaceId, Result};
use std::sync::Arc;

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

impl Engine {
    /// Waits until no writer is held. A caller that must not wait gets `WouldWait`.
    pub(crate) fn wait_for_ingestion(self: &Arc<Self>, waits: bool) -> Result<()> {
        if !waits {
            let message = "would wait for an ingestion into the keyspace: ingest";
            return Err(Error::new(ErrorKind::WouldWait, message));
        }
        let _inside = self.enter()?;
        let begin_ns = self.runtime.now_ns();
        let waited = self.wait_for(|| self.commits.lock().held.is_empty());
        self.admission.record(StallReason::Ingest, self.runtime.now_ns() - begin_ns);
        waited
    }
}
