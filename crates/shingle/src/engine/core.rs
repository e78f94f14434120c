//! The core of an open database: commits and the version set, in one context. Background jobs work
//! with it; it knows none of them.
//!
//! Lock order: the version set before the sync before the commits before a keyspace's view. No
//! holder of the commit lock or of a view does I/O on tables or the manifest. The exception is an
//! ingestion, whose edit must lie between two commits.

use crate::engine::commit::Commits;
use crate::engine::commit_state::CommitState;
use crate::engine::context::{Context, Parts};
use crate::engine::trees::Trees;
use crate::engine::versions::VersionSet;
use std::ops::Deref;
use std::sync::Arc;

/// Commits and the version set of one open database.
pub(crate) struct Core {
    pub context: Arc<Context>,
    pub commits: Commits,
    pub versions: VersionSet,
}

/// The core works in a context.
impl Deref for Core {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl Core {
    pub(crate) fn new(parts: Parts, commit: CommitState, trees: Trees) -> Core {
        let context = Arc::new(Context::new(parts));
        Core {
            commits: Commits::new(context.clone(), commit),
            versions: VersionSet::new(context.clone(), trees),
            context,
        }
    }
}
