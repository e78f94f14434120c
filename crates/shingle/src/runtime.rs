//! Runtimes: threads with the monotonic clock for production, alone or for several databases, and
//! steps with a virtual clock for tests.
//!
//! Background threads run at a lower priority (nice 10). With ordinary priority, compaction that
//! fills the cores would delay the log's fdatasync by a whole scheduler tick.

use base::env::{Event, Runtime, Worker};
use parking_lot::Mutex;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

mod pool;
pub(crate) use pool::Pool;
#[cfg(any(test, feature = "testing"))]
mod stepped;
#[cfg(any(test, feature = "testing"))]
pub use stepped::Stepped;

/// Nice value of background threads.
const BACKGROUND_NICE: i32 = 10;

/// Threads and the monotonic clock.
pub struct Threads {
    start: Instant,
    work: Arc<Event>,
    stopping: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Threads {
    /// A runtime without threads yet; [`Runtime::start`] adds them.
    pub fn new() -> Threads {
        Threads {
            start: Instant::now(),
            work: Arc::new(Event::default()),
            stopping: Arc::new(AtomicBool::new(false)),
            threads: Mutex::new(Vec::new()),
        }
    }
}

impl Default for Threads {
    fn default() -> Threads {
        Threads::new()
    }
}

impl Runtime for Threads {
    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn wall_micros(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_micros() as u64
    }

    fn random_u64(&self) -> u64 {
        // The standard library seeds each of these from the system's randomness.
        RandomState::new().hash_one(self.now_ns())
    }

    fn wait(&self, event: &Event, seen: u64, deadline_ns: Option<u64>) {
        let timeout_ns = deadline_ns.map(|deadline| deadline.saturating_sub(self.now_ns()));
        event.block(seen, timeout_ns);
    }

    fn start(&self, worker: Arc<dyn Worker>, workers: usize) {
        let mut threads = self.threads.lock();
        for index in 0..workers {
            let (worker, work, stopping) =
                (worker.clone(), self.work.clone(), self.stopping.clone());
            let body = move || {
                media::os::lower_thread_priority(BACKGROUND_NICE);
                work_until_stopped(&*worker, &work, &stopping);
            };
            let name = format!("shingle-{index}");
            match std::thread::Builder::new().name(name).spawn(body) {
                Ok(thread) => threads.push(thread),
                Err(_) => break, // fewer workers do the same work, later
            }
        }
    }

    fn wake(&self) {
        self.work.signal();
    }

    fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.work.signal();
        let threads = std::mem::take(&mut *self.threads.lock());
        let me = std::thread::current().id();
        for thread in threads {
            if thread.thread().id() != me {
                // A worker that panicked has poisoned its database already.
                drop(thread.join());
            }
        }
    }
}

fn work_until_stopped(worker: &dyn Worker, work: &Event, stopping: &AtomicBool) {
    while !stopping.load(Ordering::Acquire) {
        let seen = work.count();
        if !worker.step() && !stopping.load(Ordering::Acquire) {
            work.block(seen, worker.next_ns());
        }
    }
}
