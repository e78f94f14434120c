//! Levels of a tree: the deepest one, and the one that a flush goes to.

use super::{Limits, View};
use crate::version::{BELOW_LEVEL, Level, Version};
use base::KeyRange;

/// The deepest level: that of the limits, or that of a deeper tree that another policy left.
pub(super) fn last_level(version: &Version, limits: &Limits) -> u8 {
    let deepest = version.levels.iter().rposition(Level::has_slices).unwrap_or(0) as u8;
    deepest.max(limits.levels.max(2) - 1)
}

/// The deepest level that a flush may go to without passing keys of its range.
pub(super) fn flush_level(view: &View<'_>, range: &KeyRange) -> u8 {
    let clear = |level: u8| {
        let nodes = view.version.level(level).overlap(range).iter();
        !view.busy.range(level, range)
            && !nodes.flat_map(|node| &node.slices).any(|slice| slice.range.overlaps(range))
    };
    let is_held = |level: u8| !view.version.level(level).overlap(range).is_empty();
    if !clear(0) {
        return 0;
    }
    let mut to = 0;
    while to < view.limits.flush_level_max.min(BELOW_LEVEL - 1) && clear(to + 1) && !is_held(to + 1)
    {
        let grandparents = view.version.level(to + 2).overlap_bytes(range);
        if view.limits.overlap_bytes_max.is_some_and(|max| grandparents > max) {
            break;
        }
        to += 1;
    }
    to
}
