//! The state that the clients of a phase share.

use super::properties::Workload;
use super::sequence::InsertSequence;
use crate::clock::Clock;
use crate::observe::Gauge;
use crate::store::Store;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The two halves of a YCSB run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Inserts `recordcount` records.
    Load,
    /// Does `operationcount` operations on them.
    Run,
}

/// What all clients of a phase share.
pub(super) struct Shared<'a> {
    pub(super) workload: &'a Workload,
    pub(super) phase: Phase,
    pub(super) store: &'a dyn Store,
    pub(super) clock: &'a dyn Clock,
    pub(super) start_ns: u64,
    pub(super) inserts: InsertSequence,
    pub(super) stop: AtomicBool,
    pub(super) done: Vec<Gauge>,
}

impl Shared<'_> {
    pub(super) fn operations(&self) -> u64 {
        match self.phase {
            Phase::Load => self.workload.record_count,
            Phase::Run => self.workload.operation_count,
        }
    }

    pub(super) fn fail(&self) {
        self.stop.store(true, Relaxed);
    }
}
