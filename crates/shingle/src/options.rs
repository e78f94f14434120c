//! Options: goals first. Each public option is defined once, in [`TABLE`]: its name, unit, bounds
//! and help are there, and the command line, configuration files and documentation come from it.
//! A parameter of a scheme or of a value layout is defined once too, beside the schemes and beside
//! the layouts, and is an option by its name there (`parameters`). Raw knobs are in [`Expert`].

mod by_name;
mod expert;
mod number;
mod parameters;
mod preset;
mod retention;

pub use by_name::{OptionEntry, TABLE};
pub use expert::EXPERT;
pub use parameters::ParameterEntry;
pub use preset::Preset;
pub(crate) use retention::Retention;
pub use tree::policy::Parameters as SchemeParameters;
pub use values::Parameters as ValueParameters;

use crate::compaction_filter::CompactionFilter;
use crate::event::EventListener;
use crate::merge_operator::MergeOperator;
use crate::resources::Resources;
use base::{Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use table::Compression;

/// What a write is safe from when the call returns.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use shingle::{Durability, Options, WriteOptions};
///
/// // Every write waits for the medium ...
/// let db = Options::new().durability(Durability::Synced).open(dir.path())?;
/// db.put("balance", "100")?;
///
/// // ... but this one, which a power loss may take.
/// let buffered =
///     WriteOptions { durability: Some(Durability::Buffered), ..WriteOptions::default() };
/// db.put_with("last-seen", "now", &buffered)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The death of the process. Power loss may take the newest writes, never older ones first.
    Buffered,
    /// Power loss.
    Synced,
}

/// Knobs for experiments. `None`: the preset decides.
///
/// A knob may change its meaning or go in any release: see
/// [`Options::expert`](crate::Options::expert).
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use shingle::Options;
///
/// let db = Options::new()
///     .expert(|expert| {
///         expert.scheme.fan_out = Some(8.0);
///         expert.open_files_max = Some(500);
///     })
///     .open(dir.path())?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expert {
    /// Parameters of the scheme. A parameter that the scheme does not have has no effect.
    pub scheme: SchemeParameters,
    /// Parameters of the value layout. A parameter that the layout does not have has no effect.
    pub values: ValueParameters,
    /// Bytes of a data block before compression.
    pub block_bytes: Option<u32>,
    /// Bytes of an index block and of the part of a filter that goes with it, before compression. A
    /// run whose index is smaller keeps it in memory whole while it is open.
    pub index_block_bytes: Option<u32>,
    /// Bytes of one memtable; several are flushed together.
    pub memtable_bytes: Option<u64>,
    /// Bytes of all logs together at which idle keyspaces are flushed, so that their logs can go;
    /// default four write buffers.
    pub log_bytes: Option<u64>,
    /// Bytes of input that a background step works through.
    pub step_bytes: Option<u64>,
    /// Filter bits for each key that a level has more than the next one below it with data, up to
    /// 16 in all; default 2, and 0 in the LevelDB preset. A false answer costs a read whatever the
    /// level, and upper levels have few keys: their bits are the cheap ones. 0: the same on every
    /// level.
    pub filter_bits_step: Option<u8>,
    /// Filter bits for each key of the last level, where most keys are; default
    /// [`Options::filter_bits_per_key`]. 0: no filters there, which saves 90 % of their
    /// memory, for programs that hardly ever look up a missing key.
    pub filter_bits_last: Option<u8>,
    /// Levels from this one down have Ribbon filters, with as many false positives in about
    /// 75 % of the memory, but slower to build and to ask; default: none.
    pub filter_ribbon_level: Option<u8>,
    /// Maximum number of bytes that compaction prefetches for each input, and a long scan for each
    /// run that is not mapped into memory; default 256 KiB.
    pub readahead_bytes: Option<u32>,
    /// The same for long scans on devices; default up to 1 MiB.
    pub device_walk_bytes_max: Option<u32>,
    /// Maps tables without compression into memory and reads their blocks in place, not through the
    /// block cache: gets of blocks that the cache does not hold take a third to half of the time.
    /// DANGER: if a mapped table is cut short, or its device fails, while the database is open, the
    /// next touch of the lost bytes is SIGBUS, which ends the process. Without mapping it is an
    /// error. Set it only where nothing but this program touches the directory. Default: off. At
    /// most half of the machine's memory is mapped, and nothing where addresses have 32 bits.
    pub map_tables: Option<bool>,
    /// Maximum number of table and value files open for reads; the least recently read are closed
    /// first. Default: 25 % of the process's descriptor limit.
    pub open_files_max: Option<usize>,
    /// The rate at which throttling of writes begins, in bytes per second.
    pub slow_rate_bytes_max: Option<u64>,
    /// The lowest rate to which writes are throttled, in bytes per second.
    pub slow_rate_bytes_min: Option<u64>,
    /// Commits append large values to segments, and pointers to the log, in layouts that have one
    /// log of values: each is written once. No: a flush writes them, and the log does before, which
    /// spares segments the values that are overwritten in memory. Default yes.
    pub values_at_commit: Option<bool>,
    /// Bytes of the medium that are kept free, so that deletions, flushes, closing and opening go
    /// on when it is full; 0: none. Default: 1 MiB and what the memtables hold, at least
    /// 1/16 of the database and at most two write buffers; no more than 1/4 of the medium.
    pub reserve_bytes: Option<u64>,
    /// Milliseconds that an expired value may stay on the medium before a compaction of its run is
    /// due; default one day. A compaction is due earlier where half of a run has expired.
    pub expiry_delay_ms: Option<u64>,
    /// Background threads are not started: the caller runs the steps (simulation).
    pub no_threads: bool,
}

