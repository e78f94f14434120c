//! What a consumer of changes makes of them: a copy of the keyspaces with a log.

use crate::config::Config;
use crate::model::{Contents, Found, Key, Operator, SLOTS, Value, combine, pair_hash};
use crate::run::{Failure, Outcome, wrong};
use shingle::{Change, Changes, ChangesOptions, Db, Operation, Since};
use std::collections::BTreeMap;

/// The copy, by slot.
#[derive(Clone, Default)]
pub struct Mirror {
    slots: [BTreeMap<Key, Written>; SLOTS.len()],
    /// Everything up to this sequence number is in it.
    pub position: u64,
}

fn slot_of(name: &str) -> Option<usize> {
    SLOTS.iter().position(|slot| slot.name == name)
}

/// What was written to a key since its last value or deletion.
#[derive(Clone, Default)]
struct Written {
    /// The value, and when it expires.
    put: Option<(Value, Option<u64>)>,
    operands: Vec<Value>,
}

impl Written {
    fn value(&self, operator: Operator, now_ms: u64) -> Option<Value> {
        let put = self.put.as_ref();
        let put = put.filter(|(_, expires_ms)| expires_ms.is_none_or(|at_ms| now_ms < at_ms));
        let first = put.map(|(value, _)| value.clone());
        self.operands
            .iter()
            .fold(first, |value, operand| Some(combine(operator, value.as_deref(), operand)))
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
            apply(&mut self.slots[slot], operation);
        }
        Ok(())
    }

    /// The copy of these slots is what `found` holds, at `now_ms`.
    pub fn compare(&self, found: &Found, now_ms: u64, of: impl Fn(usize) -> bool) -> Outcome {
        let logged = found.iter().filter(|(slot, _)| !SLOTS[**slot].without_wal && of(**slot));
        for (&slot, Contents { pairs, fingerprint }) in logged {
            let copy = self.slots[slot].iter().filter_map(|(key, written)| {
                Some((key, written.value(SLOTS[slot].operator, now_ms)?))
            });
            let (mut count, mut print) = (0, 0u64);
            for (key, value) in copy {
                count += 1;
                print = print.wrapping_add(pair_hash(key, &value));
            }
            if print != *fingerprint {
                let (name, position) = (SLOTS[slot].name, self.position);
                return wrong(format!(
                    "changes up to {position} give {count} pairs of {name}; the database has {}",
                    pairs.len()
                ));
            }
        }
        Ok(())
    }
}

fn apply(pairs: &mut BTreeMap<Key, Written>, operation: Operation<'_>) {
    match operation {
        Operation::Put { key, value, expires, .. } => {
            let put = Some((value.into(), expires.map(|at| at.as_millis())));
            pairs.insert(key.into(), Written { put, operands: Vec::new() });
        }
        Operation::Delete { key } => {
            pairs.remove(key);
        }
        Operation::Merge { key, operand } => {
            pairs.entry(key.into()).or_default().operands.push(operand.into());
        }
        Operation::DeleteRange { start, end } => {
            pairs.retain(|key, _| &key[..] < start || &key[..] >= end);
        }
        other => panic!("{other:?}"),
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
    mirror.compare(found, config.clock.now_ms(), |_| true)?;
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
