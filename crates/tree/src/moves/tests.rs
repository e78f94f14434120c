//! Random moves, several at a time, against a model of what the tree must hold.
//!
//! Moves are chosen by chance (any node, any move that `check_inputs` allows), or by a scheme of
//! the registry with chance between. Moves are begun as [`Busy`](crate::policy::Busy) allows, end
//! in any order or are given up, and pushes and flushes come in between. Every edit is checked by
//! the full checker; every key is read and compared.

use crate::edit::{Change, RunRecord, SliceRecord};
use crate::invariant::Shape;
use crate::moves;
use crate::plan::{Cut, Input, Move, Plan, Reason};
use crate::policy::{
    Debt, Descriptor, FlushCut, Limits, Policy, View, Wanted, adaptive, leveled, registry,
};
use crate::run_table::RunTable;
use crate::simulate::{Entry, Store, Work};
use crate::sketch::KnownKeys;
use crate::version::{BELOW_LEVEL, Node, NodeId, ObsoleteFiles, Version};
use base::random::Random;
use base::{FileId, KeyRange, RunId};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const LEVELS: u8 = 4;
const KEYS: u64 = 60;

/// Chooses nothing: the test does.
struct Nobody;

impl Policy for Nobody {
    fn name(&self) -> &'static str {
        "nobody"
    }
    fn shape(&self) -> Shape {
        Shape::ANY
    }
    fn pick(&self, _: &View<'_>) -> Option<Plan> {
        None
    }
    fn scores(&self, _: &View<'_>) -> Vec<f64> {
        Vec::new()
    }
    fn debt(&self, _: &View<'_>) -> Debt {
        Debt::default()
    }
    fn pick_manual(&self, _: &View<'_>, _: &Wanted, _: Option<u8>) -> Option<Plan> {
        None
    }
}

struct Chaos {
    store: Store,
    /// Chance chooses once in this many times.
    chance: u64,
    keys: u64,
    /// Chance cuts nodes of this many bytes at most: wide ones get several slices of a run.
    table_bytes: u64,
    model: BTreeMap<u32, Entry>,
    random: Random,
    sequence: u64,
    under_way: Vec<Work>,
    done: BTreeMap<&'static str, u32>,
}

fn plan(action: Move) -> Plan {
    Plan {
        action,
        reason: Reason::Manual,
        score: 1.0,
        read_bytes: 0,
        write_bytes: 0,
        cursors: Vec::new(),
    }
}

/// Limits so small that a few entries make a tree of several levels and tables.
fn tiny(scheme: &Descriptor, random: &mut Random) -> Limits {
    let mut one = |from: &[u64]| from[random.below(from.len() as u64) as usize];
    Limits {
        levels: LEVELS,
        memtable_bytes: 80,
        level0_runs_trigger: one(&[1, 2, 4]) as usize,
        level_bytes_base: one(&[50, 150]),
        fan_out: one(&[2, 3]) as f64,
        table_bytes_max: one(&[40, 80, 160]),
        overlap_bytes_max: Some(300),
        expansion_bytes_max: one(&[200, 1000]),
        stack_max: one(&[2, 3, 5]) as usize,
        links_max: [None, Some(1), Some(3)][one(&[0, 1, 2]) as usize],
        division_parts: one(&[2, 3]) as u32,
        parallel_max: 4,
        ..(scheme.limits)(80)
    }
}

/// A node and its level.
type Place = (u8, Arc<Node>);

/// Maximum number of moves in progress.
const UNDER_WAY_MAX: usize = 4;

impl Chaos {
    fn new(seed: u64) -> Chaos {
        let mut limits = (leveled::LEVELDB.limits)(1000);
        limits.levels = LEVELS;
        Chaos::with(Store::new(Box::new(Nobody), limits, 10), seed)
    }

    /// Under a scheme, with chance in between.
    fn under(scheme: &Descriptor, seed: u64) -> Chaos {
        let limits = tiny(scheme, &mut Random::new(seed));
        let mut chaos = Chaos::with(Store::new((scheme.make)(), limits, 10), seed);
        chaos.chance = 3;
        chaos.keys = 100;
        chaos
    }

    fn with(mut store: Store, seed: u64) -> Chaos {
        store.check_all = true;
        Chaos {
            store,
            chance: 1,
            keys: KEYS,
            table_bytes: if seed.is_multiple_of(2) { 80 } else { 500 },
            model: BTreeMap::new(),
            random: Random::new(seed),
            sequence: 0,
            under_way: Vec::new(),
            done: BTreeMap::new(),
        }
    }

