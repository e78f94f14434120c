//! Files being written.
//!
//! A foreground file passes every append to the system at once: an append that returned survives
//! the death of the process. A background file gathers bytes in a [`Tail`] and writes whole pages
//! past the page cache where the file system allows it. No byte is written twice and none is
//! padding: the piece before the first page boundary and the piece behind the last one at a sync go
//! through the page cache, all between goes direct. Little at a sync goes through the page cache
//! in one piece ([`SMALL_BYTES`]). The length of a background file is therefore always exact; that
//! of a foreground file may be [`ahead`](super::ahead).
//!
//! What the page cache has and the medium has not was written that way since the last sync: less
//! than a page and [`SMALL_BYTES`], or, where direct writes are refused, what
//! [`PageWriter::forget`] has not asked for yet. After a sync at most the last page stays.

use super::ahead::Ahead;
use super::calls;
use super::system;
use super::tail::{ALIGN, Buffer, Tail};
use super::writers::Writing;
use crate::{AppendFile, FileName, SyncFile};
use base::{Cause, Error, Ledger, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What every open file needs to know.
#[derive(Clone)]
pub(super) struct Handle {
    pub(super) name: FileName,
    pub(super) file: Arc<OwnedFd>,
    pub(super) ledger: Arc<Ledger>,
}

impl Handle {
    pub(super) fn error(&self, doing: &str, errno: Errno) -> Error {
        calls::error(doing, self.name.to_string(), errno)
    }

    pub(super) fn sync(&self, cause: Cause) -> Result<()> {
        self.ledger.synced(cause);
        // Never repeated: after a failed sync a second one may succeed without having written.
        system::sync_data(&self.file).map_err(|errno| self.error("sync", errno))
    }
}

/// A file whose appends reach the system one by one.
pub(super) struct ForegroundFile {
    handle: Handle,
    _writing: Writing,
    len: u64,
    /// The system may know a greater length.
    ahead: Option<Ahead>,
}

impl ForegroundFile {
    pub(super) fn new(
        handle: Handle,
        writing: Writing,
        len: u64,
        ahead: Option<Ahead>,
    ) -> ForegroundFile {
        ForegroundFile { handle, _writing: writing, len, ahead }
    }
}

impl Drop for ForegroundFile {
    fn drop(&mut self) {
        if let Some(ahead) = &self.ahead {
            ahead.end(&self.handle, self.len);
        }
    }
}

impl AppendFile for ForegroundFile {
    fn append(&mut self, bytes: &[u8], cause: Cause) -> Result<()> {
        let (handle, end) = (&self.handle, self.len + bytes.len() as u64);
        if let Some(ahead) = &mut self.ahead {
            ahead.before_append(handle, end);
        }
        let accepted = |count| handle.ledger.wrote(cause, count as u64);
        calls::write_at(handle.file.as_fd(), bytes, self.len, accepted)
            .map_err(|errno| handle.error("append", errno).at(self.len))?;
        self.len = end;
        if let Some(ahead) = &self.ahead {
            ahead.appended(end);
        }
        Ok(())
    }

    fn sync(&mut self, cause: Cause) -> Result<()> {
        Syncer::of(self).sync(cause)
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        Some(Box::new(Syncer::of(self)))
    }
}

struct Syncer {
    handle: Handle,
    /// Hears of each sync.
    was_synced: Option<Arc<AtomicBool>>,
}

impl Syncer {
    fn of(file: &ForegroundFile) -> Syncer {
        let was_synced = file.ahead.as_ref().map(Ahead::was_synced);
        Syncer { handle: file.handle.clone(), was_synced }
    }
}

impl SyncFile for Syncer {
    fn sync(&self, cause: Cause) -> Result<()> {
        if let Some(was_synced) = &self.was_synced {
            was_synced.store(true, Ordering::Relaxed);
        }
        self.handle.sync(cause)
    }
}

/// How a background file's pages leave the process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    /// Through the page cache, dropped from it afterwards.
    Cache,
    /// Past the page cache.
    Direct,
}

/// A file whose appends are gathered. See the module's head.
pub(super) struct BackgroundFile {
    handle: Handle,
    _writing: Writing,
    tail: Arc<Tail>,
    writer: PageWriter,
    len: u64,
}

impl BackgroundFile {
    /// Goes on at byte `len` with a buffer of `buffer_bytes`. An error if the file has a writer.
    pub(super) fn new(
        handle: Handle,
        writing: Writing,
        tail: Arc<Tail>,
        len: u64,
        buffer_bytes: usize,
        direct: bool,
    ) -> Result<BackgroundFile> {
        if !tail.begin(len, buffer_bytes) {
            let message = "the file is being written: drop the first writer before the second";
            return Err(Error::invalid(message).in_file(handle.name.to_string()));
        }
        let writer = PageWriter {
            handle: handle.clone(),
            direct,
            forgets: direct,
            now: Path::Cache,
            dropped: len,
        };
        Ok(BackgroundFile { handle, _writing: writing, tail, writer, len })
    }

    fn write_out(&mut self, all: bool) -> Result<()> {
        let writer = &mut self.writer;
        let handle = &self.handle;
        self.tail.with(|buffer| write_out(writer, handle, buffer, all)).unwrap_or(Ok(()))
    }
}

