//! When the database is idle, and what that allows.
//!
//! Writers do not report. A worker compares the newest sequence number with the one of its last
//! look. In an idle database, sealed memtables are flushed without waiting for others to share the
//! flush, and policies may use the time. A worker without work sleeps until the database counts as
//! idle. After one look at the idle database it sleeps until it is woken, so an idle database uses
//! no CPU.

use crate::engine::context::Context;
use base::SequenceNumber;
use parking_lot::{Mutex, MutexGuard};

/// A database is idle when no write came for this time, on the runtime's clock.
const IDLE_NS: u64 = 200_000_000;

/// What is known of the last write.
#[derive(Default)]
pub(crate) struct Idle {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The newest sequence number at the last look.
    sequence: SequenceNumber,
    /// When this sequence number was first seen.
    since_ns: u64,
    /// A look at the idle database, at this sequence number, found nothing to do.
    is_done: bool,
}

impl Idle {
    fn look(&self, context: &Context) -> MutexGuard<'_, State> {
        let (sequence, now_ns) = (context.snapshots.visible(), context.runtime.now_ns());
        let mut state = self.state.lock();
        if state.sequence != sequence || state.since_ns == 0 {
            *state = State { sequence, since_ns: now_ns.max(1), is_done: false };
        }
        state
    }

    /// The database is idle.
    pub(crate) fn is_now(&self, context: &Context) -> bool {
        let since_ns = self.look(context).since_ns;
        context.runtime.now_ns().saturating_sub(since_ns) >= IDLE_NS
    }

    /// A look at the idle database found nothing to do.
    pub(crate) fn done(&self, context: &Context) {
        self.look(context).is_done = true;
    }

    /// Time until the database is idle; `None` when a look at the idle database found nothing
    /// already.
    pub(crate) fn begins_in_ns(&self, context: &Context) -> Option<u64> {
        let state = self.look(context);
        let waited_ns = context.runtime.now_ns().saturating_sub(state.since_ns);
        (!state.is_done).then(|| IDLE_NS.saturating_sub(waited_ns))
    }
}
