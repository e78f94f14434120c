//! Checkpoints: a directory of hard links with a manifest of its own.
//!
//! Invariants: the target becomes a database only with its root, which is written last; files that
//! may still grow are copied up to what the manifest vouches for, never linked.

use crate::engine::Engine;
use base::{Cause, Error, ErrorKind, FileId, Ledger, Result};
use media::os::{OsOptions, OsStore};
use media::{FileHint, FileName, FileStore};
use std::path::Path;
use std::sync::Arc;
use table::log::{LogHeader, LogKind, LogWriter};
use table::manifest::{Root, encode_edit, encode_root};
use tree::FileUsage;
use tree::edit::DatabaseEdit;

impl Engine {
    pub(crate) fn write_checkpoint(&self, target: &Path) -> Result<()> {
        let copy = OsStore::open(target, Arc::new(Ledger::default()), OsOptions::default())?;
        let _lock = copy.lock()?;
        if copy.root()?.is_some() || !copy.list()?.is_empty() {
            let message = format!("{} holds a database already", copy.describe());
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        // The versions are held, so that no file of theirs goes before it is shared.
        let (edit, files, _versions) = self.checkpoint_plan();
        for usage in &files {
            let grows = usage.live_bytes < usage.total_bytes || self.holds_several(usage);
            let bytes = grows.then_some(usage.total_bytes);
            self.store.share(FileName::table(usage.file.id), target, bytes)?;
        }
        self.write_checkpoint_root(&copy, &edit)
    }

    #[allow(clippy::type_complexity)] // Read once, right above.
    fn checkpoint_plan(&self) -> (DatabaseEdit, Vec<FileUsage>, Vec<Arc<tree::Version>>) {
        let mut trees = self.lock_trees();
        let floor = trees.log_floor;
        // The checkpoint has no logs: it begins where this flush ended.
        trees.log_floor = FileId(self.next_numbers().0);
        let edit = trees.snapshot_edit(self.next_numbers(), self.snapshots.visible());
        trees.log_floor = floor;
        let versions: Vec<Arc<tree::Version>> =
            trees.keyspaces.values().map(|tree| tree.version.clone()).collect();
        let files = versions.iter().flat_map(|version| version.files()).collect();
        (edit, files, versions)
    }

    fn holds_several(&self, usage: &FileUsage) -> bool {
        let trees = self.lock_trees();
        let in_file = |run: &Arc<tree::Run>| run.file.id == usage.file.id;
        trees
            .keyspaces
            .values()
            .any(|tree| tree.version.runs().iter().filter(|r| in_file(r)).count() > 1)
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
