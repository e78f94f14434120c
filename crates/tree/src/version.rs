//! Versions: the tree at one moment, immutable, shared by readers.
//!
//! Invariants (checked by `invariant`): nodes of a level are disjoint and in key order; level 0 is
//! one node over all keys whose stack is the flushed runs; in a stack newer slices stand before
//! older ones; a slice lies in its run's range and in its node's range.
//!
//! A table file lives as long as a slice in a live version points into it: a [`Run`] holds its
//! [`FileRef`], and the last one to go reports the file to the [`ObsoleteFiles`]. Nothing counts
//! references but `Arc`, so the count is a function of the live versions and never stored.

pub use crate::file_ref::{DeadFile, FileRef, FileRefKind, ObsoleteFiles};
pub use crate::node_id::NodeId;

use crate::edit::{Change, RunRecord, SegmentChange, SliceRecord};
use crate::run::RunMetadata;
use crate::segments::{Segment, Segments};
use crate::sketch::KeySketch;
use base::cause::LEVELS_MAX;
use base::{Key, KeyRange, RunId, SequenceNumber};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// A run of a version, which keeps its file alive.
pub type Run = RunMetadata<Arc<FileRef>>;

impl Run {
    /// The run as the manifest records it.
    pub fn record(&self) -> RunRecord {
        self.in_file(self.file.id)
    }
}

/// A key range of a run: what a node sees of it. Never empty.
#[derive(Clone, Debug)]
pub struct Slice {
    /// The run.
    pub run: Arc<Run>,
    /// Keys of the run outside this range do not exist for the node.
    pub range: KeyRange,
    /// Bytes of the run inside the range; exact for a whole run. For a part it is an estimate, and
    /// may be 0 although the part has entries.
    pub bytes: u64,
}

impl Slice {
    /// The whole of `run`.
    pub fn whole(run: Arc<Run>) -> Slice {
        Slice { range: run.range.clone(), bytes: run.bytes, run }
    }

    /// What names it.
    pub fn id(&self) -> SliceId {
        SliceId { run: self.run.id, range: self.range.clone() }
    }

    /// The share of the run's bytes that it shows; for a part, an estimate.
    pub fn shown_share(&self) -> f64 {
        self.bytes as f64 / self.run.bytes.max(1) as f64
    }

    /// The slice as the manifest records it.
    pub fn record(&self) -> SliceRecord {
        SliceRecord { run: self.run.id, range: self.range.clone(), bytes: self.bytes }
    }

    /// It shows its run entirely.
    pub fn is_whole(&self) -> bool {
        self.range.covers(&self.run.range)
    }
}

/// Names one slice of a version: those of one run are disjoint, on one node as on several. A node
/// may have more than one of a run, and a run alone names none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceId {
    /// Its run.
    pub run: RunId,
    /// Its keys.
    pub range: KeyRange,
}

impl SliceId {
    /// `slice` is the one that it names.
    pub fn names(&self, slice: &Slice) -> bool {
        self.run == slice.run.id && self.range == slice.range
    }
}

/// Level 0's only node.
pub const LEVEL0_NODE: NodeId = NodeId(0);

/// A key range of a level with a stack of slices, newest first.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// The keys it answers for.
    pub range: KeyRange,
    /// Newest first.
    pub slices: Vec<Slice>,
    /// [`Node::keys`], once they were asked for.
    pub(crate) keys: OnceLock<Option<Box<KeySketch>>>,
}

impl Node {
    /// A node with a stack.
    pub fn new(id: NodeId, range: KeyRange, slices: Vec<Slice>) -> Node {
        Node { id, range, slices, keys: OnceLock::new() }
    }

    /// Bytes of the stack.
    pub fn bytes(&self) -> u64 {
        self.slices.iter().map(|slice| slice.bytes).sum()
    }

    /// Bytes of the largest slice. What else the stack has may supersede as much, and no more: two
    /// slices have at most the keys of the smaller one in common.
    pub fn largest_bytes(&self) -> u64 {
        self.slices.iter().map(|slice| slice.bytes).max().unwrap_or(0)
    }

