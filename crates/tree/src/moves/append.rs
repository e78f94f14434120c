//! The moves of the LWC-tree: append to children, balance ranges; and the drop of slices.
//!
//! Paper: LWC-tree, section 3 (lightweight compaction, equal division, workload balance).

use crate::edit::{Change, RunRecord, SliceRecord};
use crate::moves::merge::on_top;
use crate::moves::push::{leave, take_off};
use crate::moves::stage::{Share, Stage};
use crate::moves::{Output, OutputNode, check_inputs, conflict, input_node, split};
use crate::plan::Input;
use crate::run_table::RunTable;
use crate::version::{Node, NodeId, Version, hull};
use base::{FileId, Key, KeyRange, Result};

/// The nodes that get the keys of an appended node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// The node below; none where no node answers for any of the keys, and new ones are made.
    pub node: Option<NodeId>,
    /// The keys that it gets.
    pub range: KeyRange,
    /// The file that its next run goes to, and the bytes in it that the version vouches for. None:
    /// a new file.
    pub file: Option<(FileId, u64)>,
}

/// How the input's keys are to be cut for the nodes of `to_level`: in key order, without gaps.
/// `version` is the newest that `runs` knows.
pub fn children(
    version: &Version,
    runs: &RunTable,
    input: &Input,
    to_level: u8,
) -> Result<Vec<Child>> {
    let (taken, _) = split(input_node(version, input)?, input);
    let range = hull(&taken);
    let stage = Stage::new(version.level(to_level), &range, &[], version.next_node);
    let shares = stage.shares(&range);
    let child = |share: Share| Child {
        file: share.node.and_then(|node| own_file(version.node(to_level, node)?, runs)),
        node: share.node,
        range: share.range,
    };
    Ok(shares.into_iter().map(child).collect())
}

/// How the keys of a flush over `range` are to be cut for the nodes of `to_level`: in key order,
/// without gaps.
pub fn flush_parts(version: &Version, range: &KeyRange, to_level: u8) -> Vec<Child> {
    let stage = Stage::new(version.level(to_level), range, &[], version.next_node);
    let child = |share: Share| Child { node: share.node, range: share.range, file: None };
    stage.shares(range).into_iter().map(child).collect()
}

/// The file of a node's newest slice and its bytes, if all slices in that file are the node's: a
/// file is appended to by one node alone, and a link may show one run to several. An ingested file
/// is not appended to.
fn own_file(node: &Node, runs: &RunTable) -> Option<(FileId, u64)> {
    let file = &node.slices.first()?.run.file;
    let own = node.slices.iter().filter(|slice| slice.run.file.id == file.id).count();
    let takes_runs = file.identity.is_none() && runs.slices_in(file.id) == own;
    takes_runs.then(|| (file.id, file.bytes()))
}

/// The input's entries were appended to the files of the nodes below: each gets its new run on top.
/// Runs without a child become nodes of their own. The emptied node stays, with its range, on a
/// level below 0, so that its keys can be balanced.
pub fn append(
    version: &Version,
    input: &Input,
    to_level: u8,
    files: &[(FileId, u64)],
    runs: &[(Option<NodeId>, RunRecord)],
) -> Result<Vec<Change>> {
    check_inputs(version, std::slice::from_ref(input), to_level)?;
    let mut changes: Vec<Change> =
        files.iter().map(|&(file, bytes)| Change::File { file, bytes }).collect();
    let node = input_node(version, input)?;
    changes.extend(take_off(input, node, &split(node, input).1));
    let mut new_nodes = (version.next_node..).map(NodeId);
    for (child, run) in runs {
        changes.push(Change::AddRun(run.clone()));
        let slices: Vec<SliceRecord> = vec![SliceRecord::whole(run)];
        let Some(id) = *child else {
            let node = new_nodes.next().unwrap_or_default();
            let range = run.range.clone();
            changes.push(Change::AddNode { level: to_level, node, range, slices });
            continue;
        };
        let child = version
            .node(to_level, id)
            .ok_or_else(|| conflict(format!("the child {} at level {to_level} is gone", id.0)))?;
        // A node may get several runs, of several files.
        let theirs = runs.iter().filter(|(to, _)| *to == Some(id)).map(|(_, run)| &run.range);
        let range = theirs.fold(child.range.clone(), |range, more| range.union(more));
        if range != child.range {
            changes.push(Change::SetRange { level: to_level, node: id, range });
        }
        changes.push(Change::PushSlices { level: to_level, node: id, slices });
    }
    Ok(changes)
}

