//! Files of the operating system, in one directory. The only place that touches the file system.
//! [`FileDevice`] is one file, or a disk, as a block device.
//!
//! - Files are opened relative to a descriptor of the directory, are private to their owner (0600),
//!   and a symbolic link in place of one of them is an error.
//! - A file being written is one descriptor; the number of descriptors of files being read is
//!   limited.
//! - The root is replaced by writing CURRENT.tmp, syncing it and the directory, renaming it to
//!   CURRENT and syncing the directory again; so what the root names is durable before the root.
//! - A file that has names in other directories takes no more bytes: the system counts its names.
//! - Bytes are written to the ledger as the system accepts them, call by call.
//! - What works on a database as a whole, and removes or replaces it, holds its lock until the last
//!   file is gone or the other directory has the name.
//!
//! What is visible and durable when is written down in `docs/design/file-store.md`.

mod ahead;
mod append;
mod calls;
mod descriptors;
mod device;
mod directory;
mod forks;
mod lock;
mod locked;
mod map;
pub mod outside;
mod read;
mod reserve;
mod root;
mod share;
mod system;
mod tail;
#[cfg(test)]
mod tests;
mod whole;
mod writers;

pub use device::{FileDevice, FileDeviceOptions};
pub use locked::{forks, is_forked_since};
pub use map::mappable_bytes;
pub use system::lower_thread_priority;

use crate::names::{LOCK_NAME, ROOT_NAME, is_database_file};
use crate::{
    AppendFile, Capacity, FileHint, FileName, FileStore, FileSummary, Notes, ReadFile, Sharing,
    Space, StoreLock, check_note_name,
};
use ahead::Ahead;
use append::{BackgroundFile, ForegroundFile, Handle};
use base::{Cause, Error, ErrorKind, Ledger, Result};
use descriptors::{Descriptors, Use};
use directory::Directory;
use map::Budget;
use parking_lot::Mutex;
use read::OsReadFile;
use rustix::fs::OFlags;
use std::path::Path;
use std::sync::{Arc, Weak};
use tail::Tails;
use writers::{Writers, Writing};

/// How an [`OsStore`] is opened.
#[derive(Clone, Debug)]
pub struct OsOptions {
    /// Create the directory, and those above it, where there is none.
    pub create: bool,
    /// Write nothing at all, and lock only against writers.
    pub read_only: bool,
    /// Keep background files out of the page cache: write them past it where the file system can,
    /// and ask it to forget them where not. Without, they stay there, warm for readers.
    pub direct_background: bool,
    /// Bytes that a background file gathers before it writes; rounded up to whole pages.
    pub background_buffer_bytes: usize,
    /// Bytes of files that may be mapped into memory at a time; 0: none is. See
    /// [`mappable_bytes`].
    pub map_bytes_max: u64,
    /// Maximum number of files open for reads, at least 1; the least recently read are closed
    /// first. `None`: 25 % of the process's descriptor limit.
    pub open_files_max: Option<usize>,
    /// Another process may remove files: a file that is open for reads stays readable, and
    /// [`OsOptions::open_files_max`] does not count.
    pub keeps_files: bool,
}

impl Default for OsOptions {
    fn default() -> OsOptions {
        OsOptions {
            create: true,
            read_only: false,
            direct_background: true,
            background_buffer_bytes: 512 << 10,
            map_bytes_max: 0,
            open_files_max: None,
            keeps_files: false,
        }
    }
}

/// Files in a directory.
pub struct OsStore {
    directory: Arc<Directory>,
    ledger: Arc<Ledger>,
    options: OsOptions,
    tails: Tails,
    writers: Arc<Writers>,
    descriptors: Arc<Descriptors>,
    maps: Arc<Budget>,
    /// One root or note is replaced at a time: they share names of temporary files.
    replacing: Mutex<()>,
    /// This store's own lock, which [`OsStore::claim`] takes.
    claim: Mutex<Option<lock::Lock>>,
}

