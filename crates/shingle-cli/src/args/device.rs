//! The command line of `device`.

use super::bytes;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct DeviceArgs {
    #[command(subcommand)]
    pub action: DeviceAction,
}

#[derive(Subcommand, Debug)]
pub enum DeviceAction {
    /// The models of devices and the placements, each with its help
    List,
    /// Make an empty store on a file or a disk; what is on a disk is lost
    Format(FormatArgs),
    /// What a device is like, and how full it is; of a model, its parameters
    ///
    /// Of a disk, and of the drive that --smart names, also what the drive itself counts: bytes
    /// that hosts wrote and bytes that its medium wrote.
    Info(InfoArgs),
    /// Read every sector that a file has
    Check {
        /// A file or a disk
        path: PathBuf,
    },
    /// Sequential and random reads and writes, as the models are calibrated by
    ///
    /// One request at a time: 1 GiB in requests of 1 MiB from the beginning, and random ones of
    /// 4 KiB over the whole device. A model runs in virtual time. A file or a disk is only read,
    /// unless --overwrite allows to destroy what is on it.
    Bench(BenchDeviceArgs),
    /// A picture of the medium as SVG: tables by level, logs, metadata, free space
    ///
    /// And where flushes and compactions wrote over time, as far back as the event log of the
    /// database tells.
    Map(MapArgs),
}

#[derive(Args, Debug)]
pub struct FormatArgs {
    /// A disk, or a file; one that does not exist is made
    pub path: PathBuf,
    /// How files are placed; `shingle device list` has the names
    #[arg(long, value_name = "NAME")]
    pub placement: Option<String>,
    /// Bytes of a new file, as 10GiB
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub size: Option<u64>,
    /// Bytes of a block group, band or size class; the placement's own when absent
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub unit: Option<u64>,
    /// Format although something is there
    #[arg(long)]
    pub force: bool,
}

#[derive(Args, Debug)]
pub struct InfoArgs {
    /// A file, a disk, or MODEL[:parameter=value,...]
    pub device: String,
    #[command(flatten)]
    pub smart: SmartArgs,
}

/// How a drive's own counters are read.
#[derive(Args, Debug)]
pub struct SmartArgs {
    /// Read the counters of this drive with smartctl, before and after the run, as /dev/sda
    #[arg(long, value_name = "DRIVE")]
    pub smart: Option<String>,
    /// The program smartctl
    #[arg(long, env = "SHINGLE_SMARTCTL", default_value = "smartctl", hide = true)]
    pub smartctl: PathBuf,
    /// The program nvme
    #[arg(long, env = "SHINGLE_NVME", default_value = "nvme", hide = true)]
    pub nvme: PathBuf,
}

#[derive(Args, Debug)]
pub struct BenchDeviceArgs {
    /// A file, a disk, or MODEL[:parameter=value,...]
    pub device: String,
    /// Requests of each random phase
    #[arg(long, default_value_t = 20_000)]
    pub count: u64,
    /// Write to a file or disk too: what is on it is lost
    #[arg(long)]
    pub overwrite: bool,
}

#[derive(Args, Debug)]
pub struct MapArgs {
    /// A file or a disk
    pub path: PathBuf,
    /// Where the picture goes
    #[arg(long, value_name = "FILE")]
    pub svg: PathBuf,
}
