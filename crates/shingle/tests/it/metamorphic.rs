//! One history gives the same answers on many configurations: those of the model.

use crate::config::Config;
use crate::history::{Generator, Profile, Step, profile};
use crate::medium::{Direct, KINDS, Kind, Medium};
use crate::model::Model;
use crate::run::{Failure, Outcome, Runner, replay, wrong};
use crate::volume::{ByCell, Cells, is_left_out, scaled, seeds_for_cells, seeds_for_schemes};
use base::Ledger;
use media::FileStore;
use media::mem::MemStore;
use media::os::{OsOptions, OsStore};
use parking_lot::Mutex;
use std::sync::Arc;

/// The store that is a directory.
const FILES: &str = "files";

fn run(
    config: &Config,
    store: Arc<dyn FileStore>,
    steps: &[Step],
    seed: u64,
) -> Result<Runner, Failure> {
    let model = Arc::new(Mutex::new(Model::new()));
    let mut runner = Runner::open(config, store, model, seed)?;
    runner.run(steps)?;
    runner.finish()?;
    Ok(runner)
}

fn in_memory(config: &Config, steps: &[Step], seed: u64) -> Result<Runner, Failure> {
    let store = MemStore::new(Arc::default());
    let runner = run(config, Arc::new(store.clone()), steps, seed)?;
    ledger_agrees(&store)?;
    Ok(runner)
}

fn ledger_agrees(store: &MemStore) -> Outcome {
    let host = store.ledger().snapshot().host();
    let raw = store.raw();
    if (host.write_bytes, host.read_bytes) != (raw.write_bytes, raw.read_bytes) {
        return wrong(format!("the ledger has {host:?}, the store received {raw:?}"));
    }
    Ok(())
}

#[test]
fn one_history_gives_equal_answers_on_every_configuration() {
    let mut relocations = [0; crate::moves::NAMES.len()];
    let (mut ingestions, mut below) = (ByCell::default(), 0);
    let mut steps_run = ByCell::default();
    for seed in seeds_for_cells(60) {
        let steps = Generator::new(seed, profile(700)).steps();
        for variant in 0..4 {
            let drawn = Config::draw(seed * 4 + variant);
            // A database that keeps changes ingests nothing.
            let config = Config { keeps_changes: drawn.keeps_changes && variant < 2, ..drawn };
            let runner = in_memory(&config, &steps, seed + variant).unwrap_or_else(|failure| {
                panic!("{} variant {variant} {config:?}", replay("one_history", seed, &failure))
            });
            steps_run.add(&config, steps.len() as u64);
            ingestions.add(&config, runner.ingestions + runner.ingestions_below);
            below += runner.ingestions_below;
            for (sum, count) in relocations.iter_mut().zip(runner.relocations) {
                *sum += count;
            }
        }
    }
    println!("moves {relocations:?}");
    steps_run.finish("steps", 4000);
    ingestions.finish("ingestions", 20);
    println!("{below} of them below");
    assert!(below > 100 || std::env::var("SHINGLE_TEST_SEED").is_ok());
    if std::env::var("SHINGLE_TEST_SEED").is_err() {
        for (name, count) in crate::moves::NAMES.iter().zip(relocations) {
            assert!(count > 0, "no {name} happened");
        }
    }
}

/// Range deletions that overlap in every way, with snapshots between, in memory and in every level.
#[test]
fn many_range_deletions_give_equal_answers_on_every_configuration() {
    let mut steps_run = ByCell::default();
    for seed in seeds_for_cells(24) {
        let profile = Profile { range_odds: 4, ..profile(700) };
        let steps = Generator::new(seed, profile).steps();
        let config = Config::draw(seed);
        let runner = in_memory(&config, &steps, seed).unwrap_or_else(|failure| {
            panic!("{} {config:?}", replay("many_range_deletions", seed, &failure))
        });
        drop(runner);
        steps_run.add(&config, steps.len() as u64);
    }
    steps_run.finish("steps", 700);
}

/// Values that expire, over and below every kind of entry, on a clock that moves.
#[test]
fn values_that_expire_give_equal_answers_on_every_configuration() {
    let mut steps_run = ByCell::default();
    for seed in seeds_for_cells(24) {
        let profile = Profile { expiry_odds: 3, ..profile(700) };
        let steps = Generator::new(seed, profile).steps();
        let config = Config::draw(seed);
        let runner = in_memory(&config, &steps, seed).unwrap_or_else(|failure| {
            panic!("{} {config:?}", replay("values_that_expire", seed, &failure))
        });
        drop(runner);
        steps_run.add(&config, steps.len() as u64);
    }
    steps_run.finish("steps", 700);
}

#[test]
fn threads_give_the_same_answers_as_steps() {
    let mut steps_run = ByCell::default();
    for seed in seeds_for_cells(24) {
        let steps = Generator::new(seed, profile(700).sometimes_expiring(seed)).steps();
        let config = Config { stepped: None, ..Config::draw(seed) };
        in_memory(&config, &steps, seed).unwrap_or_else(|failure| {
            panic!("{} {config:?}", replay("threads_give", seed, &failure))
        });
        steps_run.add(&config, steps.len() as u64);
    }
    steps_run.finish("steps", 700);
}

