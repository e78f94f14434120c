//! Fixed-rate load: every operation has an intended start, and its latency counts from there.
//!
//! A closed loop that waits for a slow operation issues none meanwhile, and so hides the delay of
//! requests that arrive at a steady rate ("coordinated omission"). A paced thread that falls behind
//! issues its operations at once, each measured from when it was due.

use crate::clock::Clock;

/// The schedule of one thread.
#[derive(Clone, Debug)]
pub struct Pacer {
    start_ns: u64,
    interval_ns: f64,
    issued: u64,
}

impl Pacer {
    /// One of `threads` threads that together issue `rate` operations per second, this one being
    /// the `index`-th: the threads take turns.
    pub fn new(start_ns: u64, rate: f64, threads: usize, index: usize) -> Pacer {
        let turn_ns = 1e9 / rate;
        Pacer {
            start_ns: start_ns + (turn_ns * index as f64) as u64,
            interval_ns: turn_ns * threads as f64,
            issued: 0,
        }
    }

    /// Waits until the next operation is due and returns its intended start.
    pub fn wait(&mut self, clock: &dyn Clock) -> u64 {
        let due_ns = self.start_ns + (self.interval_ns * self.issued as f64) as u64;
        self.issued += 1;
        clock.wait_until(due_ns);
        due_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    struct ManualClock(AtomicU64);

    impl Clock for ManualClock {
        fn now_ns(&self) -> u64 {
            self.0.load(Relaxed)
        }

        fn wait_until(&self, deadline_ns: u64) {
            self.0.fetch_max(deadline_ns, Relaxed);
        }
    }

    #[test]
    fn a_late_thread_keeps_its_schedule() {
        let clock = ManualClock(AtomicU64::new(0));
        let mut pacer = Pacer::new(0, 1000.0, 1, 0);
        assert_eq!(pacer.wait(&clock), 0);
        clock.0.store(5_500_000, Relaxed);
        let due: Vec<u64> = (0..6).map(|_| pacer.wait(&clock)).collect();
        assert_eq!(due, [1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000, 6_000_000]);
        assert_eq!(clock.now_ns(), 6_000_000);
    }

    #[test]
    fn threads_take_turns() {
        let clock = ManualClock(AtomicU64::new(0));
        let mut second = Pacer::new(0, 1000.0, 4, 1);
        assert_eq!(second.wait(&clock), 1_000_000);
        assert_eq!(second.wait(&clock), 5_000_000);
    }
}
