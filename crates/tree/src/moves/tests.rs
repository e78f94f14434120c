//! Random sequences of valid moves, against a model of what the tree must hold.
//!
//! The policy here is chance: any node, any move that `check_inputs` allows, begun and finished in
//! any order. Every edit is checked by the full checker; every key is read and compared.

use crate::edit::{Change, RunRecord, SliceRecord};
use crate::invariant::Shape;
use crate::moves;
use crate::plan::{Cut, Input, Move, Plan, Reason};
use crate::policy::{Debt, Policy, View, leveled};
use crate::run_table::RunTable;
use crate::simulate::{Entry, Store, Work};
use crate::version::{Graveyard, Node, NodeId, Version};
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
    fn pick_manual(&self, _: &View<'_>, _: &KeyRange, _: Option<u8>) -> Option<Plan> {
        None
    }
}

struct Chaos {
    store: Store,
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

impl Chaos {
    fn new(seed: u64) -> Chaos {
        let mut limits = (leveled::LEVELDB.limits)(1000);
        limits.levels = LEVELS;
        let mut store = Store::new(Box::new(Nobody), limits, 10);
        store.check_all = true;
        Chaos {
            store,
            model: BTreeMap::new(),
            random: Random::new(seed),
            sequence: 0,
            under_way: Vec::new(),
            done: BTreeMap::new(),
        }
    }

    fn flush(&mut self) {
        let mut entries = BTreeMap::new();
        let from = self.random.below(KEYS);
        for _ in 0..=self.random.below(8) {
            self.sequence += 1;
            let key = ((from + self.random.below(25)) % KEYS) as u32;
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
        let runs = node.runs();
        let from = self.random.below(runs.len() as u64 + 1) as usize * usize::from(level == 0);
        let mut runs = runs[from.min(runs.len())..].to_vec();
        if level == 0 && self.random.one_in(3) {
            runs.truncate(2);
        }
        Input { level, node: node.id, runs }
    }

    fn choose(&mut self) -> Option<(&'static str, Move)> {
        let (level, node) = self.node()?;
        let input = self.input(level, &node);
        let deeper = (level + 1).min(LEVELS - 1);
        let cut = Cut {
            table_bytes_max: 10 + self.random.below(80),
            overlap_bytes_max: Some(self.random.below(200)),
        };
        let merge = |inputs, to_level| Move::Merge {
            inputs,
            to_level,
            cut,
            one_file: false,
            parallel_max: 1,
        };
        let has_data = !input.runs.is_empty();
        Some(match self.random.below(7) {
            0 if deeper > level && has_data => ("push", Move::Push { input, to_level: deeper }),
            1 | 2 if deeper > level && has_data => {
                let hull = moves::split(&node, &input).0;
                let hull = crate::version::hull(&hull);
                let below = self.store.version.level(deeper).overlap(&hull).iter();
                let mut inputs = vec![input];
                inputs.extend(below.map(|n| Input { level: deeper, node: n.id, runs: n.runs() }));
                ("merge", merge(inputs, deeper))
            }
            3 if has_data => ("merge alone", merge(vec![input], level)),
            4 if deeper > level && has_data => {
                let (file_bytes_max, parts) = (20 + self.random.below(200), 3);
                ("append", Move::Append { input, to_level: deeper, file_bytes_max, parts })
            }
            5 if level > 0 && has_data => ("divide", Move::Divide { input, parts: 3 }),
            _ if level > 0 => self.balance(level, &node)?,
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
        match self.random.below(6) {
            0 | 1 => self.flush(),
            2 if !self.under_way.is_empty() => self.finish(),
            _ => {
                let Some((name, action)) = self.choose() else { return };
                let plan = plan(action);
                let (inputs, to_level) = plan.action.inputs();
                let version = &self.store.version;
                let is_balance = matches!(plan.action, Move::Balance { .. });
                if self.store.busy.conflicts(version, &plan)
                    || (!is_balance && moves::check_inputs(version, &inputs, to_level).is_err())
                {
                    return;
                }
                *self.done.entry(name).or_default() += 1;
                let work = self.store.begin(plan);
                self.under_way.push(work);
                if self.random.one_in(2) {
                    self.finish();
                }
            }
        }
        self.compare();
    }

    fn finish(&mut self) {
        let at = self.random.below(self.under_way.len() as u64) as usize;
        let work = self.under_way.swap_remove(at);
        let shown = format!("{work:?}");
        if let Err(error) = self.store.finish(work) {
            panic!("{error}: {shown}");
        }
    }

    /// What a rewritten manifest holds gives the same tree.
    fn compare_snapshot(&self) {
        let mut runs = RunTable::new(Arc::new(Graveyard::default()));
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
        for key in 0..KEYS as u32 {
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

#[test]
fn small_edits_of_a_large_tree_keep_its_invariants() {
    let mut runs = RunTable::new(Arc::new(Graveyard::default()));
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
        }));
        let slices = vec![SliceRecord { run: id, range: range.clone(), bytes }];
        changes.push(Change::AddNode { level: 1, node: NodeId(number + 1), range, slices });
    }
    let mut version = Version::empty(3).apply(&changes, &mut runs).unwrap();
    for node in 1..=200 {
        let input = Input { level: 1, node: NodeId(node), runs: vec![RunId(node - 1)] };
        let changes = moves::push(&version, &input, 2, &moves::Proportional).unwrap();
        version = version.apply(&changes, &mut runs).unwrap();
        crate::invariant::check_edit(&version, &changes, &Shape::ANY).unwrap();
    }
    assert_eq!(version.level(2).nodes.len(), 200);
}

#[test]
fn chance_reaches_every_move() {
    let mut done: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..40 {
        let mut chaos = Chaos::new(seed);
        (0..120).for_each(|_| chaos.act());
        for (name, count) in chaos.done {
            *done.entry(name).or_default() += count;
        }
    }
    for name in ["push", "merge", "merge alone", "append", "divide", "balance"] {
        assert!(done.get(name).is_some_and(|&count| count >= 10), "{name}: {done:?}");
    }
}
