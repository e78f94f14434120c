//! Live news of a running benchmark, for progress bars and logs.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How often [`Observer::progress`] is called.
pub(crate) const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// How far a benchmark is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress<'a> {
    /// Name of the benchmark.
    pub benchmark: &'a str,
    /// Operations done so far, over all threads.
    pub done: u64,
    /// Operations to do; `None` when the benchmark ends by time.
    pub total: Option<u64>,
    /// Time since the benchmark began.
    pub elapsed_ns: u64,
}

/// Receives live news; called from a thread of its own while a benchmark runs.
pub trait Observer: Sync {
    /// Whether [`Observer::progress`] should be called at all.
    fn wants_progress(&self) -> bool {
        false
    }

    /// Called a few times a second, and once when the benchmark ends.
    fn progress(&self, progress: &Progress<'_>) {
        let _ = progress;
    }

    /// A line that a tool writes to standard error: interval statistics, warnings.
    fn note(&self, line: &str) {
        let _ = line;
    }
}

/// Operations done by one thread, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Gauge(AtomicU64);

impl Gauge {
    pub(crate) fn set(&self, done: u64) {
        self.0.store(done, Relaxed);
    }

    pub(crate) fn sum(gauges: &[Gauge]) -> u64 {
        gauges.iter().map(|gauge| gauge.0.load(Relaxed)).sum()
    }
}

/// Wants no news.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}
