//! Work under way, so that a policy can stay out of its way.
//!
//! Two moves conflict when they take the same node, the same run of level 0, or write to overlapping
//! ranges of one level. A move that takes a node reads it whole; slices that are pushed onto it
//! meanwhile are left behind on top of the output, and are no conflict.

use crate::plan::{Input, Move, Plan};
use crate::version::{NodeId, Version};
use base::{KeyRange, RunId};
use std::collections::{BTreeMap, HashSet};

/// Names a move under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId(u64);

impl WorkId {
    /// The number, unique among the moves of a keyspace since it was opened.
    pub fn number(self) -> u64 {
        self.0
    }
}

#[derive(Clone, Debug)]
struct Work {
    inputs: Vec<Input>,
    /// Where it writes.
    to_level: u8,
    range: KeyRange,
    bytes: u64,
}

/// The moves under way.
#[derive(Clone, Debug, Default)]
pub struct Busy {
    next: u64,
    works: BTreeMap<WorkId, Work>,
    nodes: HashSet<(u8, NodeId)>,
    level0_runs: HashSet<RunId>,
}

impl Busy {
    /// Nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.works.is_empty()
    }

    /// Moves under way.
    pub fn count(&self) -> usize {
        self.works.len()
    }

    /// A plan that was made for `version` begins.
    pub fn begin(&mut self, version: &Version, plan: &Plan) -> WorkId {
        let (inputs, to_level) = plan.action.inputs();
        let mut range: Option<KeyRange> = None;
        let mut bytes = 0;
        for input in &inputs {
            let node = version.node(input.level, input.node);
            for slice in node.iter().flat_map(|node| &node.slices) {
                if input.runs.contains(&slice.run.id) {
                    range = Some(range.map_or(slice.range.clone(), |r| r.union(&slice.range)));
                    bytes += slice.bytes;
                }
            }
            if input.level > 0 {
                range = range.map(|r| node.map_or(r.clone(), |node| r.union(&node.range)));
            }
        }
        if let Move::Balance { range: moved, .. } = &plan.action {
            range = Some(moved.clone());
        }
        let range = range.unwrap_or_else(|| KeyRange::new([], Some([].into())));
        let id = WorkId(self.next);
        self.next += 1;
        self.works.insert(id, Work { inputs, to_level, range, bytes });
        self.index();
        id
    }

    /// A move ended, one way or the other.
    pub fn end(&mut self, id: WorkId) {
        self.works.remove(&id);
        self.index();
    }

    fn index(&mut self) {
        self.nodes.clear();
        self.level0_runs.clear();
        for input in self.works.values().flat_map(|work| &work.inputs) {
            match input.level {
                0 => self.level0_runs.extend(&input.runs),
                level => _ = self.nodes.insert((level, input.node)),
            }
        }
    }

    /// A move takes this node (below level 0).
    pub fn node(&self, level: u8, node: NodeId) -> bool {
        self.nodes.contains(&(level, node))
    }

    /// A move takes this run of level 0.
    pub fn level0_run(&self, run: RunId) -> bool {
        self.level0_runs.contains(&run)
    }

    /// A move writes to this level, to nodes that may overlap `range`. Level 0 never: its stack
    /// takes new runs at any time.
    pub fn range(&self, level: u8, range: &KeyRange) -> bool {
        level > 0 && self.works.values().any(|w| w.to_level == level && w.range.overlaps(range))
    }

    /// A move takes something from this level, or writes to it.
    pub fn level(&self, level: u8) -> bool {
        self.works.values().any(|work| {
            work.to_level == level || work.inputs.iter().any(|input| input.level == level)
        })
    }

    /// Bytes of a level that are on their way to a deeper one.
    pub fn leaving_bytes(&self, version: &Version, level: u8) -> u64 {
        let works = self.works.values().filter(|work| work.to_level > level);
        let inputs = works.flat_map(|work| &work.inputs).filter(|input| input.level == level);
        inputs
            .filter_map(|input| Some((input, version.node(level, input.node)?)))
            .flat_map(|(input, node)| {
                node.slices.iter().filter(|slice| input.runs.contains(&slice.run.id))
            })
            .map(|slice| slice.bytes)
            .sum()
    }

    /// Bytes of all inputs under way.
    pub fn bytes(&self) -> u64 {
        self.works.values().map(|work| work.bytes).sum()
    }

    /// Whether `plan` conflicts with a move under way.
    pub fn conflicts(&self, version: &Version, plan: &Plan) -> bool {
        let (inputs, to_level) = plan.action.inputs();
        let taken = inputs.iter().any(|input| match input.level {
            0 => input.runs.iter().any(|&run| self.level0_run(run)),
            level => self.node(level, input.node),
        });
        taken
            || inputs.iter().any(|input| {
                let node = version.node(input.level, input.node);
                let hull = node.map(|node| match input.level {
                    0 => crate::version::hull(
                        node.slices.iter().filter(|s| input.runs.contains(&s.run.id)),
                    ),
                    _ => node.range.clone(),
                });
                hull.is_some_and(|hull| self.range(to_level, &hull))
            })
    }
}
