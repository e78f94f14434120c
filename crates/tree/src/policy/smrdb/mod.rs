//! Two levels of tables that are as large as a band and may overlap.
//!
//! Source: SMRDB (Pitchumani, Hughes, Miller, SYSTOR 2015), as the LWC-tree (section 4.2) and
//! SEALDB (section IV) describe and measure it.
//!
//! - *A table is a band*: a file of up to `table_bytes_max` bytes, written in one go and freed as a
//!   whole. Runs of level 0 that are smaller and overlap are merged to bands there first.
//! - *Two levels*, and both may have tables with overlapping keys. A band goes down by an edit: the
//!   nodes of the lower level show their parts of it. The nodes are no unit of storage; they bound
//!   what a read must look at.
//! - *What overlaps most is merged.* How many nodes a band shows in says how wide it is. Where
//!   `fan_out` bands of a node are of one width (between two powers of `fan_out`), they become as
//!   many bands that are that much narrower, in the same place of the stacks. Narrow ones are
//!   merged node by node, and what comes out are new nodes, so that there are more of them the more
//!   data there is.
//! - *No more than `stack_max`* slices of a key: then a node's are merged, whatever their width.
//!
//! The lower level is the deepest that holds data, and what another scheme left on levels between
//! goes down to it by edits.
//!
//! Invariants of its trees: none beyond those of every tree. Stacks are high.

mod pick;
#[cfg(test)]
mod tests;

use crate::invariant::Shape;
use crate::plan::Plan;
use crate::policy::{Debt, Descriptor, Limits, Policy, View, Wanted, leveled};

/// Two levels of overlapping bands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Smrdb;

/// The scheme `smrdb`.
pub const SMRDB: Descriptor = Descriptor {
    name: "smrdb",
    summary: "two levels of tables as large as a band that may overlap, as SMRDB has them",
    help: "Every table fills a band of a shingled disk, `table_bytes_max` (bytes, 40 MiB or a \
           memtable, whichever is more), and is written and freed as a whole. Tables of both \
           levels may overlap; where `fan_out` (a count, 20) of equal width do, they are merged to \
           narrower ones. Choose it to compare with published figures, or where bands must be \
           written whole and reads are rare. It writes less than `leveldb` in merges that are much \
           larger, about `fan_out` bands each, and holds the space of those until they end. It \
           costs reads: up to `stack_max` (a count, 80) tables may have a key, and a scan merges \
           them all.",
    paper: "Pitchumani, Hughes, Miller, SMRDB: Key-Value Data Store for Shingled Magnetic \
            Recording Disks, 2015",
    options: &["level0_runs_trigger", "fan_out", "table_bytes_max", "stack_max", "parallel_max"],
    limits,
    make: || Box::new(Smrdb),
};

const MIB: u64 = 1 << 20;

fn limits(memtable_bytes: u64) -> Limits {
    let base = Limits::base(memtable_bytes);
    let table_bytes_max = base.memtable_bytes.max(40 * MIB);
    let runs = table_bytes_max / base.memtable_bytes;
    Limits {
        levels: 2,
        level0_runs_trigger: runs.clamp(1, 10) as usize,
        level_bytes_base: 20 * table_bytes_max,
        fan_out: 20.0,
        table_bytes_max,
        expansion_bytes_max: 40 * table_bytes_max,
        flush_level_max: 0,
        parallel_max: 2,
        stack_max: 80,
        ..base
    }
}

impl Policy for Smrdb {
    fn name(&self) -> &'static str {
        SMRDB.name
    }

    fn shape(&self) -> Shape {
        Shape::ANY
    }

    fn pick(&self, view: &View<'_>) -> Option<Plan> {
        if view.is_full() {
            return None;
        }
        pick::merge(view).or_else(|| match pick::is_drained(view) {
            true => pick::level0(view),
            false => pick::drain(view),
        })
    }

    fn scores(&self, view: &View<'_>) -> Vec<f64> {
        pick::scores(view)
    }

    fn debt(&self, view: &View<'_>) -> Debt {
        Debt::new(view.version.level0().len(), pick::debt(view))
    }

    fn pick_manual(&self, view: &View<'_>, wanted: &Wanted, to_level: Option<u8>) -> Option<Plan> {
        leveled::manual(view, wanted, to_level)
    }
}
