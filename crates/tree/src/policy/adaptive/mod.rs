//! Adaptive: the last level is divided into key ranges, each range is a small tiered tree of its
//! own, and what is written next goes where it frees most space.
//!
//! - A node of the last level is a key range with a stack: its largest run, and what came later.
//!   There are about [`NODES`] nodes of equal bytes.
//! - A flush is cut at the nodes, and each part goes on top of a node's stack, in a file of its
//!   own. So a merge of one node frees its inputs when it ends, and needs space for one node. Where
//!   the parts would be too small, runs gather in level 0, and are appended to the nodes together;
//!   or merged with all of them, where the tree is so small that this writes less.
//! - A stack of more than `stack_max` runs merges the adjacent ones that cost least for each run
//!   saved, as level 0 does: a merge by size, which leaves the largest run alone until it is cheap.
//! - A node is merged *whole* when the tree owes space: when the garbage that the stacks are
//!   expected to hold is over `garbage_share` of the largest runs. The node with the most garbage
//!   for each byte to be rewritten goes first. Nodes are merged in turn where keys are written
//!   evenly, so a node has twice the average when its turn comes: the space is used all of the
//!   time, and each merge of a node pays for twice the bytes that a merge of the level would.
//! - Garbage is what the runs have in common, by their sketches ([`Node::keys`]): new keys are no
//!   garbage, and stacks of new keys may stay. Where a run has no sketch, as after an opening, what
//!   merges of whole nodes found is expected ([`Observed::superseded_share`]). A tombstone is
//!   expected to hide an entry. What no node shows of a file that others need is garbage too.
//! - Readers count: the reads that passed a stack pay for its merge; and while the database is
//!   idle, half of the garbage is allowed. Idle time alone merges nothing else.
//!
//! It unites moves of the papers: appends to key ranges (LWC-tree), slices that wait on the node
//! below until merging pays (LDC), and the account of garbage by group (HashKV).

#[cfg(test)]
mod tests;

use super::deletions::shown;
use super::leveled::{merge_cheapest, newest_even};
use super::levels::{flush_level, last_level};
use super::stack::{self, keys};
use super::why::Why;
use crate::invariant::Shape;
use crate::plan::{Cut, Input, Move, Plan, Reason};
use crate::policy::{
    Debt, Descriptor, FlushCut, Limits, Observed, Policy, SUPERSEDED_MIN, View, Wanted,
};
use crate::sketch::{KEYS_ERROR, KeySketch};
use crate::version::{LEVEL0_NODE, Node};
use base::cause::LEVELS_MAX;
use base::{KeyRange, RunId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The scheme `adaptive`.
pub const ADAPTIVE: Descriptor = Descriptor {
    name: "adaptive",
    summary: "key ranges with stacks, merged where that frees most space for what it writes",
    help: "The tree is divided into key ranges. What is written waits on the range that it belongs \
           to, in up to `stack_max` runs, and a range is merged when the database has more \
           garbage than `garbage_share` of its data: the range with the most garbage first. Keys \
           that are new leave no garbage, and are merged for the height of stacks alone. Reads \
           that pass many runs pay for a merge. Writes about half of what `leveled` does where the \
           data is many times the write buffer, and needs little space beyond what it holds. A \
           smaller `garbage_share` takes less space and writes more; a smaller `stack_max` makes \
           scans right after writes cheaper.",
    paper: "the moves of LWC-tree and LDC, under an account of garbage as HashKV has it",
    options: &[
        "levels",
        "level0_runs_trigger",
        "stack_max",
        "garbage_share",
        "seek_bytes",
        "parallel_max",
    ],
    limits,
    make: || Box::new(Adaptive),
};

/// About how many nodes the last level is divided into.
const NODES: u64 = 32;

/// A node has at most about this many bytes, so that the writer of its table needs little memory.
const NODE_BYTES_MAX: u64 = 256 << 20;

/// A part of a flush for one node should have this many bytes, or a [`MEMTABLE_PIECES`]th of a
/// memtable, and a [`NODE_PIECES`]th of the node: files that are not too small, and stacks that
/// grow slowly.
const PIECE_BYTES: u64 = 512 << 10;

/// Parts that any memtable is worth.
const MEMTABLE_PIECES: u64 = 8;

/// Parts that are as much as a node.
const NODE_PIECES: u64 = 96;

/// Maximum runs of a node that has less than one such part.
const SMALL_STACK_MAX: usize = 8;

/// Level 0 goes down whatever its parts, when it has one of this many parts of the bytes below.
const LEVEL0_SHARE: u64 = 8;

/// Level 0 waits for a move down until it has this many times the runs that make one due. Then its
/// runs are merged, which is a write that brings nothing down.
const LEVEL0_WAIT: f64 = 2.0;

/// A node this many times too large is merged whole, and divided.
const TOO_LARGE: u64 = 2;

/// Writes are not slowed by garbage of up to this many memtables, however little the tree has.
const SLACK_MEMTABLES: u64 = 8;

/// Sketches count garbage where the allowed share of it is this many of their standard errors.
const GARBAGE_ERRORS_MIN: f64 = 4.0;

/// The part of the allowed garbage that an idle database keeps.
const IDLE_GARBAGE: f64 = 0.5;

fn limits(memtable_bytes: u64) -> Limits {
    Limits {
        level0_runs_trigger: 8,
        stack_max: 40,
        flush_level_max: LEVELS_MAX,
        ..stack::limits(memtable_bytes)
    }
}

/// Key ranges with stacks, merged by their garbage.
#[derive(Clone, Copy, Debug, Default)]
pub struct Adaptive;

/// What the tree has and owes.
struct Account<'a> {
    view: &'a View<'a>,
    /// The level of the nodes.
    last: u8,
    /// Bytes that would stay if all nodes were merged whole; where nothing tells, those of their
    /// largest slices.
    live_bytes: f64,
    /// What the sketches tell, if they do.
    measured: Option<Measured>,
    /// Bytes that a node should have.
    node_bytes: u64,
    /// Bytes that a part of a flush should have.
    piece_bytes: u64,
    /// Garbage that is expected to be there.
    garbage_bytes: f64,
}