    fn flush(&mut self) {
        let mut entries = BTreeMap::new();
        let from = self.random.below(self.keys);
        for _ in 0..=self.random.below(8) {
            self.sequence += 1;
            let key = ((from + self.random.below(25)) % self.keys) as u32;
            let is_delete = self.random.one_in(3);
            entries.insert(key, Entry { key, sequence: self.sequence, is_delete });
        }
        self.model.extend(&entries);
        let entries: Vec<Entry> = entries.into_values().collect();
        self.store.flush(&entries).unwrap();
    }

    fn node(&mut self) -> Option<(u8, Arc<Node>)> {
        let level = self.random.below(u64::from(LEVELS)) as u8;
        let nodes = &self.store.version.level(level).nodes;
        if nodes.is_empty() {
            return None;
        }
        let at = self.random.below(nodes.len() as u64) as usize;
        Some((level, self.store.version.level(level).nodes[at].clone()))
    }

    /// The whole of a node, its older part, or, in level 0, a part from the middle.
    fn input(&mut self, level: u8, node: &Node) -> Input {
        let from = self.random.below(node.slices.len() as u64 + 1) as usize;
        let from = if level == 0 || self.random.one_in(2) { from } else { 0 };
        let mut input = Input::of(level, node.id, &node.slices[from..]);
        if level == 0 && self.random.one_in(3) {
            input.slices.truncate(2);
        }
        input
    }

    /// Two slices of one run in two nodes, the second no higher than the first; and the place of
    /// the first in its stack.
    fn pair(&mut self) -> Option<(Place, usize, Place)> {
        let version = &self.store.version;
        let mut slices = Vec::new();
        for (level, nodes) in (0u8..).zip(&version.levels) {
            for node in nodes.nodes.iter() {
                let places = node.slices.iter().enumerate();
                slices.extend(places.map(|(at, slice)| ((level, node.clone()), at, slice.run.id)));
            }
        }
        let mut pairs = Vec::new();
        for (one, at, run) in &slices {
            let others = slices.iter().filter(|(other, _, of)| of == run && other.0 >= one.0);
            let others = others.filter(|(other, ..)| other.1.id != one.1.id);
            pairs.extend(others.map(|(other, ..)| (one, *at, other)));
        }
        let (one, at, other) = pairs.get(self.random.below(pairs.len() as u64) as usize)?;
        Some(((*one).clone(), *at, (*other).clone()))
    }

    /// One of two slices of a run goes down; or, where the other has done so, that one's node is
    /// rewritten, and the first follows.
    fn overtake(&mut self) {
        let Some(((level, node), at, (lower, other))) = self.pair() else { return };
        if level + 1 >= BELOW_LEVEL {
            return;
        }
        for _ in 0..3 * u8::from(lower > level) {
            let input = Input::whole(lower, &other);
            let rewrite = self.rewrite(lower, &other, input);
            if self.try_begin(rewrite) {
                break;
            }
        }
        let input = Input::of(level, node.id, &node.slices[at..]);
        if self.try_begin(Some(("follow", Move::Push { input, to_level: level + 1 }))) {
            self.finish_at(self.under_way.len() - 1);
        }
    }

    fn choose(&mut self) -> Option<(&'static str, Move)> {
        let (level, node) = self.node()?;
        let input = self.input(level, &node);
        let deeper = (level + 1).min(LEVELS - 1);
        if deeper > level && !input.slices.is_empty() && self.random.one_in(3) {
            return Some(("push", Move::Push { input, to_level: deeper }));
        }
        self.rewrite(level, &node, input)
    }

    fn rewrite(&mut self, level: u8, node: &Node, input: Input) -> Option<(&'static str, Move)> {
        let deeper = (level + 1).min(LEVELS - 1);
        let cut = Cut {
            table_bytes_max: 10 + self.random.below(self.table_bytes),
            overlap_bytes_max: Some(self.random.below(200)),
        };
        let merge = |inputs, to_level| Move::Merge {
            inputs,
            to_level,
            cut,
            one_file: false,
            parallel_max: 1,
        };
        let has_data = !input.slices.is_empty();
        Some(match self.random.below(6) {
            0 | 1 if deeper > level && has_data => {
                let hull = moves::split(node, &input).0;
                let hull = crate::version::hull(&hull);
                let below = self.store.version.level(deeper).overlap(&hull).iter();
                let mut inputs = vec![input];
                inputs.extend(below.map(|node| Input::whole(deeper, node)));
                ("merge", merge(inputs, deeper))
            }
            2 if has_data => ("merge alone", merge(vec![input], level)),
            3 if deeper > level && has_data => {
                let room = self.random.below(250);
                // Now and then a file for each run.
                let file_bytes_max = (room < 200).then(|| 20 + room);
                let name = if file_bytes_max.is_some() { "append" } else { "append on top" };
                let parts = 3;
                (name, Move::Append { input, to_level: deeper, file_bytes_max, parts })
            }
            4 if level > 0 && has_data => ("divide", Move::Divide { input, parts: 3 }),
            _ if level > 0 => self.balance(level, node)?,
            _ => return None,
        })
    }

