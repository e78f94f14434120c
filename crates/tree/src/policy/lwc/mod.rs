//! Lightweight compaction: tables that grow by segments instead of being rewritten.
//!
//! Source: the LWC-tree (Yao et al., ACM TOS 13(4), 2017), sections 3 and 4.4.
//!
//! - *Lightweight compaction.* A full node is read, merged, cut at the ranges of the nodes below
//!   it, and each part is appended to the table file of its node as a new segment (a run). Nothing
//!   of the nodes below is read; the full node is empty afterwards and keeps its key range.
//! - *A table has a bound*, `table_bytes_max`: the band of a shingled disk. A node is full when the
//!   next segment, as big as the last one, would not fit; it is emptied or divided before it gets
//!   more. What does not fit all the same goes on in a table of its own.
//! - *Equal division.* A full node with nothing below it becomes `division_parts` nodes of equal
//!   bytes on its level. That is how the last level grows, and where old versions die.
//! - *Cold start.* Where the next level has no node that overlaps, the keys that come down are cut
//!   into `division_parts` tables.
//! - *Levels grow upwards.* A node with more than three times `fan_out` nodes below it would hand
//!   out segments that are too small. Below level 0 a full one is divided; level 0 goes to the
//!   empty level above instead, a cold start. So the tree has the levels that its size needs, and
//!   takes over the tree of any other scheme as its lower levels.
//! - *Workload balance.* An emptied node has no data, so that an end of its range can go to a
//!   neighbour by an edit. It gives to a neighbour that has less than half a table and fewer nodes
//!   below, half of the difference.
//! - *Segments have a bound*, `stack_max`: a node with more, which reads would suffer from, is
//!   rewritten as one run.
//!
//! The paper appends the merged filters and indexes of all segments after each new segment, and
//! keeps a copy in the table above (metadata aggregation). Here a segment keeps its own filter and
//! index, and the version has what a compaction needs to know of the tables below: their ranges,
//! files and lengths. So a compaction reads one table, and the metadata of a table are written
//! once and not once for every later segment.
//!
//! Invariants of its trees: none beyond those of every tree. Nodes may be empty, and stacks high.

mod pick;
#[cfg(test)]
mod tests;

use crate::invariant::Shape;
use crate::plan::Plan;
use crate::policy::{Debt, Descriptor, Limits, Policy, View, Wanted, leveled, levels};
use base::KeyRange;

/// The LWC-tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lwc;

/// The scheme `lwc`.
pub const LWC: Descriptor = Descriptor {
    name: "lwc",
    summary: "the LWC-tree: tables grow by appended segments and are rarely rewritten",
    help: "A full table is cut at the key ranges of the tables below it, and each part is appended \
           to one of those, which are not read. So a byte is written about once for each level, \
           and a table stays in one place and within `table_bytes_max` (bytes; the band of a \
           shingled disk, 40 MiB). Full tables of the last level are divided into \
           `division_parts` (a count, 12). Choose it for heavy writing of large values, most of \
           all on shingled disks. It costs reads: a point read asks the filters of up to \
           `stack_max` (a count, 128) segments in each level, and a scan merges them. It costs \
           space: overwritten records stay until their table is emptied or divided. With `fan_out` \
           (a ratio, 10) larger there are fewer levels and smaller segments. Level 0 goes down \
           at `level0_runs_trigger` (a count) runs, about one table.",
    paper: "Yao et al., Building Efficient Key-Value Stores via a Lightweight Compaction Tree, \
            2017",
    options: &[
        "levels",
        "level0_runs_trigger",
        "fan_out",
        "table_bytes_max",
        "stack_max",
        "division_parts",
        "parallel_max",
    ],
    limits,
    make: || Box::new(Lwc),
};

const MIB: u64 = 1 << 20;

fn limits(memtable_bytes: u64) -> Limits {
    let base = Limits::base(memtable_bytes);
    let table_bytes_max = 40 * MIB;
    let runs = table_bytes_max / base.memtable_bytes;
    Limits {
        level0_runs_trigger: runs.clamp(2, 10) as usize,
        level_bytes_base: 10 * table_bytes_max,
        table_bytes_max,
        flush_level_max: 6,
        stack_max: 128,
        division_parts: 12,
        ..base
    }
}

impl Policy for Lwc {
    fn name(&self) -> &'static str {
        LWC.name
    }

    fn shape(&self) -> Shape {
        Shape::ANY
    }

    fn pick(&self, view: &View<'_>) -> Option<Plan> {
        if view.is_full() {
            return None;
        }
        pick::most_urgent(view).or_else(|| pick::balance(view))
    }

    fn scores(&self, view: &View<'_>) -> Vec<f64> {
        pick::scores(view)
    }

    fn debt(&self, view: &View<'_>) -> Debt {
        Debt::new(view.version.level0().len(), pick::debt(view))
    }

    fn flush_level(&self, view: &View<'_>, range: &KeyRange) -> u8 {
        // All the way down or not at all: a level for one run would be one more for all others.
        let last = levels::last_level(view.version, view.limits);
        if levels::flush_level(view, range) >= last { last } else { 0 }
    }

    fn pick_manual(&self, view: &View<'_>, wanted: &Wanted, to_level: Option<u8>) -> Option<Plan> {
        leveled::manual(view, wanted, to_level)
    }
}