/// The input's entries were written to files of their own, in key order: the runs go on top of the
/// stacks of `to_level`. Its nodes may have been rewritten since the runs were cut for them.
pub fn append_on_top(
    version: &Version,
    input: &Input,
    to_level: u8,
    output: &Output,
) -> Result<Vec<Change>> {
    check_inputs(version, std::slice::from_ref(input), to_level)?;
    let mut changes = output.changes();
    let node = input_node(version, input)?;
    changes.extend(take_off(input, node, &split(node, input).1));
    changes.extend(on_top(version, output, to_level));
    Ok(changes)
}

/// The keys of `range`, where `from` has no slices, go from it to `to`. A node that is left without
/// keys goes.
pub fn balance(
    version: &Version,
    level: u8,
    from: NodeId,
    to: NodeId,
    range: &KeyRange,
) -> Result<Vec<Change>> {
    let find = |node| {
        let problem = || conflict(format!("there is no node {} at level {level}", node));
        version.level(level).node(NodeId(node)).ok_or_else(problem)
    };
    let (giver, taker) = (find(from.0)?, find(to.0)?);
    if !giver.range.covers(range) || range.is_empty() {
        return Err(conflict(format!("node {} does not have {range:?} to give", from.0)));
    }
    if giver.slices.iter().any(|slice| slice.range.overlaps(range)) {
        return Err(conflict(format!("node {} has data in {range:?}", from.0)));
    }
    let keeps_end = giver.range.start == range.start;
    let left = if keeps_end {
        range.end.clone().map(|start| KeyRange::new(start, giver.range.end.clone()))
    } else if giver.range.end == range.end {
        Some(KeyRange::new(giver.range.start.clone(), Some(range.start.clone())))
    } else {
        return Err(conflict(format!("{range:?} is not at an end of node {}", from.0)));
    };
    let mut changes = Vec::new();
    match left.filter(|left| !left.is_empty()) {
        Some(range) => changes.push(Change::SetRange { level, node: from, range }),
        None => changes.push(Change::RemoveNode { level, node: from }),
    }
    changes.push(Change::SetRange { level, node: to, range: taker.range.union(range) });
    Ok(changes)
}

/// The slices of the inputs go; a node that is left with an empty stack, or had one, goes too.
pub fn drop_slices(version: &Version, inputs: &[Input]) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for input in inputs {
        let node = input_node(version, input)?;
        let (taken, left) = split(node, input);
        if taken.is_empty() && !left.is_empty() {
            return Err(conflict(format!("node {} has none of the slices", input.node.0)));
        }
        changes.extend(leave(input, node, &left));
    }
    Ok(changes)
}

/// Nodes for runs in key order that together answer for all of `range`: each from its first key
/// (the first from the start of the range) to the next one's.
pub fn tile(range: &KeyRange, runs: Vec<RunRecord>) -> Vec<OutputNode> {
    let starts: Vec<Key> = runs.iter().skip(1).map(|run| run.range.start.clone()).collect();
    let mut from = range.start.clone();
    let mut nodes = Vec::with_capacity(runs.len());
    for (at, run) in runs.into_iter().enumerate() {
        let end = starts.get(at).cloned().map_or(range.end.clone(), Some);
        let start = std::mem::replace(&mut from, end.clone().unwrap_or_default());
        nodes.push(OutputNode { run, range: KeyRange { start, end } });
    }
    nodes
}
