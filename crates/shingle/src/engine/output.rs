//! The output of a rewrite: runs in table files, cut where the move says.
//!
//! Invariants:
//! - Cuts are between user keys.
//! - Output runs tile the rewritten key range, so range tombstones are cut at the same places and
//!   none is lost.
//! - Every file made here is listed until the edit that refers to it is durable, so that a failure
//!   removes it.

use crate::engine::context::Context;
use crate::engine::events::Events;
use crate::engine::values::writers::{TakenSpace, WrittenSegment};
use crate::event::Event;
use crate::read::table_cache::RunHandle;
use crate::reduce::Sink;
use base::key::user_key;
use base::{Cause, ErrorKind, FileId, Key, KeyRange, Result};
use media::{FileHint, FileName, FileStore};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use table::range_delete::RangeDeletes;
use table::{EndedTable, RunSummary, TableOptions, TablePlace, TableWriter};
use tree::moves::Cutter;
use tree::{Change, NodeId, SegmentChange};

/// Where a rewrite's output is cut.
pub(crate) enum OutputRule {
    /// At table sizes and overlaps. `one_file`: all runs in one file, one after another.
    Cut { cutter: Cutter, one_file: bool },
    /// At the ranges of the nodes below; each run goes to the end of its node's file.
    Children(Vec<ChildTarget>),
}

/// A node below that receives a run.
#[derive(Clone, Debug)]
pub(crate) struct ChildTarget {
    pub node: Option<NodeId>,
    pub range: KeyRange,
    /// Its file and the bytes in it that the manifest vouches for; `None`: a new file.
    pub file: Option<(FileId, u64)>,
    /// Maximum bytes of a run in that file, and in a new one.
    pub run_bytes_max: u64,
    pub new_run_bytes_max: u64,
}

/// Maximum bytes that end a block and a run, beyond those that the writer counts.
pub(crate) const RUN_END_BYTES: u64 = 512;

/// A run that was written, and the node below that receives it.
#[derive(Clone, Debug)]
pub(crate) struct WrittenRun {
    pub child: Option<NodeId>,
    pub file: FileId,
    pub summary: RunSummary,
    /// Keeps the writer's data about the run until the tree has it.
    #[expect(dead_code, reason = "held only so that it lives on")]
    pub handle: Arc<RunHandle>,
}

/// The output of a part of a rewrite.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    /// In key order.
    pub runs: Vec<WrittenRun>,
    /// Files that exist now, or grew, and their bytes.
    pub files: Vec<(FileId, u64)>,
    /// Files that did not exist before.
    pub created: Vec<FileId>,
    /// Value segments that exist now, or grew.
    pub segments: Vec<WrittenSegment>,
    /// Space that was taken for them.
    pub space: Option<Arc<TakenSpace>>,
    /// Bytes of value records that no entry refers to any more, by segment.
    pub buried: BTreeMap<FileId, u64>,
}

impl WrittenRun {
    /// The file's places on the device, as far as the store knows.
    pub(crate) fn places(&self, store: &dyn FileStore) -> Vec<Range<u64>> {
        let run = &self.summary.run;
        let (name, range) = (FileName::table(self.file), run.offset..run.offset + run.bytes);
        store.device_map().map_or_else(Vec::new, |map| map.places(name, range))
    }
}

impl Written {
    /// Removes files that no edit ever referred to. In a poisoned database, the edit may be on the
    /// medium all the same: its files stay, and the next opening decides.
    pub(crate) fn remove(&self, context: &Context) {
        if context.poisoned_by().is_some() {
            return;
        }
        let tables = self.created.iter().map(|&file| FileName::table(file));
        let new = self.segments.iter().filter(|segment| segment.is_new);
        for name in tables.chain(new.map(|segment| FileName::value(segment.file))) {
            // What cannot be removed now is removed at the next opening.
            let _ = context.store.remove(name);
        }
    }

    pub(crate) fn bury(&mut self, more: &BTreeMap<FileId, u64>) {
        for (&file, &bytes) in more {
            *self.buried.entry(file).or_default() += bytes;
        }
    }

