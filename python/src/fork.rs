//! What a child process inherits of a database: memory, but not the threads that flush and compact,
//! and a lock that is the parent's. So nothing of it may be used there, and nothing may be closed.

use shingle::{Error, ErrorKind, Result};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Forks between the start of the program and this process.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// This process was forked. Python calls it in each child.
pub fn note_fork() {
    FORKS.fetch_add(1, Relaxed);
}

/// A thing of this process alone.
pub struct Own<T> {
    /// `None` only while it is dropped.
    thing: Option<T>,
    forks: u64,
}

impl<T> Own<T> {
    pub fn new(thing: T) -> Own<T> {
        Own { thing: Some(thing), forks: FORKS.load(Relaxed) }
    }

    /// The thing.
    ///
    /// # Errors
    ///
    /// `Closed`, in a child of the process that made it.
    #[inline]
    pub fn get(&self) -> Result<&T> {
        self.thing.as_ref().filter(|_| self.is_ours()).ok_or_else(forked)
    }

    fn is_ours(&self) -> bool {
        self.forks == FORKS.load(Relaxed)
    }
}

#[cold]
fn forked() -> Error {
    let message = "this process was forked from the one that opened the database: open the \
                   database in the process that uses it";
    Error::new(ErrorKind::Closed, message)
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        if !self.is_ours() {
            mem::forget(self.thing.take());
        }
    }
}
