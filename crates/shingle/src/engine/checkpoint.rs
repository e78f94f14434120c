//! Checkpoints: a second store with the same files and a manifest of its own. Between directories
//! the files are hard links where possible, and otherwise copies. Files of a cold store are in the
//! same place.
//!
//! Invariants:
//! - The target becomes a database only with its root, which is written last.
//! - A shared file takes no more bytes, in neither database. The store refuses the append, and the
//!   job begins a new file instead. A file that is being written at that moment is copied.
//! - Edits go on while tables and segments are shared: the pinned versions keep those files.

use crate::engine::commit_state::{CommitState, LiveLog, LogPosition};
use crate::engine::core::Core;
use crate::engine::trees::Trees;
use crate::event::Event;
use crate::span::span;
use base::{Cause, Error, ErrorKind, FileId, Result, SequenceNumber};
use media::{AppendFile, FileHint, FileName, FileStore, Part, share};
use std::collections::BTreeMap;
use std::sync::Arc;
use table::log::{LogHeader, LogKind, LogWriter};
use table::manifest::{Root, encode_edit, encode_root};
use tree::Version;
use tree::edit::{Change, DatabaseEdit, SegmentChange};

/// The logged writes since the flush, up to one point of the commit order.
struct Logged {
    logs: Vec<LiveLog>,
    position: LogPosition,
    /// The last sequence number up to that point.
    sequence: SequenceNumber,
    /// The ends of value segments that the logs point to.
    values: BTreeMap<FileId, u64>,
}

impl Logged {
    fn of(state: &CommitState) -> Logged {
        Logged {
            logs: state.logs.clone(),
            position: state.position(),
            sequence: state.next_sequence - 1,
            values: state.unflushed_ends(),
        }
    }
}

/// Takes the files of a checkpoint.
pub(crate) trait CheckpointTarget {
    /// Takes `part` of a file of `source`, durably but for its name.
    fn take(&self, source: &dyn FileStore, name: FileName, part: Part) -> Result<()>;

    /// The file for the manifest, which is synced when it is written.
    fn create_manifest(&self, name: FileName) -> Result<Box<dyn AppendFile>>;

    /// Everything is there: `root` makes it a database.
    fn finish(&self, root: &[u8]) -> Result<()>;
}

/// A store becomes a database of its own.
struct Copy<'a>(&'a dyn FileStore);

impl CheckpointTarget for Copy<'_> {
    fn take(&self, source: &dyn FileStore, name: FileName, part: Part) -> Result<()> {
        share(source, self.0, name, part)
    }

    fn create_manifest(&self, name: FileName) -> Result<Box<dyn AppendFile>> {
        self.0.create(name, &FileHint::default())
    }

    fn finish(&self, root: &[u8]) -> Result<()> {
        self.0.sync_names()?;
        self.0.set_root(root)
    }
}

impl Core {
    /// Makes `copy`, which must be empty, a database with the present contents.
    pub(crate) fn write_checkpoint(&self, copy: &dyn FileStore) -> Result<()> {
        let _lock = copy.lock()?;
        if copy.root()?.is_some() || !copy.list()?.is_empty() {
            let message = format!("{} holds a database already", copy.describe());
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        self.fill_checkpoint(&Copy(copy)).map(drop).inspect_err(|_| clear(copy))
    }

    /// Gives `copy` the files of a database with the present contents. Returns its last sequence
    /// number.
    pub(crate) fn fill_checkpoint(&self, copy: &dyn CheckpointTarget) -> Result<SequenceNumber> {
        span!("checkpoint").within(|| self.fill(copy))
    }

    fn fill(&self, copy: &dyn CheckpointTarget) -> Result<SequenceNumber> {
        let _inside = self.enter()?;
        let begin_ns = self.runtime.now_ns();
        if self.follows {
            let message = "a follower has no logs of its own: let the writer do this";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let trees = self.versions.lock();
        let logged = Logged::of(&self.commits.lock());
        // The next edit may remove logs, which no version holds. After a flush they are short.
        self.share_logs(&trees, &logged, copy)?;
        // Commits go on meanwhile: the copy has none of them.
        let mut edit = trees.snapshot_edit(self.next_numbers(), logged.sequence);
        let versions: Vec<Arc<Version>> =
            trees.keyspaces.values().map(|tree| tree.version.clone()).collect();
        drop(trees);
        self.runtime.interleave("a checkpoint has its versions");
        for version in &versions {
            self.share_files(version, &logged, copy)?;
        }
        bring_together(&mut edit);
        edit.cold_mark = None;
        self.write_checkpoint_root(copy, &edit)?;
        let micros = (self.runtime.now_ns() - begin_ns) / 1000;
        self.events.add(Event::CheckpointFinished { micros });
        Ok(logged.sequence)
    }

    fn share_files(
        &self,
        version: &Version,
        logged: &Logged,
        copy: &dyn CheckpointTarget,
    ) -> Result<()> {
        for usage in version.files() {
            self.check_open()?;
            let name = FileName::table(usage.file.id);
            copy.take(&*self.store, name, Part::AtLeast(usage.total_bytes))?;
        }
        for segment in version.segments.iter() {
            self.check_open()?;
            let end = logged.values.get(&segment.file.id).copied().unwrap_or(0);
            let bytes = end.max(segment.bytes);
            let name = FileName::value(segment.file.id);
            copy.take(&*self.store, name, Part::AtLeast(bytes))?;
        }
        Ok(())
    }

    fn share_logs(
        &self,
        trees: &Trees,
        logged: &Logged,
        copy: &dyn CheckpointTarget,
    ) -> Result<()> {
        let logs = logged.logs.iter().map(|log| log.file);
        for log in logs.filter(|&log| log >= trees.log_floor) {
            // The last log may meanwhile grow beyond the checkpoint's point.
            let part = match log == logged.position.file {
                true => Part::Exactly(logged.position.bytes),
                false => Part::Whole,
            };
            copy.take(&*self.store, FileName::wal(log), part)?;
        }
        Ok(())
    }

    fn write_checkpoint_root(
        &self,
        copy: &dyn CheckpointTarget,
        edit: &DatabaseEdit,
    ) -> Result<()> {
        let file = self.new_file();
        let mut bytes = Vec::new();
        encode_edit(edit, &mut bytes);
        let header = LogHeader {
            database: self.database,
            file,
            kind: LogKind::Manifest,
            salt: self.runtime.random_u64(),
            previous: None,
            has_origins: false,
            restates: false,
        };
        let append = copy.create_manifest(FileName::manifest(file))?;
        let mut writer = LogWriter::create(append, header, Cause::Checkpoint)?;
        writer.append(&[&bytes])?;
        writer.sync()?;
        copy.finish(&encode_root(&Root {
            database: self.database,
            manifest: file,
            manifest_bytes_min: writer.bytes(),
        }))
    }
}

/// Removes what a failed checkpoint left: because of its links, the database could not append to
/// its own files. The first error is the one to report.
pub(crate) fn clear(copy: &dyn FileStore) {
    let files = copy.list().unwrap_or_default();
    files.iter().for_each(|file| drop(copy.remove(file.name)));
}

/// All files of a checkpoint are in one store, including those of a cold store.
fn bring_together(edit: &mut DatabaseEdit) {
    for change in edit.keyspaces.iter_mut().flat_map(|keyspace| &mut keyspace.changes) {
        if let Change::Segment { change: SegmentChange::Add { is_in_cold_store, .. }, .. } = change
        {
            *is_in_cold_store = false;
        }
    }
}
