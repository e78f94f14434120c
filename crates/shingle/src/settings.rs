//! Turns options into the numbers that the engine works with.

use crate::admission::AdmissionLimits;
use crate::compaction_filter::CompactionFilter;
use crate::event::EventListener;
use crate::keyspace::KeyspaceState;
use crate::memtable::Memtable;
use crate::merge_operator::{KeyspaceOperator, MergeOperator, built_in};
use crate::notes::THRESHOLD;
use crate::options::{Expert, Options, Retention};
use crate::value_rules::ValueRules;
use base::{Error, Result};
use media::{FileStore, lacks};
use std::sync::Arc;
use table::{Compression, Filter, TableOptions};
use tree::policy::{Descriptor, Limits};
use values::{ValueLayout, ValueLimits};

/// The logs may have this many write buffers. That is more than memtables hold, active and sealed,
/// when writers are stopped, so that the limit on logs alone does not cause flushes under load.
const LOG_BUFFERS_MAX: u64 = 4;
/// The read buffers of a background job may take one part in this many of the memory budget.
const JOB_SHARE: u64 = 24;
/// The segments that GC reads may stay in memory if they take at most one part in this many of the
/// budget.
const COLLECTION_SHARE: u64 = 4;

/// The numbers that an open database works with.
#[derive(Clone)]
pub(crate) struct Settings {
    /// The options that they follow from.
    pub options: Options,
    /// A memtable is sealed at this size.
    pub memtable_bytes_max: u64,
    entry_bytes_free: u64,
    flush_keeps_hidden: bool,
    /// This many sealed memtables of a keyspace are flushed together.
    pub flush_memtables: usize,
    /// Maximum number of them that become one run.
    pub flush_memtables_max: usize,
    /// Everything sealed is flushed at this size.
    pub flush_bytes: u64,
    /// The memory budget: limit of the account of `engine::memory`.
    pub memory_bytes: u64,
    /// The size of the block cache, if the user set it.
    pub cache_bytes: Option<u64>,
    /// A log of this size ends with the next seal.
    pub log_bytes_soft: u64,
    /// When the logs together exceed this, flushes make the oldest unneeded.
    pub log_bytes_max: u64,
    pub background_threads: usize,
    pub step_bytes: u64,
    pub readahead_bytes: u32,
    /// The same for a long scan where each read goes to a device.
    pub device_walk_bytes_max: u32,
    /// Maximum bytes of the read buffers of one background job.
    pub job_bytes_max: u64,
    /// GC reads a group of at most this many bytes once, and a larger one twice.
    pub collection_bytes_kept_max: u64,
    /// Bytes to keep free on the medium; `None`: they follow the database's size.
    pub reserve_bytes: Option<u64>,
    /// How long logs are kept for change feeds; `None`: not at all.
    pub change_retention: Option<Retention>,
    pub admission: AdmissionLimits,
    pub scheme: &'static Descriptor,
    pub limits: Limits,
    values: &'static values::Descriptor,
    value_limits: ValueLimits,
    /// Minimum size of a separated value, where the layout separates.
    pub value_threshold_bytes: u64,
    /// Commits write large values to segments.
    pub writes_values_at_commit: bool,
    /// A memtable is sealed when its commits have written this many bytes of separated values.
    pub unflushed_value_bytes_max: u64,
    pub start_threads: bool,
    block_bytes: u32,
    index_block_bytes: u32,
    compression: Option<Compression>,
    filters: Filters,
    operators: Vec<Arc<dyn MergeOperator>>,
    pub listener: Option<Arc<dyn EventListener>>,
    compaction_filters: Vec<Arc<dyn CompactionFilter>>,
    /// Maximum time that an expired value stays before a compaction is due, in milliseconds.
    pub expiry_delay_ms: u64,
    /// Keyspaces open without their operator.
    pub absent_operators: bool,
}

/// Separation threshold in bytes, if the user did not set one and none was measured.
const VALUE_THRESHOLD_BYTES: u64 = 1024;
/// An expired value stays on the medium no longer than a day before a compaction is due.
const EXPIRY_DELAY_MS: u64 = 24 * 3600 * 1000;

/// Stores a measured threshold in `store`, for later openings.
pub(crate) fn keep_threshold(store: &dyn FileStore, bytes: u64) -> Result<()> {
    let notes = store.notes().ok_or_else(|| lacks(store, "notes"))?;
    notes.write_note(THRESHOLD, format!("{bytes}\n").as_bytes(), false)
}

/// The threshold in `store`. One that cannot be read counts as not measured: no opening needs it.
fn kept_threshold(store: &dyn FileStore) -> Option<u64> {
    let note = store.notes()?.read_note(THRESHOLD).ok()??;
    std::str::from_utf8(&note).ok()?.trim().parse().ok().filter(|&bytes| bytes > 0)
}

