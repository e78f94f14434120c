//! Moves in progress, so that a policy picks none that conflicts with them.
//!
//! Two moves conflict when
//! - they take the same node below level 0, or the same run of level 0;
//! - one takes a node that the other writes to;
//! - they write to overlapping ranges of one level, or pass it on the path down. A push onto nodes
//!   that are rewritten in their place is no conflict: what is pushed stays on top of the output,
//!   also another slice of a run that the output has one of. So it is with an append in files of
//!   its own;
//! - they take overlapping runs of level 0, unless one's are all newer than the other's, and the
//!   newer ones stay in level 0.

use super::wanted::Wanted;
use crate::plan::{Input, Move, Plan};
use crate::version::{NodeId, Version, hull};
use base::{KeyRange, RunId};
use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;

/// Names a move in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId(u64);

impl WorkId {
    /// The number, unique among the moves of a keyspace since it was opened.
    pub fn number(self) -> u64 {
        self.0
    }
}

#[derive(Clone, Debug)]
struct Work {
    inputs: Vec<Input>,
    /// The levels that it writes to or passes.
    levels: RangeInclusive<u8>,
    /// Covers what it takes, nodes whole; of an append to the files of nodes, the nodes that it
    /// writes to as well, since a node's file takes one append at a time.
    range: KeyRange,
    /// It rewrites nodes where they are, and writes nothing outside their ranges.
    in_place: bool,
    /// What it brings goes on top of the stacks that are there when it ends: a push, or an append
    /// in files of its own.
    is_on_top: bool,
    /// It writes to the files of nodes that it does not take.
    is_append: bool,
    /// It failed, and keeps its inputs until it may be tried again.
    is_backed_off: bool,
}

impl Work {
    fn new(version: &Version, action: &Move) -> Work {
        let (inputs, to_level) = (action.inputs(), action.to_level());
        let mut range = KeyRange::new([], Some([].into()));
        for input in inputs.iter() {
            let Some(node) = version.node(input.level, input.node) else { continue };
            range = range.union(&hull(input.taken(node)));
            if input.level > 0 {
                range = range.union(&node.range);
            }
        }
        let top = inputs.iter().map(|input| input.level).min().unwrap_or(to_level);
        let same_level = top == to_level;
        let rewrites = matches!(action, Move::Merge { .. } | Move::Divide { .. });
        let is_append = matches!(action, Move::Append { file_bytes_max: Some(_), .. });
        let is_on_top =
            matches!(action, Move::Push { .. } | Move::Append { file_bytes_max: None, .. });
        if is_append {
            let below = version.level(to_level).overlap(&range).iter();
            range = below.fold(range.clone(), |range, node| range.union(&node.range));
        }
        Work {
            inputs: inputs.into_owned(),
            levels: if same_level { to_level..=to_level } else { top + 1..=to_level },
            range,
            in_place: same_level && rewrites,
            is_on_top,
            is_append,
            is_backed_off: false,
        }
    }

    fn to_level(&self) -> u8 {
        *self.levels.end()
    }

    fn writes(&self, level: u8, range: &KeyRange) -> bool {
        level > 0 && self.levels.contains(&level) && self.range.overlaps(range)
    }

    fn level0_runs(&self) -> impl Iterator<Item = RunId> {
        self.inputs.iter().filter(|input| input.level == 0).flat_map(Input::runs)
    }

    fn takes(&self, level: u8, node: NodeId) -> bool {
        level > 0 && self.inputs.iter().any(|input| input.level == level && input.node == node)
    }

    fn conflicts(&self, other: &Work, version: &Version) -> bool {
        self.takes_with(other)
            || self.writes_into(other, version)
            || other.writes_into(self, version)
            || self.writes_with(other)
            || self.level0_with(other, version)
    }

    fn takes_with(&self, other: &Work) -> bool {
        other.inputs.iter().any(|input| self.takes(input.level, input.node))
    }

    /// It writes to a node that `other` takes and it does not.
    fn writes_into(&self, other: &Work, version: &Version) -> bool {
        !self.is_on_top
            && !self.in_place
            && other.inputs.iter().filter(|input| input.level > 0).any(|input| {
                let node = version.node(input.level, input.node);
                node.is_some_and(|node| {
                    self.writes(input.level, &node.range)
                        && (self.is_append || input.level < self.to_level())
                })
            })
    }

    fn writes_with(&self, other: &Work) -> bool {
        let meets = (*self.levels.start()..=self.to_level())
            .any(|level| self.writes(level, &self.range) && other.writes(level, &self.range));
        let on_top = (self.is_on_top && other.in_place) || (other.is_on_top && self.in_place);
        meets && !on_top
    }

