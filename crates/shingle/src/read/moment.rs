//! A moment of a keyspace: a view, and the sequence number to read it at.
//!
//! The two are read one after the other. In between, other threads commit, seal, flush and collect
//! garbage. A view and a number that do not belong together would show a state that never existed.
//! Or they would hide a newer value from a writer that writes on the condition that there is none.
//! So only this module pairs them.
//!
//! Invariants:
//! - The view holds every entry up to the number. Newer entries are in the view's active memtable
//!   or in later memtables.
//! - No reader at the number needs the older versions that the view lacks. Either the view is older
//!   than the number, or a reader held the number before the view was taken.
//! - Pointers that a reader at the number follows name segments that the view keeps, or that a held
//!   number keeps.

use super::view::ReadView;
use crate::snapshot_list::SnapshotList;
use base::SequenceNumber;
use std::sync::Arc;

/// A view and the sequence number to read it at.
#[derive(Clone)]
pub(crate) struct Moment {
    view: Arc<ReadView>,
    sequence: SequenceNumber,
}

impl Moment {
    /// The current moment, for a reader without a snapshot. `separates`: commits may write
    /// pointers. `between` is called where other threads may interleave.
    #[inline(always)]
    pub(crate) fn now(
        take_view: impl Fn() -> Arc<ReadView>,
        snapshots: &SnapshotList,
        separates: bool,
        between: impl Fn(),
    ) -> Moment {
        let mut view = take_view();
        loop {
            between();
            // The order matters: if a number was published after the memtable was sealed, a read of
            // that number also sees the seal.
            let visible = snapshots.visible();
            let sequence = visible.min(view.active.sealed_at());
            if view.tree.segments.is_empty() && !separates {
                return Moment { view, sequence };
            }
            // GC lists new segments in the tree before pointers change. With the same tree, every
            // pointer up to the number names a segment of the view.
            between();
            let again = take_view();
            if Arc::ptr_eq(&again.tree, &view.tree) {
                return Moment { view, sequence };
            }
            view = again;
        }
    }

    /// The moment of `sequence`, which the snapshot list held before `view` was taken, and holds
    /// for as long as the moment is read.
    pub(crate) fn held(sequence: SequenceNumber, view: Arc<ReadView>) -> Moment {
        Moment { view, sequence }
    }

    pub(crate) fn view(&self) -> &Arc<ReadView> {
        &self.view
    }

    pub(crate) fn sequence(&self) -> SequenceNumber {
        self.sequence
    }
}
