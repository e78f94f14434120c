//! Stores that have the contract alone, without a capability, and checkpoints from and to them.

use crate::config::Config;
use crate::history::{Generator, profile};
use crate::medium::{Direct, KINDS, Medium};
use crate::model::Model;
use crate::run::{Outcome, Runner, replay};
use crate::volume::seeds_for_schemes;
use base::{Ledger, Result};
use media::mem::MemStore;
use media::os::{OsOptions, OsStore};
use media::{AppendFile, FileHint, FileName, FileStore, FileSummary, ReadFile, StoreLock};
use parking_lot::Mutex;
use std::sync::Arc;

/// A memory store without its capabilities: what a new store has that implements nothing more.
struct Plain(MemStore);

impl FileStore for Plain {
    fn ledger(&self) -> &Arc<Ledger> {
        self.0.ledger()
    }
    fn describe(&self) -> String {
        self.0.describe()
    }
    fn create(&self, name: FileName, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        self.0.create(name, hint)
    }
    fn extend(&self, name: FileName, at: u64, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        self.0.extend(name, at, hint)
    }
    fn open(&self, name: FileName, background: bool) -> Result<Arc<dyn ReadFile>> {
        self.0.open(name, background)
    }
    fn remove(&self, name: FileName) -> Result<()> {
        self.0.remove(name)
    }
    fn list(&self) -> Result<Vec<FileSummary>> {
        self.0.list()
    }
    fn sync_names(&self) -> Result<()> {
        self.0.sync_names()
    }
    fn root(&self) -> Result<Option<Vec<u8>>> {
        self.0.root()
    }
    fn set_root(&self, root: &[u8]) -> Result<()> {
        self.0.set_root(root)
    }
    fn lock(&self) -> Result<StoreLock> {
        self.0.lock()
    }
}

fn plain() -> Arc<dyn FileStore> {
    Arc::new(Plain(MemStore::new(Arc::default())))
}

#[test]
fn a_store_with_the_contract_alone_gives_equal_answers() {
    for seed in seeds_for_schemes(11) {
        let steps = Generator::new(seed, profile(400)).steps();
        let config = Config::draw(seed);
        let outcome = (|| -> Outcome {
            let model = Arc::new(Mutex::new(Model::new()));
            let mut runner = Runner::open(&config, plain(), model, seed)?;
            runner.run(&steps)?;
            runner.finish()
        })();
        outcome.unwrap_or_else(|failure| panic!("{} {config:?}", replay("plain", seed, &failure)));
    }
}

#[test]
fn a_checkpoint_goes_from_any_store_to_any_other() {
    for seed in seeds_for_schemes(6) {
        let steps = Generator::new(seed, profile(250)).steps();
        let config = Config::draw(seed);
        let home = tempfile::tempdir().unwrap();
        let files = |name: &str| -> Arc<dyn FileStore> {
            let path = home.path().join(name);
            Arc::new(OsStore::open(&path, Arc::default(), OsOptions::default()).unwrap())
        };
        let device = |at: u64| Direct::new(&KINDS[at as usize % 3]).store().unwrap();
        let (from, to) = match seed % 4 {
            0 => (plain(), plain()),
            1 => (files("source"), plain()),
            2 => (device(seed), files("target")),
            _ => (plain(), device(seed + 1)),
        };
        let what = format!("{} to {}", from.describe(), to.describe());
        let outcome = (|| -> Outcome {
            let model = Arc::new(Mutex::new(Model::new()));
            let mut runner = Runner::open(&config, from, model, seed)?;
            runner.run(&steps[..200])?;
            runner.db.checkpoint_to(&*to)?;
            let copied = Arc::new(Mutex::new(runner.model.lock().clone()));
            assert!(runner.db.checkpoint_to(&*to).is_err(), "it is not empty any more");
            runner.run(&steps[200..])?;
            runner.finish()?;
            // It has no log from before the checkpoint.
            let config = Config { keeps_changes: false, ..config.clone() };
            let mut copy = Runner::open(&config, to, copied, seed)?;
            copy.compare_all()?;
            copy.run(&steps[200..])?;
            copy.finish()
        })();
        outcome.unwrap_or_else(|failure| {
            panic!("{what}: {} {config:?}", replay("any_store", seed, &failure))
        });
    }
}
