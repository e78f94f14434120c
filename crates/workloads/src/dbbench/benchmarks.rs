//! The benchmarks by name.

use crate::store::Direction;
use base::{Error, Result};

/// In which order keys are written or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// 0, 1, 2 ...
    Sequential,
    /// Drawn anew for each write; some keys several times, some never.
    Random,
    /// Every key once, in random order.
    Unique,
}

/// Which keys random reads look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Any.
    All,
    /// Keys that do not exist, between those that do.
    Missing,
    /// The first 1 % of the key range.
    Hot,
    /// Any, as many per operation as a batch has.
    Batch,
}

/// Calls that act on the whole store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maintenance {
    Compact,
    Flush,
    WaitIdle,
    ResetStatistics,
}

/// What a worker does, operation after operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Fill(Order),
    Overwrite,
    Delete(Order),
    ReadSequential(Direction),
    ReadRandom(Wanted),
    Seek,
    /// Seeks to the first key, or the last one.
    SeekFirst,
    /// Reads and writes of independent keys, in given proportion.
    ReadOrWrite,
    /// Reads a key and writes it anew.
    Update,
    /// Reads a key and writes its value with another one behind it.
    Append,
    Checksum,
    Maintain(Maintenance),
    Report,
}

/// What one more thread does meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Background {
    Write,
    Scan,
}

/// A benchmark, with what it changes of the configuration.
#[derive(Clone, Debug)]
pub(super) struct Benchmark {
    pub(super) name: &'static str,
    pub(super) operation: Operation,
    /// Starts from an empty store.
    pub(super) fresh: bool,
    /// Every write is synced.
    pub(super) sync: bool,
    /// Does this fraction of the configured operations.
    pub(super) divisor: u64,
    pub(super) value_bytes: Option<usize>,
    pub(super) batch: Option<u64>,
    pub(super) background: Option<Background>,
}

const PLAIN: Benchmark = Benchmark {
    name: "",
    operation: Operation::Report,
    fresh: false,
    sync: false,
    divisor: 1,
    value_bytes: None,
    batch: None,
    background: None,
};

const fn plain(name: &'static str, operation: Operation) -> Benchmark {
    Benchmark { name, operation, ..PLAIN }
}

const fn fill(name: &'static str, order: Order) -> Benchmark {
    Benchmark { name, operation: Operation::Fill(order), fresh: true, ..PLAIN }
}

const fn beside(name: &'static str, operation: Operation, background: Background) -> Benchmark {
    Benchmark { name, operation, background: Some(background), ..PLAIN }
}

const BENCHMARKS: &[Benchmark] = &[
    fill("fillseq", Order::Sequential),
    fill("fillrandom", Order::Random),
    fill("filluniquerandom", Order::Unique),
    Benchmark { batch: Some(1000), ..fill("fillbatch", Order::Sequential) },
    Benchmark { sync: true, divisor: 1000, ..fill("fillsync", Order::Random) },
    Benchmark { value_bytes: Some(100_000), divisor: 1000, ..fill("fill100K", Order::Random) },
    plain("overwrite", Operation::Overwrite),
    plain("deleteseq", Operation::Delete(Order::Sequential)),
    plain("deleterandom", Operation::Delete(Order::Random)),
    plain("readseq", Operation::ReadSequential(Direction::Forward)),
    plain("readreverse", Operation::ReadSequential(Direction::Reverse)),
    plain("readrandom", Operation::ReadRandom(Wanted::All)),
    plain("readmissing", Operation::ReadRandom(Wanted::Missing)),
    plain("readhot", Operation::ReadRandom(Wanted::Hot)),
    plain("multireadrandom", Operation::ReadRandom(Wanted::Batch)),
    plain("seekrandom", Operation::Seek),
    plain("seekfirst", Operation::SeekFirst),
    beside("seekrandomwhilewriting", Operation::Seek, Background::Write),
    beside("readwhilewriting", Operation::ReadRandom(Wanted::All), Background::Write),
    beside("readwhilescanning", Operation::ReadRandom(Wanted::All), Background::Scan),
    plain("readrandomwriterandom", Operation::ReadOrWrite),
    plain("updaterandom", Operation::Update),
    plain("appendrandom", Operation::Append),
    plain("crc32c", Operation::Checksum),
    plain("compact", Operation::Maintain(Maintenance::Compact)),
    plain("compactall", Operation::Maintain(Maintenance::Compact)),
    plain("flush", Operation::Maintain(Maintenance::Flush)),
    plain("waitforcompaction", Operation::Maintain(Maintenance::WaitIdle)),
    plain("resetstats", Operation::Maintain(Maintenance::ResetStatistics)),
    plain("stats", Operation::Report),
    plain("levelstats", Operation::Report),
    plain("sstables", Operation::Report),
    plain("memstats", Operation::Report),
];

/// The names of all benchmarks.
pub fn names() -> impl Iterator<Item = &'static str> {
    BENCHMARKS.iter().map(|benchmark| benchmark.name)
}

impl Benchmark {
    pub(super) fn named(name: &str) -> Result<Benchmark> {
        BENCHMARKS.iter().find(|benchmark| benchmark.name == name).cloned().ok_or_else(|| {
            let known: Vec<&str> = names().collect();
            Error::invalid(format!("unknown benchmark '{name}'; there are {}", known.join(", ")))
        })
    }

    /// What latencies of reads are called in output.
    pub(super) fn read_label(&self) -> &'static str {
        match self.operation {
            Operation::Seek | Operation::SeekFirst => "seek",
            _ => "read",
        }
    }

    /// What latencies of writes are called in output.
    pub(super) fn write_label(&self) -> &'static str {
        match self.operation {
            Operation::Delete(_) => "delete",
            Operation::Update | Operation::Append => "update",
            _ => "write",
        }
    }
}
