//! A directory: names come and go in it, and small files in it are replaced whole.

use super::calls;
use super::system;
use crate::names::TEMPORARY_SUFFIX;
use base::{Cause, Error, ErrorKind, Ledger, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};

/// The longest note that is read back.
pub(super) const SMALL_FILE_BYTES_MAX: usize = 64 << 20;

/// Directories of ours are private to their owner.
const DIRECTORY_MODE: Mode = Mode::RWXU;

const COPY_BYTES: usize = 1 << 20;

/// An open directory. Its files stay reachable if it is renamed.
pub(super) struct Directory {
    descriptor: OwnedFd,
    path: PathBuf,
    ledger: Arc<Ledger>,
    spare: OnceLock<Weak<dyn Spare>>,
}

/// Descriptors that can be opened again when they are needed.
pub(super) trait Spare: Send + Sync {
    /// Closes them; gives how many. The caller holds no lock of theirs.
    fn give_way(&self) -> usize;
}

/// Directories that may be removed as soon as they are created before an opener gives up.
const REMOVALS_MAX: u32 = 100;

/// Maximum tries of an opening that finds no descriptor, each after others gave way.
const OPENINGS_MAX: usize = 8;

/// Where the process has no descriptor left, those of files that are only read give way: no file of
/// ours is unable to be written because many are open to be read.
fn insistently(
    spare: &OnceLock<Weak<dyn Spare>>,
    open: impl Fn() -> std::result::Result<OwnedFd, Errno>,
) -> std::result::Result<OwnedFd, Errno> {
    for _ in 1..OPENINGS_MAX {
        match calls::patiently(&open) {
            Err(Errno::MFILE | Errno::NFILE) => {}
            opened => return opened,
        }
        let spare = spare.get().and_then(Weak::upgrade);
        if spare.is_none_or(|spare| spare.give_way() == 0) {
            break;
        }
    }
    calls::patiently(&open)
}

/// Creates `path` and what is missing above it, each made durable in its parent.
fn create(path: &Path, ledger: &Arc<Ledger>) -> Result<()> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    let mut result = rustix::fs::mkdir(path, DIRECTORY_MODE);
    if result == Err(Errno::NOENT) {
        create(parent, ledger)?;
        result = rustix::fs::mkdir(path, DIRECTORY_MODE);
    }
    match result {
        Ok(()) => Directory::open(parent, ledger.clone())?.sync(Cause::Housekeeping),
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(calls::error("create the directory", path.display().to_string(), errno)),
    }
}

impl Directory {
    pub(super) fn open(path: &Path, ledger: Arc<Ledger>) -> Result<Directory> {
        Directory::open_with(path, ledger, OnceLock::new())
    }

