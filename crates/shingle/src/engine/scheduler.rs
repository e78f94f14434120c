//! The scheduler: decides which background step is next.
//!
//! Flushes come before moves, and moves of the most urgent keyspace come first. Each step removes
//! at most one obsolete file. The number of moves that run at a time is at most the number of
//! workers.
//!
//! A failure that changed nothing is tried again. A move or a GC that fails for a reason of its own
//! is backed off (`backed_off`), and so is a GC that lacks space. Otherwise a full medium or a
//! failed flush makes all work wait. Other failures poison the database.
//!
//! A keyspace whose writers wait for space comes first, with its moves and its GC.

use super::compaction::CompactionPart;
use super::expiry;
use super::queue::{Failure, Job, Manual, Try, Waiting};
use super::reserve::REFILL_NS;
use super::rewrite::Progress;
use super::values::gc;
use super::{backed_off, clean, compaction, flush};
use crate::engine::Engine;
use crate::engine::trees::{TreeState, Trees};
use crate::event::Event;
use base::env::Worker;
use base::{Error, ErrorKind, KeyspaceId, Result, SequenceNumber};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use tree::Plan;
use tree::policy::{Busy, View, Wanted};

/// After a failure, background work waits this long, doubled each time in a row...
const RETRY_NS_MIN: u64 = 10_000_000;
/// ... up to this.
const RETRY_NS_MAX: u64 = 2_000_000_000;

/// Maximum bytes that a move may read while the database is being closed. It costs hardly more than
/// the flush that a close does anyway.
const CLOSING_MOVE_BYTES_MAX: u64 = 1 << 20;
/// A close makes such moves where a get may have to ask this many runs.
const CLOSING_RUNS_MIN: usize = 16;
/// Maximum number of such moves in one close.
const CLOSING_MOVES_MAX: usize = 8;

/// What workers of a database share.
pub(crate) struct EngineWorker(pub Weak<Engine>);

impl Worker for EngineWorker {
    fn next_ns(&self) -> Option<u64> {
        let engine = self.0.upgrade()?;
        if engine.poisoned_by().is_some() || engine.read_only {
            // No step does anything, whatever is due.
            return None;
        }
        let now_ns = engine.runtime.now_ns();
        if let Some(pause_ns) = engine.scheduler.pause_ns(now_ns) {
            return Some(pause_ns);
        }
        let changes_ns =
            engine.changes.as_ref().and_then(|c| c.expires_in_ns(engine.runtime.wall_micros()));
        let refill_ns = engine.reserve.is_out().then_some(REFILL_NS);
        let retry_ns = engine.versions.next_retry_ns().map(|at_ns| at_ns.saturating_sub(now_ns));
        // Where a step does not wait for the next job itself.
        let is_at_work = !engine.runtime.waits_in_steps();
        let job_ns = is_at_work.then(|| engine.scheduler.next_ns(now_ns)).flatten();
        let job_ns = job_ns.map(|(at_ns, _)| at_ns.saturating_sub(now_ns));
        let idle_ns = idle_begins_ns(&engine);
        let waits = [retry_ns, refill_ns, changes_ns, idle_ns, expiry_ns(&engine), job_ns];
        // Compared without what is behind a `None`: the compiler may compare that before it asks
        // whether there is anything, and valgrind reports it as uninitialised memory.
        let first_ns =
            waits.into_iter().fold(u64::MAX, |first, ns| first.min(ns.unwrap_or(u64::MAX)));
        (first_ns != u64::MAX).then_some(first_ns)
    }

    fn step(&self) -> bool {
        let Some(engine) = self.0.upgrade() else { return false };
        let Ok(_inside) = engine.enter() else { return false };
        match catch_unwind(AssertUnwindSafe(|| step_and_tell(&engine))) {
            Ok(did) => did,
            Err(panic) => {
                let text = panic
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| panic.downcast_ref::<&str>().copied())
                    .unwrap_or("no message");
                let message = format!("background work panicked: {text}; please report this");
                engine.poison(Error::new(ErrorKind::Io, message));
                false
            }
        }
    }
}

