//! The command line: every command with a paragraph and examples.

pub mod backup;
pub mod bench;
pub mod data;
pub mod device;
pub mod duration;
pub mod help;
pub mod lab;
pub mod output;
pub mod range;
pub mod shell;
pub mod size;
pub mod trace;

pub use bench::{BenchArgs, PresetName};
pub use data::*;

use self::backup::BackupArgs;
use self::lab::LabArgs;
use self::output::{CompletionsArgs, ManArgs};
use self::shell::ShellArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use device::DeviceArgs;
use size::{bytes, bytes_in};
use std::path::PathBuf;
use std::time::Duration;

const AFTER_HELP: &str = "\
Start here:
  shingle demo                                  the whole engine on data of this machine
  shingle --db my.db put apple red              a first database
  shingle --db my.db import packages.tsv        one line a record: key TAB value

Exit codes:
  0    done
  1    an error, or `check` found damage
  2    wrong usage
  127  `get` found no such key
  130  interrupted by Ctrl-C";

/// An embedded, ordered key-value store for write-heavy data: its command.
#[derive(Parser, Debug)]
#[command(name = "shingle", version, about, after_help = AFTER_HELP, propagate_version = true)]
#[command(disable_help_subcommand = false, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Flags of every command")]
pub struct GlobalArgs {
    /// The directory of the database, or a formatted file or disk
    #[arg(long, global = true, value_name = "PATH", env = "SHINGLE_DB")]
    pub db: Option<PathBuf>,
    /// The cold store, for values that rarely change: a directory, or a formatted file or disk
    #[arg(long, global = true, value_name = "PATH", env = "SHINGLE_COLD_STORE")]
    pub cold_store: Option<PathBuf>,
    /// An option of the database; `shingle options` lists them (repeatable)
    #[arg(long, short = 'o', global = true, value_name = "KEY=VALUE")]
    pub option: Vec<String>,
    /// When help and errors have colours
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto")]
    pub color: ColorWhen,
    #[command(flatten)]
    pub line: LineArgs,
}

/// When there are colours.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set; everywhere if CLICOLOR_FORCE is set
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

