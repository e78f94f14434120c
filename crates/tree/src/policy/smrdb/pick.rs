//! Which bands are merged, and which go down.

use crate::moves;
use crate::plan::{Cut, Input, Move, Plan, Reason};
use crate::policy::View;
use crate::version::{LEVEL0_NODE, Node, Slice, Version};
use base::RunId;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// A slice that has this many times the bytes of all newer ones of its width stays as it is.
const BASE_RATIO: u64 = 4;

/// The lower level: the deepest that has nodes.
fn bottom(version: &Version) -> u8 {
    version.levels.iter().rposition(|level| !level.nodes.is_empty()).unwrap_or(0).max(1) as u8
}

/// Level 0 by its runs, levels between by there being any nodes, the lower one by its stacks.
pub(super) fn scores(view: &View<'_>) -> Vec<f64> {
    let bottom = bottom(view.version);
    let level0 = view.version.level0().len() as f64 / view.limits.level0_runs_trigger.max(1) as f64;
    let between = (1..bottom).map(|level| f64::from(u8::from(has_nodes(view.version, level))));
    let most = groups(view, bottom).first().map_or(0.0, |group| group.score);
    std::iter::once(level0).chain(between).chain(std::iter::once(most)).collect()
}

fn has_nodes(version: &Version, level: u8) -> bool {
    !version.level(level).nodes.is_empty()
}

/// Bytes of the stacks that are higher than they may be.
pub(super) fn debt(view: &View<'_>) -> u64 {
    let nodes = view.version.level(bottom(view.version)).nodes.iter();
    let high = nodes.filter(|node| node.slices.len() > view.limits.stack_max);
    high.map(|node| node.bytes()).sum()
}

/// A merge whose output are bands.
fn bands(view: &View<'_>, inputs: Vec<Input>, to_level: u8) -> Move {
    // A run is cut when it has this much; what ends it comes on top.
    let band = view.limits.table_bytes_max;
    let cut = Cut { table_bytes_max: (band - band / 64).max(1), overlap_bytes_max: None };
    Move::Merge { inputs, to_level, cut, one_file: false, parallel_max: 1 }
}

/// A due level 0: its oldest run goes down if it is a band, or if it overlaps no other run there;
/// else the oldest ones become a band.
pub(super) fn level0(view: &View<'_>) -> Option<Plan> {
    let stack = view.version.level0();
    let score = stack.len() as f64 / view.limits.level0_runs_trigger.max(1) as f64;
    let oldest = stack.last().filter(|_| score >= 1.0)?;
    let mut count = 0;
    let mut bytes = 0;
    for slice in stack.iter().rev() {
        if bytes + slice.bytes > view.limits.table_bytes_max {
            break;
        }
        bytes += slice.bytes;
        count += 1;
    }
    let overlaps = stack[..stack.len() - 1].iter().any(|other| other.range.overlaps(&oldest.range));
    let is_band = oldest.bytes >= view.limits.table_bytes_max / 2;
    let input = |count: usize| Input::of(0, LEVEL0_NODE, &stack[stack.len() - count..]);
    let found = if is_band || !overlaps || count < 2 {
        let input = input(1);
        let to_level = bottom(view.version);
        Plan::new(Move::Push { input, to_level }, Reason::Level0Runs, score, 0)
    } else {
        Plan::new(bands(view, vec![input(count)], 0), Reason::Level0Runs, score, bytes)
    };
    view.allows(&found).then_some(found)
}

/// Nothing is between level 0 and the lower level: what goes down passes nothing older.
pub(super) fn is_drained(view: &View<'_>) -> bool {
    (1..bottom(view.version)).all(|level| !has_nodes(view.version, level))
}

/// What another scheme left between level 0 and the lower level goes down, deepest first.
pub(super) fn drain(view: &View<'_>) -> Option<Plan> {
    let bottom = bottom(view.version);
    for level in (1..bottom).rev() {
        let found = view.version.level(level).nodes.iter().find_map(|node| {
            let input = Input::whole(level, node);
            let action = match node.slices.is_empty() {
                true => Move::Drop { inputs: vec![input] },
                false => Move::Push { input, to_level: bottom },
            };
            let found = Plan::new(action, Reason::LevelBytes, 1.0, 0);
            view.allows(&found).then_some(found)
        });
        // The levels above wait for this one.
        if found.is_some() || has_nodes(view.version, level) {
            return found;
        }
    }
    None
}

/// Slices of equal width next to each other in a stack.
struct Group<'a> {
    node: &'a Arc<Node>,
    slices: Range<usize>,
    width: u32,
    score: f64,
}

