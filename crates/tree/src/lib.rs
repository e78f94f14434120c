//! The tree: runs, slices, nodes, levels and versions; the edits that lead from one version to the
//! next; the plans that policies make. Pure: no I/O, no clock, no threads.
//!
//! See DESIGN section 1: every scheme is a policy that chooses the next [`plan::Move`] of one tree.

pub mod edit;
pub mod plan;
pub mod version;

pub use edit::{Change, DatabaseEdit, KeyspaceEdit};
pub use plan::{Cut, Input, Move, Plan, Reason};
pub use version::{FileRef, Graveyard, Level, Node, NodeId, Run, Slice, Version};
