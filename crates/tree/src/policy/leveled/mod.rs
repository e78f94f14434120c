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
//!   first; and moves that do not touch run side by side. When the database is idle, or reads have
//!   paid for it, it merges level 0 earlier (`reads`).
//!
//! Invariant of `leveldb`'s trees: nodes below level 0 have exactly one slice. Under `leveled` they
//! have more while level 0 comes down.

mod candidates;
mod leveldb;
mod manual;
mod modern;
mod reads;
#[cfg(test)]
mod tests;

use crate::invariant::Shape;

pub(super) use candidates::level0_closure;
pub use leveldb::{LEVELDB, LevelDb};
pub(super) use leveldb::{finish_node, leveldb_limits, next_node};
pub(super) use manual::pick as manual;
pub(super) use modern::merge_cheapest;
pub use modern::{MODERN, Modern};
pub(super) use reads::newest_even;

const SHAPE: Shape = Shape { stack_max: Some(1), empty_nodes: false };
