//! A database with a cold store: where values are stored, which openings are allowed, what is left
//! when either store loses power, fails or is full.

use crate::config::Config;
use crate::crash::{Sweep, short};
use crate::fault::{self, run_with, tiny};
use crate::history::{Generator, profile};
use crate::medium::{Medium, Pair};
use crate::model::Model;
use crate::run::{Failure, Runner, replay};
use crate::volume::{scaled, seeds_for_schemes};
use base::random::Random;
use media::faulty::{Effect, Fault, FaultPlan, Filter};
use media::mem::MemStore;
use media::{FileKind, FileStore, Space};
use parking_lot::Mutex;
use shingle::{Backups, Db, ErrorKind, Options, check_store, runtime, salvage_store};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const KEYS: u64 = 400;
/// One key in this many is updated all the time, the others never.
const HOT_ONE_IN: u64 = 4;
const HOT_KEYS: u64 = KEYS / HOT_ONE_IN;

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Options::new()
        .values("hashed")
        .value_threshold_bytes(64)
        .write_buffer_bytes(32 << 10)
        .cache_bytes(64 << 10)
        .expert(|e| {
            e.memtable_bytes = Some(8 << 10);
            e.scheme.table_bytes_max = Some(8 << 10);
            e.scheme.level_bytes_base = Some(16 << 10);
            e.values.segment_bytes = Some(8 << 10);
            e.values.log_segment_bytes = Some(1 << 10);
            e.values.reserved_ratio = Some(0.05);
        })
}

fn open_in(store: Arc<dyn FileStore>) -> shingle::Result<Db> {
    options().open_in(store, Arc::new(runtime::Stepped::new(7, 2)))
}

fn key(n: u64) -> Vec<u8> {
    format!("key{n:05}").into_bytes()
}

fn put(db: &Db, content: &mut Content, random: &mut Random, n: u64) {
    let mut value = vec![0; 200];
    random.fill(&mut value);
    db.put(key(n), &value).unwrap();
    content.insert(key(n), value);
}

/// Writes every key once, and some of them again and again.
fn write(db: &Db, seed: u64) -> Content {
    let (mut content, mut random) = (Content::new(), Random::new(seed));
    (0..KEYS).for_each(|n| put(db, &mut content, &mut random, n));
    for _ in 0..20 * HOT_KEYS {
        let n = random.below(HOT_KEYS) * HOT_ONE_IN;
        put(db, &mut content, &mut random, n);
    }
    for _ in 0..6 {
        db.flush().unwrap();
        db.compact().unwrap();
        db.wait_idle().unwrap();
    }
    content
}

fn assert_content(db: &Db, content: &Content) {
    let found: Content = db
        .iter()
        .map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())))
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(found == *content, "{} keys for {}", found.len(), content.len());
    let report = db.check(&mut |_| {}).unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
}

fn value_bytes(store: &MemStore) -> u64 {
    let files = store.list().unwrap();
    assert!(files.iter().all(|file| file.name.kind != FileKind::Value || file.bytes > 0));
    files.iter().filter(|file| file.name.kind == FileKind::Value).map(|file| file.bytes).sum()
}

#[test]
fn values_that_do_not_change_lie_in_the_cold_store_and_everything_finds_them() {
    let pair = Pair::new();
    let db = open_in(pair.store().unwrap()).unwrap();
    let content = write(&db, 1);
    let values = db.stats().values;
    let cold = (KEYS - HOT_KEYS) * 200;
    println!("{values:?}");
    assert!(values.cold_store_bytes >= cold / 2, "{values:?} for {cold} bytes that stay");
    assert_eq!(value_bytes(&pair.cold), values.cold_store_bytes);
    assert_eq!(value_bytes(&pair.first), values.total_bytes - values.cold_store_bytes);
    assert!(db.stats().to_string().contains("in the cold store"));
    assert_content(&db, &content);
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    db.close().unwrap();
    assert!(check_store(pair.store().unwrap(), &mut |_| {}).unwrap().is_clean());
    let report = salvage_store(pair.store().unwrap(), &at("saved"), options(), &mut |_| {});
    assert!(report.unwrap().losses.is_empty());
    assert_content(&options().open(at("saved")).unwrap(), &content);
    let db = open_in(pair.store().unwrap()).unwrap();
    assert_content(&db, &content);
    for key in content.keys() {
        db.delete(key).unwrap();
    }
    for _ in 0..6 {
        db.flush().unwrap();
        db.compact().unwrap();
        db.wait_idle().unwrap();
    }
    let left = value_bytes(&pair.cold);
    assert!(left < cold / 4, "{left} bytes of deleted values in the cold store");
}

