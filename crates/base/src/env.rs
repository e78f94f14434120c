//! The world outside: time, waiting and background threads come in through [`Runtime`].
//!
//! In production the runtime is threads and the monotonic clock; in simulation it is one thread, a
//! seed and a virtual clock. Engine code neither sleeps nor reads a clock by any other way. It
//! waits on an [`Event`]: read [`Event::count`], look at the state, and [`Runtime::wait`] for the
//! count to move on. A signal between the look and the wait is not lost, because the count has
//! moved.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU64, Ordering};

/// Something that happens repeatedly and that a thread may wait for.
#[derive(Debug, Default)]
pub struct Event {
    count: AtomicU64,
    lock: Mutex<()>,
    moved: Condvar,
}

impl Event {
    /// How often it happened so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// It happened: every waiting thread checks again.
    pub fn signal(&self) {
        let _guard = self.lock.lock();
        self.count.fetch_add(1, Ordering::Release);
        self.moved.notify_all();
    }

    /// Blocks the calling thread until the count differs from `seen`, or `timeout_ns` passed.
    /// For runtimes with threads; engine code calls [`Runtime::wait`].
    pub fn block(&self, seen: u64, timeout_ns: Option<u64>) {
        let is_short = timeout_ns.is_some_and(|ns| ns < PRECISE_NS_MAX);
        let _precise = is_short.then(PreciseTimer::begin);
        let mut guard = self.lock.lock();
        let deadline =
            timeout_ns.map(|ns| (std::time::Instant::now(), std::time::Duration::from_nanos(ns)));
        while self.count() == seen {
            match deadline {
                None => self.moved.wait(&mut guard),
                Some((start, timeout)) => {
                    let Some(left) = timeout.checked_sub(start.elapsed()) else { return };
                    self.moved.wait_for(&mut guard, left);
                }
            }
        }
    }
}

/// The timers of shorter waits are precise.
const PRECISE_NS_MAX: u64 = 1_000_000;

/// While it lives, timers of the calling thread fire when they are due. Linux otherwise lets them
/// wait for 50 microseconds, so that several may fire together.
struct PreciseTimer {
    #[cfg(all(target_os = "linux", not(miri)))]
    slack_ns_before: Option<std::num::NonZeroU64>,
}

#[cfg(all(target_os = "linux", not(miri)))]
impl PreciseTimer {
    /// None: the system does not let the thread choose, and its timers are as before.
    fn begin() -> Option<PreciseTimer> {
        let slack_ns_before = rustix::thread::current_timer_slack().ok()?;
        rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN)).ok()?;
        Some(PreciseTimer { slack_ns_before: std::num::NonZeroU64::new(slack_ns_before) })
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
impl Drop for PreciseTimer {
    fn drop(&mut self) {
        // Fails only if the kernel has no such setting, and then there is nothing to give back.
        let _ = rustix::thread::set_current_timer_slack(self.slack_ns_before);
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
impl PreciseTimer {
    fn begin() -> Option<PreciseTimer> {
        None
    }
}

/// How a background worker takes its turn.
pub trait Worker: Send + Sync {
    /// Does one bounded step of background work. `false`: there is nothing to do until
    /// [`Runtime::wake`] is called, or [`Worker::next_ns`] has passed.
    fn step(&self) -> bool;

    /// In how many nanoseconds there is something to do, if only time must pass for it.
    fn next_ns(&self) -> Option<u64> {
        None
    }
}

/// Time, waiting and background work.
pub trait Runtime: Send + Sync {
    /// Nanoseconds on a clock that never runs backwards; its zero means nothing.
    fn now_ns(&self) -> u64;

    /// Microseconds since 1970 on the wall clock, for event logs, for values that expire, and for
    /// the age of what is kept for a time.
    fn wall_micros(&self) -> u64;

    /// A number that is unpredictable in production, and that the seed fixes in simulation.
    fn random_u64(&self) -> u64;

    /// Waits until `event` has moved on from `seen`, or the clock reached `deadline_ns`.
    fn wait(&self, event: &Event, seen: u64, deadline_ns: Option<u64>);

    /// Starts `workers` background workers that share `worker`; they run until [`Runtime::stop`].
    fn start(&self, worker: std::sync::Arc<dyn Worker>, workers: usize);

    /// A user's operation ended: a runtime without threads gives background work its turn here.
    fn turn(&self) {}

    /// The caller is between two reads of shared state, with no lock held: another thread may run
    /// here. Production does nothing. A runtime that explores interleavings runs other work, and
    /// tells the places apart by `place`.
    fn interleave(&self, _place: &'static str) {}

    /// There may be something to do.
    fn wake(&self);

    /// A step may wait until a time has come, because its thread has nothing else to do. `false`:
    /// the step ends, and [`Worker::next_ns`] tells the time.
    fn waits_in_steps(&self) -> bool {
        true
    }

    /// Lets the running steps end, and ends the workers.
    fn stop(&self);
}

/// Looks at what another thread may change in less than a microsecond, up to `times` times, and
/// without giving up the processor. `true`: it is `done`. To wait for it, use an [`Event`].
#[inline]
pub fn look(times: u32, mut done: impl FnMut() -> bool) -> bool {
    for _ in 0..times {
        if done() {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_between_look_and_wait_is_not_lost() {
        let event = Event::default();
        let seen = event.count();
        event.signal();
        event.block(seen, None);
        assert_eq!(event.count(), seen + 1);
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn a_short_wait_has_a_precise_timer_and_gives_it_back() {
        let slack_ns = |thread: &str| {
            std::fs::read_to_string(format!("/proc/{thread}/timerslack_ns")).unwrap()
        };
        let (event, ended) = (Event::default(), std::sync::atomic::AtomicBool::new(false));
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
                let before = slack_ns(&thread);
                tell.send(thread.clone()).unwrap();
                while !ended.load(Ordering::Relaxed) {
                    event.block(event.count(), Some(PRECISE_NS_MAX - 1));
                }
                assert_eq!(slack_ns(&thread), before);
            });
            let waiting = told.recv().unwrap();
            let is_precise = (0..100_000).any(|_| slack_ns(&waiting).trim() == "1");
            ended.store(true, Ordering::Relaxed);
            assert!(is_precise);
        });
    }

    #[test]
    fn a_wait_ends_at_its_deadline() {
        let event = Event::default();
        event.block(event.count(), Some(1_000_000));
        assert_eq!(event.count(), 0);
    }
}
