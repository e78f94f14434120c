//! The trees of all keyspaces and their log of edits: where an edit becomes the new truth.
//!
//! Invariants:
//! - An edit is applied and checked, then made durable in the manifest, then published. What
//!   readers see is never ahead of what a crash would recover.
//! - Files are removed only after the edit that dropped their last slice is durable, and only when
//!   no live version refers to them.
//! - A manifest that could not be written leaves an unknown outcome, and the database is poisoned;
//!   but for want of space, when the edit is not there and another manifest takes the next one.

use crate::engine::Engine;
use crate::engine::parked::Parked;
use crate::engine::recent::Recent;
use crate::keyspace::KeyspaceState;
use crate::memtable::Memtable;
use crate::read::view::{Runs, TreeView};
use base::{Cause, Error, ErrorKind, FileId, KeyspaceId, Result, RunId, SequenceNumber};
use media::{FileHint, FileName};
use std::collections::BTreeMap;
use std::sync::Arc;
use table::log::{LogHeader, LogKind, LogWriter};
use table::manifest::{Root, encode_edit, encode_root};
use tree::edit::{DatabaseEdit, KeyspaceEdit, KeyspaceRecord};
use tree::invariant::Shape;
use tree::policy::{Busy, Limits, Observed, View};
use tree::{Graveyard, HeldKind, RunTable, Undo, Version};

/// A manifest is rewritten when it has grown to this many times its first record...
const MANIFEST_GROWTH_MAX: u64 = 8;
/// ... and is at least this big.
const MANIFEST_BYTES_MIN: u64 =
    if cfg!(any(test, feature = "testing")) { 4 << 10 } else { 1 << 20 };

/// What the tree lock guards.
pub(crate) struct Trees {
    pub keyspaces: BTreeMap<KeyspaceId, TreeState>,
    pub manifest: Option<Manifest>,
    pub graveyard: Arc<Graveyard>,
    /// The floor that the manifest knows.
    pub log_floor: FileId,
    pub next_keyspace: u32,
    /// Moves that failed and wait for another try.
    pub parked: Vec<Parked>,
    /// Files whose removal failed or waits for its turn.
    pub dead_files: Vec<FileName>,
    /// Files that are being removed.
    pub removals: usize,
}

/// The tree of one keyspace.
pub(crate) struct TreeState {
    pub keyspace: Arc<KeyspaceState>,
    pub version: Arc<Version>,
    pub runs: RunTable,
    /// What background work has in hand.
    pub busy: Busy,
    /// The read form of `version`.
    pub view: Arc<TreeView>,
    /// What the policy is shown of the workload.
    observed: Observed,
    recent: Recent,
    /// Reads when level 0 took its present shape.
    level0_since_reads: u64,
}

/// The open log of edits.
pub(crate) struct Manifest {
    pub file: FileId,
    pub writer: LogWriter,
    /// Bytes after the first record, which holds everything.
    pub first_bytes: u64,
    /// An append found no space: its end may hold a part of a record, and the next edit goes to a
    /// new manifest.
    pub is_broken: bool,
}

impl TreeState {
    pub(crate) fn new(
        keyspace: Arc<KeyspaceState>,
        version: Arc<Version>,
        runs: RunTable,
        view: Arc<TreeView>,
    ) -> TreeState {
        TreeState {
            keyspace,
            version,
            runs,
            busy: Busy::default(),
            view,
            observed: Observed::default(),
            recent: Recent::default(),
            level0_since_reads: 0,
        }
    }

    /// Takes note of the workload, for the next pick.
    pub(crate) fn observe(&mut self, sequence: SequenceNumber, is_idle: bool) {
        let reads = self.keyspace.reads();
        self.observed.reads = reads.saturating_sub(self.level0_since_reads);
        self.observed.reads_share = self.recent.observe(reads, sequence);
        self.observed.seeks = self.view.seeks();
        self.observed.misses = self.view.misses();
        self.observed.is_idle = is_idle;
    }

    /// Makes `version` the tree.
    fn replace(&mut self, version: Arc<Version>, runs: &Arc<Runs>) {
        let runs_of = |version: &Version| -> Vec<RunId> {
            version.level0().iter().map(|slice| slice.run.id).collect()
        };
        if runs_of(&self.version) != runs_of(&version) {
            self.level0_since_reads = self.keyspace.reads();
        }
        self.view = Arc::new(TreeView::new(version.clone(), Some(&self.view), runs));
        self.version = version;
    }

    /// What the policy sees.
    pub(crate) fn picker_view<'a>(
        &'a self,
        limits: &'a Limits,
        oldest: SequenceNumber,
    ) -> View<'a> {
        View {
            version: &self.version,
            busy: &self.busy,
            limits,
            observed: &self.observed,
            oldest_snapshot: oldest,
        }
    }
}

impl Trees {
    pub(crate) fn tree(&mut self, id: KeyspaceId) -> Result<&mut TreeState> {
        self.keyspaces.get_mut(&id).ok_or_else(|| {
            Error::new(ErrorKind::Closed, format!("keyspace {id} does not exist any more"))
        })
    }

