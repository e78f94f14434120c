//! Time for workloads: the monotonic clock, or a virtual one in simulations.

use std::time::{Duration, Instant};

/// A clock that never runs backwards and that can be waited on.
pub trait Clock: Send + Sync {
    /// Nanoseconds since some moment that stays the same.
    fn now_ns(&self) -> u64;

    /// Returns when the clock has reached `deadline_ns`.
    fn wait_until(&self, deadline_ns: u64);
}

/// The machine's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    origin: Instant,
}

impl Default for WallClock {
    fn default() -> WallClock {
        WallClock { origin: Instant::now() }
    }
}

/// A sleep ends late by about 0.1 ms; the last stretch before a deadline is spun instead.
const SPIN_NS: u64 = 150_000;

impl Clock for WallClock {
    fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    fn wait_until(&self, deadline_ns: u64) {
        loop {
            let left = deadline_ns.saturating_sub(self.now_ns());
            if left == 0 {
                return;
            }
            if left > SPIN_NS {
                std::thread::sleep(Duration::from_nanos(left - SPIN_NS));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_never_ends_early() {
        let clock = WallClock::default();
        for wait_ns in [0, 1_000, 400_000] {
            let deadline_ns = clock.now_ns() + wait_ns;
            clock.wait_until(deadline_ns);
            assert!(clock.now_ns() >= deadline_ns);
        }
    }
}
