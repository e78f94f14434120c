//! Expiry in the engine: the manifest allows it before the first expiring entry is written, and
//! compactions remove what has expired, also without new writes.
//!
//! A compaction of a run is due when about half of its entries have expired, or when its first
//! entry expired some time ago ([`base::ExpirySpan::due_ms`]). It rewrites the run's node in place.
//! A node with nothing but expired entries, and nothing older below, is dropped unread.

use crate::engine::Engine;
use crate::engine::trees::{Flushed, TreeState, Trees};
use crate::engine::{context::Context, requests};
use crate::keyspace::KeyspaceState;
use base::{KeyRange, KeyspaceId, Result};
use std::sync::Arc;
use table::batch::WriteBatch;
use tree::edit::{Change, DatabaseEdit, KeyspaceEdit};
use tree::{Input, Move, Node, Plan, Reason, Slice};

/// Minimum time between two looks for due runs in an idle database, in milliseconds.
const LOOK_MS_MIN: u64 = 1000;

impl Engine {
    /// Makes the manifest allow expiring entries in the keyspaces where `batch` writes the first
    /// ones, so that an older program refuses the database and does not misread them. For a batch
    /// with expiring entries. Out of line, so that a write without them does not pay for it.
    #[inline(never)]
    pub(crate) fn allow_expiry(self: &Arc<Self>, batch: &WriteBatch) -> Result<()> {
        // The commit refuses operations on a keyspace that does not exist.
        let allow =
            |id| self.find_keyspace(id).map_or(Ok(()), |found| self.allow_expiry_in(&found));
        if let Some(only) = batch.only_keyspace() {
            return allow(only);
        }
        let mut last: Option<KeyspaceId> = None;
        for operation in batch.iter().filter(|operation| operation.kind().is_expiring()) {
            let id = operation.keyspace();
            if last.replace(id) != Some(id) {
                allow(id)?;
            }
        }
        Ok(())
    }

    /// Makes the manifest allow expiring entries in `keyspace`, if it does not yet.
    pub(crate) fn allow_expiry_in(self: &Arc<Self>, keyspace: &KeyspaceState) -> Result<()> {
        if keyspace.may_expire() {
            return Ok(());
        }
        self.check_writable()?;
        let _inside = self.enter()?;
        let mut trees = self.versions.lock();
        // One that was dropped meanwhile has no tree.
        let Ok(tree) = trees.tree(keyspace.id) else { return Ok(()) };
        if !tree.version.may_expire {
            let changes = vec![Change::AllowExpiry];
            let keyspaces = vec![KeyspaceEdit { keyspace: keyspace.id, changes }];
            let edit = DatabaseEdit { keyspaces, ..DatabaseEdit::default() };
            self.versions.install(&mut trees, edit, &Flushed::new())?;
        }
        keyspace.set_may_expire();
        Ok(())
    }
}

/// Nanoseconds until a worker without work should look for due runs; `None`: nothing expires.
pub(crate) fn next_look_ns(context: &Context, trees: &Trees) -> Option<u64> {
    let first_ms = trees.keyspaces.values().filter_map(|tree| tree.expiry_due_ms).min()?;
    let wait_ms = first_ms.saturating_sub(context.read.clock.now_ms());
    Some(wait_ms.max(LOOK_MS_MIN).saturating_mul(1_000_000))
}

/// The plan for the run that is due longest, if any is due and free.
pub(crate) fn pick(context: &Context, trees: &Trees) -> Option<(KeyspaceId, Plan)> {
    let mut best: Option<(KeyspaceId, Plan)> = None;
    for (&id, tree) in &trees.keyspaces {
        let Some(first_ms) = tree.expiry_due_ms else { continue };
        let now_ms = context.read.clock.now_ms();
        if now_ms < first_ms {
            continue;
        }
        let Some(plan) = pick_in(tree, now_ms, context.settings.expiry_delay_ms) else { continue };
        if best.as_ref().is_none_or(|(_, other)| plan.score > other.score) {
            best = Some((id, plan));
        }
    }
    best
}

fn pick_in(tree: &TreeState, now_ms: u64, delay_ms: u64) -> Option<Plan> {
    let mut due: Vec<(u64, u8, &Arc<Node>)> = Vec::new();
    for (level, nodes) in (0u8..).zip(tree.version.levels.iter().map(|level| &level.nodes)) {
        for node in nodes.iter() {
            let due_ms =
                node.slices.iter().filter_map(|slice| slice.run.expiry_due_ms(delay_ms)).min();
            due.extend(due_ms.filter(|ms| *ms <= now_ms).map(|ms| (ms, level, node)));
        }
    }
    due.sort_by_key(|(due_ms, level, _)| (*due_ms, *level));
    due.into_iter().find_map(|(due_ms, level, node)| {
        let plan = plan(tree, level, node, now_ms);
        // The longer a run is due, the more urgent it is among the other moves.
        let late = (now_ms - due_ms) as f64 / delay_ms.max(1) as f64;
        let plan = Plan { reason: Reason::Expiry, score: 1.0 + late, ..plan };
        (!tree.busy.conflicts(&tree.version, &plan)).then_some(plan)
    })
}

fn plan(tree: &TreeState, level: u8, node: &Node, now_ms: u64) -> Plan {
    match droppable(tree, level, node, now_ms) {
        Some(input) => Plan::new(Move::Drop { inputs: vec![input] }, Reason::Expiry, 1.0, 0),
        None => {
            let bytes = node.bytes();
            let plan = requests::rewrite(Input::whole(level, node), &tree.keyspace);
            Plan { read_bytes: bytes, write_bytes: bytes, ..plan }
        }
    }
}

/// The slices of `node` that hold nothing but expired values, if nothing older is below them.
fn droppable(tree: &TreeState, level: u8, node: &Node, now_ms: u64) -> Option<Input> {
    // Rewrites count the garbage in segments; what is dropped unread would not be counted.
    if !tree.version.segments.is_empty() {
        return None;
    }
    let expired: Vec<&Slice> = node.slices.iter().filter(|s| has_expired(s, now_ms)).collect();
    let hull: KeyRange =
        expired.iter().map(|slice| slice.range.clone()).reduce(|a, b| a.union(&b))?;
    let input = Input::of(level, node.id, expired);
    let older = tree.keyspace.older_data(&tree.version, std::slice::from_ref(&input), level);
    (!older.may_hold_any(&hull)).then_some(input)
}

/// The slice is a whole run, and every entry of it has expired.
pub(crate) fn has_expired(slice: &Slice, now_ms: u64) -> bool {
    let run = &slice.run;
    slice.is_whole()
        && run.range_deletes == 0
        && run.expiry.is_some_and(|span| span.entries == run.entries && span.last.is_over(now_ms))
}
