//! What this process has locked, and what a forked child does not inherit.
//!
//! The system's locks are `flock`s. Without this table a child would inherit them, and keep a
//! database locked whose owner has died. So the table owns the descriptors of the locks, and a
//! child closes its copies of them. That unlocks nothing: the parent has the lock as long as it has
//! a copy.
//!
//! Invariants:
//! - A thread that opens the file of a lock holds the table until the file is in it. A fork takes
//!   the table first, so no child has a copy that the table does not know.
//! - A child only closes descriptors while it is being made: everything else may be locked by a
//!   thread that it does not have. What is left of its parent's table goes with the first use.
//!
//! The mutex is the standard library's. To unlock one of parking_lot on which threads wait, a child
//! would need what other threads of its parent may have locked.

use super::calls;
use super::forks::watch as watch_forks;
use base::Result;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A directory or device, whatever path leads to it: device and inode.
pub(super) type Id = (u64, u64);

/// The holders of a lock in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holders {
    Writer,
    Readers(u32),
}

/// A lock of this process.
pub(super) struct Place {
    pub holders: Holders,
    /// The file with the system's lock. `None`: readers of a directory without a file for it.
    pub file: Option<OwnedFd>,
}

/// The locks of this process.
pub(super) struct Table {
    pub places: BTreeMap<Id, Place>,
    /// Of the process that filled it.
    forks: u64,
}

static TABLE: Mutex<Table> = Mutex::new(Table { places: BTreeMap::new(), forks: 0 });

/// Forks between the first use of this and this process.
static FORKS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The table while this thread forks.
    static FORKING: RefCell<Option<MutexGuard<'static, Table>>> = const { RefCell::new(None) };
}

/// How many forks lie between the program's first database and this process. A child has another
/// number than its parent.
pub fn forks() -> u64 {
    // Where the system has no memory left for handlers, no lock can be taken either.
    let _ = watch();
    FORKS.load(Relaxed)
}

/// Whether this process is another one than that in which [`forks`] gave `before`.
#[inline]
pub fn is_forked_since(before: u64) -> bool {
    FORKS.load(Relaxed) != before
}

fn watch() -> std::result::Result<(), Errno> {
    static WATCHED: OnceLock<std::result::Result<(), Errno>> = OnceLock::new();
    *WATCHED.get_or_init(|| watch_forks(before_fork, after_fork, in_child))
}

extern "C" fn before_fork() {
    let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    // A thread that is ending has no place for it, and forks without.
    let _ = FORKING.try_with(|place| place.borrow_mut().replace(table));
}

extern "C" fn after_fork() {
    let _ = FORKING.try_with(|place| drop(place.borrow_mut().take()));
}

extern "C" fn in_child() {
    FORKS.fetch_add(1, Relaxed);
    let _ = FORKING.try_with(|forking| {
        if let Some(mut table) = forking.borrow_mut().take() {
            table.places.values_mut().for_each(|place| drop(place.file.take()));
        }
    });
}

/// The table, for as long as the guard lives.
pub(super) fn table() -> Result<MutexGuard<'static, Table>> {
    watch().map_err(|errno| calls::error("prepare for forks", "LOCK", errno))?;
    Ok(current())
}

fn current() -> MutexGuard<'static, Table> {
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let forks = FORKS.load(Relaxed);
    if table.forks != forks {
        table.places.clear();
        table.forks = forks;
    }
    table
}

/// One holder of a lock. Dropping the last one unlocks.
pub(super) struct Held {
    id: Id,
    forks: u64,
}

impl Held {
    /// One more holder of `id`, which has a place in the table.
    pub(super) fn new(id: Id) -> Held {
        Held { id, forks: FORKS.load(Relaxed) }
    }

    /// As a child has it.
    #[cfg(test)]
    pub(super) fn into_childs(mut self) -> Held {
        self.forks += 1;
        self
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if is_forked_since(self.forks) {
            return;
        }
        let mut table = current();
        match table.places.get_mut(&self.id) {
            Some(Place { holders: Holders::Readers(count), .. }) if *count > 1 => *count -= 1,
            _ => {
                if let Some(Place { file: Some(file), .. }) = table.places.remove(&self.id) {
                    // Closing is not enough: a child that did not come from the C library's fork
                    // may have a copy.
                    let _ = rustix::fs::flock(&file, rustix::fs::FlockOperation::Unlock);
                }
            }
        }
    }
}