/// Writes a database `db` with the cold store `cold`, its checkpoint `copy`, and `restored` from a
/// backup, all in `directory`.
fn write_with_copies(directory: &Path, seed: u64) -> Content {
    let at = |name: &str| directory.join(name);
    let db = options().open_with_cold(at("db"), at("cold")).unwrap();
    let content = write(&db, seed);
    assert!(db.stats().values.cold_store_bytes > 0);
    db.checkpoint(at("copy")).unwrap();
    let backups = Backups::open(at("backups")).unwrap();
    let backup = backups.create(&db, &mut |_| {}).unwrap();
    backups.restore(backup.number, at("restored"), &mut |_| {}).unwrap();
    db.close().unwrap();
    content
}

#[test]
fn a_checkpoint_of_both_stores_opens_alone() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let content = write_with_copies(directory.path(), 2);
    let copy = options().open(at("copy")).unwrap();
    assert_content(&copy, &content);
    assert_eq!(copy.stats().values.cold_store_bytes, 0);
    assert_content(&options().open_with_cold(at("db"), at("cold")).unwrap(), &content);
}

/// Its cold values would be leftovers: the manifest of the copy lists them as files of its own.
#[test]
fn a_copy_opened_with_the_cold_store_of_the_original_removes_nothing_there() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let content = write_with_copies(directory.path(), 5);
    for copy in ["copy", "restored"] {
        let error = options().open_with_cold(at(copy), at("cold")).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("another copy of this database"), "{error}");
    }
    assert_content(&options().open_with_cold(at("db"), at("cold")).unwrap(), &content);
    // The copy may have a cold store of its own, and knows it again.
    for _ in 0..2 {
        let copy = options().open_with_cold(at("copy"), at("cold of the copy")).unwrap();
        assert_content(&copy, &content);
        copy.close().unwrap();
    }
}

#[test]
fn without_its_cold_store_or_with_that_of_another_a_database_says_so() {
    let (one, other) = (Pair::new(), Pair::new());
    let content = write(&open_in(one.store().unwrap()).unwrap(), 3);
    // With another seed, because the runtime draws the number of the database.
    let runtime = Arc::new(runtime::Stepped::new(8, 2));
    write(&options().open_in(other.store().unwrap(), runtime).unwrap(), 4);
    let before = (one.first.content_hash(), one.cold.content_hash(), other.cold.content_hash());
    let error = open_in(Arc::new(one.first.clone())).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("are in a cold store"), "{error}");
    let wrong = Pair { first: one.first.clone(), cold: other.cold.with_ledger(one.ledger()) };
    let error = open_in(wrong.store().unwrap()).err().unwrap();
    assert!(error.message().contains("cold store of another database"), "{error}");
    let wrong = Pair { first: one.first.clone(), cold: other.first.with_ledger(one.ledger()) };
    let error = open_in(wrong.store().unwrap()).err().unwrap();
    assert!(error.message().contains("holds a database"), "{error}");
    let error = open_in(Arc::new(one.cold.clone())).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Incompatible, "{error}");
    let after = (one.first.content_hash(), one.cold.content_hash(), other.cold.content_hash());
    assert_eq!(before, after, "a refused opening writes nothing");
    let lost = Pair { cold: MemStore::new(one.ledger()), first: one.first.clone() };
    let error = open_in(lost.store().unwrap()).err().unwrap();
    assert!(error.message().contains("missing in the cold store"), "{error}");
    assert_content(&open_in(one.store().unwrap()).unwrap(), &content);
}

#[test]
fn a_database_is_not_created_with_another_database_as_its_cold_store() {
    let (new, other) = (Pair::new(), Pair::new());
    open_in(Arc::new(other.first.clone())).unwrap().close().unwrap();
    let wrong = Pair { first: new.first.clone(), cold: other.first.with_ledger(new.ledger()) };
    let error = open_in(wrong.store().unwrap()).err().unwrap();
    assert!(error.message().contains("holds a database"), "{error}");
    assert!(new.first.root().unwrap().is_none() && new.first.list().unwrap().is_empty());
}

#[test]
fn a_cold_store_that_took_nothing_can_be_left_out_again() {
    let pair = Pair::new();
    let db = open_in(pair.store().unwrap()).unwrap();
    db.put("key", [1; 300]).unwrap();
    db.close().unwrap();
    let db = open_in(Arc::new(pair.first.clone())).unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&[1; 300][..]));
}

#[test]
fn a_follower_reads_segments_that_came_into_the_cold_store_since_it_was_opened() {
    let pair = Pair::new();
    let db = open_in(pair.store().unwrap()).unwrap();
    let runtime = Arc::new(runtime::Stepped::new(9, 2));
    let follower = options().follow_in(pair.store().unwrap(), runtime).unwrap();
    let content = write(&db, 6);
    db.flush().unwrap();
    assert!(db.stats().values.cold_store_bytes > 0);
    assert!(follower.catch_up().unwrap());
    assert_content(&follower.db(), &content);
}

