//! The rewriting moves: flush, merge and divide.

use crate::edit::{Change, RunRecord, SliceRecord};
use crate::moves::push::{leave, replace_stack};
use crate::moves::stage::Stage;
use crate::moves::{SizeEstimate, check_inputs, conflict, input_node, split};
use crate::plan::Input;
use crate::version::{LEVEL0_NODE, Node, NodeId, Slice, Version};
use base::{FileId, KeyRange, Result};
use std::sync::Arc;

/// What a rewriting move wrote: files with their lengths, and runs that become nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Files that exist now, or grew, and their bytes.
    pub files: Vec<(FileId, u64)>,
    /// In key order, disjoint.
    pub nodes: Vec<OutputNode>,
}

/// A run that was written, and the range of the node that it becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputNode {
    /// The run.
    pub run: RunRecord,
    /// Covers the run's range.
    pub range: KeyRange,
}

impl OutputNode {
    /// A node over no more keys than its run has.
    pub fn tight(run: RunRecord) -> OutputNode {
        OutputNode { range: run.range.clone(), run }
    }
}

impl Output {
    pub(crate) fn changes(&self) -> Vec<Change> {
        let files = self.files.iter().map(|&(file, bytes)| Change::File { file, bytes });
        let runs = self.nodes.iter().map(|node| Change::AddRun(node.run.clone()));
        files.chain(runs).collect()
    }

    fn hull(&self) -> Option<KeyRange> {
        self.nodes.iter().map(|node| node.range.clone()).reduce(|a, b| a.union(&b))
    }

    fn slices(&self) -> Vec<SliceRecord> {
        self.nodes.iter().map(|node| SliceRecord::whole(&node.run)).collect()
    }
}

/// A memtable became runs, newest first, which go on top of level 0, or become nodes of `to_level`
/// when neither that level nor one above has a key in their range.
pub fn flush(version: &Version, output: &Output, to_level: u8) -> Result<Vec<Change>> {
    let mut changes = output.changes();
    if to_level == 0 {
        let slices = output.slices();
        changes.push(Change::PushSlices { level: 0, node: LEVEL0_NODE, slices });
        return Ok(changes);
    }
    for node in &output.nodes {
        let above = (0..to_level).flat_map(|level| version.level(level).overlap(&node.range));
        if above.flat_map(|other| &other.slices).any(|s| s.range.overlaps(&node.range)) {
            return Err(conflict(format!("a flush would pass older data above level {to_level}")));
        }
    }
    changes.extend(place(version, output, to_level, &[], &[])?);
    Ok(changes)
}

/// A memtable became runs in key order, which go on top of the stacks of the nodes of `to_level`,
/// cut at their ranges; the nodes may have changed since the runs were cut for them.
pub fn flush_onto(version: &Version, output: &Output, to_level: u8) -> Result<Vec<Change>> {
    let mut changes = output.changes();
    let Some(hull) = output.hull() else { return Ok(changes) };
    let above = (0..to_level).flat_map(|level| version.level(level).overlap(&hull));
    if above.flat_map(|other| &other.slices).any(|slice| slice.range.overlaps(&hull)) {
        return Err(conflict(format!("a flush would pass older data above level {to_level}")));
    }
    changes.extend(on_top(version, output, to_level));
    Ok(changes)
}

/// The runs of an output go on top of the stacks of `to_level`, cut at the ranges of the nodes as
/// they are now.
pub(super) fn on_top(version: &Version, output: &Output, to_level: u8) -> Vec<Change> {
    let Some(hull) = output.hull() else { return Vec::new() };
    let mut stage = Stage::new(version.level(to_level), &hull, &[], version.next_node);
    for node in &output.nodes {
        stage.put_run(&node.run);
    }
    stage.changes(to_level)
}

/// The inputs go, and what was merged from them becomes nodes of `to_level`.
///
/// Slices that the inputs leave on nodes of `to_level` arrived later and stay on top. When
/// `to_level` is level 0, or an input leaves older slices behind on its own level, the output goes
/// back into the stacks instead, in the place of the oldest input of each, cut at their nodes'
/// ranges; then all inputs are of that level.
pub fn merge(
    version: &Version,
    inputs: &[Input],
    to_level: u8,
    output: &Output,
    sizes: &dyn SizeEstimate,
) -> Result<Vec<Change>> {
    check_inputs(version, inputs, to_level)?;
    let mut changes = output.changes();
    if goes_back(version, inputs, to_level)? {
        changes.extend(restack(version, inputs, output)?);
        return Ok(changes);
    }
    let mut gone = Vec::new();
    let mut left_behind = Vec::new();
    for input in inputs {
        let node = input_node(version, input)?;
        let (_, left) = split(node, input);
        if input.level == to_level {
            if to_level == 0 || leaves_older(version, input)? {
                return Err(conflict("an input leaves older slices under the output"));
            }
            changes.push(Change::RemoveNode { level: to_level, node: input.node });
            gone.push(input.node);
            left_behind.push(left);
        } else {
            changes.extend(leave(input, node, &left));
        }
    }
    if inputs.iter().all(|input| input.level == to_level) {
        // What came into a gap between the inputs meanwhile has no key of theirs.
        let hull = output.hull().unwrap_or_else(|| KeyRange::new([], Some([].into())));
        for node in version.level(to_level).overlap(&hull) {
            if !gone.contains(&node.id) {
                changes.push(Change::RemoveNode { level: to_level, node: node.id });
                gone.push(node.id);
                left_behind.push(node.slices.clone());
            }
        }
    }
    changes.extend(place_with(version, output, to_level, &gone, &left_behind, sizes)?);
    Ok(changes)
}

