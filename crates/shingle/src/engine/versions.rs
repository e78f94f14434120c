//! The version set: the trees of all keyspaces, and the manifest that makes their edits durable.
//!
//! Invariants:
//! - A version becomes visible after its edit is synced in the manifest. Readers never see more
//!   than recovery after a crash would restore.
//! - A file is removed only after the edit that dropped its last slice is durable, and only when no
//!   live version refers to it.
//! - A failed write of the manifest has an unknown outcome, and poisons the database. Being out of
//!   space has a known outcome: the edit is not there, and the next one goes to another manifest.

use crate::cleanup::Cleanup;
use crate::engine::backed_off::BackedOff;
use crate::engine::context::Context;
use crate::engine::trees::{Flushed, Manifest, Trees};
use crate::event::Event;
use crate::keyspace::KeyspaceState;
use crate::read::view::TreeView;
use base::{Cause, Error, ErrorKind, FileId, KeyspaceId, Result, SequenceNumber};
use media::{FileHint, FileName};
use parking_lot::{Mutex, MutexGuard};
use std::ops::Deref;
use std::sync::Arc;
use table::log::{LogHeader, LogKind, LogWriter};
use table::manifest::{Root, encode_edit, encode_root};
use tree::edit::DatabaseEdit;
use tree::invariant::Shape;
use tree::segments::Usage;
use tree::{FileRefKind, Undo, Version};

/// A manifest is rewritten when it has grown to this many times its first record...
const MANIFEST_GROWTH_MAX: u64 = 8;
/// ... and is at least this big.
const MANIFEST_BYTES_MIN: u64 =
    if cfg!(any(test, feature = "testing")) { 4 << 10 } else { 1 << 20 };

/// The versions that an edit leads to, and how to undo it.
type Next = Vec<(KeyspaceId, Arc<Version>, Undo)>;

/// The trees and the manifest of one open database.
pub(crate) struct VersionSet {
    context: Arc<Context>,
    trees: Mutex<Trees>,
}

