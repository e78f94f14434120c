//! Fewer runs for readers: what level 0 does when writes have stopped, or when there are many
//! reads.
//!
//! Runs wait in level 0 because waiting makes going down cheap for writers; readers probe each of
//! them meanwhile. So they are merged before they are too many
//!
//! - when the database is *idle*: writers lose nothing by it, and
//! - when the reads since level 0 last changed *have paid for it*: probing one run more costs a
//!   read about as much as writing [`PROBE_BYTES`]. A policy that merges as soon as the reads have
//!   cost as much as the merge spends at most twice what the best choice in hindsight would have.
//!
//! Level 0 goes down where it has one of [`SHARE`] parts of the bytes there. Otherwise the newest
//! runs become one, as many as may without one of them having more than [`SPREAD`] times the bytes
//! of the others. After that no more is due until level 0 changes: a byte is written once more for
//! each idle period at most, where level 0 stays, and each byte of the base once, where it goes
//! down.

use super::modern::{Targets, level0_down, merge_level0};
use crate::plan::{Plan, Reason};
use crate::policy::View;
use crate::policy::why::Why;
use crate::version::Slice;

/// Level 0 goes down in an idle database when it has one of this many parts of the bytes there.
const SHARE: u64 = 6;

/// Runs become one when the largest has at most this many times the bytes of the others together.
const SPREAD: u64 = 3;

/// Probing one run more costs a read as much as writing this many bytes: a probe of a filter that
/// is in memory takes about 0.2 µs, and moves write some 150 MB/s.
const PROBE_BYTES: u64 = 32;

/// The move that readers are worth, where no other is due.
pub(super) fn pick(view: &View<'_>, targets: &Targets) -> Option<Plan> {
    let stack: Vec<&Slice> = view.version.level0().iter().collect();
    let bytes: u64 = stack.iter().map(|slice| slice.bytes).sum();
    let others = stack.len().checked_sub(1).filter(|&others| others > 0)? as u64;
    let paid_bytes = view.observed.reads.saturating_mul(others * PROBE_BYTES);
    let is_at_rest = view.observed.is_idle && view.busy.is_empty();
    if !is_at_rest && paid_bytes < bytes {
        return None;
    }
    let why = Why { reason: Reason::Reads, score: 0.5 };
    let is_free = !stack.iter().any(|slice| view.busy.level0_run(slice.run.id));
    if is_free && bytes.saturating_mul(SHARE) >= view.version.level(targets.base).bytes() {
        let down = level0_down(view, targets, &stack, why);
        return Some(down).filter(|plan| view.allows(plan));
    }
    newest_even(view, why)
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
