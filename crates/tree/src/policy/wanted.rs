//! What a manual compaction is for.

use crate::version::{Node, Slice};
use base::{KeyRange, SequenceNumber};

/// What a manual compaction brings to one level.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// These keys.
    pub range: KeyRange,
    /// As far as they were written up to this sequence number. Without a bound, a compaction would
    /// have more to do after each flush, and would not end while writes go on.
    pub written_through: SequenceNumber,
}

impl Wanted {
    /// Every key that is in the tree.
    pub fn all() -> Wanted {
        Wanted { range: KeyRange::all(), written_through: SequenceNumber::MAX }
    }

    /// The slice may have some of it.
    pub(super) fn is_in(&self, slice: &Slice) -> bool {
        self.is_old(slice) && slice.range.overlaps(&self.range)
    }

    /// The slice may have something that was written early enough.
    pub(super) fn is_old(&self, slice: &Slice) -> bool {
        slice.run.sequence_min <= self.written_through
    }

    /// A node of the range, with something old, or with nothing at all.
    pub(super) fn is_due(&self, node: &Node) -> bool {
        node.slices.is_empty() || node.slices.iter().any(|slice| self.is_old(slice))
    }
}
