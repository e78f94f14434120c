//! Which node is emptied, divided or balanced next.

use crate::plan::{Input, Move, Plan, Reason};
use crate::policy::View;
use crate::policy::levels::last_level;
use crate::version::{LEVEL0_NODE, Level, Node, hull};
use base::KeyRange;
use std::sync::Arc;

/// How far a level is from its next step: level 0 by its runs, others by their fullest node.
pub(super) fn scores(view: &View<'_>) -> Vec<f64> {
    let level0 = view.version.level0().len() as f64 / view.limits.level0_runs_trigger.max(1) as f64;
    let fullest =
        |level: &Level| level.nodes.iter().map(|node| fullness(view, node)).fold(0.0, f64::max);
    let others = view.version.levels.iter().skip(1).map(fullest);
    std::iter::once(level0).chain(others).collect()
}

/// Bytes of full nodes and of a due level 0: each is written once more before the tree is settled.
pub(super) fn debt(view: &View<'_>) -> u64 {
    let is_full = |node: &&Arc<Node>| fullness(view, node) >= 1.0;
    let nodes = view.version.levels.iter().skip(1).flat_map(|level| level.nodes.iter());
    let full: u64 = nodes.filter(is_full).map(|node| node.bytes()).sum();
    let level0_due = view.version.level0().len() >= view.limits.level0_runs_trigger;
    full + if level0_due { view.version.level(0).bytes() } else { 0 }
}

/// From 1.0 on a node must be emptied or divided. A node with one slice is as it was written: it is
/// not full until the next segment comes.
fn fullness(view: &View<'_>, node: &Node) -> f64 {
    if node.slices.len() < 2 {
        return 0.0;
    }
    let table = view.limits.table_bytes_max.max(1);
    let next = node.slices[0].bytes.min(table / 4);
    let by_bytes = node.bytes() as f64 / (table - next).max(1) as f64;
    let by_slices = node.slices.len() as f64 / (view.limits.stack_max + 1) as f64;
    by_bytes.max(by_slices)
}

/// The most urgent step that conflicts with no move in progress.
pub(super) fn most_urgent(view: &View<'_>) -> Option<Plan> {
    let mut due: Vec<(f64, u8, &Arc<Node>)> = Vec::new();
    for (level, nodes) in (1u8..).zip(view.version.levels.iter().skip(1)) {
        let full = nodes.nodes.iter().map(|node| (fullness(view, node), level, node));
        due.extend(full.filter(|&(score, _, _)| score >= 1.0));
    }
    // Deeper ones first: what is emptied onto a node finds space there.
    due.sort_by(|a, b| b.1.cmp(&a.1).then(b.0.total_cmp(&a.0)));
    let is_free = |plan: &Plan| view.allows(plan);
    let below = due.iter().map(|&(score, level, node)| full_node(view, level, node, score));
    below.into_iter().find(is_free).or_else(|| level0(view).filter(is_free))
}

/// A due level 0 goes down as a whole.
fn level0(view: &View<'_>) -> Option<Plan> {
    let stack = view.version.level0();
    let score = stack.len() as f64 / view.limits.level0_runs_trigger.max(1) as f64;
    if score < 1.0 {
        return None;
    }
    let input = Input::of(0, LEVEL0_NODE, stack);
    let range = hull(stack);
    let last = last_level(view.version, view.limits);
    let first = (1..=last).find(|&level| !view.version.level(level).overlap(&range).is_empty());
    let to_level = match first {
        None => last,
        Some(level) if level > 1 && too_many(view, level, &range) => level - 1,
        Some(level) => level,
    };
    let bytes = view.version.level(0).bytes();
    if first.is_none() && stack.len() == 1 {
        return Some(Plan::new(Move::Push { input, to_level }, Reason::Level0Runs, score, 0));
    }
    Some(append(view, input, to_level, bytes, Reason::Level0Runs, score))
}

