//! The gate counts the threads at work inside the engine. Closing shuts the gate, waits until all
//! threads have left, and only then gives the store's lock back. So no thread writes to a store
//! that another process may have opened.
//!
//! These go through the gate:
//! - background steps;
//! - calls that may write without holding one of the engine's locks all the time;
//! - calls that read files which the next opening may remove.
//!
//! A forked child inherits the gate and finds it shut: the threads that flush and compact are its
//! parent's, and so are the files.
//!
//! Puts, gets and syncs do not go through it. They write under the commit lock or the sync lock,
//! and check under it whether the database is closed. Closing takes both locks once after it has
//! shut the gate.

use base::env::{Event, Runtime};
use std::sync::atomic::{AtomicU64, Ordering};

/// The gate is shut. The other bits count the threads inside.
const SHUT: u64 = 1 << 63;

/// The thread that waits for the last one to leave checks again at least this often.
const LOOK_NS: u64 = 200_000_000;

/// Counts the threads inside.
#[derive(Debug)]
pub(crate) struct Gate {
    state: AtomicU64,
    left: Event,
    /// Of the process that opened the database.
    forks: u64,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate { state: AtomicU64::new(0), left: Event::default(), forks: media::os::forks() }
    }
}

/// A thread is inside for as long as this lives.
pub(crate) struct Inside<'a>(&'a Gate);

impl Gate {
    /// Enters. `None`: the gate is shut.
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        if self.is_inherited() {
            return None;
        }
        let before = self.state.fetch_add(1, Ordering::AcqRel);
        // Dropped, and so leaves again, if the gate is shut.
        let inside = Inside(self);
        (before & SHUT == 0).then_some(inside)
    }

    /// No thread enters after this.
    pub(crate) fn shut(&self) {
        self.state.fetch_or(SHUT, Ordering::AcqRel);
    }

    #[inline]
    pub(crate) fn is_shut(&self) -> bool {
        self.state.load(Ordering::Acquire) & SHUT != 0 || self.is_inherited()
    }

    /// This process was forked from the one that opened the database.
    #[inline]
    pub(crate) fn is_inherited(&self) -> bool {
        media::os::is_forked_since(self.forks)
    }

    fn is_empty(&self) -> bool {
        self.state.load(Ordering::Acquire) & !SHUT == 0
    }

    /// Waits until no thread is inside. The gate must be shut.
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
    fn a_shut_gate_admits_no_one_and_waits_for_the_last_to_leave() {
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
