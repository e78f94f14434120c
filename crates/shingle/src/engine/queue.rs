//! The queue of background work: jobs between their steps, manual compactions, and the last
//! failure.

use super::compaction::CompactionPart;
use super::flush::FlushJob;
use super::idle::Idle;
use super::values::gc::GcJob;
use base::env::Event;
use base::{Error, KeyspaceId};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use tree::policy::Wanted;

/// A job of background work, between two steps.
pub(crate) enum Job {
    Flush(FlushJob),
    Part(Box<CompactionPart>),
    Collect(Box<GcJob>),
}

impl Job {
    /// The limit of background bytes counts for it. Flushes have none: writers wait for them.
    fn is_limited(&self) -> bool {
        !matches!(self, Job::Flush(_))
    }
}

/// A manual compaction.
#[derive(Clone, Debug)]
pub(crate) struct Manual {
    /// Its number, from 1.
    pub number: u64,
    pub keyspace: KeyspaceId,
    pub wanted: Wanted,
}

/// A manual compaction that a caller waits for. It ends with the call: background work must not go
/// on with what has failed, or with what no one waits for.
pub(crate) struct Requested<'a> {
    scheduler: &'a Scheduler,
    number: u64,
}

impl Requested<'_> {
    /// Nothing is left to do.
    pub(crate) fn is_done(&self) -> bool {
        !self.scheduler.lock().manual.iter().any(|manual| manual.number == self.number)
    }
}

impl Drop for Requested<'_> {
    fn drop(&mut self) {
        self.scheduler.remove_manual(self.number);
    }
}

/// A job that waits for a worker.
pub(crate) struct Waiting {
    pub job: Job,
    /// When its last step ended. In virtual time a worker may be behind that, and must not continue
    /// the job yet; with threads this time has always passed.
    pub from_ns: u64,
}

/// A step of background work, by its number. The first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Try(u64);

#[derive(Clone)]
pub(crate) struct Failure {
    pub of: Try,
    pub error: Error,
}

#[derive(Default)]
pub(crate) struct Queue {
    pub jobs: Vec<Waiting>,
    /// Jobs that workers are running.
    pub running: usize,
    /// The keyspace whose values GC is working on.
    pub collecting: Option<KeyspaceId>,
    /// The number of GCs that began, by keyspace.
    collections: BTreeMap<KeyspaceId, u64>,
    pub manual: Vec<Manual>,
    /// Manual compactions that were added so far.
    manuals: u64,
    pub failures: u32,
    pub last_failure: Option<Failure>,
    /// Where a step does not wait for time itself: no step before this, after a failure.
    pub resumes_ns: u64,
    /// Tries that began so far.
    tries: u64,
    /// No limited job makes a step before, on the runtime's clock. Databases that share a limit
    /// share this, and their clock.
    next_slot_ns: Arc<AtomicU64>,
    /// Since when a job waits for that time, and for nothing else.
    throttled_since_ns: Option<u64>,
    limit_wait_ns: u64,
}

impl Queue {
    fn has_free_slot(&self, jobs_max: usize) -> bool {
        self.jobs.len() + self.running < jobs_max
    }

    /// A limited job has moved `bytes`. At a rate above 0, the next one waits until their time is
    /// over.
    pub fn charge(&mut self, bytes: u64, bytes_per_second: u64, now_ns: u64) {
        if bytes_per_second > 0 {
            let cost_ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second);
            let cost_ns = u64::try_from(cost_ns).unwrap_or(u64::MAX);
            let charged = |slot_ns: u64| Some(slot_ns.max(now_ns).saturating_add(cost_ns));
            let _ = self.next_slot_ns.fetch_update(Relaxed, Relaxed, charged);
        }
    }

    /// When `waiting` may make its next step.
    fn ready_ns(&self, waiting: &Waiting) -> u64 {
        if waiting.job.is_limited() {
            return waiting.from_ns.max(self.next_slot_ns.load(Relaxed));
        }
        waiting.from_ns
    }

    fn take(&mut self, now_ns: u64) -> Option<Job> {
        let is_ready = |waiting: &Waiting| self.ready_ns(waiting) <= now_ns;
        let is_flush = |waiting: &Waiting| !waiting.job.is_limited();
        let flush = self.jobs.iter().position(|waiting| is_flush(waiting) && is_ready(waiting));
        let index = flush.or_else(|| self.jobs.iter().position(is_ready))?;
        let job = self.jobs.remove(index).job;
        if job.is_limited() {
            self.end_wait(now_ns);
        }
        self.running += 1;
        Some(job)
    }

    /// When the next job can be taken, and whether it is throttled: the limit alone makes it wait.
    fn next_ns(&mut self, now_ns: u64) -> Option<(u64, bool)> {
        let next = self.jobs.iter().min_by_key(|waiting| self.ready_ns(waiting))?;
        let (ready_ns, is_throttled) = (self.ready_ns(next), next.from_ns < self.ready_ns(next));
        if is_throttled {
            self.throttled_since_ns.get_or_insert(now_ns.max(next.from_ns));
        }
        Some((ready_ns, is_throttled))
    }

    fn end_wait(&mut self, now_ns: u64) {
        if let Some(since_ns) = self.throttled_since_ns.take() {
            self.limit_wait_ns += now_ns.saturating_sub(since_ns);
        }
    }
}

