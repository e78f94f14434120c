//! Runs moves of the tree: a plan becomes an edit, after a rewrite where the move needs one.
//!
//! Nothing here knows which policy made the plan.

use super::backed_off::Inputs;
use super::output::{ChildTarget, OutputRule, RUN_END_BYTES, Written, WrittenRun};
use super::parts::{Parts, Verdict};
use super::rewrite::{Part, PartSpec, Progress};
use super::values::writers::ValueWriters;
use crate::cleanup::Cleanup;
use crate::engine::core::Core;
use crate::engine::trees::{Flushed, Trees};
use crate::event::Event;
use crate::keyspace::KeyspaceState;
use crate::span::{Span, span};
use crate::unvouched::Unvouched;
use base::{Cause, Error, FileId, KeyRange, KeyspaceId, Result, RunId, SequenceNumber};
use media::FileHint;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tree::edit::{Change, DatabaseEdit, KeyspaceEdit, RunRecord};
use tree::moves::{Child, Cutter, Output, OutputNode, Proportional, SizeEstimate};
use tree::policy::{Policy, WorkId};
use tree::{Cut, Input, KnownKeys, Move, NodeId, Plan, Reason, RunTable, Slice, Tier, Version};

/// A move in progress, shared by its parts.
pub(crate) struct Compaction {
    /// Its number in the event log.
    number: u64,
    span: Span,
    keyspace: Arc<KeyspaceState>,
    plan: Plan,
    work: WorkId,
    /// The input slices stay readable until the end, even if the tree changes meanwhile.
    version: Arc<Version>,
    to_level: u8,
    read_bytes_upper: u64,
    read_bytes_lower: u64,
    /// In key order.
    parts: Parts<Written>,
    begin_ns: u64,
    busy_ns: AtomicU64,
    entries_in: AtomicU64,
    entries_out: AtomicU64,
    cleanup: Cleanup,
    /// The snapshots that its parts knew, ascending.
    snapshots: Vec<SequenceNumber>,
}

/// One part of a move, for one worker at a time.
pub(crate) struct CompactionPart {
    shared: Arc<Compaction>,
    index: usize,
    spec: Option<PartSpec>,
    part: Option<Part>,
    /// The part has told the move that it ended; it must not do so again.
    has_ended: bool,
    /// Input bytes processed since the last [`CompactionPart::take_step_bytes`].
    step_bytes: u64,
}

/// Begins `plan`, which was picked from the current version of `id`. A move that is only an edit is
/// done when this returns, and has no parts.
pub(crate) fn begin(
    core: &Arc<Core>,
    trees: &mut Trees,
    id: KeyspaceId,
    plan: Plan,
) -> Result<Vec<CompactionPart>> {
    let tree = trees.tree(id)?;
    let (version, keyspace) = (tree.version.clone(), tree.keyspace.clone());
    let runs = input_runs(&version, &plan);
    let edited = edit_only(core, &version, &plan).and_then(|changes| {
        let Some(changes) = changes else { return Ok(false) };
        move_by_edit(core, trees, (&keyspace, &version), &plan, changes).map(|()| true)
    });
    if let Ok(true) = edited {
        trees.forgive(id, &Inputs::Runs(runs));
        return Ok(Vec::new());
    }
    let tree = trees.tree(id)?;
    let work = tree.busy.begin(&version, &plan);
    let begun = edited.and_then(|_| parts(core, keyspace, version, &tree.runs, plan, work));
    begun.inspect_err(|error| trees.end_failed(core, id, work, runs, error))
}

/// Makes a move that is only an edit: `changes` of the tree.
fn move_by_edit(
    core: &Core,
    trees: &mut Trees,
    (keyspace, version): (&KeyspaceState, &Version),
    plan: &Plan,
    changes: Vec<Change>,
) -> Result<()> {
    let (moved_bytes, to_level) = (input_bytes(version, plan), plan.action.to_level());
    let edit = edit_of(keyspace.id, changes, plan);
    if plan.reason == Reason::Expiry {
        trees.renew_hidden(&edit)?;
    }
    core.versions.install(trees, edit, &Flushed::new())?;
    if plan.reason == Reason::Expiry {
        keyspace.cleanup.add_expired(dropped_entries(version, plan));
    }
    core.work_stats.add(to_level, |work| {
        work.count += 1;
        work.moved_bytes += moved_bytes;
    });
    core.events.add(Event::TrivialMove {
        job: core.events.begin_job(),
        keyspace: keyspace.name.clone(),
        reason: format!("{:?}", plan.reason),
        output_level: to_level.into(),
        moved_bytes,
    });
    Ok(())
}