/// How long to wait until the database is idle, after a step that found nothing to do.
fn idle_begins_ns(engine: &Engine) -> Option<u64> {
    // A worker that is busy wakes the others when it is done.
    if engine.is_closing() || !engine.scheduler.is_idle() {
        return None;
    }
    engine.scheduler.idle.begins_in_ns(engine)
}

/// How long to wait until a look for expired values, after a step that found nothing to do.
fn expiry_ns(engine: &Engine) -> Option<u64> {
    // A worker that is busy wakes the others when it is done.
    if !engine.scheduler.is_idle() {
        return None;
    }
    expiry::next_look_ns(engine, &engine.versions.lock())
}

/// Makes one step of background work, and tells the listener what happened. `false`: there is
/// nothing to do.
pub(crate) fn step_and_tell(engine: &Arc<Engine>) -> bool {
    let did = step(engine);
    engine.events.deliver();
    did
}

fn step(engine: &Arc<Engine>) -> bool {
    if engine.poisoned_by().is_some() || engine.read_only {
        return false;
    }
    engine.runtime.interleave("worker: before it looks for work");
    if engine.scheduler.pause_ns(engine.runtime.now_ns()).is_some() {
        return false;
    }
    let begun = engine.scheduler.begin_try();
    // At most one removal in a step: obsolete files do not pile up, and no burst delays other work.
    let cleaned = clean::step(engine);
    let is_idle = engine.scheduler.idle.begin_look(engine);
    engine.refill_reserve();
    engine.grow_reserve();
    let sealed = engine.sealed.count();
    if is_idle && !engine.is_closing() && engine.live.idle_compaction() {
        flush::seal_deletions(engine).unwrap_or_else(|error| failed(engine, begun, error));
    }
    if engine.memory.share().is_some_and(|share| share.take_flush()) && !engine.is_closing() {
        engine.commits.seal_all().map_or_else(|error| failed(engine, begun, error), drop);
    }
    // A new flush before an old move: user writes may wait for it.
    plan_flush(engine, is_idle);
    // Short, and commits write values twice until it is done.
    if engine.begin_requested_segment() {
        return true;
    }
    if let Some(job) = engine.scheduler.take(engine.runtime.now_ns()) {
        run(engine, begun, job);
        return true;
    }
    if begin_work(engine, begun, is_idle) || cleaned {
        return true;
    }
    let seen = engine.scheduler.retry.count();
    if let Some((from_ns, is_throttled)) = engine.scheduler.next_ns(engine.runtime.now_ns()) {
        if !engine.runtime.waits_in_steps() {
            return false;
        }
        match is_throttled {
            // A flush that is due ends the wait, and so does a new limit.
            true => engine.runtime.wait(&engine.sealed, sealed, Some(from_ns)),
            false => engine.runtime.wait(&engine.scheduler.retry, seen, Some(from_ns)),
        }
        return true;
    }
    engine.progress.signal();
    false
}

/// Begins a GC or a move. After a GC a move has the first turn: GC flushes its pointers to level 0,
/// and a single worker would collect again and again while nothing takes them from there.
fn begin_work(engine: &Arc<Engine>, begun: Try, is_idle: bool) -> bool {
    let moves_first = engine.scheduler.take_turn_of_moves();
    moves_first && begin_move(engine, begun, is_idle)
        || retire_and_collect(engine).unwrap_or_else(|error| {
            failed(engine, begun, error);
            false
        })
        || !moves_first && begin_move(engine, begun, is_idle)
}

fn begin_move(engine: &Arc<Engine>, begun: Try, is_idle: bool) -> bool {
    match plan_move(engine, is_idle) {
        Ok(is_begun) => is_begun,
        Err(error) if backed_off::is_own_failure(&error) => {
            told_backed_off(engine, error);
            // Another one may be due.
            true
        }
        Err(error) => {
            failed(engine, begun, error);
            false
        }
    }
}