/// The queue of one database.
pub(crate) struct Scheduler {
    queue: Mutex<Queue>,
    jobs_max: usize,
    /// The last work that began is a GC.
    is_turn_of_moves: AtomicBool,
    pub retry: Event,
    pub idle: Idle,
}

impl Scheduler {
    /// `next_slot_ns`: where databases that share a limit count its time.
    pub(crate) fn new(workers: usize, next_slot_ns: Arc<AtomicU64>) -> Scheduler {
        Scheduler {
            queue: Mutex::new(Queue { next_slot_ns, ..Queue::default() }),
            jobs_max: workers.max(1) + 1,
            is_turn_of_moves: AtomicBool::default(),
            retry: Event::default(),
            idle: Idle::default(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// A GC began: moves are next.
    pub(crate) fn give_turn_to_moves(&self) {
        self.is_turn_of_moves.store(true, Relaxed);
    }

    /// Moves are next, for this once.
    pub(crate) fn take_turn_of_moves(&self) -> bool {
        self.is_turn_of_moves.swap(false, Relaxed)
    }

    /// Adds a manual compaction, for as long as the result lives.
    pub(crate) fn request_manual(&self, keyspace: KeyspaceId, wanted: Wanted) -> Requested<'_> {
        Requested { scheduler: self, number: self.add_manual(keyspace, wanted) }
    }

    /// Adds a manual compaction that no caller waits for. Returns its number.
    pub(crate) fn add_manual(&self, keyspace: KeyspaceId, wanted: Wanted) -> u64 {
        let mut queue = self.lock();
        queue.manuals += 1;
        let number = queue.manuals;
        queue.manual.push(Manual { number, keyspace, wanted });
        number
    }

    /// Removes the manual compaction of this number, if it is there.
    pub(crate) fn remove_manual(&self, number: u64) {
        self.lock().manual.retain(|manual| manual.number != number);
    }

    /// A manual compaction of `keyspace` is waiting.
    pub(crate) fn has_manual_of(&self, keyspace: KeyspaceId) -> bool {
        self.lock().manual.iter().any(|manual| manual.keyspace == keyspace)
    }

    /// GC of values of `keyspace` is in progress.
    pub(crate) fn is_collecting(&self, keyspace: KeyspaceId) -> bool {
        self.lock().collecting == Some(keyspace)
    }

    /// No job is in progress or waiting, and no manual compaction is waiting.
    pub(crate) fn is_idle(&self) -> bool {
        let queue = self.lock();
        queue.jobs.is_empty() && queue.running == 0 && queue.manual.is_empty()
    }

    /// The last failure of background work, while it keeps failing.
    pub(crate) fn last_error(&self) -> Option<Error> {
        self.lock().last_failure.as_ref().map(|failure| failure.error.clone())
    }

    pub(crate) fn begin_try(&self) -> Try {
        let mut queue = self.lock();
        queue.tries += 1;
        Try(queue.tries)
    }

    /// The last try that began.
    pub(crate) fn last_try(&self) -> Try {
        Try(self.lock().tries)
    }

    /// The error for a thread that needs background work, and that began to wait after the try
    /// `before` had begun. What made an earlier try fail may be over by now: the outcome of the
    /// next one is the answer. Where descriptors were lacking, that one is made at once, because it
    /// costs little.
    pub(crate) fn error_of_wait(&self, before: Try) -> Option<Error> {
        let failure = self.lock().last_failure.clone()?;
        if failure.of > before {
            return Some(failure.error);
        }
        if failure.error.lacks_descriptors() {
            self.release();
        }
        None
    }

    /// Ends a wait for a retry.
    pub(crate) fn release(&self) {
        self.lock().resumes_ns = 0;
        self.retry.signal();
    }

    /// How long no step may be made after a failure; `None`: the next one may be made.
    pub(crate) fn pause_ns(&self, now_ns: u64) -> Option<u64> {
        let pause_ns = self.lock().resumes_ns.saturating_sub(now_ns);
        (pause_ns > 0).then_some(pause_ns)
    }

    pub(crate) fn take(&self, now_ns: u64) -> Option<Job> {
        self.lock().take(now_ns)
    }

    /// Puts jobs, new or between two steps, where workers find them.
    pub(crate) fn put(&self, jobs: impl IntoIterator<Item = Job>, from_ns: u64) {
        let waiting = jobs.into_iter().map(|job| Waiting { job, from_ns });
        self.lock().jobs.extend(waiting);
    }

    /// When the next job can be taken, and whether the limit of background bytes alone makes it
    /// wait.
    pub(crate) fn next_ns(&self, now_ns: u64) -> Option<(u64, bool)> {
        self.lock().next_ns(now_ns)
    }

    /// The limit of background bytes has changed: what waits for the old one goes on.
    pub(crate) fn end_throttling(&self, now_ns: u64) {
        let mut queue = self.lock();
        queue.next_slot_ns.store(0, Relaxed);
        queue.end_wait(now_ns);
    }

    /// How long compactions and GC were throttled by the limit, in nanoseconds.
    pub(crate) fn limit_wait_ns(&self, now_ns: u64) -> u64 {
        let queue = self.lock();
        let now = queue.throttled_since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
        queue.limit_wait_ns + now
    }

    /// GC may begin.
    pub(crate) fn may_collect(&self) -> bool {
        let queue = self.lock();
        queue.collecting.is_none() && queue.has_free_slot(self.jobs_max)
    }

    /// GC of `keyspace` is in progress from this call on. The caller holds the trees, so that no
    /// other thread plans one.
    pub(crate) fn begin_collecting(&self, keyspace: KeyspaceId) {
        let mut queue = self.lock();
        queue.collecting = Some(keyspace);
        *queue.collections.entry(keyspace).or_default() += 1;
    }

    /// The number of GCs of `keyspace` that began so far.
    pub(crate) fn collections(&self, keyspace: KeyspaceId) -> u64 {
        self.lock().collections.get(&keyspace).copied().unwrap_or(0)
    }

    pub(crate) fn end_collecting(&self) {
        self.lock().collecting = None;
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
        let scheduler = Scheduler::new(1, Arc::default());
        assert!(scheduler.may_collect());
        scheduler.begin_collecting(KeyspaceId(3));
        assert!(!scheduler.may_collect());
        assert!(scheduler.is_collecting(KeyspaceId(3)) && !scheduler.is_collecting(KeyspaceId(2)));
        scheduler.end_collecting();
        scheduler.lock().running = 2;
        assert!(!scheduler.may_collect(), "no worker is free for it");
        scheduler.lock().running = 1;
        assert!(scheduler.may_collect());
    }

    #[test]
    fn a_wait_gives_no_error_of_a_try_from_before_it_began() {
        let scheduler = Scheduler::new(1, Arc::default());
        let failed = |of: Try| {
            let error = Error::new(base::ErrorKind::Io, format!("try {}", of.0));
            scheduler.lock().last_failure = Some(Failure { of, error });
        };
        failed(scheduler.begin_try());
        let before = scheduler.last_try();
        assert!(scheduler.error_of_wait(before).is_none(), "it failed before");
        failed(scheduler.begin_try());
        assert_eq!(scheduler.error_of_wait(before).unwrap().message(), "try 2");
    }

    #[test]
    fn the_bytes_of_a_step_put_off_the_next_one() {
        let mut queue = Queue::default();
        queue.charge(500, 0, 7);
        assert_eq!(queue.next_slot_ns.load(Relaxed), 0, "no limit");
        queue.charge(500, 1000, 7);
        assert_eq!(queue.next_slot_ns.load(Relaxed), 500_000_007);
        queue.charge(1000, 1000, 9);
        assert_eq!(queue.next_slot_ns.load(Relaxed), 1_500_000_007, "behind what came before");
        queue.charge(u64::MAX, 1, 9);
        assert_eq!(queue.next_slot_ns.load(Relaxed), u64::MAX);
    }
}
