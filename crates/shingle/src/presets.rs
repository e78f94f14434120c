//! Presets: the numbers behind each preset's name. Only this module knows them.

use crate::admission::AdmissionLimits;
use crate::options::Preset;
use tree::policy::Limits;

/// The maximum memtable size of the modern preset, where the write buffer is not huge: inserts and
/// lookups in a small memtable stay in the processor's caches. Four or more are flushed together,
/// so the active one is small beside the sealed ones.
const MEMTABLE_BYTES_MAX: u64 = 16 << 20;

/// LevelDB's memtable has as many links, 4/3 for an entry, but without the eight bytes of key in
/// each. So its memtable of the same size has more entries, and its runs are fewer and larger.
const LEVELDB_ENTRY_BYTES_FREE: u64 = 8 * 4 / 3;

/// What a preset decides beside the limits of its scheme.
pub(crate) struct PresetNumbers {
    /// The scheme, when none is named.
    pub scheme: &'static str,
    /// Memtable bytes that are flushed together, as a function of the memory budget.
    pub write_buffer_bytes: fn(memory_bytes: u64) -> u64,
    /// Bytes of one memtable, as a function of the write buffer.
    pub memtable_bytes: fn(write_buffer_bytes: u64) -> u64,
    /// Filter bits per key that a level has more than the next deeper one.
    pub filter_bits_step: u8,
    /// Bytes of each entry that do not count towards a full memtable.
    pub entry_bytes_free: u64,
    /// A flush keeps every version of an inline value, those that no reader can see too.
    pub flush_keeps_hidden: bool,
    /// Maximum number of memtables that become one run.
    pub flush_memtables_max: usize,
    /// Maximum number of threads, even if the user asks for more.
    pub background_threads_max: usize,
    /// Where throttling begins and writes stop, derived from the sizes of the tree.
    pub admission: fn(&Limits, write_buffer_bytes: u64) -> AdmissionLimits,
}

impl Preset {
    pub(crate) fn numbers(self) -> PresetNumbers {
        match self {
            Preset::Modern => PresetNumbers {
                scheme: "adaptive",
                write_buffer_bytes: |memory| (memory / 5).max(64 << 10),
                memtable_bytes: |buffer| (buffer / 4).min(MEMTABLE_BYTES_MAX.max(buffer / 8)),
                filter_bits_step: 2,
                entry_bytes_free: 0,
                flush_keeps_hidden: false,
                flush_memtables_max: usize::MAX,
                background_threads_max: usize::MAX,
                admission: modern_admission,
            },
            Preset::LevelDb => PresetNumbers {
                scheme: "leveldb",
                write_buffer_bytes: |_| 4 << 20,
                memtable_bytes: |buffer| buffer,
                filter_bits_step: 0,
                entry_bytes_free: LEVELDB_ENTRY_BYTES_FREE,
                flush_keeps_hidden: true,
                flush_memtables_max: 1,
                background_threads_max: 1,
                admission: leveldb_admission,
            },
        }
    }
}

/// Smooth: the rate falls with the pressure, and only the memory budget stops a writer.
fn modern_admission(limits: &Limits, write_buffer: u64) -> AdmissionLimits {
    let trigger = limits.level0_runs_trigger as u64;
    let base = limits.level_bytes_base.max(write_buffer * trigger);
    AdmissionLimits {
        // One buffer is being flushed while a second one fills.
        sealed_bytes_soft: write_buffer * 3 / 2,
        sealed_bytes_hard: write_buffer * 2,
        level0_runs_soft: trigger * 4,
        level0_runs_hard: trigger * 12,
        level0_stop: false,
        debt_bytes_soft: base * 16,
        debt_bytes_hard: base * 64,
        garbage_percent_soft: 120,
        garbage_percent_hard: 220,
        value_bytes_soft: u64::MAX - 1,
        value_bytes_hard: u64::MAX,
        value_debt_percent_soft: 200,
        value_debt_percent_hard: 600,
        rate_max: 256 << 20,
        rate_min: 4 << 20,
        fixed_delay_ns: None,
    }
}

/// LevelDB: a full memtable waits for the one before it. At 8 runs in level 0 each write waits a
/// millisecond; at 12 writes stop.
fn leveldb_admission(limits: &Limits, write_buffer: u64) -> AdmissionLimits {
    AdmissionLimits {
        sealed_bytes_soft: u64::MAX / 2,
        sealed_bytes_hard: write_buffer * 3 / 2,
        level0_runs_soft: limits.level0_runs_slowdown.unwrap_or(8) as u64,
        level0_runs_hard: limits.level0_runs_stop.unwrap_or(12) as u64,
        level0_stop: true,
        debt_bytes_soft: u64::MAX / 2,
        debt_bytes_hard: u64::MAX,
        garbage_percent_soft: u64::MAX - 1,
        garbage_percent_hard: u64::MAX,
        value_bytes_soft: u64::MAX - 1,
        value_bytes_hard: u64::MAX,
        value_debt_percent_soft: u64::MAX - 1,
        value_debt_percent_hard: u64::MAX,
        rate_max: u64::MAX / 2,
        rate_min: 1,
        fixed_delay_ns: Some(1_000_000),
    }
}