    /// The changes to value segments.
    pub(crate) fn value_changes(&self) -> Vec<Change> {
        let written = self.segments.iter().map(|segment| segment.change(false));
        let buried = self.buried.iter().map(|(&file, &bytes)| {
            let change = SegmentChange::Bury(bytes);
            Change::Segment { file, change }
        });
        written.chain(buried).collect()
    }

    /// Reports the table files that did not exist before, after they became part of the tree.
    pub(crate) fn report_created(&self, events: &Events, job: u64, keyspace: &str, to_level: u8) {
        for (file, bytes) in self.files.iter().filter(|(file, _)| self.created.contains(file)) {
            events.add(Event::TableFileCreation {
                job,
                keyspace: keyspace.to_string(),
                file_number: file.0,
                file_size: *bytes,
                output_level: to_level.into(),
            });
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.summary.run.bytes).sum()
    }
}

/// Writes the kept entries of one part.
pub(crate) struct OutputWriter {
    context: Arc<Context>,
    cause: Cause,
    options: TableOptions,
    hint: FileHint,
    rule: OutputRule,
    range_deletes: RangeDeletes,
    /// Keys from this one on are not yet in a finished run.
    begin: Key,
    end: Option<Key>,
    child: usize,
    file: Option<(FileId, TableWriter)>,
    /// Files that are complete, and not durable yet.
    unsynced: Vec<EndedTable>,
    in_run: bool,
    last_key: Vec<u8>,
    pub written: Written,
}

impl OutputWriter {
    pub(crate) fn new(
        context: Arc<Context>,
        cause: Cause,
        options: TableOptions,
        hint: FileHint,
        rule: OutputRule,
        range: &KeyRange,
        range_deletes: RangeDeletes,
    ) -> OutputWriter {
        OutputWriter {
            context,
            cause,
            options,
            hint,
            rule,
            range_deletes: range_deletes.clip(range),
            begin: range.start.clone(),
            end: range.end.clone(),
            child: 0,
            file: None,
            unsynced: Vec::new(),
            in_run: false,
            last_key: Vec::new(),
            written: Written::default(),
        }
    }

