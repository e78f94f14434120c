//! What a transaction has written so far, which only it sees.
//!
//! Invariants:
//! - A point write stands above every range deletion of the same transaction that covers its key:
//!   a range deletion removes the point writes in its range.
//! - Undoing goes back through the changes one by one, so that savepoints are only positions.

use crate::read::clock::ExpiryClock;
use base::{Expiry, Key, KeyRange, KeyspaceId, Result};
use std::collections::BTreeMap;
use std::ops::Bound;
use table::Bytes;
use table::batch::WriteBatch;

/// What a transaction has written to a key.
#[derive(Clone, Debug)]
pub(super) struct Own {
    pub base: Base,
    /// Merge operands above the base, oldest first.
    pub operands: Vec<Bytes>,
}

/// What the operands of an [`Own`] apply to.
#[derive(Clone, Debug)]
pub(super) enum Base {
    /// What the key has below the transaction's point writes.
    Below,
    /// The value that the transaction put, and when it expires; `None`: it deleted the key.
    Written(Option<(Bytes, Expiry)>),
}

/// The value that a transaction put, unless it has expired since.
pub(super) fn unexpired(written: Option<(Bytes, Expiry)>, clock: &ExpiryClock) -> Option<Bytes> {
    let is_over = |expiry: Expiry| expiry != Expiry::NEVER && expiry.is_over(clock.now_ms());
    written.filter(|(_, expiry)| !is_over(*expiry)).map(|(value, _)| value)
}

/// What a transaction has to say about a key.
pub(super) enum Said {
    Nothing,
    /// It deleted a range that covers the key, and wrote nothing there since.
    Deleted,
    Own(Own),
}

/// The writes of a transaction.
#[derive(Default)]
pub(super) struct OwnWrites {
    keyspaces: BTreeMap<KeyspaceId, OwnKeyspace>,
    changes: Vec<Change>,
    savepoints: Vec<usize>,
}

#[derive(Default)]
struct OwnKeyspace {
    points: BTreeMap<Key, Own>,
    /// In the order in which they were deleted.
    deleted: Vec<KeyRange>,
}

/// What undoes a change.
enum Change {
    Point { keyspace: KeyspaceId, key: Key, before: Option<Own> },
    Range { keyspace: KeyspaceId, removed: Vec<(Key, Own)> },
}

impl OwnWrites {
    pub(super) fn is_empty(&self) -> bool {
        self.keyspaces.values().all(|own| own.points.is_empty() && own.deleted.is_empty())
    }

    /// Sets `key` to a value with its expiry; `None` deletes it.
    pub(super) fn put(&mut self, keyspace: KeyspaceId, key: &[u8], value: Option<(&[u8], Expiry)>) {
        let base = value.map(|(value, expiry)| (Bytes::from(value.to_vec()), expiry));
        let base = Base::Written(base);
        self.set(keyspace, key, Own { base, operands: Vec::new() });
    }

    pub(super) fn merge(&mut self, keyspace: KeyspaceId, key: &[u8], operand: &[u8]) {
        let mut own = match self.said(keyspace, key) {
            Said::Own(own) => own,
            Said::Nothing | Said::Deleted => Own { base: Base::Below, operands: Vec::new() },
        };
        own.operands.push(Bytes::from(operand.to_vec()));
        self.set(keyspace, key, own);
    }

    fn set(&mut self, keyspace: KeyspaceId, key: &[u8], own: Own) {
        let key = Key::from(key);
        let points = &mut self.keyspaces.entry(keyspace).or_default().points;
        let before = points.insert(key.clone(), own);
        self.changes.push(Change::Point { keyspace, key, before });
    }

    pub(super) fn delete_range(&mut self, keyspace: KeyspaceId, range: KeyRange) {
        let own = self.keyspaces.entry(keyspace).or_default();
        let covered: Vec<Key> =
            own.points.range::<[u8], _>(bounds(&range)).map(|(key, _)| key.clone()).collect();
        let removed = covered.into_iter().filter_map(|key| own.points.remove_entry(&key)).collect();
        own.deleted.push(range);
        self.changes.push(Change::Range { keyspace, removed });
    }

    /// What the transaction says about `key`.
    pub(super) fn said(&self, keyspace: KeyspaceId, key: &[u8]) -> Said {
        let Some(own) = self.keyspaces.get(&keyspace) else { return Said::Nothing };
        match own.points.get(key) {
            Some(own) => Said::Own(own.clone()),
            None if own.has_deleted(key) => Said::Deleted,
            None => Said::Nothing,
        }
    }

    /// The transaction deleted a range that covers `key`.
    pub(super) fn has_deleted(&self, keyspace: KeyspaceId, key: &[u8]) -> bool {
        self.keyspaces.get(&keyspace).is_some_and(|own| own.has_deleted(key))
    }

