//! Bulk ingestion: brings sorted files into a keyspace by one edit.
//!
//! The files are linked or copied into the store and checked before anything changes. Then all
//! their entries get one sequence number, newer than every write before it, and one edit adds the
//! runs. The edit lies between two commits: no other sequence number is given while it becomes
//! durable. So a reader sees all of the files or nothing, and every snapshot stays as it was.
//!
//! The entries of files that come in below what is there have sequence number 0 and a level under
//! all others. No write is newer or older than before, so nothing is flushed. The edit has its
//! place and its number between two commits all the same: transactions and change feeds tell by it
//! what was before. Snapshots that are held go on with what they saw
//! ([`crate::read::kept_views`]).
//!
//! Invariants:
//! - What the keyspace has in memory is older than what comes in above, and is flushed before the
//!   edit. So newer data is above older data in the tree, and no later flush, also one of what
//!   recovery replays, puts entries from before the edit and from after it into one run.
//! - The log is durable up to the edit, so that a crash leaves a prefix of the commit order.
//! - A crash before the edit leaves files that no edit names; the next opening removes them.

use crate::engine::Engine;
use crate::engine::commit_state::CommitState;
use crate::engine::log_syncs::SyncTurn;
use crate::engine::trees::Trees;
use crate::event::Event;
use crate::ingest::{IngestOptions, Ingested};
use crate::keyspace::KeyspaceState;
use crate::memtable::Memtable;
use crate::sorted_file::user_bytes;
use base::key::SEQUENCE_MAX;
use base::{Cause, DatabaseId, Error, ErrorKind, FileId, KeyspaceId, Result, SequenceNumber};
use media::os::outside;
use media::{FileHint, FileName, ReadFile};
use parking_lot::MutexGuard;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use table::{BlockCache, Extent, Run, RunSummary, sorted};
use tree::edit::{Change, DatabaseEdit, KeyspaceEdit, RunRecord};
use tree::moves::IngestedRun;

/// Flushes without holding writers. Each finds less in memory than the one before.
const FREE_FLUSHES: u32 = 2;

const CHANGES_LACK_INGESTION: &str = "ingested entries would be missing in change feeds, \
    which this database keeps logs for; write batches, or open it without \
    changes_retention_bytes and changes_retention_age, which ends the feeds";

/// Bytes of a copy at once.
const COPY_BYTES: u64 = 1 << 20;

/// A sorted file that is in the store, but not in the tree yet.
struct Arrived {
    path: PathBuf,
    file: FileId,
    identity: DatabaseId,
    bytes: u64,
    is_copy: bool,
    summary: RunSummary,
}

/// Files in the store that no edit refers to yet. Removed when this is dropped.
struct Arrivals<'a> {
    engine: &'a Engine,
    created: Vec<FileId>,
    files: Vec<Arrived>,
}

/// A place between two commits: as long as it is held, no sequence number is given. What has a log
/// is durable up to there.
struct Place<'a> {
    state: MutexGuard<'a, CommitState>,
    _turn: SyncTurn<'a>,
    trees: MutexGuard<'a, Trees>,
    sequence: SequenceNumber,
    begin_ns: u64,
}

impl Drop for Arrivals<'_> {
    fn drop(&mut self) {
        // In a poisoned database, the edit may be on the medium: the next opening decides.
        if self.engine.poisoned_by().is_some() {
            return;
        }
        for &file in &self.created {
            // What cannot be removed now is removed at the next opening.
            let _ = self.engine.store.remove(FileName::table(file));
        }
    }
}

