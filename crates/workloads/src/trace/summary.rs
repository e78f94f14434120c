//! What a workload is like, counted while the trace is read.

use super::operation::{Kind, Operation};
use super::sample::{Bounds, Sample};
use super::skew;
use base::{Error, Result};
use hdrhistogram::Histogram;
use serde::Serialize;

/// Digits that sizes keep in the histograms.
const SIZE_DIGITS: u8 = 3;
/// Sizes above this count as this: no value is larger.
const SIZE_BYTES_MAX: u64 = base::key::VALUE_BYTES_MAX as u64;

/// Counts a trace and keeps a sample of it.
pub struct Collector {
    /// The sample.
    pub sample: Sample,
    operations: [u64; Kind::ALL.len()],
    write_bytes: u64,
    scan_records: u64,
    key_bytes: Histogram<u64>,
    value_bytes: Histogram<u64>,
    time_ns: Option<(u64, u64)>,
}

/// Sizes of keys or values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sizes {
    /// The mean.
    pub mean: f64,
    /// Half are not larger.
    pub p50: u64,
    /// Nine in ten are not larger.
    pub p90: u64,
    /// 99 of a hundred are not larger.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

/// A workload. Shares are of 1; what is marked as estimated comes from the sample, and is exact
/// where the sample is the whole trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Operations of each kind, in the order of [`Kind::ALL`].
    pub operations_by_kind: Vec<(&'static str, u64)>,
    /// All operations.
    pub operations: u64,
    /// Bytes of keys and values that were written, deletions included.
    pub write_bytes: u64,
    /// Records that scans asked for.
    pub scan_records: u64,
    /// Different keys, range deletions aside; estimated.
    pub distinct_keys: u64,
    /// Keys that were there before the trace began; estimated.
    pub old_keys: u64,
    /// Bytes of the keys of all operations.
    pub key_bytes: Sizes,
    /// Bytes of the values of puts and updates.
    pub value_bytes: Sizes,
    /// Gets and scans, of all operations.
    pub read_share: f64,
    /// Deletions, of all writes.
    pub delete_share: f64,
    /// Puts and updates of a key that was there, of all puts and updates; estimated.
    pub update_share: f64,
    /// New keys that are larger than every key before, of all new keys; estimated.
    pub ascending_share: f64,
    /// The exponent of Zipf's law that has the same chance of meeting a key again; fitted.
    pub zipf_exponent: f64,
    /// The share of operations on the hottest 1 % of keys; estimated.
    pub hot_1_percent_share: f64,
    /// The share of operations on the hottest 10 % of keys; estimated.
    pub hot_10_percent_share: f64,
    /// Bytes of keys and values of all different keys; estimated.
    pub working_set_bytes: u64,
    /// From the first operation to the last; `None` where the trace has no times.
    pub span_ns: Option<u64>,
    /// How many keys of the trace a key of the sample stands for.
    pub keys_per_sampled_key: u64,
}

impl Collector {
    /// Of nothing yet.
    pub fn new(bounds: Bounds) -> Result<Collector> {
        let histogram = || {
            Histogram::new_with_bounds(1, SIZE_BYTES_MAX, SIZE_DIGITS)
                .map_err(|error| Error::invalid(format!("no histogram of sizes: {error}")))
        };
        Ok(Collector {
            sample: Sample::new(bounds),
            operations: [0; Kind::ALL.len()],
            write_bytes: 0,
            scan_records: 0,
            key_bytes: histogram()?,
            value_bytes: histogram()?,
            time_ns: None,
        })
    }

    /// Counts one operation.
    pub fn take(&mut self, operation: &Operation<'_>) {
        self.sample.take(operation, self.write_bytes);
        self.operations[operation.kind as usize] += 1;
        self.key_bytes.saturating_record(operation.key_bytes);
        match operation.kind {
            Kind::Put | Kind::Update => {
                let value_bytes = operation.value_bytes.unwrap_or(0).min(SIZE_BYTES_MAX);
                self.value_bytes.saturating_record(value_bytes);
                self.add_written(operation.key_bytes.min(SIZE_BYTES_MAX) + value_bytes);
            }
            Kind::Delete => self.add_written(operation.key_bytes.min(SIZE_BYTES_MAX)),
            Kind::Scan => self.scan_records = self.scan_records.saturating_add(operation.records),
            Kind::Get | Kind::DeleteRange => {}
        }
        if let Some(now) = operation.time_ns {
            let (first, last) = self.time_ns.unwrap_or((now, now));
            self.time_ns = Some((first.min(now), last.max(now)));
        }
    }

    fn add_written(&mut self, bytes: u64) {
        self.write_bytes = self.write_bytes.saturating_add(bytes);
    }

    fn of(&self, kind: Kind) -> u64 {
        self.operations[kind as usize]
    }