impl<'a> Account<'a> {
    fn new(view: &'a View<'a>) -> Account<'a> {
        let last = last_level(view.version, view.limits);
        let nodes = &view.version.level(last).nodes;
        let smallest = PIECE_BYTES.min(view.limits.memtable_bytes / MEMTABLE_PIECES).max(1);
        let bytes = view.version.level(last).bytes();
        let node_bytes = (bytes / NODES).min(NODE_BYTES_MAX).max(MEMTABLE_PIECES * smallest);
        let piece_bytes = smallest.max(node_bytes / NODE_PIECES);
        let measured = Measured::of(nodes, view.limits);
        let (live_bytes, garbage_bytes) = (0.0, 0.0);
        let mut account =
            Account { view, last, live_bytes, measured, node_bytes, piece_bytes, garbage_bytes };
        account.live_bytes = nodes.iter().map(|node| account.live(node)).sum();
        let above = view.version.level(0).bytes() as f64 * account.superseded_share();
        account.garbage_bytes = above + nodes.iter().map(|node| account.garbage(node)).sum::<f64>();
        account
    }

    /// Slices at which a node's stack is too high. The whole of a small node costs less to merge
    /// than its files cost to keep.
    fn height_due(&self, node: &Node) -> usize {
        let is_small = node.bytes() < self.piece_bytes;
        let height_max = if is_small { SMALL_STACK_MAX } else { usize::MAX };
        self.view.limits.stack_max.clamp(1, height_max) + 1
    }

    /// Garbage over the garbage that may stay: 1.0 is at the limit.
    fn garbage_score(&self) -> f64 {
        (self.garbage_bytes + self.dead_bytes()) / self.allowed().max(1.0)
    }

    /// Bytes of files that no slice shows, while other slices need the files.
    fn dead_bytes(&self) -> f64 {
        let version = self.view.version;
        version.file_bytes().saturating_sub(version.bytes()) as f64
    }

    /// As the sketches tell it. Where they do not, merges do: writes expect the worst until the
    /// first merge, and later half at least. Without writes, as after an opening and when idle,
    /// only what is known counts.
    fn superseded_share(&self) -> f64 {
        if let Some(measured) = self.measured {
            return (measured.superseded_share + self.view.observed.unseen_share).min(1.0);
        }
        let observed = self.view.observed;
        let is_written = !observed.is_idle && observed.reads_share.is_some_and(|reads| reads < 1.0);
        match is_written {
            true => observed.superseded_share.unwrap_or(1.0).max(SUPERSEDED_MIN),
            false => observed.superseded_share.unwrap_or(0.0),
        }
    }

    /// Bytes of garbage that may stay.
    fn allowed(&self) -> f64 {
        let idle = if self.view.observed.is_idle { IDLE_GARBAGE } else { 1.0 };
        self.live_bytes * self.view.limits.garbage_share * idle
    }

    /// The garbage is over what may stay because the database is idle.
    fn is_idle_alone(&self) -> bool {
        self.view.observed.is_idle && self.garbage_score() * IDLE_GARBAGE < 1.0
    }

    /// Merging level 0 with all nodes that it meets writes no more than it saves: an append, and
    /// what it takes later to free the garbage. A node has twice the garbage that is allowed when
    /// its turn comes.
    fn merges_all(&self, level0: &Node) -> bool {
        let nodes = self.view.version.level(self.last).overlap(&keys(level0));
        let live_bytes: f64 = nodes.iter().map(|node| self.live(node)).sum();
        let below = nodes.iter().map(|node| self.garbage(node)).sum::<f64>();
        let garbage = level0.bytes() as f64 * self.superseded_share() + below;
        let share = (2.0 * self.view.limits.garbage_share).max(f64::EPSILON);
        let has_slices = nodes.iter().any(|node| !node.slices.is_empty());
        has_slices && live_bytes <= level0.bytes() as f64 + garbage / share
    }

    /// Bytes of a node that would stay if it was merged whole.
    fn live(&self, node: &Node) -> f64 {
        match self.measured {
            Some(_) => node.bytes() as f64 - self.garbage(node),
            None => node.largest_bytes() as f64,
        }
    }

    /// Bytes of a node that a merge of the whole node is expected to free.
    fn garbage(&self, node: &Node) -> f64 {
        let Some((oldest, upper)) = node.slices.split_last() else { return 0.0 };
        let beside_largest = node.bytes() - node.largest_bytes();
        let victims: f64 = upper.iter().map(|slice| shown(slice, slice.run.deletes)).sum();
        let victim_bytes = oldest.bytes as f64 / shown(oldest, oldest.run.entries).max(1.0);
        let hiding = self.measured.map_or(1.0, |measured| measured.hiding_share);
        let garbage = beside_largest as f64 * self.superseded_share();
        (garbage + victims * hiding * victim_bytes).min(node.bytes() as f64)
    }

    /// A flush of `bytes` over `range` has large enough parts for the nodes.
    fn takes(&self, range: &KeyRange, bytes: u64) -> bool {
        let parts = self.view.version.level(self.last).overlap(range).len() as u64;
        bytes >= self.piece_bytes * parts.max(1)
    }

    fn nodes(&self) -> &'a [Arc<Node>] {
        &self.view.version.level(self.last).nodes
    }

    /// The plan for the node that has the most of what is measured, of those with some, unless it
    /// conflicts with a move in progress: then the next.
    fn best(
        &self,
        measure: impl Fn(&Node) -> f64,
        plan: impl Fn(&Arc<Node>, f64) -> Plan,
    ) -> Option<Plan> {
        let measured = self.nodes().iter().map(|node| (measure(node), node));
        let mut due: Vec<(f64, &Arc<Node>)> = measured.filter(|(most, _)| *most > 0.0).collect();
        due.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut plans = due.into_iter().map(|(most, node)| plan(node, most));
        plans.find(|plan| self.view.allows(plan))
    }
}

