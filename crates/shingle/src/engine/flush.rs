//! Flushes: sealed memtables become a run on top of the tree.

use super::compaction::child_target;
use super::output::{ChildTarget, OutputRule, Written};
use super::rewrite::{Part, PartSpec, Progress};
use super::values::active_segment::UnflushedExtents;
use super::values::writers::ValueWriters;
use crate::engine::commit_state::{Active, CommitState, Sealed};
use crate::engine::core::Core;
use crate::engine::trees::{Flushed, Trees};
use crate::event::Event;
use crate::keyspace::KeyspaceState;
use crate::memtable::Memtable;
use crate::span::{Span, span};
use crate::unvouched::Unvouched;
use base::{Cause, FileId, KeyRange, KeyspaceId, Result, SequenceNumber};
use media::FileHint;
use std::collections::BTreeMap;
use std::sync::Arc;
use tree::edit::{Change, DatabaseEdit, KeyspaceEdit};
use tree::moves::{Cutter, OlderData, Output, OutputNode};
use tree::policy::{Unflushed, are_worth_flush};
use tree::{Cut, Tier, Version};

/// A flush goes to level 0, wherever its keys are, if it is smaller than one part in this many of a
/// table, or of a memtable where that is smaller. Otherwise each short session of an appending
/// program would leave a tiny table in a deep level, where nothing merges it with its neighbours.
/// In level 0, several such runs are merged into one.
const SMALL_TABLE_SHARE: u64 = 8;

/// A flush in progress: one part for each keyspace; several when they have no log and must become
/// durable together.
pub(crate) struct FlushJob {
    /// Its number in the event log.
    number: u64,
    span: Span,
    members: Vec<Member>,
    current: usize,
    begin_ns: u64,
    busy_ns: u64,
}

struct Member {
    keyspace: Arc<KeyspaceState>,
    /// Oldest first.
    memtables: Vec<Arc<Memtable>>,
    to_level: u8,
    /// Where it is cut for the stacks of nodes; `None`: it is one run.
    children: Option<Vec<ChildTarget>>,
    /// The number of deeper levels that have data; at least one where more data is to come.
    levels_below: usize,
    /// Taken when the part begins.
    values: Option<ValueWriters>,
    /// The extents of separated values that the memtables point to.
    unflushed: UnflushedExtents,
    /// The part of those extents whose values are written again.
    unvouched: Unvouched,
    part: Option<Part>,
}

/// Takes the sealed memtables that are due, and marks them as being flushed. `None`: nothing is
/// due. In an idle database they are flushed without waiting for others.
pub(crate) fn begin(core: &Arc<Core>, trees: &Trees, is_idle: bool) -> Option<FlushJob> {
    let mut state = core.commits.lock();
    let (due, memtables_max) = due(core, &state, is_idle)?;
    let mut members: BTreeMap<KeyspaceId, Member> = BTreeMap::new();
    for sealed in state.sealed.iter_mut().filter(|sealed| due.contains(&sealed.keyspace.id)) {
        let taken = members.get(&sealed.keyspace.id).map_or(0, |member| member.memtables.len());
        if taken == memtables_max {
            continue;
        }
        sealed.is_flushing = true;
        let member = members.entry(sealed.keyspace.id).or_insert_with(|| Member {
            keyspace: sealed.keyspace.clone(),
            memtables: Vec::new(),
            to_level: 0,
            children: None,
            levels_below: 1,
            values: None,
            unflushed: UnflushedExtents::default(),
            unvouched: Unvouched::default(),
            part: None,
        });
        member.memtables.push(sealed.memtable.clone());
        member.unflushed.join(&sealed.unflushed);
    }
    drop(state);
    let mut members: Vec<Member> = members.into_values().collect();
    for member in &mut members {
        aim(trees, member);
        if let Some(tree) = trees.keyspaces.get(&member.keyspace.id) {
            let below = super::compaction::levels_below(&tree.version, member.to_level);
            member.levels_below = below.max(1);
            let (rules, segments) = (&member.keyspace.values, &tree.version.segments);
            let depth = rules.layout.depth(segments, &rules.limits);
            let cause = Cause::ValueWrite;
            let keyspace = &member.keyspace;
            let values = ValueWriters::new(core, keyspace, segments, depth, cause, true);
            let bytes: u64 = member.memtables.iter().map(|memtable| memtable.bytes()).sum();
            let anew_bytes = member.unflushed.unvouched_bytes(&tree.version);
            member.unvouched = member.unflushed.unvouched(&tree.version);
            member.values = Some(values.with_budget(bytes + anew_bytes));
        }
    }
    let (number, begin_ns) = (core.events.begin_job(), core.runtime.now_ns());
    let span = span!("flush", job = number);
    let job = FlushJob { number, span, members, current: 0, begin_ns, busy_ns: 0 };
    job.span.within(|| job.report_start(core));
    Some(job)
}

