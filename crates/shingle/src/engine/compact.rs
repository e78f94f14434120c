//! A user's compaction of a key range.
//!
//! The scheme brings all versions of a key together. It leaves data alone that is in one place
//! already, and moves tables without a rewrite. So where a filter decides, values have expired or
//! flushes keep hidden versions, the nodes that were not rewritten are rewritten in place.

use crate::engine::{Engine, requests, scheduler};
use crate::keyspace::KeyspaceState;
use base::{KeyRange, KeyspaceId, Result, RunId};
use std::sync::Arc;
use tree::{Input, Slice};

/// Compacts the keys of `range`, with everything that was written before the call.
pub(crate) fn compact_range(
    engine: &Arc<Engine>,
    keyspace: &Arc<KeyspaceState>,
    range: KeyRange,
) -> Result<()> {
    engine.check_writable()?;
    let _inside = engine.enter()?;
    engine.versions.lock().forgive_lacks();
    engine.flush_all()?;
    let first_run = RunId(engine.next_numbers().1);
    let id = keyspace.id;
    let requested = engine.scheduler.request_manual(id, range.clone());
    engine.runtime.wake();
    engine.wait_for(|| requested.is_done())?;
    // Runs from this one on are the output of a compaction that began after the call.
    let is_left = |slice: &Slice| slice.run.id < first_run && slice.range.overlaps(&range);
    if keyspace.filter.is_some() || engine.settings.flush_keeps_hidden(keyspace) {
        rewrite(engine, keyspace, is_left)?;
    } else if keyspace.may_expire() {
        let now_ms = engine.read.clock.now_ms();
        let has_expired =
            |slice: &Slice| slice.run.expiry.is_some_and(|span| span.first.is_over(now_ms));
        rewrite(engine, keyspace, |slice| is_left(slice) && has_expired(slice))?;
    }
    engine.versions.backed_off_error(Some(id)).map_or(Ok(()), Err)
}

/// Rewrites the nodes with a slice that is due, one after another.
fn rewrite(
    engine: &Arc<Engine>,
    keyspace: &KeyspaceState,
    is_due: impl Fn(&Slice) -> bool,
) -> Result<()> {
    for input in due(engine, keyspace.id, is_due)? {
        // Where it does not fit any more, another compaction has taken the node.
        requests::begin_plan(engine, keyspace.id, requests::rewrite(input, keyspace))?;
        engine.wait_for(|| scheduler::is_idle(engine))?;
    }
    Ok(())
}

fn due(engine: &Engine, id: KeyspaceId, is_due: impl Fn(&Slice) -> bool) -> Result<Vec<Input>> {
    let version = engine.versions.lock().tree(id)?.version.clone();
    let levels = (0u8..).zip(version.levels.iter().map(|level| &level.nodes));
    let inputs = levels.flat_map(|(level, nodes)| {
        let due = nodes.iter().filter(|node| node.slices.iter().any(&is_due));
        due.map(move |node| Input::whole(level, node)).collect::<Vec<_>>()
    });
    Ok(inputs.collect())
}
