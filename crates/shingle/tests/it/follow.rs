//! A follower sees what the writer wrote, whole batches, at one moment, on every configuration and
//! beside a writer that is killed.

use crate::config::Config;
use crate::copies::shown;
use crate::history::{Generator, Step, profile};
use crate::kill::{batch, spawn_writer, verify};
use crate::model::{Found, Model};
use crate::run::{Failure, Outcome, Runner, read_all, replay, wrong};
use crate::volume::{ByCell, scaled, seeds_for_cells, seeds_for_schemes};
use base::random::Random;
use media::faulty::{Effect, Fault, FaultPlan, FaultyStore, Filter, Operation};
use media::mem::MemStore;
use media::{FileKind, FileStore};
use parking_lot::Mutex;
use shingle::{
    Db, Durability, ErrorKind, Keyspace, KeyspaceOptions, Options, WriteBatch, WriteOptions,
};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A handle that a follower gave earlier, and what it showed.
struct Earlier {
    db: Db,
    found: Found,
}

fn is_same(one: &Found, other: &Found) -> bool {
    let prints =
        |found: &Found| found.iter().map(|(at, c)| (*at, c.fingerprint)).collect::<Vec<_>>();
    prints(one) == prints(other)
}

fn follow_history(config: &Config, seed: u64) -> Result<u64, Failure> {
    let store: Arc<dyn FileStore> = Arc::new(MemStore::new(Arc::default()));
    let model = Arc::new(Mutex::new(Model::new()));
    let mut runner = Runner::open(config, store.clone(), model, seed)?;
    let follower = config.options().follow_in(store, runner.config.runtime())?;
    let mut earlier: Option<Earlier> = None;
    let mut compared = 0;
    let profile = profile(400).sometimes_expiring(seed);
    for (at, step) in Generator::new(seed, profile).steps().iter().enumerate() {
        runner.step(step)?;
        if matches!(step, Step::Advance(_)) {
            earlier = None; // values of it expired
        }
        if at % 7 != 0 {
            continue;
        }
        // Twice: the second time there may be nothing new, which must change nothing.
        for _ in 0..2 {
            follower.catch_up()?;
        }
        if at % 21 == 0 {
            let found = shown(&runner.model.lock(), &follower)?;
            if let Some(Earlier { db, found }) = earlier.take()
                && !is_same(&read_all(&db)?, &found)
            {
                wrong(format!("step {at}: what the follower showed earlier has changed"))?;
            }
            earlier = Some(Earlier { db: follower.db(), found });
            compared += 1;
        }
    }
    let refused: Outcome = match follower.db().put("a", "b") {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(()),
        taken => wrong(format!("a follower took a write: {taken:?}")),
    };
    refused?;
    runner.finish()?;
    Ok(compared)
}

#[test]
fn a_follower_shows_the_history_on_every_configuration() {
    let mut compared = ByCell::default();
    for seed in seeds_for_cells(30) {
        let config = Config::draw(seed);
        let count = follow_history(&config, seed).unwrap_or_else(|failure| {
            panic!("{} {config:?}", replay("a_follower_shows", seed, &failure))
        });
        compared.add(&config, count);
    }
    compared.finish("comparisons", 10);
}

const KEYS: usize = 200;

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

/// Writes batches that give a pair of keys, one in each keyspace, the same rising number.
fn write_pairs(db: &Db, rounds: u64, acknowledged: &[AtomicU64]) {
    let mirror = db.keyspace("mirror").unwrap();
    let mut random = Random::new(3);
    for round in 1..=rounds {
        let key = random.below(KEYS as u64);
        let value = [&round.to_le_bytes()[..], &vec![b'v'; random.below(300) as usize]].concat();
        let mut batch = WriteBatch::new();
        batch.put(format!("{key:04}"), &value).unwrap();
        batch.put_in(&mirror, format!("{key:04}"), &value).unwrap();
        db.write(batch, &WriteOptions::default()).unwrap();
        acknowledged[key as usize].store(round, Ordering::Release);
        if round % 500 == 0 {
            db.compact().unwrap();
        }
    }
}

/// Both keyspaces agree, and no number is below its floor.
fn check_pairs(db: &Db, floors: &[u64]) {
    let pairs = |of: Keyspace| of.iter().map(Result::unwrap).collect::<Vec<_>>();
    let one = pairs(db.keyspace("default").unwrap());
    let other = pairs(db.keyspace("mirror").unwrap());
    assert!(one == other, "a batch was seen in part");
    for (key, floor) in floors.iter().enumerate().filter(|(_, floor)| **floor > 0) {
        let found = db.get(format!("{key:04}")).unwrap().map_or(0, |value| number(&value));
        assert!(found >= *floor, "{found} is older than the acknowledged {floor}");
    }
}