/// In an idle database, seals the active memtables whose tombstones are worth a flush: no more
/// writes may come that would bring them to the tree.
pub(crate) fn seal_deletions(core: &Arc<Core>) -> Result<()> {
    let trees = core.versions.lock();
    let oldest_snapshot = core.snapshots.horizon();
    let is_worth = |active: &Active| {
        let (keyspace, memtable) = (&active.keyspace, active.writer.memtable());
        if memtable.deletes() == 0 || keyspace.options.ingests_below {
            return false;
        }
        trees.keyspaces.get(&keyspace.id).is_some_and(|tree| {
            let unflushed = Unflushed {
                range: &memtable.user_range(),
                entries: memtable.entries(),
                deletes: memtable.deletes(),
                sequence_max: memtable.sequence_max().unwrap_or(0),
            };
            let view = tree.picker_view(&keyspace.limits, oldest_snapshot);
            are_worth_flush(&view, unflushed)
        })
    };
    let state = core.commits.lock();
    let worth: Vec<KeyspaceId> =
        state.actives().filter(|active| is_worth(active)).map(|a| a.keyspace.id).collect();
    drop(state);
    drop(trees);
    if worth.is_empty() {
        return Ok(());
    }
    core.commits.seal(&mut core.commits.lock(), &worth)
}

/// A sealed memtable should be flushed now.
pub(crate) fn is_due(core: &Core) -> bool {
    due(core, &core.commits.lock(), false).is_some()
}

/// A sealed memtable of `keyspace` should be flushed now, or is being flushed.
pub(crate) fn is_due_for(core: &Core, keyspace: KeyspaceId) -> bool {
    let state = core.commits.lock();
    let mut own = state.sealed.iter().filter(|sealed| sealed.keyspace.id == keyspace);
    own.any(|sealed| sealed.is_flushing)
        || due(core, &state, false).is_some_and(|(due, _)| due.contains(&keyspace))
}

