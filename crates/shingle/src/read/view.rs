//! What a reader holds: the memtables and a read form of the tree, at one moment.
//!
//! A [`ReadView`] never changes. Writers and background jobs publish a new one; readers that hold
//! an old one keep its memtables and files alive. The tree's version is compiled into arrays that a
//! lookup walks without chasing pointers; runs are opened when they are first read.

use super::values::ValueFiles;
use crate::memtable::Memtable;
use base::{Cause, DatabaseId, FileId, KeyRange, Result, RunId};
use media::{FileName, FileStore, ReadFile};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use table::range_delete::RangeDeletes;
use table::{BlockCache, Extent};
use tree::version::{LEVEL0_NODE, NodeId};
use tree::{Node, Segments, Version};

/// Opens runs, once each, for as long as somebody holds them.
pub(crate) struct Runs {
    store: Arc<dyn FileStore>,
    cache: Arc<BlockCache>,
    database: DatabaseId,
    /// Memory that open runs hold outside the cache.
    open_bytes: AtomicU64,
    files: Mutex<HashMap<FileId, Weak<OpenFile>>>,
    handles: Mutex<HashMap<RunId, Weak<RunHandle>>>,
    /// Where large values are.
    pub values: ValueFiles,
}

struct OpenFile {
    name: FileName,
    file: OnceLock<Arc<dyn ReadFile>>,
}

impl Runs {
    pub(crate) fn new(
        store: Arc<dyn FileStore>,
        cache: Arc<BlockCache>,
        database: DatabaseId,
    ) -> Runs {
        Runs {
            values: ValueFiles::new(store.clone(), database),
            store,
            cache,
            database,
            open_bytes: AtomicU64::new(0),
            files: Mutex::new(HashMap::new()),
            handles: Mutex::new(HashMap::new()),
        }
    }

    pub(crate) fn handle(self: &Arc<Self>, run: &tree::Run) -> Arc<RunHandle> {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = handles.get(&run.id).and_then(Weak::upgrade) {
            return handle;
        }
        let handle = Arc::new(RunHandle {
            runs: self.clone(),
            extent: Extent {
                database: self.database,
                file: run.file.id,
                run: run.id,
                offset: run.offset,
                bytes: run.bytes,
            },
            file: self.file(run.file.id),
            open: OnceLock::new(),
        });
        handles.insert(run.id, Arc::downgrade(&handle));
        handle
    }

    fn file(&self, id: FileId) -> Arc<OpenFile> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = files.get(&id).and_then(Weak::upgrade) {
            return file;
        }
        let file = Arc::new(OpenFile { name: FileName::table(id), file: OnceLock::new() });
        files.insert(id, Arc::downgrade(&file));
        file
    }

    /// Memory that open runs hold outside the cache, in bytes.
    pub(crate) fn open_bytes(&self) -> u64 {
        self.open_bytes.load(Relaxed)
    }

    /// Forgets runs and files that nobody holds.
    pub(crate) fn sweep(&self) {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.retain(|_, handle| handle.strong_count() > 0);
        drop(handles);
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|_, file| file.strong_count() > 0);
    }
}

/// An index tells sizes in whole blocks: of so many, a tenth is told to about one in two.
const TELLING_BLOCKS_MIN: u64 = 16;

/// A run that can be opened.
pub(crate) struct RunHandle {
    runs: Arc<Runs>,
    extent: Extent,
    file: Arc<OpenFile>,
    open: OnceLock<Arc<table::Run>>,
}

impl RunHandle {
    /// The open run.
    #[inline]
    pub(crate) fn run(&self) -> Result<&Arc<table::Run>> {
        match self.open.get() {
            Some(run) => Ok(run),
            None => self.open_now(),
        }
    }

    #[cold]
    fn open_now(&self) -> Result<&Arc<table::Run>> {
        let file = self.read_file()?.clone();
        let run = table::Run::open(file, self.extent, self.runs.cache.clone(), Cause::OpenRun)?;
        Ok(self.open.get_or_init(|| {
            self.runs.open_bytes.fetch_add(run.memory_bytes(), Relaxed);
            run
        }))
    }

    fn read_file(&self) -> Result<&Arc<dyn ReadFile>> {
        if let Some(file) = self.file.file.get() {
            return Ok(file);
        }
        let file = self.runs.store.open(self.file.name, false)?;
        Ok(self.file.file.get_or_init(|| file))
    }

    /// A second opening that reads past the page cache where the store can, and everything anew.
    pub(crate) fn open_for_background(&self, cause: Cause) -> Result<Arc<table::Run>> {
        let file = self.runs.store.open(self.file.name, true)?;
        table::Run::open(file, self.extent, self.runs.cache.clone(), cause)
    }

