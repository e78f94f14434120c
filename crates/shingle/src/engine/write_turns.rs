//! Whose turn it is to commit a buffered write.
//!
//! A commit is shorter than putting a thread to sleep and waking it. If every writer competed for
//! the commit lock, most commits on several cores would pay for both. So the writers take turns of
//! many commits, their *tenure*: one commits again and again, and the others sleep.
//!
//! A free turn is open to every writer, and the one that comes back at once takes it without a
//! system call. The others wait in a queue. The first of the queue is called at the end of a turn,
//! in case the writer before it stays away. If that writer has come back, the first of the queue
//! waits for a tenure, measured by time or by the other's turns, and then reserves the next turn.
//!
//! Synced writers take no turns: they sleep anyway, and those that wait for one sync should append
//! soon. The commit lock orders them with the writer that has the turn.
//!
//! Invariants:
//! - Only the first of the queue reserves a turn, and no other writer takes it.
//! - The first of the queue is to be called at the end of the turn (`CALLS`), or waits with a
//!   deadline. So no writer waits for longer than a tenure beside a free turn.
//! - `WAITS` is set exactly if the queue has a writer; both change under the lock of the queue.

use base::env::{Event, Runtime, look};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// A writer has the turn.
const TAKEN: u32 = 1;
/// The queue is not empty.
const WAITS: u32 = 2;
/// The first of the queue is to be called at the end of the turn.
const CALLS: u32 = 4;
/// The next turn belongs to the first of the queue.
const RESERVED: u32 = 8;

/// A tenure in time. A thread sleeps and wakes in some tens of microseconds.
const TENURE_NS: u64 = 50_000;
/// A tenure in turns. It ends also where the first of the queue finds no core to wake on.
const TENURE_TURNS: u32 = 512;
/// Looks at a turn that has no queue yet: about the time of one commit.
const LOOKS: u32 = 40;
/// Looks at a reserved turn: some commits.
const LOOKS_RESERVED: u32 = 200;

/// The turns of one database.
#[derive(Default)]
pub(crate) struct WriteTurns {
    state: AtomicU32,
    /// Turns taken while others wait, since the last one that came from the queue.
    used: AtomicU32,
    queue: Mutex<VecDeque<Arc<Event>>>,
}

/// The right to commit; its end gives it back.
pub(crate) struct WriteTurn<'a>(&'a WriteTurns);

impl WriteTurns {
    /// Waits for a turn. A thread that has one must not take another.
    #[inline]
    pub(crate) fn take(&self, runtime: &dyn Runtime) -> WriteTurn<'_> {
        if !self.take_from(0) && !self.take_again() && !self.take_soon() {
            self.wait_for_turn(runtime);
        }
        WriteTurn(self)
    }

    /// Takes the turn in this state, in which it is free.
    #[inline]
    fn take_from(&self, free: u32) -> bool {
        self.state.compare_exchange(free, TAKEN | free & WAITS, AcqRel, Relaxed).is_ok()
    }

    /// Takes a free turn while others wait, and ends the tenure when it was long enough.
    #[cold]
    fn take_again(&self) -> bool {
        if self.state.load(Relaxed) != WAITS {
            return false;
        }
        if self.used.fetch_add(1, Relaxed) < TENURE_TURNS {
            return self.take_from(WAITS);
        }
        if self.state.compare_exchange(WAITS, WAITS | RESERVED, AcqRel, Relaxed).is_ok() {
            self.call_first();
        }
        false
    }

    /// Takes the turn if it ends in a moment, and no other writer waits.
    fn take_soon(&self) -> bool {
        let mut is_taken = false;
        look(LOOKS, || match self.state.load(Relaxed) {
            0 => {
                is_taken = self.take_from(0);
                is_taken
            }
            state => state & WAITS != 0,
        });
        is_taken
    }

    fn wait_for_turn(&self, runtime: &dyn Runtime) {
        let called = Arc::new(Event::default());
        if self.join(&called) {
            self.await_end(&called, 0, runtime);
        } else {
            runtime.wait(&called, 0, None);
        }
        let calls = called.count();
        if !self.take_as_first(1) {
            // Another writer is in its tenure.
            runtime.wait(&called, calls, Some(runtime.now_ns() + TENURE_NS));
            self.state.fetch_or(RESERVED, AcqRel);
            let mut calls = called.count();
            while !self.take_as_first(LOOKS_RESERVED) {
                self.await_end(&called, calls, runtime);
                calls = called.count();
            }
        }
        self.leave();
    }

    /// Joins the queue. `true`: as its first.
    fn join(&self, called: &Arc<Event>) -> bool {
        let mut queue = self.queue.lock();
        queue.push_back(called.clone());
        self.state.fetch_or(WAITS, AcqRel);
        queue.len() == 1
    }

    /// Leaves the queue, as its first and with the turn. The next one is called at its end.
    fn leave(&self) {
        let mut queue = self.queue.lock();
        queue.pop_front();
        self.used.store(0, Relaxed);
        match queue.is_empty() {
            true => self.state.fetch_and(!WAITS, AcqRel),
            false => self.state.fetch_or(CALLS, AcqRel),
        };
    }

    /// The first of the queue, which was called `calls` times, waits for the end of the turn.
    fn await_end(&self, called: &Event, calls: u64, runtime: &dyn Runtime) {
        if self.state.fetch_or(CALLS, AcqRel) & TAKEN != 0 {
            runtime.wait(called, calls, None);
        }
    }

    /// The first of the queue takes the turn, if it is free at one of this many looks.
    fn take_as_first(&self, looks: u32) -> bool {
        look(looks, || {
            let state = self.state.load(Acquire);
            state & TAKEN == 0 && self.take_from(state)
        })
    }

    #[cold]
    fn call_first(&self) {
        let first = self.queue.lock().front().cloned();
        if let Some(first) = first {
            first.signal();
        }
    }
}