/// How to open a database.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use shingle::{Durability, Options};
///
/// let db = Options::new()
///     .memory_bytes(64 << 20)
///     .durability(Durability::Synced)
///     .set("scheme", "tiered")?
///     .open(dir.path())?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Options {
    pub(crate) create: bool,
    pub(crate) create_new: bool,
    pub(crate) read_only: bool,
    pub(crate) preset: Preset,
    pub(crate) scheme: String,
    pub(crate) values: String,
    /// `None`: what was measured for the database, else the default.
    pub(crate) value_threshold_bytes: Option<u64>,
    pub(crate) durability: Durability,
    pub(crate) memory_bytes: u64,
    pub(crate) write_buffer_bytes: Option<u64>,
    pub(crate) cache_bytes: Option<u64>,
    pub(crate) compression: Option<Compression>,
    pub(crate) filter_bits_per_key: u8,
    pub(crate) background_threads: usize,
    pub(crate) background_bytes_per_second: u64,
    pub(crate) idle_compaction: bool,
    pub(crate) direct_io: bool,
    pub(crate) changes_retention_bytes: u64,
    pub(crate) changes_retention_age: Duration,
    pub(crate) expert: Expert,
    pub(crate) resources: Option<Resources>,
    pub(crate) operators: Vec<Arc<dyn MergeOperator>>,
    pub(crate) listener: Option<Arc<dyn EventListener>>,
    pub(crate) absent_operators: bool,
    pub(crate) compaction_filters: Vec<Arc<dyn CompactionFilter>>,
    /// Parameters that were set by name: the scheme, or the value layout, must have them.
    pub(crate) named_parameters: BTreeSet<&'static str>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            create: true,
            create_new: false,
            read_only: false,
            preset: Preset::Modern,
            scheme: "adaptive".into(),
            values: "inline".into(),
            value_threshold_bytes: None,
            durability: Durability::Buffered,
            memory_bytes: 320 << 20,
            write_buffer_bytes: None,
            cache_bytes: None,
            compression: None,
            filter_bits_per_key: 10,
            background_threads: 2,
            background_bytes_per_second: 0,
            idle_compaction: true,
            direct_io: false,
            changes_retention_bytes: 0,
            changes_retention_age: Duration::ZERO,
            expert: Expert::default(),
            resources: None,
            operators: Vec::new(),
            listener: None,
            absent_operators: false,
            compaction_filters: Vec::new(),
            named_parameters: BTreeSet::new(),
        }
    }
}

impl Options {
    /// The defaults.
    pub fn new() -> Options {
        Options::default()
    }

    /// Creates the database if there is none.
    pub fn create(mut self, yes: bool) -> Self {
        self.create = yes;
        self
    }

    /// Creates the database, whatever [`Options::create`] says, and refuses one that exists: with
    /// the kind [`AlreadyExists`](crate::ErrorKind::AlreadyExists), and with
    /// [`Locked`](crate::ErrorKind::Locked) while a process has it open. Of several processes that
    /// create a database at once, one succeeds.
    pub fn create_new(mut self, yes: bool) -> Self {
        self.create_new = yes;
        self
    }

