//! The layout `inline`: values stay in the runs, and compaction is their garbage collection.

use crate::layout::{Collection, Descriptor, ValueLayout};
use crate::limits::ValueLimits;
use base::FileId;
use std::collections::BTreeSet;
use tree::Segments;

/// The layout's line in the registry.
pub const INLINE: Descriptor = Descriptor {
    name: "inline",
    summary: "values stay in the runs; best for small values and for scans",
    help: "Values lie beside their keys in the runs; compaction moves and drops them.\n\
           Choose it for values up to some hundred bytes, and for scans.\n\
           It costs the write amplification of the tree for every byte of every value.",
    paper: "O'Neil et al., The log-structured merge-tree, 1996",
    options: &[],
    make: || Box::new(Inline),
};

struct Inline;

impl ValueLayout for Inline {
    fn name(&self) -> &'static str {
        INLINE.name
    }

    fn separates(&self) -> bool {
        false
    }

    /// Segments that another layout left empty out as their values come back into the runs; what
    /// is dead in them goes by the plain log's rule.
    fn pick(
        &self,
        segments: &Segments,
        limits: &ValueLimits,
        busy: &BTreeSet<FileId>,
    ) -> Option<Collection> {
        crate::log::next(segments, limits, self.collection_bytes_max(limits), busy)
    }
}
