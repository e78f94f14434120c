//! Threads that work for several databases.
//!
//! Each database has a [`PoolRuntime`]. In place of threads it has *turns*, as many as it would
//! have threads. A turn is running in a thread of the pool, or in the queue of the pool, or it
//! rests until the database is woken or a time has come. Threads take turns from the queue in
//! order, one step at a time, so a busy database does not keep others waiting.
//!
//! Invariants:
//! - Turns of a database that run, are in the queue or rest are as many as it was started with.
//! - A wake is not lost: a turn that found nothing to do goes back to the queue if a wake came
//!   while it was looking.
//! - A step does not wait for time ([`Runtime::waits_in_steps`]), so it holds no thread up.

use super::{BACKGROUND_NICE, Threads};
use base::env::{Event, Runtime, Worker};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

thread_local! {
    /// The database whose step this thread makes.
    static STEPS_FOR: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Threads that work for several databases; they end with the last handle of the pool.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    next_id: AtomicU64,
    /// Of the process that has the threads.
    forks: u64,
}

struct Shared {
    clock: Threads,
    state: Mutex<State>,
    /// There is something in the queue, a new time to wait for, or the end.
    work: Condvar,
    /// A turn of a database that is being stopped has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    members: BTreeMap<u64, Member>,
    queue: VecDeque<u64>,
    is_over: bool,
}

/// One database.
struct Member {
    worker: Arc<dyn Worker>,
    running: usize,
    resting: usize,
    /// When one of the resting turns has something to do.
    due_ns: Option<u64>,
    wakes: u64,
    is_stopping: bool,
}

impl Pool {
    /// A pool of at least one thread, and of `threads` where the system has as many.
    pub(crate) fn new(threads: usize) -> Arc<Pool> {
        let shared = Arc::new(Shared {
            clock: Threads::new(),
            state: Mutex::default(),
            work: Condvar::new(),
            ended: Condvar::new(),
        });
        let spawn = |index: usize| {
            let shared = shared.clone();
            let body = move || {
                media::os::lower_thread_priority(BACKGROUND_NICE);
                shared.work();
            };
            std::thread::Builder::new().name(format!("shingle-pool-{index}")).spawn(body).ok()
        };
        let threads = (0..threads.max(1)).map_while(spawn).collect();
        Arc::new(Pool { shared, threads, next_id: AtomicU64::new(0), forks: media::os::forks() })
    }

    /// The number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// The runtime of one more database.
    pub(crate) fn runtime(self: &Arc<Self>) -> Arc<dyn Runtime> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        Arc::new(PoolRuntime { pool: self.clone(), id })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if media::os::is_forked_since(self.forks) {
            // There are no threads to end, and one of them may have held the lock at the fork.
            return std::mem::forget(std::mem::take(&mut self.threads));
        }
        self.shared.state.lock().is_over = true;
        self.shared.work.notify_all();
        let me = std::thread::current().id();
        for thread in self.threads.drain(..) {
            if thread.thread().id() != me {
                // A worker that panicked has poisoned its database already.
                drop(thread.join());
            }
        }
    }
}

impl Shared {
    /// What a thread does.
    fn work(&self) {
        let mut state = self.state.lock();
        while !state.is_over {
            state.queue_due(self.clock.now_ns());
            match state.take() {
                Some((id, worker, seen)) => {
                    let (did, due_ns) =
                        MutexGuard::unlocked(&mut state, || self.step(id, &*worker));
                    // Dropping it can drop a database, which stops its runtime.
                    MutexGuard::unlocked(&mut state, || drop(worker));
                    self.end_turn(&mut state, id, did, seen, due_ns);
                }
                None => self.wait(&mut state),
            }
        }
    }

    fn step(&self, id: u64, worker: &dyn Worker) -> (bool, Option<u64>) {
        STEPS_FOR.set(Some(id));
        let did = worker.step();
        STEPS_FOR.set(None);
        let next_ns = if did { None } else { worker.next_ns() };
        (did, next_ns.map(|ns| self.clock.now_ns().saturating_add(ns)))
    }

