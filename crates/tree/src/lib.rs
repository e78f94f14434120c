//! The tree: runs, slices, nodes, levels and versions; the edits that lead from one version to the
//! next; the plans that policies make. Pure: no I/O, no clock, no threads.
//!
//! Every scheme is a policy that chooses the next [`plan::Move`] of one tree
//! (`docs/design/tree.md`).

mod apply;
pub mod edit;
mod file_ref;
pub mod invariant;
pub mod moves;
mod node_id;
pub mod plan;
pub mod policy;
mod run;
pub mod run_table;
#[cfg(test)]
mod scenario;
pub mod segments;
#[cfg(any(test, feature = "simulate"))]
pub mod simulate;
mod sketch;
pub mod version;

pub use apply::Undo;
pub use edit::{Change, DatabaseEdit, KeyspaceEdit, SegmentChange};
pub use node_id::NodeId;
pub use plan::{Cut, Input, Move, Plan, Reason};
pub use run::RunMetadata;
pub use run_table::RunTable;
pub use segments::{Group, Segment, Segments, Tier};
pub use sketch::{KeySketch, KnownKeys};
pub use version::{
    BELOW_LEVEL, DeadFile, FileRef, FileRefKind, FileUsage, Level, Node, ObsoleteFiles, Run, Slice,
    Version,
};
