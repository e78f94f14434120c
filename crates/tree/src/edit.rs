//! Edits: what leads from one version to the next. The manifest is the log of [`DatabaseEdit`]s.
//!
//! Changes are relative ("push these slices", "remove those runs from that stack"), so that a flush
//! may go on top of a stack while a merge of its lower part is under way. The changes of an edit
//! apply in order and show as one: ranges and stacks need to fit only when the last is done.

use crate::version::NodeId;
use base::{FileId, Key, KeyRange, KeyspaceId, RunId, SequenceNumber};

/// A run as the manifest records it. See [`crate::version::Run`] for the fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    #[allow(missing_docs)]
    pub id: RunId,
    #[allow(missing_docs)]
    pub file: FileId,
    #[allow(missing_docs)]
    pub offset: u64,
    #[allow(missing_docs)]
    pub bytes: u64,
    #[allow(missing_docs)]
    pub range: KeyRange,
    #[allow(missing_docs)]
    pub entries: u64,
    #[allow(missing_docs)]
    pub deletes: u64,
    #[allow(missing_docs)]
    pub range_deletes: u64,
    #[allow(missing_docs)]
    pub sequence_min: SequenceNumber,
    #[allow(missing_docs)]
    pub sequence_max: SequenceNumber,
}

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

/// One step of an edit of a keyspace's tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are explained with their variant
pub enum Change {
    /// A file exists with this many bytes, or grew to them. Every edit that adds a run names the
    /// run's file so, before the run.
    File { file: FileId, bytes: u64 },
    /// A run exists. It lives while slices refer to it.
    AddRun(RunRecord),
    /// A new node at its place in key order.
    AddNode { level: u8, node: NodeId, range: KeyRange, slices: Vec<SliceRecord> },
    /// A node goes, with what is left of its stack. Level 0's node stays for ever.
    RemoveNode { level: u8, node: NodeId },
    /// Slices (newest first) go on top of a node's stack.
    PushSlices { level: u8, node: NodeId, slices: Vec<SliceRecord> },
    /// The slices of these runs leave a node's stack, where each has at least one.
    RemoveSlices { level: u8, node: NodeId, runs: Vec<RunId> },
    /// A slice is replaced by a narrower view of the same run (a range drop cuts it).
    NarrowSlice { level: u8, node: NodeId, run: RunId, to: Vec<SliceRecord> },
    /// A node answers for another range.
    SetRange { level: u8, node: NodeId, range: KeyRange },
    /// Every entry up to this sequence number is in runs, or was not needed: replay of a log skips
    /// it.
    SetFlushed { sequence: SequenceNumber },
    /// Where the policy goes on at a level.
    SetCursor { level: u8, key: Option<Key> },
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
    /// Every file number from here on is free.
    pub next_file: Option<u64>,
    /// Every run number from here on is free.
    pub next_run: Option<u64>,
    /// Every keyspace number from here on is free.
    pub next_keyspace: Option<u32>,
    /// Everything up to this sequence number is in runs, for keyspaces without a log.
    pub last_sequence: Option<SequenceNumber>,
    /// Logs with smaller numbers are not needed any more.
    pub log_floor: Option<FileId>,
}