    fn end_turn(&self, state: &mut State, id: u64, did: bool, seen: u64, due_ns: Option<u64>) {
        let Some(member) = state.members.get_mut(&id) else { return };
        member.running -= 1;
        if member.is_stopping {
            member.resting += 1;
            self.ended.notify_all();
        } else if did || member.wakes != seen {
            state.queue.push_back(id);
        } else {
            member.resting += 1;
            member.due_ns = [member.due_ns, due_ns].into_iter().flatten().min();
        }
    }

    /// Waits until there may be a turn to take.
    fn wait(&self, state: &mut MutexGuard<'_, State>) {
        match state.members.values().filter_map(|member| member.due_ns).min() {
            None => self.work.wait(state),
            Some(due_ns) => {
                let ns = due_ns.saturating_sub(self.clock.now_ns()).max(1);
                self.work.wait_for(state, Duration::from_nanos(ns));
            }
        }
    }
}

impl State {
    /// Puts a turn of each database whose time has come into the queue.
    fn queue_due(&mut self, now_ns: u64) {
        for (&id, member) in &mut self.members {
            if member.due_ns.is_some_and(|due_ns| due_ns <= now_ns) {
                member.due_ns = None;
                if member.resting > 0 {
                    member.resting -= 1;
                    self.queue.push_back(id);
                }
            }
        }
    }

    fn take(&mut self) -> Option<(u64, Arc<dyn Worker>, u64)> {
        let id = self.queue.pop_front()?;
        let member = self.members.get_mut(&id)?;
        member.running += 1;
        Some((id, member.worker.clone(), member.wakes))
    }
}

/// What a pool is to one database.
struct PoolRuntime {
    pool: Arc<Pool>,
    id: u64,
}

impl Runtime for PoolRuntime {
    fn now_ns(&self) -> u64 {
        self.pool.shared.clock.now_ns()
    }

    fn wall_micros(&self) -> u64 {
        self.pool.shared.clock.wall_micros()
    }

    fn random_u64(&self) -> u64 {
        self.pool.shared.clock.random_u64()
    }

    fn wait(&self, event: &Event, seen: u64, deadline_ns: Option<u64>) {
        self.pool.shared.clock.wait(event, seen, deadline_ns);
    }

    fn start(&self, worker: Arc<dyn Worker>, workers: usize) {
        let (running, wakes, due_ns, is_stopping) = (0, 0, None, false);
        let member = Member { worker, running, resting: workers, due_ns, wakes, is_stopping };
        self.pool.shared.state.lock().members.insert(self.id, member);
    }

    fn wake(&self) {
        let mut state = self.pool.shared.state.lock();
        let Some(member) = state.members.get_mut(&self.id) else { return };
        member.wakes += 1;
        if !member.is_stopping {
            let woken = std::mem::take(&mut member.resting);
            state.queue.extend(std::iter::repeat_n(self.id, woken));
            drop(state);
            for _ in 0..woken {
                self.pool.shared.work.notify_one();
            }
        }
    }

    fn waits_in_steps(&self) -> bool {
        false
    }