    /// A sketch of all keys that its runs have, also outside of their slices. `None`: a run has
    /// no sketch.
    pub fn keys(&self) -> Option<&KeySketch> {
        let union = || {
            let mut union = Box::<KeySketch>::default();
            for slice in &self.slices {
                union.add_all(slice.run.keys.sketch()?);
            }
            Some(union)
        };
        self.keys.get_or_init(union).as_deref()
    }

    /// The runs of the stack, newest first, each once.
    pub fn runs(&self) -> Vec<RunId> {
        let mut runs: Vec<RunId> = Vec::with_capacity(self.slices.len());
        for slice in &self.slices {
            if !runs.contains(&slice.run.id) {
                runs.push(slice.run.id);
            }
        }
        runs
    }

    /// The smallest range that covers every slice; empty for an empty stack.
    pub fn hull(&self) -> KeyRange {
        hull(&self.slices)
    }
}

/// The smallest range that covers every slice; empty when there is none.
pub fn hull<'a>(slices: impl IntoIterator<Item = &'a Slice>) -> KeyRange {
    let none = KeyRange { start: Key::from([]), end: Some(Key::from([])) };
    slices.into_iter().fold(none, |hull, slice| hull.union(&slice.range))
}

/// Nodes with disjoint ranges, in key order.
///
/// Cheap to clone: versions share the levels that an edit does not touch, and the nodes of those
/// that it does.
#[derive(Clone, Debug)]
pub struct Level {
    /// In key order.
    pub nodes: Arc<Vec<Arc<Node>>>,
    /// Their numbers, so that one is found without a look at the nodes.
    ids: Arc<Vec<NodeId>>,
    bytes: u64,
}

impl Default for Level {
    fn default() -> Level {
        Level::new(Vec::new())
    }
}

impl Level {
    /// A level of these nodes, which are in key order.
    pub fn new(nodes: Vec<Arc<Node>>) -> Level {
        let bytes = nodes.iter().map(|node| node.bytes()).sum();
        let ids = nodes.iter().map(|node| node.id).collect();
        Level::from_parts(nodes, ids, bytes)
    }

    pub(crate) fn from_parts(nodes: Vec<Arc<Node>>, ids: Vec<NodeId>, bytes: u64) -> Level {
        Level { nodes: Arc::new(nodes), ids: Arc::new(ids), bytes }
    }

    /// The nodes and their numbers, copied if another version shares them; and the bytes.
    pub(crate) fn into_parts(self) -> (Vec<Arc<Node>>, Vec<NodeId>, u64) {
        (Arc::unwrap_or_clone(self.nodes), Arc::unwrap_or_clone(self.ids), self.bytes)
    }

    pub(crate) fn ids(&self) -> &[NodeId] {
        &self.ids
    }

    /// Bytes of all stacks. Costs nothing: a level knows it.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// A node has a slice. The estimate of its bytes may be 0 all the same.
    pub fn has_slices(&self) -> bool {
        self.bytes > 0 || self.nodes.iter().any(|node| !node.slices.is_empty())
    }

    /// The node of this number. Looks at every number.
    pub fn node(&self, id: NodeId) -> Option<&Arc<Node>> {
        self.ids.iter().position(|&other| other == id).map(|at| &self.nodes[at])
    }

    /// The nodes whose ranges overlap `range`.
    pub fn overlap(&self, range: &KeyRange) -> &[Arc<Node>] {
        &self.nodes[self.overlapping(range)]
    }

    /// Bytes of the nodes that overlap `range`, each counted whole.
    pub fn overlap_bytes(&self, range: &KeyRange) -> u64 {
        self.overlap(range).iter().map(|node| node.bytes()).sum()
    }

    /// Whether a node that overlaps `range` has a slice, of however few bytes: bytes of a slice are
    /// an estimate, which may be 0 where it has entries.
    pub fn has_slices_in(&self, range: &KeyRange) -> bool {
        self.overlap(range).iter().any(|node| !node.slices.is_empty())
    }

    /// The nodes whose ranges overlap `range`, as indexes into [`Level::nodes`].
    pub fn overlapping(&self, range: &KeyRange) -> std::ops::Range<usize> {
        if range.is_empty() {
            return 0..0;
        }
        let first = self.nodes.partition_point(|node| {
            node.range.end.as_ref().is_some_and(|end| **end <= *range.start)
        });
        let after = self.nodes.partition_point(|node| range.is_before_end(&node.range.start));
        first..after.max(first)
    }

