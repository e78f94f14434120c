//! Compactions that no policy picked, requested by a user, or for lack of space in the segments or
//! on the medium.

use crate::engine::Engine;
use crate::engine::compaction;
use crate::engine::queue::Job;
use crate::keyspace::KeyspaceState;
use base::{ErrorKind, KeyspaceId, Result};
use std::sync::Arc;
use tree::{Cut, Input, Move, Plan, Reason};

/// Begins `plan` as if a policy had picked it. `false`: it does not fit the current tree.
pub(crate) fn begin_plan(engine: &Arc<Engine>, id: KeyspaceId, plan: Plan) -> Result<bool> {
    engine.check_writable()?;
    let _inside = engine.enter()?;
    let mut trees = engine.versions.lock();
    let tree = trees.tree(id)?;
    let (inputs, to_level) = (plan.action.inputs(), plan.action.to_level());
    let is_balance = matches!(plan.action, Move::Balance { .. });
    let fits = is_balance || tree::moves::check_inputs(&tree.version, &inputs, to_level).is_ok();
    if !fits || tree.busy.conflicts(&tree.version, &plan) {
        return Ok(false);
    }
    let parts = match compaction::begin(engine, &mut trees, id, plan) {
        Err(error) if error.kind() == ErrorKind::InvalidArgument => return Ok(false),
        begun => begun?,
    };
    let jobs = parts.into_iter().map(|part| Job::Part(Box::new(part)));
    engine.scheduler.put(jobs, engine.runtime.now_ns());
    drop(trees);
    engine.runtime.wake();
    Ok(true)
}

/// A plan that merges a node with itself.
pub(crate) fn rewrite(input: Input, keyspace: &KeyspaceState) -> Plan {
    let table_bytes_max = keyspace.limits.table_bytes_max;
    let cut = Cut { table_bytes_max, overlap_bytes_max: None };
    let (to_level, one_file, parallel_max) = (input.level, false, 1);
    Plan {
        action: Move::Merge { inputs: vec![input], to_level, cut, one_file, parallel_max },
        reason: Reason::Garbage,
        score: 1.0,
        read_bytes: 0,
        write_bytes: 0,
        cursors: Vec::new(),
    }
}