/// What the sketches of all runs tell of the garbage.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Of the keys beside the largest slices, the share that others supersede.
    superseded_share: f64,
    /// Of the tombstones, the share that may hide an entry. Each of these is a key of two runs.
    hiding_share: f64,
}

impl Measured {
    /// As many keys are superseded as all runs together have more than different ones. `None`: a
    /// run has no sketch, less than a memtable lies beside the largest slices, or the sketches are
    /// not exact enough for the garbage that is allowed.
    fn of(nodes: &[Arc<Node>], limits: &Limits) -> Option<Measured> {
        let beside_bytes: u64 = nodes.iter().map(|node| node.bytes() - node.largest_bytes()).sum();
        let is_exact = limits.garbage_share >= GARBAGE_ERRORS_MIN * KEYS_ERROR;
        if !is_exact || beside_bytes < limits.memtable_bytes {
            return None;
        }
        let mut union = KeySketch::default();
        let (mut keys, mut beside_keys, mut deletes) = (0.0, 0.0, 0.0);
        // Tombstones that no slice shows. Merges dropped them with what they hid.
        let mut unshown = BTreeMap::<RunId, f64>::new();
        for node in nodes {
            union.add_all(node.keys()?);
            let (mut of_node, mut largest) = (0.0, (0, 0.0));
            for slice in &node.slices {
                let shown = slice.run.keys.count()? as f64 * slice.shown_share();
                let shown_deletes = slice.run.deletes as f64 * slice.shown_share();
                of_node += shown;
                largest = if slice.bytes > largest.0 { (slice.bytes, shown) } else { largest };
                deletes += shown_deletes;
                if slice.run.deletes > 0 && !slice.is_whole() {
                    *unshown.entry(slice.run.id).or_insert(slice.run.deletes as f64) -=
                        shown_deletes;
                }
            }
            keys += of_node;
            beside_keys += of_node - largest.1;
        }
        let unshown: f64 = unshown.values().map(|deletes| deletes.max(0.0)).sum();
        let superseded = (keys - union.keys() + unshown).max(0.0);
        let share_of = |all: f64| if all > 0.0 { (superseded / all).min(1.0) } else { 0.0 };
        Some(Measured { superseded_share: share_of(beside_keys), hiding_share: share_of(deletes) })
    }
}

