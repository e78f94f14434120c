//! One opener: an `flock` on the file LOCK, which holds the owner's process id for error messages.
//!
//! Where `flock` is emulated with record locks (some network file systems) it neither keeps a
//! second opener of the same process out nor survives that opener's closing of the file. So a
//! registry of the directories that this process has locked is asked first, before LOCK is even
//! opened.

use super::calls;
use super::system;
use crate::names::LOCK_NAME;
use base::{Cause, Error, ErrorKind, Ledger, Result};
use parking_lot::Mutex;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

/// Maximum bytes read of the system's list of locks.
const LOCK_LIST_BYTES_MAX: usize = 256 << 10;

/// A directory or device, whatever path leads to it: device and inode.
type DirectoryId = (u64, u64);

/// How many shared holders a locked directory has in this process; `None` is one exclusive holder.
type Holders = Option<u32>;

static LOCKED: LazyLock<Mutex<HashMap<DirectoryId, Holders>>> = LazyLock::new(Mutex::default);

/// Keeps others out until dropped. The file is unlocked before the registry forgets.
pub(super) struct Lock {
    file: Option<OwnedFd>,
    entry: Entry,
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            self.entry.unlock(file);
        }
    }
}

/// Locks `directory` for a writer.
pub(super) fn exclusive(directory: &OwnedFd, path: &str, ledger: &Ledger) -> Result<Lock> {
    let entry = Entry::new(directory, path, false)?;
    let flags = OFlags::RDWR | OFlags::CREATE | calls::SAFE;
    let file = rustix::fs::openat(directory, LOCK_NAME, flags, calls::FILE_MODE)
        .map_err(|errno| calls::error("open", LOCK_NAME, errno))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive, path)?;
    let owner = format!("{}\n", std::process::id());
    rustix::fs::ftruncate(&file, 0)
        .and_then(|()| {
            let accepted = |count| ledger.wrote(Cause::Housekeeping, count as u64);
            calls::write_at(file.as_fd(), owner.as_bytes(), 0, accepted)
        })
        .map_err(|errno| calls::error("write", LOCK_NAME, errno))?;
    Ok(Lock { file: Some(file), entry })
}

/// Locks `directory` for a reader: keeps writers out, not other readers, and writes nothing. A
/// directory without LOCK never had a writer to keep out.
pub(super) fn shared(directory: &OwnedFd, path: &str) -> Result<Lock> {
    let entry = Entry::new(directory, path, true)?;
    let flags = OFlags::RDONLY | calls::SAFE;
    let file = match rustix::fs::openat(directory, LOCK_NAME, flags, calls::FILE_MODE) {
        Ok(file) => {
            flock(&file, FlockOperation::NonBlockingLockShared, path)?;
            Some(file)
        }
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(calls::error("open", LOCK_NAME, errno)),
    };
    Ok(Lock { file, entry })
}

/// How many locks a file that is its own LOCK, a block device, has in this process. They are one
/// lock of the system, which goes with the last of them.
pub(super) type FileLocks = Arc<Mutex<u32>>;

/// A lock on a file itself.
pub(super) struct FileLock {
    file: OwnedFd,
    locks: FileLocks,
    entry: Entry,
}

/// Locks `file`, for a reader if `is_shared`.
pub(super) fn of_file(
    file: &OwnedFd,
    locks: &FileLocks,
    path: &str,
    is_shared: bool,
) -> Result<FileLock> {
    let entry = Entry::new(file, path, is_shared)?;
    let file =
        rustix::io::fcntl_dupfd_cloexec(file, 0).map_err(|e| calls::error("lock", path, e))?;
    let operation = match is_shared {
        true => FlockOperation::NonBlockingLockShared,
        false => FlockOperation::NonBlockingLockExclusive,
    };
    let mut count = locks.lock();
    match calls::patiently_blocked(|| rustix::fs::flock(&file, operation)) {
        Ok(()) => {
            *count += 1;
            Ok(FileLock { file, locks: locks.clone(), entry })
        }
        Err(Errno::WOULDBLOCK) => {
            let owner = readers(&file).unwrap_or_else(|| "another process".into());
            Err(locked_by(&owner, path))
        }
        Err(errno) => Err(calls::error("lock", path, errno)),
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let mut count = self.locks.lock();
        *count -= 1;
        if *count == 0 {
            self.entry.unlock(&self.file);
        }
    }
}

