//! What schemes whose nodes have stacks of several slices share.

use super::leveled;
use super::levels::last_level;
use super::why::Why;
use crate::plan::{Cut, Input, Move, Plan, Reason};
use crate::policy::{Limits, View, Wanted};
use crate::version::{Level, Node, hull};
use base::KeyRange;
use std::ops::Range;
use std::sync::Arc;

/// Tables of half a memtable, and a first level for a few of them.
pub(super) fn limits(memtable_bytes: u64) -> Limits {
    const MIB: u64 = 1 << 20;
    let base = Limits::base(memtable_bytes);
    Limits {
        level_bytes_base: (base.memtable_bytes.saturating_mul(5) / 2).max(base.level_bytes_base),
        table_bytes_max: (base.memtable_bytes / 2).clamp(2 * MIB, 32 * MIB),
        ..base
    }
}

/// The stack of a node becomes nodes of `to_level`, its own or one where nothing is in its way.
/// They get about `table_bytes_max` bytes each, all alike.
pub(super) fn merge(view: &View<'_>, level: u8, node: &Node, to_level: u8, why: Why) -> Plan {
    let bytes = node.bytes();
    let table_bytes_max = equal_parts(bytes, view.limits.table_bytes_max);
    let cut = Cut { table_bytes_max, overlap_bytes_max: None };
    let inputs = vec![Input::whole(level, node)];
    let action = Move::Merge { inputs, to_level, cut, one_file: false, parallel_max: 1 };
    why.plan(action, bytes)
}

/// The stack of a node becomes nodes of its level, of about `table_bytes_max` bytes each. Its right
/// neighbours join as long as all fit into one.
pub(super) fn merge_joined(
    view: &View<'_>,
    level: u8,
    node: &Node,
    table_bytes_max: u64,
    why: Why,
) -> Plan {
    let joins = |other: &Node| !other.slices.is_empty();
    let joined = neighbours(view, level, node, table_bytes_max, joins);
    merge_nodes(level, &joined, table_bytes_max, why)
}

/// The node and its right neighbours, as far as each `joins` and all have at most `bytes_max`.
pub(super) fn neighbours<'a>(
    view: &View<'a>,
    level: u8,
    node: &Node,
    bytes_max: u64,
    joins: impl Fn(&Node) -> bool,
) -> Vec<&'a Arc<Node>> {
    let nodes: &'a [Arc<Node>] = &view.version.level(level).nodes;
    let from = nodes.iter().skip_while(|other| other.id != node.id);
    let mut bytes = 0;
    let fits = |other: &&Arc<Node>| {
        bytes += other.bytes();
        other.id == node.id || bytes <= bytes_max && joins(other)
    };
    from.take_while(fits).collect()
}

/// Neighbours of a level become nodes of it, of about `table_bytes_max` bytes each.
pub(super) fn merge_nodes(level: u8, nodes: &[&Arc<Node>], table_bytes_max: u64, why: Why) -> Plan {
    let bytes = nodes.iter().map(|node| node.bytes()).sum();
    let inputs = nodes.iter().map(|node| Input::whole(level, node)).collect();
    let table_bytes_max = equal_parts(bytes, table_bytes_max);
    let cut = Cut { table_bytes_max, overlap_bytes_max: None };
    let action = Move::Merge { inputs, to_level: level, cut, one_file: false, parallel_max: 1 };
    why.plan(action, bytes)
}

/// The adjacent slices, two or more, whose merge writes the least bytes for each slice saved.
/// `bytes` are those of each; none where a slice is not to be had.
pub(super) fn cheapest(bytes: &[Option<u64>]) -> Option<Range<usize>> {
    let mut best: Option<(u64, Range<usize>)> = None;
    for from in 0..bytes.len() {
        let mut sum = 0;
        for (saved, more) in bytes[from..].iter().map_while(|more| *more).enumerate() {
            sum += more;
            let Some(cost) = sum.checked_div(saved as u64) else { continue };
            if best.as_ref().is_none_or(|(least, _)| cost <= *least) {
                best = Some((cost, from..from + saved + 1));
            }
        }
    }
    best.map(|(_, slices)| slices)
}

/// The size of equal parts of `bytes` that come closest to `part_bytes`. A little more, so that an
/// estimate that is too low does not make one part more.
pub(super) fn equal_parts(bytes: u64, part_bytes: u64) -> u64 {
    let part_bytes = part_bytes.max(1);
    let parts = (bytes.saturating_add(part_bytes / 2) / part_bytes).max(1);
    let equal = bytes.div_ceil(parts);
    equal + equal / 16
}

/// A node's stack goes to the next level: appended to the nodes there, or as nodes of its own where
/// there are none, without being rewritten if it is one slice.
pub(super) fn down(view: &View<'_>, level: u8, node: &Node, why: Why) -> Plan {
    let (to_level, input) = (level + 1, Input::whole(level, node));
    let range = keys(node);
    if !view.version.level(to_level).overlap(&range).is_empty() {
        let append = Move::Append { input, to_level, file_bytes_max: Some(u64::MAX), parts: 1 };
        why.plan(append, node.bytes())
    } else if node.slices.len() == 1 {
        why.plan(Move::Push { input, to_level }, 0)
    } else {
        merge(view, level, node, to_level, why)
    }
}

