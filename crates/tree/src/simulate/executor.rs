//! The store and its executor.

use crate::edit::{Change, RunRecord};
use crate::invariant;
use crate::moves::{self, Child, Cutter, OlderData, Output, OutputNode, SizeEstimate};
use crate::plan::{Cut, Input, Move, Plan};
use crate::policy::{Busy, FlushCut, Limits, Observed, Policy, View, WorkId, next_move};
use crate::run_table::RunTable;
use crate::sketch::{KeySketch, KnownKeys};
use crate::version::{NodeId, ObsoleteFiles, Run, Slice, Version};
use base::checksum::hash64;
use base::{FileId, KeyRange, Result, RunId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An entry: a key, its sequence number, and whether it is a tombstone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key, as a number.
    pub key: u32,
    /// Its place in the commit order.
    pub sequence: u64,
    /// The entry is a tombstone.
    pub is_delete: bool,
}

/// The key of a number.
fn key_bytes(key: u32) -> [u8; 4] {
    key.to_be_bytes()
}

type Contents = BTreeMap<RunId, Arc<[Entry]>>;

/// Exact sizes, from the sets.
struct Exact<'a> {
    contents: &'a Contents,
    entry_bytes: u64,
}

impl SizeEstimate for Exact<'_> {
    fn bytes(&self, run: &Run, range: &KeyRange) -> u64 {
        let entries = self.contents.get(&run.id).map_or(&[][..], |entries| within(entries, range));
        entries.len() as u64 * self.entry_bytes
    }
}

/// The first number whose key is not before `key`; one more than any, where there is none.
fn first_from(key: &[u8]) -> u64 {
    let mut bytes = [0; 4];
    let count = key.len().min(4);
    bytes[..count].copy_from_slice(&key[..count]);
    u64::from(u32::from_be_bytes(bytes)) + u64::from(key.len() > 4)
}

/// The numbers of a range.
fn numbers(range: &KeyRange) -> std::ops::Range<u64> {
    first_from(&range.start)..range.end.as_ref().map_or(1 << 32, |end| first_from(end))
}

/// The entries of a sorted set that lie in `range`.
fn within<'a>(entries: &'a [Entry], range: &KeyRange) -> &'a [Entry] {
    let numbers = numbers(range);
    let from = entries.partition_point(|entry| u64::from(entry.key) < numbers.start);
    let to = entries.partition_point(|entry| u64::from(entry.key) < numbers.end);
    &entries[from..to.max(from)]
}

/// A move that was begun.
#[derive(Debug)]
pub struct Work {
    id: WorkId,
    plan: Plan,
    outputs: Vec<Written>,
    dropped: Vec<Entry>,
}

/// Entries that become a run.
#[derive(Debug)]
struct Written {
    /// The node below that it is for, in an append.
    child: Option<NodeId>,
    file: Target,
    entries: Vec<Entry>,
}

/// The file of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    New,
    /// The one that the run before it went to.
    Same,
    /// This one, which has this many bytes.
    Extend(FileId, u64),
}

impl Written {
    fn new(entries: Vec<Entry>) -> Written {
        Written { child: None, file: Target::New, entries }
    }
}

fn divided(entries: &[Entry], parts: u32) -> Vec<Written> {
    let size = entries.len().div_ceil(parts.max(1) as usize).max(1);
    entries.chunks(size).map(|chunk| Written::new(chunk.to_vec())).collect()
}

/// A tree, a policy, and the sets that the runs are.
pub struct Store {
    /// The tree.
    pub version: Version,
    /// Moves in progress.
    pub busy: Busy,
    /// What the policy keeps to.
    pub limits: Limits,
    /// What the policy sees of the workload.
    pub observed: Observed,
    /// Bytes that flushes wrote.
    pub flushed_bytes: u64,
    /// Bytes that moves wrote, by level.
    pub written_bytes: Vec<u64>,
    /// Of these, what divisions wrote.
    pub divided_bytes: u64,
    /// Moves done.
    pub moves: u64,
    /// The largest number of runs in level 0 so far.
    pub level0_runs_max: usize,
    /// The largest number of bytes that a file had.
    pub file_bytes_max: u64,
    /// Maximum number of slices that a node below level 0 had in a settled tree.
    pub stack_max: usize,
    /// Merges whose output was one file of several runs, and those runs: sets, and their tables.
    pub sets: (u64, u64),
    /// Bytes that an entry counts as.
    pub entry_bytes: u64,
    /// Superseded entries that moves dropped, if the caller takes them.
    pub dropped: Option<Vec<Entry>>,
    /// Checks the whole tree after every edit, not only what the edit touched.
    pub check_all: bool,
    /// Runs have sketches of their keys, as those that this process wrote.
    pub knows_keys: bool,
    policy: Box<dyn Policy>,
    pub(crate) runs: RunTable,
    contents: Contents,
    next_number: u64,
}

