//! A user's compaction of a key range.
//!
//! The scheme brings all versions of a key together. It leaves data alone that is in one place
//! already, and moves tables without a rewrite. So where a filter decides, values have expired or
//! flushes keep hidden versions, the nodes that were not rewritten are rewritten in place.

use crate::engine::{Engine, requests};
use crate::keyspace::KeyspaceState;
use base::{KeyRange, KeyspaceId, Result, RunId, SequenceNumber};
use std::sync::Arc;
use tree::policy::Wanted;
use tree::{Input, Slice};

/// GC writes pointers anew while a compaction is in progress. Then there is another round for them,
/// up to this number: while writes go on, GC does too.
const ROUNDS_MAX: u32 = 3;

/// Compacts the keys of `range`, with everything that was written before the call.
pub(crate) fn compact_range(
    engine: &Arc<Engine>,
    keyspace: &Arc<KeyspaceState>,
    range: KeyRange,
) -> Result<()> {
    engine.check_writable()?;
    let _inside = engine.enter()?;
    engine.versions.lock().forgive_lacks();
    let (id, scheduler) = (keyspace.id, &engine.scheduler);
    let mut first = 0;
    for _ in 0..ROUNDS_MAX {
        let (was_collecting, begun) = (scheduler.is_collecting(id), scheduler.collections(id));
        let last = engine.snapshots.visible();
        compact_written(engine, keyspace, &range, (first, last))?;
        if !was_collecting && scheduler.collections(id) == begun {
            break;
        }
        // GC has written pointers anew, which a filter has not seen.
        let begun = scheduler.collections(id);
        engine.wait_for(|| !scheduler.is_collecting(id) || scheduler.collections(id) != begun)?;
        first = last + 1;
    }
    engine.versions.backed_off_error(Some(id)).map_or(Ok(()), Err)
}

/// Compacts the keys of `range` that were written from the sequence number `first` to `last`.
fn compact_written(
    engine: &Arc<Engine>,
    keyspace: &Arc<KeyspaceState>,
    range: &KeyRange,
    (first, last): (SequenceNumber, SequenceNumber),
) -> Result<()> {
    engine.flush_all()?;
    let first_run = RunId(engine.next_numbers().1);
    let id = keyspace.id;
    let wanted = Wanted { range: range.clone(), written_through: last };
    let requested = engine.scheduler.request_manual(id, wanted);
    engine.runtime.wake();
    engine.wait_for(|| requested.is_done())?;
    // Runs from this one on are the output of a compaction that began after the call.
    let is_left = |slice: &Slice| {
        let is_old = slice.run.id < first_run && slice.run.sequence_max >= first;
        is_old && slice.range.overlaps(range)
    };
    if keyspace.filter.is_some() || engine.settings.flush_keeps_hidden(keyspace) {
        rewrite(engine, keyspace, is_left)?;
    } else if keyspace.may_expire() {
        let now_ms = engine.read.clock.now_ms();
        let has_expired =
            |slice: &Slice| slice.run.expiry.is_some_and(|span| span.first.is_over(now_ms));
        rewrite(engine, keyspace, |slice| is_left(slice) && has_expired(slice))?;
    }
    Ok(())
}

/// Rewrites the nodes with a slice that is due, one after another. Other work may go on meanwhile.
fn rewrite(
    engine: &Arc<Engine>,
    keyspace: &KeyspaceState,
    is_due: impl Fn(&Slice) -> bool,
) -> Result<()> {
    let id = keyspace.id;
    let is_held =
        |input: &Input| engine.versions.lock().tree(id).is_ok_and(|tree| tree.busy.works_on(input));
    let mut goes_on = true;
    while goes_on {
        goes_on = false;
        for input in due(engine, id, &is_due)? {
            // Where it does not fit any more, another compaction has taken the node. That one may
            // have begun before the call, or fail: the node is looked at again.
            let plan = requests::rewrite(input.clone(), keyspace);
            goes_on |= requests::begin_plan(engine, id, plan)? || is_held(&input);
            engine.wait_for(|| !is_held(&input))?;
        }
    }
    Ok(())
}

fn due(engine: &Engine, id: KeyspaceId, is_due: &impl Fn(&Slice) -> bool) -> Result<Vec<Input>> {
    let version = engine.versions.lock().tree(id)?.version.clone();
    let levels = (0u8..).zip(version.levels.iter().map(|level| &level.nodes));
    let inputs = levels.flat_map(|(level, nodes)| {
        let due = nodes.iter().filter(|node| node.slices.iter().any(is_due));
        due.map(move |node| Input::whole(level, node)).collect::<Vec<_>>()
    });
    Ok(inputs.collect())
}
