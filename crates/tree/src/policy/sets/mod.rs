//! Sets: leveled compaction whose output lies together.
//!
//! Source: SEALDB (Yao et al., IPDPS 2018), section III-A.
//!
//! - *A set* is the output of one merge: one file, in one contiguous extent of the store. What it
//!   holds was read together, and will be read together again, since its tables have the keys of
//!   one table above them. So a merge reads and writes in large sequential requests.
//! - *Levels 0 and 1 have no sets*: their tables are read together anyway, or alone.
//! - *Tables die one by one.* The key range of the next victim seldom ends where a set ends. So
//!   what is alive is known by table, the version's slices, and the file of a set goes with its
//!   last table. Of the next few in turn, the table of a full level goes down first whose set
//!   has the most dead tables, so that sets end and their extents become free without a copy.
//!
//! All else is as LevelDB has it, whose sizes the paper uses, with tables of 4 MiB. Fragments
//! between sets are the store's matter: it learns the size of a set before the first byte.
//!
//! Invariant of its trees: nodes below level 0 have exactly one slice.

#[cfg(test)]
mod tests;

use crate::invariant::Shape;
use crate::plan::{Move, Plan, Reason};
use crate::policy::leveled::{self, LevelDb};
use crate::policy::why::Why;
use crate::policy::{Debt, Descriptor, Limits, Policy, View, Wanted};
use crate::version::{Node, Version};
use base::{FileId, KeyRange};
use std::sync::Arc;

/// Leveled compaction with sets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sets;

/// The scheme `sets`.
pub const SETS: Descriptor = Descriptor {
    name: "sets",
    summary: "leveled compaction that writes each output as one contiguous set, as SEALDB does",
    help: "The rules of `leveldb`, but all tables that a merge writes below level 1 lie in one \
           file, one after another, so that disks read and write them in one go. Of the next few \
           tables of a full level the one goes first whose file has the most dead ones. For \
           shingled and other disks where a seek costs more than the bytes, with a store that \
           keeps files contiguous. It writes what `leveldb` writes. It costs space: the file of a \
           set goes when its last table is dead. `table_bytes_max` (bytes, 4 MiB) is the size of \
           a table, `fan_out` (a ratio, 10) about the tables of a set.",
    paper: "Yao et al., SEALDB: a Set-aware Key-Value Store on Shingled Magnetic Recording Drives, \
            2018",
    options: leveled::LEVELDB.options,
    limits,
    make: || Box::new(Sets),
};

fn limits(memtable_bytes: u64) -> Limits {
    let table_bytes_max = 4 << 20;
    Limits {
        table_bytes_max,
        overlap_bytes_max: Some(10 * table_bytes_max),
        expansion_bytes_max: 25 * table_bytes_max,
        ..leveled::leveldb_limits(memtable_bytes)
    }
}

/// The first level that has sets.
const SET_LEVEL_MIN: u8 = 2;

/// A victim comes from this many nodes in turn. Merges out of turn write more: in the simulation 25
/// % more from all of a level by dead tables alone, 10 % from eight in turn.
const TURN: usize = 2;

impl Policy for Sets {
    fn name(&self) -> &'static str {
        SETS.name
    }

    fn shape(&self) -> Shape {
        LevelDb.shape()
    }

    fn pick(&self, view: &View<'_>) -> Option<Plan> {
        let plan = LevelDb.pick(view)?;
        let level = plan.action.inputs().first().map_or(0, |input| input.level);
        if level == 0 || plan.reason != Reason::LevelBytes {
            return Some(as_set(plan));
        }
        let why = Why { reason: plan.reason, score: plan.score };
        let (node, is_first) = victim(view, level)?;
        let mut plan = leveled::finish_node(view, level, node, why);
        if !is_first {
            // Those that were passed over are next.
            plan.cursors.clear();
        }
        Some(as_set(plan))
    }

    fn scores(&self, view: &View<'_>) -> Vec<f64> {
        LevelDb.scores(view)
    }

    fn debt(&self, view: &View<'_>) -> Debt {
        LevelDb.debt(view)
    }

    fn flush_level(&self, view: &View<'_>, range: &KeyRange) -> u8 {
        LevelDb.flush_level(view, range)
    }

    fn pick_manual(&self, view: &View<'_>, wanted: &Wanted, to_level: Option<u8>) -> Option<Plan> {
        LevelDb.pick_manual(view, wanted, to_level).map(as_set)
    }
}

/// What the plan writes becomes one set, where sets are.
fn as_set(mut plan: Plan) -> Plan {
    if let Move::Merge { to_level: SET_LEVEL_MIN.., one_file, .. } = &mut plan.action {
        *one_file = true;
    }
    plan
}

/// The node of a level that goes down next: of the few whose turn it is, the one whose file has
/// the most dead tables, the first among equals. And whether it is the first of all.
fn victim<'a>(view: &View<'a>, level: u8) -> Option<(&'a Arc<Node>, bool)> {
    let nodes = &view.version.level(level).nodes;
    let cursor = view.version.cursors.get(usize::from(level)).and_then(Option::as_ref);
    let first = leveled::next_node(nodes, cursor)?;
    let at = nodes.iter().position(|node| node.id == first.id).unwrap_or(0);
    let turn: Vec<&Arc<Node>> = nodes[at..].iter().chain(&nodes[..at]).take(TURN).collect();
    let dead = dead_bytes(view.version, &turn);
    let tables = |node: &Node| {
        let files = node.slices.iter().map(|slice| slice.run.file.id);
        let place = |file| dead.binary_search_by_key(&file, |(other, _)| *other).ok();
        let bytes = files.filter_map(place).map(|at| dead[at].1).max().unwrap_or(0);
        // What is less than half a table is the file's header.
        (bytes + view.limits.table_bytes_max / 2) / view.limits.table_bytes_max.max(1)
    };
    let node = turn.into_iter().rev().max_by_key(|node| tables(node))?;
    Some((node, node.id == first.id))
}

/// The bytes of the nodes' files that nothing shows any more, by file. Few files are asked for and
/// every slice is looked at, so that they are in a list, in order.
fn dead_bytes(version: &Version, nodes: &[&Arc<Node>]) -> Vec<(FileId, u64)> {
    let slices = nodes.iter().flat_map(|node| &node.slices);
    let mut dead: Vec<(FileId, u64)> =
        slices.map(|slice| (slice.run.file.id, slice.run.file.bytes())).collect();
    dead.sort_unstable();
    dead.dedup_by_key(|(file, _)| *file);
    for slice in version.slices() {
        if let Ok(at) = dead.binary_search_by_key(&slice.run.file.id, |(file, _)| *file) {
            dead[at].1 = dead[at].1.saturating_sub(slice.bytes);
        }
    }
    dead
}
