//! Backed-off moves: moves that failed and are tried again after growing pauses, while others go
//! on.
//!
//! A move can fail alone, for example because one of its blocks cannot be read or its output cannot
//! be written. It then stays marked as in progress, and its inputs stay busy. Policies choose
//! around it, and all work that does not need its inputs goes on. After a pause its inputs become
//! free. If the next plan that uses one of the same runs fails too, the pause is twice as long. The
//! same holds for garbage collection of values (GC) and its segments.
//!
//! GC that lacks space is backed off too: other segments may need less. Its pause ends early when
//! the medium has more space than GC found, or segments of its keyspace were removed.
//!
//! Other failures that concern all work (a full medium, a failed flush) are not backed off here:
//! `scheduler` waits instead.

use crate::engine::context::Context;
use crate::engine::trees::{TreeState, Trees};
use base::{Error, ErrorKind, FileId, KeyspaceId, RunId};
use std::collections::{BTreeMap, BTreeSet};
use tree::policy::WorkId;

/// The first pause, doubled with each failure in a row...
const PAUSE_NS_MIN: u64 = 100_000_000;
/// ... up to this.
const PAUSE_NS_MAX: u64 = 300_000_000_000;

/// What a job reads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Inputs {
    /// Of a move.
    Runs(BTreeSet<RunId>),
    /// Of GC.
    Segments(Vec<FileId>),
}

impl Inputs {
    fn shares(&self, other: &Inputs) -> bool {
        match (self, other) {
            (Inputs::Runs(these), Inputs::Runs(those)) => !these.is_disjoint(those),
            (Inputs::Segments(these), Inputs::Segments(those)) => {
                these.iter().any(|file| those.contains(file))
            }
            _ => false,
        }
    }
}

/// The space that GC lacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// On the medium, which had this many bytes free, where that is known.
    Medium(Option<u64>),
    /// Within the capacity of its keyspace.
    Capacity,
}

/// What keeps the inputs of a job busy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hold {
    Move(WorkId),
    /// The claim of GC.
    Claim,
}

/// A job that failed at least once since one of its inputs last took part in one that succeeded.
#[derive(Debug)]
pub(crate) struct BackedOff {
    pub keyspace: KeyspaceId,
    inputs: Inputs,
    /// `None` while it may be tried.
    pub hold: Option<Hold>,
    pub error: Error,
    pub failures: u32,
    pub retry_ns: u64,
    lack: Option<Lack>,
}

impl BackedOff {
    /// It waits for its next try, or that is due. What GC reads need not be due again. That a full
    /// keyspace has no space for a GC is no failure.
    pub(crate) fn is_failing(&self) -> bool {
        let is_due = self.hold.is_some() || matches!(self.inputs, Inputs::Runs(_));
        is_due && self.lack != Some(Lack::Capacity)
    }

    fn has_inputs(&self, keyspaces: &BTreeMap<KeyspaceId, TreeState>) -> bool {
        let Inputs::Segments(files) = &self.inputs else { return true };
        let tree = keyspaces.get(&self.keyspace);
        let mut segments = tree.into_iter().map(|tree| &tree.version.segments);
        segments.any(|segments| files.iter().any(|&file| segments.get(file).is_some()))
    }
}

/// `error` concerns only the job that failed with it: the job is backed off.
pub(crate) fn is_own_failure(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::NoSpace | ErrorKind::Cancelled | ErrorKind::Closed | ErrorKind::Poisoned
    )
}

impl Trees {
    /// The move `work` of `keyspace`, which reads `runs`, failed with `error`. Its inputs are free,
    /// or backed off where the failure concerns the move alone.
    pub(crate) fn end_failed(
        &mut self,
        context: &Context,
        keyspace: KeyspaceId,
        work: WorkId,
        runs: BTreeSet<RunId>,
        error: &Error,
    ) {
        if is_own_failure(error) && context.poisoned_by().is_none() {
            let held = (Hold::Move(work), Inputs::Runs(runs));
            self.back_off(keyspace, held, error.clone(), context.runtime.now_ns(), None);
        } else if let Ok(tree) = self.tree(keyspace) {
            tree.busy.end(work);
        }
    }

