//! What a consumer of changes makes of them: a copy of the keyspaces with a log.

use crate::model::{Contents, Found, Key, Op, Operator, SLOTS, Value, combine, pair_hash};
use crate::run::{Config, Failure, Outcome, wrong};
use shingle::{Change, Changes, ChangesOptions, Db, Operation, Since};
use std::collections::BTreeMap;

/// The copy, by slot.
#[derive(Clone, Default)]
pub struct Mirror {
    slots: [BTreeMap<Key, Value>; SLOTS.len()],
    /// Everything up to this sequence number is in it.
    pub position: u64,
}

fn slot_of(name: &str) -> Option<usize> {
    SLOTS.iter().position(|slot| slot.name == name)
}

fn op(operation: Operation<'_>) -> Op {
    match operation {
        Operation::Put { key, value, .. } => Op::Put(key.into(), value.into()),
        Operation::Delete { key } => Op::Delete(key.into()),
        Operation::Merge { key, operand } => Op::Merge(key.into(), operand.into()),
        Operation::DeleteRange { start, end } => Op::DeleteRange(start.into(), end.into()),
        other => panic!("{other:?}"),
    }
}

impl Mirror {
    /// Applies what is committed and not in the copy yet. Returns the number of batches.
    pub fn follow(&mut self, changes: &mut Changes) -> Result<u64, Failure> {
        let mut count = 0;
        for change in changes.by_ref() {
            self.apply(&change?)?;
            count += 1;
        }
        self.position = changes.sequence();
        Ok(count)
    }

    pub fn apply(&mut self, change: &Change) -> Outcome {
        if change.first_sequence() <= self.position {
            return wrong(format!("{change:?} came after {}", self.position));
        }
        self.position = change.last_sequence();
        for (name, operation) in change.operations() {
            let Some(slot) = slot_of(name) else {
                return wrong(format!("a change of the unknown keyspace {name}"));
            };
            if SLOTS[slot].without_wal {
                return wrong(format!("a change of {name}, which has no log"));
            }
            apply(&mut self.slots[slot], SLOTS[slot].operator, op(operation));
        }
        Ok(())
    }

    /// The copy of these slots is what `found` holds.
    pub fn compare(&self, found: &Found, of: impl Fn(usize) -> bool) -> Outcome {
        let logged = found.iter().filter(|(slot, _)| !SLOTS[**slot].without_wal && of(**slot));
        for (&slot, Contents { pairs, fingerprint }) in logged {
            let copy = &self.slots[slot];
            let print =
                copy.iter().fold(0u64, |sum, (key, value)| sum.wrapping_add(pair_hash(key, value)));
            if print != *fingerprint {
                let (name, position) = (SLOTS[slot].name, self.position);
                return wrong(format!(
                    "changes up to {position} give {} pairs of {name}; the database has {}",
                    copy.len(),
                    pairs.len()
                ));
            }
        }
        Ok(())
    }
}

fn apply(pairs: &mut BTreeMap<Key, Value>, operator: Operator, op: Op) {
    match op {
        Op::Put(key, value) => {
            pairs.insert(key, value);
        }
        Op::Delete(key) => {
            pairs.remove(&key);
        }
        Op::Merge(key, operand) => {
            let value = combine(operator, pairs.get(&key).map(|value| &value[..]), &operand);
            pairs.insert(key, value);
        }
        Op::DeleteRange(start, end) => {
            pairs.retain(|key, _| *key < start || *key >= end);
        }
    }
}

/// All changes since the beginning, on an empty copy, give what the database holds; `found` is
/// that. At least what a feed of durable changes has shown, up to `shown`, is among them.
pub fn check(config: &Config, db: &Db, found: &Found, shown: u64) -> Outcome {
    if !config.keeps_changes {
        return Ok(());
    }
    let mut mirror = Mirror::default();
    let changes = db.changes(0).map_err(Failure::Error)?;
    let oldest = db.changes(Since::Oldest)?.sequence();
    if oldest != 0 {
        return wrong(format!("changes are kept from {oldest} on, not from the beginning"));
    }
    mirror.follow(&mut { changes })?;
    mirror.compare(found, |_| true)?;
    if mirror.position < shown {
        let position = mirror.position;
        return wrong(format!("changes end at {position}; {shown} was shown as durable"));
    }
    Ok(())
}

/// How far a feed of durable changes goes now.
pub fn durable_position(db: &Db) -> Result<u64, Failure> {
    let durable = ChangesOptions::durable();
    let mut changes = db.changes_with(0, &durable)?;
    for change in changes.by_ref() {
        change?;
    }
    Ok(changes.sequence())
}
