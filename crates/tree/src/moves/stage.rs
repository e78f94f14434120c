//! A part of a level being rearranged: nodes that stay, new nodes, and stacks that come down on
//! them.

use crate::edit::{Change, RunRecord, SliceRecord};
use crate::moves::SizeEstimate;
use crate::moves::size::proportional;
use crate::version::{Level, NodeId, Slice, hull};
use base::KeyRange;

/// A node of the stage.
struct Staged {
    id: NodeId,
    range: KeyRange,
    is_new: bool,
    grew: bool,
    /// What goes on top, newest first.
    slices: Vec<SliceRecord>,
}

/// The nodes of a level over some keys. New nodes are numbered from `next_node`.
pub(crate) struct Stage {
    nodes: Vec<Staged>,
    next_node: u64,
}

/// What one node of a level gets of a key range. `node`: none, where a new one is needed.
pub(crate) struct Share {
    pub(crate) node: Option<NodeId>,
    pub(crate) range: KeyRange,
    at: usize,
}

impl Stage {
    /// The nodes of `level` that overlap `over`, without those that go away.
    pub(crate) fn new(level: &Level, over: &KeyRange, gone: &[NodeId], next_node: u64) -> Stage {
        let staged = level.overlap(over).iter().filter(|node| !gone.contains(&node.id));
        let nodes = staged
            .map(|node| Staged {
                id: node.id,
                range: node.range.clone(),
                is_new: false,
                grew: false,
                slices: Vec::new(),
            })
            .collect();
        Stage { nodes, next_node }
    }

    /// The first node that overlaps `range`.
    pub(crate) fn overlapping(&self, range: &KeyRange) -> Option<NodeId> {
        self.nodes.iter().find(|node| node.range.overlaps(range)).map(|node| node.id)
    }

    /// A new node.
    pub(crate) fn add(&mut self, range: KeyRange, slices: Vec<SliceRecord>) {
        let id = NodeId(self.next_node);
        self.next_node += 1;
        let at = self.nodes.partition_point(|node| node.range.start <= range.start);
        self.nodes.insert(at, Staged { id, range, is_new: true, grew: false, slices });
    }

    /// Cuts `range` at the nodes, by the rule for gaps of [`crate::moves`].
    pub(crate) fn shares(&self, range: &KeyRange) -> Vec<Share> {
        let hit: Vec<usize> =
            (0..self.nodes.len()).filter(|&at| self.nodes[at].range.overlaps(range)).collect();
        if hit.is_empty() {
            return vec![Share { node: None, range: range.clone(), at: 0 }];
        }
        let start = |place: usize| self.nodes[hit[place]].range.start.clone();
        (0..hit.len())
            .map(|place| {
                let from = if place == 0 { range.start.clone() } else { start(place) };
                let to =
                    if place + 1 < hit.len() { Some(start(place + 1)) } else { range.end.clone() };
                let at = hit[place];
                Share { node: Some(self.nodes[at].id), range: KeyRange::new(from, to), at }
            })
            .collect()
    }

    /// Puts a stack, newest first, on top of the nodes, cut at their ranges.
    pub(crate) fn put(&mut self, stack: &[Slice], sizes: &dyn SizeEstimate) {
        let shares = self.shares(&hull(stack));
        let mut parts: Vec<Vec<SliceRecord>> = shares.iter().map(|_| Vec::new()).collect();
        for slice in stack {
            let size = |range: &KeyRange| sizes.bytes(&slice.run, range);
            cut(&slice.record(), &shares, &size, &mut parts);
        }
        self.put_parts(shares, parts);
    }

    fn put_parts(&mut self, shares: Vec<Share>, parts: Vec<Vec<SliceRecord>>) {
        for (share, mut got) in shares.into_iter().zip(parts) {
            if got.is_empty() {
                continue;
            }
            if share.node.is_none() {
                self.add(share.range, got);
                return;
            }
            let node = &mut self.nodes[share.at];
            let needs = got.iter().fold(node.range.clone(), |range, s| range.union(&s.range));
            node.grew |= needs != node.range;
            node.range = needs;
            got.append(&mut node.slices);
            node.slices = got;
        }
    }

    /// Puts a run that was just written on top of the nodes, cut at their ranges.
    pub(crate) fn put_run(&mut self, run: &RunRecord) {
        let size = |range: &KeyRange| proportional(&run.range, run.bytes, range);
        let slice = SliceRecord::whole(run);
        let shares = self.shares(&run.range);
        let mut parts: Vec<Vec<SliceRecord>> = shares.iter().map(|_| Vec::new()).collect();
        cut(&slice, &shares, &size, &mut parts);
        self.put_parts(shares, parts);
    }

    /// The changes that bring the stage about.
    pub(crate) fn changes(self, level: u8) -> Vec<Change> {
        let mut changes = Vec::new();
        for Staged { id: node, range, is_new, grew, slices } in self.nodes {
            if is_new {
                changes.push(Change::AddNode { level, node, range, slices });
                continue;
            }
            if grew {
                changes.push(Change::SetRange { level, node, range });
            }
            if !slices.is_empty() {
                changes.push(Change::PushSlices { level, node, slices });
            }
        }
        changes
    }
}

/// Cuts a slice at the shares; the bytes of the parts sum up to those of the slice. They are an
/// estimate, and may be 0 for a part that has entries.
fn cut(
    slice: &SliceRecord,
    shares: &[Share],
    size: &dyn Fn(&KeyRange) -> u64,
    parts: &mut [Vec<SliceRecord>],
) {
    let mut left = slice.bytes;
    let hit: Vec<usize> =
        (0..shares.len()).filter(|&at| shares[at].range.overlaps(&slice.range)).collect();
    for (place, &at) in hit.iter().enumerate() {
        let range = slice.range.intersect(&shares[at].range);
        let is_last = place + 1 == hit.len();
        let bytes = if is_last { left } else { size(&range).min(left) };
        left -= bytes;
        parts[at].push(SliceRecord { run: slice.run, range, bytes });
    }
}
