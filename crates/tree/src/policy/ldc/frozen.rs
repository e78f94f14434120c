//! Merges that nothing is due for but the space of frozen runs: a run that was pushed stays whole
//! until the last of its slices is merged, and a node that gets few slices would keep it for ever.

use super::survey::{Linked, Survey};
use crate::plan::{Plan, Reason};
use crate::policy::View;
use crate::policy::stack::{Why, merge};
use base::FileId;
use std::collections::{HashMap, HashSet};

/// Bytes of files that no slice shows may be one of this many parts of those that are shown.
const FROZEN_PARTS: u64 = 10;

/// A slice is linked no longer than it takes to write this many times the entries of the tree.
const AGE_ROUNDS: u64 = 4;

/// The merge of a linked node that gives back space, if too much is frozen or for too long.
pub(super) fn pick(view: &View<'_>, survey: &Survey<'_>) -> Option<Plan> {
    if survey.linked.is_empty() {
        return None;
    }
    by_pressure(view, survey).or_else(|| by_age(view, survey))
}

fn by_pressure(view: &View<'_>, survey: &Survey<'_>) -> Option<Plan> {
    let files = view.version.files();
    let live: u64 = files.iter().map(|usage| usage.live_bytes).sum();
    let dead: HashMap<FileId, u64> = files
        .iter()
        .map(|usage| (usage.file.id, usage.total_bytes.saturating_sub(usage.live_bytes)))
        .filter(|(_, bytes)| *bytes > 0)
        .collect();
    let frozen: u64 = dead.values().sum();
    let frozen_max = live / FROZEN_PARTS;
    if frozen <= frozen_max {
        return None;
    }
    // The node that keeps the most of it, for each byte that its merge writes.
    let kept = |linked: &Linked<'_>| {
        let links = linked.node.slices.iter().rev().skip(1);
        let bytes: u64 = links.filter_map(|slice| dead.get(&slice.run.file.id)).sum();
        bytes as f64 / linked.node.bytes().max(1) as f64
    };
    let mut order: Vec<_> = survey.linked.iter().map(|linked| (kept(linked), linked)).collect();
    order.retain(|(kept, _)| *kept > 0.0);
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let score = frozen as f64 / frozen_max.max(1) as f64;
    first(view, order.into_iter().map(|(_, linked)| linked), score)
}

fn by_age(view: &View<'_>, survey: &Survey<'_>) -> Option<Plan> {
    let mut seen = HashSet::new();
    let (mut entries, mut newest) = (0u64, 0);
    for slice in view.version.slices() {
        newest = newest.max(slice.run.sequence_max);
        if seen.insert(slice.run.id) {
            entries = entries.saturating_add(slice.run.entries);
        }
    }
    let oldest = newest.saturating_sub(entries.saturating_mul(AGE_ROUNDS));
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
        .find(|plan| !view.busy.conflicts(view.version, plan))
}