/// Flags of every command, inside the shell too.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Flags of every command")]
pub struct LineArgs {
    /// The keyspace that the command works on [default: default]
    #[arg(long, global = true, value_name = "NAME")]
    pub keyspace: Option<String>,
    /// Read and print keys and values in hex
    #[arg(long, global = true)]
    pub hex: bool,
    /// Print results as JSON on stdout, errors as JSON on stderr
    #[arg(long, global = true)]
    pub json: bool,
    /// Print no remarks and no progress bars on stderr
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    #[command(flatten)]
    Data(DataCommand),
    /// Save what can be read from a damaged database
    ///
    /// Copies every readable record to a new database and reports what was lost. Leaves the
    /// damaged files unchanged.
    #[command(after_help = "\
Examples:
  shingle --db damaged.db salvage saved.db")]
    Salvage(TargetArgs),
    /// Take, list, verify, restore and prune backups
    ///
    /// Keeps several backups of a database in a directory. Each has checksums, and writes only
    /// files that no earlier one has. `verify` and `restore` take the newest backup unless
    /// --number names one.
    #[command(after_help = "\
Examples:
  shingle --db my.db backup create backups
  shingle backup list backups
  shingle backup verify backups
  shingle backup restore backups restored.db
  shingle backup prune backups --keep 7")]
    Backup(BackupArgs),
    /// List, create or drop keyspaces
    ///
    /// A keyspace is an ordered map with a name of its own. Batches are atomic across keyspaces.
    #[command(after_help = "\
Examples:
  shingle --db my.db keyspace list
  shingle --db my.db keyspace create users
  shingle --db my.db keyspace create sums --merge-operator add-u64
  shingle --db my.db keyspace create sessions --ttl 1d
  shingle --db my.db keyspace drop users")]
    Keyspace(KeyspaceArgs),
    /// Work on a database line by line
    ///
    /// Keeps one database open and takes the commands above as lines, without `shingle --db`: see
    /// `help` there. On a terminal with history and completion; otherwise runs the lines of stdin
    /// and ends with code 1 at the first that fails. `begin` and `commit` write one atomic batch.
    /// If another process writes the database, the shell reads beside it.
    #[command(after_help = "\
Examples:
  shingle --db my.db shell
  shingle --db my.db shell --read-only
  printf 'begin\\nput a 1\\nput b 2\\ncommit\\n' | shingle --db my.db shell")]
    Shell(ShellArgs),
    /// List the options of a database
    ///
    /// Lists every option with its unit, its purpose and its value: the default, or what --option
    /// key=value sets for this command. The parameters of the scheme and of the value layout come
    /// last. Sizes take suffixes: 64K, 512MiB, 10GB.
    #[command(after_help = "\
Examples:
  shingle options
  shingle --option scheme=ldc options
  shingle --db my.db --option memory_bytes=1G compact")]
    Options,
    /// List compaction schemes and value layouts
    ///
    /// Lists the compaction schemes, or with --values the value layouts: the values of `--option
    /// scheme=` and `--option values=`. With a name, prints its manual: rules, when to choose it,
    /// costs, and parameters with their units.
    #[command(after_help = "\
Examples:
  shingle schemes
  shingle schemes lwc
  shingle schemes --values hashed")]
    Schemes(SchemesArgs),
    /// Estimate the costs of schemes on a workload, without data
    ///
    /// Runs the engine's policies over a workload of keys without data. Prints for each scheme the
    /// bytes it would write, by level and without the log, the space it would use, and how many
    /// slices a read would probe without filters. Parameters that you do not give have the
    /// scheme's defaults. With --values, compares value layouts instead, by updates of a loaded
    /// store.
    #[command(after_help = "\
Examples:
  shingle simulate --writes 100000000 --value-size 100
  shingle simulate --scheme leveldb,ldc --value-size 1024 --reads-share 0.3 --fan-out 25
  shingle simulate --values hashed,log --reserved-ratio 0.1,0.3,0.5 --keys zipf")]
    Simulate(SimulateArgs),
    /// Look inside the files
    ///
    /// Prints the contents of a file of the database: the runs of a table, the edits of a manifest,
    /// the batches of a log, or the options; with --entries every record. `tree` prints the levels
    /// of the keyspace that --keyspace names, with --svg as a picture. Writes nothing. Prints a
    /// damaged file up to the damage.
    #[command(after_help = "\
Examples:
  shingle dump table my.db/000007.table
  shingle --db my.db dump manifest
  shingle dump wal my.db/000009.wal
  shingle --db my.db dump tree --svg tree.svg")]
    Dump(DumpArgs),
    /// Run benchmarks: db_bench and YCSB workloads
    ///
    /// Runs workloads under the names and with the flags of db_bench and YCSB, and prints the lines
    /// that scripts expect. Extra lines show write amplification, stalls and space. `db` takes
    /// db_bench's flags. `ycsb [load|run]` takes -P FILE (or workloada to workloadf), -p
    /// name=value, -threads and -target; without `load` or `run` it does both. `threshold` measures
    /// the separation threshold in a directory beside --db, and stores it with that database for
    /// value_threshold=auto. Flags of the engine come before the workload. Without --db the
    /// database is temporary.
    #[command(after_help = "\
Examples:
  shingle bench db --benchmarks=fillrandom,readrandom --num=1000000
  shingle --db bench.db bench --preset leveldb db --benchmarks=fillseq,stats
  shingle bench --device memory ycsb -P workloada -p recordcount=100000
  shingle --db my.db bench --values log threshold --sizes 256,1024,4096")]
    Bench(BenchArgs),
    /// Manage databases directly on files and disks, and models of devices
    ///
    /// `format` makes an empty store without a file system on a file or a disk. Every command then
    /// takes that path: --db PATH. `info`, `check` and `map` inspect it, `bench` measures a device
    /// or a model of one, `list` names the models and placements.
    #[command(after_help = "\
Examples:
  shingle device format my.disk --size 1GiB
  shingle --db my.disk put apple red
  shingle device map my.disk --svg my.svg
  shingle device info smr-banded
  shingle device bench hdd:rpm=5400
  shingle bench --device smr-raw --preset leveldb --scheme sets db --benchmarks=fillrandom")]
    Device(DeviceArgs),
    /// Rerun the figures of the papers behind the schemes, and compare
    ///
    /// Systems, devices, phases and claims are data; `run` gives a verdict on every claim.
    #[command(after_help = self::lab::EXAMPLES)]
    Lab(LabArgs),
    /// Show the whole engine on data of this machine
    ///
    /// Imports source code, documentation and package metadata of this machine, verifies every
    /// value, updates and deletes. Kills a writer with kill -9 and shows that no acknowledged write
    /// was lost. Measures reads, verifies every checksum, and shows where every byte went, in the
    /// terminal and as an HTML page. Removes its database at the end unless --keep.
    #[command(after_help = "\
Examples:
  shingle demo
  shingle demo --mb 50 --html demo.html
  shingle demo --dir /mnt/disk/demo --keep --json")]
    Demo(DemoArgs),
    /// Print the completions of a shell
    ///
    /// Prints a script that completes commands, flags and their values, paths and the keyspaces of
    /// the database. Put it where the shell looks for completions, or load it from the shell's
    /// start-up file.
    #[command(after_help = output::COMPLETIONS_HELP)]
    Completions(CompletionsArgs),
    /// Write the manual pages
    ///
    /// Writes a page for this command and one for each of its commands: `man shingle-scan`. Without
    /// a directory, prints the page of `shingle`. The pages say what --help says.
    #[command(after_help = "\
Examples:
  shingle man ~/.local/share/man/man1
  shingle man | man -l -")]
    Man(ManArgs),
    /// The process that `demo` kills.
    #[command(hide = true)]
    CrashWriter(CrashWriterArgs),
}

