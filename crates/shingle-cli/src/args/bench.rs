//! The command line of `bench`, before the workload.

use super::device::SmartArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Presets of options.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresetName {
    /// LevelDB's sizes
    Leveldb,
    /// Sizes for today's machines
    Modern,
}

#[derive(Args, Debug)]
pub struct BenchArgs {
    /// How data moves down the tree
    #[arg(long, value_name = "NAME")]
    pub scheme: Option<String>,
    /// Sizes and limits
    #[arg(long, value_enum, default_value = "modern")]
    pub preset: PresetName,
    /// Where values go
    #[arg(long, value_name = "NAME")]
    pub values: Option<String>,
    /// What the database lies on: `files`, `memory`, or a model of a device, in virtual time:
    /// MODEL[:parameter=value,...]; `shingle device list` has them
    #[arg(long, default_value = "files")]
    pub device: String,
    /// Placement of files on the model [default: chosen for the model]
    #[arg(long, value_name = "NAME")]
    pub placement: Option<String>,
    /// Seed of the simulation that a model is in
    #[arg(long, default_value_t = 0)]
    pub simulation_seed: u64,
    /// Draw the medium of a model, and the address of every write, as SVG
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// Write every operation to this file, as a trace that `shingle lab trace` reads
    #[arg(long, value_name = "FILE")]
    pub record_trace: Option<PathBuf>,
    #[command(flatten)]
    pub smart: SmartArgs,
    /// `db`, `ycsb` or `threshold`, and its flags
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub workload: Vec<String>,
}
