//! Maintenance: compaction on request, checkpoints, checks.

use super::db::{Db, Keyspace};
use crate::engine::checkpoint::CheckpointTarget;
use crate::engine::compact::compact_range;
use crate::options::Options;
use crate::progress::Progress;
use crate::stats::CheckReport;
use base::{KeyRange, Result, SequenceNumber};
use media::FileStore;
use std::path::Path;
use std::sync::Arc;

impl Keyspace {
    /// Compacts the keyspace to its deepest level, and drops deleted and replaced records.
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`]; also the error of a compaction that failed.
    pub fn compact(&self) -> Result<()> {
        self.compact_range(None, None)
    }

    /// [`Keyspace::compact`] of the keys from `start` to `end` (exclusive).
    ///
    /// # Errors
    ///
    /// As for [`Keyspace::compact`].
    pub fn compact_range(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        let range = KeyRange { start: start.unwrap_or_default().into(), end: end.map(Into::into) };
        compact_range(self.engine(), &self.state, range)
    }
}

impl Db {
    /// Changes an option of the open database: one of those whose
    /// [`at_run_time`](crate::options::OptionEntry::at_run_time) is set. A later opening begins
    /// with its own options again.
    ///
    /// A smaller `memory_bytes` shrinks the block cache at once. The write buffer keeps the size
    /// that it had at opening.
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = shingle::Options::new().open(dir.path())?;
    /// // Compaction leaves most of the disk to a backup.
    /// db.set_option("background_bytes_per_second", "20MiB")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for an unknown name, a value out of
    /// bounds, or an option that counts at opening only;
    /// [`Closed`](crate::ErrorKind::Closed) after [`Db::close`].
    pub fn set_option(&self, name: &str, value: &str) -> Result<()> {
        let engine = self.engine();
        let _inside = engine.enter()?;
        engine.set_option(name, value)
    }

    /// Stores `bytes` with the database as its measured separation threshold. Later openings use
    /// it, unless they set [`crate::Options::value_threshold_bytes`].
    ///
    /// # Errors
    ///
    /// As for all writes, see [`Keyspace`].
    pub fn keep_value_threshold(&self, bytes: u64) -> Result<()> {
        let engine = self.engine();
        engine.check_writable()?;
        let _inside = engine.enter()?;
        crate::settings::keep_threshold(&*engine.store, bytes.max(1))
    }

    /// Writes a second database with the current contents to `target`, a store without files.
    /// [`Db::checkpoint`] does so in a directory. Files are linked between directories where the
    /// file system allows, and copied between all other stores. Keyspaces without a log are in it
    /// as of their last flush.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](crate::ErrorKind::AlreadyExists) where `target` holds files. Also as for
    /// all writes, see [`Keyspace`].
    pub fn checkpoint_to(&self, target: &dyn FileStore) -> Result<()> {
        let engine = self.engine();
        let _inside = engine.enter()?;
        if !engine.read_only {
            engine.check_writable()?;
            engine.flush_all()?;
        }
        engine.write_checkpoint(target)
    }

    /// Gives the files of the database to `target`; returns the sequence number that they reach.
    pub(crate) fn write_backup(&self, target: &dyn CheckpointTarget) -> Result<SequenceNumber> {
        let engine = self.engine();
        let _inside = engine.enter()?;
        if !engine.read_only {
            engine.check_writable()?;
            engine.flush_all()?;
        }
        engine.fill_checkpoint(target)
    }

    pub(crate) fn wall_micros(&self) -> u64 {
        self.engine().runtime.wall_micros()
    }

    /// Reads every byte, and verifies checksums, key order and the structure of the tree. The
    /// report lists all damage. If `progress` cancels the check, the report is of the part that was
    /// read.
    ///
    /// # Errors
    ///
    /// Damage is no error. An error means that the check itself failed.
    pub fn check(&self, progress: &mut dyn FnMut(Progress)) -> Result<CheckReport> {
        self.engine().check(progress)
    }
}

/// [`Db::check`] of the database in the directory `path`, which is not open. Changes nothing.
///
/// # Errors
///
/// As for [`Options::open`], except that damage is in the report.
pub fn check_closed(path: &Path, progress: &mut dyn FnMut(Progress)) -> Result<CheckReport> {
    check_opened(Options::new().read_only(true).open(path), progress)
}

/// [`check_closed`] of the database in `store`.
///
/// # Errors
///
/// As for [`check_closed`].
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