/// Sizes of parts of runs by their indexes. An estimate from the first and the last key is wrong by
/// orders of magnitude where keys are decimal numbers or words, and these sizes decide which work
/// is due.
struct Indexed<'a>(&'a Core);

impl SizeEstimate for Indexed<'_> {
    fn bytes(&self, run: &tree::Run, range: &KeyRange) -> u64 {
        // The edit does not depend on it: a reader of the run reports the run's damage.
        let known = self.0.read.tables.handle(run).bytes_within(range).unwrap_or_default();
        known.unwrap_or_else(|| Proportional.bytes(run, range))
    }
}

/// The edit of a move that rewrites nothing.
fn edit_only(core: &Core, version: &Version, plan: &Plan) -> Result<Option<Vec<Change>>> {
    Ok(Some(match &plan.action {
        Move::Push { input, to_level } => {
            tree::moves::push(version, input, *to_level, &Indexed(core))?
        }
        Move::Balance { level, from, to, range } => {
            tree::moves::balance(version, *level, *from, *to, range)?
        }
        Move::Drop { inputs } => tree::moves::drop_slices(version, inputs)?,
        Move::Append { .. } | Move::Merge { .. } | Move::Divide { .. } => return Ok(None),
    }))
}

/// The edit of `plan`, with these changes.
fn edit_of(id: KeyspaceId, mut changes: Vec<Change>, plan: &Plan) -> DatabaseEdit {
    let cursors = plan.cursors.iter();
    changes
        .extend(cursors.map(|(level, key)| Change::SetCursor { level: *level, key: key.clone() }));
    let keyspaces = vec![KeyspaceEdit { keyspace: id, changes }];
    DatabaseEdit { keyspaces, ..DatabaseEdit::default() }
}

fn input_slices(version: &Version, inputs: &[Input]) -> Vec<(u8, Slice)> {
    let mut slices = Vec::new();
    for input in inputs {
        let Some(node) = version.node(input.level, input.node) else { continue };
        slices.extend(input.taken(node).map(|slice| (input.level, slice.clone())));
    }
    slices
}

fn input_runs(version: &Version, plan: &Plan) -> BTreeSet<RunId> {
    input_slices(version, &plan.action.inputs()).iter().map(|(_, slice)| slice.run.id).collect()
}

/// Entries of the whole runs that a move takes.
fn dropped_entries(version: &Version, plan: &Plan) -> u64 {
    let slices = input_slices(version, &plan.action.inputs());
    slices.iter().map(|(_, slice)| slice.run.entries).sum()
}

/// Bytes of the input slices of a move.
pub(crate) fn input_bytes(version: &Version, plan: &Plan) -> u64 {
    input_slices(version, &plan.action.inputs()).iter().map(|(_, slice)| slice.bytes).sum()
}

