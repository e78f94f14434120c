//! The command line: every command with a paragraph and examples.

pub mod bench;
pub mod device;
pub mod help;
pub mod lab;
pub mod size;
pub mod trace;

pub use bench::{BenchArgs, PresetName};

use self::lab::LabArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
use device::DeviceArgs;
use size::{bytes, bytes_in};
use std::ffi::OsString;
use std::path::PathBuf;

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
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Flags of every command")]
pub struct Global {
    /// The directory of the database, or a formatted file or disk
    #[arg(long, global = true, value_name = "PATH", env = "SHINGLE_DB")]
    pub db: Option<PathBuf>,
    /// The cold store, for values that rarely change: a directory, or a formatted file or disk
    #[arg(long, global = true, value_name = "PATH", env = "SHINGLE_COLD_STORE")]
    pub cold_store: Option<PathBuf>,
    /// The keyspace that the command works on
    #[arg(long, global = true, value_name = "NAME", default_value = "default")]
    pub keyspace: String,
    /// An option of the database; `shingle options` lists them (repeatable)
    #[arg(long, short = 'o', global = true, value_name = "KEY=VALUE")]
    pub option: Vec<String>,
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
    /// Store a value under a key
    ///
    /// Stores one value, replacing the one that is there. Creates the database and the keyspace
    /// when they do not exist. The value comes from the command line, or with --value-file from a
    /// file (`-` is stdin), byte for byte.
    #[command(after_help = "\
Examples:
  shingle --db my.db put apple red
  shingle --db my.db put logo --value-file logo.png
  shingle --db my.db --hex put 0x00FF 0x2A")]
    Put(PutArgs),
    /// Print the value of a key
    ///
    /// Prints the value and a newline; with --raw the value alone, byte for byte. A missing key
    /// gives exit code 127 and nothing on stdout.
    #[command(after_help = "\
Examples:
  shingle --db my.db get apple
  shingle --db my.db get logo --raw > logo.png
  shingle --db my.db --json get apple")]
    Get(GetArgs),
    /// Delete keys
    ///
    /// Deletes each key; a missing key is no error. Several keys are one atomic batch.
    #[command(after_help = "\
Examples:
  shingle --db my.db delete apple
  shingle --db my.db delete apple pear plum --sync")]
    Delete(DeleteArgs),
    /// Delete every key of a range
    ///
    /// Deletes all keys from FROM (inclusive) to TO (exclusive) by one small record, whatever their
    /// number.
    #[command(after_help = "\
Examples:
  shingle --db my.db delete-range 2024-01 2024-07
  shingle --db my.db delete-range logs/ logs0        everything below logs/")]
    DeleteRange(DeleteRangeArgs),
    /// List keys and values in order
    ///
    /// One line a record, `key : value`, in the order of the keys' bytes. Backslash, control
    /// characters and bytes that are not UTF-8 are escaped (`\\` `\t` `\n` `\r` `\xHH`), so that a
    /// record is always one line; --hex prints hex, --json one object a line.
    #[command(after_help = "\
Examples:
  shingle --db my.db scan --prefix lib --limit 10
  shingle --db my.db scan --from 2024 --to 2025 --reverse --keys-only")]
    Scan(ScanArgs),
    /// Store the records of a file or directory
    ///
    /// Reads records as a stream, writes them in batches, and syncs once at the end. The format
    /// follows from the name, with or without `.gz`, or from --format (a pipe may be compressed):
    /// `tsv` (key TAB value, escaped as by scan, or --raw), `csv` (columns key, value and, where
    /// needed, encoding; or any columns with --key-field), `jsonl` and `json` (objects with key or
    /// key_base64 and value or value_base64; or any objects with --key-field), `dir` (a directory
    /// tree: relative path and content), `deb822` (Debian control stanzas by --key-field). With
    /// --verify the source is read a second time and every record compared.
    #[command(after_help = "\
Examples:
  shingle --db my.db import words.tsv --verify
  shingle --db my.db import people.csv --key-field id
  shingle --db my.db import people.csv.gz --key-field id --value-field name
  shingle --db my.db import /usr/include --keyspace headers
  shingle --db my.db import events.jsonl --key-field id
  apt-cache dumpavail | shingle --db my.db import - --format deb822 --keyspace packages")]
    Import(TransferArgs),
    /// Write all records to a file or directory
    ///
    /// The opposite of import, in the same formats; what one writes, the other reads back without
    /// loss. `dir` and `deb822` refuse records that they could not give back.
    #[command(after_help = "\
Examples:
  shingle --db my.db export all.jsonl --verify
  shingle --db my.db export - --format tsv | sort | head")]
    Export(TransferArgs),
    /// Show levels, I/O by cause, and stalls
    ///
    /// Prints a table of levels, and every byte that the database read or wrote since it was
    /// opened, by cause. With --property, prints one property by its rocksdb.*, leveldb.* or
    /// shingle.* name.
    #[command(after_help = "\
Examples:
  shingle --db my.db stat
  shingle --db my.db stat --json
  shingle --db my.db stat --property rocksdb.estimate-num-keys")]
    Stat(StatArgs),
    /// Verify every checksum
    ///
    /// Opens the database read-only, reads all files, and verifies checksums, key order and the
    /// structure of the tree. Reports each problem with its place. Exit code 1 if anything is
    /// damaged.
    #[command(after_help = "\
Examples:
  shingle --db my.db check
  shingle --db my.db --json check")]
    Check,
    /// Compact all levels
    ///
    /// Compacts the keyspace, or its keys from --from to --to, to the deepest level; with --all
    /// every keyspace. Reclaims the space of deleted and replaced records.
    #[command(after_help = "\
Examples:
  shingle --db my.db compact
  shingle --db my.db compact --from a --to c
  shingle --db my.db compact --all")]
    Compact(CompactArgs),
    /// Make a second database with the current contents
    ///
    /// Writes the current state to a new directory, as a complete database of its own. Links table
    /// files where the file system allows, copies them otherwise.
    #[command(after_help = "\
Examples:
  shingle --db my.db checkpoint backup.db")]
    Checkpoint(TargetArgs),
    /// Save what can be read from a damaged database
    ///
    /// Copies every readable record to a new database and reports what was lost. Leaves the
    /// damaged files unchanged.
    #[command(after_help = "\
Examples:
  shingle --db damaged.db salvage saved.db")]
    Salvage(TargetArgs),
    /// List, create or drop keyspaces
    ///
    /// A keyspace is an ordered map with a name of its own. Batches are atomic across keyspaces.
    #[command(after_help = "\
Examples:
  shingle --db my.db keyspace list
  shingle --db my.db keyspace create users
  shingle --db my.db keyspace drop users")]
    Keyspace(KeyspaceArgs),
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
    /// The process that `demo` kills.
    #[command(hide = true)]
    CrashWriter(CrashWriterArgs),
}

