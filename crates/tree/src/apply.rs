//! Applying an edit: from one version to the next.
//!
//! Invariants: a version that comes out has nodes that are disjoint and in order, and slices inside
//! their runs and nodes. What an edit says wrongly is a `Corruption` error that names the change;
//! then neither the version nor the table has changed.
//!
//! Costs: one copy of the node pointers of each touched level; untouched levels are shared.

use crate::edit::{Change, RunRecord, SegmentChange, SliceRecord};
use crate::run_table::{RunTable, Shown};
use crate::segments::Segment;
use crate::version::{FileRef, LEVEL0_NODE, Level, Node, NodeId, Run, Slice, Version};
use base::cause::LEVELS_MAX;
use base::{DatabaseId, Error, ErrorKind, FileId, KeyRange, Result, RunId};
use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

impl Version {
    /// The version after `changes`. `runs` must know the runs of this version, and afterwards knows
    /// those of the new one.
    pub fn apply(&self, changes: &[Change], runs: &mut RunTable) -> Result<Version> {
        self.clone().advance(changes, runs)
    }

    /// As [`Version::apply`], for an edit that may still fail: [`RunTable::undo`] makes the table
    /// know the runs of this version again.
    pub fn try_apply(&self, changes: &[Change], runs: &mut RunTable) -> Result<(Version, Undo)> {
        self.clone().changed(changes, runs)
    }

    /// The same, for a version that is no longer needed: what no other version shares is changed in
    /// place.
    pub fn advance(self, changes: &[Change], runs: &mut RunTable) -> Result<Version> {
        self.changed(changes, runs).map(|(version, _)| version)
    }

    fn changed(self, changes: &[Change], runs: &mut RunTable) -> Result<(Version, Undo)> {
        let mut apply = Apply::new(self, runs);
        for (index, change) in changes.iter().enumerate() {
            apply.change(change).map_err(|problem| failure(index, change, &problem))?;
        }
        apply.finish()
    }
}

/// Why a change does not fit, in words.
type Problem = String;

type Fit<T> = std::result::Result<T, Problem>;

fn failure(index: usize, change: &Change, problem: &str) -> Error {
    let name = match change {
        Change::File { file, .. } => format!("file {file}"),
        Change::IngestedFile { file, .. } => format!("ingested file {file}"),
        Change::AddRun(run) => format!("add run {}", run.id),
        Change::AddNode { level, node, .. } => format!("add node {} at level {level}", node.0),
        Change::RemoveNode { level, node } => format!("remove node {} at level {level}", node.0),
        Change::PushSlices { level, node, .. } => {
            format!("push slices onto node {} at level {level}", node.0)
        }
        Change::RemoveSlices { level, node, .. } => {
            format!("remove slices from node {} at level {level}", node.0)
        }
        Change::NarrowSlice { level, node, run, .. } => {
            format!("narrow run {run} in node {} at level {level}", node.0)
        }
        Change::SetRange { level, node, .. } => {
            format!("set the range of node {} at level {level}", node.0)
        }
        Change::SetFlushed { sequence } => format!("flushed up to {sequence}"),
        Change::AllowExpiry => "allow expiry".to_string(),
        Change::SetCursor { level, .. } => format!("set the cursor of level {level}"),
        Change::Segment { file, change } => format!("segment {file}: {change:?}"),
    };
    let message = format!("an edit does not fit the tree: change {index} ({name}): {problem}");
    Error::new(ErrorKind::Corruption, message)
}

/// A level under change.
struct LevelChange {
    ids: Vec<NodeId>,
    nodes: Vec<Arc<Node>>,
    touched: BTreeSet<NodeId>,
    /// Bytes of the nodes that are not touched.
    bytes: u64,
    /// Where a node was found last.
    near: Cell<usize>,
}

struct FileChange {
    file: Arc<FileRef>,
    bytes: u64,
}

struct Apply<'a> {
    /// What it began with, without the levels that change.
    version: Version,
    table: &'a mut RunTable,
    levels: Vec<Option<LevelChange>>,
    files: HashMap<FileId, FileChange>,
    runs: HashMap<RunId, Arc<Run>>,
    counts: HashMap<RunId, isize>,
}