/// The options of a database, with what it shares with others in place of its own.
fn shared(options: &Options) -> Options {
    let mut options = options.clone();
    if let Some(pooled) = options.resources.as_ref().and_then(|shared| shared.pooled.as_ref()) {
        options.background_threads = pooled.pool.threads();
        options.background_bytes_per_second = pooled.background_bytes_per_second;
        options.memory_bytes = pooled.budget.bytes();
        options.cache_bytes = None;
    }
    options
}

/// The preset's admission limits, with the expert options applied.
fn adjust(
    mut admission: AdmissionLimits,
    expert: &Expert,
    layout: &dyn ValueLayout,
    limits: &ValueLimits,
) -> AdmissionLimits {
    admission.rate_max = expert.slow_rate_bytes_max.unwrap_or(admission.rate_max);
    admission.rate_min = expert.slow_rate_bytes_min.unwrap_or(admission.rate_min);
    if let Some(capacity) = limits.capacity_bytes.filter(|_| layout.separates()) {
        // GC is due from the first limit on; beyond the second only GC may write.
        let reserve = layout.collection_bytes_max(limits);
        admission.value_bytes_soft = capacity - 2 * reserve;
        admission.value_bytes_hard = capacity - reserve;
    }
    admission
}

impl Settings {
    pub(crate) fn new(options: &Options) -> Result<Settings> {
        let options = &shared(options);
        let scheme = tree::policy::by_name(&options.scheme)?;
        let values = values::by_name(&options.values)?;
        let expert = &options.expert;
        let preset = options.preset.numbers();
        let write_buffer = options.write_buffer();
        let memtable_bytes_max = expert
            .memtable_bytes
            .unwrap_or_else(|| (preset.memtable_bytes)(write_buffer).max(4096));
        let flush_memtables = (write_buffer / memtable_bytes_max.max(1)).max(1) as usize;
        let log_bytes_max = expert.log_bytes.unwrap_or(LOG_BUFFERS_MAX * write_buffer);
        let (limits, value_limits) = (options.limits()?, options.value_limits()?);
        let layout = (values.make)();
        let (bytes, age) = (options.changes_retention_bytes, options.changes_retention_age);
        let change_retention = Retention::new(bytes, age);
        let admission = (preset.admission)(&limits, write_buffer);
        let admission = adjust(admission, expert, &*layout, &value_limits);
        Ok(Settings {
            options: options.clone(),
            memtable_bytes_max,
            entry_bytes_free: preset.entry_bytes_free,
            flush_keeps_hidden: preset.flush_keeps_hidden,
            flush_memtables,
            flush_memtables_max: preset.flush_memtables_max,
            flush_bytes: write_buffer,
            log_bytes_soft: log_bytes_max / LOG_BUFFERS_MAX,
            memory_bytes: options.memory_bytes,
            cache_bytes: options.cache_bytes,
            log_bytes_max,
            background_threads: options.background_threads.clamp(1, preset.background_threads_max),
            step_bytes: expert.step_bytes.unwrap_or(1 << 20),
            readahead_bytes: expert.readahead_bytes.unwrap_or(READAHEAD_BYTES),
            device_walk_bytes_max: device_walk_bytes_max(options),
            job_bytes_max: options.memory_bytes / JOB_SHARE,
            collection_bytes_kept_max: options.memory_bytes / COLLECTION_SHARE,
            reserve_bytes: expert.reserve_bytes,
            change_retention,
            admission,
            scheme,
            limits,
            values,
            value_limits,
            value_threshold_bytes: options.value_threshold_bytes.unwrap_or(VALUE_THRESHOLD_BYTES),
            writes_values_at_commit: layout.writes_at_commit()
                && expert.values_at_commit.unwrap_or(true)
                && change_retention.is_none(),
            unflushed_value_bytes_max: (log_bytes_max / (flush_memtables as u64 + 1))
                .max(memtable_bytes_max),
            start_threads: !expert.no_threads,
            block_bytes: expert.block_bytes.unwrap_or(4096),
            index_block_bytes: expert.index_block_bytes.unwrap_or(4096),
            compression: options.compression,
            filters: Filters::new(options.filter_bits_per_key, preset.filter_bits_step, expert),
            operators: options.operators.clone(),
            listener: options.listener.clone(),
            compaction_filters: options.compaction_filters.clone(),
            expiry_delay_ms: options.expert.expiry_delay_ms.unwrap_or(EXPIRY_DELAY_MS),
            absent_operators: options.absent_operators || options.read_only,
        })
    }