/// Makes one step of a flush, and of nothing else. `false`: none is due.
pub(crate) fn step_flush(engine: &Arc<Engine>) -> Result<bool> {
    plan_flush(engine, false);
    let mut queue = engine.scheduler.lock();
    let Some(index) = queue.jobs.iter().position(|w| matches!(w.job, Job::Flush(_))) else {
        return Ok(false);
    };
    let mut job = queue.jobs.remove(index).job;
    drop(queue);
    let Job::Flush(flush) = &mut job else { return Ok(false) };
    match flush.step(engine) {
        Ok(Progress::More) => engine.scheduler.put([job], engine.runtime.now_ns()),
        Ok(Progress::Done) => {}
        Err(error) => {
            if let Job::Flush(flush) = job {
                flush.abandon(engine);
            }
            return Err(error);
        }
    }
    Ok(true)
}

/// Gives up every move in progress. No other thread runs steps any more.
pub(crate) fn abandon_moves(engine: &Arc<Engine>) {
    let jobs = std::mem::take(&mut engine.scheduler.lock().jobs);
    for Waiting { job, from_ns } in jobs {
        match job {
            Job::Part(part) => {
                let error = Error::new(ErrorKind::Cancelled, "the database is being closed");
                part.abandon(engine, &error);
            }
            Job::Collect(collect) => collect.abandon(engine, None),
            Job::Flush(_) => engine.scheduler.put([job], from_ns),
        }
    }
}

/// Forgets every job, because the database is closed or the state on the medium is unknown. Jobs
/// hold the engine and with it the store, which another opener may want.
pub(crate) fn abandon_all(engine: &Arc<Engine>) {
    abandon_moves(engine);
    let flushes = std::mem::take(&mut engine.scheduler.lock().jobs);
    for waiting in flushes {
        if let Job::Flush(flush) = waiting.job {
            flush.abandon(engine);
        }
    }
}

/// Makes the small moves that are due where runs have piled up. Each session that is too short for
/// a merge, which its close gives up, leaves a run, and each get would probe all of these runs.
pub(crate) fn finish_small_moves(engine: &Arc<Engine>) -> Result<()> {
    for _ in 0..CLOSING_MOVES_MAX {
        let mut trees = engine.versions.lock();
        let mut versions = trees.keyspaces.values().map(|tree| &tree.version);
        if versions.all(|version| version.runs_of_key_max() < CLOSING_RUNS_MIN) {
            break;
        }
        let Some((id, plan)) = pick(engine, &mut trees, false, None) else { break };
        if compaction::input_bytes(&trees.tree(id)?.version, &plan) > CLOSING_MOVE_BYTES_MAX {
            break;
        }
        let parts = compaction::begin(engine, &mut trees, id, plan)?;
        drop(trees);
        run_parts(engine, parts)?;
    }
    Ok(())
}

/// Makes a move at once. If a part fails, the parts after it are given up too.
fn run_parts(engine: &Arc<Engine>, parts: Vec<CompactionPart>) -> Result<()> {
    let mut result = Ok(());
    for mut part in parts {
        result = result.and_then(|()| part.run(engine));
        if let Err(error) = &result {
            part.abandon(engine, error);
        }
    }
    result
}

/// Nothing is in progress, and nothing is due but what an idle database would allow.
pub(crate) fn is_idle(engine: &Arc<Engine>) -> bool {
    if !engine.scheduler.is_idle() {
        return false;
    }
    let mut trees = engine.versions.lock();
    trees.end_pauses(engine.runtime.now_ns());
    // Removal of the files that the last version released is work that is due as well.
    engine.versions.collect_dead_files(&mut trees);
    !is_move_due(engine, &mut trees, None)
        && !flush::is_due(engine)
        && !gc::is_due(engine, &trees)
        && !trees.keyspaces.values().any(|tree| engine.has_free_retired(tree))
        && !engine.commits.lock().awaits_segment()
        && engine.scheduler.is_idle()
        && trees.dead_files.is_empty()
        && trees.removals == 0
}

