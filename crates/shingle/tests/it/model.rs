//! The model of the store: every version of every key by commit, so that the state after any prefix
//! of the commit order can be computed.
//!
//! A keyspace slot (see [`Slot`]) may be dropped and created again; each life is an *incarnation*
//! of its own. Creations and drops have an order of their own, and are durable when they return.

use crate::archive::Archive;
use base::checksum::{hash64, hash64_seeded};
use std::collections::BTreeMap;
use std::sync::Arc;

pub type Key = Vec<u8>;
pub type Value = Arc<[u8]>;

/// How a keyspace combines operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    None,
    Add,
    Append,
}

/// A place for a keyspace: its name and its fixed properties.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub name: &'static str,
    pub operator: Operator,
    pub without_wal: bool,
    pub prefix: bool,
    /// Files come in below what is there.
    pub ingests_below: bool,
    /// It exists from the beginning and is never dropped.
    pub is_permanent: bool,
}

const fn slot(name: &'static str, operator: Operator) -> Slot {
    Slot {
        name,
        operator,
        without_wal: false,
        prefix: false,
        ingests_below: false,
        is_permanent: true,
    }
}

/// Every keyspace that a history may use. Slot 0 is the default keyspace.
pub const SLOTS: [Slot; 6] = [
    slot("default", Operator::None),
    slot("sums", Operator::Add),
    Slot { prefix: true, ingests_below: true, ..slot("texts", Operator::Append) },
    Slot { without_wal: true, ingests_below: true, ..slot("unlogged-a", Operator::None) },
    Slot { without_wal: true, ..slot("unlogged-b", Operator::Append) },
    Slot { is_permanent: false, ..slot("passing", Operator::None) },
];

/// One operation of a batch.
#[derive(Clone, Debug)]
pub enum Op {
    Put(Key, Value),
    /// A value with its time to live in milliseconds.
    PutExpiring(Key, Value, u64),
    Delete(Key),
    Merge(Key, Value),
    DeleteRange(Key, Key),
}

/// How far a commit or a barrier is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// Of the keyspaces with a log.
    Logged,
    /// Of those without.
    Unlogged,
}

/// What a commit did with a key.
#[derive(Clone)]
enum Written {
    /// A value, and when it expires by the model's clock.
    Put(Value, Option<u64>),
    Delete,
    Merge(Value),
}

impl Written {
    /// The value of the key after it, at `now_ms`.
    fn value(&self, operator: Operator, before: Option<&[u8]>, now_ms: u64) -> Option<Value> {
        match self {
            Written::Put(value, expiry_ms) => {
                expiry_ms.is_none_or(|expiry_ms| now_ms < expiry_ms).then(|| value.clone())
            }
            Written::Delete => None,
            Written::Merge(operand) => Some(combine(operator, before, operand)),
        }
    }
}

/// A key after a commit that wrote it.
#[derive(Clone)]
struct Version {
    commit: u64,
    written: Written,
    /// The value at the present time.
    value: Option<Value>,
}

/// One life of a keyspace.
#[derive(Clone, Default)]
pub struct Incarnation {
    pub slot: usize,
    /// The versions of each key, by commit, ascending.
    versions: BTreeMap<Key, Vec<Version>>,
    /// The fingerprint of the whole after a commit that changed it.
    fingerprints: Vec<(u64, u64)>,
    /// Deleted ranges, by commit: they hide what comes in below them later.
    deleted: Vec<(u64, Key, Key)>,
}

impl Incarnation {
    /// The value of `key` after commit `at`.
    pub fn get(&self, key: &[u8], at: u64) -> Option<Value> {
        let versions = self.versions.get(key)?;
        let count = versions.partition_point(|version| version.commit <= at);
        versions[..count].last().and_then(|version| version.value.clone())
    }

    /// The pairs from `start` to `end` (exclusive) after commit `at`.
    pub fn range(&self, start: &[u8], end: Option<&[u8]>, at: u64) -> Vec<(Key, Value)> {
        let within = self.versions.range(start.to_vec()..);
        within
            .take_while(|(key, _)| end.is_none_or(|end| key.as_slice() < end))
            .filter_map(|(key, _)| self.get(key, at).map(|value| (key.clone(), value)))
            .collect()
    }

