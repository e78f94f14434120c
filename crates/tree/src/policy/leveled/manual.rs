//! Manual compaction: one level at a time, from the top, until a range lies on one level only.

use super::candidates::{Candidate, cover, level0_closure};
use crate::plan::{Plan, Reason};
use crate::policy::levels::last_level;
use crate::policy::why::Why;
use crate::policy::{View, Wanted};
use crate::version::Level;
use base::KeyRange;

/// The next step that brings what is `wanted` down to `to_level` (none: the deepest level that has
/// data). What was written later goes along where it is in the way.
pub(in crate::policy) fn pick(
    view: &View<'_>,
    wanted: &Wanted,
    to_level: Option<u8>,
) -> Option<Plan> {
    let (version, range) = (view.version, &wanted.range);
    let deepest = version.levels.iter().rposition(Level::has_slices)? as u8;
    let bottom = to_level.unwrap_or(deepest.max(1)).min(last_level(version, view.limits));
    let why = Why { reason: Reason::Manual, score: 1.0 };
    let slices = level0_closure(version, range);
    let plan = if bottom > 0 && slices.iter().any(|slice| wanted.is_in(slice)) {
        let to =
            first_level_in_the_way(view, &crate::version::hull(slices.iter().copied()), bottom);
        Candidate::level0(version, &slices, to).plan(view, to, true, why)
    } else {
        let (level, upper) = (1..bottom).find_map(|level| {
            let nodes = version.level(level).overlap(range);
            let first = nodes.iter().position(|node| wanted.is_due(node))?;
            Some((level, &nodes[first..]))
        })?;
        // A bounded step: a few nodes at a time.
        let upper = &upper[..upper.len().min(8)];
        let candidate = Candidate::nodes(version, level, upper);
        debug_assert!(cover(upper).overlaps(range));
        candidate.plan(view, level + 1, true, why)
    };
    view.allows(&plan).then_some(plan)
}

/// Level 0 goes down past levels that have nothing in its range.
fn first_level_in_the_way(view: &View<'_>, range: &KeyRange, bottom: u8) -> u8 {
    (1..bottom)
        .find(|&level| !view.version.level(level).overlap(range).is_empty())
        .unwrap_or(bottom)
}