/// Cuts a rewriting move into parts.
fn parts(
    core: &Arc<Core>,
    keyspace: Arc<KeyspaceState>,
    version: Arc<Version>,
    known: &RunTable,
    plan: Plan,
    work: WorkId,
) -> Result<Vec<CompactionPart>> {
    let (to_level, cause) = (plan.action.to_level(), plan.cause());
    let slices = input_slices(&version, &plan.action.inputs());
    let bytes_of = |lower: bool| {
        let of_level = slices.iter().filter(|(level, _)| (*level == to_level) == lower);
        of_level.map(|(_, slice)| slice.bytes).sum::<u64>()
    };
    let (read_bytes_upper, read_bytes_lower) = (bytes_of(false), bytes_of(true));
    let ranges = part_ranges(core, &plan, &slices, read_bytes_upper + read_bytes_lower)?;
    let number = core.events.begin_job();
    let shared = Arc::new(Compaction {
        number,
        span: span!("compaction", job = number, keyspace = %keyspace.name, output_level = to_level),
        keyspace: keyspace.clone(),
        work,
        version: version.clone(),
        to_level,
        read_bytes_upper,
        read_bytes_lower,
        parts: Parts::new(ranges.len()),
        begin_ns: core.runtime.now_ns(),
        busy_ns: AtomicU64::new(0),
        entries_in: AtomicU64::new(0),
        entries_out: AtomicU64::new(0),
        cleanup: Cleanup::default(),
        snapshots: core.snapshots.list(),
        plan,
    });
    shared.span.within(|| shared.report_start(core, ranges.len()));
    let levels_below = levels_below(&version, to_level);
    let plain: Vec<Slice> = slices.into_iter().map(|(_, slice)| slice).collect();
    // A value that a move finds inline and large was written long ago: it goes to the cold log.
    let values = || {
        let segments = &version.segments;
        ValueWriters::new(core, &keyspace, segments, 0, cause, false)
    };
    let mut parts = Vec::new();
    for (index, range) in ranges.into_iter().enumerate() {
        let spec = PartSpec {
            keyspace: keyspace.clone(),
            cause,
            memtables: Vec::new(),
            slices: plain.clone(),
            snapshots: shared.snapshots.clone(),
            older: keyspace.older_data(&version, &shared.plan.action.inputs(), to_level),
            filter: keyspace.filter.clone(),
            options: core.settings.table_options(&keyspace, to_level, levels_below),
            hint: hint(&shared.plan, to_level, shared.work),
            rule: rule(&version, known, &shared.plan, read_bytes_upper + read_bytes_lower)?,
            range,
            values: values(),
            tier: Tier::Cold,
            unvouched: Unvouched::default(),
        };
        parts.push(CompactionPart::new(&shared, index, spec));
    }
    Ok(parts)
}

/// The number of levels below `level` that have data.
pub(crate) fn levels_below(version: &Version, level: u8) -> usize {
    let below = version.levels.iter().skip(usize::from(level) + 1);
    below.filter(|level| !level.nodes.is_empty()).count()
}

/// The key ranges that the parts of a move work on.
fn part_ranges(
    core: &Core,
    plan: &Plan,
    slices: &[(u8, Slice)],
    total_bytes: u64,
) -> Result<Vec<KeyRange>> {
    let hull = slices
        .iter()
        .map(|(_, slice)| slice.range.clone())
        .reduce(|a, b| a.union(&b))
        .unwrap_or_else(KeyRange::all);
    match &plan.action {
        Move::Merge { parallel_max, one_file: false, cut, to_level, .. } if *to_level > 0 => {
            let worthwhile = (total_bytes / cut.table_bytes_max.max(1).saturating_mul(2)).max(1);
            let count = u64::from(*parallel_max).min(worthwhile) as usize;
            split_range(core, &hull, slices, count)
        }
        _ => Ok(vec![hull]),
    }
}

/// Ranges of about equal work, cut at block boundaries of the inputs.
fn split_range(
    core: &Core,
    hull: &KeyRange,
    slices: &[(u8, Slice)],
    count: usize,
) -> Result<Vec<KeyRange>> {
    if count < 2 {
        return Ok(vec![hull.clone()]);
    }
    // The largest slices give the best estimate of where the bytes are.
    let mut points = Vec::new();
    let mut biggest: Vec<&Slice> = slices.iter().map(|(_, slice)| slice).collect();
    biggest.sort_by_key(|slice| std::cmp::Reverse(slice.bytes));
    for slice in biggest.iter().take(64) {
        let run = core.read.tables.handle(&slice.run);
        points.extend(run.run()?.split_points(&slice.range.intersect(hull), 8, Cause::OpenRun)?);
    }
    points.sort();
    points.dedup();
    let mut ranges = Vec::new();
    let mut start = hull.start.clone();
    for part in 1..count {
        let Some(point) = points.get(points.len() * part / count) else { break };
        if *point > start && hull.is_before_end(point) {
            ranges.push(KeyRange { start, end: Some(point.clone()) });
            start = point.clone();
        }
    }
    ranges.push(KeyRange { start, end: hull.end.clone() });
    Ok(ranges)
}