impl Engine {
    /// Brings the sorted files at `paths` into `keyspace`: all of them or none.
    pub(crate) fn ingest(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        paths: &[PathBuf],
        options: &IngestOptions,
    ) -> Result<Ingested> {
        self.check_writable()?;
        if options.below && !keyspace.options.ingests_below {
            return Err(Error::invalid(format!(
                "keyspace {} was not created for ingestion below what it has: its deletions are \
                 not kept, so deleted keys would come back; create one with ingests_below",
                keyspace.name
            )));
        }
        if self.changes.is_some() {
            return Err(Error::new(ErrorKind::Unsupported, CHANGES_LACK_INGESTION));
        }
        let _inside = self.enter()?;
        let begin_ns = self.runtime.now_ns();
        let mut arrivals = self.bring_in(paths, options)?;
        if arrivals.files.is_empty() {
            return Ok(Ingested::default());
        }
        self.admission.admit(0, true, &*self.runtime, self.check_of_wait())?;
        if arrivals.files.iter().any(|file| file.summary.run.expiry.is_some()) {
            self.allow_expiry_in(keyspace)?;
        }
        let done = match options.below {
            false => self.install_between_writes(keyspace, &mut arrivals)?,
            true => self.install_below(keyspace, &mut arrivals)?,
        };
        let files = std::mem::take(&mut arrivals.files);
        self.report_ingested(keyspace, &files, &done, begin_ns);
        if options.move_files {
            for file in &files {
                // The database has it. A file that stays at its path does no harm.
                if let Err(error) = outside::remove(&file.path) {
                    self.events.add(Event::FileDeletionFailed { error });
                }
            }
        }
        self.runtime.wake();
        Ok(done)
    }

