//! Leveled compaction that writes little.
//!
//! - *Sizes follow the data.* The deepest level with data has no limit; a level above it may have a
//!   `fan_out`-th of the one below, and exists only where that is `level_bytes_base` or more. The
//!   first such level is the *base*. What lies above the base drains into it.
//! - *Level 0 waits until going down is cheap.* Merging `B` bytes into a level of `D` bytes writes
//!   `1 + D/B` bytes for each byte, so level 0 goes down when `B` is a third of `D`. Until then,
//!   when it has too many runs, the adjacent ones that cost least for each run saved become one.
//! - *Big merges are made in steps.* A merge of all of the base would hold the space of its inputs
//!   until it ends. Where it is over [`STEP_MEMTABLES`] memtables, level 0 is pushed onto the nodes
//!   of the base instead, an edit alone, and their stacks are merged a few nodes at a time: each
//!   step frees the tables that it took. Level 0 goes down again when no stack is left.
//! - *Readers pay*: level 0 goes down earlier once reads have cost as much as the merge, and an
//!   idle database merges for space alone ([`reads`]).
//! - *The cheapest goes first*: of a level's nodes, the one with the least bytes below for each
//!   byte of its own, tombstones counting as a gain; equals in turn, by the cursor. Its right
//!   neighbours join, as far as a step may go, so that nodes below at the seams are rewritten once.

use super::candidates::{Candidate, cover, level0_input};
use super::{manual, reads};
use crate::invariant::Shape;
use crate::plan::{Cut, Move, Plan, Reason};
use crate::policy::levels::{flush_level, last_level};
use crate::policy::stack::{self, cheapest};
use crate::policy::why::Why;
use crate::policy::{Debt, Descriptor, Limits, Policy, STEP_MEMTABLES, View, Wanted};
use crate::version::{Level, Node, Slice, hull};
use base::KeyRange;
use std::sync::Arc;

/// Level 0 goes down when it has one of this many parts of the bytes there.
const LEVEL0_SHARE: u64 = 3;

/// Writes are slowed where more garbage than this share of the data waits for merges.
const GARBAGE_SHARE: f64 = 0.4;

/// The memtables that a merge of stacks has about the bytes of.
const STACK_MEMTABLES: u64 = 2;

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
        "seek_bytes",
        "parallel_max",
    ],
    limits: modern_limits,
    make: || Box::new(Modern),
};

/// Leveled compaction with sizes that follow the data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Modern;

/// How many bytes the levels may have.
pub(super) struct Targets {
    /// The deepest level in use.
    bottom: u8,
    /// The first level below 0 that is to keep data.
    pub(super) base: u8,
    /// For each level; 0 above the base.
    bytes: Vec<f64>,
}

impl Targets {
    fn new(view: &View<'_>) -> Targets {
        let (version, limits) = (view.version, view.limits);
        let last = last_level(version, limits);
        let deepest = version.levels.iter().rposition(Level::has_slices);
        let fan_out = limits.fan_out.max(2.0);
        let total: u64 = version.levels.iter().skip(1).map(|level| level.bytes()).sum();
        // Levels that pay must fit between level 0 and the bottom.
        let pays = (total as f64 / limits.level_bytes_base.max(1) as f64).max(1.0);
        let needed = pays.log(fan_out).floor() as u8 + 1;
        let bottom = match deepest {
            Some(deepest @ 1..) => (deepest as u8).max(needed.min(last)),
            _ => last,
        };
        let mut bytes = vec![0.0; usize::from(last) + 1];
        let mut target = version.level(bottom).bytes().max(1) as f64;
        let mut base = bottom;
        bytes[usize::from(bottom)] = f64::INFINITY;
        for level in (1..bottom).rev() {
            target /= fan_out;
            if target < limits.level_bytes_base as f64 {
                break;
            }
            bytes[usize::from(level)] = target;
            base = level;
        }
        Targets { bottom, base, bytes }
    }