    /// Every key that ever had a version.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.versions.keys()
    }

    /// The fingerprint after commit `at`.
    pub fn fingerprint(&self, at: u64) -> u64 {
        let count = self.fingerprints.partition_point(|(commit, _)| *commit <= at);
        self.fingerprints[..count].last().map_or(0, |(_, fingerprint)| *fingerprint)
    }

    fn set(&mut self, key: &Key, at: u64, written: Written, now_ms: u64) {
        let before = self.get(key, at);
        let value = written.value(SLOTS[self.slot].operator, before.as_deref(), now_ms);
        let sum = self.fingerprint(at).wrapping_add(change(key, &before, &value));
        self.fingerprints.push((at, sum));
        let version = Version { commit: at, written, value };
        self.versions.entry(key.clone()).or_default().push(version);
    }

    fn apply(&mut self, op: &Op, at: u64, now_ms: u64) {
        match op {
            Op::Put(key, value) => self.set(key, at, Written::Put(value.clone(), None), now_ms),
            Op::PutExpiring(key, value, ttl_ms) => {
                self.set(key, at, Written::Put(value.clone(), Some(now_ms + ttl_ms)), now_ms);
            }
            Op::Delete(key) => self.set(key, at, Written::Delete, now_ms),
            Op::Merge(key, operand) => self.set(key, at, Written::Merge(operand.clone()), now_ms),
            Op::DeleteRange(start, end) => {
                self.deleted.push((at, start.clone(), end.clone()));
                // What has expired stays so, deleted or not.
                for (key, _) in self.range(start, Some(end), at) {
                    self.set(&key, at, Written::Delete, now_ms);
                }
            }
        }
    }

    /// Puts and deletions of `ops` come in below every version.
    fn apply_below(&mut self, ops: &[Op], now_ms: u64) {
        for op in ops {
            let (key, written) = match op {
                Op::Put(key, value) => (key, Written::Put(value.clone(), None)),
                Op::PutExpiring(key, value, ttl_ms) => {
                    (key, Written::Put(value.clone(), Some(now_ms + ttl_ms)))
                }
                Op::Delete(key) => (key, Written::Delete),
                Op::Merge(..) | Op::DeleteRange(..) => continue,
            };
            let versions = self.versions.entry(key.clone()).or_default();
            for (at, start, end) in &self.deleted {
                if (start..end).contains(&key) {
                    let before = versions.partition_point(|version| version.commit < *at);
                    let deleted = Version { commit: *at, written: Written::Delete, value: None };
                    versions.insert(before, deleted);
                }
            }
            versions.insert(0, Version { commit: 0, written, value: None });
        }
        self.expire(now_ms);
    }

    /// Computes all values anew. They expire in every version, as they do for snapshots.
    pub fn expire(&mut self, now_ms: u64) {
        let operator = SLOTS[self.slot].operator;
        let mut changes: BTreeMap<u64, u64> = BTreeMap::new();
        for (key, versions) in &mut self.versions {
            let mut before = None;
            for version in versions {
                version.value = version.written.value(operator, before.as_deref(), now_ms);
                let sum = changes.entry(version.commit).or_default();
                *sum = sum.wrapping_add(change(key, &before, &version.value));
                before.clone_from(&version.value);
            }
        }
        let mut sum = 0u64;
        let summed = changes.into_iter().map(|(commit, change)| {
            sum = sum.wrapping_add(change);
            (commit, sum)
        });
        self.fingerprints = summed.collect();
    }

    /// Undoes everything after commit `at`.
    fn cut(&mut self, at: u64) {
        self.fingerprints.retain(|(commit, _)| *commit <= at);
        self.deleted.retain(|(commit, ..)| *commit <= at);
        for versions in self.versions.values_mut() {
            versions.retain(|version| version.commit <= at);
        }
    }
}

