//! Checkpoints: a directory of hard links with a manifest of its own. Files of a cold store lie
//! there with the others, copied where they cannot be linked.
//!
//! Invariants: the target becomes a database only with its root, which is written last; files that
//! may still grow are copied up to what the manifest vouches for, never linked.

use crate::engine::Engine;
use crate::engine::commit::{CommitState, LiveLog, LogPosition};
use crate::engine::open::NOTES;
use crate::engine::trees::Trees;
use base::{Cause, Error, ErrorKind, FileId, Ledger, Result};
use media::os::{OsOptions, OsStore};
use media::{FileHint, FileName, FileStore};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use table::log::{LogHeader, LogKind, LogWriter};
use table::manifest::{Root, encode_edit, encode_root};
use tree::edit::{Change, DatabaseEdit, SegmentChange};

/// What was written since the flush, up to one point of the commit order.
struct Logged {
    logs: Vec<LiveLog>,
    position: LogPosition,
    /// How far the logs point into segments of values.
    values: BTreeMap<FileId, u64>,
}

impl Logged {
    fn of(state: &CommitState) -> Logged {
        let (logs, position) = (state.logs.clone(), state.position());
        Logged { logs, position, values: state.reach() }
    }
}

impl Engine {
    pub(crate) fn write_checkpoint(&self, target: &Path) -> Result<()> {
        let copy = OsStore::open(target, Arc::new(Ledger::default()), OsOptions::default())?;
        if let Some(foreign) = copy.foreign_file(&NOTES)? {
            let message = format!(
                "{} holds `{foreign}`, which is no file of ours: choose an empty directory",
                copy.describe()
            );
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        let _lock = copy.lock()?;
        if copy.root()?.is_some() || !copy.list()?.is_empty() {
            let message = format!("{} holds a database already", copy.describe());
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        // No edit is installed meanwhile: tables and logs belong together, and none of them goes.
        let trees = self.lock_trees();
        let logged = Logged::of(&self.lock_commit());
        self.share_tables(&trees, &logged, target)?;
        self.share_logs(&trees, &logged, target)?;
        let mut edit = trees.snapshot_edit(self.next_numbers(), self.snapshots.visible());
        drop(trees);
        bring_together(&mut edit);
        self.write_checkpoint_root(&copy, &edit)
    }

    fn share_tables(&self, trees: &Trees, logged: &Logged, target: &Path) -> Result<()> {
        for tree in trees.keyspaces.values() {
            let runs = tree.version.runs();
            for usage in tree.version.files() {
                let in_file = runs.iter().filter(|run| run.file.id == usage.file.id).count();
                let grows = usage.live_bytes < usage.total_bytes || in_file > 1;
                let bytes = grows.then_some(usage.total_bytes);
                self.store.share(FileName::table(usage.file.id), target, bytes)?;
            }
            // A flush may go on with any segment: both databases would write behind a link.
            for segment in tree.version.segments.iter() {
                let (id, name) = (segment.file.id, FileName::value(segment.file.id));
                let bytes =
                    logged.values.get(&id).map_or(segment.bytes, |&end| end.max(segment.bytes));
                self.store.share(name, target, Some(bytes))?;
            }
        }
        Ok(())
    }

    fn share_logs(&self, trees: &Trees, logged: &Logged, target: &Path) -> Result<()> {
        let logs = logged.logs.iter().map(|log| log.file);
        for log in logs.filter(|&log| log >= trees.log_floor) {
            let bytes = (log == logged.position.file).then_some(logged.position.bytes);
            self.store.share(FileName::wal(log), target, bytes)?;
        }
        Ok(())
    }

    fn write_checkpoint_root(&self, copy: &OsStore, edit: &DatabaseEdit) -> Result<()> {
        let file = self.new_file();
        let mut bytes = Vec::new();
        encode_edit(edit, &mut bytes);
        let header = LogHeader {
            database: self.database,
            file,
            kind: LogKind::Manifest,
            salt: self.runtime.random_u64(),
            previous: None,
        };
        let append = copy.create(FileName::manifest(file), &FileHint::default())?;
        let mut writer = LogWriter::create(append, header, Cause::Checkpoint)?;
        writer.append(&[&bytes])?;
        writer.sync()?;
        copy.sync_names()?;
        copy.set_root(&encode_root(&Root {
            database: self.database,
            manifest: file,
            manifest_bytes_min: writer.bytes(),
        }))
    }
}

/// All files of a checkpoint are in one directory, those of a cold store too.
fn bring_together(edit: &mut DatabaseEdit) {
    for change in edit.keyspaces.iter_mut().flat_map(|keyspace| &mut keyspace.changes) {
        if let Change::Segment { change: SegmentChange::Add { is_in_cold_store, .. }, .. } = change
        {
            *is_in_cold_store = false;
        }
    }
}