#[test]
fn when_the_cold_store_is_full_values_stay_in_their_groups() {
    let pair = Pair::new();
    // Space for five GCs: some values go there, and then no more.
    let capacity_bytes = 5 * 2 * (8 << 10);
    pair.cold.set_capacity_bytes(Some(capacity_bytes));
    let db = open_in(pair.store().unwrap()).unwrap();
    let content = write(&db, 5);
    let stats = db.stats();
    println!("{:?}", stats.values);
    assert!(stats.backed_off.is_empty(), "{:?}", stats.backed_off);
    let cold = stats.values.cold_store_bytes;
    assert!(cold > 0 && cold < (KEYS - HOT_KEYS) * 200, "{cold} bytes");
    assert!(
        pair.cold
            .capacity()
            .unwrap()
            .space()
            .is_some_and(|Space { free_bytes, .. }| free_bytes > 0)
    );
    assert!(stats.values.collected.count > 10, "collections go on");
    assert_content(&db, &content);
}

/// A configuration that moves values to the cold log whenever it can.
fn config(seed: u64) -> Config {
    let mut config = Config { values: "hashed", value_threshold: 20, ..Config::draw(seed) };
    config.expert.values.hotness = Some(true);
    config.expert.values.segment_bytes = Some(16 << 10);
    config.expert.values.log_segment_bytes = Some(1 << 10);
    config.expert.values.reserved_ratio = Some(0.0);
    config
}

#[test]
fn histories_give_the_same_answers_with_a_cold_store() {
    let mut cold_bytes = 0;
    for seed in seeds_for_schemes(8) {
        let steps = Generator::new(seed, profile(400)).steps();
        let (config, pair) = (config(seed), Pair::new());
        let model = Arc::new(Mutex::new(Model::new()));
        let outcome = Runner::open(&config, pair.store().unwrap(), model, seed)
            .and_then(|mut runner| runner.run(&steps).and_then(|()| runner.finish()));
        outcome.unwrap_or_else(|failure| {
            panic!("{} {config:?}", replay("histories_give", seed, &failure))
        });
        cold_bytes += pair.cold.raw_write_bytes();
    }
    println!("{cold_bytes} bytes to cold stores");
    assert!(std::env::var("SHINGLE_TEST_SEED").is_ok() || cold_bytes > 100_000);
}

#[test]
fn power_lost_at_any_operation_on_either_store_leaves_a_prefix() {
    let (mut images, mut cold_bytes) = (0, 0);
    let stride = (12 / scaled(1)).max(1);
    for seed in seeds_for_schemes(8) {
        let (config, pair) = (config(seed), Pair::new());
        let steps = Generator::new(seed, short(120)).steps();
        let swept = Sweep::strided(&config, seed, 1, stride).run(&pair, &steps, seed);
        let counts = swept.unwrap_or_else(|what| {
            let line = replay("power_lost_at_any_operation_on", seed, &Failure::Wrong(what));
            panic!("{line} {config:?}")
        });
        images += counts.images;
        cold_bytes += pair.cold.raw_write_bytes();
    }
    println!("{images} images, {cold_bytes} bytes to cold stores");
    assert!(std::env::var("SHINGLE_TEST_SEED").is_ok() || (images > 400 && cold_bytes > 20_000));
}

#[test]
fn every_operation_on_either_store_fails_in_its_turn() {
    let mut counts = fault::Counts::default();
    for seed in seeds_for_schemes(3) {
        let config = config(seed);
        let steps = Generator::new(seed, tiny()).steps();
        let clean = Arc::new(FaultPlan::default());
        let run = |plan: &Arc<FaultPlan>, counts: &mut fault::Counts| {
            run_with::<Pair>(&config, &steps, plan, seed, counts).unwrap_or_else(|failure| {
                panic!("{} {config:?}", replay("every_operation_on", seed, &failure))
            });
        };
        run(&clean, &mut counts);
        let filter = Filter { operation: None, kind: Some(FileKind::Value) };
        for (effect, is_sticky) in
            [(Effect::Io, false), (Effect::NoSpace, true), (Effect::IoDone, false)]
        {
            let total = clean.count(filter);
            let stride = (total / scaled(15).max(1)).max(1);
            for after in (seed % stride..total).step_by(stride as usize) {
                let plan = FaultPlan::with(Fault { filter, after, is_sticky, effect });
                run(&plan, &mut counts);
            }
        }
    }
    println!("{counts:?}");
    assert!(std::env::var("SHINGLE_TEST_SEED").is_ok() || counts.struck > 100);
}