    /// Settings for the database in `store`, which may have values measured for it.
    pub(crate) fn of_database(options: &Options, store: &dyn FileStore) -> Result<Settings> {
        let mut settings = Settings::new(options)?;
        if options.value_threshold_bytes.is_none() {
            let kept = kept_threshold(store);
            settings.value_threshold_bytes = kept.unwrap_or(settings.value_threshold_bytes);
        }
        // A user who gives a database a cold store wants values in it.
        settings.value_limits.hotness |=
            options.expert.values.hotness.is_none() && store.cold_store().is_some();
        Ok(settings)
    }

    /// `memtable` must be sealed.
    pub(crate) fn is_full(&self, memtable: &Memtable) -> bool {
        let free = memtable.entries() * self.entry_bytes_free;
        memtable.bytes().saturating_sub(free) >= self.memtable_bytes_max
    }

    /// A flush keeps the versions that no reader can see. Where values are separated it does not:
    /// their segments' garbage is counted when versions are dropped.
    pub(crate) fn flush_keeps_hidden(&self, keyspace: &KeyspaceState) -> bool {
        self.flush_keeps_hidden && !keyspace.values.layout.separates()
    }

    /// The segments of a keyspace are kept within a capacity.
    pub(crate) fn bounds_values(&self) -> bool {
        self.value_limits.capacity_bytes.is_some()
    }

    /// How a keyspace treats large values.
    pub(crate) fn value_rules(&self) -> ValueRules {
        let limits = self.value_limits.clone();
        ValueRules::new((self.values.make)(), limits, self.value_threshold_bytes)
    }

    /// The operator of an existing keyspace. If the process does not know it, and may open the
    /// keyspace all the same, a substitute.
    pub(crate) fn operator_of(
        &self,
        keyspace: &str,
        name: Option<&str>,
    ) -> Result<Option<Arc<KeyspaceOperator>>> {
        let Some(name) = name else { return Ok(None) };
        let operator = match self.operator(Some(name)) {
            Ok(operator) => operator.map(|operator| KeyspaceOperator::new(keyspace, operator)),
            Err(_) if self.absent_operators => Some(KeyspaceOperator::absent(keyspace, name)),
            Err(_) => {
                return Err(Error::invalid(format!(
                    "keyspace `{keyspace}` needs the merge operator `{name}`, which this process \
                     does not know: pass it to Options::merge_operator, or open without it by \
                     Options::absent_operators, or read-only"
                )));
            }
        };
        Ok(operator.map(Arc::new))
    }

    /// The operator called `name`; `None` stays none.
    pub(crate) fn operator(&self, name: Option<&str>) -> Result<Option<Arc<dyn MergeOperator>>> {
        let Some(name) = name else { return Ok(None) };
        let given = self.operators.iter().find(|operator| operator.name() == name).cloned();
        match given.or_else(|| built_in(name)) {
            Some(operator) => Ok(Some(operator)),
            None => Err(Error::invalid(format!(
                "no merge operator is called `{name}`; pass it to Options::merge_operator"
            ))),
        }
    }

    /// The filter called `name`; `None` also where the process does not know it.
    pub(crate) fn filter(&self, name: Option<&str>) -> Option<Arc<dyn CompactionFilter>> {
        self.compaction_filters.iter().find(|filter| Some(filter.name()) == name).cloned()
    }

    /// The process knows the filter called `name`.
    pub(crate) fn check_filter(&self, name: Option<&str>) -> Result<()> {
        match name {
            Some(name) if self.filter(Some(name)).is_none() => Err(Error::invalid(format!(
                "no compaction filter is called `{name}`; pass it to Options::compaction_filter"
            ))),
            _ => Ok(()),
        }
    }

    /// The layout of a run for `level` of a keyspace, when `levels_below` it have data.
    pub(crate) fn table_options(
        &self,
        keyspace: &KeyspaceState,
        level: u8,
        levels_below: usize,
    ) -> TableOptions {
        let compression = self.compression.unwrap_or(match level {
            0 | 1 => Compression::None,
            _ if levels_below == 0 => Compression::Zstd(1),
            _ => Compression::Lz4,
        });
        TableOptions {
            block_bytes: self.block_bytes,
            index_block_bytes: self.index_block_bytes,
            compression,
            filter: self.filters.of(level, levels_below),
            prefix: keyspace.options.prefix,
            ..TableOptions::default()
        }
    }
}

/// Bytes of one read.
const READAHEAD_BYTES: u32 = 256 << 10;
/// On a disk whose arm moves from stream to stream, a read of this length takes as long as the
/// movement. A scan has a buffer of this length for each run that it reads.
const DEVICE_WALK_BYTES_MAX: u64 = 1 << 20;
const DEVICE_WALK_SHARE: u64 = 256;

fn device_walk_bytes_max(options: &Options) -> u32 {
    let share = (options.memory_bytes / DEVICE_WALK_SHARE).min(DEVICE_WALK_BYTES_MAX);
    options.expert.device_walk_bytes_max.unwrap_or(READAHEAD_BYTES.max(share as u32))
}