    /// Whether an opening creates the database where there is none.
    pub(crate) fn creates(&self) -> bool {
        (self.create || self.create_new) && !self.read_only
    }

    /// Reads only, and leaves no trace.
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// Which set of rules the tree follows.
    pub fn preset(mut self, preset: Preset) -> Self {
        self.preset = preset;
        self.scheme = preset.numbers().scheme.into();
        self
    }

    /// The compaction scheme, by name.
    pub fn scheme(mut self, name: &str) -> Self {
        self.scheme = name.into();
        self
    }

    /// The value layout, by name.
    pub fn values(mut self, name: &str) -> Self {
        self.values = name.into();
        self
    }

    /// Separates values of at least this size from the tree, in layouts that do so. Default: the
    /// threshold of [`crate::Db::keep_value_threshold`], otherwise 1024.
    pub fn value_threshold_bytes(mut self, bytes: u64) -> Self {
        self.value_threshold_bytes = Some(bytes);
        self
    }

    /// What a write is safe from, where the call does not say.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The memory budget in bytes: memtables, open tables and buffers of background work; the
    /// block cache has what they leave. The write buffer is 20 % of it. The process takes more:
    /// what the program itself holds, and the allocator's losses.
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Memtable bytes that are flushed together, set apart from [`Options::memory_bytes`].
    pub fn write_buffer_bytes(mut self, bytes: u64) -> Self {
        self.write_buffer_bytes = Some(bytes);
        self
    }

