//! Locks on keys, between transactions that ask for them.
//!
//! A lock keeps other transactions that lock from the key. Writes outside transactions do not look
//! at it; the check at the commit finds them.
//!
//! Invariants:
//! - A transaction waits for at most one other at a time. So a deadlock is a cycle of the map
//!   `waits`, and whoever closes it finds it before waiting.
//! - No transaction waits for a lock of a database that was closed: its holder may never end.

use base::env::{Event, Runtime};
use base::{Error, ErrorKind, Key, KeyspaceId, Result};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of a transaction that locks.
pub(crate) type Owner = u64;

/// The locks of a database.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    table: Mutex<Table>,
    released: Event,
    next_owner: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    owners: HashMap<(KeyspaceId, Key), Owner>,
    waits: HashMap<Owner, Owner>,
    is_closed: bool,
}

impl Table {
    /// `owner` would wait for itself if it waited for `holder`.
    fn closes_cycle(&self, owner: Owner, holder: Owner) -> bool {
        std::iter::successors(Some(holder), |next| self.waits.get(next).copied())
            .take(self.waits.len() + 1)
            .any(|next| next == owner)
    }
}

/// A key to lock, with the name of its keyspace for errors.
#[derive(Clone, Copy)]
pub(crate) struct Lockable<'a> {
    pub keyspace: KeyspaceId,
    pub keyspace_name: &'a str,
    pub key: &'a [u8],
}

impl Lockable<'_> {
    fn refused(&self, why: &str) -> Error {
        Error::conflict(why, self.keyspace_name, self.key)
    }
}

impl Locks {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }

    pub(crate) fn new_owner(&self) -> Owner {
        self.next_owner.fetch_add(1, Ordering::Relaxed)
    }

    /// Locks the key for `owner`. False: it has the lock already.
    ///
    /// # Errors
    ///
    /// `Conflict`: another has the lock until `deadline_ns`, or waits for `owner` itself. `Closed`:
    /// it has the lock when the database is closed.
    pub(crate) fn acquire(
        &self,
        owner: Owner,
        what: Lockable<'_>,
        runtime: &dyn Runtime,
        deadline_ns: u64,
    ) -> Result<bool> {
        let id = (what.keyspace, Key::from(what.key));
        loop {
            let seen = self.released.count();
            {
                let mut table = self.table();
                table.waits.remove(&owner);
                match table.owners.get(&id) {
                    None => {
                        table.owners.insert(id, owner);
                        return Ok(true);
                    }
                    Some(&holder) if holder == owner => return Ok(false),
                    Some(_) if table.is_closed => {
                        return Err(Error::new(ErrorKind::Closed, "the database was closed"));
                    }
                    Some(&holder) if table.closes_cycle(owner, holder) => {
                        return Err(what.refused("deadlock: its holder waits for this transaction"));
                    }
                    Some(&holder) => {
                        if runtime.now_ns() >= deadline_ns {
                            return Err(what.refused("another transaction holds the lock"));
                        }
                        table.waits.insert(owner, holder);
                    }
                }
            }
            runtime.wait(&self.released, seen, Some(deadline_ns));
        }
    }

    /// The database is being closed: ends all waits.
    pub(crate) fn close(&self) {
        self.table().is_closed = true;
        self.released.signal();
    }

    /// Gives `keys` back, which `owner` has locked.
    pub(crate) fn release(&self, owner: Owner, keys: &[(KeyspaceId, Key)]) {
        if keys.is_empty() {
            return;
        }
        let mut table = self.table();
        for key in keys {
            if table.owners.get(key) == Some(&owner) {
                table.owners.remove(key);
            }
        }
        drop(table);
        self.released.signal();
    }
}
