//! Files that two directories share: hard links, and copies where there can be none.

use super::directory::Directory;
use super::{OsStore, calls};
use crate::{FileName, FileStore, Part, Sharing};
use base::{Cause, Error, ErrorKind, Result};
use rustix::fd::OwnedFd;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::path::Path;

/// How a link ended.
enum Link {
    Made,
    /// The file is being written, or the file systems have no links between them.
    Refused,
}

/// Checks that the file may take more bytes: no other directory shares it.
pub(super) fn check_unshared(name: FileName, file: &OwnedFd) -> Result<()> {
    let stat = rustix::fs::fstat(file)
        .map_err(|errno| calls::error("look at", name.to_string(), errno))?;
    if stat.st_nlink > 1 {
        let message = "the file has names in other directories, as a checkpoint leaves them";
        return Err(Error::new(ErrorKind::Shared, message).in_file(name.to_string()));
    }
    Ok(())
}

impl Sharing for OsStore {
    fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn share(&self, name: FileName, target: &Path, part: Part) -> Result<()> {
        let target = &self.directory.open_other(target)?;
        // A link changes the file that it shares, which a read-only store must not.
        if matches!(part, Part::Exactly(_)) || self.options.read_only {
            return self.copy(name, target, part);
        }
        match self.link(name, target, part)? {
            Link::Made => Ok(()),
            Link::Refused => self.copy(name, target, part),
        }
    }

    fn adopt(&self, path: &Path, name: FileName) -> Result<bool> {
        self.check_writable()?;
        match self.directory.link_from(path, &name.to_string()) {
            Ok(()) => {}
            Err(Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::OPNOTSUPP) => return Ok(false),
            Err(errno) => return Err(calls::error("link", path.display().to_string(), errno)),
        }
        self.tails.forget(name);
        // The program that wrote it may not have synced it.
        let synced = self.handle(name, OFlags::RDONLY).and_then(|file| file.sync(Cause::Ingest));
        if synced.is_err() {
            // The first error is the one to report.
            let _ = self.directory.unlink(&name.to_string());
        }
        synced.map(|()| true)
    }
}

impl OsStore {
    fn link(&self, name: FileName, target: &Directory, part: Part) -> Result<Link> {
        let text = name.to_string();
        let handle = self.handle(name, OFlags::RDONLY)?;
        let linked = self.writers.unless_written(name, || {
            let stat =
                rustix::fs::fstat(&handle.file).map_err(|errno| handle.error("look at", errno))?;
            let bytes = stat.st_size as u64;
            if bytes < part.of(bytes) {
                let message = format!("{} bytes are to be shared", part.of(bytes));
                return Err(Error::corruption(text.clone(), bytes, message));
            }
            match self.directory.link(&text, target) {
                Ok(()) => Ok(Link::Made),
                Err(Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::OPNOTSUPP) => {
                    Ok(Link::Refused)
                }
                Err(errno) => Err(calls::error("share", text.clone(), errno)),
            }
        });
        let link = linked.unwrap_or(Ok(Link::Refused))?;
        if matches!(link, Link::Made) {
            handle.sync(Cause::Checkpoint)?;
        }
        Ok(link)
    }

    /// Copies `part` of `name` to a new file in `target`.
    fn copy(&self, name: FileName, target: &Directory, part: Part) -> Result<()> {
        let source = self.open(name, true)?;
        let bytes = part.of(source.len()?);
        let text = name.to_string();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = target.open_file(&text, flags)?;
        let copied = target.fill(&text, &file, Cause::Checkpoint, bytes, |offset, piece| {
            source.read_at(offset, piece, Cause::Checkpoint)
        });
        if copied.is_err() {
            // The first error is the one to report.
            let _ = target.unlink(&text);
        }
        copied
    }
}