    /// The keys in `range` with point writes, in order.
    pub(super) fn keys(&self, keyspace: KeyspaceId, range: &KeyRange) -> Vec<Key> {
        let Some(own) = self.keyspaces.get(&keyspace) else { return Vec::new() };
        own.points.range::<[u8], _>(bounds(range)).map(|(key, _)| key.clone()).collect()
    }

    /// The ranges that were deleted.
    pub(super) fn deleted(&self, keyspace: KeyspaceId) -> Vec<KeyRange> {
        self.keyspaces.get(&keyspace).map_or_else(Vec::new, |own| own.deleted.clone())
    }

    /// The operations that make the writes.
    pub(super) fn batch(&self) -> Result<WriteBatch> {
        let mut batch = WriteBatch::new();
        for (&keyspace, own) in &self.keyspaces {
            for range in &own.deleted {
                let end = range.end.as_deref().unwrap_or_default();
                batch.delete_range(keyspace, &range.start, end)?;
            }
            for (key, own) in &own.points {
                match &own.base {
                    Base::Below => {}
                    Base::Written(Some((value, expiry))) => {
                        batch.put_expiring(keyspace, key, value, *expiry)?;
                    }
                    Base::Written(None) => batch.delete(keyspace, key)?,
                }
                for operand in &own.operands {
                    batch.merge(keyspace, key, operand)?;
                }
            }
        }
        Ok(batch)
    }

    pub(super) fn set_savepoint(&mut self) {
        self.savepoints.push(self.changes.len());
    }

    /// Undoes what came after the last savepoint, and removes it. False: there is none.
    pub(super) fn roll_back(&mut self) -> bool {
        let Some(position) = self.savepoints.pop() else { return false };
        while self.changes.len() > position {
            match self.changes.pop() {
                Some(Change::Point { keyspace, key, before }) => {
                    let points = &mut self.keyspaces.entry(keyspace).or_default().points;
                    match before {
                        Some(own) => points.insert(key, own),
                        None => points.remove(&key),
                    };
                }
                Some(Change::Range { keyspace, removed }) => {
                    let own = self.keyspaces.entry(keyspace).or_default();
                    own.deleted.pop();
                    own.points.extend(removed);
                }
                None => {}
            }
        }
        true
    }
}

impl OwnKeyspace {
    fn has_deleted(&self, key: &[u8]) -> bool {
        self.deleted.iter().any(|range| range.contains(key))
    }
}

fn bounds(range: &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    // An empty range may end before it starts, which a map refuses.
    if range.is_empty() {
        return (Bound::Included(&range.start), Bound::Excluded(&range.start));
    }
    let end = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(&range.start), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: KeyspaceId = KeyspaceId(0);

    fn put(own: &mut OwnWrites, key: &[u8], value: &[u8]) {
        own.put(ID, key, Some((value, Expiry::NEVER)));
    }

    fn shown(own: &OwnWrites) -> String {
        let mut text = String::new();
        for operation in own.batch().unwrap().iter() {
            let key = String::from_utf8_lossy(operation.key());
            let value = String::from_utf8_lossy(operation.value());
            text += &format!("{:?} {key} {value}; ", operation.kind());
        }
        text
    }

    fn range(start: &str, end: &str) -> KeyRange {
        KeyRange::new(start.as_bytes(), Some(end.as_bytes().into()))
    }

    #[test]
    fn a_range_deletion_takes_what_was_written_before_and_nothing_after() {
        let mut own = OwnWrites::default();
        put(&mut own, b"b", b"1");
        put(&mut own, b"x", b"2");
        own.delete_range(ID, range("a", "c"));
        put(&mut own, b"bb", b"3");
        own.merge(ID, b"bb", b"4");
        assert_eq!(shown(&own), "DeleteRange a c; Put bb 3; Merge bb 4; Put x 2; ");
        assert!(matches!(own.said(ID, b"b"), Said::Deleted));
        assert!(matches!(own.said(ID, b"c"), Said::Nothing));
    }

    #[test]
    fn rolling_back_restores_every_kind_of_write() {
        let mut own = OwnWrites::default();
        put(&mut own, b"b", b"1");
        own.merge(ID, b"m", b"2");
        let before = shown(&own);
        own.set_savepoint();
        own.put(ID, b"b", None);
        own.set_savepoint();
        own.delete_range(ID, range("a", "z"));
        put(&mut own, b"c", b"5");
        assert!(own.roll_back());
        assert_eq!(shown(&own), "Delete b ; Merge m 2; ");
        assert!(own.roll_back());
        assert_eq!(shown(&own), before);
        assert!(!own.roll_back());
    }

    #[test]
    fn an_empty_range_deletes_nothing() {
        let mut own = OwnWrites::default();
        put(&mut own, b"b", b"1");
        own.delete_range(ID, range("b", "b"));
        own.delete_range(ID, range("c", "a"));
        assert!(matches!(own.said(ID, b"b"), Said::Own(_)));
    }
}
