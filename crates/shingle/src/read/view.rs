//! What a reader holds: the memtables and a read form of the tree, at one moment.
//!
//! A [`ReadView`] never changes. Writers and background jobs publish a new one; readers that hold
//! an old one keep its memtables and files alive. The tree's version is compiled into arrays that a
//! lookup walks without chasing pointers. Its slices hold runs of the
//! [table cache](super::table_cache), which are opened on their first read.

use super::context::ReadContext;
use super::hidden::HiddenStretches;
use super::missing;
use super::table_cache::RunHandle;
use crate::memtable::Memtable;
use base::key::CommonStart;
use base::{KeyRange, Result, RunId, SequenceNumber};
use media::FileName;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tree::policy::{Misses, PROBES_PER_SEEK};
use tree::version::{BELOW_LEVEL, LEVEL0_NODE, NodeId};
use tree::{Node, Segments, Version};

/// A slice ready to read.
pub(crate) struct SliceView {
    pub run: Arc<RunHandle>,
    pub id: RunId,
    pub range: KeyRange,
    /// The slice shows its run entirely: no clipping.
    pub is_whole: bool,
    /// Its range covers its node's: a key of the node is a key of the slice.
    pub covers_node: bool,
    pub has_range_deletes: bool,
    /// The newest sequence number in the run.
    pub sequence_max: SequenceNumber,
    /// Gets that probed this slice first and then another, where a policy wants to know.
    misses: AtomicU64,
}

/// A node ready to read.
pub(crate) struct NodeView {
    node: Arc<Node>,
    pub slices: Vec<SliceView>,
    /// Slices of the node that reads have passed without finding anything there.
    passed: AtomicU64,
}

/// Policies look at a node again each time that reads have passed this many of its slices.
const PASSED_PER_LOOK: u64 = 256 * PROBES_PER_SEEK;

impl NodeView {
    pub(crate) fn range(&self) -> &KeyRange {
        &self.node.range
    }

    /// A read found nothing in this many slices of the stack.
    #[inline]
    pub(crate) fn note_passed(&self, slices: usize, context: &ReadContext) {
        if slices > 0 {
            self.add_passed(slices as u64, context);
        }
    }

    /// An ordered read seeks in the node: in each slice of a stack, where one would do.
    #[inline]
    pub(crate) fn note_seek(&self, context: &ReadContext) {
        if self.slices.len() > 1 {
            self.add_passed((self.slices.len() as u64 - 1) * PROBES_PER_SEEK, context);
        }
    }

    fn add_passed(&self, slices: u64, context: &ReadContext) {
        let before = self.passed.fetch_add(slices, Relaxed);
        if before / PASSED_PER_LOOK != (before + slices) / PASSED_PER_LOOK {
            context.set_look_due();
        }
    }
}

/// A level ready to read.
#[derive(Default)]
pub(crate) struct LevelView {
    /// Its number among the version's levels.
    number: usize,
    /// That of the starts of all nodes.
    shared: CommonStart,
    /// The eight bytes after that of each node's start, big-endian: most comparisons end here.
    prefixes: Vec<u64>,
    /// The same of each node's end; the largest number where no key that starts so is behind it.
    ends: Vec<u64>,
    pub nodes: Vec<Arc<NodeView>>,
    /// The nodes as the version has them: if its list is the same, the level is the same.
    source: Arc<Vec<Arc<Node>>>,
    /// The nodes that have stacks of several slices.
    stacked: Vec<usize>,
    /// The nodes that have range tombstones.
    deleting: Vec<usize>,
}