    /// A job failed with `error`. Its inputs stay busy.
    pub(crate) fn back_off(
        &mut self,
        keyspace: KeyspaceId,
        (hold, inputs): (Hold, Inputs),
        error: Error,
        now_ns: u64,
        lack: Option<Lack>,
    ) {
        let Some(tree) = self.keyspaces.get_mut(&keyspace) else { return };
        if let Hold::Move(work) = hold {
            tree.busy.park(work);
        }
        let mut failures = 1;
        self.backed_off.retain(|one| {
            let is_same =
                one.keyspace == keyspace && one.hold.is_none() && one.inputs.shares(&inputs);
            if is_same {
                failures = failures.max(one.failures.saturating_add(1));
            }
            !is_same
        });
        let pause_ns = (PAUSE_NS_MIN << (failures - 1).min(20)).min(PAUSE_NS_MAX);
        let retry_ns = now_ns.saturating_add(pause_ns);
        self.backed_off.push(BackedOff {
            keyspace,
            inputs,
            hold: Some(hold),
            error,
            failures,
            retry_ns,
            lack,
        });
    }

    /// Frees the jobs whose pause is over.
    pub(crate) fn end_pauses(&mut self, now_ns: u64) {
        self.free(|one| one.retry_ns <= now_ns);
        let keyspaces = &self.keyspaces;
        self.backed_off.retain(|one| one.hold.is_some() || one.has_inputs(keyspaces));
    }

    /// The inputs of these jobs are busy no longer.
    fn free(&mut self, is_chosen: impl Fn(&BackedOff) -> bool) {
        for one in self.backed_off.iter_mut().filter(|one| is_chosen(one)) {
            let Some(tree) = self.keyspaces.get_mut(&one.keyspace) else { continue };
            match (one.hold.take(), &one.inputs) {
                (Some(Hold::Move(work)), _) => tree.busy.end(work),
                (Some(Hold::Claim), Inputs::Segments(files)) => tree.keyspace.values.release(files),
                _ => {}
            }
        }
    }

    /// A job that read `inputs` succeeded, or its inputs are gone: earlier failures with one of
    /// them no longer count.
    pub(crate) fn forgive(&mut self, keyspace: KeyspaceId, inputs: &Inputs) {
        self.backed_off.retain(|one| {
            one.hold.is_some() || one.keyspace != keyspace || !one.inputs.shares(inputs)
        });
    }

    /// A job that is backed off lacked space on a medium that tells how much it has.
    pub(crate) fn has_lacks_of_space(&self) -> bool {
        let is_such = |one: &BackedOff| matches!(one.lack, Some(Lack::Medium(Some(_))));
        self.backed_off.iter().any(|one| one.hold.is_some() && is_such(one))
    }

    /// The medium has `free_bytes`. Frees the jobs that lacked space when it had less.
    pub(crate) fn end_lacks_of_space(&mut self, free_bytes: u64) {
        self.free(|one| match one.lack {
            Some(Lack::Medium(Some(before))) => free_bytes > before,
            _ => false,
        });
    }

    /// Segments of `keyspace` were removed. Frees the jobs that lacked space within its capacity.
    pub(crate) fn end_lacks_of_capacity(&mut self, keyspace: KeyspaceId) {
        self.free(|one| one.keyspace == keyspace && one.lack == Some(Lack::Capacity));
    }

    /// Frees the jobs that lacked a descriptor or space on the medium, since the lack may be over.
    /// Forgets that descriptors were lacking.
    pub(crate) fn forgive_lacks(&mut self) {
        let lacked_space = |one: &BackedOff| matches!(one.lack, Some(Lack::Medium(_)));
        self.free(|one| one.error.lacks_descriptors() || lacked_space(one));
        self.backed_off.retain(|one| !one.error.lacks_descriptors());
    }

    /// Forgets the backed-off moves of keyspaces that were dropped.
    pub(crate) fn forget_backed_off(&mut self) {
        let keyspaces = &self.keyspaces;
        self.backed_off.retain(|one| keyspaces.contains_key(&one.keyspace));
    }

    /// The error of a move of `keyspace` that waits for another try.
    pub(crate) fn error_of_move(&self, keyspace: KeyspaceId) -> Option<Error> {
        let is_move =
            |one: &&BackedOff| one.keyspace == keyspace && matches!(one.hold, Some(Hold::Move(_)));
        self.backed_off.iter().find(is_move).map(|one| one.error.clone())
    }

    /// A move of `tree` waits for another try.
    pub(crate) fn has_backed_off(&self, tree: &TreeState) -> bool {
        self.backed_off.iter().any(|p| p.keyspace == tree.keyspace.id && p.hold.is_some())
    }
}