impl Policy for Adaptive {
    fn name(&self) -> &'static str {
        ADAPTIVE.name
    }

    fn shape(&self) -> Shape {
        Shape::ANY
    }

    fn pick(&self, view: &View<'_>) -> Option<Plan> {
        if view.is_full() {
            return None;
        }
        let account = Account::new(view);
        if (1..account.last).any(|level| view.version.level(level).has_slices()) {
            // What is newer must not pass it.
            return drain(&account);
        }
        lower_level0(&account)
            .or_else(|| free_space(&account))
            .or_else(|| divide(&account))
            .or_else(|| shorten(&account))
            .or_else(|| serve_readers(&account))
            .or_else(|| stack::drop_empty(view))
    }

    fn scores(&self, view: &View<'_>) -> Vec<f64> {
        let account = Account::new(view);
        let height = |node: &Arc<Node>| node.slices.len() as f64 / account.height_due(node) as f64;
        let height = account.nodes().iter().map(height).fold(0.0, f64::max);
        let mut scores = vec![0.0; usize::from(account.last) + 1];
        scores[usize::from(account.last)] = height.max(account.garbage_score());
        scores[0] = level0_score(view);
        scores
    }

    /// Runs of level 0, and those of the highest stack that are too many; and what the merges write
    /// that would bring the garbage down to what is allowed.
    fn debt(&self, view: &View<'_>) -> Debt {
        let known = Some(view.observed.superseded_share_min());
        let observed = Observed { superseded_share: known, ..Observed::default() };
        let view = &View { observed: &observed, ..*view };
        let account = Account::new(view);
        let height = account.nodes().iter().map(|node| node.slices.len()).max().unwrap_or(0);
        let too_many = height.saturating_sub(view.limits.stack_max);
        let (garbage, allowed) = (account.garbage_bytes, account.allowed());
        let cost = (account.live_bytes + garbage) / garbage.max(1.0);
        let slack = (SLACK_MEMTABLES * view.limits.memtable_bytes) as f64;
        Debt {
            level0_runs: (view.version.level0().len() + too_many) as u64,
            pending_bytes: ((garbage - allowed).max(0.0) * cost) as u64,
            garbage_percent: (garbage / allowed.max(slack) * 100.0) as u64,
        }
    }

    fn flush_level(&self, view: &View<'_>, range: &KeyRange) -> u8 {
        let last = last_level(view.version, view.limits);
        if flush_level(view, range) >= last { last } else { 0 }
    }

    fn flush_cut(&self, view: &View<'_>, range: &KeyRange, bytes: u64) -> Option<FlushCut> {
        let account = Account::new(view);
        let above = view.version.levels.iter().take(usize::from(account.last));
        let mut nodes = above.flat_map(|level| level.overlap(range));
        if account.last > view.limits.flush_level_max || nodes.any(|node| !node.slices.is_empty()) {
            return None;
        }
        let cut = FlushCut { level: account.last, table_bytes_max: account.node_bytes };
        account.takes(range, bytes).then_some(cut)
    }

    fn has_steps(&self) -> bool {
        true
    }

    fn counts_keys(&self) -> bool {
        true
    }

    fn pick_manual(&self, view: &View<'_>, wanted: &Wanted, to_level: Option<u8>) -> Option<Plan> {
        stack::manual(view, wanted, to_level)
    }
}

