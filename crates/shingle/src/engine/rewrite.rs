//! Rewrites: the one loop behind flush, merge, append and divide.
//!
//! A rewrite merges memtables or slices, applies the rule of `reduce`, and writes runs. It is cut
//! into parts by key range that threads work on side by side, and each part into bounded steps.
//! When the last part is done, the move's edit is made against the version of that moment.

use super::output::{OutputRule, OutputWriter, Written};
use crate::engine::Engine;
use crate::keyspace::KeyspaceState;
use crate::memtable::Memtable;
use crate::read::chain::ChainIter;
use crate::read::source::{MemtableIter, SliceIter, Source};
use crate::read::view::{MemtableView, Runs};
use crate::reduce::{Counts, Reducer};
use base::key::SequenceNumber;
use base::{Cause, KeyRange, Result};
use media::FileHint;
use std::sync::Arc;
use table::range_delete::RangeDeletes;
use table::{EntryIter, MergingIter};
use table::{IterOptions, TableOptions};
use tree::Slice;
use tree::moves::OlderData;

/// Of runs that lie together, so many bytes are read at a time.
const TOGETHER_BYTES_MAX: u64 = 4 << 20;

/// What a part of a rewrite reads and writes.
pub(crate) struct PartSpec {
    pub keyspace: Arc<KeyspaceState>,
    pub cause: Cause,
    pub memtables: Vec<Arc<Memtable>>,
    pub slices: Vec<Slice>,
    /// The keys of this part.
    pub range: KeyRange,
    /// Ascending.
    pub snapshots: Vec<SequenceNumber>,
    pub older: OlderData,
    pub options: TableOptions,
    pub hint: FileHint,
    pub rule: OutputRule,
}

/// A part under way.
pub(crate) struct Part {
    inputs: MergingIter<Source>,
    reducer: Reducer,
    output: OutputWriter,
}

/// Whether a step left work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Done,
}

impl Part {
    pub(crate) fn begin(engine: &Arc<Engine>, spec: PartSpec) -> Result<Part> {
        let mut sources = Vec::new();
        let mut range_deletes = Vec::new();
        for memtable in &spec.memtables {
            sources.push(Source::Memtable(MemtableIter::new(memtable)));
            let deletes = MemtableView::new(memtable.clone()).range_deletes();
            range_deletes.extend(deletes.map(|deletes| deletes.as_ref().clone()));
        }
        let slices: Vec<&Slice> =
            spec.slices.iter().filter(|slice| slice.range.overlaps(&spec.range)).collect();
        for together in slices.chunk_by(|before, next| follows(before, next)) {
            sources.extend(chain(engine, &spec, together, &mut range_deletes)?);
        }
        let deletes = RangeDeletes::merge(&range_deletes);
        let kept = needed_range_deletes(deletes.clone(), &spec);
        let operator = spec.keyspace.operator.clone();
        let mut inputs = MergingIter::new(sources);
        inputs.seek_to_first()?;
        Ok(Part {
            inputs,
            reducer: Reducer::new(spec.snapshots, deletes, operator, spec.older),
            output: OutputWriter::new(
                engine.clone(),
                spec.cause,
                spec.options,
                spec.hint,
                spec.rule,
                &spec.range,
                kept,
            ),
        })
    }

    /// Works through about `bytes_max` bytes of input.
    pub(crate) fn step(&mut self, bytes_max: u64) -> Result<Progress> {
        let stop = self.reducer.counts().bytes_in + bytes_max;
        while self.inputs.valid() {
            self.reducer.step(&mut self.inputs, &mut self.output)?;
            if self.reducer.counts().bytes_in >= stop {
                return Ok(Progress::More);
            }
        }
        self.output.finish()?;
        Ok(Progress::Done)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.reducer.counts()
    }

    /// What was written so far, for the edit or for the removal.
    pub(crate) fn written(&self) -> &Written {
        &self.output.written
    }

    pub(crate) fn into_written(self) -> Written {
        self.output.written
    }
}

/// `next` lies behind `before` in the same file, by bytes and by keys.
fn follows(before: &Slice, next: &Slice) -> bool {
    let ends = before.range.end.as_ref().is_some_and(|end| *end <= next.range.start);
    let (a, b) = (&before.run, &next.run);
    ends && a.file.id == b.file.id && a.offset < b.offset
}

/// The source of slices that follow each other in one file. Several are read from front to back,
/// with as much at a time as one of them may have, up to [`TOGETHER_BYTES_MAX`].
fn chain(
    engine: &Engine,
    spec: &PartSpec,
    slices: &[&Slice],
    range_deletes: &mut Vec<RangeDeletes>,
) -> Result<Option<Source>> {
    let bytes: u64 = slices.iter().map(|slice| slice.bytes).sum();
    let ahead = engine.settings.readahead_bytes;
    let together = if slices.len() > 1 { bytes.min(TOGETHER_BYTES_MAX) as u32 } else { 0 };
    let read = IterOptions {
        cause: spec.cause,
        fill_cache: false,
        readahead_bytes: if ahead > 0 { ahead.max(together) } else { 0 },
        range: Some(spec.range.clone()),
    };
    let mut parts = Vec::with_capacity(slices.len());
    for slice in slices {
        let range = slice.range.intersect(&spec.range);
        let run = open_run(&engine.runs, slice, spec.cause)?;
        range_deletes.push(run.range_deletes().clip(&range));
        let clip = (!range.covers(&slice.run.range)).then_some(range);
        parts.push(SliceIter::new(run.iter(read.clone()), clip));
    }
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else { return Ok(None) };
    let rest: Vec<SliceIter> = parts.collect();
    Ok(Some(match rest.is_empty() {
        true => Source::Slice(first),
        false => Source::Chain(ChainIter::new(first, rest)),
    }))
}

fn open_run(runs: &Arc<Runs>, slice: &Slice, cause: Cause) -> Result<Arc<table::Run>> {
    runs.handle(&slice.run).open_for_background(cause)
}

/// Of each stripe of snapshots, the newest tombstone over a key; none where nothing older can be.
fn needed_range_deletes(mut deletes: RangeDeletes, spec: &PartSpec) -> RangeDeletes {
    let stripe = |sequence: SequenceNumber| spec.snapshots.partition_point(|&s| s < sequence);
    let older = &spec.older;
    let mut last: Option<(base::Key, usize)> = None;
    deletes.retain(|fragment, sequence| {
        let here = (fragment.start.clone(), stripe(sequence));
        if last.as_ref() == Some(&here) {
            return false;
        }
        let is_oldest = here.1 == 0;
        last = Some(here);
        let range = KeyRange { start: fragment.start.clone(), end: Some(fragment.end.clone()) };
        !is_oldest || older.may_hold_any(&range)
    });
    deletes
}
