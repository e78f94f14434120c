//! Moves that make deletions space, under every scheme.
//!
//! A scheme counts bytes and runs. A tombstone is few bytes and hides many, so tombstones may wait
//! long, while readers step over them and over what they hide. [`next_move`] therefore looks for
//! tombstones that are worth a merge, wherever the scheme itself has no move.
//!
//! The merge takes the slices with tombstones and everything below them, down to the last level. So
//! one move drops the tombstones with what they hide, and its gain is known before: it is worth it
//! if it is expected to free at least as many bytes as it writes. All moves of this kind together
//! write at most what was deleted. Where nothing but tombstones is taken, they go by an edit. A big
//! merge of level 0 would hold its inputs until it ends. Where the scheme makes steps, level 0 goes
//! onto the stacks of the nodes below, and each node is merged by itself.
//!
//! What a tombstone hides is estimated: one entry below it, or less where recent merges found less
//! ([`Observed::hidden_share`]). Tombstones that a snapshot may need count nothing.

#[cfg(test)]
mod tests;

use super::leveled::level0_closure;
use super::{Observed, Policy, STEP_MEMTABLES, View};
use crate::plan::{Cut, Input, Move, Plan, Reason};
use crate::version::{LEVEL0_NODE, Level, Slice, Version, hull};
use base::{KeyRange, SequenceNumber};

/// Bytes of an internal key behind the user's.
const TRAILER_BYTES: f64 = 8.0;

/// How urgent these moves are: less than what a scheme must do.
const SCORE: f64 = 0.5;

/// The next move of a tree: what the scheme picks, or else what deletions are worth.
pub fn next_move(policy: &dyn Policy, view: &View<'_>) -> Option<Plan> {
    policy.pick(view).or_else(|| pick(view, policy.has_steps()))
}

fn pick(view: &View<'_>, has_steps: bool) -> Option<Plan> {
    let last = view.version.levels.iter().rposition(Level::has_slices)? as u8;
    if view.is_full() {
        return None;
    }
    let levels = (0u8..).zip(&view.version.levels);
    let slices = levels.flat_map(|(level, nodes)| {
        let slices = nodes.nodes.iter().flat_map(|node| &node.slices);
        slices.map(move |slice| (level, slice))
    });
    let is_due = |slice: &Slice| has_many(slice) && droppable(view, slice) > 0.0;
    let mut deleting = slices.filter(|(_, slice)| is_due(slice));
    deleting.find_map(|(level, slice)| {
        let inputs = down_from(view.version, level, &slice.range, last.max(1));
        plan(view, has_steps, inputs, last.max(1))
    })
}

/// Entries of a memtable, as the next flush would bring them to the tree.
#[derive(Clone, Copy, Debug)]
pub struct Unflushed<'a> {
    /// Covers their keys.
    pub range: &'a KeyRange,
    /// How many they are.
    pub entries: u64,
    /// How many of them are tombstones.
    pub deletes: u64,
    /// The newest of them.
    pub sequence_max: SequenceNumber,
}

/// The tombstones of a memtable are worth a flush of their own: the merge that this makes due frees
/// at least as much as it writes. Those that delete entries of the same memtable do not count.
pub fn are_worth_flush(view: &View<'_>, memtable: Unflushed<'_>) -> bool {
    let puts = memtable.entries.saturating_sub(memtable.deletes);
    let deletes = memtable.deletes.saturating_sub(puts) as f64;
    let last = view.version.levels.iter().rposition(Level::has_slices).unwrap_or(0) as u8;
    if deletes == 0.0 || memtable.sequence_max > view.oldest_snapshot {
        return false;
    }
    let inputs = down_from(view.version, 0, memtable.range, last.max(1));
    Account::below(view, &inputs, last.max(1), deletes * hidden_share(view)).is_worth()
}

/// A merge can free half of what it takes only if 1/3 of the entries or more are tombstones: a
/// tombstone is no larger than what it hides. Most trees have no such slice.
fn has_many(slice: &Slice) -> bool {
    slice.run.deletes.saturating_mul(3) >= slice.run.entries
}

/// What overlaps `range` from `level` down to `last`, and whatever else must go down with it:
/// nothing of it passes older data.
fn down_from(version: &Version, level: u8, range: &KeyRange, last: u8) -> Vec<Input> {
    let mut range = range.clone();
    let mut inputs = Vec::new();
    if level == 0 {
        let slices = level0_closure(version, &range);
        range = hull(slices.iter().copied()).union(&range);
        inputs.push(Input::of(0, LEVEL0_NODE, slices));
    }
    for level in level.max(1)..=last {
        let nodes = version.level(level).overlap(&range).iter();
        let nodes: Vec<_> = nodes.filter(|node| !node.slices.is_empty()).collect();
        range = nodes.iter().fold(range, |range, node| range.union(&node.range));
        inputs.extend(nodes.into_iter().map(|node| Input::whole(level, node)));
    }
    inputs
}

