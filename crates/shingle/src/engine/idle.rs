//! Idle: when the database counts as one that nobody writes to, and what that allows.
//!
//! Writers do not report: whoever looks compares the newest sequence number with the one of the
//! look before. At rest, sealed memtables are flushed without waiting for company, and policies may
//! use the time. A worker that found nothing to do sleeps until rest begins, and after one look at
//! rest until it is woken: an idle database costs nothing.

use crate::engine::context::Context;
use base::SequenceNumber;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A database is at rest when no write came for so long, on the runtime's clock.
const REST_NS: u64 = 200_000_000;

/// What is known of the last write.
#[derive(Default)]
pub(crate) struct Idle {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The newest sequence number at the last look.
    sequence: SequenceNumber,
    /// When it was first seen.
    since_ns: u64,
    /// A look at rest, at this sequence number, found nothing to do.
    is_done: bool,
}

impl Idle {
    fn look(&self, context: &Context) -> MutexGuard<'_, State> {
        let (sequence, now_ns) = (context.snapshots.visible(), context.runtime.now_ns());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.sequence != sequence || state.since_ns == 0 {
            *state = State { sequence, since_ns: now_ns.max(1), is_done: false };
        }
        state
    }

    /// No write came for a while.
    pub(crate) fn is_now(&self, context: &Context) -> bool {
        let since_ns = self.look(context).since_ns;
        context.runtime.now_ns().saturating_sub(since_ns) >= REST_NS
    }

    /// A look at rest found nothing to do.
    pub(crate) fn done(&self, context: &Context) {
        self.look(context).is_done = true;
    }

    /// How long it takes until rest begins; `None` when a look at rest found nothing already.
    pub(crate) fn begins_in_ns(&self, context: &Context) -> Option<u64> {
        let state = self.look(context);
        let waited_ns = context.runtime.now_ns().saturating_sub(state.since_ns);
        (!state.is_done).then(|| REST_NS.saturating_sub(waited_ns))
    }
}