impl<'a> Apply<'a> {
    fn new(version: Version, table: &'a mut RunTable) -> Apply<'a> {
        Apply {
            levels: version.levels.iter().map(|_| None).collect(),
            version,
            table,
            files: HashMap::new(),
            runs: HashMap::new(),
            counts: HashMap::new(),
        }
    }

    fn change(&mut self, change: &Change) -> Fit<()> {
        match change {
            Change::File { file, bytes } => self.file(*file, *bytes),
            Change::IngestedFile { file, bytes, identity } => {
                self.ingested_file(*file, *bytes, *identity)
            }
            Change::AddRun(record) => self.add_run(record),
            Change::AddNode { level, node, range, slices } => {
                self.add_node(*level, *node, range, slices)
            }
            Change::RemoveNode { level, node } => self.remove_node(*level, *node),
            Change::PushSlices { level, node, slices } => {
                let mut stack = self.slices(slices)?;
                let node = self.node(*level, *node)?;
                stack.append(&mut node.slices);
                node.slices = stack;
                Ok(())
            }
            Change::RemoveSlices { level, node, runs } => self.remove_slices(*level, *node, runs),
            Change::NarrowSlice { level, node, run, to } => self.narrow(*level, *node, *run, to),
            Change::SetRange { level, node, range } => self.set_range(*level, *node, range),
            Change::SetFlushed { sequence } => {
                self.version.flushed_sequence = self.version.flushed_sequence.max(*sequence);
                Ok(())
            }
            Change::AllowExpiry => {
                self.version.may_expire = true;
                Ok(())
            }
            Change::SetCursor { level, key } => {
                self.level(*level)?;
                self.version.cursors[usize::from(*level)] = key.clone();
                Ok(())
            }
            Change::Segment { file, change } => self.segment(*file, change),
        }
    }

    fn segment(&mut self, file: FileId, change: &SegmentChange) -> Fit<()> {
        match *change {
            SegmentChange::Add { group, bytes, is_provisional, is_in_cold_store } => {
                let file = self.table.values_file(file, bytes);
                let segment = Segment::new(file, group, bytes);
                self.version.segments.add(Segment { is_provisional, is_in_cold_store, ..segment })
            }
            SegmentChange::Confirm => self.version.segments.confirm(file),
            SegmentChange::Grow(bytes) => self.version.segments.grow(file, bytes),
            SegmentChange::Bury(bytes) => {
                self.version.segments.bury(file, bytes);
                Ok(())
            }
            SegmentChange::Retire(sequence) => self.version.segments.retire(file, sequence),
            SegmentChange::Remove => self.version.segments.remove(file),
        }
    }

    fn file(&mut self, id: FileId, bytes: u64) -> Fit<()> {
        let file = match self.files.get(&id) {
            Some(change) => change.file.clone(),
            None => self.table.file(id),
        };
        let known = self.files.get(&id).map_or(file.bytes(), |change| change.bytes);
        if bytes < known {
            return Err(format!("it has {known} bytes already and cannot shrink to {bytes}"));
        }
        self.files.insert(id, FileChange { file, bytes });
        Ok(())
    }

    fn ingested_file(&mut self, id: FileId, bytes: u64, identity: DatabaseId) -> Fit<()> {
        let file = self.table.ingested_file(id, identity);
        if file.identity != Some(identity) || file.bytes() > 0 || self.files.contains_key(&id) {
            return Err("there is a file of this number".to_string());
        }
        self.files.insert(id, FileChange { file, bytes });
        Ok(())
    }

    fn add_run(&mut self, record: &RunRecord) -> Fit<()> {
        let file = self
            .files
            .get(&record.file)
            .ok_or_else(|| format!("the edit does not name its file {}", record.file))?;
        let end = record.offset.checked_add(record.bytes);
        if end.is_none_or(|end| end > file.bytes) {
            return Err(format!(
                "its {} bytes from byte {} do not lie in file {} of {} bytes",
                record.bytes, record.offset, record.file, file.bytes
            ));
        }
        if record.range.is_empty() || record.sequence_min > record.sequence_max {
            return Err("its key range or its sequence range is empty".to_string());
        }
        if file.file.identity.is_some() && record.sequence_min != record.sequence_max {
            return Err("a run of an ingested file has one sequence number".to_string());
        }
        if self.runs.contains_key(&record.id) || self.table.run(record.id).is_some() {
            return Err("there is a run of this number".to_string());
        }
        let run = record.in_file(file.file.clone());
        self.runs.insert(record.id, Arc::new(run));
        Ok(())
    }

    fn add_node(
        &mut self,
        level: u8,
        id: NodeId,
        range: &KeyRange,
        slices: &[SliceRecord],
    ) -> Fit<()> {
        if level == 0 {
            return Err("level 0 has its one node".to_string());
        }
        let slices = self.slices(slices)?;
        self.version.next_node = self.version.next_node.max(id.0.saturating_add(1));
        let change = self.level(level)?;
        if id == LEVEL0_NODE || change.ids.contains(&id) {
            return Err("there is a node of this number".to_string());
        }
        change.insert(Node::new(id, range.clone(), slices));
        Ok(())
    }

    fn remove_node(&mut self, level: u8, id: NodeId) -> Fit<()> {
        if level == 0 {
            return Err("level 0 keeps its node".to_string());
        }
        let node = self.level(level)?.take(id).ok_or("there is no such node")?;
        for slice in &node.slices {
            self.forget(&slice.run);
        }
        Ok(())
    }

    fn remove_slices(&mut self, level: u8, id: NodeId, runs: &[RunId]) -> Fit<()> {
        let node = self.node(level, id)?;
        for run in runs {
            if !node.slices.iter().any(|slice| slice.run.id == *run) {
                return Err(format!("its stack has no slice of run {run}"));
            }
        }
        let (gone, left) =
            std::mem::take(&mut node.slices).into_iter().partition(|s| runs.contains(&s.run.id));
        node.slices = left;
        let gone: Vec<Slice> = gone;
        for slice in &gone {
            self.forget(&slice.run);
        }
        Ok(())
    }

    fn narrow(&mut self, level: u8, id: NodeId, run: RunId, to: &[SliceRecord]) -> Fit<()> {
        let parts = self.slices(to)?;
        let node = self.node(level, id)?;
        let at = node
            .slices
            .iter()
            .position(|slice| {
                slice.run.id == run && parts.iter().all(|part| slice.range.covers(&part.range))
            })
            .ok_or_else(|| format!("its stack has no slice of run {run} that covers the parts"))?;
        if parts.iter().any(|part| part.run.id != run) {
            return Err("a part shows another run".to_string());
        }
        let whole = node.slices.splice(at..=at, parts).collect::<Vec<_>>();
        for slice in &whole {
            self.forget(&slice.run);
        }
        Ok(())
    }

    fn set_range(&mut self, level: u8, id: NodeId, range: &KeyRange) -> Fit<()> {
        if level == 0 {
            return Err("level 0's node answers for all keys".to_string());
        }
        let change = self.level(level)?;
        let node = change.take(id).ok_or("there is no such node")?;
        let mut node = Arc::unwrap_or_clone(node);
        node.range = range.clone();
        change.insert(node);
        Ok(())
    }

    /// The level, ready for changes; the tree grows to it.
    fn level(&mut self, level: u8) -> Fit<&mut LevelChange> {
        if level >= LEVELS_MAX {
            return Err(format!("a tree has at most {LEVELS_MAX} levels"));
        }
        let index = usize::from(level);
        if self.levels.len() <= index {
            self.levels.resize_with(index + 1, || None);
            self.version.levels.resize_with(index + 1, Level::default);
            self.version.cursors.resize(index + 1, None);
        }
        let before = &mut self.version.levels[index];
        Ok(self.levels[index].get_or_insert_with(|| LevelChange::new(std::mem::take(before))))
    }

    fn node(&mut self, level: u8, id: NodeId) -> Fit<&mut Node> {
        self.level(level)?.node(id).ok_or_else(|| "there is no such node".to_string())
    }

    fn slices(&mut self, records: &[SliceRecord]) -> Fit<Vec<Slice>> {
        records.iter().map(|record| self.slice(record)).collect()
    }

    fn slice(&mut self, record: &SliceRecord) -> Fit<Slice> {
        let run = match self.runs.get(&record.run) {
            Some(run) => run.clone(),
            None => {
                let run = self.table.run(record.run);
                let run = run.ok_or_else(|| format!("run {} is not known", record.run))?;
                self.runs.insert(run.id, run.clone());
                run
            }
        };
        if record.range.is_empty() || !run.range.covers(&record.range) {
            return Err(format!(
                "the slice {:?} is empty or not in run {} {:?}",
                record.range, run.id, run.range
            ));
        }
        if record.bytes > run.bytes {
            return Err(format!(
                "a slice of {} bytes of run {} of {} bytes",
                record.bytes, run.id, run.bytes
            ));
        }
        *self.counts.entry(run.id).or_default() += 1;
        Ok(Slice { run, range: record.range.clone(), bytes: record.bytes })
    }

    fn forget(&mut self, run: &Arc<Run>) {
        self.runs.entry(run.id).or_insert_with(|| run.clone());
        *self.counts.entry(run.id).or_default() -= 1;
    }

    fn finish(self) -> Result<(Version, Undo)> {
        for (level, change) in self.levels.iter().enumerate() {
            if let Some(change) = change {
                change.check(level)?;
            }
        }
        let mut version = self.version;
        let bytes_before = |change: &FileChange| (change.file.clone(), change.file.bytes());
        let files = self.files.values().map(bytes_before).collect();
        for FileChange { file, bytes } in self.files.values() {
            if self.table.shows(file.id) {
                version.file_bytes += bytes.saturating_sub(file.bytes());
            }
            file.grow(*bytes);
        }
        for (id, count) in &self.counts {
            let run = &self.runs[id];
            match self.table.count(run, *count) {
                Some(Shown::Begins) => version.file_bytes += run.file.bytes(),
                Some(Shown::Ends) => version.file_bytes -= run.file.bytes(),
                None => {}
            }
        }
        for (level, change) in version.levels.iter_mut().zip(self.levels) {
            if let Some(change) = change {
                *level = change.finish();
            }
        }
        Ok((version, Undo { files, runs: self.runs, counts: self.counts }))
    }
}

/// What takes an edit back from a [`RunTable`].
pub struct Undo {
    /// Bytes that each file had before.
    files: Vec<(Arc<FileRef>, u64)>,
    runs: HashMap<RunId, Arc<Run>>,
    counts: HashMap<RunId, isize>,
}

impl RunTable {
    /// Takes back the last edit, which failed to become durable. The version that came of it must
    /// be dropped.
    pub fn undo(&mut self, edit: Undo) {
        for (id, count) in &edit.counts {
            self.count(&edit.runs[id], -count);
        }
        for (file, bytes) in &edit.files {
            file.shrink_back(*bytes);
        }
    }
}

impl LevelChange {
    fn new(level: Level) -> LevelChange {
        let (nodes, ids, bytes) = level.into_parts();
        LevelChange { ids, nodes, touched: BTreeSet::new(), bytes, near: Cell::new(0) }
    }