/// A writer and a follower in threads, over a directory that each opened for itself.
#[test]
fn a_follower_beside_a_busy_writer_sees_whole_batches_and_all_that_was_acknowledged() {
    for seed in seeds_for_schemes(1) {
        let config = Config { stepped: None, ..Config::draw(seed) };
        let home = tempfile::tempdir().unwrap();
        let db = config.options().open(home.path()).unwrap();
        db.create_keyspace("mirror", KeyspaceOptions::default()).unwrap();
        let follower = config.options().follow(home.path()).unwrap();
        let acknowledged: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        let stop = AtomicBool::new(false);
        let catch_ups = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut count = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    let floors: Vec<u64> =
                        acknowledged.iter().map(|n| n.load(Ordering::Acquire)).collect();
                    match follower.catch_up() {
                        Err(error) if error.kind() == ErrorKind::WouldWait => continue,
                        Err(error) => panic!("{config:?}: {error}"),
                        Ok(_) => check_pairs(&follower.db(), &floors),
                    }
                    count += 1;
                }
                count
            });
            write_pairs(&db, 1500, &acknowledged);
            stop.store(true, Ordering::Relaxed);
            reader.join().unwrap()
        });
        assert!(catch_ups > 0, "the follower never caught up with {config:?}");
    }
}

/// The writer is another process, killed and started again; the follower goes on through all that.
#[test]
fn a_follower_survives_the_kills_of_its_writer() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("db");
    crate::kill::open(&path).close().unwrap();
    let follower = Options::new().follow(&path).unwrap();
    follower.poll_every(Duration::from_millis(10));
    let mut seen = 0;
    for kill in 0..scaled(6) {
        let mut child = spawn_writer(&path, Stdio::null());
        std::thread::sleep(Duration::from_millis(100 + 40 * kill));
        // Of what was acknowledged before the call, everything is there.
        let floor = verify(&follower.db(), 0);
        follower.catch_up().unwrap();
        let now = verify(&follower.db(), floor.max(seen));
        child.kill().unwrap();
        child.wait().unwrap();
        follower.catch_up().unwrap();
        seen = verify(&follower.db(), now);
    }
    assert!(seen > 0, "the writers wrote nothing");
    let db = crate::kill::open(&path);
    assert_eq!(verify(&db, seen), seen, "the follower lagged behind");
    db.write(batch(seen + 1), &WriteOptions::synced()).unwrap();
    follower.catch_up().unwrap();
    assert_eq!(verify(&follower.db(), seen + 1), seen + 1);
    assert!(follower.poll_error().is_none());
}

#[test]
fn damage_in_a_log_that_goes_on_is_an_error_and_not_the_end() {
    let store = MemStore::new(Arc::default());
    let options = Options::new().durability(Durability::Synced);
    let db = options.open_store(Arc::new(store.clone())).unwrap();
    for n in 0..50u32 {
        db.put(n.to_be_bytes(), [7; 100]).unwrap();
    }
    let log = store.list().unwrap().iter().map(|f| f.name).find(|n| n.kind == FileKind::Wal);
    let log = log.unwrap();
    store.overwrite(log, 2000, &[0xa5; 16]).unwrap();
    // A later log proves that the damaged part was written.
    db.keyspace("default").unwrap().seal_for_test().unwrap();
    db.put("later", "x").unwrap();
    let error = Options::new().follow_store(Arc::new(store)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains(&log.to_string()), "{error}");
}

/// A bit that flips on the way from the medium makes a record look unfinished, or a log look as if
/// it were being created.
#[test]
fn what_a_follower_misread_once_it_shows_at_the_next_catch_up() {
    let store = MemStore::new(Arc::default());
    let db = Options::new().open_store(Arc::new(store.clone())).unwrap();
    for n in 0..20u32 {
        db.put(n.to_be_bytes(), "value").unwrap();
    }
    let filter = Filter { operation: Some(Operation::Read), kind: Some(FileKind::Wal) };
    for after in 0.. {
        let fault = Fault { filter, after, is_sticky: false, effect: Effect::FlippedBit };
        let plan = FaultPlan::with(fault);
        let store = FaultyStore::new(Arc::new(store.clone()), plan.clone());
        let runtime = Arc::new(shingle::runtime::Stepped::new(after, 2));
        let follower = Options::new().follow_in(Arc::new(store), runtime).unwrap();
        follower.catch_up().unwrap();
        follower.catch_up().unwrap();
        assert_eq!(follower.db().iter().count(), 20, "read {after} gave a flipped bit");
        if plan.failures() == 0 {
            assert!(after > 2, "a follower reads a header and records");
            break;
        }
    }
}
