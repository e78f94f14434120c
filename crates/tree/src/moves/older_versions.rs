//! Where an older version of a key could be: the question that every dropped tombstone depends on.
//!
//! A tombstone in a merge of `inputs` into `to_level` may go only if no older version of its key
//! exists outside the inputs. Older versions can be, and are all looked at:
//! - in any slice of a level under `to_level`, linked slices and appended segments included;
//! - in `to_level` itself, in slices that are no inputs and that the output comes to stand on;
//! - in the inputs' own stacks, in slices that are no inputs and stand under one.
//!
//! Slices above the inputs, and runs that hold nothing as old as the inputs' newest entry, are
//! newer. Snapshots and the garbage collection of values are the caller's to ask for.

use crate::plan::Input;
use crate::version::{Slice, Version};
use base::KeyRange;

/// The keys that may have older versions outside a merge, for a walk in key order.
#[derive(Clone, Debug)]
pub struct OlderData {
    /// Disjoint, in order, none touching the next.
    ranges: Vec<KeyRange>,
    at: usize,
}

impl OlderData {
    /// Older versions may be anywhere: for a flush, which no tombstone may leave.
    pub fn everywhere() -> OlderData {
        OlderData { ranges: vec![KeyRange::all()], at: 0 }
    }

    /// For a merge of `inputs` into `to_level`, in the version that it starts from.
    pub fn new(version: &Version, inputs: &[Input], to_level: u8) -> OlderData {
        let mut taken: Vec<&Slice> = Vec::new();
        for input in inputs {
            if let Some(node) = version.node(input.level, input.node) {
                taken.extend(input.taken(node));
            }
        }
        let newest = taken.iter().map(|slice| slice.run.sequence_max).max().unwrap_or_default();
        let hull = crate::version::hull(taken);
        let top = inputs.iter().map(|input| input.level).min().unwrap_or(0);
        let mut ranges = Vec::new();
        for (level, nodes) in (0u8..).zip(&version.levels).skip(usize::from(top)) {
            for node in nodes.overlap(&hull) {
                let input = inputs.iter().find(|i| i.level == level && i.node == node.id);
                let is_taken = |s: &Slice| input.is_some_and(|input| input.takes(s));
                // Other nodes over `to_level` have no data that an input above them has too, and
                // are newer than the inputs below them: `check_inputs` sees to that.
                let skip = match input {
                    Some(_) => node.slices.iter().take_while(|s| !is_taken(s)).count(),
                    None if level < to_level => node.slices.len(),
                    None => 0,
                };
                let older = node.slices[skip..]
                    .iter()
                    .filter(|s| !is_taken(s) && s.run.sequence_min <= newest)
                    .map(|slice| slice.range.intersect(&hull))
                    .filter(|range| !range.is_empty());
                ranges.extend(older);
            }
        }
        OlderData { ranges: coalesce(ranges), at: 0 }
    }

    /// Whether an older version of `key` may exist outside the inputs. Keys of the inputs only, in
    /// ascending order; amortised constant time.
    pub fn may_hold(&mut self, key: &[u8]) -> bool {
        while self.ranges.get(self.at).is_some_and(|range| !range.is_before_end(key)) {
            self.at += 1;
        }
        self.ranges.get(self.at).is_some_and(|range| *range.start <= *key)
    }

    /// Whether an older version of any key of `range` may exist outside the inputs; for range
    /// tombstones, in any order. Keys outside the inputs' ranges count as held.
    pub fn may_hold_any(&self, range: &KeyRange) -> bool {
        let first = self
            .ranges
            .partition_point(|held| held.end.as_ref().is_some_and(|end| **end <= *range.start));
        self.ranges.get(first).is_some_and(|held| held.overlaps(range))
    }
}

fn coalesce(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.sort_by(|a, b| a.start.cmp(&b.start));
    let mut out: Vec<KeyRange> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.end.as_ref().is_none_or(|end| *end >= range.start) => {
                *last = last.union(&range);
            }
            _ => out.push(range),
        }
    }
    out
}
