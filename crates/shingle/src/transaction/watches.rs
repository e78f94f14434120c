//! What a transaction has read and relies on, and whether it is still so.
//!
//! A key or range is unchanged if nothing newer than the snapshot is in the memtables that came
//! since. That takes no I/O, and it is what the commit checks under its lock. Where it does not
//! tell (the memtables were flushed, or something newer is there) the content decides: what the
//! snapshot shows is compared with what there is now. So a change back, or garbage collection that
//! rewrites a pointer, is no conflict. The content also decides where files came in below.
//!
//! Time changes content too: a value that was read and has expired since is a conflict, whether
//! anything was written there or not. What the snapshot shows now would not tell.

use super::scan::Shown;
use crate::api::{Cursor, Iter, Keyspace, ReadOptions, Snapshot};
use crate::engine::commit::Unchanged;
use crate::memtable::Memtable;
use crate::read::get::get;
use crate::read::moment::Moment;
use base::{Error, Expiry, Key, KeyRange, KeyspaceId, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Keys and ranges that must not change before the commit.
#[derive(Default)]
pub(super) struct Watches {
    keyspaces: BTreeMap<KeyspaceId, Watched>,
}

struct Watched {
    keyspace: Keyspace,
    /// Everything newer than the snapshot is in this memtable or in later ones; `None`: unknown.
    since: Option<Arc<Memtable>>,
    keys: BTreeSet<Key>,
    ranges: Vec<KeyRange>,
    scans: Vec<Shown>,
    /// Of the values of `keys` that were read.
    first_expiry: FirstExpiry,
}

/// The key whose value expires first, of several.
#[derive(Clone, Debug, Default)]
pub(super) struct FirstExpiry(Option<(Expiry, Key)>);

impl FirstExpiry {
    pub(super) fn add(&mut self, key: &[u8], expiry: Option<Expiry>) {
        let Some(expiry) = expiry else { return };
        if self.0.as_ref().is_none_or(|(first, _)| expiry < *first) {
            self.0 = Some((expiry, key.into()));
        }
    }

    /// The key, if its value has expired.
    fn over(&self, now_ms: impl FnOnce() -> u64) -> Option<&Key> {
        let (expiry, key) = self.0.as_ref()?;
        expiry.is_over(now_ms()).then_some(key)
    }
}

/// What a keyspace was compared at.
pub(super) struct Compared {
    keyspace: KeyspaceId,
    moment: Moment,
    ranges: Vec<KeyRange>,
}

impl Watches {
    fn of(&mut self, keyspace: &Keyspace, snapshot: &Snapshot) -> &mut Watched {
        self.keyspaces.entry(keyspace.id()).or_insert_with(|| Watched {
            keyspace: keyspace.clone(),
            since: since(keyspace, snapshot),
            keys: BTreeSet::new(),
            ranges: Vec::new(),
            scans: Vec::new(),
            first_expiry: FirstExpiry::default(),
        })
    }

    pub(super) fn add_key(&mut self, keyspace: &Keyspace, snapshot: &Snapshot, key: &[u8]) {
        self.of(keyspace, snapshot).keys.insert(key.into());
    }

    /// A value of a key that was added was read, and expires.
    pub(super) fn add_expiry(&mut self, keyspace: &Keyspace, key: &[u8], expiry: Option<Expiry>) {
        if let Some(watched) = self.keyspaces.get_mut(&keyspace.id()) {
            watched.first_expiry.add(key, expiry);
        }
    }

    pub(super) fn add_range(&mut self, keyspace: &Keyspace, snapshot: &Snapshot, range: KeyRange) {
        self.of(keyspace, snapshot).ranges.push(range);
    }

    pub(super) fn add_scan(&mut self, keyspace: &Keyspace, snapshot: &Snapshot, shown: Shown) {
        self.of(keyspace, snapshot).scans.push(shown);
    }

    /// A scan may show more of what it has not shown yet.
    pub(super) fn has_open_scan(&self) -> bool {
        self.keyspaces.values().any(|watched| watched.scans.iter().any(Shown::is_open))
    }

    /// Compares everything with what `moment_of` gives for each keyspace.
    ///
    /// # Errors
    ///
    /// `Conflict`, with a key that has changed.
    pub(super) fn compare(
        &self,
        snapshot: &Snapshot,
        moment_of: impl Fn(&Keyspace) -> Moment,
    ) -> Result<Vec<Compared>> {
        let compare = |watched: &Watched| {
            watched.keyspace.state.check_open()?;
            watched.check_expiry()?;
            let moment = moment_of(&watched.keyspace);
            let scanned = watched.scans.iter().flat_map(Shown::ranges);
            let ranges: Vec<KeyRange> = watched.ranges.iter().cloned().chain(scanned).collect();
            watched.compare(snapshot, &moment, &ranges)?;
            Ok(Compared { keyspace: watched.keyspace.id(), moment, ranges })
        };
        self.keyspaces.values().map(compare).collect()
    }

    /// The same as conditions of a commit, which `compared` makes small.
    pub(super) fn unchanged_since<'a>(&'a self, compared: &'a [Compared]) -> Vec<Unchanged<'a>> {
        let keys = |id: &KeyspaceId| {
            let watched = self.keyspaces.get(id).into_iter();
            watched.flat_map(|watched| watched.keys.iter().map(|key| &**key)).collect()
        };
        let unchanged = |compared: &'a Compared| Unchanged {
            keyspace: compared.keyspace,
            moment: &compared.moment,
            keys: keys(&compared.keyspace),
            ranges: &compared.ranges,
        };
        compared.iter().map(unchanged).collect()
    }

    /// `snapshot`, with which everything was compared, takes the place of the older one.
    pub(super) fn move_to(&mut self, snapshot: &Snapshot) {
        for watched in self.keyspaces.values_mut() {
            watched.since = since(&watched.keyspace, snapshot);
        }
    }
}

