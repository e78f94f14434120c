//! Descriptors of the files that are read, with a maximum number open at a time.
//!
//! A run stays open for as long as it is in the tree, and a large tree has more files than a
//! process may have descriptors. So a file that was not read for a while gives its descriptor back,
//! and opens itself again by its name when it is read next. Where the process has none left, all
//! give theirs back that are in no call: a file that is to be written comes before them.
//!
//! Invariants:
//! - A descriptor is not closed under a call that uses it: calls hold it by count.
//! - A file that is removed while a reader has it open keeps its descriptor: its name no longer
//!   leads to it.
//! - Where other processes may remove files ([`super::OsOptions::keeps_files`]), no open file gives
//!   its descriptor back.
//! - A thread that holds a file's own lock takes no lock of the clock and opens no file.

use super::directory::{Directory, Spare};
use super::system;
use crate::FileName;
use base::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::process::{Resource, getrlimit};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Descriptors that a store takes for itself by default: 25 % of the process's limit.
pub(super) fn sensible_max() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit / 4).unwrap_or(usize::MAX).clamp(4, 1 << 16)
}

/// Maximum files that one job writes at a time...
const WRITTEN_MAX: usize = 16;
/// ... and the part of a store's descriptors that they may have.
const WRITTEN_SHARE: usize = 16;

/// Fewer descriptors than this are no base for a database that is written: standard streams, the
/// directory and its lock, the manifest, logs, and what two background threads write and read.
const PROCESS_MIN: u64 = 20;

/// Refuses a process that may have too few descriptors.
pub(super) fn check_enough() -> Result<()> {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if limit >= PROCESS_MIN {
        return Ok(());
    }
    let message = format!(
        "the process may open {limit} files, a database needs at least {PROCESS_MIN}: raise the \
         limit (`ulimit -n`)"
    );
    Err(Error::new(ErrorKind::Unsupported, message))
}

/// All files of a store that are read.
pub(super) struct Descriptors {
    directory: Arc<Directory>,
    open_max: usize,
    /// Other processes may remove files: an open file never gives its descriptor back.
    keeps_files: bool,
    open: AtomicUsize,
    /// Files that have a descriptor, in the order in which they are asked to give it back. Some are
    /// gone.
    clock: Mutex<VecDeque<Weak<Descriptor>>>,
    named: Mutex<HashMap<(FileName, Use), Weak<Descriptor>>>,
}

/// What a file is open for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Use {
    /// Reads of pieces, anywhere.
    Foreground,
    /// One pass in large pieces.
    Background,
}

impl Use {
    fn other(self) -> Use {
        match self {
            Use::Foreground => Use::Background,
            Use::Background => Use::Foreground,
        }
    }
}

/// A file that opens itself when it is used.
pub(super) struct Descriptor {
    name: FileName,
    purpose: Use,
    all: Arc<Descriptors>,
    file: Mutex<Option<Arc<OwnedFd>>>,
    was_used: AtomicBool,
    /// It was removed: no name leads to it.
    is_nameless: AtomicBool,
}

impl Descriptors {
    pub(super) fn new(
        directory: Arc<Directory>,
        open_max: usize,
        keeps_files: bool,
    ) -> Descriptors {
        Descriptors {
            directory,
            open_max: if keeps_files { usize::MAX } else { open_max },
            keeps_files,
            open: AtomicUsize::new(0),
            clock: Mutex::default(),
            named: Mutex::default(),
        }
    }

    /// Maximum files that one job writes at a time.
    pub(super) fn written_max(&self) -> usize {
        (self.open_max / WRITTEN_SHARE).clamp(1, WRITTEN_MAX)
    }

    /// The file `name`, which must be there.
    pub(super) fn open(self: &Arc<Self>, name: FileName, purpose: Use) -> Result<Arc<Descriptor>> {
        let descriptor = {
            let mut named = self.named.lock();
            let known = named.get(&(name, purpose)).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let descriptor = Arc::new(Descriptor::new(name, purpose, self.clone()));
                named.insert((name, purpose), Arc::downgrade(&descriptor));
                descriptor
            })
        };
        match descriptor.get() {
            Err(error) if self.keeps_files && error.kind() == ErrorKind::NotFound => {
                // Removed by another process, but perhaps open for the other purpose.
                let other = self.named.lock().get(&(name, purpose.other())).and_then(Weak::upgrade);
                other.filter(|other| other.file.lock().is_some()).ok_or(error)
            }
            opened => opened.map(|_| descriptor),
        }
    }

    /// The file `name` is about to lose its name.
    pub(super) fn keep(&self, name: FileName) -> Result<()> {
        for purpose in [Use::Foreground, Use::Background] {
            let known = self.named.lock().get(&(name, purpose)).and_then(Weak::upgrade);
            let Some(descriptor) = known else { continue };
            descriptor.is_nameless.store(true, Relaxed);
            if let Err(error) = descriptor.get() {
                // The file keeps its name, and is known by it.
                descriptor.is_nameless.store(false, Relaxed);
                return Err(error);
            }
            self.named.lock().remove(&(name, purpose));
        }
        Ok(())
    }

    /// Takes `descriptor` among the open ones, and closes others when there are too many.
    fn admit(&self, descriptor: &Arc<Descriptor>) {
        let mut clock = self.clock.lock();
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

impl Spare for Descriptors {
    fn give_way(&self) -> usize {
        let clock = std::mem::take(&mut *self.clock.lock());
        clock.iter().filter_map(Weak::upgrade).filter(|descriptor| descriptor.close()).count()
    }
}

impl Descriptor {
    fn new(name: FileName, purpose: Use, all: Arc<Descriptors>) -> Descriptor {
        Descriptor {
            name,
            purpose,
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
        if let Some(file) = &*self.file.lock() {
            return Ok(file.clone());
        }
        // Without the lock: this opening may take descriptors from other files, and another opening
        // may take this file's.
        let opened =
            Arc::new(self.all.directory.open_file(&self.name.to_string(), OFlags::RDONLY)?);
        if self.purpose == Use::Background {
            // Advice only: nothing depends on it.
            system::expect_sequential(&opened);
        }
        {
            let mut file = self.file.lock();
            if let Some(first) = &*file {
                return Ok(first.clone());
            }
            *file = Some(opened.clone());
            self.all.open.fetch_add(1, Relaxed);
        }
        self.all.admit(self);
        Ok(opened)
    }

    /// Whether it had a descriptor and gave it back. One in a call goes when the call ends.
    fn close(&self) -> bool {
        let mut file = self.file.lock();
        let stays = self.all.keeps_files || self.is_nameless.load(Relaxed);
        let closes = !stays && file.take().is_some();
        if closes {
            self.all.open.fetch_sub(1, Relaxed);
        }
        closes
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if self.file.lock().take().is_some() {
            self.all.open.fetch_sub(1, Relaxed);
        }
        let mut named = self.all.named.lock();
        let key = (self.name, self.purpose);
        if named.get(&key).is_some_and(|known| known.strong_count() == 0) {
            named.remove(&key);
        }
    }
}
