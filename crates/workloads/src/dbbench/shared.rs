//! The state that the threads of a benchmark share.

use super::benchmarks::Benchmark;
use super::config::Config;
use crate::clock::Clock;
use crate::observe::Gauge;
use crate::store::Store;
use std::sync::atomic::AtomicBool;

/// What all threads of a benchmark share.
pub(super) struct Shared<'a> {
    pub(super) config: &'a Config,
    pub(super) benchmark: &'a Benchmark,
    pub(super) store: &'a dyn Store,
    pub(super) clock: &'a dyn Clock,
    /// When the benchmark started.
    pub(super) start_ns: u64,
    /// Background threads end when this is set; all threads do when one of them failed.
    pub(super) stop: AtomicBool,
    /// Operations done, by thread.
    pub(super) done: Vec<Gauge>,
}
