//! One opener: an `flock` on the file LOCK, which holds the owner's process id for error messages.
//!
//! Where `flock` is emulated with record locks (some network file systems) it neither keeps a
//! second opener of the same process out nor survives that opener's closing of the file. So the
//! table of what this process has locked is asked first, before LOCK is even opened, and readers of
//! one process share one descriptor.
//!
//! A lock counts when it is taken only if the path still leads to the directory, and the directory
//! to the file. Another process may have removed the database meanwhile, or put another one in its
//! place, and holds the lock until it has done so. So after an opener took the lock, it looks at
//! both names again.

use super::calls;
use super::directory::Directory;
use super::locked::{self, Held, Holders, Place};
use super::system;
use crate::names::LOCK_NAME;
use base::{Cause, Error, ErrorKind, Ledger, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Maximum bytes read of the system's list of locks.
const LOCK_LIST_BYTES_MAX: usize = 256 << 10;

/// Files LOCK that may be removed between their opening and their lock before an opener gives up.
const REMOVALS_MAX: u32 = 100;

/// Keeps others out until dropped.
pub(super) type Lock = Held;

/// Locks `directory` for a writer.
pub(super) fn exclusive(directory: &Directory, ledger: &Ledger) -> Result<Lock> {
    lock_directory(directory, false, |file| {
        let owner = format!("{}\n", std::process::id());
        rustix::fs::ftruncate(file, 0)
            .and_then(|()| {
                let accepted = |count| ledger.wrote(Cause::Housekeeping, count as u64);
                calls::write_at(file.as_fd(), owner.as_bytes(), 0, accepted)
            })
            .map_err(|errno| calls::error("write", LOCK_NAME, errno))
    })
}

/// Locks `directory` for a reader: keeps writers out, not other readers, and writes nothing. A
/// directory without LOCK never had a writer to keep out.
pub(super) fn shared(directory: &Directory) -> Result<Lock> {
    lock_directory(directory, true, |_| Ok(()))
}

fn lock_directory(
    directory: &Directory,
    is_shared: bool,
    note: impl FnOnce(&OwnedFd) -> Result<()>,
) -> Result<Lock> {
    let path = directory.describe();
    let stat = rustix::fs::fstat(directory.descriptor())
        .map_err(|errno| calls::error("look at", &*path, errno))?;
    let id = system::identity(&stat);
    take(id, &path, is_shared, || {
        let (flags, operation) = match is_shared {
            true => (OFlags::RDONLY, FlockOperation::NonBlockingLockShared),
            false => (OFlags::RDWR | OFlags::CREATE, FlockOperation::NonBlockingLockExclusive),
        };
        let file = locked_file(directory, operation, || open(directory, flags))?;
        // A path that cannot be followed any more, for lack of rights, says nothing.
        match rustix::fs::stat(directory.path()) {
            Ok(now) if system::identity(&now) != id => return Err(replaced(&path)),
            Err(Errno::NOENT | Errno::NOTDIR) => return Err(replaced(&path)),
            _ => {}
        }
        file.as_ref().map_or(Ok(()), note)?;
        Ok(file)
    })
}

/// The file LOCK. `None`: there is none, and `flags` create none.
fn open(directory: &Directory, flags: OFlags) -> Result<Option<OwnedFd>> {
    let creates = flags.contains(OFlags::CREATE);
    let flags = flags | calls::SAFE;
    match rustix::fs::openat(directory.descriptor(), LOCK_NAME, flags, calls::FILE_MODE) {
        Ok(file) => Ok(Some(file)),
        // No file is created in a directory that was removed.
        Err(Errno::NOENT) if creates => Err(replaced(&directory.describe())),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(calls::error("open", LOCK_NAME, errno)),
    }
}

/// What `open` gives, locked, and still the file LOCK.
fn locked_file(
    directory: &Directory,
    operation: FlockOperation,
    mut open: impl FnMut() -> Result<Option<OwnedFd>>,
) -> Result<Option<OwnedFd>> {
    let path = directory.describe();
    for _ in 0..REMOVALS_MAX {
        let Some(file) = open()? else { return Ok(None) };
        flock(&file, operation, &path)?;
        if is_named(directory, &file)? {
            return Ok(Some(file));
        }
    }
    Err(replaced(&path))
}

/// Whether `file` is what LOCK leads to.
fn is_named(directory: &Directory, file: &OwnedFd) -> Result<bool> {
    let error = |errno| calls::error("look at", LOCK_NAME, errno);
    let ours = rustix::fs::fstat(file).map_err(error)?;
    match rustix::fs::statat(directory.descriptor(), LOCK_NAME, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) => Ok(system::identity(&named) == system::identity(&ours)),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(error(errno)),
    }
}

/// Locks the device `file`, which was opened by `path`, for a reader if `is_shared`.
pub(super) fn of_file(file: &OwnedFd, path: &Path, is_shared: bool) -> Result<Lock> {
    let shown = path.display().to_string();
    let error = |errno| calls::error("lock", &*shown, errno);
    let id = system::identity(&rustix::fs::fstat(file).map_err(error)?);
    take(id, &shown, is_shared, || {
        // An opening of its own: a forked child goes on sharing that of the device, and would keep
        // its locks.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = calls::patiently(|| rustix::fs::open(path, flags, Mode::empty()));
        let file = file.map_err(error)?;
        if system::identity(&rustix::fs::fstat(&file).map_err(error)?) != id {
            return Err(replaced(&shown));
        }
        let operation = match is_shared {
            true => FlockOperation::NonBlockingLockShared,
            false => FlockOperation::NonBlockingLockExclusive,
        };
        match calls::patiently_blocked(|| rustix::fs::flock(&file, operation)) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => {
                let owner = readers(&file).unwrap_or_else(|| "another process".into());
                Err(locked_by(&owner, &shown))
            }
            Err(errno) => Err(error(errno)),
        }
    })
}

