//! Moves that failed: parked, so that others go on, and tried again after growing pauses.
//!
//! A move fails for a reason of its own when one of its blocks cannot be read, or its output not
//! written. It stays marked as under way, its inputs busy: policies choose around it, and whatever
//! it does not stand in the way of goes on. After a pause it is given free; whether the policy then
//! makes the same plan or another one with the same runs, a failure parks it for twice as long.
//!
//! What concerns all work (a full medium, a flush) is not parked: `scheduler` waits then.

use crate::engine::trees::{TreeState, Trees};
use base::{Error, ErrorKind, KeyspaceId, RunId};
use std::collections::BTreeSet;
use tree::policy::WorkId;

/// The first pause, doubled with each failure in a row...
const PAUSE_NS_MIN: u64 = 100_000_000;
/// ... up to this.
const PAUSE_NS_MAX: u64 = 300_000_000_000;

/// A move that failed at least once since its runs last took part in one that succeeded.
#[derive(Debug)]
pub(crate) struct BackedOff {
    pub keyspace: KeyspaceId,
    runs: BTreeSet<RunId>,
    /// `None` while it may be tried.
    pub work: Option<WorkId>,
    pub error: Error,
    pub failures: u32,
    pub retry_ns: u64,
}

/// Whether a move that failed with `error` is parked.
pub(crate) fn is_own_failure(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::NoSpace | ErrorKind::Cancelled | ErrorKind::Closed | ErrorKind::Poisoned
    )
}

impl Trees {
    /// The move `work` of `keyspace`, which reads `runs`, failed with `error`. Its inputs stay
    /// busy.
    pub(crate) fn park(
        &mut self,
        keyspace: KeyspaceId,
        work: WorkId,
        runs: BTreeSet<RunId>,
        error: Error,
        now_ns: u64,
    ) {
        let Some(tree) = self.keyspaces.get_mut(&keyspace) else { return };
        tree.busy.park(work);
        let mut failures = 1;
        self.parked.retain(|parked| {
            let is_same = parked.keyspace == keyspace
                && parked.work.is_none()
                && !parked.runs.is_disjoint(&runs);
            if is_same {
                failures = failures.max(parked.failures.saturating_add(1));
            }
            !is_same
        });
        let pause_ns = (PAUSE_NS_MIN << (failures - 1).min(20)).min(PAUSE_NS_MAX);
        let retry_ns = now_ns.saturating_add(pause_ns);
        self.parked.push(BackedOff { keyspace, runs, work: Some(work), error, failures, retry_ns });
    }

    /// Gives free what has waited long enough.
    pub(crate) fn unpark(&mut self, now_ns: u64) {
        for parked in &mut self.parked {
            if parked.retry_ns <= now_ns
                && let Some(work) = parked.work.take()
                && let Some(tree) = self.keyspaces.get_mut(&parked.keyspace)
            {
                tree.busy.end(work);
            }
        }
    }

    /// A move that read `runs` succeeded, or its runs are no more: what failed before with one of
    /// them begins anew.
    pub(crate) fn forgive(&mut self, keyspace: KeyspaceId, runs: &BTreeSet<RunId>) {
        self.parked.retain(|parked| {
            parked.work.is_some() || parked.keyspace != keyspace || parked.runs.is_disjoint(runs)
        });
    }

    /// Forgets the parked moves of keyspaces that were dropped.
    pub(crate) fn forget_backed_off(&mut self) {
        let keyspaces = &self.keyspaces;
        self.parked.retain(|parked| keyspaces.contains_key(&parked.keyspace));
    }

    /// A move of `tree` waits for another try.
    pub(crate) fn has_backed_off(&self, tree: &TreeState) -> bool {
        self.parked.iter().any(|p| p.keyspace == tree.keyspace.id && p.work.is_some())
    }
}