fn level0_score(view: &View<'_>) -> f64 {
    view.version.level0().len() as f64 / view.limits.level0_runs_trigger.max(1) as f64
}

/// What another scheme left on the levels between goes onto the stacks, by an edit alone.
fn drain(account: &Account<'_>) -> Option<Plan> {
    let version = account.view.version;
    let why = Why { reason: Reason::LevelBytes, score: 1.0 };
    let push = |level: u8, node: &Node| {
        let input = Input::whole(level, node);
        why.plan(Move::Push { input, to_level: account.last }, 0)
    };
    let levels = (1..account.last).rev().filter(|&level| version.level(level).has_slices());
    let deepest = levels.take(1);
    let mut plans = deepest.flat_map(|level| {
        let nodes = version.level(level).nodes.iter().filter(|node| !node.slices.is_empty());
        nodes.map(move |node| push(level, node))
    });
    plans.find(|plan| account.view.allows(plan))
}

/// Level 0 has too many runs; or it has up to a memtable, and stands in the way of flushes that
/// would go to the nodes: then it goes onto the stacks as it is, by an edit alone. Less than a part
/// of a flush stays, so that short sessions leave no row of small nodes.
fn lower_level0(account: &Account<'_>) -> Option<Plan> {
    let view = account.view;
    let score = level0_score(view);
    let node = view.version.level(0).node(LEVEL0_NODE).filter(|node| !node.slices.is_empty())?;
    let (range, memtable_bytes) = (keys(node), view.limits.memtable_bytes);
    let meets_nodes = !view.version.level(account.last).overlap(&range).is_empty();
    let is_left_over = (account.piece_bytes..=memtable_bytes).contains(&node.bytes());
    if meets_nodes && is_left_over && account.takes(&range, memtable_bytes) {
        let why = Why { reason: Reason::Level0Runs, score: score.max(1.0) };
        let input = Input::whole(0, node);
        let push = why.plan(Move::Push { input, to_level: account.last }, 0);
        if view.allows(&push) {
            return Some(push);
        }
    }
    if score < 1.0 {
        return None;
    }
    let why = Why { reason: Reason::Level0Runs, score };
    let down = down(account, node, why).filter(|plan| view.allows(plan));
    if down.is_some() || score < LEVEL0_WAIT {
        return down;
    }
    merge_cheapest(view, why.reason, score)
}

/// Level 0 goes down: by an edit alone where the nodes are merged with it, or appended to them.
/// What the nodes show of its files is garbage as soon as one of them has been merged.
fn down(account: &Account<'_>, level0: &Arc<Node>, why: Why) -> Option<Plan> {
    if !account.merges_all(level0) {
        return append(account, why);
    }
    let input = Input::whole(0, level0);
    Some(why.plan(Move::Push { input, to_level: account.last }, 0))
}

/// All of level 0 is appended to the nodes, if the parts are large enough.
fn append(account: &Account<'_>, why: Why) -> Option<Plan> {
    let version = account.view.version;
    let node = version.level(0).node(LEVEL0_NODE).filter(|node| !node.slices.is_empty())?;
    let bytes = node.bytes();
    let below = version.level(account.last).bytes();
    if !account.takes(&keys(node), bytes) && bytes.saturating_mul(LEVEL0_SHARE) < below {
        return None;
    }
    let input = Input::whole(0, node);
    let parts = bytes.div_ceil(account.node_bytes).clamp(1, u64::from(u32::MAX)) as u32;
    let action = Move::Append { input, to_level: account.last, file_bytes_max: None, parts };
    Some(why.plan(action, bytes))
}

