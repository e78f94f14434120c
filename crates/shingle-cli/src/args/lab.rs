//! The command line of `lab`.

use super::trace::TraceArgs;
use clap::{Args, Subcommand, value_parser};
use std::path::PathBuf;

/// Below the help of `lab`.
pub const EXAMPLES: &str = "\
Examples:
  shingle lab list
  shingle lab show lwc/fig11a
  shingle lab run all --scale smoke --out results
  shingle lab run sealdb ldc/fig08 --scale small --out two
  shingle lab compare results two --out both
  shingle lab spread seed-1 seed-2 seed-3 --scale smoke --out spread
  shingle lab artifact results --scale smoke --out artifact
  shingle lab draw both/papers";

#[derive(Args, Debug)]
pub struct LabArgs {
    /// Experiments of your own: a folder with files as `crates/lab/data` has them
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    #[command(subcommand)]
    pub action: LabAction,
}

#[derive(Subcommand, Debug)]
pub enum LabAction {
    /// The experiments: one for each figure and table of the papers
    List,
    /// What an experiment runs, and how the paper's values follow from it
    Show {
        /// PAPER/FIGURE, as `list` has it, or the id of a claim
        id: String,
    },
    /// Run experiments and hold the papers' claims against what was measured
    ///
    /// Everything runs on models of the papers' devices in virtual time, so that the same command
    /// gives the same figures on every machine. Writes claims.json, claims.csv, metrics.csv and
    /// report.html, which needs nothing else, to the directory --out.
    Run(RunArgs),
    /// Hold the papers' claims against what was measured before
    ///
    /// Takes metrics.csv from directories that `run` wrote, the last one's where several have an
    /// experiment, and writes what `run` writes. Runs nothing: what the data files say of runs by
    /// now makes no difference, what they say of claims does.
    Compare(CompareArgs),
    /// Put results together so that others can check and cite them
    ///
    /// Takes directories of results like `compare`, and writes what it writes, with the data files
    /// of all experiments, the commands that compare and run them again, BibTeX of the papers, and
    /// how to cite Shingle. Runs nothing.
    Artifact(CompareArgs),
    /// Hold results of several seeds beside each other: what depends on chance
    ///
    /// Takes directories that `run` wrote with different --seed, one for each seed. Says which
    /// verdicts depend on the seed, and which claims pass when two seeds of the baseline are
    /// compared. Writes spread.csv and spread.md to the directory --out. Runs nothing.
    Spread(CompareArgs),
    /// Draw the values of claims again: measured over the paper's, on one axis
    ///
    /// Reads the files of DIR/values and writes one picture for each to DIR/pictures, and
    /// overview.svg of all. Runs nothing.
    Draw {
        /// `papers` in a directory that `run` wrote
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
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

#[derive(Args, Debug)]
pub struct RunArgs {
    /// `all`, or papers, experiments and claims by their ids
    #[arg(default_value = "all", value_name = "ID")]
    pub ids: Vec<String>,
    /// smoke (a minute or two), small (tens of minutes) or paper (the published sizes)
    #[arg(long, default_value = "small", value_name = "NAME")]
    pub scale: String,
    /// The directory of the results
    #[arg(long, default_value = "lab-results", value_name = "DIR")]
    pub out: PathBuf,
    /// What is left to chance follows from it: keys, values and devices
    #[arg(long, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = value_parser!(u64).range(1..))]
    pub seed: u64,
    /// Runs at a time
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub threads: usize,
    /// Go on with the runs of a command that was broken off
    ///
    /// Takes what ended before from runs.csv in --out, if the same program ran it. Without this
    /// flag that file is put aside as runs.old.csv.
    #[arg(long)]
    pub resume: bool,
    /// Say of each run how long it took here
    #[arg(long)]
    pub times: bool,
}

#[derive(Args, Debug)]
pub struct CompareArgs {
    /// Directories of results
    #[arg(required = true, value_name = "DIR")]
    pub results: Vec<PathBuf>,
    /// The scale that they were run at
    #[arg(long, default_value = "small", value_name = "NAME")]
    pub scale: String,
    /// The directory of the new results
    #[arg(long, default_value = "lab-results", value_name = "DIR")]
    pub out: PathBuf,
}
