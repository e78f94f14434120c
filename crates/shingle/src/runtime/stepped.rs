//! A runtime for tests: background steps run in the caller's thread, in an order that a seed fixes.

use base::env::{Event, Runtime, Worker};
use base::random::Random;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One thread and a virtual clock. Background steps run when a user operation ends or waits, in an
/// order that the seed fixes. The same seed gives the same history.
pub struct Stepped {
    now_ns: AtomicU64,
    random: Mutex<Random>,
    worker: Mutex<Option<Arc<dyn Worker>>>,
    /// A step is in progress: when it waits, only time passes.
    stepping: AtomicBool,
    /// One in this many user operations is followed by a background step.
    odds: u64,
}

impl Stepped {
    /// Time begins at zero. After one user operation in `odds`, on average, a background step runs.
    pub fn new(seed: u64, odds: u64) -> Stepped {
        Stepped {
            now_ns: AtomicU64::new(0),
            random: Mutex::new(Random::new(seed)),
            worker: Mutex::new(None),
            stepping: AtomicBool::new(false),
            odds: odds.max(1),
        }
    }

    /// Lets time pass.
    pub fn pass(&self, ns: u64) {
        self.now_ns.fetch_add(ns, Ordering::Relaxed);
    }

    fn random(&self) -> parking_lot::MutexGuard<'_, Random> {
        self.random.lock()
    }

    fn step(&self) -> bool {
        let worker = self.worker.lock().clone();
        let Some(worker) = worker else { return false };
        if self.stepping.swap(true, Ordering::Acquire) {
            return false;
        }
        let did = worker.step();
        self.stepping.store(false, Ordering::Release);
        did
    }
}

impl Runtime for Stepped {
    fn now_ns(&self) -> u64 {
        self.now_ns.fetch_add(100, Ordering::Relaxed)
    }

    fn wall_micros(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed) / 1000
    }

    fn random_u64(&self) -> u64 {
        self.random().next_u64()
    }

    fn wait(&self, event: &Event, seen: u64, deadline_ns: Option<u64>) {
        while event.count() == seen {
            if !self.step() {
                // Only the passing of time can change anything now.
                if let Some(deadline_ns) = deadline_ns {
                    self.now_ns.fetch_max(deadline_ns, Ordering::Relaxed);
                }
                return;
            }
            if deadline_ns.is_some_and(|deadline_ns| self.now_ns() >= deadline_ns) {
                return;
            }
        }
    }

    fn start(&self, worker: Arc<dyn Worker>, _workers: usize) {
        *self.worker.lock() = Some(worker);
    }

    fn turn(&self) {
        if self.random().one_in(self.odds) {
            self.step();
        }
    }

    fn wake(&self) {}

    fn stop(&self) {
        *self.worker.lock() = None;
    }
}
