//! Size-tiered compaction: a level is a stack of runs of about equal size. When it has `stack_max`
//! of them, they are merged into one, which goes on top of the next level's stack; so each byte is
//! written about once for each level, and a level's runs are `stack_max` times those above it.
//!
//! - The merged run is appended (`Move::Append`) to the nodes of the next level, cut at their
//!   ranges; where there is none it becomes a node. A tree that this scheme made itself has one
//!   node on a level. One that leveled compaction left has many, each with a stack of its own, and
//!   keeps them: merges stay as small as they were.
//! - On the last level, or where nothing lies below and newer slices have `SPACE_TIMES` times the
//!   bytes of the oldest, a stack is merged where it is: there is where overwritten entries and
//!   tombstones go.
//! - Nodes left empty, with nothing under them, go.
//!
//! What Cassandra calls size-tiered and RocksDB universal; the lazy baseline of the LDC paper.

#[cfg(test)]
mod tests;

use super::levels::{flush_level, last_level};
use super::stack::{self, down, drop_empty, due, height_score_of_level, keys, merge};
use super::why::Why;
use crate::invariant::Shape;
use crate::plan::{Plan, Reason};
use crate::policy::{Debt, Descriptor, Limits, Policy, View, Wanted};
use crate::version::Node;
use base::KeyRange;
use std::sync::Arc;

/// The scheme `tiered`.
pub const TIERED: Descriptor = Descriptor {
    name: "tiered",
    summary: "size-tiered compaction: equal runs gather and are merged into the next larger size",
    help: "A level gathers `stack_max` runs, which become one run of the next level: each byte is \
           written about once for each level. Costs reads, which probe up to `stack_max` runs \
           of every level, space, up to three times what is kept when everything is overwritten \
           and that again while the largest merge runs, and long merges. Choose it for data that \
           is written much and read little, on a medium with free space. `stack_max` and \
           `level0_runs_trigger` are runs; fewer of them mean fewer to read and more to write.",
    paper: "size-tiered compaction of Cassandra; RocksDB's universal compaction",
    options: &["levels", "level0_runs_trigger", "stack_max", "parallel_max"],
    limits,
    make: || Box::new(Tiered),
};

/// Newer slices of the deepest stack may have this many times the bytes of the oldest.
const SPACE_TIMES: u64 = 2;

fn limits(memtable_bytes: u64) -> Limits {
    let base = Limits::base(memtable_bytes);
    Limits {
        level_bytes_base: base.memtable_bytes.saturating_mul(4),
        fan_out: 4.0,
        // A run is never cut.
        table_bytes_max: u64::MAX,
        parallel_max: 2,
        stack_max: 4,
        ..base
    }
}

/// Size-tiered compaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tiered;

impl Policy for Tiered {
    fn name(&self) -> &'static str {
        TIERED.name
    }

    fn shape(&self) -> Shape {
        Shape::ANY
    }

    fn pick(&self, view: &View<'_>) -> Option<Plan> {
        if view.is_full() {
            return None;
        }
        let is_free = |plan: &Plan| view.allows(plan);
        let last = last_level(view.version, view.limits);
        let high = due(view).into_iter().map(|(score, level, node)| {
            let reason = if level == 0 { Reason::Level0Runs } else { Reason::StackHeight };
            let why = Why { reason, score };
            if level < last {
                down(view, level, node, why)
            } else {
                in_place(view, level, node, why)
            }
        });
        high.chain(garbage(view)).find(is_free).or_else(|| drop_empty(view))
    }

    fn scores(&self, view: &View<'_>) -> Vec<f64> {
        let last = last_level(view.version, view.limits);
        (0..=last).map(|level| height_score_of_level(view, level)).collect()
    }

    fn debt(&self, view: &View<'_>) -> Debt {
        let pending_bytes = due(view).iter().map(|(_, _, node)| node.bytes()).sum();
        Debt::new(view.version.level0().len(), pending_bytes)
    }

    fn flush_level(&self, view: &View<'_>, range: &KeyRange) -> u8 {
        flush_level(view, range)
    }

    fn pick_manual(&self, view: &View<'_>, wanted: &Wanted, to_level: Option<u8>) -> Option<Plan> {
        stack::manual(view, wanted, to_level)
    }
}

fn in_place(view: &View<'_>, level: u8, node: &Node, why: Why) -> Plan {
    merge(view, level, node, level, why)
}

/// Stacks with nothing below, most of whose entries may have been overwritten since the oldest.
fn garbage<'a>(view: &'a View<'a>) -> impl Iterator<Item = Plan> + 'a {
    let version = view.version;
    let nodes = (1u8..).zip(version.levels.iter().skip(1));
    let nodes = nodes.flat_map(|(level, nodes)| nodes.nodes.iter().map(move |n| (level, n)));
    let score = |node: &Arc<Node>| {
        let oldest = node.slices.last().map_or(0, |slice| slice.bytes);
        let newer = node.bytes() - oldest;
        newer as f64 / oldest.saturating_mul(SPACE_TIMES).max(1) as f64
    };
    let is_deepest = move |level: u8, node: &Node| {
        let mut below = version.levels.iter().skip(usize::from(level) + 1);
        !below.any(|nodes| nodes.has_slices_in(&keys(node)))
    };
    nodes
        .filter(|(_, node)| node.slices.len() > 1)
        .map(move |(level, node)| (level, node, score(node)))
        .filter(move |&(level, node, score)| score >= 1.0 && is_deepest(level, node))
        .map(|(level, node, score)| {
            in_place(view, level, node, Why { reason: Reason::Garbage, score })
        })
}
