//! Rewrites: the one loop behind flush, merge, append and divide.
//!
//! A rewrite merges memtables or slices, applies the rule of `reduce`, and writes runs. It is cut
//! by key range into parts, which threads process in parallel, and each part into bounded steps.
//! When the last part is done, the move's edit is made against the version that is then current.

use super::output::{OutputRule, OutputWriter, Written};
use super::values::separate::Separator;
use super::values::writers::ValueWriters;
use crate::compaction_filter::CompactionFilter;
use crate::engine::context::Context;
use crate::engine::memory::Buffers;
use crate::keyspace::KeyspaceState;
use crate::memtable::{Memtable, RangeDelete};
use crate::read::source::{ChainIter, MemtableIter, Source};
use crate::reduce::{Counts, Reducer, Rules, ValueSource};
use crate::unvouched::Unvouched;
use base::key::SequenceNumber;
use base::{Cause, KeyRange, Result};
use media::FileHint;
use std::sync::Arc;
use table::range_delete::{RangeDeletes, RangeTombstone};
use table::{EntryIter, MergingIter};
use table::{IterOptions, TableOptions};
use tree::moves::OlderData;
use tree::{Slice, Tier};

/// Minimum readahead of an input where memory is short, in bytes.
const READAHEAD_BYTES_MIN: u64 = 16 << 10;
/// Maximum readahead for adjacent runs, in bytes.
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
    /// Asked about values; `None` for a flush.
    pub filter: Option<Arc<dyn CompactionFilter>>,
    pub options: TableOptions,
    pub hint: FileHint,
    pub rule: OutputRule,
    /// Where large values go, and to which tier.
    pub values: ValueWriters,
    pub tier: Tier,
    /// Values with pointers into these are written again.
    pub unvouched: Unvouched,
}

/// A part in progress.
pub(crate) struct Part {
    context: Arc<Context>,
    read_buffer_bytes: u64,
    buffers: Buffers,
    inputs: MergingIter<Source>,
    reducer: Reducer,
    output: Separator,
}

/// The result of a step: whether work is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Done,
}

impl Part {
    pub(crate) fn begin(context: &Arc<Context>, spec: PartSpec) -> Result<Part> {
        let mut sources = Vec::new();
        for memtable in &spec.memtables {
            sources.push(Source::Memtable(MemtableIter::new(memtable)));
        }
        let deletes = range_deletes(context, &spec)?;
        let chains = chains(&spec);
        let chain_bytes_max = context.settings.job_bytes_max / (chains.len() as u64).max(1);
        let one_bytes = match u64::from(context.settings.readahead_bytes) {
            0 => 0,
            bytes => bytes.min(chain_bytes_max.max(READAHEAD_BYTES_MIN)),
        };
        let mut read_buffer_bytes = 0;
        for chain in chains {
            let readahead_bytes = readahead(&chain, one_bytes, chain_bytes_max);
            read_buffer_bytes += u64::from(readahead_bytes);
            let read = IterOptions {
                range: Some(spec.range.clone()),
                ..IterOptions::streaming(spec.cause, readahead_bytes)
            };
            sources.push(Source::Chain(ChainIter::new(context.read.tables.clone(), chain, read)));
        }
        let kept = kept_range_deletes(deletes.clone(), &spec);
        let operator =
            spec.keyspace.operator.as_ref().and_then(|operator| operator.known()).cloned();
        let mut inputs = MergingIter::new(sources);
        let mut buffers = context.memory.begin_job();
        buffers.set(read_buffer_bytes);
        inputs.seek_to_first()?;
        let output = OutputWriter::new(
            context.clone(),
            spec.cause,
            spec.options,
            spec.hint,
            spec.rule,
            &spec.range,
            kept,
        );
        let keeps_hidden =
            spec.cause == Cause::Flush && context.settings.flush_keeps_hidden(&spec.keyspace);
        let rules = &spec.keyspace.values;
        let files = context.read.values.clone();
        Ok(Part {
            context: context.clone(),
            read_buffer_bytes,
            buffers,
            inputs,
            reducer: Reducer::new(
                Rules {
                    snapshots: spec.snapshots,
                    range_deletes: deletes,
                    operator,
                    filter: spec.filter,
                    older: spec.older,
                    now_ms: context.read.clock.now_ms(),
                    keeps_hidden,
                },
                ValueSource {
                    files: files.clone(),
                    segments: spec.values.segments().clone(),
                    unvouched: spec.unvouched.clone(),
                },
            ),
            output: Separator::new(output, spec.values, spec.tier, rules, files, spec.cause)
                .writing_anew(spec.unvouched),
        })
    }

