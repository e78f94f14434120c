//! Edits: what leads from one version to the next. The manifest is the log of [`DatabaseEdit`]s.
//!
//! Changes are relative ("push these slices", "remove those runs from that stack"), so that a flush
//! may go on top of a stack while a merge of its lower part runs. The changes of an edit apply in
//! order and show as one: ranges and stacks need to fit only when the last is done.

use crate::node_id::NodeId;
use crate::run::RunMetadata;
use crate::segments::Group;
use base::{DatabaseId, FileId, Key, KeyRange, KeyspaceId, RunId, SequenceNumber};

/// A run as the manifest records it.
pub type RunRecord = RunMetadata<FileId>;

/// A slice as the manifest records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceRecord {
    /// The run, which an earlier change or edit added.
    pub run: RunId,
    /// What the node sees of it.
    pub range: KeyRange,
    /// Bytes of the run inside the range.
    pub bytes: u64,
}

impl SliceRecord {
    /// A slice that shows the whole of a run.
    pub(crate) fn whole(run: &RunRecord) -> SliceRecord {
        SliceRecord { run: run.id, range: run.range.clone(), bytes: run.bytes }
    }
}

/// What an edit says of a segment of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentChange {
    /// It exists.
    Add {
        /// Whose records it holds.
        group: Group,
        /// Bytes that it has.
        bytes: u64,
        /// The tree may not point into it yet.
        is_provisional: bool,
        /// Its file is in the cold store.
        is_in_cold_store: bool,
    },
    /// The tree points into it; it was provisional.
    Confirm,
    /// It grew to this many bytes.
    Grow(u64),
    /// The last entries that referred to records of this many bytes are gone. Nothing happens if
    /// the segment is gone already.
    Bury(u64),
    /// Readers at this sequence number and later find its live records elsewhere.
    Retire(SequenceNumber),
    /// No reader can use it any more.
    Remove,
}

/// One step of an edit of a keyspace's tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A file exists, or grew. Every edit that adds a run names the run's file so, before the run.
    File {
        /// The file.
        file: FileId,
        /// Bytes that it has now.
        bytes: u64,
    },
    /// A sorted file came in from outside. It stands in the place of [`Change::File`], and the file
    /// never grows.
    IngestedFile {
        /// The file.
        file: FileId,
        /// Bytes that it has.
        bytes: u64,
        /// What its checksums know in place of the database.
        identity: DatabaseId,
    },
    /// A run exists. It lives while slices refer to it. Of an ingested file, its smallest and its
    /// largest sequence number are one, which all its entries have.
    AddRun(RunRecord),
    /// A new node at its place in key order.
    AddNode {
        /// The level that it joins.
        level: u8,
        /// Its number, which no node had before.
        node: NodeId,
        /// The keys that it answers for.
        range: KeyRange,
        /// Its stack, newest first.
        slices: Vec<SliceRecord>,
    },
    /// A node goes, with what is left of its stack. Level 0's node stays for ever.
    RemoveNode {
        /// The node's level.
        level: u8,
        /// The node.
        node: NodeId,
    },
    /// Slices go on top of a node's stack.
    PushSlices {
        /// The node's level.
        level: u8,
        /// The node.
        node: NodeId,
        /// The slices, newest first.
        slices: Vec<SliceRecord>,
    },
    /// The slices of some runs leave a node's stack.
    RemoveSlices {
        /// The node's level.
        level: u8,
        /// The node.
        node: NodeId,
        /// The runs; each has at least one slice in the stack.
        runs: Vec<RunId>,
    },
    /// A slice is replaced by narrower views of the same run (a range drop cuts it).
    NarrowSlice {
        /// The node's level.
        level: u8,
        /// The node.
        node: NodeId,
        /// The run whose slice it is.
        run: RunId,
        /// What stands in its place; empty if nothing is left.
        to: Vec<SliceRecord>,
    },
    /// A node answers for another range.
    SetRange {
        /// The node's level.
        level: u8,
        /// The node.
        node: NodeId,
        /// The keys that it answers for from now on.
        range: KeyRange,
    },
    /// Every entry up to a sequence number is in runs, or was not needed: replay of a log skips it.
    SetFlushed {
        /// The last sequence number that is skipped.
        sequence: SequenceNumber,
    },
    /// From now on the keyspace may hold entries that expire. An older program, which would not
    /// understand them, refuses the database.
    AllowExpiry,
    /// Something about a segment of values.
    Segment {
        /// Its file.
        file: FileId,
        /// What.
        change: SegmentChange,
    },
    /// Where the policy goes on at a level.
    SetCursor {
        /// The level.
        level: u8,
        /// The key to go on from; `None` begins again with the first.
        key: Option<Key>,
    },
}

impl Change {
    /// The value segment in `file` goes.
    pub fn remove_segment(file: FileId) -> Change {
        Change::Segment { file, change: SegmentChange::Remove }
    }

    /// The file that comes, goes or changes.
    pub fn file(&self) -> Option<FileId> {
        match self {
            Change::File { file, .. }
            | Change::IngestedFile { file, .. }
            | Change::Segment { file, .. } => Some(*file),
            _ => None,
        }
    }
}

/// The changes of one keyspace in an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyspaceEdit {
    /// The keyspace.
    pub keyspace: KeyspaceId,
    /// In order.
    pub changes: Vec<Change>,
}

/// A keyspace as the manifest records it when it is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyspaceRecord {
    /// Its number.
    pub id: KeyspaceId,
    /// Its name; unique among the living.
    pub name: String,
    /// Fixed properties, as `key = value` lines in the order of the option table.
    pub options: String,
}

/// One atomic step of the whole database: everything in it becomes durable together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseEdit {
    /// Keyspaces that begin to exist.
    pub created: Vec<KeyspaceRecord>,
    /// Keyspaces that cease to exist, with all their runs.
    pub dropped: Vec<KeyspaceId>,
    /// Changes of trees.
    pub keyspaces: Vec<KeyspaceEdit>,
    /// This file number and all greater ones are free.
    pub next_file: Option<u64>,
    /// This run number and all greater ones are free.
    pub next_run: Option<u64>,
    /// This keyspace number and all greater ones are free.
    pub next_keyspace: Option<u32>,
    /// Everything up to this sequence number is in runs, for keyspaces without a log.
    pub last_sequence: Option<SequenceNumber>,
    /// Logs with smaller numbers are not needed any more.
    pub log_floor: Option<FileId>,
    /// The mark by which this copy of the database knows its cold store.
    pub cold_mark: Option<u64>,
}
