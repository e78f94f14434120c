//! What both presets pick from: sets of nodes that may be merged down together.

use crate::plan::{Cut, Input, Move, Plan};
use crate::policy::View;
use crate::policy::why::Why;
use crate::version::{LEVEL0_NODE, Node, Slice, Version, hull};
use base::KeyRange;
use std::sync::Arc;

/// Slices of level 0, newest first, as input.
pub(super) fn level0_input(slices: &[&Slice]) -> Input {
    Input::of(0, LEVEL0_NODE, slices.iter().copied())
}

/// The slices of level 0 that must go down with `seed`: those that overlap it, directly or through
/// others. Newest first; what is left has none of their keys.
pub(in crate::policy) fn level0_closure<'a>(
    version: &'a Version,
    seed: &KeyRange,
) -> Vec<&'a Slice> {
    let stack = version.level0();
    let mut range = seed.clone();
    loop {
        let hit: Vec<&Slice> = stack.iter().filter(|s| s.range.overlaps(&range)).collect();
        let grown = hull(hit.iter().copied()).union(&range);
        if grown == range {
            return hit;
        }
        range = grown;
    }
}

/// Nodes to merge: `upper` of one level with all of `lower`, the nodes that they overlap.
pub(super) struct Candidate {
    pub(super) inputs: Vec<Input>,
    /// The number of inputs of the upper level; they stand first.
    uppers: usize,
    /// Bytes that go down.
    pub(super) upper_bytes: u64,
    /// Bytes that are rewritten where they are.
    pub(super) lower_bytes: u64,
    /// Covers all inputs.
    pub(super) range: KeyRange,
}

impl Candidate {
    /// Level 0's slices, with what they overlap at `to_level`.
    pub(super) fn level0(version: &Version, slices: &[&Slice], to_level: u8) -> Candidate {
        let range = hull(slices.iter().copied());
        let mut inputs = vec![level0_input(slices)];
        let lower = version.level(to_level).overlap(&range);
        inputs.extend(lower.iter().map(|node| Input::whole(to_level, node)));
        Candidate {
            inputs,
            uppers: 1,
            upper_bytes: slices.iter().map(|slice| slice.bytes).sum(),
            lower_bytes: lower.iter().map(|node| node.bytes()).sum(),
            range: lower.iter().fold(range, |range, node| range.union(&node.range)),
        }
    }

    /// Nodes of `level`, with what they overlap on the next.
    pub(super) fn nodes(version: &Version, level: u8, upper: &[Arc<Node>]) -> Candidate {
        let range = cover(upper);
        let lower = version.level(level + 1).overlap(&range);
        let uppers = upper.iter().map(|node| Input::whole(level, node));
        Candidate {
            uppers: upper.len(),
            inputs: uppers.chain(lower.iter().map(|node| Input::whole(level + 1, node))).collect(),
            upper_bytes: upper.iter().map(|node| node.bytes()).sum(),
            lower_bytes: lower.iter().map(|node| node.bytes()).sum(),
            range: range.union(&cover(lower)),
        }
    }

    /// Nothing below is in the way, and the whole of it is one slice.
    pub(super) fn is_trivial(&self) -> bool {
        self.lower_bytes == 0 && self.inputs.len() == 1 && self.inputs[0].slices.len() == 1
    }

    /// The plan that merges it, or moves it by an edit alone where `may_move`.
    pub(super) fn plan(self, view: &View<'_>, to_level: u8, may_move: bool, why: Why) -> Plan {
        // Bytes of a slice are an estimate; slices are what there is.
        if self.inputs[..self.uppers].iter().all(|input| input.slices.is_empty()) {
            return self.drop_empty(why);
        }
        let trivial = may_move && self.is_trivial();
        let bytes = if trivial { 0 } else { self.upper_bytes + self.lower_bytes };
        let mut inputs = self.inputs;
        let action = if trivial {
            Move::Push { input: inputs.swap_remove(0), to_level }
        } else {
            merge(view, inputs, to_level)
        };
        why.plan(action, bytes)
    }

    /// The upper nodes are empty, as other schemes leave them: they go, and nothing is rewritten.
    fn drop_empty(self, why: Why) -> Plan {
        let inputs = self.inputs.into_iter().take(self.uppers).collect();
        why.plan(Move::Drop { inputs }, 0)
    }
}

/// A merge under the view's limits.
pub(super) fn merge(view: &View<'_>, inputs: Vec<Input>, to_level: u8) -> Move {
    let cut = Cut {
        table_bytes_max: view.limits.table_bytes_max,
        overlap_bytes_max: view.limits.overlap_bytes_max,
    };
    let parallel_max = view.limits.parallel_max.clamp(1, 255) as u8;
    Move::Merge { inputs, to_level, cut, one_file: false, parallel_max }
}

/// The smallest range that covers the ranges of nodes in key order.
pub(super) fn cover(nodes: &[Arc<Node>]) -> KeyRange {
    match (nodes.first(), nodes.last()) {
        (Some(first), Some(last)) => first.range.union(&last.range),
        _ => KeyRange::new([], Some([].into())),
    }
}