    /// The place of a node. Those of one edit stand together as a rule.
    fn find(&self, id: NodeId) -> Option<usize> {
        let near = self.near.get().min(self.ids.len());
        let (before, from) = self.ids.split_at(near);
        let behind = from.iter().position(|&other| other == id).map(|at| near + at);
        let at = behind.or_else(|| before.iter().rposition(|&other| other == id))?;
        self.near.set(at);
        Some(at)
    }

    fn node(&mut self, id: NodeId) -> Option<&mut Node> {
        let at = self.find(id)?;
        self.touch(at);
        let node = Arc::make_mut(&mut self.nodes[at]);
        node.keys.take();
        Some(node)
    }

    fn take(&mut self, id: NodeId) -> Option<Arc<Node>> {
        let at = self.find(id)?;
        self.touch(at);
        self.ids.remove(at);
        Some(self.nodes.remove(at))
    }

    fn touch(&mut self, at: usize) {
        if self.touched.insert(self.ids[at]) {
            self.bytes -= self.nodes[at].bytes();
        }
    }

    fn finish(self) -> Level {
        let touched = self.touched.iter().filter_map(|&id| self.find(id));
        let bytes: u64 = touched.map(|at| self.nodes[at].bytes()).sum();
        Level::from_parts(self.nodes, self.ids, self.bytes + bytes)
    }