fn hint(plan: &Plan, to_level: u8, work: WorkId) -> FileHint {
    let (bytes_max, group) = match &plan.action {
        Move::Merge { one_file: true, .. } => (Some(plan.write_bytes), Some(work.number())),
        Move::Merge { cut, .. } => (Some(cut.table_bytes_max), None),
        _ => (None, None),
    };
    FileHint { bytes_max, group, lifetime: Some(to_level), background: true, ..FileHint::NONE }
}

fn rule(version: &Version, known: &RunTable, plan: &Plan, total_bytes: u64) -> Result<OutputRule> {
    Ok(match &plan.action {
        // Runs of level 0 are ordered by age. The output stays one run, because pieces of the same
        // age would not keep an order.
        Move::Merge { to_level: 0, .. } => {
            let cut = Cut { table_bytes_max: u64::MAX, overlap_bytes_max: None };
            OutputRule::Cut { cutter: Cutter::new(version, 0, cut), one_file: false }
        }
        Move::Merge { cut, one_file, to_level, .. } => {
            OutputRule::Cut { cutter: Cutter::new(version, *to_level, *cut), one_file: *one_file }
        }
        Move::Divide { input, parts } => {
            let table_bytes_max = total_bytes / u64::from((*parts).max(1)) + 1;
            let cut = Cut { table_bytes_max, overlap_bytes_max: None };
            OutputRule::Cut { cutter: Cutter::new(version, input.level, cut), one_file: false }
        }
        Move::Append { input, to_level, file_bytes_max, parts } => {
            let part_bytes = total_bytes / u64::from((*parts).max(1)) + 1;
            let children = tree::moves::children(version, known, input, *to_level)?;
            let targets =
                children.into_iter().map(|child| child_target(child, *file_bytes_max, part_bytes));
            OutputRule::Children(targets.collect())
        }
        Move::Push { .. } | Move::Balance { .. } | Move::Drop { .. } => {
            return Err(Error::invalid("the move needs no rewrite"));
        }
    })
}

/// The target of a child's part of an append, or of a flush onto stacks.
pub(crate) fn child_target(
    mut child: Child,
    file_bytes_max: Option<u64>,
    part_bytes: u64,
) -> ChildTarget {
    child.file = child.file.filter(|_| file_bytes_max.is_some());
    let file_bytes_max = file_bytes_max.unwrap_or(u64::MAX);
    let new_file = file_bytes_max.saturating_sub(table::format::HEADER_BYTES);
    let new_run_bytes_max = match child.node {
        Some(_) => new_file,
        None => new_file.min(part_bytes + RUN_END_BYTES),
    };
    ChildTarget {
        run_bytes_max: match child.file {
            Some((_, bytes)) => file_bytes_max.saturating_sub(bytes),
            None => new_run_bytes_max,
        },
        new_run_bytes_max,
        node: child.node,
        range: child.range,
        file: child.file,
    }
}

/// The record of a run that was written, with a sketch of its keys where the scheme reads it.
pub(crate) fn record(run: &WrittenRun, policy: &dyn Policy) -> RunRecord {
    let mut record = run.summary.run.in_file(run.file);
    if !policy.counts_keys() {
        record.keys = KnownKeys::default();
    }
    record
}

impl CompactionPart {
    fn new(shared: &Arc<Compaction>, index: usize, spec: PartSpec) -> CompactionPart {
        CompactionPart {
            shared: shared.clone(),
            index,
            spec: Some(spec),
            part: None,
            has_ended: false,
            step_bytes: 0,
        }
    }

    /// Makes one bounded step; the step that ends the last part installs the edit. After an error
    /// the caller abandons the part.
    pub(crate) fn step(&mut self, core: &Arc<Core>) -> Result<Progress> {
        let span = self.shared.span.clone();
        span.within(|| self.step_inside(core))
    }

    fn step_inside(&mut self, core: &Arc<Core>) -> Result<Progress> {
        self.shared.parts.check()?;
        let begin_ns = core.runtime.now_ns();
        let stepped = self.step_part(core);
        let busy_ns = core.runtime.now_ns() - begin_ns;
        self.shared.busy_ns.fetch_add(busy_ns, Ordering::Relaxed);
        if stepped? == Progress::More {
            return Ok(Progress::More);
        }
        let written = self.finish_part();
        self.end(core, Ok(written))?;
        self.shared.parts.check()?;
        Ok(Progress::Done)
    }