    fn balance(&mut self, level: u8, node: &Node) -> Option<(&'static str, Move)> {
        let nodes = &self.store.version.level(level).nodes;
        let at = nodes.iter().position(|other| other.id == node.id)?;
        let to = nodes.get(at + 1).or_else(|| nodes.get(at.checked_sub(1)?))?.id;
        let (from, range) = (node.id, node.range.clone());
        node.slices.is_empty().then_some(("balance", Move::Balance { level, from, to, range }))
    }

    fn act(&mut self) {
        match self.random.below(12) {
            0..=2 => self.flush(),
            3..=5 if !self.under_way.is_empty() => self.finish(),
            6 if !self.under_way.is_empty() => self.give_up(),
            _ if self.under_way.len() < UNDER_WAY_MAX => self.begin(),
            _ => self.finish(),
        }
        self.compare();
    }

    fn begin(&mut self) {
        if !self.random.one_in(self.chance) {
            let Some(plan) = self.store.policy().pick(&self.store.view()) else { return };
            let (inputs, to_level) = (plan.action.inputs(), plan.action.to_level());
            moves::check_inputs(&self.store.version, &inputs, to_level)
                .unwrap_or_else(|error| panic!("{error}: {plan:?}"));
            let is_free = !self.store.busy.conflicts(&self.store.version, &plan);
            assert!(is_free, "{}: {plan:?}", self.store.policy().name());
            let work = self.store.begin(plan);
            return self.under_way.push(work);
        }
        if self.random.one_in(4) {
            return self.overtake();
        }
        let chosen = self.choose();
        if self.try_begin(chosen) && self.random.one_in(2) {
            self.finish_at(self.under_way.len() - 1);
        }
    }