/// A node becomes the nodes of the output, on its own level.
pub fn divide(
    version: &Version,
    input: &Input,
    output: &Output,
    sizes: &dyn SizeEstimate,
) -> Result<Vec<Change>> {
    if input.level == 0 {
        return Err(conflict("level 0 keeps its one node"));
    }
    merge(version, std::slice::from_ref(input), input.level, output, sizes)
}

/// The output goes back into the stacks that the inputs are from.
fn goes_back(version: &Version, inputs: &[Input], to_level: u8) -> Result<bool> {
    if inputs.is_empty() || inputs.iter().any(|input| input.level != to_level) {
        return Ok(false);
    }
    let mut goes_back = to_level == 0;
    for input in inputs {
        goes_back |= leaves_older(version, input)?;
    }
    Ok(goes_back)
}

fn leaves_older(version: &Version, input: &Input) -> Result<bool> {
    let node = input_node(version, input)?;
    let mut below = node.slices.iter().skip_while(|slice| !input.takes(slice));
    Ok(below.any(|slice| !input.takes(slice)))
}

fn restack(version: &Version, inputs: &[Input], output: &Output) -> Result<Vec<Change>> {
    let mut nodes = Vec::with_capacity(inputs.len());
    for input in inputs {
        nodes.push((input, input_node(version, input)?));
    }
    nodes.sort_by(|a, b| a.1.range.start.cmp(&b.1.range.start));
    let taken =
        |input: &Input, node: &Node| -> u64 { input.taken(node).map(|slice| slice.bytes).sum() };
    let weights: Vec<u64> = nodes.iter().map(|(input, node)| taken(input, node).max(1)).collect();
    let mut parts: Vec<Vec<SliceRecord>> = nodes.iter().map(|_| Vec::new()).collect();
    for new in &output.nodes {
        spread(&new.run, &nodes, &weights, &mut parts)?;
    }
    let mut changes = Vec::new();
    for ((input, node), parts) in nodes.into_iter().zip(parts) {
        changes.extend(put_back(input, node, parts));
    }
    Ok(changes)
}

/// Cuts a run at the nodes' ranges. Each part counts the bytes that its node's share of the inputs
/// lets expect.
fn spread(
    run: &RunRecord,
    nodes: &[(&Input, &Arc<Node>)],
    weights: &[u64],
    parts: &mut [Vec<SliceRecord>],
) -> Result<()> {
    let hit: Vec<usize> =
        (0..nodes.len()).filter(|&at| nodes[at].1.range.overlaps(&run.range)).collect();
    let (Some(first), Some(last)) = (hit.first(), hit.last()) else {
        return Err(conflict(format!("run {} lies outside the nodes of the inputs", run.id)));
    };
    let total: u64 = weights[*first..=*last].iter().sum();
    let mut left = run.bytes;
    for &at in &hit {
        let range = run.range.intersect(&nodes[at].1.range);
        let share = u128::from(run.bytes) * u128::from(weights[at]) / u128::from(total.max(1));
        let bytes = if at == *last { left } else { (share as u64).min(left) };
        left -= bytes;
        parts[at].push(SliceRecord { run: run.id, range, bytes });
    }
    Ok(())
}

/// A node's stack with `parts` in the place of the oldest slice that was taken.
fn put_back(input: &Input, node: &Node, mut parts: Vec<SliceRecord>) -> Vec<Change> {
    let (level, id) = (input.level, input.node);
    let oldest = node.slices.iter().rposition(|slice| input.takes(slice));
    let mut slices = Vec::new();
    for (at, slice) in node.slices.iter().enumerate() {
        if Some(at) == oldest {
            slices.append(&mut parts);
        } else if !input.takes(slice) {
            slices.push(slice.record());
        }
    }
    if slices.is_empty() && level > 0 {
        return vec![Change::RemoveNode { level, node: id }];
    }
    replace_stack(level, node, slices)
}

fn place(
    version: &Version,
    output: &Output,
    to_level: u8,
    gone: &[NodeId],
    left_behind: &[Vec<Slice>],
) -> Result<Vec<Change>> {
    place_with(version, output, to_level, gone, left_behind, &crate::moves::Proportional)
}

/// New nodes where the output is, with what was left behind on top.
fn place_with(
    version: &Version,
    output: &Output,
    to_level: u8,
    gone: &[NodeId],
    left_behind: &[Vec<Slice>],
    sizes: &dyn SizeEstimate,
) -> Result<Vec<Change>> {
    let Some(hull) = left_behind
        .iter()
        .flatten()
        .map(|slice| slice.range.clone())
        .chain(output.hull())
        .reduce(|a, b| a.union(&b))
    else {
        return Ok(Vec::new());
    };
    let mut stage = Stage::new(version.level(to_level), &hull, gone, version.next_node);
    for node in &output.nodes {
        if let Some(other) = stage.overlapping(&node.range) {
            return Err(conflict(format!(
                "the output {:?} overlaps node {} at level {to_level}",
                node.range, other.0
            )));
        }
        if !node.range.covers(&node.run.range) {
            return Err(conflict(format!("run {} lies outside its node", node.run.id)));
        }
        stage.add(node.range.clone(), vec![SliceRecord::whole(&node.run)]);
    }
    for stack in left_behind.iter().filter(|stack| !stack.is_empty()) {
        stage.put(stack, sizes);
    }
    Ok(stage.changes(to_level))
}