/// The groups that are due, widest first.
fn groups<'a>(view: &View<'a>, bottom: u8) -> Vec<Group<'a>> {
    let nodes = &view.version.level(bottom).nodes;
    let least = view.limits.fan_out.max(2.0) as usize;
    let mut due = Vec::new();
    if !nodes.iter().any(|node| node.slices.len() >= least) {
        return due;
    }
    let mut spans: HashMap<RunId, usize> = HashMap::new();
    for slice in nodes.iter().flat_map(|node| &node.slices) {
        *spans.entry(slice.run.id).or_default() += 1;
    }
    let width = |slice: &Slice| {
        let span = spans.get(&slice.run.id).copied().unwrap_or(1).max(1);
        span.ilog(least)
    };
    for node in nodes.iter().filter(|node| node.slices.len() >= least) {
        let mut from = 0;
        while from < node.slices.len() {
            let width_here = width(&node.slices[from]);
            let equal = node.slices[from..].iter().take_while(|s| width(s) == width_here).count();
            let slices = from..from + equal;
            from += equal;
            if equal < least {
                continue;
            }
            let score = overlapping(&node.slices[slices.clone()]) as f64 / least as f64;
            due.extend((score >= 1.0).then_some(Group { node, slices, width: width_here, score }));
        }
        let max = view.limits.stack_max.max(1);
        let height = if node.slices.len() > max { overlapping(&node.slices) } else { 0 };
        if height > max {
            let score = height as f64 / max as f64;
            due.push(Group { node, slices: 0..node.slices.len(), width: 0, score });
        }
    }
    due.sort_by(|a, b| b.width.cmp(&a.width).then(b.score.total_cmp(&a.score)));
    due
}

/// The most of these slices that have one key in common.
fn overlapping(slices: &[Slice]) -> usize {
    let mut starts: Vec<&[u8]> = slices.iter().map(|slice| &*slice.range.start).collect();
    let mut ends: Vec<&[u8]> =
        slices.iter().filter_map(|slice| slice.range.end.as_deref()).collect();
    starts.sort_unstable();
    ends.sort_unstable();
    let mut most = 0;
    let mut ended = 0;
    for (begun, start) in (1..).zip(starts) {
        while ends.get(ended).is_some_and(|end| *end <= start) {
            ended += 1;
        }
        most = most.max(begun - ended);
    }
    most
}

/// The widest bands that overlap become narrower.
pub(super) fn merge(view: &View<'_>) -> Option<Plan> {
    let bottom = bottom(view.version);
    groups(view, bottom).into_iter().find_map(|group| {
        let wide = (group.width > 0).then(|| across(view, bottom, &group)).flatten();
        let inputs = wide.unwrap_or_else(|| vec![within(bottom, &group)]);
        let bytes = input_bytes(view.version, &inputs);
        let found = Plan::new(bands(view, inputs, bottom), Reason::StackHeight, group.score, bytes);
        view.allows(&found).then_some(found)
    })
}

/// The slices of a group in its node alone. A large one at the bottom stays, if what would be
/// merged into it is little, and what would be merged without it overlaps.
fn within(level: u8, group: &Group<'_>) -> Input {
    let mut slices = &group.node.slices[group.slices.clone()];
    while let [newer @ .., oldest] = slices
        && overlapping(newer) > 1
        && oldest.bytes > BASE_RATIO * newer.iter().map(|slice| slice.bytes).sum::<u64>()
    {
        slices = newer;
    }
    Input::of(level, group.node.id, slices)
}

/// The bands of a group wherever they show, with what stands between them in the stacks there.
/// None: that would be too much at once, or older data would come to stand above newer.
fn across(view: &View<'_>, level: u8, group: &Group<'_>) -> Option<Vec<Input>> {
    let nodes = &view.version.level(level).nodes;
    let group_slices = &group.node.slices[group.slices.clone()];
    let mut runs: HashSet<RunId> = group_slices.iter().map(|slice| slice.run.id).collect();
    loop {
        let taken = runs.len();
        let inputs: Vec<Input> =
            nodes.iter().filter_map(|node| between(level, node, &runs)).collect();
        if input_bytes(view.version, &inputs) > view.limits.expansion_bytes_max {
            return None;
        }
        runs.extend(inputs.iter().flat_map(Input::runs));
        if runs.len() == taken {
            return moves::check_inputs(view.version, &inputs, level).is_ok().then_some(inputs);
        }
    }
}

/// The slices of a node from the newest of `runs` to the oldest.
fn between(level: u8, node: &Node, runs: &HashSet<RunId>) -> Option<Input> {
    let shows = |slice: &Slice| runs.contains(&slice.run.id);
    let first = node.slices.iter().position(shows)?;
    let last = node.slices.iter().rposition(shows)?;
    Some(Input::of(level, node.id, &node.slices[first..=last]))
}

fn input_bytes(version: &Version, inputs: &[Input]) -> u64 {
    let nodes =
        inputs.iter().filter_map(|input| Some((input, version.node(input.level, input.node)?)));
    let taken = |(input, node): (&Input, &Arc<Node>)| -> u64 {
        input.taken(node).map(|slice| slice.bytes).sum()
    };
    nodes.map(taken).sum()
}