/// The removal of a node that has no slices, with no data under its range: nothing will come to it
/// that its neighbours cannot take.
pub(super) fn drop_empty(view: &View<'_>) -> Option<Plan> {
    let version = view.version;
    let why = Why { reason: Reason::Balance, score: 1.0 };
    (1u8..).zip(version.levels.iter().skip(1)).find_map(|(level, nodes)| {
        let mut empty = nodes.nodes.iter().filter(|node| node.slices.is_empty());
        let is_idle = |node: &&Arc<Node>| {
            let mut below = version.levels.iter().skip(usize::from(level) + 1);
            !below.any(|nodes| nodes.has_slices_in(&node.range))
        };
        let drop = |node| why.plan(Move::Drop { inputs: vec![Input::whole(level, node)] }, 0);
        let is_free = |plan: &Plan| view.allows(plan);
        empty.by_ref().filter(is_idle).map(|node| drop(node)).find(is_free)
    })
}

/// Nodes whose stacks are due, and how urgent: height for `stack_max`, level 0 for its trigger. The
/// most urgent first.
pub(super) fn due<'a>(view: &View<'a>) -> Vec<(f64, u8, &'a Arc<Node>)> {
    due_by(view, |level, node| height_score(view, level, node))
}

/// Nodes with a score of at least 1.0, the most urgent first.
pub(super) fn due_by<'a>(
    view: &View<'a>,
    score: impl Fn(u8, &Node) -> f64,
) -> Vec<(f64, u8, &'a Arc<Node>)> {
    let levels = (0u8..).zip(&view.version.levels);
    let nodes = levels.flat_map(|(level, nodes)| nodes.nodes.iter().map(move |n| (level, n)));
    let scored = nodes.map(|(level, node)| (score(level, node), level, node));
    let mut due: Vec<_> = scored.filter(|(score, ..)| *score >= 1.0).collect();
    due.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    due
}

/// How high a stack is; 1.0 is due.
pub(super) fn height_score(view: &View<'_>, level: u8, node: &Node) -> f64 {
    let most = match level {
        0 => view.limits.level0_runs_trigger.max(1),
        _ => view.limits.stack_max.max(2),
    };
    node.slices.len() as f64 / most as f64
}

/// The highest stack of a level.
pub(super) fn height_score_of_level(view: &View<'_>, level: u8) -> f64 {
    let nodes = view.version.level(level).nodes.iter();
    nodes.map(|node| height_score(view, level, node)).fold(0.0, f64::max)
}

/// Nodes of a level in turn: first those with keys at or after the level's cursor.
pub(super) fn in_turn<'a>(view: &View<'a>, level: u8) -> impl Iterator<Item = &'a Arc<Node>> {
    let version = view.version;
    let nodes: &'a [Arc<Node>] = &version.level(level).nodes;
    let cursor = version.cursors.get(usize::from(level)).and_then(Option::as_ref);
    let at = cursor.map_or(0, |key| nodes.partition_point(|n| !n.range.is_before_end(key)));
    let (before, from) = nodes.split_at(at);
    from.iter().chain(before)
}

/// A step of a manual compaction: brings what is `wanted` down to one level, removes nodes there
/// that have no slices, and merges what is left of stacks.
pub(super) fn manual(view: &View<'_>, wanted: &Wanted, to_level: Option<u8>) -> Option<Plan> {
    let (version, range) = (view.version, &wanted.range);
    let why = Why { reason: Reason::Manual, score: 1.0 };
    let is_free = |plan: &Plan| view.allows(plan);
    let deepest = version.levels.iter().rposition(Level::has_slices)? as u8;
    let bottom = to_level.unwrap_or(deepest.max(1)).min(last_level(version, view.limits));
    let nodes = || {
        let of = |level| version.level(level).overlap(range).iter().map(move |node| (level, node));
        (1..=bottom).flat_map(of)
    };
    let mut empty = nodes().filter(|(_, node)| node.slices.is_empty());
    if let Some((level, node)) = empty.next() {
        let plan = why.plan(Move::Drop { inputs: vec![Input::whole(level, node)] }, 0);
        return Some(plan).filter(is_free);
    }
    let down = leveled::manual(view, wanted, to_level);
    let old_slices = |node: &Node| node.slices.iter().filter(|slice| wanted.is_old(slice)).count();
    let is_high = |(level, node): &(u8, &Arc<Node>)| *level == bottom && old_slices(node) > 1;
    down.or_else(|| {
        let due = nodes().filter(is_high);
        due.map(|(level, node)| merge(view, level, node, level, why)).find(is_free)
    })
}

/// The keys of a node's slices.
pub(super) fn keys(node: &Node) -> KeyRange {
    hull(&node.slices)
}
