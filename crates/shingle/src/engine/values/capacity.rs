//! The capacity of value segments: the space that a write of large values lacks where a capacity is
//! set.

use crate::keyspace::KeyspaceState;
use crate::snapshot_list::SnapshotList;
use base::{Error, ErrorKind};
use std::sync::Arc;
use tree::segments::Usage;

/// The space that a write lacks.
pub(crate) struct LackOfSpace {
    pub keyspace: Arc<KeyspaceState>,
    /// Bytes of the records of its large values.
    pub wanted_bytes: u64,
}

impl LackOfSpace {
    /// There is enough space now, beside `pending_bytes` that memtables may add.
    pub(crate) fn is_over(&self, pending_bytes: u64) -> bool {
        let space_bytes = self.keyspace.value_space_bytes(pending_bytes);
        // The commit reports a dropped keyspace.
        space_bytes.is_none_or(|bytes| bytes >= self.wanted_bytes) || self.keyspace.is_dropped()
    }

    pub(crate) fn error(&self, snapshots: &SnapshotList) -> Error {
        let rules = &self.keyspace.values;
        let segments = &self.keyspace.view().tree.segments;
        let Usage { total_bytes, dead_bytes, retired_bytes, .. } = segments.usage();
        let capacity_bytes = rules.capacity_bytes().unwrap_or(u64::MAX);
        let space_bytes = rules.space_bytes(total_bytes).unwrap_or(u64::MAX);
        let held = match snapshots.oldest() {
            Some(_) => "; snapshots and iterators keep old values: drop them",
            None => "",
        };
        let message = format!(
            "the value segments of keyspace `{}` are full: {total_bytes} of {capacity_bytes} bytes \
             are taken ({dead_bytes} garbage, {retired_bytes} kept for older readers), \
             {space_bytes} can be written beside what garbage collection needs, and this write has \
             {} bytes of large values; delete values, or raise value_capacity_bytes{held}",
            self.keyspace.name, self.wanted_bytes,
        );
        Error::new(ErrorKind::NoSpace, message)
    }
}
