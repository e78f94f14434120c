//! A moment of a keyspace: a view, and the sequence number to read it at.
//!
//! The two are read one after the other, and between the two others commit, seal, flush and
//! collect. A view and a number that do not belong together show a state that never was, or hide a
//! newer value from whoever writes on the condition that there is none. So nobody pairs them but
//! this module.
//!
//! Invariants:
//! - The view holds every entry up to the number. What is newer is in the view's active memtable or
//!   in memtables that came after it.
//! - What the view drops of older versions, nobody who reads at the number needs: the view is older
//!   than the number, or somebody held the number before the view was taken.
//! - Pointers that a reader at the number follows name segments that the view keeps, or that a held
//!   number keeps.

use super::view::ReadView;
use crate::snapshot_list::SnapshotList;
use base::SequenceNumber;
use std::sync::Arc;

/// What a read reads.
#[derive(Clone)]
pub(crate) struct Moment {
    view: Arc<ReadView>,
    sequence: SequenceNumber,
}

impl Moment {
    /// The moment of now, for a reader that holds no snapshot. `separates`: commits may write
    /// pointers. `between` is called where others may come in.
    #[inline]
    pub(crate) fn now(
        take_view: impl Fn() -> Arc<ReadView>,
        snapshots: &SnapshotList,
        separates: bool,
        between: impl Fn(),
    ) -> Moment {
        let mut view = take_view();
        loop {
            between();
            // The order matters: a number that was published after the memtable was sealed is read
            // together with the seal.
            let visible = snapshots.visible();
            let sequence = visible.min(view.active.sealed_at());
            if view.tree.segments.is_empty() && !separates {
                return Moment { view, sequence };
            }
            // Garbage collection lists new segments in the tree before pointers change: under the
            // same tree, every pointer up to the number names a segment of the view.
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
