//! A small database with every kind of file, and the history of what was written into it.

use crate::image::Image;
use base::Ledger;
use base::random::Random;
use media::FileStore;
use media::mem::MemStore;
use shingle::runtime::Stepped;
use shingle::{Db, Durability, KeyspaceOptions, Options, WriteBatch, WriteOptions};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The content of a keyspace.
pub type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// The content of a database: by name of keyspace.
pub type State = BTreeMap<String, Content>;

/// The keyspace whose values are sums.
pub const COUNTERS: &str = "counters";

/// How a database is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    pub scheme: &'static str,
    /// The value layout.
    pub values: &'static str,
}

/// The setup of the tests that do not vary the setup.
pub const DEFAULT_SETUP: Setup = Setup { scheme: "leveled", values: "inline" };

impl Setup {
    /// [`options`] under this setup.
    pub fn options(self) -> Options {
        options().scheme(self.scheme).values(self.values)
    }
}

/// Every scheme of the registry with every value layout.
pub fn setups() -> Vec<Setup> {
    let layouts = || values::registry().iter().map(|layout| layout.name);
    schemes().flat_map(|scheme| layouts().map(move |values| Setup { scheme, values })).collect()
}

/// Those with value segments.
pub fn separating_setups() -> impl Iterator<Item = Setup> {
    let layouts = values::registry().iter().filter(|layout| (layout.make)().separates());
    layouts.map(|layout| Setup { values: layout.name, ..DEFAULT_SETUP })
}

/// The state after each commit, in order.
#[derive(Default)]
pub struct History {
    pub states: Vec<State>,
    /// This state is in runs.
    pub flushed: usize,
    /// A record in a log proves that this state was synced.
    pub proven: usize,
}

impl History {
    pub fn last(&self) -> &State {
        self.states.last().unwrap()
    }

    /// Which of the states from `first` on `state` is.
    pub fn position(&self, state: &State, first: usize) -> Option<usize> {
        (first..self.states.len()).rev().find(|&n| self.states[n] == *state)
    }
}

/// Limits under which a few tens of kilobytes are a tree of several levels.
pub fn options() -> Options {
    let sized = Options::new().write_buffer_bytes(16 << 10).cache_bytes(256 << 10);
    sized.value_threshold_bytes(30).expert(|expert| {
        expert.no_threads = true;
        expert.values.segment_bytes = Some(2 << 10);
        expert.values.log_segment_bytes = Some(1 << 10);
        expert.memtable_bytes = Some(4 << 10);
        // About as long as what a memtable holds: several logs.
        expert.log_bytes = Some(10 << 10);
        expert.block_bytes = Some(256);
        expert.scheme.table_bytes_max = Some(2 << 10);
        expert.scheme.level_bytes_base = Some(3 << 10);
        expert.scheme.fan_out = Some(3.0);
        expert.scheme.level0_runs_trigger = Some(2);
        expert.scheme.levels = Some(5);
    })
}

/// The same runtime for the same seed.
pub fn runtime(seed: u64) -> Arc<Stepped> {
    Arc::new(Stepped::new(seed, 4))
}

/// Opens the database in `store`.
pub fn open(store: Arc<dyn FileStore>, read_only: bool) -> shingle::Result<Db> {
    open_under(DEFAULT_SETUP, store, read_only)
}

/// Opens the database in `store` under a setup.
pub fn open_under(setup: Setup, store: Arc<dyn FileStore>, read_only: bool) -> shingle::Result<Db> {
    setup.options().read_only(read_only).open_in(store, runtime(5))
}

/// The name of every scheme of the registry.
pub fn schemes() -> impl Iterator<Item = &'static str> {
    tree::policy::registry().iter().map(|scheme| scheme.name)
}

/// Writes a database and its model side by side.
pub struct Writer {
    pub db: Db,
    pub random: Random,
    pub state: State,
    pub history: History,
}

impl Writer {
    pub fn new(db: Db, seed: u64) -> Writer {
        let counters = KeyspaceOptions {
            merge_operator: Some("add-u64".into()),
            ..KeyspaceOptions::default()
        };
        db.create_keyspace(COUNTERS, counters).unwrap();
        let state = State::from([
            ("default".to_string(), Content::new()),
            (COUNTERS.to_string(), Content::new()),
        ]);
        let history = History { states: vec![state.clone()], ..History::default() };
        Writer { db, random: Random::new(seed), state, history }
    }

