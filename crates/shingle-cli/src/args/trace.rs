//! The command line of `lab trace`.

use super::bytes;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What to hold small.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalName {
    /// Bytes written for a byte of the user
    Write,
    /// Places asked for a get
    Read,
    /// Bytes of files for a byte of live data
    Space,
    /// The time that a device is busy
    Time,
}

/// The devices that times are estimated for.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceName {
    /// A solid-state drive
    Ssd,
    /// A hard disk
    Hdd,
    /// A shingled hard disk that rewrites bands
    Smr,
}

#[derive(Args, Debug)]
pub struct TraceArgs {
    /// The trace; `-` is stdin
    pub file: PathBuf,
    /// shingle, twitter, rocksdb, ycsb or redis; recognised by content when absent
    #[arg(long, value_name = "NAME")]
    pub format: Option<String>,
    /// What the answer is sorted by
    #[arg(long, value_enum, default_value = "time")]
    pub goal: GoalName,
    /// The device that time is estimated for
    #[arg(long, value_enum, default_value = "ssd")]
    pub device: DeviceName,
    /// Schemes to compare; all when absent
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub scheme: Vec<String>,
    /// Value layouts to compare
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "inline,log,hashed")]
    pub values: Vec<String>,
    /// Fan-outs to compare, beside each scheme's own
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "4,8,10,16,25")]
    pub fan_out: Vec<f64>,
    /// Separate values of at least this many bytes, in layouts that separate values
    #[arg(long, value_name = "B", default_value = "1024", value_parser = bytes)]
    pub value_threshold: u64,
    /// Bytes that are flushed at a time
    #[arg(long, value_name = "B", default_value = "64MiB", value_parser = bytes)]
    pub memtable_bytes: u64,
    /// Scale the numbers of keys and operations by this factor
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub grow: u64,
    /// Keys that are simulated; more take longer and are finer
    #[arg(long, value_name = "KEYS", default_value_t = 32_768)]
    #[arg(value_parser = clap::value_parser!(u64).range(16..=524_288))]
    pub sample: u64,
    /// Rows of the table
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub rows: usize,
    /// Write candidates.csv and candidates.svg to this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