    fn score(&self, view: &View<'_>, level: u8) -> f64 {
        let leaving = view.busy.leaving_bytes(view.version, level);
        let bytes = view.version.level(level).bytes().saturating_sub(leaving) as f64;
        let target = self.bytes[usize::from(level)];
        if bytes == 0.0 || level >= self.bottom {
            0.0
        } else if target == 0.0 {
            // Drains at leisure, until it has as much as level 0 gathers.
            1.0 + bytes / view.limits.level_bytes_base.max(1) as f64
        } else {
            bytes / target
        }
    }
}

fn modern_limits(memtable_bytes: u64) -> Limits {
    const MIB: u64 = 1 << 20;
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

impl Policy for Modern {
    fn name(&self) -> &'static str {
        MODERN.name
    }

    fn shape(&self) -> Shape {
        Shape { stack_max: None, empty_nodes: false }
    }

    fn pick(&self, view: &View<'_>) -> Option<Plan> {
        if view.is_full() {
            return None;
        }
        let targets = Targets::new(view);
        let mut due: Vec<(u8, f64)> =
            (0u8..).zip(scores(view, &targets)).filter(|&(_, score)| score >= 1.0).collect();
        due.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let urgent = due.into_iter().find_map(|(level, score)| match level {
            0 => pick_level0(view, &targets, score),
            _ => pick_level(view, level, Why { reason: Reason::LevelBytes, score }),
        });
        urgent.or_else(|| merge_stacks(view)).or_else(|| reads::pick(view, &targets))
    }

    fn scores(&self, view: &View<'_>) -> Vec<f64> {
        scores(view, &Targets::new(view))
    }

    fn debt(&self, view: &View<'_>) -> Debt {
        let targets = Targets::new(view);
        let version = view.version;
        let mut pending = 0.0;
        let mut arriving = 0.0;
        let runs = version.level0().len();
        if runs >= view.limits.level0_runs_trigger {
            arriving = version.level(0).bytes() as f64;
            pending = arriving + version.level(targets.base).bytes() as f64;
        }
        for level in 1..targets.bottom {
            let bytes = version.level(level).bytes() as f64 + arriving;
            arriving = (bytes - targets.bytes[usize::from(level)]).max(0.0);
            let below = version.level(level + 1).bytes() as f64;
            pending += arriving + below * (arriving / bytes.max(1.0));
        }
        pending += stacked(view).map(|(_, node)| node.bytes()).sum::<u64>() as f64;
        // Runs that came down onto a node still wait for their merge.
        let height = stacked(view).map(|(_, node)| node.slices.len() - 1).max().unwrap_or(0);
        Debt { garbage_percent: garbage_percent(view), ..Debt::new(runs + height, pending as u64) }
    }

    fn flush_level(&self, view: &View<'_>, range: &KeyRange) -> u8 {
        // All the way down or not at all: a level above the base would have to drain.
        let bottom = Targets::new(view).bottom;
        if flush_level(view, range) >= bottom { bottom } else { 0 }
    }

    fn has_steps(&self) -> bool {
        true
    }

    fn pick_manual(&self, view: &View<'_>, wanted: &Wanted, to_level: Option<u8>) -> Option<Plan> {
        manual::pick(view, wanted, to_level)
    }
}

fn scores(view: &View<'_>, targets: &Targets) -> Vec<f64> {
    let runs = view.version.level0().len() as f64;
    let level0 = runs / view.limits.level0_runs_trigger.max(1) as f64;
    let others = 1..targets.bytes.len() as u8;
    std::iter::once(level0).chain(others.map(|level| targets.score(view, level))).collect()
}

fn pick_level0(view: &View<'_>, targets: &Targets, score: f64) -> Option<Plan> {
    let why = Why { reason: Reason::Level0Runs, score };
    let stack: Vec<&Slice> = view.version.level0().iter().collect();
    let is_allowed = |plan: &Plan| view.allows(plan);
    let is_free = !stack.iter().any(|slice| view.busy.level0_run(slice.run.id));
    let down = if is_free { level0_down(view, targets, &stack, why) } else { None };
    let down = down.filter(is_allowed);
    let bytes: u64 = stack.iter().map(|slice| slice.bytes).sum();
    let is_cheap = bytes * LEVEL0_SHARE >= view.version.level(targets.base).bytes();
    if down.is_some() && is_cheap {
        return down;
    }
    // Level 0 waits for the stacks that hold it up, twice as long as it would for nothing.
    let holds_up = if is_cheap { merge_stacks(view) } else { None };
    if holds_up.is_some() && score < 2.0 {
        return holds_up;
    }
    intra_level0(view, &stack, why).filter(is_allowed).or(down).or(holds_up)
}