    /// Makes all steps.
    pub(crate) fn run(&mut self, core: &Arc<Core>) -> Result<()> {
        while self.step(core)? == Progress::More {}
        Ok(())
    }

    fn step_part(&mut self, core: &Arc<Core>) -> Result<Progress> {
        if let Some(spec) = self.spec.take() {
            self.part = Some(Part::begin(&core.context, spec)?);
        }
        let Some(part) = &mut self.part else { return Ok(Progress::Done) };
        let before = part.counts().bytes_in;
        let stepped = part.step(core.settings.step_bytes);
        self.step_bytes += part.counts().bytes_in - before;
        stepped
    }

    /// Bytes that steps processed since the last call.
    pub(crate) fn take_step_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.step_bytes)
    }

    fn finish_part(&mut self) -> Written {
        let Some(part) = self.part.take() else { return Written::default() };
        let counts = part.counts();
        self.shared.entries_in.fetch_add(counts.entries_in, Ordering::Relaxed);
        self.shared.entries_out.fetch_add(counts.entries_out, Ordering::Relaxed);
        self.shared.cleanup.add(&counts);
        part.into_written()
    }

    /// Ends the part, once. The last part to end makes the move's edit, or gives everything back.
    fn end(&mut self, core: &Arc<Core>, ended: Result<Written>) -> Result<()> {
        self.has_ended = true;
        match self.shared.parts.end(self.index, ended) {
            Verdict::Pending => Ok(()),
            Verdict::Install(outputs) => self
                .shared
                .install(core, &outputs)
                .inspect_err(|error| self.shared.give_back(core, &outputs, error)),
            Verdict::GiveBack(outputs, error) => {
                self.shared.give_back(core, &outputs, &error);
                Ok(())
            }
        }
    }

    /// Gives the part up after a failure and removes its output. The part that ends last cleans up
    /// the rest of the move.
    pub(crate) fn abandon(mut self, core: &Arc<Core>, error: &Error) {
        if self.has_ended {
            return;
        }
        if let Some(part) = self.part.take() {
            part.remove_created();
        }
        // A failed part leads to no edit, and only an edit can fail here.
        let _ = self.end(core, Err(error.clone()));
    }
}

impl Compaction {
    /// Makes the move's edit against the current version. Nothing can fail after the edit is made;
    /// a failure before it leaves the outputs to be given back.
    fn install(&self, core: &Arc<Core>, outputs: &[Written]) -> Result<()> {
        let runs: Vec<&WrittenRun> = outputs.iter().flat_map(|written| &written.runs).collect();
        let files: Vec<(FileId, u64)> =
            outputs.iter().flat_map(|written| written.files.iter().copied()).collect();
        core.runtime.interleave("compaction: before it is part of the tree");
        let mut trees = core.versions.lock();
        let tree = trees.tree(self.keyspace.id)?;
        let mut changes = self.changes(&Indexed(core), &tree.version, &runs, &files)?;
        changes.extend(outputs.iter().flat_map(|written| written.value_changes()));
        let edit = edit_of(self.keyspace.id, changes, &self.plan);
        core.versions.install_compacted(&mut trees, edit, &self.cleanup, &self.snapshots)?;
        if let Ok(tree) = trees.tree(self.keyspace.id) {
            tree.busy.end(self.work);
            let entries = self.entries_in.load(Ordering::Relaxed);
            let dropped = entries.saturating_sub(self.entries_out.load(Ordering::Relaxed));
            let inputs = self.plan.action.inputs();
            tree.observed.note_merge(&self.version, &inputs, entries, dropped);
            let kept = runs.iter().map(|run| run.summary.run.deletes).sum();
            tree.observed.note_hidden(&self.version, &inputs, entries, dropped, kept);
        }
        let inputs = Inputs::Runs(input_runs(&self.version, &self.plan));
        trees.forgive(self.keyspace.id, &inputs);
        drop(trees);
        self.keyspace.cleanup.add_all(&self.cleanup);
        self.report(core, outputs);
        Ok(())
    }

