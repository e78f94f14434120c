//! A runtime that makes a background step only when a test says so, or when a caller waits. A
//! second worker acts where the test wants it.

use base::env::{Event, Runtime, Worker};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// What another thread does while a step is in progress.
pub type Act = Box<dyn FnOnce() + Send>;

/// What other threads do at a place between two reads of shared state.
pub type AtPlace = Arc<dyn Fn(&'static str) + Send + Sync>;

/// Makes steps when told to, or when a caller waits.
#[derive(Default)]
pub struct Script {
    now_ns: AtomicU64,
    worker: Mutex<Option<Arc<dyn Worker>>>,
    /// Steps in progress, one inside a read of another.
    pub depth: AtomicU64,
    /// A user reads, and other threads interleave as they do in a step.
    pub is_reading: AtomicBool,
    /// A second worker is available.
    pub has_second: AtomicBool,
    at_wake: Mutex<Option<Act>>,
    at_place: Mutex<Option<AtPlace>>,
}

impl Script {
    pub fn step(&self) -> bool {
        let worker = self.worker.lock().clone();
        let depth = self.depth.load(SeqCst);
        let is_free = depth == 0 || (depth == 1 && self.has_second.load(SeqCst));
        let Some(worker) = worker.filter(|_| is_free) else { return false };
        self.depth.fetch_add(1, SeqCst);
        let did = worker.step();
        self.depth.fetch_sub(1, SeqCst);
        did
    }

    /// How long a worker that found nothing to do would sleep; `None`: until it is woken.
    pub fn sleeps_ns(&self) -> Option<u64> {
        self.worker.lock().clone()?.next_ns()
    }

    /// Lets time pass.
    pub fn pass(&self, ns: u64) {
        self.now_ns.fetch_add(ns, SeqCst);
    }

    /// Runs `act`, with a second worker available, when the next step wakes a worker.
    pub fn at_wake(&self, act: Act) {
        *self.at_wake.lock() = Some(act);
    }

    /// Other threads may interleave with the current step or read. Steps that they make meanwhile
    /// are theirs from begin to end.
    pub fn is_raced(&self) -> bool {
        let depth = self.depth.load(SeqCst);
        depth == 1 || (depth == 0 && self.is_reading.load(SeqCst))
    }

    /// Calls `hook` at each place of a step where another thread may run.
    pub fn at_place(&self, hook: AtPlace) {
        *self.at_place.lock() = Some(hook);
    }

    /// Another worker makes a step while one is in progress. Its step must not need a lock that the
    /// other holds.
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
        *self.worker.lock() = Some(worker);
    }
    fn interleave(&self, place: &'static str) {
        let hook = self.at_place.lock().clone();
        if let Some(hook) = hook.filter(|_| self.is_raced()) {
            hook(place);
        }
    }
    fn wake(&self) {
        let is_in_step = self.depth.load(SeqCst) == 1;
        if let Some(act) = is_in_step.then(|| self.at_wake.lock().take()).flatten() {
            self.has_second.store(true, SeqCst);
            act();
            self.has_second.store(false, SeqCst);
        }
    }
    fn stop(&self) {
        *self.worker.lock() = None;
    }
}
