//! What a run of db_bench is asked to do.

use super::benchmarks::{Benchmark, Operation, Order};
use crate::values::ValueSize;
use base::{Error, Result};
use std::collections::BTreeMap;

/// Blocks that crc32c checks: 500 MiB in all.
const CHECKSUM_OPERATIONS: u64 = (500 << 20) / CHECKSUM_BLOCK_BYTES as u64;
/// Bytes of a block of crc32c.
pub(super) const CHECKSUM_BLOCK_BYTES: usize = 4096;

/// Where random key numbers come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyOrigin {
    /// Uniform 64-bit numbers.
    #[default]
    Uniform,
    /// LevelDB's exact sequence.
    LevelDb,
}

/// A run: which benchmarks, how many operations, on what keys and values.
#[derive(Clone, Debug)]
pub struct Config {
    /// Names of benchmarks, in order.
    pub benchmarks: Vec<String>,
    /// Directory of the store, for the caller that makes the [`crate::StoreFactory`].
    pub db: Option<String>,
    /// Keys are the numbers below this; also the operations of each thread, where not given.
    pub num: u64,
    /// Read operations of each thread.
    pub reads: Option<u64>,
    /// Write operations of each thread.
    pub writes: Option<u64>,
    /// Delete operations of each thread.
    pub deletes: Option<u64>,
    /// Benchmarks with random keys end after this time instead; 0: they end by count.
    pub duration_seconds: u64,
    /// Threads that run a benchmark.
    pub threads: usize,
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: ValueSize,
    /// Writes per batch, and keys per operation of multireadrandom.
    pub batch_size: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Generator of random key numbers.
    pub key_origin: KeyOrigin,
    /// Random keys other than those of fills are Zipf distributed with this theta.
    pub zipf: Option<f64>,
    /// Keep what the store has; benchmarks that need an empty one are skipped.
    pub use_existing_db: bool,
    /// Print latency histograms.
    pub histogram: bool,
    /// Print the store's statistics at the end.
    pub statistics: bool,
    /// Interval of progress lines; 0: none.
    pub stats_interval_seconds: u64,
    /// CSV file of throughput by interval.
    pub report_file: Option<String>,
    /// Interval of `report_file`.
    pub report_interval_seconds: u64,
    /// Bytes per second that all threads together write; 0: as fast as they can.
    pub write_rate_bytes: u64,
    /// Read operations per second of all threads together; 0: as fast as they can.
    pub read_rate: f64,
    /// Operations per second of all threads together, of whatever kind; 0: as fast as they can.
    pub rate: f64,
    /// Share of reads in readrandomwriterandom.
    pub read_percent: u64,
    /// Entries that a seek reads on.
    pub seek_nexts: usize,
    /// Seeks read backwards.
    pub reverse_iterator: bool,
    /// Sync every write.
    pub sync: bool,
    /// Write no log.
    pub disable_wal: bool,
    /// Values shrink to this share of their length.
    pub compression_ratio: f64,
    /// Write JSON instead of text.
    pub json: bool,
    /// Flags about the engine as they were given, by name, for the caller that opens it:
    /// `write_buffer_size`, `cache_size`, `bloom_bits`, `compression_type` and the like.
    pub engine: BTreeMap<String, String>,
}

impl Default for Config {
    fn default() -> Config {
        let benchmarks = "fillseq,fillsync,fillrandom,overwrite,readrandom,readseq,readreverse";
        Config {
            benchmarks: benchmarks.split(',').map(str::to_string).collect(),
            db: None,
            num: 1_000_000,
            reads: None,
            writes: None,
            deletes: None,
            duration_seconds: 0,
            threads: 1,
            key_size: 16,
            value_size: ValueSize::Fixed(100),
            batch_size: 1,
            seed: 1000,
            key_origin: KeyOrigin::default(),
            zipf: None,
            use_existing_db: false,
            histogram: false,
            statistics: false,
            stats_interval_seconds: 0,
            report_file: None,
            report_interval_seconds: 1,
            write_rate_bytes: 0,
            read_rate: 0.0,
            rate: 0.0,
            read_percent: 90,
            seek_nexts: 0,
            reverse_iterator: false,
            sync: false,
            disable_wal: false,
            compression_ratio: 0.5,
            json: false,
            engine: BTreeMap::new(),
        }
    }
}

impl Config {
    /// How many operations the `index`-th thread does when the benchmark goes by count.
    pub(super) fn operations(&self, benchmark: &Benchmark, index: usize) -> u64 {
        let asked = match benchmark.operation {
            Operation::Fill(Order::Unique) => {
                let asked = self.writes.unwrap_or(self.num).min(self.num);
                return asked.saturating_sub(index as u64).div_ceil(self.threads as u64);
            }
            Operation::Checksum => return CHECKSUM_OPERATIONS,
            Operation::Fill(_) | Operation::Overwrite => self.writes,
            Operation::Delete(_) => self.deletes,
            Operation::Update | Operation::Append | Operation::ReadOrWrite => {
                self.writes.or(self.reads)
            }
            _ => self.reads,
        };
        (asked.unwrap_or(self.num) / benchmark.divisor).max(1)
    }

    /// How long the benchmark lasts, when it goes by time: those that walk over every key do not.
    pub(super) fn seconds(&self, benchmark: &Benchmark) -> Option<u64> {
        let by_count = matches!(
            benchmark.operation,
            Operation::Fill(Order::Sequential | Order::Unique)
                | Operation::Delete(Order::Sequential)
                | Operation::ReadSequential(_)
                | Operation::Checksum
        );
        (self.duration_seconds > 0 && !by_count).then_some(self.duration_seconds)
    }

    /// The number that the engine flag `name` was given; `None` when it was not given.
    pub fn engine_number(&self, name: &str) -> Result<Option<u64>> {
        let Some(text) = self.engine.get(name) else { return Ok(None) };
        text.parse()
            .map(Some)
            .map_err(|_| Error::invalid(format!("--{name} takes a whole number, not '{text}'")))
    }
}
