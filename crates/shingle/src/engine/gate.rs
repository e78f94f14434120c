//! The gate: who is at work inside the engine. Closing shuts it, waits until everybody has left,
//! and only then ends what is left and gives the store's lock back: nobody writes to a store that
//! may be another opener's.
//!
//! Through the gate go background steps, and every call that may write without holding one of the
//! engine's locks all the time, or that reads files which the next opener may remove. Puts, gets
//! and syncs do not: what they write they write under the commit or the sync lock, where they ask
//! whether the database is closed, and closing takes these locks once after it shut the gate.

use base::env::{Event, Runtime};
use std::sync::atomic::{AtomicU64, Ordering};

/// The gate is shut. The other bits count who is inside.
const SHUT: u64 = 1 << 63;

/// Whoever waits for the last one to leave looks again at least this often.
const LOOK_NS: u64 = 200_000_000;

/// Counts who is inside.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: AtomicU64,
    left: Event,
}

/// Somebody is inside for as long as it lives.
pub(crate) struct Inside<'a>(&'a Gate);

impl Gate {
    /// Goes in. `None`: it is shut.
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        let before = self.state.fetch_add(1, Ordering::AcqRel);
        // Leaves again where it is shut.
        let inside = Inside(self);
        (before & SHUT == 0).then_some(inside)
    }

    /// Nobody enters after this.
    pub(crate) fn shut(&self) {
        self.state.fetch_or(SHUT, Ordering::AcqRel);
    }

    #[inline]
    pub(crate) fn is_shut(&self) -> bool {
        self.state.load(Ordering::Acquire) & SHUT != 0
    }

    fn is_empty(&self) -> bool {
        self.state.load(Ordering::Acquire) & !SHUT == 0
    }

    /// Waits until nobody is inside. It must be shut.
    pub(crate) fn wait_empty(&self, runtime: &dyn Runtime) {
        loop {
            let seen = self.left.count();
            if self.is_empty() {
                return;
            }
            runtime.wait(&self.left, seen, Some(runtime.now_ns() + LOOK_NS));
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let before = self.0.state.fetch_sub(1, Ordering::AcqRel);
        if before & SHUT != 0 {
            self.0.left.signal();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Threads;

    #[test]
    fn nobody_enters_a_shut_gate_and_the_last_to_leave_is_waited_for() {
        let gate = Gate::default();
        let (first, second) = (gate.enter().unwrap(), gate.enter().unwrap());
        gate.shut();
        assert!(gate.enter().is_none() && gate.is_shut() && !gate.is_empty());
        drop(first);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait_empty(&Threads::new()));
            drop(second);
            waiting.join().unwrap();
        });
        assert!(gate.is_empty() && gate.is_shut());
    }
}