impl LevelView {
    /// The node whose range holds `key`.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<&NodeView> {
        let prefix = self.shared.prefix_after(key);
        let index = self.first_after_prefix(key, prefix).checked_sub(1)?;
        let node = &self.nodes[index];
        let is_before_end = match prefix {
            Some(prefix) if prefix < self.ends[index] => true,
            _ => node.range().is_before_end(key),
        };
        is_before_end.then_some(node)
    }

    /// The number of nodes that start at or before `key`.
    pub(crate) fn first_after(&self, key: &[u8]) -> usize {
        self.first_after_prefix(key, self.shared.prefix_after(key))
    }

    /// The same, `prefix` being what follows in `key` after the common start.
    #[inline]
    fn first_after_prefix(&self, key: &[u8], prefix: Option<u64>) -> usize {
        let Some(prefix) = prefix else {
            return if *key < *self.shared.bytes() { 0 } else { self.nodes.len() };
        };
        let before = self.prefixes.partition_point(|&p| p < prefix);
        let equal = self.prefixes[before..].partition_point(|&p| p == prefix);
        let equal = &self.nodes[before..before + equal];
        before + equal.partition_point(|node| *node.range().start <= *key)
    }

    /// Some node has range tombstones.
    pub(crate) fn is_deleting(&self) -> bool {
        !self.deleting.is_empty()
    }

    /// The last node with range tombstones that starts at or before `key`, and the one after it.
    pub(crate) fn deleting_around(
        &self,
        key: &[u8],
    ) -> (Option<&Arc<NodeView>>, Option<&Arc<NodeView>>) {
        let before = self.first_after(key);
        let after = self.deleting.partition_point(|&at| at < before);
        let node = |at: usize| self.deleting.get(at).map(|&at| &self.nodes[at]);
        (after.checked_sub(1).and_then(node), node(after))
    }

    /// A slice is entirely in `range` and has only entries older than `below`.
    pub(crate) fn holds_whole_older(&self, range: &KeyRange, below: SequenceNumber) -> bool {
        let from = self.first_after(&range.start).saturating_sub(1);
        let is_near = |node: &&Arc<NodeView>| range.is_before_end(&node.range().start);
        let near = self.nodes[from..].iter().take_while(is_near);
        let mut slices = near.flat_map(|node| &node.slices);
        slices.any(|slice| slice.sequence_max < below && range.covers(&slice.range))
    }

    fn push(&mut self, node: Arc<NodeView>, (prefix, end): (u64, u64)) {
        if node.slices.len() > 1 {
            self.stacked.push(self.nodes.len());
        }
        if node.slices.iter().any(|slice| slice.has_range_deletes) {
            self.deleting.push(self.nodes.len());
        }
        self.prefixes.push(prefix);
        self.ends.push(end);
        self.nodes.push(node);
    }
}

/// A version ready to read.
pub(crate) struct TreeView {
    /// The levels that have nodes, from above: a lookup probes no others.
    pub levels: Vec<Arc<LevelView>>,
    pub context: Arc<ReadContext>,
    /// What cursors of the keyspace stepped over; shared by views that hide the same.
    pub hidden: Arc<HiddenStretches>,
    /// Keeps the segments that pointers in the levels name.
    pub segments: Segments,
}

impl TreeView {
    /// Compiles `version`; unchanged parts are shared with `previous`.
    pub(crate) fn new(
        version: Arc<Version>,
        previous: Option<&TreeView>,
        context: &Arc<ReadContext>,
    ) -> TreeView {
        let before = previous.map_or(&[][..], |previous| &previous.levels);
        let occupied = version.levels.iter().enumerate().filter(|(_, l)| !l.nodes.is_empty());
        let levels: Vec<Arc<LevelView>> = occupied
            .map(|(number, level)| {
                let before = before.iter().find(|before| before.number == number);
                match before {
                    Some(same) if Arc::ptr_eq(&same.source, &level.nodes) => same.clone(),
                    _ => Arc::new(level_view(number, &level.nodes, before, context)),
                }
            })
            .collect();
        let segments = version.segments.clone();
        let hidden = previous.map(|previous| previous.hidden.clone()).unwrap_or_default();
        TreeView { levels, context: context.clone(), hidden, segments }
    }

    /// The same, without what cursors stepped over: the sequence numbers may begin anew, or what
    /// older views show at the same number is hidden here.
    pub(crate) fn with_no_hidden(&self) -> TreeView {
        TreeView {
            levels: self.levels.clone(),
            context: self.context.clone(),
            hidden: Arc::default(),
            segments: self.segments.clone(),
        }
    }

    /// What came in below what is there.
    fn below(&self) -> Option<&LevelView> {
        let last = self.levels.last()?;
        (last.number == usize::from(BELOW_LEVEL)).then_some(last)
    }

    /// Older data may have come below what is there.
    pub(crate) fn has_below(&self) -> bool {
        self.below().is_some()
    }