    fn stop(&self) {
        let mut state = self.pool.shared.state.lock();
        let Some(member) = state.members.get_mut(&self.id) else { return };
        member.is_stopping = true;
        let id = self.id;
        state.queue.retain(|&queued| queued != id);
        // A step can drop the last handle of its database.
        let own = usize::from(STEPS_FOR.get() == Some(id));
        while state.members.get(&id).is_some_and(|member| member.running > own) {
            self.pool.shared.ended.wait(&mut state);
        }
        let member = state.members.remove(&id);
        drop(state);
        // Outside of the lock, because it can drop a database.
        drop(member);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// Does `work` steps, and counts them; then there is nothing to do.
    #[derive(Default)]
    struct Counted {
        work: AtomicUsize,
        done: AtomicUsize,
        inside: AtomicUsize,
        most_inside: AtomicUsize,
        looks: AtomicUsize,
        next_ns: AtomicU64,
        changed: Event,
    }

    impl Worker for Counted {
        fn step(&self) -> bool {
            let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_inside.fetch_max(inside, Ordering::SeqCst);
            let took = self
                .work
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |work| work.checked_sub(1));
            self.looks.fetch_add(1, Ordering::SeqCst);
            self.done.fetch_add(usize::from(took.is_ok()), Ordering::SeqCst);
            self.inside.fetch_sub(1, Ordering::SeqCst);
            self.changed.signal();
            took.is_ok()
        }

        fn next_ns(&self) -> Option<u64> {
            let ns = self.next_ns.swap(0, Ordering::SeqCst);
            (ns > 0).then_some(ns)
        }
    }

    impl Counted {
        fn wait_until(&self, is_done: impl Fn(&Counted) -> bool) {
            loop {
                let seen = self.changed.count();
                if is_done(self) {
                    return;
                }
                self.changed.block(seen, Some(1_000_000_000));
            }
        }
    }

    fn started(pool: &Arc<Pool>, workers: usize) -> (Arc<dyn Runtime>, Arc<Counted>) {
        let (runtime, counted) = (pool.runtime(), Arc::new(Counted::default()));
        runtime.start(counted.clone(), workers);
        (runtime, counted)
    }

    #[test]
    fn all_databases_get_their_work_done_by_the_threads_of_the_pool() {
        let pool = Pool::new(2);
        let members: Vec<_> = (0..50).map(|_| started(&pool, 2)).collect();
        for round in 1..=20 {
            for (runtime, counted) in &members {
                counted.work.fetch_add(3, Ordering::SeqCst);
                runtime.wake();
            }
            for (_, counted) in &members {
                counted.wait_until(|counted| counted.done.load(Ordering::SeqCst) == 3 * round);
            }
        }
        for (runtime, counted) in &members {
            runtime.stop();
            assert!(counted.most_inside.load(Ordering::SeqCst) <= 2);
            assert_eq!(Arc::strong_count(counted), 1, "the pool has let it go");
        }
        assert!(pool.shared.state.lock().members.is_empty());
    }

    #[test]
    fn a_wake_during_a_look_is_another_look() {
        let pool = Pool::new(1);
        let (runtime, counted) = started(&pool, 1);
        for round in 1..=2000 {
            counted.work.fetch_add(1, Ordering::SeqCst);
            runtime.wake();
            counted.wait_until(|counted| counted.done.load(Ordering::SeqCst) == round);
        }
        runtime.stop();
    }

    #[test]
    fn time_alone_is_a_reason_to_look() {
        let pool = Pool::new(1);
        let (runtime, counted) = started(&pool, 2);
        counted.next_ns.store(1_000_000, Ordering::SeqCst);
        runtime.wake();
        counted.wait_until(|counted| counted.looks.load(Ordering::SeqCst) >= 3);
        runtime.stop();
    }

    #[test]
    fn a_stopped_database_makes_no_step() {
        let pool = Pool::new(2);
        let (runtime, counted) = started(&pool, 2);
        counted.work.store(usize::MAX, Ordering::SeqCst);
        runtime.wake();
        counted.wait_until(|counted| counted.done.load(Ordering::SeqCst) > 100);
        runtime.stop();
        let done = counted.done.load(Ordering::SeqCst);
        runtime.wake();
        let (other, also) = started(&pool, 2);
        also.work.store(100, Ordering::SeqCst);
        other.wake();
        also.wait_until(|also| also.done.load(Ordering::SeqCst) == 100);
        assert_eq!(counted.done.load(Ordering::SeqCst), done);
        other.stop();
    }
}