#[test]
fn any_scheme_goes_on_with_the_tree_of_any_other() {
    let mut steps_run = ByCell::default();
    for seed in seeds_for_cells(16) {
        let mut config = Config { switches: true, ..Config::draw(seed) };
        let store = MemStore::new(Arc::default());
        let model = Arc::new(Mutex::new(Model::new()));
        let profile = profile(1400).sometimes_expiring(seed);
        for (piece, steps) in Generator::new(seed, profile).steps().chunks(100).enumerate() {
            let outcome = Runner::open(&config, Arc::new(store.clone()), model.clone(), seed)
                .and_then(|mut runner| {
                    runner.run(steps)?;
                    // Closes, and opens under the next scheme.
                    runner.step(&Step::Reopen)?;
                    runner.step(&Step::WaitIdle)?;
                    runner.finish()?;
                    Ok(runner.config)
                });
            let turned = outcome.unwrap_or_else(|failure| {
                let line = replay("any_scheme_goes_on", seed, &failure);
                panic!("{line} piece {piece} {config:?}")
            });
            steps_run.add(&config, steps.len() as u64);
            config = turned;
        }
    }
    steps_run.finish("steps", 300);
}

#[test]
fn files_give_the_same_answers_as_memory() {
    let mut steps_run = Cells::default();
    for seed in seeds_for_schemes(6) {
        let steps = Generator::new(seed, profile(400).sometimes_expiring(seed)).steps();
        let config = Config::draw(seed);
        steps_run.add(config.scheme, FILES, steps.len() as u64);
        let dir = tempfile::tempdir().unwrap();
        let ledger = Arc::new(Ledger::default());
        let options = OsOptions { map_bytes_max: u64::MAX, ..OsOptions::default() };
        let store = OsStore::open(dir.path(), ledger, options).unwrap();
        run(&config, Arc::new(store), &steps, seed).unwrap_or_else(|failure| {
            panic!("{} {config:?}", replay("files_give", seed, &failure))
        });
    }
    steps_run.finish("steps", [FILES].into_iter(), 200);
}

/// A history on direct storage; every byte has a cause.
fn on_device(kind: &Kind, config: &Config, steps: &[Step], seed: u64) -> Outcome {
    let medium = Direct::new(kind);
    let before = medium.device.raw();
    let store = medium.store()?;
    run(config, store.clone(), steps, seed)?;
    let (host, after) = (store.ledger().snapshot().host(), medium.device.raw());
    let raw = (after.write_bytes - before.write_bytes, after.read_bytes - before.read_bytes);
    if (host.write_bytes, host.read_bytes) != raw {
        return wrong(format!("the ledger has {host:?}, the device received {raw:?}"));
    }
    Ok(())
}

#[test]
fn direct_storage_on_every_device_gives_the_same_answers_as_memory() {
    let mut steps_run = Cells::default();
    let schemes = tree::policy::registry().len() as u64;
    for (index, kind) in (0..).zip(&KINDS) {
        for round in 0..schemes * scaled(1) {
            let seed = index * 1000 + round;
            if is_left_out(seed) {
                continue;
            }
            let steps = Generator::new(seed, profile(120).sometimes_expiring(seed)).steps();
            let config = Config::draw(seed);
            on_device(kind, &config, &steps, seed).unwrap_or_else(|failure| {
                let line = replay("direct_storage_on_every_device", seed, &failure);
                panic!("{}: {line} {config:?}", kind.name)
            });
            steps_run.add(config.scheme, kind.name, steps.len() as u64);
        }
    }
    steps_run.finish("steps", KINDS.iter().map(|kind| kind.name), 100);
}

#[test]
fn a_checkpoint_is_the_database_of_its_moment() {
    for seed in seeds_for_schemes(5) {
        let steps = Generator::new(seed, profile(300).sometimes_expiring(seed)).steps();
        let config = Config::draw(seed);
        let dir = tempfile::tempdir().unwrap();
        let ledger = Arc::new(Ledger::default());
        let source = dir.path().join("source");
        let store = OsStore::open(&source, ledger, OsOptions::default()).unwrap();
        let model = Arc::new(Mutex::new(Model::new()));
        let outcome = (|| -> Outcome {
            let mut runner = Runner::open(&config, Arc::new(store), model, seed)?;
            for (at, piece) in steps.chunks(100).enumerate() {
                runner.run(piece)?;
                let target = dir.path().join(format!("copy{at}"));
                runner.db.checkpoint(&target)?;
                let before = runner.model.lock().clone();
                runner.run(&steps[..50])?;
                let copy = OsStore::open(&target, Arc::default(), OsOptions::default())?;
                let shared = Arc::new(Mutex::new(before));
                // It has no log from before the checkpoint.
                let config = Config { keeps_changes: false, ..config.clone() };
                let mut copy = Runner::open(&config, Arc::new(copy), shared, seed)?;
                copy.compare_all()?;
                copy.run(&steps[50..100])?;
                copy.finish()?;
            }
            runner.finish()
        })();
        outcome.unwrap_or_else(|failure| {
            panic!("{} {config:?}", replay("a_checkpoint", seed, &failure))
        });
    }
}