    /// The same is below as in `other`.
    pub(crate) fn has_same_below(&self, other: &TreeView) -> bool {
        match (self.below(), other.below()) {
            (Some(this), Some(other)) => Arc::ptr_eq(&this.source, &other.source),
            (this, other) => this.is_none() && other.is_none(),
        }
    }

    /// Opens every file that the tree names, so that reads do not depend on the names.
    pub(crate) fn open_files(&self) -> Result<()> {
        let nodes = self.levels.iter().flat_map(|level| &level.nodes);
        for slice in nodes.flat_map(|node| &node.slices) {
            let name = FileName::table(slice.run.place().0);
            slice.run.read_file().map_err(|error| missing(error, name))?;
        }
        for segment in self.segments.iter() {
            let name = FileName::value(segment.file.id);
            self.context.values.file(segment.file.id).map_err(|error| missing(error, name))?;
        }
        Ok(())
    }

    /// For each node with a stack that reads had to pass, the number of seeks that these reads
    /// amount to.
    pub(crate) fn seeks(&self) -> HashMap<(u8, NodeId), u64> {
        let stacked = self.levels.iter().flat_map(|level| {
            level.stacked.iter().map(|&at| (level.number as u8, &level.nodes[at]))
        });
        stacked
            .map(|(level, node)| {
                ((level, node.node.id), node.passed.load(Relaxed) / PROBES_PER_SEEK)
            })
            .filter(|(_, seeks)| *seeks > 0)
            .collect()
    }

    /// A get of `key` probed two runs or more: the first counts as a miss, as in LevelDB.
    #[inline]
    pub(crate) fn note_miss(&self, key: &[u8]) {
        let Some(misses_min) = self.context.misses_min else { return };
        let nodes = self.levels.iter().filter_map(|level| level.find(key));
        let first = nodes.flat_map(|node| &node.slices).find(|slice| slice.range.contains(key));
        let misses = first.map_or(0, |slice| slice.misses.fetch_add(1, Relaxed) + 1);
        if misses > 0 && misses.is_multiple_of(misses_min) {
            self.context.set_look_due();
        }
    }

    /// The runs with many misses, in the order of the tree.
    pub(crate) fn misses(&self) -> Vec<Misses> {
        let Some(misses_min) = self.context.misses_min else { return Vec::new() };
        let of_node = |level: &LevelView, node: &NodeView| -> Vec<Misses> {
            let (level, id) = (level.number as u8, node.node.id);
            let slices = node.slices.iter().zip(&node.node.slices);
            let misses = slices.map(|(view, slice)| (slice.run.id, view.misses.load(Relaxed)));
            misses
                .filter(|&(_, gets)| gets >= misses_min)
                .map(|(run, gets)| Misses { level, node: id, run, gets })
                .collect()
        };
        let nodes =
            self.levels.iter().flat_map(|level| level.nodes.iter().map(move |n| (level, n)));
        nodes.flat_map(|(level, node)| of_node(level, node)).collect()
    }
}

/// Compiles a level, at the cost of a pointer for each node that stayed. A database of 100 GB has
/// tens of thousands of nodes, and every edit comes through here.
fn level_view(
    number: usize,
    nodes: &Arc<Vec<Arc<Node>>>,
    before: Option<&Arc<LevelView>>,
    context: &Arc<ReadContext>,
) -> LevelView {
    let nothing = LevelView::default();
    let old = before.map_or(&nothing, |level| level);
    let shared = shared_start(nodes);
    let knows_prefixes = old.shared == shared;
    let prefixes = |node: &Node| {
        let end = node.range.end.as_ref().and_then(|end| shared.prefix_after(end));
        (shared.prefix_after(&node.range.start).unwrap_or(0), end.unwrap_or(u64::MAX))
    };
    let source = nodes.clone();
    let mut view = LevelView { number, shared: shared.clone(), source, ..LevelView::default() };
    view.nodes.reserve_exact(nodes.len());
    view.prefixes.reserve_exact(nodes.len());
    view.ends.reserve_exact(nodes.len());
    let mut cursor = 0;
    for node in nodes.iter() {
        let stayed = |at: usize| old.source.get(at).is_some_and(|same| Arc::ptr_eq(same, node));
        // Both sides are in key order, so one walk finds every node that stayed, most of them next.
        while !stayed(cursor)
            && old.source.get(cursor).is_some_and(|n| n.range.start < node.range.start)
        {
            cursor += 1;
        }
        if stayed(cursor) {
            let known = knows_prefixes.then(|| (old.prefixes[cursor], old.ends[cursor]));
            view.push(old.nodes[cursor].clone(), known.unwrap_or_else(|| prefixes(node)));
            cursor += 1;
        } else {
            let before = old.nodes.get(cursor).filter(|view| view.node.id == node.id);
            view.push(Arc::new(node_view(node, before, context)), prefixes(node));
        }
    }
    view
}

