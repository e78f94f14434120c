//! Merges that nothing is due for but the space of frozen runs: a run that was pushed stays whole
//! until the last of its slices is merged, and a node that gets few slices would keep it for ever.

use super::survey::{Linked, Survey};
use crate::plan::{Plan, Reason};
use crate::policy::View;
use crate::policy::stack::merge;
use crate::policy::why::Why;
use crate::version::Slice;
use base::FileId;
use std::collections::HashMap;

/// Bytes of files that no slice shows may be one of this many parts of those that are shown, where
/// the threshold is the fan-out. Fewer cost merges before their time: docs/adr/0070.
const FROZEN_PARTS: f64 = 12.0;

/// The longest wait, in times of the fan-out, that lessens what may be dead: that of the adaptive
/// threshold. A higher configured threshold asks for fewer merges.
const PATIENCE_MAX: f64 = 2.0;

/// A slice is linked no longer than it takes to write this many times the entries of the tree.
const AGE_ROUNDS: f64 = 4.0;

/// The merge of a linked node that gives back space, if too much is frozen or for too long.
pub(super) fn pick(view: &View<'_>, survey: &Survey<'_>) -> Option<Plan> {
    if survey.linked.is_empty() {
        return None;
    }
    by_pressure(view, survey).or_else(|| by_age(view, survey))
}

/// A file of linked slices: what it still shows, and what not. Slices of it that stand alone in
/// their nodes count as not shown; a run has hardly ever both.
struct Frozen {
    dead_bytes: u64,
    live_bytes: u64,
}

fn by_pressure(view: &View<'_>, survey: &Survey<'_>) -> Option<Plan> {
    let live = view.version.bytes();
    let dead = view.version.file_bytes().saturating_sub(live);
    // The longer slices wait, the more entries they overwrite meanwhile: then less may be dead.
    let patience = (survey.threshold / view.limits.fan_out.max(1.0)).clamp(1.0, PATIENCE_MAX);
    let dead_max = (live as f64 / (FROZEN_PARTS * patience)) as u64;
    if dead <= dead_max {
        return None;
    }
    let frozen = frozen(survey);
    let mut order: Vec<_> =
        survey.linked.iter().map(|linked| (worth(linked, &frozen), linked)).collect();
    order.retain(|(worth, _)| *worth > 0.0);
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let score = dead as f64 / dead_max.max(1) as f64;
    first(view, order.into_iter().map(|(_, linked)| linked), score)
}

/// The files of linked slices that keep dead bytes.
fn frozen(survey: &Survey<'_>) -> HashMap<FileId, Frozen> {
    let mut frozen: HashMap<FileId, Frozen> = HashMap::new();
    for slice in survey.linked.iter().flat_map(|linked| &linked.node.slices) {
        let file = &slice.run.file;
        let shown = frozen
            .entry(file.id)
            .or_insert_with(|| Frozen { dead_bytes: file.bytes(), live_bytes: 0 });
        shown.live_bytes += slice.bytes;
        shown.dead_bytes = shown.dead_bytes.saturating_sub(slice.bytes);
    }
    frozen.retain(|_, file| file.dead_bytes > 0);
    frozen
}

/// The dead bytes that a merge brings closer to their end, for each byte that it costs to merge now
/// and not when the node is due. Of a file's dead bytes the node's share is that of what the file
/// still shows; a node that shows the last of it frees them all.
fn worth(linked: &Linked<'_>, frozen: &HashMap<FileId, Frozen>) -> f64 {
    let Some((own, links)) = linked.node.slices.split_last() else { return 0.0 };
    let share = |slice: &Slice| {
        let file = frozen.get(&slice.run.file.id)?;
        Some(file.dead_bytes as f64 * slice.bytes as f64 / file.live_bytes.max(1) as f64)
    };
    let freed: f64 = links.iter().filter_map(share).sum();
    freed / (own.bytes as f64 * (1.0 - linked.score.min(1.0))).max(1.0)
}

fn by_age(view: &View<'_>, survey: &Survey<'_>) -> Option<Plan> {
    let (mut entries, mut newest) = (0.0, 0);
    for slice in view.version.slices() {
        newest = newest.max(slice.run.sequence_max);
        let share = slice.bytes as f64 / slice.run.bytes.max(1) as f64;
        entries += slice.run.entries as f64 * share;
    }
    let oldest = newest.saturating_sub((entries * AGE_ROUNDS) as u64);
    let is_old = |linked: &&Linked<'_>| {
        let mut links = linked.node.slices.iter().rev().skip(1);
        links.any(|slice| slice.run.sequence_max < oldest)
    };
    first(view, survey.linked.iter().filter(is_old), 1.0)
}

fn first<'a>(
    view: &View<'_>,
    order: impl Iterator<Item = &'a Linked<'a>>,
    score: f64,
) -> Option<Plan> {
    let why = Why { reason: Reason::Garbage, score };
    order
        .map(|linked| merge(view, linked.level, linked.node, linked.level, why))
        .find(|plan| view.allows(plan))
}
