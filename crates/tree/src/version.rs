//! Versions: the tree at one moment, immutable, shared by readers.
//!
//! Invariants (checked by `invariant`): nodes of a level are disjoint and in key order; level 0 is one
//! node over all keys whose stack is the flushed runs; in a stack newer slices stand before older
//! ones; a slice lies in its run's range and in its node's range.
//!
//! A table file lives as long as a slice in a live version points into it: a [`Run`] holds its
//! [`FileRef`], and the last one to go reports the file to the [`Graveyard`]. Nothing counts
//! references but `Arc`, so the count is a function of the live versions and never stored.

use base::{FileId, Key, KeyRange, RunId, SequenceNumber};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Files that no live version refers to any more. Shared by the file references of one database.
#[derive(Debug, Default)]
pub struct Graveyard {
    files: Mutex<Vec<FileId>>,
}

impl Graveyard {
    /// Takes the files that died since the last call.
    pub fn drain(&self) -> Vec<FileId> {
        std::mem::take(&mut *self.files.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A table file as versions hold it. One object for a file in a database, shared by its runs.
#[derive(Debug)]
pub struct FileRef {
    /// The file.
    pub id: FileId,
    bytes: AtomicU64,
    graveyard: Arc<Graveyard>,
}

impl FileRef {
    /// A file of `bytes` bytes that reports its end to `graveyard`.
    pub fn new(id: FileId, bytes: u64, graveyard: Arc<Graveyard>) -> Arc<FileRef> {
        Arc::new(FileRef { id, bytes: AtomicU64::new(bytes), graveyard })
    }

    /// Bytes in the file: the part that the manifest vouches for.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The file grew (an append). Never shrinks.
    pub fn grow(&self, bytes: u64) {
        self.bytes.fetch_max(bytes, Ordering::Relaxed);
    }
}

impl Drop for FileRef {
    fn drop(&mut self) {
        let mut files = self.graveyard.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.push(self.id);
    }
}

/// An immutable sorted sequence of entries in one contiguous extent of a table file.
#[derive(Debug)]
pub struct Run {
    /// Its number.
    pub id: RunId,
    /// The file that holds it.
    pub file: Arc<FileRef>,
    /// Where its extent begins in the file, in bytes.
    pub offset: u64,
    /// Bytes of its extent: blocks, index, filter, footer.
    pub bytes: u64,
    /// Covers every point key and every range tombstone in it.
    pub range: KeyRange,
    /// Point entries, tombstones included.
    pub entries: u64,
    /// Point tombstones.
    pub deletes: u64,
    /// Range tombstones.
    pub range_deletes: u64,
    /// The smallest sequence number in it.
    pub sequence_min: SequenceNumber,
    /// The largest sequence number in it.
    pub sequence_max: SequenceNumber,
}

/// A key range of a run: what a node sees of it.
#[derive(Clone, Debug)]
pub struct Slice {
    /// The run.
    pub run: Arc<Run>,
    /// Keys of the run outside this range do not exist for the node.
    pub range: KeyRange,
    /// Bytes of the run inside the range; exact for a whole run, estimated for a part.
    pub bytes: u64,
}

impl Slice {
    /// The whole of `run`.
    pub fn whole(run: Arc<Run>) -> Slice {
        Slice { range: run.range.clone(), bytes: run.bytes, run }
    }

    /// It shows its run entirely.
    pub fn is_whole(&self) -> bool {
        self.range.covers(&self.run.range)
    }
}

/// The number of a node; never given twice in the life of a keyspace. Level 0's node is number 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

/// A key range of a level with a stack of slices, newest first.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// The keys it answers for.
    pub range: KeyRange,
    /// Newest first.
    pub slices: Vec<Slice>,
}

impl Node {
    /// Bytes of the stack.
    pub fn bytes(&self) -> u64 {
        self.slices.iter().map(|slice| slice.bytes).sum()
    }
}

/// Nodes with disjoint ranges, in key order.
#[derive(Clone, Debug, Default)]
pub struct Level {
    /// In key order.
    pub nodes: Vec<Arc<Node>>,
}

impl Level {
    /// Bytes of all stacks.
    pub fn bytes(&self) -> u64 {
        self.nodes.iter().map(|node| node.bytes()).sum()
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

/// The levels of a keyspace at one moment.
#[derive(Clone, Debug)]
pub struct Version {
    /// Level 0 first. Never empty; level 0 always has its one node.
    pub levels: Vec<Level>,
    /// For each level, where round-robin picking goes on; policies keep their state here.
    pub cursors: Vec<Option<Key>>,
    /// The next node number.
    pub next_node: u64,
}
