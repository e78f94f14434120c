//! Runtimes: threads with the monotonic clock for production, steps with a virtual clock for tests.
//!
//! Background threads run at a lower priority (nice 10). With ordinary priority, compaction that
//! fills the cores would delay the log's fdatasync by a whole scheduler tick.

use base::env::{Event, Runtime, Worker};
use base::random::Random;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

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
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
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
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
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

    fn random(&self) -> std::sync::MutexGuard<'_, Random> {
        self.random.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self) -> bool {
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).clone();
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
        *self.worker.lock().unwrap_or_else(PoisonError::into_inner) = Some(worker);
    }

    fn turn(&self) {
        if self.random().one_in(self.odds) {
            self.step();
        }
    }

    fn wake(&self) {}

    fn stop(&self) {
        *self.worker.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