    /// What the workload is like.
    pub fn summary(&self) -> Summary {
        let operations = self.operations.iter().sum();
        let (puts, deletes) = (self.of(Kind::Put) + self.of(Kind::Update), self.of(Kind::Delete));
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let times = self.sample.keys_per_key();
        let counts = self.counts();
        let distinct_keys = (counts.len() as u64).saturating_mul(times);
        let old_keys = self.sample.keys.iter().filter(|key| key.is_old).count() as u64;
        let (key_bytes, value_bytes) = (sizes(&self.key_bytes), sizes(&self.value_bytes));
        let chance = skew::collision_chance(&counts, times, operations);
        let (update_share, ascending_share) = self.novelty();
        Summary {
            operations_by_kind: Kind::ALL.map(|kind| (kind.name(), self.of(kind))).to_vec(),
            operations,
            write_bytes: self.write_bytes,
            scan_records: self.scan_records,
            distinct_keys,
            old_keys: old_keys.saturating_mul(times),
            key_bytes,
            value_bytes,
            read_share: share(self.of(Kind::Get) + self.of(Kind::Scan), operations),
            delete_share: share(deletes, puts + deletes),
            update_share,
            ascending_share,
            zipf_exponent: skew::exponent(distinct_keys, chance),
            hot_1_percent_share: skew::hot_share(&counts, 0.01),
            hot_10_percent_share: skew::hot_share(&counts, 0.1),
            working_set_bytes: (distinct_keys as f64 * (key_bytes.mean + value_bytes.mean)) as u64,
            span_ns: self.time_ns.map(|(first, last)| last - first),
            keys_per_sampled_key: times,
        }
    }

    /// Operations on each key of the sample, descending.
    fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0u64; self.sample.keys.len()];
        for event in &self.sample.events {
            if let Some(count) = counts.get_mut(event.key as usize) {
                *count += 1;
            }
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    /// Of puts, the share of updates; of new keys, the share of those above all before.
    fn novelty(&self) -> (f64, f64) {
        let keys = &self.sample.keys;
        let mut is_there: Vec<bool> = keys.iter().map(|key| key.is_old).collect();
        let (mut puts, mut updates, mut new, mut ascending) = (0u64, 0u64, 0u64, 0u64);
        let mut largest: Option<&[u8]> = None;
        for event in self.sample.events.iter().filter(|event| event.kind.is_write()) {
            let at = event.key as usize;
            let (Some(there), Some(key)) = (is_there.get_mut(at), keys.get(at)) else { continue };
            let was_there = std::mem::replace(there, event.kind != Kind::Delete);
            if event.kind == Kind::Delete {
                continue;
            }
            puts += 1;
            updates += u64::from(was_there);
            if !was_there {
                new += 1;
                let is_above = largest.is_none_or(|largest| *key.start > *largest);
                ascending += u64::from(is_above);
                largest = if is_above { Some(&key.start) } else { largest };
            }
        }
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        (share(updates, puts), share(ascending, new))
    }
}

fn sizes(histogram: &Histogram<u64>) -> Sizes {
    if histogram.is_empty() {
        return Sizes::default();
    }
    Sizes {
        mean: histogram.mean(),
        p50: histogram.value_at_quantile(0.5),
        p90: histogram.value_at_quantile(0.9),
        p99: histogram.value_at_quantile(0.99),
        max: histogram.max(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_workload_is_counted_exactly() {
        let mut collector = Collector::new(Bounds::default()).unwrap();
        let time = |second: u64| Some(second * 1_000_000_000);
        let operations = [
            Operation::new(time(5), Kind::Put, b"a").value(10),
            Operation::new(time(6), Kind::Put, b"b").value(20),
            Operation::new(time(7), Kind::Put, b"a").value(30),
            Operation::new(time(8), Kind::Get, b"c"),
            Operation::new(time(9), Kind::Delete, b"b"),
            Operation::new(time(9), Kind::Put, b"b").value(0),
            Operation::new(time(9), Kind::Scan, b"a").over(50),
            Operation::new(time(15), Kind::DeleteRange, b"a"),
        ];
        operations.iter().for_each(|operation| collector.take(operation));
        let summary = collector.summary();
        assert_eq!((summary.operations, summary.write_bytes), (8, 4 + 60 + 1));
        assert_eq!((summary.distinct_keys, summary.old_keys, summary.scan_records), (3, 1, 50));
        assert_eq!((summary.update_share, summary.delete_share), (0.25, 0.2));
        assert!((summary.ascending_share - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!((summary.read_share, summary.span_ns), (0.25, Some(10_000_000_000)));
        assert_eq!((summary.value_bytes.p50, summary.value_bytes.max), (10, 30));
    }

    #[test]
    fn an_empty_trace_has_a_summary_without_strange_numbers() {
        let summary = Collector::new(Bounds::default()).unwrap().summary();
        let text = serde_json::to_string(&summary).unwrap();
        // What is no number is `null` in JSON; here that is the time span alone.
        assert_eq!(text.matches("null").count(), 1, "{text}");
        assert_eq!((summary.operations, summary.zipf_exponent), (0, 0.0));
    }
}
