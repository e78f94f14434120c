//! Cleanup between steps: a new manifest when most of the old one is history, and the removal of
//! obsolete files. Files are removed one at a time, so that a burst of removals does not delay
//! reads and writes.

use crate::engine::core::Core;
use crate::event::Event;
use base::ErrorKind;
use media::{FileKind, FileName};

/// Removes one obsolete file. `false`: there is none, or none may be removed, because it is unknown
/// which manifest and which of its edits the next opening will find.
pub(crate) fn step(core: &Core) -> bool {
    let mut trees = core.versions.lock();
    core.versions.rewrite_large_manifest(&mut trees);
    if core.poisoned_by().is_some() {
        return false;
    }
    core.versions.collect_dead_files(&mut trees);
    core.versions.expire_changes(&mut trees);
    let Some(name) = trees.dead_files.pop() else { return false };
    trees.removals += 1;
    drop(trees);
    remove(core, name);
    core.reserve.expect_space();
    let mut trees = core.versions.lock();
    trees.removals -= 1;
    if trees.has_lacks_of_space()
        && let Some(space) = core.space()
    {
        trees.end_lacks_of_space(space.free_bytes);
    }
    true
}

fn remove(core: &Core, name: FileName) {
    if name.kind == FileKind::Value {
        core.read.values.forget(name.id);
    }
    match core.store.remove(name) {
        Ok(()) if name.kind == FileKind::Table => {
            core.events.add(Event::TableFileDeletion { file_number: name.id.0 });
        }
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        // Left for the next opening, which removes what nothing refers to.
        Err(error) => core.events.add(Event::FileDeletionFailed { error }),
    }
}
