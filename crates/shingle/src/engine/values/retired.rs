//! Removes retired segments, when no reader can see an entry that points into them and the moved
//! pointers are in runs.

use crate::engine::core::Core;
use crate::engine::trees::{Flushed, TreeState, Trees};
use base::{FileId, KeyspaceId, Result, SequenceNumber};
use tree::edit::{Change, DatabaseEdit, KeyspaceEdit, SegmentChange};
use tree::{Segment, Version};

impl Core {
    /// Removes retired segments that no reader can need. `false`: there is none.
    pub(crate) fn remove_retired(&self, trees: &mut Trees) -> Result<bool> {
        let mut edits = Vec::new();
        for (&id, tree) in &trees.keyspaces {
            let free = self.free_retired(tree);
            let changes: Vec<Change> = free.map(|s| Change::remove_segment(s.file.id)).collect();
            if !changes.is_empty() {
                edits.push(KeyspaceEdit { keyspace: id, changes });
            }
        }
        if edits.is_empty() {
            return Ok(false);
        }
        let removed: Vec<(KeyspaceId, FileId)> = edits.iter().flat_map(removals).collect();
        let edit = DatabaseEdit { keyspaces: edits, ..DatabaseEdit::default() };
        self.versions.install(trees, edit, &Flushed::new())?;
        for (id, file) in removed {
            trees.tree(id)?.keyspace.values.forget_segment(file);
            trees.end_lacks_of_capacity(id);
        }
        Ok(true)
    }

    /// A retired segment of `tree` can be removed.
    pub(crate) fn has_free_retired(&self, tree: &TreeState) -> bool {
        self.free_retired(tree).next().is_some()
    }

    /// Bytes of retired segments that wait for a flush of the pointers that replaced their own.
    pub(crate) fn unflushed_retired_bytes(&self, id: KeyspaceId, version: &Version) -> u64 {
        let Some(first) = self.unflushed(id, version) else { return 0 };
        let waits = |segment: &&Segment| segment.retired.is_some_and(|sequence| first <= sequence);
        version.segments.iter().filter(waits).map(|segment| segment.bytes).sum()
    }

    /// The retired segments that can be removed. Snapshots to come are not older than any present
    /// retirement.
    fn free_retired<'a>(&self, tree: &'a TreeState) -> impl Iterator<Item = &'a Segment> {
        let unflushed = self.unflushed(tree.keyspace.id, &tree.version);
        let is_free = move |segment: &&Segment| {
            let Some(sequence) = segment.retired else { return false };
            let first = tree.keyspace.values.first_entry(segment.file.id);
            unflushed.is_none_or(|first| first > sequence)
                && !self.snapshots.holds_any(first, sequence)
        };
        tree.version.segments.iter().filter(is_free)
    }

    /// The lowest sequence number in the memtables of a keyspace; looked up only where segments are
    /// retired.
    fn unflushed(&self, id: KeyspaceId, version: &Version) -> Option<SequenceNumber> {
        let has_retired = version.segments.usage().retired_bytes > 0;
        has_retired.then(|| self.commits.lock().unflushed_sequence(id)).flatten()
    }
}

/// The segments that an edit removes.
fn removals(edit: &KeyspaceEdit) -> impl Iterator<Item = (KeyspaceId, FileId)> {
    let is_removal = |change: &Change| match change {
        Change::Segment { file, change: SegmentChange::Remove } => Some(*file),
        _ => None,
    };
    edit.changes.iter().filter_map(is_removal).map(|file| (edit.keyspace, file))
}
