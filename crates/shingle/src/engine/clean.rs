//! Housekeeping between steps: a fresh manifest when the old one is mostly history, and the removal
//! of dead files, paced: a file at a time, so that a burst of removals does not hold up
//! reads and writes behind it.

use crate::engine::core::Core;
use base::ErrorKind;
use media::{FileKind, FileName};

/// Removes one dead file. `false`: there is none, or none may go, since nobody knows which manifest
/// or which of its edits the next opening will find.
pub(crate) fn step(core: &Core) -> bool {
    let mut trees = core.versions.lock();
    core.versions.rewrite_large_manifest(&mut trees);
    if core.poisoned_by().is_some() {
        return false;
    }
    core.versions.collect_dead_files(&mut trees);
    let Some(name) = trees.dead_files.pop() else { return false };
    trees.removals += 1;
    drop(trees);
    remove(core, name);
    core.reserve.expect_space();
    core.versions.lock().removals -= 1;
    true
}

fn remove(core: &Core, name: FileName) {
    if name.kind == FileKind::Value {
        core.runs.values.forget(name.id);
    }
    match core.store.remove(name) {
        Ok(()) if name.kind == FileKind::Table => core.events.table_deleted(name.id),
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        // Left for the next opening, which removes what nothing refers to.
        Err(error) => core.events.error("file_deletion_failed", &error),
    }
}
