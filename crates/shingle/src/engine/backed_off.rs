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
    pub(crate) fn back_off(
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
        self.backed_off.retain(|one| {
            let is_same =
                one.keyspace == keyspace && one.work.is_none() && !one.runs.is_disjoint(&runs);
            if is_same {
                failures = failures.max(one.failures.saturating_add(1));
            }
            !is_same
        });
        let pause_ns = (PAUSE_NS_MIN << (failures - 1).min(20)).min(PAUSE_NS_MAX);
        let retry_ns = now_ns.saturating_add(pause_ns);
        self.backed_off.push(BackedOff {
            keyspace,
            runs,
            work: Some(work),
            error,
            failures,
            retry_ns,
        });
    }

    /// Frees the moves whose pause is over.
    pub(crate) fn end_pauses(&mut self, now_ns: u64) {
        self.free(|one| one.retry_ns <= now_ns);
    }

    /// The inputs of these moves are busy no longer.
    fn free(&mut self, is_chosen: impl Fn(&BackedOff) -> bool) {
        for one in self.backed_off.iter_mut().filter(|one| is_chosen(one)) {
            if let Some(work) = one.work.take()
                && let Some(tree) = self.keyspaces.get_mut(&one.keyspace)
            {
                tree.busy.end(work);
            }
        }
    }

    /// A move that read `runs` succeeded, or its runs are gone: earlier failures with one of them
    /// no longer count.
    pub(crate) fn forgive(&mut self, keyspace: KeyspaceId, runs: &BTreeSet<RunId>) {
        self.backed_off.retain(|one| {
            one.work.is_some() || one.keyspace != keyspace || one.runs.is_disjoint(runs)
        });
    }

    /// Frees the moves that lacked a descriptor, and forgets these failures: the lack may be over.
    pub(crate) fn forgive_lacks(&mut self) {
        self.free(|one| one.error.lacks_descriptors());
        self.backed_off.retain(|one| !one.error.lacks_descriptors());
    }

    /// Forgets the backed-off moves of keyspaces that were dropped.
    pub(crate) fn forget_backed_off(&mut self) {
        let keyspaces = &self.keyspaces;
        self.backed_off.retain(|one| keyspaces.contains_key(&one.keyspace));
    }

    /// A move of `tree` waits for another try.
    pub(crate) fn has_backed_off(&self, tree: &TreeState) -> bool {
        self.backed_off.iter().any(|p| p.keyspace == tree.keyspace.id && p.work.is_some())
    }
}