impl OsStore {
    /// Opens the store in the directory `path`. `NotFound` if there is none and
    /// [`OsOptions::create`] is off.
    pub fn open(path: &Path, ledger: Arc<Ledger>, options: OsOptions) -> Result<OsStore> {
        if !options.read_only {
            descriptors::check_enough()?;
        }
        let creates = options.create && !options.read_only;
        let directory = Arc::new(match creates {
            true => Directory::open_or_create(path, &ledger)?,
            false => Directory::open(path, ledger.clone())?,
        });
        let (tails, writers, replacing) = (Tails::default(), Arc::default(), Mutex::new(()));
        let maps = Arc::new(Budget::new(options.map_bytes_max));
        let open_max = options.open_files_max.unwrap_or_else(descriptors::sensible_max);
        let descriptors =
            Arc::new(Descriptors::new(directory.clone(), open_max, options.keeps_files));
        let spare: Weak<dyn directory::Spare> = Arc::<Descriptors>::downgrade(&descriptors);
        directory.spare(spare);
        let claim = Mutex::default();
        Ok(OsStore {
            directory,
            ledger,
            options,
            tails,
            writers,
            descriptors,
            maps,
            replacing,
            claim,
        })
    }

    /// Something in the directory that no store wrote; `None` if there is nothing else. Where a
    /// store was opened for writing before, `notes` are taken for its own. Hidden files and
    /// `lost+found` are the system's, and neither.
    pub fn foreign_file(&self, notes: &[&str]) -> Result<Option<String>> {
        let mut names = self.directory.names()?;
        names.sort_unstable();
        let was_opened = names.iter().any(|name| name == LOCK_NAME);
        let notes = if was_opened { notes } else { &[] };
        let is_of_system = |name: &str| name.starts_with('.') || name == "lost+found";
        Ok(names.into_iter().find(|name| !is_database_file(name, notes) && !is_of_system(name)))
    }

    fn take_lock(&self) -> Result<lock::Lock> {
        match self.options.read_only {
            true => lock::shared(&self.directory),
            false => lock::exclusive(&self.directory, &self.ledger),
        }
    }

