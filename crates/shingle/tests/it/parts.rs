//! Moves whose parts run in parallel. At any moment of a part, another part fails, the keyspace is
//! dropped or the database is closed. A move is made whole or not at all.

use crate::config::Config;
use crate::moves;
use crate::script::Script;
use crate::volume::seeds_for_cells;
use base::random::Random;
use media::faulty::{Act, Effect, Fault, FaultPlan, FaultyStore, Filter, Operation};
use media::mem::{MemStore, Personality};
use media::{FileKind, FileStore};
use shingle::{Db, ErrorKind, Keyspace, KeyspaceOptions, Options};
use std::collections::BTreeMap;
use std::sync::Arc;
use tree::version::LEVEL0_NODE;
use tree::{Cut, Input, Move, Plan, Reason};

const PARTS: u8 = 3;
const KEYSPACE: &str = "merged";
/// Operations of parts without a lock held, so that others may act meanwhile.
const MOMENTS: [Operation; 3] = [Operation::Create, Operation::Append, Operation::Sync];

fn tables(operation: Operation) -> Filter {
    Filter { operation: Some(operation), kind: Some(FileKind::Table) }
}

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(store: Arc<dyn FileStore>, script: &Arc<Script>, step_bytes: u64) -> Db {
    let options = Options::new().scheme("leveled").write_buffer_bytes(256 << 10).cache_bytes(0);
    let options = options.expert(|e| {
        e.memtable_bytes = Some(64 << 10);
        e.scheme.table_bytes_max = Some(4 << 10);
        e.block_bytes = Some(256);
        e.scheme.level0_runs_trigger = Some(100);
        e.step_bytes = Some(step_bytes);
        e.readahead_bytes = Some(1024);
    });
    options.open_in(store, script.clone()).unwrap()
}

fn content(keyspace: &Keyspace) -> Content {
    let pairs = keyspace.iter().map(|pair| pair.map(|(k, v)| (k.to_vec(), v.to_vec())));
    pairs.collect::<shingle::Result<Content>>().unwrap()
}

fn assert_same(found: &Content, expected: &Content, what: &str) {
    let missing = expected.keys().filter(|key| !found.contains_key(*key)).count();
    assert_eq!(missing, 0, "of {} keys are missing: {what}", expected.len());
    assert_eq!(found, expected, "{what}");
}

/// A database with runs in level 0 that a merge in several parts takes to level 1.
struct World {
    script: Arc<Script>,
    store: MemStore,
    plan: Arc<FaultPlan>,
    db: Db,
    keyspace: Keyspace,
    expected: Content,
}

impl World {
    fn new(step_bytes: u64) -> World {
        let (script, store) = (Arc::<Script>::default(), MemStore::new(Arc::default()));
        let plan = Arc::new(FaultPlan::default());
        let faulty = FaultyStore::new(Arc::new(store.clone()), plan.clone());
        let db = open(Arc::new(faulty), &script, step_bytes);
        let keyspace = db.create_keyspace(KEYSPACE, KeyspaceOptions::default()).unwrap();
        let mut expected = Content::new();
        // A run this small stays in level 0, and keeps later runs there.
        for n in [0, 159u64] {
            keyspace.put(n.to_be_bytes(), "old").unwrap();
        }
        db.flush().unwrap();
        for round in 0..4u8 {
            for n in (u64::from(round)..160).step_by(2) {
                let (key, value) = (n.to_be_bytes().to_vec(), vec![round; 100]);
                keyspace.put(&key, &value).unwrap();
                expected.insert(key, value);
            }
            db.flush().unwrap();
        }
        while script.step() {}
        World { script, store, plan, db, keyspace, expected }
    }

    /// `false`: its inputs are not free.
    fn begin(&self) -> bool {
        let version = self.keyspace.tree_for_test().unwrap();
        assert_eq!(version.level0().len(), 5, "the policy was to leave them alone");
        let inputs = vec![Input::of(0, LEVEL0_NODE, version.level0())];
        let cut = Cut { table_bytes_max: 4 << 10, overlap_bytes_max: None };
        let (to_level, one_file, parallel_max) = (1, false, PARTS);
        let action = Move::Merge { inputs, to_level, cut, one_file, parallel_max };
        self.keyspace.begin_plan_for_test(Plan::new(action, Reason::Manual, 1.0, 0)).unwrap()
    }