/// Nothing that could free space among the values of `keyspace` is in progress or due. Other
/// keyspaces may have work.
pub(crate) fn is_settled(engine: &Arc<Engine>, keyspace: KeyspaceId) -> bool {
    let scheduler = &engine.scheduler;
    let mut trees = engine.versions.lock();
    // While this thread has the trees, no GC begins.
    if scheduler.has_manual_of(keyspace) || scheduler.is_collecting(keyspace) {
        return false;
    }
    trees.end_pauses(engine.runtime.now_ns());
    if flush::is_due_for(engine, keyspace) || is_move_due(engine, &mut trees, Some(keyspace)) {
        return false;
    }
    let Some(tree) = trees.keyspaces.get(&keyspace) else { return true };
    tree.busy.is_empty() && gc::pick(engine, tree).is_none() && !engine.has_free_retired(tree)
}

/// A worker would begin a move, of any keyspace or of `only`, and not because the database is idle.
/// What only writes make due is not due in an idle database, where no worker would begin it.
fn is_move_due(engine: &Engine, trees: &mut Trees, only: Option<KeyspaceId>) -> bool {
    pick(engine, trees, false, only).is_some()
        && (!engine.scheduler.idle.is_now(engine) || pick(engine, trees, true, only).is_some())
}

/// The error for writers that are stopped by level 0: what a compaction of a keyspace failed with
/// whose level 0 is full, and gets no smaller before that compaction is tried again.
pub(crate) fn error_of_full_level0(engine: &Engine) -> Option<Error> {
    let mut trees = engine.versions.lock();
    trees.end_pauses(engine.runtime.now_ns());
    let is_full = |tree: &&TreeState| {
        let view = tree.picker_view(&tree.keyspace.limits, SequenceNumber::MAX);
        let runs = tree.keyspace.policy.debt(&view).level0_runs;
        runs >= engine.settings.admission.level0_runs_hard && tree.busy.is_empty()
    };
    let full = trees.keyspaces.values().filter(is_full).map(|tree| tree.keyspace.id);
    let full: Vec<KeyspaceId> = full.collect();
    let stuck = full.into_iter().filter(|&id| !is_move_due(engine, &mut trees, Some(id)));
    let stuck: Vec<KeyspaceId> = stuck.collect();
    stuck.into_iter().find_map(|id| trees.error_of_move(id))
}

/// A compaction is backed off with `error`. Writers that wait for it learn that.
fn told_backed_off(engine: &Engine, error: Error) {
    engine.events.add(Event::CompactionBackedOff { error });
    engine.admission.release();
}

/// A job is done. It may have been the last one that stopped writers could wait for.
fn release_for_errors(engine: &Engine) {
    if engine.versions.backed_off_error(None).is_some() {
        engine.admission.release();
    }
}

fn plan_flush(engine: &Arc<Engine>, is_idle: bool) {
    let trees = engine.versions.lock();
    let Some(job) = flush::begin(engine, &trees, is_idle) else { return };
    engine.scheduler.put([Job::Flush(job)], engine.runtime.now_ns());
    drop(trees);
    // Another worker may take the next job.
    engine.runtime.wake();
}

/// Removes retired segments, or begins GC; one at a time. `false`: neither is due.
fn retire_and_collect(engine: &Arc<Engine>) -> Result<bool> {
    if engine.is_closing() {
        return Ok(false);
    }
    let mut trees = engine.versions.lock();
    trees.end_pauses(engine.runtime.now_ns());
    if engine.remove_retired(&mut trees)? {
        return Ok(true);
    }
    if !engine.scheduler.may_collect() {
        return Ok(false);
    }
    let Some(job) = gc::begin(engine, &trees) else { return Ok(false) };
    engine.scheduler.begin_collecting(job.keyspace());
    engine.scheduler.give_turn_to_moves();
    engine.scheduler.put([Job::Collect(job)], engine.runtime.now_ns());
    Ok(true)
}

