//! Histories under a merge operator that refuses some operands, opened with the operator and
//! without, against a model. Each refusal is an error of its key alone, no operand is lost, and no
//! other key is affected.

use crate::config::Config;
use crate::volume::{scaled, seeds};
use base::random::Random;
use media::mem::MemStore;
use shingle::{
    Cursor, Db, Error, Keyspace, KeyspaceOptions, MergeOperator, ReadOptions, Result, Snapshot,
    Unmerged,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Appends; `-` deletes; an operand with a `!` is refused.
struct Picky;

fn append(existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Option<Vec<u8>>> {
    let mut value = existing.map(<[u8]>::to_vec);
    for operand in operands {
        match *operand {
            b"-" => value = None,
            operand if operand.contains(&b'!') => return None,
            operand => value.get_or_insert_default().extend_from_slice(operand),
        }
    }
    Some(value)
}

impl MergeOperator for Picky {
    fn name(&self) -> &str {
        "picky"
    }

    fn merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>> {
        append(existing, operands).ok_or_else(|| Error::invalid("it takes no `!`"))
    }
}

/// What was written to a key since it was last put or deleted.
#[derive(Clone, Default)]
struct Held {
    base: Option<Vec<u8>>,
    operands: Vec<Vec<u8>>,
}

impl Held {
    /// The value; `None`: refused.
    fn value(&self) -> Option<Option<Vec<u8>>> {
        let operands: Vec<&[u8]> = self.operands.iter().map(Vec::as_slice).collect();
        append(self.base.as_deref(), &operands)
    }

    /// `held` equals this, perhaps with some of the oldest operands in its base.
    fn is(&self, held: &Unmerged) -> bool {
        let Some(merged) = self.operands.len().checked_sub(held.operands.len()) else {
            return false;
        };
        let (older, newer) = self.operands.split_at(merged);
        let below = Held { base: self.base.clone(), operands: older.to_vec() };
        below.value() == Some(held.base.as_deref().map(<[u8]>::to_vec))
            && newer.iter().zip(&held.operands).all(|(ours, theirs)| ours[..] == theirs[..])
    }
}

type Model = BTreeMap<Vec<u8>, Held>;

const KEYS: u64 = 24;

fn key(n: u64) -> Vec<u8> {
    format!("key {n:02}").into_bytes()
}

struct Life {
    config: Config,
    store: MemStore,
    db: Db,
    keyspace: Keyspace,
    knows: bool,
    model: Model,
    snapshots: Vec<(Snapshot, Model)>,
}

impl Life {
    fn begin(seed: u64) -> Life {
        let (config, store) = (Config::draw(seed), MemStore::new(Arc::default()));
        let db = open(&config, &store, true);
        let merge_operator = Some("picky".into());
        let options = KeyspaceOptions { merge_operator, ..KeyspaceOptions::default() };
        let keyspace = db.create_keyspace("picky", options).unwrap();
        let (model, snapshots) = (Model::new(), Vec::new());
        Life { config, store, db, keyspace, knows: true, model, snapshots }
    }

    /// Opens again, perhaps without the operator.
    fn again(self, knows: bool) -> Life {
        let Life { config, store, db, keyspace, model, snapshots, .. } = self;
        drop((snapshots, keyspace));
        db.close().unwrap();
        let db = open(&config, &store, knows);
        let keyspace = db.keyspace("picky").unwrap();
        Life { config, store, db, keyspace, knows, model, snapshots: Vec::new() }
    }

    fn write(&mut self, random: &mut Random) {
        let key = key(random.below(KEYS));
        let held = self.model.entry(key.clone()).or_default();
        match random.below(20) {
            0 => {
                self.keyspace.delete(&key).unwrap();
                *held = Held::default();
            }
            1 => {
                self.keyspace.delete_range("key 05", "key 08").unwrap();
                let inside = |key: &[u8]| (&b"key 05"[..]..&b"key 08"[..]).contains(&key);
                self.model.retain(|key, _| !inside(key));
            }
            2..=7 => {
                let value = vec![b'a' + random.below(26) as u8; random.below(200) as usize];
                self.keyspace.put(&key, &value).unwrap();
                *held = Held { base: Some(value), operands: Vec::new() };
            }
            _ if !self.knows => {
                self.keyspace.merge(&key, "x").unwrap_err();
            }
            _ => {
                let operand = match random.below(16) {
                    0 => b"no!".to_vec(),
                    1 => b"-".to_vec(),
                    _ => vec![b'0' + random.below(10) as u8; 1 + random.below(30) as usize],
                };
                self.keyspace.merge(&key, &operand).unwrap();
                held.operands.push(operand);
            }
        }
    }

    fn step(&mut self, random: &mut Random) {
        match random.below(120) {
            0 => self.db.flush().unwrap(),
            1 => self.keyspace.compact().unwrap(),
            2 => self.db.wait_idle().unwrap(),
            3 => {
                let snapshot = self.db.snapshot().of(&self.keyspace).unwrap();
                self.snapshots.push((snapshot, self.model.clone()));
            }
            4 if !self.snapshots.is_empty() => {
                self.snapshots.swap_remove(random.below(self.snapshots.len() as u64) as usize);
            }
            5 => self.verify(),
            _ => self.write(random),
        }
    }

    fn verify(&self) {
        for n in 0..KEYS {
            let key = key(n);
            let held = self.model.get(&key).cloned().unwrap_or_default();
            match (self.keyspace.get(&key), held.value()) {
                (Ok(found), Some(value)) => assert_eq!(found.as_deref(), value.as_deref()),
                (Err(error), value) => self.is_refusal(&error, &key, &held, value.is_some()),
                (Ok(found), None) => panic!("{found:?} where an operand is refused"),
            }
        }
        let options = ReadOptions::default;
        self.walk(self.keyspace.cursor(options()), &self.model, false);
        self.walk(self.keyspace.cursor(options()), &self.model, true);
        for (snapshot, model) in &self.snapshots {
            self.walk(snapshot.cursor(options()), model, false);
            self.walk(snapshot.cursor(options()), model, true);
        }
        if self.knows {
            let refused = self.model.values().filter(|held| held.value().is_none()).count();
            let report = self.db.check(&mut |_| {}).unwrap();
            assert_eq!(report.problems.len(), refused, "{:?}", report.problems);
        }
    }

    /// `error` concerns `key` alone. Where the operator is unknown, any operand is refused.
    fn is_refusal(&self, error: &Error, key: &[u8], held: &Held, would_do: bool) {
        assert!(!would_do || !self.knows && !held.operands.is_empty(), "{error}");
        let name = base::key::display_key(key);
        for part in ["`picky`", &name] {
            assert!(error.message().contains(part), "{error}");
        }
    }

    fn walk(&self, mut cursor: Cursor, model: &Model, backward: bool) {
        let mut moved = if backward { cursor.seek_to_last() } else { cursor.seek_to_first() };
        let mut seen = Vec::new();
        while cursor.valid() {
            let (key, held) = (cursor.key().to_vec(), &model[cursor.key()]);
            let value = held.value();
            match (&moved, cursor.unmerged()) {
                (Ok(()), None) => assert_eq!(Some(Some(cursor.value().to_vec())), value),
                (Err(error), Some(unmerged)) => {
                    self.is_refusal(error, &key, held, value.is_some());
                    assert!(held.is(unmerged), "{unmerged:?}");
                }
                other => panic!("{other:?}"),
            }
            seen.push(key);
            moved = if backward { cursor.prev() } else { cursor.next() };
        }
        moved.unwrap();
        if backward {
            seen.reverse();
        }
        // A key whose operands are not merged may have been deleted by them.
        let there = |held: &Held| held.value() != Some(None);
        let surely = model.iter().filter(|(_, held)| there(held)).map(|(key, _)| key);
        assert!(surely.clone().all(|key| seen.contains(key)), "{seen:?}");
        assert!(!self.knows || seen.iter().eq(surely), "{seen:?}");
        assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
    }
}

fn open(config: &Config, store: &MemStore, knows: bool) -> Db {
    let options = match knows {
        true => config.options().merge_operator(Arc::new(Picky)),
        false => config.options().absent_operators(true),
    };
    options.open_in(Arc::new(store.clone()), config.runtime()).unwrap()
}

#[test]
fn histories_with_operands_that_are_refused_match_the_model() {
    for seed in seeds(scaled(60)) {
        let mut random = Random::new(seed ^ 0x9ef5);
        let mut life = Life::begin(seed);
        for lives in 0..4 {
            for _ in 0..400 {
                life.step(&mut random);
            }
            life.verify();
            life = life.again(lives % 2 == 1);
            life.verify();
        }
    }
}
