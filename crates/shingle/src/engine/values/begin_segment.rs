//! Begins the segment that the commits of a keyspace append to: it is listed in the tree, empty,
//! before a commit writes to it.

use crate::engine::commit_state::Active;
use crate::engine::core::Core;
use crate::engine::trees::Flushed;
use crate::engine::values::active_segment::active_segment_bytes_max;
use crate::keyspace::KeyspaceState;
use base::{Cause, Error, ErrorKind, Result};
use media::{FileHint, FileName};
use std::sync::Arc;
use tree::edit::{Change, DatabaseEdit, KeyspaceEdit, SegmentChange};
use tree::{Group, Tier};
use values::SegmentPlace;
use values::segment::SegmentWriter;

impl Core {
    /// Begins an active segment, unless another thread just did.
    pub(crate) fn begin_active_segment(&self, keyspace: &Arc<KeyspaceState>) -> Result<()> {
        let _inside = self.enter()?;
        let mut trees = self.versions.lock();
        self.check_writable()?;
        if !self.commits.lock().active(keyspace.id).is_some_and(Active::lacks_segment) {
            return Ok(());
        }
        let file = self.new_file();
        let hint =
            FileHint { bytes_max: Some(active_segment_bytes_max(keyspace)), ..FileHint::default() };
        let append = self.store.create(FileName::value(file), &hint)?;
        let Some(syncer) = append.syncer() else {
            return Err(Error::new(ErrorKind::Unsupported, "the store cannot sync a segment"));
        };
        // Before it is listed, so that GC does not pick it.
        keyspace.values.claim(&[file]);
        let group = Group::all(Tier::Main);
        let (bytes, is_provisional, is_in_cold_store) = (0, false, false);
        let change = SegmentChange::Add { group, bytes, is_provisional, is_in_cold_store };
        let changes = vec![Change::Segment { file, change }];
        let keyspaces = vec![KeyspaceEdit { keyspace: keyspace.id, changes }];
        let edit = DatabaseEdit { keyspaces, ..DatabaseEdit::default() };
        if let Err(error) = self.versions.install(&mut trees, edit, &Flushed::new()) {
            keyspace.values.release(&[file]);
            if error.kind() == ErrorKind::NoSpace {
                // No edit names it.
                drop(self.store.remove(FileName::value(file)));
            }
            return Err(error);
        }
        let place = SegmentPlace { database: self.database, file };
        // Nothing is written before the commit says so.
        let writer = SegmentWriter::new(append, place, usize::MAX, Cause::ValueWrite);
        let mut state = self.commits.lock();
        state.end_active_segment(keyspace.id);
        if let Some(active) = state.active_mut(keyspace.id) {
            active.set_active_segment(file, writer, Arc::from(syncer));
        }
        Ok(())
    }
}