    /// Links or copies the files into the store, and checks them.
    fn bring_in(&self, paths: &[PathBuf], options: &IngestOptions) -> Result<Arrivals<'_>> {
        let mut arrivals = Arrivals { engine: self, created: Vec::new(), files: Vec::new() };
        for path in paths {
            self.check_open()?;
            let named = |error: Error| error.in_file(path.display().to_string());
            let file = self.new_file();
            let is_copy = !(options.move_files && self.adopt(path, file)?);
            // Listed before it is written, so that a failure removes it.
            arrivals.created.push(file);
            if is_copy {
                self.copy_in(path, file)?;
            }
            let stored = self.store.open(FileName::table(file), true)?;
            let identity = sorted::identity(&*stored, Cause::Ingest).map_err(named)?;
            let bytes = stored.len()?;
            let summary = check_file(stored, identity, bytes, options.verify).map_err(named)?;
            let path = path.clone();
            arrivals.files.push(Arrived { path, file, identity, bytes, is_copy, summary });
        }
        arrivals.files.retain(|file| !file.summary.run.range.is_empty());
        arrivals.files.sort_by(|a, b| a.summary.run.range.start.cmp(&b.summary.run.range.start));
        for pair in arrivals.files.windows(2) {
            if pair[0].summary.run.range.overlaps(&pair[1].summary.run.range) {
                return Err(Error::invalid(format!(
                    "the files of one ingestion must not overlap: {} and {} do; ingest them one \
                     after the other, the newer one last",
                    pair[0].path.display(),
                    pair[1].path.display()
                )));
            }
        }
        Ok(arrivals)
    }

    /// Takes the file in as a link. `false`: the store has no links to there.
    fn adopt(&self, path: &Path, file: FileId) -> Result<bool> {
        match self.store.sharing() {
            Some(sharing) => sharing.adopt(path, FileName::table(file)),
            None => Ok(false),
        }
    }

    fn copy_in(&self, path: &Path, file: FileId) -> Result<()> {
        // Reads outside of the store are no reads of the database.
        let source = outside::open(path, Arc::default())?;
        let bytes = source.len()?;
        let hint = FileHint { bytes_max: Some(bytes), background: true, ..FileHint::default() };
        let mut copy = self.store.create(FileName::table(file), &hint)?;
        let mut piece = vec![0; bytes.min(COPY_BYTES) as usize];
        while copy.len() < bytes {
            self.check_open()?;
            let count = (bytes - copy.len()).min(COPY_BYTES) as usize;
            source.read_at(copy.len(), &mut piece[..count], Cause::Ingest)?;
            copy.append(&piece[..count], Cause::Ingest)?;
        }
        copy.sync(Cause::Ingest)
    }

    /// Flushes what the keyspace has in memory, and installs the files.
    fn install_between_writes(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        arrivals: &mut Arrivals<'_>,
    ) -> Result<Ingested> {
        let mut hold = None;
        for flushes in 0.. {
            keyspace.check_open()?;
            if let Some(mut done) = self.install_ingested(keyspace, arrivals)? {
                if let Some((_, begin_ns)) = &hold {
                    done.held = Duration::from_nanos(self.runtime.now_ns() - begin_ns);
                }
                return Ok(done);
            }
            if flushes == FREE_FLUSHES {
                hold = Some((self.hold(self.flushed_together(keyspace)), self.runtime.now_ns()));
            }
            self.flush_keyspace(keyspace)?;
        }
        Err(self.closed())
    }

    /// The keyspaces whose memtables an ingestion into `keyspace` flushes: those without a log
    /// become durable at one point of the commit order.
    fn flushed_together(&self, keyspace: &KeyspaceState) -> Vec<KeyspaceId> {
        if !keyspace.options.without_wal {
            return vec![keyspace.id];
        }
        let unlogged = self.keyspaces().into_iter().filter(|other| other.options.without_wal);
        unlogged.map(|other| other.id).collect()
    }

    /// Waits for a flush of what `keyspace` has in memory now.
    fn flush_keyspace(self: &Arc<Self>, keyspace: &KeyspaceState) -> Result<()> {
        let ids = self.flushed_together(keyspace);
        for &id in &ids {
            self.commits.request_flush(id, self.snapshots.visible())?;
        }
        let state = self.commits.lock();
        let sealed = state.sealed.iter().filter(|sealed| ids.contains(&sealed.keyspace.id));
        let waiting: Vec<Arc<Memtable>> = sealed.map(|sealed| sealed.memtable.clone()).collect();
        drop(state);
        self.wait_flushed(&waiting)
    }

    /// Takes the place between two commits for an ingestion into `keyspace`.
    fn take_place(&self, keyspace: &KeyspaceState) -> Result<Place<'_>> {
        if !keyspace.options.without_wal {
            // Most of the log, while writers go on.
            let position = self.commits.lock().position();
            self.commits.sync_log(position)?;
        }
        let trees = self.versions.lock();
        let mut turn = self.commits.syncs.take(&*self.runtime);
        let mut state = self.commits.lock();
        let begin_ns = self.runtime.now_ns();
        self.check_writable()?;
        keyspace.check_open()?;
        if !keyspace.options.without_wal {
            self.commits.sync_rest(&mut turn.durable, &mut state)?;
        }
        let sequence = state.next_sequence;
        if sequence >= SEQUENCE_MAX {
            return Err(Error::invalid("the database has no sequence number left"));
        }
        Ok(Place { state, _turn: turn, trees, sequence, begin_ns })
    }

    /// Installs the files by one edit. `None`, and no change: the keyspace has something in memory.
    fn install_ingested(
        &self,
        keyspace: &Arc<KeyspaceState>,
        arrivals: &mut Arrivals<'_>,
    ) -> Result<Option<Ingested>> {
        let mut place = self.take_place(keyspace)?;
        let Place { state, trees, sequence, begin_ns, .. } = &mut place;
        let sequence = *sequence;
        let together = self.flushed_together(keyspace);
        if together.iter().any(|&id| state.memtables(id).next().is_some()) {
            return Ok(None);
        }
        let key_start = state.active(keyspace.id).and_then(|a| a.key_start_before.clone());
        let (_, writer) = Memtable::of_pool(self.memory.chunks(), &key_start.unwrap_or_default())?;
        let runs = self.ingested_runs(trees, keyspace, &arrivals.files, sequence)?;
        let changes = tree::moves::ingest(&trees.tree(keyspace.id)?.version, &runs);
        let nodes = changes.iter().filter(|change| matches!(change, Change::AddNode { .. }));
        let mut done = summed(&arrivals.files, sequence, nodes.count() as u64);
        let edit = DatabaseEdit {
            keyspaces: vec![KeyspaceEdit { keyspace: keyspace.id, changes }],
            last_sequence: Some(sequence),
            ..DatabaseEdit::default()
        };
        self.versions.install_optional(trees, edit)?;
        // They belong to the tree: nothing below fails.
        arrivals.created.retain(|created| runs.iter().all(|run| run.run.file != *created));
        state.pass_ingestion(keyspace.id, writer);
        self.snapshots.publish(sequence);
        done.held = Duration::from_nanos(self.runtime.now_ns() - *begin_ns);
        Ok(Some(done))
    }

    /// Installs the files under everything, by one edit.
    fn install_below(
        &self,
        keyspace: &Arc<KeyspaceState>,
        arrivals: &mut Arrivals<'_>,
    ) -> Result<Ingested> {
        let mut place = self.take_place(keyspace)?;
        let Place { state, trees, sequence, begin_ns, .. } = &mut place;
        let runs = self.ingested_runs(trees, keyspace, &arrivals.files, 0)?;
        let version = trees.tree(keyspace.id)?.version.clone();
        let mut changes = tree::moves::ingest_below(&version, &runs).map_err(|held| {
            let named = arrivals.files.iter().find(|file| file.file == held.run.file);
            let path = named.map_or_else(String::new, |file| file.path.display().to_string());
            Error::invalid(
                "an earlier file below has keys of its range, and would hide it: ingest files of \
                 other keys, or write these",
            )
            .in_file(path)
        })?;
        let mut done = summed(&arrivals.files, 0, runs.len() as u64);
        if state.memtables(keyspace.id).next().is_none() {
            // Else a flush of what is in memory says as much.
            changes.push(Change::SetFlushed { sequence: *sequence });
        }
        let edit = DatabaseEdit {
            keyspaces: vec![KeyspaceEdit { keyspace: keyspace.id, changes }],
            last_sequence: Some(*sequence),
            ..DatabaseEdit::default()
        };
        self.versions.install_below(trees, edit, *sequence)?;
        self.runtime.interleave("ingest below: before later writes");
        arrivals.created.retain(|created| runs.iter().all(|run| run.run.file != *created));
        state.next_sequence = *sequence + 1;
        done.held = Duration::from_nanos(self.runtime.now_ns() - *begin_ns);
        Ok(done)
    }

    /// The runs of the files, each for the level that the policy chooses.
    fn ingested_runs(
        &self,
        trees: &mut Trees,
        keyspace: &KeyspaceState,
        files: &[Arrived],
        sequence: SequenceNumber,
    ) -> Result<Vec<IngestedRun>> {
        let view = trees.tree(keyspace.id)?.picker_view(&keyspace.limits, SequenceNumber::MAX);
        let run = |file: &Arrived| {
            let known = &file.summary.run;
            // Range tombstones stay above what they hide, as those of a flush do.
            let to_level = match known.range_deletes {
                0 => keyspace.policy.flush_level(&view, &known.range),
                _ => 0,
            };
            let run = RunRecord {
                id: self.new_run(),
                sequence_min: sequence,
                sequence_max: sequence,
                ..known.in_file(file.file)
            };
            IngestedRun { run, identity: file.identity, file_bytes: file.bytes, to_level }
        };
        Ok(files.iter().map(run).collect())
    }

    fn report_ingested(
        &self,
        keyspace: &KeyspaceState,
        files: &[Arrived],
        done: &Ingested,
        begin_ns: u64,
    ) {
        self.ledger().user_wrote(files.iter().map(|file| user_bytes(&file.summary)).sum());
        self.ingestions.count(done);
        self.events.add(Event::FilesIngested {
            keyspace: keyspace.name.clone(),
            files: files.iter().map(|file| file.file.0).collect(),
            files_below_level0: done.files_below_level0,
            entries: done.entries,
            bytes: done.bytes,
            copied_bytes: done.copied_bytes,
            held_micros: done.held.as_micros() as u64,
            micros: (self.runtime.now_ns() - begin_ns) / 1000,
        });
    }
}

/// Reads what a sorted file says of itself; `verifies`: every byte of it.
fn check_file(
    file: Arc<dyn ReadFile>,
    identity: DatabaseId,
    bytes: u64,
    verifies: bool,
) -> Result<RunSummary> {
    let extent = Extent::of_sorted(identity, bytes, 0);
    let run = Run::open(file, extent, BlockCache::new(0), Cause::Ingest)?;
    let summary = if verifies { run.verify(&mut |_| {})? } else { run.summary().clone() };
    if summary.merges > 0 || summary.pointers > 0 {
        return Err(Error::invalid("a sorted file holds only puts and deletions"));
    }
    Ok(summary)
}

fn summed(files: &[Arrived], sequence: SequenceNumber, files_below_level0: u64) -> Ingested {
    let copies = files.iter().filter(|file| file.is_copy);
    Ingested {
        sequence,
        files: files.len() as u64,
        files_below_level0,
        entries: files.iter().map(|file| file.summary.run.entries).sum(),
        bytes: files.iter().map(|file| file.bytes).sum(),
        copied_bytes: copies.map(|file| file.bytes).sum(),
        held: Duration::ZERO,
    }
}
