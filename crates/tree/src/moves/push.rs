//! The push and the drop of slices: moves that are an edit alone.

use crate::edit::{Change, SliceRecord};
use crate::moves::stage::Stage;
use crate::moves::{SizeEstimate, check_inputs, conflict, input_node, split};
use crate::plan::Input;
use crate::version::{Node, Slice, Version, hull};
use base::{KeyRange, Result, RunId, SequenceNumber};

/// The input's slices go on top of the nodes of `to_level`, cut at their ranges. A node that is
/// left with an empty stack goes.
pub fn push(
    version: &Version,
    input: &Input,
    to_level: u8,
    sizes: &dyn SizeEstimate,
) -> Result<Vec<Change>> {
    check_inputs(version, std::slice::from_ref(input), to_level)?;
    if to_level <= input.level {
        return Err(conflict(format!("a push from level {} to {to_level}", input.level)));
    }
    let node = input_node(version, input)?;
    let (taken, left) = split(node, input);
    let mut changes = leave(input, node, &left);
    let range = hull(&taken);
    let mut stage = Stage::new(version.level(to_level), &range, &[], version.next_node);
    if !taken.is_empty() {
        stage.put(&taken, sizes);
    }
    changes.extend(stage.changes(to_level));
    Ok(changes)
}

/// The input leaves its node; below level 0 the node goes too when nothing is `left`.
pub(crate) fn leave(input: &Input, node: &Node, left: &[Slice]) -> Vec<Change> {
    match left.is_empty() && input.level > 0 {
        true => vec![Change::RemoveNode { level: input.level, node: input.node }],
        false => take_off(input, node, left),
    }
}

/// The input leaves its node, which stays with what is `left`. An edit takes slices away by run:
/// where a run is shown by what is left too, the whole stack goes, and what is left comes back.
pub(crate) fn take_off(input: &Input, node: &Node, left: &[Slice]) -> Vec<Change> {
    let is_taken_in_part = input.runs().any(|run| left.iter().any(|slice| slice.run.id == run));
    if is_taken_in_part {
        return replace_stack(input.level, node, left.iter().map(Slice::record).collect());
    }
    let mut runs: Vec<RunId> = Vec::with_capacity(input.slices.len());
    for run in input.runs() {
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    vec![Change::RemoveSlices { level: input.level, node: input.node, runs }]
}

/// A node gets another stack.
pub(crate) fn replace_stack(level: u8, node: &Node, slices: Vec<SliceRecord>) -> Vec<Change> {
    let (id, runs) = (node.id, node.runs());
    let remove = Change::RemoveSlices { level, node: id, runs };
    vec![remove, Change::PushSlices { level, node: id, slices }]
}

/// The slices that a deletion of `range` at sequence number `below` hides entirely: they lie in the
/// range and hold nothing that is newer. They can be dropped while the deletion itself stays, once
/// no snapshot older than it is left.
pub fn covered(version: &Version, range: &KeyRange, below: SequenceNumber) -> Vec<Input> {
    let mut inputs = Vec::new();
    for (level, nodes) in (0u8..).zip(&version.levels) {
        for node in nodes.overlap(range) {
            let is_hidden =
                |slice: &&Slice| range.covers(&slice.range) && slice.run.sequence_max < below;
            let input = Input::of(level, node.id, node.slices.iter().filter(is_hidden));
            if !input.slices.is_empty() {
                inputs.push(input);
            }
        }
    }
    inputs
}
