//! Lazy leveling (Dostoevsky: Dayan and Idreos, SIGMOD 2018): every level but the last is tiered,
//! and the last is leveled. The last level has nearly all data, so it decides what space and most
//! reads cost; the merges on the levels above would be what leveled compaction writes for little.
//!
//! - A level above the last gathers runs. A node there is due at `stack_max` of them (level 0 at
//!   `level0_runs_trigger`), and they become one run of the next level, put on top of its stacks.
//! - Where that would be a large part of the last level, the stack goes to the last level instead:
//!   when it has a `fan_out`-th of the bytes that it overlaps there, and nothing lies between. So
//!   the data decides how many levels are tiered, and the rest stay empty.
//! - Going to the last level is a push, an edit alone: its nodes show their parts of the runs.
//! - A node of the last level with more than one slice is merged in its place, cut at
//!   `table_bytes_max`. So what the paper does in one merge of a whole level are steps of about a
//!   table, and a file above goes when the last of its nodes is merged.
//!
//! The levels above the last are divided into nodes, as `fragmented` divides them; in the paper, a
//! run of theirs is whole. Filters do not get their bits by level, which is Monkey's part of the
//! paper.
//!
//! Invariant of its own trees when they are settled: nodes of the last level have one slice.

#[cfg(test)]
mod tests;

use super::levels::{flush_level, last_level};
use super::stack::{self, down, drop_empty, due_by, height_score, keys};
use super::why::Why;
use crate::invariant::Shape;
use crate::plan::{Input, Move, Plan, Reason};
use crate::policy::{Debt, Descriptor, Limits, Policy, View, Wanted};
use crate::version::Node;
use base::KeyRange;
use base::cause::LEVELS_MAX;

/// The scheme `lazy-leveling`.
pub const LAZY_LEVELING: Descriptor = Descriptor {
    name: "lazy-leveling",
    summary: "tiered on all levels but the last, which is leveled, as in Dostoevsky",
    help: "The levels above the last gather up to `stack_max` runs, which become one run of the \
           next level; the last level, which has nearly all data, has one. A stack goes to the \
           last level once it has a `fan_out`-th of the bytes there, and is merged there table \
           by table. Writes less than `leveled` where the data is many times the write buffer, \
           and takes about its space; costs reads of missing keys and scans, which probe up to \
           `stack_max` runs of each level above the last. Choose it for data that is overwritten \
           much and read by keys that are there. A smaller `fan_out` writes less and takes more \
           space.",
    paper: "Dostoevsky: Dayan and Idreos, SIGMOD 2018",
    options: &[
        "levels",
        "level0_runs_trigger",
        "fan_out",
        "table_bytes_max",
        "stack_max",
        "parallel_max",
    ],
    limits,
    make: || Box::new(LazyLeveling),
};

/// A node of the last level is due when it has this many slices.
const LAST_SLICES: f64 = 2.0;

fn limits(memtable_bytes: u64) -> Limits {
    Limits { stack_max: 4, flush_level_max: LEVELS_MAX, ..stack::limits(memtable_bytes) }
}

/// Lazy leveling.
#[derive(Clone, Copy, Debug, Default)]
pub struct LazyLeveling;

impl Policy for LazyLeveling {
    fn name(&self) -> &'static str {
        LAZY_LEVELING.name
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
        let due = due_by(view, |level, node| score(view, last, level, node)).into_iter();
        let mut plans = due.map(|(score, level, node)| {
            let reason = if level == 0 { Reason::Level0Runs } else { Reason::StackHeight };
            let why = Why { reason, score };
            if level < last {
                lower(view, last, level, node, why)
            } else {
                stack::merge_joined(view, level, node, view.limits.table_bytes_max, why)
            }
        });
        plans.find(is_free).or_else(|| drop_empty(view))
    }

    fn scores(&self, view: &View<'_>) -> Vec<f64> {
        let last = last_level(view.version, view.limits);
        let of_level = |level| {
            let nodes = view.version.level(level).nodes.iter();
            nodes.map(|node| score(view, last, level, node)).fold(0.0, f64::max)
        };
        (0..=last).map(of_level).collect()
    }

    /// Nodes of the last level count when they have more slices than one push brings: while the
    /// levels above fill again, the last one always has what came last to merge.
    fn debt(&self, view: &View<'_>) -> Debt {
        let last = last_level(view.version, view.limits);
        let pushed = view.limits.stack_max.max(view.limits.level0_runs_trigger);
        let due = due_by(view, |level, node| score(view, last, level, node)).into_iter();
        let pending = due.map(|(score, level, node)| {
            let why = Why { reason: Reason::StackHeight, score };
            match level < last {
                true => lower(view, last, level, node, why).write_bytes,
                false if node.slices.len() > pushed + 1 => node.bytes(),
                false => 0,
            }
        });
        Debt::new(view.version.level0().len(), pending.sum())
    }

    /// All the way down or not at all: a level between would hold it back until it is full.
    fn flush_level(&self, view: &View<'_>, range: &KeyRange) -> u8 {
        let last = last_level(view.version, view.limits);
        if flush_level(view, range) >= last { last } else { 0 }
    }

    fn pick_manual(&self, view: &View<'_>, wanted: &Wanted, to_level: Option<u8>) -> Option<Plan> {
        stack::manual(view, wanted, to_level)
    }
}

/// How high the stack of a node is; 1.0 is due.
fn score(view: &View<'_>, last: u8, level: u8, node: &Node) -> f64 {
    if level < last {
        height_score(view, level, node)
    } else {
        node.slices.len() as f64 / LAST_SLICES
    }
}

/// A node's stack goes to the last level, if it is large for what it overlaps there and passes
/// nothing, and to the next level otherwise.
fn lower(view: &View<'_>, last: u8, level: u8, node: &Node, why: Why) -> Plan {
    let range = keys(node);
    let overlap_bytes = view.version.level(last).overlap_bytes(&range);
    let is_next = level + 1 == last;
    let is_large = node.bytes() as f64 * view.limits.fan_out >= overlap_bytes as f64;
    let mut between = (level + 1..last).map(|between| view.version.level(between));
    let passes_nothing = !between.any(|nodes| nodes.has_slices_in(&range));
    if is_next || is_large && passes_nothing {
        let input = Input::whole(level, node);
        return why.plan(Move::Push { input, to_level: last }, 0);
    }
    down(view, level, node, why)
}