pub fn combine(operator: Operator, before: Option<&[u8]>, operand: &[u8]) -> Value {
    match operator {
        Operator::Append => [before.unwrap_or_default(), operand].concat().into(),
        _ => {
            let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
            let sum = before.map_or(0, number).wrapping_add(number(operand));
            sum.to_le_bytes().to_vec().into()
        }
    }
}

/// What a fingerprint gains when the value of `key` changes.
fn change(key: &[u8], before: &Option<Value>, after: &Option<Value>) -> u64 {
    let share = |value: &Option<Value>| value.as_deref().map_or(0, |value| pair_hash(key, value));
    share(after).wrapping_sub(share(before))
}

/// The share of one pair in a fingerprint.
pub fn pair_hash(key: &[u8], value: &[u8]) -> u64 {
    hash64_seeded(value, hash64(key))
}

/// Everything that happened, as far as a crash must or may keep it.
#[derive(Clone)]
pub struct Model {
    pub incarnations: Vec<Incarnation>,
    /// The living incarnation of each slot, after every creation and drop so far; the last entry
    /// may be that of a step that has not returned yet.
    lives: Vec<[Option<usize>; SLOTS.len()]>,
    /// Every life but those before this one is acknowledged.
    lives_acknowledged: usize,
    /// Commits so far; the last one may not have returned yet.
    commits: u64,
    logged_floor: u64,
    unlogged_floor: u64,
    /// The wall clock.
    now_ms: u64,
    /// A feed of durable changes has shown everything up to this sequence number.
    pub shown_sequence: u64,
    /// The directory of backups.
    pub archive: Archive,
    /// The incarnation of this number with a file below that has not returned yet.
    below: Option<(usize, Incarnation)>,
}

/// What was found after a crash: which prefix of each order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    pub logged: u64,
    pub unlogged: u64,
    pub life: usize,
    /// With the file below that had not returned.
    pub below: bool,
}

impl Model {
    pub fn new() -> Model {
        let mut first = [None; SLOTS.len()];
        first[0] = Some(0);
        Model {
            incarnations: vec![Incarnation::default()],
            lives: vec![first],
            lives_acknowledged: 0,
            commits: 0,
            logged_floor: 0,
            unlogged_floor: 0,
            now_ms: 1_000_000,
            shown_sequence: 0,
            archive: Archive::default(),
            below: None,
        }
    }

    /// The wall clock, in milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The wall clock moves on.
    pub fn advance(&mut self, ms: u64) {
        self.now_ms += ms;
        self.incarnations.iter_mut().for_each(|life| life.expire(self.now_ms));
        if let Some((_, with)) = &mut self.below {
            with.expire(self.now_ms);
        }
    }

    /// The newest commit.
    pub fn now(&self) -> u64 {
        self.commits
    }

    /// The living keyspace of a slot.
    pub fn living(&self, slot: usize) -> Option<&Incarnation> {
        self.lives.last().unwrap()[slot].map(|index| &self.incarnations[index])
    }

    /// The number of the incarnation that lives in a slot.
    pub fn living_index(&self, slot: usize) -> Option<usize> {
        self.lives.last().unwrap()[slot]
    }

    /// A batch is about to be committed. Gives its number.
    pub fn commit(&mut self, batch: &[(usize, Op)]) -> u64 {
        self.commits += 1;
        for (slot, op) in batch {
            let index = self.lives.last().unwrap()[*slot].unwrap();
            self.incarnations[index].apply(op, self.commits, self.now_ms);
        }
        self.commits
    }

    /// The newest commit was refused and left nothing.
    pub fn undo_commit(&mut self) {
        let before = self.commits - 1;
        self.incarnations.iter_mut().for_each(|life| life.cut(before));
    }

    /// The commits up to `commit` are safe from power loss.
    pub fn safe(&mut self, prefix: Prefix, commit: u64) {
        match prefix {
            Prefix::Logged => self.logged_floor = self.logged_floor.max(commit),
            Prefix::Unlogged => self.unlogged_floor = self.unlogged_floor.max(commit),
        }
    }