/// All of level 0 goes down: in one merge, or onto the nodes below where the merge would be big.
/// None while what came down before still lies in stacks.
pub(super) fn level0_down(
    view: &View<'_>,
    targets: &Targets,
    stack: &[&Slice],
    why: Why,
) -> Option<Plan> {
    let range = hull(stack.iter().copied());
    let held = |level: &u8| !view.version.level(*level).overlap(&range).is_empty();
    let first = (1..=targets.base).find(held).unwrap_or(targets.base);
    let candidate = Candidate::level0(view.version, stack, first);
    let bytes = candidate.upper_bytes + candidate.lower_bytes;
    let is_big = bytes > STEP_MEMTABLES * view.limits.memtable_bytes;
    if !is_big || candidate.lower_bytes == 0 {
        return Some(candidate.plan(view, first, true, why));
    }
    let waits = stacked(view).any(|(level, _)| level == first);
    let push = Move::Push { input: level0_input(stack), to_level: first };
    (!waits).then(|| why.plan(push, 0))
}

/// Garbage that waits in level 0 and in stacks, in percent of what may: it holds space until merges
/// have reached it, and merges of the base are slow where it is large.
fn garbage_percent(view: &View<'_>) -> u64 {
    let upper: u64 = stacked(view).map(|(_, node)| node.bytes() - node.largest_bytes()).sum();
    let waiting = view.version.level(0).bytes() + upper;
    let share = view.observed.superseded_share_min();
    let data = view.version.bytes().saturating_sub(waiting) as f64;
    let slack = (STEP_MEMTABLES * view.limits.memtable_bytes) as f64;
    (waiting as f64 * share / (data * GARBAGE_SHARE).max(slack) * 100.0) as u64
}

/// The nodes below level 0 with stacks of several slices, and their levels.
fn stacked<'a>(view: &View<'a>) -> impl Iterator<Item = (u8, &'a Arc<Node>)> {
    let below = (0u8..).zip(&view.version.levels).skip(1);
    let nodes = below.flat_map(|(level, nodes)| nodes.nodes.iter().map(move |n| (level, n)));
    nodes.filter(|(_, node)| node.slices.len() > 1)
}

/// What came down onto nodes is merged with them, a few neighbours at a time.
fn merge_stacks(view: &View<'_>) -> Option<Plan> {
    let why = Why { reason: Reason::StackHeight, score: 1.0 };
    let mut due = stacked(view).filter(|(level, node)| !view.busy.node(*level, node.id));
    due.find_map(|(level, node)| {
        Some(merge_stack(view, level, node, why)).filter(|plan| view.allows(plan))
    })
}

fn merge_stack(view: &View<'_>, level: u8, node: &Node, why: Why) -> Plan {
    let bytes_max = STACK_MEMTABLES * view.limits.memtable_bytes;
    let is_due = |other: &Node| other.slices.len() > 1 && !view.busy.node(level, other.id);
    let nodes = stack::neighbours(view, level, node, bytes_max, is_due);
    stack::merge_nodes(level, &nodes, view.limits.table_bytes_max, why)
}

/// Adjacent runs of level 0 that cost the least for each run saved become one in their place,
/// unless that conflicts with a move in progress.
pub(in crate::policy) fn merge_cheapest(
    view: &View<'_>,
    reason: Reason,
    score: f64,
) -> Option<Plan> {
    let stack: Vec<&Slice> = view.version.level0().iter().collect();
    let plan = intra_level0(view, &stack, Why { reason, score });
    plan.filter(|plan| view.allows(plan))
}

