//! Plans: what a policy chooses. Plain values without handles, so that the same picker runs in the
//! engine, in tests over text, and in what-if simulation.

use crate::node_id::NodeId;
use crate::version::{Node, Slice, SliceId};
use base::{Cause, KeyRange, RunId};
use std::borrow::Cow;
use std::slice;

/// Slices of one node, as input of a move. They are named one by one: while the move runs, another
/// slice of the same run may come to the node, which the move has not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The node's level.
    pub level: u8,
    /// The node.
    pub node: NodeId,
    /// Of its stack, newest first. What stays behind is newer, or has none of their keys.
    pub slices: Vec<SliceId>,
}

impl Input {
    /// These slices of a node, newest first.
    pub fn of<'a>(level: u8, node: NodeId, slices: impl IntoIterator<Item = &'a Slice>) -> Input {
        Input { level, node, slices: slices.into_iter().map(Slice::id).collect() }
    }

    /// All that a node has.
    pub fn whole(level: u8, node: &Node) -> Input {
        Input::of(level, node.id, &node.slices)
    }

    /// It takes this slice of its node.
    pub fn takes(&self, slice: &Slice) -> bool {
        self.slices.iter().any(|id| id.names(slice))
    }

    /// It takes the whole stack of its node.
    pub fn takes_all(&self, node: &Node) -> bool {
        node.slices.iter().all(|slice| self.takes(slice))
    }

    /// What it takes of its node's stack, newest first.
    pub fn taken<'a>(&self, node: &'a Node) -> impl Iterator<Item = &'a Slice> {
        node.slices.iter().filter(|slice| self.takes(slice))
    }

    /// The runs that it takes slices of.
    pub fn runs(&self) -> impl Iterator<Item = RunId> {
        self.slices.iter().map(|slice| slice.run)
    }
}

/// Where the output of a merge is cut into nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// A node ends when its run has this many bytes.
    pub table_bytes_max: u64,
    /// A node ends when it overlaps more bytes than this at the level below the output.
    pub overlap_bytes_max: Option<u64>,
}

/// The moves of the tree; `docs/design/tree.md` has them as a table. A new one needs a decision
/// record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// The input's slices go onto the stacks of the nodes below, cut at their ranges. Keys that no
    /// node below answers for get a node of their own; without any overlap it is a trivial move.
    Push {
        /// What goes down.
        input: Input,
        /// The level that takes it.
        to_level: u8,
    },
    /// The input's live entries are merged and appended to the files of the nodes below, cut at
    /// their ranges, as a new run of each.
    Append {
        /// What goes down.
        input: Input,
        /// The level that takes it.
        to_level: u8,
        /// A file gets no more than this many bytes; what is left of a run goes on in another.
        /// None: each run gets a file of its own.
        file_bytes_max: Option<u64>,
        /// How many nodes of about equal bytes the keys become where no node below answers for any
        /// of them.
        parts: u32,
    },
    /// The inputs are rewritten as new nodes of one level.
    Merge {
        /// What is read; it is gone afterwards.
        inputs: Vec<Input>,
        /// The level of the new nodes.
        to_level: u8,
        /// Where one node ends and the next begins.
        cut: Cut,
        /// All output runs lie in one file, one after another (a set).
        one_file: bool,
        /// Maximum number of threads that share the work.
        parallel_max: u8,
    },
    /// A node becomes several of about equal bytes on its own level.
    Divide {
        /// The node.
        input: Input,
        /// How many it becomes.
        parts: u32,
    },
    /// Keys go from one node to its neighbour.
    Balance {
        /// The level of both.
        level: u8,
        /// The node that gives.
        from: NodeId,
        /// The neighbour that takes.
        to: NodeId,
        /// The keys that change their node.
        range: KeyRange,
    },
    /// Slices that no reader can see any more go.
    Drop {
        /// What goes.
        inputs: Vec<Input>,
    },
}

impl Move {
    /// What it takes. A balance takes both its nodes.
    pub fn inputs(&self) -> Cow<'_, [Input]> {
        match self {
            Move::Push { input, .. } | Move::Append { input, .. } | Move::Divide { input, .. } => {
                Cow::Borrowed(slice::from_ref(input))
            }
            Move::Merge { inputs, .. } | Move::Drop { inputs } => Cow::Borrowed(inputs),
            Move::Balance { level, from, to, .. } => {
                let whole = |node| Input { level: *level, node, slices: Vec::new() };
                Cow::Owned(vec![whole(*from), whole(*to)])
            }
        }
    }

    /// The level that it writes to; of a drop, the deepest that it takes from.
    pub fn to_level(&self) -> u8 {
        match self {
            Move::Push { to_level, .. }
            | Move::Append { to_level, .. }
            | Move::Merge { to_level, .. } => *to_level,
            Move::Divide { input, .. } => input.level,
            Move::Balance { level, .. } => *level,
            Move::Drop { inputs } => inputs.iter().map(|input| input.level).max().unwrap_or(0),
        }
    }
}

/// Why a policy chose a plan; for the event log and for explaining.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Level 0 has too many runs.
    Level0Runs,
    /// A level has more bytes than its limit.
    LevelBytes,
    /// A node's stack is too high or too big.
    StackHeight,
    /// A node has more bytes than a node may have.
    NodeBytes,
    /// Ranges of neighbours are out of balance.
    Balance,
    /// Reads kept missing in a node.
    Seeks,
    /// A range deletion covers whole slices.
    RangeDelete,
    /// Tombstones or overwritten entries are worth purging.
    Garbage,
    /// The database is idle, and has more garbage than it then keeps.
    Idle,
    /// Values have expired.
    Expiry,
    /// Reads have paid for fewer runs.
    Reads,
    /// The user asked for it.
    Manual,
}

/// The next move, with what it is expected to cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What to do.
    pub action: Move,
    /// Why.
    pub reason: Reason,
    /// How urgent: 1.0 is at the limit; plans of different keyspaces compare by it.
    pub score: f64,
    /// Bytes that the move is expected to read.
    pub read_bytes: u64,
    /// Bytes that the move is expected to write.
    pub write_bytes: u64,
    /// Cursors that the edit of this move advances: level and the key to go on from.
    pub cursors: Vec<(u8, Option<base::Key>)>,
}

impl Plan {
    /// A plan that reads and writes `bytes`, and advances no cursor.
    pub fn new(action: Move, reason: Reason, score: f64, bytes: u64) -> Plan {
        let cursors = Vec::new();
        Plan { action, reason, score, read_bytes: bytes, write_bytes: bytes, cursors }
    }

    /// Why the bytes of the move are read and written.
    pub fn cause(&self) -> Cause {
        match self.reason {
            Reason::Reads => Cause::ReadCompaction,
            Reason::Idle => Cause::IdleCompaction,
            _ => Cause::Compaction(self.action.to_level()),
        }
    }
}