    /// One commit of a few operations over both keyspaces.
    pub fn commit(&mut self, durability: Durability) {
        let mut batch = WriteBatch::new();
        let counters = self.db.keyspace(COUNTERS).unwrap();
        for _ in 0..1 + self.random.below(4) {
            let key = format!("key{:04}", self.random.below(400)).into_bytes();
            let content = self.state.get_mut("default").unwrap();
            match self.random.below(40) {
                0 => {
                    let end = [&key[..6], b"~"].concat();
                    batch.delete_range(&key, &end).unwrap();
                    content.retain(|k, _| *k < key || *k >= end);
                }
                1..=6 => {
                    batch.delete(&key).unwrap();
                    content.remove(&key);
                }
                7..=12 => {
                    let key = key[..5].to_vec();
                    let one = self.random.below(9).to_le_bytes();
                    batch.merge_in(&counters, &key, one).unwrap();
                    let sum =
                        self.state.get_mut(COUNTERS).unwrap().entry(key).or_insert(vec![0; 8]);
                    let before = u64::from_le_bytes(sum[..].try_into().unwrap());
                    *sum = (before + u64::from_le_bytes(one)).to_le_bytes().to_vec();
                }
                _ => {
                    let digit = b'a' + self.random.below(26) as u8;
                    let mut value = self.random.next_u64().to_le_bytes().to_vec();
                    value.resize(8 + self.random.below(60) as usize, digit);
                    batch.put(&key, &value).unwrap();
                    content.insert(key, value);
                }
            }
        }
        let options = WriteOptions { durability: Some(durability), ..WriteOptions::default() };
        self.db.write(batch, &options).unwrap();
        self.history.states.push(self.state.clone());
    }

    pub fn commits(&mut self, count: usize) {
        for _ in 0..count {
            self.commit(Durability::Buffered);
        }
    }

    /// Flushes everything, so that no older state can come back.
    pub fn flush(&mut self) {
        self.db.flush().unwrap();
        self.history.flushed = self.history.states.len() - 1;
        self.history.proven = self.history.flushed;
    }

    /// Some values, a part of them garbage, and a log.
    pub fn fill_a_little(&mut self) {
        for _ in 0..2 {
            self.commits(25);
            self.flush();
            self.db.wait_idle().unwrap();
        }
        self.commit(Durability::Synced);
        self.history.proven = self.history.states.len() - 1;
        self.commits(2);
    }

    /// At least three levels, runs in level 0, and two logs.
    pub fn fill(&mut self) {
        for _ in 0..7 {
            self.commits(60);
            self.flush();
            self.db.wait_idle().unwrap();
        }
        self.commits(25);
        self.flush();
        self.commits(70);
        self.commit(Durability::Synced);
        // The record of the next commit says that the one before was durable.
        self.history.proven = self.history.states.len() - 1;
        self.commits(8);
    }
}

/// The database of most tests: its files when the process died, and its history.
pub fn database(seed: u64) -> (Image, History) {
    database_under(DEFAULT_SETUP, seed, Writer::fill)
}

/// The same under any setup, filled in any way.
pub fn database_under(setup: Setup, seed: u64, fill: impl FnOnce(&mut Writer)) -> (Image, History) {
    let store = Arc::new(MemStore::new(Arc::new(Ledger::default())));
    let writer = write_under(setup, store.clone(), seed, fill);
    (Image::of(&*store), writer.history)
}

/// A database in `store`; it stays open as long as the writer lives.
pub fn write_under(
    setup: Setup,
    store: Arc<dyn FileStore>,
    seed: u64,
    fill: impl FnOnce(&mut Writer),
) -> Writer {
    let db = setup.options().open_in(store, runtime(seed)).unwrap();
    let mut writer = Writer::new(db, seed);
    fill(&mut writer);
    writer
}

/// The content of a database, read forward.
pub fn content(db: &Db) -> shingle::Result<State> {
    let mut state = State::new();
    for name in db.keyspaces() {
        let mut content = Content::new();
        for pair in db.keyspace(&name)?.iter() {
            let (key, value) = pair?;
            content.insert(key.to_vec(), value.to_vec());
        }
        state.insert(name, content);
    }
    Ok(state)
}
