//! Runs a history on a database and compares every answer with the model.

use crate::config::{Config, keyspace_options};
use crate::copies::Copies;
use crate::guarded::Guarded;
use crate::history::Step;
use crate::medium::memory_dir;
use crate::model::{Contents, Found, Incarnation, Key, Model, Op, Prefix, SLOTS, Value, pair_hash};
use crate::{mirror, moves};
use base::random::Random;
use media::FileStore;
use parking_lot::Mutex;
use shingle::{
    Db, Durability, Error, ErrorKind, Expiry, IngestOptions, Iter, Keyspace, ReadOptions, Snapshot,
    SortedFileOptions, SortedFileWriter, WriteBatch, WriteOptions,
};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// An open snapshot: its commit, and the keyspaces that lived then, by number.
struct OpenSnapshot {
    snapshot: Snapshot,
    commit: u64,
    lives: [Option<usize>; SLOTS.len()],
    /// The keyspaces into which files came below since, as they were before.
    before: BTreeMap<usize, Incarnation>,
}

/// A model that crash points read while the history runs.
pub type SharedModel = Arc<Mutex<Model>>;

/// An open iterator and the pairs that it still has to return, in reverse.
struct OpenIterator {
    iter: Iter,
    expected: Vec<(Key, Value)>,
}

/// A database beside its model.
pub struct Runner {
    pub config: Config,
    pub store: Arc<dyn FileStore>,
    pub model: SharedModel,
    pub db: Db,
    keyspaces: [Option<Keyspace>; SLOTS.len()],
    snapshots: Vec<OpenSnapshot>,
    iterators: Vec<OpenIterator>,
    random: Random,
    /// Moves begun, by the names in `moves`.
    pub relocations: [u64; moves::NAMES.len()],
    /// Sorted files that came in.
    pub ingestions: u64,
    /// Those of them that came in below.
    pub ingestions_below: u64,
    /// Files were ingested below, or may have been, in the slots.
    below: [bool; SLOTS.len()],
    /// What was deleted is known. After a crash it is not: a deletion that hid nothing may be lost,
    /// and a file below would show it.
    knows_deletions: bool,
    /// What stands beside it; nothing at first.
    pub copies: Copies,
}

