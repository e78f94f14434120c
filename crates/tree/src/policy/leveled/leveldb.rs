//! LevelDB's rules (facts in public documentation and code; see the help of the preset).

use super::candidates::{Candidate, level0_closure};
use super::{SHAPE, manual};
use crate::invariant::Shape;
use crate::plan::{Plan, Reason};
use crate::policy::levels::{flush_level, last_level};
use crate::policy::why::Why;
use crate::policy::{Debt, Descriptor, Limits, Misses, Policy, View, Wanted};
use crate::version::Node;
use base::{Key, KeyRange};
use std::sync::Arc;

/// The preset `leveldb`.
pub const LEVELDB: Descriptor = Descriptor {
    name: "leveldb",
    summary: "leveled compaction by LevelDB's rules, for comparison",
    help: "Each level has ten times the bytes of the one above, beginning with 10 MiB in level 1. \
           A level over its limit merges one node, round robin, with those that it overlaps below. \
           Writes each byte about five to seven times for each level; reads few runs. Choose it to \
           compare with published figures; choose `leveled` for everything else.",
    paper: "LevelDB; the baseline of all five papers",
    options: &[
        "levels",
        "level0_runs_trigger",
        "level0_runs_slowdown",
        "level0_runs_stop",
        "level_bytes_base",
        "fan_out",
        "table_bytes_max",
        "overlap_bytes_max",
        "expansion_bytes_max",
        "flush_level_max",
        "seek_compaction",
        "seek_misses_min",
    ],
    limits: leveldb_limits,
    make: || Box::new(LevelDb),
};

/// Leveled compaction as LevelDB does it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LevelDb;

impl Policy for LevelDb {
    fn name(&self) -> &'static str {
        LEVELDB.name
    }

    fn shape(&self) -> Shape {
        SHAPE
    }

    fn pick(&self, view: &View<'_>) -> Option<Plan> {
        if !view.busy.is_empty() {
            return None;
        }
        let scores = self.scores(view);
        let most = scores.into_iter().enumerate().rev().max_by(|a, b| a.1.total_cmp(&b.1));
        let (level, score) = most.map(|(level, score)| (level as u8, score))?;
        if score >= 1.0 {
            let reason = if level == 0 { Reason::Level0Runs } else { Reason::LevelBytes };
            return pick_level(view, level, Why { reason, score });
        }
        pick_seeks(view)
    }

    fn scores(&self, view: &View<'_>) -> Vec<f64> {
        let last = last_level(view.version, view.limits);
        (0..=last)
            .map(|level| match level {
                0 => {
                    let trigger = view.limits.level0_runs_trigger.max(1);
                    view.version.level0().len() as f64 / trigger as f64
                }
                _ if level == last => 0.0,
                _ => view.version.level(level).bytes() as f64 / view.limits.level_bytes(level),
            })
            .collect()
    }

    fn debt(&self, view: &View<'_>) -> Debt {
        let last = last_level(view.version, view.limits);
        let mut pending = 0.0;
        let mut arriving = level0_excess(view);
        for level in 1..last {
            let limit = view.limits.level_bytes(level);
            let bytes = view.version.level(level).bytes() as f64 + arriving;
            arriving = (bytes - limit).max(0.0);
            pending += arriving * (view.limits.fan_out + 1.0);
        }
        pending += level0_excess(view);
        Debt::new(view.version.level0().len(), pending as u64)
    }

    fn flush_level(&self, view: &View<'_>, range: &KeyRange) -> u8 {
        flush_level(view, range)
    }

    fn pick_manual(&self, view: &View<'_>, wanted: &Wanted, to_level: Option<u8>) -> Option<Plan> {
        if view.busy.is_empty() { manual::pick(view, wanted, to_level) } else { None }
    }
}

pub(in crate::policy) fn leveldb_limits(memtable_bytes: u64) -> Limits {
    let base = Limits::base(memtable_bytes);
    Limits {
        level0_runs_slowdown: Some(8),
        level0_runs_stop: Some(12),
        overlap_bytes_max: Some(10 * base.table_bytes_max),
        parallel_max: 1,
        ..base
    }
}

fn level0_excess(view: &View<'_>) -> f64 {
    let is_due = view.version.level0().len() >= view.limits.level0_runs_trigger;
    if is_due { view.version.level(0).bytes() as f64 } else { 0.0 }
}

