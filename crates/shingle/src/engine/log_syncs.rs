//! Whose turn it is to sync the log.
//!
//! One sync is in progress at a time. It serves every writer that appended before it began. The
//! other writers wait, each on an event of its own. The end of a turn wakes the first writer that
//! it did not serve, whose sync begins at once, and then those that it served. No writer waits
//! through a sync that it does not need, and none wakes without a reason.
//!
//! Invariants:
//! - No writer waits while no turn is taken, but for a moment: the end of each turn wakes one
//!   writer that takes the next turn, or finds it taken.
//! - The durable position never moves back.

use crate::engine::commit_state::LogPosition;
use base::env::{Event, Runtime};
use parking_lot::Mutex;
use std::sync::Arc;

/// The turns of one log.
#[derive(Default)]
pub(crate) struct LogSyncs(Mutex<State>);

#[derive(Default)]
struct State {
    durable: LogPosition,
    is_taken: bool,
    /// In order of arrival.
    waiting: Vec<Waiter>,
}

/// A writer that waits for the end of a turn.
struct Waiter {
    position: LogPosition,
    ended: Arc<Event>,
}

/// The right to sync. Its end lets others go on.
pub(crate) struct SyncTurn<'a> {
    syncs: &'a LogSyncs,
    /// The log is durable up to this position. The owner moves it.
    pub durable: LogPosition,
}

impl State {
    fn add_waiter(&mut self, position: LogPosition) -> Arc<Event> {
        let ended = Arc::new(Event::default());
        self.waiting.push(Waiter { position, ended: ended.clone() });
        ended
    }
}

impl LogSyncs {
    /// The log is durable up to this position.
    pub(crate) fn durable(&self) -> LogPosition {
        self.0.lock().durable
    }

    /// Waits until the log is durable up to `position`, or the caller may sync. `None`: it is
    /// durable.
    pub(crate) fn wait(
        &self,
        position: LogPosition,
        runtime: &dyn Runtime,
    ) -> Option<SyncTurn<'_>> {
        let mut ended: Option<Arc<Event>> = None;
        loop {
            let mut state = self.0.lock();
            if state.durable >= position {
                return None;
            }
            if !state.is_taken {
                state.is_taken = true;
                return Some(SyncTurn { syncs: self, durable: state.durable });
            }
            // A runtime without threads gives up a wait that nothing can end.
            let still_waits = ended.take().filter(|ended| ended.count() == 0);
            let event = still_waits.unwrap_or_else(|| state.add_waiter(position));
            drop(state);
            runtime.wait(&event, 0, None);
            ended = Some(event);
        }
    }

    /// Waits until the caller may sync.
    pub(crate) fn take(&self, runtime: &dyn Runtime) -> SyncTurn<'_> {
        self.wait(LogPosition::MAX, runtime).expect("no log is durable up to the greatest position")
    }
}

impl Drop for SyncTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.syncs.0.lock();
        let durable = state.durable.max(self.durable);
        (state.durable, state.is_taken) = (durable, false);
        let served: Vec<Waiter> =
            state.waiting.extract_if(.., |waiter| waiter.position <= durable).collect();
        let next = (!state.waiting.is_empty()).then(|| state.waiting.remove(0));
        drop(state);
        next.iter().chain(&served).for_each(|waiter| waiter.ended.signal());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Threads;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn at(bytes: u64) -> LogPosition {
        LogPosition { bytes, ..LogPosition::default() }
    }

    #[test]
    fn a_durable_position_needs_no_turn() {
        let (syncs, runtime) = (LogSyncs::default(), Threads::new());
        let mut turn = syncs.wait(at(1), &runtime).expect("nothing is durable");
        turn.durable = at(5);
        assert_eq!(syncs.durable(), at(0), "the turn has not ended");
        drop(turn);
        assert_eq!(syncs.durable(), at(5));
        assert!(syncs.wait(at(5), &runtime).is_none());
        assert!(syncs.wait(at(6), &runtime).is_some());
    }

    /// Threads append one byte and wait until it is durable, again and again.
    #[test]
    fn every_writer_is_served_and_few_sync() {
        const WRITERS: u64 = 16;
        const WRITES: u64 = 200;
        let syncs = LogSyncs::default();
        let (appended, turns) = (AtomicU64::new(0), AtomicU64::new(0));
        let write = || {
            let runtime = Threads::new();
            for _ in 0..WRITES {
                let mine = at(appended.fetch_add(1, Ordering::SeqCst) + 1);
                let Some(mut turn) = syncs.wait(mine, &runtime) else {
                    assert!(syncs.durable() >= mine);
                    continue;
                };
                turns.fetch_add(1, Ordering::SeqCst);
                let target = at(appended.load(Ordering::SeqCst));
                std::thread::sleep(std::time::Duration::from_micros(200));
                turn.durable = target;
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(write);
            }
        });
        assert_eq!(syncs.durable(), at(WRITERS * WRITES));
        let turns = turns.load(Ordering::SeqCst);
        assert!(turns < WRITERS * WRITES / 2, "{turns} syncs for {} writes", WRITERS * WRITES);
    }

    /// A sync that fails serves no writer: each writer gets a turn, and hears of the failure then.
    #[test]
    fn a_turn_that_serves_nobody_passes_on() {
        let syncs = LogSyncs::default();
        std::thread::scope(|scope| {
            for position in 1..=8 {
                let syncs = &syncs;
                scope.spawn(move || {
                    drop(syncs.wait(at(position), &Threads::new()).expect("a turn"))
                });
            }
        });
        assert_eq!(syncs.durable(), at(0));
        drop(syncs.take(&Threads::new()));
    }
}
