//! A runtime that makes a background step only when a test says so, or when somebody waits; and a
//! second worker, who comes where the test wants one.

use base::env::{Event, Runtime, Worker};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What somebody else does while a step is under way.
pub type Act = Box<dyn FnOnce() + Send>;

/// Steps when it is told to, or when somebody waits.
#[derive(Default)]
pub struct Script {
    now_ns: AtomicU64,
    worker: Mutex<Option<Arc<dyn Worker>>>,
    /// Steps under way, one inside a read of another.
    pub depth: AtomicU64,
    /// A second worker is at hand.
    pub has_second: AtomicBool,
    at_wake: Mutex<Option<Act>>,
}

pub fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Script {
    pub fn step(&self) -> bool {
        let worker = hold(&self.worker).clone();
        let depth = self.depth.load(SeqCst);
        let is_free = depth == 0 || (depth == 1 && self.has_second.load(SeqCst));
        let Some(worker) = worker.filter(|_| is_free) else { return false };
        self.depth.fetch_add(1, SeqCst);
        let did = worker.step();
        self.depth.fetch_sub(1, SeqCst);
        did
    }

    /// Has `act` done, with a second worker at hand, when the step to come wakes somebody.
    pub fn at_wake(&self, act: Act) {
        *hold(&self.at_wake) = Some(act);
    }

    /// Another worker makes a step while one is under way. It must not need what that has locked.
    pub fn second(&self) -> bool {
        self.has_second.store(true, SeqCst);
        let did = self.step();
        self.has_second.store(false, SeqCst);
        did
    }
}

impl Runtime for Script {
    fn now_ns(&self) -> u64 {
        self.now_ns.fetch_add(100, SeqCst)
    }
    fn wall_micros(&self) -> u64 {
        0
    }
    fn random_u64(&self) -> u64 {
        self.now_ns()
    }
    fn wait(&self, event: &Event, seen: u64, deadline_ns: Option<u64>) {
        while event.count() == seen {
            if !self.step() {
                self.now_ns.fetch_max(deadline_ns.unwrap_or(0), SeqCst);
                return;
            }
        }
    }
    fn start(&self, worker: Arc<dyn Worker>, _workers: usize) {
        *hold(&self.worker) = Some(worker);
    }
    fn wake(&self) {
        let is_in_step = self.depth.load(SeqCst) == 1;
        if let Some(act) = is_in_step.then(|| hold(&self.at_wake).take()).flatten() {
            self.has_second.store(true, SeqCst);
            act();
            self.has_second.store(false, SeqCst);
        }
    }
    fn stop(&self) {
        *hold(&self.worker) = None;
    }
}
