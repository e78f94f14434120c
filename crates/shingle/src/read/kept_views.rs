//! Views that snapshots keep, so that no decision of a compaction filter, and nothing that comes in
//! below, changes what they show.
//!
//! A filter decides about entries that no snapshot saw when its compaction began. Snapshots that
//! were taken since then see them, and go on reading the view from before the compaction's edit.
//! Files that come in below are older than every snapshot: those that are held go on reading the
//! view from before.
//!
//! Invariant: a view is kept under the sequence number of a live snapshot.

use super::view::ReadView;
use base::{KeyspaceId, SequenceNumber};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kept views of a database, by snapshot and keyspace.
#[derive(Default)]
pub(crate) struct KeptViews(Mutex<BTreeMap<(SequenceNumber, KeyspaceId), Arc<ReadView>>>);

impl KeptViews {
    /// The snapshot at `sequence` reads `keyspace` through `view`, unless it keeps an older view.
    pub(crate) fn keep(
        &self,
        sequence: SequenceNumber,
        keyspace: KeyspaceId,
        view: &Arc<ReadView>,
    ) {
        self.0.lock().entry((sequence, keyspace)).or_insert_with(|| view.clone());
    }

    /// The view that the snapshot at `sequence` keeps of `keyspace`.
    pub(crate) fn get(
        &self,
        sequence: SequenceNumber,
        keyspace: KeyspaceId,
    ) -> Option<Arc<ReadView>> {
        self.0.lock().get(&(sequence, keyspace)).cloned()
    }

    /// The last snapshot at `sequence` ended.
    pub(crate) fn release(&self, sequence: SequenceNumber) {
        let mut kept = self.0.lock();
        if kept.is_empty() {
            return;
        }
        let (first, last) = ((sequence, KeyspaceId(0)), (sequence, KeyspaceId(u32::MAX)));
        let ended: Vec<_> = kept.range(first..=last).map(|(key, _)| *key).collect();
        let views: Vec<_> = ended.iter().filter_map(|key| kept.remove(key)).collect();
        drop(kept);
        // A view may be the last to hold files, whose end takes other locks.
        drop(views);
    }
}
