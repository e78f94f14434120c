//! Values that expire: every read respects the clock, and compactions carry it out, under every
//! scheme and every value layout.

use crate::config::Config;
use crate::run::{Failure, Outcome, replay, wrong};
use crate::volume::seeds_for_cells;
use base::env::Runtime;
use base::random::Random;
use media::mem::MemStore;
use shingle::runtime::Stepped;
use shingle::{
    Bytes, Db, ErrorKind, Expiry, Keyspace, KeyspaceOptions, MergeOperator, Options, ReadOptions,
    Snapshot, WriteBatch, WriteOptions,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const MS: u64 = 1_000_000;

/// What a key has, whatever the time.
#[derive(Clone, Default)]
struct Held {
    base: Option<(Vec<u8>, Expiry)>,
    operands: Vec<Vec<u8>>,
}

impl Held {
    /// The value at a time, with the operator `append`.
    fn value(&self, now_ms: u64) -> Option<Vec<u8>> {
        let base = self.base.as_ref().filter(|(_, expiry)| !expiry.is_over(now_ms));
        if base.is_none() && self.operands.is_empty() {
            return None;
        }
        let base = base.map(|(value, _)| &value[..]).unwrap_or_default();
        Some([base, &self.operands.concat()].concat())
    }

    /// Its value does not change from one time to the other.
    fn is_same(&self, from_ms: u64, to_ms: u64) -> bool {
        self.base.as_ref().is_none_or(|(_, e)| e.is_over(from_ms) == e.is_over(to_ms))
    }
}

type State = BTreeMap<Vec<u8>, Held>;

/// A database and its model, on one clock.
struct Pair {
    config: Config,
    store: MemStore,
    runtime: Arc<Stepped>,
    db: Db,
    texts: Keyspace,
    state: State,
    snapshots: Vec<(Snapshot, State)>,
    random: Random,
}

impl Pair {
    fn new(config: Config, seed: u64) -> Result<Pair, Failure> {
        let store = MemStore::new(Arc::default());
        let runtime = Arc::new(Stepped::new(seed, 3));
        let db = open(&config, &store, &runtime)?;
        let merge_operator = Some("append".into());
        let options = KeyspaceOptions { merge_operator, ..KeyspaceOptions::default() };
        let texts = db.create_keyspace("texts", options)?;
        let (state, snapshots, random) = (State::new(), Vec::new(), Random::new(seed));
        Ok(Pair { config, store, runtime, db, texts, state, snapshots, random })
    }

    fn now_ms(&self) -> u64 {
        self.runtime.wall_micros() / 1000
    }

    fn key(&mut self) -> Vec<u8> {
        format!("key{:03}", self.random.below(60)).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        let length = [5, 60, 300][self.random.below(3) as usize];
        vec![b'a' + self.random.below(26) as u8; length]
    }

    fn step(&mut self) -> Outcome {
        match self.random.below(40) {
            0..12 => self.put_expiring(),
            12..15 => self.put(),
            15..18 => self.merge(),
            18 => self.delete(),
            19 => self.delete_range(),
            20..26 => self.get(),
            26..29 => self.scan(),
            29 => {
                self.snapshots
                    .push((self.db.snapshot().of(&self.texts).unwrap(), self.state.clone()));
                if self.snapshots.len() > 3 {
                    self.snapshots.remove(0);
                }
                Ok(())
            }
            30 | 31 => self.read_snapshot(),
            32..36 => {
                self.runtime.pass(self.random.below(900) * MS);
                Ok(())
            }
            36 => Ok(self.db.flush()?),
            37 => Ok(self.texts.compact()?),
            38 => Ok(self.db.wait_idle()?),
            _ if self.random.one_in(4) => self.reopen(),
            _ => Ok(()),
        }
    }

    fn put_expiring(&mut self) -> Outcome {
        let (key, value) = (self.key(), self.value());
        let ttl = Duration::from_millis(self.random.below(3000));
        let expiry = self.texts.expiry_after(ttl);
        match self.random.below(3) {
            0 => self.texts.put_expiring(&key, &value, expiry)?,
            1 => {
                let mut batch = WriteBatch::new();
                batch.put_expiring_in(&self.texts, &key, &value, expiry)?;
                batch.put_in(&self.texts, "other", "value")?;
                self.state.insert(b"other".to_vec(), Held::of(b"value", Expiry::NEVER));
                self.db.write(batch, &WriteOptions::default())?;
            }
            _ => {
                let mut transaction = self.db.transaction();
                transaction.put_expiring_in(&self.texts, &key, &value, expiry)?;
                transaction.commit()?;
            }
        }
        self.state.insert(key, Held::of(&value, expiry));
        Ok(())
    }

    fn put(&mut self) -> Outcome {
        let (key, value) = (self.key(), self.value());
        self.texts.put(&key, &value)?;
        self.state.insert(key, Held::of(&value, Expiry::NEVER));
        Ok(())
    }

    fn merge(&mut self) -> Outcome {
        let key = self.key();
        self.texts.merge(&key, "+")?;
        self.state.entry(key).or_default().operands.push(b"+".to_vec());
        Ok(())
    }

    fn delete(&mut self) -> Outcome {
        let key = self.key();
        self.texts.delete(&key)?;
        self.state.remove(&key);
        Ok(())
    }

    fn delete_range(&mut self) -> Outcome {
        let (a, b) = (self.key(), self.key());
        let (start, end) = if a < b { (a, b) } else { (b, a) };
        self.texts.delete_range(&start, &end)?;
        self.state.retain(|key, _| *key < start || *key >= end);
        Ok(())
    }

    fn get(&mut self) -> Outcome {
        let key = self.key();
        let before_ms = self.now_ms();
        let found = self.texts.get(&key)?;
        let with_expiry = self.texts.get_with_expiry(&key)?;
        let many = self.texts.multi_get(&[&key[..], b"missing"])?;
        let after_ms = self.now_ms();
        let held = self.state.get(&key).cloned().unwrap_or_default();
        if !held.is_same(before_ms, after_ms) {
            return Ok(());
        }
        let expected = held.value(after_ms);
        if found.as_deref() != expected.as_deref() || many[0] != found || many[1].is_some() {
            return wrong(format!("get: {found:?}, not {expected:?}"));
        }
        let base = held.base.filter(|(_, expiry)| !expiry.is_over(after_ms));
        let expiry = base.map(|(_, expiry)| expiry).filter(|expiry| *expiry != Expiry::NEVER);
        if with_expiry != found.map(|found| (found, expiry)) {
            return wrong(format!("get: {with_expiry:?}, not until {expiry:?}"));
        }
        Ok(())
    }

    fn scan(&mut self) -> Outcome {
        let iter = self.texts.iter();
        let is_reverse = self.random.one_in(2);
        let before_ms = self.now_ms();
        let found: Result<Vec<(Bytes, Bytes)>, _> = match is_reverse {
            true => iter.rev().collect(),
            false => iter.collect(),
        };
        let mut found = found?;
        if is_reverse {
            found.reverse();
        }
        self.compare(&self.state, &found, before_ms)
    }

    fn compare(&self, state: &State, found: &[(Bytes, Bytes)], before_ms: u64) -> Outcome {
        let after_ms = self.now_ms();
        if !state.values().all(|held| held.is_same(before_ms, after_ms)) {
            return Ok(());
        }
        let pairs = state.iter().filter_map(|(key, held)| Some((key, held.value(after_ms)?)));
        let expected: Vec<_> = pairs.map(|(key, value)| (key.clone(), value)).collect();
        let found: Vec<_> = found.iter().map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
        if found != expected {
            let keys = |pairs: &[(Vec<u8>, Vec<u8>)]| -> Vec<String> {
                pairs.iter().map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect()
            };
            return wrong(format!("scan: {:?}, not {:?}", keys(&found), keys(&expected)));
        }
        Ok(())
    }

    fn read_snapshot(&mut self) -> Outcome {
        let Some((snapshot, state)) = self.snapshots.first() else { return Ok(()) };
        let before_ms = self.now_ms();
        let found: Result<Vec<(Bytes, Bytes)>, _> = snapshot.iter().collect();
        self.compare(state, &found?, before_ms)
    }

    fn reopen(&mut self) -> Outcome {
        self.snapshots.clear();
        self.db.clone().close()?;
        self.db = open(&self.config, &self.store, &self.runtime)?;
        self.texts = self.db.keyspace("texts")?;
        Ok(())
    }

    fn check(&mut self) -> Outcome {
        let report = self.db.check(&mut |_| {})?;
        if !report.is_clean() {
            return wrong(format!("the check found {:?}", report.problems));
        }
        self.scan()
    }

    /// When time has passed, expired values are gone from the medium, without a write.
    fn end(&mut self) -> Outcome {
        self.snapshots.clear();
        self.db.flush()?;
        self.runtime.pass(3_600_000 * MS);
        self.db.wait_idle()?;
        self.check()?;
        let left: Vec<_> = self.db.files().into_iter().collect();
        let expiring = self
            .state
            .values()
            .filter(|held| held.base.as_ref().is_some_and(|(_, expiry)| *expiry != Expiry::NEVER));
        // Whatever is rewritten once more has nothing to remove.
        let before = expired(&self.db);
        self.texts.compact()?;
        if expiring.count() > 0 && before == 0 {
            return wrong(format!("nothing was removed from {} files", left.len()));
        }
        Ok(())
    }
}

impl Held {
    fn of(value: &[u8], expiry: Expiry) -> Held {
        Held { base: Some((value.to_vec(), expiry)), operands: Vec::new() }
    }
}

fn expired(db: &Db) -> u64 {
    db.stats().cleanup.iter().map(|of| of.expired).sum()
}

fn open(config: &Config, store: &MemStore, runtime: &Arc<Stepped>) -> shingle::Result<Db> {
    let options = config.options().expert(|e| e.expiry_delay_ms = Some(5000));
    options.open_in(Arc::new(store.clone()), runtime.clone())
}

#[test]
fn expired_values_are_missing_for_every_read_under_every_scheme_and_layout() {
    for seed in seeds_for_cells(24) {
        let mut steps = 0;
        let mut run = || -> Outcome {
            let mut pair = Pair::new(Config::draw(seed), seed)?;
            while steps < 700 {
                steps += 1;
                pair.step()?;
            }
            pair.check()?;
            pair.end()
        };
        if let Err(failure) = run() {
            panic!("step {steps}: {}", replay("expired_values_are_missing", seed, &failure));
        }
    }
}

fn plain_options() -> Options {
    Options::new().write_buffer_bytes(16 << 10).expert(|e| {
        e.scheme.table_bytes_max = Some(4096);
        e.values.log_segment_bytes = Some(4096);
        e.expiry_delay_ms = Some(60_000);
    })
}

fn stepped(options: Options, store: &MemStore) -> (Db, Arc<Stepped>) {
    let runtime = Arc::new(Stepped::new(7, 4));
    let db = options.open_in(Arc::new(store.clone()), runtime.clone()).unwrap();
    (db, runtime)
}

#[test]
fn a_keyspace_has_a_time_to_live_that_a_write_may_replace() {
    let store = MemStore::new(Arc::default());
    let (db, runtime) = stepped(plain_options(), &store);
    let ttl = Some(Duration::from_secs(10));
    let options = KeyspaceOptions { ttl, ..KeyspaceOptions::default() };
    let sessions = db.create_keyspace("sessions", options.clone()).unwrap();
    sessions.put("put", "1").unwrap();
    sessions.put_with_ttl("longer", "1", Duration::from_secs(20)).unwrap();
    sessions.put_expiring("always", "1", Expiry::NEVER).unwrap();
    let mut batch = WriteBatch::new();
    batch.put_in(&sessions, "batch", "1").unwrap();
    db.write(batch, &WriteOptions::default()).unwrap();
    sessions.update("update", |_| Some(b"1".to_vec())).unwrap();
    let mut transaction = db.transaction();
    transaction.put_in(&sessions, "transaction", "1").unwrap();
    transaction.commit().unwrap();
    assert_eq!(sessions.iter().count(), 6);
    // The properties are in the manifest.
    drop((sessions, db));
    let db = plain_options().open_in(Arc::new(store.clone()), runtime.clone()).unwrap();
    let sessions = db.open_or_create_keyspace("sessions", options).unwrap();
    runtime.pass(10_000 * MS);
    let keys: Vec<_> = sessions.iter().map(|pair| pair.unwrap().0.to_vec()).collect();
    assert_eq!(keys, [&b"always"[..], b"longer"]);
    runtime.pass(10_000 * MS);
    assert_eq!(sessions.iter().count(), 1);
    assert_eq!(sessions.get_with_expiry("always").unwrap().unwrap().1, None);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let (db, _) = stepped(plain_options(), &MemStore::new(Arc::default()));
    let options = |ttl: Duration, operator: Option<&str>| KeyspaceOptions {
        ttl: Some(ttl),
        merge_operator: operator.map(str::to_string),
        ..KeyspaceOptions::default()
    };
    for refused in [
        options(Duration::ZERO, None),
        options(Duration::from_nanos(1_500_000), None),
        options(Duration::MAX, None),
        options(Duration::from_secs(1), Some("append")),
    ] {
        let error = db.create_keyspace("x", refused).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    let filter = Some("unheard of".to_string());
    let options = KeyspaceOptions { compaction_filter: filter, ..KeyspaceOptions::default() };
    let error = db.create_keyspace("x", options).err().unwrap();
    assert!(error.message().contains("Options::compaction_filter"), "{error}");
}

#[test]
fn a_cursor_judges_everything_at_one_time() {
    let (db, runtime) = stepped(plain_options(), &MemStore::new(Arc::default()));
    for n in 0..10 {
        db.put_with_ttl(format!("{n}"), "value", Duration::from_secs(5)).unwrap();
    }
    let mut cursor = db.cursor(ReadOptions::default());
    cursor.seek_to_first().unwrap();
    let mut both = db.iter();
    both.next().unwrap().unwrap();
    let mut transaction = db.transaction();
    transaction
        .put_expiring("own", "value", db.default_keyspace().expiry_after(Duration::from_secs(5)))
        .unwrap();
    assert!(transaction.get("own").unwrap().is_some());
    runtime.pass(6000 * MS);
    let mut count = 0;
    while cursor.valid() {
        count += 1;
        assert_eq!(cursor.expiry().map(|e| e.as_millis() / 1000), Some(5));
        cursor.next().unwrap();
    }
    assert_eq!(count, 10);
    // From the back too, although its cursor is made only now.
    assert_eq!(both.rev().count(), 9);
    assert_eq!(db.iter().count(), 0);
    assert_eq!(transaction.get("own").unwrap(), None);
}

/// A key without a value was passed on the way, and its time was given to the next one.
#[test]
fn a_cursor_does_not_give_a_key_the_expiry_of_another() {
    struct Remove;
    impl MergeOperator for Remove {
        fn name(&self) -> &str {
            "remove"
        }
        fn merge(
            &self,
            _: &[u8],
            _: Option<&[u8]>,
            _: &[&[u8]],
        ) -> shingle::Result<Option<Vec<u8>>> {
            Ok(None)
        }
    }
    let options = plain_options().merge_operator(Arc::new(Remove));
    let (db, _) = stepped(options, &MemStore::new(Arc::default()));
    let merge_operator = Some("remove".into());
    let options = KeyspaceOptions { merge_operator, ..KeyspaceOptions::default() };
    let keyspace = db.create_keyspace("removed", options).unwrap();
    for key in ["b", "d"] {
        keyspace.put_with_ttl(key, "value", Duration::from_secs(3600)).unwrap();
        keyspace.merge(key, "operand").unwrap();
    }
    keyspace.put("c", "stays").unwrap();
    let mut cursor = keyspace.cursor(ReadOptions::default());
    cursor.seek_to_first().unwrap();
    assert_eq!((cursor.key(), cursor.expiry()), (&b"c"[..], None));
    cursor.seek_to_last().unwrap();
    assert_eq!((cursor.key(), cursor.expiry()), (&b"c"[..], None));
}

/// A flush turned an expired value into a tombstone, which another cursor of the same snapshot
/// stepped over together with those around it.
#[test]
fn a_flush_does_not_hide_what_a_cursor_from_before_its_time_shows() {
    let (db, runtime) = stepped(plain_options(), &MemStore::new(Arc::default()));
    let keys = || (10..40).map(|n| format!("{n}"));
    keys().for_each(|key| db.put(key, "value").unwrap());
    db.compact().unwrap();
    let _keeps_all = db.snapshot();
    keys().for_each(|key| db.delete(key).unwrap());
    db.put_with_ttl("20", "ends", Duration::from_secs(1)).unwrap();
    let snapshot = db.snapshot();
    let mut before = snapshot.cursor(ReadOptions::default());
    before.seek_to_first().unwrap();
    assert_eq!(before.key(), b"20");
    runtime.pass(2000 * MS);
    db.flush().unwrap();
    assert_eq!(snapshot.iter().count(), 0);
    before.seek("10").unwrap();
    assert!(before.valid());
    assert_eq!(before.key(), b"20");
}

#[test]
fn an_expired_value_hides_older_versions_also_from_snapshots() {
    for values in ["inline", "log", "hashed"] {
        let options = plain_options().values(values).value_threshold_bytes(4);
        let (db, runtime) = stepped(options, &MemStore::new(Arc::default()));
        db.put("key", "a value that stays").unwrap();
        db.flush().unwrap();
        let old = db.snapshot();
        db.put_with_ttl("key", "a value that ends", Duration::from_secs(5)).unwrap();
        let new = db.snapshot();
        assert_eq!(new.get("key").unwrap().as_deref(), Some(&b"a value that ends"[..]));
        for _ in 0..2 {
            runtime.pass(6000 * MS);
            assert_eq!((db.get("key").unwrap(), new.get("key").unwrap()), (None, None));
            assert_eq!(old.get("key").unwrap().as_deref(), Some(&b"a value that stays"[..]));
            db.flush().unwrap();
            db.compact().unwrap();
        }
        assert_eq!(expired(&db), 1, "{values}");
        drop((old, new));
        db.compact().unwrap();
        assert_eq!(db.iter().count(), 0);
    }
}

/// Bytes that no compression makes shorter.
fn noise(seed: u64) -> [u8; 200] {
    let mut bytes = [0; 200];
    Random::new(seed).fill(&mut bytes);
    bytes
}

#[test]
fn an_idle_database_frees_the_space_of_what_has_expired() {
    for values in ["inline", "log", "hashed"] {
        let options = plain_options().values(values).value_threshold_bytes(64);
        let (db, runtime) = stepped(options, &MemStore::new(Arc::default()));
        for n in 0..500u64 {
            let ttl = Duration::from_secs(100 + n / 10);
            db.put_with_ttl(n.to_be_bytes(), noise(n), ttl).unwrap();
        }
        db.put("stays", "value").unwrap();
        db.flush().unwrap();
        db.wait_idle().unwrap();
        let before = db.stats().live_bytes;
        assert!(before > 100_000);
        // The first has expired, but not half of any run for certain, and not for a minute.
        runtime.pass(100_500 * MS);
        db.wait_idle().unwrap();
        runtime.pass(170_000 * MS);
        db.wait_idle().unwrap();
        assert!(values != "inline" || expired(&db) == 500, "{values}");
        let after = db.stats().live_bytes;
        assert!(after < before / 10, "{values}: {after} of {before} live bytes are left");
        assert_eq!(db.iter().count(), 1);
        assert!(db.check(&mut |_| {}).unwrap().is_clean());
    }
}

#[test]
fn runs_of_nothing_but_expired_values_are_dropped_unread() {
    let (db, runtime) = stepped(plain_options(), &MemStore::new(Arc::default()));
    for n in 0..500u64 {
        db.put_with_ttl(n.to_be_bytes(), noise(n), Duration::from_secs(100)).unwrap();
    }
    db.flush().unwrap();
    db.compact().unwrap();
    let before = db.stats().ledger.host();
    runtime.pass(101_000 * MS);
    db.wait_idle().unwrap();
    let after = db.stats().ledger.host();
    assert_eq!((expired(&db), db.stats().live_bytes), (500, 0));
    assert_eq!(after.read_bytes, before.read_bytes);
    assert!(after.write_bytes - before.write_bytes < 4096, "more than edits was written");
}

#[test]
fn an_operand_outlives_the_value_that_it_was_merged_into() {
    for values in ["inline", "log", "hashed"] {
        let options = plain_options().values(values).value_threshold_bytes(4);
        let (db, runtime) = stepped(options, &MemStore::new(Arc::default()));
        let merge_operator = Some("append".into());
        let options = KeyspaceOptions { merge_operator, ..KeyspaceOptions::default() };
        let texts = db.create_keyspace("texts", options).unwrap();
        texts.put_with_ttl("key", "a value that ends", Duration::from_secs(50)).unwrap();
        texts.merge("key", " and more").unwrap();
        for _ in 0..2 {
            let (value, expiry) = texts.get_with_expiry("key").unwrap().unwrap();
            assert_eq!(&value[..], b"a value that ends and more");
            assert!(expiry.is_some());
            db.flush().unwrap();
            texts.compact().unwrap();
        }
        runtime.pass(60_000 * MS);
        for _ in 0..2 {
            let (value, expiry) = texts.get_with_expiry("key").unwrap().unwrap();
            assert_eq!((&value[..], expiry), (&b" and more"[..], None), "{values}");
            db.wait_idle().unwrap();
            texts.compact().unwrap();
        }
    }
}

#[test]
fn garbage_collection_keeps_expiries_and_carries_them_out() {
    for values in ["log", "hashed"] {
        let options = plain_options().values(values).value_threshold_bytes(16);
        let (db, runtime) = stepped(options, &MemStore::new(Arc::default()));
        for n in 0..20u64 {
            let ttl = Duration::from_secs(if n < 10 { 20 } else { 1000 });
            db.put_with_ttl(n.to_be_bytes(), [1; 300], ttl).unwrap();
        }
        for round in 0..60u64 {
            for n in 20..40u64 {
                db.put(n.to_be_bytes(), [round as u8; 300]).unwrap();
            }
            db.flush().unwrap();
            db.wait_idle().unwrap();
            if round == 30 {
                runtime.pass(30_000 * MS);
            }
        }
        assert!(db.stats().values.collected.count > 0, "{values}: nothing was collected");
        assert_eq!(db.iter().count(), 30);
        for n in 10..20u64 {
            let (value, expiry) = db.get_with_expiry(n.to_be_bytes()).unwrap().unwrap();
            assert_eq!(
                (&value[..], expiry.map(|e| e.as_millis() / 1000)),
                (&[1; 300][..], Some(1000))
            );
        }
        runtime.pass(1_000_000 * MS);
        assert_eq!(db.iter().count(), 20);
        assert!(db.check(&mut |_| {}).unwrap().is_clean());
    }
}

#[test]
fn expiry_survives_crash_salvage_and_checkpoint() {
    let store = MemStore::new(Arc::default());
    let (db, runtime) = stepped(plain_options(), &store);
    let far = Expiry::from_millis(16_725_225_600_000);
    db.put_expiring("flushed", "1", far).unwrap();
    db.flush().unwrap();
    db.put_expiring("logged", "2", far).unwrap();
    let all = |db: &Db| {
        for (key, value) in [("flushed", "1"), ("logged", "2")] {
            let (found, expiry) = db.get_with_expiry(key).unwrap().unwrap();
            assert_eq!((&found[..], expiry), (value.as_bytes(), Some(far)), "{key}");
        }
    };
    drop(db);
    let db = plain_options().open_in(Arc::new(store.clone()), runtime).unwrap();
    all(&db);
    db.close().unwrap();
    let home = tempfile::tempdir().unwrap();
    let salvaged = home.path().join("salvaged");
    let report =
        shingle::salvage_store(Arc::new(store), &salvaged, Options::new(), &mut |_| {}).unwrap();
    assert!(report.losses.is_empty(), "{:?}", report.losses);
    let db = Options::new().open(&salvaged).unwrap();
    all(&db);
    let copy = home.path().join("copy");
    db.checkpoint(&copy).unwrap();
    all(&Options::new().open(&copy).unwrap());
    let follower = Options::new().follow(&copy).unwrap();
    all(&follower.db());
}
