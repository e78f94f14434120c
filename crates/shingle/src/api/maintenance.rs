//! Care: compaction on request, checkpoints, checks, salvage.

use super::db::{Db, Keyspace};
use crate::engine::queue::Manual;
use crate::options::Options;
use crate::stats::{CheckReport, Progress};
use base::{KeyRange, Result};
use media::FileStore;
use std::path::Path;
use std::sync::Arc;

impl Keyspace {
    /// Brings everything in the keyspace to the last level, and drops what nobody needs.
    pub fn compact(&self) -> Result<()> {
        self.compact_range(None, None)
    }

    /// [`Keyspace::compact`] of the keys from `start` to `end` (exclusive).
    pub fn compact_range(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        let engine = self.engine();
        engine.check_writable()?;
        let _inside = engine.enter()?;
        engine.flush_all()?;
        let range = KeyRange { start: start.unwrap_or_default().into(), end: end.map(Into::into) };
        engine.scheduler.add_manual(Manual { keyspace: self.id(), range });
        engine.runtime.wake();
        engine.wait_for(|| !engine.scheduler.has_manual())?;
        engine.versions.backed_off_error(Some(self.id())).map_or(Ok(()), Err)
    }
}

impl Db {
    /// Keeps `bytes` as the size from which on values are better apart, as somebody measured it:
    /// for later openings that name no [`crate::Options::value_threshold_bytes`].
    pub fn keep_value_threshold(&self, bytes: u64) -> Result<()> {
        let engine = self.engine();
        engine.check_writable()?;
        let _inside = engine.enter()?;
        crate::settings::keep_threshold(&*engine.store, bytes.max(1))
    }

    /// A consistent copy in the new directory `target`, by hard links where the file system allows.
    /// Keyspaces without a log are in it as they were last flushed.
    pub fn checkpoint(&self, target: impl AsRef<Path>) -> Result<()> {
        let engine = self.engine();
        let _inside = engine.enter()?;
        if !engine.read_only {
            engine.check_writable()?;
            engine.flush_all()?;
        }
        engine.write_checkpoint(target.as_ref())
    }

    /// Reads every byte and checks every invariant. Problems are in the report; an error means that
    /// the check could not be done.
    pub fn check(&self, progress: &mut dyn FnMut(Progress)) -> Result<CheckReport> {
        self.engine().check(progress)
    }
}

/// [`Db::check`] of a database that is not open. Changes nothing.
pub fn check_closed(path: &Path, progress: &mut dyn FnMut(Progress)) -> Result<CheckReport> {
    check_opened(Options::new().read_only(true).open(path), progress)
}

/// [`check_closed`] of the database in `store`.
pub fn check_store(
    store: Arc<dyn FileStore>,
    progress: &mut dyn FnMut(Progress),
) -> Result<CheckReport> {
    check_opened(Options::new().read_only(true).open_store(store), progress)
}

fn check_opened(opened: Result<Db>, progress: &mut dyn FnMut(Progress)) -> Result<CheckReport> {
    match opened {
        Ok(db) => db.check(progress),
        Err(error) if error.kind() == base::ErrorKind::Corruption => {
            let problems = vec![error.to_string()];
            Ok(CheckReport { problems, ..CheckReport::default() })
        }
        Err(error) => Err(error),
    }
}