impl Drop for WriteTurn<'_> {
    #[inline]
    fn drop(&mut self) {
        let before = self.0.state.fetch_and(!(TAKEN | CALLS), AcqRel);
        if before & CALLS != 0 {
            self.0.call_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Threads;
    use base::env::Worker;
    use std::cell::Cell;
    use std::sync::atomic::{AtomicBool, AtomicU64};
    use std::time::Duration;

    /// Threads, and what happens at each wait before it.
    struct Watched<F>(Threads, F);

    impl<F: Fn(&Event, Option<u64>) -> bool + Send + Sync> Runtime for Watched<F> {
        fn now_ns(&self) -> u64 {
            self.0.now_ns()
        }
        fn wall_micros(&self) -> u64 {
            self.0.wall_micros()
        }
        fn random_u64(&self) -> u64 {
            self.0.random_u64()
        }
        fn wait(&self, event: &Event, seen: u64, deadline_ns: Option<u64>) {
            if self.1(event, deadline_ns) {
                self.0.wait(event, seen, deadline_ns);
            }
        }
        fn start(&self, worker: Arc<dyn Worker>, workers: usize) {
            self.0.start(worker, workers);
        }
        fn wake(&self) {}
        fn stop(&self) {}
    }

    /// Works for about as long as a commit.
    fn work() {
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_micros(1) {}
    }

    #[test]
    fn one_writer_has_the_turn_and_few_sleep() {
        const WRITERS: u64 = 8;
        const TURNS: u64 = 20_000;
        let (turns, is_taken, waits) =
            (WriteTurns::default(), AtomicBool::new(false), AtomicU64::new(0));
        let write = || {
            let count = |_: &Event, _| {
                waits.fetch_add(1, Relaxed);
                true
            };
            let runtime = Watched(Threads::new(), count);
            for _ in 0..TURNS {
                let turn = turns.take(&runtime);
                assert!(!is_taken.swap(true, AcqRel), "two writers have the turn");
                work();
                is_taken.store(false, Relaxed);
                drop(turn);
            }
        };
        std::thread::scope(|scope| (0..WRITERS).for_each(|_| drop(scope.spawn(write))));
        assert_eq!(turns.state.load(Relaxed), 0);
        let waits = waits.load(Relaxed);
        assert!(waits < WRITERS * TURNS / 8, "{waits} waits for {} turns", WRITERS * TURNS);
    }

    #[test]
    fn a_writer_that_stays_away_leaves_the_turn_to_the_first() {
        let turns = WriteTurns::default();
        let turn = turns.take(&Threads::new());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| drop(turns.take(&Threads::new())));
            while turns.state.load(Relaxed) & CALLS == 0 {
                std::thread::yield_now();
            }
            drop(turn);
            waiting.join().unwrap();
        });
        assert_eq!(turns.state.load(Relaxed), 0);
    }

    /// One thread: the waits of the second writer are where the first one goes on.
    #[test]
    fn the_first_of_the_queue_reserves_a_turn_after_a_tenure() {
        thread_local! {
            static OWNED: Cell<Option<WriteTurn<'static>>> = const { Cell::new(None) };
            static WAIT: Cell<u32> = const { Cell::new(0) };
        }
        let turns: &'static WriteTurns = Box::leak(Box::default());
        OWNED.set(Some(turns.take(&Threads::new())));
        let go_on = |called: &Event, deadline_ns: Option<u64>| {
            match WAIT.replace(WAIT.get() + 1) {
                0 => {
                    drop(OWNED.take());
                    assert_eq!((called.count(), deadline_ns), (1, None));
                    OWNED.set(Some(turns.take(&Threads::new())));
                }
                1 => assert!(deadline_ns.is_some(), "the tenure has an end"),
                2 => {
                    assert_eq!(deadline_ns, None);
                    drop(OWNED.take());
                    assert_eq!(called.count(), 2);
                    let is_barred = !turns.take_from(0) && !turns.take_again();
                    assert!(is_barred && !turns.take_soon(), "the turn is reserved");
                }
                more => panic!("{more} waits"),
            }
            false
        };
        drop(turns.take(&Watched(Threads::new(), go_on)));
        assert_eq!((WAIT.get(), turns.state.load(Relaxed)), (3, 0));
    }

    #[test]
    fn a_tenure_ends_after_so_many_turns() {
        let turns = WriteTurns::default();
        let called = Arc::new(Event::default());
        assert!(turns.join(&called));
        let taken = (0..2 * TENURE_TURNS).take_while(|_| {
            let is_taken = turns.take_again();
            is_taken.then(|| drop(WriteTurn(&turns)));
            is_taken
        });
        assert_eq!((taken.count() as u32, called.count()), (TENURE_TURNS, 1));
        assert_eq!(turns.state.load(Relaxed), WAITS | RESERVED);
        assert!(turns.take_as_first(1));
        turns.leave();
        drop(WriteTurn(&turns));
        assert_eq!(turns.state.load(Relaxed), 0);
    }
}
