//! The result of one benchmark as data.

use crate::amplification::{Amplification, CausePart};
use crate::latency::{Latency, Summary};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Latencies of the two kinds of operations; `None` where there were none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencySummaries {
    /// Gets and scans.
    pub read: Option<Summary>,
    /// Puts, deletes and batches.
    pub write: Option<Summary>,
}

/// The result of one benchmark. `None` means that the engine or the system cannot tell.
///
/// Bytes count from the start of the benchmark to the end of its last operation; background work
/// that is still due then is not counted, unless a benchmark that waits for it follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Operations done.
    pub ops: u64,
    /// Time on the run's clock.
    pub seconds: f64,
    /// The clock, and with it every latency, is a simulation's.
    #[serde(default)]
    pub is_simulated: bool,
    /// Operations per second of that time.
    pub ops_per_second: f64,
    /// Bytes of keys and values that the benchmark wrote.
    pub user_bytes: u64,
    /// Bytes that the engine wrote to files.
    pub host_write_bytes: Option<u64>,
    /// Bytes that the engine read from files.
    pub host_read_bytes: Option<u64>,
    /// Bytes that the device wrote to its medium.
    pub media_write_bytes: Option<u64>,
    /// Factors over those bytes.
    #[serde(flatten)]
    pub amplification: Amplification,
    /// What each cause moved; empty where the engine does not tell.
    #[serde(default)]
    pub causes: Vec<CausePart>,
    /// Bytes that the store occupies at the end.
    pub space_bytes: Option<u64>,
    /// Time that user threads were stalled, summed over threads.
    pub stall_seconds: Option<f64>,
    /// Time of background work on large values, by part; empty where there was none.
    #[serde(default)]
    pub value_seconds: BTreeMap<String, f64>,
    /// Largest resident memory of the process during the benchmark.
    pub peak_rss_bytes: Option<u64>,
    /// Latencies.
    pub latency_ns: LatencySummaries,
}

impl Record {
    /// One line of JSON, without the line end.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("a record has only string keys and finite numbers")
    }
}

/// What one thread did, and, merged, what all did.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Operations that count for the benchmark.
    pub ops: u64,
    /// Bytes of keys and values read.
    pub read_bytes: u64,
    /// Bytes of keys and values written.
    pub write_bytes: u64,
    /// Keys looked for.
    pub lookups: u64,
    /// Keys found.
    pub found: u64,
    /// Busy time, summed over the threads.
    pub thread_ns: u64,
    /// Latencies of gets and scans.
    pub read: Latency,
    /// Latencies of puts, deletes and batches.
    pub write: Latency,
}

impl Tally {
    /// Adds what another thread did.
    pub fn merge(&mut self, other: &Tally) {
        self.ops += other.ops;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
        self.lookups += other.lookups;
        self.found += other.found;
        self.thread_ns += other.thread_ns;
        self.read.merge(&other.read);
        self.write.merge(&other.write);
    }

    /// Adds what a background thread wrote; its operations are none of the benchmark's.
    pub fn merge_background(&mut self, other: &Tally) {
        self.write_bytes += other.write_bytes;
        self.write.merge(&other.write);
    }
}
