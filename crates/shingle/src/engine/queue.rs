//! The queue of background work: jobs between their steps, ranges of manual compactions, and the
//! last failure.

use super::compaction::CompactionPart;
use super::flush::FlushJob;
use super::idle::Idle;
use super::values::gc::GcJob;
use base::env::Event;
use base::{Error, KeyRange, KeyspaceId};
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::AtomicU64;

/// A job of background work, between two steps.
pub(crate) enum Job {
    Flush(FlushJob),
    Part(Box<CompactionPart>),
    Collect(Box<GcJob>),
}

/// A manual compaction of a key range.
#[derive(Clone, Debug)]
pub(crate) struct Manual {
    pub keyspace: KeyspaceId,
    pub range: KeyRange,
}

/// A job that waits for a worker.
pub(crate) struct Waiting {
    pub job: Job,
    /// When its last step ended. In virtual time a worker may be behind that, and must not continue
    /// the job yet; with threads this time has always passed, unless the job is paced.
    pub from_ns: u64,
    /// The limit of background bytes allows no step before.
    pub is_paced: bool,
}

#[derive(Default)]
pub(crate) struct Queue {
    pub jobs: Vec<Waiting>,
    /// Jobs that workers are running.
    pub running: usize,
    /// GC of values is in progress.
    pub is_collecting: bool,
    pub manual: Vec<Manual>,
    /// When the next step of a move may write, on the runtime's clock.
    pub next_slot_ns: u64,
    pub failures: u32,
    pub last_error: Option<Error>,
}

impl Queue {
    fn has_free_slot(&self, jobs_max: usize) -> bool {
        self.jobs.len() + self.running < jobs_max
    }
}

/// The queue of one database.
pub(crate) struct Scheduler {
    queue: Mutex<Queue>,
    jobs_max: usize,
    pub retry: Event,
    pub idle: Idle,
    /// How long compactions had to wait for the limit of background bytes, in nanoseconds.
    pub limit_wait_ns: AtomicU64,
}

impl Scheduler {
    pub(crate) fn new(workers: usize) -> Scheduler {
        Scheduler {
            queue: Mutex::default(),
            jobs_max: workers.max(1) + 1,
            retry: Event::default(),
            idle: Idle::default(),
            limit_wait_ns: AtomicU64::new(0),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    pub(crate) fn add_manual(&self, manual: Manual) {
        self.lock().manual.push(manual);
    }

    /// A manual compaction is waiting.
    pub(crate) fn has_manual(&self) -> bool {
        !self.lock().manual.is_empty()
    }

    /// No job is in progress or waiting, and no manual compaction is waiting.
    pub(crate) fn is_idle(&self) -> bool {
        let queue = self.lock();
        queue.jobs.is_empty() && queue.running == 0 && queue.manual.is_empty()
    }

    /// The last failure of background work, while it keeps failing.
    pub(crate) fn last_error(&self) -> Option<Error> {
        self.lock().last_error.clone()
    }

    /// Ends a wait for a retry.
    pub(crate) fn release(&self) {
        self.retry.signal();
    }

    pub(crate) fn take(&self, now_ns: u64) -> Option<Job> {
        let mut queue = self.lock();
        let is_ready = |waiting: &Waiting| waiting.from_ns <= now_ns;
        let is_flush = |waiting: &Waiting| matches!(waiting.job, Job::Flush(_));
        let flush = queue.jobs.iter().position(|waiting| is_ready(waiting) && is_flush(waiting));
        let index = flush.or_else(|| queue.jobs.iter().position(is_ready))?;
        queue.running += 1;
        Some(queue.jobs.remove(index).job)
    }

    /// Puts jobs, new or between two steps, where workers find them.
    pub(crate) fn put(&self, jobs: impl IntoIterator<Item = Job>, from_ns: u64) {
        let waiting = jobs.into_iter().map(|job| Waiting { job, from_ns, is_paced: false });
        self.lock().jobs.extend(waiting);
    }

    /// The same for new moves and GC, which wait for the limit of background bytes.
    pub(crate) fn put_paced(&self, jobs: impl IntoIterator<Item = Job>, now_ns: u64) {
        let mut queue = self.lock();
        let from_ns = queue.next_slot_ns.max(now_ns);
        let is_paced = from_ns > now_ns;
        let waiting = jobs.into_iter().map(|job| Waiting { job, from_ns, is_paced });
        queue.jobs.extend(waiting);
    }

    /// The limit of background bytes has changed: what waits for the old one goes on.
    pub(crate) fn end_pacing(&self) {
        let mut queue = self.lock();
        queue.next_slot_ns = 0;
        for waiting in queue.jobs.iter_mut().filter(|waiting| waiting.is_paced) {
            (waiting.from_ns, waiting.is_paced) = (0, false);
        }
    }

    /// When the next job can be taken, and whether it waits for the limit of background bytes.
    pub(crate) fn next_ns(&self) -> Option<(u64, bool)> {
        self.lock().jobs.iter().map(|waiting| (waiting.from_ns, waiting.is_paced)).min()
    }

    /// GC may begin, and counts as in progress after this call, so that no other thread plans it.
    pub(crate) fn begin_collecting(&self) -> bool {
        let mut queue = self.lock();
        let may_begin = !queue.is_collecting && queue.has_free_slot(self.jobs_max);
        queue.is_collecting |= may_begin;
        may_begin
    }

    pub(crate) fn end_collecting(&self) {
        self.lock().is_collecting = false;
    }

    /// Another job may begin.
    pub(crate) fn has_free_slot(&self) -> bool {
        self.lock().has_free_slot(self.jobs_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_collection_is_under_way_at_a_time() {
        let scheduler = Scheduler::new(1);
        assert!(scheduler.begin_collecting());
        assert!(!scheduler.begin_collecting());
        scheduler.end_collecting();
        scheduler.lock().running = 2;
        assert!(!scheduler.begin_collecting(), "no worker is free for it");
        scheduler.lock().running = 1;
        assert!(scheduler.begin_collecting());
    }
}
