//! The command line of the commands that work on an open database: the same from the shell of the
//! system and inside `shingle shell`.

use super::duration;
use super::range::{OrderArgs, RangeArgs};
use clap::{Args, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Commands on a database.
#[derive(Subcommand, Debug)]
pub enum DataCommand {
    /// Store a value under a key
    ///
    /// Stores one value, replacing the one that is there. Creates the database and the keyspace
    /// when they do not exist. The value comes from the command line, or with --value-file from a
    /// file (`-` is stdin), byte for byte.
    #[command(after_help = "\
Examples:
  shingle --db my.db put apple red
  shingle --db my.db put logo --value-file logo.png
  shingle --db my.db put session/7 ann --ttl 1h
  shingle --db my.db put --hex 0x00FF 0x2A")]
    Put(PutArgs),
    /// Print the value of a key
    ///
    /// Prints the value and a newline; with --raw the value alone, byte for byte. A missing key
    /// gives exit code 127 and nothing on stdout.
    #[command(after_help = "\
Examples:
  shingle --db my.db get apple
  shingle --db my.db get logo --raw > logo.png
  shingle --db my.db get apple --json")]
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
    /// Deletes all keys of the range by one small record, whatever their number. At least one bound
    /// is needed.
    #[command(after_help = "\
Examples:
  shingle --db my.db delete-range --from 2024-01 --to 2024-07
  shingle --db my.db delete-range --prefix logs/")]
    DeleteRange(DeleteRangeArgs),
    /// Store an operand for the merge operator of a keyspace
    ///
    /// Stores an operand, which the keyspace's merge operator applies when the key is read or
    /// compacted. `keyspace create --merge-operator` makes such a keyspace; a missing keyspace is
    /// not created. The built-in operators are `append`, which appends the operand to the value,
    /// and `add-u64`, which adds little-endian numbers of 8 bytes.
    #[command(after_help = "\
Examples:
  shingle --db my.db keyspace create log --merge-operator append
  shingle --db my.db merge --keyspace log monday one
  shingle --db my.db merge --keyspace sums --hex 0x61 0x0100000000000000")]
    Merge(MergeArgs),
    /// List keys and values in order
    ///
    /// One line a record, `key : value`, in the order of the keys' bytes. Backslash, control
    /// characters and bytes that are not UTF-8 are escaped (`\\` `\t` `\n` `\r` `\xHH`), so that a
    /// record is always one line; --hex prints hex, --json one object a line. With --expiry a line
    /// is `key : time : value`.
    #[command(after_help = "\
Examples:
  shingle --db my.db scan --prefix lib --limit 10
  shingle --db my.db scan --from 2024 --to 2025 --reverse --keys-only")]
    Scan(ScanArgs),
    /// Count keys
    ///
    /// Reads the keys of the range and prints their number; with --json also the bytes of keys and
    /// values.
    #[command(after_help = "\
Examples:
  shingle --db my.db count
  shingle --db my.db count --prefix user/
  shingle --db my.db count --json --from 2024 --to 2025")]
    Count(CountArgs),
    /// Store the records of a file or directory
    ///
    /// Reads records as a stream, writes them in batches, and syncs once at the end. The format
    /// follows from the name, with or without `.gz`, or from --format (a pipe may be compressed):
    /// `tsv` (key TAB value, escaped as by scan, or --raw), `csv` (a header key,value and, where
    /// needed, encoding; or any columns with --key-field), `jsonl` and `json` (objects with key or
    /// key_base64 and value or value_base64; or any objects with --key-field), `dir` (a directory
    /// tree: relative path and content), `deb822` (Debian control stanzas by --key-field). With
    /// --verify the source is read a second time and every record compared. With --sorted the
    /// source is in the order of its keys: its records become table files directly, all of them or
    /// none, and a key out of order is an error.
    #[command(after_help = "\
Examples:
  shingle --db my.db import words.tsv --verify
  shingle --db my.db import people.csv --key-field id
  shingle --db my.db import people.csv.gz --key-field id --value-field name
  LC_ALL=C sort words.tsv | shingle --db my.db import - --format tsv --sorted
  shingle --db my.db import /usr/include --keyspace headers
  shingle --db my.db import events.jsonl --key-field id
  apt-cache dumpavail | shingle --db my.db import - --format deb822 --keyspace packages")]
    Import(ImportArgs),
    /// Bring in sorted files
    ///
    /// Brings files of `SortedFileWriter` into the keyspace by one step: all of them or none. Their
    /// entries are newer than what is there. The files must not overlap. Creates the database and
    /// the keyspace when they do not exist. Every checksum is verified first.
    #[command(after_help = "\
Examples:
  shingle --db my.db ingest part-1.sorted part-2.sorted
  shingle --db my.db ingest --move parts/*.sorted --keyspace words")]
    Ingest(IngestArgs),
    /// Write records to a file or directory
    ///
    /// The opposite of import, in the same formats; what one writes, the other reads back without
    /// loss. `dir` and `deb822` refuse records that they could not give back. Only `jsonl` and
    /// `json` keep the time when a value expires, as `expiry_ms`. An export that fails or is
    /// interrupted leaves nothing behind.
    #[command(after_help = "\
Examples:
  shingle --db my.db export all.jsonl --verify
  shingle --db my.db export users.csv --prefix user/ --limit 1000
  shingle --db my.db export - --format tsv | sort | head")]
    Export(ExportArgs),
    /// Show levels, I/O by cause, and stalls
    ///
    /// Prints a table of levels, and every byte that the database read or wrote since it was
    /// opened, by cause. With --property, prints one property by its rocksdb.*, leveldb.* or
    /// shingle.* name. With --format, prints metrics of the database: levels, space, compaction
    /// debt and values. Metrics of a process, such as bytes by cause, come from the process itself.
    #[command(after_help = "\
Examples:
  shingle --db my.db stat
  shingle --db my.db stat --json
  shingle --db my.db stat --property rocksdb.estimate-num-keys
  shingle --db my.db stat --format prometheus")]
    Stat(StatArgs),
    /// Print what was committed, in commit order
    ///
    /// Prints the batches that were committed after a sequence number, one operation a line, or
    /// with --json one batch a line. Without --since begins with the oldest change that is kept.
    /// With --follow goes on until Ctrl-C, beside the program that writes. The program must keep
    /// changes: option changes_retention_bytes or changes_retention_age. All keyspaces are shown;
    /// --keyspace has no effect.
    #[command(after_help = "\
Examples:
  shingle --db my.db changes
  shingle --db my.db changes --since 4711 --json
  shingle --db my.db changes --follow")]
    Changes(ChangesArgs),
    /// Verify every checksum
    ///
    /// Opens the database read-only, reads all files, and verifies checksums, key order and the
    /// structure of the tree. Reports each problem with its place. Exit code 1 if anything is
    /// damaged.
    #[command(after_help = "\
Examples:
  shingle --db my.db check
  shingle --db my.db check --json")]
    Check,
    /// Compact all levels
    ///
    /// Compacts the keyspace, or a range of its keys, to the deepest level; with --all every
    /// keyspace. Reclaims the space of deleted and replaced records.
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
    /// The value expires after this time: 90s, 10m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub ttl: Option<Duration>,
}

#[derive(Args, Debug)]
pub struct GetArgs {
    /// The key
    pub key: OsString,
    /// Print the value alone, without a newline
    #[arg(long)]
    pub raw: bool,
    /// Print when the value expires, or `never`, instead of the value
    #[arg(long, conflicts_with = "raw")]
    pub expiry: bool,
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
    /// FROM and TO, as scripts wrote them before there were flags
    #[arg(hide = true, num_args = 2, conflicts_with_all = ["from", "to", "prefix"])]
    pub bounds: Vec<OsString>,
    #[command(flatten)]
    pub range: RangeArgs,
    /// Return when the deletion survives a power loss
    #[arg(long)]
    pub sync: bool,
}

#[derive(Args, Debug)]
pub struct MergeArgs {
    /// The key
    pub key: OsString,
    /// What the operator applies to the value
    pub operand: OsString,
    /// Return when the operand survives a power loss
    #[arg(long)]
    pub sync: bool,
}

#[derive(Args, Debug)]
pub struct CountArgs {
    #[command(flatten)]
    pub range: RangeArgs,
}

#[derive(Args, Debug)]
pub struct ScanArgs {
    #[command(flatten)]
    pub range: RangeArgs,
    #[command(flatten)]
    pub order: OrderArgs,
    /// Print keys only
    #[arg(long)]
    pub keys_only: bool,
    /// Print also when values expire
    #[arg(long)]
    pub expiry: bool,
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
    /// The directory of a database of LevelDB, which import reads
    Leveldb,
    /// The directory of a database of RocksDB, which import reads
    Rocksdb,
}

impl Format {
    /// What has this format is a directory.
    pub fn is_directory(self) -> bool {
        matches!(self, Format::Dir | Format::Leveldb | Format::Rocksdb)
    }
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
    /// Read and write csv without the header `key,value`: the first row is a record
    #[arg(long, conflicts_with = "key_field")]
    pub no_header: bool,
    /// Read and write tsv without escapes: a backslash is a backslash
    #[arg(long)]
    pub raw: bool,
    /// Read the file again at the end and compare every record
    #[arg(long)]
    pub verify: bool,
}

#[derive(Args, Debug)]
pub struct ImportArgs {
    #[command(flatten)]
    pub transfer: TransferArgs,
    /// Ingest a source whose keys ascend, as one step: all records or none
    #[arg(long)]
    pub sorted: bool,
    /// Values expire after this time, unless the file says when: 90s, 10m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub ttl: Option<Duration>,
}

#[derive(Args, Debug)]
pub struct IngestArgs {
    /// The files
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Take the files over by links where the file system allows, instead of copying them
    #[arg(long = "move")]
    pub move_files: bool,
    /// Do not read all bytes first; damage shows when a read meets it
    #[arg(long)]
    pub no_verify: bool,
    /// The files are older than all that the keyspace holds, and hide nothing of it
    #[arg(long)]
    pub below: bool,
}

#[derive(Args, Debug)]
pub struct ExportArgs {
    #[command(flatten)]
    pub transfer: TransferArgs,
    /// Write values that expire without the time, where the format has no place for it
    #[arg(long)]
    pub without_expiry: bool,
    #[command(flatten)]
    pub range: RangeArgs,
    #[command(flatten)]
    pub order: OrderArgs,
}

#[derive(Args, Debug)]
pub struct StatArgs {
    /// Print this property instead
    #[arg(long, value_name = "NAME")]
    pub property: Option<String>,
    /// Print metrics of the database instead, labelled with its path
    #[arg(long, value_enum, conflicts_with = "property")]
    pub format: Option<MetricsFormat>,
}

/// A text format of metrics.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// The text format of Prometheus, 0.0.4
    Prometheus,
    /// OpenMetrics 1.0
    Openmetrics,
}

#[derive(Args, Debug)]
pub struct ChangesArgs {
    /// Begin after this sequence number
    #[arg(long, value_name = "SEQUENCE")]
    pub since: Option<u64>,
    /// Wait for further changes, until Ctrl-C
    #[arg(long)]
    pub follow: bool,
}

#[derive(Args, Debug)]
pub struct CompactArgs {
    #[command(flatten)]
    pub range: RangeArgs,
    /// Compact every keyspace
    #[arg(long, conflicts_with_all = ["from", "to", "prefix"])]
    pub all: bool,
}

#[derive(Args, Debug)]
pub struct TargetArgs {
    /// The directory of the new database; must not exist
    pub target: PathBuf,
}