    /// Processes about `bytes_max` bytes of input.
    pub(crate) fn step(&mut self, bytes_max: u64) -> Result<Progress> {
        let stop = self.reducer.counts().bytes_in + bytes_max;
        while self.inputs.valid() {
            self.reducer.step(&mut self.inputs, &mut self.output)?;
            if self.reducer.counts().bytes_in >= stop {
                self.buffers.set(self.read_buffer_bytes + self.output.output.buffer_bytes());
                self.context.resize_cache();
                return Ok(Progress::More);
            }
        }
        self.output.finish()?;
        self.output.output.written.bury(self.reducer.buried());
        Ok(Progress::Done)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.reducer.counts()
    }

    /// The output so far, for the edit or for the removal.
    pub(crate) fn written(&self) -> &Written {
        &self.output.output.written
    }

    pub(crate) fn into_written(self) -> Written {
        self.output.output.written
    }

    /// An edit lists the segments that were written: other jobs may continue them.
    pub(crate) fn release_segments(&mut self) {
        self.output.writers.release();
    }

    /// The job failed: removes what no edit lists.
    pub(crate) fn remove_created(&self) {
        self.output.writers.remove_created();
        self.written().remove(&self.context);
    }
}

/// The input slices, cut to the part's range, in a small number of chains of disjoint slices: only
/// one slice of a chain is open at a time.
fn chains(spec: &PartSpec) -> Vec<Vec<(Slice, KeyRange)>> {
    let inside = spec.slices.iter().map(|slice| (slice, slice.range.intersect(&spec.range)));
    let mut slices: Vec<_> = inside.filter(|(_, range)| !range.is_empty()).collect();
    slices.sort_by(|(_, a), (_, b)| a.start.cmp(&b.start));
    let mut chains: Vec<Vec<(Slice, KeyRange)>> = Vec::new();
    for (slice, range) in slices {
        let is_free = |chain: &&mut Vec<(Slice, KeyRange)>| {
            chain.last().is_some_and(|(_, last)| !last.is_before_end(&range.start))
        };
        match chains.iter_mut().find(is_free) {
            Some(chain) => chain.push((slice.clone(), range)),
            None => chains.push(vec![(slice.clone(), range)]),
        }
    }
    chains
}

/// Readahead of a chain, in bytes: larger where its slices are adjacent in one file, as the tables
/// of a set are.
fn readahead(chain: &[(Slice, KeyRange)], bytes: u64, bytes_max: u64) -> u32 {
    let follows = |pair: &[(Slice, KeyRange)]| {
        let (before, next) = (&pair[0].0.run, &pair[1].0.run);
        before.file.id == next.file.id && before.offset < next.offset
    };
    let lies_together = chain.len() > 1 && chain.windows(2).all(follows);
    if bytes == 0 || !lies_together {
        return bytes as u32;
    }
    let all: u64 = chain.iter().map(|(slice, _)| slice.bytes).sum();
    all.min(TOGETHER_BYTES_MAX).min(bytes_max).max(bytes) as u32
}

/// Of the inputs' range tombstones over a key, the newest of each stripe of snapshots.
fn range_deletes(context: &Context, spec: &PartSpec) -> Result<RangeDeletes> {
    let loose: Vec<RangeDelete> =
        spec.memtables.iter().flat_map(|m| m.range_deletes(&spec.snapshots)).collect();
    let loose = loose.iter().map(|RangeDelete { start, end, sequence }| RangeTombstone {
        start,
        end,
        sequence: *sequence,
    });
    let mut inputs = Vec::new();
    for slice in spec.slices.iter().filter(|slice| slice.run.range_deletes > 0) {
        let range = slice.range.intersect(&spec.range);
        let in_part = !range.covers(&slice.run.range);
        let run = context.read.tables.handle(&slice.run).open_for_rewrite(in_part, spec.cause)?;
        inputs.push(run.range_deletes().clip(&range));
    }
    let all = loose.chain(inputs.iter().flat_map(RangeDeletes::tombstones));
    Ok(RangeDeletes::needed(all, &spec.snapshots))
}

/// Removes the range tombstones that hide nothing, because nothing older can exist.
fn kept_range_deletes(mut deletes: RangeDeletes, spec: &PartSpec) -> RangeDeletes {
    let is_oldest = |sequence| spec.snapshots.first().is_none_or(|&oldest| sequence <= oldest);
    deletes.retain(|fragment, sequence| {
        let range = || KeyRange::new(fragment.start, Some(fragment.end.into()));
        !is_oldest(sequence) || spec.older.may_hold_any(&range())
    });
    deletes
}
