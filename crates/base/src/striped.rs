//! A counter for what many threads do all the time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter that many threads add to: each in a stripe of its own, as long as there are enough, so
/// that they do not take a cache line from each other.
#[derive(Debug, Default)]
pub struct Striped([Stripe; STRIPES]);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe(AtomicU64);

const STRIPES: usize = 16;

/// Stacks of threads lie further apart than this.
const STACK_BYTES: usize = 1 << 16;

/// The stripe of the calling thread, by where its stack lies: it costs a few instructions, where a
/// thread-local variable of a shared library costs a call. Stacks lie at equal distances, which
/// Fibonacci hashing spreads evenly. A thread whose calls pass a multiple of [`STACK_BYTES`] has
/// two stripes, which is harmless.
#[inline]
fn stripe() -> usize {
    let here = 0_u8;
    let stack = ((&raw const here).addr() / STACK_BYTES) as u64;
    (stack.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - STRIPES.ilog2())) as usize
}

impl Striped {
    /// Adds in the calling thread's stripe.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0[stripe()].0.fetch_add(more, Relaxed);
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

    #[test]
    fn threads_seldom_share_a_stripe() {
        let all_at_once = std::sync::Barrier::new(STRIPES / 2);
        let stripes: Vec<usize> = std::thread::scope(|scope| {
            let at_once = || {
                all_at_once.wait(); // so that no stack is used twice
                stripe()
            };
            let threads: Vec<_> = (0..STRIPES / 2).map(|_| scope.spawn(at_once)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let distinct: std::collections::BTreeSet<_> = stripes.iter().collect();
        assert!(distinct.len() >= STRIPES / 4, "{stripes:?}");
    }
}
