//! A wall clock that stands still until a history moves it.

use base::env::{Event, Runtime, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Milliseconds since 1970; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    /// A clock of its own.
    pub fn at(now_ms: u64) -> Clock {
        Clock(Arc::new(AtomicU64::new(now_ms)))
    }

    pub fn now_ms(&self) -> u64 {
        self.0.load(SeqCst)
    }

    pub fn set(&self, now_ms: u64) {
        self.0.store(now_ms, SeqCst);
    }
}

/// A runtime with this wall clock in place of its own.
pub struct Clocked<R: ?Sized> {
    clock: Clock,
    runtime: Arc<R>,
}

impl<R: Runtime + ?Sized> Clocked<R> {
    pub fn new(clock: &Clock, runtime: Arc<R>) -> Clocked<R> {
        Clocked { clock: clock.clone(), runtime }
    }
}

impl<R: Runtime + ?Sized> Runtime for Clocked<R> {
    fn wall_micros(&self) -> u64 {
        self.clock.0.load(SeqCst) * 1000
    }
    fn now_ns(&self) -> u64 {
        self.runtime.now_ns()
    }
    fn random_u64(&self) -> u64 {
        self.runtime.random_u64()
    }
    fn wait(&self, event: &Event, seen: u64, deadline_ns: Option<u64>) {
        self.runtime.wait(event, seen, deadline_ns);
    }
    fn start(&self, worker: Arc<dyn Worker>, workers: usize) {
        self.runtime.start(worker, workers);
    }
    fn turn(&self) {
        self.runtime.turn();
    }
    fn interleave(&self, place: &'static str) {
        self.runtime.interleave(place);
    }
    fn wake(&self) {
        self.runtime.wake();
    }
    fn stop(&self) {
        self.runtime.stop();
    }
}