    /// The commits up to `commit` are in synced runs.
    pub fn flushed(&mut self, commit: u64) {
        self.safe(Prefix::Logged, commit);
        self.safe(Prefix::Unlogged, commit);
    }

    /// A keyspace is about to be created in an empty slot, or dropped from a full one.
    pub fn begin_life(&mut self, slot: usize) {
        let mut next = *self.lives.last().unwrap();
        next[slot] = match next[slot] {
            Some(_) => None,
            None => {
                self.incarnations.push(Incarnation { slot, ..Incarnation::default() });
                Some(self.incarnations.len() - 1)
            }
        };
        self.lives.push(next);
    }

    /// The creation or drop returned.
    pub fn end_life(&mut self) {
        self.lives_acknowledged = self.lives.len() - 1;
    }

    /// A file with these operations is coming in below what a slot has.
    pub fn begin_below(&mut self, slot: usize, ops: &[Op]) {
        let index = self.living_index(slot).expect("a file comes into a keyspace");
        let mut with = self.incarnations[index].clone();
        with.apply_below(ops, self.now_ms);
        self.below = Some((index, with));
    }

    /// It came in, or was refused.
    pub fn end_below(&mut self, is_in: bool) {
        if let Some((index, with)) = self.below.take()
            && is_in
        {
            self.incarnations[index] = with;
        }
    }

    /// The prefix that `found` (names and contents) is, or why it is none.
    pub fn recover(&self, found: &Found) -> Result<Recovered, String> {
        let without = self.recover_as_is(found);
        if without.is_ok() || self.below.is_none() {
            return without;
        }
        let mut with = self.clone();
        with.end_below(true);
        let recovered =
            with.recover_as_is(found).map_err(|problem| format!("{problem} (below)"))?;
        Ok(Recovered { below: true, ..recovered })
    }

    fn recover_as_is(&self, found: &Found) -> Result<Recovered, String> {
        let mut problems = Vec::new();
        for life in (self.lives_acknowledged..self.lives.len()).rev() {
            match self.recover_life(found, life) {
                Ok(recovered) => return Ok(recovered),
                Err(problem) => problems.push(problem),
            }
        }
        Err(problems.join("; "))
    }

    fn recover_life(&self, found: &Found, life: usize) -> Result<Recovered, String> {
        let lives = &self.lives[life];
        for (slot, index) in lives.iter().enumerate() {
            if index.is_some() != found.contains_key(&slot) {
                let name = SLOTS[slot].name;
                return Err(format!("keyspace {name} there: {}, not so", index.is_none()));
            }
        }
        let search = |without_wal: bool, floor: u64| {
            let mine: Vec<(usize, usize)> = (0..SLOTS.len())
                .filter(|&slot| SLOTS[slot].without_wal == without_wal)
                .filter_map(|slot| lives[slot].map(|index| (slot, index)))
                .collect();
            let fits = |at: &u64| {
                mine.iter().all(|(slot, index)| {
                    self.incarnations[*index].fingerprint(*at) == found[slot].fingerprint
                })
            };
            let from_newest = (floor..=self.commits).rev().find(fits);
            from_newest.ok_or_else(|| self.explain(found, &mine, floor))
        };
        Ok(Recovered {
            logged: search(false, self.logged_floor)?,
            unlogged: search(true, self.unlogged_floor)?,
            life,
            below: false,
        })
    }

    /// Describes for each keyspace at which commits it would fit, and what differs from the newest.
    fn explain(&self, found: &Found, mine: &[(usize, usize)], floor: u64) -> String {
        let mut text = format!("no prefix in {floor}..={} fits:", self.commits);
        for (slot, index) in mine {
            let life = &self.incarnations[*index];
            let fits: Vec<u64> = (0..=self.commits)
                .filter(|&at| life.fingerprint(at) == found[slot].fingerprint)
                .collect();
            let span = match (fits.first(), fits.last()) {
                (Some(a), Some(b)) => format!("at {a}..={b} ({} of them)", fits.len()),
                _ => format!("nowhere ({})", differences(life, self.commits, &found[slot].pairs)),
            };
            text.push_str(&format!(" {} fits {span};", SLOTS[*slot].name));
        }
        text
    }