/// The common start of the starts of all nodes: in key order, that of the first and the last.
fn shared_start(nodes: &[Arc<Node>]) -> CommonStart {
    let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else {
        return CommonStart::default();
    };
    CommonStart::of(&first.range.start, &last.range.start)
}

/// A node ready to read. Counters of `before` stay valid, as a merge of the whole node makes a new
/// one; those of level 0, whose node stays, until a run leaves.
fn node_view(
    node: &Arc<Node>,
    before: Option<&Arc<NodeView>>,
    context: &Arc<ReadContext>,
) -> NodeView {
    let paid_for =
        |before: &&Arc<NodeView>| node.id != LEVEL0_NODE || holds_all(node, &before.node);
    let passed = before.filter(paid_for).map_or(0, |before| before.passed.load(Relaxed));
    let misses = |run: RunId| {
        let before = before.filter(|_| context.misses_min.is_some())?;
        let mut slices = before.slices.iter().zip(&before.node.slices);
        let (view, _) = slices.find(|(_, slice)| slice.run.id == run)?;
        Some(view.misses.load(Relaxed))
    };
    let slices = node
        .slices
        .iter()
        .map(|slice| SliceView {
            run: context.tables.handle(&slice.run),
            id: slice.run.id,
            range: slice.range.clone(),
            is_whole: slice.is_whole(),
            covers_node: slice.range.covers(&node.range),
            has_range_deletes: slice.run.range_deletes > 0,
            sequence_max: slice.run.sequence_max,
            misses: AtomicU64::new(misses(slice.run.id).unwrap_or(0)),
        })
        .collect();
    NodeView { node: node.clone(), slices, passed: AtomicU64::new(passed) }
}

/// Every run of `before` is still in the stack of `node`.
fn holds_all(node: &Node, before: &Node) -> bool {
    let holds = |run: RunId| node.slices.iter().any(|slice| slice.run.id == run);
    before.slices.iter().all(|slice| holds(slice.run.id))
}

/// Everything that a read needs, at one moment.
#[derive(Clone)]
pub(crate) struct ReadView {
    /// The memtable that takes writes.
    pub active: Arc<Memtable>,
    /// Memtables that wait for their flush, newest first.
    pub sealed: Vec<Arc<Memtable>>,
    pub tree: Arc<TreeView>,
}

impl ReadView {
    /// Every memtable, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::table_cache::TableCache;
    use super::super::values::ValueFiles;
    use super::*;
    use crate::read::clock::ExpiryClock;
    use crate::runtime::Stepped;
    use base::DatabaseId;
    use base::random::Random;
    use media::mem::MemStore;
    use table::BlockCache;
    use tree::NodeId;

    fn context() -> Arc<ReadContext> {
        let store = Arc::new(MemStore::new(Arc::default()));
        let database = DatabaseId(0);
        let tables = TableCache::new(store.clone(), BlockCache::new(0), database, 0);
        let clock = ExpiryClock::new(Arc::new(Stepped::new(0, 1)));
        Arc::new(ReadContext::new(tables, ValueFiles::new(store, database), clock, None))
    }

    fn node(id: usize, start: &[u8]) -> Arc<Node> {
        node_of(id, KeyRange::new(start, None))
    }

    fn node_of(id: usize, range: KeyRange) -> Arc<Node> {
        Arc::new(Node::new(NodeId(id as u64), range, Default::default()))
    }

    fn level(starts: &[&[u8]]) -> LevelView {
        let nodes = starts.iter().enumerate().map(|(id, start)| node(id, start)).collect();
        level_view(1, &Arc::new(nodes), None, &context())
    }