    fn try_begin(&mut self, chosen: Option<(&'static str, Move)>) -> bool {
        let Some((name, action)) = chosen else { return false };
        let plan = plan(action);
        let (inputs, to_level) = (plan.action.inputs(), plan.action.to_level());
        let version = &self.store.version;
        let is_balance = matches!(plan.action, Move::Balance { .. });
        if self.store.busy.conflicts(version, &plan)
            || (!is_balance && moves::check_inputs(version, &inputs, to_level).is_err())
        {
            return false;
        }
        *self.done.entry(name).or_default() += 1;
        let work = self.store.begin(plan);
        self.under_way.push(work);
        true
    }

    fn finish(&mut self) {
        let at = self.random.below(self.under_way.len() as u64) as usize;
        self.finish_at(at);
    }

    /// A move failed: the tree stays as it is.
    fn give_up(&mut self) {
        let at = self.random.below(self.under_way.len() as u64) as usize;
        let work = self.under_way.swap_remove(at);
        self.store.give_up(work);
    }

    fn finish_at(&mut self, at: usize) {
        let work = self.under_way.swap_remove(at);
        let shown = format!("{work:?}");
        if let Err(error) = self.store.finish(work) {
            panic!("{error}: {shown}");
        }
    }

    /// What a rewritten manifest holds gives the same tree.
    fn compare_snapshot(&self) {
        let mut runs = RunTable::new(Arc::new(ObsoleteFiles::default()));
        let changes = self.store.version.snapshot_changes();
        let again = Version::empty(LEVELS).apply(&changes, &mut runs).unwrap();
        assert_eq!(again, self.store.version);
        assert_eq!(runs.runs_count(), self.store.version.runs_count());
    }

    /// The table counts what the version has.
    fn compare_counts(&self) {
        let mut slices: BTreeMap<FileId, usize> = BTreeMap::new();
        for slice in self.store.version.slices() {
            *slices.entry(slice.run.file.id).or_default() += 1;
        }
        for (file, count) in slices {
            assert_eq!(self.store.runs.slices_in(file), count, "file {file}");
        }
    }

    fn compare(&self) {
        self.compare_counts();
        for key in 0..self.keys as u32 {
            let alive = |entry: &Entry| !entry.is_delete;
            let found = self.store.get(key).filter(alive);
            let expected = self.model.get(&key).copied().filter(alive);
            assert_eq!(found, expected, "key {key}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn no_sequence_of_moves_loses_or_reorders_data(seed: u64) {
        let mut chaos = Chaos::new(seed);
        for _ in 0..120 {
            chaos.act();
        }
        chaos.compare_snapshot();
    }
}

/// One scheme after the other, each with the tree that the one before left and its moves in
/// progress.
fn side_by_side(seed: u64) {
    let schemes = registry();
    let mut chaos = Chaos::under(&schemes[(seed % schemes.len() as u64) as usize], seed);
    for _ in 0..200 {
        if chaos.random.one_in(60) {
            let next = &schemes[chaos.random.below(schemes.len() as u64) as usize];
            chaos.store.set_policy((next.make)());
        }
        chaos.act();
    }
    chaos.compare_snapshot();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn no_scheme_loses_or_reorders_data_with_moves_side_by_side(seed: u64) {
        side_by_side(seed);
    }
}

/// `lazy-leveling` took a slice whose estimate is 0 bytes for none, and level 0 past it.
#[test]
fn slices_of_no_bytes_are_not_passed() {
    side_by_side(16_192_830_939_255_634_200);
}

#[test]
fn small_edits_of_a_large_tree_keep_its_invariants() {
    let mut runs = RunTable::new(Arc::new(ObsoleteFiles::default()));
    let file = FileId(1);
    let mut changes = vec![Change::File { file, bytes: 10_000 }];
    for number in 0..5_000u64 {
        let key = |n: u64| n.to_be_bytes();
        let range = KeyRange::closed(&key(2 * number), &key(2 * number + 1));
        let (id, offset, bytes) = (RunId(number), number, 1);
        changes.push(Change::AddRun(RunRecord {
            id,
            file,
            offset,
            bytes,
            range: range.clone(),
            entries: 1,
            deletes: 0,
            range_deletes: 0,
            sequence_min: 1,
            sequence_max: 1,
            expiry: None,
            keys: KnownKeys::default(),
        }));
        let slices = vec![SliceRecord { run: id, range: range.clone(), bytes }];
        changes.push(Change::AddNode { level: 1, node: NodeId(number + 1), range, slices });
    }
    let mut version = Version::empty(3).apply(&changes, &mut runs).unwrap();
    for node in 1..=200 {
        let input = Input::whole(1, version.node(1, NodeId(node)).unwrap());
        let changes = moves::push(&version, &input, 2, &moves::Proportional).unwrap();
        version = version.apply(&changes, &mut runs).unwrap();
        crate::invariant::check_edit(&version, &changes, &Shape::ANY).unwrap();
    }
    assert_eq!(version.level(2).nodes.len(), 200);
}

/// The newest `stay` slices of the node of `level` that holds `key` stay, the others go.
fn below(store: &Store, level: u8, key: u32, stay: usize) -> Input {
    let node = store.version.level(level).find(&key.to_be_bytes()).unwrap();
    Input::of(level, node.id, &node.slices[stay..])
}

fn push(store: &mut Store, input: Input, to_level: u8) {
    let work = store.begin(plan(Move::Push { input, to_level }));
    store.finish(work).unwrap();
}

/// A node of level 2, and above it a run over all of its keys, in two slices: one alone in its
/// node of level 1, the other with what lay there before.
fn linked_to_two() -> Store {
    let mut store = Chaos::new(0).store;
    for (sequence, keys, to_level) in [(1, 0..20, 2), (2, 0..10, 1), (3, 10..20, 1), (4, 0..20, 1)]
    {
        let entry = |key| Entry { key, sequence, is_delete: false };
        store.flush(&keys.map(entry).collect::<Vec<_>>()).unwrap();
        let input = below(&store, 0, 0, 0);
        push(&mut store, input, to_level);
    }
    let older = below(&store, 1, 10, 1);
    push(&mut store, older, 2);
    store
}

/// The rest of a run was pushed onto a node that was being merged with the first part of it: the
/// merge took away both, and had read the first alone.
#[test]
fn a_slice_pushed_during_a_merge_outlives_the_others_of_its_run() {
    let whole = |store: &Store, level, key| below(store, level, key, 0);
    let cut = Cut { table_bytes_max: 1000, overlap_bytes_max: None };
    for to_level in [2, 3] {
        let mut store = linked_to_two();
        let first = whole(&store, 1, 0);
        push(&mut store, first, 2);
        let inputs = vec![whole(&store, 2, 0)];
        let (one_file, parallel_max) = (false, 1);
        let merge =
            store.begin(plan(Move::Merge { inputs, to_level, cut, one_file, parallel_max }));
        let rest = whole(&store, 1, 10);
        push(&mut store, rest, 2);
        store.finish(merge).unwrap();
        let found: Vec<Option<u64>> =
            (0..20).map(|key| store.get(key).map(|entry| entry.sequence)).collect();
        assert_eq!(found, vec![Some(4); 20], "merged to level {to_level}");
    }
}

#[test]
fn chance_reaches_every_move() {
    let mut done: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..60 {
        let mut chaos = Chaos::new(seed);
        (0..120).for_each(|_| chaos.act());
        for (name, count) in chaos.done {
            *done.entry(name).or_default() += count;
        }
    }
    let names =
        ["push", "follow", "merge", "merge alone", "append", "append on top", "divide", "balance"];
    for name in names {
        assert!(done.get(name).is_some_and(|&count| count >= 10), "{name}: {done:?}");
    }
}

/// Level 0 is appended to two nodes while they are merged into one, whichever ends first. An append
/// to the nodes' own files waits for the merge instead.
#[test]
fn an_append_in_files_of_its_own_goes_onto_what_a_merge_made_meanwhile() {
    let entries = |keys: std::ops::Range<u32>, sequence| -> Vec<Entry> {
        keys.map(|key| Entry { key, sequence, is_delete: false }).collect()
    };
    for append_ends_first in [true, false] {
        let mut store = Store::new(Box::new(Nobody), (adaptive::ADAPTIVE.limits)(100), 1);
        let onto = FlushCut { level: 3, table_bytes_max: 100 };
        store.flush_onto(&entries(0..10, 1), onto).unwrap();
        store.flush_onto(&entries(10..20, 2), onto).unwrap();
        store.flush(&entries(5..15, 3)).unwrap();
        let inputs =
            store.version.level(3).nodes.iter().map(|node| Input::whole(3, node)).collect();
        let cut = Cut { table_bytes_max: 100, overlap_bytes_max: None };
        let (one_file, parallel_max) = (false, 1);
        let merge = Move::Merge { inputs, to_level: 3, cut, one_file, parallel_max };
        let merge = store.begin(plan(merge));
        let append = |file_bytes_max| {
            let input = below(&store, 0, 5, 0);
            plan(Move::Append { input, to_level: 3, file_bytes_max, parts: 1 })
        };
        assert!(store.busy.conflicts(&store.version, &append(Some(u64::MAX))));
        let append = append(None);
        assert!(!store.busy.conflicts(&store.version, &append));
        let append = store.begin(append);
        let (first, second) = if append_ends_first { (append, merge) } else { (merge, append) };
        store.finish(first).unwrap();
        store.finish(second).unwrap();
        let of = |key| store.get(key).map(|entry| entry.sequence);
        let expected =
            |key| Some(if (5..15).contains(&key) { 3 } else { 1 + u64::from(key >= 10) });
        assert!((0..20).all(|key| of(key) == expected(key)));
        assert_eq!(store.version.level(3).nodes.len(), 1);
        crate::invariant::check(&store.version, &Shape::ANY).unwrap();
    }
}

/// Two nodes are merged into one while a flush goes between them.
#[test]
fn what_comes_between_the_nodes_of_a_merge_stays_on_top() {
    let mut store = Store::new(Box::new(Nobody), (adaptive::ADAPTIVE.limits)(100), 1);
    let entries = |keys: std::ops::Range<u32>, sequence| -> Vec<Entry> {
        keys.map(|key| Entry { key, sequence, is_delete: false }).collect()
    };
    let cut = FlushCut { level: 3, table_bytes_max: 100 };
    store.flush_onto(&entries(0..5, 1), cut).unwrap();
    store.flush_onto(&entries(15..20, 2), cut).unwrap();
    let inputs = store.version.level(3).nodes.iter().map(|node| Input::whole(3, node)).collect();
    let cut_merge = Cut { table_bytes_max: 100, overlap_bytes_max: None };
    let action =
        Move::Merge { inputs, to_level: 3, cut: cut_merge, one_file: false, parallel_max: 1 };
    let merge = store.begin(Plan::new(action, Reason::NodeBytes, 1.0, 10));
    store.flush_onto(&entries(8..12, 3), cut).unwrap();
    store.finish(merge).unwrap();
    let found: Vec<Option<u64>> =
        (0..20).map(|key| store.get(key).map(|entry| entry.sequence)).collect();
    let expected: Vec<Option<u64>> = (0..20)
        .map(|key| match key {
            0..5 => Some(1),
            8..12 => Some(3),
            15..20 => Some(2),
            _ => None,
        })
        .collect();
    assert_eq!(found, expected);
    crate::invariant::check(&store.version, &Shape::ANY).unwrap();
}