/// The keyspaces whose sealed memtables should be flushed now, and the maximum number for each.
fn due(core: &Core, state: &CommitState, is_idle: bool) -> Option<(Vec<KeyspaceId>, usize)> {
    let is_flushing = |id: KeyspaceId| {
        state.sealed.iter().any(|sealed| sealed.keyspace.id == id && sealed.is_flushing)
    };
    // Keyspaces without a log are flushed together or not at all.
    let without_wal = |sealed: &Sealed| sealed.keyspace.options.without_wal;
    let is_unlogged_flushing = state.sealed.iter().any(|s| without_wal(s) && s.is_flushing);
    let waits = |sealed: &Sealed| {
        is_flushing(sealed.keyspace.id) || (without_wal(sealed) && is_unlogged_flushing)
    };
    let mut by_keyspace: BTreeMap<KeyspaceId, Vec<&Sealed>> = BTreeMap::new();
    for sealed in state.sealed.iter().filter(|sealed| !waits(sealed)) {
        by_keyspace.entry(sealed.keyspace.id).or_default().push(sealed);
    }
    let total: u64 = state.sealed_bytes();
    let is_requested = |sealed: &Sealed| {
        sealed.memtable.sequence_min().is_none_or(|first| first <= state.flush_through)
    };
    let flush_requested = state.sealed.iter().any(is_requested);
    let everything = flush_requested || is_idle || total >= core.settings.flush_bytes;
    let (&id, _) = by_keyspace
        .iter()
        .filter(|(_, sealed)| {
            let pins_log = sealed.iter().any(|s| pins_old_log(state, s));
            everything || pins_log || sealed.len() >= core.settings.flush_memtables
        })
        .max_by_key(|(_, sealed)| sealed.iter().map(|s| s.bytes).sum::<u64>())?;
    let is_unlogged = by_keyspace[&id][0].keyspace.options.without_wal;
    if !is_unlogged && !flush_requested {
        return Some((vec![id], core.settings.flush_memtables_max));
    }
    // Keyspaces without a log become durable at one point of the commit order. When everything is
    // flushed, the same holds for all: what recovery replayed may not be durable in its log.
    let together =
        by_keyspace.iter().filter(|(_, s)| s[0].keyspace.options.without_wal == is_unlogged);
    Some((together.map(|(&id, _)| id).collect(), usize::MAX))
}

/// It needs a log that is to be removed.
fn pins_old_log(state: &CommitState, sealed: &Sealed) -> bool {
    sealed.first_log.is_some() && sealed.first_log <= state.flush_logs_through
}

/// Decides where a member's run goes, or its runs.
fn aim(trees: &Trees, member: &mut Member) {
    let Some(tree) = trees.keyspaces.get(&member.keyspace.id) else { return };
    if member.memtables.iter().any(|memtable| memtable.range_delete_count() > 0) {
        return;
    }
    let range = member
        .memtables
        .iter()
        .map(|memtable| memtable.user_range())
        .reduce(|a, b| a.union(&b))
        .unwrap_or_else(KeyRange::all);
    let limits = &member.keyspace.limits;
    let bytes: u64 = member.memtables.iter().map(|memtable| memtable.bytes()).sum();
    // A scheme that cuts no tables has no limit on their bytes.
    if bytes < limits.table_bytes_max.min(limits.memtable_bytes) / SMALL_TABLE_SHARE {
        return;
    }
    let view = tree.picker_view(limits, SequenceNumber::MAX);
    let policy = &member.keyspace.policy;
    let Some(cut) = policy.flush_cut(&view, &range, bytes) else {
        member.to_level = policy.flush_level(&view, &range);
        return;
    };
    let parts = tree::moves::flush_parts(&tree.version, &range, cut.level).into_iter();
    let targets = parts.map(|part| child_target(part, None, cut.table_bytes_max));
    member.to_level = cut.level;
    member.children = Some(targets.collect());
}

impl FlushJob {
    /// One bounded step.
    pub(crate) fn step(&mut self, core: &Arc<Core>) -> Result<Progress> {
        self.span.clone().within(|| self.step_inside(core))
    }

    fn step_inside(&mut self, core: &Arc<Core>) -> Result<Progress> {
        let begin_ns = core.runtime.now_ns();
        let stepped = self.step_member(core);
        self.busy_ns += core.runtime.now_ns() - begin_ns;
        if stepped? == Progress::More {
            return Ok(Progress::More);
        }
        self.current += 1;
        if self.current < self.members.len() {
            return Ok(Progress::More);
        }
        self.install(core)?;
        Ok(Progress::Done)
    }

    fn step_member(&mut self, core: &Arc<Core>) -> Result<Progress> {
        let member = &mut self.members[self.current];
        if member.part.is_none() {
            let Some(values) = member.values.take() else { return Ok(Progress::Done) };
            core.runtime.interleave("flush: before it looks at the snapshots");
            member.part = Some(Part::begin(&core.context, spec(core, member, values))?);
        }
        match &mut member.part {
            Some(part) => part.step(core.settings.step_bytes),
            None => Ok(Progress::Done),
        }
    }