    /// The move failed: removes the output of its parts. Its inputs are free or backed off.
    fn give_back(&self, core: &Arc<Core>, outputs: &[Written], error: &Error) {
        for written in outputs {
            written.remove(core);
        }
        let runs = input_runs(&self.version, &self.plan);
        let mut trees = core.versions.lock();
        trees.end_failed(core, self.keyspace.id, self.work, runs, error);
    }

    fn changes(
        &self,
        sizes: &dyn SizeEstimate,
        version: &Version,
        runs: &[&WrittenRun],
        files: &[(FileId, u64)],
    ) -> Result<Vec<Change>> {
        let policy = &*self.keyspace.policy;
        let records = || runs.iter().map(|run| record(run, policy));
        let output = |nodes| Output { files: files.to_vec(), nodes };
        let tight = || output(records().map(OutputNode::tight).collect());
        match &self.plan.action {
            Move::Merge { inputs, to_level, .. } => {
                tree::moves::merge(version, inputs, *to_level, &tight(), sizes)
            }
            Move::Divide { input, .. } => {
                let range = version
                    .node(input.level, input.node)
                    .map_or_else(KeyRange::all, |node| node.range.clone());
                let nodes = tree::moves::tile(&range, records().collect());
                tree::moves::divide(version, input, &output(nodes), sizes)
            }
            Move::Append { input, to_level, file_bytes_max: None, .. } => {
                tree::moves::append_on_top(version, input, *to_level, &tight())
            }
            Move::Append { input, to_level, .. } => {
                let runs: Vec<(Option<NodeId>, RunRecord)> =
                    runs.iter().map(|run| (run.child, record(run, policy))).collect();
                tree::moves::append(version, input, *to_level, files, &runs)
            }
            Move::Push { .. } | Move::Balance { .. } | Move::Drop { .. } => Ok(Vec::new()),
        }
    }

    fn report_start(&self, core: &Core, num_subcompactions: usize) {
        core.events.add(Event::CompactionStarted {
            job: self.number,
            keyspace: self.keyspace.name.clone(),
            reason: format!("{:?}", self.plan.reason),
            score: self.plan.score,
            output_level: self.to_level.into(),
            input_data_size: self.read_bytes_upper + self.read_bytes_lower,
            predicted_write_bytes: self.plan.write_bytes,
            num_subcompactions: num_subcompactions as u64,
        });
    }

    fn report(&self, core: &Core, outputs: &[Written]) {
        let runs = || outputs.iter().flat_map(|output| &output.runs);
        let written: u64 = runs().map(|run| run.summary.run.bytes).sum();
        let (entries_in, entries_out) =
            (self.entries_in.load(Ordering::Relaxed), self.entries_out.load(Ordering::Relaxed));
        core.work_stats.add(self.to_level, |work| {
            work.count += 1;
            work.read_bytes_upper += self.read_bytes_upper;
            work.read_bytes_lower += self.read_bytes_lower;
            work.write_bytes += written;
            work.predicted_write_bytes += self.plan.write_bytes;
            work.busy_ns += self.busy_ns.load(Ordering::Relaxed);
            work.entries_in += entries_in;
            work.entries_dropped += entries_in.saturating_sub(entries_out);
        });
        let elapsed_ns = core.runtime.now_ns() - self.begin_ns;
        core.latencies.compaction.record(elapsed_ns);
        let keyspace = &self.keyspace.name;
        for output in outputs {
            output.report_created(&core.events, self.number, keyspace, self.to_level);
        }
        let nodes = self.version.levels.iter().map(|level| level.nodes.len() as u64);
        core.events.add(Event::CompactionFinished {
            job: self.number,
            keyspace: keyspace.clone(),
            reason: format!("{:?}", self.plan.reason),
            output_level: self.to_level.into(),
            read_bytes: self.read_bytes_upper + self.read_bytes_lower,
            predicted_write_bytes: self.plan.write_bytes,
            total_output_size: written,
            num_output_runs: outputs.iter().map(|output| output.runs.len() as u64).sum(),
            num_input_records: entries_in,
            num_output_records: entries_out,
            compaction_time_micros: elapsed_ns / 1000,
            extents: runs().flat_map(|run| run.places(&*core.store)).collect(),
            lsm_state: nodes.collect(),
        });
    }
}