#[derive(Args, Debug)]
pub struct KeyspaceArgs {
    #[command(subcommand)]
    pub action: KeyspaceAction,
}

#[derive(Subcommand, Debug)]
pub enum KeyspaceAction {
    /// The names, one a line
    List,
    /// Make an empty keyspace
    Create {
        /// Its name
        name: String,
        /// The operator that applies the operands of `merge`
        #[arg(long, value_name = "NAME", value_parser = ["append", "add-u64"])]
        merge_operator: Option<String>,
        /// Values expire after this time, unless a write says when: 90s, 10m, 2h, 7d
        #[arg(long, value_name = "TIME", value_parser = duration::parse)]
        ttl: Option<Duration>,
        /// Sorted files may come in below what is there; deletions are kept for good
        #[arg(long)]
        ingests_below: bool,
    },
    /// Delete a keyspace with everything in it
    Drop {
        /// Its name
        name: String,
    },
}

/// What `dump` can show.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpKind {
    /// Runs and entries of a table file
    Table,
    /// Edits of a manifest
    Manifest,
    /// Records of a log
    Wal,
    /// The options of the last opening
    Options,
    /// Levels, nodes and slices of a keyspace
    Tree,
    /// Value segments of a keyspace by group, live and dead
    Values,
}

#[derive(Args, Debug)]
pub struct DumpArgs {
    /// The part to show
    pub kind: DumpKind,
    /// The file; without it, every one of its kind in --db
    pub file: Option<PathBuf>,
    /// Print entries too
    #[arg(long)]
    pub entries: bool,
    /// Draw the tree or the values to this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct SchemesArgs {
    /// Print everything about this one
    pub name: Option<String>,
    /// Show value layouts instead of compaction schemes
    #[arg(long)]
    pub values: bool,
}

/// How keys are drawn in a simulation.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// Each as often as any other
    Uniform,
    /// By Zipf's law with exponent 0.99
    Zipf,
    /// Ascending
    Sequential,
}

#[derive(Args, Debug)]
pub struct SimulateArgs {
    /// Schemes to compare; all when absent
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub scheme: Vec<String>,
    /// Value layouts to compare instead
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "scheme")]
    pub values: Vec<String>,
    /// Writes
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub writes: u64,
    /// Different keys; as many as writes when absent
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub keys_count: Option<u64>,
    /// How keys are drawn
    #[arg(long, value_enum, default_value = "uniform")]
    pub keys: KeyOrder,
    /// Bytes of a key
    #[arg(long, value_name = "BYTES", default_value = "16", value_parser = bytes_in::<1, 65_535>)]
    pub key_size: u64,
    /// Bytes of a value
    #[arg(long, value_name = "BYTES", default_value = "100")]
    #[arg(value_parser = bytes_in::<0, { 1 << 30 }>)]
    pub value_size: u64,
    /// Share of reads in all operations
    #[arg(long, value_name = "0 TO 1", default_value_t = 0.0)]
    pub reads_share: f64,
    /// Bytes that are flushed at a time
    #[arg(long, value_name = "BYTES", default_value = "64MiB")]
    #[arg(value_parser = bytes_in::<4096, { u64::MAX }>)]
    pub memtable_bytes: u64,
    /// Bytes of a table
    #[arg(long, value_name = "BYTES", value_parser = bytes_in::<4096, { u64::MAX }>)]
    pub table_bytes: Option<u64>,
    /// Ratio of the sizes of two levels
    #[arg(long, value_name = "TIMES")]
    pub fan_out: Option<f64>,
    /// With --values: garbage to keep beside live values, as a share of their bytes
    #[arg(long, value_name = "SHARES", value_delimiter = ',', default_value = "0.3")]
    pub reserved_ratio: Vec<f64>,
    /// Records that one simulated record stands for; chosen by the sizes when absent
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub scale: Option<u64>,
}

#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Where the database goes; a new temporary directory when absent
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Take the data from this directory instead of looking for some (repeatable)
    #[arg(long, value_name = "DIR", alias = "from")]
    pub source: Vec<PathBuf>,
    /// Maximum of data to import, in megabytes
    #[arg(long, env = "SHINGLE_DEMO_MB", default_value_t = 200)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub mb: u64,
    /// Where the HTML page goes
    #[arg(long, value_name = "FILE", default_value = "shingle-demo.html")]
    pub html: PathBuf,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Keep the database
    #[arg(long)]
    pub keep: bool,
}

#[derive(Args, Debug)]
pub struct CrashWriterArgs {
    /// Seed of the values
    #[arg(long)]
    pub seed: u64,
    /// The first batch
    #[arg(long)]
    pub first: u64,
}
