//! The sizes and counts that policies keep to. Each parameter of a scheme is defined here once.

use crate::version::BELOW_LEVEL;

/// Misses that a run may have before it is due, at least, in LevelDB.
pub const MISSES_MIN: u64 = 100;

/// A seek that reads are spared is worth writing this many bytes: it takes about 0.1 ms at most,
/// and moves write some 150 MB/s.
pub const SEEK_BYTES: u64 = 16 << 10;

/// The entry of a scheme's parameter in [`LIMIT_FIELDS`].
pub type LimitField = base::parameter::Parameter<Limits, Parameters>;

base::parameters! {
    /// The parameters of a policy. Bytes are bytes of runs, as written.
    all Limits;
    /// The parameters that a user set. `None`: the scheme's default.
    chosen Parameters;
    /// Every parameter that a scheme may name among its options.
    table LIMIT_FIELDS, "";
    beside {
        /// Bytes that a memtable has when it is flushed. It follows the write buffer.
        pub memtable_bytes: u64,
    }
    /// Levels of the tree, level 0 included.
    levels: u8, "levels", |levels| (2..=BELOW_LEVEL).contains(&levels);
    /// Runs in level 0 at which level 0 is due for compaction.
    level0_runs_trigger: usize, "runs";
    /// Runs in level 0 from which each write is delayed a little; `none`: never by count.
    level0_runs_slowdown: Option<usize>, "runs";
    /// Runs in level 0 at which writes wait; `none`: never by count.
    level0_runs_stop: Option<usize>, "runs";
    /// Target size of the first level below level 0. With `dynamic_levels`, the minimum size of a
    /// level of its own.
    level_bytes_base: u64, "bytes";
    /// Target size of a level, as a multiple of the target size of the level above it.
    fan_out: f64, "times", |fan_out| fan_out > 1.0;
    /// The size of the last level decides the target sizes of the levels above it.
    dynamic_levels: bool, "yes or no";
    /// Bytes at which a table ends; with `lwc` and `smrdb`, the bytes of a band.
    table_bytes_max: u64, "bytes";
    /// Maximum bytes of the next level that a table may overlap; `none`: any number.
    overlap_bytes_max: Option<u64>, "bytes";
    /// Maximum bytes of a compaction after it is expanded to neighbouring tables.
    expansion_bytes_max: u64, "bytes";
    /// The deepest level that a flush may write to.
    flush_level_max: u8, "level";
    /// Maximum number of compactions in progress.
    parallel_max: usize, "moves";
    /// Compacts tables that reads keep missing in.
    seek_compaction: bool, "yes or no";
    /// Minimum number of misses before seek compaction, however small the table is.
    seek_misses_min: u64, "misses";
    /// Maximum number of slices of a node.
    stack_max: usize, "slices";
    /// Garbage that stays in the tree while it is written to, as a share of the bytes that it lies
    /// on. An idle database keeps half of it.
    garbage_share: f64, "times", |garbage_share| garbage_share > 0.0;
    /// Number of nodes that a full node is divided into.
    division_parts: u32, "nodes";
    /// Bytes that a merge may write for each seek in a run that it would have spared reads; `none`:
    /// reads cause no merges.
    seek_bytes: Option<u64>, "bytes";
    /// Linked slices at which a table is compacted; `none`: by the share of reads.
    links_max: Option<usize>, "slices";
}

impl Limits {
    /// What a scheme has where it says nothing else: LevelDB's sizes, without bounds by count.
    pub(super) fn base(memtable_bytes: u64) -> Limits {
        const MIB: u64 = 1 << 20;
        Limits {
            levels: 7,
            level0_runs_trigger: 4,
            level0_runs_slowdown: None,
            level0_runs_stop: None,
            memtable_bytes: memtable_bytes.max(1),
            level_bytes_base: 10 * MIB,
            fan_out: 10.0,
            dynamic_levels: false,
            table_bytes_max: 2 * MIB,
            overlap_bytes_max: None,
            expansion_bytes_max: 50 * MIB,
            flush_level_max: 2,
            parallel_max: 4,
            seek_compaction: false,
            seek_misses_min: MISSES_MIN,
            stack_max: 1,
            garbage_share: 0.4,
            division_parts: 1,
            seek_bytes: Some(SEEK_BYTES),
            links_max: None,
        }
    }

    /// Bytes that a level below level 0 may have where sizes are fixed.
    pub(super) fn level_bytes(&self, level: u8) -> f64 {
        (self.level_bytes_base as f64 * self.fan_out.powi(i32::from(level) - 1)).max(1.0)
    }
}
