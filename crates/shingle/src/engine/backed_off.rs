//! Backed-off moves: moves that failed and are tried again after growing pauses, while others go
//! on.
//!
//! A move can fail alone, for example because one of its blocks cannot be read or its output cannot
//! be written. It then stays marked as in progress, and its inputs stay busy. Policies choose
//! around it, and all work that does not need its inputs goes on. After a pause its inputs become
//! free. If the next plan that uses one of the same runs fails too, the pause is twice as long.
//!
//! A failure that concerns all work (a full medium, a failed flush) is not backed off here:
//! `scheduler` waits instead.

use crate::engine::trees::{TreeState, Trees};
use base::{Error, ErrorKind, KeyspaceId, RunId};
use std::collections::BTreeSet;
use tree::policy::WorkId;

/// The first pause, doubled with each failure in a row...
const PAUSE_NS_MIN: u64 = 100_000_000;
/// ... up to this.
const PAUSE_NS_MAX: u64 = 300_000_000_000;

/// A move that failed at least once since one of its runs last took part in a move that succeeded.
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

/// `error` concerns only the move that failed with it: the move is backed off.
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

    /// Frees the moves whose pause is over.
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

    /// A move that read `runs` succeeded, or its runs are gone: earlier failures with one of them
    /// no longer count.
    pub(crate) fn forgive(&mut self, keyspace: KeyspaceId, runs: &BTreeSet<RunId>) {
        self.parked.retain(|parked| {
            parked.work.is_some() || parked.keyspace != keyspace || parked.runs.is_disjoint(runs)
        });
    }

    /// Forgets the backed-off moves of keyspaces that were dropped.
    pub(crate) fn forget_backed_off(&mut self) {
        let keyspaces = &self.keyspaces;
        self.parked.retain(|parked| keyspaces.contains_key(&parked.keyspace));
    }

    /// A move of `tree` waits for another try.
    pub(crate) fn has_backed_off(&self, tree: &TreeState) -> bool {
        self.parked.iter().any(|p| p.keyspace == tree.keyspace.id && p.work.is_some())
    }
}