#[derive(Args, Debug)]
pub struct PutArgs {
    /// The key
    pub key: OsString,
    /// The value
    #[arg(required_unless_present = "value_file", conflicts_with = "value_file")]
    pub value: Option<OsString>,
    /// Read the value from a file; `-` is stdin
    #[arg(long, value_name = "FILE")]
    pub value_file: Option<PathBuf>,
    /// Return when the value survives a power loss
    #[arg(long)]
    pub sync: bool,
}

#[derive(Args, Debug)]
pub struct GetArgs {
    /// The key
    pub key: OsString,
    /// Print the value alone, without a newline
    #[arg(long)]
    pub raw: bool,
}

#[derive(Args, Debug)]
pub struct DeleteArgs {
    /// The keys
    #[arg(required = true)]
    pub keys: Vec<OsString>,
    /// Return when the deletion survives a power loss
    #[arg(long)]
    pub sync: bool,
}

#[derive(Args, Debug)]
pub struct DeleteRangeArgs {
    /// The first key to delete
    pub from: OsString,
    /// The first key to keep
    pub to: OsString,
    /// Return when the deletion survives a power loss
    #[arg(long)]
    pub sync: bool,
}

#[derive(Args, Debug)]
pub struct ScanArgs {
    /// The first key
    #[arg(long, value_name = "KEY")]
    pub from: Option<OsString>,
    /// The first key after the range
    #[arg(long, value_name = "KEY")]
    pub to: Option<OsString>,
    /// Only keys that start with this
    #[arg(long, conflicts_with_all = ["from", "to"])]
    pub prefix: Option<OsString>,
    /// Maximum number of records
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// List from the last key to the first
    #[arg(long)]
    pub reverse: bool,
    /// Print keys only
    #[arg(long)]
    pub keys_only: bool,
}

/// The formats of import and export.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// key TAB value, one record a line
    Tsv,
    /// Columns key, value, encoding; or any columns, with --key-field
    Csv,
    /// One JSON object a line
    Jsonl,
    /// A JSON array of objects, or one object whose members are the records
    Json,
    /// A directory tree: relative path and content
    Dir,
    /// Debian control stanzas
    Deb822,
}

#[derive(Args, Debug)]
pub struct TransferArgs {
    /// A file or directory, also compressed by gzip (`.gz`); `-` is stdin or stdout
    pub path: PathBuf,
    /// The format; guessed from the name when absent
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// The field that is the key, in csv (its first row names the fields), jsonl, json or deb822
    ///
    /// The value is the whole record: as JSON for csv, as it stands for the others.
    #[arg(long, value_name = "NAME")]
    pub key_field: Option<String>,
    /// With --key-field, import only this field as the value (csv, jsonl, json)
    #[arg(long, value_name = "NAME", requires = "key_field")]
    pub value_field: Option<String>,
    /// Read and write tsv without escapes: a backslash is a backslash
    #[arg(long)]
    pub raw: bool,
    /// Read the file again at the end and compare every record
    #[arg(long)]
    pub verify: bool,
}

#[derive(Args, Debug)]
pub struct StatArgs {
    /// Print this property instead
    #[arg(long, value_name = "NAME")]
    pub property: Option<String>,
}

#[derive(Args, Debug)]
pub struct CompactArgs {
    /// The first key
    #[arg(long, value_name = "KEY")]
    pub from: Option<OsString>,
    /// The first key after the range
    #[arg(long, value_name = "KEY")]
    pub to: Option<OsString>,
    /// Compact every keyspace
    #[arg(long, conflicts_with_all = ["from", "to"])]
    pub all: bool,
}

#[derive(Args, Debug)]
pub struct TargetArgs {
    /// The directory of the new database; must not exist
    pub target: PathBuf,
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
    },
    /// Delete a keyspace with everything in it
    Drop {
        /// Its name
        name: String,
    },
}

/// What `dump` can look into.
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
    /// What to look into
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
    #[arg(long, value_name = "DIR")]
    pub from: Vec<PathBuf>,
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
