//! Stores that have the contract alone, without a capability, and checkpoints from and to them.

use crate::config::Config;
use crate::history::{Generator, profile};
use crate::medium::{Direct, KINDS, Medium};
use crate::model::Model;
use crate::run::{Outcome, Runner, replay};
use crate::volume::seeds_for_schemes;
use base::{ErrorKind, Ledger, Result};
use media::mem::MemStore;
use media::os::{OsOptions, OsStore};
use media::{
    AppendFile, Capacity, FileHint, FileName, FileStore, FileSummary, ReadFile, StoreLock,
};
use parking_lot::Mutex;
use shingle::Options;
use std::sync::Arc;

/// A store without its capabilities: what a new store has that implements nothing more.
pub struct Plain<S> {
    pub store: S,
    /// Called before the store is locked.
    pub before_lock: fn(&S) -> Result<()>,
    /// What it says of its space, if it does.
    pub capacity: Option<Arc<dyn Capacity + Send + Sync>>,
}

impl<S: FileStore> FileStore for Plain<S> {
    fn ledger(&self) -> &Arc<Ledger> {
        self.store.ledger()
    }
    fn describe(&self) -> String {
        self.store.describe()
    }
    fn create(&self, name: FileName, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        self.store.create(name, hint)
    }
    fn extend(&self, name: FileName, at: u64, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        self.store.extend(name, at, hint)
    }
    fn open(&self, name: FileName, background: bool) -> Result<Arc<dyn ReadFile>> {
        self.store.open(name, background)
    }
    fn remove(&self, name: FileName) -> Result<()> {
        self.store.remove(name)
    }
    fn list(&self) -> Result<Vec<FileSummary>> {
        self.store.list()
    }
    fn sync_names(&self) -> Result<()> {
        self.store.sync_names()
    }
    fn root(&self) -> Result<Option<Vec<u8>>> {
        self.store.root()
    }
    fn set_root(&self, root: &[u8]) -> Result<()> {
        self.store.set_root(root)
    }
    fn lock(&self) -> Result<StoreLock> {
        (self.before_lock)(&self.store)?;
        self.store.lock()
    }
    fn capacity(&self) -> Option<&dyn Capacity> {
        Some(&**self.capacity.as_ref()?)
    }
}

fn plain() -> Arc<dyn FileStore> {
    Arc::new(Plain {
        store: MemStore::new(Arc::default()),
        before_lock: |_| Ok(()),
        capacity: None,
    })
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

/// Another process creates a database just before this one has the lock.
#[test]
fn who_wants_a_new_database_is_refused_one_that_came_while_it_waited_for_the_lock() {
    let home = tempfile::tempdir().unwrap();
    let overtaken = Plain {
        store: OsStore::open(home.path(), Arc::default(), OsOptions::default()).unwrap(),
        before_lock: |store| {
            let db = Options::new().create_new(true).open(store.describe())?;
            db.put("the first", "")?;
            db.close()
        },
        capacity: None,
    };
    let opened = Options::new().create_new(true).open_store(Arc::new(overtaken));
    assert_eq!(opened.err().unwrap().kind(), ErrorKind::AlreadyExists);
    let again = Options::new().create_new(true).open(home.path());
    assert_eq!(again.err().unwrap().kind(), ErrorKind::AlreadyExists);
    let db = Options::new().create(false).open(home.path()).unwrap();
    assert_eq!(db.get("the first").unwrap().as_deref(), Some(&b""[..]));
}
