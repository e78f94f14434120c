//! Salvage: what can still be read of a damaged database, into a new one. The source is only read.
//!
//! The tree is taken from the manifest, as far as its edits can be read. Its runs are read from the
//! oldest to the newest, then the logs; each writes over what an older one had. A damaged block
//! costs the entries of that block; what is lost is counted and named.

use crate::api::{Db, WriteBatch, WriteOptions};
use crate::engine::recover::{Found, FoundKeyspace};
use crate::keyspace::KeyspaceOptions;
use crate::options::Options;
use crate::stats::Progress;
use base::key::{EntryKind, SEQUENCE_MAX, internal_key, split_internal_key, trailer_kind};
use base::key::{TRAILER_BYTES, trailer_sequence};
use base::{Cause, Error, ErrorKind, KeyspaceId, Ledger, Result};
use media::os::{OsOptions, OsStore};
use media::{FileKind, FileName, FileStore};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use table::batch::BatchView;
use table::iter::EntryIter;
use table::log::{LogIdentity, LogKind, LogReader, Salvage};
use table::manifest::{decode_edit, decode_root};
use table::{BlockCache, Extent, IterOptions};
use tree::{Graveyard, Slice};

/// Operations of a batch that salvage commits at a time.
const BATCH_OPERATIONS: usize = 1000;

/// What was saved and what was not.
#[derive(Clone, Debug, Default)]
pub struct SalvageReport {
    /// Entries written into the target, older versions among them.
    pub entries: u64,
    /// Runs that were read, wholly or in part.
    pub runs: u64,
    /// What is lost, in sentences.
    pub losses: Vec<String>,
}

