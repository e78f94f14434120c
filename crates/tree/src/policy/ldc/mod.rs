//! Lower-level driven compaction (LDC; Chai et al., ICDE 2019).
//!
//! A level over its limit does not merge a node with the ten that it overlaps below: it *links* it.
//! The node's run is cut at the ranges of the nodes below, and each gets its slice on top of its
//! stack: a [`Move::Push`], an edit without a byte of I/O. The run is *frozen*: no level has it,
//! its slices live in the nodes below, and reads probe them before those nodes' own runs. A node
//! that has gathered about as much as it has itself is *merged*: its own run and its slices, alone.
//! So a byte that goes down takes about one other byte with it, not `fan_out`; and a merge is a few
//! tables, not dozens.
//!
//! - *When a node is merged*: at `T` slices, or when they have `T / fan_out` times its own bytes.
//!   `T` is `links_max`, or follows the workload: `2 * fan_out` times the share of writes of late,
//!   at least 2; and a node whose slices reads keep passing needs fewer, down to one. Where there
//!   is less than one write for each `2 * fan_out` operations, one slice is enough, and the tree
//!   becomes that of leveled compaction.
//! - *Links come first*: they cost no I/O, and a level that waited with its links behind merges
//!   would grow until what comes to it is cut into ever smaller slices.
//! - *Level 0* is linked as a whole, once it has `level0_runs_trigger` runs; unless they are so
//!   small that merging them among themselves costs less than the slices would.
//! - *No starvation*: only nodes without slices are linked (section III-D); a level over its limit
//!   that has none merges its most urgent node. Nothing is linked onto a node that is due twice
//!   over, so that stacks stay bounded when merges fall behind, and admission sees it.
//! - *Frozen space* is bounded: what is dead beyond a twelfth of the live bytes, less where the
//!   threshold is above `fan_out`, and slices that are older than four times the tree, are merged
//!   away when nothing else is due (`frozen`); the paper has no bound. Entries that a linked slice
//!   overwrites stay below it until the merge: a higher threshold costs space.
//! - *Keys in gaps* belong to the node on the left (Example 3.2): the rule of [`crate::moves`].
//!
//! Links are slices in the manifest: they survive as every edit does. Tombstones go by the rule of
//! every merge, [`crate::moves::OlderData`], which looks at linked slices too.
//!
//! Invariant of its trees: no node below level 0 is empty.

mod frozen;
mod survey;
#[cfg(test)]
mod tests;

use super::leveled::merge_cheapest;
use super::levels::{flush_level, last_level};
use super::stack::{self, in_turn, keys, merge};
use super::why::Why;
use crate::invariant::Shape;
use crate::plan::{Input, Move, Plan, Reason};
use crate::policy::{Debt, Descriptor, Policy, View, Wanted};
use crate::version::{LEVEL0_NODE, hull};
use base::KeyRange;
use survey::{Survey, threshold};

/// The scheme `ldc`.
pub const LDC: Descriptor = Descriptor {
    name: "ldc",
    summary: "lower-level driven compaction: links first, merges when as much came down",
    help: "A level over its limit links its nodes to those below, an edit without I/O; a node is \
           merged when about as much is linked to it as it has. Writes about two bytes for each \
           byte and level where leveled compaction by LevelDB's rules writes five to ten, in \
           merges of a few tables. Costs reads: up to twice `fan_out` slices of a node, each \
           behind its filter, come before its own run; and space: a twelfth, more under full \
           load, for runs that are merged in part, and what linked slices have overwritten. \
           Choose it for write-heavy data that is also read, and where long merges hurt. The \
           threshold follows the share of reads: twice `fan_out` slices without reads, one with \
           hardly any writes; `links_max` (slices of a node) fixes it. `fan_out` may be larger \
           than for other schemes, up to 25.",
    paper: "LDC: A Lower-Level Driven Compaction Method (ICDE 2019)",
    options: &[
        "levels",
        "level0_runs_trigger",
        "level_bytes_base",
        "fan_out",
        "table_bytes_max",
        "links_max",
        "seek_bytes",
        "parallel_max",
    ],
    limits: stack::limits,
    make: || Box::new(Ldc),
};

/// Nothing is linked onto a node whose score is this.
const OVERDUE: f64 = 2.0;

/// Lower-level driven compaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ldc;

