//! The push and the drop of slices: moves that are an edit alone.

use crate::edit::Change;
use crate::moves::stage::Stage;
use crate::moves::{SizeEstimate, check_inputs, conflict, input_node, split};
use crate::plan::Input;
use crate::version::{Version, hull};
use base::{KeyRange, Result, SequenceNumber};

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
    let mut changes = vec![leave(input, left.is_empty())];
    let range = hull(&taken);
    let mut stage = Stage::new(version.level(to_level), &range, &[], version.next_node);
    if !taken.is_empty() {
        stage.put(&taken, sizes);
    }
    changes.extend(stage.changes(to_level));
    Ok(changes)
}

/// The input leaves its node; the node goes too when its stack becomes empty.
pub(crate) fn leave(input: &Input, empties: bool) -> Change {
    let Input { level, node, ref runs } = *input;
    if empties && level > 0 {
        Change::RemoveNode { level, node }
    } else {
        Change::RemoveSlices { level, node, runs: runs.clone() }
    }
}

/// The slices that a deletion of `range` at sequence number `below` hides entirely: they lie in the
/// range and hold nothing that is newer. They can be dropped while the deletion itself stays, once
/// no snapshot older than it is left.
pub fn covered(version: &Version, range: &KeyRange, below: SequenceNumber) -> Vec<Input> {
    let mut inputs = Vec::new();
    for (level, nodes) in (0u8..).zip(&version.levels) {
        for node in nodes.overlap(range) {
            let hidden = |run| {
                node.slices
                    .iter()
                    .filter(|s| s.run.id == run)
                    .all(|slice| range.covers(&slice.range) && slice.run.sequence_max < below)
            };
            let runs: Vec<_> = node.runs().into_iter().filter(|&run| hidden(run)).collect();
            if !runs.is_empty() {
                inputs.push(Input { level, node: node.id, runs });
            }
        }
    }
    inputs
}