    fn steps(&self) {
        for steps in 0.. {
            assert!(steps < 5000, "it goes on for ever");
            if !self.script.step() {
                return;
            }
        }
    }

    /// The moments of an undisturbed merge.
    fn moments(step_bytes: u64) -> Vec<(Operation, u64)> {
        let world = World::new(step_bytes);
        let counts = || MOMENTS.map(|operation| world.plan.count(tables(operation)));
        let before = counts();
        assert!(world.begin());
        world.steps();
        world.look("undisturbed", true);
        let so_many = MOMENTS.iter().zip(counts().into_iter().zip(before));
        so_many.flat_map(|(&at, (all, old))| (0..all - old).map(move |n| (at, n))).collect()
    }

    /// All keys are there, at once and for the next opening, in the tables of a whole move or of
    /// none, and no others take space.
    fn look(&self, what: &str, is_moved: bool) {
        assert_same(&content(&self.keyspace), &self.expected, what);
        let version = self.keyspace.tree_for_test().unwrap();
        let is_below = version.levels.iter().skip(1).any(|level| !level.nodes.is_empty());
        assert_eq!((version.level0().is_empty(), is_below), (is_moved, is_moved), "{what}");
        self.look_at_files(what);
        let image = self.store.crash_image(&mut Random::new(1), Personality::LoseUnsynced);
        let again = open(Arc::new(image), &Arc::default(), 1 << 20);
        let found = content(&again.keyspace(KEYSPACE).unwrap());
        assert_same(&found, &self.expected, &format!("reopened: {what}"));
    }

    fn look_at_files(&self, what: &str) {
        let files = self.store.list().unwrap();
        let tables = files.iter().filter(|file| file.name.kind == FileKind::Table).count();
        assert_eq!(tables, self.db.files().len(), "tables that nobody lists: {what}");
    }
}

/// Another worker continues the other parts until one of their operations failed.
fn fails_elsewhere(
    plan: &Arc<FaultPlan>,
    script: &Arc<Script>,
    filter: Filter,
    effect: Effect,
) -> Act {
    let (plan, script) = (plan.clone(), script.clone());
    Box::new(move || {
        let before = plan.failures();
        plan.add(Fault { filter, after: 0, is_sticky: true, effect });
        while plan.failures() == before && script.second() {}
        plan.clear();
    })
}

/// Regression: one part of a merge failed for lack of space while another was in its last sync.
/// That one was the last to end, and installed the merge without the output of the first.
#[test]
fn no_merge_is_installed_without_the_part_that_failed() {
    let mut struck = 0;
    for step_bytes in [1 << 20, 2048] {
        let moments = World::moments(step_bytes);
        for (operation, effect) in [
            (Operation::Create, Effect::NoSpace),
            (Operation::Append, Effect::NoSpace),
            (Operation::Sync, Effect::Io),
            (Operation::Read, Effect::Io),
        ] {
            for &(at, after) in &moments {
                let world = World::new(step_bytes);
                let act = fails_elsewhere(&world.plan, &world.script, tables(operation), effect);
                world.plan.act(tables(at), after, act);
                assert!(world.begin());
                world.steps();
                let what = format!("{operation:?} {effect:?} in {at:?} {after}, {step_bytes}");
                let has_failed = world.plan.failures() > 0;
                world.look(&what, !has_failed);
                struck += u64::from(has_failed);
                if has_failed && effect == Effect::NoSpace {
                    assert!(world.begin(), "{what}: its inputs are free again");
                    world.steps();
                    world.look(&what, true);
                }
            }
        }
    }
    println!("{struck} merges failed");
    assert!(struck > 100, "{struck}");
}

/// A merge whose keyspace is dropped during any of its operations cannot be installed.
#[test]
fn a_merge_without_its_keyspace_leaves_no_file() {
    for (at, after) in World::moments(2048) {
        let world = World::new(2048);
        let db = world.db.clone();
        let drop = move || db.drop_keyspace(KEYSPACE).unwrap();
        world.plan.act(tables(at), after, Box::new(drop));
        assert!(world.begin());
        world.steps();
        world.look_at_files(&format!("dropped in {at:?} {after}"));
    }
}

