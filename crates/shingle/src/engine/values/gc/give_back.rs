//! The end of a GC that failed: it gives back the copies that nothing points to.
//!
//! - Before the copies are in the tree, their files are removed.
//! - Afterwards, segments that no committed pointer names are removed from the tree. The others are
//!   confirmed, and the copies in them that no pointer names are garbage. What was read stays: the
//!   tree still points there.

use super::pointers::Moved;
use super::{GcJob, Phase};
use crate::engine::backed_off::{Hold, Inputs, Lack};
use crate::engine::core::Core;
use base::{Error, ErrorKind, FileId, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use tree::edit::{Change, SegmentChange};

impl GcJob {
    /// Gives up after a failure. `own`: others go on, and its segments stay claimed for a while.
    pub(crate) fn abandon(mut self: Box<Self>, core: &Arc<Core>, own: Option<&Error>) {
        let is_listed = matches!(self.phase, Phase::Commit | Phase::Retire);
        if !is_listed {
            self.writers.remove_created();
        }
        let Some(error) = own else { return };
        // Segments that cannot be given back stay provisional: GC reads them later.
        let given_bytes = match is_listed && core.poisoned_by().is_none() {
            true => self.give_back(core).unwrap_or(0),
            false => 0,
        };
        let lack = match error.kind() {
            ErrorKind::NoSpace if self.lacks_capacity => Some(Lack::Capacity),
            ErrorKind::NoSpace => {
                Some(Lack::Medium(core.space().map(|space| space.free_bytes + given_bytes)))
            }
            _ => None,
        };
        self.is_backed_off = true;
        let mut files = self.collection.files.clone();
        files.extend(self.writers.take_claims());
        let held = (Hold::Claim, Inputs::Segments(files));
        let (mut trees, now_ns) = (core.versions.lock(), core.runtime.now_ns());
        trees.back_off(self.keyspace.id, held, error.clone(), now_ns, lack);
    }

    /// Gives back the copies in the tree that nothing points to. Returns the bytes of the segments
    /// that it removed.
    fn give_back(&mut self, core: &Arc<Core>) -> Result<u64> {
        let (done, open) = self.moved.split_at(self.committed);
        let (taken, mut unused) = (bytes_by_file(done), bytes_by_file(open));
        for (&file, &bytes) in &self.lost {
            *unused.entry(file).or_default() += bytes;
        }
        let written = self.writers.written().to_vec();
        let lost = |file: &FileId| self.lost.get(file).copied().unwrap_or(0);
        let is_used = |file: &FileId| taken.get(file).is_some_and(|&bytes| bytes > lost(file));
        let (used, free): (Vec<_>, Vec<_>) =
            written.into_iter().partition(|segment| is_used(&segment.file));
        // A crash must not lose pointers into what counts as confirmed.
        let confirms = !used.is_empty() && self.is_durable(core)?;
        let mut changes: Vec<Change> =
            free.iter().map(|segment| Change::remove_segment(segment.file)).collect();
        for file in used.iter().filter(|_| confirms).map(|segment| segment.file) {
            changes.push(Change::Segment { file, change: SegmentChange::Confirm });
            let change = SegmentChange::Bury(unused.get(&file).copied().unwrap_or(0));
            changes.push(Change::Segment { file, change });
        }
        self.install(core, changes)?;
        free.iter().for_each(|segment| self.keyspace.values.forget_segment(segment.file));
        Ok(free.iter().map(|segment| segment.bytes).sum())
    }
}

/// Bytes of the copies in `moved`, by segment.
fn bytes_by_file(moved: &[Moved]) -> BTreeMap<FileId, u64> {
    let mut bytes = BTreeMap::new();
    for record in moved.iter().filter_map(|one| one.to.record()) {
        *bytes.entry(record.file).or_default() += u64::from(record.record_bytes);
    }
    bytes
}
