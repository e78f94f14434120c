//! Begins the segments that commits append to, as a background step, and removes those that were
//! not used.
//!
//! Invariants:
//! - A segment is in a durable edit, empty, before a commit can write to it.
//! - A segment that could not be begun costs no write: values go through the log until the next
//!   try. Beginning takes nothing from the reserve of the medium.
//! - An empty segment does not outlive the session that began it: closing removes it. After a
//!   crash, the next opening does, once no log is needed that may name it.

use crate::engine::core::Core;
use crate::engine::trees::Flushed;
use crate::engine::values::active_segment::{ActiveSegment, active_segment_bytes_max};
use crate::event::Event;
use crate::keyspace::KeyspaceState;
use base::{Cause, Error, ErrorKind, FileId, Result};
use media::{FileHint, FileName};
use std::sync::Arc;
use tree::edit::{Change, DatabaseEdit, KeyspaceEdit, SegmentChange};
use tree::{Group, Tier};
use values::SegmentPlace;
use values::segment::SegmentWriter;

impl Core {
    /// Begins a segment that a commit requested. `false`: none is requested.
    pub(crate) fn begin_requested_segment(&self) -> bool {
        let Some(keyspace) = self.commits.lock().take_segment_request() else { return false };
        self.runtime.interleave("segment: before it is begun");
        // No value is accepted while the reserve is released.
        let begun = if self.reserve.is_out() { Ok(None) } else { self.begin_segment(&keyspace) };
        let mut state = self.commits.lock();
        match begun {
            Ok(Some(segment)) => state.add_segment(keyspace.id, segment),
            Ok(None) => state.refuse_segment(keyspace.id),
            Err(error) => {
                state.refuse_segment(keyspace.id);
                drop(state);
                self.events.add(Event::SegmentBeginFailed { error });
            }
        }
        true
    }

    /// Creates a segment and lists it in the tree. `None`: its keyspace was dropped.
    fn begin_segment(&self, keyspace: &Arc<KeyspaceState>) -> Result<Option<ActiveSegment>> {
        let file = self.new_file();
        // Before it is listed, so that GC does not pick it.
        keyspace.values.claim(&[file]);
        let begun = self.create_segment(keyspace, file).and_then(|segment| {
            self.runtime.interleave("segment: before it is part of the tree");
            self.list_segment(keyspace, file)?;
            Ok(segment)
        });
        match begun {
            Ok(segment) => Ok(Some(segment)),
            Err(error) => {
                keyspace.values.release(&[file]);
                // An edit of unknown outcome may name it.
                if self.poisoned_by().is_none() {
                    drop(self.store.remove(FileName::value(file)));
                }
                if keyspace.is_dropped() { Ok(None) } else { Err(error) }
            }
        }
    }

    fn create_segment(&self, keyspace: &KeyspaceState, file: FileId) -> Result<ActiveSegment> {
        let hint =
            FileHint { bytes_max: Some(active_segment_bytes_max(keyspace)), ..FileHint::default() };
        let append = self.store.create(FileName::value(file), &hint)?;
        let Some(syncer) = append.syncer() else {
            return Err(Error::new(ErrorKind::Unsupported, "the store cannot sync a segment"));
        };
        let place = SegmentPlace { database: self.database, file };
        // Nothing is written before the commit says so.
        let writer = SegmentWriter::new(append, place, usize::MAX, Cause::ValueWrite);
        Ok(ActiveSegment { file, writer, syncer: Arc::from(syncer) })
    }

    fn list_segment(&self, keyspace: &KeyspaceState, file: FileId) -> Result<()> {
        let group = Group::all(Tier::Main);
        let (bytes, is_provisional, is_in_cold_store) = (0, false, false);
        let change = SegmentChange::Add { group, bytes, is_provisional, is_in_cold_store };
        let changes = vec![Change::Segment { file, change }];
        let keyspaces = vec![KeyspaceEdit { keyspace: keyspace.id, changes }];
        let edit = DatabaseEdit { keyspaces, ..DatabaseEdit::default() };
        self.versions.install_optional(&mut self.versions.lock(), edit)
    }

    /// Removes the segments without values from the trees: they were begun ahead, or nothing that
    /// was written to them counts. No commit is in progress, everything is flushed, and no log is
    /// needed.
    pub(crate) fn remove_empty_segments(&self) -> Result<()> {
        self.commits.lock().forget_segments();
        let mut trees = self.versions.lock();
        let edits = trees.keyspaces.iter().map(|(&keyspace, tree)| {
            let changes = tree.version.segments.empty_ones().map(Change::remove_segment).collect();
            KeyspaceEdit { keyspace, changes }
        });
        let keyspaces: Vec<KeyspaceEdit> = edits.filter(|edit| !edit.changes.is_empty()).collect();
        if keyspaces.is_empty() {
            return Ok(());
        }
        let edit = DatabaseEdit { keyspaces, ..DatabaseEdit::default() };
        self.versions.install(&mut trees, edit, &Flushed::new())
    }
}
