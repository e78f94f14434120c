//! Policies: each chooses the next move of the tree, as a pure function of what it is shown.
//!
//! A policy has no state, no clock and no handle. What it must remember (cursors) are changes in
//! the tree that its plans carry. So a policy that is made anew before every pick chooses alike,
//! and the same code runs in the engine, in tests over text and in simulation. The executor never
//! asks which policy made a plan.
//!
//! A new scheme is a module beside [`leveled`] and a line in [`registry()`].

pub mod adaptive;
mod busy;
mod deletions;
pub mod fragmented;
pub mod lazy_leveling;
pub mod ldc;
pub mod leveled;
mod levels;
mod limits;
pub mod lwc;
mod registry;
pub mod sets;
pub mod smrdb;
mod stack;
#[cfg(test)]
mod tests;
pub mod tiered;
mod wanted;
mod why;

pub use busy::{Busy, WorkId};
pub use deletions::{Unflushed, are_worth_flush, next_move};
pub use limits::{LIMIT_FIELDS, LimitField, Limits, MISSES_MIN, Parameters, SEEK_BYTES};
pub use registry::{by_name, registry};
pub use wanted::Wanted;

use crate::invariant::Shape;
use crate::plan::{Input, Plan};
use crate::sketch::{KEYS_ERROR, KeySketch};
use crate::version::{NodeId, Version};
use base::{KeyRange, RunId, SequenceNumber};
use std::collections::HashMap;

/// Runs in which a get finds nothing that count as a seek: the filters answer for nearly all. A
/// probe of a filter takes about 0.2 µs, a seek in a run as much as this many of them at most.
pub const PROBES_PER_SEEK: u64 = 512;

/// A merge of level 0 with more than this many memtables holds much space until it ends. It is made
/// in steps, where the scheme has them.
const STEP_MEMTABLES: u64 = 8;

/// The least share of superseded entries that is expected while writes go on, whatever merges have
/// found: they look back.
const SUPERSEDED_MIN: f64 = 0.5;

/// What the engine observed of the workload.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// How often reads passed a node's stack at the cost of a seek, since the node was merged; of
    /// level 0's stack, since a run left it.
    pub seeks: HashMap<(u8, NodeId), u64>,
    /// Runs that gets probed first without finding their key, [`Limits::seek_misses_min`] times or
    /// more. Only with [`Limits::seek_compaction`].
    pub misses: Vec<Misses>,
    /// The share of reads among recent operations, from 0 to 1. Writes of all keyspaces count.
    /// None: there was no operation.
    pub reads_share: Option<f64>,
    /// Of the entries above the largest slice of a node, the share that was superseded or
    /// superseded another, in recent merges of whole nodes. None: there was no such merge.
    pub superseded_share: Option<f64>,
    /// Of the entries above the largest slice of a node, the share that recent merges dropped
    /// beyond what the sketches of their inputs told: what range deletions, filters and expiry
    /// took, and operands that were combined.
    pub unseen_share: f64,
    /// Of the tombstones in recent merges, the share that found an entry to hide. None: there was
    /// no such merge.
    pub hidden_share: Option<f64>,
    /// The database is idle: no write has come for a while. Not part of what is urgent: a policy
    /// may use the time, with work that ends.
    pub is_idle: bool,
}

impl Observed {
    /// Merges count less the more came after them: each by this part of what the next one counts.
    const MERGE_WEIGHT: f64 = 0.25;
    /// A merge tells what tombstones hide if they are one of this many parts of its entries.
    const DELETES_SHARE: f64 = 16.0;

    /// The share of superseded entries to expect while writes go on, where that has to be little.
    fn superseded_share_min(&self) -> f64 {
        self.superseded_share.unwrap_or(0.0).max(SUPERSEDED_MIN)
    }

    /// A merge of `entries` entries dropped some. It counts if it took nodes of its deepest level
    /// whole, with what was above their largest slices.
    pub fn note_merge(&mut self, version: &Version, inputs: &[Input], entries: u64, dropped: u64) {
        let deepest = inputs.iter().map(|input| input.level).max().unwrap_or(0);
        let (mut all_bytes, mut upper_bytes) = (0, 0);
        for input in inputs {
            let Some(node) = version.node(input.level, input.node).filter(|_| deepest > 0) else {
                return;
            };
            let taken: u64 = input.taken(node).map(|slice| slice.bytes).sum();
            all_bytes += taken;
            if input.level < deepest {
                upper_bytes += taken;
            } else if input.takes_all(node) {
                upper_bytes += taken - node.largest_bytes();
            } else {
                return;
            }
        }
        let upper = entries as f64 * upper_bytes as f64 / all_bytes.max(1) as f64;
        if upper < 1.0 {
            return;
        }
        let share = (dropped as f64 / upper).min(1.0);
        let before = self.superseded_share.unwrap_or(share);
        self.superseded_share = Some(before + (share - before) * Self::MERGE_WEIGHT);
        if let Some(seen) = superseded_by_sketches(version, inputs) {
            let unseen = ((dropped as f64 - seen) / upper).clamp(0.0, 1.0);
            self.unseen_share += (unseen - self.unseen_share) * Self::MERGE_WEIGHT;
        }
    }
}

