//! Salvage: copies what can still be read of a damaged database into a new one. The source is only
//! read.
//!
//! Everything that can be found is merged by sequence number, so nothing depends on the tree's
//! order. The inputs are the records of the logs, and the runs as the manifest has them. If the
//! manifest cannot be read, every run whose footer is found in a table file is an input. A damaged
//! block costs the entries of that block. If a run's footer or index is damaged, its blocks are
//! found by their checksums. The report names what is lost. If the manifest is lost, so is its
//! content: obsolete runs may bring back records that were deleted long ago, and the report says
//! so.

mod find;
mod logs;
mod merge;

use crate::api::{Db, Keyspace, WriteBatch, WriteOptions};
use crate::keyspace::KeyspaceOptions;
use crate::options::Options;
use crate::progress::{Progress, Reporter};
use crate::read::values::ValueFiles;
use base::{Cause, Error, ErrorKind, Expiry, KeyspaceId, Ledger, Result};
use find::{Findings, FoundKeyspace};
use media::FileStore;
use media::os::{OsOptions, OsStore};
use merge::{Merge, Resolved};
use std::path::Path;
use std::sync::Arc;

/// Salvage commits a batch when it has this many operations, or bytes of keys and values.
const BATCH_OPERATIONS: usize = 1000;
const BATCH_BYTES: u64 = 1 << 20;

/// The result of a salvage: what was saved and what was lost.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Operations written into the target.
    pub entries: u64,
    /// Runs that were read, wholly or in part.
    pub runs: u64,
    /// What is lost, one phrase each.
    pub losses: Vec<String>,
}

/// Copies what can be read of the damaged database in `source` to a new one in `target`. The report
/// lists what was lost.
///
/// ```
/// # fn main() -> shingle::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let (source, target) = (dir.path().join("damaged"), dir.path().join("saved"));
/// # shingle::Options::new().open(&source)?.put("apple", "red")?;
/// let report = shingle::salvage(&source, &target, &mut |_progress| {})?;
/// for loss in &report.losses {
///     println!("lost: {loss}");
/// }
/// # assert_eq!(report.entries, 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Locked`](crate::ErrorKind::Locked) where a process has the source open; the errors of writes
/// to the target; [`Io`](crate::ErrorKind::Io) where the system cannot read the source at all;
/// [`Cancelled`](crate::ErrorKind::Cancelled) where `progress` cancels it, with a target that has
/// only a part of the data. Damage is no error.
pub fn salvage(
    source: &Path,
    target: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<SalvageReport> {
    salvage_with(source, target, Options::new(), progress)
}

/// [`salvage`] with options for the target. Operands are copied as they are, whether their merge
/// operator is known or not.
///
/// # Errors
///
/// As for [`salvage`].
pub fn salvage_with(
    source: &Path,
    target: &Path,
    options: Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<SalvageReport> {
    let read = OsOptions { create: false, read_only: true, ..OsOptions::default() };
    let store = OsStore::open(source, Arc::new(Ledger::default()), read)?;
    salvage_store(Arc::new(store), target, options, progress)
}

/// [`salvage_with`] of the database in `store`.
///
/// # Errors
///
/// As for [`salvage`].
pub fn salvage_store(
    store: Arc<dyn FileStore>,
    target: &Path,
    options: Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<SalvageReport> {
    let _lock = store.lock()?;
    let mut report = SalvageReport::default();
    let mut reporter = Reporter::new(progress);
    let findings = find::find(&*store, &mut report.losses, &mut reporter)?;
    let db = options.create(true).read_only(false).absent_operators(true).open(target)?;
    if db.iter().next().is_some() {
        let message = "the target holds data already; salvage into a new directory";
        return Err(Error::new(ErrorKind::AlreadyExists, message));
    }
    let values = ValueFiles::new(store.clone(), findings.database);
    let mut job = Job { store, values, db, report };
    for (&id, keyspace) in &findings.keyspaces {
        job.keyspace(&findings, id, keyspace, &mut reporter)?;
    }
    job.db.close()?;
    Ok(job.report)
}

struct Job {
    store: Arc<dyn FileStore>,
    /// The segments of the source.
    values: ValueFiles,
    db: Db,
    report: SalvageReport,
}

impl Job {
    fn keyspace(
        &mut self,
        findings: &Findings,
        id: KeyspaceId,
        found: &FoundKeyspace,
        reporter: &mut Reporter<'_>,
    ) -> Result<()> {
        let keyspace = self.target(found)?;
        let total_bytes = found.pieces.iter().map(|piece| piece.extent.bytes).sum();
        let memtables = findings.memtables.get(&id).map_or(&[][..], Vec::as_slice);
        let mut merge = Merge::new(self.store.clone(), &found.pieces, memtables);
        let mut batch = WriteBatch::new();
        while let Some((key, resolved)) = merge.next()? {
            self.write(&keyspace, &mut batch, &key, resolved)?;
            if batch.len() >= BATCH_OPERATIONS || batch.user_bytes() >= BATCH_BYTES {
                self.commit(&mut batch)?;
                let done_bytes = merge.done_bytes();
                reporter.step(done_bytes, total_bytes, found.name.clone())?;
            }
        }
        self.commit(&mut batch)?;
        self.report.runs += merge.runs();
        self.report.losses.extend(merge.into_losses());
        Ok(())
    }

    fn target(&self, found: &FoundKeyspace) -> Result<Keyspace> {
        match self.db.keyspace(&found.name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut options = KeyspaceOptions::decode(&found.options)?;
                options.without_wal = false;
                self.db.engine().create_keyspace(&found.name, options)?;
                self.db.keyspace(&found.name)
            }
            keyspace => keyspace,
        }
    }

    fn write(
        &mut self,
        keyspace: &Keyspace,
        batch: &mut WriteBatch,
        key: &[u8],
        resolved: Resolved,
    ) -> Result<()> {
        let mut value = resolved.value;
        if let Some(pointer) = resolved.pointer {
            match self.values.read(&pointer, key, Cause::Recovery) {
                Ok(found) => value = Some(found.to_vec()),
                Err(error) => {
                    let key = base::key::display_key(key);
                    self.report.losses.push(format!("the value of key {key}: {error}"));
                }
            }
        }
        if let Some(value) = value {
            let expiry = resolved.expiry.unwrap_or(Expiry::NEVER);
            batch.put_expiring_in(keyspace, key, value, expiry)?;
        }
        if keyspace.state.operator.is_none() && !resolved.operands.is_empty() {
            let (key, count) = (base::key::display_key(key), resolved.operands.len());
            self.report.losses.push(format!("{count} merge operands of key {key}: no operator"));
            return Ok(());
        }
        for operand in resolved.operands.iter().rev() {
            if batch.user_bytes() >= BATCH_BYTES {
                self.commit(batch)?;
            }
            batch.copy_operand_in(keyspace, key, operand)?;
        }
        Ok(())
    }

    fn commit(&mut self, batch: &mut WriteBatch) -> Result<()> {
        self.report.entries += batch.len() as u64;
        self.db.write(std::mem::take(batch), &WriteOptions::default())
    }
}
