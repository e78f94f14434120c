//! Time for workloads: the monotonic clock, or a virtual one in simulations.

use base::env::{Event, Runtime};
use base::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A clock that never runs backwards and that can be waited on.
pub trait Clock: Send + Sync {
    /// Nanoseconds since some moment that stays the same.
    fn now_ns(&self) -> u64;

    /// Returns when the clock has reached `deadline_ns`.
    fn wait_until(&self, deadline_ns: u64);

    /// Its time is a simulation's, which one thread drives.
    fn is_virtual(&self) -> bool {
        false
    }
}

/// Refuses what needs more than the one thread of a simulation: several of a benchmark's own, or a
/// second kind of work beside it.
pub fn check_threads(clock: &dyn Clock, threads: usize, has_company: bool) -> Result<()> {
    if clock.is_virtual() && (threads > 1 || has_company) {
        let message =
            "a simulation has one thread: no second one, no benchmark with work beside it";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    Ok(())
}

/// The clock of a simulation.
pub struct VirtualClock(pub Arc<dyn Runtime>);

impl Clock for VirtualClock {
    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }

    /// Background work goes on meanwhile.
    fn wait_until(&self, deadline_ns: u64) {
        while self.now_ns() < deadline_ns {
            let never = Event::default();
            self.0.wait(&never, never.count(), Some(deadline_ns));
        }
    }

    fn is_virtual(&self) -> bool {
        true
    }
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