/// The tree owes space: the node with the most garbage for each byte that stays is merged whole.
fn free_space(account: &Account<'_>) -> Option<Plan> {
    if account.garbage_score() < 1.0 {
        return None;
    }
    let reason = if account.is_idle_alone() { Reason::Idle } else { Reason::Garbage };
    let why = Why { reason, score: account.garbage_score() };
    let merge = |node: &Arc<Node>| whole(account, node, why);
    // Where it is files that have too much, a node helps that shows a part of one.
    let is_of_files = account.measured.is_some() && account.garbage_bytes < account.allowed();
    let shared = |node: &Node| match is_of_files {
        true => shared_bytes(node) / account.live(node).max(1.0),
        false => 0.0,
    };
    let share = |node: &Node| account.garbage(node) / account.live(node).max(1.0);
    let of_files = account.best(shared, |node, _| merge(node));
    of_files.or_else(|| account.best(share, |node, _| merge(node)))
}

/// Bytes of the runs that a node shows a part of.
fn shared_bytes(node: &Node) -> f64 {
    let parts = node.slices.iter().filter(|slice| !slice.is_whole());
    parts.map(|slice| slice.run.bytes as f64).sum()
}

/// A node that is too large, and whose merge is not a copy alone, is merged whole.
fn divide(account: &Account<'_>) -> Option<Plan> {
    let size = |node: &Node| node.bytes() as f64 / (TOO_LARGE * account.node_bytes) as f64;
    let due = |node: &Node| if node.slices.len() > 1 { size(node) } else { 0.0 };
    account.best(
        |node| if due(node) < 1.0 { 0.0 } else { due(node) },
        |node, score| whole(account, node, Why { reason: Reason::NodeBytes, score }),
    )
}

/// A stack is too high: its cheapest runs become one.
fn shorten(account: &Account<'_>) -> Option<Plan> {
    let height = |node: &Node| node.slices.len() as f64 / account.height_due(node) as f64;
    account.best(
        |node| if height(node) < 1.0 { 0.0 } else { height(node) },
        |node, score| cheapest(account, node, Why { reason: Reason::StackHeight, score }),
    )
}

/// Reads have paid for fewer runs.
fn serve_readers(account: &Account<'_>) -> Option<Plan> {
    let view = account.view;
    let why = Why { reason: Reason::Reads, score: 0.5 };
    let paid = |node: &Node| {
        let paid_bytes = view.paid_bytes(account.last, node.id);
        let paid = paid_bytes as f64 / node.bytes().max(1) as f64;
        if node.slices.len() > 1 && paid >= 1.0 { paid } else { 0.0 }
    };
    let merge = account.best(paid, |node, _| whole(account, node, why));
    merge.or_else(|| serve_readers_of_level0(account, why))
}

fn serve_readers_of_level0(account: &Account<'_>, why: Why) -> Option<Plan> {
    let view = account.view;
    if view.paid_bytes(0, LEVEL0_NODE) < view.version.level(0).bytes().max(1) {
        return None;
    }
    let down = append(account, why).filter(|plan| view.allows(plan));
    down.or_else(|| newest_even(view, why))
}

/// A node's stack becomes nodes of equal bytes. Its right neighbours join where it is small.
fn whole(account: &Account<'_>, node: &Node, why: Why) -> Plan {
    stack::merge_joined(account.view, account.last, node, account.node_bytes, why)
}

/// Adjacent runs that cost the least bytes for each run saved become one, and stay in their place.
fn cheapest(account: &Account<'_>, node: &Node, why: Why) -> Plan {
    let bytes: Vec<Option<u64>> = node.slices.iter().map(|slice| Some(slice.bytes)).collect();
    let runs = stack::cheapest(&bytes).map_or(&node.slices[..], |runs| &node.slices[runs]);
    if runs.len() == node.slices.len() {
        return whole(account, node, why);
    }
    let bytes = runs.iter().map(|slice| slice.bytes).sum();
    let inputs = vec![Input::of(account.last, node.id, runs)];
    let cut = Cut { table_bytes_max: u64::MAX, overlap_bytes_max: None };
    let to_level = account.last;
    why.plan(Move::Merge { inputs, to_level, cut, one_file: false, parallel_max: 1 }, bytes)
}
