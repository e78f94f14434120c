//! How nodes are named: by a number, in versions, edits and plans alike.

/// The number of a node; never given twice in the life of a keyspace. Level 0's node is number 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);
