//! Latency histograms inside the engine: log-linear buckets of relaxed atomics, always on.
//!
//! A bucket's width is at most 1/16 of its value, so a percentile is accurate to 6 %.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const SUB_BITS: u32 = 4;
const SUB: usize = 1 << SUB_BITS;
const BUCKETS: usize = (64 - SUB_BITS as usize) * SUB + SUB;

/// Counts of durations by size.
pub(crate) struct Histogram {
    buckets: Box<[AtomicU64]>,
    sum_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            sum_ns: AtomicU64::new(0),
            max_ns: AtomicU64::new(0),
        }
    }
}

fn bucket(ns: u64) -> usize {
    if ns < SUB as u64 {
        return ns as usize;
    }
    let exponent = 63 - ns.leading_zeros();
    let sub = (ns >> (exponent - SUB_BITS)) as usize & (SUB - 1);
    ((exponent - SUB_BITS + 1) as usize) * SUB + sub
}

/// The largest duration that falls into a bucket.
fn upper_ns(bucket: usize) -> u64 {
    if bucket < SUB {
        return bucket as u64;
    }
    let exponent = (bucket / SUB) as u32 + SUB_BITS - 1;
    let width = 1u64 << (exponent - SUB_BITS);
    (1u64 << exponent) + (bucket % SUB) as u64 * width + (width - 1)
}

impl Histogram {
    pub(crate) fn record(&self, ns: u64) {
        self.buckets[bucket(ns)].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(ns, Relaxed);
        if ns > self.max_ns.load(Relaxed) {
            self.max_ns.fetch_max(ns, Relaxed);
        }
    }

    pub(crate) fn summary(&self) -> Latency {
        let counts: Vec<u64> = self.buckets.iter().map(|b| b.load(Relaxed)).collect();
        let count: u64 = counts.iter().sum();
        let max_ns = self.max_ns.load(Relaxed);
        let percentile = |share: f64| {
            let rank = ((count as f64 * share).ceil() as u64).max(1);
            let mut seen = 0;
            for (bucket, n) in counts.iter().enumerate() {
                seen += n;
                if seen >= rank {
                    return upper_ns(bucket).min(max_ns);
                }
            }
            max_ns
        };
        Latency {
            count,
            sum_ns: self.sum_ns.load(Relaxed),
            p50_ns: percentile(0.5),
            p99_ns: percentile(0.99),
            p999_ns: percentile(0.999),
            max_ns,
            buckets: Latency::BOUNDS_NS.map(|bound| counts[..bucket(bound)].iter().sum()),
        }
    }
}

/// The number of bounds in [`Latency::BOUNDS_NS`].
const BOUNDS: usize = 25;

/// Summary of a latency distribution, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latency {
    /// Number of samples.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// Half of the samples are at most this.
    pub p50_ns: u64,
    /// 99 % of the samples are at most this.
    pub p99_ns: u64,
    /// 99.9 % of the samples are at most this.
    pub p999_ns: u64,
    /// The largest sample.
    pub max_ns: u64,
    /// For each bound of [`Latency::BOUNDS_NS`], the number of samples below it. They grow, and the
    /// samples beyond the last bound are in [`Latency::count`] alone.
    pub buckets: [u64; BOUNDS],
}

impl Latency {
    /// The bounds of [`Latency::buckets`]: powers of two from 4 us to 69 s.
    pub const BOUNDS_NS: [u64; BOUNDS] = {
        let mut bounds = [0; BOUNDS];
        let mut index = 0;
        while index < BOUNDS {
            bounds[index] = 1 << (index + 12);
            index += 1;
        }
        bounds
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_lies_in_its_bucket() {
        for ns in (0..4096).chain((12..64).flat_map(|b| [(1u64 << b) - 1, 1 << b, (1 << b) + 1])) {
            let index = bucket(ns);
            assert!(ns <= upper_ns(index), "{ns}");
            assert!(index == 0 || ns > upper_ns(index - 1), "{ns}");
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn buckets_have_exactly_the_samples_below_their_bound() {
        let histogram = Histogram::default();
        let samples = [0, 4095, 4096, 5000, 1 << 20, u64::MAX];
        samples.iter().for_each(|&ns| histogram.record(ns));
        let summary = histogram.summary();
        for (bound, count) in Latency::BOUNDS_NS.into_iter().zip(summary.buckets) {
            let below = samples.iter().filter(|&&ns| ns < bound).count() as u64;
            assert_eq!(count, below, "{bound}");
        }
        assert_eq!(Latency::BOUNDS_NS[0], 4096);
        assert_eq!(summary.count, 6);
    }

    #[test]
    fn percentiles_are_close() {
        let histogram = Histogram::default();
        (1..=10_000).for_each(|ns| histogram.record(ns));
        let summary = histogram.summary();
        assert_eq!((summary.count, summary.max_ns), (10_000, 10_000));
        for (got, want) in [(summary.p50_ns, 5000.0), (summary.p99_ns, 9900.0)] {
            assert!((got as f64 / want - 1.0).abs() < 0.07, "{got} {want}");
        }
    }
}
