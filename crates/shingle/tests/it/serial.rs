//! Random histories of transactions that append to lists, and a checker of their dependencies.
//!
//! Each value is the list of the appends to its key, so a read shows which appends came before it
//! and in which order. From that follow the dependencies between transactions: which wrote after
//! which, which read what another wrote, and which overwrote what another read. With the order in
//! real time they must form no cycle (the method of Elle, Kingsbury and Alvaro, VLDB 2020). The
//! checker itself is tested: the weaker isolation and a system without transactions both fail it.

use crate::config::Config;
use crate::transactions::{SERIALIZABLE, SNAPSHOT};
use crate::volume::{scaled, seeds_for_cells};
use base::random::Random;
use media::mem::{MemStore, Personality};
use shingle::{Db, ErrorKind, Options, Transaction, TransactionIter, TransactionOptions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

type Id = u32;
type List = Vec<Id>;

/// What a committed transaction did.
#[derive(Clone, Debug, Default)]
struct Done {
    id: Id,
    reads: Vec<(String, List)>,
    appends: Vec<String>,
    /// Ticks of a common clock around the whole transaction.
    began: u64,
    ended: u64,
    /// The commit gave no answer: it may have happened.
    is_open: bool,
}

const KEYS: u64 = 6;

fn key(at: u64) -> String {
    format!("list/{at}")
}

fn list(value: Option<&[u8]>) -> List {
    let number = |four: &[u8]| Id::from_le_bytes(four.try_into().unwrap());
    value.unwrap_or_default().chunks(4).map(number).collect()
}

fn appended(value: Option<&[u8]>, id: Id) -> Vec<u8> {
    [value.unwrap_or_default(), &id.to_le_bytes()].concat()
}

/// A scan that goes on between other steps, and the first key that it has not shown.
struct Scan {
    pairs: TransactionIter,
    next: u64,
}

/// A transaction in the middle.
struct Open {
    transaction: Transaction,
    done: Done,
    scan: Option<Scan>,
    /// What it read before, by key.
    values: BTreeMap<String, Vec<u8>>,
    steps_left: u64,
}

impl Open {
    fn begin(db: &Db, options: TransactionOptions, done: Done, steps_left: u64) -> Open {
        let (transaction, values) = (db.transaction_with(options), BTreeMap::new());
        Open { transaction, done, scan: None, values, steps_left }
    }

    /// One step of all kinds.
    fn step(&mut self, random: &mut Random) -> shingle::Result<()> {
        self.steps_left -= 1;
        let at = key(random.below(KEYS));
        match random.below(12) {
            0..=2 => self.scan_on(),
            3 | 4 => {
                let value = self.transaction.get_for_update(&at)?;
                self.note_value(at, value.as_deref());
                Ok(())
            }
            5 => {
                let value = self.transaction.get(&at)?;
                self.note_value(at, value.as_deref());
                Ok(())
            }
            6 => self.append_to_read(random),
            _ => step(&mut self.transaction, random, &mut self.done),
        }
    }

    fn note_value(&mut self, at: String, value: Option<&[u8]>) {
        self.done.note_reads([(at.clone(), list(value))]);
        self.values.insert(at, value.unwrap_or_default().to_vec());
    }

    /// Appends to a value that it read before.
    fn append_to_read(&mut self, random: &mut Random) -> shingle::Result<()> {
        let at = random.below(self.values.len().max(1) as u64) as usize;
        let Some((at, value)) = self.values.iter_mut().nth(at) else { return Ok(()) };
        *value = appended(Some(value), self.done.id);
        self.transaction.put(at, &value)?;
        self.done.appends.push(at.clone());
        Ok(())
    }

    /// Takes one pair of a scan, which begins with the first one.
    fn scan_on(&mut self) -> shingle::Result<()> {
        let scan = match &mut self.scan {
            Some(scan) => scan,
            None => {
                let pairs = self.transaction.prefix("list/")?;
                self.scan.insert(Scan { pairs, next: 0 })
            }
        };
        let pair = scan.pairs.next().transpose()?;
        let shown = pair.as_ref().map(|(key, _)| String::from_utf8(key.to_vec()).unwrap());
        let last = (scan.next..KEYS).find(|at| Some(key(*at)) == shown).unwrap_or(KEYS);
        // Missing keys count as read, because the scan shows that they are missing.
        let missing: Vec<_> = (scan.next..last).map(|at| (key(at), List::new())).collect();
        scan.next = last + 1;
        self.done.note_reads(missing);
        self.done.note_reads(pair.map(|(_, value)| (key(last), list(Some(&value)))));
        Ok(())
    }
}

/// One step: reads a key, scans all keys, or appends to a key.
fn step(
    transaction: &mut Transaction,
    random: &mut Random,
    done: &mut Done,
) -> shingle::Result<()> {
    let at = key(random.below(KEYS));
    match random.below(5) {
        0 => {
            // Missing keys count as read, because the scan shows that they are missing.
            let mut found: BTreeMap<String, List> =
                (0..KEYS).map(|at| (key(at), List::new())).collect();
            for pair in transaction.prefix("list/")? {
                let (key, value) = pair?;
                found.insert(String::from_utf8(key.to_vec()).unwrap(), list(Some(&value)));
            }
            done.note_reads(found);
        }
        1 | 2 => {
            let value = transaction.get(&at)?;
            done.note_reads([(at, list(value.as_deref()))]);
        }
        _ => {
            let value = transaction.get(&at)?;
            done.note_reads([(at.clone(), list(value.as_deref()))]);
            transaction.put(&at, appended(value.as_deref(), done.id))?;
            done.appends.push(at);
        }
    }
    Ok(())
}

impl Done {
    /// Notes what was read, without what the transaction itself appended.
    fn note_reads(&mut self, found: impl IntoIterator<Item = (String, List)>) {
        for (key, mut list) in found {
            list.retain(|id| *id != self.id);
            self.reads.push((key, list));
        }
    }
}

/// Several transactions at a time, a step of one after a step of another, as the seed has it.
fn interleave(db: &Db, options: TransactionOptions, seed: u64, count: Id) -> Vec<Done> {
    let (mut random, mut clock) = (Random::new(seed), 0u64);
    let mut next_id = 1;
    let mut open: Vec<Open> = Vec::new();
    let mut history = Vec::new();
    while next_id <= count || !open.is_empty() {
        clock += 1;
        if open.len() < 4 && next_id <= count {
            let done = Done { id: next_id, began: clock, ..Done::default() };
            open.push(Open::begin(db, options, done, 1 + random.below(6)));
            next_id += 1;
            continue;
        }
        let at = random.below(open.len() as u64) as usize;
        if open[at].steps_left > 0 {
            if let Err(error) = open[at].step(&mut random) {
                // Only those with locks: another one has the lock, or something has changed.
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                assert!(options.lock_timeout.is_some(), "{error}");
                open.swap_remove(at);
            }
            continue;
        }
        let Open { transaction, mut done, .. } = open.swap_remove(at);
        match transaction.commit() {
            Ok(()) => {
                done.ended = clock;
                history.push(done);
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
        match random.below(60) {
            0 => db.flush().unwrap(),
            1 => db.compact().unwrap(),
            _ => {}
        }
    }
    history
}

fn finally(db: &Db) -> BTreeMap<String, List> {
    let text = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
    let pairs = db.prefix("list/").map(Result::unwrap);
    pairs.map(|(key, value)| (text(&key), list(Some(&value)))).collect()
}

/// The dependencies of a history.
struct Graph {
    edges: BTreeMap<Id, Vec<Id>>,
}

impl Graph {
    /// Fails where a read or the end is impossible in any order.
    fn of(history: &[Done], end: &BTreeMap<String, List>) -> Result<Graph, String> {
        let mut graph = Graph { edges: BTreeMap::new() };
        let by_id: BTreeMap<Id, &Done> = history.iter().map(|done| (done.id, done)).collect();
        for (key, list) in end {
            for (before, after) in list.iter().zip(list.iter().skip(1)) {
                graph.add(*before, *after);
            }
            for id in list {
                let done = by_id.get(id).ok_or(format!("{key} holds {id}, which was discarded"))?;
                if !done.appends.contains(key) {
                    return Err(format!("{id} never appended to {key}"));
                }
            }
        }
        for done in history {
            for key in done.appends.iter().filter(|_| !done.is_open) {
                // Several appends to one key by one transaction stand together.
                if !end.get(key).is_some_and(|list| list.contains(&done.id)) {
                    return Err(format!("{} is not in {key}: a lost update", done.id));
                }
            }
            for (key, read) in &done.reads {
                let whole: List = end.get(key).cloned().unwrap_or_default();
                let others: List = whole.into_iter().filter(|id| *id != done.id).collect();
                if done.is_open && others.get(..read.len()) != Some(&read[..]) {
                    continue;
                }
                if others.get(..read.len()) != Some(&read[..]) {
                    return Err(format!("{} read {read:?} of {key}: {others:?}", done.id));
                }
                read.last().into_iter().for_each(|last| graph.add(*last, done.id));
                others.get(read.len()).into_iter().for_each(|next| graph.add(done.id, *next));
            }
        }
        graph.add_real_time(history);
        Ok(graph)
    }

    fn add(&mut self, from: Id, to: Id) {
        if from != to {
            self.edges.entry(from).or_default().push(to);
        }
    }

    /// What ended before another began comes before it.
    fn add_real_time(&mut self, history: &[Done]) {
        for one in history.iter().filter(|done| !done.is_open) {
            for other in history.iter().filter(|other| one.ended < other.began) {
                self.add(one.id, other.id);
            }
        }
    }

    /// A cycle, if there is one: transactions are removed that nothing comes before, until none is
    /// left or all that are left are in a cycle or behind one.
    fn cycle(&self) -> Option<Vec<Id>> {
        let mut before: BTreeMap<Id, usize> = BTreeMap::new();
        for (from, to) in &self.edges {
            before.entry(*from).or_default();
            to.iter().for_each(|to| *before.entry(*to).or_default() += 1);
        }
        let free = |(id, count): (&Id, &usize)| (*count == 0).then_some(*id);
        let mut ready: Vec<Id> = before.iter().filter_map(free).collect();
        while let Some(id) = ready.pop() {
            before.remove(&id);
            for to in self.edges.get(&id).into_iter().flatten() {
                if let Some(count) = before.get_mut(to) {
                    *count -= 1;
                    if *count == 0 {
                        ready.push(*to);
                    }
                }
            }
        }
        (!before.is_empty()).then(|| before.into_keys().collect())
    }
}

fn check(history: &[Done], end: &BTreeMap<String, List>) -> Result<(), String> {
    match Graph::of(history, end)?.cycle() {
        None => Ok(()),
        Some(cycle) => Err(format!("a cycle among {cycle:?}")),
    }
}

#[test]
fn interleaved_transactions_are_serializable_on_every_configuration() {
    let mut committed = 0;
    for seed in seeds_for_cells(scaled(30)) {
        let config = Config::draw(seed);
        let db = config.open(Arc::new(MemStore::new(Arc::default()))).unwrap();
        let lock_timeout = [None, Some(Duration::ZERO)][seed as usize % 2];
        let options = TransactionOptions { lock_timeout, ..SERIALIZABLE };
        let history = interleave(&db, options, seed, 150);
        committed += history.len();
        let checked = check(&history, &finally(&db));
        checked.unwrap_or_else(|why| panic!("seed {seed} {config:?}: {why}"));
    }
    println!("{committed} committed transactions");
    assert!(committed > 500);
}

#[test]
fn the_checker_finds_write_skew_at_the_weaker_isolation_and_nothing_worse() {
    let mut cycles = 0;
    for seed in 1..=10 {
        let db = Config::draw(seed).open(Arc::new(MemStore::new(Arc::default()))).unwrap();
        let lock_timeout = [None, Some(Duration::ZERO)][seed as usize % 2];
        let history = interleave(&db, TransactionOptions { lock_timeout, ..SNAPSHOT }, seed, 150);
        let end = finally(&db);
        // No update is lost, no read is of two moments: only dependencies are circular.
        let graph = Graph::of(&history, &end).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        cycles += u64::from(graph.cycle().is_some());
    }
    assert!(cycles >= 5, "{cycles} of 10 histories have a cycle");
}

#[test]
fn the_checker_finds_what_is_lost_without_transactions() {
    let db = Options::new().open_store(Arc::new(MemStore::new(Arc::default()))).unwrap();
    let history: Vec<Done> =
        (0..2).map(|n| Done { id: n + 1, appends: vec![key(0)], ..Done::default() }).collect();
    // Both read before either writes.
    let values: Vec<Vec<u8>> =
        history.iter().map(|done| appended(db.get(key(0)).unwrap().as_deref(), done.id)).collect();
    values.iter().for_each(|value| db.put(key(0), value).unwrap());
    let why = check(&history, &finally(&db)).unwrap_err();
    assert!(why.contains("lost update"), "{why}");
}

/// Runs transactions in a thread; conflicts are forgotten.
fn work(db: &Db, ids: &AtomicU64, clock: &AtomicU64, seed: u64, count: u64) -> Vec<Done> {
    let mut random = Random::new(seed);
    let mut history = Vec::new();
    for _ in 0..count {
        let id = ids.fetch_add(1, SeqCst) as Id;
        let mut done = Done { id, began: clock.fetch_add(1, SeqCst), ..Done::default() };
        let mut transaction = db.transaction();
        for _ in 0..1 + random.below(4) {
            step(&mut transaction, &mut random, &mut done).unwrap();
        }
        match transaction.commit() {
            Ok(()) => {
                done.ended = clock.fetch_add(1, SeqCst);
                history.push(done);
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
    }
    history
}

#[test]
fn transactions_of_threads_are_strictly_serializable() {
    for seed in 0..scaled(4) {
        let config = Config { stepped: None, ..Config::draw(3 * seed + 1) };
        let db = config.open(Arc::new(MemStore::new(Arc::default()))).unwrap();
        let (ids, clock) = (AtomicU64::new(1), AtomicU64::new(1));
        let history: Vec<Done> = std::thread::scope(|scope| {
            let work = |n| work(&db, &ids, &clock, seed * 10 + n, 200);
            let workers: Vec<_> = (0..4).map(|n| scope.spawn(move || work(n))).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        });
        check(&history, &finally(&db))
            .unwrap_or_else(|why| panic!("seed {seed} {config:?}: {why}"));
        let counters = db.stats().transactions;
        println!("{counters:?}");
        assert_eq!(counters.committed, history.len() as u64);
    }
}

/// After a crash at any time, what is there is the outcome of some of the transactions in some
/// order, with all that were acknowledged as durable.
#[test]
fn what_a_crash_leaves_is_serializable() {
    for seed in seeds_for_cells(scaled(20)) {
        let config = Config::draw(seed);
        let store = MemStore::new(Arc::default());
        let db = config.open(Arc::new(store.clone())).unwrap();
        let (ids, clock) = (AtomicU64::new(1), AtomicU64::new(1));
        let mut random = Random::new(seed);
        let mut history = Vec::new();
        for round in 0..8 {
            let mut done = work(&db, &ids, &clock, seed * 100 + round, 15);
            // Not synced: a power loss may take them, the last ones first.
            done.iter_mut().for_each(|done| done.is_open = true);
            history.extend(done);
            if random.one_in(3) {
                db.sync().unwrap();
                history.iter_mut().for_each(|done| done.is_open = false);
            }
        }
        let image = store.crash_image(&mut random, Personality::ALL[seed as usize % 6]);
        let after = config.open(Arc::new(image)).unwrap();
        let end = finally(&after);
        history.iter_mut().for_each(|done| done.is_open |= done.appends.is_empty());
        let kept: Vec<Done> = history.iter().filter(|done| is_kept(done, &end)).cloned().collect();
        check(&kept, &end).unwrap_or_else(|why| panic!("seed {seed} {config:?}: {why}"));
    }
}

/// An unacknowledged transaction may be there, and then whole.
fn is_kept(done: &Done, end: &BTreeMap<String, List>) -> bool {
    let is_there = |key: &String| end.get(key).is_some_and(|list| list.contains(&done.id));
    let there = done.appends.iter().filter(|key| is_there(key)).count();
    assert!(there == 0 || there == done.appends.len(), "{} is there in part", done.id);
    !done.is_open || there > 0
}
