//! Values apart from the runs: written by flushes and moves, collected in the background.
//!
//! Invariants:
//! - A segment is durable before the edit that lists it, and listed before the tree points into it.
//! - Nobody appends to a segment that a collection reads, and no two jobs append to one: a job
//!   *claims* the segments that it goes on with or reads.
//! - The tree alone says which records live. What a merge drops is counted dead in the merge's own
//!   edit; what a collection moves is moved on the condition that the tree still holds the very
//!   pointer, under the lock that orders commits.
//! - A retired segment is removed when no snapshot is older than the move of its records, and the
//!   moved pointers are in runs.

pub(crate) mod collect;
pub(crate) mod separate;
pub(crate) mod writers;

use crate::engine::Engine;
use crate::engine::trees::{Flushed, Trees};
use base::Result;
use tree::edit::{Change, DatabaseEdit, KeyspaceEdit, SegmentChange};

impl Engine {
    /// Removes retired segments that nobody can read any more. `false`: there is none.
    pub(crate) fn remove_retired(&self, trees: &mut Trees) -> Result<bool> {
        let oldest = self.snapshots.oldest().map(|(sequence, _)| sequence);
        let mut edits = Vec::new();
        for (&id, tree) in &trees.keyspaces {
            let flushed = tree.version.flushed_sequence;
            let is_free = |sequence| sequence <= flushed && oldest.is_none_or(|o| o >= sequence);
            let retired = tree.version.segments.iter().filter(|s| s.retired.is_some_and(is_free));
            let changes: Vec<Change> = retired
                .map(|s| Change::Segment { file: s.file.id, change: SegmentChange::Remove })
                .collect();
            if !changes.is_empty() {
                edits.push(KeyspaceEdit { keyspace: id, changes });
            }
        }
        if edits.is_empty() {
            return Ok(false);
        }
        let edit = DatabaseEdit { keyspaces: edits, ..DatabaseEdit::default() };
        self.install(trees, edit, &Flushed::new())?;
        Ok(true)
    }
}
