//! Leveled compaction: every level below 0 is one sorted sequence of nodes with one slice each, and
//! has `fan_out` times the bytes of the level above it. A level over its limit merges one node with
//! the nodes that it overlaps on the next.
//!
//! Two presets share the mechanics in `candidates`:
//!
//! - `leveldb` keeps LevelDB's rules to the letter, so that figures of papers that measured it can
//!   be reproduced: one merge at a time, four runs trigger level 0, 10 MiB in level 1, round robin
//!   by the last key merged, free growth of the upper inputs, outputs that overlap little of the
//!   level two below, flushes that go down to level 2 where nothing is in the way, and, as a switch
//!   that is off, compaction of nodes whose reads keep missing.
//! - `leveled` writes less: the last level's bytes decide those of the levels above, so that no
//!   level exists that does not pay; level 0 gathers runs, merges small ones among themselves and
//!   goes down when that is cheap for each byte moved; the node that is cheapest for each byte goes
//!   first; and moves that do not touch run side by side. Where
//!   nobody writes, or many read, it merges level 0 earlier (`reads`).
//!
//! Invariant of its trees: nodes below level 0 have exactly one slice.

mod candidates;
mod leveldb;
mod manual;
mod modern;
mod reads;
#[cfg(test)]
mod tests;

use crate::invariant::Shape;
use crate::plan::{Plan, Reason};
use crate::policy::stack::Why;
use crate::policy::{Descriptor, Limits, View};
use crate::version::Slice;

pub use leveldb::LevelDb;
pub(super) use leveldb::{finish_node, flush_level, last_level, next_node};
pub(super) use manual::pick as manual;
pub use modern::Modern;

const SHAPE: Shape = Shape { stack_max: Some(1), empty_nodes: false };

/// The preset `leveldb`.
pub const LEVELDB: Descriptor = Descriptor {
    name: "leveldb",
    summary: "leveled compaction by LevelDB's rules, for comparison",
    help: "Each level has ten times the bytes of the one above, beginning with 10 MiB in level 1. \
           A level over its limit merges one node, round robin, with those that it overlaps below. \
           Writes each byte about five to seven times for each level; reads few runs. Choose it to \
           compare with published figures; choose `leveled` for everything else.",
    paper: "LevelDB; the baseline of all five papers",
    options: &[
        "levels",
        "level0_runs_trigger",
        "level0_runs_slowdown",
        "level0_runs_stop",
        "level_bytes_base",
        "fan_out",
        "table_bytes_max",
        "overlap_bytes_max",
        "expansion_bytes_max",
        "flush_level_max",
        "seek_compaction",
    ],
    limits: leveldb_limits,
    make: || Box::new(LevelDb),
};

/// The preset `leveled`.
pub const MODERN: Descriptor = Descriptor {
    name: "leveled",
    summary: "leveled compaction that writes little: sizes follow the data, cheapest merges first",
    help: "The last level holds nearly all data, and decides the sizes of the levels above, so \
           that space stays within a fraction of what is kept. Level 0 gathers runs up to \
           `level0_runs_trigger` and merges its small ones among themselves until going down is \
           cheap. Choose it when reads and scans matter as much as writes.",
    paper: "RocksDB's dynamic level sizes; Lim, Andersen, Kaminsky (FAST 2016) for the costs",
    options: &[
        "levels",
        "level0_runs_trigger",
        "level_bytes_base",
        "fan_out",
        "table_bytes_max",
        "expansion_bytes_max",
        "parallel_max",
    ],
    limits: modern_limits,
    make: || Box::new(Modern),
};

/// Adjacent runs of level 0 that cost the least for each run saved become one in their place, where
/// nothing under way is in conflict with it.
pub(super) fn merge_level0(view: &View<'_>, reason: Reason, score: f64) -> Option<Plan> {
    let stack: Vec<&Slice> = view.version.level0().iter().collect();
    let plan = modern::intra_level0(view, &stack, Why { reason, score });
    plan.filter(|plan| view.allows(plan))
}

const MIB: u64 = 1 << 20;

pub(super) fn leveldb_limits(memtable_bytes: u64) -> Limits {
    let base = Limits::base(memtable_bytes);
    Limits {
        level0_runs_slowdown: Some(8),
        level0_runs_stop: Some(12),
        overlap_bytes_max: Some(10 * base.table_bytes_max),
        parallel_max: 1,
        ..base
    }
}

fn modern_limits(memtable_bytes: u64) -> Limits {
    let base = Limits::base(memtable_bytes);
    let table_bytes_max = base.memtable_bytes.clamp(MIB, 64 * MIB);
    Limits {
        level0_runs_trigger: 8,
        level_bytes_base: 16 * base.memtable_bytes,
        dynamic_levels: true,
        table_bytes_max,
        expansion_bytes_max: 32 * table_bytes_max,
        flush_level_max: 6,
        ..base
    }
}