/// Versions change in a context.
impl Deref for VersionSet {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl VersionSet {
    pub(crate) fn new(context: Arc<Context>, trees: Trees) -> VersionSet {
        VersionSet { context, trees: Mutex::new(trees) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Trees> {
        self.trees.lock()
    }

    /// Applies `edit`, makes it durable and publishes it. On an error nothing changed, or the
    /// database is poisoned.
    pub(crate) fn install(
        &self,
        trees: &mut Trees,
        edit: DatabaseEdit,
        flushed: &Flushed,
    ) -> Result<()> {
        self.install_by(trees, edit, VersionSet::write_edit_or_reserve, |keyspace, view| {
            let memtables = flushed.get(&keyspace.id).map_or(&[][..], Vec::as_slice);
            keyspace.install(view, memtables);
        })
    }

    /// [`VersionSet::install`] for an edit of a compaction that did `cleanup`. Its filter knew only
    /// the snapshots `known`: later ones keep the view from before the filter's decisions.
    pub(crate) fn install_compacted(
        &self,
        trees: &mut Trees,
        edit: DatabaseEdit,
        cleanup: &Cleanup,
        known: &[SequenceNumber],
    ) -> Result<()> {
        if cleanup.is_filtered() || cleanup.has_expired() {
            trees.renew_hidden(&edit)?;
        }
        if !cleanup.is_filtered() {
            return self.install(trees, edit, &Flushed::new());
        }
        self.install_by(trees, edit, VersionSet::write_edit_or_reserve, |keyspace, view| {
            self.snapshots.with_held(|held| {
                let before = keyspace.current_view();
                for sequence in held.filter(|sequence| known.binary_search(sequence).is_err()) {
                    self.kept_views.keep(sequence, keyspace.id, &before);
                }
                keyspace.install(view, &[]);
            });
        })
    }

    /// [`VersionSet::install`] for an edit that the database can do without: it takes nothing from
    /// the reserve.
    pub(crate) fn install_optional(&self, trees: &mut Trees, edit: DatabaseEdit) -> Result<()> {
        self.install_by(trees, edit, VersionSet::write_edit, |keyspace, view| {
            keyspace.install(view, &[]);
        })
    }

    /// [`VersionSet::install_optional`] for an edit that adds entries older than every snapshot:
    /// those that are held keep the view from before. Publishes `sequence`, which no entry has: a
    /// snapshot after a read of the new view has another number than those that keep the old one.
    /// The caller holds the commit lock.
    pub(crate) fn install_below(
        &self,
        trees: &mut Trees,
        edit: DatabaseEdit,
        sequence: SequenceNumber,
    ) -> Result<()> {
        self.install_by(trees, edit, VersionSet::write_edit, |keyspace, view| {
            self.snapshots.with_held(|held| {
                let before = keyspace.current_view();
                held.for_each(|sequence| self.kept_views.keep(sequence, keyspace.id, &before));
                keyspace.install(view, &[]);
                self.snapshots.publish(sequence);
            });
        })
    }

    fn install_by(
        &self,
        trees: &mut Trees,
        mut edit: DatabaseEdit,
        write: fn(&VersionSet, &mut Trees, &DatabaseEdit) -> Result<()>,
        publish: impl Fn(&KeyspaceState, Arc<TreeView>),
    ) -> Result<()> {
        self.check_poisoned()?;
        let (next_file, next_run) = self.next_numbers();
        edit.next_file = Some(next_file);
        edit.next_run = Some(next_run);
        let mut next = Vec::new();
        let written =
            self.apply_edit(trees, &edit, &mut next).and_then(|()| write(self, trees, &edit));
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
            tree.replace(version, &self.read, self.settings.expiry_delay_ms);
            publish(&tree.keyspace, tree.view.clone());
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

    /// [`VersionSet::write_edit`]; out of space, once more with the reserve.
    fn write_edit_or_reserve(&self, trees: &mut Trees, edit: &DatabaseEdit) -> Result<()> {
        self.with_reserve(|| self.write_edit(trees, edit))
    }

    /// Makes `edit` durable. Out of space, nothing happened: a part of a record at the end of a
    /// manifest is cut by the next opening.
    fn write_edit(&self, trees: &mut Trees, edit: &DatabaseEdit) -> Result<()> {
        self.replace_broken_manifest(trees)?;
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
        // A later record proves that the edit was durable. Without it, damage of the last edit
        // would look like a torn tail, after the files that the edit made obsolete are gone.
        match manifest.writer.append(&[]) {
            // The edit is durable. The next one goes to a new manifest, which proves as much.
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

    /// Begins a new manifest when most of the old one is history. A background step: no edit is
    /// half made. When it fails, the old manifest goes on, and grows by as much again before the
    /// next try.
    pub(crate) fn rewrite_large_manifest(&self, trees: &mut Trees) {
        let Some(manifest) = &mut trees.manifest else { return };
        let bytes = manifest.writer.bytes();
        if bytes < MANIFEST_BYTES_MIN || bytes < manifest.tried_bytes * MANIFEST_GROWTH_MAX {
            return;
        }
        let old = manifest.file;
        manifest.tried_bytes = bytes;
        match self.write_manifest(trees, self.snapshots.visible()) {
            Ok(()) => trees.dead_files.push(FileName::manifest(old)),
            Err(error) => self.events.add(Event::ManifestRewriteFailed { error }),
        }
    }

    /// Records the manifest's present length in the root. Without logs behind it, only this length
    /// tells a manifest that lost edits from an older one, whose newer tables would look like
    /// leftovers.
    pub(crate) fn vouch_for_manifest(&self) -> Result<()> {
        let trees = self.lock();
        let grown = trees.manifest.as_ref().filter(|m| m.writer.bytes() > m.first_bytes);
        let Some(manifest) = grown else { return Ok(()) };
        let root = encode_root(&Root {
            database: self.database,
            manifest: manifest.file,
            manifest_bytes_min: manifest.writer.synced_bytes(),
        });
        self.with_reserve(|| self.set_root(&root))
    }

    /// Where a root finds no space, the old one is still there.
    fn set_root(&self, root: &[u8]) -> Result<()> {
        self.store.set_root(root).map_err(|error| match error.kind() {
            ErrorKind::NoSpace => error,
            _ => self.poison_unless_tried_again(error),
        })
    }

    /// Writes a new manifest with everything in its first record, and makes it the root.
    pub(crate) fn write_manifest(&self, trees: &mut Trees, last_sequence: u64) -> Result<()> {
        let file = self.new_file();
        let written = self.write_manifest_file(trees, file, last_sequence);
        // No root names it, and on a full medium it would keep the space that the next one needs.
        let manifest =
            written.inspect_err(|_| drop(self.store.remove(FileName::manifest(file))))?;
        let root = encode_root(&Root {
            database: self.database,
            manifest: file,
            manifest_bytes_min: manifest.writer.bytes(),
        });
        self.set_root(&root).inspect_err(|error| {
            if error.kind() == ErrorKind::NoSpace {
                drop(self.store.remove(FileName::manifest(file)));
            }
        })?;
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
            has_origins: false,
            restates: false,
        };
        let mut writer = LogWriter::create(append, header, Cause::Manifest)?;
        writer.append(&[&bytes])?;
        writer.sync()?;
        self.store.sync_names()?;
        let first_bytes = writer.bytes();
        Ok(Manifest { file, writer, first_bytes, tried_bytes: first_bytes, is_broken: false })
    }

    /// Notes the files that no live version refers to, and the logs below the floor.
    pub(crate) fn collect_dead_files(&self, trees: &mut Trees) {
        let dead = trees.obsolete_files.drain();
        trees.dead_files.extend(dead.into_iter().map(|dead| match dead.kind {
            FileRefKind::Runs => FileName::table(dead.id),
            FileRefKind::Values => FileName::value(dead.id),
        }));
    }

    /// Notes that recovery does not need `logs`, which are all below the floor of `trees`. The
    /// floor must be durable. Logs that change feeds may read stay, as long as the retention says.
    pub(crate) fn bury_logs(&self, trees: &mut Trees, logs: impl IntoIterator<Item = FileId>) {
        let is_kept = |log: FileId| self.changes.as_ref().is_some_and(|changes| changes.holds(log));
        let dead = logs.into_iter().filter(|&log| !is_kept(log));
        trees.dead_files.extend(dead.map(FileName::wal));
        if let Some(changes) = &self.changes {
            changes.pass_floor(trees.log_floor);
        }
        self.expire_changes(trees);
    }

    /// Notes the logs that were kept for change feeds for long enough.
    pub(crate) fn expire_changes(&self, trees: &mut Trees) {
        let Some(changes) = &self.changes else { return };
        let expired = changes.take_expired(self.runtime.wall_micros());
        trees.dead_files.extend(expired.into_iter().map(FileName::wal));
    }

    /// Tells admission how far the trees are behind.
    pub(crate) fn update_pressure(&self, trees: &Trees) {
        let (mut level0_runs, mut debt_bytes, mut garbage_percent) = (0, 0, 0);
        let (mut value_bytes, mut value_debt_percent) = (0, 0);
        for tree in trees.keyspaces.values() {
            let view = tree.picker_view(&tree.keyspace.limits, SequenceNumber::MAX);
            let debt = tree.keyspace.policy.debt(&view);
            level0_runs = level0_runs.max(debt.level0_runs);
            debt_bytes += debt.pending_bytes;
            garbage_percent = garbage_percent.max(debt.garbage_percent);
            let usage = tree.version.segments.usage();
            value_bytes = value_bytes.max(self.value_pressure(&usage));
            value_debt_percent = value_debt_percent.max(tree.keyspace.values.debt_percent(&usage));
        }
        self.change_pressure(|pressure| {
            pressure.level0_runs = level0_runs;
            pressure.debt_bytes = debt_bytes;
            pressure.garbage_percent = garbage_percent;
            pressure.value_bytes = value_bytes;
            pressure.value_debt_percent = value_debt_percent;
        });
    }

    /// When the next backed-off job may be tried again, on the runtime's clock.
    pub(crate) fn next_retry_ns(&self) -> Option<u64> {
        let trees = self.lock();
        trees.backed_off.iter().filter(|p| p.hold.is_some()).map(|p| p.retry_ns).min()
    }

    /// The error that a backed-off job of `keyspace`, or of any keyspace, failed with.
    pub(crate) fn backed_off_error(&self, keyspace: Option<KeyspaceId>) -> Option<Error> {
        let trees = self.lock();
        let is_of = |p: &BackedOff| keyspace.is_none_or(|keyspace| keyspace == p.keyspace);
        let concerns = |p: &&BackedOff| p.is_failing() && is_of(p);
        trees.backed_off.iter().filter(concerns).map(|p| p.error.clone()).next()
    }

    /// The bytes of segments as admission counts them: above the soft limit, only what GC can
    /// reclaim.
    fn value_pressure(&self, usage: &Usage) -> u64 {
        let soft = self.settings.admission.value_bytes_soft;
        let reclaimable = usage.dead_bytes + usage.retired_bytes;
        usage.total_bytes.min(soft.saturating_add(reclaimable))
    }
}