/// Copies what can be read of the database in `source` into a new one in `target`.
pub fn salvage(
    source: &Path,
    target: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<SalvageReport> {
    let read = OsOptions { create: false, read_only: true, ..OsOptions::default() };
    let store: Arc<dyn FileStore> =
        Arc::new(OsStore::open(source, Arc::new(Ledger::default()), read)?);
    let _lock = store.lock()?;
    let mut report = SalvageReport::default();
    let found = read_manifest(&*store, &mut report)?;
    let db = Options::new().open(target)?;
    if db.iter().next().is_some() {
        let message = "the target holds data already; salvage into a new directory";
        return Err(Error::new(ErrorKind::AlreadyExists, message));
    }
    let mut job = Job { store, db, report, names: BTreeMap::new() };
    job.create_keyspaces(&found)?;
    job.runs(&found, progress)?;
    job.logs(&found, progress)?;
    job.db.clone().close()?;
    Ok(job.report)
}

/// The edits up to the first that cannot be read.
fn read_manifest(store: &dyn FileStore, report: &mut SalvageReport) -> Result<Found> {
    let no_root = || Error::new(ErrorKind::Corruption, "there is no root to begin from");
    let root = store.root()?.ok_or_else(no_root)?;
    let root = decode_root(&root)?;
    let name = FileName::manifest(root.manifest);
    let file = store.open(name, true)?;
    let identity =
        LogIdentity { database: root.database, file: root.manifest, kind: LogKind::Manifest };
    let mut found = Found::empty(root.database, Arc::new(Graveyard::default()));
    let mut reader = LogReader::open(&*file, identity, 0, Cause::Recovery)?;
    loop {
        let step = reader.next().and_then(|record| match record {
            None => Ok(false),
            Some(record) => {
                decode_edit(record.payload, name, record.offset).and_then(|e| found.apply(e))?;
                Ok(true)
            }
        });
        match step {
            Ok(true) => {}
            Ok(false) => return Ok(found),
            Err(error) => {
                report.losses.push(format!("later edits of the tree: {error}"));
                return Ok(found);
            }
        }
    }
}

struct Job {
    store: Arc<dyn FileStore>,
    db: Db,
    report: SalvageReport,
    names: BTreeMap<KeyspaceId, String>,
}

impl Job {
    fn create_keyspaces(&mut self, found: &Found) -> Result<()> {
        for (&id, keyspace) in &found.keyspaces {
            let name = &keyspace.record.name;
            self.names.insert(id, name.clone());
            if self.db.keyspace(name).is_err() {
                let mut options = KeyspaceOptions::decode(&keyspace.record.options)?;
                options.without_wal = false;
                self.db.create_keyspace(name, options)?;
            }
        }
        Ok(())
    }

    fn runs(&mut self, found: &Found, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let total_bytes = found.keyspaces.values().map(|k| k.version.bytes()).sum();
        let mut done_bytes = 0;
        for (&id, keyspace) in &found.keyspaces {
            for slice in oldest_first(keyspace) {
                let what = FileName::table(slice.run.file.id).to_string();
                progress(Progress { done_bytes, total_bytes, what: what.clone() });
                if let Err(error) = self.slice(found, id, &slice) {
                    if error.kind() != ErrorKind::Corruption && error.kind() != ErrorKind::NotFound
                    {
                        return Err(error);
                    }
                    self.report.losses.push(format!("a run in {what}: {error}"));
                }
                done_bytes += slice.bytes;
            }
        }
        Ok(())
    }

    fn slice(&mut self, found: &Found, id: KeyspaceId, slice: &Slice) -> Result<()> {
        let extent = Extent {
            database: found.database,
            file: slice.run.file.id,
            run: slice.run.id,
            offset: slice.run.offset,
            bytes: slice.run.bytes,
        };
        let file = self.store.open(FileName::table(extent.file), true)?;
        let run = table::Run::open(file, extent, BlockCache::new(1 << 20), Cause::Recovery)?;
        self.report.runs += 1;
        let mut writer = Writer::new(self, id)?;
        let deletes = run.range_deletes().clip(&slice.range);
        for fragment in deletes.fragments() {
            writer.batch.delete_range_in(&writer.keyspace, &fragment.start, &fragment.end)?;
            writer.commit_full(0)?;
        }
        let mut iter = run.iter(IterOptions::cached(Cause::Recovery));
        let mut from = slice.range.start.to_vec();
        let ends: Vec<base::Key> =
            run.boundaries(&slice.range, Cause::Recovery)?.into_iter().map(|b| b.key).collect();
        loop {
            match writer.copy(&mut iter, &from, slice, &deletes) {
                Ok(()) => break,
                Err((at, error)) => {
                    writer.losses.push(format!("a block after key {}: {error}", display(&at)));
                    // Go on behind the block that cannot be read.
                    let Some(next) = ends.iter().find(|end| ***end > *at) else { break };
                    from = base::key::successor(next).to_vec();
                    iter = run.iter(IterOptions::cached(Cause::Recovery));
                }
            }
        }
        let (entries, losses) = writer.finish()?;
        self.report.entries += entries;
        self.report.losses.extend(losses);
        Ok(())
    }

    fn logs(&mut self, found: &Found, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let mut logs: Vec<FileName> = self
            .store
            .list()?
            .into_iter()
            .map(|file| file.name)
            .filter(|name| name.kind == FileKind::Wal && name.id >= found.log_floor)
            .collect();
        logs.sort();
        for name in logs {
            progress(Progress { done_bytes: 0, total_bytes: 0, what: name.to_string() });
            let file = self.store.open(name, true)?;
            let identity =
                LogIdentity { database: found.database, file: name.id, kind: LogKind::Wal };
            let mut records = Salvage::open(&*file, identity, Cause::Recovery)?;
            while let Some(record) = records.next()? {
                if record.skipped_bytes > 0 {
                    let lost = format!("{} bytes of {name}", record.skipped_bytes);
                    self.report.losses.push(lost);
                }
                let entries = self.record(record.payload);
                match entries {
                    Ok(entries) => self.report.entries += entries,
                    Err(error) => self.report.losses.push(format!("a record of {name}: {error}")),
                }
            }
        }
        Ok(())
    }

    fn record(&self, payload: &[u8]) -> Result<u64> {
        let Some((_, batch)) = payload.split_at_checked(TRAILER_BYTES) else { return Ok(0) };
        let mut out = WriteBatch::new();
        for operation in BatchView::parse(batch)?.iter() {
            let operation = operation?;
            let Some(name) = self.names.get(&operation.keyspace) else { continue };
            let keyspace = self.db.keyspace(name)?;
            let (key, value) = (operation.key, operation.value);
            match operation.kind {
                EntryKind::Put => out.put_in(&keyspace, key, value)?,
                EntryKind::Delete => out.delete_in(&keyspace, key)?,
                EntryKind::Merge => out.merge_in(&keyspace, key, value)?,
                EntryKind::DeleteRange => out.delete_range_in(&keyspace, key, value)?,
                EntryKind::Pointer => {}
            }
        }
        let entries = out.len() as u64;
        self.db.write(out, &WriteOptions::default())?;
        Ok(entries)
    }
}

fn display(key: &[u8]) -> String {
    base::key::display_key(key)
}

/// The slices of a tree from the oldest data to the newest.
fn oldest_first(keyspace: &FoundKeyspace) -> Vec<Slice> {
    let levels = keyspace.version.levels.iter().rev();
    let nodes = levels.flat_map(|level| level.nodes.iter());
    nodes.flat_map(|node| node.slices.iter().rev().cloned()).collect()
}

/// Writes one slice's entries into the target.
struct Writer {
    db: Db,
    keyspace: crate::api::Keyspace,
    batch: WriteBatch,
    entries: u64,
    losses: Vec<String>,
    last_key: Option<Vec<u8>>,
}

impl Writer {
    fn new(job: &Job, id: KeyspaceId) -> Result<Writer> {
        let name = job.names.get(&id).map_or("default", String::as_str);
        Ok(Writer {
            db: job.db.clone(),
            keyspace: job.db.keyspace(name)?,
            batch: WriteBatch::new(),
            entries: 0,
            losses: Vec::new(),
            last_key: None,
        })
    }

    /// Copies from `from` on. An error comes with the last key that was read.
    fn copy(
        &mut self,
        iter: &mut table::RunIter,
        from: &[u8],
        slice: &Slice,
        deletes: &table::RangeDeletes,
    ) -> std::result::Result<(), (Vec<u8>, Error)> {
        let mut at = from.to_vec();
        let fail = |at: &[u8]| {
            let at = at.to_vec();
            move |error| (at, error)
        };
        iter.seek(&internal_key(from, SEQUENCE_MAX, EntryKind::SEARCH)).map_err(fail(&at))?;
        while iter.valid() {
            let Some((key, trailer)) = split_internal_key(iter.key()) else { break };
            if !slice.range.is_before_end(key) {
                break;
            }
            at = key.to_vec();
            // Only the newest version of a key counts; what the run itself deletes does not.
            let covering = deletes.covering(key, SEQUENCE_MAX);
            let is_deleted = covering.is_some_and(|s| s > trailer_sequence(trailer));
            if self.last_key.as_deref() != Some(key) && !is_deleted {
                self.entry(key, trailer_kind(trailer), iter.value()).map_err(fail(&at))?;
                self.last_key = Some(at.clone());
            }
            iter.next().map_err(fail(&at))?;
        }
        Ok(())
    }

    fn entry(&mut self, key: &[u8], kind: Option<EntryKind>, value: &[u8]) -> Result<()> {
        match kind {
            Some(EntryKind::Put) => self.batch.put_in(&self.keyspace, key, value)?,
            Some(EntryKind::Delete) => self.batch.delete_in(&self.keyspace, key)?,
            Some(EntryKind::Merge) => self.batch.merge_in(&self.keyspace, key, value)?,
            _ => return Ok(()),
        }
        self.commit_full(BATCH_OPERATIONS)
    }

    fn commit_full(&mut self, operations: usize) -> Result<()> {
        if self.batch.len() < operations.max(1) {
            return Ok(());
        }
        self.entries += self.batch.len() as u64;
        self.db.write(std::mem::take(&mut self.batch), &WriteOptions::default())
    }

    fn finish(mut self) -> Result<(u64, Vec<String>)> {
        self.commit_full(1)?;
        Ok((self.entries, self.losses))
    }
}