    /// Approximate memory, in bytes, that the file being written holds until its run ends.
    pub(crate) fn buffer_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, |(_, writer)| writer.memory_bytes())
    }

    /// Ends the current run before `key`, with an entry of `entry_bytes`, if the rule says so.
    fn cut_before(&mut self, key: &[u8], entry_bytes: u64) -> Result<()> {
        match &mut self.rule {
            OutputRule::Cut { cutter, .. } => {
                let run_bytes = match &self.file {
                    Some((_, writer)) if self.in_run => writer.run_bytes(),
                    _ => 0,
                };
                if cutter.ends_before(key, run_bytes) {
                    self.finish_run(Some(key.into()))?;
                }
            }
            OutputRule::Children(_) => {
                self.pass_children(key)?;
                self.bound_run(key, entry_bytes)?;
            }
        }
        Ok(())
    }

    /// Advances to the child whose range contains `key`, and ends the runs of the children before
    /// it.
    fn pass_children(&mut self, key: &[u8]) -> Result<()> {
        loop {
            let OutputRule::Children(children) = &self.rule else { return Ok(()) };
            let Some(child) = children.get(self.child) else { return Ok(()) };
            if child.range.is_before_end(key) {
                return Ok(());
            }
            let end = child.range.end.clone();
            self.finish_run(end)?;
            self.child += 1;
        }
    }

    /// Ends a file that has no space for the entry; a new file takes it.
    fn bound_run(&mut self, key: &[u8], entry_bytes: u64) -> Result<()> {
        let run_bytes = match &self.file {
            Some((_, writer)) if self.in_run => writer.run_bytes(),
            _ => 0,
        };
        let OutputRule::Children(children) = &mut self.rule else { return Ok(()) };
        let Some(child) = children.get_mut(self.child) else { return Ok(()) };
        let bytes = run_bytes.saturating_add(entry_bytes).saturating_add(RUN_END_BYTES);
        if bytes <= child.run_bytes_max {
            return Ok(());
        }
        child.file = None;
        child.run_bytes_max = child.new_run_bytes_max;
        if run_bytes > 0 { self.finish_run(Some(key.into())) } else { Ok(()) }
    }

    fn begin_run(&mut self) -> Result<()> {
        if self.file.is_none() {
            self.file = Some(self.open_file()?);
        }
        if let Some((_, writer)) = &mut self.file {
            writer.begin_run(self.context.new_run(), &self.options)?;
            self.in_run = true;
        }
        Ok(())
    }

    fn open_file(&mut self) -> Result<(FileId, TableWriter)> {
        if let Some(opened) = self.extend_childs_file()? {
            return Ok(opened);
        }
        let file = self.context.new_file();
        let append = self.context.store.create(FileName::table(file), &self.hint)?;
        self.written.created.push(file);
        let place = TablePlace { database: self.context.database, file };
        Ok((file, TableWriter::create(append, place, self.cause)?))
    }

    /// Continues the file of the node below. `None`: it has none, or a checkpoint shares it.
    fn extend_childs_file(&mut self) -> Result<Option<(FileId, TableWriter)>> {
        let OutputRule::Children(children) = &mut self.rule else { return Ok(None) };
        let Some(child) = children.get_mut(self.child) else { return Ok(None) };
        let Some((file, bytes)) = child.file else { return Ok(None) };
        self.context.read.tables.check_itself(file, self.cause)?;
        match self.context.extend_file(FileName::table(file), bytes, &self.hint) {
            Ok(append) => {
                let place = TablePlace { database: self.context.database, file };
                Ok(Some((file, TableWriter::extend(append, place, self.cause)?)))
            }
            Err(error) if error.kind() == ErrorKind::Shared => {
                child.file = None;
                child.run_bytes_max = child.new_run_bytes_max;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Ends the current run at `end`, with the range tombstones up to there. Without entries and
    /// tombstones there is no run.
    fn finish_run(&mut self, end: Option<Key>) -> Result<()> {
        let range = KeyRange { start: self.begin.clone(), end: end.clone() };
        let deletes = self.range_deletes.clip(&range);
        self.begin = end.unwrap_or_else(|| Key::from([]));
        if !self.in_run {
            if deletes.is_empty() {
                return Ok(());
            }
            self.begin_run()?;
        }
        let Some((file, mut writer)) = self.file.take() else { return Ok(()) };
        writer.set_range_deletes(deletes)?;
        let end = writer.finish_run()?;
        self.in_run = false;
        let child = match &self.rule {
            OutputRule::Children(children) => children.get(self.child).and_then(|c| c.node),
            OutputRule::Cut { .. } => None,
        };
        let summary = end.summary().clone();
        let handle = self.context.read.tables.written(file, end);
        self.written.runs.push(WrittenRun { child, file, summary, handle });
        if matches!(self.rule, OutputRule::Cut { one_file: true, .. }) {
            self.file = Some((file, writer));
            return Ok(());
        }
        self.end_file(file, writer)
    }

    /// The file is complete. It becomes durable together with others.
    fn end_file(&mut self, file: FileId, writer: TableWriter) -> Result<()> {
        let mut ended = writer.end()?;
        self.written.files.push((file, ended.bytes()));
        let is_last = self.unsynced.len() + 1 >= self.context.store.files_synced_together();
        if !is_last {
            ended.begin_sync()?;
        }
        self.unsynced.push(ended);
        if is_last { self.sync_files() } else { Ok(()) }
    }

    fn sync_files(&mut self) -> Result<()> {
        self.unsynced.drain(..).try_for_each(EndedTable::sync)
    }

    /// Ends the last run. Everything written is durable afterwards.
    pub(crate) fn finish(&mut self) -> Result<()> {
        loop {
            let child_end = match &self.rule {
                OutputRule::Children(children) if self.child + 1 < children.len() => {
                    children[self.child].range.end.clone()
                }
                _ => break,
            };
            self.finish_run(child_end)?;
            self.child += 1;
        }
        self.finish_run(self.end.clone())?;
        if let Some((file, writer)) = self.file.take() {
            self.end_file(file, writer)?;
        }
        self.sync_files()
    }
}

impl Sink for OutputWriter {
    fn entry(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        let key = user_key(internal_key);
        if self.last_key != key {
            self.cut_before(key, (internal_key.len() + value.len()) as u64)?;
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
        }
        if !self.in_run {
            self.begin_run()?;
        }
        match &mut self.file {
            Some((_, writer)) => writer.add(internal_key, value),
            None => Ok(()),
        }
    }
}
