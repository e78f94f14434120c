//! What options mean for the parts of the engine: every number that the engine works with.

use crate::admission::AdmissionLimits;
use crate::keyspace::KeyspaceState;
use crate::merge_operator::{MergeOperator, built_in};
use crate::options::{Durability, Options};
use base::{Error, Result};
use std::sync::Arc;
use table::{Compression, Filter, TableOptions};
use tree::policy::{Descriptor, Limits};

/// The numbers that an open database works with.
pub(crate) struct Settings {
    pub durability: Durability,
    /// A memtable is sealed at this size.
    pub memtable_bytes_max: u64,
    /// So many sealed memtables of a keyspace are flushed together.
    pub flush_memtables: usize,
    /// Everything sealed is flushed at this size.
    pub flush_bytes: u64,
    pub cache_bytes: u64,
    pub background_threads: usize,
    pub background_bytes_per_second: u64,
    pub step_bytes: u64,
    pub readahead_bytes: u32,
    pub admission: AdmissionLimits,
    pub scheme: &'static Descriptor,
    pub limits: Limits,
    pub start_threads: bool,
    block_bytes: u32,
    compression: Option<Compression>,
    filter_bits_per_key: u8,
    operators: Vec<Arc<dyn MergeOperator>>,
}

impl Settings {
    pub(crate) fn new(options: &Options) -> Result<Settings> {
        let scheme = tree::policy::by_name(&options.scheme)?;
        values::by_name(&options.values)?;
        let expert = &options.expert;
        let preset = options.preset.numbers();
        let default_buffer = (preset.write_buffer_bytes)(options.memory_bytes);
        let write_buffer = options.write_buffer_bytes.unwrap_or(default_buffer).max(16 << 10);
        let memtable_bytes_max =
            expert.memtable_bytes.unwrap_or_else(|| (preset.memtable_bytes)(write_buffer));
        let flush_memtables = (write_buffer / memtable_bytes_max.max(1)).max(1) as usize;
        let mut limits = (scheme.limits)(write_buffer);
        limits.table_bytes_max = expert.table_bytes.unwrap_or(limits.table_bytes_max);
        limits.level_bytes_base = expert.level_bytes_base.unwrap_or(limits.level_bytes_base);
        limits.fan_out = expert.fan_out.unwrap_or(limits.fan_out);
        limits.level0_runs_trigger =
            expert.level0_runs_trigger.unwrap_or(limits.level0_runs_trigger);
        limits.levels = expert.levels.unwrap_or(limits.levels);
        limits.seek_compaction = expert.seek_compaction.unwrap_or(limits.seek_compaction);
        limits.stack_max = expert.stack_max.unwrap_or(limits.stack_max);
        limits.links_max = expert.links_max.or(limits.links_max);
        let cache_bytes = options.cache_bytes.unwrap_or_else(|| {
            options.memory_bytes.saturating_sub(2 * write_buffer).max(options.memory_bytes / 4)
        });
        Ok(Settings {
            durability: options.durability,
            memtable_bytes_max,
            flush_memtables,
            flush_bytes: write_buffer,
            cache_bytes,
            background_threads: options.background_threads.max(1),
            background_bytes_per_second: options.background_bytes_per_second,
            step_bytes: expert.step_bytes.unwrap_or(1 << 20),
            readahead_bytes: expert.readahead_bytes.unwrap_or(256 << 10),
            admission: (preset.admission)(&limits, write_buffer),
            scheme,
            limits,
            start_threads: !expert.no_threads,
            block_bytes: expert.block_bytes.unwrap_or(4096),
            compression: options.compression,
            filter_bits_per_key: options.filter_bits_per_key,
            operators: options.operators.clone(),
        })
    }

    /// The operator called `name`; `None` stays none.
    pub(crate) fn operator(&self, name: Option<&str>) -> Result<Option<Arc<dyn MergeOperator>>> {
        let Some(name) = name else { return Ok(None) };
        let given = self.operators.iter().find(|operator| operator.name() == name).cloned();
        match given.or_else(|| built_in(name)) {
            Some(operator) => Ok(Some(operator)),
            None => Err(Error::invalid(format!(
                "a keyspace needs the merge operator `{name}`; pass it to Options::merge_operator"
            ))),
        }
    }

    /// How a run for `level` of a keyspace is laid out.
    pub(crate) fn table_options(
        &self,
        keyspace: &KeyspaceState,
        level: u8,
        is_last: bool,
    ) -> TableOptions {
        let compression = self.compression.unwrap_or(match level {
            0 | 1 => Compression::None,
            _ if is_last => Compression::Zstd(1),
            _ => Compression::Lz4,
        });
        let filter = match self.filter_bits_per_key {
            0 => Filter::None,
            bits_per_key => Filter::Bloom { bits_per_key },
        };
        TableOptions {
            block_bytes: self.block_bytes,
            compression,
            filter,
            prefix: keyspace.options.prefix,
            ..TableOptions::default()
        }
    }
}