    /// One edit that makes an empty database into this one.
    pub(crate) fn snapshot_edit(
        &self,
        engine_numbers: (u64, u64),
        last_sequence: u64,
    ) -> DatabaseEdit {
        let created = self.keyspaces.values().map(|tree| KeyspaceRecord {
            id: tree.keyspace.id,
            name: tree.keyspace.name.clone(),
            options: tree.keyspace.options.encode(),
        });
        let keyspaces = self.keyspaces.values().map(|tree| KeyspaceEdit {
            keyspace: tree.keyspace.id,
            changes: tree.version.snapshot_changes(),
        });
        DatabaseEdit {
            created: created.collect(),
            dropped: Vec::new(),
            keyspaces: keyspaces.collect(),
            next_file: Some(engine_numbers.0),
            next_run: Some(engine_numbers.1),
            next_keyspace: Some(self.next_keyspace),
            last_sequence: Some(last_sequence),
            log_floor: Some(self.log_floor),
        }
    }
}

/// The versions that an edit leads to, and what takes it back.
type Next = Vec<(KeyspaceId, Arc<Version>, Undo)>;

/// Memtables that an edit brought into the tree.
pub(crate) type Flushed = BTreeMap<KeyspaceId, Vec<Arc<Memtable>>>;

impl Engine {
    /// Makes `edit` the new truth. On an error nothing changed, or the database is poisoned.
    pub(crate) fn install(
        &self,
        trees: &mut Trees,
        mut edit: DatabaseEdit,
        flushed: &Flushed,
    ) -> Result<()> {
        self.check_poisoned()?;
        self.replace_broken_manifest(trees)?;
        let (next_file, next_run) = self.next_numbers();
        edit.next_file = Some(next_file);
        edit.next_run = Some(next_run);
        let mut next = Vec::new();
        let written =
            self.apply_edit(trees, &edit, &mut next).and_then(|()| self.write_edit(trees, &edit));
        if let Err(error) = written {
            for (id, version, undo) in next {
                drop(version);
                trees.tree(id)?.runs.undo(undo);
            }
            return Err(error);
        }
        if let Some(floor) = edit.log_floor {
            trees.log_floor = floor;
        }
        for (id, version, _) in next {
            let tree = trees.tree(id)?;
            tree.replace(version, &self.runs);
            let memtables = flushed.get(&id).map_or(&[][..], Vec::as_slice);
            tree.keyspace.install(tree.view.clone(), memtables);
        }
        self.collect_dead_files(trees);
        self.update_pressure(trees);
        Ok(())
    }

    /// Adds the versions that `edit` leads to, checked, to `next`.
    fn apply_edit(&self, trees: &mut Trees, edit: &DatabaseEdit, next: &mut Next) -> Result<()> {
        for part in &edit.keyspaces {
            let tree = trees.tree(part.keyspace)?;
            let (version, undo) = tree.version.try_apply(&part.changes, &mut tree.runs)?;
            // A tree that another scheme left may have any shape.
            let checked = tree::invariant::check_edit(&version, &part.changes, &Shape::ANY);
            next.push((part.keyspace, Arc::new(version), undo));
            checked.map_err(|violation| self.poison(violation.into()))?;
        }
        Ok(())
    }

    /// Makes `edit` durable. Out of space, nothing happened: a part of a record at the end of a
    /// manifest is cut by the next opening.
    fn write_edit(&self, trees: &mut Trees, edit: &DatabaseEdit) -> Result<()> {
        let Some(manifest) = &mut trees.manifest else {
            return Err(Error::new(ErrorKind::Unsupported, "the database is open read-only"));
        };
        let mut bytes = Vec::new();
        encode_edit(edit, &mut bytes);
        // New tables: their names must be durable before an edit refers to them.
        self.store.sync_names().map_err(|error| self.poison(error))?;
        if let Err(error) = manifest.writer.append(&[&bytes]) {
            manifest.is_broken = error.kind() == ErrorKind::NoSpace;
            return Err(if manifest.is_broken { error } else { self.poison(error) });
        }
        manifest.writer.sync().map_err(|error| self.poison(error))?;
        // What follows a record proves that it was durable: without this, damage of the last edit
        // would pass for a torn tail, after the files that it made useless are gone.
        match manifest.writer.append(&[]) {
            // The edit is durable. The next one follows in a new manifest, which proves as much.
            Err(error) if error.kind() == ErrorKind::NoSpace => manifest.is_broken = true,
            proven => proven.map_err(|error| self.poison(error))?,
        }
        Ok(())
    }

    /// Begins a new manifest where the old one takes no more edits.
    fn replace_broken_manifest(&self, trees: &mut Trees) -> Result<()> {
        let broken = trees.manifest.as_ref().filter(|manifest| manifest.is_broken);
        let Some(old) = broken.map(|manifest| manifest.file) else { return Ok(()) };
        self.write_manifest(trees, self.snapshots.visible())?;
        trees.dead_files.push(FileName::manifest(old));
        Ok(())
    }