    /// Continues the history from what a crash left.
    pub fn go_on_from(&mut self, recovered: Recovered) {
        self.lives.truncate(recovered.life + 1);
        self.lives_acknowledged = recovered.life;
        self.end_below(recovered.below);
        for life in &mut self.incarnations {
            let unlogged = SLOTS[life.slot].without_wal;
            life.cut(if unlogged { recovered.unlogged } else { recovered.logged });
        }
        // What was recovered is in synced runs.
        self.logged_floor = self.commits;
        self.unlogged_floor = self.commits;
    }
}

/// The contents of a keyspace as read.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pub pairs: Vec<(Key, Vec<u8>)>,
    pub fingerprint: u64,
}

/// The contents of every keyspace, by slot.
pub type Found = BTreeMap<usize, Contents>;

fn differences(life: &Incarnation, at: u64, pairs: &[(Key, Vec<u8>)]) -> String {
    let want = life.range(&[], None, at);
    let got: BTreeMap<&[u8], &[u8]> = pairs.iter().map(|(k, v)| (&k[..], &v[..])).collect();
    let mut lines = Vec::new();
    for (key, value) in &want {
        match got.get(&key[..]) {
            None => lines.push(format!("{} missing", base::key::display_key(key))),
            Some(found) if **found != **value => {
                lines.push(format!("{} other value", base::key::display_key(key)));
            }
            _ => {}
        }
    }
    let wanted: BTreeMap<&[u8], ()> = want.iter().map(|(k, _)| (&k[..], ())).collect();
    let extra = got.keys().filter(|key| !wanted.contains_key(**key));
    lines.extend(extra.map(|key| format!("{} too many", base::key::display_key(key))));
    let count = lines.len();
    lines.truncate(4);
    format!("{count} differences from commit {at}: {}", lines.join(", "))
}

#[test]
fn the_model_knows_every_prefix() {
    let mut model = Model::new();
    let value = |text: &str| -> Value { text.as_bytes().into() };
    model.commit(&[(0, Op::Put(b"a".to_vec(), value("1")))]);
    model.commit(&[(0, Op::Put(b"b".to_vec(), value("2")))]);
    model.commit(&[(0, Op::DeleteRange(b"a".to_vec(), b"b".to_vec()))]);
    let life = model.living(0).unwrap();
    assert_eq!(life.get(b"a", 2).as_deref(), Some(&b"1"[..]));
    assert_eq!(life.get(b"a", 3), None);
    assert_eq!(life.range(b"", None, 2).len(), 2);
    let mut found = Found::new();
    let fingerprint = pair_hash(b"a", b"1");
    found.insert(0, Contents { pairs: vec![(b"a".to_vec(), b"1".to_vec())], fingerprint });
    assert_eq!(model.recover(&found).unwrap().logged, 1);
    model.safe(Prefix::Logged, 2);
    assert!(model.recover(&found).is_err());
}

#[test]
fn the_model_expires_values_in_every_version() {
    let mut model = Model::new();
    let value = |text: &str| -> Value { text.as_bytes().into() };
    model.commit(&[(0, Op::Put(b"a".to_vec(), value("1")))]);
    model.commit(&[(0, Op::PutExpiring(b"a".to_vec(), value("2"), 10))]);
    model.commit(&[(0, Op::Put(b"b".to_vec(), value("3")))]);
    let get = |model: &Model, at| model.living(0).unwrap().get(b"a", at).map(|v| v.to_vec());
    model.advance(9);
    assert_eq!(get(&model, 3), Some(b"2".to_vec()));
    model.advance(1);
    assert_eq!([get(&model, 1), get(&model, 2), get(&model, 3)], [Some(b"1".to_vec()), None, None]);
    let life = model.living(0).unwrap();
    let prints = [1, 2, 3].map(|at| life.fingerprint(at));
    assert_eq!(prints, [pair_hash(b"a", b"1"), 0, pair_hash(b"b", b"3")]);
}
