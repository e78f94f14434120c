//! Random plans of all moves for the current tree, among them moves that no policy here makes:
//! links, appends to children, divides, balances, sets.

use base::random::Random;
use shingle::Keyspace;
use std::sync::Arc;
use tree::moves;
use tree::version::{Node, hull};
use tree::{Cut, Input, Move, Plan, Reason, Version};

/// What a plan is called in counts.
pub const NAMES: [&str; 7] = ["push", "merge", "merge alone", "set", "append", "divide", "balance"];

fn node(random: &mut Random, version: &Version, levels: u8) -> Option<(u8, Arc<Node>)> {
    let level = random.below(u64::from(levels)) as u8;
    let nodes = &version.level(level).nodes;
    let at = random.below(nodes.len() as u64) as usize;
    nodes.get(at).map(|node| (level, node.clone()))
}

/// The whole of a node, its older part, or, in level 0, a part from the middle.
fn input(random: &mut Random, level: u8, node: &Node) -> Input {
    let from = random.below(node.slices.len() as u64 + 1) as usize;
    let from = if random.one_in(2) { 0 } else { from };
    let mut input = Input::of(level, node.id, &node.slices[from..]);
    if level == 0 && random.one_in(3) {
        input.slices.truncate(2);
    }
    input
}

fn choose(random: &mut Random, version: &Version, levels: u8) -> Option<(usize, Move)> {
    let (level, node) = node(random, version, levels)?;
    let input = input(random, level, &node);
    let deeper = (level + 1 + u8::from(random.one_in(4))).min(levels - 1);
    let cut = Cut {
        table_bytes_max: 512 + random.below(4000),
        overlap_bytes_max: random.one_in(2).then(|| random.below(8000)),
    };
    let one_file = random.one_in(2);
    let parallel_max = 1 + random.below(3) as u8;
    let merge = |inputs, to_level| Move::Merge { inputs, to_level, cut, one_file, parallel_max };
    let has_data = !input.slices.is_empty();
    Some(match random.below(8) {
        0 | 1 if deeper > level && has_data => (0, Move::Push { input, to_level: deeper }),
        2 if deeper > level && has_data => {
            let hull = hull(input.taken(&node));
            let below = version.level(deeper).overlap(&hull).iter();
            let mut inputs = vec![input];
            inputs.extend(below.map(|node| Input::whole(deeper, node)));
            (if one_file { 3 } else { 1 }, merge(inputs, deeper))
        }
        3 if has_data => (if one_file { 3 } else { 2 }, merge(vec![input], level)),
        4 | 5 if deeper > level && has_data => {
            let file_bytes_max = (!random.one_in(4)).then(|| 2000 + random.below(20_000));
            let parts = 1 + random.below(4) as u32;
            (4, Move::Append { input, to_level: deeper, file_bytes_max, parts })
        }
        6 if level > 0 && has_data => {
            (5, Move::Divide { input, parts: 2 + random.below(3) as u32 })
        }
        _ if level > 0 => (6, balance(version, level, &node)?),
        _ => return None,
    })
}

fn balance(version: &Version, level: u8, node: &Node) -> Option<Move> {
    let nodes = &version.level(level).nodes;
    let at = nodes.iter().position(|other| other.id == node.id)?;
    let (from, mut range) = (node.id, node.range.clone());
    let right = nodes.get(at + 1).map(|node| node.id);
    if node.slices.is_empty() {
        let to = right.or_else(|| Some(nodes.get(at.checked_sub(1)?)?.id))?;
        return Some(Move::Balance { level, from, to, range });
    }
    // Only an end without data can be given away.
    range.start = hull(&node.slices).end?;
    let to = right?;
    (!range.is_empty()).then_some(Move::Balance { level, from, to, range })
}

/// Begins a random move in `keyspace`. Returns its index in [`NAMES`] if one fitted.
pub fn begin_random(
    keyspace: &Keyspace,
    random: &mut Random,
    levels: u8,
) -> shingle::Result<Option<usize>> {
    for _ in 0..6 {
        let version = keyspace.tree_for_test()?;
        let Some((name, action)) = choose(random, &version, levels) else { continue };
        let (inputs, to_level) = (action.inputs(), action.to_level());
        if !matches!(action, Move::Balance { .. })
            && moves::check_inputs(&version, &inputs, to_level).is_err()
        {
            continue;
        }
        let plan = Plan {
            action,
            reason: Reason::Manual,
            score: 1.0,
            read_bytes: 0,
            write_bytes: 0,
            cursors: Vec::new(),
        };
        if keyspace.begin_plan_for_test(plan)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}