/// Entries that the inputs of a merge supersede in each other, by their sketches, and what these
/// may be wrong by. `None`: an input is a part of a run, or has no sketch.
fn superseded_by_sketches(version: &Version, inputs: &[Input]) -> Option<f64> {
    let (mut union, mut keys) = (KeySketch::default(), 0);
    for input in inputs {
        let node = version.node(input.level, input.node)?;
        for slice in input.taken(node) {
            union.add_all(slice.run.keys.sketch().filter(|_| slice.is_whole())?);
            keys += slice.run.keys.count()?;
        }
    }
    let union = union.keys();
    Some(keys as f64 - union + 2.0 * KEYS_ERROR * union)
}

/// Gets that probed a run first, found nothing there, and had to probe another.
#[derive(Clone, Copy, Debug)]
pub struct Misses {
    /// The level of the node.
    pub level: u8,
    /// The node that has the run in its stack.
    pub node: NodeId,
    /// The run.
    pub run: RunId,
    /// How many gets, since the run came to the level.
    pub gets: u64,
}

/// All that a policy sees.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The tree.
    pub version: &'a Version,
    /// Moves in progress.
    pub busy: &'a Busy,
    /// Sizes and counts to keep to.
    pub limits: &'a Limits,
    /// The workload.
    pub observed: &'a Observed,
    /// The oldest sequence number that a snapshot may read at; the newest one without snapshots.
    pub oldest_snapshot: SequenceNumber,
}

impl View<'_> {
    /// The maximum number of moves is in progress.
    fn is_full(&self) -> bool {
        self.busy.count() >= self.limits.parallel_max.max(1)
    }

    /// Bytes that a merge of the node's stack may write: reads have paid for them.
    pub fn paid_bytes(&self, level: u8, node: NodeId) -> u64 {
        let seeks = self.observed.seeks.get(&(level, node)).copied().unwrap_or(0);
        seeks.saturating_mul(self.limits.seek_bytes.unwrap_or(0))
    }

    /// The plan conflicts with no move in progress.
    fn allows(&self, plan: &Plan) -> bool {
        !self.busy.conflicts(self.version, plan)
    }
}

/// How far the tree is behind; for admission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Debt {
    /// Runs in level 0.
    pub level0_runs: u64,
    /// Bytes that must be rewritten until every level keeps its limit; an estimate.
    pub pending_bytes: u64,
    /// Garbage that the tree is expected to have, in percent of what may stay. 0: the policy keeps
    /// no account of it.
    pub garbage_percent: u64,
}

impl Debt {
    /// The debt of a tree without an account of its garbage.
    pub fn new(level0_runs: usize, pending_bytes: u64) -> Debt {
        Debt { level0_runs: level0_runs as u64, pending_bytes, garbage_percent: 0 }
    }
}

/// A flush that goes on top of the stacks of the nodes that it meets at a level, where nothing
/// above is in the way. Each node gets a run of its own, in a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushCut {
    /// The level.
    pub level: u8,
    /// Bytes at which a run ends where it meets no node, and becomes a new one.
    pub table_bytes_max: u64,
}

/// Chooses moves.
pub trait Policy: Send + Sync {
    /// Its name in options and reports.
    fn name(&self) -> &'static str;

    /// What it demands of the tree that it works on.
    fn shape(&self) -> Shape;

    /// The next move, which conflicts with no move in progress. None: nothing is due, or all that
    /// is due waits for moves in progress.
    fn pick(&self, view: &View<'_>) -> Option<Plan>;

    /// How urgent each level is; 1.0 is at the limit.
    fn scores(&self, view: &View<'_>) -> Vec<f64>;

    /// How far the tree is behind.
    fn debt(&self, view: &View<'_>) -> Debt;

    /// The level that a flush over `range` goes to.
    fn flush_level(&self, view: &View<'_>, range: &KeyRange) -> u8 {
        let _ = (view, range);
        0
    }

    /// Where a flush of `bytes` over `range` is cut for the stacks of nodes. None: it is one run,
    /// and goes to [`flush_level`](Policy::flush_level).
    fn flush_cut(&self, view: &View<'_>, range: &KeyRange, bytes: u64) -> Option<FlushCut> {
        let _ = (view, range, bytes);
        None
    }

    /// Level 0 may be pushed onto the stacks of the nodes below: the scheme then merges them one by
    /// one.
    fn has_steps(&self) -> bool {
        false
    }

    /// It reads the sketches of runs. Those of other schemes keep none.
    fn counts_keys(&self) -> bool {
        false
    }

    /// A step of a manual compaction: brings what is `wanted` of the levels above `to_level` (none:
    /// the last level that holds anything) down to it. Call again until there is none.
    fn pick_manual(&self, view: &View<'_>, wanted: &Wanted, to_level: Option<u8>) -> Option<Plan>;
}

/// What there is to know about a policy before using it.
#[derive(Clone, Copy)]
pub struct Descriptor {
    /// Its name in options and reports.
    pub name: &'static str,
    /// One line of help.
    pub summary: &'static str,
    /// The manual: rules, costs, when to choose it.
    pub help: &'static str,
    /// The paper or system it comes from.
    pub paper: &'static str,
    /// The parameters that it reads, by their names in [`LIMIT_FIELDS`].
    pub options: &'static [&'static str],
    /// Sizes and counts it is meant to run with, for a memtable of this many bytes.
    pub limits: fn(memtable_bytes: u64) -> Limits,
    /// Makes one; costs nothing.
    pub make: fn() -> Box<dyn Policy>,
}
