//! The invariants of a tree, one checker for the engine, tests, fuzzers and `check`.
//!
//! | rule | what it says |
//! |---|---|
//! | `level 0` | one node over all keys |
//! | `node order` | nodes of a level have ranges, which are disjoint and in key order |
//! | `slice place` | a slice has keys, and lies in its run's range and in its node's range |
//! | `run once` | slices of one run are disjoint, and have no more bytes than it |
//! | `extents` | runs lie inside their file and do not overlap there; files are counted rightly |
//! | `level 0 order` | of two overlapping runs in level 0, all of the upper is newer than the lower
//! |
//! | `recency` | of two runs that both hold a key for certain, the upper can be newer there |
//! | `shape` | what the policy demands: height of stacks, no empty nodes |
//!
//! How much of "newer above older" can be seen without the data? Sequence numbers of a run say
//! nothing about single keys: below level 0 a run may hold only entries newer than all of an
//! overlapping run above it, where their keys differ. What a run holds for certain is its first and
//! its last key (without range tombstones its range is tight). Where two runs hold one such key,
//! the upper one's largest sequence number must exceed the lower one's smallest. Level 0 is
//! stronger: flushes do not interleave, so there whole runs compare. The rest of the promise is
//! kept by [`crate::moves::check_inputs`], by ranges, on every move.

use crate::edit::Change;
use crate::version::{LEVEL0_NODE, Level, Node, NodeId, Run, Slice, Version};
use base::{Error, ErrorKind, Key, KeyRange};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// What a policy demands of the tree beyond the invariants of every tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Maximum number of slices of a node below level 0. None: any number.
    pub stack_max: Option<usize>,
    /// Nodes without slices may stand below level 0.
    pub empty_nodes: bool,
}

impl Shape {
    /// Demands nothing: right for a tree that another policy left.
    pub const ANY: Shape = Shape { stack_max: None, empty_nodes: true };
}

/// A broken rule and the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule, as the table above names it.
    pub rule: &'static str,
    /// Level, node, runs and ranges.
    pub place: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the tree breaks the rule \"{}\": {}", self.rule, self.place)
    }
}

impl std::error::Error for Violation {}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Error {
        Error::new(ErrorKind::Corruption, violation.to_string())
    }
}

type Check = Result<(), Violation>;

fn broken(rule: &'static str, place: impl Into<String>) -> Check {
    Err(Violation { rule, place: place.into() })
}

/// Checks a whole version.
pub fn check(version: &Version, shape: &Shape) -> Check {
    let root = &version.levels[0].nodes;
    if root.len() != 1 || root[0].id != LEVEL0_NODE || root[0].range != KeyRange::all() {
        return broken("level 0", format!("{} nodes", root.len()));
    }
    for (level, nodes) in (0u8..).zip(&version.levels) {
        let mut ids = BTreeSet::new();
        for (at, node) in nodes.nodes.iter().enumerate() {
            if !ids.insert(node.id) || node.id.0 >= version.next_node {
                return broken(
                    "node order",
                    format!("a number given twice: {}", name(level, node)),
                );
            }
            check_neighbours(level, &nodes.nodes, at)?;
            check_node(version, level, node, shape)?;
        }
    }
    check_runs(version)
}

/// Checks what the changes that led to `version` touched; costs no more than the edit itself.
pub fn check_edit(version: &Version, changes: &[Change], shape: &Shape) -> Check {
    let mut touched: BTreeSet<(u8, NodeId)> = BTreeSet::new();
    for change in changes {
        match *change {
            Change::AddNode { level, node, .. }
            | Change::PushSlices { level, node, .. }
            | Change::RemoveSlices { level, node, .. }
            | Change::NarrowSlice { level, node, .. }
            | Change::SetRange { level, node, .. } => touched.insert((level, node)),
            _ => false,
        };
    }
    let mut from = touched.iter().peekable();
    while let Some(&&(level, _)) = from.peek() {
        let nodes = &version.level(level).nodes;
        let mut ids = BTreeSet::new();
        while let Some(&(_, id)) = from.next_if(|(other, _)| *other == level) {
            ids.insert(id);
        }
        for at in positions(version.level(level), &ids) {
            check_neighbours(level, nodes, at)?;
            check_node(version, level, &nodes[at], shape)?;
        }
    }
    Ok(())
}

fn positions(level: &Level, ids: &BTreeSet<NodeId>) -> Vec<usize> {
    let find = |id| level.ids().iter().position(|other| other == id);
    ids.iter().filter_map(find).collect()
}

fn name(level: u8, node: &Node) -> String {
    format!("node {} {:?} at level {level}", node.id.0, node.range)
}

