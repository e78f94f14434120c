//! The engine: one open database. Its layers, the lowest first:
//!
//! - `context`: what all parts share, and the rules of failure;
//! - `commit` and `versions`: the order of writes; the trees and their edits. `core` holds both;
//! - `flush`, `compaction`, `values::gc`: jobs of background work;
//! - `queue`, `scheduler`: choose the next step of background work;
//! - `write`, `keyspaces`, `report`, `close`, `check`, `checkpoint`: the requests of users.
//!
//! A layer uses only the layers below it. `cargo xtask tidy` looks for cycles among files.

mod accounts;
mod backed_off;
pub(crate) mod changes;
mod check;
pub(crate) mod checkpoint;
pub(crate) mod clean;
pub(crate) mod close;
pub(crate) mod commit;
pub(crate) mod commit_state;
pub(crate) mod compact;
mod compaction;
pub(crate) mod context;
pub(crate) mod core;
pub(crate) mod events;
mod exchanged;
mod expiry;
mod flush;
pub(crate) mod follow;
mod full_medium;
mod gate;
mod hold;
mod idle;
mod ingest;
pub(crate) mod keyspaces;
pub(crate) mod log_syncs;
pub(crate) mod memory;
pub(crate) mod open;
pub(crate) mod operands;
mod output;
mod parts;
pub(crate) mod queue;
mod read_share;
pub(crate) mod recover;
mod report;
pub(crate) mod requests;
pub(crate) mod reserve;
mod rewrite;
pub(crate) mod scheduler;
mod seal;
mod sleep;
pub(crate) mod sync;
mod traffic;
pub(crate) mod trees;
pub(crate) mod values;
pub(crate) mod versions;
pub(crate) mod work_stats;
mod write;
mod write_turns;

use crate::engine::core::Core;
use crate::engine::queue::Scheduler;
use base::{LedgerSnapshot, Result};
use media::StoreLock;
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::Arc;

/// One open database.
pub(crate) struct Engine {
    pub core: Arc<Core>,
    pub scheduler: Scheduler,
    /// How closing ended.
    pub closed_result: Mutex<Option<Result<()>>>,
    /// The ledger when a report was asked for the last time, or at opening.
    pub reported: Mutex<LedgerSnapshot>,
    /// Keeps other openers out.
    pub lock: Mutex<Option<StoreLock>>,
}

/// An engine is a core with a scheduler.
impl Deref for Engine {
    type Target = Arc<Core>;

    fn deref(&self) -> &Arc<Core> {
        &self.core
    }
}

impl Engine {
    pub(crate) fn new(core: Core, lock: StoreLock) -> Engine {
        let shared = core.settings.options.resources.as_ref();
        let pooled = shared.and_then(|shared| shared.pooled.as_ref());
        let next_slot_ns = pooled.map(|pooled| pooled.next_slot_ns.clone()).unwrap_or_default();
        Engine {
            scheduler: Scheduler::new(core.settings.background_threads, next_slot_ns),
            closed_result: Mutex::new(None),
            reported: Mutex::new(core.store.ledger().snapshot()),
            lock: Mutex::new(Some(lock)),
            core: Arc::new(core),
        }
    }

    /// Changes an option of those that may change while the database is open. What waits for the
    /// old limit of background bytes goes on.
    pub(crate) fn set_option(&self, name: &str, value: &str) -> Result<()> {
        self.core.set_option(name, value)?;
        self.scheduler.end_throttling(self.runtime.now_ns());
        self.sealed.signal();
        self.runtime.wake();
        Ok(())
    }
}