    /// Opens `path`, and creates it and what is missing above it. Another process may remove the
    /// directory in between.
    pub(super) fn open_or_create(path: &Path, ledger: &Arc<Ledger>) -> Result<Directory> {
        for _ in 1..REMOVALS_MAX {
            create(path, ledger)?;
            match Directory::open(path, ledger.clone()) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                opened => return opened,
            }
        }
        create(path, ledger)?;
        Directory::open(path, ledger.clone())
    }

    /// Another directory, for which and in which the same descriptors give way.
    pub(super) fn open_other(&self, path: &Path) -> Result<Directory> {
        Directory::open_with(path, self.ledger.clone(), self.spare.clone())
    }

    fn open_with(
        path: &Path,
        ledger: Arc<Ledger>,
        spare: OnceLock<Weak<dyn Spare>>,
    ) -> Result<Directory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = || rustix::fs::open(path, flags, Mode::empty());
        let descriptor = insistently(&spare, open).map_err(|errno| {
            calls::error("open the directory", path.display().to_string(), errno)
        })?;
        Ok(Directory { descriptor, path: path.to_owned(), ledger, spare })
    }

    /// Registers `spare`, which gives descriptors back when an opening finds none.
    pub(super) fn spare(&self, spare: Weak<dyn Spare>) {
        // Set once, by the store that owns both.
        let _ = self.spare.set(spare);
    }

    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn describe(&self) -> String {
        self.path.display().to_string()
    }

    /// Opens or creates the file `name`.
    pub(super) fn open_file(&self, name: &str, flags: OFlags) -> Result<OwnedFd> {
        let doing = if flags.contains(OFlags::EXCL) { "create" } else { "open" };
        self.try_open(name, flags).map_err(|errno| calls::error(doing, name, errno))
    }

    fn try_open(&self, name: &str, flags: OFlags) -> std::result::Result<OwnedFd, Errno> {
        let flags = flags | calls::SAFE;
        let open = || rustix::fs::openat(&self.descriptor, name, flags, calls::FILE_MODE);
        insistently(&self.spare, open)
    }

    pub(super) fn unlink(&self, name: &str) -> Result<()> {
        calls::patiently(|| rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty()))
            .map_err(|errno| calls::error("remove", name, errno))
    }

    /// Removes the directory itself, unless something is in it.
    pub(super) fn remove(&self) {
        let _ = calls::patiently(|| rustix::fs::rmdir(&self.path));
    }

    /// Gives our file `name` the same name in `target` too.
    pub(super) fn link(&self, name: &str, target: &Directory) -> std::result::Result<(), Errno> {
        calls::patiently(|| {
            rustix::fs::linkat(&self.descriptor, name, &target.descriptor, name, AtFlags::empty())
        })
    }

    /// Gives the file at `path`, outside, the name `name` here too.
    pub(super) fn link_from(&self, path: &Path, name: &str) -> std::result::Result<(), Errno> {
        let outside = rustix::fs::CWD;
        calls::patiently(|| {
            rustix::fs::linkat(outside, path, &self.descriptor, name, AtFlags::empty())
        })
    }

    /// Makes creations, removals and renames so far durable.
    pub(super) fn sync(&self, cause: Cause) -> Result<()> {
        self.ledger.synced(cause);
        system::sync_names(&self.descriptor)
            .map_err(|errno| calls::error("sync the directory", self.describe(), errno))
    }

    fn listing(&self) -> std::result::Result<rustix::fs::Dir, Errno> {
        rustix::fs::Dir::new(self.try_open(".", OFlags::RDONLY | OFlags::DIRECTORY)?)
    }

    /// Everything in it, of whatever type.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        let error = |errno| calls::error("list the directory", self.describe(), errno);
        let mut names = Vec::new();
        for entry in self.listing().map_err(error)? {
            let name = entry.map_err(error)?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Every plain file with its length in bytes.
    pub(super) fn files(&self) -> Result<Vec<(String, u64)>> {
        let error = |errno| calls::error("list the directory", self.describe(), errno);
        let mut files = Vec::new();
        for entry in self.listing().map_err(error)? {
            let entry = entry.map_err(error)?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            let nofollow = AtFlags::SYMLINK_NOFOLLOW;
            let stat = match rustix::fs::statat(&self.descriptor, name, nofollow) {
                Ok(stat) => stat,
                // Removed since it was listed.
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(calls::error("look at", name, errno)),
            };
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                files.push((name.to_owned(), stat.st_size as u64));
            }
        }
        Ok(files)
    }

    /// The whole of a small file; `None` if there is none. Longer than `bytes_max` is `Corruption`.
    pub(super) fn read_small(&self, name: &str, bytes_max: usize) -> Result<Option<Vec<u8>>> {
        let file = match self.try_open(name, OFlags::RDONLY) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(calls::error("open", name, errno)),
        };
        let stat =
            rustix::fs::fstat(&file).map_err(|errno| calls::error("look at", name, errno))?;
        let len = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
        if len > bytes_max {
            let message = format!("the file has {len} bytes, more than {bytes_max}");
            return Err(Error::corruption(name, bytes_max as u64, message));
        }
        let mut bytes = vec![0; len];
        let cached = AtomicBool::new(false);
        let given = |count| self.ledger.read(Cause::Housekeeping, count as u64);
        let filled = calls::read_at(file.as_fd(), &mut bytes, 0, &cached, given)
            .map_err(|errno| calls::error("read", name, errno))?;
        bytes.truncate(filled);
        Ok(Some(bytes))
    }

    /// Puts a file of `bytes` in the place of `name`, atomically: an open of `name`, after a crash
    /// too, finds the old bytes or the new ones. `before_rename` runs when the new bytes are
    /// durable under their temporary name. The caller ensures that only one runs at a time.
    pub(super) fn replace(
        &self,
        name: &str,
        bytes: &[u8],
        before_rename: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let temporary = format!("{name}{TEMPORARY_SUFFIX}");
        match rustix::fs::unlinkat(&self.descriptor, &temporary, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(calls::error("remove", temporary, errno)),
        }
        let file = self.open_file(&temporary, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        let replaced = self
            .fill(&temporary, &file, Cause::Housekeeping, bytes.len() as u64, |offset, piece| {
                piece.copy_from_slice(&bytes[offset as usize..][..piece.len()]);
                Ok(())
            })
            .and_then(|()| before_rename())
            .and_then(|()| {
                let (from, to) = (&self.descriptor, &self.descriptor);
                calls::patiently(|| rustix::fs::renameat(from, temporary.as_str(), to, name))
                    .map_err(|errno| calls::error("replace", name, errno))
            });
        if replaced.is_err() {
            // The first error is the one to report.
            let _ = self.unlink(&temporary);
        }
        replaced
    }

    /// Writes `bytes` bytes from `source` to the new file `file`, and syncs it.
    pub(super) fn fill(
        &self,
        name: &str,
        file: &OwnedFd,
        cause: Cause,
        bytes: u64,
        mut source: impl FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let mut memory = vec![0; bytes.min(COPY_BYTES as u64) as usize];
        let mut offset = 0;
        while offset < bytes {
            let count = (bytes - offset).min(memory.len() as u64) as usize;
            let piece = &mut memory[..count];
            source(offset, piece)?;
            let accepted = |count| self.ledger.wrote(cause, count as u64);
            calls::write_at(file.as_fd(), piece, offset, accepted)
                .map_err(|errno| calls::error("write", name, errno).at(offset))?;
            offset += count as u64;
        }
        self.ledger.synced(cause);
        system::sync_data(file).map_err(|errno| calls::error("sync", name, errno))
    }

    /// Appends to a note. Neither atomic nor durable.
    pub(super) fn append(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let file = self.open_file(name, OFlags::WRONLY | OFlags::CREATE)?;
        let stat =
            rustix::fs::fstat(&file).map_err(|errno| calls::error("look at", name, errno))?;
        let accepted = |count| self.ledger.wrote(Cause::Housekeeping, count as u64);
        calls::write_at(file.as_fd(), bytes, stat.st_size as u64, accepted)
            .map_err(|errno| calls::error("append", name, errno))
    }
}