/// `range` overlaps too many nodes: segments would be too small.
fn too_many(view: &View<'_>, level: u8, range: &KeyRange) -> bool {
    let max = view.limits.fan_out.max(2.0) * f64::from(view.limits.division_parts.max(1));
    view.version.level(level).overlapping(range).len() as f64 > max
}

/// What becomes of a full node.
fn full_node(view: &View<'_>, level: u8, node: &Arc<Node>, score: f64) -> Plan {
    let bytes = node.bytes();
    let limits = view.limits;
    let input = Input::whole(level, node);
    let last = last_level(view.version, limits);
    let below = (level + 1..=last)
        .find(|&level| !view.version.level(level).overlap(&node.hull()).is_empty());
    let is_small = bytes < limits.table_bytes_max / 2;
    let divide = |parts: u32, reason| {
        let parts = parts.max(bytes.div_ceil(limits.table_bytes_max.max(1)) as u32);
        Plan::new(Move::Divide { input: input.clone(), parts }, reason, score, bytes)
    };
    match below {
        _ if is_small => divide(1, Reason::StackHeight),
        None => divide(limits.division_parts.max(2), Reason::NodeBytes),
        Some(below) if too_many(view, below, &node.range) && level > 1 => {
            divide(limits.division_parts.clamp(2, 4), Reason::NodeBytes)
        }
        Some(below) => append(view, input.clone(), below, bytes, Reason::NodeBytes, score),
    }
}

fn append(
    view: &View<'_>,
    input: Input,
    to_level: u8,
    bytes: u64,
    reason: Reason,
    score: f64,
) -> Plan {
    let file_bytes_max = Some(view.limits.table_bytes_max);
    let parts = view.limits.division_parts.max(1);
    Plan::new(Move::Append { input, to_level, file_bytes_max, parts }, reason, score, bytes)
}

/// An emptied node gives an end of its range to a neighbour that has little to do.
pub(super) fn balance(view: &View<'_>) -> Option<Plan> {
    for (level, nodes) in (1u8..).zip(view.version.levels.iter().skip(1)) {
        for (at, node) in nodes.nodes.iter().enumerate() {
            if !node.slices.is_empty() {
                continue;
            }
            let found = give(view, level, &nodes.nodes, at).filter(|plan| view.allows(plan));
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

/// What the empty node at `at` gives away: half of the nodes below that it has more than the
/// neighbour.
fn give(view: &View<'_>, level: u8, nodes: &[Arc<Node>], at: usize) -> Option<Plan> {
    let last = last_level(view.version, view.limits);
    let from = &nodes[at];
    let below = (level + 1..=last)
        .map(|level| view.version.level(level))
        .find(|below| !below.overlap(&from.range).is_empty());
    let Some(below) = below else {
        // Nothing to tell by, and nothing lost: keys that come find a node again.
        let input = Input::whole(level, from);
        let action = Move::Drop { inputs: vec![input] };
        return Some(Plan::new(action, Reason::Balance, 1.0, 0));
    };
    let children = below.overlap(&from.range);
    let sides = [(at.checked_sub(1), false), (Some(at + 1), true)];
    sides.into_iter().find_map(|(to, is_right)| {
        let to = nodes.get(to?)?;
        let theirs = below.overlapping(&to.range).len();
        let surplus = children.len().saturating_sub(theirs) / 2;
        if surplus == 0 || to.bytes() > view.limits.table_bytes_max / 2 {
            return None;
        }
        let range = if is_right {
            let start = children[children.len() - surplus].range.start.clone();
            KeyRange { start, end: from.range.end.clone() }
        } else {
            let end = children[surplus].range.start.clone();
            KeyRange { start: from.range.start.clone(), end: Some(end) }
        };
        let fits = from.range.covers(&range) && !range.is_empty() && range != from.range;
        let action = Move::Balance { level, from: from.id, to: to.id, range };
        fits.then(|| Plan::new(action, Reason::Balance, 1.0, 0))
    })
}
