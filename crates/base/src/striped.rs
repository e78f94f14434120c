//! A counter for what many threads do all the time.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// A counter that many threads add to: each in a stripe of its own, as long as there are enough, so
/// that they do not take a cache line from each other.
#[derive(Debug, Default)]
pub struct Striped([Stripe; STRIPES]);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe(AtomicU64);

const STRIPES: usize = 16;

/// Threads that have a stripe so far.
static STRIPES_GIVEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static STRIPE: usize = STRIPES_GIVEN.fetch_add(1, Relaxed) % STRIPES;
}

impl Striped {
    /// Adds in the calling thread's stripe.
    #[inline]
    pub fn add(&self, more: u64) {
        // A thread that is being torn down has no stripe any more.
        let stripe = STRIPE.try_with(|stripe| *stripe).unwrap_or(0);
        self.0[stripe].0.fetch_add(more, Relaxed);
    }

    /// The sum of what all threads added.
    pub fn sum(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.0.load(Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_add_is_summed() {
        let counter = Striped::default();
        std::thread::scope(|scope| {
            for _ in 0..2 * STRIPES {
                scope.spawn(|| (0..100).for_each(|_| counter.add(3)));
            }
        });
        assert_eq!(counter.sum(), 2 * STRIPES as u64 * 300);
    }
}
