//! Which inputs may move: a move never takes newer data below older data of the same key.
//!
//! By key ranges, which is exact enough to be safe and needs no look at the data:
//! - In its own stack, a slice that is left behind under a taken slice that it overlaps would come
//!   to stand above newer data: refused. If the output goes back into the same stack, it takes the
//!   place of the oldest taken slice, and only slices above that place count.
//! - On levels between, a slice that is not taken and overlaps a taken one would come to stand
//!   above newer data too: refused.

use crate::moves::{conflict, input_node};
use crate::plan::Input;
use crate::version::{Node, Slice, SliceId, Version};
use base::Result;

/// Refuses inputs that do not exist, or that would take newer data below older data.
pub fn check_inputs(version: &Version, inputs: &[Input], to_level: u8) -> Result<()> {
    for input in inputs {
        if input.level > to_level {
            return Err(conflict(format!("level {} lies below {to_level}", input.level)));
        }
        let node = input_node(version, input)?;
        let is_there = |id: &SliceId| node.slices.iter().any(|slice| id.names(slice));
        if let Some(SliceId { run, range }) = input.slices.iter().find(|id| !is_there(id)) {
            let place = format!("node {} at level {}", node.id.0, input.level);
            return Err(conflict(format!("{place} has no slice {range:?} of run {run}")));
        }
        check_stack(node, input, to_level)?;
        check_between(version, inputs, input, node, to_level)?;
    }
    Ok(())
}

fn check_stack(node: &Node, input: &Input, to_level: u8) -> Result<()> {
    let taken = |slice: &Slice| input.takes(slice);
    let in_place = input.level == to_level;
    let oldest = node.slices.iter().rposition(taken).unwrap_or_default();
    let end = if in_place { oldest } else { node.slices.len() };
    for (at, left) in node.slices.iter().enumerate().take(end) {
        let newer = &node.slices[..at];
        if taken(left) {
            continue;
        }
        if let Some(above) = newer.iter().find(|s| taken(s) && s.range.overlaps(&left.range)) {
            return Err(conflict(format!(
                "run {} of node {} at level {} would pass below the older run {}",
                above.run.id, node.id.0, input.level, left.run.id
            )));
        }
    }
    Ok(())
}

fn check_between(
    version: &Version,
    inputs: &[Input],
    input: &Input,
    node: &Node,
    to_level: u8,
) -> Result<()> {
    for level in input.level.saturating_add(1)..to_level {
        for slice in input.taken(node) {
            for between in version.level(level).overlap(&slice.range) {
                let taken = inputs.iter().find(|i| i.level == level && i.node == between.id);
                let left = between.slices.iter().find(|other| {
                    other.range.overlaps(&slice.range)
                        && !taken.is_some_and(|input| input.takes(other))
                });
                if let Some(left) = left {
                    return Err(conflict(format!(
                        "run {} would pass below the older run {} at level {level}",
                        slice.run.id, left.run.id
                    )));
                }
            }
        }
    }
    Ok(())
}