    #[test]
    fn a_level_after_an_edit_is_the_level_compiled_anew() {
        let context = context();
        let mut random = Random::new(7);
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        let mut view = Arc::new(level_view(1, &Arc::new(Vec::new()), None, &context));
        for id in 0..400 {
            for _ in 0..random.below(4) {
                let at = random.below(nodes.len() as u64 + 1) as usize;
                if at < nodes.len() {
                    nodes.remove(at);
                }
            }
            // Sometimes a start that shares less with the others, or nothing.
            let start = format!("{:.2$}{:06}", "key-", random.below(300), 4 >> random.below(5));
            let at = nodes.partition_point(|node| *node.range.start < *start.as_bytes());
            if nodes.get(at).is_none_or(|node| *node.range.start != *start.as_bytes()) {
                nodes.insert(at, node(id, start.as_bytes()));
            }
            let stayed = |old: &LevelView| {
                nodes.iter().filter(|node| old.source.iter().any(|n| Arc::ptr_eq(n, node))).count()
            };
            let source = Arc::new(nodes.clone());
            let next = Arc::new(level_view(1, &source, Some(&view), &context));
            let anew = level_view(1, &source, None, &context);
            assert_eq!((&next.shared, &next.prefixes), (&anew.shared, &anew.prefixes));
            assert_eq!(next.ends, anew.ends);
            let mut pairs = next.nodes.iter().zip(&nodes);
            assert!(pairs.all(|(view, node)| Arc::ptr_eq(&view.node, node)));
            assert_eq!(next.nodes.len(), nodes.len());
            let shared = next.nodes.iter().filter(|n| view.nodes.iter().any(|o| Arc::ptr_eq(o, n)));
            assert_eq!(shared.count(), stayed(&view));
            view = next;
        }
    }

    #[test]
    fn nodes_are_found_whatever_their_starts_share() {
        let levels: [&[&[u8]]; 5] = [
            &[],
            &[b"m"],
            &[b"", b"a", b"a\0", b"a\0\0", b"b"],
            &[b"0000000012", b"0000000013", b"00000000130", b"000000001300000001", b"00000000131"],
            &[b"samebytes-1", b"samebytes-1234567a", b"samebytes-1234567b", b"samebytes-2"],
        ];
        for starts in levels {
            let level = level(starts);
            let around = starts.iter().flat_map(|start| {
                let shorter = start[..start.len().saturating_sub(1)].to_vec();
                [shorter, start.to_vec(), [*start, b"\0"].concat(), [*start, b"z"].concat()]
            });
            for key in around.chain([b"".to_vec(), b"\xff".to_vec()]) {
                let expected = starts.iter().filter(|start| **start <= &key[..]).count();
                assert_eq!(level.first_after(&key), expected, "{key:?} in {starts:?}");
            }
        }
    }

    #[test]
    fn a_key_between_two_nodes_is_in_neither() {
        let mut random = Random::new(8);
        for _ in 0..300 {
            let mut key = |length: u64| -> Vec<u8> {
                (0..random.below(length)).map(|_| b'0' + random.below(3) as u8).collect()
            };
            let head = key(12);
            let mut bounds: Vec<Vec<u8>> = (0..8).map(|_| [&head[..], &key(12)].concat()).collect();
            bounds.sort();
            bounds.dedup();
            let last_end = [None, Some(vec![b'9'])][bounds.len() % 2].clone();
            let ranges: Vec<KeyRange> = bounds
                .chunks(2)
                .map(|pair| match pair {
                    [start, end] => KeyRange::new(&start[..], Some((&end[..]).into())),
                    _ => KeyRange::new(&pair[0][..], last_end.as_deref().map(Into::into)),
                })
                .collect();
            let nodes = ranges.iter().enumerate().map(|(id, range)| node_of(id, range.clone()));
            let level = level_view(1, &Arc::new(nodes.collect()), None, &context());
            let strangers: Vec<Vec<u8>> = (0..20).map(|_| [&head[..], &key(12)].concat()).collect();
            for key in bounds.iter().chain(&strangers).chain([&key(20), &vec![b'9', 0]]) {
                let found = level.find(key).map(|node| node.range().clone());
                let expected = ranges.iter().find(|range| range.contains(key)).cloned();
                assert_eq!(found, expected, "{key:?} in {ranges:?}");
            }
        }
    }
}
