//! Fewer runs for readers: what level 0 does when nothing is urgent.
//!
//! Runs wait in level 0 because waiting makes going down cheap for writers; readers probe each of
//! them meanwhile. Idle time is free, but the bytes that a merge writes are not: they wear the
//! medium, and most of them are written again by the merge that is due later. So level 0 changes
//! only
//!
//! - when reads *have paid for it*: a seek in one run more costs a read about as much as writing
//!   [`seek_bytes`](crate::policy::Limits::seek_bytes). A policy that merges as soon as the reads
//!   have cost as much as the merge spends at most twice what the best choice in hindsight would
//!   have. Reads pay for the newest runs first, as many as become one without one of them having
//!   more than [`SPREAD`] times the bytes of the others, and then for all of level 0 going down;
//! - when the database is *idle and owes space*: level 0 has superseded more than one of
//!   [`GARBAGE_PARTS`] parts of the bytes below, by what merges have found. Then it goes down.

use super::modern::{Targets, level0_down, merge_level0};
use crate::plan::{Plan, Reason};
use crate::policy::View;
use crate::policy::why::Why;
use crate::version::{LEVEL0_NODE, Slice};

/// An idle database keeps up to one of this many parts of its data as garbage.
const GARBAGE_PARTS: f64 = 5.0;

/// Runs become one when the largest has at most this many times the bytes of the others together.
const SPREAD: u64 = 3;

/// Not urgent.
const SCORE: f64 = 0.5;

/// The move that readers are worth, where no other is due.
pub(super) fn pick(view: &View<'_>, targets: &Targets) -> Option<Plan> {
    let stack: Vec<&Slice> = view.version.level0().iter().collect();
    let bytes: u64 = stack.iter().map(|slice| slice.bytes).sum();
    if stack.is_empty() {
        return None;
    }
    let below = view.version.level(targets.base).bytes();
    let paid = view.paid_bytes(0, LEVEL0_NODE);
    let reason = if paid >= bytes + below {
        Reason::Reads
    } else if owes_space(view, bytes, below) {
        Reason::Idle
    } else {
        let even = newest_even(view, Why { reason: Reason::Reads, score: SCORE });
        return even.filter(|plan| paid >= plan.write_bytes);
    };
    if stack.iter().any(|slice| view.busy.level0_run(slice.run.id)) {
        return None;
    }
    let down = level0_down(view, targets, &stack, Why { reason, score: SCORE });
    down.filter(|plan| view.allows(plan))
}

/// The database is idle, and level 0 has superseded more of the bytes below than it may keep.
fn owes_space(view: &View<'_>, bytes: u64, below: u64) -> bool {
    let is_idle = view.observed.is_idle && view.busy.is_empty();
    let superseded = bytes as f64 * view.observed.superseded_share.unwrap_or(0.0);
    is_idle && superseded * GARBAGE_PARTS > below as f64
}

/// The newest runs of level 0 become one, as many as may without one of them having much more than
/// the others together, unless that conflicts with a move in progress.
pub(in crate::policy) fn newest_even(view: &View<'_>, why: Why) -> Option<Plan> {
    let stack: Vec<&Slice> = view.version.level0().iter().collect();
    let free = stack.iter().take_while(|slice| !view.busy.level0_run(slice.run.id)).count();
    let count = (2..=free).rev().find(|&count| is_even(&stack[..count]))?;
    let merge = merge_level0(&stack[..count], why);
    Some(merge).filter(|plan| view.allows(plan))
}

/// None of the runs is much larger than the others together.
fn is_even(runs: &[&Slice]) -> bool {
    let bytes: u64 = runs.iter().map(|slice| slice.bytes).sum();
    let largest = runs.iter().map(|slice| slice.bytes).max().unwrap_or(0);
    largest <= (bytes - largest).saturating_mul(SPREAD)
}
