//! Synced writes: one device request serves all writers that appended before it.
//!
//! A writer that needs durability waits for its turn ([`LogSyncs`](super::log_syncs)). If the log
//! is already durable beyond its own position, the writer is done. Otherwise it syncs the log up to
//! its present end, and so serves all writers that appended meanwhile.
//!
//! Invariants:
//! - Logs become durable in order, so a synced write makes every earlier one durable.
//! - A failed sync poisons the database and is never tried again.

use crate::engine::commit::Commits;
use crate::engine::commit_state::{CommitState, LogPosition};
use base::{Cause, Result};
use media::SyncFile;
use std::sync::Arc;

/// What one sync has to do.
struct Work {
    /// Value segments that the logs point into.
    values: Vec<Arc<dyn SyncFile>>,
    replaced: Vec<Arc<dyn SyncFile>>,
    current: Option<Arc<dyn SyncFile>>,
    target: LogPosition,
}

impl Commits {
    /// Waits for the sync in progress.
    pub(crate) fn pass_sync(&self) {
        drop(self.syncs.take(&*self.runtime));
    }

    /// Returns when the log is durable up to `position`.
    pub(crate) fn sync_log(&self, position: LogPosition) -> Result<()> {
        let Some(mut turn) = self.syncs.wait(position, &*self.runtime) else {
            return self.check_poisoned();
        };
        self.check_poisoned()?;
        let work = Work::take(&mut self.lock());
        self.sync_work(work, &mut turn.durable)?;
        let durable = turn.durable;
        drop(turn);
        mark_synced(&mut self.lock(), durable);
        self.note_changes();
        Ok(())
    }

    /// Makes the whole log durable under the commit lock: no record comes in between. The caller
    /// has synced most of it before.
    pub(crate) fn sync_rest(
        &self,
        durable: &mut LogPosition,
        state: &mut CommitState,
    ) -> Result<()> {
        self.check_poisoned()?;
        if *durable < state.position() {
            let work = Work::take(state);
            self.sync_work(work, durable)?;
            mark_synced(state, *durable);
            self.note_changes();
        }
        Ok(())
    }

    fn sync_work(&self, work: Work, durable: &mut LogPosition) -> Result<()> {
        let begin_ns = self.runtime.now_ns();
        // Segments become durable before the log that names them: a record proves its values.
        for segment in &work.values {
            segment.sync(Cause::ValueWrite).map_err(|error| self.poison(error))?;
        }
        for log in work.replaced.iter().chain(&work.current) {
            log.sync(Cause::Wal).map_err(|error| self.poison(error))?;
        }
        if durable.file != work.target.file {
            // A new log: its name must be durable too.
            self.store.sync_names().map_err(|error| self.poison(error))?;
        }
        self.latencies.wal_sync.record(self.runtime.now_ns() - begin_ns);
        *durable = work.target;
        Ok(())
    }
}

impl Work {
    fn take(state: &mut CommitState) -> Work {
        Work {
            values: std::mem::take(&mut state.unsynced_values).into_values().collect(),
            replaced: state.replaced.drain(..).map(|(_, syncer)| syncer).collect(),
            current: state.log.as_ref().map(|log| log.syncer.clone()),
            target: state.position(),
        }
    }
}

/// Lets later records say how far the log is durable, which tells damage from a torn tail.
fn mark_synced(state: &mut CommitState, target: LogPosition) {
    if let Some(log) = state.log.as_mut().filter(|log| log.file == target.file) {
        log.writer.mark_synced(target.bytes);
    }
}
