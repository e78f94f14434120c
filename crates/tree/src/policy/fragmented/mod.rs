//! A fragmented tree after PebblesDB (Raju et al., SOSP 2017): nodes are *guards*, key ranges that
//! a level is divided at; each has a few runs that overlap. A guard that has too many gives them
//! all to the next level: merged once, cut at the guards there, and put on top of each. What lies
//! there already is not rewritten; only the deepest guards are merged where they are.
//!
//! - A guard is due at `stack_max` slices, or when its level is over its limit, in turn. Level 0
//!   goes down at `level0_runs_trigger` runs.
//! - Going down is an append (`Move::Append`); where there is no guard yet, the output is cut at
//!   `table_bytes_max`, and each table begins a guard. So guards come from the keys that are there,
//!   where PebblesDB draws them by a hash of keys as they are written.
//! - A guard with no data below it is merged where it is while its level is below its limit, and
//!   cut again at `table_bytes_max`: the deepest level is fully sorted but for a few slices.
//! - A guard that gave its data away stays, empty, as long as there is data under it.
//!
//! Partial merges of a guard by size, which in PebblesDB can bring back old values, are not made: a
//! stack is taken whole.

#[cfg(test)]
mod tests;

use super::levels::{flush_level, last_level};
use super::stack::{self, down, drop_empty, due, height_score_of_level, in_turn, keys, merge};
use super::why::Why;
use crate::invariant::Shape;
use crate::plan::{Plan, Reason};
use crate::policy::{Debt, Descriptor, Limits, Policy, View, Wanted};
use crate::version::Node;
use base::KeyRange;

/// The scheme `fragmented`.
pub const FRAGMENTED: Descriptor = Descriptor {
    name: "fragmented",
    summary: "after PebblesDB: what comes down is appended to a key range, not merged",
    help: "Each level is divided into guards, and what comes down is added to a guard as another \
           run, up to `stack_max`; then the guard is merged once and handed to the guards below. \
           Each byte is written about once for each level, and more on the deepest one. Costs \
           reads and scans, which probe up to `stack_max` runs of every level, space for what \
           was overwritten but not yet merged, and many small runs. Choose it to compare with \
           `ldc` and `lwc`, or for writes in random order with few scans. `stack_max` counts runs \
           of a guard, `level_bytes_base` and `table_bytes_max` are bytes.",
    paper: "PebblesDB: fragmented log-structured merge trees (SOSP 2017)",
    options: &[
        "levels",
        "level0_runs_trigger",
        "level_bytes_base",
        "fan_out",
        "table_bytes_max",
        "stack_max",
        "parallel_max",
    ],
    limits,
    make: || Box::new(Fragmented),
};

fn limits(memtable_bytes: u64) -> Limits {
    Limits { stack_max: 4, ..stack::limits(memtable_bytes) }
}

/// The fragmented tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fragmented;

impl Policy for Fragmented {
    fn name(&self) -> &'static str {
        FRAGMENTED.name
    }

    fn shape(&self) -> Shape {
        Shape::ANY
    }

    fn pick(&self, view: &View<'_>) -> Option<Plan> {
        if view.is_full() {
            return None;
        }
        let is_free = |plan: &Plan| view.allows(plan);
        let high = due(view).into_iter().map(|(score, level, node)| {
            let reason = if level == 0 { Reason::Level0Runs } else { Reason::StackHeight };
            relieve(view, level, node, Why { reason, score })
        });
        let full = (1..last_level(view.version, view.limits)).flat_map(|level| {
            let score = level_score(view, level);
            let why = Why { reason: Reason::LevelBytes, score };
            let nodes = in_turn(view, level).filter(move |n| score >= 1.0 && !n.slices.is_empty());
            nodes.map(move |node| {
                let mut plan = down(view, level, node, why);
                plan.cursors.push((level, node.range.end.clone()));
                plan
            })
        });
        high.chain(full).find(is_free).or_else(|| drop_empty(view))
    }

    fn scores(&self, view: &View<'_>) -> Vec<f64> {
        let last = last_level(view.version, view.limits);
        let score = |level| height_score_of_level(view, level).max(level_score(view, level));
        (0..=last).map(score).collect()
    }

    fn debt(&self, view: &View<'_>) -> Debt {
        let mut pending: u64 = due(view).iter().map(|(_, _, node)| node.bytes()).sum();
        let mut arriving = 0.0;
        for level in 1..last_level(view.version, view.limits) {
            let bytes = view.version.level(level).bytes() as f64 + arriving;
            arriving = (bytes - view.limits.level_bytes(level)).max(0.0);
            pending = pending.saturating_add(arriving as u64);
        }
        Debt::new(view.version.level0().len(), pending)
    }

    fn flush_level(&self, view: &View<'_>, range: &KeyRange) -> u8 {
        flush_level(view, range)
    }

    fn pick_manual(&self, view: &View<'_>, wanted: &Wanted, to_level: Option<u8>) -> Option<Plan> {
        stack::manual(view, wanted, to_level)
    }
}

/// How full a level is; the last one and level 0 have no limit in bytes.
fn level_score(view: &View<'_>, level: u8) -> f64 {
    if level == 0 || level >= last_level(view.version, view.limits) {
        return 0.0;
    }
    view.version.level(level).bytes() as f64 / view.limits.level_bytes(level)
}

/// What becomes of a guard with too many slices: it stays where it is if nothing lies below and its
/// level is below its limit, and goes down otherwise.
fn relieve(view: &View<'_>, level: u8, node: &Node, why: Why) -> Plan {
    let range = keys(node);
    let mut below = view.version.levels.iter().skip(usize::from(level) + 1);
    let is_deepest = !below.any(|nodes| nodes.has_slices_in(&range));
    let has_room = level_score(view, level) < 1.0;
    if level > 0 && is_deepest && has_room || level == last_level(view.version, view.limits) {
        return merge(view, level, node, level, why);
    }
    down(view, level, node, why)
}
