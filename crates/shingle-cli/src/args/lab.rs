//! The command line of `lab`.

use super::trace::TraceArgs;
use clap::{Args, Subcommand};

#[derive(Args, Debug)]
pub struct LabArgs {
    #[command(subcommand)]
    pub action: LabAction,
}

#[derive(Subcommand, Debug)]
pub enum LabAction {
    /// What a workload of yours would cost under each scheme, value layout and fan-out
    ///
    /// Reads a trace of operations as a stream, says what the workload is like, and runs the
    /// engine's own policies and layouts over it without data. Formats, recognised by content:
    /// Shingle's own (`shingle bench --record-trace`), Twitter's cache traces, RocksDB's
    /// trace_analyzer, YCSB's basic binding, Redis MONITOR.
    #[command(after_help = "\
Examples:
  shingle bench --record-trace my.trace db --benchmarks=fillrandom,readrandom
  shingle lab trace my.trace --goal write
  redis-cli monitor | head -1000000 | shingle lab trace - --goal time --device hdd
  shingle lab trace cluster52 --grow 100 --fan-out 4,10,25 --out answer")]
    Trace(Box<TraceArgs>),
}
