//! Latencies: one histogram per thread and kind of operation, merged at the end.
//!
//! Three significant digits from 1 ns to an hour. A sample costs two clock reads, about 45 ns.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// What a histogram comes down to, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// 99.99th percentile.
    pub p9999: u64,
    /// The slowest.
    pub max: u64,
}

/// A histogram of latencies.
#[derive(Clone, Debug)]
pub struct Latency {
    histogram: Histogram<u64>,
}

impl Default for Latency {
    fn default() -> Latency {
        let histogram =
            Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("the bounds are valid");
        Latency { histogram }
    }
}

impl Latency {
    /// Adds one sample.
    pub fn record(&mut self, latency_ns: u64) {
        self.histogram.saturating_record(latency_ns.max(1));
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Latency) {
        self.histogram.add(&other.histogram).expect("all histograms have the same bounds");
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Mean in nanoseconds; 0 without samples.
    pub fn mean_ns(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.histogram.mean() }
    }

    /// The fastest in nanoseconds; 0 without samples.
    pub fn min_ns(&self) -> u64 {
        if self.count() == 0 { 0 } else { self.histogram.min() }
    }

    /// The slowest in nanoseconds; 0 without samples.
    pub fn max_ns(&self) -> u64 {
        self.histogram.max().min(LATENCY_NS_MAX)
    }

    /// The latency in nanoseconds that `quantile` (0 to 1) of the samples stay within.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        self.histogram.value_at_quantile(quantile).min(self.histogram.max())
    }

    /// The usual percentiles; `None` without samples.
    pub fn summary(&self) -> Option<Summary> {
        (self.count() > 0).then(|| Summary {
            p50: self.quantile_ns(0.50),
            p90: self.quantile_ns(0.90),
            p99: self.quantile_ns(0.99),
            p999: self.quantile_ns(0.999),
            p9999: self.quantile_ns(0.9999),
            max: self.max_ns(),
        })
    }

    /// db_bench's histogram block, in microseconds.
    pub fn text(&self) -> String {
        let us = |ns: u64| ns as f64 / 1000.0;
        let quantile = |quantile: f64| us(self.quantile_ns(quantile));
        let deviation = if self.count() == 0 { 0.0 } else { self.histogram.stdev() / 1000.0 };
        let mut text = String::new();
        let _ = writeln!(
            text,
            "Count: {} Average: {:.4}  StdDev: {:.2}\nMin: {}  Median: {:.4}  Max: {}",
            self.count(),
            self.mean_ns() / 1000.0,
            deviation,
            self.min_ns() / 1000,
            quantile(0.5),
            self.max_ns() / 1000,
        );
        let _ = writeln!(
            text,
            "Percentiles: P50: {:.2} P75: {:.2} P99: {:.2} P99.9: {:.2} P99.99: {:.2}",
            quantile(0.5),
            quantile(0.75),
            quantile(0.99),
            quantile(0.999),
            quantile(0.9999),
        );
        text.push_str("------------------------------------------------------\n");
        self.write_bars(&mut text);
        text
    }

    fn write_bars(&self, text: &mut String) {
        let total = self.count() as f64;
        let (mut low_us, mut below) = (0, 0);
        for high_us in bucket_limits_us() {
            let count = self.count_up_to(high_us * 1000) - below;
            below += count;
            if count > 0 {
                let (share, sum) = (count as f64 / total, below as f64 / total);
                let open = if low_us == 0 { '[' } else { '(' };
                let (percent, sum) = (share * 100.0, sum * 100.0);
                let bar = "#".repeat((share * 20.0 + 0.5) as usize);
                let _ = writeln!(
                    text,
                    "{open} {low_us:7}, {high_us:7} ] {count:8} {percent:7.3}% {sum:7.3}% {bar}"
                );
            }
            low_us = high_us;
            if below >= self.count() {
                break;
            }
        }
    }

    /// Samples up to and including `limit_ns`, at the histogram's resolution.
    fn count_up_to(&self, limit_ns: u64) -> u64 {
        let last = limit_ns.min(LATENCY_NS_MAX);
        self.histogram
            .iter_recorded()
            .take_while(|bucket| bucket.value_iterated_to() <= last)
            .map(|bucket| bucket.count_at_value())
            .sum()
    }
}

/// db_bench's bucket limits: 1, 2, then each 1.5 times the one before, cut to two digits.
fn bucket_limits_us() -> impl Iterator<Item = u64> {
    let mut exact = 2.0f64;
    let larger = std::iter::from_fn(move || {
        exact *= 1.5;
        let limit = exact as u64;
        let unit = 10u64.pow(limit.ilog10().saturating_sub(1));
        Some(limit / unit * unit)
    });
    let all_us = LATENCY_NS_MAX / 1000;
    [1, 2].into_iter().chain(larger.take_while(move |&limit| limit < all_us)).chain([all_us * 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_known_set() {
        let mut latency = Latency::default();
        assert_eq!(latency.summary(), None);
        (1..=10_000).for_each(|us| latency.record(us * 1000));
        let summary = latency.summary().unwrap();
        let near = |ns: u64, us: f64| (ns as f64 / 1000.0 / us - 1.0).abs() < 0.002;
        assert!(near(summary.p50, 5_000.0), "{summary:?}");
        assert!(near(summary.p90, 9_000.0), "{summary:?}");
        assert!(near(summary.p99, 9_900.0), "{summary:?}");
        assert!(near(summary.p999, 9_990.0), "{summary:?}");
        assert!(near(summary.max, 10_000.0), "{summary:?}");
    }

    #[test]
    fn merging_adds_up() {
        let (mut a, mut b) = (Latency::default(), Latency::default());
        a.record(1000);
        b.record(5000);
        b.record(u64::MAX);
        a.merge(&b);
        assert_eq!((a.count(), a.min_ns() / 1000), (3, 1));
        assert_eq!(a.max_ns(), LATENCY_NS_MAX);
    }

    #[test]
    fn the_text_block_counts_every_sample_once() {
        let mut latency = Latency::default();
        for us in [0, 1, 1, 3, 10, 100, 1000, 3_599_000_000] {
            latency.record(us * 1000);
        }
        let text = latency.text();
        assert!(text.starts_with("Count: 8 Average: "), "{text}");
        assert!(text.contains("\nPercentiles: P50: "), "{text}");
        let bars = text.lines().filter(|line| line.contains(" ] "));
        let count: u64 =
            bars.map(|line| line.split_whitespace().nth(4).unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(count, 8, "{text}");
        assert!(text.contains("100.000%"), "{text}");
    }
}