/// More filter bits per key than this are not worth their probes.
const FILTER_BITS_MAX: u8 = 16;

/// The filters of the levels.
///
/// A get probes a filter on each level above the one that has its key. Every false positive costs
/// the same read, but each level has 10 % of the keys of the next. So additional bits lower the sum
/// of false positives most, for their memory, on the upper levels (the argument of Monkey, SIGMOD
/// 2017).
#[derive(Clone)]
struct Filters {
    bits_per_key: u8,
    bits_step: u8,
    bits_last: u8,
    ribbon_level: Option<u8>,
}

impl Filters {
    fn new(bits_per_key: u8, bits_step: u8, expert: &Expert) -> Filters {
        Filters {
            bits_per_key,
            bits_step: expert.filter_bits_step.unwrap_or(bits_step),
            bits_last: expert.filter_bits_last.unwrap_or(bits_per_key),
            ribbon_level: expert.filter_ribbon_level,
        }
    }

    /// The filter of runs for `level`, when `levels_below` it have data.
    fn of(&self, level: u8, levels_below: usize) -> Filter {
        let more = usize::from(self.bits_step) * levels_below;
        let bits = match (self.bits_per_key, levels_below) {
            (_, 0) => self.bits_last,
            (0, _) => 0,
            // The user's own number is never reduced.
            (bits, _) => (usize::from(bits) + more).min(FILTER_BITS_MAX.max(bits).into()) as u8,
        };
        match bits {
            0 => Filter::None,
            // The same false positive rate as the Bloom filter: its bits times the logarithm of
            // two.
            bits if self.ribbon_level.is_some_and(|from| level >= from) => {
                let bits = (f64::from(bits) * std::f64::consts::LN_2).round() as u8;
                Filter::Ribbon { bits_per_key: bits.clamp(1, 24) }
            }
            bits_per_key => Filter::Bloom { bits_per_key },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Preset;
    use base::EntryKind;
    use table::batch::Operation;

    fn filters(change: impl FnOnce(&mut Expert)) -> Filters {
        let mut expert = Expert::default();
        change(&mut expert);
        Filters::new(10, 2, &expert)
    }

    fn bloom(bits_per_key: u8) -> Filter {
        Filter::Bloom { bits_per_key }
    }

    #[test]
    fn upper_levels_have_more_bits_up_to_a_bound() {
        let filters = filters(|_| {});
        let all: Vec<Filter> = (0..6).map(|below| filters.of(5 - below, below.into())).collect();
        assert_eq!(all, [10, 12, 14, 16, 16, 16].map(bloom));
        let even = Filters::new(20, 2, &Expert::default());
        assert_eq!([even.of(0, 3), even.of(3, 0)], [bloom(20), bloom(20)]);
    }

    #[test]
    fn no_filters_are_none_anywhere() {
        let filters = Filters::new(0, 2, &Expert::default());
        assert!((0..5).all(|below| filters.of(1, below) == Filter::None));
    }

    #[test]
    fn the_last_level_can_do_without() {
        let filters = filters(|e| e.filter_bits_last = Some(0));
        assert_eq!([filters.of(4, 0), filters.of(3, 1)], [Filter::None, bloom(12)]);
    }

    #[test]
    fn ribbon_filters_have_the_bits_of_equal_false_answers() {
        let filters = filters(|e| e.filter_ribbon_level = Some(3));
        assert_eq!(filters.of(2, 1), bloom(12));
        assert_eq!(filters.of(3, 0), Filter::Ribbon { bits_per_key: 7 });
    }

    #[test]
    fn leveldbs_preset_seals_a_memtable_at_as_many_entries_as_leveldb() {
        let settings = Settings::new(&Options::new().preset(Preset::LevelDb)).unwrap();
        assert_eq!((settings.background_threads, settings.flush_memtables_max), (1, 1));
        // LevelDB 1.23, memtables of 4 MiB: 10 M puts of 100 bytes filled 354 of them, and 2 M puts
        // of 1 KiB filled 513.
        for (value_bytes, entries) in [(100, 10_000_000 / 354), (1024, 2_000_000 / 513)] {
            let (memtable, mut writer) = Memtable::new(4 << 20).unwrap();
            while !settings.is_full(&memtable) {
                let n = memtable.entries();
                let key = format!("{:016}", n * 7919 % 2_500_000);
                let (id, value) = (base::KeyspaceId(0), vec![0; value_bytes]);
                let put = Operation::new(id, EntryKind::Put, key.as_bytes(), &value).unwrap();
                writer.insert(&put, n + 1).unwrap();
            }
            let difference = memtable.entries().abs_diff(entries);
            assert!(difference * 50 < entries, "{} for {entries}", memtable.entries());
        }
    }
}