    /// The node whose range holds `key`.
    pub fn find(&self, key: &[u8]) -> Option<&Arc<Node>> {
        let after = self.nodes.partition_point(|node| *node.range.start <= *key);
        self.nodes[..after].last().filter(|node| node.range.is_before_end(key))
    }
}

/// The levels of a keyspace at one moment. Two versions are equal when they would be recorded
/// alike.
#[derive(Clone, Debug)]
pub struct Version {
    /// Level 0 first. Never empty; level 0 always has its one node.
    pub levels: Vec<Level>,
    /// For each level, where round-robin picking goes on; policies keep their state here.
    pub cursors: Vec<Option<Key>>,
    /// The next node number.
    pub next_node: u64,
    /// Every entry up to this sequence number is in runs, or was not needed.
    pub flushed_sequence: SequenceNumber,
    /// It may hold entries that expire.
    pub may_expire: bool,
    /// Where large values are.
    pub segments: Segments,
    /// Kept by each edit; see [`Version::file_bytes`].
    pub(crate) file_bytes: u64,
}

/// What a version uses of a file.
#[derive(Clone, Debug)]
pub struct FileUsage {
    /// The file.
    pub file: Arc<FileRef>,
    /// Bytes of the slices that point into it.
    pub live_bytes: u64,
    /// Bytes in the file.
    pub total_bytes: u64,
}

impl FileUsage {
    fn change(&self) -> Change {
        let (file, bytes) = (self.file.id, self.total_bytes);
        match self.file.identity {
            None => Change::File { file, bytes },
            Some(identity) => Change::IngestedFile { file, bytes, identity },
        }
    }
}

/// The level of what was ingested below all else. No policy sees it, and no move leads there.
pub const BELOW_LEVEL: u8 = LEVELS_MAX - 1;

impl Version {
    /// The tree as policies see it: without [`BELOW_LEVEL`].
    pub fn without_below(self: &Arc<Self>) -> Arc<Version> {
        if self.level(BELOW_LEVEL).nodes.is_empty() {
            return self.clone();
        }
        let mut above = Version::clone(self);
        let below = std::mem::take(&mut above.levels[usize::from(BELOW_LEVEL)]);
        let slices = below.nodes.iter().flat_map(|node| &node.slices);
        let files = slices.map(|slice| (slice.run.file.id, slice.run.file.bytes()));
        let below_bytes: u64 = files.collect::<BTreeMap<_, _>>().values().sum();
        above.file_bytes = above.file_bytes.saturating_sub(below_bytes);
        Arc::new(above)
    }

    /// A tree of `levels` levels (1 to [`LEVELS_MAX`]; others are clamped) that holds nothing.
    pub fn empty(levels: u8) -> Version {
        let count = usize::from(levels.clamp(1, LEVELS_MAX));
        let root = Node::new(LEVEL0_NODE, KeyRange::all(), Vec::new());
        let mut all = vec![Level::default(); count];
        all[0] = Level::new(vec![Arc::new(root)]);
        Version {
            levels: all,
            cursors: vec![None; count],
            next_node: 1,
            flushed_sequence: 0,
            may_expire: false,
            segments: Segments::default(),
            file_bytes: 0,
        }
    }

    /// Level 0's stack: the flushed runs, newest first.
    pub fn level0(&self) -> &[Slice] {
        &self.levels[0].nodes[0].slices
    }

    /// The level of this number; an empty one beyond the last.
    pub fn level(&self, level: u8) -> &Level {
        static NONE: OnceLock<Level> = OnceLock::new();
        self.levels.get(usize::from(level)).unwrap_or_else(|| NONE.get_or_init(Level::default))
    }

    /// The node of this number on this level.
    pub fn node(&self, level: u8, id: NodeId) -> Option<&Arc<Node>> {
        self.level(level).node(id)
    }

    /// The node of every level that holds `key`, from the newest data to the oldest.
    pub fn path<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = &'a Arc<Node>> + 'a {
        self.levels.iter().filter_map(move |level| level.find(key))
    }

