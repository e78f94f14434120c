//! Housekeeping between steps: a fresh manifest when the old one is mostly history, and the removal
//! of dead files, paced: a file at a time, so that a burst of removals does not hold up
//! reads and writes behind it.

use crate::engine::Engine;
use base::ErrorKind;
use media::{FileKind, FileName};

/// Removes one dead file. `false`: there is none, or none may go, since nobody knows which manifest
/// or which of its edits the next opening will find.
pub(crate) fn step(engine: &Engine) -> bool {
    let mut trees = engine.lock_trees();
    engine.rewrite_large_manifest(&mut trees);
    if engine.poisoned_by().is_some() {
        return false;
    }
    engine.collect_dead_files(&mut trees);
    let Some(name) = trees.dead_files.pop() else { return false };
    trees.removals += 1;
    drop(trees);
    remove(engine, name);
    engine.reserve.expect_space();
    engine.lock_trees().removals -= 1;
    true
}

fn remove(engine: &Engine, name: FileName) {
    if name.kind == FileKind::Value {
        engine.runs.values.forget(name.id);
    }
    match engine.store.remove(name) {
        Ok(()) if name.kind == FileKind::Table => engine.events.table_deleted(name.id),
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        // Left for the next opening, which removes what nothing refers to.
        Err(error) => engine.events.error("file_deletion_failed", &error),
    }
}