/// A close between any two steps gives up what is not installed.
#[test]
fn a_close_between_two_parts_keeps_every_key() {
    let mut closed = 0;
    for steps in 0.. {
        let world = World::new(2048);
        assert!(world.begin());
        let is_over = (0..steps).any(|_| !world.script.step());
        world.db.close().unwrap();
        let again = open(Arc::new(world.store.clone()), &Arc::default(), 1 << 20);
        let keyspace = again.keyspace(KEYSPACE).unwrap();
        assert_eq!(content(&keyspace), world.expected, "closed after {steps} steps");
        let files = world.store.list().unwrap();
        let tables = files.iter().filter(|file| file.name.kind == FileKind::Table).count();
        assert_eq!(tables, again.files().len(), "closed after {steps} steps");
        if is_over {
            break;
        }
        closed += 1;
    }
    assert!(closed > usize::from(PARTS), "{closed}");
}

/// It is unknown whether an edit that failed in the manifest was made. So the files of both
/// outcomes stay, and the next opening finds every key with either.
#[test]
fn an_edit_that_fails_keeps_what_it_takes_and_what_it_brings() {
    for (operation, effect) in [
        (Operation::Append, Effect::IoHalfDone),
        (Operation::Append, Effect::IoDone),
        (Operation::Sync, Effect::Io),
        (Operation::Sync, Effect::IoDone),
    ] {
        let world = World::new(2048);
        let filter = Filter { operation: Some(operation), kind: Some(FileKind::Manifest) };
        world.plan.add(Fault { filter, after: 0, is_sticky: false, effect });
        assert!(world.begin());
        world.steps();
        assert_eq!(world.plan.failures(), 1, "{operation:?} {effect:?}");
        assert_eq!(world.keyspace.put("later", "").unwrap_err().kind(), ErrorKind::Poisoned);
        for personality in [Personality::KeepAll, Personality::LoseUnsynced] {
            let image = world.store.crash_image(&mut Random::new(1), personality);
            let again = open(Arc::new(image), &Arc::default(), 1 << 20);
            let found = content(&again.keyspace(KEYSPACE).unwrap());
            let what = format!("{operation:?} {effect:?}, {personality:?}");
            assert_same(&found, &world.expected, &what);
        }
    }
}

/// An edit that was out of space did not happen: the compaction runs again, its edit goes to a new
/// manifest, and no reopening is needed. Regression: a full medium at the manifest poisoned the
/// database.
#[test]
fn an_edit_that_finds_no_space_did_not_happen() {
    let mut world = World::new(2048);
    let filter = Filter { operation: Some(Operation::Append), kind: Some(FileKind::Manifest) };
    world.plan.add(Fault { filter, after: 0, is_sticky: false, effect: Effect::NoSpace });
    assert!(world.begin());
    world.steps();
    assert_eq!(world.plan.failures(), 1);
    for round in 0..2 {
        world.keyspace.put(format!("later {round}"), "").unwrap();
        world.expected.insert(format!("later {round}").into_bytes(), Vec::new());
        assert_same(&content(&world.keyspace), &world.expected, "in the open database");
        for personality in [Personality::KeepAll, Personality::LoseUnsynced] {
            world.db.sync().unwrap();
            let image = world.store.crash_image(&mut Random::new(1), personality);
            let again = open(Arc::new(image), &Arc::default(), 1 << 20);
            let found = content(&again.keyspace(KEYSPACE).unwrap());
            assert_same(&found, &world.expected, &format!("{personality:?}, round {round}"));
        }
        // The next edit, in a new manifest.
        world.db.flush().unwrap();
        world.keyspace.compact().unwrap();
    }
}

/// A database under a random configuration, whose compactions sometimes meet a full medium.
struct Full {
    config: Config,
    script: Arc<Script>,
    store: MemStore,
    plan: Arc<FaultPlan>,
    db: Db,
    random: Random,
    expected: Content,
}