    /// Block cache bytes, set apart from [`Options::memory_bytes`].
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = Some(bytes);
        self
    }

    /// Compression of every level.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// Filter bits for each key; 0: no filters.
    pub fn filter_bits_per_key(mut self, bits: u8) -> Self {
        self.filter_bits_per_key = bits;
        self
    }

    /// Bytes of a table.
    pub fn table_bytes(mut self, bytes: u64) -> Self {
        self.expert.scheme.table_bytes_max = Some(bytes);
        self
    }

    /// Threads for flushes and compaction.
    pub fn background_threads(mut self, threads: usize) -> Self {
        self.background_threads = threads;
        self
    }

    /// Maximum number of bytes that background work writes per second; 0: no limit.
    pub fn background_bytes_per_second(mut self, bytes: u64) -> Self {
        self.background_bytes_per_second = bytes;
        self
    }

    /// While it is idle, the database may rewrite garbage to free its space, and then keeps about
    /// half of what it has while it is written. `false`: idle time rewrites nothing. The ledger has
    /// these bytes as [`Cause::IdleCompaction`](crate::Cause::IdleCompaction).
    pub fn idle_compaction(mut self, yes: bool) -> Self {
        self.idle_compaction = yes;
        self
    }

    /// Flushes and compaction bypass the page cache where the file system can: for data that is
    /// much larger than memory, or memory that others need.
    pub fn direct_io(mut self, yes: bool) -> Self {
        self.direct_io = yes;
        self
    }

    /// Keeps logs for [`Db::changes`](crate::Db::changes), until those that recovery does not need
    /// are more than this many bytes. 0, the default: no limit where
    /// [`Options::changes_retention_age`] is set, else nothing is kept.
    pub fn changes_retention_bytes(mut self, bytes: u64) -> Self {
        self.changes_retention_bytes = bytes;
        self
    }

    /// Keeps logs for [`Db::changes`](crate::Db::changes) for this long after their last write.
    /// Zero, the default: no limit where [`Options::changes_retention_bytes`] is set, else nothing
    /// is kept.
    pub fn changes_retention_age(mut self, age: Duration) -> Self {
        self.changes_retention_age = age;
        self
    }

    /// Shares the cache with other databases, or memory, threads and the limit of background work:
    /// these options of the database then mean nothing. The opening fails with
    /// [`Closed`](crate::ErrorKind::Closed) in a forked child of the process that made them.
    pub fn resources(mut self, shared: &Resources) -> Self {
        self.resources = Some(shared.clone());
        self
    }

    /// Makes an operator known. Those that come with the engine are known already.
    pub fn merge_operator(mut self, operator: Arc<dyn MergeOperator>) -> Self {
        self.operators.push(operator);
        self
    }

    /// Opens keyspaces whose merge operator is not known, which is an error otherwise; a read-only
    /// opening always does. Operands stay as they are: reads of their keys fail, and so do merges.
    pub fn absent_operators(mut self, yes: bool) -> Self {
        self.absent_operators = yes;
        self
    }

    /// Calls `listener` for each event: flushes, compactions, stalls, failures. [`EventListener`]
    /// says when and on which thread. A follower has no events.
    pub fn event_listener(mut self, listener: Arc<dyn EventListener>) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Makes a compaction filter known, for the keyspaces that name it. A keyspace whose filter is
    /// not known is compacted without it.
    pub fn compaction_filter(mut self, filter: Arc<dyn CompactionFilter>) -> Self {
        self.compaction_filters.push(filter);
        self
    }

    /// Knobs for experiments.
    pub fn expert(mut self, change: impl FnOnce(&mut Expert)) -> Self {
        change(&mut self.expert);
        self
    }

    /// Sets an option by its name in [`TABLE`], or a parameter of the scheme or of the value
    /// layout, such as `links_max` of `ldc`, by its name in [`tree::policy::LIMIT_FIELDS`] or
    /// [`values::LIMIT_FIELDS`].
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// use shingle::Options;
    ///
    /// let options = Options::new().set("scheme", "ldc")?.set("memory_bytes", "64M")?;
    /// assert_eq!(options.value("memory_bytes").as_deref(), Some("67108864"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) where no option has that name, or the
    /// value is out of bounds. A parameter that neither the scheme nor the layout has is an error
    /// of the opening.
    pub fn set(mut self, name: &str, value: &str) -> Result<Self> {
        let Some(entry) = OptionEntry::called(name) else {
            self.set_parameter(name, value)?;
            return Ok(self);
        };
        (entry.set)(self, value).map_err(|error| {
            Error::invalid(format!("{name} = {value}: {}; {}", error.message(), entry.help))
        })
    }

    /// Every option, and every expert option and parameter that is set, as the text of a
    /// configuration file.
    pub fn to_ini(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let mut text = format!("[Version]\n  shingle_version={version}\n\n[DBOptions]\n");
        let options = TABLE.iter().map(|entry| (entry.name, (entry.get)(self)));
        let expert = EXPERT.iter().map(|entry| (entry.name, (entry.get)(self)));
        let chosen = expert.filter(|(_, value)| value != "auto");
        for (name, value) in options.chain(chosen).chain(self.chosen_parameters()) {
            text.push_str(&format!("  {name}={value}\n"));
        }
        text
    }

    /// The value of the option called `name`, in the form that [`Options::set`] takes.
    pub fn value(&self, name: &str) -> Option<String> {
        OptionEntry::called(name).map(|entry| (entry.get)(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_takes_back_what_it_gives() {
        for entry in OptionEntry::all() {
            let value = (entry.get)(&Options::new());
            if value != "auto" {
                let set = Options::new().set(entry.name, &value).unwrap();
                assert_eq!((entry.get)(&set), value, "{}", entry.name);
            }
            assert!(!entry.help.is_empty() && !entry.unit.is_empty());
            assert!(Options::new().set(entry.name, "-1").is_err(), "{}", entry.name);
        }
        assert!(TABLE.len() <= 18);
    }

    #[test]
    fn expert_options_have_names_of_their_own_and_bounds() {
        let all = OptionEntry::all().map(|entry| entry.name);
        let all: Vec<&str> = all.chain(Expert::parameter_units().map(|(name, _)| name)).collect();
        for entry in EXPERT {
            assert_eq!(all.iter().filter(|name| **name == entry.name).count(), 1, "{}", entry.name);
            assert_eq!(Options::new().value(entry.name).unwrap(), "auto");
            let value = if entry.unit == "yes or no" { "true" } else { "20" };
            let value = if entry.unit == "bytes" { "65536" } else { value };
            let value = if entry.name == "filter_bits_step" { "16" } else { value };
            let set = Options::new().set(entry.name, value).unwrap();
            assert_eq!(set.value(entry.name).unwrap(), value);
            assert!(set.to_ini().contains(&format!("  {}={value}\n", entry.name)));
        }
        assert!(Options::new().set("block_bytes", "5G").is_err());
    }

    #[test]
    fn bytes_have_suffixes() {
        let options = Options::new().set("memory_bytes", "64M").unwrap();
        assert_eq!(options.value("memory_bytes").unwrap(), (64 << 20).to_string());
    }

    #[test]
    fn an_unknown_option_names_the_known_ones() {
        let error = Options::new().set("memroy_bytes", "1").err().unwrap();
        assert!(error.message().contains("memory_bytes"));
    }
}
