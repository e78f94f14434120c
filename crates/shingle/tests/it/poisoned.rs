//! An edit fails in the manifest with an unknown outcome, while another worker is about to look for
//! work. The files of both outcomes must stay as they are, whatever that worker does next.

use crate::config::Config;
use crate::script::Script;
use crate::volume::seeds_for_cells;
use base::random::Random;
use media::faulty::{Effect, Fault, FaultPlan, FaultyStore, Filter, Operation};
use media::mem::{MemStore, Personality};
use media::{FileKind, Notes};
use shingle::{Db, Durability, Error, ErrorKind, Options, WriteOptions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The place at which a worker has found the database sound and takes no lock yet.
const PLACE: &str = "worker: before it looks for work";

const EFFECTS: [(Operation, Effect); 4] = [
    (Operation::Sync, Effect::Io),
    (Operation::Sync, Effect::IoDone),
    (Operation::Append, Effect::IoDone),
    (Operation::Append, Effect::IoHalfDone),
];

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

struct World {
    config: Config,
    script: Arc<Script>,
    store: MemStore,
    plan: Arc<FaultPlan>,
    db: Db,
    random: Random,
    expected: Content,
}

impl World {
    fn new(seed: u64) -> World {
        let config = Config::draw(seed);
        let (script, store) = (Arc::<Script>::default(), MemStore::new(Arc::default()));
        let plan = Arc::new(FaultPlan::default());
        let faulty = FaultyStore::new(Arc::new(store.clone()), plan.clone());
        let db = config.options().open_in(Arc::new(faulty), script.clone()).unwrap();
        let random = Random::new(seed);
        World { config, script, store, plan, db, random, expected: Content::new() }
    }

    /// A put that is durable once it is acknowledged. The one that fails may be there or not.
    fn put(&mut self) -> Result<(), Error> {
        let key = self.random.below(60).to_be_bytes().to_vec();
        let bytes = 1 + self.random.below(400) as usize;
        let value = vec![self.random.below(256) as u8; bytes];
        let mut batch = shingle::WriteBatch::new();
        batch.put(&key, &value)?;
        let options = WriteOptions { durability: Some(Durability::Synced), wait: true };
        self.db.write(batch, &options)?;
        self.expected.insert(key, value);
        Ok(())
    }

    /// Memtables that wait for their flushes, so that one is due when another fails.
    fn fill(&mut self) {
        let keyspace = self.db.keyspace("default").unwrap();
        for _ in 0..4 {
            for _ in 0..12 {
                self.put().unwrap();
            }
            keyspace.seal_for_test().unwrap();
        }
        keyspace.ask_flush_for_test().unwrap();
    }

    /// A second worker makes its steps, up to the failure, where the first is about to begin one.
    fn race(&self) {
        let (plan, script) = (self.plan.clone(), self.script.clone());
        let turns = AtomicU64::new(0);
        let before = plan.failures();
        self.script.at_place(Arc::new(move |place| {
            if place == PLACE && turns.fetch_add(1, SeqCst).is_multiple_of(2) {
                while plan.failures() == before && script.second() {}
            }
        }));
        while self.script.step() {}
        self.script.at_place(Arc::new(|_| {}));
    }

    /// The failure was that of a new manifest, which no root names: the old one goes on.
    fn has_failed_rewrite(&self) -> bool {
        let log = self.store.read_note("LOG").unwrap().unwrap_or_default();
        String::from_utf8(log).unwrap().contains("manifest_rewrite_failed")
    }

    fn look(&self, what: &str) {
        for personality in [Personality::KeepAll, Personality::LoseUnsynced] {
            let image = self.store.crash_image(&mut Random::new(1), personality);
            let again = self.config.open(Arc::new(image));
            let again = again.unwrap_or_else(|error| panic!("{what}, {personality:?}: {error}"));
            let pairs = again.iter().map(|pair| pair.map(|(k, v)| (k.to_vec(), v.to_vec())));
            let found = pairs.collect::<shingle::Result<Content>>();
            let found = found.unwrap_or_else(|error| panic!("{what}, {personality:?}: {error}"));
            assert_eq!(found, self.expected, "{what}, {personality:?}");
        }
    }
}

/// Regression: a worker had found the database sound, and began a flush after another worker's edit
/// had an unknown outcome. It cut a file at the end that the edit before had vouched for. The
/// failed edit had reached the medium, so the next opening refused the file: it was shorter than
/// the edit said.
#[test]
fn no_file_is_cut_that_an_edit_of_unknown_outcome_may_vouch_for() {
    let mut poisoned: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in seeds_for_cells(300) {
        let mut world = World::new(seed);
        for _ in 0..2 {
            world.fill();
            world.db.flush().unwrap();
        }
        world.fill();
        let (operation, effect) = EFFECTS[world.random.below(4) as usize];
        let filter = Filter { operation: Some(operation), kind: Some(FileKind::Manifest) };
        let after = world.random.below(6);
        world.plan.add(Fault { filter, after, is_sticky: false, effect });
        world.race();
        let what = format!("SHINGLE_TEST_SEED={seed}, {operation:?} {effect:?} after {after}");
        if world.plan.failures() > 0 && !world.has_failed_rewrite() {
            assert_eq!(world.put().unwrap_err().kind(), ErrorKind::Poisoned, "{what}");
            *poisoned.entry(world.config.scheme).or_default() += 1;
        }
        world.look(&what);
    }
    println!("{poisoned:?}");
    let is_one = std::env::var("SHINGLE_TEST_SEED").is_ok();
    assert!(is_one || poisoned.values().all(|&count| count > 3), "{poisoned:?}");
}

/// Regression: workers of a poisoned database with a failed compaction looked for work without a
/// pause, for ever.
#[test]
fn a_poisoned_database_lets_its_workers_sleep() {
    let (script, plan) = (Arc::<Script>::default(), Arc::new(FaultPlan::default()));
    let store = FaultyStore::new(Arc::new(MemStore::new(Arc::default())), plan.clone());
    let db = Options::new().open_in(Arc::new(store), script.clone()).unwrap();
    let at = |operation, kind| Filter { operation: Some(operation), kind: Some(kind) };
    for value in ["1", "2"] {
        db.put("key", value).unwrap();
        db.flush().unwrap();
    }
    let filter = at(Operation::Create, FileKind::Table);
    plan.add(Fault { filter, after: 0, is_sticky: true, effect: Effect::Io });
    assert_eq!(db.compact().unwrap_err().kind(), ErrorKind::Io);
    plan.clear();
    assert_eq!(db.stats().backed_off.len(), 1);
    assert!(script.sleeps_ns().is_some(), "it will be tried again");
    let filter = at(Operation::Append, FileKind::Wal);
    plan.add(Fault { filter, after: 0, is_sticky: false, effect: Effect::Io });
    db.put("key", "3").unwrap_err();
    assert_eq!(db.put("key", "4").unwrap_err().kind(), ErrorKind::Poisoned);
    script.pass(1_000_000_000);
    assert!(!script.step());
    assert_eq!(script.sleeps_ns(), None);
}