/// Begins the most urgent move. `false`: none is due.
fn plan_move(engine: &Arc<Engine>, is_idle: bool) -> Result<bool> {
    if engine.is_closing() || !engine.scheduler.has_free_slot() {
        return Ok(false);
    }
    let mut trees = engine.versions.lock();
    trees.end_pauses(engine.runtime.now_ns());
    let Some((id, plan)) = pick(engine, &mut trees, is_idle, None) else {
        drop(trees);
        if is_idle && engine.scheduler.is_idle() {
            let no_commits = engine.commits.lock();
            engine.scheduler.idle.done(engine);
            drop(no_commits);
            engine.memory.chunks().clear();
        }
        return Ok(false);
    };
    let parts = compaction::begin(engine, &mut trees, id, plan)?;
    let count = parts.len();
    let jobs = parts.into_iter().map(|part| Job::Part(Box::new(part)));
    // Before another thread takes the lock and asks whether all work is done.
    engine.scheduler.put(jobs, engine.runtime.now_ns());
    drop(trees);
    if count != 1 {
        engine.runtime.wake();
    }
    Ok(true)
}

/// The move that is next, of all keyspaces or of `only`.
fn pick(
    engine: &Engine,
    trees: &mut Trees,
    is_idle: bool,
    only: Option<KeyspaceId>,
) -> Option<(KeyspaceId, Plan)> {
    let oldest = engine.snapshots.horizon();
    let is_chosen = |id: KeyspaceId| only.is_none_or(|only| only == id);
    if let Some(found) = pick_manual(engine, trees, oldest).filter(|(id, _)| is_chosen(*id)) {
        return Some(found);
    }
    let mut best = expiry::pick(engine, trees).filter(|(id, _)| is_chosen(*id));
    for tree in trees.keyspaces.values_mut() {
        let may_free = is_idle && engine.live.idle_compaction();
        tree.observe(engine.snapshots.visible(), may_free);
    }
    let urgency = |id: KeyspaceId, plan: &Plan| {
        let is_awaited = |tree: &TreeState| tree.keyspace.values.is_awaited();
        (trees.keyspaces.get(&id).is_some_and(is_awaited), plan.score)
    };
    for (&id, tree) in trees.keyspaces.iter().filter(|(id, _)| is_chosen(**id)) {
        let view = tree.picker_view(&tree.keyspace.limits, oldest);
        let Some(plan) = tree.next_move(&view) else { continue };
        // A policy that does one thing at a time does not see which moves are backed off.
        if trees.has_backed_off(tree) && tree.busy.conflicts(&tree.version, &plan) {
            continue;
        }
        if best.as_ref().is_none_or(|(of, other)| urgency(id, &plan) > urgency(*of, other)) {
            best = Some((id, plan));
        }
    }
    best
}

fn pick_manual(engine: &Engine, trees: &Trees, oldest: u64) -> Option<(KeyspaceId, Plan)> {
    let mut manuals = engine.scheduler.lock().manual.clone();
    let is_awaited = |id: &KeyspaceId| {
        trees.keyspaces.get(id).is_some_and(|tree| tree.keyspace.values.is_awaited())
    };
    manuals.sort_by_key(|manual| !is_awaited(&manual.keyspace));
    for Manual { number, keyspace, wanted } in manuals {
        let tree = trees.keyspaces.get(&keyspace);
        if let Some(plan) = tree.and_then(|tree| next_manual(tree, &tree.busy, &wanted, oldest)) {
            return Some((keyspace, plan));
        }
        // What is left may wait for moves in progress, or be taken to another level by them. That
        // there are some does not say that: while writes go on, the keyspace is always busy.
        let is_left = |tree: &TreeState| {
            let waits = || next_manual(tree, &Busy::default(), &wanted, oldest).is_some();
            !tree.busy.is_empty() && (tree.busy.brings_down(&tree.version, &wanted) || waits())
        };
        if !tree.is_some_and(is_left) {
            engine.scheduler.remove_manual(number);
            engine.progress.signal();
        }
    }
    None
}

/// The next step of a manual compaction beside the moves in `busy`.
fn next_manual(tree: &TreeState, busy: &Busy, wanted: &Wanted, oldest: u64) -> Option<Plan> {
    let view = View { busy, ..tree.picker_view(&tree.keyspace.limits, oldest) };
    let plan = tree.keyspace.policy.pick_manual(&view, wanted, None)?;
    (!busy.conflicts(&tree.version, &plan)).then_some(plan)
}