impl AppendFile for BackgroundFile {
    fn append(&mut self, bytes: &[u8], cause: Cause) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (writer, handle) = (&mut self.writer, &self.handle);
            let push = |buffer: &mut Buffer| {
                if buffer.is_full() {
                    write_out(writer, handle, buffer, false)?;
                }
                Ok(buffer.push(rest, cause))
            };
            let taken = self.tail.with(push).expect("a writer has a buffer")?;
            rest = &rest[taken..];
            self.len += taken as u64;
        }
        Ok(())
    }

    fn begin_sync(&mut self) -> Result<()> {
        self.write_out(true)?;
        self.tail.with(Buffer::release);
        system::begin_write_back(self.handle.file.as_fd());
        Ok(())
    }

    fn sync(&mut self, cause: Cause) -> Result<()> {
        self.write_out(true)?;
        self.handle.sync(cause)?;
        self.writer.synced(self.len);
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len
    }

    /// None: the buffer belongs to the writer.
    fn syncer(&self) -> Option<Box<dyn SyncFile>> {
        None
    }
}

impl Drop for BackgroundFile {
    fn drop(&mut self) {
        // A caller that must know whether the bytes arrived has called `sync`.
        let _ = self.write_out(true);
        self.tail.end();
    }
}

/// Fewer bytes at a sync are not worth a direct write between two others, which waits for the
/// medium, of one file after another, where a sync of all lets the system order them.
const SMALL_BYTES: usize = 64 << 10;

/// Passes whole pages of the buffer to the system, and with `all` the piece behind them too.
fn write_out(
    writer: &mut PageWriter,
    handle: &Handle,
    buffer: &mut Buffer,
    all: bool,
) -> Result<()> {
    while !buffer.bytes().is_empty() {
        let len = buffer.bytes().len();
        let to_boundary = (buffer.start().next_multiple_of(ALIGN as u64) - buffer.start()) as usize;
        let whole_pages = len / ALIGN * ALIGN;
        let (path, count) = match (to_boundary, whole_pages) {
            _ if all && len < SMALL_BYTES => (Path::Cache, len),
            (0, 0) => break,
            (0, pages) => (Path::Direct, pages),
            (piece, _) if piece <= len || all => (Path::Cache, piece.min(len)),
            _ => break,
        };
        let mut done = 0;
        let result =
            writer.write(&buffer.bytes()[..count], buffer.start(), path, |count| done += count);
        buffer.written(done, |cause, count| handle.ledger.wrote(cause, count as u64));
        result.map_err(|errno| handle.error("append", errno).at(buffer.start()))?;
    }
    Ok(())
}

/// Writes pieces of one file by the path that fits them.
struct PageWriter {
    handle: Handle,
    /// Direct writes are wanted and were not refused yet.
    direct: bool,
    /// The caller wants the bytes out of the page cache, even where they cannot go past it.
    forgets: bool,
    now: Path,
    /// The page cache was asked to forget the bytes below.
    dropped: u64,
}

impl PageWriter {
    fn write(
        &mut self,
        bytes: &[u8],
        offset: u64,
        path: Path,
        mut accepted: impl FnMut(usize),
    ) -> std::result::Result<(), Errno> {
        let mut done = 0;
        if path == Path::Direct && self.take(Path::Direct) {
            let count = |taken| {
                done += taken;
                accepted(taken);
            };
            match calls::write_at(self.handle.file.as_fd(), bytes, offset, count) {
                // Refused here, or a short write left an odd remainder: the page cache takes it.
                Err(Errno::INVAL) => self.direct = done > 0,
                result => return result,
            }
        }
        self.take(Path::Cache);
        let (rest, offset) = (&bytes[done..], offset + done as u64);
        calls::write_at(self.handle.file.as_fd(), rest, offset, accepted)?;
        self.forget(offset + rest.len() as u64);
        Ok(())
    }

    /// Changes the path of the descriptor; false where that is refused.
    fn take(&mut self, path: Path) -> bool {
        if self.now == path {
            return true;
        }
        if path == Path::Direct && !self.direct {
            return false;
        }
        if system::set_direct(&self.handle.file, path == Path::Direct).is_err() {
            self.direct = false;
            return false;
        }
        self.now = path;
        true
    }

    /// All below `end` is on the medium: the page cache need not keep it, the last page apart,
    /// which appends go on in.
    fn synced(&mut self, end: u64) {
        let whole = |bytes: u64| bytes / ALIGN as u64 * ALIGN as u64;
        let (from, end) = (whole(self.dropped), whole(end));
        if self.forgets && from < end {
            self.drop_pages(from, end);
        }
    }

    /// Starts writing back what the page cache holds below `end`, and drops what it wrote already.
    /// This bounds the dirty pages that a sync has to wait for.
    fn forget(&mut self, end: u64) {
        let window = 2 << 20;
        if !self.forgets || end < self.dropped + window / 2 {
            return;
        }
        self.drop_pages(self.dropped.saturating_sub(window), end);
    }

    fn drop_pages(&mut self, from: u64, end: u64) {
        // Advice only: nothing depends on it.
        system::forget(&self.handle.file, from, NonZeroU64::new(end - from));
        self.dropped = end;
    }
}