fn flock(file: &OwnedFd, operation: FlockOperation, path: &str) -> Result<()> {
    match calls::patiently_blocked(|| rustix::fs::flock(file, operation)) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => {
            Err(locked_by(&readers(file).unwrap_or_else(|| owner(file)), path).in_file(LOCK_NAME))
        }
        Err(errno) => Err(calls::error("lock", LOCK_NAME, errno)),
    }
}

/// The readers that hold the lock, as the system lists them: readers leave no number in LOCK.
/// `None` where there is no such list, or no reader of ours in it.
fn readers(file: &OwnedFd) -> Option<String> {
    let inode = rustix::fs::fstat(file).ok()?.st_ino.to_string();
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let list = rustix::fs::open("/proc/locks", flags, Mode::empty()).ok()?;
    let mut bytes = vec![0; LOCK_LIST_BYTES_MAX];
    let uncached = AtomicBool::new(false);
    let count = calls::read_at(list.as_fd(), &mut bytes, 0, &uncached, |_| {}).ok()?;
    let text = String::from_utf8_lossy(&bytes[..count]);
    // 1: FLOCK  ADVISORY  READ 4711 fe:00:1234 0 EOF
    let mut found = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let &[_, "FLOCK", _, "READ", process, place, ..] = words.as_slice() else { continue };
        let is_ours = place.rsplit(':').next() == Some(inode.as_str());
        if is_ours && process.parse::<u32>().is_ok_and(|id| id > 0) {
            found.push(format!("process {process} for reading"));
        }
    }
    (!found.is_empty()).then(|| found.join(", "))
}

/// The process that wrote its number into LOCK.
fn owner(file: &OwnedFd) -> String {
    let mut text = [0; 20];
    let count = rustix::io::pread(file, &mut text, 0).unwrap_or(0);
    let text = text[..count].trim_ascii();
    match std::str::from_utf8(text) {
        Ok(id) if !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()) => {
            format!("process {id}")
        }
        _ => "another process".into(),
    }
}

fn locked_by(owner: &str, path: &str) -> Error {
    Error::new(ErrorKind::Locked, format!("{path} is opened by {owner}"))
}

/// A place in the registry.
struct Entry {
    id: DirectoryId,
    /// The process that took it.
    process: u32,
}

impl Entry {
    fn new(directory: &OwnedFd, path: &str, is_shared: bool) -> Result<Entry> {
        let stat =
            rustix::fs::fstat(directory).map_err(|errno| calls::error("look at", path, errno))?;
        let id = system::identity(&stat);
        let mut locked = LOCKED.lock();
        match locked.get_mut(&id) {
            Some(Some(holders)) if is_shared => *holders += 1,
            Some(holders) => {
                let how = if holders.is_some() { " for reading" } else { "" };
                let owner = format!("this process ({}){how}", std::process::id());
                return Err(locked_by(&owner, path));
            }
            None => {
                locked.insert(id, is_shared.then_some(1));
            }
        }
        Ok(Entry { id, process: std::process::id() })
    }

    /// Lets go of the system's lock on `file`. Closing it is not enough: descriptors that share
    /// the lock may live on, a device's own, or for a moment those of a child process that the
    /// program is just starting. A child that closes its copy must not unlock its parent's.
    fn unlock(&self, file: &OwnedFd) {
        if self.process == std::process::id() {
            let _ = rustix::fs::flock(file, FlockOperation::Unlock);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut locked = LOCKED.lock();
        match locked.get_mut(&self.id) {
            Some(Some(holders)) if *holders > 1 => *holders -= 1,
            _ => {
                locked.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(path: &std::path::Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap()
    }

    #[test]
    fn a_copy_in_a_child_that_is_starting_does_not_keep_a_dropped_lock() {
        let home = tempfile::tempdir().unwrap();
        let directory = directory(home.path());
        let lock = exclusive(&directory, "db", &Ledger::default()).unwrap();
        // What a fork gives to a child until it runs its program.
        let copy = lock.file.as_ref().unwrap().try_clone().unwrap();
        drop(lock);
        drop(exclusive(&directory, "db", &Ledger::default()).unwrap());
        drop(copy);
    }

    #[test]
    fn a_child_that_closes_its_copy_does_not_unlock_its_parents() {
        let home = tempfile::tempdir().unwrap();
        let directory = directory(home.path());
        let mut lock = exclusive(&directory, "db", &Ledger::default()).unwrap();
        let _parents = lock.file.as_ref().unwrap().try_clone().unwrap();
        lock.entry.process += 1;
        drop(lock);
        let refused = exclusive(&directory, "db", &Ledger::default()).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Locked);
    }
}