/// The node to go on with: the first that has keys at or after the cursor, else the first of all.
pub(in crate::policy) fn next_node<'a>(
    nodes: &'a [Arc<Node>],
    cursor: Option<&Key>,
) -> Option<&'a Arc<Node>> {
    let at = cursor.map_or(0, |key| nodes.partition_point(|n| !n.range.is_before_end(key)));
    nodes.get(at).or(nodes.first())
}

fn pick_level(view: &View<'_>, level: u8, why: Why) -> Option<Plan> {
    let cursor = view.version.cursors.get(usize::from(level)).and_then(Option::as_ref);
    if level == 0 {
        let mut stack: Vec<_> = view.version.level0().iter().collect();
        stack.sort_by(|a, b| (&a.range.start, a.run.id).cmp(&(&b.range.start, b.run.id)));
        let after = |key: &Key| stack.iter().find(|slice| slice.range.is_before_end(key));
        let seed = cursor.and_then(after).or(stack.first())?;
        return Some(finish_level0(view, &seed.range, why));
    }
    let node = next_node(&view.version.level(level).nodes, cursor)?;
    Some(finish_node(view, level, node, why))
}

fn finish_level0(view: &View<'_>, seed: &KeyRange, why: Why) -> Plan {
    let slices = level0_closure(view.version, seed);
    let mut candidate = Candidate::level0(view.version, &slices, 1);
    let mut upper = crate::version::hull(slices.iter().copied());
    let wider = level0_closure(view.version, &candidate.range);
    if wider.len() > slices.len() {
        let wide = Candidate::level0(view.version, &wider, 1);
        if accepts(view, &candidate, &wide, 1) {
            upper = crate::version::hull(wider.iter().copied());
            candidate = wide;
        }
    }
    finish(view, 0, candidate, upper, why)
}

pub(in crate::policy) fn finish_node(
    view: &View<'_>,
    level: u8,
    node: &Arc<Node>,
    why: Why,
) -> Plan {
    let upper = std::slice::from_ref(node);
    let mut candidate = Candidate::nodes(view.version, level, upper);
    let mut range = node.range.clone();
    let wider = view.version.level(level).overlap(&candidate.range);
    if wider.len() > 1 {
        let wide = Candidate::nodes(view.version, level, wider);
        if accepts(view, &candidate, &wide, wider.len()) {
            range = super::candidates::cover(wider);
            candidate = wide;
        }
    }
    finish(view, level, candidate, range, why)
}

/// More of the upper level may join when that brings in no more of the lower level, and stays
/// small.
fn accepts(view: &View<'_>, narrow: &Candidate, wide: &Candidate, wide_uppers: usize) -> bool {
    let narrow_uppers = 1;
    narrow.inputs.len() - narrow_uppers == wide.inputs.len() - wide_uppers
        && narrow.lower_bytes + wide.upper_bytes < view.limits.expansion_bytes_max
}

fn finish(view: &View<'_>, level: u8, candidate: Candidate, upper: KeyRange, why: Why) -> Plan {
    let may_move = view
        .limits
        .overlap_bytes_max
        .is_none_or(|max| view.version.level(level + 2).overlap_bytes(&candidate.range) <= max);
    let mut plan = candidate.plan(view, level + 1, may_move, why);
    plan.cursors.push((level, upper.end));
    plan
}

/// The run that has used up most of the misses that it may have.
fn pick_seeks(view: &View<'_>) -> Option<Plan> {
    if !view.limits.seek_compaction {
        return None;
    }
    let last = last_level(view.version, view.limits);
    let of_run = |misses: &Misses| {
        let node = view.version.node(misses.level, misses.node)?;
        let slice = node.slices.iter().find(|slice| slice.run.id == misses.run)?;
        let allowed = misses_allowed(slice.bytes, view.limits);
        Some((misses.level, node, slice, misses.gets as f64 / allowed))
    };
    let above_last = view.observed.misses.iter().filter(|misses| misses.level < last);
    let most = above_last.filter_map(of_run).max_by(|a, b| a.3.total_cmp(&b.3));
    let (level, node, slice, score) = most.filter(|&(.., score)| score >= 1.0)?;
    let why = Why { reason: Reason::Seeks, score };
    Some(match level {
        0 => finish_level0(view, &slice.range, why),
        _ => finish_node(view, level, node, why),
    })
}

/// A miss costs about as much as compacting 16 KiB.
fn misses_allowed(bytes: u64, limits: &Limits) -> f64 {
    (bytes / (16 << 10)).max(limits.seek_misses_min).max(1) as f64
}