/// Adjacent runs that cost the least bytes for each run saved become one, and stay in their place.
fn intra_level0(view: &View<'_>, stack: &[&Slice], why: Why) -> Option<Plan> {
    let bytes = |slice: &&Slice| (!view.busy.level0_run(slice.run.id)).then_some(slice.bytes);
    let bytes: Vec<Option<u64>> = stack.iter().map(bytes).collect();
    cheapest(&bytes).map(|runs| merge_level0(&stack[runs], why))
}

/// Adjacent runs of level 0 become one.
pub(super) fn merge_level0(runs: &[&Slice], why: Why) -> Plan {
    let bytes = runs.iter().map(|slice| slice.bytes).sum();
    let action = Move::Merge {
        inputs: vec![level0_input(runs)],
        to_level: 0,
        cut: Cut { table_bytes_max: u64::MAX, overlap_bytes_max: None },
        one_file: true,
        parallel_max: 1,
    };
    Plan {
        action,
        reason: why.reason,
        score: why.score,
        read_bytes: bytes,
        write_bytes: bytes,
        cursors: Vec::new(),
    }
}

/// The cheapest nodes of a level, for each byte, that conflict with no move in progress.
fn pick_level(view: &View<'_>, level: u8, why: Why) -> Option<Plan> {
    let nodes = &view.version.level(level).nodes;
    let cursor = view.version.cursors.get(usize::from(level)).and_then(Option::as_ref);
    let turn = cursor.map_or(0, |key| nodes.partition_point(|n| !n.range.is_before_end(key)));
    let mut order: Vec<(u64, usize)> = costs(view, level)
        .into_iter()
        .enumerate()
        .map(|(at, cost)| (cost, (at + nodes.len() - turn) % nodes.len()))
        .collect();
    // Few are ever needed: the cheapest without a conflict.
    while !order.is_empty() {
        let least = (0..order.len()).min_by_key(|&at| order[at])?;
        let (_, place) = order.swap_remove(least);
        let at = (place + turn) % nodes.len();
        if let Some(plan) = plan_from(view, level, at, why) {
            return Some(plan);
        }
    }
    None
}

/// What moving each node down costs for a byte of it, in 1/1024; one walk over both levels.
fn costs(view: &View<'_>, level: u8) -> Vec<u64> {
    let nodes = &view.version.level(level).nodes;
    let below = &view.version.level(level + 1).nodes;
    let mut first = 0;
    let cost = |node: &Arc<Node>, first: &mut usize| {
        while below.get(*first).is_some_and(|b| !b.range.is_before_end(&node.range.start)) {
            *first += 1;
        }
        let hit = below[*first..].iter().take_while(|b| node.range.is_before_end(&b.range.start));
        let lower: u64 = hit.map(|b| b.bytes()).sum();
        let (entries, deletes) = node.slices.iter().fold((1, 0), |(entries, deletes), slice| {
            (entries + slice.run.entries, deletes + slice.run.deletes)
        });
        let cost = lower.saturating_mul(1024) / node.bytes().max(1);
        cost - cost / 2 * deletes.min(entries) / entries
    };
    nodes.iter().map(|node| cost(node, &mut first)).collect()
}

/// The node and, as far as a step may go, its right neighbours, with what they overlap below.
fn plan_from(view: &View<'_>, level: u8, at: usize, why: Why) -> Option<Plan> {
    let nodes = &view.version.level(level).nodes;
    let make = |count: usize| {
        let upper = &nodes[at..at + count];
        let mut plan =
            Candidate::nodes(view.version, level, upper).plan(view, level + 1, true, why);
        plan.cursors.push((level, cover(upper).end));
        plan
    };
    let is_free = |plan: &Plan| view.allows(plan);
    let mut plan = Some(make(1)).filter(is_free)?;
    if matches!(plan.action, Move::Push { .. }) {
        return Some(plan);
    }
    let room = nodes.len() - at;
    for count in 2..=room {
        let wider = make(count);
        if wider.write_bytes > view.limits.expansion_bytes_max || !is_free(&wider) {
            break;
        }
        plan = wider;
    }
    Some(plan)
}