impl Full {
    fn new(seed: u64) -> Full {
        let mut config = Config::draw(seed);
        config.expert.memtable_bytes = Some(16 << 10);
        let (script, store) = (Arc::<Script>::default(), MemStore::new(Arc::default()));
        let plan = Arc::new(FaultPlan::default());
        let faulty = FaultyStore::new(Arc::new(store.clone()), plan.clone());
        let db = config.options().open_in(Arc::new(faulty), script.clone()).unwrap();
        let random = Random::new(seed);
        Full { config, script, store, plan, db, random, expected: Content::new() }
    }

    /// With enough space: an earlier failure of background work may still be reported.
    fn write(&mut self) {
        let from = self.random.below(150);
        for _ in 0..60 {
            let key = (from + self.random.below(60)).to_be_bytes().to_vec();
            if self.random.one_in(4) {
                told(|| self.db.delete(&key));
                self.expected.remove(&key);
            } else {
                let value = vec![self.random.below(256) as u8; self.random.below(150) as usize];
                told(|| self.db.put(&key, &value));
                self.expected.insert(key, value);
            }
        }
        told(|| self.db.flush());
    }

    /// Compactions, some by the policy and some at random. During one of their operations, another
    /// one fails.
    fn compact(&mut self) -> u64 {
        let before = self.plan.failures();
        let mut one = |from: &[Operation]| from[self.random.below(from.len() as u64) as usize];
        let at = one(&MOMENTS);
        let fails = one(&[Operation::Create, Operation::Append]);
        let kind = match self.random.one_in(4) {
            true => FileKind::Value,
            false => FileKind::Table,
        };
        let filter = Filter { operation: Some(fails), kind: Some(kind) };
        let act = fails_elsewhere(&self.plan, &self.script, filter, Effect::NoSpace);
        self.plan.act(tables(at), self.random.below(6), act);
        let keyspace = self.db.keyspace("default").unwrap();
        for _ in 0..3 {
            moves::begin_random(&keyspace, &mut self.random, self.config.levels()).unwrap();
        }
        for _ in 0..self.random.below(60) {
            self.script.step();
        }
        self.plan.clear();
        self.plan.failures() - before
    }

    fn look(&self, what: &str) {
        let keyspace = self.db.keyspace("default").unwrap();
        assert_same(&content(&keyspace), &self.expected, what);
        let image = self.store.crash_image(&mut Random::new(1), Personality::LoseUnsynced);
        let again = self.config.open(Arc::new(image)).unwrap();
        let found = content(&again.keyspace("default").unwrap());
        assert_same(&found, &self.expected, &format!("reopened: {what}"));
    }
}

/// Repeats a call that reports a full medium that compactions met.
fn told(call: impl Fn() -> shingle::Result<()>) {
    for _ in 0..20 {
        match call() {
            Err(error) if error.kind() == ErrorKind::NoSpace => {}
            result => return result.unwrap(),
        }
    }
    panic!("out of space, although there is some");
}

#[test]
fn compactions_of_every_scheme_meet_a_full_medium_now_and_then() {
    let mut failures: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in seeds_for_cells(80) {
        let mut full = Full::new(seed);
        for round in 0..12 {
            full.write();
            let count = full.compact();
            *failures.entry(full.config.scheme).or_default() += count;
            full.look(&format!("SHINGLE_TEST_SEED={seed}, round {round}, {:?}", full.config));
        }
        told(|| full.db.wait_idle());
        full.look(&format!("SHINGLE_TEST_SEED={seed}, idle, {:?}", full.config));
        let files = full.store.list().unwrap();
        let tables = files.iter().filter(|file| file.name.kind == FileKind::Table).count();
        assert_eq!(tables, full.db.files().len(), "tables that nobody lists, seed {seed}");
        let report = full.db.check(&mut |_| {}).unwrap();
        assert!(report.is_clean(), "seed {seed}: {:?}", report.problems);
    }
    println!("{failures:?}");
    let is_one = std::env::var("SHINGLE_TEST_SEED").is_ok();
    assert!(is_one || failures.values().all(|&count| count > 5), "{failures:?}");
}