fn check_neighbours(level: u8, nodes: &[Arc<Node>], at: usize) -> Check {
    let node = &nodes[at];
    if node.range.is_empty() {
        return broken("node order", format!("{} has no keys", name(level, node)));
    }
    for pair in [at.checked_sub(1), Some(at)].into_iter().flatten() {
        let (Some(left), Some(right)) = (nodes.get(pair), nodes.get(pair + 1)) else { continue };
        if left.range.end.as_ref().is_none_or(|end| *end > right.range.start) {
            let place = format!("{} and {}", name(level, left), name(level, right));
            return broken("node order", place);
        }
    }
    Ok(())
}

fn check_node(version: &Version, level: u8, node: &Node, shape: &Shape) -> Check {
    for slice in &node.slices {
        let fits = node.range.covers(&slice.range) && slice.run.range.covers(&slice.range);
        if slice.range.is_empty() || !fits {
            let place = format!("{:?} of run {}", slice.range, slice.run.id);
            return broken("slice place", format!("{place} in {}", name(level, node)));
        }
        check_recency(version, slice)?;
    }
    if level == 0 {
        return check_level0(node);
    }
    if shape.stack_max.is_some_and(|max| node.slices.len() > max) {
        return broken("shape", format!("{} slices in {}", node.slices.len(), name(level, node)));
    }
    if node.slices.is_empty() && !shape.empty_nodes {
        return broken("shape", format!("no slices in {}", name(level, node)));
    }
    Ok(())
}

fn check_level0(node: &Node) -> Check {
    for (at, upper) in node.slices.iter().enumerate() {
        for lower in &node.slices[at + 1..] {
            let (up, low) = (&upper.run, &lower.run);
            if upper.range.overlaps(&lower.range)
                && up.id != low.id
                && up.sequence_min <= low.sequence_max
            {
                let place = format!("run {} stands above run {}", up.id, low.id);
                return broken("level 0 order", place);
            }
        }
    }
    Ok(())
}

/// The first and the last key of a run, which it holds for certain.
fn certain_keys(run: &Run) -> [Option<Key>; 2] {
    if run.range_deletes > 0 {
        return [None, None];
    }
    let last = run.range.end.as_ref().and_then(|end| end.strip_suffix(&[0]));
    [Some(run.range.start.clone()), last.map(Key::from)]
}

fn check_recency(version: &Version, slice: &Slice) -> Check {
    for (end, key) in certain_keys(&slice.run).into_iter().enumerate() {
        let Some(key) = key.filter(|key| slice.range.contains(key)) else { continue };
        let holders = version.path(&key).flat_map(|node| &node.slices).filter(|other| {
            other.range.contains(&key)
                && match end {
                    0 => other.run.range_deletes == 0 && other.run.range.start == key,
                    _ => other.run.range_deletes == 0 && other.run.range.end == slice.run.range.end,
                }
        });
        let mut above: Option<&Slice> = None;
        for lower in holders {
            if let Some(upper) = above
                && upper.run.sequence_max <= lower.run.sequence_min
            {
                let key = base::key::display_key(&key);
                let place = format!("key {key}: run {} above {}", upper.run.id, lower.run.id);
                return broken("recency", place);
            }
            above = Some(lower);
        }
    }
    Ok(())
}

fn check_runs(version: &Version) -> Check {
    let mut shown: BTreeMap<u64, Vec<&Slice>> = BTreeMap::new();
    for slice in version.slices() {
        shown.entry(slice.run.id.0).or_default().push(slice);
    }
    for (run, slices) in &mut shown {
        slices.sort_by(|a, b| a.range.start.cmp(&b.range.start));
        if let Some(pair) = slices.windows(2).find(|pair| pair[0].range.overlaps(&pair[1].range)) {
            return broken("run once", format!("run {run} at {:?} twice", pair[1].range));
        }
        let bytes = slices.iter().map(|slice| slice.bytes).fold(0, u64::saturating_add);
        if bytes > slices[0].run.bytes {
            return broken("run once", format!("{bytes} bytes of run {run} are more than it has"));
        }
    }
    let mut extents: Vec<&Run> = shown.values().map(|slices| &*slices[0].run).collect();
    extents.sort_by_key(|run| (run.file.id, run.offset));
    for run in &extents {
        if run.offset.checked_add(run.bytes).is_none_or(|end| end > run.file.bytes()) {
            let place = format!("run {} leaves file {} behind", run.id, run.file.id);
            return broken("extents", place);
        }
    }
    let files: u64 = version.files().iter().map(|usage| usage.total_bytes).sum();
    if files != version.file_bytes() {
        let place = format!("{} bytes of files, counted as {}", files, version.file_bytes());
        return broken("extents", place);
    }
    for pair in extents.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        if a.file.id == b.file.id && a.offset + a.bytes > b.offset {
            return broken("extents", format!("runs {} and {} in file {}", a.id, b.id, a.file.id));
        }
    }
    Ok(())
}
