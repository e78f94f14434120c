//! Things that Python holds: each lives until it is closed, and in the process that made it.
//!
//! - A call holds what it uses, so a close waits for the calls in progress. Then memory and files
//!   are given back, whatever objects Python still has. Snapshots and scans are things of their
//!   own: they stay readable, and keep what they read, until they are closed.
//! - A child process inherits the memory of a database, but not the threads that flush and
//!   compact, and its lock is the parent's. So no part of it may be used there, or closed.

use crate::errors::raised;
use parking_lot::{MappedRwLockReadGuard, Mutex, MutexGuard, RwLock, RwLockReadGuard};
use pyo3::prelude::*;
use shingle::{Error, ErrorKind};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Forks between the start of the program and this process.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// This process was forked. Python calls it in each child.
pub fn note_fork() {
    FORKS.fetch_add(1, Relaxed);
}

/// A thing that can be closed, of this process alone.
pub struct Own<T: Send> {
    thing: RwLock<Option<T>>,
    /// What it is called in errors.
    name: &'static str,
    forks: u64,
}

/// A thing in use.
pub type Used<'a, T> = MappedRwLockReadGuard<'a, T>;

/// The lock, which another thread may hold while it waits for the interpreter.
#[inline]
pub fn held<'a, T: Send>(py: Python<'_>, lock: &'a Mutex<T>) -> MutexGuard<'a, T> {
    loop {
        match lock.try_lock() {
            Some(held) => return held,
            None => py.detach(|| drop(lock.lock())),
        }
    }
}

/// What ends with something else.
pub trait Ends: Send + Sync {
    /// Gives back what it holds, after the calls that use it.
    fn end(&self);
}

impl<T: Send + Sync> Ends for Own<T> {
    fn end(&self) {
        drop(self.thing.write().take());
    }
}

impl<T: Send + Sync> Own<T> {
    pub fn new(name: &'static str, thing: T) -> Own<T> {
        Own { thing: RwLock::new(Some(thing)), name, forks: FORKS.load(Relaxed) }
    }

    /// The thing. Raises `Closed` where it was closed, or belongs to the parent of this process.
    #[inline]
    pub fn get(&self, py: Python<'_>) -> PyResult<Used<'_, T>> {
        if !self.is_ours() {
            return Err(raised(py, &forked()));
        }
        // A function that a call runs may call again, also while another thread waits to close.
        let held = loop {
            match self.thing.try_read_recursive() {
                Some(held) => break held,
                None => py.detach(|| drop(self.thing.read_recursive())),
            }
        };
        RwLockReadGuard::try_map(held, Option::as_ref).map_err(|_| self.closed(py))
    }

    /// Takes the thing out, after the calls that use it. None where it was closed before. Waits
    /// without the interpreter's lock: call it inside of [`crate::errors::apart`].
    ///
    /// # Errors
    ///
    /// `Closed`, in a child of the process that made it.
    pub fn take(&self) -> shingle::Result<Option<T>> {
        self.check_process()?;
        Ok(self.thing.write().take())
    }

    /// `Closed`, in a child of the process that made it.
    pub fn check_process(&self) -> shingle::Result<()> {
        if self.is_ours() { Ok(()) } else { Err(forked()) }
    }

    #[cold]
    fn closed(&self, py: Python<'_>) -> PyErr {
        raised(py, &Error::new(ErrorKind::Closed, format!("the {} was closed", self.name)))
    }
}

impl<T: Send> Own<T> {
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

impl<T: Send> Drop for Own<T> {
    /// A database that was not closed closes here, which takes time: other threads run meanwhile.
    fn drop(&mut self) {
        let thing = self.thing.get_mut().take();
        if !self.is_ours() {
            mem::forget(thing);
        } else if thing.is_some() {
            let mut thing = Some(thing);
            let dropped = Python::try_attach(|py| py.detach(|| drop(thing.take())));
            debug_assert!(dropped.is_some() || thing.is_some());
        }
    }
}