    fn install(&mut self, core: &Arc<Core>) -> Result<()> {
        let unsynced = self.sync_older_writes(core)?;
        self.members.iter().try_for_each(|member| member.unflushed.sync(core))?;
        core.runtime.interleave("flush: before it is part of the tree");
        let mut trees = core.versions.lock();
        let mut edit = DatabaseEdit::default();
        let mut flushed = Flushed::new();
        for member in &self.members {
            let Some(part) = &member.part else { continue };
            let Some(tree) = trees.keyspaces.get(&member.keyspace.id) else {
                // The keyspace was dropped meanwhile: its part of the flush is removed.
                part.remove_created();
                continue;
            };
            let changes = member.changes(&tree.version, part.written())?;
            edit.keyspaces.push(KeyspaceEdit { keyspace: member.keyspace.id, changes });
            flushed.insert(member.keyspace.id, member.memtables.clone());
        }
        let all: Vec<Arc<Memtable>> = flushed.values().flatten().cloned().collect();
        let old_floor = trees.log_floor;
        let state = core.commits.lock();
        // If no log is needed, every later one will have a larger number: logs are begun under this
        // lock.
        let floor = state.log_floor(&all).unwrap_or(FileId(core.next_numbers().0));
        drop(state);
        // Feeds read logs below the floor too.
        let floor = if core.changes.is_some() { floor.min(unsynced) } else { floor };
        edit.log_floor = Some(floor).filter(|&floor| floor > old_floor);
        edit.last_sequence = Some(core.snapshots.visible());
        let mut parts = self.members.iter().filter_map(|member| member.part.as_ref());
        if parts.any(|part| part.counts().expired > 0) {
            trees.renew_hidden(&edit)?;
        }
        core.versions.install(&mut trees, edit, &flushed)?;
        // Before the next flush takes the lock: otherwise it would begin a small segment in each
        // group.
        let parts = self.members.iter_mut().filter_map(|member| member.part.as_mut());
        parts.for_each(Part::release_segments);
        let new_floor = trees.log_floor;
        let logs = core.commits.finish_flushed(&all, new_floor);
        core.versions.bury_logs(&mut trees, logs);
        for member in &self.members {
            self.report(core, member);
        }
        Ok(())
    }

    /// Syncs the log, so that the runs do not survive older writes of other keyspaces, which only
    /// the log holds, nor changes that a feed is to give. Returns the log that was the newest;
    /// where feeds may read them, the logs before it are durable.
    fn sync_older_writes(&self, core: &Core) -> Result<FileId> {
        let state = core.commits.lock();
        let is_elsewhere = |id: KeyspaceId, first_log: Option<FileId>| {
            first_log.is_some() && self.members.iter().all(|member| member.keyspace.id != id)
        };
        let is_needed = core.changes.is_some()
            || self.members.iter().any(|m| !m.keyspace.options.without_wal)
                && (state.actives().any(|a| is_elsewhere(a.keyspace.id, a.first_log))
                    || state.sealed.iter().any(|s| is_elsewhere(s.keyspace.id, s.first_log)));
        let position = state.position();
        let newest = state.log.as_ref().map_or(FileId(core.next_numbers().0), |log| log.file);
        drop(state);
        if is_needed {
            core.commits.sync_log(position)?;
        }
        Ok(newest)
    }

    fn report_start(&self, core: &Core) {
        for member in &self.members {
            core.events.add(Event::FlushStarted {
                job: self.number,
                keyspace: member.keyspace.name.clone(),
                num_memtables: member.memtables.len() as u64,
                memory_usage: member.memtables.iter().map(|memtable| memtable.bytes()).sum(),
                output_level: member.to_level.into(),
            });
        }
    }