    fn insert(&mut self, node: Node) {
        let at = self.nodes.partition_point(|other| other.range.start <= node.range.start);
        self.touched.insert(node.id);
        self.ids.insert(at, node.id);
        self.nodes.insert(at, Arc::new(node));
    }

    /// The touched nodes fit their neighbours, and their slices fit them.
    fn check(&self, level: usize) -> Result<()> {
        let problem = |node: &Node, what: String| {
            let message = format!(
                "an edit does not fit the tree: node {} {:?} at level {level}: {what}",
                node.id.0, node.range
            );
            Err(Error::new(ErrorKind::Corruption, message))
        };
        for id in &self.touched {
            let Some(at) = self.find(*id) else { continue };
            let node = &self.nodes[at];
            if node.range.is_empty() {
                return problem(node, "its range is empty".to_string());
            }
            let before = at.checked_sub(1).map(|before| &self.nodes[before]);
            for other in before.into_iter().chain(self.nodes.get(at + 1)) {
                if node.range.overlaps(&other.range) {
                    let what = format!("it overlaps node {} {:?}", other.id.0, other.range);
                    return problem(node, what);
                }
            }
            if let Some(slice) = node.slices.iter().find(|s| !node.range.covers(&s.range)) {
                let what = format!("a slice {:?} of run {}", slice.range, slice.run.id);
                return problem(node, format!("{what} lies outside"));
            }
        }
        Ok(())
    }
}