/// Why a history stopped.
#[derive(Debug)]
pub enum Failure {
    /// The store gave an error, which a fault may explain.
    Error(Error),
    /// An answer was wrong.
    Wrong(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

pub type Outcome = Result<(), Failure>;

pub fn wrong(message: impl Into<String>) -> Outcome {
    Err(Failure::Wrong(message.into()))
}

fn show(value: Option<&[u8]>) -> String {
    match value {
        None => "nothing".into(),
        Some(value) => {
            let shown = base::key::display_key(&value[..value.len().min(24)]);
            format!("{shown} ({} bytes)", value.len())
        }
    }
}

impl Runner {
    /// The write was refused because the value segments are full, which is no fault.
    fn is_full(&self, error: &Error) -> bool {
        self.config.expert.values.capacity_bytes.is_some() && error.kind() == ErrorKind::NoSpace
    }

    /// Opens a database, and creates the keyspaces that are not there yet.
    pub fn open(
        config: &Config,
        store: Arc<dyn FileStore>,
        model: SharedModel,
        seed: u64,
    ) -> Result<Runner, Failure> {
        let config = config.at(&model.lock());
        let knows_deletions = model.lock().now() == 0;
        let db = config.open(store.clone())?;
        let mut runner = Runner {
            config,
            store,
            model,
            keyspaces: [const { None }; SLOTS.len()],
            snapshots: Vec::new(),
            iterators: Vec::new(),
            random: Random::new(seed),
            relocations: [0; moves::NAMES.len()],
            ingestions: 0,
            ingestions_below: 0,
            below: [false; SLOTS.len()],
            knows_deletions,
            copies: Copies::default(),
            db,
        };
        runner.find_keyspaces()?;
        for (slot, place) in SLOTS.iter().enumerate() {
            if place.is_permanent && runner.keyspaces[slot].is_none() {
                runner.turn(slot)?;
            }
        }
        Ok(runner)
    }

    fn find_keyspaces(&mut self) -> Outcome {
        for (slot, place) in SLOTS.iter().enumerate() {
            let is_living = self.model.lock().living(slot).is_some();
            self.keyspaces[slot] = match self.db.keyspace(place.name) {
                Ok(keyspace) if is_living => Some(keyspace),
                Err(error) if !is_living && error.kind() == ErrorKind::NotFound => None,
                found => {
                    return wrong(format!("keyspace {slot}: {:?}", found.map(|_| "too many")));
                }
            };
        }
        Ok(())
    }

    pub fn run(&mut self, steps: &[Step]) -> Outcome {
        for (at, step) in steps.iter().enumerate() {
            self.step(step).map_err(|failure| match failure {
                Failure::Wrong(what) => Failure::Wrong(format!("step {at} {step:.300?}: {what}")),
                error => error,
            })?;
            if self.config.keeps_changes && at % 5 == 0 {
                self.model.lock().shown_sequence = mirror::durable_position(&self.db)?;
            }
        }
        Ok(())
    }

    pub fn step(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Write { batch, synced, single } => self.write(batch, *synced, *single),
            Step::Get(slot, key) => self.get(*slot, key),
            Step::MultiGet(slot, keys) => self.multi_get(*slot, keys),
            Step::Scan { slot, start, end, reverse, limit } => {
                self.scan(*slot, start, end.as_deref(), *reverse, *limit)
            }
            Step::PrefixScan(slot, prefix) => self.prefix_scan(*slot, prefix),
            Step::Walk(slot, moves) => self.walk(*slot, moves),
            Step::SnapshotTake => self.take_snapshot(),
            Step::SnapshotRead(at, slot, key) => self.read_snapshot(*at, *slot, key),
            Step::SnapshotScan(at, slot) => self.scan_snapshot(*at, *slot),
            Step::SnapshotDrop(at) => {
                if !self.snapshots.is_empty() {
                    self.snapshots.swap_remove(at % self.snapshots.len());
                }
                Ok(())
            }
            Step::IteratorOpen(slot, start) => self.open_iterator(*slot, start),
            Step::IteratorAdvance(at, many) => self.advance_iterator(*at, *many),
            Step::IteratorDrop(at) => {
                if !self.iterators.is_empty() {
                    self.iterators.swap_remove(at % self.iterators.len());
                }
                Ok(())
            }
            Step::Flush => self.barrier(false),
            Step::CompactRange(start, end) => {
                let before = self.model.lock().now();
                self.db.compact_range(start.as_deref(), end.as_deref())?;
                self.flushed(before);
                Ok(())
            }
            Step::Sync => self.barrier(true),
            Step::Turn(slot) => self.turn(*slot),
            Step::Reopen => self.reopen(),
            Step::ReadOnly => self.read_only(),
            // Only files can be shared: a separate test takes checkpoints.
            Step::Checkpoint => Ok(()),
            Step::Check => self.check(),
            Step::RandomMove(slot) => self.random_move(*slot),
            Step::Ingest(slot, ops) => self.ingest(*slot, ops),
            Step::IngestBelow(slot, ops) => self.ingest_below(*slot, ops),
            Step::Backup => self.back_up(),
            Step::Prune(count) => self.prune(*count),
            Step::CatchUp => self.catch_up(),
            Step::WaitIdle => Ok(self.db.wait_idle()?),
            Step::Advance(ms) => {
                self.advance(*ms);
                Ok(())
            }
        }
    }

    fn advance(&mut self, ms: u64) {
        // An iterator keeps the time that it took.
        self.iterators.clear();
        let mut model = self.model.lock();
        model.advance(ms);
        self.config.clock.set(model.now_ms());
    }

    /// When a value with this time to live expires.
    fn expiry(&self, ttl_ms: u64) -> Expiry {
        Expiry::from_millis(self.model.lock().now_ms() + ttl_ms)
    }

    fn flushed(&self, commit: u64) {
        self.model.lock().flushed(commit);
    }

    fn barrier(&mut self, sync_only: bool) -> Outcome {
        let before = self.model.lock().now();
        if sync_only {
            self.db.sync()?;
            self.model.lock().safe(Prefix::Logged, before);
        } else {
            self.db.flush()?;
            self.flushed(before);
        }
        Ok(())
    }

    fn write(&mut self, batch: &[(usize, Op)], synced: bool, single: bool) -> Outcome {
        let batch: Vec<(usize, Op)> =
            batch.iter().filter(|(slot, _)| self.keyspaces[*slot].is_some()).cloned().collect();
        let Some((slot, first)) = batch.first() else { return Ok(()) };
        let commit = self.model.lock().commit(&batch);
        // A write without a log cannot be synced.
        let synced = synced && !single && !SLOTS[*slot].without_wal;
        let written = match single {
            true => self.write_one(*slot, first),
            false => self.write_batch(&batch, synced),
        };
        match written {
            Err(error) if self.is_full(&error) => self.model.lock().undo_commit(),
            Ok(()) if synced => self.model.lock().safe(Prefix::Logged, commit),
            written => written?,
        }
        Ok(())
    }

    /// The operations as a sorted file, which is one commit and durable when it returns.
    fn ingest(&mut self, slot: usize, ops: &[Op]) -> Outcome {
        let Some(keyspace) = self.keyspaces[slot].as_ref().filter(|_| !ops.is_empty()) else {
            return Ok(());
        };
        // A database that keeps changes refuses ingestions.
        if self.config.keeps_changes {
            return Ok(());
        }
        let home = memory_dir()?;
        let path = home.path().join("sorted");
        self.write_sorted(&path, slot, ops)?;
        let batch: Vec<(usize, Op)> = ops.iter().map(|op| (slot, op.clone())).collect();
        let commit = self.model.lock().commit(&batch);
        let done = keyspace.ingest(&[&path], &IngestOptions::default())?;
        if done.entries != ops.iter().filter(|op| !matches!(op, Op::DeleteRange(..))).count() as u64
        {
            return wrong(format!("{} entries were ingested", done.entries));
        }
        let without_wal = SLOTS[slot].without_wal;
        let prefix = if without_wal { Prefix::Unlogged } else { Prefix::Logged };
        self.model.lock().safe(prefix, commit);
        self.ingestions += 1;
        Ok(())
    }

    /// The same, below everything. Where an earlier file has keys of its range, it is refused.
    fn ingest_below(&mut self, slot: usize, ops: &[Op]) -> Outcome {
        let Some(keyspace) = self.keyspaces[slot].as_ref().filter(|_| !ops.is_empty()) else {
            return Ok(());
        };
        if self.config.keeps_changes || !self.knows_deletions {
            return Ok(());
        }
        let home = memory_dir()?;
        let path = home.path().join("sorted");
        self.write_sorted(&path, slot, ops)?;
        for open in &mut self.snapshots {
            let life = self.model.lock().living(slot).cloned();
            open.before.entry(slot).or_insert(life.expect("a keyspace that is there"));
        }
        self.model.lock().begin_below(slot, ops);
        let options = IngestOptions { below: true, ..IngestOptions::default() };
        let is_in = match keyspace.ingest(&[&path], &options) {
            Ok(_) => true,
            Err(error) if self.below[slot] && error.kind() == ErrorKind::InvalidArgument => false,
            Err(error) => return Err(error.into()),
        };
        self.model.lock().end_below(is_in);
        self.below[slot] = true;
        self.ingestions_below += u64::from(is_in);
        Ok(())
    }

    fn write_sorted(&self, path: &Path, slot: usize, ops: &[Op]) -> Outcome {
        let layout = SortedFileOptions {
            compression: self.config.compression,
            block_bytes: self.config.expert.block_bytes.unwrap_or(4096),
            filter_bits_per_key: self.config.filter_bits,
            prefix: keyspace_options(slot).prefix,
        };
        let mut file = SortedFileWriter::create(path, &layout)?;
        for op in ops {
            match op {
                Op::Put(key, value) => file.put(key, value)?,
                Op::PutExpiring(key, value, ttl_ms) => {
                    file.put_expiring(key, value, self.expiry(*ttl_ms))?;
                }
                Op::Delete(key) => file.delete(key)?,
                Op::DeleteRange(start, end) => file.delete_range(start, end)?,
                Op::Merge(..) => return wrong("a sorted file takes no operands"),
            }
        }
        file.finish()?;
        Ok(())
    }

    fn write_one(&self, slot: usize, op: &Op) -> shingle::Result<()> {
        let keyspace = self.keyspaces[slot].as_ref().unwrap();
        match op {
            Op::Put(key, value) => keyspace.put(key, value),
            Op::PutExpiring(key, value, ttl_ms) => {
                keyspace.put_with_ttl(key, value, Duration::from_millis(*ttl_ms))
            }
            Op::Delete(key) => keyspace.delete(key),
            Op::Merge(key, operand) => keyspace.merge(key, operand),
            Op::DeleteRange(start, end) => keyspace.delete_range(start, end),
        }
    }

    /// The same as one transaction, which sees each of its writes.
    fn write_transaction(&self, batch: &[(usize, Op)], synced: bool) -> shingle::Result<()> {
        let mut transaction = self.db.transaction();
        for (slot, op) in batch {
            let keyspace = self.keyspaces[*slot].as_ref().unwrap();
            match op {
                Op::Put(key, value) => {
                    transaction.put_in(keyspace, key, value)?;
                    let read = transaction.get_in(keyspace, key)?;
                    assert_eq!(read.as_deref(), Some(&value[..]), "a transaction's own write");
                }
                Op::PutExpiring(key, value, ttl_ms) => {
                    let expiry = self.expiry(*ttl_ms);
                    transaction.put_expiring_in(keyspace, key, value, expiry)?;
                    let read = transaction.get_in(keyspace, key)?;
                    let left = (*ttl_ms > 0).then_some(&value[..]);
                    assert_eq!(read.as_deref(), left, "a transaction's own write");
                }
                Op::Delete(key) => transaction.delete_in(keyspace, key)?,
                Op::Merge(key, operand) => transaction.merge_in(keyspace, key, operand)?,
                Op::DeleteRange(start, end) => transaction.delete_range_in(keyspace, start, end)?,
            }
        }
        let durability = synced.then_some(Durability::Synced);
        transaction.commit_with(&WriteOptions { durability, wait: true })
    }

    fn write_batch(&self, batch: &[(usize, Op)], synced: bool) -> shingle::Result<()> {
        if batch.len() % 4 == 2 {
            return self.write_transaction(batch, synced);
        }
        let mut out = WriteBatch::new();
        for (slot, op) in batch {
            let keyspace = self.keyspaces[*slot].as_ref().unwrap();
            match op {
                Op::Put(key, value) => out.put_in(keyspace, key, value)?,
                Op::PutExpiring(key, value, ttl_ms) => {
                    out.put_expiring_in(keyspace, key, value, self.expiry(*ttl_ms))?;
                }
                Op::Delete(key) => out.delete_in(keyspace, key)?,
                Op::Merge(key, operand) => out.merge_in(keyspace, key, operand)?,
                Op::DeleteRange(start, end) => out.delete_range_in(keyspace, start, end)?,
            }
        }
        let durability = synced.then_some(Durability::Synced);
        self.db.write(out, &WriteOptions { durability, wait: true })
    }

    fn expected(&self, slot: usize, key: &[u8]) -> Option<Value> {
        let model = self.model.lock();
        model.living(slot).unwrap().get(key, model.now())
    }

    fn expected_range(&self, slot: usize, start: &[u8], end: Option<&[u8]>) -> Vec<(Key, Value)> {
        let model = self.model.lock();
        model.living(slot).unwrap().range(start, end, model.now())
    }

    fn get(&self, slot: usize, key: &[u8]) -> Outcome {
        let Some(keyspace) = &self.keyspaces[slot] else { return Ok(()) };
        let (found, expected) = (keyspace.get(key)?, self.expected(slot, key));
        if found.as_deref() != expected.as_deref() {
            let (found, expected) = (show(found.as_deref()), show(expected.as_deref()));
            return wrong(format!("got {found}, expected {expected}"));
        }
        let is_read = keyspace.get_with(key, |value| Some(value) == expected.as_deref())?;
        if is_read != expected.as_ref().map(|_| true) {
            return wrong(format!("get_with of {}", base::key::display_key(key)));
        }
        Ok(())
    }

    fn multi_get(&self, slot: usize, keys: &[Key]) -> Outcome {
        let Some(keyspace) = &self.keyspaces[slot] else { return Ok(()) };
        for (key, found) in keys.iter().zip(keyspace.multi_get(keys)?) {
            if found.as_deref() != self.expected(slot, key).as_deref() {
                return wrong(format!("multi_get of {}", base::key::display_key(key)));
            }
        }
        Ok(())
    }

    fn scan(
        &self,
        slot: usize,
        start: &[u8],
        end: Option<&[u8]>,
        reverse: bool,
        limit: usize,
    ) -> Outcome {
        let Some(keyspace) = &self.keyspaces[slot] else { return Ok(()) };
        let bound = end.map_or(Bound::Unbounded, Bound::Excluded);
        let iter = keyspace.range::<&[u8]>((Bound::Included(start), bound));
        let mut expected = self.expected_range(slot, start, end);
        if reverse {
            expected.reverse();
            return compare(iter.rev().take(limit), &expected, limit);
        }
        compare(iter.take(limit), &expected, limit)
    }

    fn prefix_scan(&self, slot: usize, prefix: &[u8]) -> Outcome {
        let Some(keyspace) = &self.keyspaces[slot] else { return Ok(()) };
        let end = base::key::prefix_end(prefix);
        let expected = self.expected_range(slot, prefix, end.as_deref());
        compare(keyspace.prefix(prefix), &expected, usize::MAX)?;
        // From both ends, to the middle.
        let mut iter = keyspace.prefix(prefix);
        let mut found = std::collections::VecDeque::new();
        let (mut front, mut turn) = (0, 0usize);
        loop {
            turn += 1;
            let next = if turn % 3 == 0 { iter.next_back() } else { iter.next() };
            let Some(pair) = next.transpose()? else { break };
            let at = if turn % 3 == 0 {
                front
            } else {
                front += 1;
                front - 1
            };
            found.insert(at, Ok(pair));
        }
        compare(found.into_iter(), &expected, usize::MAX)
    }

    fn walk(&self, slot: usize, moves: &[(u8, Key)]) -> Outcome {
        let Some(keyspace) = &self.keyspaces[slot] else { return Ok(()) };
        let all = self.expected_range(slot, &[], None);
        let mut cursor = keyspace.cursor(ReadOptions::default());
        let mut at: Option<usize> = None;
        for (kind, key) in moves {
            match kind {
                0 | 1 => {
                    cursor.seek(key)?;
                    at = Some(all.partition_point(|(k, _)| k < key));
                }
                2 | 3 => {
                    cursor.seek_for_prev(key)?;
                    at = all.partition_point(|(k, _)| k <= key).checked_sub(1);
                }
                4 => {
                    cursor.seek_to_first()?;
                    at = Some(0);
                }
                5 => {
                    cursor.seek_to_last()?;
                    at = all.len().checked_sub(1);
                }
                6 | 7 => {
                    cursor.next()?;
                    at = at.map(|at| at + 1);
                }
                _ => {
                    cursor.prev()?;
                    at = at.and_then(|at| at.checked_sub(1));
                }
            }
            at = at.filter(|&at| at < all.len());
            let found = cursor.valid().then(|| (cursor.key(), cursor.value()));
            let expected = at.map(|at| (&all[at].0[..], &all[at].1[..]));
            if found != expected {
                let key = |pair: Option<(&[u8], &[u8])>| show(pair.map(|(key, _)| key));
                return wrong(format!(
                    "after move {kind} the cursor stands on {}, not on {}",
                    key(found),
                    key(expected)
                ));
            }
        }
        Ok(())
    }

    fn take_snapshot(&mut self) -> Outcome {
        let model = self.model.lock();
        let lives = std::array::from_fn(|slot| model.living_index(slot));
        let (snapshot, commit) = (self.db.snapshot(), model.now());
        self.snapshots.push(OpenSnapshot { snapshot, commit, lives, before: BTreeMap::new() });
        if self.snapshots.len() > 6 {
            self.snapshots.remove(0);
        }
        Ok(())
    }

    /// A snapshot, turned to a keyspace that existed when it was taken and still exists.
    /// Gives what it should show, too.
    fn snapshot(&self, at: usize, slot: usize) -> Option<(Snapshot, u64, Incarnation)> {
        let open = self.snapshots.get(at % self.snapshots.len().max(1))?;
        let model = self.model.lock();
        let is_same = open.lives[slot].is_some() && open.lives[slot] == model.living_index(slot);
        let keyspace = self.keyspaces[slot].as_ref().filter(|_| is_same)?;
        let mut before = open.before.get(&slot).cloned();
        before.iter_mut().for_each(|life| life.expire(model.now_ms()));
        let shown = before.or_else(|| model.living(slot).cloned())?;
        Some((open.snapshot.of(keyspace).unwrap(), open.commit, shown))
    }

    fn read_snapshot(&self, at: usize, slot: usize, key: &[u8]) -> Outcome {
        let Some((snapshot, commit, life)) = self.snapshot(at, slot) else { return Ok(()) };
        let found = snapshot.get(key)?;
        let expected = life.get(key, commit);
        if found.as_deref() != expected.as_deref() {
            let (found, expected) = (show(found.as_deref()), show(expected.as_deref()));
            return wrong(format!("a snapshot of {commit} got {found}, expected {expected}"));
        }
        Ok(())
    }

    fn scan_snapshot(&self, at: usize, slot: usize) -> Outcome {
        let Some((snapshot, commit, life)) = self.snapshot(at, slot) else { return Ok(()) };
        let expected = life.range(&[], None, commit);
        compare(snapshot.iter(), &expected, usize::MAX)
    }

    fn open_iterator(&mut self, slot: usize, start: &[u8]) -> Outcome {
        let Some(keyspace) = &self.keyspaces[slot] else { return Ok(()) };
        let mut expected = self.expected_range(slot, start, None);
        expected.reverse();
        let iter = keyspace.range(start..);
        self.iterators.push(OpenIterator { iter, expected });
        if self.iterators.len() > 5 {
            self.iterators.remove(0);
        }
        Ok(())
    }

    fn advance_iterator(&mut self, at: usize, many: usize) -> Outcome {
        let count = self.iterators.len().max(1);
        let Some(open) = self.iterators.get_mut(at % count) else { return Ok(()) };
        for _ in 0..many {
            let found = open.iter.next().transpose()?;
            let expected = open.expected.pop();
            let found = found.as_ref().map(|(key, value)| (&key[..], &value[..]));
            if found != expected.as_ref().map(|(key, value)| (&key[..], &value[..])) {
                let (found, expected) = (found.map(|f| f.0), expected.map(|e| e.0));
                return wrong(format!(
                    "an old iterator gave {}, not {}",
                    show(found),
                    show(expected.as_deref())
                ));
            }
            if found.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn turn(&mut self, slot: usize) -> Outcome {
        let is_living = self.keyspaces[slot].is_some();
        self.model.lock().begin_life(slot);
        if is_living {
            self.db.drop_keyspace(SLOTS[slot].name)?;
            let gone = self.keyspaces[slot].take().unwrap();
            if gone.get("k").is_ok() {
                return wrong("a dropped keyspace can be read");
            }
        } else {
            let options = keyspace_options(slot);
            self.keyspaces[slot] = Some(self.db.create_keyspace(SLOTS[slot].name, options)?);
        }
        self.model.lock().end_life();
        Ok(())
    }

    /// Closes the database; everything is safe after that.
    pub fn close(&mut self) -> Outcome {
        let before = self.model.lock().now();
        self.snapshots.clear();
        self.db.clone().close()?;
        self.flushed(before);
        Ok(())
    }

    fn reopen(&mut self) -> Outcome {
        self.close()?;
        self.keyspaces = [const { None }; SLOTS.len()];
        self.iterators.clear();
        if self.config.switches {
            self.config.switch();
        }
        self.db = self.config.open(self.store.clone())?;
        self.find_keyspaces()?;
        self.compare_all()
    }

    fn read_only(&mut self) -> Outcome {
        self.close()?;
        let options = self.config.options().read_only(true);
        let store = Arc::new(Guarded::new(self.store.clone()));
        let db = options.open_in(store, self.config.runtime())?;
        if db.put("a", "b").is_ok() {
            return wrong("a read-only database took a write");
        }
        let found = read_all(&db)?;
        let recovered = self.model.lock().recover(&found);
        if let Err(problem) = recovered {
            return wrong(format!("read-only: {problem}"));
        }
        db.close()?;
        self.reopen()
    }

    pub fn check(&self) -> Outcome {
        let report = self.db.check(&mut |_| {})?;
        if !report.is_clean() {
            return wrong(format!("the check found {:?}", report.problems));
        }
        Ok(())
    }

    fn random_move(&mut self, slot: usize) -> Outcome {
        let Some(keyspace) = &self.keyspaces[slot] else { return Ok(()) };
        let levels = self.config.levels();
        if let Some(name) = moves::begin_random(keyspace, &mut self.random, levels)? {
            self.relocations[name] += 1;
        }
        Ok(())
    }

    /// Compares everything with the model.
    pub fn compare_all(&self) -> Outcome {
        let found = read_all(&self.db)?;
        let model = self.model.lock();
        mirror::check(&self.config, &self.db, &found, model.shown_sequence)?;
        for (slot, contents) in &found {
            let Some(life) = model.living(*slot) else { return wrong("a keyspace too many") };
            if life.fingerprint(model.now()) != contents.fingerprint {
                let problem = model.recover(&found);
                return wrong(format!("{} differs: {problem:?}", SLOTS[*slot].name));
            }
            let keys: Vec<&Key> = life.keys().collect();
            let keyspace = self.keyspaces[*slot].as_ref().unwrap();
            for (key, value) in keys.iter().zip(keyspace.multi_get(&keys)?) {
                if value.as_deref() != life.get(key, model.now()).as_deref() {
                    let key = base::key::display_key(key);
                    return wrong(format!("{}: get of {key}", SLOTS[*slot].name));
                }
            }
        }
        Ok(())
    }

    /// Ends a history: everything compared, checked and closed.
    pub fn finish(&mut self) -> Outcome {
        self.compare_all()?;
        self.check()?;
        self.iterators.clear();
        self.close()
    }
}

fn compare(
    found: impl Iterator<Item = shingle::Result<(table::Bytes, table::Bytes)>>,
    expected: &[(Key, Value)],
    limit: usize,
) -> Outcome {
    let mut count = 0;
    for (at, pair) in found.enumerate() {
        let (key, value) = pair?;
        match expected.get(at) {
            Some((want, _)) if want[..] != key[..] => {
                let (found, want) = (show(Some(&key)), show(Some(want)));
                return wrong(format!("scan: pair {at} has key {found}, not {want}"));
            }
            Some((_, want)) if want[..] != value[..] => {
                let (found, want) = (show(Some(&value)), show(Some(want)));
                return wrong(format!("scan: {} has {found}, not {want}", show(Some(&key))));
            }
            Some(_) => {}
            None => return wrong(format!("scan: {} is too many", show(Some(&key)))),
        }
        count += 1;
    }
    if count < expected.len().min(limit) {
        let missing = show(Some(&expected[count].0));
        return wrong(format!("scan: ended after {count} pairs, before {missing}"));
    }
    Ok(())
}

/// Reads every keyspace of a slot, forward.
pub fn read_all(db: &Db) -> Result<Found, Failure> {
    let mut found = Found::new();
    for (slot, place) in SLOTS.iter().enumerate() {
        let keyspace = match db.keyspace(place.name) {
            Ok(keyspace) => keyspace,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error.into()),
        };
        let mut contents = Contents::default();
        for pair in keyspace.iter() {
            let (key, value) = pair?;
            if contents.pairs.last().is_some_and(|(last, _)| **last >= *key) {
                return Err(Failure::Wrong(format!("{} is out of order", show(Some(&key)))));
            }
            contents.fingerprint = contents.fingerprint.wrapping_add(pair_hash(&key, &value));
            contents.pairs.push((key.to_vec(), value.to_vec()));
        }
        found.insert(slot, contents);
    }
    Ok(found)
}

/// One line that tells how to reproduce a failure.
pub fn replay(test: &str, seed: u64, what: &Failure) -> String {
    let command = "cargo test -p shingle --release --test it";
    format!("{what:?}; replay: SHINGLE_TEST_SEED={seed} {command} {test}")
}
