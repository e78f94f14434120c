//! Keyspaces: creating, finding and dropping them.

use super::db::{Db, Keyspace};
use crate::engine::Engine;
use crate::engine::commit::Committed;
use crate::engine::open::{DEFAULT_KEYSPACE, keyspace_parts};
use crate::engine::trees::Flushed;
use crate::keyspace::{KeyspaceOptions, KeyspaceState};
use crate::read::view::LevelView;
use base::key::KEY_BYTES_MAX;
use base::{Error, ErrorKind, KeyRange, KeyspaceId, Result};
use std::sync::Arc;
use tree::edit::{DatabaseEdit, KeyspaceEdit, KeyspaceRecord};
use tree::{RunTable, Version};

impl Db {
    /// Creates a keyspace. Its `options` cannot change later.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](ErrorKind::AlreadyExists) where a keyspace has that name;
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) where the name is empty or too long, or the
    /// merge operator is not known. Also as for all writes, see [`Keyspace`].
    pub fn create_keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        self.engine().settings.operator(options.merge_operator.as_deref())?;
        let state = self.engine().create_keyspace(name, options)?;
        Ok(Keyspace { state, closer: self.default.closer.clone() })
    }

    /// The keyspace called `name`. Where there is none, creates it with `options`; an existing
    /// keyspace keeps its own.
    ///
    /// ```
    /// # fn main() -> shingle::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = shingle::Options::new().open(dir.path())?;
    /// let users = db.open_or_create_keyspace("users", Default::default())?;
    /// users.put("7", "Ann")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) where the existing keyspace has other
    /// options: another merge operator, prefix rule or log. Also as for [`Db::create_keyspace`].
    pub fn open_or_create_keyspace(
        &self,
        name: &str,
        options: KeyspaceOptions,
    ) -> Result<Keyspace> {
        match self.keyspace(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => return same_options(found?, &options),
        }
        match self.create_keyspace(name, options.clone()) {
            // Another thread was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                same_options(self.keyspace(name)?, &options)
            }
            created => created,
        }
    }

    /// The keyspace called `name`.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) where there is none.
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        let all = self.engine().keyspaces();
        let found = all.into_iter().find(|state| state.name == name);
        let state = found.ok_or_else(|| {
            let message = format!(
                "no keyspace is called `{name}`; there are: {}",
                self.keyspaces().join(", ")
            );
            Error::new(ErrorKind::NotFound, message)
        })?;
        Ok(Keyspace { state, closer: self.default.closer.clone() })
    }

    /// The names of all keyspaces, in the order of their creation.
    pub fn keyspaces(&self) -> Vec<String> {
        self.engine().keyspaces().iter().map(|state| state.name.clone()).collect()
    }

    /// Drops a keyspace with everything in it. Iterators over it stay readable; new reads fail.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) where there is no such keyspace;
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) for the keyspace `default`. Also as for all
    /// writes, see [`Keyspace`].
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        if name == DEFAULT_KEYSPACE {
            return Err(Error::invalid("the keyspace `default` cannot be dropped"));
        }
        let keyspace = self.keyspace(name)?;
        self.engine().drop_keyspace(&keyspace.state)
    }
}

/// A keyspace that is there, if it is as `options` want it.
fn same_options(keyspace: Keyspace, options: &KeyspaceOptions) -> Result<Keyspace> {
    if keyspace.state.options == *options {
        return Ok(keyspace);
    }
    Err(Error::invalid(format!(
        "the keyspace `{}` exists with other options: {:?}",
        keyspace.name(),
        keyspace.state.options
    )))
}

impl Engine {
    pub(crate) fn keyspace_by_id(&self, id: KeyspaceId) -> Result<Arc<KeyspaceState>> {
        self.find_keyspace(id).ok_or_else(|| {
            Error::new(ErrorKind::Corruption, format!("the manifest has no keyspace {id}"))
        })
    }

    /// Where the options of the database allow it, a keyspace may have an operator that nobody
    /// gave: one that is copied.
    pub(crate) fn create_keyspace(
        &self,
        name: &str,
        options: KeyspaceOptions,
    ) -> Result<Arc<KeyspaceState>> {
        if name.is_empty() || name.len() > KEY_BYTES_MAX {
            return Err(Error::invalid("a keyspace needs a name of 1 to 65535 bytes"));
        }
        let is_plain = |name: &String| !name.chars().any(char::is_control);
        if !options.merge_operator.as_ref().is_none_or(is_plain) {
            return Err(Error::invalid("the name of a merge operator has control characters"));
        }
        self.check_writable()?;
        let _inside = self.enter()?;
        let mut trees = self.lock_trees();
        if self.keyspaces().iter().any(|state| state.name == name) {
            let message = format!("a keyspace is called `{name}` already");
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        let id = KeyspaceId(trees.next_keyspace);
        let record = KeyspaceRecord { id, name: name.into(), options: options.encode() };
        let runs = RunTable::new(trees.graveyard.clone());
        let version = Version::empty(base::cause::LEVELS_MAX as u8);
        let (state, tree, active) =
            keyspace_parts(record.clone(), version, runs, &self.settings, &self.runs)?;
        let edit = DatabaseEdit {
            created: vec![record],
            next_keyspace: Some(id.0 + 1),
            ..DatabaseEdit::default()
        };
        self.install(&mut trees, edit, &Flushed::new())?;
        trees.next_keyspace = id.0 + 1;
        trees.keyspaces.insert(id, tree);
        self.lock_commit().add_keyspace(active);
        self.change_keyspaces(|keyspaces| {
            keyspaces.insert(id, state.clone());
        });
        Ok(state)
    }

    fn drop_keyspace(&self, state: &Arc<KeyspaceState>) -> Result<()> {
        self.check_writable()?;
        let _inside = self.enter()?;
        let mut trees = self.lock_trees();
        let edit = DatabaseEdit { dropped: vec![state.id], ..DatabaseEdit::default() };
        self.install(&mut trees, edit, &Flushed::new())?;
        state.mark_dropped();
        trees.keyspaces.remove(&state.id);
        self.lock_commit().remove_keyspace(state.id);
        self.change_keyspaces(|keyspaces| {
            keyspaces.remove(&state.id);
        });
        state.empty_view(&self.runs);
        self.collect_dead_files(&mut trees);
        trees.forget_parked();
        self.note_memtables(&self.lock_commit());
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
        // The deletion is done: closing alone keeps its files for a compaction to drop.
        let Ok(_inside) = self.enter() else { return Ok(()) };
        let mut trees = self.lock_trees();
        if is_seen() {
            return Ok(());
        }
        let Ok(tree) = trees.tree(state.id) else { return Ok(()) };
        if !tree.version.segments.is_empty() {
            // Merges count what dies in segments; a slice that is dropped unread would not.
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
        // The edit will be durable at once; the deletion must be so before it.
        self.sync_log(deletion.position)?;
        let tree = trees.tree(state.id)?;
        let changes = tree::moves::drop_slices(&tree.version, &inputs)?;
        let edit = DatabaseEdit {
            keyspaces: vec![KeyspaceEdit { keyspace: state.id, changes }],
            ..DatabaseEdit::default()
        };
        self.install(&mut trees, edit, &Flushed::new())?;
        self.runtime.wake();
        Ok(())
    }
}
