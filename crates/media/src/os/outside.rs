//! Files outside of any store, at paths that a program chooses: sorted files before a database
//! ingests them. A store that shares a directory takes one in by
//! [`Sharing::adopt`](crate::Sharing::adopt).
//!
//! They have no [`FileName`]: errors name their path.

use super::calls;
use super::system;
use crate::{AppendFile, FileName, ReadFile, SyncFile, past_end};
use base::{Cause, Error, FileId, Ledger, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The system begins to write back after this many bytes, so that the sync at the end finds most of
/// its work done.
const WRITE_BACK_BYTES: u64 = 8 << 20;

/// An open file and its path.
struct Outside {
    file: OwnedFd,
    path: String,
    ledger: Arc<Ledger>,
}

impl Outside {
    fn open(path: &Path, flags: OFlags, ledger: Arc<Ledger>) -> Result<Outside> {
        let text = path.display().to_string();
        let doing = if flags.contains(OFlags::EXCL) { "create" } else { "open" };
        let flags = flags | calls::SAFE;
        let file = calls::patiently(|| rustix::fs::open(path, flags, calls::FILE_MODE))
            .map_err(|errno| calls::error(doing, &*text, errno))?;
        Ok(Outside { file, path: text, ledger })
    }

    fn error(&self, doing: &str, errno: Errno) -> Error {
        calls::error(doing, &*self.path, errno)
    }
}

/// A new, empty file at `path`. `AlreadyExists` if there is one. Its first sync makes its name
/// durable too.
pub fn create(path: &Path, ledger: Arc<Ledger>) -> Result<Box<dyn AppendFile>> {
    let file = Outside::open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, ledger.clone())?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let directory = Outside::open(parent.unwrap_or(Path::new(".")), flags, ledger)?;
    Ok(Box::new(OutsideAppend { file, directory, len: 0, written_back: 0 }))
}

/// Opens the file at `path` for reading.
pub fn open(path: &Path, ledger: Arc<Ledger>) -> Result<Arc<dyn ReadFile>> {
    let file = Outside::open(path, OFlags::RDONLY, ledger)?;
    Ok(Arc::new(OutsideRead { file, uncached: AtomicBool::new(false) }))
}

/// Removes the file at `path`.
pub fn remove(path: &Path) -> Result<()> {
    calls::patiently(|| rustix::fs::unlink(path))
        .map_err(|errno| calls::error("remove", path.display().to_string(), errno))
}

struct OutsideAppend {
    file: Outside,
    directory: Outside,
    len: u64,
    /// The system has begun to write back the bytes up to here.
    written_back: u64,
}

impl AppendFile for OutsideAppend {
    fn append(&mut self, bytes: &[u8], cause: Cause) -> Result<()> {
        let ledger = &self.file.ledger;
        calls::write_at(self.file.file.as_fd(), bytes, self.len, |count| {
            ledger.wrote(cause, count as u64);
        })
        .map_err(|errno| self.file.error("append", errno).at(self.len))?;
        self.len += bytes.len() as u64;
        if self.len - self.written_back >= WRITE_BACK_BYTES {
            self.begin_sync()?;
        }
        Ok(())
    }

    fn begin_sync(&mut self) -> Result<()> {
        system::begin_write_back(self.file.file.as_fd());
        self.written_back = self.len;
        Ok(())
    }

    fn sync(&mut self, cause: Cause) -> Result<()> {
        self.file.ledger.synced(cause);
        system::sync_data(&self.file.file).map_err(|errno| self.file.error("sync", errno))?;
        self.directory.ledger.synced(cause);
        system::sync_names(&self.directory.file)
            .map_err(|errno| self.directory.error("sync the directory", errno))
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        None
    }
}

struct OutsideRead {
    file: Outside,
    uncached: AtomicBool,
}

impl ReadFile for OutsideRead {
    fn read_at(&self, offset: u64, into: &mut [u8], cause: Cause) -> Result<()> {
        let Outside { file, path, ledger } = &self.file;
        let given = |count| ledger.read(cause, count as u64);
        let filled = calls::read_at(file.as_fd(), into, offset, &self.uncached, given)
            .map_err(|errno| self.file.error("read", errno).at(offset))?;
        if filled < into.len() {
            let error = past_end(self.name(), offset, into.len(), self.len()?);
            return Err(error.in_file(&**path));
        }
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        let stat = rustix::fs::fstat(&self.file.file);
        Ok(stat.map_err(|errno| self.file.error("look at", errno))?.st_size as u64)
    }

    fn prefetch(&self, offset: u64, bytes: u64) {
        if let Some(bytes) = NonZeroU64::new(bytes) {
            system::read_ahead(&self.file.file, offset, bytes);
        }
    }

    /// A stand-in: the file has a path, and no name of a store's.
    fn name(&self) -> FileName {
        FileName::table(FileId(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ErrorKind;

    #[test]
    fn a_file_outside_is_written_once_and_read() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("part-1.sorted");
        let ledger = Arc::new(Ledger::default());
        let mut file = create(&path, ledger.clone()).unwrap();
        file.append(b"some bytes", Cause::Ingest).unwrap();
        file.sync(Cause::Ingest).unwrap();
        assert_eq!(file.len(), 10);
        let again = create(&path, ledger.clone()).err().unwrap();
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);

        let read = open(&path, ledger.clone()).unwrap();
        let mut bytes = [0; 5];
        read.read_at(5, &mut bytes, Cause::Check).unwrap();
        assert_eq!(&bytes, b"bytes");
        let error = read.read_at(6, &mut bytes, Cause::Check).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains("part-1.sorted"), "{error}");
        assert_eq!(ledger.snapshot().cause(Cause::Ingest).write_bytes, 10);

        remove(&path).unwrap();
        assert_eq!(open(&path, ledger).err().unwrap().kind(), ErrorKind::NotFound);
    }
}