/// The memtable from which on everything newer than `snapshot` is in memtables, if that is certain.
fn since(keyspace: &Keyspace, snapshot: &Snapshot) -> Option<Arc<Memtable>> {
    let moment = keyspace.engine().moment(&keyspace.state);
    let active = &moment.view().active;
    let holds_all = moment.sequence() == snapshot.sequence()
        || active.sequence_min().is_some_and(|first| first <= snapshot.sequence());
    holds_all.then(|| active.clone())
}

impl Watched {
    fn compare(&self, snapshot: &Snapshot, moment: &Moment, ranges: &[KeyRange]) -> Result<()> {
        let has_same_below = self.has_same_below(snapshot, moment);
        if has_same_below && moment.sequence() == snapshot.sequence() {
            return Ok(());
        }
        let seen = snapshot.sequence();
        let memtables: Vec<&Arc<Memtable>> = moment.view().memtables().collect();
        let is_known = |since: &Arc<Memtable>| memtables.iter().any(|m| Arc::ptr_eq(m, since));
        let is_known = has_same_below && self.since.as_ref().is_some_and(is_known);
        for key in &self.keys {
            if !is_known || memtables.iter().any(|memtable| memtable.has_newer(key, seen)) {
                self.compare_key(snapshot, moment, key)?;
            }
        }
        for range in ranges {
            let mut may_differ = !is_known;
            for memtable in &memtables {
                may_differ = may_differ || memtable.has_newer_in(range, seen)?;
            }
            if may_differ {
                self.compare_range(snapshot, moment, range)?;
            }
        }
        Ok(())
    }

    fn check_expiry(&self) -> Result<()> {
        let clock = &self.keyspace.engine().read.clock;
        let scanned = self.scans.iter().map(Shown::first_expiry);
        for first in scanned.chain([self.first_expiry.clone()]) {
            if let Some(key) = first.over(|| clock.now_ms()) {
                let message = "a value that the transaction relies on has expired";
                return Err(Error::conflict(message, self.keyspace.name(), key.clone()));
            }
        }
        Ok(())
    }

    /// No file came in below between the two. No memtable would tell.
    fn has_same_below(&self, snapshot: &Snapshot, moment: &Moment) -> bool {
        let state = &self.keyspace.state;
        let same = || {
            let before = snapshot.moment_in(state);
            before.view().tree.has_same_below(&moment.view().tree)
        };
        !state.options.ingests_below || same()
    }

    fn compare_key(&self, snapshot: &Snapshot, moment: &Moment, key: &[u8]) -> Result<()> {
        let state = &self.keyspace.state;
        let operator = state.operator.as_ref();
        let before = get(&snapshot.moment_in(state), key, operator)?;
        if before == get(moment, key, operator)? { Ok(()) } else { Err(self.conflict(key)) }
    }

    fn compare_range(&self, snapshot: &Snapshot, moment: &Moment, range: &KeyRange) -> Result<()> {
        let options = ReadOptions { range: range.clone(), ..ReadOptions::default() };
        let engine = self.keyspace.engine().clone();
        let mut before = Iter::new(snapshot.of(&self.keyspace)?.cursor(options.clone()));
        let mut now =
            Iter::new(Cursor::new(engine, &self.keyspace.state, moment.clone(), options, None));
        loop {
            match (before.next().transpose()?, now.next().transpose()?) {
                (None, None) => return Ok(()),
                (before, now) if before == now => {}
                (before, now) => {
                    let keys = before.iter().chain(&now).map(|(key, _)| &key[..]);
                    return Err(self.conflict(keys.min().unwrap_or(&range.start)));
                }
            }
        }
    }

    fn conflict(&self, key: &[u8]) -> Error {
        let message = "another write has changed what the transaction relies on";
        Error::conflict(message, self.keyspace.name(), key)
    }
}