    fn report(&self, core: &Core, member: &Member) {
        let Some(part) = &member.part else { return };
        let (counts, written) = (part.counts(), part.written());
        member.keyspace.cleanup.add(&counts);
        core.work_stats.add(member.to_level, |work| {
            work.count += 1;
            work.write_bytes += written.bytes();
            work.busy_ns += self.busy_ns;
            work.entries_in += counts.entries_in;
            work.entries_dropped += counts.entries_in - counts.entries_out;
        });
        let elapsed_ns = core.runtime.now_ns() - self.begin_ns;
        core.latencies.flush.record(elapsed_ns);
        let keyspace = &member.keyspace.name;
        written.report_created(&core.events, self.number, keyspace, member.to_level);
        core.events.add(Event::FlushFinished {
            job: self.number,
            keyspace: keyspace.clone(),
            memtables: member.memtables.len() as u64,
            entries_in: counts.entries_in,
            output_level: member.to_level.into(),
            output_bytes: written.bytes(),
            files: written.files.iter().map(|(file, _)| file.0).collect(),
            extents: written.runs.iter().flat_map(|run| run.places(&*core.store)).collect(),
            micros: elapsed_ns / 1000,
        });
        let now_ns = core.runtime.now_ns();
        core.noted.note_if_due(core.ledger(), &core.admission, &core.events, now_ns);
    }

    /// Gives everything back after a failure: the memtables wait for another try.
    pub(crate) fn abandon(self, core: &Arc<Core>) {
        let mut state = core.commits.lock();
        for member in &self.members {
            for sealed in &mut state.sealed {
                if member.memtables.iter().any(|memtable| Arc::ptr_eq(memtable, &sealed.memtable)) {
                    sealed.is_flushing = false;
                }
            }
        }
        drop(state);
        for part in self.members.into_iter().filter_map(|member| member.part) {
            part.remove_created();
        }
    }
}

impl Member {
    fn changes(&self, version: &Version, written: &Written) -> Result<Vec<Change>> {
        let mut output = Output { files: written.files.clone(), nodes: Vec::new() };
        for run in &written.runs {
            output
                .nodes
                .push(OutputNode::tight(super::compaction::record(run, &*self.keyspace.policy)));
        }
        // Meanwhile another edit may have filled the place that the flush aimed at. Level 0 is
        // always correct.
        let aimed = match self.children {
            Some(_) => tree::moves::flush_onto(version, &output, self.to_level),
            None => tree::moves::flush(version, &output, self.to_level),
        };
        let mut changes = match aimed {
            Ok(changes) => changes,
            Err(_) if self.to_level > 0 => tree::moves::flush(version, &output, 0)?,
            Err(error) => return Err(error),
        };
        changes.extend(self.unflushed.changes(version));
        changes.extend(written.value_changes());
        let newest = self.memtables.iter().filter_map(|memtable| memtable.sequence_max()).max();
        changes.extend(newest.map(|sequence| Change::SetFlushed { sequence }));
        Ok(changes)
    }
}

fn spec(core: &Arc<Core>, member: &Member, values: ValueWriters) -> PartSpec {
    let unlimited = Cut { table_bytes_max: u64::MAX, overlap_bytes_max: None };
    let bytes = member.memtables.iter().map(|memtable| memtable.bytes()).sum();
    PartSpec {
        keyspace: member.keyspace.clone(),
        cause: Cause::Flush,
        memtables: member.memtables.clone(),
        slices: Vec::new(),
        range: KeyRange::all(),
        snapshots: core.snapshots.list(),
        older: OlderData::everywhere(),
        filter: None,
        options: core.settings.table_options(
            &member.keyspace,
            member.to_level,
            member.levels_below,
        ),
        hint: FileHint {
            bytes_max: Some(bytes),
            group: None,
            lifetime: Some(member.to_level),
            background: true,
            ..FileHint::NONE
        },
        rule: match &member.children {
            Some(children) => OutputRule::Children(children.clone()),
            None => OutputRule::Cut {
                cutter: Cutter::new(&Version::empty(1), 0, unlimited),
                one_file: false,
            },
        },
        values,
        tier: Tier::Main,
        unvouched: member.unvouched.clone(),
    }
}