    /// The same for a rewrite, which reads the end of an open run no second time. The run stays
    /// open where the rewrite needs only a part of it: the next rewrite needs another.
    pub(crate) fn open_for_rewrite(&self, in_part: bool, cause: Cause) -> Result<Arc<table::Run>> {
        if in_part {
            self.run()?;
        }
        let Some(open) = self.open.get() else { return self.open_for_background(cause) };
        Ok(open.through(self.runs.store.open(self.file.name, true)?))
    }

    /// Bytes of the run inside `range`, by its index; `None` where it has too few blocks to tell.
    pub(crate) fn bytes_within(&self, range: &KeyRange) -> Result<Option<u64>> {
        let run = self.run()?;
        if run.summary().data_blocks < TELLING_BLOCKS_MIN {
            return Ok(None);
        }
        run.approximate_bytes(range, Cause::OpenRun).map(Some)
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        let bytes = self.open.get().map_or(0, |run| run.memory_bytes());
        self.runs.open_bytes.fetch_sub(bytes, Relaxed);
    }
}

/// A slice ready to read.
pub(crate) struct SliceView {
    pub run: Arc<RunHandle>,
    pub range: KeyRange,
    /// The slice shows its run entirely: no clipping.
    pub is_whole: bool,
    /// Its range covers its node's: a key of the node is a key of the slice.
    pub covers_node: bool,
    pub has_range_deletes: bool,
}

/// A node ready to read.
pub(crate) struct NodeView {
    node: Arc<Node>,
    pub slices: Vec<SliceView>,
    /// Slices of the node that reads have passed without finding anything there.
    passed: AtomicU64,
}

/// Passed slices that count as one seek: nearly all are told by their filter, which costs little.
const PASSED_PER_SEEK: u64 = 512;

impl NodeView {
    pub(crate) fn range(&self) -> &KeyRange {
        &self.node.range
    }

    /// A read found nothing in this many slices of a stack, below level 0.
    #[inline]
    pub(crate) fn note_passed(&self, slices: usize) {
        if slices > 0 && self.node.id != LEVEL0_NODE {
            self.passed.fetch_add(slices as u64, Relaxed);
        }
    }
}

/// A level ready to read.
#[derive(Default)]
pub(crate) struct LevelView {
    /// Which of the version's levels it is.
    number: usize,
    /// What the starts of all nodes begin with.
    shared: Vec<u8>,
    /// The eight bytes behind that of each node's start, big-endian: most comparisons end here.
    prefixes: Vec<u64>,
    pub nodes: Vec<Arc<NodeView>>,
}

impl LevelView {
    /// The node whose range holds `key`.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<&NodeView> {
        let index = self.first_after(key).checked_sub(1)?;
        let node = &self.nodes[index];
        node.range().is_before_end(key).then_some(node)
    }

    /// How many nodes start at or before `key`.
    pub(crate) fn first_after(&self, key: &[u8]) -> usize {
        let Some(rest) = key.strip_prefix(&self.shared[..]) else {
            return if *key < self.shared[..] { 0 } else { self.nodes.len() };
        };
        let prefix = key_prefix(rest);
        let before = self.prefixes.partition_point(|&p| p < prefix);
        let equal = self.prefixes[before..].partition_point(|&p| p == prefix);
        let equal = &self.nodes[before..before + equal];
        before + equal.partition_point(|node| *node.range().start <= *key)
    }

    /// Fills in what searches use, from the nodes.
    fn index(&mut self) {
        // In key order, what the first and the last have in common all have.
        let (Some(first), Some(last)) = (self.nodes.first(), self.nodes.last()) else { return };
        let (first, last) = (&first.range().start, &last.range().start);
        let shared = first.iter().zip(last.iter()).take_while(|(a, b)| a == b).count();
        self.shared = first[..shared].to_vec();
        let prefix = |node: &Arc<NodeView>| key_prefix(&node.range().start[shared..]);
        self.prefixes = self.nodes.iter().map(prefix).collect();
    }
}