impl Store {
    /// An empty store under `policy`; every entry counts as `entry_bytes` bytes.
    pub fn new(policy: Box<dyn Policy>, limits: Limits, entry_bytes: u64) -> Store {
        Store {
            version: Version::empty(limits.levels),
            busy: Busy::default(),
            limits,
            observed: Observed::default(),
            flushed_bytes: 0,
            written_bytes: vec![0; usize::from(base::cause::LEVELS_MAX)],
            divided_bytes: 0,
            moves: 0,
            level0_runs_max: 0,
            file_bytes_max: 0,
            stack_max: 0,
            sets: (0, 0),
            entry_bytes,
            dropped: None,
            check_all: false,
            knows_keys: true,
            policy,
            runs: RunTable::new(Arc::new(ObsoleteFiles::default())),
            contents: Contents::new(),
            next_number: 1,
        }
    }

    /// What the policy sees now.
    pub fn view(&self) -> View<'_> {
        View {
            version: &self.version,
            busy: &self.busy,
            limits: &self.limits,
            observed: &self.observed,
            oldest_snapshot: base::key::SEQUENCE_MAX,
        }
    }

    /// The policy.
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// Goes on under another policy.
    pub fn set_policy(&mut self, policy: Box<dyn Policy>) {
        self.policy = policy;
    }

    /// A memtable's entries, sorted by key, one for each, become a run.
    pub fn flush(&mut self, entries: &[Entry]) -> Result<()> {
        let bytes = entries.len() as u64 * self.entry_bytes;
        if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
            let range = KeyRange::closed(&key_bytes(first.key), &key_bytes(last.key));
            let cut = self.policy.flush_cut(&self.view(), &range, bytes);
            if let Some(cut) = cut {
                return self.flush_onto(entries, cut);
            }
        }
        let output = self.write(vec![Written::new(entries.to_vec())]);
        let Some(node) = output.nodes.first() else { return Ok(()) };
        let level = self.policy.flush_level(&self.view(), &node.range);
        self.flushed_bytes += node.run.bytes;
        let changes = moves::flush(&self.version, &output, level)?;
        self.commit(&changes)
    }

    /// The same, cut for the stacks of nodes.
    pub fn flush_onto(&mut self, entries: &[Entry], cut: FlushCut) -> Result<()> {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(()) };
        let range = KeyRange::closed(&key_bytes(first.key), &key_bytes(last.key));
        let mut sets = Vec::new();
        for part in moves::flush_parts(&self.version, &range, cut.level) {
            let mine = within(entries, &part.range);
            let bytes_max = if part.node.is_some() { u64::MAX } else { cut.table_bytes_max };
            let count = (bytes_max / self.entry_bytes.max(1)).max(1) as usize;
            sets.extend(mine.chunks(count).map(|chunk| Written::new(chunk.to_vec())));
        }
        let output = self.write(sets);
        self.flushed_bytes += output.nodes.iter().map(|node| node.run.bytes).sum::<u64>();
        let changes = moves::flush_onto(&self.version, &output, cut.level)?;
        self.commit(&changes)
    }

    /// Picks and executes one move. False: there is none.
    pub fn step(&mut self) -> Result<bool> {
        let Some(plan) = next_move(&*self.policy, &self.view()) else { return Ok(false) };
        let work = self.begin(plan);
        self.finish(work)?;
        Ok(true)
    }

    /// Begins a move: reads its inputs.
    pub fn begin(&mut self, plan: Plan) -> Work {
        let id = self.busy.begin(&self.version, &plan);
        let mut dropped = Vec::new();
        let outputs = match &plan.action {
            Move::Merge { inputs, to_level, cut, one_file, .. } => {
                let entries = self.live(inputs, *to_level, &mut dropped);
                self.observe(inputs, &entries);
                let mut outputs = self.merge(entries, *to_level, *cut);
                let rest = outputs.iter_mut().skip(1).filter(|_| *one_file);
                rest.for_each(|output| output.file = Target::Same);
                outputs
            }
            Move::Append { input, to_level, file_bytes_max, parts } => {
                let entries = self.live(std::slice::from_ref(input), *to_level, &mut dropped);
                self.append(&entries, input, *to_level, *file_bytes_max, *parts)
            }
            Move::Divide { input, parts } => {
                let entries = self.live(std::slice::from_ref(input), input.level, &mut dropped);
                divided(&entries, *parts)
            }
            Move::Push { .. } | Move::Balance { .. } | Move::Drop { .. } => Vec::new(),
        };
        Work { id, plan, outputs, dropped }
    }

    /// Notes what a merge of these inputs dropped, of which `out` is left.
    fn observe(&mut self, inputs: &[Input], out: &[Entry]) {
        let count =
            |slice: &Slice| within(&self.contents[&slice.run.id], &slice.range).len() as u64;
        let taken = |input: &Input| -> u64 {
            let node = self.version.node(input.level, input.node);
            node.map_or(0, |node| input.taken(node).map(count).sum())
        };
        let entries: u64 = inputs.iter().map(taken).sum();
        let dropped = entries - out.len() as u64;
        let kept = out.iter().filter(|entry| entry.is_delete).count() as u64;
        self.observed.note_merge(&self.version, inputs, entries, dropped);
        self.observed.note_hidden(&self.version, inputs, entries, dropped, kept);
    }

    /// Gives a move up: the tree stays as it is.
    pub fn give_up(&mut self, work: Work) {
        self.busy.end(work.id);
    }

    /// Ends a move: its edit, on the tree as it is now.
    pub fn finish(&mut self, work: Work) -> Result<()> {
        self.busy.end(work.id);
        if let Some(all) = &mut self.dropped {
            all.extend(work.dropped);
        }
        let children: Vec<Option<NodeId>> = work.outputs.iter().map(|run| run.child).collect();
        let output = self.write(work.outputs);
        let to_level = work.plan.action.to_level();
        let bytes: u64 = output.nodes.iter().map(|node| node.run.bytes).sum();
        self.written_bytes[usize::from(to_level)] += bytes;
        if matches!(work.plan.action, Move::Divide { .. }) {
            self.divided_bytes += bytes;
        }
        self.moves += 1;
        if matches!(work.plan.action, Move::Merge { one_file: true, to_level: 1.., .. }) {
            self.sets.0 += 1;
            self.sets.1 += output.nodes.len() as u64;
        }
        let mut changes = self.changes(&work.plan.action, output, &children)?;
        let cursors = work.plan.cursors.into_iter();
        changes.extend(cursors.map(|(level, key)| Change::SetCursor { level, key }));
        self.commit(&changes)
    }

    fn changes(
        &self,
        action: &Move,
        output: Output,
        children: &[Option<NodeId>],
    ) -> Result<Vec<Change>> {
        let version = &self.version;
        let sizes = Exact { contents: &self.contents, entry_bytes: self.entry_bytes };
        match action {
            Move::Push { input, to_level } => moves::push(version, input, *to_level, &sizes),
            Move::Merge { inputs, to_level, .. } => {
                moves::merge(version, inputs, *to_level, &output, &sizes)
            }
            Move::Append { input, to_level, file_bytes_max: None, .. } => {
                moves::append_on_top(version, input, *to_level, &output)
            }
            Move::Append { input, to_level, .. } => {
                let runs = output.nodes.into_iter().map(|node| node.run);
                let runs: Vec<_> = children.iter().copied().zip(runs).collect();
                moves::append(version, input, *to_level, &output.files, &runs)
            }
            Move::Divide { input, .. } => {
                let range = moves::input_node(version, input)?.range.clone();
                let runs = output.nodes.into_iter().map(|node| node.run).collect();
                let nodes = moves::tile(&range, runs);
                moves::divide(version, input, &Output { files: output.files, nodes }, &sizes)
            }
            Move::Balance { level, from, to, range } => {
                moves::balance(version, *level, *from, *to, range)
            }
            Move::Drop { inputs } => moves::drop_slices(version, inputs),
        }
    }

    fn commit(&mut self, changes: &[Change]) -> Result<()> {
        let left = self.left(changes);
        let before = std::mem::replace(&mut self.version, Version::empty(1));
        #[cfg(test)]
        self.fail_once(&before, changes)?;
        self.version = before.advance(changes, &mut self.runs)?;
        if self.check_all {
            invariant::check(&self.version, &invariant::Shape::ANY)?;
        }
        // As the engine does; in what-if questions it would be half of the cost.
        if cfg!(debug_assertions) {
            invariant::check_edit(&self.version, changes, &invariant::Shape::ANY)?;
        }
        for run in left.into_iter().filter(|run| self.runs.run(*run).is_none()) {
            self.contents.remove(&run);
        }
        drop(self.runs.obsolete_files().drain());
        self.level0_runs_max = self.level0_runs_max.max(self.version.level0().len());
        Ok(())
    }

    /// Runs that a slice of the present tree may leave by these changes.
    fn left(&self, changes: &[Change]) -> Vec<RunId> {
        let of = |change: &Change| match change {
            Change::RemoveNode { level, node } => {
                self.version.node(*level, *node).map_or_else(Vec::new, |node| node.runs())
            }
            Change::RemoveSlices { runs, .. } => runs.clone(),
            Change::NarrowSlice { run, .. } => vec![*run],
            _ => Vec::new(),
        };
        changes.iter().flat_map(of).collect()
    }

    /// Runs of these sets. Empty sets become nothing.
    fn write(&mut self, sets: Vec<Written>) -> Output {
        let mut output = Output::default();
        let mut last = (FileId(0), 0);
        for Written { file, entries, .. } in sets {
            let (Some(first), Some(end)) = (entries.first(), entries.last()) else { continue };
            let number = self.next_number;
            self.next_number += 1;
            let bytes = entries.len() as u64 * self.entry_bytes;
            let (file, offset) = match file {
                Target::Extend(file, bytes) => (file, bytes),
                Target::Same if last.1 > 0 => last,
                _ => (FileId(number), 0),
            };
            last = (file, offset + bytes);
            let keys = match self.knows_keys && self.policy.counts_keys() {
                true => known_keys(&entries),
                false => KnownKeys::default(),
            };
            let sequences = entries.iter().map(|entry| entry.sequence);
            let run = RunRecord {
                id: RunId(number),
                file,
                offset,
                bytes,
                range: KeyRange::closed(&key_bytes(first.key), &key_bytes(end.key)),
                entries: entries.len() as u64,
                deletes: entries.iter().filter(|entry| entry.is_delete).count() as u64,
                range_deletes: 0,
                sequence_min: sequences.clone().min().unwrap_or_default(),
                sequence_max: sequences.max().unwrap_or_default(),
                expiry: None,
                keys,
            };
            self.file_bytes_max = self.file_bytes_max.max(last.1);
            output.files.push(last);
            output.nodes.push(OutputNode::tight(run));
            self.contents.insert(RunId(number), entries.into());
        }
        output
    }

    /// The newest entry of every key of the inputs, without the tombstones that nothing needs;
    /// `dropped` are the others.
    fn live(&self, inputs: &[Input], to_level: u8, dropped: &mut Vec<Entry>) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for input in inputs {
            let node = self.version.node(input.level, input.node);
            for slice in node.iter().flat_map(|node| &node.slices) {
                if input.takes(slice) {
                    entries.extend(within(&self.contents[&slice.run.id], &slice.range));
                }
            }
        }
        entries.sort_by_key(|entry| (entry.key, std::cmp::Reverse(entry.sequence)));
        entries.dedup_by(|older, newer| {
            let is_superseded = older.key == newer.key;
            dropped.extend(is_superseded.then_some(*older));
            is_superseded
        });
        if entries.iter().any(|entry| entry.is_delete) {
            let mut older = OlderData::new(&self.version, inputs, to_level);
            entries.retain(|entry| !entry.is_delete || older.may_hold(&key_bytes(entry.key)));
        }
        entries
    }

    fn merge(&self, entries: Vec<Entry>, to_level: u8, cut: Cut) -> Vec<Written> {
        if to_level == 0 {
            return vec![Written::new(entries)];
        }
        let mut cutter = Cutter::new(&self.version, to_level, cut);
        let mut outputs: Vec<Written> = Vec::new();
        // Keys before this one pass no node below.
        let mut quiet_until = 0;
        for entry in entries {
            let run = outputs.last().map_or(0, |output| output.entries.len() as u64);
            let bytes = run * self.entry_bytes;
            let may_end = bytes >= cut.table_bytes_max || u64::from(entry.key) >= quiet_until;
            let ends = may_end && cutter.ends_before(&key_bytes(entry.key), bytes);
            if may_end {
                quiet_until = cutter.next_end().map_or(1 << 32, |end| first_from(end));
            }
            match outputs.last_mut() {
                Some(output) if !ends => output.entries.push(entry),
                _ => outputs.push(Written::new(vec![entry])),
            }
        }
        outputs
    }

    fn append(
        &self,
        entries: &[Entry],
        input: &Input,
        to_level: u8,
        file_bytes_max: Option<u64>,
        parts: u32,
    ) -> Vec<Written> {
        let children =
            moves::children(&self.version, &self.runs, input, to_level).unwrap_or_default();
        let part_bytes = entries.len().div_ceil(parts.max(1) as usize) as u64 * self.entry_bytes;
        let mut outputs = Vec::new();
        for Child { node, range, file } in children {
            let new_bytes_max = if node.is_some() { u64::MAX } else { part_bytes };
            let file = file.filter(|_| file_bytes_max.is_some());
            let file_bytes_max = file_bytes_max.unwrap_or(u64::MAX);
            let new_room = file_bytes_max.min(new_bytes_max);
            let room = file.map_or(new_room, |(_, bytes)| file_bytes_max.saturating_sub(bytes));
            let count = |room: u64| (room / self.entry_bytes.max(1)) as usize;
            let mine = within(entries, &range);
            let (first, rest) = mine.split_at(count(room).min(mine.len()));
            let target = file.map_or(Target::New, |(file, bytes)| Target::Extend(file, bytes));
            let rest = rest.chunks(count(new_room).max(1)).map(|chunk| (Target::New, chunk));
            for (file, entries) in std::iter::once((target, first)).chain(rest) {
                outputs.push(Written { child: node, file, entries: entries.to_vec() });
            }
        }
        outputs.retain(|output| !output.entries.is_empty());
        outputs
    }

    /// How many slices hold a key that is drawn from all numbers, on average: what a read of it
    /// asks.
    pub fn slices_for_a_key(&self) -> f64 {
        let width = |range: &KeyRange| {
            let numbers = numbers(range);
            numbers.end.saturating_sub(numbers.start) as f64
        };
        self.version.slices().map(|slice| width(&slice.range)).sum::<f64>() / 2f64.powi(32)
    }

    /// How many slices a read of `key` asks until it is found, filters aside, and whether it is.
    pub fn asked(&self, key: u32) -> (usize, bool) {
        let bytes = key_bytes(key);
        let slices = self.version.path(&bytes).flat_map(|node| &node.slices);
        let mut asked = 0;
        for slice in slices.filter(|slice| slice.range.contains(&bytes)) {
            asked += 1;
            let entries = &self.contents[&slice.run.id];
            if let Ok(at) = entries.binary_search_by_key(&key, |entry| entry.key) {
                return (asked, !entries[at].is_delete);
            }
        }
        (asked, false)
    }

    /// How many slices hold the range of `key`: what a scan from there merges.
    pub fn slices_of(&self, key: u32) -> usize {
        let bytes = key_bytes(key);
        let slices = self.version.path(&bytes).flat_map(|node| &node.slices);
        slices.filter(|slice| slice.range.contains(&bytes)).count()
    }

    /// Entries of `key`, tombstones included: a cursor steps over all of them.
    pub fn entries_of(&self, key: u32) -> usize {
        let bytes = key_bytes(key);
        let slices = self.version.path(&bytes).flat_map(|node| &node.slices);
        let shown = slices.filter(|slice| slice.range.contains(&bytes));
        let has = |slice: &&Slice| {
            self.contents[&slice.run.id].binary_search_by_key(&key, |entry| entry.key).is_ok()
        };
        shown.filter(has).count()
    }

    /// What a read of `key` finds: level by level the one node, its stack newest first.
    pub fn get(&self, key: u32) -> Option<Entry> {
        let bytes = key_bytes(key);
        self.version
            .path(&bytes)
            .flat_map(|node| &node.slices)
            .filter(|slice| slice.range.contains(&bytes))
            .find_map(|slice| {
                let entries = &self.contents[&slice.run.id];
                entries.binary_search_by_key(&key, |entry| entry.key).ok().map(|at| entries[at])
            })
    }
}

/// What the writer of a run knows of its keys.
fn known_keys(entries: &[Entry]) -> KnownKeys {
    let mut sketch = KeySketch::default();
    entries.iter().for_each(|entry| sketch.add(hash64(&entry.key.to_be_bytes())));
    let count = entries.chunk_by(|a, b| a.key == b.key).count();
    KnownKeys::of(sketch, count as u64)
}

#[cfg(test)]
impl Store {
    /// An edit that fails to become durable leaves the table as it was.
    fn fail_once(&mut self, before: &Version, changes: &[Change]) -> Result<()> {
        let state = |runs: &RunTable| {
            let shown = before.slices().map(|slice| {
                let file = &slice.run.file;
                (
                    slice.run.id,
                    runs.run(slice.run.id).is_some(),
                    runs.slices_in(file.id),
                    file.bytes(),
                )
            });
            (runs.runs_count(), shown.collect::<Vec<_>>())
        };
        let expected = state(&self.runs);
        let (after, edit) = before.try_apply(changes, &mut self.runs)?;
        drop(after);
        self.runs.undo(edit);
        assert_eq!(state(&self.runs), expected, "after {changes:?} was taken back");
        Ok(())
    }
}