/// Takes a place in the table, for what `lock` has locked unless readers of this process have.
fn take(
    id: locked::Id,
    path: &str,
    is_shared: bool,
    lock: impl FnOnce() -> Result<Option<OwnedFd>>,
) -> Result<Lock> {
    let mut table = locked::table()?;
    let before = match table.places.get_mut(&id) {
        None => 0,
        Some(Place { holders: Holders::Readers(count), file }) if is_shared => {
            if file.is_some() {
                *count += 1;
                return Ok(Held::new(id));
            }
            *count
        }
        Some(place) => {
            let how = if place.holders == Holders::Writer { "" } else { " for reading" };
            let owner = format!("this process ({}){how}", std::process::id());
            return Err(locked_by(&owner, path));
        }
    };
    let file = lock()?;
    let holders = if is_shared { Holders::Readers(before + 1) } else { Holders::Writer };
    table.places.insert(id, Place { holders, file });
    Ok(Held::new(id))
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

/// Another process removed what `path` led to, or put something else there.
fn replaced(path: &str) -> Error {
    let message = format!(
        "{path} was removed or replaced by another process while it was being opened: open it again"
    );
    Error::new(ErrorKind::Locked, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::sync::Arc;

    fn directory(path: &Path) -> Directory {
        Directory::open(path, Arc::default()).unwrap()
    }

    fn locked(directory: &Directory) -> Result<Lock> {
        exclusive(directory, &Ledger::default())
    }

    fn refused(directory: &Directory) -> String {
        let error = locked(directory).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
        error.to_string()
    }

    /// What a fork gives to a child.
    fn copy(directory: &Path) -> OwnedFd {
        let found = directory.metadata().unwrap();
        let table = locked::table().unwrap();
        let place = &table.places[&(found.dev(), found.ino())];
        place.file.as_ref().unwrap().try_clone().unwrap()
    }

    #[test]
    fn a_copy_in_a_child_that_is_starting_does_not_keep_a_dropped_lock() {
        let home = tempfile::tempdir().unwrap();
        let directory = directory(home.path());
        let lock = locked(&directory).unwrap();
        let copy = copy(home.path());
        drop(lock);
        drop(locked(&directory).unwrap());
        drop(copy);
    }

    #[test]
    fn a_lock_of_another_process_is_not_unlocked_by_its_child() {
        let home = tempfile::tempdir().unwrap();
        let directory = directory(home.path());
        let lock = locked(&directory).unwrap();
        drop(lock.into_childs());
        refused(&directory);
    }

    #[test]
    fn a_lock_of_a_file_that_lost_its_name_does_not_count() {
        let home = tempfile::tempdir().unwrap();
        let (path, directory) = (home.path().join(LOCK_NAME), directory(home.path()));
        let creates = OFlags::RDWR | OFlags::CREATE;
        let stale = |remakes: bool| {
            let file = open(&directory, creates);
            std::fs::remove_file(&path).unwrap();
            if remakes {
                std::fs::write(&path, b"").unwrap();
            }
            file
        };
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        for remakes in [false, true] {
            let mut openings = 0;
            let file = locked_file(&directory, exclusive, || {
                openings += 1;
                if openings < 3 { stale(remakes) } else { open(&directory, creates) }
            });
            assert_eq!(openings, 3);
            assert!(is_named(&directory, &file.unwrap().unwrap()).unwrap());
            let error = locked_file(&directory, exclusive, || stale(remakes)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Locked);
        }
    }

    #[test]
    fn a_directory_that_was_removed_or_replaced_is_not_locked() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("db");
        std::fs::create_dir(&path).unwrap();
        let before = directory(&path);
        std::fs::rename(&path, home.path().join("aside")).unwrap();
        assert!(refused(&before).contains("was removed or replaced"));
        std::fs::create_dir(&path).unwrap();
        assert!(refused(&before).contains("was removed or replaced"));
        assert!(shared(&before).is_err());
        let now = directory(&path);
        drop(locked(&now).unwrap());
        std::fs::remove_dir_all(&path).unwrap();
        assert!(refused(&now).contains("was removed or replaced"));
    }

    #[test]
    fn readers_of_a_directory_without_a_lock_file_notice_one_that_came_later() {
        let home = tempfile::tempdir().unwrap();
        let directory = directory(home.path());
        let first = shared(&directory).unwrap();
        // A descriptor of its own stands for another process.
        let other = std::fs::File::create(home.path().join(LOCK_NAME)).unwrap();
        rustix::fs::flock(&other, FlockOperation::LockExclusive).unwrap();
        assert_eq!(shared(&directory).err().unwrap().kind(), ErrorKind::Locked);
        drop(other);
        let second = shared(&directory).unwrap();
        drop(first);
        refused(&directory);
        drop(second);
        locked(&directory).unwrap();
    }
}