    /// Begins a new manifest when the old one is mostly history. A background step: no edit is half
    /// made. When it fails, the old one goes on, and grows as much again before the next try.
    pub(crate) fn rewrite_large_manifest(&self, trees: &mut Trees) {
        let Some(manifest) = &mut trees.manifest else { return };
        let bytes = manifest.writer.bytes();
        if bytes < MANIFEST_BYTES_MIN || bytes < manifest.first_bytes * MANIFEST_GROWTH_MAX {
            return;
        }
        let old = manifest.file;
        manifest.first_bytes = bytes;
        match self.write_manifest(trees, self.snapshots.visible()) {
            Ok(()) => trees.dead_files.push(FileName::manifest(old)),
            Err(error) => self.events.error("manifest_rewrite_failed", &error),
        }
    }

    /// Writes into the root how long the manifest is by now: without logs behind it, nothing else
    /// tells a manifest that lost edits from an older one, whose newer tables would pass for
    /// leftovers.
    pub(crate) fn vouch_for_manifest(&self) -> Result<()> {
        let trees = self.lock_trees();
        let grown = trees.manifest.as_ref().filter(|m| m.writer.bytes() > m.first_bytes);
        let Some(manifest) = grown else { return Ok(()) };
        let root = encode_root(&Root {
            database: self.database,
            manifest: manifest.file,
            manifest_bytes_min: manifest.writer.synced_bytes(),
        });
        self.store.set_root(&root).map_err(|error| self.poison_unless_tried_again(error))
    }

    /// Writes a fresh manifest with everything in its first record, and makes it the root.
    pub(crate) fn write_manifest(&self, trees: &mut Trees, last_sequence: u64) -> Result<()> {
        let file = self.new_file();
        let manifest = self.write_manifest_file(trees, file, last_sequence)?;
        let root = encode_root(&Root {
            database: self.database,
            manifest: file,
            manifest_bytes_min: manifest.writer.bytes(),
        });
        self.store.set_root(&root).map_err(|error| self.poison_unless_tried_again(error))?;
        trees.manifest = Some(manifest);
        Ok(())
    }

    fn write_manifest_file(
        &self,
        trees: &Trees,
        file: FileId,
        last_sequence: u64,
    ) -> Result<Manifest> {
        let edit = trees.snapshot_edit(self.next_numbers(), last_sequence);
        let mut bytes = Vec::new();
        encode_edit(&edit, &mut bytes);
        let append = self.store.create(FileName::manifest(file), &FileHint::default())?;
        let header = LogHeader {
            database: self.database,
            file,
            kind: LogKind::Manifest,
            salt: self.runtime.random_u64(),
            previous: None,
        };
        let mut writer = LogWriter::create(append, header, Cause::Manifest)?;
        writer.append(&[&bytes])?;
        writer.sync()?;
        self.store.sync_names()?;
        let first_bytes = writer.bytes();
        Ok(Manifest { file, writer, first_bytes, is_broken: false })
    }

    /// Takes note of files that no live version refers to, and of logs below the floor.
    pub(crate) fn collect_dead_files(&self, trees: &mut Trees) {
        let dead = trees.graveyard.drain();
        trees.dead_files.extend(dead.into_iter().map(|dead| match dead.kind {
            HeldKind::Runs => FileName::table(dead.id),
            HeldKind::Values => FileName::value(dead.id),
        }));
    }

    /// Notes that logs below `floor` are not needed any more. The floor must be durable.
    pub(crate) fn bury_logs(&self, trees: &mut Trees, logs: impl IntoIterator<Item = FileId>) {
        trees.dead_files.extend(logs.into_iter().map(FileName::wal));
    }

    /// Tells admission how the trees stand.
    pub(crate) fn update_pressure(&self, trees: &Trees) {
        let (mut level0_runs, mut debt_bytes) = (0, 0);
        let (mut value_bytes, mut value_debt_percent) = (0, 0);
        for tree in trees.keyspaces.values() {
            let view = tree.picker_view(&tree.keyspace.limits, SequenceNumber::MAX);
            let debt = tree.keyspace.policy.debt(&view);
            level0_runs = level0_runs.max(debt.level0_runs);
            debt_bytes += debt.pending_bytes;
            let usage = tree.version.segments.usage();
            value_bytes = value_bytes.max(self.value_pressure(&usage));
            value_debt_percent = value_debt_percent.max(tree.keyspace.values.debt_percent(&usage));
        }
        self.admission.update(|pressure| {
            pressure.level0_runs = level0_runs;
            pressure.debt_bytes = debt_bytes;
            pressure.value_bytes = value_bytes;
            pressure.value_debt_percent = value_debt_percent;
        });
    }

    /// Compiles the first view of a keyspace that begins or was recovered.
    pub(crate) fn first_view(version: &Arc<Version>, runs: &Arc<Runs>) -> Arc<TreeView> {
        Arc::new(TreeView::new(version.clone(), None, runs))
    }
}