    fn level0_with(&self, other: &Work, version: &Version) -> bool {
        let place = |run: RunId| version.level0().iter().position(|slice| slice.run.id == run);
        let span = |work: &Work| {
            let places: Vec<usize> = work.level0_runs().filter_map(place).collect();
            Some((*places.iter().min()?, *places.iter().max()?))
        };
        let (Some(a), Some(b)) = (span(self), span(other)) else { return false };
        let separate =
            if a.1 < b.0 { self.to_level() == 0 } else { b.1 < a.0 && other.to_level() == 0 };
        self.level0_runs().any(|run| other.level0_runs().any(|o| o == run))
            || (self.range.overlaps(&other.range) && !separate)
    }
}

/// The moves in progress.
#[derive(Clone, Debug, Default)]
pub struct Busy {
    next: u64,
    works: BTreeMap<WorkId, Work>,
    nodes: HashSet<(u8, NodeId)>,
    level0_runs: HashSet<RunId>,
}

impl Busy {
    /// No move is in progress; backed-off moves do not count.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Moves in progress, without the backed-off ones.
    pub fn count(&self) -> usize {
        self.works.values().filter(|work| !work.is_backed_off).count()
    }

    /// A plan that was made for `version` begins.
    pub fn begin(&mut self, version: &Version, plan: &Plan) -> WorkId {
        let id = WorkId(self.next);
        self.next += 1;
        self.works.insert(id, Work::new(version, &plan.action));
        self.index();
        id
    }

    /// A move ended, one way or the other.
    pub fn end(&mut self, id: WorkId) {
        self.works.remove(&id);
        self.index();
    }

    /// A move failed: nothing works on it, but others stay out of its way until it ends.
    pub fn park(&mut self, id: WorkId) {
        if let Some(work) = self.works.get_mut(&id) {
            work.is_backed_off = true;
        }
    }

    fn index(&mut self) {
        self.nodes.clear();
        self.level0_runs.clear();
        for work in self.works.values() {
            self.level0_runs.extend(work.level0_runs());
            self.nodes.extend(work.inputs.iter().map(|input| (input.level, input.node)));
        }
    }

    /// A move takes this node (below level 0).
    pub fn node(&self, level: u8, node: NodeId) -> bool {
        level > 0 && self.nodes.contains(&(level, node))
    }

    /// A move in progress brings some of what is `wanted` to a deeper level. A manual compaction
    /// that waited for all moves that take it would wait for merges of what is written meanwhile.
    pub fn brings_down(&self, version: &Version, wanted: &Wanted) -> bool {
        let mut works = self.works.values().filter(|work| !work.is_backed_off);
        works.any(|work| {
            let mut uppers = work.inputs.iter().filter(|input| input.level < work.to_level());
            uppers.any(|input| {
                let node = version.node(input.level, input.node);
                node.is_some_and(|node| input.taken(node).any(|slice| wanted.is_in(slice)))
            })
        })
    }

    /// A move in progress takes one of these slices; backed-off moves do not count.
    pub fn works_on(&self, input: &Input) -> bool {
        let shares = |other: &Input| {
            let takes = |slice| other.slices.contains(slice);
            (other.level, other.node) == (input.level, input.node) && input.slices.iter().any(takes)
        };
        let mut works = self.works.values().filter(|work| !work.is_backed_off);
        works.any(|work| work.inputs.iter().any(shares))
    }

    /// A move takes this run of level 0.
    pub fn level0_run(&self, run: RunId) -> bool {
        self.level0_runs.contains(&run)
    }

    /// A move writes to this level, or passes it, where `range` is. Level 0 never: its stack takes
    /// new runs at any time.
    pub fn range(&self, level: u8, range: &KeyRange) -> bool {
        self.works.values().any(|work| work.writes(level, range))
    }

    /// A move takes something from this level, or writes to it.
    pub fn level(&self, level: u8) -> bool {
        self.works.values().any(|work| {
            work.to_level() == level || work.inputs.iter().any(|input| input.level == level)
        })
    }

    /// Bytes of a level that moves in progress bring to a deeper one.
    pub fn leaving_bytes(&self, version: &Version, level: u8) -> u64 {
        let works = self.works.values().filter(|work| work.to_level() > level);
        let inputs = works.flat_map(|work| &work.inputs).filter(|input| input.level == level);
        inputs
            .filter_map(|input| Some((input, version.node(level, input.node)?)))
            .flat_map(|(input, node)| input.taken(node))
            .map(|slice| slice.bytes)
            .sum()
    }

    /// Whether `plan` conflicts with a move in progress.
    pub fn conflicts(&self, version: &Version, plan: &Plan) -> bool {
        if self.works.is_empty() {
            return false;
        }
        let work = Work::new(version, &plan.action);
        self.works.values().any(|other| work.conflicts(other, version))
    }
}