fn key_prefix(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut bytes = [0; 8];
    bytes[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(bytes)
}

/// A version ready to read.
pub(crate) struct TreeView {
    /// The levels that have nodes, from above: a lookup asks no others.
    pub levels: Vec<LevelView>,
    /// Some slice has range tombstones.
    pub has_range_deletes: bool,
    pub runs: Arc<Runs>,
    /// Keeps the segments that pointers in the levels name.
    pub segments: Segments,
}

impl TreeView {
    /// Compiles `version`; what did not change since `previous` is shared with it.
    pub(crate) fn new(
        version: Arc<Version>,
        previous: Option<&TreeView>,
        runs: &Arc<Runs>,
    ) -> TreeView {
        let before = previous.map_or(&[][..], |previous| &previous.levels);
        let occupied = version.levels.iter().enumerate().filter(|(_, l)| !l.nodes.is_empty());
        let levels: Vec<LevelView> = occupied
            .map(|(number, level)| {
                let before = before.iter().find(|before| before.number == number);
                level_view(number, level.nodes.iter(), before, runs)
            })
            .collect();
        let mut nodes = levels.iter().flat_map(|level| &level.nodes);
        let has_range_deletes = nodes.any(|node| node.slices.iter().any(|s| s.has_range_deletes));
        let segments = version.segments.clone();
        TreeView { levels, has_range_deletes, runs: runs.clone(), segments }
    }

    /// For each node below level 0 whose stack reads had to pass, how often that was as bad as a
    /// seek.
    pub(crate) fn seeks(&self) -> HashMap<(u8, NodeId), u64> {
        let below = self.levels.iter().filter(|level| level.number > 0);
        let nodes = below.flat_map(|level| level.nodes.iter().map(|n| (level.number as u8, n)));
        nodes
            .filter(|(_, node)| node.slices.len() > 1)
            .map(|(level, node)| {
                ((level, node.node.id), node.passed.load(Relaxed) / PASSED_PER_SEEK)
            })
            .filter(|(_, seeks)| *seeks > 0)
            .collect()
    }
}

fn level_view<'a>(
    number: usize,
    nodes: impl Iterator<Item = &'a Arc<Node>>,
    before: Option<&LevelView>,
    runs: &Arc<Runs>,
) -> LevelView {
    let old: &[Arc<NodeView>] = before.map_or(&[], |level| &level.nodes);
    let mut cursor = 0;
    let mut view = LevelView { number, ..LevelView::default() };
    for node in nodes {
        // Both sides are in key order: one walk finds every node that stayed.
        while cursor < old.len() && old[cursor].range().start < node.range.start {
            cursor += 1;
        }
        let before = old.get(cursor).filter(|view| view.node.id == node.id);
        view.nodes.push(match before {
            Some(same) if Arc::ptr_eq(&same.node, node) => same.clone(),
            _ => {
                let passed = before.map_or(0, |view| view.passed.load(Relaxed));
                Arc::new(node_view(node, runs, passed))
            }
        });
    }
    view.index();
    view
}

fn node_view(node: &Arc<Node>, runs: &Arc<Runs>, passed: u64) -> NodeView {
    let slices = node
        .slices
        .iter()
        .map(|slice| SliceView {
            run: runs.handle(&slice.run),
            range: slice.range.clone(),
            is_whole: slice.is_whole(),
            covers_node: slice.range.covers(&node.range),
            has_range_deletes: slice.run.range_deletes > 0,
        })
        .collect();
    NodeView { node: node.clone(), slices, passed: AtomicU64::new(passed) }
}

/// A memtable with its range tombstones in the form that lookups need.
pub(crate) struct MemtableView {
    pub memtable: Arc<Memtable>,
    /// Made from so many range tombstones of the memtable; made anew when there are more.
    fragments: Mutex<(usize, Arc<RangeDeletes>)>,
}

impl MemtableView {
    pub(crate) fn new(memtable: Arc<Memtable>) -> Arc<MemtableView> {
        Arc::new(MemtableView { memtable, fragments: Mutex::default() })
    }

    /// `None` when there are none, after one atomic load.
    #[inline]
    pub(crate) fn range_deletes(&self) -> Option<Arc<RangeDeletes>> {
        let all = self.memtable.range_deletes()?;
        let mut fragments = self.fragments.lock().unwrap_or_else(PoisonError::into_inner);
        if fragments.0 != all.len() {
            let mut deletes = RangeDeletes::new();
            for delete in all.iter() {
                deletes.insert(&delete.start, &delete.end, delete.sequence);
            }
            *fragments = (all.len(), Arc::new(deletes));
        }
        Some(fragments.1.clone())
    }
}

/// Everything that a read needs, at one moment.
#[derive(Clone)]
pub(crate) struct ReadView {
    /// The memtable that takes writes.
    pub active: Arc<MemtableView>,
    /// Memtables that wait for their flush, newest first.
    pub sealed: Vec<Arc<MemtableView>>,
    pub tree: Arc<TreeView>,
}

impl ReadView {
    /// Every memtable, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<MemtableView>> {
        std::iter::once(&self.active).chain(&self.sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tree::NodeId;

    fn level(starts: &[&[u8]]) -> LevelView {
        let node = |(id, start): (usize, &&[u8])| {
            let range = KeyRange::new(*start, None);
            let node = Node { id: NodeId(id as u64), range, slices: Default::default() };
            Arc::new(NodeView {
                node: Arc::new(node),
                slices: Vec::new(),
                passed: AtomicU64::new(0),
            })
        };
        let nodes = starts.iter().enumerate().map(node).collect();
        let mut level = LevelView { nodes, ..LevelView::default() };
        level.index();
        level
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
}