/// The merge of `inputs`, if it is worth what it writes and conflicts with no move in progress. One
/// that is big begins with a step where the scheme has stacks.
fn plan(view: &View<'_>, has_steps: bool, inputs: Vec<Input>, last: u8) -> Option<Plan> {
    let account = Account::below(view, &inputs, last, 0.0);
    if !account.is_worth() {
        return None;
    }
    let is_big = account.bytes > (STEP_MEMTABLES * view.limits.memtable_bytes) as f64;
    let (action, bytes) = if !account.has_values {
        (Move::Drop { inputs }, 0)
    } else if is_big && has_steps && inputs.len() > 1 && inputs[0].level == 0 {
        (lower(view, inputs)?, 0)
    } else {
        let cut = Cut { table_bytes_max: view.limits.table_bytes_max, overlap_bytes_max: None };
        let parallel_max = view.limits.parallel_max.clamp(1, 255) as u8;
        let action = Move::Merge { inputs, to_level: last, cut, one_file: false, parallel_max };
        (action, account.bytes as u64)
    };
    let plan = Plan::new(action, Reason::Garbage, SCORE, bytes);
    view.allows(&plan).then_some(plan)
}

/// What `inputs` have in level 0 goes onto the stacks of the nodes below, by an edit alone. Then
/// each node is merged by itself. None while a stack there is high: its merge comes first.
fn lower(view: &View<'_>, mut inputs: Vec<Input>) -> Option<Move> {
    let to_level = inputs[1].level;
    let below = inputs.iter().filter(|input| input.level == to_level);
    let mut nodes = below.filter_map(|input| view.version.node(to_level, input.node));
    let has_place = nodes.all(|node| node.slices.len() < view.limits.stack_max.max(2));
    has_place.then(|| Move::Push { input: inputs.swap_remove(0), to_level })
}

/// What a merge on the last level takes and is expected to free.
#[derive(Default)]
struct Account {
    bytes: f64,
    freed_bytes: f64,
    /// Something else than tombstones is taken.
    has_values: bool,
}

impl Account {
    /// `hides`: entries that tombstones above the inputs may hide.
    fn below(view: &View<'_>, inputs: &[Input], last: u8, mut hides: f64) -> Account {
        let mut account = Account::default();
        for input in inputs {
            for slice in taken(view.version, std::slice::from_ref(input)) {
                hides = account.add(view, slice, hides, input.level == last);
            }
        }
        account
    }

    /// Adds a slice that lies below tombstones which may hide `hides` entries. Returns the same for
    /// what lies below it. On the last level, tombstones hide entries of their own slice: a merge
    /// kept both for a snapshot.
    fn add(&mut self, view: &View<'_>, slice: &Slice, hides: f64, is_last: bool) -> f64 {
        let deletes = shown(slice, slice.run.deletes);
        let values = (shown(slice, slice.run.entries) - deletes).max(0.0);
        let droppable = droppable(view, slice);
        let own = droppable * hidden_share(view);
        let hidden = values.min(hides + if is_last { own } else { 0.0 });
        let of_values = (slice.bytes as f64 - deletes * tombstone_bytes(slice)).max(0.0);
        let run = &slice.run;
        self.has_values |= run.deletes < run.entries || run.range_deletes > 0;
        self.bytes += slice.bytes as f64;
        self.freed_bytes += hidden * of_values / values.max(1.0);
        self.freed_bytes += droppable * tombstone_bytes(slice);
        hides - hidden + own
    }

    /// It frees at least as much as it writes.
    fn is_worth(&self) -> bool {
        self.freed_bytes > 0.0 && self.bytes - self.freed_bytes <= self.freed_bytes
    }
}

/// Of tombstones, the share that is expected to hide an entry.
fn hidden_share(view: &View<'_>) -> f64 {
    view.observed.hidden_share.unwrap_or(1.0)
}

/// Tombstones of a slice that no snapshot needs.
fn droppable(view: &View<'_>, slice: &Slice) -> f64 {
    if slice.run.sequence_max > view.oldest_snapshot {
        return 0.0;
    }
    shown(slice, slice.run.deletes)
}

/// Bytes of a tombstone: an average entry of a run of tombstones; beside values, its key and
/// trailer, or less where the average is less.
fn tombstone_bytes(slice: &Slice) -> f64 {
    let run = &slice.run;
    let average = run.bytes as f64 / run.entries.max(1) as f64;
    match run.deletes == run.entries {
        true => average,
        false => average.min(run.range.start.len() as f64 + TRAILER_BYTES),
    }
}

/// The slices that a move takes.
fn taken<'a>(version: &'a Version, inputs: &'a [Input]) -> impl Iterator<Item = &'a Slice> {
    let nodes = inputs.iter().filter_map(|input| {
        let node = version.node(input.level, input.node)?;
        Some(input.taken(node))
    });
    nodes.flatten()
}

/// Of `count` entries of a slice's run, about how many the slice shows.
pub(super) fn shown(slice: &Slice, count: u64) -> f64 {
    count as f64 * slice.bytes as f64 / slice.run.bytes.max(1) as f64
}

impl Observed {
    /// A merge of `entries` entries dropped some, and kept `kept` tombstones. It counts if most of
    /// its tombstones ended there: others may still find what they hide further down.
    pub fn note_hidden(
        &mut self,
        version: &Version,
        inputs: &[Input],
        entries: u64,
        dropped: u64,
        kept: u64,
    ) {
        let deletes: f64 = taken(version, inputs).map(|s| shown(s, s.run.deletes)).sum();
        let ended = (deletes - kept as f64).min(dropped as f64);
        // Few tombstones among many entries: what was dropped was overwritten.
        if ended * 2.0 <= deletes || ended * Self::DELETES_SHARE < entries as f64 {
            return;
        }
        let share = ((dropped as f64 - ended) / ended).min(1.0);
        let before = self.hidden_share.unwrap_or(share);
        self.hidden_share = Some(before + (share - before) * Self::MERGE_WEIGHT);
    }
}