impl Policy for Ldc {
    fn name(&self) -> &'static str {
        LDC.name
    }

    fn shape(&self) -> Shape {
        Shape { stack_max: None, empty_nodes: false }
    }

    fn pick(&self, view: &View<'_>) -> Option<Plan> {
        if view.is_full() {
            return None;
        }
        let survey = Survey::new(view);
        relieve(view, &survey)
            .or_else(|| link_level0(view, &survey))
            .or_else(|| merge_due(view, &survey))
            .or_else(|| relieve_by_merge(view, &survey))
            .or_else(|| frozen::pick(view, &survey))
    }

    fn scores(&self, view: &View<'_>) -> Vec<f64> {
        let survey = Survey::new(view);
        let last = last_level(view.version, view.limits);
        let score = |level: u8| level_score(view, &survey, level).max(survey.most(level));
        (0..=last).map(score).collect()
    }

    fn debt(&self, view: &View<'_>) -> Debt {
        let survey = Survey::new(view);
        let due = survey.linked.iter().filter(|linked| linked.score >= 1.0);
        let due_bytes: u64 = due.map(|linked| linked.node.bytes()).sum();
        // What goes down a level takes `fan_out / threshold` other bytes with it.
        let cost = 1.0 + view.limits.fan_out / threshold(view);
        let mut pending = 0.0;
        let mut arriving = 0.0;
        if view.version.level0().len() >= view.limits.level0_runs_trigger {
            arriving = view.version.level(0).bytes() as f64;
            pending += arriving * cost;
        }
        for level in 1..last_level(view.version, view.limits) {
            let bytes = view.version.level(level).bytes() as f64 + arriving;
            arriving = (bytes - view.limits.level_bytes(level)).max(0.0);
            pending += arriving * cost;
        }
        Debt::new(view.version.level0().len(), due_bytes.saturating_add(pending as u64))
    }

    fn flush_level(&self, view: &View<'_>, range: &KeyRange) -> u8 {
        flush_level(view, range)
    }

    fn pick_manual(&self, view: &View<'_>, wanted: &Wanted, to_level: Option<u8>) -> Option<Plan> {
        stack::manual(view, wanted, to_level)
    }
}

/// How full a level is. The last one has no limit.
fn level_score(view: &View<'_>, survey: &Survey<'_>, level: u8) -> f64 {
    if level == 0 {
        let trigger = view.limits.level0_runs_trigger.max(1);
        return view.version.level0().len() as f64 / trigger as f64;
    }
    if level >= last_level(view.version, view.limits) {
        return 0.0;
    }
    let own = survey.own_bytes.get(usize::from(level)).copied().unwrap_or(0);
    own as f64 / view.limits.level_bytes(level)
}

/// The link of an input to the level below it, where the nodes can take it.
fn link(
    view: &View<'_>,
    survey: &Survey<'_>,
    input: Input,
    range: &KeyRange,
    why: Why,
) -> Option<Plan> {
    let to_level = input.level + 1;
    let mut below = view.version.level(to_level).overlap(range).iter();
    if below.any(|node| survey.score(view, to_level, node) >= OVERDUE) {
        return None;
    }
    let mut plan = why.plan(Move::Push { input, to_level }, 0);
    plan.cursors.push((to_level - 1, range.end.clone()));
    view.allows(&plan).then_some(plan)
}

/// Level 0 goes down, the oldest run first, with those that overlap it.
fn link_level0(view: &View<'_>, survey: &Survey<'_>) -> Option<Plan> {
    let score = level_score(view, survey, 0);
    if score < 1.0 {
        return None;
    }
    let why = Why { reason: Reason::Level0Runs, score };
    let stack = view.version.level0();
    // Less than a memtable in all: slices of it would cost each node below a merge for little.
    if stack.len() > 1 && view.version.level(0).bytes() < view.limits.memtable_bytes {
        return merge_cheapest(view, why.reason, why.score);
    }
    let mut range = stack.last()?.range.clone();
    let linked = loop {
        let hit: Vec<_> = stack.iter().filter(|slice| slice.range.overlaps(&range)).collect();
        let wider = hull(hit.iter().copied());
        if wider == range {
            break hit;
        }
        range = wider;
    };
    link(view, survey, Input::of(0, LEVEL0_NODE, linked), &range, why)
}

/// The most urgent merge that conflicts with no move in progress.
fn merge_due(view: &View<'_>, survey: &Survey<'_>) -> Option<Plan> {
    let due = survey.linked.iter().take_while(|linked| linked.score >= 1.0);
    due.map(|linked| {
        let why = Why { reason: Reason::StackHeight, score: linked.score };
        merge(view, linked.level, linked.node, linked.level, why)
    })
    .find(|plan| view.allows(plan))
}

/// The levels over their limits, the fullest first.
fn full_levels(view: &View<'_>, survey: &Survey<'_>) -> Vec<(u8, Why)> {
    let mut due: Vec<(u8, Why)> = (1..last_level(view.version, view.limits))
        .map(|level| {
            let score = level_score(view, survey, level);
            (level, Why { reason: Reason::LevelBytes, score })
        })
        .filter(|(_, why)| why.score >= 1.0)
        .collect();
    due.sort_by(|a, b| b.1.score.total_cmp(&a.1.score));
    due
}

/// The fullest level over its limit links a node, the next in turn that has no slices.
fn relieve(view: &View<'_>, survey: &Survey<'_>) -> Option<Plan> {
    full_levels(view, survey).into_iter().find_map(|(level, why)| {
        let mut clean = in_turn(view, level).filter(|node| node.slices.len() == 1);
        clean.find_map(|node| link(view, survey, Input::whole(level, node), &keys(node), why))
    })
}

/// A full level without a node that may be linked gets one.
fn relieve_by_merge(view: &View<'_>, survey: &Survey<'_>) -> Option<Plan> {
    full_levels(view, survey).into_iter().find_map(|(level, why)| {
        let linked = survey.linked.iter().filter(|linked| linked.level == level);
        let mut plans = linked.map(|linked| merge(view, level, linked.node, level, why));
        plans.find(|plan| view.allows(plan))
    })
}