fn run(engine: &Arc<Engine>, begun: Try, mut job: Job) {
    let mut limited_bytes = 0;
    let stepped = match &mut job {
        Job::Flush(flush) => flush.step(engine),
        Job::Part(part) => {
            let stepped = engine.check_space_to_rewrite().and_then(|()| part.step(engine));
            limited_bytes = part.take_step_bytes();
            stepped
        }
        Job::Collect(collect) => {
            let stepped = collect.step(engine);
            limited_bytes = collect.take_step_bytes();
            stepped
        }
    };
    let (now_ns, limit) = (engine.runtime.now_ns(), engine.live.background_bytes_per_second());
    let mut queue = engine.scheduler.lock();
    queue.charge(limited_bytes, limit, now_ns);
    queue.running -= 1;
    match stepped {
        Ok(Progress::More) => {
            queue.jobs.push(Waiting { job, from_ns: now_ns });
            return;
        }
        Ok(Progress::Done) => {
            drop(queue);
            done(engine, job);
        }
        Err(error) => {
            queue.running += 1;
            drop(queue);
            let is_full = error.kind() == ErrorKind::NoSpace && !engine.give_up_change_logs();
            let is_backed_off = match job {
                Job::Flush(flush) => {
                    flush.abandon(engine);
                    if is_full {
                        engine.release_reserve();
                    }
                    false
                }
                Job::Part(part) => {
                    part.abandon(engine, &error);
                    backed_off::is_own_failure(&error)
                }
                Job::Collect(collect) => {
                    let is_own = backed_off::is_own_failure(&error) && !error.lacks_descriptors();
                    let backs_off = is_own || is_full;
                    collect.abandon(engine, backs_off.then_some(&error));
                    engine.scheduler.end_collecting();
                    backs_off
                }
            };
            engine.scheduler.lock().running -= 1;
            if is_backed_off {
                told_backed_off(engine, error);
            } else {
                failed(engine, begun, error);
            }
        }
    }
    engine.progress.signal();
    // Work that waited for this job's nodes may be due now.
    engine.runtime.wake();
}

/// `job` is done, and its slot is free.
fn done(engine: &Engine, job: Job) {
    let (is_gc, is_flush) = (matches!(job, Job::Collect(_)), matches!(job, Job::Flush(_)));
    // GC gives back what it claimed before another one claims.
    drop(job);
    if is_flush {
        engine.memory.chunks().use_huge_pages();
    }
    let mut queue = engine.scheduler.lock();
    queue.collecting = queue.collecting.filter(|_| !is_gc);
    (queue.failures, queue.last_failure) = (0, None);
    drop(queue);
    release_for_errors(engine);
}

/// The try `begun` failed. Waits before the next, so that a full medium or a bad sector does not
/// cause a busy loop.
fn failed(engine: &Arc<Engine>, begun: Try, error: Error) {
    // Closed: the keyspace was dropped while its move was in progress.
    let is_over = matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Closed);
    if is_over || engine.poisoned_by().is_some() {
        return;
    }
    engine.events.add(Event::BackgroundError { error: error.clone() });
    let mut queue = engine.scheduler.lock();
    queue.last_failure = Some(Failure { of: begun, error });
    // A writer that waits for space gets this error.
    engine.admission.release();
    queue.failures = queue.failures.saturating_add(1);
    let wait_ns = (RETRY_NS_MIN << queue.failures.min(10)).min(RETRY_NS_MAX);
    let deadline_ns = engine.runtime.now_ns() + wait_ns;
    let seen = engine.scheduler.retry.count();
    let waits = engine.runtime.waits_in_steps();
    if !waits {
        queue.resumes_ns = deadline_ns;
    }
    drop(queue);
    engine.progress.signal();
    if waits && !engine.is_closing() {
        engine.runtime.wait(&engine.scheduler.retry, seen, Some(deadline_ns));
    }
}
