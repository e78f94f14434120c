//! Descriptors of the files that are read in the foreground: at most so many are open at a time.
//!
//! A run stays open for as long as it is in the tree, and a large tree has more files than a
//! process may have descriptors. So a file that was not read for a while gives its descriptor back,
//! and opens itself again by its name when it is read next.
//!
//! Invariants:
//! - A descriptor is not closed under a call that uses it: calls hold it by count.
//! - A file that is removed while somebody reads it keeps its descriptor, for its name leads
//!   nowhere any more.
//! - Nobody who holds a file's own lock takes the lock of the clock.

use super::directory::Directory;
use crate::{FileName, hold};
use base::Result;
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::process::{Resource, getrlimit};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

/// Descriptors that a store sensibly takes for itself: a quarter of what the process may have.
pub(super) fn sensible_max() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit / 4).unwrap_or(usize::MAX).clamp(16, 1 << 16)
}

/// All files of a store that are read.
pub(super) struct Descriptors {
    directory: Arc<Directory>,
    open_max: usize,
    open: AtomicUsize,
    /// Files that have a descriptor, in the order in which they are asked to give it back. Some are
    /// gone.
    clock: Mutex<VecDeque<Weak<Descriptor>>>,
    named: Mutex<HashMap<FileName, Weak<Descriptor>>>,
}

/// A file that opens itself when it is used.
pub(super) struct Descriptor {
    name: FileName,
    all: Arc<Descriptors>,
    file: Mutex<Option<Arc<OwnedFd>>>,
    was_used: AtomicBool,
    /// It was removed: no name leads to it.
    is_nameless: AtomicBool,
}

impl Descriptors {
    pub(super) fn new(directory: Arc<Directory>, open_max: usize) -> Descriptors {
        Descriptors {
            directory,
            open_max,
            open: AtomicUsize::new(0),
            clock: Mutex::default(),
            named: Mutex::default(),
        }
    }

    /// The file `name`, which must be there.
    pub(super) fn open(self: &Arc<Self>, name: FileName) -> Result<Arc<Descriptor>> {
        let descriptor = {
            let mut named = hold(&self.named);
            let known = named.get(&name).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let descriptor = Arc::new(Descriptor::new(name, self.clone()));
                named.insert(name, Arc::downgrade(&descriptor));
                descriptor
            })
        };
        descriptor.get()?;
        Ok(descriptor)
    }

    /// The file `name` is about to lose its name.
    pub(super) fn keep(&self, name: FileName) -> Result<()> {
        let known = hold(&self.named).remove(&name).and_then(|known| known.upgrade());
        let Some(descriptor) = known else { return Ok(()) };
        descriptor.is_nameless.store(true, Relaxed);
        descriptor.get().map(drop)
    }

    /// Takes `descriptor` among the open ones, and closes others when there are too many.
    fn admit(&self, descriptor: &Arc<Descriptor>) {
        let mut clock = hold(&self.clock);
        clock.push_back(Arc::downgrade(descriptor));
        let mut looks = 2 * clock.len();
        // Upgraded ones are dropped behind the lock: the last one to drop may be us.
        let mut seen = Vec::new();
        while self.open.load(Relaxed) > self.open_max && looks > 0 {
            looks -= 1;
            let Some(oldest) = clock.pop_front() else { break };
            let Some(candidate) = oldest.upgrade() else { continue };
            if candidate.was_used.swap(false, Relaxed) {
                clock.push_back(oldest);
            } else {
                candidate.close();
            }
            seen.push(candidate);
        }
        if clock.len() > 2 * self.open.load(Relaxed) + 64 {
            clock.retain(|descriptor| descriptor.strong_count() > 0);
        }
        drop(clock);
    }
}

impl Descriptor {
    fn new(name: FileName, all: Arc<Descriptors>) -> Descriptor {
        Descriptor {
            name,
            all,
            file: Mutex::default(),
            was_used: AtomicBool::new(false),
            is_nameless: AtomicBool::new(false),
        }
    }

    pub(super) fn name(&self) -> FileName {
        self.name
    }

    /// The open file.
    pub(super) fn get(self: &Arc<Self>) -> Result<Arc<OwnedFd>> {
        self.was_used.store(true, Relaxed);
        let mut file = hold(&self.file);
        if let Some(file) = &*file {
            return Ok(file.clone());
        }
        let opened =
            Arc::new(self.all.directory.open_file(&self.name.to_string(), OFlags::RDONLY)?);
        *file = Some(opened.clone());
        self.all.open.fetch_add(1, Relaxed);
        drop(file);
        self.all.admit(self);
        Ok(opened)
    }

    fn close(&self) {
        let mut file = hold(&self.file);
        if !self.is_nameless.load(Relaxed) && file.take().is_some() {
            self.all.open.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if hold(&self.file).take().is_some() {
            self.all.open.fetch_sub(1, Relaxed);
        }
        let mut named = hold(&self.all.named);
        if named.get(&self.name).is_some_and(|known| known.strong_count() == 0) {
            named.remove(&self.name);
        }
    }
}