    fn check_writable(&self) -> Result<()> {
        if self.options.read_only {
            let message = format!("{} is opened read-only", self.directory.describe());
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok(())
    }

    fn handle(&self, name: FileName, flags: OFlags) -> Result<Handle> {
        let file = Arc::new(self.directory.open_file(&name.to_string(), flags)?);
        Ok(Handle { name, file, ledger: self.ledger.clone() })
    }

    fn writer(
        &self,
        handle: Handle,
        writing: Writing,
        len: u64,
        hint: &FileHint,
    ) -> Result<Box<dyn AppendFile>> {
        if !hint.background {
            let ahead = hint.zeros_at_end.then(|| Ahead::new(self.tails.of(handle.name), len));
            return Ok(Box::new(ForegroundFile::new(handle, writing, len, ahead)));
        }
        let expected = hint.bytes_max.map_or(usize::MAX, |bytes| {
            usize::try_from(bytes.saturating_sub(len)).unwrap_or(usize::MAX)
        });
        let buffer_bytes = self.options.background_buffer_bytes.min(expected);
        let tail = self.tails.of(handle.name);
        let direct = self.options.direct_background;
        Ok(Box::new(BackgroundFile::new(handle, writing, tail, len, buffer_bytes, direct)?))
    }
}

impl FileStore for OsStore {
    fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    fn create(&self, name: FileName, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        self.check_writable()?;
        let handle = self.handle(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        self.tails.forget(name);
        let writing = self.writers.begin(name, || Ok(()))?;
        self.writer(handle, writing, 0, hint)
    }

    fn extend(&self, name: FileName, at: u64, hint: &FileHint) -> Result<Box<dyn AppendFile>> {
        self.check_writable()?;
        let handle = self.handle(name, OFlags::WRONLY)?;
        if self.tails.find(name).is_some_and(|tail| tail.file_len().is_some()) {
            let message = "the file is being written: drop the first writer before the second";
            return Err(Error::invalid(message).in_file(name.to_string()));
        }
        let writing = self.writers.begin(name, || share::check_unshared(name, &handle.file))?;
        let stat =
            rustix::fs::fstat(&handle.file).map_err(|errno| handle.error("look at", errno))?;
        let bytes = stat.st_size as u64;
        if bytes < at {
            let message = format!("the file is to go on at byte {at} but has {bytes} bytes");
            return Err(Error::corruption(name.to_string(), bytes, message));
        }
        if bytes > at {
            calls::patiently(|| rustix::fs::ftruncate(&handle.file, at))
                .map_err(|errno| handle.error("cut", errno).at(at))?;
        }
        self.writer(handle, writing, at, hint)
    }

    fn open(&self, name: FileName, background: bool) -> Result<Arc<dyn ReadFile>> {
        let (tail, ledger) = (self.tails.of(name), self.ledger.clone());
        if background {
            let descriptor = self.descriptors.open(name, Use::Background)?;
            return Ok(Arc::new(OsReadFile::background(descriptor, tail, ledger)));
        }
        let descriptor = self.descriptors.open(name, Use::Foreground)?;
        Ok(Arc::new(OsReadFile::foreground(descriptor, self.maps.clone(), tail, ledger)))
    }

    fn recalls_writes(&self) -> bool {
        true
    }

    fn files_synced_together(&self) -> usize {
        self.descriptors.written_max()
    }

    fn remove(&self, name: FileName) -> Result<()> {
        self.check_writable()?;
        self.descriptors.keep(name)?;
        self.directory.unlink(&name.to_string())?;
        self.tails.forget(name);
        Ok(())
    }

    fn list(&self) -> Result<Vec<FileSummary>> {
        let mut files = Vec::new();
        for (text, size) in self.directory.files()? {
            if let Some(name) = FileName::parse(&text) {
                let buffered = self.tails.find(name).and_then(|tail| tail.file_len());
                files.push(FileSummary { name, bytes: buffered.unwrap_or(size) });
            }
        }
        files.sort_by_key(|file| file.name);
        Ok(files)
    }

    fn sync_names(&self) -> Result<()> {
        self.check_writable()?;
        self.directory.sync(Cause::Housekeeping)
    }

    fn root(&self) -> Result<Option<Vec<u8>>> {
        let file = self.directory.read_small(ROOT_NAME, root::ROOT_FILE_BYTES_MAX)?;
        file.map(|bytes| root::decode(&bytes)).transpose()
    }

    fn set_root(&self, root: &[u8]) -> Result<()> {
        self.check_writable()?;
        let bytes = root::encode(root)?;
        let _one_at_a_time = self.replacing.lock();
        self.directory.replace(ROOT_NAME, &bytes, || self.directory.sync(Cause::Housekeeping))?;
        self.directory.sync(Cause::Housekeeping).map_err(of_unknown_outcome)
    }

    fn lock(&self) -> Result<StoreLock> {
        if self.claim.lock().is_some() {
            return Ok(Box::new(()));
        }
        Ok(Box::new(self.take_lock()?))
    }

    fn lock_shared(&self) -> Result<StoreLock> {
        if self.claim.lock().is_some() {
            return Ok(Box::new(()));
        }
        Ok(Box::new(lock::shared(&self.directory)?))
    }

    fn describe(&self) -> String {
        self.directory.describe()
    }

    fn notes(&self) -> Option<&dyn Notes> {
        Some(self)
    }

    fn capacity(&self) -> Option<&dyn Capacity> {
        Some(self)
    }

    fn sharing(&self) -> Option<&dyn Sharing> {
        Some(self)
    }
}

/// The error of a step whose outcome is not known. A lack of space would say that nothing happened.
fn of_unknown_outcome(error: Error) -> Error {
    match error.kind() {
        ErrorKind::NoSpace => Error::new(ErrorKind::Io, error.message()),
        _ => error,
    }
}

impl Notes for OsStore {
    fn write_note(&self, name: &str, bytes: &[u8], append: bool) -> Result<()> {
        self.check_writable()?;
        check_note_name(name)?;
        let _one_at_a_time = self.replacing.lock();
        if append {
            return self.directory.append(name, bytes);
        }
        self.directory.replace(name, bytes, || Ok(()))
    }

    fn read_note(&self, name: &str) -> Result<Option<Vec<u8>>> {
        check_note_name(name)?;
        self.directory.read_small(name, directory::SMALL_FILE_BYTES_MAX)
    }
}

impl Capacity for OsStore {
    fn space(&self) -> Option<Space> {
        let stat = rustix::fs::fstatvfs(self.directory.descriptor()).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Some(Space { total_bytes: bytes(stat.f_blocks), free_bytes: bytes(stat.f_bavail) })
    }

    fn set_reserve(&self, bytes: u64) -> Result<bool> {
        self.check_writable()?;
        let _one_at_a_time = self.replacing.lock();
        reserve::set(&self.directory, bytes)
    }
}
