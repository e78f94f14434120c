//! Moves: from a version and what a move produced to the changes of its edit. Pure functions.
//!
//! Each takes the version as it is when the edit is made, which may be later than the one that the
//! plan was made for: slices that arrived meanwhile stay, on top. What no longer fits is an
//! `InvalidArgument` error, and the tree stays as it is; a caller that obeys
//! [`crate::policy::Busy`] never sees one.
//!
//! Gaps. A key that goes down to a level goes to the node there that answers for it. Keys in a gap
//! go to the nearest node on their left that the pushed keys overlap, else to the first one that
//! they overlap; that node's range grows. Where the pushed keys overlap no node, a new node is
//! made.
//!
//! Paper: the push is LDC's link (section 3 of that paper), the append LWC's (section 3 there).

mod append;
mod cutter;
mod ingest;
mod merge;
mod older_versions;
mod push;
mod recency;
mod size;
mod stage;
#[cfg(test)]
pub(crate) mod tests;

pub use append::{Child, append, append_on_top, balance, children, drop_slices, flush_parts, tile};
pub use cutter::Cutter;
pub use ingest::{IngestedRun, ingest, ingest_below};
pub use merge::{Output, OutputNode, divide, flush, flush_onto, merge};
pub use older_versions::OlderData;
pub use push::{covered, push};
pub use recency::check_inputs;
pub use size::{Proportional, SizeEstimate};

use crate::plan::Input;
use crate::version::{Node, Slice, Version};
use base::{Error, Result};
use std::sync::Arc;

/// A move that does not fit the tree any more.
pub(crate) fn conflict(message: impl Into<String>) -> Error {
    Error::invalid(format!("a move does not fit the tree: {}", message.into()))
}

/// The node of an input.
pub(crate) fn input_node<'a>(version: &'a Version, input: &Input) -> Result<&'a Arc<Node>> {
    version.node(input.level, input.node).ok_or_else(|| {
        conflict(format!("there is no node {} at level {}", input.node.0, input.level))
    })
}

/// The slices of a node that an input takes, and those that it leaves, both newest first.
pub(crate) fn split(node: &Node, input: &Input) -> (Vec<Slice>, Vec<Slice>) {
    node.slices.iter().cloned().partition(|slice| input.takes(slice))
}
