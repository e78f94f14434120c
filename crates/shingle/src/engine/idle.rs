//! When the database is idle, and what that allows.
//!
//! Writers do not report. A worker compares the newest sequence number with the one of its last
//! look. In an idle database, sealed memtables are flushed without waiting for others to share the
//! flush, and policies may use the time. A worker without work sleeps until the database counts as
//! idle. After one look at the idle database it sleeps until it is woken (`sleep`), so an idle
//! database uses no CPU.

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
    /// Readers that had ended before the last look for work.
    ended_readers: u64,
}

impl Idle {
    fn look(&self, context: &Context) -> MutexGuard<'_, State> {
        let (sequence, now_ns) = (context.snapshots.visible(), context.runtime.now_ns());
        let mut state = self.state.lock();
        if state.sequence != sequence || state.since_ns == 0 {
            (state.sequence, state.since_ns) = (sequence, now_ns.max(1));
            // An ingestion has a sequence number too, and does not commit.
            context.sleep.end();
        }
        state
    }

    /// A worker looks for work. `true`: the database is idle.
    pub(crate) fn begin_look(&self, context: &Context) -> bool {
        let ended_readers = context.sleep.ended_readers();
        let is_idle = self.is_now(context);
        self.state.lock().ended_readers = ended_readers;
        is_idle
    }

    /// The database is idle.
    pub(crate) fn is_now(&self, context: &Context) -> bool {
        let since_ns = self.look(context).since_ns;
        context.runtime.now_ns().saturating_sub(since_ns) >= IDLE_NS
    }

    /// A look at the idle database found nothing to do: workers sleep until they are woken. The
    /// caller holds the commit lock. A commit that came during the look prevents that.
    pub(crate) fn done(&self, context: &Context) {
        let ended_readers = self.look(context).ended_readers;
        if self.is_now(context) {
            context.sleep.begin(ended_readers);
        }
    }

    /// Time until the database is idle; `None` when workers sleep until they are woken.
    pub(crate) fn begins_in_ns(&self, context: &Context) -> Option<u64> {
        let since_ns = self.look(context).since_ns;
        let waited_ns = context.runtime.now_ns().saturating_sub(since_ns);
        (!context.sleep.is_asleep()).then(|| IDLE_NS.saturating_sub(waited_ns))
    }
}
