//! Creates and drops keyspaces, and drops the slices that a range deletion covers: edits at a
//! user's request.

use crate::engine::Engine;
use crate::engine::commit::Committed;
use crate::engine::open::keyspace_parts;
use crate::engine::trees::Flushed;
use crate::keyspace::{KeyspaceOptions, KeyspaceState};
use crate::read::view::LevelView;
use crate::read::view::TreeView;
use base::key::KEY_BYTES_MAX;
use base::{Error, ErrorKind, KeyRange, KeyspaceId, Result};
use std::sync::Arc;
use tree::edit::{DatabaseEdit, KeyspaceEdit, KeyspaceRecord};
use tree::{RunTable, Version};

impl Engine {
    pub(crate) fn keyspace_by_id(&self, id: KeyspaceId) -> Result<Arc<KeyspaceState>> {
        self.find_keyspace(id).ok_or_else(|| {
            Error::new(ErrorKind::Corruption, format!("the manifest has no keyspace {id}"))
        })
    }

    /// Creates a keyspace. With `absent_operators`, this process need not know its merge operator:
    /// salvage copies keyspaces this way.
    pub(crate) fn create_keyspace(
        &self,
        name: &str,
        options: KeyspaceOptions,
    ) -> Result<Arc<KeyspaceState>> {
        if name.is_empty() || name.len() > KEY_BYTES_MAX {
            return Err(Error::invalid("a keyspace needs a name of 1 to 65535 bytes"));
        }
        options.check()?;
        self.check_writable()?;
        let _inside = self.enter()?;
        let mut trees = self.versions.lock();
        if self.keyspaces().iter().any(|state| state.name == name) {
            let message = format!("a keyspace is called `{name}` already");
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        let id = KeyspaceId(trees.next_keyspace);
        let record = KeyspaceRecord { id, name: name.into(), options: options.encode() };
        let runs = RunTable::new(trees.obsolete_files.clone());
        let version = Arc::new(Version::empty(base::cause::LEVELS_MAX));
        let view = Arc::new(TreeView::new(version.clone(), None, &self.read));
        let (state, tree, active) =
            keyspace_parts(record.clone(), (version, runs, view), &self.settings)?;
        let edit = DatabaseEdit {
            created: vec![record],
            next_keyspace: Some(id.0 + 1),
            ..DatabaseEdit::default()
        };
        self.versions.install(&mut trees, edit, &Flushed::new())?;
        trees.next_keyspace = id.0 + 1;
        trees.keyspaces.insert(id, tree);
        self.commits.lock().add_keyspace(active);
        self.change_keyspaces(|keyspaces| {
            keyspaces.insert(id, state.clone());
        });
        Ok(state)
    }

    pub(crate) fn drop_keyspace(&self, state: &Arc<KeyspaceState>) -> Result<()> {
        self.check_writable()?;
        let _inside = self.enter()?;
        let mut trees = self.versions.lock();
        let edit = DatabaseEdit { dropped: vec![state.id], ..DatabaseEdit::default() };
        self.versions.install(&mut trees, edit, &Flushed::new())?;
        state.mark_dropped();
        trees.keyspaces.remove(&state.id);
        self.commits.lock().remove_keyspace(state.id);
        self.change_keyspaces(|keyspaces| {
            keyspaces.remove(&state.id);
        });
        state.empty_view(&self.read);
        self.versions.collect_dead_files(&mut trees);
        trees.forget_backed_off();
        // The edit did so while the keyspace was still there.
        self.versions.update_pressure(&trees);
        self.commits.note_memtables(&self.commits.lock());
        self.memtables_changed();
        self.runtime.wake();
        Ok(())
    }

    /// Drops the slices that a range deletion hides entirely, by an edit alone. Skipped while a
    /// snapshot may see them.
    pub(crate) fn drop_covered(
        &self,
        state: &KeyspaceState,
        start: &[u8],
        end: &[u8],
        deletion: Committed,
    ) -> Result<()> {
        let range = KeyRange::new(start, Some(end.into()));
        if range.is_empty() || state.options.without_wal {
            return Ok(());
        }
        let below = deletion.last_sequence;
        let is_seen = || self.snapshots.oldest().is_some_and(|(oldest, _)| oldest < below);
        // Most deletions cover no slice, and need not wait for the tree.
        let holds = |level: &Arc<LevelView>| level.holds_whole_older(&range, below);
        if is_seen() || !state.tree().levels.iter().any(holds) {
            return Ok(());
        }
        // The deletion is done. If the database closes now, a later compaction drops the files.
        let Ok(_inside) = self.enter() else { return Ok(()) };
        let mut trees = self.versions.lock();
        if is_seen() {
            return Ok(());
        }
        let Ok(tree) = trees.tree(state.id) else { return Ok(()) };
        if !tree.version.segments.is_empty() {
            // Merges count the garbage in segments; a slice that is dropped unread would not be
            // counted.
            return Ok(());
        }
        let mut inputs = tree::moves::covered(&tree.version, &range, below);
        inputs.retain(|input| {
            let is_busy = |run: base::RunId| tree.busy.level0_run(run);
            let node = tree.version.node(input.level, input.node);
            // A node that a move writes to must stay, even empty.
            let is_written = node.is_some_and(|n| tree.busy.range(input.level, &n.range));
            !tree.busy.node(input.level, input.node) && !is_written && !input.runs().any(is_busy)
        });
        if inputs.is_empty() {
            return Ok(());
        }
        // The edit becomes durable at once, so the deletion must be durable before it.
        self.commits.sync_log(deletion.position)?;
        let tree = trees.tree(state.id)?;
        let changes = tree::moves::drop_slices(&tree.version, &inputs)?;
        let edit = DatabaseEdit {
            keyspaces: vec![KeyspaceEdit { keyspace: state.id, changes }],
            ..DatabaseEdit::default()
        };
        match self.versions.install(&mut trees, edit, &Flushed::new()) {
            // The deletion is done. A compaction drops the slices once there is space for an edit.
            Err(error) if error.kind() == ErrorKind::NoSpace => return Ok(()),
            installed => installed?,
        }
        self.runtime.wake();
        Ok(())
    }
}