    /// Every slice, level by level, stack by stack, newest first.
    pub fn slices(&self) -> impl Iterator<Item = &Slice> {
        self.levels.iter().flat_map(|level| level.nodes.iter()).flat_map(|node| &node.slices)
    }

    /// Live bytes of the tree.
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(Level::bytes).sum()
    }

    /// Bytes of the files that slices point into, with what no slice shows. Costs nothing.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The runs, each once, by number.
    pub fn runs(&self) -> Vec<Arc<Run>> {
        let mut runs: Vec<Arc<Run>> = self.slices().map(|slice| slice.run.clone()).collect();
        runs.sort_by_key(|run| run.id);
        runs.dedup_by_key(|run| run.id);
        runs
    }

    /// How many runs a get may have to ask, at most: the tallest stack of each level.
    pub fn runs_of_key_max(&self) -> usize {
        let tallest = |level: &Level| level.nodes.iter().map(|node| node.slices.len()).max();
        self.levels.iter().filter_map(tallest).sum()
    }

    /// How many runs the tree has.
    pub fn runs_count(&self) -> usize {
        self.runs().len()
    }

    /// The files, by number, each with its live and its total bytes.
    pub fn files(&self) -> Vec<FileUsage> {
        let mut files = BTreeMap::new();
        for slice in self.slices() {
            let file = &slice.run.file;
            let usage = files.entry(file.id).or_insert_with(|| FileUsage {
                file: file.clone(),
                live_bytes: 0,
                total_bytes: file.bytes(),
            });
            usage.live_bytes += slice.bytes;
        }
        files.into_values().collect()
    }

    /// The changes that lead from an empty version to this one: what a rewritten manifest holds.
    /// The next node number is kept too, by a node that comes and goes.
    pub fn snapshot_changes(&self) -> Vec<Change> {
        let mut changes: Vec<Change> =
            self.may_expire.then_some(Change::AllowExpiry).into_iter().collect();
        changes.extend(self.files().iter().map(FileUsage::change));
        changes.extend(self.runs().iter().map(|run| Change::AddRun(run.record())));
        for (level, nodes) in (0u8..).zip(&self.levels) {
            changes.extend(nodes.nodes.iter().filter_map(|node| snapshot_node(level, node)));
        }
        for (level, cursor) in (0u8..).zip(&self.cursors) {
            if cursor.is_some() {
                changes.push(Change::SetCursor { level, key: cursor.clone() });
            }
        }
        if self.flushed_sequence > 0 {
            changes.push(Change::SetFlushed { sequence: self.flushed_sequence });
        }
        changes.extend(self.segments.iter().flat_map(snapshot_segment));
        let largest = self.levels.iter().flat_map(|l| l.nodes.iter()).map(|n| n.id.0).max();
        if largest.is_none_or(|largest| largest + 1 < self.next_node) {
            let level = (self.levels.len() - 1).max(1) as u8;
            let node = NodeId(self.next_node - 1);
            let range = KeyRange::all();
            changes.push(Change::AddNode { level, node, range, slices: Vec::new() });
            changes.push(Change::RemoveNode { level, node });
        }
        changes
    }
}

fn snapshot_node(level: u8, node: &Node) -> Option<Change> {
    let slices = node.slices.iter().map(Slice::record).collect::<Vec<_>>();
    match level {
        0 if slices.is_empty() => None,
        0 => Some(Change::PushSlices { level, node: node.id, slices }),
        _ => Some(Change::AddNode { level, node: node.id, range: node.range.clone(), slices }),
    }
}

fn snapshot_segment(segment: &Segment) -> impl Iterator<Item = Change> {
    let &Segment { group, bytes, dead_bytes, retired, .. } = segment;
    let &Segment { is_provisional, is_in_cold_store, .. } = segment;
    let file = segment.file.id;
    let add = SegmentChange::Add { group, bytes, is_provisional, is_in_cold_store };
    let dead = (dead_bytes > 0).then_some(SegmentChange::Bury(dead_bytes));
    [Some(add), dead]
        .into_iter()
        .chain([retired.map(SegmentChange::Retire)])
        .flatten()
        .map(move |change| Change::Segment { file, change })
}

impl PartialEq for Version {
    fn eq(&self, other: &Version) -> bool {
        self.next_node == other.next_node && self.snapshot_changes() == other.snapshot_changes()
    }
}
