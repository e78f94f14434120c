//! Options by name: each public option, with its unit, bounds and help.

use super::number::{bytes, number};
use super::{Durability, EXPERT, Options, Preset};
use base::{Error, Result};
use std::time::Duration;
use table::Compression;

/// One public option.
pub struct OptionEntry {
    /// Its name in files and on the command line.
    pub name: &'static str,
    /// What its value counts.
    pub unit: &'static str,
    /// What it is for, in a sentence.
    pub help: &'static str,
    /// [`Db::set_option`](crate::Db::set_option) takes it.
    pub at_run_time: bool,
    pub(super) get: fn(&Options) -> String,
    pub(super) set: fn(Options, &str) -> Result<Options>,
}

impl OptionEntry {
    /// Every option: those of [`TABLE`], then those of [`EXPERT`].
    pub fn all() -> impl Iterator<Item = &'static OptionEntry> {
        TABLE.iter().chain(EXPERT)
    }

    /// The option called `name`.
    pub fn called(name: &str) -> Option<&'static OptionEntry> {
        OptionEntry::all().find(|entry| entry.name == name)
    }
}

/// Every public option.
///
/// ```
/// for option in shingle::options::TABLE {
///     println!("{} ({}): {}", option.name, option.unit, option.help);
/// }
/// ```
pub static TABLE: &[OptionEntry] = &[
    OptionEntry {
        name: "preset",
        unit: "name",
        help: "`modern`, or `leveldb` for LevelDB's rules to the letter",
        at_run_time: false,
        get: |o| if o.preset == Preset::Modern { "modern" } else { "leveldb" }.into(),
        set: |o, v| match v {
            "modern" => Ok(o.preset(Preset::Modern)),
            "leveldb" => Ok(o.preset(Preset::LevelDb)),
            _ => Err(Error::invalid("unknown")),
        },
    },
    OptionEntry {
        name: "scheme",
        unit: "name",
        help: "the compaction scheme; `shingle schemes` lists them",
        at_run_time: false,
        get: |o| o.scheme.clone(),
        set: |o, v| tree::policy::by_name(v).map(|_| o.scheme(v)),
    },
    OptionEntry {
        name: "values",
        unit: "name",
        help: "the value layout; `shingle schemes --values` lists them, `inline` separates none",
        at_run_time: false,
        get: |o| o.values.clone(),
        set: |o, v| values::by_name(v).map(|_| o.values(v)),
    },
    OptionEntry {
        name: "value_threshold",
        unit: "bytes",
        help: "separation threshold: separate values of at least this size, with values = log or \
               hashed; `auto`: the threshold measured by `bench threshold`, otherwise 1024",
        at_run_time: false,
        get: |o| o.value_threshold_bytes.map_or("auto".into(), |bytes| bytes.to_string()),
        set: |mut o, v| {
            o.value_threshold_bytes = if v == "auto" { None } else { Some(bytes(v, 1)?) };
            Ok(o)
        },
    },
    OptionEntry {
        name: "value_capacity_bytes",
        unit: "bytes",
        help: "maximum bytes of a keyspace's value segments, from 64K; `auto`: the whole medium",
        at_run_time: false,
        get: |o| {
            let capacity = o.expert.values.capacity_bytes.flatten();
            capacity.map_or("auto".into(), |bytes| bytes.to_string())
        },
        set: |mut o, v| {
            let capacity = if v == "auto" { None } else { Some(bytes(v, 64 << 10)?) };
            o.expert.values.capacity_bytes = Some(capacity);
            Ok(o)
        },
    },
    OptionEntry {
        name: "durability",
        unit: "name",
        help: "`buffered` survives the death of the process, `synced` survives power loss",
        at_run_time: true,
        get: |o| if o.durability == Durability::Synced { "synced" } else { "buffered" }.into(),
        set: |o, v| match v {
            "buffered" => Ok(o.durability(Durability::Buffered)),
            "synced" => Ok(o.durability(Durability::Synced)),
            _ => Err(Error::invalid("unknown")),
        },
    },
    OptionEntry {
        name: "memory_bytes",
        unit: "bytes",
        help: "memory budget for memtables, tables, background work and block cache, from 1M",
        at_run_time: true,
        get: |o| o.memory_bytes.to_string(),
        set: |o, v| Ok(o.memory_bytes(bytes(v, 1 << 20)?)),
    },
    OptionEntry {
        name: "write_buffer_bytes",
        unit: "bytes",
        help: "memtable bytes that are flushed together, from 16K; default 20 % of memory_bytes",
        at_run_time: false,
        get: |o| o.write_buffer_bytes.map_or("auto".into(), |b| b.to_string()),
        set: |o, v| Ok(o.write_buffer_bytes(bytes(v, 16 << 10)?)),
    },
    OptionEntry {
        name: "cache_bytes",
        unit: "bytes",
        help: "block cache; default: the rest of memory_bytes",
        at_run_time: true,
        get: |o| o.cache_bytes.map_or("auto".into(), |b| b.to_string()),
        set: |o, v| Ok(o.cache_bytes(bytes(v, 0)?)),
    },
    OptionEntry {
        name: "compression",
        unit: "name",
        help: "`none`, `lz4` or `zstd` for every level; `auto` compresses deep levels more",
        at_run_time: false,
        get: |o| match o.compression {
            None => "auto".into(),
            Some(Compression::None) => "none".into(),
            Some(Compression::Lz4) => "lz4".into(),
            Some(Compression::Zstd(level)) => format!("zstd:{level}"),
        },
        set: |mut o, v| {
            o.compression = match v {
                "auto" => None,
                "none" => Some(Compression::None),
                "lz4" => Some(Compression::Lz4),
                "zstd" => Some(Compression::Zstd(1)),
                _ => {
                    let level = v.strip_prefix("zstd:").and_then(|level| level.parse().ok());
                    Some(Compression::Zstd(level.ok_or_else(|| Error::invalid("unknown"))?))
                }
            };
            Ok(o)
        },
    },
    OptionEntry {
        name: "filter_bits_per_key",
        unit: "bits",
        help: "filter bits for each key, 0 to 30; 0 means no filters",
        at_run_time: false,
        get: |o| o.filter_bits_per_key.to_string(),
        set: |o, v| Ok(o.filter_bits_per_key(number(v, 0, 30)? as u8)),
    },
    OptionEntry {
        name: "table_bytes",
        unit: "bytes",
        help: "bytes of a table, from 4K; default as the preset says",
        at_run_time: false,
        get: |o| o.expert.scheme.table_bytes_max.map_or("auto".into(), |b| b.to_string()),
        set: |o, v| Ok(o.table_bytes(bytes(v, 4 << 10)?)),
    },
    OptionEntry {
        name: "background_threads",
        unit: "threads",
        help: "threads for flushes and compaction, 1 to 64",
        at_run_time: false,
        get: |o| o.background_threads.to_string(),
        set: |o, v| Ok(o.background_threads(number(v, 1, 64)? as usize)),
    },
    OptionEntry {
        name: "background_bytes_per_second",
        unit: "bytes",
        help: "maximum bytes that background work writes per second; 0 means no limit",
        at_run_time: true,
        get: |o| o.background_bytes_per_second.to_string(),
        set: |o, v| Ok(o.background_bytes_per_second(bytes(v, 0)?)),
    },
    OptionEntry {
        name: "idle_compaction",
        unit: "yes or no",
        help: "`true`: an idle database rewrites garbage to free its space; `false`: it does not",
        at_run_time: true,
        get: |o| o.idle_compaction.to_string(),
        set: |o, v| {
            v.parse().map(|yes| o.idle_compaction(yes)).map_err(|_| Error::invalid("unknown"))
        },
    },
    OptionEntry {
        name: "direct_io",
        unit: "yes or no",
        help: "`true`: flushes and compaction bypass the page cache where the file system can",
        at_run_time: false,
        get: |o| o.direct_io.to_string(),
        set: |o, v| v.parse().map(|yes| o.direct_io(yes)).map_err(|_| Error::invalid("unknown")),
    },
    OptionEntry {
        name: "changes_retention_bytes",
        unit: "bytes",
        help: "maximum bytes of logs that are kept for `changes` alone; 0 with \
               changes_retention_age: no limit, 0 with both: no changes are kept",
        at_run_time: false,
        get: |o| o.changes_retention_bytes.to_string(),
        set: |o, v| Ok(o.changes_retention_bytes(bytes(v, 0)?)),
    },
    OptionEntry {
        name: "changes_retention_age",
        unit: "seconds",
        help: "how long logs are kept for `changes`, from their last write; 0: no limit",
        at_run_time: false,
        get: |o| o.changes_retention_age.as_secs().to_string(),
        set: |o, v| Ok(o.changes_retention_age(Duration::from_secs(number(v, 0, u64::MAX)?))),
    },
];
